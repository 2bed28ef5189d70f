"""Trends: against a loop and SciPy, on the printed tables, by simulation, and with little to see."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

from earmark import published
from earmark.errors import InputError
from earmark.report.content import Durations, SubsetFacts
from earmark.report.facts import match_facts, printed_facts, read_facts
from earmark.report.score_index import ScoreIndex, Subset
from earmark.report.trends import find_trends, trend_sentences
from earmark.scores import Row, Scores


def table(values: np.ndarray, metrics: tuple[str, ...] = ("P@1",)) -> Scores:
    """Rows of values [metrics, systems, subsets]."""
    return Scores(
        tuple(
            Row(
                suite="s", subset=f"{k}", system=f"m{j}", distance="cosine", metric=metric, value=float(values[i, j, k])
            )
            for i, metric in enumerate(metrics)
            for j in range(values.shape[1])
            for k in range(values.shape[2])
        )
    )


def facts(clips: np.ndarray, classes: np.ndarray) -> list[SubsetFacts]:
    return [
        SubsetFacts(suite="s", subset=str(k), clips=int(a), classes=int(b))
        for k, (a, b) in enumerate(zip(clips, classes, strict=True))
    ]


@pytest.mark.parametrize("metric", ["P@1", "CSCF"])
def test_the_chosen_and_their_correlation_against_a_loop(metric: str) -> None:
    rng = np.random.default_rng(3)
    values = rng.random((1, 20, 9))
    clips = rng.permutation(np.arange(10, 100, 10))
    found = find_trends(table(values, (metric,)), facts(clips, np.full(9, 4)), [metric], 10)
    order = sorted(range(20), key=lambda j: values[0, j].mean(), reverse=metric == "P@1")[:2]
    assert [line.system for line in found.choices[metric].chosen] == [f"m{j}" for j in order]
    means = [sum(values[0, j, k] for j in order) / 2 for k in range(9)]
    np.testing.assert_allclose(found.means[metric], means, rtol=1e-12)
    assert [item.fact for item in found.trends] == ["clips", "clips per class"]  # classes are the same everywhere
    for item in found.trends:
        assert item.rho == pytest.approx(spearmanr(clips, means)[0], abs=1e-12)
        assert item.low is not None
        assert item.high is not None
        assert item.low < (item.rho or 0) < item.high


def test_what_the_printed_tables_say_of_the_text() -> None:
    """VocSim: P@k "degrades significantly as the number of samples in a subset or the number of classes increases"."""
    scores = published.load("vocsim")
    index = ScoreIndex(scores)
    printed = {row["subset"]: row for row in published.read("vocsim_table1_subsets")}
    for top in (5, 100):
        found = find_trends(index, printed_facts(index.subsets), top=top)
        values = {
            (row.system, row.distance, row.subset): row.value
            for row in scores if row.metric == "P@1" and row.status == "ok"
        }  # fmt: skip
        whole = [key for key in dict.fromkeys(k[:2] for k in values) if sum(k[:2] == key for k in values) == 19]
        best = sorted(whole, key=lambda key: -sum(values[*key, name] or 0 for name in printed))
        best = best[: max(1, round(len(whole) * top / 100))]
        means = [np.mean([values[*key, name] for key in best]) for name in printed]
        by_property = {item.fact: item for item in found.trends if item.metric == "P@1"}
        for name, column in (("clips", "n_samples"), ("classes", "n_classes"), ("dynamic range (dB)", "DRI_dB")):
            expected = spearmanr([float(row[column]) for row in printed.values()], means)[0]
            assert by_property[name].rho == pytest.approx(expected, abs=1e-12)
        assert abs(by_property["clips"].rho or 1.0) < 0.2
        assert (by_property["classes"].rho or 0.0) < -0.5
        assert not by_property["clips"].told
        text = " ".join(trend_sentences(found))
        assert "on 19 subsets" in text
        assert "shows no trend with clips" in text
        assert "15 that are looked at" in text
        assert "classes and clips per class" in text  # tangled
    assert "chosen by their mean" in " ".join(trend_sentences(find_trends(index, printed_facts(index.subsets))))


def test_where_nothing_follows_from_anything_hardly_a_figure_marks_a_trend() -> None:
    rng = np.random.default_rng(0)
    marked, inside, count = 0, 0, 150
    for _ in range(count):
        values = rng.random((2, 4, 8)) * 0.2 + rng.random(8)[None, None] * 0.5
        known = facts(rng.permutation(np.arange(20, 180, 20)), rng.permutation(np.arange(2, 10)))
        found = find_trends(table(values, ("P@1", "GSR")), known, top=25)
        assert found.comparisons == 6
        marked += any(item.told for item in found.trends)
        inside += sum((item.low or 0) <= 0 <= (item.high or 0) for item in found.trends)
    assert marked <= 0.05 * count + 3 * np.sqrt(0.05 * 0.95 * count)
    assert inside / (6 * count) > 0.93


def test_little_to_see() -> None:
    rng = np.random.default_rng(1)
    values = rng.random((1, 3, 4))
    known = facts(np.array([10, 20, 30, 40]), np.array([2, 3, 4, 5]))
    found = find_trends(table(values), known)
    assert {item.reason for item in found.trends} == {"4 subsets, and 5 are needed"}
    assert "No rank correlation: 4 subsets" in " ".join(trend_sentences(found))
    with pytest.raises(InputError, match=r"takes three subsets .* there are 2"):
        find_trends(table(values[:, :, :2]), known)
    with pytest.raises(InputError, match="do not differ"):
        find_trends(table(values), facts(np.full(4, 10), np.full(4, 2)))
    with pytest.raises(InputError, match="top 0 %"):
        find_trends(table(values), known, top=0)
    holes = Scores(tuple(row for row in table(values) if row.system != f"m{row.subset}"[:2] or row.subset == "3"))
    with pytest.raises(InputError, match="No configuration has P@1 on all of 4"):
        find_trends(holes, known)
    flat = find_trends(table(np.full((1, 3, 6), 0.5)), facts(np.arange(1, 7), np.arange(1, 7)))
    assert {item.reason for item in flat.trends} == {"P@1 is the same on all subsets"}


def test_facts_come_from_the_paper_a_file_or_both(tmp_path) -> None:
    places = [Subset("vocsim", "BC"), Subset("vocsim", "XX"), Subset("own", "BC")]
    (paper,) = printed_facts(places)
    assert (paper.suite, paper.clips, paper.classes, paper.dri, paper.domain) == (
        "vocsim",
        3321,
        28,
        15.0,
        "bird calls",
    )
    (tmp_path / "facts.csv").write_text("subset,clips,classes,seconds,dri\nXX,12,3,0.5,\nBC,9,2,1.5,7\n")
    given = read_facts(tmp_path / "facts.csv")
    found = match_facts(places, printed_facts(places), given)
    assert [(item.suite, item.subset, item.clips) for item in found] == [
        ("vocsim", "BC", 3321), ("vocsim", "XX", 12), ("own", "BC", 9),
    ]  # fmt: skip
    assert found[2].durations is not None
    assert (found[2].durations.mean, found[2].dri) == (1.5, 7.0)
    bare = [SubsetFacts(subset="BC", clips=5, classes=2, durations=Durations(1, 1, 1, 1, 5))]
    assert match_facts([Subset("own", "BC")], bare, given)[0].dri == 7.0
    (tmp_path / "facts.json").write_text('[{"subset": "A", "clips": 3, "classes": 2}]')
    assert read_facts(tmp_path / "facts.json")[0].subset == "A"
    for text, match in (("subset,clips\nA,3\n", "line 2 needs"), ("subset,clips,classes\nA,x,3\n", "clips is 'x'"),
                        ("subset,clips,classes\n", "has no subsets")):  # fmt: skip
        (tmp_path / "bad.csv").write_text(text)
        with pytest.raises(InputError, match=match):
            read_facts(tmp_path / "bad.csv")
