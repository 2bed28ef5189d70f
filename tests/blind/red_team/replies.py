"""Answers of a cell that are none: frames that lie, drip, come late or twice."""

from __future__ import annotations

import contextlib
import os
import struct
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from earmark.isolation import Message, arrays_message


def _answers_fd() -> int:
    """The pipe to the owner: the highest descriptor that can be written, in a process that has opened nothing else."""
    for number in range(20, 2, -1):
        with contextlib.suppress(OSError):
            os.write(number, b"")
            return number
    raise LookupError


def _raw(data: bytes, then: float = 30.0) -> Message:
    fd = _answers_fd()
    while data:
        data = data[os.write(fd, data) :]
    time.sleep(then)
    return Message({})


def _framed(head: bytes, blobs: bytes = b"") -> bytes:
    return struct.pack("<I", len(head)) + head + blobs


def _drip(message: Message) -> Message:
    for byte in _framed(b'{"sizes": [1000000]}', bytes(1_000_000)):
        os.write(_answers_fd(), bytes([byte]))
        time.sleep(0.01)
    return Message({})


def _later(message: Message) -> Message:
    """An answer now, and another that nobody asked for a moment later."""
    fd = _answers_fd()

    def write() -> None:
        time.sleep(0.05)
        os.write(fd, _framed(b'{"sizes": [], "forged": true}'))

    threading.Thread(target=write).start()
    return Message({"first": True})


def _twice(message: Message) -> Message:
    os.write(_answers_fd(), _framed(b'{"sizes": [], "forged": true}'))
    return Message({"second": True})


def _not_finite(message: Message) -> Message:
    return arrays_message({}, [np.array([np.nan, np.inf, 1.0], np.float32)])


def _words(message: Message) -> Message:
    raise ValueError("\x1b[2J\x1b]0;owned\x07 \ud800 clip\u202e")


def _closing(message: Message) -> Message:
    os.close(_answers_fd())
    time.sleep(30)
    return Message({})


def _lying_array(kind: str, shape: list[Any], size: int) -> Message:
    return Message({"arrays": [[kind, shape]]}, (bytes(size),))


FRAMES = {
    "noise": b"\xff" * 64,
    "long head": struct.pack("<I", (1 << 20) + 1),
    "no JSON": _framed(b"{nonsense}"),
    "no object": _framed(b"[1, 2]"),
    "no text": _framed(b'{"a": "\xff\xfe"}'),
    "deep": _framed(b"[" * 500_000),
    "deep object": _framed(b'{"a":' * 100_000),
    "long number": _framed(b'{"sizes": [' + b"9" * 100_000 + b"]}"),
    "big number": _framed(b'{"sizes": [' + b"9" * 4000 + b"]}"),
    "many sizes": _framed(b'{"sizes": [' + b"0," * 500_000 + b"0]}"),
    "negative size": _framed(b'{"sizes": [-1]}'),
    "true size": _framed(b'{"sizes": [true]}'),
    "broken size": _framed(b'{"sizes": [1e3]}'),
    "no sizes": _framed(b"{}"),
    "same name twice": _framed(b'{"sizes": [], "sizes": [5]}'),
    "huge": _framed(b'{"sizes": [50000000000]}'),
    "huge in parts": _framed(b'{"sizes": [900000, 900000]}', bytes(1_800_000)),
}

REPLIES: dict[str, Callable[[Message], Message]] = {
    **{kind: lambda message, data=data: _raw(data) for kind, data in FRAMES.items()},
    "cut": lambda message: _raw(_framed(b'{"sizes": [1000]}', bytes(10)), then=0.0) and os._exit(0),
    "drip": _drip,
    "later": _later,
    "twice": _twice,
    "not finite": _not_finite,
    "words": _words,
    "closing": _closing,
    "wrong length": lambda message: _lying_array("<f4", [10], 4),
    "huge shape": lambda message: _lying_array("<f4", [1 << 39, 1 << 39], 4),
    "negative shape": lambda message: _lying_array("<f4", [-1, -1], 4),
    "deep shape": lambda message: _lying_array("<f4", [1] * 60, 4),
    "no shape": lambda message: Message({"arrays": [["<f4", "12"]]}, (bytes(4),)),
    "object array": lambda message: _lying_array("|O", [1], 8),
    "unknown kind": lambda message: _lying_array("<c16", [1], 16),
    "no array": lambda message: Message({"arrays": "none"}),
}
