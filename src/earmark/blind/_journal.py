"""What was heard of a set, on the disk as it comes: a worker that is killed goes on where it stopped.

    <4sIII  mark, number of the item, values in all, features of the frames
            the vectors of the poolings, one behind the other: <I lengths, then <f4 values
    <I      CRC-32 of the record

A record that is cut short or damaged ends the file: what follows is heard again.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Answer", "Journal"]

Vector = NDArray[np.float32]
_HEAD = struct.Struct("<4sIII")
_CRC = struct.Struct("<I")
_MARK = b"HRD1"


class Answer(NamedTuple):
    """The vectors of one clip, one for each single pooling, and how many features its frames have."""

    vectors: tuple[Vector, ...]
    features: int


class Journal:
    """Answers by the number of the item that was heard; appended, never changed."""

    def __init__(self, path: Path, poolings: int) -> None:
        self._poolings = poolings
        self.answers: dict[int, Answer] = {}
        whole = self._read(path)
        self._stream: Any = path.open("r+b" if path.exists() else "w+b")
        self._stream.truncate(whole)
        self._stream.seek(whole)

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.flush()
        os.fsync(self._stream.fileno())
        self._stream.close()

    @property
    def bytes_held(self) -> int:
        return int(self._stream.tell())

    def add(self, item: int, vectors: Sequence[Vector], features: int) -> Answer:
        """Write down an answer; it is on the disk soon, and whole or not at all."""
        lengths = np.array([len(vector) for vector in vectors], "<u4")
        body = lengths.tobytes() + b"".join(np.ascontiguousarray(vector, "<f4").tobytes() for vector in vectors)
        record = _HEAD.pack(_MARK, item, len(body), features) + body
        self._stream.write(record + _CRC.pack(zlib.crc32(record)))
        self._stream.flush()
        answer = Answer(tuple(vectors), features)
        self.answers[item] = answer
        return answer

    def _read(self, path: Path) -> int:
        """The bytes of whole records, whose answers are kept."""
        whole = 0
        if not path.exists():
            return whole
        with path.open("rb") as stream:
            while len(head := stream.read(_HEAD.size)) == _HEAD.size:
                mark, item, length, features = _HEAD.unpack(head)
                body, crc = stream.read(length), stream.read(_CRC.size)
                if mark != _MARK or len(crc) < _CRC.size or _CRC.unpack(crc)[0] != zlib.crc32(head + body):
                    break
                lengths = np.frombuffer(body, "<u4", self._poolings)
                values = np.frombuffer(body, "<f4", offset=4 * self._poolings).astype(np.float32)
                self.answers[item] = Answer(tuple(np.split(values, np.cumsum(lengths)[:-1])), features)
                whole += _HEAD.size + length + _CRC.size
        return whole
