"""What a sealed cell finds of its walls, tried from inside by Earmark's own code before any stranger is let in."""

from __future__ import annotations

import os
import resource
import socket
from collections.abc import Callable
from pathlib import Path

from earmark.isolation._messages import Message

RIGHTS = ("Uid", "CapEff", "CapBnd", "NoNewPrivs", "Seccomp")
NAMESPACES = ("user", "pid", "ipc", "uts", "net", "mnt")


def answer(message: Message) -> Message:
    """Namespaces, rights and limits of this process, and whether it could do what it must not."""
    status = dict(line.split(":\t", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":\t" in line)
    limits = {
        name: resource.getrlimit(getattr(resource, f"RLIMIT_{name}")) for name in ("AS", "CPU", "FSIZE", "NOFILE")
    }
    return Message(
        {
            "namespaces": {name: str(Path(f"/proc/self/ns/{name}").readlink()) for name in NAMESPACES},
            "status": {name: status.get(name, "").strip() for name in RIGHTS},
            "limits": limits,
            "did": [name for name, attempt in _ATTEMPTS.items() if _succeeds(attempt)],
        }
    )


def _socket() -> None:
    socket.socket(socket.AF_UNIX).close()


def _process() -> None:
    if os.fork() == 0:
        os._exit(0)


def _password_file() -> None:
    Path("/etc/passwd").read_bytes()


def _folders() -> None:
    list(Path("/").iterdir())


def _more_memory() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard + 1))


_ATTEMPTS: dict[str, Callable[[], None]] = {
    "socket": _socket, "process": _process, "password file": _password_file, "folders": _folders,
    "limits raised": _more_memory,
}  # fmt: skip


def _succeeds(attempt: Callable[[], None]) -> bool:
    try:
        attempt()
    except (OSError, ValueError):
        return False
    return True
