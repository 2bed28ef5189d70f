"""Folds are scikit-learn's to the index, and a group that is trained on and tested on is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold, StratifiedKFold

from earmark.errors import InputError, UsageError
from earmark.probes.folds import Fold, default_kind, fold_remarks, make_folds, refuse_leaks, spell_folds

RNG = np.random.default_rng(5)
GROUPS = np.array([f"mouse {number}" for number in RNG.integers(0, 24, 300)])
STRAINS = np.array(["C57" if int(name.split()[1]) % 3 else "DBA" for name in GROUPS])
WORDS = RNG.choice(["a", "b", "c"], 300)


@pytest.mark.parametrize("seed", [0, 7])
@pytest.mark.parametrize("count", [2, 5, 10])
@pytest.mark.parametrize(
    ("kind", "splitter"),
    [("stratified", StratifiedKFold), ("grouped", GroupKFold), ("group-stratified", StratifiedGroupKFold)],
)
def test_folds_are_those_of_scikit_learn(kind: str, splitter: Any, count: int, seed: int) -> None:
    for labels in (STRAINS, WORDS):
        folds = make_folds(labels, kind=kind, count=count, groups=GROUPS, seed=seed)
        groups = None if kind == "stratified" else GROUPS
        expected = splitter(count, shuffle=True, random_state=seed).split(np.zeros(300), labels, groups)
        assert len(folds) == count
        for fold, (train, test) in zip(folds, expected, strict=True):
            np.testing.assert_array_equal(fold.train, train)
            np.testing.assert_array_equal(fold.test, test)
            assert len(fold.valid) == 0


def test_the_same_seed_gives_the_same_folds_and_another_one_others() -> None:
    first, again, other = (make_folds(WORDS, kind="stratified", count=5, seed=seed) for seed in (1, 1, 2))
    assert all(np.array_equal(a.test, b.test) for a, b in zip(first, again, strict=True))
    assert not all(np.array_equal(a.test, b.test) for a, b in zip(first, other, strict=True))


def test_each_value_of_a_given_column_is_tested_once_in_the_order_of_numbers() -> None:
    folds = make_folds(list("aabbab"), kind="given", given=["10", "2", "2", "1", "10", "1"])
    assert [fold.name for fold in folds] == ["1", "2", "10"]
    assert [fold.test.tolist() for fold in folds] == [[3, 5], [1, 2], [0, 4]]
    assert folds[0].train.tolist() == [0, 1, 2, 4]
    assert spell_folds("given", folds) == "given:3"


def test_train_valid_and_test_are_one_fold_in_any_of_their_spellings() -> None:
    (fold,) = make_folds(list("abab"), kind="given", given=["Train", "dev", "test", "training"])
    assert (fold.train.tolist(), fold.valid.tolist(), fold.test.tolist()) == ([0, 3], [1], [2])
    assert spell_folds("given", [fold]) == "train/valid/test"
    pair = make_folds(list("ab"), kind="given", given=["train", "test"])
    assert spell_folds("given", pair) == "train/test"


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["train", "train"], 'no rows "test"'),
        (["valid", "test"], 'no rows "train"'),
        (["3", "3"], "All rows are in one fold"),
        (["train", "test", "extra"], 'also "extra"'),
        (["1", None], "without a fold"),
        (["1", "2", "3", "1"], "pair up"),
    ],
)
def test_given_folds_that_cannot_be_used_are_refused(given: list[str | None], sentence: str) -> None:
    labels = ["a"] * (3 if len(given) != 2 else 2)
    with pytest.raises(InputError, match=sentence):
        make_folds(labels, kind="given", given=given)


def test_groups_that_are_trained_on_and_tested_on_are_refused_with_their_number_and_names() -> None:
    folds = make_folds(STRAINS, kind="stratified", count=5, groups=GROUPS)
    with pytest.raises(InputError, match=r"^24 of 24 groups \(mouse .* and 21 more\) are trained on and tested on"):
        refuse_leaks(folds, GROUPS)
    assert refuse_leaks(folds, GROUPS, allow=True).startswith("leaks: 24 of 24 groups (mouse ")
    for kind in ("grouped", "group-stratified"):
        assert refuse_leaks(make_folds(STRAINS, kind=kind, count=5, groups=GROUPS), GROUPS) == ""
    assert refuse_leaks(folds, None) == ""


def test_a_given_column_that_leaks_is_refused_also_through_its_validation_part() -> None:
    none = np.zeros(0, np.int64)
    rows = np.arange(4)
    with pytest.raises(InputError, match=r"1 of 3 groups \(b\) is trained on"):
        refuse_leaks([Fold("test", rows[:1], rows[1:2], rows[2:])], ["a", "b", "b", "c"])
    assert refuse_leaks([Fold("test", rows[:2], none, rows[2:])], ["a", "a", "b", "c"]) == ""


@pytest.mark.parametrize("kind", ["grouped", "group-stratified"])
def test_identity_cannot_be_grouped_by_itself_and_the_remedy_is_named(kind: str) -> None:
    with pytest.raises(InputError, match=r"the labels are the groups.*stratified folds.*sessions or recordings"):
        make_folds(GROUPS, kind=kind, count=5, groups=GROUPS)
    with pytest.raises(InputError, match="every class is inside one group"):
        make_folds(["a", "a", "b", "b"], kind=kind, count=2, groups=["1"] * 4)


def test_classes_of_one_clip_or_of_one_group_are_refused() -> None:
    with pytest.raises(InputError, match=r"1 class with one clip \(c\)"):
        make_folds(["a", "a", "b", "b", "c"], kind="stratified", count=2)
    with pytest.raises(InputError, match=r"1 class inside one group \(c\)"):
        make_folds(["a", "b", "a", "b", "c"], kind="group-stratified", count=2, groups=["1", "1", "2", "2", "2"])


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"kind": "stratifed"}, 'Did you mean "stratified"'),
        ({"kind": "given"}, "name the column"),
        ({"count": 1}, "at least 2"),
        ({"kind": "grouped"}, "need groups"),
    ],
)
def test_a_wrong_question_is_answered_in_one_sentence(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        make_folds(**{"labels": ["a", "b"] * 4, "kind": "stratified", "count": 2, **change})


def test_more_folds_than_units_are_refused() -> None:
    with pytest.raises(InputError, match="No class has more than 2 clips"):
        make_folds(["a", "a", "b", "b"], kind="stratified", count=3)
    with pytest.raises(InputError, match="3 groups cannot fill 5 folds"):
        make_folds(list("abababab"), kind="grouped", count=5, groups=list("11223333"))
    with pytest.raises(InputError, match="2 rows"):
        make_folds(["a", None, "b", float("nan")], kind="stratified", count=2)


def test_remarks_count_rare_classes_groups_of_one_label_and_classes_that_were_not_trained_on() -> None:
    folds = make_folds(STRAINS, kind="group-stratified", count=5, groups=GROUPS)
    assert fold_remarks(folds, STRAINS, GROUPS) == [
        "every group has one label: 24 groups carry the labels, 8 of them DBA"
    ]
    assert fold_remarks(make_folds(WORDS, kind="stratified", count=5), WORDS) == []
    labels = np.array(["a"] * 8 + ["b"] * 3)
    rare = fold_remarks(make_folds(labels, kind="stratified", count=5), labels)
    assert rare == ["1 class has fewer clips than there are folds (b 3)"]
    given = make_folds(labels, kind="given", given=["1"] * 8 + ["2"] * 3)
    assert "11 clips are of a class that the fold did not learn, and count as wrong" in fold_remarks(given, labels)


def test_without_a_wish_groups_are_kept_whole() -> None:
    assert default_kind(groups=True, given=False) == "group-stratified"
    assert default_kind(groups=False, given=False) == "stratified"
    assert default_kind(groups=True, given=True) == "given"
