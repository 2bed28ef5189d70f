"""ONNX files written by hand, field by field, so that no test needs the onnx package.

A protocol buffer is a run of (field number << 3 | kind, value): kind 0 is a varint, kind 2 a length and its bytes.
Numbers of fields are those of onnx.proto: a model (7 graph, 8 opset, 1 version) holds a graph (1 node, 2 name,
5 initializer, 11 input, 12 output), a node (1 input, 2 output, 4 operator, 5 attribute) and so on.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

Shape = Sequence[int | str]


def varint(value: int) -> bytes:
    parts = []
    value &= (1 << 64) - 1
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    return bytes([*parts, value])


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def text(field: int, value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(data)) + data


def tensor(name: str, values: np.ndarray) -> bytes:
    kind = {"float32": 1, "int64": 7}[values.dtype.name]
    sizes = b"".join(number(1, size) for size in values.shape)
    return sizes + number(2, kind) + text(8, name) + text(9, values.tobytes())


def external(name: str, values: np.ndarray, location: str, offset: int = 0) -> bytes:
    """A tensor whose bytes lie in another file, as torch's exporter writes it."""
    kind = {"float32": 1, "int64": 7}[values.dtype.name]
    sizes = b"".join(number(1, size) for size in values.shape)
    said = {"location": location, "offset": str(offset), "length": str(values.nbytes)}
    entries = b"".join(text(13, text(1, key) + text(2, value)) for key, value in said.items())
    return sizes + number(2, kind) + text(8, name) + entries + number(14, 1)


def value_info(name: str, shape: Shape) -> bytes:
    sizes = b"".join(text(1, number(1, one) if isinstance(one, int) else text(2, one)) for one in shape)
    return text(1, name) + text(2, text(1, number(1, 1) + text(2, sizes)))


def node(operator: str, inputs: Sequence[str], outputs: Sequence[str], **whole_numbers: int | Sequence[int]) -> bytes:
    attributes = b""
    for name, value in whole_numbers.items():
        if isinstance(value, int):
            attributes += text(5, text(1, name) + number(3, value) + number(20, 2))
        else:
            listed = b"".join(number(8, one) for one in value)
            attributes += text(5, text(1, name) + listed + number(20, 7))
    words = b"".join(text(1, one) for one in inputs) + b"".join(text(2, one) for one in outputs)
    return words + text(4, operator) + attributes


def write(
    path: Path,
    nodes: Sequence[bytes],
    inputs: dict[str, Shape],
    outputs: dict[str, Shape],
    weights: dict[str, np.ndarray],
    places: dict[str, str] | None = None,
) -> Path:
    """A model; weights that have a place are written to that file instead."""
    graph = b"".join(text(1, one) for one in nodes) + text(2, "tiny")
    for name, values in weights.items():
        if places is None or name not in places:
            graph += text(5, tensor(name, values))
            continue
        other = path.parent / places[name]
        other.parent.mkdir(exist_ok=True)
        other.write_bytes(values.tobytes())
        graph += text(5, external(name, values, places[name]))
    graph += b"".join(text(11, value_info(*one)) for one in inputs.items())
    graph += b"".join(text(12, value_info(*one)) for one in outputs.items())
    path.write_bytes(number(1, 8) + text(7, graph) + text(8, text(1, "") + number(2, 17)))
    return path
