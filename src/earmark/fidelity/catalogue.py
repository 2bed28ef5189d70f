"""The metrics of real against generated, as data: what each asks, what it needs, which k it takes.

`asks` is `fidelity` (are the generated points like real ones?), `coverage` (is every real point met?) or `distance`
(how far apart are the two distributions?). `gicdm` says whether the correction is defined for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from earmark.errors import UsageError, did_you_mean
from earmark.evaluation.options import whole

Reading = Literal["corrected", "literal"]

LITERAL = "_literal"  # the ending of the clipped pair under the literal reading
COVER_K = 3  # the cover metrics count in threes: at least 3 others within the distance of the 8th neighbour


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: its spelling, what it asks, whether balls and their correction are defined, and its paper."""

    name: str
    asks: Literal["fidelity", "coverage", "distance"]
    balls: bool
    gicdm: bool
    paper: str


METRICS: dict[str, Metric] = {
    row[0]: Metric(*row)
    for row in (
        ("precision", "fidelity", True, True, "Kynkäänniemi et al., NeurIPS 2019"),
        ("recall", "coverage", True, True, "Kynkäänniemi et al., NeurIPS 2019"),
        ("density", "fidelity", True, True, "Naeem et al., ICML 2020"),
        ("coverage", "coverage", True, True, "Naeem et al., ICML 2020"),
        ("sym_precision", "fidelity", True, True, "Khayatkhoei and AbdAlmageed, ICML 2023"),
        ("sym_recall", "coverage", True, True, "Khayatkhoei and AbdAlmageed, ICML 2023"),
        ("p_precision", "fidelity", True, True, "Park and Kim, ICCV 2023"),
        ("p_recall", "coverage", True, True, "Park and Kim, ICCV 2023"),
        ("precision_cover", "fidelity", True, False, "Cheema and Urner, AISTATS 2023"),
        ("recall_cover", "coverage", True, False, "Cheema and Urner, AISTATS 2023"),
        ("clipped_density", "fidelity", True, True, "Salvy et al., 2025"),
        ("clipped_coverage", "coverage", True, True, "Salvy et al., 2025"),
        ("alpha_precision", "fidelity", False, False, "Alaa et al., ICML 2022"),
        ("beta_recall", "coverage", False, False, "Alaa et al., ICML 2022"),
        ("frechet_distance", "distance", False, False, "Dowson and Landau, 1982; Heusel et al., NeurIPS 2017"),
        ("kernel_distance", "distance", False, False, "Gretton et al., JMLR 13, 2012; Bińkowski et al., ICLR 2018"),
    )
}  # fmt: skip

BALLS = tuple(name for name, facts in METRICS.items() if facts.balls)
NETWORK = ("alpha_precision", "beta_recall")
READ_TWICE = ("clipped_density", "clipped_coverage")  # the pair whose GICDM form has two readings
LITERALS = tuple(name + LITERAL for name in READ_TWICE)
DEFAULT = tuple(name for name in METRICS if name not in NETWORK)


def plan(metrics: str | Iterable[str] | None, default: tuple[str, ...]) -> tuple[str, ...]:
    """The metrics asked for, each once, in catalogue order; `all` is every metric."""
    asked = [metrics] if isinstance(metrics, str) else list(default if metrics is None else metrics)
    if not asked:
        raise UsageError("No metric was asked for: name at least one.")
    known = (*METRICS, *LITERALS)
    for name in asked:
        if name not in known and name != "all":
            raise UsageError(
                f"There is no fidelity metric {name!r}.{did_you_mean(str(name), known)} There are {', '.join(METRICS)}."
            )
    names = {*asked, *(METRICS if "all" in asked else ())}
    return tuple(name for name in known if name in names)


def facts(name: str) -> Metric:
    """What is known of a metric, under either reading."""
    return METRICS[name.removesuffix(LITERAL)]


def neighbours_of(k: int | Mapping[str, int], names: Iterable[str]) -> dict[str, int]:
    """The k of every metric of balls: one number for all but the cover pair, or a number for each that is named."""
    if not isinstance(k, Mapping):
        k = dict.fromkeys((name for name in BALLS if not name.endswith("_cover")), k)
    for name in k:
        if name not in METRICS:
            raise UsageError(f"k is given for {name!r}, which is no metric.{did_you_mean(str(name), METRICS)}")
    usual: dict[str, Any] = {name: COVER_K if name.endswith("_cover") else 5 for name in BALLS}
    asked = dict.fromkeys(facts(name).name for name in names)
    return {name: whole(f"k of {name}", (usual | dict(k))[name], 1) for name in asked if METRICS[name].balls}
