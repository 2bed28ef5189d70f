"""ONNX files: opened for deterministic work, and the files that they read beside themselves.

Weights that tensors keep elsewhere are called "external data": torch's exporter writes `model.onnx.data` beside
`model.onnx` as a matter of course, and any tensor may name any file. Only bytes are read: a protocol buffer is a run
of (field number << 3 | kind, value), and of every message below only the fields that lead to a tensor are entered.
Numbers of fields are those of onnx.proto.
"""

from __future__ import annotations

import logging
import mmap
from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from earmark.errors import InputError, UsageError, require
from earmark.wording import error_text

__all__ = [
    "Buffer",
    "Field",
    "external_data",
    "fields_of",
    "message_field",
    "number_field",
    "open_session",
    "varints_of",
]

log = logging.getLogger("earmark.extractors")

_CPU, _CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"

Buffer = bytes | mmap.mmap

_EXTERNAL, _KEY, _VALUE = 13, 1, 2
_GRAPH, _OUTPUT = 7, 12
_FIELDS: dict[str, dict[int, str]] = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "function": {7: "node", 11: "attribute"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
    "tensor": {_EXTERNAL: "entry"},
}


def open_session(
    path: str | PathLike[str],
    thing: str = "ONNX models",
    extra: str = "onnx",
    *,
    inner: Sequence[str] = (),
    device: str = "cpu",
) -> Any:
    """An onnxruntime session: on the CPU one thread for each call, and it may be called from several at once.

    `inner` names tensors inside the graph, of float32, that it gives out behind its own outputs. A model with external
    data cannot have any: it is read from memory. `device` is cpu, cuda, cuda:1, or auto (a GPU if onnxruntime has it);
    where onnxruntime has no CUDA a note says so, and the session is on the CPU.
    """
    require("onnxruntime", thing, extra)
    import onnxruntime  # an import statement, so that its version is part of the cache key

    onnxruntime.disable_telemetry_events()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    providers = _providers(onnxruntime.get_available_providers(), device, Path(path).name)
    try:
        model = Path(path).read_bytes() + _added_outputs(inner) if inner else str(path)
        session = onnxruntime.InferenceSession(model, options, providers=providers)
    except Exception as error:  # onnxruntime's errors share no type of their own
        raise InputError(f"{path} cannot be opened as an ONNX model: {error_text(error)}.") from error
    if len(providers) > 1 and _CUDA not in session.get_providers():
        log.warning("%s runs on the CPU: onnxruntime could not start CUDA (its libraries are missing)", Path(path).name)
    return session


def _providers(available: Sequence[str], device: str, name: str) -> list[Any]:
    """Where onnxruntime shall compute, the CPU last: it takes what a GPU cannot do."""
    kind, _, number = device.partition(":")
    if kind not in ("auto", "cpu", "cuda", "mps") or (number and not number.isdecimal()):
        raise UsageError(f"There is no device {device!r} for {name}: give auto, cpu, cuda or cuda:1.")
    if kind in ("cuda", "auto") and _CUDA in available:
        # Products of float32 in float32, not in TF32.
        return [(_CUDA, {"device_id": number or "0", "use_tf32": "0"}), _CPU]
    if kind in ("cuda", "mps"):
        remedy = "; pip install onnxruntime-gpu brings it" if kind == "cuda" else ""
        log.warning("%s runs on the CPU: onnxruntime here has no %s%s", name, kind, remedy)
    return [_CPU]


def _added_outputs(names: Sequence[str]) -> bytes:
    """What makes float32 tensors of a graph its outputs, when it is put behind the bytes of a model.

    A message that comes twice in a protocol buffer is one, and lists in it are joined: this is a second `graph` that
    has outputs and nothing else.
    """
    float32 = message_field(1, b"\x08\x01")  # type.tensor_type.elem_type = FLOAT
    outputs = [message_field(_OUTPUT, message_field(1, name.encode()) + message_field(2, float32)) for name in names]
    return message_field(_GRAPH, b"".join(outputs))


def message_field(number: int, data: bytes) -> bytes:
    """A field that holds a message, a text or bytes."""
    return _as_varint(number << 3 | 2) + _as_varint(len(data)) + data


def number_field(number: int, value: int) -> bytes:
    """A field that holds a whole number of 0 or more."""
    return _as_varint(number << 3) + _as_varint(value)


def _as_varint(value: int) -> bytes:
    low = bytearray()
    while value > 127:
        low.append(value & 127 | 128)
        value >>= 7
    return bytes([*low, value])


def external_data(model: Path) -> list[Path]:
    """The files that tensors of a model name, in order, each once. Empty for what is not an ONNX file."""
    try:
        with model.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
            names = list(dict.fromkeys(_names(data, 0, len(data), "model")))
    except (OSError, ValueError):  # empty, cut short, or no protocol buffer at all
        return []
    return [model.parent / name for name in names]


def _names(data: Buffer, start: int, end: int, message: str) -> Iterator[str]:
    for field in fields_of(data, start, end):
        kind = _FIELDS[message].get(field.number) if field.is_block else None
        if kind == "entry":
            entry = {part.number: data[part.start : part.end] for part in fields_of(data, field.start, field.end)}
            if entry.get(_KEY) == b"location":
                yield entry.get(_VALUE, b"").decode()
        elif kind is not None:
            yield from _names(data, field.start, field.end, kind)


class Field(NamedTuple):
    """A field of a message: its number, and where its bytes lie; or its value, where it is a varint."""

    number: int
    is_block: bool  # a text, bytes, a message or packed numbers
    start: int
    end: int
    value: int = 0


def fields_of(data: Buffer, at: int, end: int) -> Iterator[Field]:
    """The fields of the message that lies in data[at:end]; ValueError where that is no message."""
    while at < end:
        tag, at = _varint(data, at, end)
        kind, value, size = tag & 7, 0, 0
        start = at
        if kind == 0:
            value, at = _varint(data, at, end)
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
        elif kind == 2:
            size, start = _varint(data, at, end)
            at = start + size
        else:
            raise ValueError(f"there is no wire type {kind}")
        if at > end:
            raise ValueError("a field is longer than its message")
        yield Field(tag >> 3, kind == 2, start, at, value)


def varints_of(data: Buffer, field: Field) -> Iterator[int]:
    """The numbers of a repeated field of varints, packed or single, of 64 bits with a sign."""
    if not field.is_block:
        yield _signed(field.value)
        return
    at = field.start
    while at < field.end:
        value, at = _varint(data, at, field.end)
        yield _signed(value)


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _varint(data: Buffer, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while at < end:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            if value >> 64:
                break
            return value, at
        if shift > 63:
            break
    raise ValueError("a number is cut short or too long")
