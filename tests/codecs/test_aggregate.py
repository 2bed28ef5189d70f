"""From clips to a codec: means, intervals, counts, the worst clips, paired differences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from earmark.codecs.aggregate import compare, first_percentile, summarise
from earmark.codecs.contract import Measured
from earmark.errors import UsageError

SILENT = Measured.not_applicable("the reference is silent")
SHORT = Measured.not_applicable("the clip is shorter than 0.25 s")
NAN = Measured.failed("3 decoded samples are NaN or infinite")


def ok(values):
    return [Measured(float(value)) for value in values]


def test_the_mean_is_over_clips_with_a_value_and_the_others_are_counted():
    found = summarise([*ok([1.0, 2.0, 6.0]), SILENT, SILENT, SHORT, NAN])
    assert found.value == 3.0
    assert (found.n, found.n_not_applicable, found.n_failed, found.status) == (3, 3, 1, "incomplete")
    assert found.reason == (
        "3 of 7 not applicable (the reference is silent: 2, the clip is shorter than 0.25 s: 1); "
        "1 of 7 failed (3 decoded samples are NaN or infinite)"
    )
    assert summarise(ok([1.0, 2.0])).reason == ""


@pytest.mark.parametrize(
    ("measured", "status"), [([SILENT, SHORT], "not_applicable"), ([SILENT, NAN], "failed"), ([], "not_applicable")]
)
def test_without_any_value_there_is_a_status_and_no_number(measured, status):
    for found in (summarise(measured), first_percentile([str(k) for k in range(len(measured))], measured, "pesq")):
        assert (found.value, found.low, found.high, found.n, found.status) == (None, None, None, 0, status)
        assert found.reason


def test_the_interval_covers_the_mean_of_the_population():
    rng = np.random.default_rng(1)
    covered = 0
    for trial in range(100):
        found = summarise(ok(rng.normal(3.0, 1.0, 60)), resamples=300, seed=trial)
        covered += found.low <= 3.0 <= found.high
        # Half-widths near 1.96 / sqrt(60).
        assert 0.15 < (found.high - found.low) / 2 < 0.36
    assert covered >= 86


def test_seeds_and_groups_decide_the_draws():
    values = np.repeat([1.0, 2.0, 3.0, 4.0, 5.0], 8)
    groups = np.repeat(["a", "b", "c", "d", "e"], 8)
    assert summarise(ok(values), seed=1) == summarise(ok(values), seed=1)
    assert summarise(ok(values), seed=1) != summarise(ok(values), seed=2)
    alone, together = (summarise(ok(values), groups=g) for g in (None, groups))
    assert together.high - together.low > 2 * (alone.high - alone.low)
    with pytest.raises(UsageError, match="groups"):
        summarise(ok(values), groups=["a"])


def test_one_clip_has_a_mean_and_no_interval():
    assert summarise(ok([2.5]))[:4] == (2.5, None, None, 1)


def test_the_first_percentile_names_the_worst_clips():
    rng = np.random.default_rng(2)
    values = rng.permutation(np.linspace(1.0, 4.5, 300))
    names = [f"clip{k}" for k in range(300)]
    high = first_percentile(names, ok(values), "pesq", resamples=50)
    assert high.value == pytest.approx(np.percentile(values, 1))
    worst = [names[k] for k in np.argsort(values)[:3]]
    assert list(high.clips) == worst
    assert high.reason == f"worst: {', '.join(worst)}"
    assert high.low <= high.value <= high.high
    low = first_percentile(names, ok(values), "stft_distance", resamples=50)
    assert low.value == pytest.approx(np.percentile(values, 99))
    assert low.clips[0] == names[int(values.argmax())]


def test_the_interval_of_a_percentile_is_that_of_percentiles_of_resamples():
    rng = np.random.default_rng(5)
    values = rng.integers(0, 12, 40).astype(float)
    measured = [SILENT if k % 9 == 0 else one for k, one in enumerate(ok(values))]
    kept = np.array([np.nan if one.value is None else one.value for one in measured])
    for metric, percent in (("pesq", 1), ("stft_distance", 99)):
        drawn = []
        for b in range(60):
            draw = kept[np.random.default_rng([7, b]).integers(0, 40, 40)]
            drawn.append(np.percentile(draw[np.isfinite(draw)], percent))
        found = first_percentile([str(k) for k in range(40)], measured, metric, resamples=60, seed=7)
        assert (found.low, found.high) == pytest.approx(tuple(np.percentile(drawn, (2.5, 97.5))))


def test_few_clips_still_name_their_worst():
    found = first_percentile(["a", "b", "c", "d"], [*ok([3.0, 1.0, 2.0]), SILENT], "pesq")
    assert 1.0 <= found.value < 1.1
    assert found.clips == ("b",)
    assert "not applicable" in found.reason
    many = first_percentile([str(k) for k in range(50)], ok([1.0] * 40 + [2.0] * 10), "pesq")
    assert len(many.clips) == 40
    assert "and 35 more" in many.reason
    with pytest.raises(UsageError, match="names"):
        first_percentile(["a"], ok([1.0, 2.0]), "pesq")


def test_two_codecs_are_compared_on_the_clips_both_have():
    rng = np.random.default_rng(3)
    base = rng.normal(3.0, 1.0, 80)
    a, b = ok(base + 0.2 + 0.1 * rng.normal(size=80)), ok(base)
    a[0] = NAN
    found = compare(a, b)
    wanted = np.mean([x.value - y.value for x, y in zip(a[1:], b[1:], strict=True)])
    assert found.value == pytest.approx(wanted)
    assert found.n == 79
    assert 0.0 < found.low < wanted < found.high
    paired = stats.ttest_rel([x.value for x in a[1:]], [y.value for y in b[1:]])
    assert found.p_value == pytest.approx(paired.pvalue, rel=1e-6)
    assert (found.low, found.high) == pytest.approx(paired.confidence_interval(), rel=1e-6)
    assert compare([NAN], ok([1.0])) is None
    with pytest.raises(UsageError, match="same clips"):
        compare(a, b[:3])


def test_one_value_or_one_group_has_no_interval():
    """Drawing the same clip again and again shows nothing of how clips differ."""
    for found in (
        summarise([*ok([1.5]), SILENT, NAN]),
        summarise(ok([1.0, 2.0, 4.0]), groups=["a", "a", "a"]),
        summarise([*ok([1.0, 2.0]), NAN], groups=["a", "a", "b"]),
        first_percentile(["x", "y"], [*ok([3.0]), NAN], "pesq"),
    ):
        assert found.value is not None
        assert (found.low, found.high) == (None, None)
    assert summarise(ok([1.0, 2.0, 4.0]), groups=["a", "a", "b"]).low is not None
