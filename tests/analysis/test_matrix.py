"""The performance matrix: equation 1, directions, gaps, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from earmark.analysis.matrix import Matrix, from_scores, from_table, usable
from earmark.errors import InputError, UsageError
from earmark.scores import Row, Scores


def table(values: object, **options: object) -> Matrix:
    array = np.array(values, float)
    names = ([f"m{i}" for i in range(array.shape[0])], [f"d{j}" for j in range(array.shape[1])])
    return from_table(array, *names, **options)  # type: ignore[arg-type]


def test_normalised_is_the_share_of_the_way_from_chance_to_the_best() -> None:
    found = table([[0.5, 0.1], [1.0, 0.7]], chance={"d0": 0.25, "d1": 0.2}).normalised()
    assert found == pytest.approx(np.array([[0.25 / 0.75, 0.0], [1.0, 0.5 / 0.8]]))


def test_unclipped_values_come_back() -> None:
    matrix = table([[0.5, 0.1], [1.0, np.nan]], chance=0.25)
    assert matrix.normalised(clip=False)[0, 1] == pytest.approx(-0.2)
    assert np.isnan(matrix.normalised()[1, 1])


def test_lower_is_better_turns_a_column_round() -> None:
    matrix = table([[0.2, 0.2], [0.6, 0.6]], lower_is_better=["d1"], chance={"d1": 0.5})
    assert matrix.normalised() == pytest.approx(np.array([[0.2, 0.6], [0.6, 0.0]]))
    assert matrix.oriented() == pytest.approx(np.array([[0.2, -0.2], [0.6, -0.6]]))
    assert matrix.higher_is_better == (True, False)


def test_percentages_and_open_scales_end_where_they_should() -> None:
    matrix = table([[0.5, 50.0, 10.0], [1.02, 80.0, 400.0]], lower_is_better=["d2"])
    assert list(matrix.best) == [1.0, 100.0, 0.0]
    assert list(matrix.chance) == [0.0, 0.0, 400.0]
    assert matrix.normalised()[0] == pytest.approx([0.5, 0.5, 0.975])


def test_complete_drops_what_has_most_gaps() -> None:
    values = np.ones((6, 4))
    values[:5, 3] = np.nan  # a column that one model has
    values[2, 0] = np.nan  # a row with a gap
    matrix = table(values)
    assert matrix.complete().models == ("m0", "m1", "m3", "m4", "m5")
    assert matrix.complete().datasets == ("d0", "d1", "d2")
    assert matrix.complete("models").models == ("m5",)
    assert matrix.complete("datasets").datasets == ("d1", "d2")
    with pytest.raises(InputError, match="No part of the matrix is complete"):
        table(np.full((2, 2), np.nan)).complete()
    with pytest.raises(UsageError, match="drop is"):
        matrix.complete("rows")  # type: ignore[arg-type]


def test_empty_rows_and_columns_are_not_present() -> None:
    values = np.ones((4, 3))
    values[1] = np.nan
    values[:, 2] = np.nan
    matrix = table(values, families=["a", "b", "a", "c"])
    assert matrix.present().models == ("m0", "m2", "m3")
    assert matrix.present().families == ("a", "a", "c")
    assert matrix.present().datasets == ("d0", "d1")
    with pytest.raises(InputError, match="has 3 models with scores; this needs at least 4"):
        usable(matrix, models=4)


def test_families() -> None:
    assert table(np.ones((3, 2))).families == ("m0", "m1", "m2")
    assert not table(np.ones((3, 2))).grouped
    matrix = table(np.ones((3, 2)), families={"m0": "x", "m2": "x"})
    assert matrix.families == ("x", "m1", "x")
    assert matrix.grouped


@pytest.mark.parametrize(
    ("names", "options", "error", "said"),
    [
        ((["a", "a"], ["x", "y"]), {}, InputError, 'model "a" appears twice'),
        ((["a", "b"], ["x", "x"]), {}, InputError, 'dataset "x" appears twice'),
        ((["a"], ["x", "y"]), {}, UsageError, "2 x 2 for 1 model and 2 datasets"),
        ((["a", "b"], ["x", "y"]), {"chance": 1.0}, InputError, '"x" has chance 1 and best value 1'),
        ((["a", "b"], ["x", "yes"]), {"chance": {"yse": 0.2}}, UsageError, 'names "yse".*Did you mean "yes"'),
        ((["a", "b"], ["x", "y"]), {"lower_is_better": ["z"]}, UsageError, "lower_is_better names"),
        ((["a", "b"], ["x", "y"]), {"families": ["one"]}, UsageError, "families has 1 entries where 2"),
    ],
)
def test_what_is_refused(
    names: tuple[list[str], list[str]], options: dict[str, object], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        from_table(np.full((2, 2), 0.5), *names, **options)  # type: ignore[arg-type]


def test_an_infinite_score_is_refused() -> None:
    with pytest.raises(InputError, match='"m1" has an infinite score on "d0"'):
        table([[0.1, 0.2], [np.inf, 0.3]])


def row(system: str, subset: str, value: float | None, **cells: object) -> Row:
    status = {} if value is not None else {"status": "failed", "reason": "why"}
    return Row(**({"metric": "P@1", "system": system, "subset": subset, "value": value} | status | cells))  # type: ignore[arg-type]


def test_a_score_table_becomes_a_matrix() -> None:
    scores = Scores(
        (
            row("a", "x", 0.5),
            row("a", "y", None),
            row("b", "y", 0.25),
            row("a", "mean", 0.9),
            row("a", "x~noise0.1", 0.1),
            row("a", "x", 0.7, metric="CS"),
        )
    )
    found = from_scores(scores, "P@1", chance={"y": 0.125})
    assert (found.models, found.datasets) == (("a", "b"), ("x", "y"))
    assert found.values == pytest.approx(np.array([[0.5, np.nan], [np.nan, 0.25]]), nan_ok=True)
    assert (list(found.chance), list(found.best)) == ([0.0, 0.125], [1.0, 1.0])
    down = from_scores(scores, "CS")
    assert (list(down.chance), list(down.best), down.higher_is_better) == ([1.0], [0.0], (False,))


def test_distances_of_one_system_are_models_of_one_family() -> None:
    scores = Scores(tuple(row(s, "x", 0.5, distance=d) for s in ("a", "b") for d in ("cosine", "euclidean")))
    found = from_scores(scores, "P@1")
    assert found.models == ("a / cosine", "a / euclidean", "b / cosine", "b / euclidean")
    assert found.families == ("a", "a", "b", "b")
    assert from_scores(scores, families={"a": "same", "b": "same"}).families == ("same",) * 4
    assert from_scores(scores, distance="cosine").models == ("a", "b")


def test_an_overall_score_is_measured_against_1() -> None:
    assert list(from_scores(Scores((row("a", "x", 1.01, metric="overall"),))).best) == [1.0]


def test_subsets_of_two_suites_are_different_datasets() -> None:
    scores = Scores((row("a", "x", 0.5, suite="one"), row("a", "x", 0.6, suite="two")))
    assert from_scores(scores).datasets == ("one/x", "two/x")


@pytest.mark.parametrize(
    ("rows", "options", "error", "said"),
    [
        ([row("a", "x", 0.5), row("a", "x", 0.6)], {}, InputError, '"a" has two rows for P@1 on "x"'),
        ([row("a", "x", 0.5), row("a", "x", 0.6, metric="GSR")], {}, UsageError, "2 metrics .P@1, GSR.; choose one"),
        ([row("a", "x", 0.5)], {"metric": "GSR"}, UsageError, 'No row has metric "GSR"'),
        ([row("a", "mean", 0.5)], {}, InputError, "only means over subsets"),
        ([], {}, UsageError, "0 metrics .none."),
    ],
)
def test_a_score_table_that_is_no_matrix(
    rows: list[Row], options: dict[str, str], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        from_scores(Scores(tuple(rows)), **options)  # type: ignore[arg-type]
