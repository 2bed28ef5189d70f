"""A worker that decodes one clip of Codec 2 and ends. Standard library only where it can be; run by `codec2`.

libcodec2 draws the phases of unvoiced sounds from a generator that lives as long as the process and cannot be seeded:
a clip decoded twice in one process sounds slightly different. A fresh process gives the same samples every time.

Arguments: the mode in bits a second, the bytes of a frame, the library, and where packages lie. Input: the packets one
after the other. Output: 16-bit samples in the machine's byte order.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO

_MODES = {3200: 0, 2400: 1, 1600: 2, 1400: 3, 1300: 4, 1200: 5, 700: 8}


def main(arguments: list[str], source: BinaryIO, sink: BinaryIO) -> int:
    """Decode what `source` holds into `sink`; return the exit status."""
    mode, size, library, packages = int(arguments[0]), int(arguments[1]), arguments[2], arguments[3:]
    data = source.read()
    packets = [data[start : start + size] for start in range(0, len(data), size)]
    try:
        frames = _by_library(library, mode, packets)
    except (OSError, AttributeError):  # built in another way: Python's own binding is slower to start
        sys.path[:] = packages
        frames = _by_package(mode, packets)
    for frame in frames:
        sink.write(frame)
    return 0


def _by_library(library: str, mode: int, packets: list[bytes]) -> Iterator[bytes]:
    engine = ctypes.CDLL(library)
    create, samples_of, decode = engine.codec2_create, engine.codec2_samples_per_frame, engine.codec2_decode
    create.restype, create.argtypes = ctypes.c_void_p, [ctypes.c_int]
    samples_of.argtypes = [ctypes.c_void_p]
    decode.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p]
    state = create(_MODES[mode])
    samples = (ctypes.c_short * samples_of(state))()

    def frames() -> Iterator[bytes]:
        for packet in packets:
            decode(state, ctypes.byref(samples), packet)
            yield bytes(samples)

    return frames()


def _by_package(mode: int, packets: list[bytes]) -> Iterator[bytes]:
    import importlib

    package: Any = importlib.import_module("pycodec2")
    state = package.Codec2(mode)
    return (state.decode(packet).tobytes() for packet in packets)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:], sys.stdin.buffer, sys.stdout.buffer))
