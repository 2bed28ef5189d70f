"""The filter of system calls: a program for the kernel's packet filter, made here from a list of what is allowed.

    architecture?  another: killed (32-bit calls would have other meanings for the same numbers)
    number         x32: killed; allowed: allowed; by argument: see below; younger than the table: ENOSYS
    the rest       EPERM

    clone          only threads (CLONE_THREAD), without any namespace; clone3 hides its flags in memory: ENOSYS
    fcntl, ioctl, madvise, prctl   a few commands
    kill, tgkill   itself, once its number is known
    prlimit64      to read limits, not to set them

The same program, wider by what Python needs to start, is in force before the first instruction inside; the narrow one
before the first line of a stranger's.
"""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Sequence

from earmark.isolation import _syscalls as calls

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06  # of the packet filter's instructions
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # where seccomp_data has them
_ALLOW, _KILL, _ERRNO = 0x7FFF_0000, 0x8000_0000, 0x0005_0000
_X32 = 0x4000_0000

Instruction = tuple[int, int, int, int]  # code, jump if true, jump if false, value


def architecture() -> calls.Architecture | None:
    """That of this machine; None where its calls are not known here."""
    return calls.ARCHITECTURES.get(platform.machine())


def filter_program(known: calls.Architecture, *, process: int | None = None) -> bytes:
    """The program as the kernel reads it, for the process of that number; without one, what is needed until a cell
    has closed itself off is allowed too."""
    numbers, starting = known.numbers, process is None
    commands = calls.PRCTL + (calls.PRCTL_STARTING if starting else ())
    program = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, known.audit),
        _ends(_KILL),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _X32),
        _ends(_KILL),
    ]
    for name in sorted(calls.ALLOWED | (calls.STARTING if starting else frozenset())):
        if name in numbers:
            program += [(_EQUAL, 0, 1, numbers[name]), _ends(_ALLOW)]
    for name, rules in (
        ("clone", _threads_only()),
        ("fcntl", _one_of(calls.FCNTL)),
        ("ioctl", _one_of(calls.IOCTL, errno.ENOTTY)),
        ("kill", _to_itself(process)),
        ("madvise", _one_of(calls.MADVISE, errno.EINVAL, argument=2)),
        ("prctl", _one_of(commands, errno.EINVAL, argument=0)),
        ("prlimit64", _reading_limits(starting)),
        ("tgkill", _to_itself(process)),
    ):
        program += [(_EQUAL, 0, len(rules), numbers[name]), *rules]
    for name in sorted(calls.ABSENT):
        program += [(_EQUAL, 0, 1, numbers[name]), _ends(_ERRNO | errno.ENOSYS)]
    program += [(_AT_LEAST, 0, 1, calls.NEWEST), _ends(_ERRNO | errno.ENOSYS), _ends(_ERRNO | errno.EPERM)]
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in program)


def _ends(action: int) -> Instruction:
    return (_RETURN, 0, 0, action)


def _argument(number: int, *, upper: bool = False) -> Instruction:
    """Half of an argument; both architectures put the lower half first."""
    return (_LOAD, 0, 0, _ARGUMENTS + 8 * number + (4 if upper else 0))


def _threads_only() -> list[Instruction]:
    return [
        _argument(0),
        (_ANY_BIT, 0, 2, calls.CLONE_THREAD),
        (_ANY_BIT, 1, 0, calls.CLONE_NEW),
        _ends(_ALLOW),
        _ends(_ERRNO | errno.EPERM),
    ]


def _one_of(values: Sequence[int], otherwise: int = errno.EPERM, argument: int = 1) -> list[Instruction]:
    rules = [_argument(argument)]
    for value in values:
        rules += [(_EQUAL, 0, 1, value), _ends(_ALLOW)]
    return [*rules, _ends(_ERRNO | otherwise)]


def _to_itself(process: int | None) -> list[Instruction]:
    return [_ends(_ALLOW)] if process is None else _one_of((process,), argument=0)


def _reading_limits(starting: bool) -> list[Instruction]:
    """Of this process, and without new ones, once they are set."""
    if starting:
        return [_ends(_ALLOW)]
    return [
        _argument(0),
        (_EQUAL, 0, 4, 0),
        _argument(2),
        (_EQUAL, 0, 2, 0),
        _argument(2, upper=True),
        (_EQUAL, 1, 0, 0),
        _ends(_ERRNO | errno.EPERM),
        _ends(_ALLOW),
    ]
