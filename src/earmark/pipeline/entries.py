"""One cache entry as bytes: a seal, a header of facts, and arrays. Pure functions, no files.

    earmark-entry 1 <header bytes> <header sha256> <body bytes> <body sha256>\\n
    {"meta": {...}, "arrays": {"values": {"dtype": "<f4", "shape": [256, 128], "at": 0}, ...}}
    raw little-endian arrays, one after another

The seal holds the sizes and the hashes, so a torn or damaged file is known by reading it, without a second file
that could disagree. The header alone can be read and checked without the arrays.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

MAGIC = b"earmark-entry 1"
SEAL_SIZE = 256  # a seal is never longer

Array = NDArray[Any]


class Damaged(Exception):
    """The bytes are not a whole entry: torn, truncated or altered."""


@dataclass(frozen=True)
class Entry:
    """Facts that JSON can hold, and named arrays."""

    meta: Mapping[str, Any] = field(default_factory=dict)
    arrays: Mapping[str, Array] = field(default_factory=dict)


class Seal(NamedTuple):
    """What the first line says of the rest."""

    start: int  # where the header begins
    header: int
    header_hash: str
    body: int
    body_hash: str

    @property
    def size(self) -> int:
        return self.start + self.header + self.body


def pack(entry: Entry) -> bytes:
    """The bytes of an entry; the same entry gives the same bytes."""
    placed: dict[str, Any] = {}
    parts: list[bytes] = []
    at = 0
    for name, array in entry.arrays.items():
        plain = np.ascontiguousarray(array)
        plain = plain.astype(plain.dtype.newbyteorder("<"), copy=False)
        raw = plain.tobytes()
        placed[name] = {"dtype": plain.dtype.str, "shape": list(plain.shape), "at": at}
        parts.append(raw)
        at += len(raw)
    body = b"".join(parts)
    header = json.dumps(
        {"meta": dict(entry.meta), "arrays": placed},
        ensure_ascii=False,
        allow_nan=False,
        separators=(",", ":"),
    ).encode()
    seal = f" {len(header)} {_sha256(header)} {len(body)} {_sha256(body)}\n".encode()
    return MAGIC + seal + header + body


def read_seal(data: bytes) -> Seal:
    """The seal at the start of `data`; `Damaged` when there is none."""
    line, newline, _ = data[:SEAL_SIZE].partition(b"\n")
    words = line.removeprefix(MAGIC).split()
    if not newline or not line.startswith(MAGIC) or len(words) != 4:
        raise Damaged("it does not start like a cache entry")
    try:
        return Seal(len(line) + 1, int(words[0]), words[1].decode(), int(words[2]), words[3].decode())
    except ValueError:
        raise Damaged("its first line is damaged") from None


def read_header(data: bytes, seal: Seal) -> dict[str, Any]:
    """The header, checked against the seal: {"meta": ..., "arrays": ...}."""
    header = data[seal.start : seal.start + seal.header]
    if len(header) != seal.header or _sha256(header) != seal.header_hash:
        raise Damaged("its header does not match its checksum")
    found: dict[str, Any] = json.loads(header)
    return found


def unpack(data: bytes) -> Entry:
    """The entry, with every byte checked. Arrays are read-only views of `data`."""
    seal = read_seal(data)
    if len(data) != seal.size:
        raise Damaged(f"it has {len(data)} bytes instead of {seal.size}")
    header = read_header(data, seal)
    body = memoryview(data)[seal.start + seal.header :]
    if _sha256(body) != seal.body_hash:
        raise Damaged("its contents do not match their checksum")
    arrays = {}
    for name, placed in header["arrays"].items():
        dtype = np.dtype(placed["dtype"])
        count = int(np.prod(placed["shape"], dtype=np.int64))
        flat = np.frombuffer(body, dtype, count, placed["at"]) if count else np.empty(0, dtype)
        arrays[name] = flat.reshape(placed["shape"])
    return Entry(header["meta"], arrays)


def _sha256(data: bytes | memoryview) -> str:
    return hashlib.sha256(data).hexdigest()
