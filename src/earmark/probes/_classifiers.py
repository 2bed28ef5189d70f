"""Classifiers of a probe: how they are spelled, the grids of the VocSim papers, and one fit of one of them.

    knn:k=3                     KNeighborsClassifier(n_neighbors=3): Euclidean, every neighbour one vote
    forest:depth=10             RandomForestClassifier(max_depth=10, class_weight="balanced"): 100 trees
    mlp:hidden=200x200,alpha=1  MLPClassifier(hidden_layer_sizes=(200, 200), alpha=1): Adam, at most 200 iterations

Each stands behind a StandardScaler that is fitted on the training part alone. The papers state the grids and the
scaler; the size of the hidden layer for strain, the number of trees and the iterations they do not, and those are
scikit-learn's defaults.
"""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.errors import UsageError, did_you_mean
from earmark.vectors import Distances

Indices = NDArray[np.int64]

TOP = 5

_GRID_VALUES = tuple[Any, ...]
_STRAIN: dict[str, dict[str, _GRID_VALUES]] = {
    "knn": {"k": (3, 10, 30)},
    "forest": {"depth": (10, 15, 20)},
    "mlp": {"hidden": ((100,),), "alpha": (0.1, 0.01, 0.001)},
}
PRESETS: dict[str, dict[str, dict[str, _GRID_VALUES]]] = {
    "strain": _STRAIN,
    "identity": {"mlp": {"hidden": ((400,), (200, 200)), "alpha": (0.01, 0.001, 0.0001)}},
}
"""Grids by the task of the papers that they belong to; the first serves where no task is named."""

_KINDS: dict[str, dict[str, type]] = {
    "knn": {"k": int},
    "forest": {"depth": int, "trees": int},
    "mlp": {"hidden": tuple, "alpha": float, "iterations": int},
}
FAMILIES = tuple(_KINDS)


class Setting(NamedTuple):
    """A classifier with its parameters."""

    family: str
    parameters: tuple[tuple[str, Any], ...]

    def __str__(self) -> str:
        words = [f"{name}={_spelled(value)}" for name, value in self.parameters]
        return self.family + (":" + ",".join(words) if words else "")


class Fit(NamedTuple):
    """What a classifier made of the clips it was tested on: classes, whether the right one is among the first five."""

    answers: Indices
    among_first: NDArray[np.float64]
    seconds: float
    unfinished: bool = False  # stopped at its last iteration
    error: str = ""


def parse_classifiers(given: str | Iterable[str], preset: str | None = None) -> dict[str, tuple[Setting, ...]]:
    """Settings by family, in the order asked for.

    A family alone (`knn`) means its grid; parameters follow a colon, and several settings are separated by commas, as
    their parameters are: `knn,mlp:hidden=400,alpha=0.01,mlp:hidden=400,alpha=0.1`. Nothing is all families of the grid.
    """
    if preset is not None and preset not in PRESETS:
        raise UsageError(f'Unknown preset "{preset}": choose {" or ".join(PRESETS)}.{did_you_mean(preset, PRESETS)}')
    grids = {**_STRAIN, **PRESETS[preset or "strain"]}
    words = _words(given) or list(PRESETS[preset or "strain"])
    settings: dict[str, list[Setting]] = {}
    for word in words:
        name, _, rest = word.partition(":")
        family = name.strip().lower()
        if family not in _KINDS:
            hint = did_you_mean(family, FAMILIES)
            raise UsageError(f'There is no classifier "{family}": choose from {", ".join(FAMILIES)}.{hint}')
        chosen = settings.setdefault(family, [])
        chosen += [_setting(family, rest)] if rest.strip() else _grid(family, grids[family])
    return {family: tuple(dict.fromkeys(chosen)) for family, chosen in settings.items()}


def _words(given: str | Iterable[str]) -> list[str]:
    """Settings of a text or of several, each with its parameters."""
    words: list[str] = []
    for text in [given] if isinstance(given, str) else given:
        for part in filter(None, (part.strip() for part in str(text).split(","))):
            if re.fullmatch(r"\w+\s*=.*", part) and words:
                words[-1] += ("," if ":" in words[-1] else ":") + part
            else:
                words.append(part)
    return words


def _grid(family: str, grid: Mapping[str, _GRID_VALUES]) -> list[Setting]:
    return [Setting(family, tuple(zip(grid, values, strict=True))) for values in product(*grid.values())]


def _setting(family: str, text: str) -> Setting:
    known = _KINDS[family]
    given: dict[str, Any] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = (word.strip() for word in part.partition("="))
        if not equals or name not in known:
            raise UsageError(f"{part!r} is no parameter of {family}: it takes {' and '.join(known)}.")
        given[name] = _value(family, name, known[name], value)
    defaults = {name: values[0] for name, values in _STRAIN[family].items()}
    return Setting(family, tuple({**defaults, **given}.items()))


def _value(family: str, name: str, kind: type, text: str) -> Any:
    try:
        if kind is tuple:
            value: Any = tuple(int(part) for part in re.split(r"[x+]", text))
            fine = min(value) >= 1
        else:
            value = kind(text)
            fine = value >= (0 if kind is float else 1) and np.isfinite(value)
    except ValueError:
        fine = False
    if not fine:
        example = {tuple: "200x200", float: "0.01", int: "10"}[kind]
        raise UsageError(f"{name}={text} is no value of {family}: write it like {name}={example}.")
    return value


def _spelled(value: Any) -> str:
    return "x".join(map(str, value)) if isinstance(value, tuple) else f"{value:g}"


class Elsewhere(NamedTuple):
    """Distances that were computed elsewhere, of the rows that stay: neighbours alone can learn from them."""

    distances: Distances
    rows: Indices

    def block(self, rows: Indices, columns: Indices) -> NDArray[np.float64]:
        return self.distances.block(self.rows[rows], self.rows[columns])


def make_pipeline(setting: Setting, seed: int) -> Any:
    """The scaler and the classifier, not fitted."""
    from sklearn import pipeline
    from sklearn.preprocessing import StandardScaler

    return pipeline.make_pipeline(StandardScaler(), _classifier(setting, seed))


def _classifier(setting: Setting, seed: int, metric: str = "minkowski") -> Any:
    of = dict(setting.parameters)
    if setting.family == "knn":
        from sklearn.neighbors import KNeighborsClassifier

        return KNeighborsClassifier(n_neighbors=of["k"], metric=metric)
    if setting.family == "forest":
        from sklearn.ensemble import RandomForestClassifier

        return RandomForestClassifier(
            max_depth=of["depth"], n_estimators=of.get("trees", 100), class_weight="balanced", random_state=seed
        )
    from sklearn.neural_network import MLPClassifier

    return MLPClassifier(
        hidden_layer_sizes=of["hidden"], alpha=of["alpha"], max_iter=of.get("iterations", 200), random_state=seed
    )


def seconds_of(setting: Setting, train: int, test: int, dims: int, classes: int) -> float:
    """How long a fit takes, to the right order of magnitude."""
    of = dict(setting.parameters)
    if setting.family == "knn":
        return 1e-2 + 3e-10 * train * test * dims
    if setting.family == "forest":
        return float(of.get("trees", 100) * (2e-3 + 8e-8 * train * np.log2(train + 1) * dims**0.5))
    widths = (dims, *of["hidden"], classes)
    weights = sum(a * b for a, b in pairwise(widths))
    return float(of.get("iterations", 200) * -(-train // 200) * (5e-4 + 5e-8 * weights))


def fit(
    setting: Setting, points: NDArray[Any] | Elsewhere, codes: Indices, train: Indices, test: Indices, seed: int
) -> Fit:
    """Learn from `train`, answer for `test`. BLAS keeps to one thread, so that no digit depends on the machine."""
    from threadpoolctl import threadpool_limits

    started = time.perf_counter()
    if setting.family == "knn" and (k := dict(setting.parameters)["k"]) > len(train):
        return _failed(f"k = {k} is more than the {len(train)} clips to learn from")
    if isinstance(points, Elsewhere):
        model = _classifier(setting, seed, "precomputed")
        learnt, asked = points.block(train, train), points.block(test, train)
    else:
        model = make_pipeline(setting, seed)
        learnt, asked = points[train], points[test]
    with threadpool_limits(limits=1):
        try:
            model.fit(learnt, codes[train])
            chances = model.predict_proba(asked)
            # A forest's `predict` is the most probable class, and would ask all trees again.
            certain = setting.family == "forest"
            answers = model.classes_[chances.argmax(axis=1)] if certain else model.predict(asked)
        except ValueError as error:
            return _failed(f"scikit-learn cannot fit it: {' '.join(str(error).split()).partition('. ')[0].rstrip('.')}")
    unfinished = setting.family == "mlp" and model[-1].n_iter_ >= model[-1].max_iter
    hits = among_first(chances, np.asarray(model.classes_), codes[test])
    return Fit(np.asarray(answers, np.int64), hits, time.perf_counter() - started, unfinished)


@contextmanager
def quiet() -> Iterator[None]:
    """No warnings of fits that stop at their last iteration: rows count them. For all threads of the process."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def fit_quietly(*given: Any) -> Fit:
    """`fit` in a process of its own."""
    with quiet():
        return fit(*given)


def _failed(error: str) -> Fit:
    return Fit(np.zeros(0, np.int64), np.zeros(0), 0.0, error=error)


def among_first(chances: NDArray[np.float64], classes: Indices, codes: Indices, top: int = TOP) -> NDArray[np.float64]:
    """How likely each clip's class is among the `top` most probable, if equally probable ones stand in any order.

    1 or 0 without ties. Of nearest neighbours most classes have no vote, and which of them come first means nothing;
    a class that was not learnt is never there.
    """
    places = np.minimum(np.searchsorted(classes, codes), len(classes) - 1)
    learnt = classes[places] == codes
    own = chances[np.arange(len(codes)), places][:, None]
    above, equal = (chances > own).sum(axis=1), (chances == own).sum(axis=1)
    return np.where(learnt, np.clip((top - above) / equal, 0.0, 1.0), 0.0)
