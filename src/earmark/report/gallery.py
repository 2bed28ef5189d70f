"""Every figure by name: what it shows, which papers print it, and whether some material can give it.

    material = Material(name="scores.csv", scores=scores)
    for exhibit in find("trends", material):      InputError says what to run where there is nothing to draw
        exhibit.draw()                            the figure, its caption, and the numbers behind it

Finding is cheap and draws nothing, so that a list of all figures costs nothing either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from earmark.errors import InputError, UsageError, absent, did_you_mean
from earmark.report.codecs._comparison import Comparison
from earmark.report.content import CloseUp, SubsetFacts
from earmark.report.score_index import ScoreIndex
from earmark.runs.folder import file_stem
from earmark.scores import Row, Scores
from earmark.tables import plain

SYNTHETIC = "SYNTHETIC DATA: the sounds were computed, not recorded."
TOPS = (5.0, 50.0, 100.0)
"""Shares of the configurations whose trends VocSim's paper draws, in percent."""


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """What is asked of figures beyond their name; nothing: as the figure likes it."""

    metrics: tuple[str, ...] = ()
    top: tuple[float, ...] = TOPS
    subsets: tuple[str, ...] = ()
    systems: tuple[str, ...] = ()
    distances: tuple[str, ...] = ()
    seed: int = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class Material:
    """What figures are drawn from. Only `scores` is needed.

    name         of the source, for captions
    scores       every row
    ranked       the rows of systems on the same clips, where they differ in theirs; None: `scores`
    facts        what is known of subsets
    printed      the name of a published set
    synthetic    the sounds were computed, which a caption says
    comparisons  of a codec run: metrics against the rate, by subset
    close_up     of a run: one representation clip by clip; it raises where the cache has lost it
    """

    name: str
    scores: Scores
    ranked: Scores | None = None
    facts: Sequence[SubsetFacts] = ()
    printed: str = ""
    synthetic: bool = False
    comparisons: Callable[[Sequence[str] | None], Sequence[Comparison]] | None = None
    close_up: Callable[[Row], CloseUp] | None = None
    wishes: Wishes = field(default_factory=Wishes)

    @cached_property
    def index(self) -> ScoreIndex:
        """The rows that may be compared, of the subsets, systems and distances that are wished for."""
        return ScoreIndex(self._chosen(self.scores if self.ranked is None else self.ranked))

    @cached_property
    def table(self) -> Scores:
        """Every row of the subsets, systems and distances that are wished for."""
        return self._chosen(self.scores)

    def _chosen(self, scores: Scores) -> Scores:
        wishes = self.wishes
        return Scores(
            tuple(
                row
                for row in scores
                if (not wishes.subsets or row.labelled_subset in wishes.subsets or row.metric == "kbps")
                and (not wishes.systems or row.system in wishes.systems)
                and (not wishes.distances or row.distance in wishes.distances)
            )
        )

    def check_wishes(self) -> None:
        """UsageError for a metric, subset, system or distance that the table does not have."""
        wishes = self.wishes
        for what, wished, known in (
            ("metric", wishes.metrics, [row.metric for row in self.scores]),
            ("subset", wishes.subsets, [row.labelled_subset for row in self.scores]),
            ("system", wishes.systems, [row.system for row in self.scores]),
            ("distance", wishes.distances, [row.distance for row in self.scores]),
        ):
            present = list(dict.fromkeys(filter(None, known)))
            for name in wished:
                if name not in present:
                    raise UsageError(absent(name, [plain(one, 40) for one in present], what, self.name))


class Drawing(NamedTuple):
    """A figure that was drawn: the stem of its file, its caption, and the numbers behind it, a line each."""

    name: str
    figure: Any
    caption: str
    rows: Sequence[Mapping[str, Any]] = ()


class Exhibit(NamedTuple):
    """A figure that can be drawn."""

    name: str
    title: str
    draw: Callable[[], Drawing]


def exhibit(
    material: Material, name: str, title: str, draw: Callable[[], Any], said: Callable[[], Iterable[str]],
    rows: Callable[[], Sequence[Mapping[str, Any]]] = list,
) -> Exhibit:  # fmt: skip
    """A figure that is drawn, described and put into numbers only when somebody asks for it."""

    def drawn() -> Drawing:
        figure = draw()
        sentences = [f"{title} ({material.name}).", *said(), SYNTHETIC if material.synthetic else ""]
        return Drawing(name, figure, " ".join(filter(None, sentences)), rows())

    return Exhibit(name, title, drawn)


def stem(kind: str, *parts: str) -> str:
    """The name of a figure's file without its ending: the kind of figure and what it is of."""
    return "-".join([kind, *(file_stem(part) for part in parts if part)])


class Entry(NamedTuple):
    """A kind of figure: what it shows, where the papers print it, and how it is found in material."""

    name: str
    title: str
    papers: str
    find: Callable[[Material], list[Exhibit]]


ELSEWHERE: dict[str, str] = {
    "reconstructions (VocSim, Figures 3 and 4)": "earmark run --extractor vae,ae ...  writes RUN/figures/",
    "what geometry predicts of probes": "earmark probe transfer SCORES --figure transfer.png",
    "agreement with listeners": "earmark probe perception ... --figure listeners.png",
    "hubs of one set of vectors": "earmark hubness VECTORS --figure hubs.png",
    "coverage and error curves (SimBA)": "earmark analyze SCORES --figures analysis",
    "hyperspheres, dimension, sanity checks (GICDM)": "earmark fidelity sanity --study NAME --figure FILE",
}
"""Figures of the papers that other commands draw, and those commands."""


def entries() -> dict[str, Entry]:
    """Every kind of figure by name, in the order of the list."""
    from earmark.report import _exhibits

    return {entry.name: entry for entry in _exhibits.ENTRIES}


def entry(name: str) -> Entry:
    """The kind of figure of that name; UsageError names the others."""
    known = entries()
    if name not in known:
        raise UsageError(f"There is no figure {name!r}; there are {', '.join(known)}.{did_you_mean(name, known)}")
    return known[name]


def find(name: str, material: Material) -> list[Exhibit]:
    """The figures of one kind that the material gives; InputError says what to run where it gives none."""
    return entry(name).find(material)


class Offer(NamedTuple):
    """One kind of figure and what the material gives of it: figures, or the reason why there is none."""

    entry: Entry
    exhibits: tuple[Exhibit, ...]
    reason: str = ""


def offers(material: Material) -> list[Offer]:
    """What the material can give, kind by kind."""
    found = []
    for kind in entries().values():
        try:
            found.append(Offer(kind, tuple(kind.find(material))))
        except InputError as error:
            found.append(Offer(kind, (), str(error)))
    return found
