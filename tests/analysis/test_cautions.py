"""Each warning appears when it should, names what it is about, and is silent otherwise."""

from __future__ import annotations

import numpy as np
import pytest

from earmark.analysis.cautions import average_columns, near_duplicates, warnings
from earmark.analysis.matrix import Matrix, from_table


def scores(models: int = 20, datasets: int = 6) -> np.ndarray:
    return np.random.default_rng(0).uniform(0.1, 0.95, (models, datasets))


def table(values: np.ndarray, **options: object) -> Matrix:
    datasets = options.pop("datasets", [f"d{j}" for j in range(values.shape[1])])
    return from_table(values, [f"m{i}" for i in range(len(values))], datasets, **options)  # type: ignore[arg-type]


def said(values: np.ndarray, **options: object) -> str:
    return " | ".join(warnings(table(values, **options)))


def test_a_sound_matrix_needs_no_warning() -> None:
    assert warnings(table(scores())) == []


def test_what_is_empty_is_named() -> None:
    values = scores()
    values[3] = np.nan
    values[:, 5] = np.nan
    text = said(values)
    assert 'The model "m3" has no value at all and is left out.' in text
    assert 'The dataset "d5" has no value at all and is left out.' in text
    assert "missing" not in text
    assert warnings(table(np.full((3, 2), np.nan)))


def test_gaps_are_counted() -> None:
    values = scores()
    values[0, 0] = np.nan
    assert "1 of 120 values is missing" in said(values)


def test_percentages_among_fractions_are_named() -> None:
    values = scores()
    values[:, [1, 4]] *= 100
    text = said(values)
    assert 'The datasets "d1", "d4" are not on the scale of fractions' in text
    assert '"d1" (100), "d4" (100)' in text
    assert said(100 * scores()) == ""


def test_a_percentage_among_the_fractions_of_a_column_is_named() -> None:
    values = scores()
    values[7, 2] = 84.0
    text = said(values)
    assert '"m7" has 84 on "d2", where the other models have fractions' in text
    assert "not on the scale of fractions that the others have" not in text
    ratings = 1 + 0.5 * scores()  # some pass 1.5, and none is a percentage
    ratings[0, 0] = 2.1
    assert "divide a percentage" not in said(ratings)


def test_columns_that_are_better_low_are_suspected_by_name_and_by_value() -> None:
    values = np.linspace(0.2, 0.8, 20)[:, None] + 0.2 * (scores() - 0.5)
    assert said(values) == ""
    values[:, [1, 2, 4]] = 1 - values[:, [1, 2, 4]]
    names = ["a", "WER", "EER (%)", "answers", "turned", "b"]
    text = said(values, datasets=names)
    assert 'The datasets "WER", "EER (%)" sound like errors' in text
    assert 'The dataset "turned" runs against the others' in text
    assert '--lower-is-better "WER,EER (%),turned".' in text
    assert said(values, datasets=names, lower_is_better=["WER", "EER (%)", "turned"]) == ""
    assert warnings(table(values, datasets=names), directions=False) == []


def test_scores_beyond_the_best_value_are_named() -> None:
    text = said(scores(), best={"d1": 0.1})
    assert 'Scores pass the best possible value of "d1" (best 0.1, reached 0.' in text
    low = said(scores(), lower_is_better=["d1"], best={"d1": 0.5}, chance={"d1": 1.0})
    assert '"d1" (best 0.5, reached 0.1' in low


def test_constant_columns_are_named() -> None:
    values = scores()
    values[:, 2] = 0.3
    assert 'The dataset "d2" gives every model the same score' in said(values)


def test_a_column_mostly_below_chance_is_named() -> None:
    assert 'The dataset "d1" has more than 10% of the scores below chance' in said(scores(), chance={"d1": 0.5})


@pytest.mark.parametrize("gaps", [0, 8])
def test_an_average_among_the_datasets_is_found_by_its_values(gaps: int) -> None:
    values = scores()
    values = np.column_stack([values, values.mean(axis=1).round(3)])
    values.flat[np.arange(gaps) * 13] = np.nan
    matrix = table(values[:, [0, 6, 1, 2, 3, 4, 5]])
    if not gaps:
        assert average_columns(matrix.normalised(clip=False)) == [1]
        assert any('The dataset "d1" is the average of the others' in text for text in warnings(matrix))
    else:
        assert set(average_columns(matrix.normalised(clip=False))) <= {1}


def test_an_average_among_the_datasets_is_suspected_by_its_name() -> None:
    text = said(scores(), datasets=["a", "Mean win rate", "b", "c", "Overall", "meander"])
    assert 'The datasets "Mean win rate", "Overall" sound like a summary' in text
    assert "meander" not in text


def test_equal_datasets_are_named() -> None:
    values = scores()
    values[:, 4] = values[:, 1]
    assert 'The datasets "d1" and "d4" have the same scores' in said(values)


def test_near_duplicates_leak() -> None:
    values = scores()
    values[7] = values[2] + 0.004
    assert near_duplicates(values) == [(2, 7)]
    text = said(values)
    assert '2 of 20 models have a near-duplicate (scores within 0.01, for example "m2" and "m7")' in text
    assert "No families are given." in text
    together = {"m2": "f", "m7": "f"}
    assert "No families" not in said(values, families=together)
    assert "in another family" not in said(values, families=together)
    assert "2 models have one in another family" in said(values, families={"m1": "f", "m7": "f"})


def test_near_duplicates_are_pairs_within_the_limit_on_what_both_have() -> None:
    values = np.round(scores(12, 4), 1)
    values.flat[::5] = np.nan
    expected = []
    for i in range(12):
        for j in range(i + 1, 12):
            both = np.isfinite(values[i]) & np.isfinite(values[j])
            if both.sum() >= 3 and np.sqrt(np.mean((values[i, both] - values[j, both]) ** 2)) < 0.25:
                expected.append((i, j))
    assert near_duplicates(values, 0.25) == expected
    assert expected


def test_rows_that_share_few_columns_are_no_near_duplicates() -> None:
    values = scores(20, 8)
    values[7] = values[2]
    values[7, 3:] = np.nan  # three of eight
    assert near_duplicates(values) == []
    values[7, :4] = values[2, :4]
    assert near_duplicates(values) == [(2, 7)]
    assert near_duplicates(values[:, :2]) == [(2, 7)]


def test_few_models_are_a_guess() -> None:
    assert "Only 6 models" in said(scores(6))
