"""From two sets of vectors to a score table: `earmark.fidelity`. Nothing here knows of audio."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from earmark._version import __version__
from earmark.errors import InputError, UsageError, did_you_mean
from earmark.evaluation.options import as_names, byte_count, whole
from earmark.fidelity import bootstrap as intervals
from earmark.fidelity import catalogue
from earmark.fidelity.balls import Balls, Side
from earmark.fidelity.gicdm import Work
from earmark.fidelity.measure import Measured, Meter, Missing, check_sets
from earmark.geometry import spaces
from earmark.geometry.neighbours import nearest
from earmark.geometry.sweep import Neighbours
from earmark.scores import PointKey, Row, Scores
from earmark.wording import counted
from earmark.workers import thread_count

Array = NDArray[Any]
Floats = NDArray[np.float64]

CORRECTIONS = ("none", "gicdm")
READINGS = ("both", "corrected", "literal")
NEAR_COPY = 0.1
"""A sample is a near copy when it is this much nearer to a real point than that point's nearest other real one."""
HEADLINES = ("clipped_density", "density", "precision", "p_precision", "sym_precision", "precision_cover")
"""What samples are ordered by: the first of these that was measured, corrected if it was."""


@dataclass(frozen=True, slots=True, eq=False)
class Fidelity(Scores):
    """Scores of generated against real points, with the value of every point.

    `per_sample` maps (distance, correction, "all", metric) to a value for each generated point, `per_real` to one for
    each real point. Beside the metrics, samples have `nearest_row` (the nearest real point) and `reach` (distance to a
    real point in radii of its ball, the smallest: over 1 is outside of all), and under GICDM `kept` (1 or 0), `misfit`
    (how little a sample fits in: over 1 is dropped, and has no reach) and `factor`. `copy` (1 or 0) is there when more
    samples than chance allows are (near) copies of real points.
    """

    per_sample: Mapping[PointKey, Floats] = field(default_factory=dict)
    per_real: Mapping[PointKey, Floats] = field(default_factory=dict)
    sample_ids: tuple[str, ...] | None = None
    real_ids: tuple[str, ...] | None = None

    def __repr__(self) -> str:
        sizes = [
            counted(len(next(iter(points.values()))), noun)
            for points, noun in ((self.per_sample, "sample"), (self.per_real, "real point"))
            if points
        ]
        return f"Fidelity({', '.join([counted(len(self.rows), 'row'), *sizes])})"

    def worst(self, count: int | None = None, *, distance: str | None = None) -> NDArray[np.int64]:
        """Rows of generated points, the least real first: by the leading metric, then by misfit, then by reach."""
        key = self.leading(distance)
        score = self.per_sample[key]
        nothing = np.zeros(len(score))
        misfit = self.per_sample.get((*key[:3], "misfit"), nothing)
        reach = self.per_sample.get((key[0], "none", "all", "reach"), nothing)
        order = np.lexsort((np.arange(len(score)), -reach, -misfit, score))
        return np.asarray(order[:count], np.int64)

    def leading(self, distance: str | None = None) -> PointKey:
        """The per-sample score that samples are ordered by."""
        for correction in reversed(CORRECTIONS):
            for metric in HEADLINES:
                for key in self.per_sample:
                    if key[1] == correction and key[3] == metric and distance in (None, key[0]):
                        return key
        raise InputError(
            f"No score of single samples was measured: ask for one of {', '.join(HEADLINES)}, with a k that fits."
        )


def fidelity(
    real: Any,
    generated: Any,
    *,
    metrics: str | Sequence[str] | None = None,
    k: int | Mapping[str, int] = 5,
    correct: str | Sequence[str] = CORRECTIONS,
    reading: Literal["both", "corrected", "literal"] = "both",
    distance: str | Sequence[str] = "euclidean",
    bootstrap: int = 300,
    seed: int = 0,
    cap: bool = True,
    ids: Sequence[str] | None = None,
    real_ids: Sequence[str] | None = None,
    ties: spaces.Ties = "average",
    device: str = "auto",
    memory: str | int = "2GB",
    threads: int | None = None,
    system: str = "",
    subset: str = "",
    suite: str = "",
    progress: bool = False,
) -> Fidelity:
    """Judge `generated` [M, D] against `real` [N, D]: is it like the real, and does it cover it? Returns Fidelity.

    Every metric is given as it is (correction "none") and, where it is defined, with hubness corrected ("gicdm").
    `metrics` defaults to all but alpha_precision and beta_recall, which train a network; "all" is all. `k` is one
    number (the cover pair keeps its 3) or a number for each metric by name. The clipped pair under GICDM has two
    `reading`s: `clipped_density` is the corrected one, `clipped_density_literal` the literal one. `bootstrap` resamples
    of the points give intervals; balls are held. `cap` cuts clipped_density at 1. `ids` and `real_ids` name the rows.

    >>> earmark.fidelity(real, generated).value("clipped_density", correction="gicdm")
    """
    names = catalogue.plan(metrics, catalogue.DEFAULT)
    corrections = _chosen(as_names(correct, "correct"), CORRECTIONS, "correction")
    (reading,) = _chosen((reading,), READINGS, "reading")  # type: ignore[assignment]
    spaces_asked = _chosen(as_names(distance, "distance"), spaces.DISTANCES, "distance")
    bootstrap, seed = whole("bootstrap", bootstrap, 0), whole("seed", seed, 0)
    reference, values = check_sets(real, generated)
    sets = reference.vectors, values
    work = Work(thread_count(threads), byte_count(memory), device)
    named = _named(ids, len(sets[1]), "generated"), _named(real_ids, len(sets[0]), "real")
    draws = intervals.draw(len(sets[0]), len(sets[1]), bootstrap, seed) if bootstrap else None
    asked = [(which, name) for which in corrections for name in _names(names, which, reading)]
    found, digest = _Found(), _digest(sets)
    if "clipped_coverage" in {catalogue.facts(name).name for name in names}:
        found.notes += _unlike_sizes(*map(len, sets))
    with _bar(progress, len(asked) * len(spaces_asked)) as tick:
        for space in spaces_asked:
            started = time.perf_counter()
            meter = Meter(
                reference, values, names, k, space, work, correct="gicdm" in corrections, ties=ties, cap=cap, seed=seed
            )  # fmt: skip
            outcomes = []
            for which, name in asked:
                outcomes.append((which, meter.measured(name, corrected=which == "gicdm")))
                tick(1)
            found.points(meter, space, outcomes)
            about: dict[str, Any] = {
                "suite": suite, "subset": subset, "system": system, "distance": space, "version": __version__,
                "seconds": time.perf_counter() - started,
            }  # fmt: skip
            options = f"{digest} {space} {sorted(meter.k.items())} {bootstrap} {seed} {cap} {ties} {__version__}"
            for which, one in outcomes:
                about["inputs"] = hashlib.sha256(f"{options} {which}".encode()).hexdigest()
                found.rows.append(_row(one, which, draws, sum(map(len, sets)), about))
    return Fidelity(
        rows=tuple(found.rows), notes=tuple(dict.fromkeys(found.notes)), per_sample=found.samples, per_real=found.reals,
        sample_ids=named[0], real_ids=named[1],
    )  # fmt: skip


class _Found:
    """What is collected over the distances."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.notes: list[str] = []
        self.samples: dict[PointKey, Floats] = {}
        self.reals: dict[PointKey, Floats] = {}

    def points(self, meter: Meter, space: str, outcomes: list[tuple[str, Measured | Missing]]) -> None:
        """Values of single points, and notes on what is unusual about them."""
        side = meter.pair.real
        for one_side in (side, meter.pair.generated):
            if one_side.base.flat.any():
                flat = counted(int(one_side.base.flat.sum()), f"{one_side.name} vector")
                self.notes.append(f"{flat} without direction: distance 1 to all under {space}")
        for which, one in outcomes:
            shown = one.shown if isinstance(one, Measured) else None
            if shown is not None:
                table = self.samples if shown.points == "generated" else self.reals
                table[(space, which, "all", one.metric)] = shown.values
        copies = None
        leading = [
            (which, name) for which in CORRECTIONS for name in HEADLINES if (space, which, "all", name) in self.samples
        ]  # fmt: skip
        if leading and not side.lacks(meter.k[leading[0][1]]):
            near = nearest(side.base, 1, queries=side.other, **side.work.options())
            self.samples[(space, "none", "all", "nearest_row")] = near.places[:, 0].astype(np.float64)
            copies = near_copies(near, side)
            self._plain(space, side.balls(meter.k[leading[0][1]]))
        corrected = next((name for which, name in leading if which == "gicdm"), None)
        if corrected is not None:
            self._corrected(space, side.corrected(meter.k[corrected]))
        if copies is not None:
            self._copied(space, copies)

    def _copied(self, space: str, copies: NDArray[np.bool_]) -> None:
        self.samples[(space, "none", "all", "copy")] = copies.astype(np.float64)
        kept = self.samples.get((space, "gicdm", "all", "kept"))
        dropped = "" if kept is None else f"; GICDM drops {int((copies & (kept == 0.0)).sum())} of them"
        count = int(copies.sum())
        said = f"{count} samples are (near) copies of real points"
        if count == 1:
            said = "1 sample is a (near) copy of a real point"
        self.notes.append(f"{said} ({space}): a generator that memorises{dropped}")

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


def near_copies(near: Neighbours, side: Side) -> NDArray[np.bool_] | None:
    """Which samples lie on top of a real point, or nearly so; None when there are no more than chance brings.

    In few dimensions, and where the real set has doubles, some good samples do too. How many is measured on the real
    points themselves: each against all others, as if it had been generated.
    """
    n, samples = side.base.n, len(near.places)
    if n < 3:
        return None
    known = side.neighbours
    if known.places.shape[1] < 2:
        known = nearest(side.base, 2, **side.work.options())
    found = _much_nearer(near.distances[:, 0], known.distances[near.places[:, 0], 0])
    partner = known.places[:, 0]
    mutual = known.places[partner, 0] == np.arange(n)
    expected = samples * float(_much_nearer(known.distances[:, 0], known.distances[partner, mutual.astype(int)]).mean())
    return found if found.sum() > expected + 3.0 * np.sqrt(expected) else None


def _much_nearer(distances: Floats, own: Floats) -> NDArray[np.bool_]:
    return np.asarray((distances < NEAR_COPY * own) | (distances == 0.0))


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
    plain = [name for name in names if name not in catalogue.LITERALS]
    if correction == "none":
        return plain or [name.removesuffix(catalogue.LITERAL) for name in names]
    made = []
    for name in plain:
        twice = name in catalogue.READ_TWICE
        made += [name] if not twice or reading != "literal" else []
        made += [name + catalogue.LITERAL] if twice and reading != "corrected" else []
    return list(dict.fromkeys([*made, *(name for name in names if name in catalogue.LITERALS)]))


def _row(
    one: Measured | Missing, correction: str, draws: intervals.Draws | None, points: int, about: dict[str, Any]
) -> Row:
    if isinstance(one, Missing):
        return Row(metric=one.metric, correction=correction, status="not_applicable", reason=one.reason, **about)
    low, high = (None, None) if draws is None else intervals.interval(one, draws)
    return Row(
        metric=one.metric, correction=correction, value=one.value, low=low, high=high, n=one.points or points,
        reason=one.reason, **about,
    )  # fmt: skip


def _named(ids: Sequence[str] | None, n: int, what: str) -> tuple[str, ...] | None:
    if ids is None:
        return None
    if len(ids) != n:
        raise InputError(f"There are {n} {what} vectors and {len(ids)} ids: they must pair up one to one.")
    return tuple(str(name) for name in ids)


def _digest(sets: tuple[Array, Array]) -> str:
    digest = hashlib.sha256()
    for values in sets:
        digest.update(f"{values.dtype.str}{values.shape}".encode())
        digest.update(np.ascontiguousarray(values).data.cast("B"))
    return digest.hexdigest()


@contextmanager
def _bar(progress: bool, total: int) -> Iterator[Any]:
    """A progress bar on stderr that appears only when the work takes over two seconds."""
    if not progress:
        yield lambda _: None
        return
    from tqdm import tqdm

    shape = "{l_bar}{bar}| {elapsed} so far, {remaining} left"
    with tqdm(total=total, desc="fidelity", unit="metric", delay=2.0, leave=False, bar_format=shape) as bar:
        yield bar.update
