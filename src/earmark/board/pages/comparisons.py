"""The pages that set systems side by side: a comparison of a few, and all of them by score and cost."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from earmark.board.pages import files as downloads
from earmark.board.boards.pairs import FEWEST, Comparison, compare
from earmark.board.pages.figures import pareto_figure, profiles
from earmark.board.boards.groups import subset_title
from earmark.board.pages.assets import board_address, subset_address
from earmark.board.web.caching import Kept, kept
from earmark.board.pages.boards import Items, Reader, as_query, records_file
from earmark.board.pages.cells import rank_cell, score_cell
from earmark.board.boards.costs import axes_of, pareto
from earmark.board.boards.table import Cell
from earmark.board.boards.view import BoardView
from earmark.errors import EarmarkError
from earmark.report.reading import facts, number
from earmark.wording import counted

__all__ = ["compare_file", "compare_page", "pareto_file", "pareto_page"]

_MOST_POINTS = 100
_MOST_NAMES = 300


def compare_page(reader: Reader, board: str, items: Items) -> Kept:
    """The comparison of the systems that the query names."""
    snapshot = reader.source.boards.current(board)
    chosen, asked = _asked(items)
    metric = asked["metric"] or (snapshot.metrics[0] if snapshot.metrics else "")
    found, refusal = None, ""
    if len(chosen) >= FEWEST:
        try:
            found = compare(snapshot, chosen, metric=asked["metric"], over=asked["over"], protocol=asked["protocol"])
        except EarmarkError as error:
            refusal = str(error)
    else:
        refusal = "Choose two to six systems, here or by their boxes in the table of the board."
    values: dict[str, Any] = {
        "board": board, "chosen": chosen, "metric": metric, "over": asked["over"], "protocol": asked["protocol"],
        "options": reader.options(snapshot, metric), "refusal": refusal, "comparison": found,
        "known": [system.slug for system in snapshot.systems[:_MOST_NAMES]],
        "address": f"{board_address(board)}/compare", "query": as_query(items),
    }  # fmt: skip
    if found:
        values |= {
            "drawn": profiles(found),
            "direction": f"{'Higher' if facts(found.metric).higher_is_better else 'Lower'} is better.",
            "pairs": [
                {
                    "slug": one.system.slug, "name": one.system.card.name, "setting": one.setting,
                    "mean": Markup(score_cell(one.mean, found.metric)),
                    "rank": Markup(rank_cell(one.rank, one.rank_low, one.rank_high, one.mean.reason)),
                    "cells": Markup("".join(_pair_cell(found, place, at) for at in range(len(found.compared)))),
                }
                for place, one in enumerate(found.compared)
            ],
            "lines": [
                {
                    "subset": subset, "title": subset_title(board, subset),
                    "address": subset_address(board, subset),
                    "cells": Markup("".join(score_cell(one.cells[at], found.metric) for one in found.compared)),
                }
                for at, subset in enumerate(found.subsets)
            ],
        }  # fmt: skip
    return kept(reader.page("compare.html", **values))


def compare_file(reader: Reader, board: str, items: Items, kind: str) -> Kept:
    """A comparison as a file: pairs first, then every system on every subset."""
    snapshot = reader.source.boards.current(board)
    chosen, asked = _asked(items)
    found = compare(snapshot, chosen, metric=asked["metric"], over=asked["over"], protocol=asked["protocol"])
    records = downloads.comparison_records(found)
    about = {"board": board, "generation": snapshot.generation, "metric": found.metric, "over": found.group.key}
    return records_file(records, about, kind, f"{board}-compare", metric=found.metric)


def pareto_page(reader: Reader, board: str, items: Items) -> Kept:
    """Scores against a cost that cards state."""
    snapshot = reader.source.boards.current(board)
    if not snapshot.metrics:
        return reader.board(board)
    view = BoardView.parse(snapshot, items)
    front = pareto(
        snapshot, dict(items).get("x", ""), metric=view.metric, over=view.over, protocol=view.protocol,
        setting=view.setting,
    )  # fmt: skip
    ordered = sorted(front.points, key=lambda point: (not point.front, point.x, point.rank))
    missing = f"{counted(front.without, 'ranked system')} without a stated cost left out." if front.without else ""
    group = snapshot.group(view.metric, view.over)
    caption = f"{view.metric}, {group.words}, against {front.axis.words.lower()}. The dotted line joins the front"
    caption += "; solid lines join what one family does at several costs." if front.families() else "."
    mixed = not all(point.stated for point in front.points)
    offered = axes_of(snapshot)
    values: dict[str, Any] = {
        "board": board, "axis": front.axis.key, "metric": view.metric, "over": view.over, "setting": view.setting,
        "protocol": view.protocol, "options": reader.options(snapshot, view.metric), "drawn": pareto_figure(front),
        "caption": caption, "left_out": missing, "cost_title": f"{front.axis.words} ({front.axis.unit})",
        "points": [
            {
                "slug": point.system.slug, "name": point.system.card.name, "setting": point.setting,
                "family": point.system.card.family, "cost": f"{point.x:g}", "rank": point.rank,
                "front": point.front, "stated": mixed and point.stated,
                "mean": Markup(score_cell(Cell(point.y, point.low, point.high, status="ok"), view.metric)),
            }
            for point in ordered[:_MOST_POINTS]
        ],
        "not_shown": max(0, len(ordered) - _MOST_POINTS), "address": f"{board_address(board)}/pareto",
        "query": as_query(items),
    }  # fmt: skip
    if offered:
        values["options"]["axes"] = [(axis.key, axis.words) for axis in offered]
    return kept(reader.page("pareto.html", **values))


def pareto_file(reader: Reader, board: str, items: Items, kind: str) -> Kept:
    """All points as a file."""
    snapshot = reader.source.boards.current(board)
    view = BoardView.parse(snapshot, items)
    front = pareto(
        snapshot, dict(items).get("x", ""), metric=view.metric, over=view.over, protocol=view.protocol,
        setting=view.setting,
    )  # fmt: skip
    about = {"board": board, "generation": snapshot.generation, "cost": front.axis.words, "unit": front.axis.unit}
    return records_file(downloads.pareto_records(front), about, kind, f"{board}-pareto", metric=view.metric)


def _asked(items: Items) -> tuple[list[str], dict[str, str]]:
    """The systems of a comparison's query, and its metric, mean and protocol."""
    chosen = list(dict.fromkeys(text.strip() for name, text in items if name == "s" and text.strip()))
    given = dict(items)
    return chosen, {name: given.get(name, "").strip() for name in ("metric", "over", "protocol")}


def _pair_cell(found: Comparison, one: int, other: int) -> str:
    if one == other:
        return '<td class="n gone">·</td>'
    pair = next(each for each in found.differences if {each.one, each.other} == {one, other})
    turn = 1.0 if pair.one == one else -1.0
    if pair.mean is None:
        return '<td class="n gone" title="no subset that both have">—</td>'
    better, worse = (pair.better, pair.worse) if turn > 0 else (pair.worse, pair.better)
    small = ""
    if pair.low is not None and pair.high is not None:
        low, high = sorted((turn * pair.low, turn * pair.high))
        small = f"<small>{number(low, found.metric, sign=True)} to {number(high, found.metric, sign=True)}</small>"
    kind = "n sure" if pair.sure else "n"
    wins = f"better on {better}, worse on {worse} of {counted(pair.subsets, 'subset')}"
    return f'<td class="{kind}" title="{wins}">{number(turn * pair.mean, found.metric, sign=True)}{small}</td>'
