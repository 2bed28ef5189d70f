"""What is special about codecs on a board: who is ranked with whom, and which of their rows rest on the same clips.

The definition is that of `earmark.codecs.ranking`, from what their cards say. Printed results are ranked as they are:
a paper says how they were measured, and they have a badge of their own. Of two submissions the board does not know the
clips one by one, only how many there were; so a row of a codec that rests on fewer clips than the board counts there,
or a codec that coded another number of them, is incomplete: whoever leaves clips out gains nothing. The board's
definition says how many there are, else its first submission does; never the number of later ones that agree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from earmark.analysis.ranks import RankIntervals, rank_intervals
from earmark.board.boards.panels import INCOMPLETE, OK, PROVENANCES, Floats, Line, Panel
from earmark.board.records import System
from earmark.codecs.ranking import KINDS, kind_of, standing_of
from earmark.submissions import SystemCard

RANKED = ""
"""The kind of all that is ranked first: codecs that were isolated, printed results, and systems of other kinds."""
ANCHOR = "anchor"
ORDER = (RANKED, *KINDS[1:], ANCHOR)
_PRINTED = PROVENANCES.index("printed")
_OF_OTHERS = (_PRINTED, PROVENANCES.index("blind"))
_HALF = 0.5
_OF_THE_CODEC = ("delay_ms",)
"""Metrics that are measured on a few clips and belong to the codec."""


def kinds_of(systems: Sequence[System], lines: Sequence[Line], panels: Iterable[Panel]) -> tuple[str, ...]:
    """The kind of each system: one of `ORDER`."""
    measured: set[int] = set()  # systems that somebody sent a value of, which no paper printed
    for panel in panels:
        sent = (panel.provenance != _PRINTED) & (panel.status == OK) | (panel.status == INCOMPLETE)
        measured |= {lines[number].system for number in panel.lines[sent.any(axis=1)].tolist()}
    return tuple(_kind(system.card, place in measured) for place, system in enumerate(systems))


def is_anchor(card: SystemCard) -> bool:
    """Whether a codec loses nothing, as its card says."""
    return card.kind == "codec" and card.details.get("lossless") is True


def _kind(card: SystemCard, measured: bool) -> str:
    if is_anchor(card):
        return ANCHOR
    if card.kind != "codec" or not measured:
        return RANKED
    kind = kind_of(standing_of(card.details))
    return RANKED if kind == KINDS[0] else kind


def ranks_by_kind(values: Floats, error: Floats, kinds: Sequence[str]) -> RankIntervals:
    """Ranks among the lines of each kind; anchors have none. What the intervals rest on is said of the first kind."""
    rank, low, high, tier = (np.zeros(len(values), np.int64) for _ in range(4))
    first: RankIntervals | None = None
    there = set(kinds)
    for kind in ORDER[:-1]:
        if kind not in there:
            continue
        own = np.arange(len(kinds)) if len(there) == 1 else np.flatnonzero([kind == other for other in kinds])
        among = rank_intervals(values[own], error[own])
        rank[own], low[own], high[own], tier[own] = among[:4]
        first = first or (among if among.rank.any() else None)
    return RankIntervals(rank, low, high, tier, first.source if first else "", first.told_apart if first else 0.0)


# --- the same clips --------------------------------------------------------------------------------------------------


def on_same_clips(
    panel: Panel, systems: Sequence[System], lines: Sequence[Line], rates: Panel | None, clips: Mapping[str, int]
) -> Panel:
    """The panel with rows that rest on other clips than the board counts as incomplete.

    `clips` are those of each subset by the board's definition; where it says nothing, those of most codecs of the first
    submission count: no later one decides what others are measured by. `rates` is the panel of kbps. A codec must have
    coded all of them; whatever else is measured on less than half of a subset is incomplete, too.
    """
    if panel.metric in _OF_THE_CODEC:
        return panel
    own = list(_codec_cells(panel, systems, lines))
    coded = {} if rates is None or not own else _coded(rates, systems, lines)
    firsts = {subset: clips.get(subset) or _of_first(counts.items(), systems) for subset, counts in coded.items()}
    counts: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for row, column in own:
        line = lines[panel.lines[row]]
        counts.setdefault((line.protocol, column), []).append((line.system, int(panel.n[row, column])))
    usual = {key: clips.get(panel.subsets[key[1]]) or _of_first(some, systems) for key, some in counts.items()}
    status, reasons = panel.status.copy(), dict(panel.reasons)

    def leave_out(row: int, column: int, why: str) -> None:
        status[row, column] = INCOMPLETE
        reasons[row, column] = "; ".join(filter(None, [why, panel.reasons.get((row, column), "")]))

    for row, column in own:
        line, subset, n = lines[panel.lines[row]], panel.subsets[column], int(panel.n[row, column])
        expected = usual[line.protocol, column]
        own_clips = coded.get(subset, {}).get(line.system)
        if own_clips is not None and own_clips != firsts[subset]:
            leave_out(row, column, f"it coded {own_clips} clips, where this board counts {firsts[subset]}")
        elif n < expected:
            leave_out(row, column, f"it rests on {n} clips, where this board counts {expected}")
    for row, column in _short_cells(panel, clips):
        if status[row, column] == OK:
            subset = panel.subsets[column]
            leave_out(row, column, f"it rests on {int(panel.n[row, column])} of the {clips[subset]} clips")
    return replace(panel, status=status, reasons=reasons)


def _short_cells(panel: Panel, clips: Mapping[str, int]) -> Iterator[tuple[int, int]]:
    """The cells that count, were measured by their authors, and rest on less than half of the clips of their subset."""
    least = np.array([_HALF * clips.get(subset, 0) for subset in panel.subsets])
    there = (panel.status == OK) & ~np.isin(panel.provenance, _OF_OTHERS) & (panel.n >= 0) & (panel.n < least[None])
    yield from ((row, column) for row, column in np.argwhere(there).tolist())


def _codec_cells(panel: Panel, systems: Sequence[System], lines: Sequence[Line]) -> Iterator[tuple[int, int]]:
    """The cells of codecs that count, were not printed and say on how many clips they rest."""
    codec = np.array([systems[lines[number].system].card.kind == "codec" for number in panel.lines.tolist()], bool)
    there = (panel.status == OK) & (panel.provenance != _PRINTED) & (panel.n >= 0) & codec[:, None]
    yield from ((row, column) for row, column in np.argwhere(there).tolist())


def _coded(rates: Panel, systems: Sequence[System], lines: Sequence[Line]) -> dict[str, dict[int, int]]:
    """On each subset, how many clips each codec coded; what failed is not among them."""
    coded: dict[str, dict[int, int]] = {}
    for row, column in _codec_cells(rates, systems, lines):
        line = lines[rates.lines[row]]
        if line.protocol == "all":
            coded.setdefault(rates.subsets[column], {})[line.system] = int(rates.n[row, column])
    return coded


def _of_first(counts: Iterable[tuple[int, int]], systems: Sequence[System]) -> int:
    """Of systems and their counts: the count that most of the first submission have; of two, the larger."""
    known = list(counts)
    first = min(systems[place].created for place, _ in known)
    often = Counter(count for place, count in known if systems[place].created == first)
    return max(often, key=lambda count: (often[count], count))


def rates_of(panel: Panel, lines: Sequence[Line]) -> Mapping[int, float]:
    """The bitrate of each system as it was measured: the mean over its subsets, clips that failed left out."""
    values: dict[int, list[float]] = {}
    there = np.isfinite(panel.value) & ((panel.status == OK) | (panel.status == INCOMPLETE))
    for row, number in enumerate(panel.lines.tolist()):
        if "@" not in lines[number].protocol:
            single = [place for place, name in enumerate(panel.subsets) if not name.startswith("mean")]
            values.setdefault(lines[number].system, []).extend(panel.value[row, single][there[row, single]].tolist())
    return {system: float(np.mean(some)) for system, some in values.items() if some}
