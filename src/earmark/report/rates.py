"""What codecs keep against the rate, from any score table that has rates: printed results, or the folder of a run.

A rate that is printed once for a codec (`published:codec-superb`) stands for all of its datasets; categories are means
over datasets, as the paper draws them. What has no rate, as sound without a codec, is a level to compare with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.analysis.pareto import pareto_front
from earmark.analysis.similarities import correlations, rank_correlations
from earmark.codecs.rate_distortion import Point, curves, monotonicity
from earmark.errors import InputError
from earmark.published import codec_family
from earmark.report.codecs._comparison import PREFERRED, Comparison
from earmark.report.metric_text import facts, title
from earmark.scores import Row, Scores
from earmark.scores.metrics import family
from earmark.wording import counted, listed

Floats = NDArray[np.float64]

RATE = "kbps"
APPLICATIONS = ("wer", "eer", "er_accuracy", "aec_map")
"""What Codec-SUPERB draws of applications: WER, EER, emotion accuracy, mAP of events."""
SIGNALS = family("signal")
FEWEST_CODECS = 4
_NO_RATES = (
    "No row has a rate ({}): codecs are drawn from published:codec-superb, or from the folder of `earmark codec run`."
)


def printed_comparisons(scores: Scores, metrics: Sequence[str] = ()) -> dict[str, list[Comparison]]:
    """By title, the panels that belong together: overall scores by category, and applications."""
    rates = {row.system: row for row in scores if row.metric == RATE and row.value is not None}
    if not rates:
        raise InputError(_NO_RATES.format(RATE))
    measured = [row for row in scores if row.metric != RATE and row.status == "ok" and row.value is not None]
    known = list(dict.fromkeys(row.metric for row in measured))
    wanted = [name for name in metrics or dict.fromkeys([*PREFERRED, *APPLICATIONS]) if name in known]
    panels: dict[str, list[Comparison]] = {}
    for metric in wanted:
        rows = [row for row in measured if row.metric == metric]
        categories = [row for row in rows if row.aggregate]
        for place in dict.fromkeys(row.subset for row in categories or rows):
            found = _comparison([row for row in rows if row.subset == place], rates)
            if len(found.ranked) > 1:
                panels.setdefault("overall" if metric == "overall" else "applications", []).append(found)
    if not panels:
        raise InputError(f"No metric of the table has two codecs with a rate; it has {listed(known) or 'none'}.")
    return panels


def _comparison(rows: Sequence[Row], rates: Mapping[str, Row]) -> Comparison:
    metric, place = rows[0].metric, rows[0].subset
    higher = facts(metric).higher_is_better
    points = tuple(
        Point(row.system, codec_family(row.system), rates[row.system].value or 1.0, row.value or 0.0)
        for row in rows
        if row.system in rates
    )
    anchors = frozenset(row.system for row in rows if row.system not in rates)
    levels = [Point(row.system, row.system, 1.0, row.value or 0.0) for row in rows if row.system in anchors]
    kept = pareto_front([[point.kbps for point in points], [point.value for point in points]], [False, higher])
    front = sorted((point for point, stays in zip(points, kept, strict=True) if stays), key=lambda point: point.kbps)
    families = curves(points)
    return Comparison(
        place, metric, place.removeprefix("mean:"), higher, points, families | curves(levels), tuple(front),
        monotonicity(families, metric, higher_is_better=higher), (),
        {row.system: replace(row, low=None, high=None) for row in rows}, anchors,
    )  # fmt: skip


def rate_sentences(found: Sequence[Comparison], *, printed: bool = False) -> list[str]:
    """What the figure shows: the front of each panel, and where more bits made it worse."""
    settings = "Settings of one codec share a colour" if printed else "Settings of one codec are joined"
    sentences = [
        f"{settings}; the thin steps are the best at that rate or below, dashed lines are sound without a codec or "
        "without loss."
    ]
    for one in found:
        where = one.protocol if printed else one.subset
        said = f"{title(one.metric)}, {where}: best at their rate are {listed([point.system for point in one.front])}"
        worse = [
            f"{step.low.system} to {step.high.system}"
            for step in one.monotonicity.exceptions
            if step.high.kbps > step.low.kbps
        ]
        if worse:
            said += f"; worse with more bits: {listed(worse)}"
        sentences.append(f"{said}.")
    return sentences


# --- which signal metrics go with the overall score -----------------------------------------------------------------


class SignalCorrelations(NamedTuple):
    """Correlation of each signal metric with the overall score across codecs [metrics, subsets], NaN where there is
    none; `codecs` counts what they rest on."""

    metrics: tuple[str, ...]
    subsets: tuple[str, ...]
    pearson: Floats
    spearman: Floats
    codecs: NDArray[np.int64]

    def rows(self) -> list[dict[str, object]]:
        """Plain values, a line for each metric and subset."""
        return [
            {
                "metric": metric, "subset": place, "pearson": float(self.pearson[row, column]),
                "spearman": float(self.spearman[row, column]), "codecs": int(self.codecs[row, column]),
            }
            for row, metric in enumerate(self.metrics)
            for column, place in enumerate(self.subsets)
            if np.isfinite(self.pearson[row, column])
        ]  # fmt: skip


def signal_correlations(scores: Scores, metrics: Sequence[str] = ()) -> SignalCorrelations:
    """Every signal metric against `overall`, subset by subset; InputError where a table has not both."""
    values: dict[tuple[str, str], dict[str, float]] = {}
    for row in scores:
        plain = row.protocol in ("all", "reference") and row.single and not row.statistic and not row.ablation
        if plain and row.status == "ok" and row.value is not None:
            values.setdefault((row.metric, row.subset), {})[row.system] = row.value
    subsets = [place for metric, place in values if metric == "overall" and place]
    known = [name for name in metrics or SIGNALS if any((name, place) in values for place in subsets)]
    if not known:
        raise InputError(
            "No table of codecs with both the overall score and the signal metrics it is made of: the paper prints the "
            "overall score alone; `earmark codec run` measures them all."
        )
    shape = len(known), len(subsets)
    pearson, spearman, counts = np.full(shape, np.nan), np.full(shape, np.nan), np.zeros(shape, np.int64)
    for line, metric in enumerate(known):
        for column, place in enumerate(subsets):
            overall, own = values["overall", place], values.get((metric, place), {})
            shared = [name for name in overall if name in own]
            counts[line, column] = len(shared)
            x, y = (np.array([side[name] for name in shared])[:, None] for side in (own, overall))
            if len(shared) >= FEWEST_CODECS and np.ptp(x) > 0 and np.ptp(y) > 0:
                pearson[line, column], spearman[line, column] = correlations(x, y)[0, 0], rank_correlations(x, y)[0, 0]
    if not np.isfinite(pearson).any():
        raise InputError(f"Metrics are correlated across at least {FEWEST_CODECS} codecs that differ; there are fewer.")
    return SignalCorrelations(tuple(known), tuple(subsets), pearson, spearman, counts)


def signal_sentences(found: SignalCorrelations) -> list[str]:
    """What the figure shows, and why high values are no news."""
    low, high = int(found.codecs.min()), int(found.codecs.max())
    among = f"{low}" if low == high else f"{low} to {high}"
    return [
        f"Spearman's rank correlation of each signal metric with the overall score across {among} codecs and settings, "
        f"on {counted(len(found.subsets), 'subset')}; of distances less is better, so theirs is negative. The overall "
        "score is made of these metrics, so they go together by construction, and settings of one codec "
        "resemble each other: there are no p-values here."
    ]
