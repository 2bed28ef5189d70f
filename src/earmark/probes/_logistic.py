"""Logistic regression to its optimum, for one strength of the penalty after the other.

    minimise over W, b:   sum_i loss(W z_i + b, y_i) + ||W||² / (2 C)          the intercept b is not penalised

as scikit-learn's LogisticRegression states it (there times C). `Softmax` couples the columns of W (one for each class);
`Sigmoids` leaves them apart: one regression for each label, or a single one for two classes.

    vectors -- z-scores --> rows -- rotation --> nearly uncorrelated columns: the Hessian is nearly diagonal
                                                 |
    W -> logits -> slope -> gradient (float32, float64 at the end) -> Newton step by conjugate gradients (float32)

A step's direction solves the Newton equations inexactly, preconditioned by the diagonal of the Hessian as it were if
every clip counted alike; its length comes from the slope along it, which rounding does not blur. What is returned
holds the last step: how far it moved a logit says how far that logit still is from the optimum, since every step
leaves a small share of the one before it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Array = NDArray[Any]

ROTATED = 4096
"""Most rows or columns for which a rotation is computed: its cost grows with their third power."""
INNER = 200
"""Most conjugate gradient iterations for one step."""
PATIENCE = 12
"""Iterations of a step after which a better preconditioner pays for the next ones."""
NOISE = 1e-14
"""A gradient of the mean loss that is rounding."""
ACTIVE = 128
"""Rows of each column that it takes with their own weights."""


class Slope(NamedTuple):
    """At some logits: probabilities, derivative of the loss, and the diagonal of its second derivative."""

    probabilities: Array
    gradient: Array
    curvature: Array


class Link(Protocol):
    """How logits become a loss. `axis` is that of sums over one regression: None where all columns are one."""

    axis: int | None
    columns: int

    def slope(self, logits: Array) -> Slope: ...

    def bend(self, slope: Slope, change: Array) -> Array:
        """The second derivative times a change of the logits."""

    def loss(self, logits: Array) -> float: ...

    def decide(self, logits: Array) -> Array:
        """Logits whose largest column is the answer."""

    def project(self, direction: Array) -> Array:
        """The part of a direction that the loss sees."""


class Softmax:
    """Multinomial: one column for each of three or more classes."""

    axis: int | None = None

    def __init__(self, codes: Codes, classes: int) -> None:
        self.columns = classes
        self._codes, self._rows = codes, np.arange(len(codes))

    def slope(self, logits: Array) -> Slope:
        probabilities = np.exp(logits - logits.max(axis=1, keepdims=True))
        probabilities /= probabilities.sum(axis=1, keepdims=True)
        own = self._rows, self._codes
        gradient = probabilities.copy()
        gradient[own] = 0
        others = gradient.sum(axis=1)  # 1 - p of the own class, without cancellation where p is near 1
        gradient[own] = -others
        remainder = 1 - probabilities
        remainder[own] = others
        return Slope(probabilities, gradient, probabilities * remainder)

    def bend(self, slope: Slope, change: Array) -> Array:
        weighted = slope.probabilities * change
        weighted -= slope.probabilities * weighted.sum(axis=1, keepdims=True)
        return weighted

    def loss(self, logits: Array) -> float:
        top = logits.max(axis=1)
        spread = np.log(np.exp(logits - top[:, None]).sum(axis=1))
        return float((spread + top - logits[self._rows, self._codes]).sum(dtype=np.float64))

    def decide(self, logits: Array) -> Array:
        return logits

    def project(self, direction: Array) -> Array:
        """Without what all classes share: at the optimum it is 0, and rounding must not blow it up."""
        return np.asarray(direction - direction.mean(axis=1, keepdims=True))


class Sigmoids:
    """One logistic regression for each column of `present`, which says where the label applies."""

    axis: int | None = 0

    def __init__(self, present: NDArray[np.bool_]) -> None:
        self.columns = present.shape[1]
        self._sign = np.where(present, np.float32(-1), np.float32(1))

    def slope(self, logits: Array) -> Slope:
        from scipy.special import expit

        wrong = expit(self._sign * logits)  # probability of the other answer
        curvature = wrong * expit(-self._sign * logits)
        return Slope(wrong, self._sign * wrong, curvature)

    def bend(self, slope: Slope, change: Array) -> Array:
        return slope.curvature * change

    def loss(self, logits: Array) -> float:
        return float(np.logaddexp(0, self._sign * logits).sum(dtype=np.float64))

    def decide(self, logits: Array) -> Array:
        """For one column: two columns, of the first class and the second."""
        return np.concatenate([np.zeros_like(logits), logits], axis=1)

    def project(self, direction: Array) -> Array:
        return direction


class Fit(NamedTuple):
    """Weights [dimensions + 1, columns], the intercept last; the last step that led to them; the work it took."""

    weights: Floats
    step: Array
    logits: Array  # of the training rows, in the precision of the last gradient
    products: int = 0  # pairs of products with the training rows
    exact_steps: int = 0  # how many of the steps had a gradient in float64
    shape: Preconditioner | None = None  # of the Hessian, for the steps to come
    slope: float = np.inf  # largest entry of the gradient of the mean loss before the last step
    falling: bool = False  # whether it was at most half of that before the step before


class Preconditioner:
    """What is easily solved and near the Hessian of each column: a diagonal, and `active` rows with their own weights.

    With weak penalties a column's curvature lies on few clips: those near the border of its class. The others count as
    one, by their mean. By Woodbury's identity the rows add a small system for each column,

        (diagonal + E E')^-1 = diagonal^-1 - diagonal^-1 E (1 + E' diagonal^-1 E)^-1 E' diagonal^-1

    where E holds the active rows, each times the root of its weight above that mean.
    """

    def __init__(self, rows: Array, squares: Array, curvature: Array, penalty: Array, active: int = 0) -> None:
        count, columns = curvature.shape
        self.active = active = min(active, count // 2)
        self._rows = rows
        overall = curvature.mean(axis=0)
        chosen = np.argpartition(-curvature, active, axis=0)[:active] if active else np.zeros((0, columns), np.int64)
        weights = np.take_along_axis(curvature, chosen, axis=0)
        others = (count * overall - weights.sum(axis=0)) / (count - active)
        mean = np.maximum(others, np.float32(0.01) * overall)
        self._diagonal = squares * mean + penalty
        self._diagonal[-1] = squares[-1] * np.maximum(mean, np.float32(0.1) * overall)  # no penalty holds the intercept
        self._diagonal += np.float32(1e-12) * self._diagonal.max()
        self._places = chosen, np.arange(columns)[None]
        self._roots = np.sqrt(np.maximum(weights - mean, 0))
        self._small = np.zeros((columns, active, active), np.float32)
        for column in range(columns if active else 0):
            scaled = rows[chosen[:, column]] * self._roots[:, column, None]
            system = (scaled / self._diagonal[:, column]) @ scaled.T
            system[np.diag_indices(active)] += 1
            self._small[column] = np.linalg.inv(system)

    def solve(self, left: Array) -> Array:
        """The solution for this right-hand side."""
        plain = left / self._diagonal
        if not self.active:
            return np.asarray(plain)
        inner = (self._rows @ plain)[self._places] * self._roots
        inner = np.matmul(self._small, inner.T[:, :, None])[:, :, 0].T * self._roots
        spread = np.zeros((len(self._rows), left.shape[1]), np.float32)
        spread[self._places] = inner
        return np.asarray(plain - (self._rows.T @ spread) / self._diagonal)


class Regression:
    """The training rows of one fold, for which regressions of any strength are fitted.

    Args:
        rows: [n, dimensions], centred; nearly uncorrelated columns make it fast.
        link: How logits become a loss.
    """

    def __init__(self, rows: Floats, link: Link) -> None:
        self.link = link
        self.exact = with_ones(rows)
        self.light = self.exact.astype(np.float32)
        self._squares = np.einsum("ij,ij->j", self.light, self.light)[:, None]

    def start(self) -> Fit:
        """Weights of zero."""
        shape = self.exact.shape[1], self.link.columns
        zeros = np.zeros(shape)
        return Fit(zeros, zeros, np.zeros((len(self.exact), shape[1]), np.float32))

    def warm(self, C: float, last: Fit, before: Fit) -> Fit:
        """Where to begin for a larger C: on the line through the last two solutions, where it is lowest.

        For data that can be separated the weights grow with log C, and the line goes on to the next solution.
        """
        weights, logits = last.weights - before.weights, (last.logits - before.logits).astype(np.float32)
        starts = [
            Fit(last.weights + ahead * weights, 0 * weights, last.logits + np.float32(ahead) * logits, shape=last.shape)
            for ahead in (0, 1, 2, 4)
        ]
        lowest = min(starts, key=lambda fit: self._objective(C, fit))
        return lowest._replace(logits=lowest.logits.astype(np.float32))

    def improve(self, C: float, fit: Fit, tolerance: float, *, exact: bool = False, enough: float = -1.0) -> Fit:
        """One Newton step, whose equations are solved to this tolerance; with `exact` the gradient is in float64.

        No step is taken where the largest entry of the gradient of the mean loss is at most `enough`; by default one is
        always taken, also from an optimum.
        """
        if exact:
            rows, weights, logits = self.exact, fit.weights, self.exact @ fit.weights
        else:
            rows, weights, logits = self.light, fit.weights.astype(np.float32), fit.logits
        penalty = np.full((rows.shape[1], 1), 1 / C, rows.dtype)
        penalty[-1] = 0
        slope = self.link.slope(logits)
        gradient = rows.T @ slope.gradient + penalty * weights
        steepest = float(np.abs(gradient).max()) / len(rows)
        if steepest <= enough:
            return fit._replace(slope=steepest, products=fit.products + 1)
        slope32 = Slope(*(part.astype(np.float32, copy=False) for part in slope))
        penalty32 = penalty.astype(np.float32, copy=False)
        shape = fit.shape or Preconditioner(self.light, self._squares, slope32.curvature, penalty32)
        direction, change, count = self._direction(slope32, gradient, penalty32, shape, tolerance)
        length = self._length(logits, change, slope, weights, direction, penalty)
        step = length * direction
        if count > PATIENCE:
            fit = fit._replace(shape=Preconditioner(self.light, self._squares, slope32.curvature, penalty32, ACTIVE))
        products = fit.products + 1 + count * (2 if shape.active else 1)
        falling = steepest <= max(0.5 * fit.slope, NOISE)
        return Fit(
            fit.weights + step, step, logits + length * change, products, fit.exact_steps + exact, fit.shape, steepest,
            falling,
        )  # fmt: skip

    def _objective(self, C: float, fit: Fit) -> float:
        return self.link.loss(fit.logits) + float(np.square(fit.weights[:-1]).sum()) / (2 * C)

    def _dot(self, left: Array, right: Array) -> Any:
        """The product of two directions: a number, or one for each regression."""
        if self.link.axis is None:
            return np.vdot(left, right)
        return np.einsum("ij,ij->j", left, right)

    def _direction(
        self, slope: Slope, gradient: Array, penalty: Array, shape: Preconditioner, tolerance: float
    ) -> tuple[Array, Array, int]:
        """The Newton direction by conjugate gradients in float32, its change of the logits, and how many it took.

        They end when the residual is small and, whatever the preconditioner makes of it, so is what an iteration adds
        (times their number, as Nash has it).
        """
        project = self.link.project
        gradient = project(gradient)
        scale = np.sqrt(self._dot(gradient, gradient))
        left = -_ratio(gradient, scale).astype(np.float32)
        direction, change = np.zeros_like(left), np.zeros((len(self.light), left.shape[1]), np.float32)
        preconditioned = project(shape.solve(left))
        search = preconditioned.copy()
        size = first = self._dot(left, preconditioned)
        count, total = 0, 0 * size
        while count < INNER:
            count += 1
            moved = self.light @ search
            bent = self.light.T @ self.link.bend(slope, moved) + penalty * search
            amount = _ratio(size, self._dot(search, bent))
            direction += amount * search
            change += amount * moved
            left -= amount * project(bent)
            gain = amount * size
            total += gain
            preconditioned = project(shape.solve(left))
            size, former = self._dot(left, preconditioned), size
            if np.all((size <= tolerance**2 * first) & (count * gain <= tolerance * total)):
                break
            search *= _ratio(size, former)
            search += preconditioned
        scale = np.asarray(scale, gradient.dtype)
        return scale * direction, scale * change, count

    def _length(
        self, logits: Array, change: Array, slope: Slope, weights: Array, direction: Array, penalty: Array
    ) -> Array:
        """How far to go: the whole step, or less where the slope along it has turned upwards."""
        along = self._dot(penalty * weights, direction)
        across = self._dot(penalty * direction, direction)
        first = -(self._dot(slope.gradient, change) + along)  # positive
        length = np.ones_like(first)
        for _ in range(20):
            rise = self._dot(self.link.slope(logits + length * change).gradient, change) + along + length * across
            steep = rise > 0.3 * first
            if not np.any(steep):
                break
            length = np.where(steep, length * _ratio(first, first + rise), length).astype(first.dtype)
        return np.asarray(length)


def with_ones(rows: Array) -> Array:
    """Rows with a last column of ones, for the intercept."""
    return np.asarray(np.concatenate([rows, np.ones((len(rows), 1), rows.dtype)], axis=1))


def _ratio(above: Any, below: Any) -> Any:
    """The ratio, and 0 where a regression has nothing left to do."""
    safe = np.where(below > 0, below, 1)
    return np.where(below > 0, above / safe, 0).astype(np.result_type(above), copy=False)


def undecided(logits: Array, change: Array, safety: float) -> NDArray[np.bool_]:
    """Rows whose largest logit might be another one after `safety` times this change."""
    rows = np.arange(len(logits))
    top = logits.argmax(axis=1)
    lead = logits[rows, top][:, None] - logits
    moved = np.abs(change[rows, top][:, None] - change)
    close = lead <= safety * moved
    close[rows, top] = False
    return np.asarray(close.any(axis=1))


def rotation_of(vectors: Floats) -> Floats | None:
    """The principal axes of z-scored vectors, or None where there are too many columns to compute them."""
    if vectors.shape[1] > min(len(vectors), ROTATED):
        return None
    spread = vectors.std(axis=0)
    scores = (vectors - vectors.mean(axis=0)) / np.where(spread > 0, spread, 1)
    return np.asarray(np.linalg.eigh(scores.T @ scores)[1])


def rotate(rows: Floats, rotation: Floats | None) -> Callable[[Floats], Floats]:
    """The map of rows into coordinates in which the training rows are nearly uncorrelated, and of no more columns.

    A penalty of squares does not change under a rotation, and weights outside the span of the training rows are 0 at
    the optimum. With fewer rows than columns the span's own axes are taken; `rotation` serves in all other cases.
    """
    count, width = rows.shape
    if rotation is not None and width <= count:
        return lambda others: others @ rotation
    if width <= count or count > ROTATED:
        return lambda others: others
    values, axes = np.linalg.eigh(rows @ rows.T)
    kept = values > values[-1] * count * np.finfo(np.float64).eps
    span = np.linalg.qr(rows.T @ (axes[:, kept] / np.sqrt(values[kept])))[0]  # small values left it a little skewed
    return lambda others: others @ span


__all__ = ["Fit", "Link", "Regression", "Sigmoids", "Softmax", "rotate", "rotation_of", "undecided", "with_ones"]
