"""Every figure by name: what each source can give, and figures of tables that nobody would wish for."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from earmark import published
from earmark.errors import UsageError
from earmark.report.facts import printed_facts
from earmark.report.figures._planes import find_planes
from earmark.report.figures.style import names_of
from earmark.report.gallery import Material, Wishes, entries, find, offers
from earmark.report.rates import printed_comparisons, signal_correlations
from earmark.report.score_index import ScoreIndex
from earmark.scores import Row, Scores

pytest.importorskip("matplotlib")


def material(scores: Scores, **more: Any) -> Material:
    return Material(name="a table", scores=scores, facts=printed_facts(ScoreIndex(scores).subsets), **more)


def measured(system: str, subset: str, value: float, metric: str = "P@1", **cells: Any) -> Row:
    given = {"suite": "vocsim", "distance": "cosine", "baseline": 0.05, "lift": value - 0.05} | cells
    return Row(system=system, subset=subset, metric=metric, value=value, **given)


def drawn(scores: Scores, *names: str, laid_out: bool = False, **wishes: Any) -> dict[str, Any]:
    """Every figure of these kinds that the table gives, on wish laid out as when written; a warning is an error."""
    made = {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for offer in offers(material(scores, wishes=Wishes(**wishes))):
            if offer.entry.name in names:
                for exhibit in offer.exhibits:
                    drawing = exhibit.draw()
                    if laid_out:
                        drawing.figure.draw_without_rendering()
                    made[drawing.name] = drawing
    return made


GIVEN = {
    "vocsim": "trends trend-correlations pooling pca composition scores correlations",
    "vocsim-dtw": "dtw scores",
    "vocsim-pooling": "trends pooling composition scores",
    "codec-superb": "scores correlations rate",
    "gicdm-hubness": "hubness scores",
}


@pytest.mark.parametrize("name", GIVEN)
def test_what_printed_results_give_and_why_not_more(name: str) -> None:
    scores = published.load(name)
    found = offers(Material(name=name, scores=scores, facts=printed_facts(ScoreIndex(scores).subsets), printed=name))
    assert [offer.entry.name for offer in found] == list(entries())
    assert {offer.entry.name for offer in found if offer.exhibits} == set(GIVEN[name].split())
    for offer in found:
        if not offer.exhibits:  # one sentence that says what to do
            assert offer.reason.endswith(".")
            assert any(word in offer.reason for word in ("`earmark", "--", "at least", "give", "needed")), offer.reason


def test_codecs_as_printed_have_their_own_rates_levels_and_fronts() -> None:
    scores = published.load("codec-superb")
    panels = printed_comparisons(scores)
    assert [one.protocol for one in panels["overall"]] == ["speech", "audio", "music"]
    assert [one.metric for one in panels["applications"]] == ["wer", "eer", "aec_map", "er_accuracy"]
    wer = panels["applications"][0]
    printed = {row["codec"]: row for row in published.read("codec_superb_table3") if row["kbps"]}
    assert wer.anchors == {"no codec"}
    assert {point.system: (point.kbps, point.value) for point in wer.points} == {
        name: (float(row["kbps"]), pytest.approx(float(row["asr_wer_pct"]) / 100)) for name, row in printed.items()
    }
    front = [
        name for name, row in printed.items()
        if not any(
            float(other["kbps"]) <= float(row["kbps"]) and float(other["asr_wer_pct"]) <= float(row["asr_wer_pct"])
            and other is not row and (other["kbps"], other["asr_wer_pct"]) != (row["kbps"], row["asr_wer_pct"])
            for other in printed.values()
        )
    ]  # fmt: skip
    assert {point.system for point in wer.front} == set(front)
    emotions = panels["applications"][-1]
    assert not {"F1", "F2", "F3", "F4"} & {point.system for point in emotions.points}  # repeat E2 to E5
    (drawing,) = [exhibit.draw() for exhibit in find("rate", material(scores)) if exhibit.name == "rate-applications"]
    assert "they repeat another codec's" in drawing.caption
    titles = [axes.get_title() for axes in drawing.figure.axes]
    assert titles[0].startswith("word error rate (%)")
    assert not any("_" in title for title in titles)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text

    FigureCanvasAgg(drawing.figure).draw()
    for axes in drawing.figure.axes:
        boxes = [Text.get_window_extent(text) for text in axes.texts]  # without the line that leads to a point
        assert not any(one.overlaps(other) for place, one in enumerate(boxes) for other in boxes[:place])
    assert {row["system"] for row in drawing.rows} >= {"A", "D2"}


def test_signal_metrics_against_the_overall_score() -> None:
    rng = np.random.default_rng(0)
    rows = []
    for subset in "AB":
        for codec in range(6):
            quality = rng.random()
            for metric, value in (("overall", quality), ("pesq", 1 + 3 * quality), ("stft_distance", 5 - quality)):
                rows.append(Row(subset=subset, system=f"c{codec}", metric=metric, value=value))
    found = signal_correlations(Scores(tuple(rows)))
    assert found.metrics == ("stft_distance", "pesq")
    np.testing.assert_allclose(found.spearman, [[-1, -1], [1, 1]], atol=1e-12)
    np.testing.assert_allclose(found.pearson, [[-1, -1], [1, 1]], atol=1e-12)
    assert "by construction" in find("signals", material(Scores(tuple(rows))))[0].draw().caption


def test_generated_sets_on_one_plane() -> None:
    rows = [
        Row(subset="real", system=name, distance="euclidean", correction=correction, metric=metric, value=value,
            low=value - 0.05, high=value + 0.05)
        for place, name in enumerate(("good", "narrow", "far"))
        for correction in ("none", "gicdm")
        for metric, value in (("density", 0.9 - 0.3 * place), ("coverage", 0.8 - 0.1 * place))
    ]  # fmt: skip
    rows.append(Row(subset="real", system="half", distance="euclidean", metric="density", value=0.4))
    (plane,) = find_planes(Scores(tuple(rows)))
    assert list(plane.sets) == ["good", "narrow", "far"]
    assert plane.pairs == ["density, coverage"]
    assert plane.rows()[2]["fidelity"] == pytest.approx(0.6)
    made = drawn(Scores(tuple(rows)), "plane", laid_out=True)["plane-euclidean"]
    assert {text.get_text() for text in made.figure.legends[0].get_texts()} == {
        "good", "narrow", "far", "without GICDM", "with GICDM",
    }  # fmt: skip


SUBSETS = [row["subset"] for row in published.read("vocsim_table1_subsets")]


def test_forty_systems_with_long_names_on_nineteen_subsets() -> None:
    rng = np.random.default_rng(0)
    systems = [f"organisation/model-of-many-words-and-versions-{n:02d} mean_time+mean_feature" for n in range(40)]
    rows = [measured(name, subset, float(rng.uniform(0.2, 0.9))) for name in systems for subset in SUBSETS]
    rows += [replace(row, subset=f"{row.subset}~noise0.1", value=0.8 * (row.value or 0)) for row in rows]
    drawn(Scores(tuple(rows)), "label-noise", laid_out=True)
    made = drawn(Scores(tuple(rows)), "trends", "scores", "label-noise", "trend-correlations")
    labels = [label.get_text() for label in made["scores-P_1"].figure.axes[0].get_yticklabels()]
    assert len(set(labels)) == 40  # cut, and still told apart
    assert max(map(len, labels)) <= 46
    assert set(made) == {"trends-top5", "trends-top50", "trends-top100", "trend-correlations", "scores-P_1",
                         "label-noise"}  # fmt: skip
    assert "2 of 40 by P@1" in made["trends-top5"].caption


def test_one_subset_two_subsets_failed_values_and_nothing_at_all() -> None:
    rng = np.random.default_rng(2)
    systems = ("a mean_time", "a max_time", "a mean_time D30", "b")
    one = [measured(name, "BC", float(rng.uniform(0.2, 0.9)), m) for name in systems for m in ("P@1", "GSR")]
    every = ("trends", "scores", "pooling", "pca", "lift", "composition", "hubness", "label-noise")
    noisy = [replace(row, subset="BC~noise0.2", value=0.5 * (row.value or 0)) for row in one]
    assert set(drawn(Scores((*one, *noisy)), *every)) == {
        "scores-P_1", "pooling", "pca", "lift-P_1", "composition", "label-noise",
    }  # fmt: skip
    two = [replace(row, subset=name, correction=way) for row in one for name in ("BC", "HW1") for way in ("none", "ls")]
    assert {"hubness", "pooling"} <= set(drawn(Scores(tuple(two)), *every))
    wide = [replace(row, subset=name) for row in one for name in SUBSETS]
    holes = [
        row if rng.random() > 0.3 else replace(row, value=None, lift=None, status="failed", reason="NaN")
        for row in wide
    ]  # fmt: skip
    assert {"pooling", "pca"} <= set(drawn(Scores(tuple(holes)), "pooling", "pca", laid_out=True))
    failed = [replace(row, value=None, lift=None, status="failed", reason="NaN") for row in wide]
    assert set(drawn(Scores(tuple(failed)), *every)) == {"composition"}
    flat = [replace(row, value=0.5, lift=0.45) for row in wide]
    assert "P@1 is the same on all subsets" in drawn(Scores(tuple(flat)), "trends")["trends-top100"].caption


def test_wishes_choose_and_wrong_ones_are_named() -> None:
    scores = published.load("vocsim")
    few = material(scores, wishes=Wishes(metrics=("GSR",), subsets=("BC", "HP", "ES1"), top=(10.0,)))
    few.check_wishes()
    (exhibit,) = find("trends", few)
    drawing = exhibit.draw()
    assert drawing.name == "trends-top10"
    assert {row["subsets"] for row in drawing.rows} == {3}
    assert {row["metric"] for row in drawing.rows} == {"GSR"}
    for wrong, match in ((Wishes(metrics=("P@2",)), 'metric "P@2"'), (Wishes(subsets=("XX",)), 'subset "XX"'),
                         (Wishes(systems=("EWMTF D10",)), 'Did you mean "EWMTF D100"')):  # fmt: skip
        with pytest.raises(UsageError, match=match):
            material(scores, wishes=wrong).check_wishes()
    with pytest.raises(UsageError, match='Did you mean "trends"'):
        find("trend", few)


def test_names_stay_apart() -> None:
    assert names_of(["a", "b"], 10) == ["a", "b"]
    long = [f"{'x' * 40}{n}{'y' * 40}" for n in range(3)]
    assert len(set(names_of(long, 20))) == 3
    assert all(len(name) <= 20 for name in names_of(long, 20))
    assert names_of(["same", "same"], 3) == names_of(["same"], 3) * 2
