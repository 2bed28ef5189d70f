"""Messages between a cell and its owner: a small JSON object and blobs of bytes, with every length checked.

    <I  bytes of the head, at most a mebibyte
        the head: JSON, with the sizes of the blobs under "sizes"
        the blobs, one after the other

Nothing in a message can run: it is not a pickle. Whoever reads decides how much it takes.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping, Sequence
from typing import IO, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from earmark.errors import InputError

MOST_HEAD = 1 << 20
MOST_BYTES = 4 << 30
"""What the blobs of a message may come to: two hours of sound at 96 kHz."""
MOST_BLOBS = 4096
_AT_ONCE = 1 << 20
_SIZE = struct.Struct("<I")
_KINDS = ("<f4", "<f8", "<i8", "|b1")


class Message(NamedTuple):
    """Plain values, and bytes."""

    head: Mapping[str, Any]
    blobs: tuple[bytes, ...] = ()


class BadMessage(InputError):
    """What came is no message."""


def write_message(stream: IO[bytes], message: Message) -> None:
    """Send a message."""
    head = json.dumps({**message.head, "sizes": [len(blob) for blob in message.blobs]}).encode()
    if len(head) > MOST_HEAD:
        raise BadMessage(f"A message begins with {len(head)} bytes; {MOST_HEAD} are allowed.")
    parts = (_SIZE.pack(len(head)), head, *message.blobs)
    if sum(map(len, parts)) <= _AT_ONCE:
        parts = (b"".join(parts),)  # the other side wakes once
    for part in parts:
        _write(stream, part)
    stream.flush()


def read_message(stream: IO[bytes], most: int = MOST_BYTES) -> Message:
    """The next message, and not a byte more; EOFError where the other side has gone, BadMessage where it sends
    something else."""
    (size,) = _SIZE.unpack(_read(stream, _SIZE.size))
    if size > MOST_HEAD:
        raise BadMessage("What came is no message.")
    try:
        head = json.loads(bytes(_read(stream, size)), object_pairs_hook=_distinct)
    except (ValueError, RecursionError) as error:
        raise BadMessage("What came is no message.") from error
    sizes = head.pop("sizes", None) if isinstance(head, dict) else None
    if not isinstance(sizes, list) or len(sizes) > MOST_BLOBS or any(type(size) is not int for size in sizes):
        raise BadMessage("What came is no message.")
    if not all(0 <= size <= most for size in sizes) or sum(sizes) > most:
        raise BadMessage(f"A message is too long; {most} bytes are allowed.")
    arrays = head.get("arrays")
    count = len(arrays) if isinstance(arrays, list) else 0  # these are not copied once more
    parts = [_read(stream, size) for size in sizes]
    return Message(head, tuple(cast(bytes, part) if i < count else bytes(part) for i, part in enumerate(parts)))


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON whose names are told once: with two values for a name two readers could differ."""
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError("a name comes twice")
    return values


def _write(stream: IO[bytes], data: bytes) -> None:
    """All of it: a stream without a buffer may take a part."""
    left = memoryview(data)
    while left:
        left = left[stream.write(left) or 0 :]


def _read(stream: IO[bytes], size: int) -> memoryview:
    """So many bytes, however small the pieces in which they come; memory is taken up as they come."""
    data = np.empty(size, np.uint8).data
    left = data
    while left:
        count = stream.readinto(left)  # type: ignore[attr-defined]  # binary streams have it
        if not count:
            raise EOFError
        left = left[count:]
    return data


def arrays_message(head: Mapping[str, Any], arrays: Sequence[NDArray[Any]], *blobs: bytes) -> Message:
    """A message with arrays in front of its other blobs."""
    portable = [np.ascontiguousarray(array, array.dtype.newbyteorder("<")) for array in arrays]
    kinds = [[array.dtype.str, list(array.shape)] for array in portable]
    views = [cast(bytes, array.reshape(-1).view(np.uint8).data) for array in portable]  # bytes, not copied
    return Message({**head, "arrays": kinds}, (*views, *blobs))


def array_of(message: Message, number: int = 0) -> NDArray[Any]:
    """An array of a message; BadMessage where its bytes are not what the head says."""
    try:
        kind, shape = message.head["arrays"][number]
        blob = message.blobs[number]
        whole = kind in _KINDS and all(type(size) is int and 0 <= size < 1 << 40 for size in shape)
    except (KeyError, IndexError, TypeError, ValueError):
        whole = False
    if not whole or len(shape) > 8 or len(blob) != math.prod(shape) * np.dtype(kind).itemsize:
        raise BadMessage("An array in a message is not what the message says.")
    values = np.frombuffer(blob, kind).reshape(shape)
    return values.astype(np.dtype(kind).newbyteorder("="), copy=not values.flags.writeable)
