"""What a reader asked of a board's table, and its address: every state of a table is a URL, every URL a state.

view = BoardView.parse(snapshot, [("metric", "GSR"), ("q", "whisper")])
view.query()                    "metric=GSR&q=whisper": what differs from the board's plain view, in a fixed order
view.query(sort="subset:BC")    the address of the same view, sorted by another column
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any
from urllib.parse import urlencode

import numpy as np

from earmark.board.boards.chosen import CHOSEN, MOST_LETTERS, chosen_key, chosen_names, is_chosen
from earmark.board.boards.contents import BEST, EACH
from earmark.board.boards.panels import OK, PROVENANCES
from earmark.board.boards.snapshot import Snapshot
from earmark.errors import UsageError, did_you_mean
from earmark.wording import first_of

PER_PAGE = 100
SHOWN = {
    "domains": "domains", "subsets": "subsets", "metrics": "other metrics", "card": "facts of the card",
    "intervals": "intervals", "lift": "lift over chance",
}  # fmt: skip
"""What a table may show beside the mean: key and words."""
SIZES: dict[str, tuple[str, float, float]] = {
    "tiny": ("under 10 million", 0.0, 10.0), "small": ("10 to 100 million", 10.0, 100.0),
    "medium": ("100 to 500 million", 100.0, 500.0), "large": ("500 million or more", 500.0, float("inf")),
    "unknown": ("not stated", float("nan"), float("nan")),
}  # fmt: skip
"""Parameters of a model, in millions: from, and below."""
_CHOICES: Mapping[str, Iterable[str]] = {
    "training": ("yes", "no", "unknown"), "size": SIZES, "provenance": PROVENANCES[1:], "order": ("reversed",),
    "per": ("all",), "tier": ("1",),
}  # fmt: skip
SHARED = "shared"
_NO_SHOW = "none"  # of a form whose boxes are all empty: nothing is sent for a box that is not ticked
_LONGEST = 200
_NAMED = 30  # choices in a message


@dataclass(frozen=True)
class BoardView:
    """The state of a board's table; every field has a value, and `plain` says which ones need no mention."""

    board: str
    metric: str
    over: str  # the group of subsets that the mean and the ranks are over
    setting: str = BEST
    protocol: str = "all"
    q: str = ""
    family: str = ""
    training: str = ""
    licence: str = ""
    size: str = ""
    provenance: str = ""
    tier: str = ""  # "1": only those that nobody is surely ahead of
    show: tuple[str, ...] = ("domains", "intervals")
    sort: str = "rank"
    order: str = ""  # "" is best first (A first, least first); "reversed"
    page: int = 1
    per: str = ""  # "" is PER_PAGE; "all"
    plain: Mapping[str, object] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def parse(cls, snapshot: Snapshot, items: Iterable[tuple[str, str]]) -> BoardView:
        """The view that a query asks for. Names that no view has are ignored; a wrong value is a UsageError."""
        items = list(items)
        given: dict[str, list[str]] = {}
        for name, text in items:
            if text.strip():
                given.setdefault(name, []).append(text.strip())
        last = {name: texts[-1] for name, texts in given.items()} | {"over": asked_over(snapshot, items)}
        for name, text in last.items():
            if len(text) > (MOST_LETTERS if name == "over" else _LONGEST):
                raise UsageError(f'"{name}" is longer than {_LONGEST} characters; shorten it.')
        if not snapshot.metrics:
            return cls(snapshot.board, "", "", plain={})
        metric = _choice("metric", last.get("metric", ""), snapshot.metrics) or snapshot.metrics[0]
        offered = _offered(snapshot, metric)
        usual = {name: next(iter(names)) for name, names in offered.items()}
        if len(snapshot.settings(metric)) > 1:
            usual["setting"] = snapshot.usual_setting(metric)
        values: dict[str, Any] = {name: last[name] for name in ("q", "family", "licence", "sort") if name in last}
        for name in offered:
            values[name] = _of_metric(snapshot, metric, name, last.get(name, "")) or usual[name]
        for name, choices in _CHOICES.items():
            values[name] = _choice(name, last.get(name, ""), choices)
        page = last.get("page", "1")
        if not page.isascii() or not page.isdigit() or len(page) > 9:
            raise UsageError(f'"page" is a number from 1 on, not "{page}".')
        show = [name for text in given.get("show", []) for name in text.split(",") if name]
        for name in show:
            _choice("show", name, (*SHOWN, _NO_SHOW))
        values["show"] = tuple(name for name in SHOWN if name in show) if show else cls.show
        usual["metric"] = snapshot.metrics[0]
        return cls(snapshot.board, metric, **values, page=max(1, int(page)), plain=usual)

    def query(self, **changes: Any) -> str:
        """The query of this view, or of one with some fields changed. A change of what is shown starts at page 1."""
        if changes and "page" not in changes:
            changes["page"] = 1
        if "metric" in changes and changes["metric"] != self.metric and not is_chosen(self.over):
            changes.setdefault("over", self.plain.get("over"))
        view = replace(self, **changes)
        items: list[tuple[str, str]] = []
        for each in fields(self):
            if each.name in ("board", "plain"):
                continue
            value = getattr(view, each.name)
            if value == self.plain.get(each.name, each.default):
                continue
            if each.name == "show":
                items += [("show", name) for name in value or (_NO_SHOW,)]
            else:
                items.append((each.name, str(value)))
        return urlencode(items, safe=":@,")

    def address(self, **changes: Any) -> str:
        """The address of the board's page in this view."""
        query = self.query(**changes)
        return f"/b/{self.board}" + (f"?{query}" if query else "")

    @property
    def filtered(self) -> bool:
        """Whether some systems of the field may be left out."""
        return bool(self.q or self.family or self.training or self.licence or self.size or self.provenance or self.tier)


def asked_over(snapshot: Snapshot, items: Iterable[tuple[str, str]]) -> str:
    """The key of the mean that a query asks for, "" for the usual one.

    A form may send the subsets of a reader's choice one by one (`over=subsets&subset=BC&subset=BS1`), and a list of
    systems `s` stands for the subsets that all of them have (`over=shared&s=one&s=other`).
    """
    texts = [(name, text.strip()) for name, text in items if text.strip()]
    over = dict(texts).get("over", "")
    subsets = [text for name, text in texts if name == "subset"]
    if over == SHARED and snapshot.metrics:
        return chosen_key(shared_subsets(snapshot, dict(texts).get("metric", ""), [t for n, t in texts if n == "s"]))
    if subsets and over in ("", CHOSEN.rstrip(":")):
        return chosen_key(subsets)
    return over


def shared_subsets(snapshot: Snapshot, metric: str, keys: Sequence[str]) -> tuple[str, ...]:
    """The subsets that all of some systems, by the keys of an address, were measured on; an error without any."""
    metric = _choice("metric", metric, snapshot.metrics) or snapshot.metrics[0]
    shared = set(snapshot.subsets(metric))
    for key in dict.fromkeys(keys):
        system, setting = snapshot.named(key)
        field = snapshot.field(metric, setting=setting)
        rows = field.rows[field.systems == snapshot.places[system.slug]]
        own = np.flatnonzero((field.panel.status[rows] == OK).any(axis=0))
        shared &= {field.panel.subsets[column] for column in own.tolist()}
    if not keys or not shared:
        raise UsageError(f'There is no subset on which all of these systems have {metric}; choose others as "s".')
    return tuple(name for name in snapshot.subsets(metric) if name in shared)


def _of_metric(snapshot: Snapshot, metric: str, name: str, text: str) -> str:
    """A mean, setting or protocol that was asked for; "" for the usual one.

    Of another metric's view, what this metric lacks becomes the usual, so that metrics can be switched.
    """
    if not text:
        return ""
    if name == "over" and is_chosen(text):
        return _chosen(snapshot, metric, text)
    here = _offered(snapshot, metric)[name]
    if text in here or (name == "setting" and text in (BEST, EACH)):
        return text
    others = (other for other in snapshot.metrics if other != metric)
    if any(text in _offered(snapshot, other)[name] for other in others):
        return ""
    return _choice("over, setting or protocol", text, here)


def _chosen(snapshot: Snapshot, metric: str, key: str) -> str:
    """The key in the board's order; "" where the metric lacks one of the subsets, and another one has it."""
    names = set(chosen_names(key))
    if names <= set(snapshot.subsets(metric)):
        return snapshot.group(metric, key).key
    everywhere = {name for each in snapshot.metrics for name in snapshot.subsets(each)}
    return "" if names and names <= everywhere else snapshot.group(metric, key).key


def _choice(name: str, text: str, known: Iterable[str]) -> str:
    names = list(known)
    if not text or text in names:
        return text
    raise UsageError(f'"{name}" is one of {first_of(names, _NAMED)}, not "{text}".{did_you_mean(text, names)}')


def _offered(snapshot: Snapshot, metric: str) -> dict[str, Collection[str]]:
    """What depends on the metric: means, settings and protocols, the usual one first."""
    return {
        "over": snapshot.group_keys(metric),
        "setting": snapshot.settings(metric),
        "protocol": snapshot.protocols(metric),
    }
