"""Which metrics the kernels of this room know, by what their records say they are made of."""

from __future__ import annotations

from earmark.scores.metrics import METRICS, family


def made_of(*quantities: str) -> frozenset[str]:
    """The metrics of separation whose functions take all of these."""
    return frozenset(name for name in family("separation") if set(quantities) <= set(METRICS[name].needs))


FARTHEST = made_of("farthest_same")
BALANCE = made_of("nearest_other")
PAIR_SHARES = made_of("class_pairs")
(CONTRAST,) = made_of("own_mean", "other_mean")
"""Of a point's own class against the nearest other one: (b - a) / max(a, b) of its two mean distances."""
CLASS_MEANS = PAIR_SHARES | made_of("weights")
"""Functions of class means, where the others are means over clips."""
CLASS_SUMS = PAIR_SHARES | {CONTRAST}
CALIBRATED = BALANCE | CLASS_SUMS  # and every P@k
HUBNESS = family("hubness")
