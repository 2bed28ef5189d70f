"""What a safetensors file of a stranger may say of itself: a header that its bytes bear out, byte for byte.

<Q  bytes of the header
    the header: JSON, {name: {dtype, shape, data_offsets}}
    the tensors, one behind the other, without gaps and without overlaps
"""

from __future__ import annotations

import json
import math
import struct
from typing import Any, BinaryIO

from earmark.errors import quoted

__all__ = ["MOST_HEADER", "MOST_TENSORS", "safetensors_problems"]

MOST_HEADER = 16 << 20
MOST_TENSORS = 100_000
MOST_DIMENSIONS = 16
_BYTES = {
    "BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "U16": 2, "I16": 2, "F16": 2, "BF16": 2, "U32": 4,
    "I32": 4, "F32": 4, "U64": 8, "I64": 8, "F64": 8,
}  # fmt: skip
_LENGTH = struct.Struct("<Q")


class _Twice(ValueError):
    """A name that stands twice in the header."""


def safetensors_problems(stream: BinaryIO, size: int, name: str) -> list[str]:
    """Everything for which a safetensors file of so many bytes is refused, one sentence each."""
    start = stream.read(_LENGTH.size)
    if len(start) < _LENGTH.size:
        return [f"{name} is not a safetensors file: it is shorter than its header's length."]
    (length,) = _LENGTH.unpack(start)
    if length > size - _LENGTH.size:
        return [f"{name} says its header is {length:,} bytes long, more than the file has: save it again."]
    if length > MOST_HEADER:
        return [f"{name} has a header of {length:,} bytes; {MOST_HEADER:,} are allowed."]
    try:
        header = json.loads(stream.read(length).decode("utf-8"), object_pairs_hook=_pairs)
    except _Twice as error:
        return [f"{name} names {quoted(str(error))} twice in its header: save it again."]
    except (ValueError, RecursionError):
        return [f"{name} has a header that is not JSON: save it again with the safetensors library."]
    if not isinstance(header, dict):
        return [f"{name} has a header that names no tensors: save it again."]
    return _header_problems(header, size - _LENGTH.size - length, name)


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name in values:
            raise _Twice(name)
        values[name] = value
    return values


def _header_problems(header: dict[str, Any], stored: int, name: str) -> list[str]:
    facts = header.pop("__metadata__", {})
    problems = []
    if not isinstance(facts, dict) or not all(isinstance(value, str) for value in facts.values()):
        problems.append(f"{name} has metadata that are not texts: save it again.")
    if len(header) > MOST_TENSORS:
        return [*problems, f"{name} names {len(header):,} tensors; {MOST_TENSORS:,} are allowed."]
    spans: list[tuple[int, int]] = []
    for tensor, said in header.items():
        span = _span(said)
        if span is None or span[1] > stored:
            return [
                *problems,
                f"{name}: what the header says of the tensor {quoted(tensor)} does not fit the bytes that are there: "
                "save it again.",
            ]
        spans.append(span)
    place = 0
    for begin, end in sorted(spans):
        if begin != place:
            return [*problems, f"{name} has tensors that overlap or leave gaps: save it again."]
        place = end
    if place != stored:
        problems.append(f"{name} holds {stored - place:,} bytes that belong to no tensor: save it again.")
    return problems


def _span(said: Any) -> tuple[int, int] | None:
    """Where a tensor lies, if type, shape and offsets agree."""
    if not isinstance(said, dict) or set(said) != {"dtype", "shape", "data_offsets"}:
        return None
    shape, offsets = said["shape"], said["data_offsets"]
    if not isinstance(said["dtype"], str) or said["dtype"] not in _BYTES:
        return None
    if not _are_sizes(shape) or not _are_sizes(offsets) or len(offsets) != 2:
        return None
    begin, end = offsets
    return (begin, end) if end - begin == math.prod(shape) * _BYTES[said["dtype"]] else None


def _are_sizes(values: Any) -> bool:
    return (
        isinstance(values, list)
        and len(values) <= MOST_DIMENSIONS
        and all(type(value) is int and 0 <= value < 1 << 63 for value in values)
    )
