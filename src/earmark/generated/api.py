"""From two sets of vectors to a score table: `earmark.fidelity`. Nothing here knows of audio."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark._version import __version__
from earmark.errors import InputError, UsageError, did_you_mean
from earmark.evaluation.data import check_ids, digest_of
from earmark.evaluation.options import as_names, byte_count, whole
from earmark.generated import _bootstrap as resampling
from earmark.generated import _jackknife as jackknife
from earmark.generated import metrics as rules
from earmark.generated._apart import check_bandwidth
from earmark.generated._copies import Copies, near_copies
from earmark.generated._gicdm import TooFew, Work
from earmark.generated.balls import Balls, Reference
from earmark.generated.measure import Meter, Missing, check_sets
from earmark.generated.metrics import Judgement
from earmark.geometry import spaces
from earmark.geometry.neighbours import nearest
from earmark.progress import progress_bar
from earmark.scores import PointKey, Row, Scores, metric_facts
from earmark.scores.spelling import refuse_reserved
from earmark.wording import counted
from earmark.workers import thread_count

Array = NDArray[Any]
Floats = NDArray[np.float64]

CORRECTIONS = ("none", "gicdm")
READINGS = ("both", "corrected", "literal")
INTERVALS = ("jackknife", "bootstrap", "none")
RESAMPLES = 300
NO_INTERVAL = (
    "no interval: from smaller sets another network is learned, and none that was tried holds in 32 dimensions"
)
HEADLINES = ("clipped_density", "density", "precision", "p_precision", "sym_precision", "precision_cover")
"""What samples are ordered by: the first of these that was measured, corrected if it was."""


@dataclass(frozen=True, slots=True, eq=False)
class Fidelity(Scores):
    """Scores of generated against real points, with the value of every point.

    `per_sample` maps (distance, correction, "all", metric) to a value for each generated point, `per_real` to one for
    each real point; of a distance of the sets, by how much the point raises it: the value less that without the point,
    of frechet_distance to first order. Beside the metrics, samples have `nearest_row` (the nearest real point) and
    `reach` (distance to a real point in radii of its ball, the smallest: over 1 is outside of all), and under GICDM
    `kept` (1 or 0), `misfit` (how little a sample fits in: over 1 is dropped, and has no reach) and `factor`. `copy` (1
    or 0) is there when more samples than chance brings are (near) copies of real points, by a test at the level of 5 %.
    `too_few` maps (distance, correction, metric) of what could not be measured to the k that would fit, `at_shares`
    fad_inf to the shares of the sets it was found from, each with the Fréchet distance of such sets.
    """

    per_sample: Mapping[PointKey, Floats] = field(default_factory=dict)
    per_real: Mapping[PointKey, Floats] = field(default_factory=dict)
    sample_ids: tuple[str, ...] | None = None
    real_ids: tuple[str, ...] | None = None
    too_few: Mapping[tuple[str, str, str], TooFew] = field(default_factory=dict)
    at_shares: Mapping[str, tuple[tuple[float, float], ...]] = field(default_factory=dict)

    def __repr__(self) -> str:
        sizes = [
            counted(len(next(iter(points.values()))), noun)
            for points, noun in ((self.per_sample, "sample"), (self.per_real, "real point"))
            if points
        ]
        return f"Fidelity({', '.join([counted(len(self.rows), 'row'), *sizes])})"

    def worst(self, count: int | None = None, *, distance: str | None = None) -> NDArray[np.int64]:
        """Rows of generated points, the least real first: by the leading metric, then by misfit, then by reach.

        Where only distances of the sets were measured, those that raise them most are first.
        """
        key = self.leading(distance)
        score = self.per_sample[key]
        score = -score if key[3] in rules.DISTANCES else score
        nothing = np.zeros(len(score))
        misfit = self.per_sample.get((*key[:3], "misfit"), nothing)
        reach = self.per_sample.get((key[0], "none", "all", "reach"), nothing)
        order = np.lexsort((np.arange(len(score)), -reach, -misfit, score))
        return np.asarray(order[:count], np.int64)

    def leading(self, distance: str | None = None) -> PointKey:
        """The per-sample score that samples are ordered by."""
        for correction in reversed(CORRECTIONS):
            for metric in (*HEADLINES, *rules.DISTANCES):
                for key in self.per_sample:
                    if key[1] == correction and key[3] == metric and distance in (None, key[0]):
                        return key
        raise InputError(
            f"No score of single samples was measured: ask for one of {', '.join(HEADLINES)}, with a k that fits."
        )


def fidelity(
    real: Any, generated: Any, *, metrics: str | Sequence[str] | None = None, k: int | Mapping[str, int] = 5,
    correct: str | Sequence[str] = CORRECTIONS, reading: Literal["both", "corrected", "literal"] = "both",
    distance: str | Sequence[str] = "euclidean", intervals: str | None = None, bootstrap: int | None = None,
    groups: jackknife.Groups = None, real_groups: jackknife.Groups = None, seed: int = 0, cap: bool = True,
    ids: Sequence[str] | None = None, real_ids: Sequence[str] | None = None, ties: spaces.Ties = "average",
    bandwidth: float | str = "real", device: str = "auto", memory: str | int = "2GB", threads: int | None = None,
    system: str = "", subset: str = "", suite: str = "", progress: bool = False,
) -> Fidelity:  # fmt: skip
    """Judge `generated` [M, D] against `real` [N, D]: is it like the real, and does it cover it? Returns Fidelity.

    Every metric is given as it is (correction "none") and, where it is defined, with hubness corrected ("gicdm").

    Args:
        real: One row for each real clip.
        generated: One row for each generated clip.
        metrics: Names, in a list or with commas; None is all but alpha_precision and beta_recall, which train a
            network; "all" is all.
        k: Neighbours that make a ball: one number (the cover pair keeps its 3), or a number for each metric by name.
        correct: "none", "gicdm" or both.
        reading: The clipped pair under GICDM has two readings: `clipped_density` is the corrected one,
            `clipped_density_literal` the literal one; or both.
        distance: One or several of cosine, euclidean, spearman.
        intervals: "jackknife" (both sets lose half of their points, 24 times, and everything is found anew; 7 to 13
            evaluations), "bootstrap" (the points that are judged are drawn and the balls that judge them held fixed, so
            it is too narrow) or "none".
        bootstrap: Resamples of the points; a number alone chooses that kind of interval, and 0 none.
        groups: The recording or speaker of each generated point: whole groups are left out.
        real_groups: The same of the real points.
        seed: Seed of smaller sets, resamples and the network.
        cap: Whether clipped_density is cut at 1.
        ids: Names of the generated rows.
        real_ids: Names of the real rows.
        ties: Ranks of equal values under spearman: "average", or "ordinal" as in published numbers.
        bandwidth: Of kad: whose points' median distance is the width of the kernel, "real" or "generated", or a number.
        device: Where distances are computed: cpu, cuda, cuda:1, or auto (a GPU if torch sees one and it pays).
        memory: Budget for tiles and batches, beside the vectors: "2GB", or a number of bytes.
        threads: Threads at work; None is one for each core. No result depends on it.
        system: Name of the generator, for the column `system`.
        subset: Name of the data, for the column `subset`.
        suite: Name of the suite, for the column `suite`.
        progress: Whether a bar on stderr shows how far the work is.

    >>> earmark.fidelity(real, generated).value("clipped_density", correction="gicdm")
    """
    refuse_reserved(subset, "subset")
    names = rules.plan(metrics, rules.DEFAULT)
    corrections = _chosen(as_names(correct, "correct"), CORRECTIONS, "correction")
    (reading,) = _chosen((reading,), READINGS, "reading")  # type: ignore[assignment]
    spaces_asked = _chosen(as_names(distance, "distance"), spaces.DISTANCES, "distance")
    kind, bootstrap = _kind_of(intervals, bootstrap)
    seed = whole("seed", seed, 0)
    reference, values = check_sets(real, generated)
    sets = reference.vectors, values
    work = Work(thread_count(threads), byte_count(memory), device)
    row_names = check_ids(ids, len(sets[1]), "generated "), check_ids(real_ids, len(sets[0]), "real ")
    dealt = jackknife.deal((len(sets[0]), len(sets[1])), (real_groups, groups), seed)
    draws = resampling.draw(len(sets[0]), len(sets[1]), bootstrap, seed) if kind == "bootstrap" else None
    wanted = [(which, name) for which in corrections for name in _names(names, which, reading)]
    results, digest = _Results(seed), digest_of(*sets)
    if "clipped_coverage" in {rules.facts(name).name for name in names}:
        results.notes += _unlike_sizes(*map(len, sets))
    how: dict[str, Any] = {"correct": "gicdm" in corrections, "ties": ties, "cap": cap, "seed": seed}
    how["bandwidth"] = check_bandwidth(bandwidth)
    total = (len(wanted) + (jackknife.SETS if kind == "jackknife" else 0)) * len(spaces_asked)
    with progress_bar(progress, total, "fidelity", "metric") as tick:
        for space in spaces_asked:
            started = time.perf_counter()
            meter = Meter(reference, values, names, k, space, work, units=dealt.codes, **how)
            outcomes = []
            for which, name in wanted:
                outcomes.append((which, meter.measured(name, corrected=which == "gicdm")))
                tick(1)
            results.points(meter, space, outcomes)
            cells: Mapping[tuple[str, str], _Cells] = {}
            if kind == "bootstrap":
                cells = _bootstrapped(outcomes, draws, dealt)
            elif kind == "jackknife":
                cells = _jackknifed(outcomes, dealt, sets, (names, k, space, work), how, tick)
            about: dict[str, Any] = {
                "suite": suite, "subset": subset, "system": system, "distance": space, "version": __version__,
                "seconds": time.perf_counter() - started,
            }  # fmt: skip
            units = hashlib.sha256(b"".join(codes.tobytes() for codes in dealt.codes)).hexdigest()[:16]
            chosen = f"{kind} {bootstrap} {units}"
            options = f"{digest} {space} {sorted(meter.k.items())} {chosen} {how} {__version__}"
            for which, score in outcomes:
                about["inputs"] = hashlib.sha256(f"{options} {which}".encode()).hexdigest()
                results.rows.append(_row(score, which, cells.get((which, score.metric)), sum(map(len, sets)), about))
    return Fidelity(
        rows=tuple(results.rows), notes=tuple(dict.fromkeys(results.notes)), per_sample=results.samples,
        per_real=results.reals,
        sample_ids=row_names[0], real_ids=row_names[1], too_few=results.too_few, at_shares=results.at_shares,
    )  # fmt: skip


class _Results:
    """What is results over the distances."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rows: list[Row] = []
        self.notes: list[str] = []
        self.samples: dict[PointKey, Floats] = {}
        self.reals: dict[PointKey, Floats] = {}
        self.too_few: dict[tuple[str, str, str], TooFew] = {}
        self.at_shares: dict[str, tuple[tuple[float, float], ...]] = {}

    def points(self, meter: Meter, space: str, outcomes: list[tuple[str, Judgement | Missing]]) -> None:
        """Values of single points, and notes on what is unusual about them."""
        side = meter.pair.real
        for owner in (side, meter.pair.generated):
            if owner.base.flat.any():
                flat = counted(int(owner.base.flat.sum()), f"{owner.name} vector")
                self.notes.append(f"{flat} without direction: distance 1 to all under {space}")
        for which, score in outcomes:
            if isinstance(score, Missing):
                self.too_few |= {} if score.too_few is None else {(space, which, score.metric): score.too_few}
                continue
            self.at_shares |= {score.metric: score.at_shares} if score.at_shares else {}
            for shown in (*filter(None, [score.shown]), *score.told):
                table = self.samples if shown.points == "generated" else self.reals
                table[(space, which, "all", score.metric)] = shown.values
        copies = None
        leading = [
            (which, name) for which in CORRECTIONS for name in HEADLINES if (space, which, "all", name) in self.samples
        ]  # fmt: skip
        if leading and not side.lacks(meter.k[leading[0][1]]):
            near = nearest(side.base, 1, queries=side.other, **side.work.options())
            self.samples[(space, "none", "all", "nearest_row")] = near.places[:, 0].astype(np.float64)
            copies = near_copies(side, near, seed=self.seed)
            self._plain(space, side.balls(meter.k[leading[0][1]]))
        corrected = next((name for which, name in leading if which == "gicdm"), None)
        if corrected is not None:
            self._corrected(space, side.corrected(meter.k[corrected]))
        if copies is not None:
            self._copied(space, copies)

    def _copied(self, space: str, copies: Copies) -> None:
        """A verdict where there are more (near) copies than chance brings; else samples at distance 0 are counted."""
        if copies.memorised:
            self.samples[(space, "none", "all", "copy")] = copies.near.astype(np.float64)
            kept = self.samples.get((space, "gicdm", "all", "kept"))
            dropped = "" if kept is None else f"; GICDM drops {int((copies.near & (kept == 0.0)).sum())} of them"
            self.notes.append(
                f"{_copies_of(int(copies.near.sum()), '(near) ')} ({space}), more than chance brings "
                f"(p = {copies.p_value:.3f}): a generator that memorises{dropped}"
            )
        elif copies.exact:
            their = "its distance 0" if copies.exact == 1 else "their number"
            self.notes.append(
                f"{_copies_of(copies.exact, '')} at distance 0 ({space}); {their} alone does not show that the "
                "generator memorises"
            )

    def _plain(self, space: str, balls: Balls) -> None:
        self.samples[(space, "none", "all", "reach")] = balls.reach
        copies = int((balls.radii == 0.0).sum())
        if copies:
            self.notes.append(
                f"{counted(copies, 'real point')} with at least {balls.k} exact copies ({space}): a ball of radius 0 "
                "holds nothing but more copies"
            )

    def _corrected(self, space: str, balls: Balls) -> None:
        judged = balls.adjusted
        assert judged is not None
        self.samples[(space, "gicdm", "all", "reach")] = np.where(judged.kept, balls.reach, np.nan)
        self.samples[(space, "gicdm", "all", "kept")] = judged.kept.astype(np.float64)
        self.samples[(space, "gicdm", "all", "misfit")] = judged.misfit
        self.samples[(space, "gicdm", "all", "factor")] = judged.factors
        lost, odd = int((~judged.kept).sum()), int((~balls.fitting).sum())
        self.notes.append(
            f"GICDM ({space}, k = {balls.k}): {lost} of {len(judged.kept)} generated points do not fit in with the "
            f"real ones; of the {len(balls.fitting)} real points {odd} do not"
        )


def _copies_of(count: int, near: str) -> str:
    if count == 1:
        return f"1 sample is a {near}copy of a real point"
    return f"{count} samples are {near}copies of real points"


def _unlike_sizes(real: int, generated: int) -> list[str]:
    if real <= 2 * generated and generated <= 2 * real:
        return []
    more = ", and coverage is the share of real points that are met" if generated < real else ""
    return [
        f"{generated} generated points and {real} real ones: clipped_coverage compares with what {generated} samples "
        f"of the real distribution would cover{more}"
    ]


def _chosen(given: tuple[str, ...], known: tuple[str, ...], what: str) -> tuple[str, ...]:
    if not given:
        raise UsageError(f"No {what} was asked for: choose from {', '.join(known)}.")
    for name in given:
        if name not in known:
            raise UsageError(
                f"Unknown {what} {name!r}: choose from {', '.join(known)}.{did_you_mean(str(name), known)}"
            )
    return given


def _names(names: tuple[str, ...], correction: str, reading: str) -> list[str]:
    """The rows of one correction. The clipped pair has a second reading only where something is corrected."""
    plain = [name for name in names if name not in rules.LITERALS]
    if correction == "none":
        return plain or [name.removesuffix(rules.LITERAL) for name in names]
    made = []
    for name in plain:
        twice = name in rules.READ_TWICE
        made += [name] if not twice or reading != "literal" else []
        made += [name + rules.LITERAL] if twice and reading != "corrected" else []
    return list(dict.fromkeys([*made, *(name for name in names if name in rules.LITERALS)]))


class _Cells(NamedTuple):
    """The cells of a row that tell its interval, and a remark for its reason."""

    values: dict[str, Any]
    reason: str = ""


def _kind_of(intervals: str | None, bootstrap: int | None) -> tuple[str, int]:
    """Which intervals, and how many resamples if they are bootstrapped."""
    if bootstrap is not None:
        bootstrap = whole("bootstrap", bootstrap, 0)
    if intervals is None:
        kind = "jackknife" if bootstrap is None else "bootstrap" if bootstrap else "none"
    else:
        (kind,) = _chosen((intervals,), INTERVALS, "kind of intervals")
    return kind, (RESAMPLES if bootstrap is None else bootstrap) if kind == "bootstrap" else 0


def _bootstrapped(
    outcomes: list[tuple[str, Judgement | Missing]], draws: resampling.Draws | None, dealt: jackknife.Deal
) -> dict[tuple[str, str], _Cells]:
    cells = {}
    for which, score in outcomes:
        low, high = (None, None) if draws is None or isinstance(score, Missing) else resampling.interval(score, draws)
        if low is None:
            cells[which, score.metric] = _Cells({}, "no interval: it is no mean over points that could be drawn again")
            continue
        interval_cells = {"low": low, "high": high, "interval": "bootstrap_points", "unit": "clip"}
        cells[which, score.metric] = _Cells({**interval_cells, "units": min(map(len, dealt.codes))})
    return cells


def _jackknifed(
    outcomes: list[tuple[str, Judgement | Missing]], dealt: jackknife.Deal, sets: tuple[Array, Array],
    setting: tuple[Any, ...], how: dict[str, Any], tick: Any,
) -> dict[tuple[str, str], _Cells]:  # fmt: skip
    """The same metrics of smaller sets, and the intervals that follow from how much they vary."""
    every = {(which, score.metric): score for which, score in outcomes if isinstance(score, Judgement)}
    measured = {key: score for key, score in every.items() if key[1] not in rules.NETWORK}
    names, k, space, work = setting

    def measure(real: NDArray[np.int64], generated: NDArray[np.int64]) -> dict[tuple[str, str], float]:
        tick(1)
        first, second = sets[0][real], sets[1][generated]
        if (first == first[0]).all():
            return {}
        # The wide scale of GICDM is as wide as a smaller set allows.
        units = dealt.codes[0][real], dealt.codes[1][generated]
        meter = Meter(Reference(first), second, names, k, space, work, shrink=True, units=units, **how)
        again = {key: meter.measured(key[1], corrected=key[0] == "gicdm") for key in measured}
        values = {key: score for key, score in again.items() if isinstance(score, Judgement)}
        return {key: score.value if score.uncut is None else score.uncut for key, score in values.items()}

    smaller = jackknife.values_on_smaller(dealt, list(measured), measure)
    cells = {key: _Cells({}, NO_INTERVAL) for key in every if key not in measured}
    for key, score in measured.items():
        ends = metric_facts(score.metric).range
        low, high, reason = jackknife.interval(score.value, smaller[key], dealt, ends, uncut=score.uncut)
        interval_cells = {"low": low, "high": high, "interval": "jackknife", "unit": dealt.unit, "units": dealt.units}
        cells[key] = _Cells({} if low is None else interval_cells, reason)
    return cells


def _row(score: Judgement | Missing, correction: str, cells: _Cells | None, points: int, about: dict[str, Any]) -> Row:
    if isinstance(score, Missing):
        return Row(metric=score.metric, correction=correction, status="not_applicable", reason=score.reason, **about)
    values, reason = cells or _Cells({})
    return Row(
        metric=score.metric, correction=correction, value=score.value, n=score.points or points,
        reason="; ".join(filter(None, [score.reason, reason])), **values, **about,
    )  # fmt: skip
