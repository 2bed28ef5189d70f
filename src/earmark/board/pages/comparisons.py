"""The pages that set systems side by side: a comparison of a few, and all of them by score and cost."""

from __future__ import annotations

from typing import Any

from earmark.board.boards.codecs import ORDER
from earmark.board.boards.costs import Front, axes_of, pareto
from earmark.board.boards.pairs import FEWEST, Comparison, compare
from earmark.board.boards.snapshot import Snapshot
from earmark.board.boards.view import BoardView
from earmark.board.pages import files
from earmark.board.pages.assets import board_address
from earmark.board.pages.boards import Items, Reader, as_query, records_file
from earmark.board.pages.cells import KIND_WORDS
from earmark.board.pages.figures import pareto_figure, profiles
from earmark.board.web.caching import Page, packed
from earmark.errors import EarmarkError
from earmark.report.metric_text import facts, number
from earmark.wording import counted

_MOST_POINTS = 100
_MOST_NAMES = 300


def compare_page(reader: Reader, board: str, items: Items) -> Page:
    """The comparison of the systems that the query names."""
    snapshot = reader.source.boards.current(board)
    chosen, settings = _asked(items)
    metric = settings["metric"] or (snapshot.metrics[0] if snapshot.metrics else "")
    comparison, refusal = None, "Choose two to six systems, here or by their boxes in the table of the board."
    if len(chosen) >= FEWEST:
        try:
            comparison, refusal = compare(snapshot, chosen, **settings), ""
        except EarmarkError as error:
            refusal = str(error)
    values: dict[str, Any] = {
        "board": board, "chosen": chosen, **settings, "metric": metric, "options": reader.options(snapshot, metric),
        "refusal": refusal, "comparison": comparison,
        "known": [system.slug for system in snapshot.systems[:_MOST_NAMES]],
        "address": f"{board_address(board)}/compare", "query": as_query(items),
    }  # fmt: skip
    if comparison:
        way = "Higher" if facts(comparison.metric).higher_is_better else "Lower"
        kinds = dict.fromkeys(each.kind for each in comparison.compared)
        values |= {
            "drawn": profiles(comparison), "direction": f"{way} is better.", "pair_cell": _pair_cell,
            "bitrates": any(each.bitrate for each in comparison.compared),
            "apart": "; ".join(KIND_WORDS[kind].lower() for kind in kinds) if len(kinds) > 1 else "",
        }  # fmt: skip
    return packed(reader.page("compare.html", **values))


def compare_file(reader: Reader, board: str, items: Items, kind: str) -> Page:
    """A comparison as a file: pairs first, then every system on every subset."""
    snapshot = reader.source.boards.current(board)
    chosen, settings = _asked(items)
    comparison = compare(snapshot, chosen, **settings)
    metric, over = comparison.metric, comparison.group.key
    about = {"board": board, "generation": snapshot.generation, "metric": metric, "over": over}
    return records_file(files.comparison_records(comparison), about, kind, f"{board}-compare", metric=metric)


def pareto_page(reader: Reader, board: str, items: Items) -> Page:
    """Scores against a cost that cards state."""
    snapshot = reader.source.boards.current(board)
    if not snapshot.metrics:
        return reader.board(board)
    view, front = _front(snapshot, items)
    ordered = sorted(
        front.points, key=lambda point: (ORDER.index(point.kind), not point.front, point.x, point.rank)
    )  # fmt: skip
    missing = f"{counted(front.without, 'ranked system')} without a stated cost left out." if front.without else ""
    group = snapshot.group(view.metric, view.over)
    caption = f"{view.metric}, {group.words}, against {front.axis.words.lower()}. The dotted line joins the front"
    caption += "; solid lines join what one family does at several costs." if front.families() else "."
    caption += " Dashed lines are anchors, which lose nothing." if front.anchors else ""
    caption += " Hollow marks are ranked apart." if front.apart else ""
    offered = axes_of(snapshot)
    values: dict[str, Any] = {
        "board": board, "axis": front.axis.key, "metric": view.metric, "over": view.over, "setting": view.setting,
        "protocol": view.protocol, "options": reader.options(snapshot, view.metric), "drawn": pareto_figure(front),
        "caption": caption, "left_out": missing, "cost_title": f"{front.axis.words} ({front.axis.unit})",
        "points": ordered[:_MOST_POINTS], "mixed": not all(point.stated for point in front.points),
        "not_shown": max(0, len(ordered) - _MOST_POINTS), "address": f"{board_address(board)}/pareto",
        "query": as_query(items), "anchors": front.anchors,
    }  # fmt: skip
    if offered:
        values["options"]["axes"] = [(axis.key, axis.words) for axis in offered]
    return packed(reader.page("pareto.html", **values))


def pareto_file(reader: Reader, board: str, items: Items, kind: str) -> Page:
    """All points as a file."""
    snapshot = reader.source.boards.current(board)
    view, front = _front(snapshot, items)
    about = {"board": board, "generation": snapshot.generation, "cost": front.axis.words, "unit": front.axis.unit}
    return records_file(files.pareto_records(front), about, kind, f"{board}-pareto", metric=view.metric)


def _front(snapshot: Snapshot, items: Items) -> tuple[BoardView, Front]:
    view = BoardView.parse(snapshot, items)
    chosen = {"metric": view.metric, "over": view.over, "protocol": view.protocol, "setting": view.setting}
    return view, pareto(snapshot, dict(items).get("x", ""), **chosen)


def _asked(items: Items) -> tuple[list[str], dict[str, Any]]:
    """The systems of a comparison's query, and its metric, mean and protocol."""
    chosen = list(dict.fromkeys(text.strip() for name, text in items if name == "s" and text.strip()))
    given = dict(items)
    return chosen, {name: given.get(name, "").strip() for name in ("metric", "over", "protocol")}


def _pair_cell(comparison: Comparison, one: int, other: int) -> str:
    if one == other:
        return '<td class="n gone">·</td>'
    pair = next(each for each in comparison.differences if {each.one, each.other} == {one, other})
    if pair.mean is None:
        return '<td class="n gone" title="no subset that both have">—</td>'
    metric, turn = comparison.metric, 1.0 if pair.one == one else -1.0
    better, worse = (pair.better, pair.worse) if turn > 0 else (pair.worse, pair.better)
    small = ""
    if pair.low is not None and pair.high is not None:
        low, high = sorted((turn * pair.low, turn * pair.high))
        small = f"<small>{number(low, metric, sign=True)} to {number(high, metric, sign=True)}</small>"
    kind = "n sure" if pair.sure else "n"
    wins = f"better on {better}, worse on {worse} of {counted(pair.subsets, 'subset')}"
    return f'<td class="{kind}" title="{wins}">{number(turn * pair.mean, metric, sign=True)}{small}</td>'
