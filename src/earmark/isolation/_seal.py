"""What a sealed cell does to itself before the first line of a stranger's: descriptors, limits, Landlock, seccomp.

It imports nothing but the standard library, because all of it must happen while there is one thread.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from pathlib import Path
from typing import Any

from earmark.isolation import _landlock, _limits, _seccomp

_END_WITH_PARENT, _DUMPABLE, _SET_SECCOMP, _NO_NEW_PRIVILEGES = 1, 4, 22, 38
_BY_FILTER = 2


def seal(given: dict[str, Any]) -> None:
    """Close this process off for good, as `given` says; an error ends it."""
    os.closerange(3, 65536)
    if len(list(Path("/proc/self/task").iterdir())) != 1:
        raise RuntimeError("a sealed cell must close itself off before it has a second thread")
    _prctl(_END_WITH_PARENT, signal.SIGKILL)
    _prctl(_NO_NEW_PRIVILEGES, 1)
    _prctl(_DUMPABLE, 0)  # no dump of memory in which a clip lies, whoever collects dumps
    parts = given["parts"]
    if "limits" in parts:
        _limits.bind(_limits.Limits.of(given["limits"]))
    if "landlock" in parts:
        _landlock.restrict(given["readable"], given["writable"])
    if "seccomp" in parts:
        known = _seccomp.architecture()
        if known is None:
            raise RuntimeError("the system calls of this architecture are not known")
        _install(_seccomp.filter_program(known, process=os.getpid()))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def _install(program: bytes) -> None:
    wrapped = _Program(len(program) // 8, program)
    _prctl(_SET_SECCOMP, _BY_FILTER, ctypes.addressof(wrapped))


def _prctl(*arguments: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(*(ctypes.c_ulong(value) for value in (*arguments, 0, 0, 0, 0)[:5])) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"prctl {arguments[0]}: {os.strerror(code)}")


def start() -> None:
    """Seal, then serve; the first argument of the command says how."""
    import json

    given = json.loads(sys.argv[1])
    sys.argv[1:] = []
    seal(given)
    from earmark.isolation._inside import serve

    serve()
