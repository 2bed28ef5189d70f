"""Figures of the analysis of a board: a map of systems, what each subset adds, few subsets that stand for all; and heat
maps, which are tables with coloured cells, so that every number can be read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup

from earmark.analysis.prowl import THRESHOLD
from earmark.board.boards.maps import Place, SystemMap
from earmark.board.boards.snapshot import Snapshot
from earmark.board.boards.subsets import leading_values
from earmark.board.pages.assets import subset_address, system_address
from earmark.board.pages.cost_figure import MOST_LABELS, OTHERS
from earmark.board.pages.drawing import (
    FAMILIES,
    Drawing,
    Frame,
    Label,
    Markers,
    Rows,
    Scale,
    key,
    labels,
    legend,
    percent,
    svg,
)
from earmark.board.pages.figures import named, scale_of
from earmark.report.metric_text import number
from earmark.tables import plain

HEAT_SYSTEMS, HEAT_SUBSETS = 40, 40
_STEPS = 8
_VERDICTS = {"new": "c3", "partly new": "c1", "mostly covered": "c0", "redundant": "others", "constant": "others"}


# --- a map of systems -------------------------------------------------------------------------------------------------


def map_figure(found: SystemMap) -> Drawing:
    """Every system where the two leading components put it; families of several in colours, tier 1 in rings."""
    scale = scale_of(found.metric)
    across, up = ([scale * getattr(place, side) for place in found.places] for side in ("x", "y"))
    frame = Frame(Scale.of(across), Scale.of(up), 400)
    markers, entries, drawn = Markers("map"), [], []
    groups = _families(found.places)
    for number_of_family, (name, places) in enumerate(groups.items()):
        kind = "others" if name == OTHERS else f"c{number_of_family}"
        shape = 0 if name == OTHERS else number_of_family
        marks = "".join(_mark(markers, frame, scale, place, shape, found.metric) for place in places)
        drawn.append(f'<g class="{kind}">{marks}</g>')
        entries.append(key(kind, plain(name, 40) if name != OTHERS or len(groups) > 1 else "systems", shape))
    first = [place for place in found.places if place.rank.tier == 1]
    if first:
        rings = "".join(
            f'<circle cx="{frame.across(scale * place.x)}" cy="{frame.down(scale * place.y)}" r="7"/>'
            for place in first
        )  # fmt: skip
        drawn.append(f'<g class="leads">{rings}</g>')
        entries.append(key("leads", "not told apart from the best", 0))
    axes = frame.axes(
        f"first direction ({100 * found.shares[0]:.0f} % of differences)",
        f"second direction ({100 * found.shares[1]:.0f} %)",
    )
    names = labels(*_labels(found, frame, scale), frame.height)
    hidden = f'<g aria-hidden="true">{axes}{"".join(drawn)}</g>'
    picture = svg(frame.height, markers.definitions(), hidden, names)
    return Drawing(picture, legend(entries), "numbers", "group" if names else "img")


def _families(places: Sequence[Place]) -> dict[str, list[Place]]:
    """The best ranked families of several systems, and the others."""
    several: dict[str, list[Place]] = {}
    for place in places:
        several.setdefault(place.system.card.family, []).append(place)
    several.pop("", None)
    several = {name: own for name, own in several.items() if len(own) > 1}
    chosen = sorted(several, key=lambda name: min(place.rank.rank for place in several[name]))[:FAMILIES]
    drawn = {name: several[name] for name in chosen}
    rest = [place for place in places if place.system.card.family not in drawn]
    return {**drawn, **({OTHERS: rest} if rest else {})}


def _mark(markers: Markers, frame: Frame, scale: float, place: Place, shape: int, metric: str) -> str:
    card = place.system.card
    family = f", {card.family}" if card.family else ""
    tier = f", tier {place.rank.tier}" if place.rank.tier else ""
    name = f"{named(card)} {place.setting}".strip()
    title = f"{name}{family}: mean {number(place.mean, metric)}, rank {place.rank.rank}{tier}"
    x, y = frame.across(scale * place.x), frame.down(scale * place.y)
    return markers.mark(shape, x, y, f' data-s="{escape(place.system.slug)}"', title)


def _labels(found: SystemMap, frame: Frame, scale: float) -> tuple[list[Label], list[tuple[float, float]]]:
    """Names of the best ranked, then of those at the edges of the map."""
    edges = {
        id(pick(found.places, key=lambda place: getattr(place, side))) for pick in (min, max) for side in ("x", "y")
    }
    order = sorted(found.places, key=lambda place: (place.rank.tier != 1, id(place) not in edges, place.rank.rank))
    wanted = [
        Label(
            frame.x.share(scale * place.x), frame.down(scale * place.y), place.system.card.name,
            system_address(place.system.board, place.system.slug), place.system.slug,
        )
        for place in order[:MOST_LABELS]
    ]  # fmt: skip
    return wanted, [(label.x, label.y) for label in wanted]


# --- subsets ----------------------------------------------------------------------------------------------------------


def additions(novelty: Sequence[Mapping[str, Any]], words: Callable[[str], str]) -> Drawing:
    """How much of what each subset tells the others do not: the longer the bar, the more it adds."""
    names = [str(each["dataset"]) for each in novelty]
    rows = Rows(Scale(0.0, 100.0), [name or "all clips" for name in names], [words(name) for name in names])
    bars = []
    for row, each in enumerate(novelty):
        left = 100 * (1 - min(1.0, max(0.0, each["predictable"] or 0.0)))
        title = f"{names[row]}: {each['verdict']}, {left:.0f} % is not predicted by the others"
        kind = _VERDICTS.get(str(each["verdict"]), "others")
        bars.append(rows.bar(kind, row, left, title))
    verdicts = dict.fromkeys(str(each["verdict"]) for each in novelty)
    entries = [key(_VERDICTS.get(verdict, "others"), verdict, 1) for verdict in verdicts]
    axes = rows.axes("not predicted by the other subsets (%)")
    return Drawing(svg(rows.height, axes, *bars), legend(entries), rows.room)


def few_subsets(coverage: Mapping[str, Any]) -> Drawing:
    """How closely the ranking on the first 1, 2, … subsets follows the ranking on all of them."""
    curve, order = coverage["curve"], coverage["order"]
    random = coverage["random"]
    low = min([*curve, *(random[0] if random else [])])
    names = [f"{place}. {'+ ' if place > 1 else ''}{name or 'all clips'}" for place, name in enumerate(order, start=1)]
    rows = Rows(Scale.of([low, 1.0], ends=(-1.0, 1.0)), names)
    markers, drawn, chance = Markers("few"), [], []
    for row, value in enumerate(curve):
        at = percent(rows.x.share(value))
        drawn.append(markers.mark(0, at, rows.middle(row), "", f"the first {row + 1} of this order: {value:.3f}"))
        if random:
            chance.append(rows.interval("interval", row, random[0][row], random[2][row]))
            middle = percent(rows.x.share(random[1][row]))
            title = f"{row + 1} subsets at random: {random[1][row]:.3f} ({random[0][row]:.3f} to {random[2][row]:.3f})"
            chance.append(markers.mark(2, middle, rows.middle(row), "", title))
    enough = percent(rows.x.share(THRESHOLD))
    line = f'<line class="mark" x1="{enough}" x2="{enough}" y2="{rows.height}"/>'
    axes = rows.axes("agreement with the ranking on all subsets")
    groups = f'<g class="others">{"".join(chance)}</g><g class="c0">{"".join(drawn)}</g>'
    entries = [key("c0", "in this order", 0)]
    entries += [key("others", "at random: median and 90 % of orders", 2)] if random else []
    entries.append(key("anchor", f"{THRESHOLD}: nearly the same ranking"))
    return Drawing(svg(rows.height, markers.definitions(), axes, line, groups), legend(entries), rows.room)


# --- heat maps --------------------------------------------------------------------------------------------------------


class HeatMap(NamedTuple):
    """A table with coloured cells, and how many systems it leaves out."""

    table: Markup
    systems: int
    left_out: int


def score_heat(
    snapshot: Snapshot, order: Sequence[str], words: Callable[[str], str], *, most: int = HEAT_SYSTEMS
) -> HeatMap | None:
    """The best systems of the leading metric by mean against the subsets; each column has its own scale."""
    metric = snapshot.metrics[0]
    panel, best = snapshot.panel(metric), leading_values(snapshot, metric)
    there = np.isfinite(best.value).sum(axis=0) > 0
    known = [name for name in snapshot.subsets(metric) if there[panel.column_of[name]]]
    subsets = [*(name for name in order if name in known), *(name for name in known if name not in set(order))]
    subsets = subsets[:HEAT_SUBSETS]
    if not subsets:
        return None
    values = best.value[:, panel.columns(subsets)]
    have = np.isfinite(values).sum(axis=1)
    mean = np.where(have > 0, np.nansum(values, axis=1) / np.maximum(have, 1), -np.inf)
    lines = np.lexsort([-mean, -have])[:most]
    lines = lines[have[lines] > 0]
    steps = _steps(values)[lines]
    turn = 1.0 if snapshot.definition.facts(metric).higher_is_better else -1.0
    body = []
    for place, line in enumerate(lines.tolist()):
        system = snapshot.systems[int(best.systems[line])]
        cells = (
            f'<td class="r{step}">{number(turn * value, metric)}</td>' if step >= 0 else '<td class="gone">—</td>'
            for value, step in zip(values[line].tolist(), steps[place].tolist(), strict=True)
        )
        address = system_address(snapshot.board, system.slug)
        name = f'<a href="{escape(address)}">{escape(plain(system.card.name, 40))}</a>'
        body.append(f'<tr data-s="{escape(system.slug)}"><th scope="row">{name}</th>{"".join(cells)}</tr>')
    caption = f"{metric} of the best systems on each subset"
    return HeatMap(
        _heat_table(snapshot.board, subsets, words, "System", caption, body),
        len(lines),
        int((have > 0).sum()) - len(lines),
    )


def relation_heat(board: str, relations: Mapping[str, Any], words: Callable[[str], str]) -> Markup:
    """How much of the differences on one subset a curve through another tells (R² in percent)."""
    names = [str(name) for name in relations["subsets"]]
    body = []
    for place, line in enumerate(relations["r2"]):
        cells = (
            '<td class="gone">·</td>' if column == place else f'<td class="r{_step(value)}">{100 * value:.0f}</td>'
            for column, value in enumerate(line)
        )
        body.append(f'<tr><th scope="row">{_subset_link(board, names[place], words)}</th>{"".join(cells)}</tr>')
    return _heat_table(board, names, words, "Subset", "How much each subset tells of each other, in percent", body)


def _heat_table(
    board: str, subsets: Sequence[str], words: Callable[[str], str], first: str, caption: str, body: Sequence[str]
) -> Markup:
    heads = "".join(f'<th scope="col"><span>{_subset_link(board, name, words)}</span></th>' for name in subsets)
    return Markup(
        f'<table><caption class="vh">{escape(caption)}.</caption><thead><tr><th scope="col">{first}</th>{heads}</tr>'
        f"</thead><tbody>{''.join(body)}</tbody></table>"
    )


def _subset_link(board: str, name: str, words: Callable[[str], str]) -> str:
    title = words(name)
    note = f' title="{escape(title)}"' if title else ""
    return f'<a href="{escape(subset_address(board, name))}"{note}>{escape(plain(name or "all clips", 24))}</a>'


def _steps(values: np.ndarray) -> np.ndarray:
    """Where each value lies between the least and the largest of its column, in steps; -1 is a gap."""
    gaps = ~np.isfinite(values)
    low = np.nanmin(np.where(gaps, np.inf, values), axis=0)
    high = np.nanmax(np.where(gaps, -np.inf, values), axis=0)
    width = np.where(high > low, high - low, 1.0)
    share = np.where(gaps, 0.0, (np.where(gaps, low, values) - low) / width)
    return np.where(gaps, -1, np.minimum((share * _STEPS).astype(int), _STEPS - 1))


def _step(share: float) -> int:
    return min(_STEPS - 1, int(max(0.0, share) * _STEPS))
