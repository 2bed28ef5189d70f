"""Debian packages that hold recordings: found where they are installed, else fetched with apt and unpacked.

    installed                     /usr/share/...
    the recordings folder         EARMARK_RECORDINGS, else ~/.cache/earmark/recordings (or where XDG_CACHE_HOME says)
    `earmark corpus fetch X`      apt-get downloads the package, dpkg-deb unpacks it; nothing is installed or run

apt does the download, so that a user's own mirror, proxy and settings apply; no rights of an administrator are needed.
The file is checked against the size and SHA-256 that apt's signed lists state, and a package appears in the folder
whole or not at all. What is fetched stays on the machine under the licence that comes with it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from earmark.atomic import write_whole
from earmark.errors import InputError
from earmark.progress import Progress, progress_bar

VARIABLE = "EARMARK_RECORDINGS"
SYSTEM = Path("/")
FACTS = "package.json"  # of a fetched package: its name, version and hash


@dataclass(frozen=True)
class Package:
    """A Debian package. `content` is a path inside it that a usable copy holds, relative to the root."""

    name: str
    content: str
    megabytes: float

    @property
    def folder(self) -> Path:
        """Where a fetched copy lies."""
        return recordings_folder() / self.name


class Copy(NamedTuple):
    """A package on this machine: the folder that stands for the root, and the version, '' where nobody knows it."""

    package: Package
    root: Path
    version: str

    @property
    def content(self) -> Path:
        return self.root / self.package.content

    @property
    def licence_file(self) -> Path:
        return self.root / "usr/share/doc" / self.package.name / "copyright"

    @property
    def revision(self) -> str:
        return f"{self.package.name} {self.version}".rstrip()


def recordings_folder() -> Path:
    given = os.environ.get(VARIABLE)
    if given:
        return Path(given).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "earmark" / "recordings"


# --- finding ------------------------------------------------------------------------------------------------


def locate(package: Package) -> Copy | None:
    """Where a package is on this machine, or None. Files that an image left out of an installed one do not count."""
    if (SYSTEM / package.content).exists():
        return Copy(package, SYSTEM, _installed_version(package.name))
    if (package.folder / package.content).exists():
        return Copy(package, package.folder, _fetched_version(package.folder))
    return None


def need(packages: Iterable[Package], spec: str) -> list[Copy]:
    """All packages of a corpus; otherwise one sentence that says how to get those that are missing."""
    copies = [locate(package) for package in packages]
    missing = [package for package, copy in zip(packages, copies, strict=True) if copy is None]
    if missing:
        names = " ".join(package.name for package in missing)
        size = sum(package.megabytes for package in missing)
        raise InputError(
            f"The recordings of {spec} are not here: run `earmark corpus fetch {shlex.quote(spec)}` ({size:.3g} MB), "
            f"or `apt-get install {names}`."
        )
    return [copy for copy in copies if copy is not None]


@cache
def _installed_version(name: str) -> str:
    program = shutil.which("dpkg-query")
    if program is None:
        return ""
    answer = subprocess.run(
        [program, "--show", "--showformat=${Version}", name], capture_output=True, encoding="utf-8", check=False
    )
    return answer.stdout.strip() if answer.returncode == 0 else ""


def _fetched_version(folder: Path) -> str:
    try:
        return str(json.loads((folder / FACTS).read_text("utf-8"))["version"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def stated_licences(copy: Copy) -> list[str]:
    """The short names of licences in a package's copyright file, in their order; none where it has another format."""
    try:
        text = copy.licence_file.read_text("utf-8", "replace")
    except OSError:
        return []
    return list(dict.fromkeys(re.findall(r"^License:[ \t]*(\S.*?)[ \t]*$", text, re.MULTILINE)))


# --- fetching -----------------------------------------------------------------------------------------------


class Download(NamedTuple):
    """What apt's lists say of a package's file."""

    file: str
    size: int
    sha256: str


def fetch(package: Package, *, source: Path | None = None, progress: Progress = False) -> Copy:
    """Put a package into the recordings folder: from `source` (a .deb file or a folder of them), else with apt.

    A download that was cut off continues. Raises InputError in one sentence where apt or dpkg-deb cannot.
    """
    _program("dpkg-deb", package)
    if source is not None:
        return _unpack(package, _given(package, source))
    download = _look_up(package)
    folder = recordings_folder() / ".downloads"
    _make(folder)
    file = folder / download.file
    if not _whole(file, download):
        if file.is_file() and file.stat().st_size >= download.size:
            file.unlink()  # apt would take it for the rest of what it is to fetch
        _download(package, download, folder, progress)
    if not _whole(file, download):
        file.unlink(missing_ok=True)
        raise InputError(
            f"{package.name}: what was downloaded is not the file that apt's lists describe (SHA-256 "
            f"{download.sha256[:12]}...), and nothing was kept: run `apt-get update` and fetch it again."
        )
    copy = _unpack(package, file)
    file.unlink()
    return copy


def _program(name: str, package: Package) -> str:
    program = shutil.which(name)
    if program is None:
        page = f"https://packages.debian.org/stable/{package.name}"
        remedy = (
            f"get the .deb file from {page}, and name it with --from FILE"
            if name == "apt-get"
            else f"install dpkg, or unpack {page} into {package.folder} with `ar x` and `tar xf data.tar.*`"
        )
        raise InputError(f"{package.name} cannot be fetched, since there is no {name} here: {remedy}.")
    return program


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"{folder} cannot be made ({error.strerror}): name a folder of yours with the variable {VARIABLE}."
        ) from error


def _look_up(package: Package) -> Download:
    program = _program("apt-get", package)
    # apt prints nothing about a file that lies in the current folder already.
    with tempfile.TemporaryDirectory(prefix="earmark-") as empty:
        answer = subprocess.run(
            [program, "download", "--print-uris", "-qq", package.name],
            cwd=empty, capture_output=True, encoding="utf-8", check=False, env={**os.environ, "LC_ALL": "C"},
        )  # fmt: skip
    for line in answer.stdout.splitlines():
        words = shlex.split(line)
        if len(words) == 4 and words[3].startswith("SHA256:"):
            return Download(words[1], int(words[2]), words[3].removeprefix("SHA256:"))
    raise InputError(
        f"apt does not know the package {package.name}{_why(answer.stderr)}: run `apt-get update` as an administrator, "
        "or name a .deb file that you have with --from FILE."
    )


def _why(errors: str) -> str:
    lines = [line.removeprefix("E: ").rstrip(". ") for line in errors.splitlines() if line.startswith("E: ")]
    return f" ({lines[-1]})" if lines else ""


def _whole(file: Path, download: Download) -> bool:
    if not file.is_file() or file.stat().st_size != download.size:
        return False
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest() == download.sha256


def _download(package: Package, download: Download, folder: Path, progress: Progress) -> None:
    file = folder / download.file
    with (
        progress_bar(progress, download.size, package.name, "B") as bar,
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(
            [_program("apt-get", package), "download", "-qq", package.name],
            cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors,
            env={**os.environ, "LC_ALL": "C"},
        ) as process,
    ):  # fmt: skip
        while process.poll() is None:
            if file.is_file():
                bar.reach(file.stat().st_size)
            time.sleep(0.05)
        if process.returncode:
            errors.seek(0)
            raise InputError(
                f"apt-get could not download {package.name}{_why(errors.read())}: look at your network and mirror, and "
                "fetch again; what has arrived is kept."
            )


def _given(package: Package, source: Path) -> Path:
    """The .deb file at a path: the file itself, or the one of this package in a folder."""
    files = [source] if source.is_file() else sorted(source.glob(f"{package.name}_*.deb")) if source.is_dir() else []
    for file in reversed(files):
        if _field(file, "Package") == package.name:
            return file
    raise InputError(f"{source} holds no {package.name}: give its .deb file or the folder it lies in.")


def _field(file: Path, name: str) -> str:
    answer = subprocess.run(
        ["dpkg-deb", "--field", str(file), name], capture_output=True, encoding="utf-8", check=False
    )  # fmt: skip
    return answer.stdout.strip() if answer.returncode == 0 else ""


def _unpack(package: Package, file: Path) -> Copy:
    """Unpack beside the final folder, and move it there when it is whole."""
    target = package.folder
    _make(target.parent)
    part = Path(tempfile.mkdtemp(prefix=f".{package.name}.", dir=target.parent))
    try:
        done = subprocess.run(
            ["dpkg-deb", "--extract", str(file), str(part)], capture_output=True, encoding="utf-8", check=False
        )  # fmt: skip
        if done.returncode:
            text = " ".join(done.stderr.split()) or f"exit code {done.returncode}"
            raise InputError(f"{file} cannot be unpacked ({text}): download it again.")
        if not (part / package.content).exists():
            raise InputError(
                f"{file} holds no {package.content}: it is not the {package.name} that Earmark knows, and nothing was "
                "kept."
            )
        with file.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        facts = {"name": package.name, "version": _field(file, "Version"), "sha256": digest}
        write_whole(part / FACTS, (json.dumps(facts, indent=1) + "\n").encode())
        part.chmod(0o755)
        if target.exists():
            shutil.rmtree(target)
        part.rename(target)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return Copy(package, target, facts["version"])
