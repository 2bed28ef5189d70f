"""Landlock: a process gives up rights on files, sockets and signals for good, by three system calls.

A rule names a file or folder and what may be done there; whatever no rule names is refused, also what a mistake in the
mounts would have shown. A process in such a domain cannot look into processes outside it either.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Iterable

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # on every architecture
_EXECUTE, _WRITE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REMOVE_DIR, _REMOVE_FILE, _MAKE_DIR, _MAKE_REG = 1 << 4, 1 << 5, 1 << 7, 1 << 8
_TRUNCATE = 1 << 14  # since version 3
_OF_FILES = _EXECUTE | _WRITE | _READ_FILE | _TRUNCATE
_READING = _EXECUTE | _READ_FILE | _READ_DIR
_WRITING = _WRITE | _READ_FILE | _READ_DIR | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_REG | _TRUNCATE
_HANDLED = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1, 5: (1 << 16) - 1}
_TCP = 3  # bind and connect, since version 4
_SCOPES = 3  # abstract sockets and signals, since version 6


def version() -> int:
    """What the kernel offers; 0 where it has none or it is switched off."""
    try:
        return max(_call(_CREATE, None, 0, 1), 0)
    except OSError:
        return 0


def restrict(readable: Iterable[str], writable: Iterable[str]) -> None:
    """From here on this thread, and whatever it starts, reads and writes only there. It needs no new privileges."""
    offered = version()
    if not offered:
        raise OSError("this kernel has no Landlock")
    handled = _HANDLED[min(offered, 5)]
    fields = [handled]
    if offered >= 4:
        fields.append(_TCP)
    if offered >= 6:
        fields.append(_SCOPES)
    rules = struct.pack(f"={len(fields)}Q", *fields)
    ruleset = _call(_CREATE, rules, len(rules), 0)
    try:
        for path in readable:
            _allow(ruleset, path, _READING & handled)
        for path in writable:
            _allow(ruleset, path, _WRITING & handled)
        _call(_RESTRICT, ruleset, 0)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return  # nothing to be allowed
    try:
        if not stat.S_ISDIR(os.fstat(place).st_mode):
            rights &= _OF_FILES
        _call(_ADD, ruleset, 1, struct.pack("=Qi", rights, place), 0)
    finally:
        os.close(place)


def _call(number: int, *arguments: int | bytes | None) -> int:
    library = ctypes.CDLL(None, use_errno=True)
    library.syscall.restype = ctypes.c_long
    given = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    answer = int(library.syscall(ctypes.c_long(number), *given))
    if answer < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return answer
