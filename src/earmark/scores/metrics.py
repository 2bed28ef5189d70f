"""One record for each metric, beside the function that computes it: what its values mean, and what it needs.

    @metric("GSR", range=(0.0, 1.0), percent=True, words="…")
    def gsr(nearest_other, own_mean): ...

`FAMILIES` is the registry: the names of a family and the module that holds their records. Names are listed without
importing anything; a record is found by importing its module. A metric of one's own is a function, with or without the
decorator; `earmark.metrics.catalogue` finds it by its import path.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, TypeVar

from earmark.errors import InputError, UsageError, did_you_mean
from earmark.scores.spelling import split_metric

Function = TypeVar("Function", bound=Callable[..., Any])

UNBOUNDED = (-math.inf, math.inf)
FRACTION = (0.0, 1.0)
LEADING = ("P@1", "P@5", "GSR")
"""What VocSim's main tables, ablations and figures show; their printed averages are over public subsets."""

FAMILIES: dict[str, tuple[str, str]] = {
    "retrieval": ("earmark.metrics.retrieval", "P@1 P@5"),
    "labels": ("earmark.metrics.retrieval", "label_P@1 label_jaccard"),
    "separation": ("earmark.metrics.separation", "GSR CSR CSR_pointwise CS CSCF silhouette"),
    "clustering": ("earmark.metrics.clustering", "NMI ARI kmeans_purity purity"),
    "hubness": ("earmark.geometry.hubness", "hub_ratio antihub_rate hub_skew robin_hood"),
    "fidelity": (
        "earmark.generated.metrics",
        "precision recall density coverage sym_precision sym_recall p_precision p_recall precision_cover recall_cover "
        "clipped_density clipped_coverage alpha_precision beta_recall frechet_distance fad_inf kernel_distance kad "
        "clipped_density_literal clipped_coverage_literal clipped_density_unclipped_radii",
    ),
    "signal": (
        "earmark.codecs.signal.measuring",
        "stft_distance mel_distance pesq stoi f0_corr f0_voicing_error si_sdr visqol zimtohrli dnsmos dnsmos_p808",
    ),
    "overall": ("earmark.codecs.overall", "overall overall_unsaturated"),
    "validation": (
        "earmark.scores._reported",
        "accuracy top5_accuracy mean_average_precision choice_accuracy triplet_accuracy choice_spearman "
        "choice_kendall agreement_between agreement_within agreement_repeats attainable_accuracy",
    ),
    "reported": (
        "earmark.scores._reported",
        "wer dwer eer min_dcf speaker_similarity er_accuracy aec_map kbps header_kbps entropy_kbps bd_rate delay_ms "
        "encode_rtf decode_rtf token_usage token_entropy token_perplexity parameters_m macs_g peak_memory_gb "
        "transfer_spearman",
    ),
}
"""Family: module of its records, and names in the order of reports."""

_MODULE = {name: module for module, names in FAMILIES.values() for name in names.split()}
_RECORDS: dict[str, Metric] = {}
BY_PATH: dict[str, Metric] = {}
"""Metrics of strangers that were loaded, by import path."""
_PRECISION_AT = re.compile(r"P@([1-9][0-9]*)")


@dataclass(frozen=True, slots=True)
class Metric:
    """What is known of a metric before it is measured.

    Args:
        name: Its spelling in the metric column.
        range: The lowest and the highest value, infinite where there is no end.
        higher_is_better: The direction.
        percent: Whether reports print it times 100.
        words: What it says, in one line for reports.
        title: What people call it, for figures; empty: as it is spelled.
        paper: Where it comes from.
        unit: Of its values, where they have one.
        needs: The arguments of `function`, by name.
        function: What computes it; None for what a task or a codec reports by itself.
        package: The module it needs and what that is for, where it is not always installed.
        standard: Whether it belongs to the set that short tables and studies show.
        lead: Its place among those that may lead a report; 0 for none.
        asks: Of generated points: `fidelity`, `coverage` or `distance` (of the two distributions).
        gicdm: Whether it is defined with hubness corrected by GICDM.
    """

    name: str
    range: tuple[float, float] = UNBOUNDED
    higher_is_better: bool = True
    percent: bool = False
    words: str = ""
    paper: str = ""
    unit: str = ""
    needs: tuple[str, ...] = ()
    function: Callable[..., Any] | None = None
    package: tuple[str, str] | None = None
    standard: bool = False
    lead: int = 0
    asks: str = ""
    gicdm: bool = False
    title: str = ""

    def compute(self, *arguments: Any, **named_arguments: Any) -> Any:
        """What the function makes of its arguments."""
        if self.function is None:
            raise TypeError(f"{self.name} is reported and not computed")
        return self.function(*arguments, **named_arguments)


class _Metrics(Mapping[str, Metric]):
    """Every metric by name; records are imported when they are asked for."""

    def __getitem__(self, name: str) -> Metric:
        if name not in _RECORDS and name in _MODULE:
            import_module(_MODULE[name])
        return BY_PATH[name] if name in BY_PATH else _RECORDS[name]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*_MODULE, *_RECORDS)))

    def __len__(self) -> int:
        return len({*_MODULE, *_RECORDS})

    def __contains__(self, name: object) -> bool:
        return name in _MODULE or name in _RECORDS or name in BY_PATH


METRICS: Mapping[str, Metric] = _Metrics()


def family(name: str) -> tuple[str, ...]:
    """The names of a family, in the order of reports."""
    return tuple(FAMILIES[name][1].split())


def metric(name: str = "", **facts: Any) -> Callable[[Function], Function]:
    """Say beside a function what its values mean: its name and the fields of `Metric`; the arguments are its needs.

    >>> @metric(range=(0, 1), percent=True, words="share of clips whose nearest neighbour has their label")
    ... def hits(neighbours, labels):
    ...     return labels[neighbours[:, 0]] == labels
    """

    def mark(function: Function) -> Function:
        function.metric = register(of_function(function, name, **facts))  # type: ignore[attr-defined]
        return function

    return mark


def of_function(function: Callable[..., Any], name: str = "", **facts: Any) -> Metric:
    """The record of a function: its needs are its arguments without a default."""
    arguments = inspect.signature(function).parameters.values()
    needs = tuple(argument.name for argument in arguments if argument.default is argument.empty)
    try:
        return Metric(name or function.__name__, **{"needs": needs, "function": function, **facts})
    except TypeError as error:
        raise UsageError(f"The record of the metric {function.__name__} is not understood: {error}.") from None


def register(record: Metric) -> Metric:
    """Make a record known by its name; a name of Earmark's own, or one that a list would cut, is refused."""
    module = getattr(record.function, "__module__", "")
    if record.name in _MODULE and not module.startswith("earmark.") and record.function is not None:
        raise UsageError(f"The name {record.name} belongs to a metric of Earmark: give yours another one.")
    if not record.name or re.search(r"[\s:,]", record.name):
        raise UsageError(f"A metric cannot be called {record.name!r}: leave out spaces, colons and commas.")
    _RECORDS[record.name] = record
    return record


def named(metrics: str | Iterable[str]) -> list[str]:
    """The names in a list, or in text with commas between them."""
    given = [metrics] if isinstance(metrics, str) else list(metrics)
    return [part.strip() for name in given for part in str(name).split(",") if part.strip()]


def metric_facts(name: str) -> Metric:
    """The record of a metric, of `P@<k>` with any positive k, of `<metric>:difference` and of `<metric>:p1`.

    A difference of two values from [lo, hi] lies in [-(hi - lo), hi - lo]; its direction is the metric's. `:p1` is the
    value that one clip in a hundred does not reach (passes, where lower is better): what the worst clips get.
    """
    if name in METRICS:
        return METRICS[name]
    if match := _PRECISION_AT.fullmatch(name):
        words = f"share of the {match[1]} nearest neighbours that are of the query's class, averaged over clips"
        return replace(METRICS["P@1"], name=name, words=words)
    base, statistic = split_metric(name)
    if statistic == "p1" and base in METRICS:
        return replace(METRICS[base], name=name)
    if statistic == "difference" and split_metric(base)[1] != "difference":
        facts = metric_facts(base)
        width = facts.range[1] - facts.range[0]
        return replace(facts, name=name, range=(-width, width))
    hint = did_you_mean(name, METRICS) or f" Known are P@<k>, {', '.join(list(METRICS)[2:])}."
    raise InputError(f'There is no metric "{name}".{hint}')
