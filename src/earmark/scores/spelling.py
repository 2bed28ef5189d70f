"""How the columns `ablation`, `aggregate` and `statistic` are spelled inside the names of a row, in both directions.

    column      stands in                    as                                      content
    ablation    subset, distance, protocol   BS1~noise0.05, cosine+dtw, tandem:3     noise0.05, dtw, tandem:3
                                             BS1~50x5, BS1~50x5:random:seed3         sample50x5, sample50x5:random:seed3
    aggregate   subset                       mean, mean:public                       mean, mean:public
    statistic   metric                       pesq:p1, P@1:difference                 p1, difference

A protocol ends with the sampling rate of its clips where a score is of those alone: all@16000, tandem:3@16000.

Files of versions before these columns have the names alone. `columns_of` fills the columns when a row is made; all
other code asks the columns. Two ablations of one row are joined by "+". Because the names say it too, a subset of one's
own may not look like a mean or like label noise: `refuse_reserved` is the door. One that looks like a sample is one,
such as the subset of a sample that was exported.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from earmark.errors import InputError, quoted

SAMPLED = "clips drawn as queries"
"""In the reason of a row whose value rests on a sample of queries."""
MEAN = "mean"
_NOISE = re.compile(r"~(noise\d+(?:\.\d+)?(?:e-\d+)?)$")
_SAMPLE = re.compile(r"~((?:\d+|all)x(?:\d+|all)(?::random)?(?::seed\d+)?)(?=~|$)")
_RERANKED = "+dtw"
_STATISTICS = ("difference", "p1")


class Columns(NamedTuple):
    """The three columns of a row."""

    ablation: str
    aggregate: str
    statistic: str


@lru_cache(maxsize=4096)
def columns_of(subset: str, distance: str, protocol: str, metric: str) -> Columns:
    """The three columns of a row that has these names."""
    marked = "~" in subset
    noise = _NOISE.search(subset) if marked else None
    ablations = [
        *(f"sample{sample}" for sample in (_SAMPLE.findall(subset) if marked else ())),
        noise[1] if noise else "",
        "dtw" if distance.endswith(_RERANKED) else "",
        without_rate(protocol) if protocol.startswith(("tandem:", "loss:")) else "",
    ]
    aggregate = subset if subset == MEAN or subset.startswith("mean:") else ""
    return Columns(joined(*ablations), aggregate, split_metric(metric)[1])


def at_rate(protocol: str, rate: int) -> str:
    """The protocol column of a score of the clips with one sampling rate: `all@16000`."""
    return f"{protocol}@{rate}"


def without_rate(protocol: str) -> str:
    """The protocol without the sampling rate: `all` of `all@16000`."""
    return protocol.partition("@")[0]


def joined(*ablations: str) -> str:
    """The ablations of a row as its column holds them, each once."""
    return "+".join(dict.fromkeys(part for ablation in ablations for part in ablation.split("+") if part))


def with_noise(subset: str, share: float) -> str:
    """The subset column of rows measured under label noise: `BS1~noise0.05`."""
    return f"{subset}~noise{share:g}" if share else subset


def without_noise(subset: str) -> str:
    """The subset as it is labelled: `BS1` of `BS1~noise0.05`."""
    return _NOISE.sub("", subset)


def with_sample(subset: str, sample: str) -> str:
    """The subset column of rows measured on some clips of some classes: `BS1~50x5`."""
    return f"{subset}~{sample}" if sample else subset


def without_sample(subset: str) -> str:
    """The subset that a sample was drawn from: `BS1` of `BS1~50x5`, `BS1~noise0.05` of `BS1~50x5~noise0.05`."""
    return _SAMPLE.sub("", subset) if "~" in subset else subset


def sample_of(subset: str) -> str:
    """Which sample of a subset it is: `50x5` of `BS1~50x5`; nothing of a whole one."""
    return "+".join(_SAMPLE.findall(subset)) if "~" in subset else ""


def without_samples(ablation: str) -> str:
    """The ablations of a row that are more than a smaller choice of clips."""
    return "+".join(part for part in ablation.split("+") if not part.startswith("sample"))


def noise_share(ablation: str) -> float:
    """The share of labels that an ablation exchanged: 0.05 of `noise0.05`, else 0."""
    for part in ablation.split("+") if ablation else ():
        if _NOISE.fullmatch(f"~{part}"):
            return float(part.removeprefix("noise"))
    return 0.0


def is_single(subset: str) -> bool:
    """Whether a subset is one as it is labelled: neither a mean of others nor under label noise."""
    return not columns_of(subset, "", "", "").aggregate and _NOISE.search(subset) is None


def mean_over(rule: str) -> str:
    """The subset column of a mean: "mean" over all there is, "mean:public", "mean:domain:birdsong"…"""
    return MEAN if rule == MEAN else f"mean:{rule}"


def split_metric(metric: str) -> tuple[str, str]:
    """The metric and its statistic: ("pesq", "p1") of `pesq:p1`, ("P@1", "") of `P@1`."""
    base, colon, statistic = metric.rpartition(":")
    return (base, statistic) if colon and statistic in _STATISTICS else (metric, "")


def refuse_shared(subsets: Iterable[str], what: str) -> None:
    """InputError where a subset and a sample of it, or two samples of it, would count as two."""
    seen: dict[str, str] = {}
    for name in subsets:
        other = seen.setdefault(without_sample(name), name)
        if other != name:
            raise InputError(f'"{other}" and "{name}" share clips and cannot be two {what}: choose one of them.')


def refuse_reserved(subset: str, where: str) -> None:
    """InputError for a subset whose name would be read as a mean of subsets or as label noise."""
    if not is_single(subset):
        raise InputError(
            f"{where}: a subset may not be called {quoted(subset)}, because score tables spell means as mean or "
            "mean:<name> and label noise as <subset>~noise<share>; rename it."
        )


def paired(first: str, second: str) -> str:
    """How a row of a difference names what its two rows differ in: `wavlm - logmel`; one name where they are alike."""
    return first if first == second else f"{first} - {second}"
