"""What a cell may see, as arguments of bubblewrap; and what this machine can offer.

    /usr /lib /etc ...       the system, read only
    readable                 what the owner names: Python, packages, weights, read only
    hidden                   covered again where it lies inside of what is readable: the clips, the cache, the results
    /tmp /dev/shm $HOME      empty, writable, gone with the cell
    nothing else             no network, no other process, no device, no user's folder

Mounts are made from the outermost folder inwards, so that a readable folder inside a hidden one is seen.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from earmark.errors import UsageError

Level = Literal["full", "partial", "none"]

PROGRAM = "bwrap"
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/opt", "/nix", "/sys/devices/system/cpu")
_PRIVATE = ("/tmp", "/var/tmp", "/run")
_PRIVATE_BYTES = 8 << 30
_MOST_COVERED = 20_000
_KEPT = (
    "EARMARK_LYRA", "EARMARK_WEIGHTS", "HF_HOME", "HF_HUB_CACHE", "HF_HUB_OFFLINE", "HOME", "LANG", "LANGUAGE",
    "LD_LIBRARY_PATH", "PATH", "TZ",
)  # fmt: skip
_KEPT_BEGINNINGS = (
    "CUDA_", "LC_", "MKL_", "NUMBA_", "NVIDIA_", "OMP_", "ONNX", "OPENBLAS_", "PYTHON", "TF_", "TORCH",
    "TRANSFORMERS_",
)  # fmt: skip
_UNTOLD = "files elsewhere on this machine, shared memory, other processes and the network could not be excluded"


class Support(NamedTuple):
    """How far a cell is cut off on this machine; the reason says what could not be excluded."""

    level: Level
    reason: str = ""


@dataclass(frozen=True)
class Bounds:
    """What a cell may read beside the system and this Python, and what of that is covered again."""

    readable: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()  # files and folders
    folder: str = ""  # where it works; must be readable

    def arguments(self) -> list[str]:
        """The arguments of bubblewrap, without the command."""
        home = str(Path.home())
        given = [
            "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", "cell",
            "--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev",
        ]  # fmt: skip
        for folder in (*_PRIVATE, home):
            given += ["--size", str(_PRIVATE_BYTES), "--perms", "0700", "--tmpfs", folder]
        for path in map(Path, _SYSTEM):
            if path.is_symlink():
                given += ["--symlink", str(path.readlink()), str(path)]
            elif path.exists():
                given += ["--ro-bind", str(path), str(path)]
        for device in sorted(Path("/dev").glob("nvidia*")):
            given += ["--dev-bind", str(device), str(device)]
        for mount in self._mounts():
            given += mount
        return [*given, "--chdir", self.folder or "/tmp"]

    def _mounts(self) -> Iterator[list[str]]:
        """Outermost first. A hidden file is covered with its folder, or alone where its folder is to be read."""
        readable = present([*_python_folders(), *self.readable, *([self.folder] if self.folder else [])])
        roots = [*readable, *present(_SYSTEM)]
        mounts: dict[str, list[str]] = {}
        for path in present(self.hidden):
            folder = path if Path(path).is_dir() else str(Path(path).parent)
            if not any(is_inside(path, root) for root in roots):
                continue
            if folder not in roots:
                mounts[folder] = ["--tmpfs", folder]
            elif folder != path and not Path(path).is_symlink():  # what a link leads to is covered itself
                mounts[path] = ["--ro-bind", "/dev/null", path]
        if len(mounts) > _MOST_COVERED:
            raise UsageError(
                f"{len(mounts)} clips and folders of clips lie where the codec or model reads from too: put them in a "
                "folder of their own, so that they can be kept from it."
            )
        mounts |= {path: ["--ro-bind", path, path] for path in readable}
        return iter([mounts[path] for path in sorted(mounts, key=lambda path: (path.count("/"), path))])


def environment() -> dict[str, str]:
    """What a cell knows of its owner's environment: how to find libraries and weights, no secrets."""
    kept = {
        name: value for name, value in os.environ.items() if name in _KEPT or name.startswith(_KEPT_BEGINNINGS)
    }  # fmt: skip
    # A cell is one of several: its libraries keep to one thread.
    threads = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "NUMBA")}
    return {**kept, **threads, "PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": "/tmp"}


def _python_folders() -> list[str]:
    """Where this Python and its packages lie; the current folder is not one of them unless it is named."""
    return [sys.prefix, sys.base_prefix, sys.exec_prefix, *(entry for entry in sys.path if entry)]


def present(paths: Sequence[str]) -> list[str]:
    """Paths that exist, absolute, with the files behind links, each once; never the whole disk."""
    spellings = [spelling for path in map(Path, paths) for spelling in (path.absolute(), path.resolve())]
    return list(dict.fromkeys(str(path) for path in spellings if path != Path("/") and path.exists()))


def is_inside(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")


@functools.cache
def support() -> Support:
    """What this machine can offer, found out by trying."""
    program = shutil.which(PROGRAM)
    if program is None:
        return Support("partial", f"bubblewrap is not installed (on Debian: apt-get install bubblewrap), so {_UNTOLD}")
    try:
        tried = subprocess.run(
            [program, *Bounds().arguments(), sys.executable, "-c", "pass"],
            capture_output=True, timeout=60, check=False, env=environment(),
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return Support("partial", f"bubblewrap does not start ({error}), so {_UNTOLD}")
    if tried.returncode:
        said = " ".join(tried.stderr.decode(errors="replace").split())[-200:]
        return Support("partial", f"bubblewrap is not allowed to work here ({said}), so {_UNTOLD}")
    return Support("full")
