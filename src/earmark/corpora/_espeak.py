"""A worker that speaks a page of words with espeak-ng and ends. Standard library only; run by `voices`.

espeak-ng keeps state from word to word (phase, flutter, noise) that no call resets, and it is not safe in
threads. A fresh process per page, with the words in a fixed order, gives the same samples every time.

Input (JSON on stdin): library, data, voice, and lines of [text, words per minute, pitch from 0 to 99].
Output (binary on stdout): the rate, then for each line the number of samples and the samples; little-endian.
"""

from __future__ import annotations

import array
import ctypes
import json
import struct
import sys
from typing import Any, BinaryIO

_SYNCHRONOUS = 2
_DO_NOT_EXIT = 0x8000
_RATE, _PITCH = 1, 3
_CHARACTERS, _UTF8 = 1, 1


def main(source: BinaryIO, sink: BinaryIO) -> int:
    """Speak the page that `source` describes into `sink`; return the exit status."""
    page: dict[str, Any] = json.load(source)
    engine = ctypes.CDLL(page["library"])
    rate = engine.espeak_Initialize(_SYNCHRONOUS, 0, page["data"].encode(), _DO_NOT_EXIT)
    if rate <= 0:
        print("espeak-ng did not start", file=sys.stderr)
        return 1
    heard = array.array("h")

    def listen(wave: Any, count: int, events: Any) -> int:
        if wave and count > 0:
            heard.frombytes(ctypes.string_at(wave, 2 * count))
        return 0

    signature = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p)
    callback = signature(listen)  # held in a name for as long as the engine may call it
    engine.espeak_SetSynthCallback(callback)
    if engine.espeak_SetVoiceByName(page["voice"].encode()):
        print(f"espeak-ng has no voice {page['voice']!r}", file=sys.stderr)
        return 1
    engine.espeak_ng_SetRandSeed(ctypes.c_long(1))  # else the clock seeds the noise
    sink.write(struct.pack("<i", rate))
    for text, pace, pitch in page["lines"]:
        del heard[:]
        engine.espeak_SetParameter(_RATE, pace, 0)
        engine.espeak_SetParameter(_PITCH, pitch, 0)
        spoken = text.encode()
        engine.espeak_Synth(spoken, len(spoken) + 1, 0, _CHARACTERS, 0, _UTF8, None, None)
        if sys.byteorder == "big":
            heard.byteswap()
        sink.write(struct.pack("<i", len(heard)) + heard.tobytes())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.stdin.buffer, sys.stdout.buffer))
