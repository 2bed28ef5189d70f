"""Sentences about a table: what it shows, who leads, and how its ranks are to be read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from earmark.board.boards.codecs import ORDER
from earmark.board.boards.contents import EACH
from earmark.board.boards.field import Field
from earmark.board.boards.snapshot import Snapshot
from earmark.board.boards.table import TablePage
from earmark.report.metric_text import number
from earmark.scores import Metric
from earmark.submissions import SystemCard
from earmark.wording import counted, listed

_MANY = 5
"""Ranked lines of which it is worth saying that their ranks say little."""


def counts(snapshot: Snapshot) -> str:
    if not snapshot.metrics:
        return "No accepted scores."
    subsets = counted(len(snapshot.subsets(snapshot.metrics[0])), "subset")
    return f"{counted(len(snapshot.lines_of), 'system')}, {subsets}, {counted(len(snapshot.metrics), 'metric')}."


def blind_words(snapshot: Snapshot, averaged: Sequence[str], unranked: int) -> str:
    """Who has no rank by the blind mean, for want of which subsets, and which of the blind ones nobody measures."""
    if not unranked:
        return ""
    rest = ""
    if snapshot.offered.isdisjoint(averaged):
        rest = ", which nobody measures here"
    else:
        known = {name for panel in snapshot.panels.values() for name in panel.subsets} & snapshot.blind
        if others := sorted(known - snapshot.offered):
            rest = f" ({', '.join(others)}, which nobody measures here, {_is(len(others))} not in this mean)"
    have = "has" if unranked == 1 else "have"
    lacking = f"{counted(unranked, 'system')} {have} no figures of {listed(averaged)}{rest}"
    return f"Only the host measures blind subsets; {lacking}."


def metric_words(known: Metric) -> str:
    """What a metric is, in one sentence, with its unit and its direction."""
    way = "higher is better" if known.higher_is_better else "lower is better"
    words = known.words.removesuffix(f"; {way}")
    unit = "in percent" if known.percent else f"in {known.unit}" if known.unit else ""
    first = ", ".join(filter(None, [way.capitalize(), unit])) + "."
    return f"{first} {words[:1].upper()}{words[1:]}." if words else first


def leader(snapshot: Snapshot, field: Field) -> str:
    """Who has the first rank, in a sentence with the score and the intervals of both; "" where nobody has one."""
    first = np.flatnonzero(field.ranks.rank == 1)
    if not first.size:
        return ""
    at = int(first[np.argmin([ORDER.index(field.kinds[place]) for place in first.tolist()])])
    card = snapshot.systems[field.systems[at]].card
    value, low, high = (float(part[at]) for part in (field.means.value, field.means.low, field.means.high))
    known = snapshot.definition.facts(field.metric)
    score = number(value, known, unit=True)
    score += f" ({number(low, known)} to {number(high, known)})" if low == low and high == high else ""
    rank = field.rank_at(at)
    ranks = f", rank {rank_interval(rank.low, rank.high)}" if rank.low else ""
    return f"{system_words(card)} leads with {field.metric} {score}{ranks}."


def system_words(card: SystemCard) -> str:
    """A system in a sentence: what people call it, with its code."""
    return f"{card.title} ({card.name})" if card.title not in ("", card.name) else card.name


def rank_interval(low: int, high: int) -> str:
    return f"{low}–{high}" if low < high else f"{low}"


def ranks_read(shown: TablePage, *, choosable: bool = True) -> str:
    """How the ranks of a table are to be read; `choosable`: the reader can rank by something else."""
    group, source = shown.field.group, shown.field.ranks.source
    if not shown.field.ranked:
        names = ", ".join(group.subsets[:6]) + (", …" if len(group.subsets) > 6 else "")
        why = f"Nobody has a rank: no system has all {len(group.subsets)} subsets of this mean ({names})."
        remedy = " Choose a single subset under “Ranked by” to rank those that have it."
        return why + remedy if choosable else why
    if not source:
        return "Ranks have no interval here: there are too few subsets to test over, and no row tells its error."
    tests = "paired tests over the subsets" if source == "datasets" else "the intervals of the scores"
    apart = ""
    if len(set(shown.field.kinds)) > 1:
        apart = " Codecs are ranked among those whose results rest on the same: see the lines between them."
    return (
        "Under a rank stands its 95 % interval: one plus those surely ahead to all but those surely behind, by "
        f"{tests}.{apart}"
    )


def _is(number: int) -> str:
    return "is" if number == 1 else "are"


def summary(shown: TablePage) -> str:
    """What the table shows: how many are ranked by what, and how many are not told apart from the best."""
    field, view = shown.field, shown.view
    lines = counted(len(field.rows), "system" if view.setting != EACH else "line")
    first = f"{shown.total} of {lines}" if view.filtered else lines
    unranked = 0 if view.filtered else len(field.rows) - field.ranked
    rest = f", {unranked} without a rank" if unranked else ""
    if shown.elsewhere:
        rest += f"; {shown.elsewhere} more {'has' if shown.elsewhere == 1 else 'have'} no {view.metric} here"
    mean = field.group.words.startswith("mean") or field.group.words.endswith("mean")
    over = f"the {field.group.words}" if mean else field.group.words
    cut = f" The first {shown.cut} subsets have columns; the files have all." if shown.cut else ""
    return f"{first} by {over}{rest}. {told_apart(shown)}".rstrip() + cut


def told_apart(shown: TablePage) -> str:
    """How many nobody is surely ahead of, among those that are ranked first; "" where nothing can be told."""
    field = shown.field
    ranked = np.flatnonzero(field.ranks.rank > 0)
    ranked = ranked[field.kind_places[ranked] == field.kind_places[ranked[:1]]]
    if not field.ranks.source or len(ranked) < 2:
        return ""
    level = int((field.ranks.tier[ranked] == 1).sum())
    words = "One is" if level == 1 else f"{level} of {len(ranked)} are"
    rest = "surely best" if level == 1 else "not told apart from the best"
    anywhere = int(((field.ranks.low[ranked] == 1) & (field.ranks.high[ranked] == len(ranked))).sum())
    little = len(ranked) >= _MANY and 2 * anywhere > len(ranked)
    return f"{words} {rest}{': the order says little' if little else ''}."
