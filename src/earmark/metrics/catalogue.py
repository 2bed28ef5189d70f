"""Which metrics an evaluation measures: their names in order, what they need, and metrics of one's own.

A metric of one's own is a function, named by an import path: `mypackage.mymodule:my_metric` or `mine.py:my_metric`. Its
arguments say what it needs (`OFFERED`), and it returns one number, or one for each clip, whose mean is the value.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence

from earmark.errors import UsageError, did_you_mean
from earmark.registry import load_path
from earmark.runs.strangers import stated_by
from earmark.scores.metrics import BY_PATH, METRICS, Metric, family, named, of_function, register
from earmark.scores.spelling import split_metric

FAMILIES = ("retrieval", "labels", "separation", "clustering", "hubness")
RETRIEVAL, LABELS, SEPARATION, CLUSTERED, HUBNESS = map(family, FAMILIES)
CLUSTERING = tuple(name for name in CLUSTERED if METRICS[name].needs == ("kmeans",))
DEFAULT = ("P@k", *SEPARATION, *HUBNESS)
KNOWN = ("P@k", *LABELS, *SEPARATION, *CLUSTERED, *HUBNESS)
STANDARD = tuple(name for name in (*RETRIEVAL, *SEPARATION) if METRICS[name].standard)
HEADLINES = tuple(sorted(filter(lambda name: METRICS[name].lead, STANDARD), key=lambda name: METRICS[name].lead))
"""The metric that leads a report: the first of these that has a value."""
COMPARED = ("P@k", *SEPARATION)
"""What two systems are compared by: metrics whose value without each clip is known."""
OFFERED = (
    "vectors", "labels", "groups", "neighbours", "neighbour_distances", "nearest_other", "own_mean", "other_mean",
    "farthest_same", "occurrences", "k",
)  # fmt: skip
"""What a metric may take, by the names of its arguments, one row for each clip: see docs/metrics.md."""
FROM_POINTS = frozenset({"vectors", "labels", "groups", "kmeans", "density"})
"""What needs no distances."""
_PRECISION = re.compile(r"P@([1-9]\d*)")


def plan(metrics: str | Iterable[str] | None, ks: Iterable[int]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Spell out the metrics asked for: their names in catalogue order, without P@k, and every k of P@k."""
    wanted = named(DEFAULT if metrics is None else metrics)
    if not wanted:
        raise UsageError("No metric was asked for: name at least one.")
    names: set[str] = set()
    own: list[str] = []
    ks_wanted: set[int] = set()
    for name in wanted:
        match = _PRECISION.fullmatch(name)
        if name == "all":
            names.update(name for name in KNOWN if name not in LABELS)  # of one label each, they say nothing new
        elif match:
            ks_wanted.add(int(match[1]))
        elif name in KNOWN:
            names.add(name)
        elif is_path(name):
            own.append(find(name, OFFERED).name)
        else:
            raise UsageError(
                f"There is no metric {name!r} for an evaluation.{did_you_mean(name, [*KNOWN, 'P@1', 'P@5'])} "
                f"There are P@1, P@5 (any k), {', '.join(KNOWN[1:])}; or give a path such as mymodule:metric."
            )
    if "P@k" in names:
        ks_wanted.update(ks)
        if not ks_wanted:
            raise UsageError("P@k was asked for without a k: give at least one, such as 1 and 5.")
    if any(k < 1 for k in ks_wanted):
        raise UsageError("k of P@k must be at least 1.")
    listed = tuple(name for name in KNOWN if name in names and name != "P@k")
    return (*listed, *dict.fromkeys(own)), tuple(sorted(ks_wanted))


def needs(names: Iterable[str]) -> frozenset[str]:
    """Everything the named metrics need together."""
    return frozenset(need for name in names for need in METRICS["P@1" if name == "P@k" else name].needs)


def is_own(name: str) -> bool:
    """Whether a metric is a stranger's."""
    known = any(name in names for names in (RETRIEVAL, LABELS, SEPARATION, CLUSTERED, HUBNESS))
    return not known and not _PRECISION.fullmatch(name)


def is_path(name: str) -> bool:
    """Whether a name is an import path of a metric."""
    return ":" in name and not split_metric(name)[1]


def find(name: str, offered: Sequence[str] = ()) -> Metric:
    """The record of a metric by its name or import path; `offered` are the arguments that a stranger's may have."""
    if not is_path(name):
        return METRICS[name]
    if name not in BY_PATH:
        function = load_path(name.partition("#")[0], "metric")
        if not callable(function):
            raise UsageError(f"{name} is no metric: give a function.")
        stated = getattr(function, "metric", None)
        record = stated if isinstance(stated, Metric) else of_function(function)
        for path, other in BY_PATH.items():
            if other.name == record.name and other.function is not record.function and path.split("#")[0] != name:
                raise UsageError(f"{path} and {name} are both called {record.name}: give one of them another name.")
        BY_PATH[name] = register(record)
        _DIGESTS[record.name] = _digest(record)
    record = BY_PATH[name]
    for need in record.needs:
        if offered and need not in offered:
            raise UsageError(f"The metric {name} takes {need!r}, which is not offered here: {', '.join(offered)} are.")
    return record


def name_of(name: str) -> str:
    """How a metric is spelled in score tables: by its name, also where it was given by an import path."""
    base, statistic = split_metric(name)
    return ":".join(filter(None, [find(base).name, statistic])) if is_path(base) else name


def pinned(name: str) -> str:
    """An import path with a hash of the code behind it, under which its values may be kept; other names as they are."""
    return f"{name}#{digest([name])[:12]}" if is_path(name) and "#" not in name else name


def digest(names: str | Iterable[str]) -> str:
    """A hash of the code of the strangers' metrics among the names or paths, "" where there are none."""
    records = [find(name) for name in named(names) if is_path(name) or (name in METRICS and is_own(name))]
    sources = [_DIGESTS.get(record.name) or _digest(record) for record in records]
    return hashlib.sha256("\x1f".join(sources).encode()).hexdigest() if sources else ""


_DIGESTS: dict[str, str] = {}
"""What metrics that were loaded by a path rest on, as it was when they were loaded: their functions stay those."""


def _digest(record: Metric) -> str:
    """A hash of a metric's module, of the modules of its author that it imports, and of its libraries and files."""
    module = getattr(record.function, "__module__", "")
    return stated_by(record.function, modules=[module]).key if module else record.name
