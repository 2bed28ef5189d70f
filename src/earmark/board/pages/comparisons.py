"""The pages that set systems side by side: a comparison of a few, and all of them by score and cost."""

from __future__ import annotations

from functools import partial
from html import escape
from typing import Any

from earmark.board.boards.codecs import ORDER
from earmark.board.boards.costs import Front, axes_of, pareto
from earmark.board.boards.pairs import FEWEST, Comparison, Difference, compare
from earmark.board.boards.snapshot import Snapshot
from earmark.board.boards.view import BoardView, asked_over
from earmark.board.pages import files
from earmark.board.pages.assets import board_address, system_address
from earmark.board.pages.boards import Items, Reader, as_query, records_file, shared_query
from earmark.board.pages.cost_figure import pareto_figure
from earmark.board.pages.figures import differences, profiles
from earmark.board.pages.table_html import KIND_WORDS
from earmark.board.web.caching import Page, packed
from earmark.errors import EarmarkError, UsageError
from earmark.report.metric_text import number
from earmark.wording import counted, first_of

_MOST_POINTS = 100
_MOST_NAMES = 300
_LEAST = 0.001
_SCALES = {"": "as fits", "log": "logarithmic", "linear": "linear"}
_LOG = {"": None, "log": True, "linear": False}


def compare_page(reader: Reader, board: str, items: Items) -> Page:
    """The comparison of the systems that the query names."""
    snapshot = reader.source.boards.current(board)
    chosen, settings = _asked(snapshot, items)
    metric = settings["metric"] or (snapshot.metrics[0] if snapshot.metrics else "")
    comparison, refusal = None, "Choose two to six systems, here or by their boxes in the table of the board."
    if len(chosen) >= FEWEST:
        try:
            comparison, refusal = compare(snapshot, chosen, **settings), ""
        except EarmarkError as error:
            refusal = str(error)
    over = comparison.group.key if comparison else _known_over(snapshot, metric, settings["over"])
    values: dict[str, Any] = {
        "board": board, "chosen": chosen, **settings, "metric": metric, "over": over,
        "options": reader.options(snapshot, metric, over), "shared_query": _shared_query(settings | {"over": over}),
        "refusal": refusal, "comparison": comparison,
        "known": [system.slug for system in snapshot.systems[:_MOST_NAMES]],
        "address": f"{board_address(board)}/compare", "query": as_query(items),
    }  # fmt: skip
    if comparison:
        higher = snapshot.definition.facts(comparison.metric).higher_is_better
        way = "Higher" if higher else "Lower"
        kinds = dict.fromkeys(each.kind for each in comparison.compared)
        values |= {
            "drawn": profiles(comparison, higher=higher), "apart_drawn": differences(comparison, higher=higher),
            "direction": f"{way} is better.", "pair_cell": partial(_pair_cell, board),
            "bitrates": any(each.bitrate for each in comparison.compared),
            "apart": "; ".join(KIND_WORDS[kind].lower() for kind in kinds) if len(kinds) > 1 else "",
        }  # fmt: skip
    return packed(reader.page("compare.html", **values))


def _known_over(snapshot: Snapshot, metric: str, over: str) -> str:
    """The mean that a query asks for, "" where the metric has none of that name."""
    try:
        return snapshot.group(metric, over).key if over else ""
    except EarmarkError:
        return ""


def _shared_query(settings: dict[str, Any]) -> str:
    """What the table and the figure of costs take over from a comparison."""
    return as_query([(name, settings[name]) for name in ("metric", "over", "protocol")])


def compare_file(reader: Reader, board: str, items: Items, kind: str) -> Page:
    """A comparison as a file: pairs first, then every system on every subset."""
    snapshot = reader.source.boards.current(board)
    chosen, settings = _asked(snapshot, items)
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
    # The points are in the order of their costs and ranks.
    ordered = sorted(front.points, key=lambda point: (ORDER.index(point.kind), not point.front))
    offered = axes_of(snapshot)
    scale = _scale(items)
    drawn = pareto_figure(front, log=_LOG[scale])
    values: dict[str, Any] = {
        "board": board, "axis": front.axis.key, "metric": view.metric, "over": view.over, "setting": view.setting,
        "protocol": view.protocol, "options": reader.options(snapshot, view.metric, view.over),
        "drawn": drawn, "scale": scale,
        "caption": _front_caption(snapshot, view, front), "left_out": _without_words(front),
        "scales": list(_SCALES.items()),
        "cost_title": f"{front.axis.words} ({front.axis.unit})", "tiers": any(point.tier for point in front.points),
        "points": ordered[:_MOST_POINTS], "mixed": not all(point.stated for point in front.points),
        "not_shown": max(0, len(ordered) - _MOST_POINTS), "address": f"{board_address(board)}/pareto",
        "shared_query": "" if reader.frozen else shared_query(view), "query": as_query(items),
        "anchors": front.anchors, "systems": system_address(board, "*"),
    }  # fmt: skip
    if offered:
        values["options"]["axes"] = [(axis.key, axis.words) for axis in offered]
    return packed(reader.page("pareto.html", **values))


def _without_words(front: Front) -> str:
    """How many ranked systems have no cost, and who is the best of them."""
    if not front.without:
        return ""
    state, are = ("states", "is") if len(front.without) == 1 else ("state", "are")
    named = first_of([f"{card.name} (rank {rank})" for card, rank in front.without], 3)
    count = counted(len(front.without), "ranked system")
    return f"{count} {state} no {front.axis.words.lower()} and {are} not shown: {named}."


def _scale(items: Items) -> str:
    scale = dict(items).get("scale", "")
    if scale not in _SCALES:
        raise UsageError(f'"scale" is log or linear, or left out, not "{scale}".')
    return scale


def _front_caption(snapshot: Snapshot, view: BoardView, front: Front) -> str:
    """What the figure of scores and costs shows."""
    group = snapshot.group(view.metric, view.over)
    way = "Up" if front.higher else "Down"
    sentences = [f"{view.metric}, {group.words}, against {front.axis.words.lower()}. {way} and to the left is better."]
    if any(point.cell.low is not None for point in front.points):
        sentences.append("Upright lines are 95 % intervals.")
    if front.families:
        sentences.append("Solid lines join what one family does at several costs.")
    if front.anchors:
        sentences.append("Dashed lines are anchors, which lose nothing.")
    return " ".join(sentences)


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


def _asked(snapshot: Snapshot, items: Items) -> tuple[list[str], dict[str, Any]]:
    """The systems of a comparison's query, and its metric, mean and protocol."""
    chosen = list(dict.fromkeys(text.strip() for name, text in items if name == "s" and text.strip()))
    given = {**dict(items), "over": asked_over(snapshot, items)}
    return chosen, {name: given.get(name, "").strip() for name in ("metric", "over", "protocol")}


def _pair_cell(board: str, comparison: Comparison, one: int, other: int) -> str:
    if one == other:
        return '<td class="n gone">·</td>'
    pair = next(each for each in comparison.differences if {each.one, each.other} == {one, other})
    if pair.mean is None:
        return '<td class="n gone" title="no subset that both have">—</td>'
    metric, turn = comparison.metric, 1.0 if pair.one == one else -1.0
    better, worse = (pair.better, pair.worse) if turn > 0 else (pair.worse, pair.better)
    kind = "n sure" if pair.sure else "n"
    wins = f"better on {better}, worse on {worse} of {counted(pair.subsets, 'subset')}; {_verdict(pair)}"
    value = number(turn * pair.mean, metric, sign=True)
    return f'<td class="{kind}" title="{escape(wins)}">{value}{_below(board, comparison, pair, turn)}</td>'


def _verdict(pair: Difference) -> str:
    if pair.p is None:
        return pair.reason or "cannot be told apart"
    return f"p = {pair.p:.2g}" if pair.p >= _LEAST else f"p < {_LEAST}"


def _below(board: str, comparison: Comparison, pair: Difference, turn: float) -> str:
    """What stands below a difference: its interval, or the way to the subsets that the two share, or the p-value."""
    if pair.shared:
        keys = [("s", comparison.compared[place].key) for place in (pair.one, pair.other)]
        query = [*keys, ("metric", comparison.metric), ("over", pair.shared), ("protocol", comparison.protocol)]
        words = f"only {pair.subsets} of {len(comparison.subsets)} shared"
        return f'<small><a href="{escape(f"{board_address(board)}/compare?{as_query(query)}")}">{words}</a></small>'
    if pair.low is not None and pair.high is not None:
        low, high = (number(end, comparison.metric, sign=True) for end in sorted((turn * pair.low, turn * pair.high)))
        return f"<small>{low} to {high}</small>"
    return f"<small>{_verdict(pair)}</small>" if comparison.group.harmonic and pair.p is not None else ""
