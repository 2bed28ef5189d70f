"""A package: a model as a stranger sends it, a .zip or a folder with a `submission.yaml`. Looked at, never run.

    submission.yaml      what it is (see `earmark.blind._manifest`)
    model.onnx           or a folder with config.json and model.safetensors, or extractor.py and its weights

`inspect` reads every byte once and says everything for which a package is refused; `unpack` does the same and lays the
files into a folder. Neither imports torch or onnxruntime, or anything of the package.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import IO, Any

from earmark.blind import _manifest
from earmark.blind._archives import Archive, Member, open_archive
from earmark.blind._contents import Read, bytes_needed, content_problems, kind_problem
from earmark.errors import InputError
from earmark.tables import plain

__all__ = ["MANIFEST", "Package", "PackageRefused", "archive", "inspect", "unpack"]

MANIFEST = "submission.yaml"
MOST_PROBLEMS = 100
LOOKING_SECONDS = 300.0
"""What all files of a package may take to be read; a gigabyte takes about ten."""


class PackageRefused(InputError):
    """A package that is not taken; `problems` holds everything that is wrong with it, one sentence each."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(plain(problem, 1000) for problem in problems[:MOST_PROBLEMS])
        super().__init__(self.problems)

    def __str__(self) -> str:
        more = len(self.problems) - 1
        return self.problems[0] + (f" (and {more} more)" if more else "")


@dataclass(frozen=True)
class Package:
    """What a package says of itself, once nothing was found wrong with it."""

    kind: _manifest.Kind
    model: str  # inside the package: a file, a folder ("." is the package itself), or file.py:Name
    architecture: str  # of safetensors: the extractor's registered name
    entry: str  # what the system is called on the board
    system: Mapping[str, Any] = field(hash=False)  # the fields of its card
    pooling: str
    pca: int | None
    distance: str
    correction: str
    rate: int | None  # samples a second that the model wants, where the package states it
    setup: Mapping[str, Any] = field(hash=False)  # of ONNX: the fields of `Setup`
    options: Mapping[str, Any] = field(hash=False)  # keywords of the model's constructor
    digest: str  # SHA-256 of names and contents, the same for a folder and a zip of it
    size: int  # bytes of all files
    files: tuple[str, ...]
    folder: str | None = None  # where it lies unpacked


def inspect(path: str | PathLike[str]) -> Package:
    """What the package at a path says of itself. Raises PackageRefused with everything for which it is refused."""
    with open_archive(Path(path)) as files:
        return _inspected(files, lambda member: None)


def unpack(path: str | PathLike[str], folder: str | PathLike[str]) -> Package:
    """Inspect a package and lay its files into a folder that is empty or not there yet; none is executable."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    if any(target.iterdir()):
        raise InputError(f"{target} is not empty: a package is unpacked into a folder of its own.")

    def write_to(member: Member) -> Path:
        place = target / member.name
        place.parent.mkdir(parents=True, exist_ok=True)
        return place

    with open_archive(Path(path)) as files:
        package = _inspected(files, write_to)
    return replace(package, folder=str(target.absolute()))


def archive(folder: str | PathLike[str], target: str | PathLike[str]) -> Path:
    """Zip a folder, without what tools leave behind. The same files give the same bytes."""
    with open_archive(Path(folder)) as files:
        if files.problems:
            raise PackageRefused(files.problems)
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as made:
            for member in files.members:
                info = zipfile.ZipInfo(member.name)
                info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
                info.file_size = member.size
                with made.open(info, "w") as stream:
                    for chunk in files.chunks(member):
                        stream.write(chunk)
    return Path(target)


def _inspected(files: Archive, write_to: Callable[[Member], Path | None]) -> Package:
    """Read every file once: its digest, what is wrong with it, and a copy where one is wanted."""
    if files.problems:
        raise PackageRefused(files.problems)
    problems = [problem for member in files.members if (problem := kind_problem(member))]
    digests: list[bytes] = []
    texts: dict[str, bytes] = {}
    read = Read()
    end = time.monotonic() + LOOKING_SECONDS
    for member in files.members if not problems else ():
        place = write_to(member)
        with _copy(place) as copy:
            digest = hashlib.sha256()
            room = bytes_needed(member) if place is None else member.size
            for chunk in files.chunks(member):
                digest.update(chunk)
                room -= copy.write(chunk[:room])
                if time.monotonic() > end:
                    raise PackageRefused(
                        [f"Looking at the package takes more than {LOOKING_SECONDS:.0f} s: shrink it."]
                    )
            digests.append(f"{member.name}\0{digest.hexdigest()}\n".encode())
            copy.flush()
            copy.seek(0)
            problems += content_problems(copy, member, read)
            room = _manifest.MOST_JSON - sum(map(len, texts.values()))
            if member.name == MANIFEST or (member.name.endswith(".json") and member.size <= room):
                copy.seek(0)
                texts[member.name] = copy.read(_manifest.MOST_JSON)
        if len(problems) >= MOST_PROBLEMS:
            break
    if problems:
        raise PackageRefused(list(dict.fromkeys(problems)))
    names = tuple(member.name for member in files.members)
    if MANIFEST not in names:
        raise PackageRefused([f"There is no {MANIFEST} in the package: `earmark blind new FOLDER` writes an example."])
    manifest = _manifest.read_manifest(texts[MANIFEST], names, texts)
    if manifest.problems:
        raise PackageRefused(manifest.problems)
    return Package(
        **manifest.facts,
        digest=hashlib.sha256(b"".join(digests)).hexdigest(),
        size=sum(member.size for member in files.members),
        files=names,
    )


@contextmanager
def _copy(path: Path | None) -> Iterator[IO[bytes]]:
    """A new file at a path, or one without a name that is gone afterwards."""
    if path is None:
        with tempfile.TemporaryFile(prefix="earmark-package-") as stream:
            yield stream
        return
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o644)
    with os.fdopen(descriptor, "r+b") as stream:
        yield stream
