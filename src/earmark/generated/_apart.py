"""Metrics of the distance between two sets of points, with what must be said of their values and of single points."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.errors import UsageError
from earmark.generated import _distributions as distributions
from earmark.generated._excess import BENT, Line, excess, fad_inf
from earmark.generated.metrics import Judgement, Term, Undefined
from earmark.wording import counted
from earmark.workers import Workers

Array = NDArray[Any]
Ints = NDArray[np.int64]

BANDWIDTHS = ("real", "generated")
REMARKABLE = 0.1  # the share of a Fréchet distance from which on its excess is told
MOST_POINTS = 50_000  # of a kernel distance: a minute or two, and as many for its interval
LEAST_UNITS = 4  # of fad_inf, in each set
LARGE = 512  # rows from which on a decomposition is shared by threads
LARGEST = 1e150  # whose square can still be summed
TOO_LARGE = "the vectors' values are too large for it: rescale them first"


def check_bandwidth(bandwidth: object) -> float | str:
    """Whose median distance is the width of kad's kernel, or the width itself."""
    if bandwidth in BANDWIDTHS:
        return str(bandwidth)
    try:
        width = float(str(bandwidth))
    except ValueError:
        width = math.nan
    if not (math.isfinite(width) and width > 0.0):
        raise UsageError(f"bandwidth must be real, generated or a number over 0, not {bandwidth!r}.")
    return width


@dataclass(frozen=True)
class Apart:
    """A real and a generated set whose distance is asked for.

    Args:
        real: The real points.
        generated: The generated points.
        units: The clip or group of every point by number, one of both sets under one number.
        threads: Threads at work.
        seed: Seed of smaller sets.
        bandwidth: Of kad: whose median distance, or the width itself.
        smaller: Whether the sets are parts of larger ones, whose values alone are wanted.
    """

    real: Array
    generated: Array
    units: tuple[Ints, Ints]
    threads: int = 1
    seed: int = 0
    bandwidth: float | str = "real"
    smaller: bool = False

    def judge(self, name: str) -> Judgement:
        """A metric of distance, or Undefined with the reason."""
        if max(float(np.abs(points).max()) for points in (self.real, self.generated)) > LARGEST:
            raise Undefined(TOO_LARGE)
        # Several threads make a decomposition of a small matrix slower, on a busy machine a hundred times.
        blas = self.threads if min(self._points, self.real.shape[1]) > LARGE else 1
        with np.errstate(over="ignore", invalid="ignore"), Workers(1, blas=blas):
            judged: Judgement = getattr(self, f"_{name}")(name)
        if not math.isfinite(judged.value):
            raise Undefined(TOO_LARGE)
        return judged

    @property
    def _points(self) -> int:
        """Points of the smaller set."""
        return min(len(self.real), len(self.generated))

    def _frechet_distance(self, name: str) -> Judgement:
        real, generated = distributions.gaussian(self.real), distributions.gaussian(self.generated)
        value = distributions.frechet_distance(real, generated)
        if self.smaller:
            return Judgement((), lambda: value, metric=name)
        told = []
        if len(self.real) > 2:
            told.append(Term("real", distributions.frechet_effects(self.real, real, generated)))
        if len(self.generated) > 2:
            told.append(Term("generated", distributions.frechet_effects(self.generated, generated, real)))
        return Judgement((), lambda: value, self._excess_of(value), metric=name, told=tuple(told))

    def _excess_of(self, value: float) -> str:
        """What a reader must know of a value of so few points."""
        dims = self.real.shape[1]
        much = excess(self.real, len(self.generated), self.units[0], seed=self.seed)
        lost = self._points <= dims
        if value == 0.0 or not (lost or much >= REMARKABLE * value):
            return ""
        said = f"{counted(self._points, 'point')} in {counted(dims, 'dimension')}"
        said += ": the covariances have lost rank" if lost else ""
        if not math.isnan(much):
            share = f"{100.0 * much / value:.0f} % of it" if much <= value else "more than it"
            at = f"{'at least' if lost else 'about'} {_figure(much)} ({share})"
            said += f"; sets of this size from one distribution would be {at} apart, by parts of the real set"
        return said + ("; kad has no such excess" if lost else "; fad_inf and kad have no such excess")

    def _fad_inf(self, name: str) -> Judgement:
        units = min(len(np.unique(codes)) for codes in self.units)
        dims = self.real.shape[1]
        if not self.smaller and (units < LEAST_UNITS or self._points <= dims):
            few = f"{counted(self._points, 'point')} of {counted(units, 'clip')} in {counted(dims, 'dimension')}"
            raise Undefined(
                f"{few}: it needs more points than dimensions and {LEAST_UNITS} clips in each set; kad does with fewer"
            )
        line = fad_inf(self.real, self.generated, self.units, seed=self.seed, brief=self.smaller)
        said = "" if self.smaller else _fitted(line)
        return Judgement((), lambda: line.value, said, metric=name, at_shares=line.at_shares)

    def _kernel_distance(self, name: str) -> Judgement:
        self._check_pairs()
        return _of_kernel(distributions.kernel_distance(self.real, self.generated, threads=self.threads), name)

    def _kad(self, name: str) -> Judgement:
        self._check_pairs()
        width, whose = self._width()
        if width == 0.0:
            raise Undefined("its bandwidth is 0: half of the pairs of points are copies; give one with --bandwidth")
        found = distributions.kad(self.real, self.generated, bandwidth=width, threads=self.threads)
        return _of_kernel(found, name, f"bandwidth {width:.6g}{whose}, 100 times the squared discrepancy")

    def _width(self) -> tuple[float, str]:
        if not isinstance(self.bandwidth, str):
            return self.bandwidth, ""
        points = self.real if self.bandwidth == "real" else self.generated
        with Workers(self.threads) as workers:
            centred = points - points.mean(axis=0, dtype=np.float64)
            return distributions.median_distance(centred, workers), f" (median distance of {self.bandwidth} points)"

    def _check_pairs(self) -> None:
        most = max(len(self.real), len(self.generated))
        if most > MOST_POINTS:
            raise Undefined(
                f"{most} points have too many pairs ({MOST_POINTS} points at most): take a vector for each clip or "
                "second, or fewer clips"
            )


def _figure(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _fitted(line: Line) -> str:
    said = f"{_figure(line.whole)} with all points, {_figure(line.halves)} with half of them"
    if math.isnan(line.bend):
        return said
    said += f", {_figure(line.quarters)} with a quarter"
    if abs(line.bend) < BENT:
        return said
    return f"{said}: a poor fit, bent by {100 * line.bend:+.0f} %, so that some of the excess may be left"


def _of_kernel(kernel: distributions.Kernel, name: str, reason: str = "") -> Judgement:
    terms = Term("real", kernel.real), Term("generated", kernel.generated)
    effects = Term("real", kernel.real_effects), Term("generated", kernel.generated_effects)
    value = kernel.value
    told = tuple(term for term in effects if np.isfinite(term.values).all())
    return Judgement(terms, lambda x, y: x + y - value, reason, metric=name, told=told)
