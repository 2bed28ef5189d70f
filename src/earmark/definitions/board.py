"""What a board is: its metrics, subsets, groups and ranking rule, as one value that its host writes.

A `Definition` decides who is ranked on what. Submissions never change it: what they bring beyond it is shown, and
ranked nowhere until a moderator adds it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from typing import Literal, get_args

from earmark.definitions._checks import (
    LINE,
    TEXT,
    check_address,
    check_text,
    refuse_repeated,
    refuse_unknown,
    repeated_in,
)
from earmark.errors import InputError, UsageError, quoted
from earmark.scores import Metric, metric_facts
from earmark.scores.spelling import is_single, split_metric
from earmark.wording import counted

State = Literal["open", "hidden", "archived"]

BEST = "best"
"""The setting that lets each system be ranked under the best of those that it was measured with."""
_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,59}")
BLIND = "blind"
"""The key of the mean over blind subsets."""
MOST = {"metrics": 300, "subsets": 2000, "groups": 200, "columns": 40, "rank_by": 20, "unranked": 500, "readers": 500}
"""How many of each a definition has at most."""


@dataclass(frozen=True)
class Reference:
    """A paper: how to cite it, and where it is."""

    citation: str = ""
    url: str = ""

    def __post_init__(self) -> None:
        check_text(self.citation, "The citation", TEXT)
        check_address(self.url, "The paper")


@dataclass(frozen=True)
class BoardMetric:
    """A metric of a board. What is left out is what Earmark knows of it; of one's own metrics the host says all.

    Args:
        name: Its spelling in the metric column.
        title: What people call it.
        words: What it says, in one sentence.
        higher_is_better: Its direction; None: as Earmark knows it, and up for one that it does not know.
        unit: Of its values.
        range: The lowest and the highest value; None: as Earmark knows it, else without ends.
        percent: Whether it is shown times 100; None: as Earmark knows it.
        paper: Where it comes from.
    """

    name: str
    title: str = ""
    words: str = ""
    higher_is_better: bool | None = None
    unit: str = ""
    range: tuple[float, float] | None = None
    percent: bool | None = None
    paper: str = ""

    def __post_init__(self) -> None:
        if not self.name.strip() or self.name != self.name.strip() or len(self.name) > 60:
            raise UsageError(f"A metric cannot be called {quoted(self.name)}: 1 to 60 characters, no blanks around.")
        for part in ("name", "title", "words", "unit", "paper"):
            check_text(getattr(self, part), f"{part} of the metric {self.name}")
        if self.range is not None and not self.range[0] < self.range[1]:
            raise UsageError(f"The range of {self.name} runs from low to high, not from {self.range[0]:g} on.")
        known = _known(self.name)
        if known is None:
            return
        if self.higher_is_better not in (None, known.higher_is_better):
            way = "higher" if known.higher_is_better else "lower"
            raise UsageError(f"Of {self.name}, {way} is better; call a metric of your own by another name.")
        if self.range not in (None, known.range):
            raise UsageError(f"Earmark knows the range of {self.name}; leave it out.")

    @cached_property
    def record(self) -> Metric:
        """What is known of it, by Earmark and by the host."""
        known = _known(self.name) or Metric(self.name)
        stated = {
            part: getattr(self, part)
            for part in ("title", "words", "unit", "paper", "higher_is_better", "range", "percent")
            if getattr(self, part) not in ("", None)
        }
        return replace(known, **stated)


@dataclass(frozen=True)
class BoardSubset:
    """A subset of a board. Nobody but the host can measure a `blind` one; `task` ones are no recordings of the suite
    but what is done with them, such as applications."""

    name: str
    title: str = ""
    clips: int | None = None
    classes: int | None = None
    seconds: float | None = None  # all of it
    class_sizes: tuple[int, int] | None = None  # clips in the smallest and in the largest class
    durations: tuple[float, float, float] | None = None  # seconds of a clip: least, mean, most
    domain: str = ""
    blind: bool = False
    task: bool = False
    url: str = ""
    licence: str = ""

    def __post_init__(self) -> None:
        for part in ("name", "title", "domain", "licence"):
            check_text(getattr(self, part), f"{part} of the subset {quoted(self.name)}")
        check_address(self.url, f"The subset {quoted(self.name)}")
        for part in ("clips", "classes", "seconds"):
            number = getattr(self, part)
            if number is not None and not 0 < number < math.inf:
                raise UsageError(f"{part} of the subset {quoted(self.name)} is a number above 0, not {number}.")

    @property
    def heading(self) -> str:
        """What it is called in headings: its title, or its name."""
        return self.title or self.name or "all clips"

    @property
    def note(self) -> str:
        """What it is, beside its name: its title, else its domain."""
        return self.title or self.domain.replace("_", " ")

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """What is known of it, as words and values."""
        found: list[tuple[str, str]] = []
        if self.domain:
            found.append(("Domain", self.domain.replace("_", " ")))
        if self.clips is not None:
            found.append(("Clips", f"{self.clips:,}"))
        if self.classes is not None:
            found.append(("Classes", f"{self.classes:,}"))
        if self.class_sizes is not None:
            found.append(("Clips in a class", f"{self.class_sizes[0]:,} to {self.class_sizes[1]:,}"))
        if self.durations is not None:
            least, mean, most = self.durations
            found.append(("Duration", f"{least:g} to {most:g} s, mean {mean:g} s"))
        if self.seconds is not None:
            found.append(("In all", f"{self.seconds / 3600:.1f} h" if self.seconds >= 3600 else f"{self.seconds:g} s"))
        if self.blind:
            found.append(("Access", "blind: only the host can measure it"))
        if self.licence:
            found.append(("Licence", self.licence))
        return tuple(found)

    @property
    def size(self) -> str:
        """Its size in a few words: "3,321 clips, 28 classes"; nothing where that is not known."""
        known = ((self.clips, "clip"), (self.classes, "class"))
        return ", ".join(counted(number, noun) for number, noun in known if number is not None)


@dataclass(frozen=True)
class SubsetGroup:
    """Subsets that a board averages over.

    Args:
        key: Its name in addresses.
        title: In headings of figures and in sentences.
        short: In the head of a column.
        subsets: Their names, in order.
        harmonic: The metrics whose mean over the group is the harmonic one; of others it is the plain mean.
        narrow: Whether it is a part (a domain, a category) of what the board ranks by.
        column: Whether tables show it beside the mean that they rank by.
        metrics: The metrics that have it; none: all.
    """

    key: str
    title: str = ""
    short: str = ""
    subsets: tuple[str, ...] = ()
    harmonic: tuple[str, ...] = ()
    narrow: bool = False
    column: bool = True
    metrics: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not _KEY.fullmatch(self.key) or self.key.startswith("subset:"):
            raise UsageError(
                f"A group cannot have the key {quoted(self.key)}: letters, digits and . : - _, and not subset: first."
            )
        if not self.subsets:
            raise UsageError(f"The group {self.key} has no subsets; list at least one.")
        if repeated := repeated_in(self.subsets):
            raise UsageError(f"The group {self.key} has {quoted(repeated)} twice; keep one.")
        for part in ("title", "short"):
            check_text(getattr(self, part), f"{part} of the group {self.key}")

    def holds_for(self, metric: str) -> bool:
        """Whether a metric has this group."""
        return not self.metrics or metric in self.metrics


@dataclass(frozen=True)
class MainColumn:
    """A column of the plain view: a metric over a group."""

    metric: str
    group: str


@dataclass(frozen=True)
class Definition:
    """A board as its host defines it.

    Args:
        name: In addresses, and in the suite column of scores.
        title: What people call it; empty: the name.
        summary: One sentence.
        text: Markdown.
        paper: Where the benchmark comes from.
        contact: Whom to ask: an address, or words.
        metrics: The leading one first.
        subsets: In the order of tables.
        groups: What may be averaged over.
        columns: What the plain view shows; empty: the leading metric over the groups it is ranked by.
        rank_by: Keys of groups: a board is ranked by the first. Where that is blind and the host has measured nobody
            yet, by the next.
        setting: Which distance and correction is ranked, such as "cosine"; "best": each system's best.
        unranked: Systems that are shown and never ranked: a name, or family:NAME, or kind:NAME.
        opens: The first day on which scores are taken.
        closes: The last day on which they are.
        state: `hidden` boards are on no list; `archived` ones are read and take no scores.
        private: Whether only readers, authors of the board and moderators see it.
        readers: Names of users, and team:NAME, that see a private board.
        distances: Distances that scores may have beside those that Earmark knows.
        corrections: The same for corrections.
        other_subsets: Whether scores of other subsets are taken, to be shown and not ranked; else they are refused.
        derived: Whether no host wrote it: it was made of what was there.
    """

    name: str
    title: str = ""
    summary: str = ""
    text: str = ""
    paper: Reference = Reference()
    contact: str = ""
    metrics: tuple[BoardMetric, ...] = ()
    subsets: tuple[BoardSubset, ...] = ()
    groups: tuple[SubsetGroup, ...] = ()
    columns: tuple[MainColumn, ...] = ()
    rank_by: tuple[str, ...] = ()
    setting: str = BEST
    unranked: tuple[str, ...] = ()
    opens: date | None = None
    closes: date | None = None
    state: State = "open"
    private: bool = False
    readers: tuple[str, ...] = ()
    distances: tuple[str, ...] = ()
    corrections: tuple[str, ...] = ()
    other_subsets: bool = True
    derived: bool = False

    def __post_init__(self) -> None:
        for part, most in (("title", LINE), ("summary", LINE), ("contact", LINE), ("text", TEXT)):
            check_text(getattr(self, part), f"{part} of the board {self.name}", most)
        for part in ("unranked", "readers", "distances", "corrections"):
            for name in getattr(self, part):
                check_text(name, f"A name in {part} of the board {self.name}")
        for part, limit in MOST.items():
            if len(getattr(self, part)) > limit:
                raise UsageError(f"{self.name} has {len(getattr(self, part)):,} {part}; at most {limit:,} are taken.")
        if self.state not in get_args(State):
            raise UsageError(
                f"The state of {self.name} is one of {', '.join(get_args(State))}, not {quoted(self.state)}."
            )
        if self.opens and self.closes and self.closes < self.opens:
            raise UsageError(f"{self.name} closes on {self.closes}, before it opens on {self.opens}; mend one of them.")
        self._check_names()

    def _check_names(self) -> None:
        refuse_repeated("metric", [metric.name for metric in self.metrics])
        refuse_repeated("subset", [subset.name for subset in self.subsets])
        for subset in self.subsets:
            if len(subset.name) > 200 or not is_single(subset.name):
                raise UsageError(f"{quoted(subset.name)} cannot be a subset: it is spelled like a mean, or too long.")
        for metric in self._named_metrics or ("",):
            refuse_repeated("group", [group.key for group in self.groups if group.holds_for(metric)])
        subsets, metrics = self.subset_names, set(self._named_metrics)
        keys = {group.key for group in self.groups}
        for group in self.groups:
            refuse_unknown(group.subsets, subsets, f"The group {group.key}", "subset")
            if group.key == BLIND and not set(group.subsets) <= self.blind:
                raise UsageError('The group "blind" has subsets that are not blind; give it another key.')
            refuse_unknown((*group.metrics, *group.harmonic), metrics, f"The group {group.key}", "metric")
        refuse_unknown(self.rank_by, keys, "rank_by", "group")
        for column in self.columns:
            refuse_unknown([column.metric], metrics, "A main column", "metric")
            refuse_unknown([column.group], keys | {f"subset:{name}" for name in subsets}, "A main column", "group")

    @property
    def heading(self) -> str:
        """What people call the board."""
        return self.title or self.name

    @cached_property
    def _named_metrics(self) -> tuple[str, ...]:
        return tuple(metric.name for metric in self.metrics)

    @cached_property
    def subset_names(self) -> frozenset[str]:
        return frozenset(subset.name for subset in self.subsets)

    @cached_property
    def _subsets(self) -> Mapping[str, BoardSubset]:
        return {subset.name: subset for subset in self.subsets}

    @cached_property
    def _metrics(self) -> Mapping[str, BoardMetric]:
        return {metric.name: metric for metric in self.metrics}

    @cached_property
    def blind(self) -> frozenset[str]:
        """The subsets that only the host can measure."""
        return frozenset(subset.name for subset in self.subsets if subset.blind)

    def facts(self, metric: str) -> Metric:
        """What is known of a metric: its direction, range, unit, words. One that nobody knows is a plain number of
        which more is better."""
        if metric in self._metrics:
            return self._metrics[metric].record
        base = split_metric(metric)[0]
        if base in self._metrics and _known(base) is None:
            return replace(self._metrics[base].record, name=metric)
        return _known(metric) or Metric(metric)

    def metric_title(self, metric: str) -> str:
        """What the host calls a metric; "" where the definition does not say, or says its name."""
        title = self._metrics[metric].title if metric in self._metrics else ""
        return title if title != metric else ""

    def known_facts(self, metric: str) -> Metric:
        """The same of a metric that Earmark or the host knows; InputError for any other."""
        return self.facts(metric) if self.has_metric(metric) else metric_facts(metric)

    def subset(self, name: str) -> BoardSubset:
        """What is known of a subset; one that is not part of the board has its name alone."""
        return self._subsets.get(name) or BoardSubset(name)

    def has_metric(self, metric: str) -> bool:
        """Whether a metric is part of the definition, and may be ranked by."""
        return metric in self._metrics or split_metric(metric)[0] in self._metrics

    def has_subsets(self, names: Iterable[str]) -> bool:
        """Whether all of these subsets are part of the definition, and may be ranked on."""
        return all(name in self._subsets for name in names)

    def ranks(self, metric: str, subsets: Iterable[str]) -> bool:
        """Whether systems are ranked by a metric over some subsets."""
        return self.has_metric(metric) and self.has_subsets(subsets)

    def is_unranked(self, name: str, family: str = "", kind: str = "") -> bool:
        """Whether a system is shown and never ranked, as an anchor or a baseline of the host's."""
        return not {name, f"family:{family}", f"kind:{kind}"}.isdisjoint(self.unranked)

    def groups_for(self, metric: str) -> tuple[SubsetGroup, ...]:
        """The groups of a metric: those that the board is ranked by first, in order of preference."""
        own = [group for group in self.groups if group.holds_for(metric)]
        place = {key: number for number, key in enumerate(self.rank_by)}
        return tuple(sorted(own, key=lambda group: place.get(group.key, len(place))))

    def closed(self, today: date) -> str:
        """Why scores are not taken on a day, in a sentence; nothing where they are."""
        if self.state == "archived":
            return f"The board {self.name} is archived: it can be read, and takes no more scores."
        if self.opens and today < self.opens:
            return f"The board {self.name} opens on {self.opens}; send your scores from that day on."
        if self.closes and today > self.closes:
            return f"The board {self.name} closed on {self.closes}; it takes no more scores."
        return ""

    def is_readable_by(self, name: str = "", team: str = "", *, moderates: bool = False) -> bool:
        """Whether somebody sees a board: everybody where it is not private."""
        named = {name, f"team:{team}"} if team else {name}
        return not self.private or moderates or bool(name and not named.isdisjoint(self.readers))

    @property
    def rule(self) -> str:
        """How systems are ranked, in a sentence."""
        groups = {group.key: group for group in self.groups}
        means = [group_words(groups[key]) for key in self.rank_by]
        if not means:
            return "Systems are ranked on each subset by itself."
        blind = len(means) > 1 and self.blind.issuperset(groups[self.rank_by[0]].subsets)
        then = f", and until somebody was measured there by {means[1]}" if blind else ""
        setting = f"with the setting {self.setting}" if self.setting != BEST else "each with the best of its settings"
        return f"Systems are ranked by {means[0]}{then}, {setting}. A rank needs every subset of the mean."


def group_words(group: SubsetGroup) -> str:
    """A group within a sentence: "the public mean (15 subsets)"."""
    title = group.title or group.key
    words = title[:1].lower() + title[1:] if "mean" in title.lower() else f"mean over {title}"
    return f"the {words} ({counted(len(group.subsets), 'subset')})"


def _known(metric: str) -> Metric | None:
    try:
        return metric_facts(metric)
    except InputError:
        return None
