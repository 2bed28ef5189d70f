"""The overall score: the published arithmetic, its gaps, the alternative, and the correlation table."""

from __future__ import annotations

import math
from statistics import harmonic_mean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from earmark import published
from earmark.codecs.overall import (
    METRICS_OF,
    cells_of,
    metric_correlations,
    overall,
    overall_of_datasets,
    overall_unsaturated,
)
from earmark.errors import UsageError
from earmark.scores import Row

SPEECH = {"stft_distance": 2.93, "mel_distance": 0.90, "pesq": 3.49, "stoi": 0.943}  # Opus at 12 kbps
PERFECT = {"stft_distance": 0.0, "mel_distance": 0.0, "pesq": 4.6439, "stoi": 1.0, "f0_corr": 1.0}


# --- the published score ----------------------------------------------------------------------------------------


def test_the_formula_written_out():
    sigmoid = [1 / (1 + math.exp(-1 / d)) for d in (2.93, 0.90)]
    wanted = harmonic_mean([*sigmoid, (3.49 + 0.5) / 5, 0.943])
    assert overall(SPEECH, "speech").value == pytest.approx(wanted, abs=1e-12)
    # As measured by others on the same clips and rounded inputs.
    assert overall(SPEECH, "speech").value == pytest.approx(0.747, abs=1e-3)


def test_the_category_decides_the_metrics():
    assert overall(SPEECH, "audio").value == pytest.approx(
        harmonic_mean([1 / (1 + math.exp(-1 / SPEECH[name])) for name in ("stft_distance", "mel_distance")])
    )
    music = overall(SPEECH, "music")
    assert (music.value, music.status, music.reason) == (None, "not_applicable", "no value of f0_corr")
    assert overall(SPEECH | {"f0_corr": 0.9}, "music").status == "ok"
    with pytest.raises(UsageError, match="speech, audio, music"):
        overall(SPEECH, "birds")


@pytest.mark.parametrize("score", [overall, overall_unsaturated])
def test_a_missing_metric_is_named(score):
    for name in METRICS_OF["speech"]:
        for gone in (None, math.nan):
            found = score(SPEECH | {name: gone}, "speech")
            assert found.status == "not_applicable"
            assert name in found.reason


def test_where_the_harmonic_mean_is_undefined_there_is_no_number():
    for value in (0.0, -0.3):
        found = overall(PERFECT | {"f0_corr": value}, "music")
        assert (found.value, found.status) == (None, "not_applicable")
        assert "f0_corr" in found.reason


def test_the_identity_passes_one_because_wide_band_pesq_passes_four_and_a_half():
    assert overall(PERFECT, "speech").value == pytest.approx(1.007, abs=1e-3)
    assert overall(PERFECT, "audio").value == 1.0


def test_category_scores_of_the_paper_are_harmonic_means_of_datasets():
    cells: dict[tuple[str, str], list[float]] = {}
    for row in published.read("codec_superb_scores"):
        cells.setdefault((row["codec"], row["category"]), []).append(float(row["overall_score"]))
    printed = {row["codec"]: row for row in published.read("codec_superb_table3") if row["codec"] != "None"}
    agreed = [
        abs(overall_of_datasets(cells[codec, category]).value - float(row[f"{category}_overall"])) <= 0.0015
        for codec, row in printed.items()
        for category in ("speech", "audio")
    ]
    assert (sum(agreed), len(agreed)) == (38, 38)


def test_a_dataset_without_a_score_leaves_the_category_without_one():
    found = overall_of_datasets([0.6, None, 0.7])
    assert (found.value, found.reason) == (None, "1 of 3 datasets have no overall score")
    assert overall_of_datasets([]).status == "not_applicable"
    assert overall_of_datasets([0.5, 0.5]).value == 0.5


# --- the alternative --------------------------------------------------------------------------------------------

means = st.fixed_dictionaries(
    {
        "stft_distance": st.floats(0, 50),
        "mel_distance": st.floats(0, 50),
        "pesq": st.floats(-0.5, 5),
        "stoi": st.floats(-1, 1),
        "f0_corr": st.floats(-1, 1),
    }
)


@given(means, st.sampled_from(["speech", "audio", "music"]))
def test_it_is_a_number_between_0_and_1_for_all_means(values, category):
    assert 0.0 <= overall_unsaturated(values, category).value <= 1.0


@given(means, st.sampled_from(["stft_distance", "mel_distance"]), st.floats(0.01, 10))
def test_more_distance_is_always_worse(values, name, more):
    values = values | {"pesq": 3.0, "stoi": 0.9}
    worse = values | {name: values[name] + more}
    for category in ("speech", "audio"):
        assert overall_unsaturated(worse, category).value < overall_unsaturated(values, category).value


def test_only_the_identity_scores_one_and_lost_intelligibility_zero():
    for category in METRICS_OF:
        assert overall_unsaturated(PERFECT, category).value == 1.0
    assert overall_unsaturated(PERFECT | {"stoi": -0.1}, "speech").value == 0.0


def test_it_tells_apart_what_the_published_score_cannot():
    """Two band-limited codecs on ESC-50: 64 kbps of µ-law and 1.2 kbps of Codec 2, as measured by others."""
    ulaw, codec2 = ({"stft_distance": d, "mel_distance": m} for d, m in ((8.09, 2.48), (8.85, 3.19)))
    published_gap = overall(ulaw, "audio").value / overall(codec2, "audio").value
    gap = overall_unsaturated(ulaw, "audio").value / overall_unsaturated(codec2, "audio").value
    assert published_gap < 1.03
    assert gap > 1.09


# --- Table 4 ----------------------------------------------------------------------------------------------------


def test_correlations_are_means_over_datasets():
    rng = np.random.default_rng(8)
    codecs = [f"c{k}" for k in range(9)]
    categories = {"libri": "speech", "vox": "speech", "esc": "audio"}
    cells = {
        (dataset, codec): dict(zip((*METRICS_OF["speech"], "overall"), rng.random(5), strict=True))
        for dataset in categories
        for codec in codecs
    }
    for method, correlate in (("pearson", stats.pearsonr), ("spearman", stats.spearmanr)):
        found = {(one.metric, one.category): one for one in metric_correlations(cells, categories, method=method)}
        assert len(found) == 4 + 2
        each = [
            correlate([cells[d, c]["pesq"] for c in codecs], [cells[d, c]["overall"] for c in codecs])
            for d in ("libri", "vox")
        ]
        pesq = found["pesq", "speech"]
        assert pesq.correlation == pytest.approx(np.mean([one.statistic for one in each]))
        assert pesq.p_value == pytest.approx(np.mean([one.pvalue for one in each]))
        assert (pesq.datasets, pesq.fewest, pesq.reason) == (2, 9, "")
        assert ("pesq", "audio") not in found


def test_cells_are_the_measured_rows_of_datasets():
    rows = [
        Row(subset="libri", system="opus@6", metric="pesq", value=2.0),
        Row(subset="libri", system="opus@6", metric="stoi", status="failed", reason="silent"),
        Row(subset="libri", system="opus@6", metric="pesq", value=1.0, protocol="unaligned"),
        Row(subset="mean:speech", system="opus@6", metric="overall", value=0.6),
        Row(subset="libri", system="mp3@8", metric="pesq", value=3.0),
    ]
    assert cells_of(rows) == {("libri", "opus@6"): {"pesq": 2.0}, ("libri", "mp3@8"): {"pesq": 3.0}}
    assert cells_of(rows, "unaligned") == {("libri", "opus@6"): {"pesq": 1.0}}


def test_what_cannot_be_correlated_is_left_out_and_counted():
    cells = {("a", str(k)): {"pesq": float(k), "overall": k**2.0} for k in range(5)}
    cells |= {("b", str(k)): {"pesq": 1.0, "overall": float(k)} for k in range(5)}  # does not vary
    cells |= {("c", str(k)): {"pesq": float(k), "overall": None} for k in range(5)}
    (found,) = metric_correlations(cells, dict.fromkeys("abc", "speech"), metrics=("pesq",))
    assert (found.datasets, found.fewest) == (1, 5)
    assert found.reason.startswith("2 of 3 datasets left out")
    (none,) = metric_correlations(cells, {"b": "speech"}, metrics=("pesq",))
    assert (none.correlation, none.p_value, none.datasets) == (None, None, 0)


def test_the_published_overall_score_goes_with_what_recognisers_hear():
    """What the printed tables allow: the overall scores of Table 3 against its applications, over 19 codecs."""
    scores = published.load("codec-superb")
    cells: dict[tuple[str, str], dict[str, float]] = {}
    for row in scores.rows:
        if row.system != "no codec" and (row.metric != "overall" or row.subset == "mean:speech"):
            cells.setdefault(("printed", row.system), {})[row.metric] = row.value
    found = metric_correlations(cells, {"printed": "speech"}, metrics=("wer", "eer", "aec_map"), method="spearman")
    by_metric = {one.metric: one for one in found}
    assert all(one.fewest == 19 for one in found)
    assert by_metric["wer"].correlation < -0.8
    assert by_metric["eer"].correlation < -0.5
    assert by_metric["aec_map"].correlation > 0.5
