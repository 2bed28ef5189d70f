"""Every table of the pages as CSV, JSON and LaTeX, in the state that its address names; BibTeX of a system.

Files hold exact fractions, not rounded percentages. A missing value is an empty cell in CSV and null in JSON, and its
status stands beside it. LaTeX is for papers: rounded, needs only the booktabs package.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.board.boards.cells import Cell, plain_numbers
from earmark.board.boards.costs import Front
from earmark.board.boards.isolation import BADGES as ISOLATION_BADGES
from earmark.board.boards.lines import heads_at, reasons_at
from earmark.board.boards.pairs import Comparison
from earmark.board.boards.subsets import SubsetSummary
from earmark.board.boards.table import TablePage
from earmark.board.pages.cells import KIND_BADGES
from earmark.board.records import System
from earmark.board.storage.accounts import PAPERS
from earmark.report.metric_text import facts, number
from earmark.scores import STATUS_MARKS
from earmark.tables import Column, Table, csv_cell, csv_text, exact_texts, plain

Record = dict[str, Any]
Floats = NDArray[np.float64]

_ALWAYS = {"rank", "rank_low", "rank_high", "tier"}
_TEXTS = {"system", "slug", "setting", "protocol", "kind", "unranked", "family", "provenance", "reason"}
"""Columns that hold words of authors; all others hold numbers, or words of the board's own."""
_PARTIAL = "†"
_SCORES = {"value", "mean", "low", "high", "lift"}


def table_columns(page: TablePage) -> dict[str, Sequence[Any] | Floats]:
    """The columns of a table: rank, system, setting, and value, interval, lift and status of each column of scores;
    those of scores are arrays, whose NaN is nothing."""
    heads = heads_at(page.snapshot, page.field, page.places)
    reasons = reasons_at(page.snapshot, page.field, page.places)
    cards = [head.system.card for head in heads]
    names = ("rank", "rank_low", "rank_high", "tier")
    columns: dict[str, Sequence[Any] | Floats] = {
        name: [number or None for number in part[page.places].tolist()]
        for name, part in zip(names, page.field.ranks[:4], strict=True)
    }
    columns |= {
        "system": [card.name for card in cards], "slug": [head.system.slug for head in heads],
        "setting": [head.setting for head in heads], "settings_tried": [head.tried for head in heads],
        "protocol": [head.protocol for head in heads], "kind": [head.kind for head in heads],
        "isolation": [head.isolation for head in heads],
        "kbps": [head.bitrate.kbps if head.bitrate else None for head in heads],
        "unranked": [reasons.get(at, "") for at in range(len(heads))], "family": [card.family for card in cards],
        "parameters_m": [card.parameters_m for card in cards],
        "provenance": [" ".join(head.provenance) for head in heads],
    }  # fmt: skip
    for column, scored in zip(page.columns, page.scored, strict=True):
        for name, numbers in zip(("", " low", " high", " lift"), scored[:4], strict=True):
            columns[f"{column.key}{name}"] = numbers
        columns[f"{column.key} status"] = [word or "absent" for word in scored.statuses()]
    return columns


def table_records(page: TablePage) -> list[Record]:
    """A record for each line, with the columns of the table."""
    columns = {
        name: plain_numbers(cells) if isinstance(cells, np.ndarray) else cells
        for name, cells in table_columns(page).items()
    }
    return [dict(zip(columns, line, strict=True)) for line in zip(*columns.values(), strict=True)]


def table_csv(page: TablePage) -> str:
    """A table as CSV with one header; columns that are empty in every line are left out, except ranks."""
    if len(page.places) < len(page.field.rows):
        return "\n".join([*_csv_lines(page), ""])
    # All lines are the same however they are sorted.
    whole = replace(page, places=np.arange(len(page.field.rows)))
    header, *lines = page.snapshot.few(("csv", page.field, page.columns), lambda: _csv_lines(whole))
    return "\n".join([header, *map(lines.__getitem__, page.places.tolist()), ""])


def _csv_lines(page: TablePage) -> list[str]:
    """The header and the lines of a table as CSV."""
    written = {name: _column_texts(name, cells) for name, cells in table_columns(page).items()}
    shown = {name: texts for name, texts in written.items() if name in _ALWAYS or any(texts)}
    return [",".join(map(csv_cell, shown)), *map(",".join, zip(*shown.values(), strict=True))]


def _column_texts(name: str, cells: Sequence[Any] | Floats) -> list[str]:
    """The cells of a column as CSV has them."""
    if isinstance(cells, np.ndarray):
        return exact_texts(cells)
    if name in _TEXTS or name.endswith(" status"):
        return list(map(_text_cell, cells))
    return ["" if cell is None else str(cell) for cell in cells]


@lru_cache(1 << 15)
def _text_cell(text: str) -> str:
    """A word of an author's as a cell of CSV; most of them stand in many files."""
    return csv_cell(_formula_free(text))


def comparison_records(comparison: Comparison) -> list[Record]:
    """A record for each pair: the paired difference with its interval; then one for each system and subset."""
    names = [f"{one.system.card.name} {one.setting}".strip() for one in comparison.compared]
    made: list[Record] = [
        {
            "metric": comparison.metric, "subset": f"mean of {pair.subsets}", "system": names[pair.one],
            "minus": names[pair.other], "value": pair.mean, "low": pair.low, "high": pair.high, "p": pair.p,
            "status": "difference", "reason": pair.reason,
        }
        for pair in comparison.differences
    ]  # fmt: skip
    made += [
        {
            "metric": comparison.metric, "subset": subset, "system": name, "minus": "", "value": cell.value,
            "low": cell.low, "high": cell.high, "p": None, "status": cell.status or "absent",
            "reason": cell.reason,
        }
        for each, name in zip(comparison.compared, names, strict=True)
        for subset, cell in zip(comparison.subsets, each.cells, strict=True)
    ]  # fmt: skip
    return made


def pareto_records(front: Front) -> list[Record]:
    """A record for each point, from the cheapest on."""
    return [
        {
            "system": point.system.card.name, "slug": point.system.slug, "setting": point.setting,
            "family": point.system.card.family, front.axis.key: point.x,
            "cost_from": "card" if point.stated else "rows", "metric": front.metric, "mean": point.y,
            "low": point.cell.low, "high": point.cell.high, "rank": point.rank, "tier": point.tier or None,
            "front": point.front, "kind": point.kind,
        }
        for point in front.points
    ]  # fmt: skip


def subset_records(summary: SubsetSummary) -> list[Record]:
    """A record for each system on one subset, best first."""
    return [
        {
            "rank": one.rank or None, "rank_low": one.rank_low or None, "rank_high": one.rank_high or None,
            "tier": one.tier or None, "system": one.system.card.name, "slug": one.system.slug, "setting": one.setting,
            "metric": summary.metric, "value": one.value, "low": one.cell.low, "high": one.cell.high,
            "lift": one.cell.lift, "kind": one.kind,
        }
        for one in summary.standings
    ]  # fmt: skip


def to_csv(records: Sequence[Record]) -> str:
    """CSV with one header; columns that are empty in every line are left out, except ranks."""
    names = _used(records)
    return csv_text(names, ([_safe(record[name]) for name in names] for record in records))


def _used(records: Sequence[Record]) -> list[str]:
    """The columns that are not empty in every line, and those of ranks: what reads a table may count on them."""
    names = records[0] if records else ()
    return [name for name in names if name in _ALWAYS or any(one[name] not in (None, "") for one in records)]


@lru_cache(8192)
def _safe(cell: Any) -> Any:
    """A cell without a formula; a number is as it was."""
    return _formula_free(cell) if isinstance(cell, str) else cell


def _formula_free(text: str) -> str:
    """Text that a spreadsheet would take for a formula begins with an apostrophe."""
    line = plain(text)
    return f"'{line}" if line[:1] in ("=", "+", "@", "-") and not re.fullmatch(r"-?[\d.]+", line) else line


def to_json(about: Record, records: Sequence[Record]) -> str:
    """What the table is about, and its lines."""
    return json.dumps({**about, "rows": records}, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def _latex(header: Sequence[str], rows: Sequence[Sequence[str]], caption: str, left: int = 1) -> str:
    """A table environment; the first `left` columns to the left, the others to the right."""
    columns = [Column(title, "left" if place < left else "right") for place, title in enumerate(header)]
    return Table(columns, rows, caption).to_latex()


def table_latex(page: TablePage) -> str:
    """A board's table for a paper: rank with its interval, system, and the columns of the view."""
    of = facts(page.field.metric)
    rates = ["kbps"] if page.codecs else []
    header = ["Rank", "System", "Setting", *rates, *(column.title or "all clips" for column in page.columns)]
    rows = []
    for row in page.rows:
        interval = f" [{row.rank_low}–{row.rank_high}]" if row.rank_low else ""
        cells = [_cell_text(cell, column.metric) for cell, column in zip(row.cells, page.columns, strict=True)]
        reservation = ISOLATION_BADGES["stated"] if row.isolation == "stated" else KIND_BADGES.get(row.kind, "")
        name = row.system.card.name + (f" ({reservation})" if reservation else "")
        rate = [f"{row.bitrate.kbps:.2f}" if row.bitrate else "–"] if page.codecs else []
        rows.append([f"{row.rank}{interval}" if row.rank else "–", name, row.setting, *rate, *cells])
    unit = " (%)" if of.percent else ""
    way = "higher" if of.higher_is_better else "lower"
    caption = f"{page.view.board}: {page.field.metric}{unit}, {way} is better; ranks with 95 % intervals."
    if any(cell.status == "partial" for row in page.rows for cell in row.cells):
        caption += f" {_PARTIAL} marks a mean of some of its subsets only, which has no rank."
    return _latex(header, rows, caption, left=3)


def records_latex(records: Sequence[Record], caption: str, metric: str) -> str:
    """Any other table for a paper: scores in the metric's own form, without the sentences that CSV and JSON have."""
    names = [name for name in _used(records) if name != "reason"]

    def text(name: str, cell: Any) -> str:
        if cell is None:
            return "–"
        return number(cell, metric) if name in _SCORES and isinstance(cell, float) else str(cell)

    return _latex(names, [[text(name, record[name]) for name in names] for record in records], caption)


def _cell_text(cell: Cell, metric: str) -> str:
    """A cell of a paper's table: 61.2 [58.1, 64.0], – is nothing; ~61.2 is predicted, =61.2 repeated, 61.2† partial."""
    if cell.value is None:
        return "failed" if cell.status == "failed" else "–"
    text = STATUS_MARKS.get(cell.status, "") + number(cell.value, metric)
    text += _PARTIAL if cell.status == "partial" else ""
    if cell.low is not None and cell.high is not None:
        text += f" [{number(cell.low, metric)}, {number(cell.high, metric)}]"
    return text


def bibtex(system: System, address: str) -> str:
    """How to cite a system: the card's own citation where it is BibTeX, and an entry for its page."""
    card = system.card
    own = card.citation.strip()
    entries = [own] if own.startswith("@") else []
    fields = {
        "title": card.title or card.name,
        "author": " and ".join(card.authors) or system.team or ("" if system.owner == PAPERS else system.owner),
        "year": str(card.year or system.created.year),
        "note": "" if entries else own,
    }
    # An address stays as it is: styles that print it read it verbatim.
    escaped = {name: _bib(text) for name, text in fields.items() if text} | {"url": address}
    body = ",\n".join(f"  {name} = {{{text}}}" for name, text in escaped.items())
    folded = unicodedata.normalize("NFKD", system.slug).encode("ascii", "ignore").decode()
    key = re.sub(r"[^A-Za-z0-9]+", "_", folded).strip("_") or "system"
    return "\n\n".join([*entries, f"@misc{{{key},\n{body}\n}}"]) + "\n"


def _bib(text: str) -> str:
    # Braces must balance in a BibTeX field, a backslash would start a command, and LaTeX reads the other marks.
    plain_marks = plain(text).translate(str.maketrans("\\{}~", "/()-", "^"))
    return re.sub(r"([%&#_$])", r"\\\1", plain_marks)
