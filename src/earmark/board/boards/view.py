"""What a reader asked of a board's table, and its address: every state of a table is a URL, every URL a state.

view = BoardView.parse(snapshot, [("metric", "GSR"), ("q", "whisper")])
view.query()                    "metric=GSR&q=whisper": what differs from the board's plain view, in a fixed order
view.query(sort="subset:BC")    the address of the same view, sorted by another column
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any
from urllib.parse import urlencode

from earmark.board.boards.panels import PROVENANCES
from earmark.board.boards.snapshot import BEST, EACH, Snapshot
from earmark.errors import UsageError, did_you_mean

__all__ = ["PER_PAGE", "SHOWN", "SIZES", "BoardView"]

PER_PAGE = 100
SHOWN = {
    "domains": "domains",
    "subsets": "subsets",
    "metrics": "other metrics",
    "card": "facts of the card",
    "intervals": "intervals",
    "lift": "lift over chance",
}
"""What a table may show beside the mean: key and words."""
SIZES: dict[str, tuple[str, float, float]] = {
    "tiny": ("under 10 million", 0.0, 10.0),
    "small": ("10 to 100 million", 10.0, 100.0),
    "medium": ("100 to 500 million", 100.0, 500.0),
    "large": ("500 million or more", 500.0, float("inf")),
    "unknown": ("not stated", float("nan"), float("nan")),
}
"""Parameters of a model, in millions: from, and below."""
_TRAINING = ("yes", "no", "unknown")
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
        one = {name: texts[-1] for name, texts in given.items()}
        for name, text in one.items():
            if len(text) > _LONGEST:
                raise UsageError(f'"{name}" is longer than {_LONGEST} characters; shorten it.')
        if not snapshot.metrics:
            return cls(snapshot.board, "", "", plain={})
        metric = _choice("metric", one.get("metric", ""), snapshot.metrics) or snapshot.metrics[0]
        groups = snapshot.groups(metric)
        usual = {
            "metric": snapshot.metrics[0],
            "over": groups[0].key,
            "setting": BEST if len(snapshot.settings(metric)) > 1 else snapshot.settings(metric)[0],
            "protocol": snapshot.protocols(metric)[0],
        }
        return cls(
            snapshot.board,
            metric,
            # Of another metric's view, what this metric lacks becomes the usual, so that metrics can be switched.
            over=_known(one.get("over", ""), [group.key for group in groups], _everywhere(snapshot)) or usual["over"],
            setting=_known(
                one.get("setting", ""), (BEST, EACH, *snapshot.settings(metric)), _all(snapshot, snapshot.settings)
            )
            or usual["setting"],
            protocol=_known(one.get("protocol", ""), snapshot.protocols(metric), _all(snapshot, snapshot.protocols))
            or usual["protocol"],
            q=one.get("q", ""),
            family=one.get("family", ""),
            training=_choice("training", one.get("training", ""), _TRAINING),
            licence=one.get("licence", ""),
            size=_choice("size", one.get("size", ""), SIZES),
            provenance=_choice("provenance", one.get("provenance", ""), PROVENANCES[1:]),
            show=_shown(given.get("show", [])),
            sort=one.get("sort", "rank"),
            order=_choice("order", one.get("order", ""), ("reversed",)),
            page=_page(one.get("page", "1")),
            per=_choice("per", one.get("per", ""), ("all",)),
            plain=usual,
        )

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


def _known(text: str, here: Iterable[str], anywhere: Iterable[str]) -> str:
    if text in set(here):
        return text
    _choice("over, setting or protocol", text, [*here, *anywhere])
    return ""


def _everywhere(snapshot: Snapshot) -> list[str]:
    return list(dict.fromkeys(group.key for metric in snapshot.metrics for group in snapshot.groups(metric)))


def _all(snapshot: Snapshot, of: Any) -> list[str]:
    return list(dict.fromkeys(name for metric in snapshot.metrics for name in of(metric) if name))


def _shown(texts: Iterable[str]) -> tuple[str, ...]:
    named = [name for text in texts for name in text.split(",") if name]
    if not named:
        return BoardView.show
    for name in named:
        _choice("show", name, (*SHOWN, _NO_SHOW))
    return tuple(name for name in SHOWN if name in named)


def _page(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise UsageError(f'"page" is a number from 1 on, not "{text}".')
    return max(1, int(text))
