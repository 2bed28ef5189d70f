"""What a reader asked of a board's table, and its address: every state of a table is a URL, every URL a state.

view = BoardView.parse(snapshot, [("metric", "GSR"), ("q", "whisper")])
view.query()                    "metric=GSR&q=whisper": what differs from the board's plain view, in a fixed order
view.query(sort="subset:BC")    the address of the same view, sorted by another column
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any
from urllib.parse import urlencode

from earmark.board.boards.panels import PROVENANCES
from earmark.board.boards.snapshot import BEST, EACH, Snapshot
from earmark.errors import UsageError, did_you_mean

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
    "per": ("all",),
}  # fmt: skip
_NO_SHOW = "none"  # of a form whose boxes are all empty: nothing is sent for a box that is not ticked
_LONGEST = 200


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
    show: tuple[str, ...] = ("domains", "intervals")
    sort: str = "rank"
    order: str = ""  # "" is best first (A first, least first); "reversed"
    page: int = 1
    per: str = ""  # "" is PER_PAGE; "all"
    plain: Mapping[str, object] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def parse(cls, snapshot: Snapshot, items: Iterable[tuple[str, str]]) -> BoardView:
        """The view that a query asks for. Names that no view has are ignored; a wrong value is a UsageError."""
        given: dict[str, list[str]] = {}
        for name, text in items:
            if text.strip():
                given.setdefault(name, []).append(text.strip())
        last = {name: texts[-1] for name, texts in given.items()}
        for name, text in last.items():
            if len(text) > _LONGEST:
                raise UsageError(f'"{name}" is longer than {_LONGEST} characters; shorten it.')
        if not snapshot.metrics:
            return cls(snapshot.board, "", "", plain={})
        metric = _choice("metric", last.get("metric", ""), snapshot.metrics) or snapshot.metrics[0]
        offered = _offered(snapshot, metric)
        usual = {name: names[0] for name, names in offered.items()}
        if len(snapshot.settings(metric)) > 1:
            usual["setting"] = BEST
        values: dict[str, Any] = {name: last[name] for name in ("q", "family", "licence", "sort") if name in last}
        for name, names in offered.items():
            # Of another metric's view, what this metric lacks becomes the usual, so that metrics can be switched.
            here = (BEST, EACH, *names) if name == "setting" else names
            elsewhere = [other for each in snapshot.metrics for other in _offered(snapshot, each)[name] if other]
            text = _choice("over, setting or protocol", last.get(name, ""), [*here, *dict.fromkeys(elsewhere)])
            values[name] = text if text and text in here else usual[name]
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
        if "metric" in changes and changes["metric"] != self.metric:
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
        return urlencode(items, safe=":@")

    def address(self, **changes: Any) -> str:
        """The address of the board's page in this view."""
        query = self.query(**changes)
        return f"/b/{self.board}" + (f"?{query}" if query else "")

    @property
    def filtered(self) -> bool:
        """Whether some systems of the field may be left out."""
        return bool(self.q or self.family or self.training or self.licence or self.size or self.provenance)


def _choice(name: str, text: str, known: Iterable[str]) -> str:
    names = list(known)
    if not text or text in names:
        return text
    raise UsageError(f'"{name}" is one of {", ".join(names)}, not "{text}".{did_you_mean(text, names)}')


def _offered(snapshot: Snapshot, metric: str) -> dict[str, Sequence[str]]:
    """What depends on the metric: means, settings and protocols, the usual one first."""
    means = [group.key for group in snapshot.groups(metric)]
    return {"over": means, "setting": snapshot.settings(metric), "protocol": snapshot.protocols(metric)}
