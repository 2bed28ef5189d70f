"""Vectors in an index of USearch: every vector with its key, read without the library.

    rows, bytes of a row (uint32 each) │ vectors, row by row
    head of 64 bytes: "usearch", version, kinds of metric, scalar, key and slot, counts, dimensions
    graph: size, links of a node, of the lowest level (uint64 each) … │ level of each node (int16)
    nodes: key, level, links

Nodes and vectors stand in one order. A removed vector has the highest key. Layout of versions 2 and 3.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.errors import InputError

MAGIC = b"usearch"
_HEAD = struct.Struct("<7s3H4B3QB")
_GRAPH = struct.Struct("<5Q")
_HEAD_BYTES, _KEY, _LEVEL, _COUNT = 64, 8, 2, 4
_SCALARS = {10: "<f8", 11: "<f4", 12: "<f2"}
_SLOTS = {15: 4, 2: 5, 14: 8}  # uint32, a number of 40 bits, uint64
_KEY_KIND = 14
REMOVED = 2**64 - 1


class Indexed(NamedTuple):
    """Keys and vectors of an index, in its order."""

    keys: NDArray[np.uint64]
    vectors: NDArray[Any]


def read_index(file: Path) -> Indexed:
    """Every vector of an index that was not removed, with its key."""
    try:
        return _parsed(file.read_bytes(), file)
    except (struct.error, ValueError, IndexError) as error:
        raise InputError(f"{file} is damaged or no index of USearch ({error}): write it again.") from error


def _parsed(held: bytes, file: Path) -> Indexed:
    data = np.frombuffer(held, np.uint8)
    rows, width = struct.unpack_from("<2I", held, 0)
    place = 8 + rows * width
    magic, *version, _, scalar, key, slot, _, _, dimensions, _ = _HEAD.unpack_from(held, place)
    if magic != MAGIC:
        raise ValueError("its head is missing")
    if scalar not in _SCALARS or key != _KEY_KIND or slot not in _SLOTS:
        raise InputError(
            f"{file} holds vectors of a kind that is not read here (version {'.'.join(map(str, version))}, scalar "
            f"{scalar}, key {key}): write an index of float16 or float32."
        )
    matrix = data[8:place].view(_SCALARS[scalar]).reshape(rows, -1) if rows else np.zeros((0, dimensions))
    if rows and matrix.shape[1] != dimensions:
        raise ValueError(f"{matrix.shape[1]} numbers for {dimensions} dimensions")
    place += _HEAD_BYTES
    size, links, lowest, *_ = _GRAPH.unpack_from(held, place)
    if size != rows:
        raise ValueError(f"{size} nodes for {rows} vectors")
    place += _GRAPH.size
    levels = data[place : place + _LEVEL * size].view("<i2").astype(np.int64)
    place += _LEVEL * size
    link = _SLOTS[slot]
    nodes = _KEY + _LEVEL + lowest * link + _COUNT + levels * (links * link + _COUNT)
    starts = place + np.concatenate([[0], np.cumsum(nodes)])
    if len(levels) != size or starts[-1] != len(data):
        raise ValueError(f"{len(data)} bytes where {int(starts[-1])} were expected")
    bytes_of_keys = data[starts[:-1, None] + np.arange(_KEY)]
    keys = np.ascontiguousarray(bytes_of_keys).view("<u8").ravel().astype(np.uint64)
    kept = np.flatnonzero(keys != REMOVED)
    return Indexed(keys[kept], matrix[kept])
