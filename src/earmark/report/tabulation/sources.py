"""What tables are made from: the scores of any source, its sets of subsets, and what else is known of it.

    source              sets of subsets                      beside the scores
    published:vocsim    public, blind (Table 1)              printed margins and baselines, models, facts of subsets
    published:codec-…   speech, audio, music                 printed means, families
    a codec run         the categories of its datasets       families
    another run         public, blind, synthetic (cards)     facts of subsets
    a score table       public, blind by VocSim's names      -

Where nothing is known there is one set, `all`.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from earmark import published
from earmark.analysis.sources import PREFIX, open_scores
from earmark.codecs.runs.folder import KIND as CODEC_KIND
from earmark.codecs.runs.folder import read_cards
from earmark.errors import InputError, UsageError, absent
from earmark.places import locate
from earmark.report.content import SubsetFacts
from earmark.report.facts import match_facts, printed_facts, read_facts, recorded_facts
from earmark.report.score_index import Subset
from earmark.report.tabulation.choice import REST, Choice, pick
from earmark.runs.folder import read_record
from earmark.scores import VOCSIM_SUBSETS, Row, Scores
from earmark.scores.rows import distinct
from earmark.scores.spelling import mean_over, sample_of
from earmark.wording import counted

ALL = "all"
_STATUSES = ("public", "blind", "synthetic", "local")
HARMONIC = frozenset({"overall", "overall_unsaturated"})
"""Metrics whose mean over the datasets of a category is Codec-SUPERB's harmonic mean."""
_STATUS_OF = {subset.name: subset.status for subset in VOCSIM_SUBSETS}
_DOMAINS = {cell["subset"]: cell["domain"] for cell in published.read("vocsim_table1_subsets")}


class SubsetSet(NamedTuple):
    """Subsets that a mean is over."""

    name: str
    subsets: tuple[str, ...]


class Configuration(NamedTuple):
    """A row of a table: a system and how it was measured."""

    system: str
    distance: str
    correction: str
    protocol: str


def configuration(row: Row) -> Configuration:
    return Configuration(row.system, row.distance, row.correction, row.protocol)


@dataclass(frozen=True)
class TableSource:
    """The rows of the subsets and what is known of them.

    `given` are means that the source brings itself and that stand as they are; `averages` are printed ones that stand
    where the cells bear them out, `margins` and `baselines` those of printed means. `leading` are the rows of the
    paper's main table. `about` says of each system what is `called`; `anchors` lose nothing and are never the best.
    `digits` are the decimals that the paper prints.
    """

    name: str
    scores: Scores
    sets: tuple[SubsetSet, ...]
    facts: tuple[SubsetFacts, ...] = ()
    given: Scores = field(default_factory=Scores)
    averages: Scores = field(default_factory=Scores)
    margins: Scores = field(default_factory=Scores)
    baselines: Scores = field(default_factory=Scores)
    leading: tuple[tuple[str, str], ...] = ()
    called: str = ""
    about: Mapping[str, str] = field(default_factory=dict)
    anchors: frozenset[str] = frozenset()
    digits: Mapping[str, int] = field(default_factory=dict)
    codecs: bool = False
    printed: str = ""
    remarks: tuple[str, ...] = ()

    @property
    def subsets(self) -> list[str]:
        return distinct(self.scores.rows, "subset")

    @property
    def metrics(self) -> list[str]:
        return distinct((*self.scores.rows, *self.given.rows), "metric")

    def members(self, name: str) -> tuple[str, ...]:
        """The subsets of a set; UsageError where there is none of that name."""
        if name == ALL:
            return tuple(self.subsets)
        for one in self.sets:
            if one.name == name:
                return one.subsets
        known = [*(one.name for one in self.sets), ALL]
        raise UsageError(absent(name, list(dict.fromkeys(known)), "set of subsets", self.name))


def open_source(
    given: str | os.PathLike[str] | Scores,
    choice: Choice,
    *,
    with_repeats: bool = False,
    facts: str | os.PathLike[str] | None = None,
) -> TableSource:
    """A score table, a run folder, `published:NAME` or scores in memory, with the subsets that were chosen."""
    metric = choice.metrics[0] if len(choice.metrics) == 1 else None
    scores, _ = open_scores(given, metric, with_repeats=with_repeats)
    name = "The score table" if isinstance(given, Scores) else os.fspath(given)
    if not scores.rows:
        raise InputError(f"{name} has no rows; there is nothing to tabulate.")
    record = _record(given)
    printed = name.removeprefix(PREFIX) if name.startswith(PREFIX) else ""
    singles, given_means, homes = _separated(scores)
    if not singles and not given_means:
        raise InputError(
            f"{name} has no score of a subset as it is labelled, only label noise, differences or predictions: tables "
            "show none of these; `earmark figures` draws label noise."
        )
    _refuse_twins(singles)
    subsets = list(homes)
    source = TableSource(
        name, Scores(tuple(singles), notes=scores.notes), (), given=Scores(tuple(given_means)), printed=printed,
        remarks=tuple(_left_out(scores.select(metric=choice.metrics) if choice.metrics else scores, name)),
    )  # fmt: skip
    known = [recorded_facts(record), read_facts(facts) if facts is not None else [], printed_facts(homes.values())]
    own = [
        replace(fact, subset=subset)
        for subset, home in homes.items()
        for fact in match_facts([home], *known)
    ]  # fmt: skip
    source = replace(source, facts=tuple(own))
    if printed == "codec-superb":
        source = _printed_codecs(source)
    elif record.get("kind") == CODEC_KIND:
        source = _codec_run(source, record)
    else:
        source = replace(source, sets=_by_status(subsets, own) or _of_means(source))
        source = _printed_vocsim(source) if printed == "vocsim" else source
    if choice.sets:
        source = replace(_without_printed(source), sets=_own_sets(source, choice.sets))
    # Means that are made anew stand in for those that a run or a table brings.
    if not printed and singles:
        source = replace(source, given=Scores())
    return _chosen(source, choice)


def _record(given: str | os.PathLike[str] | Scores) -> dict[str, Any]:
    """What run.json says, where a run folder (or the table in it) was given; else nothing."""
    if isinstance(given, Scores) or os.fspath(given).startswith(PREFIX):
        return {}
    path = locate(given)
    folder = path if path.is_dir() else path.parent
    return (
        read_record(folder) if (path.is_dir() or path.name == "scores.csv") and (folder / "run.json").exists() else {}
    )


def _separated(scores: Scores) -> tuple[list[Row], list[Row], dict[str, Subset]]:
    """Rows of subsets and rows of means, all of one suite, and where each subset comes from.

    A subset that two suites have is named after its suite too.
    """
    rows = [row for row in scores if not row.statistic and not row.label_noise and row.status != "predicted"]
    singles = [row for row in rows if not row.aggregate]
    places = dict.fromkeys(Subset(row.suite, row.subset) for row in singles)
    names = Counter(place.name for place in places)
    homes = {f"{place.suite}/{place.name}" if names[place.name] > 1 else place.name: place for place in places}
    if len({place.suite for place in places}) > 1:
        shown = {place: name for name, place in homes.items()}
        singles = [replace(row, suite="", subset=shown[Subset(row.suite, row.subset)]) for row in singles]
    return singles, [row for row in rows if row.aggregate], homes


def _refuse_twins(rows: Iterable[Row]) -> None:
    seen = set()
    for row in rows:
        if row.key in seen:
            raise InputError(
                f'Subset "{row.subset}" has two rows for {row.metric} of {row.system}; merge the table first.'
            )
        seen.add(row.key)


def _left_out(scores: Scores, name: str) -> Iterable[str]:
    count = sum(row.status == "repeated" for row in scores)
    if count:
        yield (
            f"{counted(count, 'value')} of {name} repeat other systems' and count nowhere; the paper counts them, and "
            "so does --with-repeats."
        )
    predicted = sum(row.status == "predicted" for row in scores)
    if predicted:
        yield f"{counted(predicted, 'predicted value')} of {name} left out: only measurements count."


# --- sets of subsets ----------------------------------------------------------------------------------------------


def _by_status(subsets: Sequence[str], facts: Sequence[SubsetFacts]) -> tuple[SubsetSet, ...]:
    """Public, blind and synthetic subsets, as cards or VocSim's names say; one set where nothing tells them apart.

    Samples beside whole subsets, or of another size, are sets of their own: they share clips.
    """
    samples = {name: sample_of(name) for name in subsets}
    if len(set(samples.values())) > 1:
        found = []
        for sample in dict.fromkeys(samples.values()):
            for one in _by_status([name for name in subsets if samples[name] == sample], facts):
                words = ["" if one.name == ALL else one.name, f"sampled {sample}" if sample else ""]
                found.append(SubsetSet(" ".join(filter(None, words)) or "whole", one.subsets))
        return tuple(found)
    known = {fact.subset: fact.status for fact in facts}
    if not known and subsets and all(name in _STATUS_OF for name in subsets):
        known = _STATUS_OF
    statuses = {name: known.get(name, "local") for name in subsets}
    sets = [
        SubsetSet(status, tuple(name for name in subsets if statuses[name] == status))
        for status in _STATUSES
        if status in statuses.values()
    ]
    return (SubsetSet(ALL, tuple(subsets)),) if [one.name for one in sets] == ["local"] else tuple(sets)


def _of_means(source: TableSource) -> tuple[SubsetSet, ...]:
    """The sets that the means of a table without subsets are over, by their names."""
    return tuple(SubsetSet(_set_of(mean), ()) for mean in distinct(source.given.rows, "subset"))


def _set_of(subset: str) -> str:
    """`public` of `mean:public`."""
    return subset.partition(":")[2] or ALL


def _own_sets(source: TableSource, wanted: Mapping[str, Sequence[str]]) -> tuple[SubsetSet, ...]:
    """The sets that were asked for."""
    named = {name for subsets in wanted.values() for name in subsets if name != REST}
    rest = [name for name in source.subsets if name not in named]
    found = []
    for name, subsets in wanted.items():
        if name == ALL:
            raise UsageError(f"A set of subsets cannot be called {ALL}, which stands for all of them: rename it.")
        members = rest if list(subsets) == [REST] else pick(subsets, source.subsets, "subset", source.name)
        if not members:
            raise UsageError(f"The set {name} is empty: the other sets name every subset.")
        found.append(SubsetSet(name, tuple(members)))
    return tuple(found)


def _chosen(source: TableSource, choice: Choice) -> TableSource:
    """The source with the subsets that were asked for; sets shrink with them."""
    if not choice.subsets:
        return source
    sets = {one.name: one.subsets for one in source.sets}
    wanted = [name for given in choice.subsets for name in sets.get(given, (given,))]
    kept = pick(wanted, source.subsets, "subset", source.name)
    left = [SubsetSet(one.name, tuple(name for name in kept if name in one.subsets)) for one in source.sets]
    whole = [
        mean_over(one.name) for one, now in zip(source.sets, left, strict=True) if set(one.subsets) == set(now.subsets)
    ]
    return replace(
        _without_printed(source, whole),
        scores=replace(source.scores, rows=tuple(row for name in kept for row in source.scores.select(subset=name))),
        sets=tuple(one for one in left if one.subsets) or (SubsetSet(ALL, tuple(kept)),),
        facts=tuple(fact for fact in source.facts if fact.subset in kept),
    )


def _without_printed(source: TableSource, whole: Sequence[str] = ()) -> TableSource:
    """The source without printed means, which are made anew from the subsets; those over `whole` sets stay."""
    given, averages, margins, baselines = (
        table.select(subset=list(whole)) for table in (source.given, source.averages, source.margins, source.baselines)
    )
    return replace(source, given=given, averages=averages, margins=margins, baselines=baselines)


# --- what papers print, and what codec runs know ------------------------------------------------------------------


def _printed_vocsim(source: TableSource) -> TableSource:
    main, tests = published.load("vocsim-main"), published.load("vocsim-permutations")
    models = published.families("vocsim", distinct(source.scores.rows, "system"), "model")
    return replace(
        source, averages=published.load("vocsim-averages"), margins=main, baselines=tests, called="model", about=models,
        leading=tuple(dict.fromkeys((row.system, row.distance) for row in main)),
        facts=tuple(replace(fact, domain=_DOMAINS[fact.subset]) for fact in source.facts),
    )  # fmt: skip


def _printed_codecs(source: TableSource) -> TableSource:
    categories: dict[str, list[str]] = {}
    for cell in published.read("codec_superb_scores"):
        own = categories.setdefault(cell["category"], [])
        own += [cell["dataset"]] if cell["dataset"] not in own else []
    families = published.families("codec-superb", distinct(source.scores.rows, "system"))
    families["no codec"] = ""
    digits = dict.fromkeys(("wer", "eer", "min_dcf", "er_accuracy", "aec_map"), 2) | {"kbps": 1}
    sets = tuple(SubsetSet(name, tuple(datasets)) for name, datasets in categories.items())
    return replace(
        source, sets=sets, codecs=True, called="family", about=families, anchors=frozenset({"no codec"}), digits=digits
    )


def _codec_run(source: TableSource, record: Mapping[str, Any]) -> TableSource:
    # Rates are of protocol all whatever the run's own is: a codec has one line.
    own = {row.key for row in source.scores if row.protocol == record["protocol"]}
    rows = tuple(
        replace(row, protocol="all") if row.key in own else row
        for row in source.scores
        if row.key in own or replace(row, protocol=record["protocol"]).key not in own
    )
    categories: dict[str, list[str]] = {}
    facts = []
    for dataset in record["datasets"]:
        categories.setdefault(dataset["category"], []).append(dataset["subset"])
        facts.append(SubsetFacts(
            subset=dataset["subset"], title=dataset["title"], clips=dataset["clips"], classes=0, status="",
        ))  # fmt: skip
    cards = read_cards(dict(record))
    return replace(
        source, scores=replace(source.scores, rows=rows), facts=tuple(facts), codecs=True, called="family",
        sets=tuple(SubsetSet(name, tuple(subsets)) for name, subsets in categories.items()),
        about={name: card.family for name, card in cards.items()}, digits={"kbps": 2},
        anchors=frozenset(name for name, card in cards.items() if card.lossless),
    )  # fmt: skip
