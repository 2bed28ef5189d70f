"""Flags that say where the labels, groups, files and subsets of a corpus stand."""

from __future__ import annotations

import argparse
from typing import Any

from earmark.runs.config import COLUMN_KEYS, CorpusEntry


def add_columns(parser: argparse._ActionsContainer) -> None:
    """A flag for each; --group-column has the place of --groups, its other name."""
    for name in COLUMN_KEYS:
        role = _field(name)
        field = CorpusEntry.model_fields[role]
        extra: Any = field.json_schema_extra or {}
        text = f"{field.description}{'; none leaves it out' if role == 'groups' else ''}"
        flag = "--" + name.replace("_", "-")
        parser.add_argument(flag, dest=role, default=None, metavar=extra.get("metavar", "COLUMN"), help=text)


def columns_of(args: argparse.Namespace) -> dict[str, Any]:
    """What these flags asked for, as the arguments of `open_corpus`."""
    return {name: getattr(args, _field(name)) for name in COLUMN_KEYS}


def _field(name: str) -> str:
    return CorpusEntry.SPELLINGS.get(name, (name,))[0]
