"""The page of one system: where it stands, all its scores, its card, how to make them again, what was sent when."""

from __future__ import annotations

from typing import Any

import numpy as np
from markupsafe import Markup

from earmark.board.boards.groups import is_single, subset_title
from earmark.board.boards.pairs import cells_of
from earmark.board.boards.panels import OK, PROVENANCES
from earmark.board.boards.snapshot import BEST, NoSuchSystem, Snapshot
from earmark.board.boards.subsets import bests
from earmark.board.boards.table import mean_cells
from earmark.board.pages import files
from earmark.board.pages.assets import subset_address, system_address
from earmark.board.pages.boards import Items, Reader, as_file
from earmark.board.pages.cells import rank_cell, score_cell
from earmark.board.pages.figures import profile
from earmark.board.records import System
from earmark.board.web.caching import Page, packed
from earmark.errors import UsageError
from earmark.report.reading import facts, number
from earmark.scores import COLUMNS
from earmark.tables import csv_text

_SHOWN_STATES = ("accepted", "withdrawn")


def system_page(reader: Reader, board: str, slug: str, items: Items = ()) -> Page:
    """The page of a system."""
    snapshot = reader.source.boards.current(board)
    system = snapshot.system(slug)
    history = [one for one in reader.source.history(board, slug) if one.state in _SHOWN_STATES]
    metrics = _metrics(snapshot, slug)
    if not metrics and not history:
        raise NoSuchSystem(f'"{system.card.name}" has no accepted scores.')
    card = system.card
    address = system_address(board, slug)
    provenances = _provenances(snapshot, slug)
    no_command = "The author gave no command."
    if provenances == ["printed"]:
        no_command = "These numbers were printed in a paper; it says how they were measured."
    values: dict[str, Any] = {
        "board": board, "card": card, "address": address, "history": history, "facts": _facts(system),
        "bibtex": files.bibtex(system, f"{reader.base_url}{address}" if reader.base_url else address),
        "no_command": no_command, "provenances": provenances, "standings": [],
        "metric": "",
    }  # fmt: skip
    if metrics:
        given = dict(items)
        metric = given.get("metric", "") or metrics[0]
        if metric not in metrics:
            raise UsageError(f'"{card.name}" has no {metric}; it has {", ".join(metrics)}.')
        values |= _scored(snapshot, system, metrics, metric, given.get("setting"))
    return packed(reader.page("system.html", **values))


def system_file(reader: Reader, board: str, slug: str, kind: str) -> Page:
    """A system's live rows as a score table (CSV, JSON), or how to cite it (BibTeX)."""
    snapshot = reader.source.boards.current(board)
    system = snapshot.system(slug)
    if kind == "bib":
        address = f"{reader.base_url}{system_address(board, slug)}"
        return as_file(files.bibtex(system, address), kind, slug)
    scores = reader.source.rows(board, system)
    return as_file(
        scores.to_json() if kind == "json" else csv_text(COLUMNS, (row.as_dict() for row in scores)),
        kind,
        f"{board}-{slug}",
    )


def _metrics(snapshot: Snapshot, slug: str) -> list[str]:
    """The metrics of a system that has lines, in the board's order."""
    mine = np.array(snapshot.lines_of.get(snapshot.places[slug], []), np.int64)
    return [name for name in snapshot.metrics if (snapshot.rows_of_lines(name)[mine] >= 0).any()]


def _rows(snapshot: Snapshot, slug: str, metric: str) -> list[int]:
    """The rows of a metric's panel that are a system's."""
    rows = snapshot.rows_of_lines(metric)
    return [int(rows[number]) for number in snapshot.lines_of.get(snapshot.places[slug], []) if rows[number] >= 0]


def _scored(
    snapshot: Snapshot, system: System, metrics: list[str], metric: str, setting: str | None
) -> dict[str, Any]:  # fmt: skip
    slug = system.slug
    standings = [found for found in (_standing(snapshot, slug, name) for name in metrics) if found]
    rows = _rows(snapshot, slug, metric)
    lines = {row: snapshot.lines[snapshot.panel(metric).lines[row]] for row in rows}
    protocol = min((line.protocol for line in lines.values()), key=lambda name: snapshot.protocols(metric).index(name))
    here = {line.setting: row for row, line in lines.items() if line.protocol == protocol}
    best = next((str(one["setting"]) for one in standings if one["metric"] == metric), "")
    chosen = setting if setting is not None else best if best in here else next(iter(here))
    if chosen not in here:
        raise UsageError(f'"{system.card.name}" has no {metric} under "{chosen}"; it has {", ".join(here)}.')
    subsets = list(snapshot.group(metric).subsets)
    subsets += [name for name in snapshot.subsets(metric) if name not in set(subsets)]
    cells = cells_of(snapshot, metric, here[chosen], subsets)
    best_of, median_of = _behind(snapshot, metric, subsets, protocol)
    return {
        "standings": standings,
        "metric": metric,
        "metrics": metrics,
        "setting": chosen,
        "settings": sorted(here),
        "drawn": profile(
            system.card.name, [name or "all clips" for name in subsets], cells, best_of, median_of, metric
        ),
        "drawn_caption": f"{metric} of this system on each subset, with the best and the median of the board.",
        "lines": _lines(snapshot, slug, metrics, chosen, protocol),
        "scores_note": f"Protocol {protocol}. The file has every setting and protocol.",
    }


def _standing(snapshot: Snapshot, slug: str, metric: str) -> dict[str, Any] | None:
    """Mean and rank of a system under a metric, in its best setting and the leading protocol."""
    field = snapshot.field(metric, setting=BEST)
    places = np.flatnonzero(np.isin(field.rows, _rows(snapshot, slug, metric)))
    if not places.size:
        return None
    at = int(places[0])
    line = snapshot.lines[snapshot.panel(metric).lines[field.rows[at]]]
    (mean,) = mean_cells(field.means, places[:1])
    rank, low, high = (int(part[at]) for part in field.ranks[:3])
    over = field.group.title if len(field.group.subsets) > 1 else field.group.subsets[0] or "all clips"
    return {
        "metric": metric,
        "over": over,
        "setting": line.setting,
        "mean": Markup(score_cell(mean, metric)),
        "lift": "—" if mean.lift is None else number(mean.lift, metric, sign=True),
        "rank": Markup(rank_cell(rank, low, high, mean.reason, field.ranked)),
    }


def _behind(
    snapshot: Snapshot, metric: str, subsets: list[str], protocol: str
) -> tuple[list[float | None], list[float | None]]:
    """The best and the median of the board on each subset."""
    turn = 1.0 if facts(metric).higher_is_better else -1.0
    values = bests(snapshot, metric, protocol).value[:, snapshot.panel(metric).columns(subsets)]
    present = [column[np.isfinite(column)] for column in values.T]
    best = [float(turn * column.max()) if column.size else None for column in present]
    return best, [float(np.median(turn * column)) if column.size else None for column in present]


def _lines(snapshot: Snapshot, slug: str, metrics: list[str], setting: str, protocol: str) -> list[dict[str, Any]]:
    """A line for each subset with a cell for each metric, under one setting; metrics without it show their own."""
    rows: dict[str, int] = {}
    for name in metrics:
        found: dict[tuple[str, str], int] = {}
        for row in _rows(snapshot, slug, name):
            line = snapshot.lines[snapshot.panel(name).lines[row]]
            found[line.setting, line.protocol] = row
        rows[name] = found.get((setting, protocol), next(iter(found.values())))
    subsets = list(dict.fromkeys(subset for name in metrics for subset in snapshot.panel(name).subsets))
    made = []
    for subset in sorted(subsets, key=lambda name: not is_single(name)):
        cells = [cells_of(snapshot, name, rows[name], [subset])[0] for name in metrics]
        if not any(cell.status for cell in cells):
            continue
        made.append(
            {
                "subset": subset or "all clips",
                "title": subset_title(snapshot.board, subset),
                "address": subset_address(snapshot.board, subset) if is_single(subset) else "",
                "cells": Markup("".join(score_cell(cell, name) for cell, name in zip(cells, metrics, strict=True))),
            }
        )
    return made


def _provenances(snapshot: Snapshot, slug: str) -> list[str]:
    codes: set[int] = set()
    for name in _metrics(snapshot, slug):
        panel, rows = snapshot.panel(name), _rows(snapshot, slug, name)
        codes |= set(np.unique(panel.provenance[rows][panel.status[rows] == OK]).tolist())
    return [PROVENANCES[code] for code in sorted(codes) if code]


def _facts(system: System) -> list[tuple[str, str]]:
    card = system.card
    unstated = "not stated"
    return [
        ("Kind", card.kind),
        ("Family", card.family or unstated),
        ("Authors", ", ".join(card.authors) or unstated),
        *([("Address", card.url)] if card.url else []),
        ("Licence", card.licence or unstated),
        ("Training-free", {True: "yes", False: "no", None: unstated}[card.training_free]),
        ("Parameters", unstated if card.parameters_m is None else f"{card.parameters_m:g} million"),
        *([("Real-time factor", f"{card.real_time_factor:g}")] if card.real_time_factor is not None else []),
        *([("Bit rate", f"{card.kbps:g} kbps")] if card.kbps is not None else []),
        ("Trained on", ", ".join(card.pretraining) or unstated),
        *([("Year", str(card.year))] if card.year else []),
        *([("Citation", card.citation)] if card.citation and not card.citation.startswith("@") else []),
        ("Sent first by", system.team or system.owner or unstated),
    ]
