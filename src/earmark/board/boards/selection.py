"""Which lines of a field a view shows, and in which order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from earmark.board.boards.columns import means_beside
from earmark.board.boards.field import Field
from earmark.board.boards.lines import bitrates
from earmark.board.boards.memory import made_once
from earmark.board.boards.panels import OK, PROVENANCES
from earmark.board.boards.snapshot import Snapshot
from earmark.board.boards.view import SIZES, BoardView
from earmark.definitions import BLIND
from earmark.errors import UsageError

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

_FACTS = {"parameters": "parameters_m", "rtf": "real_time_factor", "year": "year"}


def kept_places(snapshot: Snapshot, view: BoardView, field: Field, lines: Whole) -> Whole:
    """The places in the field that the filters leave."""
    keep = np.ones(len(lines), bool)
    if view.family or view.licence or view.training or view.size or view.q:
        owners, own = np.unique(snapshot.line_systems[lines], return_inverse=True)
        keep = np.array([_fits(snapshot, view, place) for place in owners.tolist()], bool)[own]
    if view.provenance:
        panel = field.panel
        keep &= (panel.provenance[field.rows] == PROVENANCES.index(view.provenance)).any(axis=1)
    if view.tier:
        keep &= field.ranks.tier == int(view.tier)
    return np.flatnonzero(keep)


def _fits(snapshot: Snapshot, view: BoardView, place: int) -> bool:
    """Whether a system is one of those that the view asks for."""
    card = snapshot.systems[place].card
    if (view.family and card.family != view.family) or (view.licence and card.licence != view.licence):
        return False
    if view.training and card.training_free is not {"yes": True, "no": False, "unknown": None}[view.training]:
        return False
    if view.size:
        _, least, below = SIZES[view.size]
        size = card.parameters_m
        if not (size is None if view.size == "unknown" else size is not None and least <= size < below):
            return False
    return not view.q or all(word in _searched_texts(snapshot)[place] for word in view.q.casefold().split())


@made_once
def _searched_texts(snapshot: Snapshot) -> list[str]:
    cards = [system.card for system in snapshot.systems]
    texts = ([card.name, card.title, card.family, card.description, *card.authors, *card.pretraining] for card in cards)
    return ["\n".join(some).casefold() for some in texts]


def order_of(snapshot: Snapshot, view: BoardView, field: Field, lines: Whole, kept: Whole) -> Whole:
    """The order of the kept lines: by the view's column, missing last, then by rank, mean and name;
    of those without a rank, first what is shown for comparison."""
    reverse = view.order == "reversed"
    ranks = np.where(field.ranks.rank[kept] > 0, field.ranks.rank[kept], np.nan).astype(float)
    mean = _turned(snapshot, field.means.value[kept], view.metric)
    kinds = field.kind_places[kept]
    public = snapshot.means(view.metric, snapshot.public_group(view.metric), field.best).take(field.rows[kept])
    beside = _missing_last(_turned(snapshot, public.value, view.metric))
    ranked = ~snapshot.unranked[field.systems[kept]]
    keys = [beside, _missing_last(mean), -field.means.have[kept].astype(float), ranked, _missing_last(ranks)]
    if view.sort in ("name", "family"):
        place = _alphabet(snapshot, view.sort)[field.systems[kept]]
        keys.append(-place if reverse else place)
    elif view.sort != "rank":
        keys.append(_missing_last(_sorted_by(snapshot, view, field, lines, kept), reverse))
    elif reverse:
        keys.append(_missing_last(ranks, reverse))
    return np.lexsort([*keys, kinds])  # each kind by itself, whatever it is sorted by


@made_once
def _alphabet(snapshot: Snapshot, fact: str) -> Floats:
    """Where each system stands in the alphabet, by its name or its family; equals stand at one place."""
    names = [getattr(system.card, fact).casefold() for system in snapshot.systems]
    place = {name: float(number) for number, name in enumerate(sorted(set(names)))}
    return np.array([place[name] for name in names], np.float64)


@made_once
def _facts(snapshot: Snapshot, fact: str) -> Floats:
    """A number of each system's card; NaN where it says none."""
    return np.array([getattr(system.card, fact) for system in snapshot.systems], np.float64)


def _turned(snapshot: Snapshot, values: Floats, metric: str) -> Floats:
    return -values if snapshot.definition.facts(metric).higher_is_better else values


def _missing_last(values: Floats, reverse: bool = False) -> Floats:
    return np.where(np.isfinite(values), -values if reverse else values, np.inf)


def _sorted_by(snapshot: Snapshot, view: BoardView, field: Field, lines: Whole, kept: Whole) -> Floats:
    """What the view sorts by, smallest first."""
    kind, _, name = view.sort.partition(":")
    if view.sort == "kbps":
        rates = (bitrates(snapshot).get(snapshot.lines[line].system) for line in lines.tolist())
        return np.array([None if rate is None else rate.kbps for rate in rates], np.float64)
    if view.sort in _FACTS:
        return _facts(snapshot, _FACTS[view.sort])[field.systems[kept]]
    if view.sort == "lift":
        return _turned(snapshot, field.means.lift[kept], view.metric)
    if kind == "mean":
        group = snapshot.group(view.metric, name)
        return _turned(snapshot, snapshot.means(view.metric, group, field.best).value[field.rows[kept]], view.metric)
    if kind == "subset" and name in field.panel.column_of:
        column = field.panel.column_of[name]
        there = field.panel.status[field.rows[kept], column] == OK
        return _turned(snapshot, np.where(there, field.panel.value[field.rows[kept], column], np.nan), view.metric)
    if kind in ("metric", BLIND) and name in snapshot.metrics:
        over = view.over if kind == "metric" else BLIND
        return _turned(snapshot, means_beside(snapshot, field, name, over).value[kept], name)
    raise UsageError(f'The table has no column "{view.sort}" to sort by; try rank, name, parameters or subset:NAME.')
