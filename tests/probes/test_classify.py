"""`classify` is scikit-learn's pipelines on the folds it names, to the last digit; leaks and odd tables are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import top_k_accuracy_score
from sklearn.model_selection import GridSearchCV, StratifiedGroupKFold, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from earmark.errors import InputError, UsageError
from earmark.probes._classifiers import among_first, parse_classifiers
from earmark.probes.classify import classify, study_classes
from earmark.vectors import given_distances

RNG = np.random.default_rng(11)
GROUPS = np.array([f"mouse {number}" for number in np.repeat(np.arange(12), 10)])
STRAINS = np.array(["C57", "DBA"])[np.repeat(np.arange(12) % 2, 10)]
CALLS = np.tile([f"call {number}" for number in range(8)], 15)
VECTORS = RNG.standard_normal((120, 6)).astype(np.float32)
VECTORS[:, 0] += 2.0 * (STRAINS == "DBA")
VECTORS[np.arange(120), 1 + np.arange(120) % 4] += 1.5
VECTORS *= np.array([1, 10, 1, 100, 1, 1], np.float32)

REFERENCES: dict[str, Any] = {
    "knn:k=3": lambda: KNeighborsClassifier(3),
    "forest:depth=10": lambda: RandomForestClassifier(max_depth=10, class_weight="balanced", random_state=4),
    "mlp:hidden=20x10,alpha=0.01,iterations=50": lambda: MLPClassifier(
        (20, 10), alpha=0.01, max_iter=50, random_state=4
    ),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", REFERENCES)
def test_accuracies_and_answers_are_those_of_pipelines_written_out(name: str) -> None:
    study = study_classes(VECTORS, CALLS, groups=GROUPS, classifiers=name, folds=3, seed=4, threads=2)
    protocol = f"{name} group-stratified:3"
    accuracies, first_five, answers = [], [], np.empty(120, object)
    for train, test in StratifiedGroupKFold(3, shuffle=True, random_state=4).split(VECTORS, CALLS, GROUPS):
        with threadpool_limits(1):
            model = make_pipeline(StandardScaler(), REFERENCES[name]()).fit(VECTORS[train], CALLS[train])
            answers[test] = model.predict(VECTORS[test])
            chances = model.predict_proba(VECTORS[test])
        accuracies.append(np.mean(answers[test] == CALLS[test]))
        first_five.append(top_k_accuracy_score(CALLS[test], chances, k=5, labels=model.classes_))
    assert study.answers[protocol] == answers.tolist()
    row = study.scores.row("accuracy", protocol=protocol)
    assert row.value == np.mean(accuracies)
    assert row.reason.startswith(f"sd over folds {np.std(accuracies):.4f}")
    assert (row.n, row.unit, row.units, row.interval) == (120, "group", 12, "jackknife")
    assert row.baseline == pytest.approx(1 / 8)
    assert row.lift == pytest.approx(row.value - 1 / 8)
    if name.startswith("mlp"):  # no two classes are equally probable
        assert study.scores.value("top5_accuracy", protocol=protocol) == np.mean(first_five)
        assert "3 of 3 fits stopped at their last iteration" in row.reason
    assert study.scores.row("top5_accuracy", protocol=protocol).baseline == pytest.approx(5 / 8)


@pytest.mark.parametrize("groups", [None, GROUPS])
def test_the_best_setting_is_that_of_a_grid_search_inside_each_training_part(groups: Any) -> None:
    study = study_classes(VECTORS, STRAINS, groups=groups, classifiers="knn", folds=4, seed=1)
    kind, splitter = ("stratified", StratifiedKFold) if groups is None else ("group-stratified", StratifiedGroupKFold)
    accuracies, chosen = [], []
    for train, test in splitter(4, shuffle=True, random_state=1).split(VECTORS, STRAINS, groups):
        inside = splitter(4, shuffle=True, random_state=1)
        search = GridSearchCV(
            make_pipeline(StandardScaler(), KNeighborsClassifier()), {"kneighborsclassifier__n_neighbors": [3, 10, 30]},
            cv=list(inside.split(VECTORS[train], STRAINS[train], None if groups is None else groups[train])),
        )  # fmt: skip
        search.fit(VECTORS[train], STRAINS[train])
        chosen.append(search.best_params_["kneighborsclassifier__n_neighbors"])
        accuracies.append(search.score(VECTORS[test], STRAINS[test]))
    row = study.scores.row("accuracy", protocol=f"knn:best {kind}:4")
    assert row.value == np.mean(accuracies)
    words = ", ".join(f"{place} k={k}" for place, k in enumerate(chosen, start=1))
    assert f"chosen by fold: {words}" in row.reason


@pytest.mark.usefixtures("several_threads")
def test_rows_hold_everything_and_more_threads_change_nothing() -> None:
    settings = {"classifiers": "knn,forest:depth=10,trees=10", "preset": "strain", "folds": 3}
    one = classify(VECTORS, STRAINS, groups=GROUPS, threads=1, system="m", subset="s", suite="x", **settings)
    three = classify(VECTORS, STRAINS, groups=GROUPS, threads=3, system="m", subset="s", suite="x", **settings)
    protocols = [f"{name} group-stratified:3" for name in ("knn:k=3", "knn:k=10", "knn:k=30", "knn:best")]
    protocols.append("forest:depth=10,trees=10 group-stratified:3")
    assert [row.protocol for row in one] == [name for name in protocols for _ in range(2)]
    for row, again in zip(one, three, strict=True):
        assert (row.value, row.low, row.high, row.inputs) == (again.value, again.low, again.high, again.inputs)
        assert row.version
        assert row.seconds is not None
        assert (row.system, row.subset, row.suite) == ("m", "s", "x")
        if row.metric == "accuracy":
            assert "every group has one label: 12 groups carry the labels, 6 of them C57" in row.reason
        else:
            assert (row.status, row.reason) == ("not_applicable", "2 classes: each is always among the first 5")
    assert len({row.inputs for row in one}) == len(protocols)
    other = classify(VECTORS, STRAINS, groups=GROUPS, seed=1, **settings)
    assert other.rows[0].inputs != one.rows[0].inputs


@pytest.mark.usefixtures("several_threads")
def test_processes_give_what_threads_give(monkeypatch: pytest.MonkeyPatch) -> None:
    here = classify(VECTORS, CALLS, classifiers="knn:k=3", folds=2, threads=2)
    monkeypatch.setattr("earmark.probes.classify.PROCESSES_FROM", 0.0)
    apart = classify(VECTORS, CALLS, classifiers="knn:k=3", folds=2, threads=2)
    assert [row.value for row in here] == [row.value for row in apart]


def test_a_split_that_leaks_is_refused_and_says_so_where_it_is_allowed() -> None:
    with pytest.raises(InputError, match=r"12 of 12 groups \(mouse 0, mouse 1, mouse 10 and 9 more\)"):
        classify(VECTORS, STRAINS, groups=GROUPS, kind="stratified", classifiers="knn:k=3")
    row = classify(
        VECTORS, STRAINS, groups=GROUPS, kind="stratified", classifiers="knn:k=3", allow_leaks=True
    ).row("accuracy")  # fmt: skip
    assert "leaks: 12 of 12 groups" in row.reason
    assert row.units == 12


def test_recordings_with_fingerprints_look_good_only_where_they_leak() -> None:
    rng = np.random.default_rng(2)
    groups = np.repeat(np.arange(20), 10)
    strains = np.array(["a", "b"])[groups % 2]
    vectors = rng.standard_normal((20, 16))[groups] + 0.3 * rng.standard_normal((200, 16))
    leaky = classify(vectors, strains, classifiers="knn:k=3").value("accuracy")
    honest = classify(vectors, strains, groups=groups, classifiers="knn:k=3").row("accuracy")
    assert leaky > 0.95
    assert honest.value is not None
    assert honest.value < 0.75
    assert honest.low is not None
    assert honest.low < 0.5


def test_given_folds_and_parts_are_used_as_they_are() -> None:
    given = [str(row % 3) for row in range(120)]
    assert classify(VECTORS, CALLS, given=given, classifiers="knn:k=3").rows[0].protocol == "knn:k=3 given:3"
    parts = np.array(["train", "train", "valid", "test"])[np.arange(120) % 4]
    study = study_classes(VECTORS, STRAINS, given=parts, classifiers="knn")
    row = study.scores.row("accuracy", protocol="knn:best train/valid/test")
    scaled = make_pipeline(StandardScaler(), KNeighborsClassifier(3)).fit(
        VECTORS[parts == "train"], STRAINS[parts == "train"]
    )
    assert study.scores.value("accuracy", protocol="knn:k=3 train/valid/test") == scaled.score(
        VECTORS[parts == "test"], STRAINS[parts == "test"]
    )
    assert row.n == 30
    assert study.fold_of.count("test") == 30
    assert study.answers[row.protocol].count(None) == 90


def test_the_baseline_is_a_constant_answer() -> None:
    labels = np.array(["a"] * 70 + ["b"] * 50)
    row = classify(VECTORS, labels, classifiers="knn:k=3").row("accuracy")
    assert row.baseline == DummyClassifier().fit(VECTORS, labels).score(VECTORS, labels)


def test_classes_of_equal_probability_share_the_places_that_are_left() -> None:
    chances = np.array([[0.5, 0.5, 0, 0, 0, 0, 0, 0], [0.3, 0.2, 0.2, 0.1, 0.1, 0.1, 0, 0]])
    classes = np.arange(8)
    assert among_first(chances[:1], classes, np.array([1])).tolist() == [1.0]
    assert among_first(chances[:1], classes, np.array([7])).tolist() == [0.5]  # three places for six classes
    assert among_first(chances[1:], classes, np.array([4])).tolist() == pytest.approx([2 / 3])
    assert among_first(chances[1:], classes, np.array([7])).tolist() == [0.0]
    assert among_first(chances[:1, :2], np.array([0, 2]), np.array([1])).tolist() == [0.0]  # not learnt
    shuffled = np.random.default_rng(0)
    drawn = [
        4 in sorted(range(8), key=lambda code: (-chances[1, code], noise[code]))[:5]
        for noise in shuffled.random((2000, 8))
    ]
    assert np.mean(drawn) == pytest.approx(2 / 3, abs=0.04)


def test_rows_without_label_group_or_fold_and_small_classes_are_dropped_and_counted() -> None:
    labels = [None, *CALLS[1:119], "rare"]
    groups = [*GROUPS[:5], None, *GROUPS[6:]]
    study = study_classes(VECTORS, labels, groups=groups, classifiers="knn:k=3", folds=2)
    row = study.scores.row("accuracy")
    assert row.n == 117
    for remark in (
        "1 unlabelled row dropped",
        "1 row without a group dropped",
        "1 row in 1 class of fewer than 2 groups",
    ):
        assert remark in row.reason
    assert [study.answers[row.protocol][place] for place in (0, 5, 119)] == [None] * 3
    assert np.isnan(study.scores.per_point["", "none", row.protocol, "accuracy"][[0, 5, 119]]).all()


@pytest.mark.parametrize(
    ("labels", "change", "sentence"),
    [
        (["a"] * 120, {}, "same label"),
        ([None] * 120, {}, "No row has a label"),
        (["a"] * 119, {}, "120 vectors and 119 labels"),
        (GROUPS, {"groups": GROUPS}, "the labels are the groups"),
        (["a"] * 119 + ["b"], {}, 'Only the class "a"'),
        (["a"] * 60 + ["b"] * 60, {"given": ["1"] * 60 + ["2"] * 60}, "one class to learn from"),
        (STRAINS, {"groups": ["g"] * 120}, "every class is inside one group"),
        (STRAINS, {"groups": [None] * 120}, "No labelled row has a group"),
        ([["a", "b"]] * 120, {}, "lists of labels"),
        (
            STRAINS,
            {"ids": [f"clip {row % 119}" for row in range(120)]},
            r"1 id \(clip 0\) stands for more than one row",
        ),
    ],
)
def test_tables_that_cannot_be_classified_are_refused(labels: Any, change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        classify(VECTORS, labels, **{"classifiers": "knn:k=3", **change})


@pytest.mark.parametrize(
    ("classifiers", "sentence"),
    [
        ("svm", "choose from knn, forest, mlp"),
        ("knn:depth=3", "takes k"),
        ("knn:k=0", "k=0 is no value"),
        ("mlp:hidden=a", "hidden=200x200"),
        ("mlp:alpha=nan", "alpha=nan is no value"),
    ],
)
def test_settings_that_mean_nothing_are_refused(classifiers: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        classify(VECTORS, STRAINS, classifiers=classifiers)
    with pytest.raises(UsageError, match='Unknown preset "mouse"'):
        classify(VECTORS, STRAINS, preset="mouse")


def test_grids_are_those_of_the_papers() -> None:
    strain = parse_classifiers((), "strain")
    assert [str(setting) for chosen in strain.values() for setting in chosen] == [
        "knn:k=3", "knn:k=10", "knn:k=30", "forest:depth=10", "forest:depth=15", "forest:depth=20",
        "mlp:hidden=100,alpha=0.1", "mlp:hidden=100,alpha=0.01", "mlp:hidden=100,alpha=0.001",
    ]  # fmt: skip
    identity = parse_classifiers((), "identity")
    assert [str(setting) for setting in identity["mlp"]] == [
        f"mlp:hidden={hidden},alpha={alpha}" for hidden in ("400", "200x200") for alpha in ("0.01", "0.001", "0.0001")
    ]
    mixed = parse_classifiers("knn:k=1,mlp:hidden=5x4,alpha=1,knn:k=1,knn:k=7")
    assert [str(setting) for chosen in mixed.values() for setting in chosen] == [
        "knn:k=1", "knn:k=7", "mlp:hidden=5x4,alpha=1",
    ]  # fmt: skip


def test_three_clips_constant_vectors_and_more_neighbours_than_clips() -> None:
    scores = classify(np.ones((4, 3)), ["a", "b", "a", "b"], classifiers="knn:k=1,knn:k=3", folds=2)
    assert scores.row("accuracy", protocol="knn:k=1 stratified:2").value == 0.5
    row = scores.row("accuracy", protocol="knn:k=3 stratified:2")
    assert (row.status, row.value) == ("not_applicable", None)
    assert "k = 3 is more than the 2 clips" in row.reason
    with pytest.raises(InputError, match='Only the class "a"'):
        classify(np.eye(3), ["a", "a", "b"], classifiers="knn:k=1", folds=2)
    small, huge = (classify(VECTORS * scale, STRAINS, classifiers="knn:k=3", folds=2) for scale in (1.0, 1e34))
    assert small.value("accuracy") == huge.value("accuracy")
    with pytest.raises(InputError, match="above 1e\\+150"):
        classify(VECTORS.astype(float) * 1e160, STRAINS, classifiers="knn:k=3", folds=2)


def test_too_few_groups_for_an_inner_choice_leave_the_other_rows() -> None:
    groups = np.repeat(list("wxyz"), 30)
    labels = np.repeat(["a", "b", "a", "b"], 30)
    scores = classify(VECTORS, labels, groups=groups, classifiers="knn:k=1,knn:k=5", folds=2)
    best = scores.row("accuracy", protocol="knn:best group-stratified:2")
    assert (best.status, best.value) == ("not_applicable", None)
    assert "too small for folds of its own" in best.reason
    plain = scores.row("accuracy", protocol="knn:k=1 group-stratified:2")
    assert plain.status == "ok"
    assert plain.low is None
    assert "4 groups are too few" in plain.reason


def test_neighbours_learn_from_distances_that_come_from_elsewhere() -> None:
    scaled = StandardScaler().fit_transform(VECTORS.astype(float))
    square = np.sqrt(np.square(scaled[:, None] - scaled).sum(-1))
    labels = [None, *CALLS[1:]]
    given = study_classes(
        given_distances(square), labels, groups=GROUPS, classifiers="knn:k=3,knn:k=10", folds=3, distance_name="dtw"
    )
    right = []
    for train, test in StratifiedGroupKFold(3, shuffle=True, random_state=0).split(VECTORS[1:], CALLS[1:], GROUPS[1:]):
        model = KNeighborsClassifier(3, metric="precomputed").fit(
            square[1:, 1:][np.ix_(train, train)], CALLS[1:][train]
        )
        right.append(model.score(square[1:, 1:][np.ix_(test, train)], CALLS[1:][test]))
    row = given.scores.row("accuracy", protocol="knn:k=3 group-stratified:3")
    assert (row.value, row.distance, row.n) == (np.mean(right), "dtw", 119)
    assert given.scores.row("accuracy", protocol="knn:best group-stratified:3").status == "ok"
    condensed = classify(given_distances(square[np.triu_indices(120, 1)]), labels, groups=GROUPS, folds=3)
    assert condensed.value("accuracy", protocol="knn:k=3 group-stratified:3") == row.value
    with pytest.raises(UsageError, match="forest needs vectors"):
        classify(given_distances(square), labels, classifiers="knn,forest")


def test_copies_of_clips_that_are_learnt_and_tested_are_counted_in_every_row() -> None:
    rng = np.random.default_rng(1)
    vectors, labels = rng.standard_normal((40, 5)), rng.integers(0, 2, 40)
    twice, folds = np.tile(vectors, (2, 1)), ["1"] * 40 + ["2"] * 40
    twice[45, 2] += 1e-9
    twice[50], twice[10] = 0.0, -0.0  # silent clips are no copies of each other
    table = classify(twice, np.tile(labels, 2), given=folds, classifiers="knn:k=1,knn:k=3")
    remark = "leaks: 76 of 80 tested clips have the vector of a clip that was learnt from"
    assert all(remark in row.reason for row in table if row.metric == "accuracy")
    half = classify(twice, np.tile(labels, 2), given=folds, groups=np.tile(np.arange(40), 2), allow_leaks=True,
                    classifiers="knn:k=1")  # fmt: skip
    assert remark in half.row("accuracy").reason
    whole = classify(twice, np.tile(labels, 2), groups=np.tile(np.arange(40), 2), classifiers="knn:k=1")
    assert "leaks" not in whole.row("accuracy").reason
    assert "leaks" not in classify(vectors, labels, classifiers="knn:k=1").row("accuracy").reason
    with pytest.raises(InputError, match=r"40 ids \(c0, c1, c2 and 37 more\) stand for more than one row"):
        classify(twice, np.tile(labels, 2), given=folds, ids=[f"c{row}" for row in range(40)] * 2)


def test_a_number_has_no_copies() -> None:
    numbers = (np.arange(40) % 4).astype(float)[:, None]
    assert "leaks" not in classify(numbers, ["a", "b"] * 20, classifiers="knn:k=1").row("accuracy").reason


def test_given_folds_and_another_kind_are_refused() -> None:
    with pytest.raises(UsageError, match="Folds are given, and stratified ones are to be made"):
        classify(VECTORS, STRAINS, given=np.arange(120) % 3, kind="stratified", classifiers="knn:k=3")


def test_letters_with_accents_have_one_spelling_and_groups_that_look_alike_are_named() -> None:
    labels = ["\u00fc", "u\u0308", "v", "v"] * 30
    assert len(set(labels)) == 3
    study = study_classes(VECTORS, labels, classifiers="knn:k=3")
    assert {answer for answers in study.answers.values() for answer in answers} == {"\u00fc", "v"}
    names = [("e\u0301" if row < 60 else "\u00e9") + str(row % 6) for row in range(120)]
    row = classify(VECTORS, STRAINS, groups=names, classifiers="knn:k=3").row("accuracy")
    assert row.units == 6
    with pytest.raises(InputError, match="6 of 6 groups"):
        classify(VECTORS, STRAINS, groups=names, given=["1"] * 60 + ["2"] * 60, classifiers="knn:k=3")
    cases = [f"{'Mouse' if row < 60 else 'mouse'} {row % 6}" for row in range(120)]
    row = classify(VECTORS, STRAINS, groups=cases, classifiers="knn:k=3").row("accuracy")
    alike = "groups that differ only in case or spaces are taken for different ones (Mouse 0 and mouse 0"
    assert row.units == 12
    assert alike in row.reason
