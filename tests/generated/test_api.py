"""`earmark.fidelity`: rows with reasons, values of single points, and what happens to difficult sets."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import earmark
from earmark.errors import InputError, UsageError
from earmark.generated import METRICS, Fidelity
from earmark.generated.measure import measure
from earmark.generated.metrics import ABLATIONS
from earmark.report.fidelity import to_text, write_reals, write_samples
from earmark.scores import metric_facts, validate

RNG = np.random.default_rng(0)
REAL, GENERATED = RNG.normal(size=(120, 12)), RNG.normal(size=(105, 12))
GENERATED[:15] += 4.0


@pytest.fixture(scope="module")
def scores() -> Fidelity:
    ids, real_ids = [f"g{row}.wav" for row in range(105)], [f"r{row}.wav" for row in range(120)]
    found: Fidelity = earmark.fidelity(REAL, GENERATED, bootstrap=50, ids=ids, real_ids=real_ids, system="toy")
    return found


def test_rows_are_the_plain_numbers(scores: Fidelity) -> None:
    for correction, gicdm in (("none", False), ("gicdm", True)):
        for name, value in measure(REAL, GENERATED, gicdm=gicdm).items():
            assert scores.value(name, correction=correction) == value
    literal = measure(REAL, GENERATED, gicdm=True, reading="literal")
    assert scores.value("clipped_density_literal") == literal["clipped_density"]
    assert scores.value("clipped_coverage_literal") == literal["clipped_coverage"]


def test_every_row_is_valid_and_every_gap_has_a_reason(scores: Fidelity) -> None:
    validate(scores)
    assert len({row.key for row in scores}) == len(scores)
    without = {row.metric for row in scores if row.status == "not_applicable"}
    assert without == {"precision_cover", "recall_cover", "frechet_distance", "kernel_distance"}
    for row in scores:
        assert row.system == "toy"
        assert row.inputs
        if row.status != "ok":
            assert row.correction == "gicdm"
            assert row.value is None
            assert "not defined" in row.reason
    assert {row.n for row in scores if row.status == "ok"} == {105, 120, 225}


def test_every_metric_has_facts_and_all_is_all() -> None:
    for name in METRICS:
        assert metric_facts(name).name == name
    found = earmark.fidelity(REAL, GENERATED, metrics=["precision", "all"], correct="none", bootstrap=0)
    assert {row.metric for row in found} == set(METRICS) - set(ABLATIONS)


@pytest.mark.parametrize("reading", ["corrected", "literal", "both"])
def test_readings_are_rows_of_their_own(reading: Any) -> None:
    found = earmark.fidelity(REAL, GENERATED, metrics="clipped_density", k=2, reading=reading, bootstrap=0)
    names = {"corrected": ["clipped_density"], "literal": ["clipped_density_literal"]}
    names["both"] = [*names["corrected"], *names["literal"]]
    assert [row.metric for row in found if row.correction == "gicdm"] == names[reading]
    assert [row.metric for row in found if row.correction == "none"] == ["clipped_density"]


def test_single_points_add_up_to_the_scores(scores: Fidelity) -> None:
    for correction in ("none", "gicdm"):
        for name in ("precision", "density", "p_precision"):
            values = scores.per_sample["euclidean", correction, "all", name]
            assert values.mean() == pytest.approx(scores.value(name, correction=correction))
        for name in ("recall", "coverage", "p_recall"):
            values = scores.per_real["euclidean", correction, "all", name]
            assert values.mean() == pytest.approx(scores.value(name, correction=correction))
    reach, inside = (scores.per_sample["euclidean", "none", "all", name] for name in ("reach", "precision"))
    np.testing.assert_array_equal(reach <= 1, inside == 1)
    reach, inside = (scores.per_sample["euclidean", "gicdm", "all", name] for name in ("reach", "precision"))
    np.testing.assert_array_equal(reach <= 1, inside == 1)
    near = scores.per_sample["euclidean", "none", "all", "nearest_row"].astype(int)
    distances = np.linalg.norm(GENERATED[:, None] - REAL[None], axis=2)
    np.testing.assert_array_equal(near, distances.argmin(axis=1))


def test_the_worst_samples_come_first(scores: Fidelity, tmp_path: Path) -> None:
    assert set(scores.worst(15).tolist()) == set(range(15))
    assert len(scores.worst()) == 105
    write_samples(scores, tmp_path / "samples.csv")
    write_reals(scores, tmp_path / "reals.csv")
    with (tmp_path / "samples.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [row["id"] for row in rows[:15]] == [f"g{row}.wav" for row in scores.worst(15)]
    assert rows[0]["euclidean gicdm kept"] == "0.0"
    assert rows[0]["euclidean gicdm reach"] == ""
    nearest = int(rows[3]["euclidean nearest_row"])
    assert rows[3]["euclidean nearest_id"] == f"r{nearest}.wav"
    with (tmp_path / "reals.csv").open() as stream:
        covered = [float(row["euclidean gicdm clipped_coverage"]) for row in csv.DictReader(stream)]
    assert len(covered) == 120
    assert np.mean(covered[:30]) < np.mean(covered[-30:])


def test_a_table_for_the_terminal(scores: Fidelity) -> None:
    said = to_text(scores, "toy")
    assert "without GICDM" in said
    assert "clipped_density, read literally" in said
    row = scores.worst(1)[0]
    misfit = scores.per_sample["euclidean", "gicdm", "all", "misfit"][row]
    assert f"worst samples, by clipped_density with GICDM, then misfit: g{row}.wav (0.00, {misfit:.2f})" in said
    assert "nan" not in said
    assert "of 1 (clipped_density and clipped_coverage with GICDM): the samples" in said


def test_a_selection_keeps_single_points(scores: Fidelity) -> None:
    part = scores.select(correction="gicdm")
    assert isinstance(part, Fidelity)
    assert part.per_sample.keys() == scores.per_sample.keys()


def test_the_same_call_has_the_same_inputs_and_others_do_not(scores: Fidelity) -> None:
    inputs = {row.correction: row.inputs for row in scores}
    assert inputs["none"] != inputs["gicdm"]
    one, again = (earmark.fidelity(REAL, GENERATED, metrics="precision", correct="none", seed=2) for _ in range(2))
    moved = earmark.fidelity(REAL, GENERATED + 1e-9, metrics="precision", correct="none", seed=2)
    assert one.rows[0].inputs == again.rows[0].inputs != moved.rows[0].inputs


def test_distances_are_rows_of_their_own() -> None:
    found = earmark.fidelity(
        REAL, GENERATED, metrics=["precision", "frechet_distance"], k=2, bootstrap=0, distance=["cosine", "euclidean"]
    )
    assert found.value("precision", distance="cosine", correction="gicdm") <= 1
    assert "ask for euclidean" in found.row("frechet_distance", distance="cosine", correction="none").reason
    assert found.value("frechet_distance", distance="euclidean", correction="none") > 0
    assert found.leading("cosine")[0] == "cosine"


# --- difficult sets ---------------------------------------------------------------------------------------------------


def test_sets_too_small_for_gicdm_still_have_plain_scores() -> None:
    found = earmark.fidelity(REAL[:40], GENERATED[:45], bootstrap=0)
    assert found.value("precision", correction="none") >= 0
    row = found.row("precision", correction="gicdm")
    assert row.status == "not_applicable"
    assert row.reason.endswith("there are 40 real points: the largest k that fits is 1")
    assert "45 generated points" in found.row("recall", correction="gicdm").reason
    assert found.leading()[1] == "none"


def test_sets_too_small_for_balls_still_have_distances() -> None:
    found = earmark.fidelity(REAL[:4], GENERATED[:3], bootstrap=0)
    assert (
        found.row("precision", correction="none").reason
        == "k = 5 needs more than 5 real points, and there are 4: use k = 3"
    )
    assert found.value("kernel_distance", correction="none") != 0
    assert "lost rank" in found.row("frechet_distance", correction="none").reason
    assert "samples that raise frechet_distance most: row " in to_text(found)
    assert repr(found) == "Fidelity(30 rows, 3 samples, 4 real points)"
    assert found.row("precision_cover", correction="none").reason == (
        "k = 3 of the cover pair looks at 8 others (3k - 1), and there are 3 generated points: "
        "use --k precision_cover=1"
    )
    again = earmark.fidelity(REAL[:4], GENERATED[:3], metrics="precision_cover", k={"precision_cover": 1})
    assert again.row("precision_cover", correction="none").status == "ok"
    with pytest.raises(InputError, match="with a k that fits"):
        earmark.fidelity(REAL[:4], GENERATED[:3], metrics="precision", bootstrap=0).leading()


def test_the_excess_of_few_points_is_told() -> None:
    rng = np.random.default_rng(1)

    def reason(real: int, generated: int, shift: float = 0.0) -> str:
        sets = rng.normal(size=(real, 40)), rng.normal(size=(generated, 40)) + shift
        found = earmark.fidelity(*sets, metrics="fad", correct="none", intervals="none").row("frechet_distance")
        told = re.search(r"(at least|about) (\S+) \(", found.reason)
        if told:  # the sets are alike: all of the value is excess
            assert shift or 0.7 < float(told[2]) / found.value < 1.2
        return found.reason

    assert "30 points in 40 dimensions: the covariances have lost rank" in reason(30, 35)
    assert "80 points in 40 dimensions" in reason(120, 80)
    assert "from one distribution would be about" in reason(1000, 60)
    assert reason(400, 400, shift=2.0) == ""


def test_copies_and_flat_vectors_are_told() -> None:
    real = np.concatenate([REAL[:60], np.repeat(REAL[:1], 6, axis=0)])
    found = earmark.fidelity(real, GENERATED, metrics="precision", correct="none", bootstrap=0)
    assert any("7 real points with at least 5 exact copies" in note for note in found.notes)
    found = earmark.fidelity(REAL, GENERATED * (np.arange(105) > 2)[:, None], metrics="precision", correct="none",
                             distance="cosine", bootstrap=0)  # fmt: skip
    assert any("3 generated vectors without direction" in note for note in found.notes)


def test_reasons_are_grouped_and_name_one_k_that_fits() -> None:
    found = earmark.fidelity(REAL[:70], GENERATED[:45], bootstrap=0)
    notes = [line for line in to_text(found).splitlines() if line.startswith("note:") and "neighbours" in line]
    assert len(notes) == 2
    assert all(line.endswith(": k = 2 fits") for line in notes)
    assert any("recall, sym_recall, p_recall with GICDM: GICDM with k = 5" in line for line in notes)
    fitting = earmark.fidelity(REAL[:70], GENERATED[:45], k=2, bootstrap=0)
    assert all(row.status == "ok" for row in fitting if row.metric in ("recall", "clipped_density"))


def test_few_samples_are_not_said_to_cover_the_real_points() -> None:
    rng = np.random.default_rng(5)
    real, few = rng.normal(size=(400, 12)), rng.normal(size=(40, 12))
    found = earmark.fidelity(real, few, k=2, bootstrap=0)
    assert found.value("clipped_coverage", correction="none") > 0.8
    assert found.value("coverage", correction="none") < 0.5
    said = to_text(found)
    assert "cover them" not in said
    assert "% of the real points (coverage with" in said
    assert "clipped_coverage compares with what 40 samples of the real distribution would cover" in said
    pair = earmark.fidelity(real, few, k=2, metrics=["clipped_density", "clipped_coverage"], correct="none")
    assert "cover as much of them as 40 samples can" in to_text(pair)
    even = earmark.fidelity(REAL, GENERATED, metrics="clipped_coverage", correct="none", bootstrap=0)
    assert not any("compares with" in note for note in even.notes)


def test_copies_of_real_points_are_told() -> None:
    copies = REAL[:105].copy()
    copies[:50] += 1e-4
    found = earmark.fidelity(REAL, copies, bootstrap=0)
    assert found.per_sample["euclidean", "none", "all", "copy"].all()
    dropped = int((found.per_sample["euclidean", "gicdm", "all", "kept"] == 0).sum())
    said = to_text(found)
    assert "105 samples are (near) copies of real points (euclidean), more than chance brings (p = 0.002)" in said
    assert "a generator that memorises" in said
    assert f"; GICDM drops {dropped} of them" in said
    assert "105 of 105 samples are (near) copies of real points, and GICDM drops" in said
    some = GENERATED.copy()
    some[20] = REAL[3]
    found = earmark.fidelity(REAL, some, metrics="precision", correct="none", bootstrap=0)
    assert ("euclidean", "none", "all", "copy") not in found.per_sample
    assert found.notes == (
        "1 sample is a copy of a real point at distance 0 (euclidean); its distance 0 alone does not show that the "
        "generator memorises",
    )
    some[30:40] = REAL[40:50] + 1e-5
    found = earmark.fidelity(REAL, some, metrics="precision", correct="none", bootstrap=0)
    assert np.flatnonzero(found.per_sample["euclidean", "none", "all", "copy"]).tolist() == [20, *range(30, 40)]


@pytest.mark.parametrize("doubles", [False, True])
def test_chance_neighbours_and_doubles_are_no_copies(doubles: bool) -> None:
    """In one dimension a tenth of good samples lies this near; in a set with doubles, a generator may make them too."""
    rng = np.random.default_rng(3)
    real, good = rng.normal(size=(300, 1)), rng.normal(size=(300, 1))
    if doubles:
        drawn = rng.normal(size=(200, 12))
        real, good = drawn[rng.integers(0, 200, 400)], drawn[rng.integers(0, 200, 300)]
    found = earmark.fidelity(real, good, metrics="density", correct="none", bootstrap=0)
    assert ("euclidean", "none", "all", "copy") not in found.per_sample


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"correct": "icdm"}, "Unknown correction 'icdm': choose from none, gicdm"),
        ({"correct": ()}, "No correction"),
        ({"reading": "free"}, "Unknown reading"),
        ({"distance": "manhattan"}, "Unknown distance"),
        ({"bootstrap": -1}, "bootstrap must be at least 0"),
        ({"intervals": "exact"}, "Unknown kind of intervals 'exact': choose from jackknife, bootstrap, none"),
        ({"groups": ["a"] * 3}, "105 generated vectors and 3 groups"),
        ({"real_groups": ["a"] * 3}, "120 real vectors and 3 groups"),
        ({"ids": ["a"]}, "105 generated vectors and 1 ids"),
        ({"memory": "lots"}, "Memory 'lots'"),
        ({"threads": 0}, "threads must be"),
        ({"device": "tpu"}, "Unknown device 'tpu'"),
    ],
)
def test_misuse_is_one_sentence(options: dict[str, Any], said: str) -> None:
    with pytest.raises((InputError, UsageError), match=said):
        earmark.fidelity(REAL, GENERATED, **options)
