"""What is known of every metric before it is measured: its range, its direction, and how reports print it."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace

from earmark.errors import InputError, did_you_mean
from earmark.scores.spelling import split_metric


@dataclass(frozen=True, slots=True)
class MetricFacts:
    """What is known of a metric before it is measured. `percent`: reports print it times 100."""

    spelling: str
    range: tuple[float, float]
    higher_is_better: bool
    percent: bool


_INF = math.inf
METRICS: dict[str, MetricFacts] = {
    facts[0]: MetricFacts(*facts)
    for facts in (
        # retrieval and separation
        ("P@1", (0.0, 1.0), True, True),
        ("P@5", (0.0, 1.0), True, True),
        ("GSR", (0.0, 1.0), True, True),
        ("CSR", (0.0, 1.0), True, True),
        ("CSR_pointwise", (0.0, 1.0), True, True),
        ("CS", (0.0, 1.0), False, True),
        ("CSCF", (0.0, 1.0), False, True),
        ("silhouette", (-1.0, 1.0), True, False),
        # clustering; ARI is printed in percent beside NMI and purity, as the papers do
        ("purity", (0.0, 1.0), True, True),
        ("NMI", (0.0, 1.0), True, True),
        ("ARI", (-0.5, 1.0), True, True),
        ("kmeans_purity", (0.0, 1.0), True, True),
        # hubness
        ("hub_ratio", (0.0, _INF), False, False),
        ("antihub_rate", (0.0, 1.0), False, True),
        ("hub_skew", (-_INF, _INF), False, False),
        ("robin_hood", (0.0, 1.0), False, True),
        # real against generated; the two densities may pass 1
        ("precision", (0.0, 1.0), True, True),
        ("recall", (0.0, 1.0), True, True),
        ("density", (0.0, _INF), True, False),
        ("coverage", (0.0, 1.0), True, True),
        ("clipped_density", (0.0, _INF), True, False),
        ("clipped_coverage", (0.0, 1.0), True, True),
        ("sym_precision", (0.0, 1.0), True, True),
        ("sym_recall", (0.0, 1.0), True, True),
        ("p_precision", (0.0, 1.0), True, True),
        ("p_recall", (0.0, 1.0), True, True),
        ("precision_cover", (0.0, 1.0), True, True),
        ("recall_cover", (0.0, 1.0), True, True),
        # 1 - 2 * area between two curves, summed over 30 steps, can end a little under 0
        ("alpha_precision", (-0.05, 1.0), True, True),
        ("beta_recall", (-0.05, 1.0), True, True),
        # codecs; the published overall score reaches 1.03 because wide-band PESQ passes 4.5
        ("stft_distance", (0.0, _INF), False, False),
        ("mel_distance", (0.0, _INF), False, False),
        ("pesq", (-0.5, 5.0), True, False),
        ("stoi", (-1.0, 1.0), True, False),
        ("f0_corr", (-1.0, 1.0), True, False),
        ("overall", (0.0, 1.03), True, False),
        ("wer", (0.0, _INF), False, True),
        ("eer", (0.0, 1.0), False, True),
        ("min_dcf", (0.0, 1.0), False, False),
        ("er_accuracy", (0.0, 1.0), True, True),
        ("aec_map", (0.0, 1.0), True, True),
        ("kbps", (0.0, _INF), False, False),
        ("overall_unsaturated", (0.0, 1.0), True, False),
        ("f0_voicing_error", (0.0, 1.0), False, True),
        ("si_sdr", (-_INF, _INF), True, False),
        ("visqol", (1.0, 5.0), True, False),
        ("zimtohrli", (1.0, 5.0), True, False),
        ("dnsmos", (1.0, 5.0), True, False),
        ("dnsmos_p808", (1.0, 5.0), True, False),
        ("dwer", (0.0, _INF), False, True),
        ("speaker_similarity", (-1.0, 1.0), True, False),
        ("bd_rate", (-1.0, _INF), False, True),
        ("delay_ms", (-_INF, _INF), False, False),
        ("encode_rtf", (0.0, _INF), False, False),
        ("decode_rtf", (0.0, _INF), False, False),
        ("token_usage", (0.0, 1.0), True, True),
        ("token_entropy", (0.0, _INF), True, False),
        ("token_perplexity", (1.0, _INF), True, False),
        ("entropy_kbps", (0.0, _INF), False, False),
        # real against generated: the clipped pair read word for word under GICDM
        ("clipped_density_literal", (0.0, _INF), True, False),
        ("clipped_coverage_literal", (0.0, 1.0), True, True),
        # the unbiased kernel distance of equal distributions is 0 on average, so it falls below 0 half of the time
        ("frechet_distance", (0.0, _INF), False, False),
        ("kernel_distance", (-_INF, _INF), False, False),
        # external validation and cost, as the papers print them
        ("accuracy", (0.0, 1.0), True, True),
        ("top5_accuracy", (0.0, 1.0), True, True),
        ("triplet_accuracy", (0.0, 1.0), True, True),
        ("parameters_m", (0.0, _INF), False, False),
        ("macs_g", (0.0, _INF), False, False),
        ("peak_memory_gb", (0.0, _INF), False, False),
    )
}

_PRECISION_AT = re.compile(r"P@[1-9][0-9]*")


def metric_facts(name: str) -> MetricFacts:
    """Facts for a metric of `METRICS`, for `P@<k>` with any positive k, for `<metric>:difference` and `<metric>:p1`.

    A difference of two values from [lo, hi] lies in [-(hi - lo), hi - lo]; its direction is the metric's. `:p1` is the
    value that one clip in a hundred does not reach (passes, where lower is better): what the worst clips get.
    """
    if name in METRICS:
        return METRICS[name]
    if _PRECISION_AT.fullmatch(name):
        return replace(METRICS["P@1"], spelling=name)
    base, statistic = split_metric(name)
    if statistic == "p1" and base in METRICS:
        return replace(METRICS[base], spelling=name)
    if statistic == "difference" and split_metric(base)[1] != "difference":
        facts = metric_facts(base)
        width = facts.range[1] - facts.range[0]
        return replace(facts, spelling=name, range=(-width, width))
    hint = did_you_mean(name, METRICS) or f" Known are P@<k>, {', '.join(list(METRICS)[2:])}."
    raise InputError(f'There is no metric "{name}".{hint}')
