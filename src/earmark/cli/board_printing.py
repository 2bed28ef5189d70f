"""What `earmark board` prints: results as JSON or text, and records as a table."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from earmark.tables import aligned


def print_result(args: argparse.Namespace, plain: Any, text: str, remark: str = "") -> None:
    """The result as JSON, or as text with a remark."""
    if args.json:
        print(json.dumps(plain, ensure_ascii=False, indent=1, default=lambda moment: moment.isoformat()))
        return
    print(text)
    if remark:
        print_remark(args, remark)


def print_remark(args: argparse.Namespace, sentence: str) -> None:
    if not args.quiet:
        print(sentence, file=sys.stderr)


def print_table(args: argparse.Namespace, records: Sequence[Any], columns: tuple[str, ...]) -> None:
    lines = [list(columns), *([_cell_text(getattr(each, column)) for column in columns] for each in records)]
    print_result(args, [asdict(each) for each in records], "\n".join(aligned(lines)))


def _cell_text(cell: Any) -> str:
    if isinstance(cell, tuple):
        return cell[0] + (f" and {len(cell) - 1} more" if len(cell) > 1 else "") if cell else "–"
    if hasattr(cell, "strftime"):
        return str(cell.strftime("%Y-%m-%d %H:%M"))
    text = "".join(mark if mark.isprintable() else " " for mark in str(cell if cell is not None else ""))
    return text or "–"
