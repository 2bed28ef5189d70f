"""A pretended machine in bubblewrap, on which the files of `deploy` stand where they stand on a real one.

It has a network of its own, so that ports 80, 443 and 8000 are free, board.example.org in its /etc/hosts, a certificate
for that name, and Earmark in /opt/earmark. Nothing of it is seen from outside, and nothing remains.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from tests.deploy.units import DEPLOY, ROOT, STATE

HOST = "board.example.org"
CERTIFICATES = Path("/etc/ssl") / HOST
ENVIRONMENT_FILE = Path("/etc/earmark-board.env")


def missing() -> str:
    """Which programs are not installed; empty when all of them are."""
    programs = ("nginx", "caddy", "bwrap", "openssl")
    absent = [name for name in programs if shutil.which(name, path="/usr/sbin:/usr/bin:/usr/local/bin") is None]
    return f"{', '.join(absent)}: not installed; scripts/services install does" if absent else ""


def bubblewrap(folder: Path) -> list[str]:
    """The beginning of a command that is run on the machine, whose writable files lie in `folder`."""
    made = _files(folder)
    state = {name: folder / name for name in ("earmark-board", "nginx")}
    for place in state.values():
        place.mkdir()
    return [
        "bwrap", "--unshare-user", "--unshare-net", "--unshare-pid", "--unshare-ipc", "--die-with-parent",
        "--uid", "1000", "--gid", "1000", "--cap-add", "CAP_NET_BIND_SERVICE",
        "--ro-bind", "/", "/", "--dev-bind", "/dev", "/dev", "--proc", "/proc", "--tmpfs", "/run",
        "--tmpfs", "/var/log", "--dir", "/var/log/nginx",
        *_opened(Path("/etc"), {"hosts": made / "hosts"}),
        *_opened(Path("/etc/ssl"), {HOST: made / "certificates"}),
        *_opened(Path("/opt"), {"earmark": made / "earmark"}),
        *_opened(STATE, {}),
        *(word for name, place in state.items() for word in ("--bind", str(place), str(STATE / name))),
        "--ro-bind", str(made / "conf.d"), "/etc/nginx/conf.d",
        "--bind", str(folder), str(folder), "--setenv", "TMPDIR", str(folder), "--setenv", "HOME", str(folder),
        "--chdir", str(ROOT), "--",
    ]  # fmt: skip


def _opened(folder: Path, more: dict[str, Path]) -> list[str]:
    """A folder in which further entries may stand beside those that it has."""
    given = ["--tmpfs", str(folder)]
    for entry in sorted(folder.iterdir()) if folder.exists() else ():
        if entry.is_symlink():
            given += ["--symlink", str(entry.readlink()), str(entry)]
        elif entry.name not in more:
            given += ["--ro-bind-try", str(entry), str(entry)]
    return [*given, *(word for name, place in more.items() for word in ("--ro-bind", str(place), str(folder / name)))]


def _files(folder: Path) -> Path:
    """What an administrator makes: the name, the certificate, the installed program, nginx's file."""
    made = folder / "made"
    for name in ("certificates", "earmark/bin", "conf.d"):
        (made / name).mkdir(parents=True)
    (made / "hosts").write_text(f"127.0.0.1 localhost {HOST}\n", "utf-8")
    program = made / "earmark" / "bin" / "earmark"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m earmark "$@"\n', "utf-8")
    program.chmod(0o755)
    shutil.copy(DEPLOY / "nginx.conf", made / "conf.d" / "earmark-board.conf")
    certificate, key = (str(made / "certificates" / name) for name in ("fullchain.pem", "privkey.pem"))
    subprocess.run(
        [
            "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={HOST}",
            "-addext", f"subjectAltName=DNS:{HOST}", "-keyout", key, "-out", certificate,
        ],
        check=True, capture_output=True, timeout=60,
    )  # fmt: skip
    return made
