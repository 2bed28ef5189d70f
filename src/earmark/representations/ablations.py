"""What one choice changes, all else equal: variants of the models of a run, before, after and the difference.

    dtw       neighbours of pooled vectors, and the same re-ranked frame by frame
    pooling   the first pooling of the run, and each other one
    pca       no PCA, and each number of components, whitened or not
    layer     the last layer, and each other one
    noise     labels as they are, and each share of label noise
    correct   distances as they are, and each hubness correction

Two rows are a pair if they differ in nothing else. Values without each clip (each group, where there are groups) lie in
the cache since they were measured, so that a difference and its interval are paired clip by clip and nothing is
measured again. Rows rest on the clips that all compared systems have, as in the ranking of the run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.embedding import pooling
from earmark.embedding.pca import Reduction, parse_reduction
from earmark.errors import InputError, UsageError, did_you_mean
from earmark.evaluation.comparison import remarks_of
from earmark.places import locate
from earmark.report.variants import Pair, Variants
from earmark.representations import _evaluate as measuring
from earmark.representations import _sequences as sequences
from earmark.representations._folder import cache_of, lost_from
from earmark.representations.comparisons import difference_row, ranking_of, read_comparisons
from earmark.runs.folder import read_record
from earmark.runs.store import Cache
from earmark.scores import KEY, LEADING, Row, Scores, aggregate, load_scores
from earmark.scores.spelling import with_noise, without_sample


class Point(NamedTuple):
    """Where a row stands: what was chosen for it."""

    model: str
    layer: int | None
    pooling: str
    pca: str
    distance: str
    dtw: bool
    correct: str
    noise: float
    suite: str
    subset: str
    protocol: str
    metric: str


@dataclass(frozen=True)
class Varied:
    """Something that may be varied: its levels in words, which is the reference, and what to run to have several."""

    field: str
    text: Callable[[Any], str]
    first: Callable[[Sequence[Any]], Any]
    read: Callable[[str], Any]
    remedy: str


def _first(levels: Sequence[Any]) -> Any:
    return levels[0]


def _no(levels: Sequence[Any]) -> Any:
    return next((level for level in levels if not level or level == "none"), levels[0])


def _pca_level(text: str) -> str:
    reduction = parse_reduction(text)
    return "" if reduction is None else reduction.code


CHOICES: dict[str, Varied] = {
    "dtw": Varied("dtw", lambda level: "re-ranked" if level else "pooled", _no, lambda text: text == "re-ranked",
                  "--distance spearman --dtw all"),
    "pooling": Varied("pooling", str, _first, lambda text: pooling.parse(text).pooling, "--pool mean_time,max_time"),
    "pca": Varied("pca", lambda level: level or "no PCA", _no, _pca_level, "--pca none,100,100w"),
    "layer": Varied("layer", lambda level: "unasked" if level is None else str(level),
                    lambda levels: max(levels, key=lambda level: -1 if level is None else level),
                    lambda text: None if text == "unasked" else int(text), "--layers all"),
    "noise": Varied("noise", lambda level: f"{100 * level:g} %" if level else "as labelled", _no,
                    lambda text: float(text.rstrip("% ")) / (100 if "%" in text else 1), "--label-noise 0.05,0.2"),
    "correct": Varied("correct", lambda level: "no correction" if level == "none" else level, _no, str,
                      "--correct none,icdm"),
}  # fmt: skip


def compare_variants(
    folder: str | Path,
    vary: str,
    *,
    reference: str | None = None,
    subset: str | None = None,
    systems: Sequence[str] = (),
    metrics: Sequence[str] | None = None,
    across_groups: bool | None = None,
) -> Variants:
    """The variants of every model of a run that differ in one choice, each against the reference.

    Args:
        folder: The run folder.
        vary: Which choice: dtw, pooling, pca, layer, noise or correct.
        reference: The level that the others are compared with, such as `mean_time` or `D100`; None is the plain one.
        subset: Only this subset.
        systems: Only these systems, as the scores name them.
        metrics: Which metrics; None is P@1, P@5 and GSR, as far as they were measured, else all.
        across_groups: Whether pairs of one group count: True leaves them out, False takes all pairs, None is both as
            far as they were measured.

    Differences of a metric and a subset are corrected for their number (Bonferroni). Means over subsets have intervals
    that are not.
    """
    if vary not in CHOICES:
        raise UsageError(f"There is no choice {vary!r} to vary: {', '.join(CHOICES)}.{did_you_mean(vary, CHOICES)}")
    path = locate(folder)
    record = read_record(path)
    if not (path / "scores.csv").exists():
        raise InputError(f"{path} has no scores.csv yet: let `earmark run` finish the step evaluate first.")
    scores = load_scores(path / "scores.csv")
    rows, jobs = scores, record["evaluations"]
    if vary != "noise":  # an ablation that is not measured again on shared clips
        rows = ranking_of(record, scores, read_comparisons(path)).scores
        jobs = [*record.get("comparisons", []), *record["evaluations"]]
    points = dict(_points(rows, record))
    chosen = {
        row: point for row, point in points.items()
        if subset in (None, row.labelled_subset, without_sample(row.labelled_subset))
        and (vary == "noise" or not row.label_noise)
        and (not systems or row.system in systems)
        and across_groups in (None, row.protocol == "across_groups")
    }  # fmt: skip
    if not chosen:
        wanted = [*systems, *filter(None, [subset])]
        known = {name for row in points for name in (row.system, row.labelled_subset)}
        hint = did_you_mean(wanted[0], known) if wanted else ""
        raise InputError(f"{path} holds no scores of {', '.join(wanted) or 'that kind'}.{hint}")
    known = {row.metric for row in chosen}
    names = tuple(metrics or [name for name in LEADING if name in known] or known)
    missing = [name for name in names if name not in known]
    if missing:
        raise InputError(f"{path} holds no {missing[0]}.{did_you_mean(missing[0], known)}")
    couples, same = _couples(chosen, names, CHOICES[vary], reference, vary, path)
    units = {(row.suite, row.labelled_subset): row.unit for row in rows if row.unit}
    left_out = _LeftOut(jobs, cache_of(record), path)
    corrected: dict[tuple[str, ...], int] = {}
    for couple in couples:
        corrected[couple.family] = corrected.get(couple.family, 0) + 1
    pairs = tuple(couple.pair(left_out, units, corrected[couple.family]) for couple in couples)
    plain = [couple.pair(left_out, units, 1) for couple in couples]
    return Variants(vary, pairs, tuple(_means(plain)), (*scores.notes, *same))


class _LeftOut:
    """Values without each unit, as measurements left them in the cache."""

    def __init__(self, jobs: Iterable[Mapping[str, Any]], cache: Cache, folder: Path) -> None:
        self._keys: dict[tuple[str, ...], str] = {}
        for job in jobs:
            self._keys.setdefault(tuple(job.get(name, "none") for name in KEY[:5]), job["key"])
        self._cache, self._folder = cache, folder
        self._entries: dict[str, Mapping[str, Any]] = {}

    def of(self, row: Row) -> NDArray[np.float64] | None:
        key = self._keys.get(row.key[:5])
        if key is None:
            return None
        if key not in self._entries:
            entry = self._cache.get(measuring.SCORES_KIND, key)
            if entry is None:
                raise lost_from(self._folder, self._cache)
            self._entries[key] = entry.arrays
        values = self._entries[key].get(measuring.without_each(row.protocol, row.metric))
        return None if values is None else np.asarray(values, np.float64)


class _Couple(NamedTuple):
    model: str
    levels: tuple[str, str]
    before: Row
    after: Row

    @property
    def family(self) -> tuple[str, ...]:
        """What differences are corrected together: all of a metric on a subset."""
        return self.after.suite, self.after.labelled_subset, self.after.protocol, self.after.metric

    def pair(self, left_out: _LeftOut, units: Mapping[tuple[str, str], str], comparisons: int) -> Pair:
        unit = units.get((self.after.suite, self.after.labelled_subset)) or "clip"
        difference = difference_row(
            self.after, self.before, left_out.of(self.after), left_out.of(self.before), comparisons, unit,
            names=_names(self.after, self.before), said=remarks_of(self.after, self.before),
        )  # fmt: skip
        return Pair(self.model, self.levels, self.before, self.after, difference)


def _names(after: Row, before: Row) -> dict[str, str]:
    """The names of a difference: what both have, or one minus the other."""
    pairs = {name: (getattr(after, name), getattr(before, name)) for name in ("system", "distance", "correction")}
    names = {name: one if one == other else f"{one} - {other}" for name, (one, other) in pairs.items()}
    return {**names, "subset": after.subset}  # which says the share of label noise


def _points(rows: Scores, record: Mapping[str, Any]) -> Iterator[tuple[Row, Point]]:
    cards = {card["system"]: card for card in record["systems"]}
    for row in rows:
        card = cards.get(row.system)
        if card is None or row.aggregate or row.statistic or row.probed:
            continue
        reduction = "" if card["pca"] is None else Reduction(card["pca"], card.get("whiten", False)).code
        model = json.dumps([card["spec"], card["parameters"]], sort_keys=True)
        yield row, Point(
            model, card["layer"], card["pooling"], reduction, row.distance.removesuffix(sequences.SUFFIX),
            row.distance.endswith(sequences.SUFFIX), row.correction, row.label_noise, row.suite, row.labelled_subset,
            row.protocol, row.metric,
        )  # fmt: skip


def _couples(
    chosen: Mapping[Row, Point], names: Sequence[str], choice: Varied, reference: str | None, vary: str, path: Path
) -> tuple[list[_Couple], list[str]]:
    """Rows that differ in the choice alone, the one at the reference first; and what is said of those left out."""
    levels = list(dict.fromkeys(getattr(point, choice.field) for point in chosen.values()))
    if len(levels) < 2:
        only = f" ({choice.text(levels[0])})" if vary in ("pooling", "pca", "layer") else ""
        raise InputError(f"{path} has nothing that differs in {vary}{only}: run it with {choice.remedy}.")
    wanted = choice.first(levels)
    if reference is not None:
        try:
            wanted = choice.read(reference)
        except (ValueError, UsageError):
            wanted = reference
        if wanted not in levels:
            texts = [choice.text(level) for level in levels]
            hint = did_you_mean(reference, texts) or f" It has {', '.join(texts)}."
            raise UsageError(f"{path} was not run with {vary} {reference!r}.{hint}")
    alike: dict[tuple[Any, ...], dict[Any, Row]] = {}
    for row, point in chosen.items():
        if point.metric in names:
            rest = tuple(value for name, value in point._asdict().items() if name != choice.field)
            alike.setdefault(rest, {})[getattr(point, choice.field)] = row
    couples = []
    same: dict[str, None] = {}
    for variants in alike.values():
        before = variants.get(wanted)
        for level, row in variants.items():
            if before is None or level == wanted:
                continue
            pair = choice.text(wanted), choice.text(level)
            if vary == "dtw":
                pair = before.distance, row.distance
            label = _label(before, row, vary)
            if row.inputs and row.inputs == before.inputs:  # as of poolings where every DTW distance is known
                same[f"{label}: {pair[1]} and {pair[0]} are one measurement, and not compared"] = None
                continue
            couples.append(_Couple(label, pair, before, row))
    if not couples:
        remedy = f"run it with {choice.remedy}"
        raise InputError(f"{path} has no two rows that differ in {vary} alone{'; '.join(['', *same])}: {remedy}.")
    return _in_order(couples, names), list(same)


def _in_order(couples: Sequence[_Couple], names: Sequence[str]) -> list[_Couple]:
    """Subset by subset, model by model, variant by variant; the metrics of each as they were asked for."""
    keys = [(of.family[:2], of.model, of.levels, of.after.protocol) for of in couples]
    places: list[dict[Any, int]] = [
        {value: place for place, value in enumerate(dict.fromkeys(column))} for column in zip(*keys, strict=True)
    ]
    places.append({name: place for place, name in enumerate(names)})

    def rank(couple: tuple[_Couple, tuple[Any, ...]]) -> list[int]:
        values = (*couple[1], couple[0].after.metric)
        return [known[value] for known, value in zip(places, values, strict=True)]

    return [couple for couple, _ in sorted(zip(couples, keys, strict=True), key=rank)]


def _label(before: Row, after: Row, vary: str) -> str:
    """What both rows are of, less what is varied."""
    words = [word for word in before.system.split(" ") if word in after.system.split(" ")]
    if vary == "layer":
        words = [before.system.partition("@")[0], *before.system.split(" ")[1:]]
    name = " ".join(words) or before.system
    measure = [before.distance] if vary != "dtw" else []
    measure += [before.correction] if vary != "correct" and before.correction not in ("", "none") else []
    return " · ".join([name, *measure])


def _means(pairs: Sequence[Pair]) -> Iterator[Pair]:
    """The mean over the subsets of a suite, of pairs that all of them have."""
    suites: dict[str, set[str]] = {}
    for pair in pairs:
        suites.setdefault(pair.after.suite, set()).add(pair.after.labelled_subset)
    groups: dict[tuple[Any, ...], list[Pair]] = {}
    for pair in pairs:
        key = pair.model, pair.levels, pair.after.suite, pair.after.protocol, pair.after.metric
        groups.setdefault(key, []).append(pair)
    for (model, levels, suite, _, _), members in groups.items():
        whole = all(row.value is not None for pair in members for row in (pair.before, pair.after))
        if len(suites[suite]) < 2 or len(members) < len(suites[suite]) or not whole:
            continue
        rows = []
        for name in ("before", "after", "difference"):
            of = [
                replace(row, subset=row.labelled_subset, ablation="") for row in (getattr(one, name) for one in members)
            ]
            (mean,) = aggregate(Scores(tuple(of)), "mean").rows
            noise = members[0].after.label_noise if name != "before" else 0.0
            reason = "; ".join(filter(None, [f"mean of {len(members)} subsets", mean.reason]))
            rows.append(replace(mean, subset=with_noise(mean.subset, noise), reason=reason))
        yield Pair(model, levels, *rows)
