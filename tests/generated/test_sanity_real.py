"""The checks on real embeddings: halves, modes and bad samples as they should be, and verdicts that are known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from earmark.errors import InputError, UsageError
from earmark.generated.sanity._real_pairs import OUTLIERS, REPLACED, TESTS, Plan, RealSet
from earmark.generated.sanity.columns import choose
from earmark.generated.sanity.on_real import RealCurve, judge_curve, sanity_on_real
from earmark.published import read

RNG = np.random.default_rng(3)
LABELS = [f"c{row % 6}" for row in range(240)]
GROUPS = [f"r{row // 3}" for row in range(240)]  # three clips of a recording, of three labels
POINTS = RNG.normal(size=(240, 4)) + 6.0 * np.array([np.eye(6, 4)[row % 6] for row in range(240)])
BAD = RNG.normal(size=(130, 4)) + 100.0
SET = RealSet(POINTS, LABELS, GROUPS, BAD)


def plan(one: RealSet = SET, **options: Any) -> Plan:
    return Plan.make("", one, list(TESTS), **{"k": 5, "distance": "euclidean", "modes": 3, "seed": 0, **options})


def good(real: Any, generated: Any) -> float:
    """The share of samples that are not bad: what fidelity should be."""
    return float((generated.max(axis=1) < 50.0).mean())


def always(real: Any, generated: Any) -> float:
    return 0.7


def test_halves_share_no_group_and_have_as_many_clips_of_each_label() -> None:
    seen = set()
    for repeat in range(4):
        first, second = plan().halves(repeat)
        assert not {GROUPS[row] for row in first} & {GROUPS[row] for row in second}
        for half in (first, second):
            assert len(set(half)) == len(half) >= 100
        assert sorted(LABELS[row] for row in first) == sorted(LABELS[row] for row in second)
        seen.add(tuple(sorted(first)))
    assert len(seen) == 4
    alone = plan(SET._replace(groups=None)).halves(0)
    assert [len(half) for half in alone] == [120, 120]


def test_modes_fade_until_the_first_is_all_there_is() -> None:
    one = plan()
    pairs = [(value, real.vectors, generated) for test, value, real, generated in one.pairs(0) if test == "dropping"]
    assert [value for value, *_ in pairs] == [0.0, 0.5, 1.0]
    label_of = {point.tobytes(): label for point, label in zip(POINTS, LABELS, strict=True)}
    kinds = [{label_of[point.tobytes()] for point in generated} for _, _, generated in pairs]
    assert len({len(points) for _, *both in pairs for points in both}) == 1
    assert [len(found) for found in kinds] == [6, 6, 2]
    first = [sum(label_of[point.tobytes()] in kinds[2] for point in generated) for *_, generated in pairs]
    size = len(pairs[0][1]) // 3
    assert first == [size, size + 2 * (size - round(size / 2)), 3 * size]
    for _, real, generated in pairs:
        assert len({point.tobytes() for point in generated}) == len(generated)
        assert not {point.tobytes() for point in real} & {point.tobytes() for point in generated}


def test_bad_samples_take_the_places_of_good_ones() -> None:
    for test, value, real, generated in plan().pairs(1):
        if test == "dropping":
            continue
        assert (generated.max(axis=1) > 50.0).sum() == round(value * len(generated))
        expected = round(value * len(generated)) if test == "outliers" else 0
        assert (real.vectors.max(axis=1) > 50.0).sum() == expected
        assert not {point.tobytes() for point in real.vectors} & {point.tobytes() for point in generated}


def test_without_bad_samples_clips_are_moved_away_from_the_mean() -> None:
    one = plan(SET._replace(bad=None))
    *_, (_, share, real, generated) = (pair for pair in one.pairs(0) if pair[0] == "replacing")
    assert share == 1.0
    centre = real.vectors.mean(axis=0)
    usual = np.linalg.norm(real.vectors - centre, axis=1)
    assert np.median(np.linalg.norm(generated - centre, axis=1)) == pytest.approx(10 * np.median(usual), rel=0.15)
    assert any("moved away" in note for note in one.notes)


def test_known_metrics_get_the_verdicts_they_deserve(tmp_path: Path) -> None:
    result = sanity_on_real(SET, metrics=[good, always], repeats=2, modes=3, into=tmp_path)
    outcomes = {(cell.column.metric, cell.test): (cell.outcome, cell.decided) for cell in result.cells}
    assert outcomes == {
        ("good", "dropping"): ("T", True), ("good", "outliers"): ("T", True), ("good", "replacing"): ("T", True),
        ("always", "dropping"): ("T", True), ("always", "outliers"): ("T", True), ("always", "replacing"): ("F", True),
    }  # fmt: skip
    worst = result.cell("", "replacing", "always")
    assert (worst.departure, worst.at, worst.error, worst.start) == pytest.approx((1.0, 1.0, 0.0, 0.7))
    assert result.cell("", "outliers", "good").departure == pytest.approx(0.03, abs=0.005)
    # A second run scores nothing: every score is in the folder.
    before = (tmp_path / "scores.csv").read_bytes()
    again = sanity_on_real(SET, metrics=[good, always], repeats=2, modes=3, into=tmp_path)
    assert (tmp_path / "scores.csv").read_bytes() == before
    assert again.to_csv() == result.to_csv()
    with pytest.raises(UsageError, match="give --into another folder"):
        sanity_on_real(SET._replace(vectors=POINTS + 1), metrics=[good], repeats=2, into=tmp_path)


def test_metrics_of_balls_on_clear_data() -> None:
    result = sanity_on_real(
        {"clear": SET}, metrics=["precision", "clipped_density", "clipped_coverage"], tests=["outliers", "replacing"],
        repeats=2, threads=1,
    )  # fmt: skip
    for column in ("precision", "clipped_density", "clipped_coverage"):
        for correction in ("", "+gicdm"):
            cell = result.cell("clear", "replacing", column + correction)
            assert result.curves["clear", "replacing", column + correction].relative[-1] <= 0.05
            assert cell.outcome == "T", cell
    assert result.cell("clear", "outliers", "clipped_density").outcome == "T"
    assert {cell.published for cell in result.cells if cell.column.name == "precision+gicdm"} == {"T", "F"}


def test_bad_samples_that_are_not_bad_are_told() -> None:
    same = RNG.normal(size=(130, 4)) + 6.0 * np.array([np.eye(6, 4)[row % 6] for row in range(130)])
    for bad, told in ((same, True), (BAD, False)):
        result = sanity_on_real(
            {"m": SET._replace(bad=bad)}, metrics=["precision"], correct=["none"], tests=["replacing"], repeats=2
        )
        assert any("m: with nothing but bad samples precision is" in note for note in result.notes) == told


def test_a_curve_is_judged_by_its_largest_departure() -> None:
    (column,) = choose(["precision"], ["none"])
    straight = np.tile(1.0 - REPLACED, (4, 1))
    cell = judge_curve("", TESTS["replacing"], column, RealCurve(REPLACED, 0.8 * straight))
    assert (cell.outcome, cell.departure, cell.start) == ("T", pytest.approx(0.0), pytest.approx(0.8))
    bent = straight.copy()
    bent[:, 4] += 0.12 * np.array([0.0, 1.0, 1.0, 2.0])
    cell = judge_curve("", TESTS["replacing"], column, RealCurve(REPLACED, bent))
    assert (cell.outcome, cell.decided, cell.at) == ("F", False, REPLACED[4])
    assert cell.departure == pytest.approx(0.12)
    assert cell.error == pytest.approx(0.12 * np.std([0, 1, 1, 2], ddof=1) / 2)
    nothing = judge_curve("", TESTS["outliers"], column, RealCurve(OUTLIERS, np.zeros((3, 4))))
    assert (nothing.outcome, nothing.reason) == (None, "the score is 0 before anything is made worse")
    gap = np.ones((3, 4))
    gap[1, 2] = np.nan
    missing = judge_curve("", TESTS["outliers"], column, RealCurve(OUTLIERS, gap), "k = 5 needs more")
    assert (missing.outcome, missing.reason) == (None, "k = 5 needs more")


@pytest.mark.parametrize(
    ("one", "options", "said"),
    [
        (SET._replace(bad=BAD[:, :3]), {}, "4 dimensions and the bad samples 3"),
        (SET._replace(bad=BAD[:9]), {}, "9 bad samples, and a half has .* give at least"),
        (SET._replace(bad=None), {"distance": "cosine"}, "cosine does not see"),
        (SET._replace(labels=LABELS[:9]), {}, "240 vectors and 9 labels"),
        (RealSet(POINTS[:9]), {}, "make halves of 4: k = 5 needs more"),
        (SET, {"tests": ["droping"]}, 'Did you mean "dropping"'),
        (SET, {"repeats": 1}, "at least 2"),
    ],
)
def test_bad_input_is_one_sentence(one: RealSet, options: dict[str, Any], said: str) -> None:
    with pytest.raises((InputError, UsageError), match=said) as caught:
        sanity_on_real(one, **{"metrics": [good], "repeats": 2, **options})
    assert "\n" not in str(caught.value)


def test_unlabelled_clips_have_no_modes_to_drop() -> None:
    result = sanity_on_real(SET._replace(labels=None), metrics=[good], repeats=2)
    assert {cell.test for cell in result.cells} == {"outliers", "replacing"}
    assert any("dropping needs labels" in note for note in result.notes)


def test_published_verdicts_name_our_metrics_and_tests() -> None:
    rows = read("gicdm_appendix_f")
    assert {row["test"] for row in rows} == set(TESTS)
    for row in rows:
        assert row["asks"] in TESTS[row["test"]].kinds
    assert sum(row["cell"] == "T" for row in rows if row["gicdm"] == "1") == 17
