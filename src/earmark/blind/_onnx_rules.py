"""What an ONNX file of a stranger may hold: standard operators, and tensors whose bytes lie in the file itself.

The file is read as bytes by `earmark.onnx_files`; nothing of it is built or run. Numbers of fields are those of
onnx.proto. What only shows when a graph runs (a `Tile` or `Loop` that fills the memory) is the cell's business.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from earmark.errors import quoted
from earmark.onnx_files import Buffer, Field, fields_of, varints_of

__all__ = ["MOST_DEPTH", "MOST_FIELDS", "MOST_NODES", "Reading", "onnx_problems"]

MOST_NODES = 100_000
MOST_DEPTH = 8  # graphs inside graphs
MOST_FIELDS = 1_000_000
DOMAINS = (b"", b"ai.onnx", b"ai.onnx.ml")

_BITS = {
    1: 32, 2: 8, 3: 8, 4: 16, 5: 16, 6: 32, 7: 64, 9: 8, 10: 16, 11: 64, 12: 32, 13: 64, 14: 64, 15: 128, 16: 16,
    17: 8, 18: 8, 19: 8, 20: 8, 21: 4, 22: 4, 23: 4, 24: 8,
}  # fmt: skip
"""Bits of an element by TensorProto.DataType; text (8) has a list of its own."""
_TEXT = 8
_RAW, _STRINGS, _LOCATION, _EXTERNAL = 9, 6, 14, 13
_LISTS = {4: 4, 5: 1, 7: 1, 10: 8, 11: 1}
"""Lists of numbers in a tensor, and the bytes that an element of each takes at least."""


@dataclass
class Reading:
    """How many parts were read."""

    fields: int = 0


class _Refused(Exception):
    """A sentence that ends the reading: what follows would not be read reliably."""


def onnx_problems(data: Buffer, name: str, read: Reading | None = None) -> list[str]:
    """Everything for which an ONNX file is refused, one sentence each; `read` counts over the files of a package."""
    reader = _Reader(data, name, read or Reading())
    try:
        reader.read_model()
    except _Refused as refusal:
        reader.problems.append(str(refusal))
    except ValueError as error:
        reader.problems.append(f"{name} is not a readable ONNX file ({error}): export it again.")
    return list(dict.fromkeys(reader.problems))


class _Reader:
    def __init__(self, data: Buffer, name: str, read: Reading) -> None:
        self.data, self.name, self.read = data, name, read
        self.problems: list[str] = []
        self.nodes = 0

    def _fields(self, start: int, end: int) -> Iterator[Field]:
        for field in fields_of(self.data, start, end):
            self.read.fields += 1
            if self.read.fields > MOST_FIELDS:
                raise _Refused(f"{self.name} is made of more than {MOST_FIELDS:,} parts: simplify the graph.")
            yield field

    def _text(self, field: Field, most: int = 200) -> bytes:
        return self.data[field.start : min(field.end, field.start + most)]

    def _shown(self, text: bytes) -> str:
        return quoted("".join(mark if mark.isprintable() else "?" for mark in text.decode(errors="replace")))

    def _once(self, counts: Counter[int], field: Field, *numbers: int) -> None:
        """A part that comes twice is merged by some readers and replaced by others: nobody would know what ran."""
        counts[field.number] += 1
        if field.number in numbers and counts[field.number] > 1:
            raise _Refused(f"{self.name} states a part twice that can be there once: export it again.")

    def read_model(self) -> None:
        counts: Counter[int] = Counter()
        for field in self._fields(0, len(self.data)):
            self._once(counts, field, 1, 7)
            if field.number in (7, 8, 20, 25) and not field.is_block:
                raise ValueError("a part of the model is a number")
            if field.number == 7:
                self._read_graph(field, 1)
            elif field.number == 8:
                self._check_domain(field, 1)
            elif field.number == 20:
                self.problems.append(f"{self.name} holds steps of training: export it for inference.")
            elif field.number == 25:
                self.problems.append(
                    f"{self.name} holds functions of its own: inline them (onnx.inliner.inline_local_functions)."
                )
        if not counts[7]:
            self.problems.append(f"{self.name} is not an ONNX model: it has no graph.")

    def _check_domain(self, message: Field, number: int) -> None:
        """The domain that a node or an import of operators names, in the field of this number."""
        for field in self._fields(message.start, message.end):
            if field.number == number and field.is_block and (domain := self._text(field)) not in DOMAINS:
                self.problems.append(
                    f"{self.name} needs operators of the domain {self._shown(domain)}: only standard ONNX operators "
                    "(ai.onnx, ai.onnx.ml) are taken; export it without them."
                )

    def _read_graph(self, graph: Field, depth: int) -> None:
        if depth > MOST_DEPTH:
            raise _Refused(f"{self.name} has graphs inside graphs, more than {MOST_DEPTH} deep: simplify it.")
        for field in self._fields(graph.start, graph.end):
            if not field.is_block:
                continue
            if field.number == 1:
                self._read_node(field, depth)
            elif field.number == 5:
                self._read_tensor(field)
            elif field.number == 15:
                self.problems.append(f"{self.name} holds sparse tensors: store them as ordinary ones.")

    def _read_node(self, node: Field, depth: int) -> None:
        self.nodes += 1
        if self.nodes > MOST_NODES:
            raise _Refused(f"{self.name} has more than {MOST_NODES:,} nodes: simplify the graph.")
        self._check_domain(node, 7)
        for field in self._fields(node.start, node.end):
            if field.number == 5 and field.is_block:
                self._read_attribute(field, depth)

    def _read_attribute(self, attribute: Field, depth: int) -> None:
        counts: Counter[int] = Counter()
        for field in self._fields(attribute.start, attribute.end):
            if not field.is_block:
                continue
            self._once(counts, field, 5, 6)
            if field.number in (5, 10):
                self._read_tensor(field)
            elif field.number in (6, 11):
                self._read_graph(field, depth + 1)
            elif field.number in (22, 23):
                self.problems.append(f"{self.name} holds sparse tensors: store them as ordinary ones.")

    def _read_tensor(self, tensor: Field) -> None:
        sizes: list[int] = []
        kind = raw = numbers = texts = 0
        outside = False
        for field in self._fields(tensor.start, tensor.end):
            length = field.end - field.start
            if field.number == 1:
                sizes += varints_of(self.data, field) if length <= 1024 else [-1]
                if len(sizes) > 64:
                    raise _Refused(f"{self.name} holds a tensor of more than 64 dimensions: export it again.")
            elif field.number == 2:
                kind = field.value
            elif field.number in (_EXTERNAL, _LOCATION):
                outside = outside or field.is_block or field.value != 0
            elif field.number == _RAW:
                raw = max(raw, length * 8)
            elif field.number == _STRINGS:
                texts += 1
            elif field.number in _LISTS:
                numbers += length // _LISTS[field.number] if field.is_block else 1
        if outside:
            self.problems.append(
                f"{self.name} names a file outside itself for its weights: export it as one file "
                "(torch.onnx.export with external_data=False)."
            )
            return
        if kind not in _BITS and kind != _TEXT:
            self.problems.append(f"{self.name} holds a tensor of an unknown type ({kind}): export it again.")
            return
        elements = math.prod(sizes) if all(size >= 0 for size in sizes) else -1
        if kind == _TEXT:
            fits = elements == texts
        else:
            fits = 0 <= elements * _BITS[kind] <= raw or 0 <= elements <= numbers * (2 if _BITS[kind] == 4 else 1)
        if not fits:
            self.problems.append(
                f"{self.name} holds a tensor that claims to be larger than the bytes that are there: export it again."
            )
