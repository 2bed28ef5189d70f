"""Small documents to send."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from earmark.scores import Row, Scores
from earmark.submissions import Document, SystemCard, read_document

INPUTS = "ab" * 32


def row(value: float | None = 0.5, **cells: Any) -> Row:
    """A row that the rules have nothing against."""
    given: dict[str, Any] = {
        "suite": "mine", "subset": "birds", "system": "model", "distance": "cosine", "metric": "P@1", "n": 100,
        "version": "0.1.0", "inputs": INPUTS,
    }  # fmt: skip
    return Row(value=value, **{**given, **cells})


def document(values: Mapping[str, float] | None = None, system: str = "model", **card: Any) -> Document:
    """A value for each subset of the board "mine"."""
    rows = tuple(row(value, subset=subset, system=system) for subset, value in (values or {"birds": 0.5}).items())
    return Document.of(Scores(rows), cards=[SystemCard(system, **card)])


def read_own(**keys: Any) -> Document:
    """A document read from Earmark's own form, with the given keys in the place of plain ones."""
    plain = {
        "format": "earmark-submission", "version": 1, "board": "mine", "systems": [{"name": "model"}],
        "scores": [{"system": "model", "subset": "birds", "metric": "P@1", "value": 0.5, "version": "0.1.0"}],
    }  # fmt: skip
    return read_document(json.dumps({**plain, **keys}).encode(), filename="scores.json")
