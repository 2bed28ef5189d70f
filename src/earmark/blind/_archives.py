"""The files of a package, in a folder or a zip, listed and read without unpacking anything.

A zip is two lists of its files, one before each file and one at the end, and readers differ in which they believe.
One is taken here only where both lists say the same, no file lies over another, and names and sizes are plain: what
was checked is then what is unpacked. Nothing is decompressed beyond the size that was stated and counted.
"""

from __future__ import annotations

import os
import stat
import struct
import unicodedata
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO, Protocol

from earmark.errors import InputError, quoted
from earmark.wording import counted

__all__ = ["MOST_BYTES", "MOST_FILES", "Archive", "Member", "open_archive"]

MOST_FILES = 1000
MOST_BYTES = 4_000_000_000
MOST_RATIO = 100  # of a compressed file of more than a mebibyte; weights hardly compress
MOST_DEPTH = 6
LONGEST_NAME = 200
IGNORED = ("__pycache__", "__MACOSX", ".DS_Store", ".git", ".gitignore", ".gitattributes")
"""Names that tools leave behind: passed over, wherever they are."""

_END = struct.Struct("<4s4H2LH")  # the record at the end of a zip
_LOCAL = struct.Struct("<4s5H3L2H")  # the record before each file
_CHUNK = 1 << 20
_MOST_DIRECTORY = MOST_FILES * 1024


@dataclass(frozen=True)
class Member:
    """A file of a package: its name, with / between folders, and its size."""

    name: str
    size: int


class Archive(Protocol):
    """The files of a package; `problems` says why it cannot be read, and then there are no members."""

    members: tuple[Member, ...]
    problems: list[str]

    def chunks(self, member: Member) -> Iterator[bytes]:
        """The content of a file, piece by piece, exactly as long as it was said to be."""


@contextmanager
def open_archive(path: Path) -> Iterator[Archive]:
    """The package at a path. Raises InputError where nothing is there."""
    if path.is_dir():
        yield _Folder(path)
        return
    if not path.is_file():
        raise InputError(f"{path} does not exist: give a folder with a submission.yaml, or a .zip of one.")
    with path.open("rb") as stream:
        yield _Zip(stream, path.name)


def _is_ignored(name: str) -> bool:
    return any(part in IGNORED for part in name.split("/"))


def _name_problem(name: str) -> str:
    """Why a name may not be in a package, or nothing."""
    shown = quoted(name.encode("ascii", "backslashreplace").decode())
    parts = name.split("/")
    if (
        not name.isprintable()
        or any(mark in name for mark in '\\:*?"<>|')
        or unicodedata.normalize("NFC", name) != name
    ):
        return f"The name {shown} holds characters that not every system can store: rename it."
    if name.startswith("/") or any(part in ("", ".", "..") for part in parts):
        return f"The name {shown} leads out of the package: give names inside it."
    if len(name.encode()) > LONGEST_NAME or len(parts) > MOST_DEPTH or any(part.endswith((" ", ".")) for part in parts):
        return f"The name {shown} is too long, too deep or ends in a blank or a dot: rename it."
    return ""


def _list_problems(members: list[Member]) -> list[str]:
    """What is wrong with a list of files as a whole."""
    problems = [problem for member in members if (problem := _name_problem(member.name))]
    if len(members) > MOST_FILES:
        problems.append(f"The package holds {counted(len(members), 'file')}; {MOST_FILES} are allowed.")
    total = sum(member.size for member in members)
    if total > MOST_BYTES:
        problems.append(f"The files of the package come to {total / 1e9:.1f} GB; {MOST_BYTES / 1e9:.0f} are allowed.")
    seen: set[str] = set()
    for member in members:
        plain = member.name.casefold()
        if plain in seen:
            problems.append(f"The package holds two files called {quoted(member.name)}: leave one out.")
        seen.add(plain)
    folders = {"/".join(name.split("/")[:depth]) for name in seen for depth in range(1, name.count("/") + 1)}
    problems += [f"{quoted(name)} is a file and a folder: rename one." for name in sorted(folders & seen)]
    return list(dict.fromkeys(problems))


class _Folder:
    def __init__(self, path: Path) -> None:
        self.path = path
        members: list[Member] = []
        self.problems: list[str] = []
        self._walk(path, "", members)
        self.problems += _list_problems(members)
        self.members = () if self.problems else tuple(sorted(members, key=lambda member: member.name))

    def _walk(self, folder: Path, before: str, members: list[Member]) -> None:
        with os.scandir(folder) as entries:
            for entry in entries:
                name = before + entry.name
                if entry.name in IGNORED or len(members) > MOST_FILES:
                    continue
                facts = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(facts.st_mode) and name.count("/") < MOST_DEPTH:
                    self._walk(folder / entry.name, f"{name}/", members)
                elif stat.S_ISREG(facts.st_mode):
                    members.append(Member(name, facts.st_size))
                else:
                    self.problems.append(f"{quoted(name)} is a link, a device or too deep: put a plain file there.")

    def chunks(self, member: Member) -> Iterator[bytes]:
        descriptor = os.open(self.path / member.name, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        with os.fdopen(descriptor, "rb") as stream:
            yield from _exactly(stream, member)


class _Zip:
    def __init__(self, stream: BinaryIO, name: str) -> None:
        self._stream = stream
        self._infos: dict[str, zipfile.ZipInfo] = {}
        self.members: tuple[Member, ...] = ()
        self.problems: list[str] = []
        unreadable = f"{name} is not a plain .zip file"
        try:
            self._check_end()
            self._zip = zipfile.ZipFile(stream)
            infos = self._zip.infolist()
        except _NotPlain as error:
            self.problems.append(f"{unreadable}: {error}.")
            return
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, struct.error, EOFError) as error:
            self.problems.append(f"{unreadable} ({' '.join(str(error).split())[:100]}): zip the folder again.")
            return
        try:
            self._check_places(infos)
        except _NotPlain as error:
            self.problems.append(f"{unreadable}: {error}.")
            return
        files = [info for info in infos if not info.is_dir()]
        for info in files:
            self.problems += self._info_problems(info)
        files = [info for info in files if not _is_ignored(info.filename)]
        top = _common_folder([info.filename for info in files])
        members = [Member(info.filename.removeprefix(top), info.file_size) for info in files]
        self._infos = {member.name: info for member, info in zip(members, files, strict=True)}
        self.problems += _list_problems(members)
        self.members = () if self.problems else tuple(sorted(members, key=lambda member: member.name))

    def chunks(self, member: Member) -> Iterator[bytes]:
        try:
            with self._zip.open(self._infos[member.name]) as stream:
                yield from _exactly(stream, member)
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
            raise InputError(f"{quoted(member.name)} is damaged inside the .zip: zip the folder again.") from error

    def _check_end(self) -> None:
        """The end of the file is the end of its directory, and that is short."""
        size = self._stream.seek(0, os.SEEK_END)
        if size > MOST_BYTES:
            raise _NotPlain(f"it has {size / 1e9:.1f} GB, and {MOST_BYTES / 1e9:.0f} are allowed")
        self._stream.seek(0)
        if self._stream.read(2) != b"PK":
            raise _NotPlain("give a folder with a submission.yaml, or a .zip of one")
        if size < _END.size:
            raise _NotPlain("it is cut short")
        self._stream.seek(size - _END.size)
        mark, disk, first, here, entries, length, start, comment = _END.unpack(self._stream.read(_END.size))
        if mark != b"PK\x05\x06" or comment:
            raise _NotPlain("it does not end with the list of its files, or has a comment; zip the folder again")
        if disk or first or here != entries or entries == 0xFFFF or 0xFFFFFFFF in (length, start):
            raise _NotPlain("it has several parts or too many files")
        if entries > MOST_FILES * 2 or length > _MOST_DIRECTORY:
            raise _NotPlain(f"it lists {entries:,} files and folders in {length:,} bytes; {MOST_FILES} are allowed")
        if start + length + _END.size != size:
            raise _NotPlain("something lies before its files or behind the list of them; zip the folder again")
        self._directory = start

    def _check_places(self, infos: list[zipfile.ZipInfo]) -> None:
        """Files lie one behind the other, each behind a record that says of it what the list says."""
        place = 0
        for info in sorted(infos, key=lambda info: info.header_offset):
            if info.header_offset < place:
                raise _NotPlain("two of its files lie over each other")
            self._stream.seek(info.header_offset)
            record = self._stream.read(_LOCAL.size)
            if len(record) < _LOCAL.size:
                raise _NotPlain("a file lies outside of it")
            mark, _, flags, method, _, _, crc, packed, size, name, extra = _LOCAL.unpack(record)
            called = self._stream.read(name)
            spelled = info.orig_filename.encode("utf-8" if info.flag_bits & 0x800 else "cp437")
            same = mark == b"PK\x03\x04" and called == spelled and method == info.compress_type
            streamed = bool(flags & 0x08)  # sizes then follow the file
            wide = 0xFFFFFFFF in (packed, size)  # sizes then stand in an extra field
            sizes = streamed or wide or (crc, packed, size) == (info.CRC, info.compress_size, info.file_size)
            if not same or not sizes or flags != info.flag_bits:
                raise _NotPlain("what it says before a file is not what it says at its end")
            place = info.header_offset + _LOCAL.size + name + extra + info.compress_size
            if place > self._directory:
                raise _NotPlain("a file lies over the list of files")

    def _info_problems(self, info: zipfile.ZipInfo) -> Iterator[str]:
        shown = quoted(info.orig_filename.encode("ascii", "backslashreplace").decode())
        kind = stat.S_IFMT(info.external_attr >> 16)
        if kind and not stat.S_ISREG(kind):
            yield f"{shown} is a link or a device: put a plain file there."
        if info.orig_filename != info.filename:
            yield f"The name {shown} holds characters that not every system can store: rename it."
        if info.flag_bits & 0x41:
            yield f"{shown} is encrypted: zip it without a password."
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            yield f"{shown} is compressed in an unusual way: zip it without, or with deflate."
        if info.file_size > MOST_RATIO * max(info.compress_size, 1) + (1 << 20):
            yield f"{shown} unpacks to {info.file_size:,} bytes from {info.compress_size:,}: that is no model."


class _NotPlain(Exception):
    """Why a zip is none that is read here."""


def _exactly(stream: IO[bytes], member: Member) -> Iterator[bytes]:
    left = member.size
    while chunk := stream.read(min(_CHUNK, left + 1)):
        left -= len(chunk)
        if left < 0:
            break
        yield chunk
    if left:
        raise InputError(f"{quoted(member.name)} is not as long as it was said to be: zip the folder again.")


def _common_folder(names: list[str]) -> str:
    """The one folder that all files lie in, as when a folder was zipped with its name; else nothing."""
    tops = {name.partition("/")[0] for name in names if "/" in name}
    if len(tops) != 1 or not all("/" in name for name in names):
        return ""
    top = next(iter(tops))
    return f"{top}/" if f"{top}/submission.yaml" in names else ""
