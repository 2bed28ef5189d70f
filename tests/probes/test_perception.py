"""Agreement with listeners: known answers, against scipy and loops, intervals by simulation, what is missing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from earmark import evaluate
from earmark.calibrate import jackknife
from earmark.errors import InputError, UsageError
from earmark.probes._agreement import ceilings
from earmark.probes._choice_statistics import correlations, shares_without
from earmark.probes.perception import Judgements, perception, read_judgements
from earmark.vectors import Vectors, given_distances

IDS = tuple(f"calls/s{n:02d}.wav" for n in range(14))


def drawn(n: int = 120, seed: int = 0, listeners: int = 0, **cells: list[str]) -> Judgements:
    """Random choices between two of 14 sounds, named without folder and ending."""
    rng = np.random.default_rng(seed)
    sounds = [rng.choice(14, 3, replace=False) for _ in range(n)]
    table: dict[str, list[str]] = {
        "x": [f"s{x:02d}" for x, _, _ in sounds], "a": [f"s{a:02d}" for _, a, _ in sounds],
        "b": [f"s{b:02d}" for _, _, b in sounds], "choice": rng.choice(["A", "B"], n).tolist(), **cells,
    }  # fmt: skip
    if listeners:
        table["listener"] = [f"L{n}" for n in rng.integers(listeners, size=n)]
    return read_judgements(table)


def vectors(seed: int = 1, n: int = 14) -> Vectors:
    return Vectors(IDS[:n], np.random.default_rng(seed).normal(size=(n, 6)))


def answers(judgements: Judgements, values: NDArray[np.float64], distance: str) -> list[tuple[float, int]]:
    """d(X, A) - d(X, B) and the choice of every judgement, by a loop over scipy's distances."""
    from scipy.spatial.distance import cosine, euclidean
    from scipy.stats import spearmanr

    measure: dict[str, Callable[..., float]] = {
        "cosine": cosine, "euclidean": euclidean, "spearman": lambda u, v: 1.0 - float(spearmanr(u, v)[0]),
    }  # fmt: skip
    of = measure[distance]
    rows = [int(name[1:]) for name in judgements.sounds]
    return [
        (of(values[rows[x]], values[rows[a]]) - of(values[rows[x]], values[rows[b]]), int(choice))
        for x, a, b, choice in zip(judgements.x, judgements.a, judgements.b, judgements.choices, strict=True)
    ]


@pytest.mark.parametrize("distance", ["cosine", "euclidean", "spearman"])
def test_agreement_and_correlations_are_those_of_scipy(distance: str) -> None:
    from scipy.stats import binomtest, kendalltau, spearmanr

    judgements, system = drawn(), vectors()
    scores = perception(judgements, system, distance=distance, unit="judgement")
    pairs = answers(judgements, np.asarray(system.values), distance)
    # Ranks of six numbers tie often: what a loop leaves of a tie is rounding.
    hits = sum(abs(gap) > 1e-12 and np.sign(gap) == -choice for gap, choice in pairs)
    expected = binomtest(int(hits), len(pairs), 0.5)
    row = scores.row("choice_accuracy")
    assert row.value == hits / len(pairs)
    assert row.p_value == pytest.approx(expected.pvalue, rel=1e-9)
    assert (row.low, row.high) == pytest.approx(tuple(expected.proportion_ci(0.95, method="exact")))
    assert (row.interval, row.unit, row.units, row.baseline, row.n) == ("binomial", "judgement", 120, 0.5, 120)
    gaps = np.round([gap for gap, _ in pairs], 12)
    choices = [choice for _, choice in pairs]
    assert scores.value("choice_spearman") == pytest.approx(spearmanr(gaps, choices)[0], abs=1e-12)
    assert scores.value("choice_kendall") == pytest.approx(kendalltau(gaps, choices)[0], abs=1e-12)


@pytest.mark.parametrize("sharing", [1, 4, 40])
def test_correlations_without_a_unit_are_those_of_the_other_judgements(sharing: int) -> None:
    from scipy.stats import kendalltau, spearmanr

    rng = np.random.default_rng(2)
    gaps, choices = np.round(rng.normal(size=40), 1), rng.choice([-1, 1], 40)
    units = np.arange(40) // sharing
    for found, of in zip(correlations(gaps, choices, units), (spearmanr, kendalltau), strict=True):
        assert found.value == pytest.approx(of(gaps, choices)[0], abs=1e-12)
        for unit, value in enumerate(found.without):
            left = units != unit
            expected = of(gaps[left], choices[left])[0] if left.any() else np.nan
            assert value == pytest.approx(expected, abs=1e-12, nan_ok=True)


def test_a_perfect_system_has_a_negative_correlation() -> None:
    # One sound X in the middle of a line, A on its left, B on its right: whichever is nearer was chosen.
    places = {"x": 0.0, "near": -1.0, "far": 2.0, "nearer": 0.5}
    judgements = read_judgements(
        {"x": ["x"] * 3, "a": ["near", "far", "far"], "b": ["far", "near", "nearer"], "choice": ["A", "B", "B"]}
    )
    system = Vectors(tuple(places), np.array(list(places.values()))[:, None])
    scores = perception(judgements, system, distance="euclidean")
    # d(X,A) - d(X,B) is -1, 1 and 1.5; the choice +1, -1 and -1: they go against each other as far as they can.
    assert scores.value("choice_accuracy") == 1.0
    assert scores.value("choice_spearman") == pytest.approx(-np.sqrt(3) / 2)
    assert scores.value("choice_kendall") == pytest.approx(-np.sqrt(2 / 3))
    assert "below 0 agrees with the listeners" in scores.row("choice_spearman").reason
    assert "a perfect system has -0.866" in scores.row("choice_spearman").reason


def test_triplets_agree_strictly_and_correlate_with_nothing() -> None:
    triplets = read_judgements({"anchor": ["x"] * 3, "positive": ["p", "q", "p"], "negative": ["q", "p", "r"]})
    system = Vectors(("x", "p", "q", "r"), np.array([[0.0], [1.0], [2.0], [-1.0]]))
    scores = perception(triplets, system, distance="euclidean")
    row = scores.row("triplet_accuracy")
    assert row.value == pytest.approx(1 / 3)
    assert "1 tie counts as no agreement" in row.reason
    for metric in ("choice_spearman", "choice_kendall"):
        assert scores.row(metric).status == "not_applicable"
        assert "constant" in scores.row(metric).reason


def test_distances_are_those_that_evaluate_compares() -> None:
    # Of clips in pairs, P@1 asks whether the partner is nearest: all triplets (clip, partner, other) agree then.
    rng = np.random.default_rng(3)
    values, labels = rng.normal(size=(14, 5)), np.repeat(np.arange(7), 2)
    table = {"anchor": [], "positive": [], "negative": []}  # type: dict[str, list[str]]
    for clip, other in ((i, j) for i in range(14) for j in range(14) if labels[i] != labels[j]):
        for role, row in (("anchor", clip), ("positive", clip ^ 1), ("negative", other)):
            table[role].append(IDS[row])
    for distance in ("cosine", "euclidean", "spearman"):
        hits = []
        for clip in range(14):
            own = {role: [name for name, x in zip(names, table["anchor"], strict=True) if x == IDS[clip]]
                   for role, names in table.items()}  # fmt: skip
            score = perception(read_judgements(own), Vectors(IDS, values), distance=distance)
            row = score.row("triplet_accuracy")
            hits.append(row.value == 1.0)
        assert evaluate(values, labels, distance=distance).value("P@1") == np.mean(hits)


def test_given_distances_answer_like_the_vectors_they_come_from() -> None:
    judgements, system = drawn(), vectors()
    gaps = np.asarray(system.values)[:, None] - np.asarray(system.values)[None]
    matrix = given_distances(np.sqrt(np.square(gaps).sum(axis=-1)), ids=IDS)
    one, other = (perception(judgements, source, distance="euclidean") for source in (system, matrix))
    for metric in ("choice_accuracy", "choice_spearman", "choice_kendall"):
        assert one.value(metric) == pytest.approx(other.value(metric), abs=1e-12)
    both = perception(judgements, {"vectors": system, "matrix": matrix}, distance="euclidean")
    assert both.value("choice_accuracy:difference") == 0.0


# --- what is missing --------------------------------------------------------------------------------------------------


def test_missing_sounds_are_listed_and_their_judgements_counted() -> None:
    judgements, system = drawn(), vectors(n=13)
    scores = perception(judgements, {"S": system})
    row = scores.row("choice_accuracy")
    missing = judgements.sounds.index("s13")
    lost = int(((judgements.x == missing) | (judgements.a == missing) | (judgements.b == missing)).sum())
    assert (row.n, row.status) == (120 - lost, "ok")
    assert f"{lost} judgements of 120 left out for 1 missing sound" in row.reason
    assert scores.notes == ("S lacks 1 of the 14 sounds that were judged: s13",)


def test_more_than_half_missing_is_said_loudly_and_counts_in_no_ranking() -> None:
    scores = perception(drawn(), {"S": vectors(n=8)})
    row = scores.row("choice_accuracy")
    assert row.status == "incomplete"
    assert row.value is not None
    assert any(note.startswith("WARNING: S can answer only") for note in scores.notes)
    nothing = perception(drawn(), Vectors(("u", "v", "w"), np.eye(3)))
    assert {row.status for row in nothing if row.system != "listeners"} == {"not_applicable"}


def test_names_fit_with_and_without_folder_and_ending_and_ambiguity_is_refused() -> None:
    triplets = read_judgements({"anchor": ["d/a.wav"], "positive": ["b"], "negative": ["c.flac"]})
    for ids in (("a", "b", "c"), ("x/a.wav", "y/b.wav", "z/c.wav"), ("d/a.wav", "b.wav", "C:\\n\\c.flac")):
        assert perception(triplets, Vectors(ids, np.eye(3))).row("triplet_accuracy").n == 1
    with pytest.raises(InputError, match=r'the sound "b" may be 1/b\.wav, 2/b\.wav'):
        perception(triplets, Vectors(("a", "1/b.wav", "2/b.wav", "c"), np.eye(4)))
    # A name that fits one id exactly is that one, and folders tell the others apart.
    assert perception(triplets, Vectors(("a", "b", "2/b.wav", "c"), np.eye(4))).row("triplet_accuracy").n == 1
    folders = read_judgements({"anchor": ["a"], "positive": ["2/b"], "negative": ["c"]})
    system = Vectors(("a", "d/1/b.wav", "d/2/b.wav", "c"), np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.1], [0.5, 0.5]]))
    assert perception(folders, system).value("triplet_accuracy") == 1.0
    with pytest.raises(InputError, match="nothing says which sound a row is"):
        perception(triplets, np.eye(3))
    with pytest.raises(InputError, match='the id "a" occurs more than once'):
        perception(triplets, np.eye(3), ids=["a", "a", "b"])


def test_undecided_and_nameless_judgements_are_counted_and_constant_vectors_have_no_answer() -> None:
    table = {"x": ["s00", "s00", None], "a": ["s01"] * 3, "b": ["s02"] * 3, "choice": ["A", "NA", "B"]}
    row = perception(table, vectors()).row("choice_accuracy")
    assert row.n == 1
    assert "1 judgement without a choice left out" in row.reason
    assert "1 judgement with an empty name left out" in row.reason
    flat = perception(drawn(), Vectors(IDS, np.ones((14, 3))), distance=["cosine", "spearman", "euclidean"])
    for row in flat.select(metric="choice_accuracy"):
        assert row.status == "not_applicable"
        assert "every judgement is a tie" in row.reason
    some = np.array(vectors().values)
    some[:3] = 0.0
    assert "3 zero vectors without direction" in perception(drawn(), Vectors(IDS, some)).row("choice_accuracy").reason
    with pytest.raises(InputError, match="NaN"):
        perception(drawn(), Vectors(IDS, np.where(np.arange(14)[:, None] == 3, np.nan, some)))


def test_pairs_without_a_distance_are_left_out() -> None:
    values = np.full(91, np.nan)
    values[: 91 - 20] = np.random.default_rng(0).random(71)
    from earmark.vectors import Distances

    row = perception(drawn(), Distances(values, IDS)).row("choice_accuracy")
    assert "left out for a missing distance" in row.reason
    assert row.n is not None
    assert 0 < row.n < 120


# --- units, filters, ceilings, comparisons ----------------------------------------------------------------------------


def test_units_are_what_judgements_share() -> None:
    system = vectors()
    row = perception(drawn(listeners=9), system).row("choice_accuracy")
    assert (row.interval, row.unit, row.units) == ("jackknife", "listener", 9)
    for unit, units in (("anchor", 14), ("judgement", 120)):
        row = perception(drawn(listeners=9), system, unit=unit).row("choice_accuracy")
        assert (row.unit, row.units) == (unit, units)
    assert perception(drawn(), system).row("choice_accuracy").unit == "pair"
    some = drawn(listeners=9)
    some = replace(some, listeners=(None, None, *(some.listeners or ())[2:]))
    row = perception(some, system).row("choice_accuracy")
    assert row.units == 11
    assert "2 judgements of unknown listeners counted as listeners of their own" in row.reason
    few = perception(drawn(listeners=3), system).row("choice_accuracy")
    assert few.low is None
    assert few.p_value is None
    assert "3 listeners are too few" in few.reason
    with pytest.raises(UsageError, match="needs to know who judged"):
        perception(drawn(), system, unit="listener")


def test_filters_give_rows_of_their_own() -> None:
    judgements = drawn(margin=["high", "low"] * 60)
    scores = perception(judgements, vectors(), where=["margin=high"], min_agreement=0.9, min_repeats=2)
    protocols = {row.protocol: row.n for row in scores.select(metric="choice_accuracy")}
    assert protocols["2afc"] == 120
    assert protocols["2afc margin=high"] == 60
    assert set(protocols) == {"2afc", "2afc margin=high", "2afc agreement>=0.9 & repeats>=2"}
    nobody = perception(judgements, vectors(), min_repeats=99).row("choice_accuracy", protocol="2afc repeats>=99")
    assert (nobody.status, nobody.reason) == ("not_applicable", "no judgement fulfils repeats>=99")


def test_ceilings_are_the_agreement_of_every_pair_of_presentations() -> None:
    rng = np.random.default_rng(4)
    n = 300
    item, listener = rng.integers(6, size=n), rng.integers(7, size=n)
    swapped = rng.random(n) < 0.5
    choice = np.where(rng.random(n) < 0.2 + 0.1 * item, 1, -1)  # +1: the sound p
    judgements = read_judgements({
        "x": [f"x{i}" for i in item], "a": np.where(swapped, "q", "p").tolist(),
        "b": np.where(swapped, "p", "q").tolist(),
        "choice": np.where((choice > 0) != swapped, "A", "B").tolist(), "listener": [f"L{i}" for i in listener],
    })  # fmt: skip
    found = {bound.metric: bound for bound in ceilings(judgements)}
    for metric, same in (("agreement_between", False), ("agreement_within", True)):
        shares = []
        for i in range(n):
            partners = [j for j in range(n) if j != i and item[i] == item[j] and (listener[i] == listener[j]) == same]
            if partners:
                shares.append(np.mean([choice[i] == choice[j] for j in partners]))
        assert found[metric].value == pytest.approx(np.mean(shares))
        assert found[metric].n == len(shares)
        assert found[metric].listeners == 7
    most = sum(max((choice[item == i] > 0).sum(), (choice[item == i] < 0).sum()) for i in range(6))
    assert found["attainable_accuracy"].value == most / n


def test_a_system_above_a_ceiling_is_remarked() -> None:
    judgements = read_judgements({"x": ["x"] * 4, "a": ["a"] * 4, "b": ["b"] * 4, "choice": ["A", "A", "A", "B"]})
    system = Vectors(("x", "a", "b"), np.array([[0.0], [1.0], [3.0]]))
    scores = perception(judgements, system, distance="euclidean", ceiling=(0.7, 0.9))
    row = scores.row("choice_accuracy")
    assert row.value == 0.75
    assert "above the ceiling given, 70.0 %" in row.reason
    assert "above the agreement of repeated judgements, 50.0 %" in row.reason
    assert "90" not in row.reason
    assert scores.value("attainable_accuracy") == 0.75
    with pytest.raises(UsageError, match="A ceiling is a share"):
        perception(judgements, system, ceiling=80)


def test_systems_are_compared_on_the_judgements_that_both_answer() -> None:
    from scipy.stats import binomtest

    judgements = drawn()
    systems = {"one": vectors(1), "two": vectors(2), "small": vectors(3, n=12)}
    scores = perception(judgements, systems, unit="judgement")
    row = scores.row("choice_accuracy:difference", system="one - two")
    hits = {}
    for name in ("one", "two"):
        pairs = answers(judgements, np.asarray(systems[name].values), "cosine")
        hits[name] = np.array([np.sign(gap) == -choice for gap, choice in pairs])
    first, second = (hits["one"] & ~hits["two"]).sum(), (hits["two"] & ~hits["one"]).sum()
    assert row.value == pytest.approx((first - second) / 120)
    assert row.p_value == pytest.approx(min(1.0, 3 * binomtest(first, first + second, 0.5).pvalue))
    assert row.comparisons == 3
    partial = scores.row("choice_accuracy:difference", system="one - small")
    assert partial.n == scores.row("choice_accuracy", system="small").n
    assert "on the judgements that both can answer" in partial.reason
    assert len(perception(judgements, systems, reference="one").select(statistic="difference")) == 2
    assert not len(perception(judgements, systems, compare=False).select(statistic="difference"))
    paired = perception(drawn(listeners=9), systems).row("choice_accuracy:difference", system="one - two")
    assert (paired.interval, paired.unit, paired.units) == ("jackknife", "listener", 9)


def test_rows_depend_on_nothing_but_what_they_name() -> None:
    one = perception(drawn(), vectors(), threads=1)
    two = perception(drawn(), vectors(), threads=2)
    assert [row.inputs for row in one] == [row.inputs for row in two]
    assert one.row("choice_accuracy").inputs != perception(drawn(seed=1), vectors()).row("choice_accuracy").inputs
    # The order of sounds in the file of vectors changes nothing.
    order = np.random.default_rng(0).permutation(14)
    system = vectors()
    moved = Vectors(tuple(IDS[row] for row in order), np.asarray(system.values)[order])
    assert [row.value for row in perception(drawn(), moved)] == [row.value for row in one]


# --- by simulation ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [5, 12])
def test_intervals_over_listeners_hold_and_the_binomial_one_does_not(count: int) -> None:
    # 2000 sets each gave 0.92 to 0.96 and an error rate of 0.04 to 0.08 (docs/listeners.md); here the limits are wide.
    rng = np.random.default_rng(count)
    held = rejected = 0
    for _ in range(300):
        units = np.repeat(np.arange(count), rng.integers(5, 80, count))
        hits = rng.random(len(units)) < rng.beta(8, 8, count)[units]
        without = shares_without(hits, units)
        freedom = jackknife.freedom_of(np.bincount(units).astype(float))
        found = jackknife.interval(float(hits.mean()), without, (0.0, 1.0), "listener", freedom=freedom)
        assert found.low is not None
        assert found.high is not None
        held += found.low <= 0.5 <= found.high
        p_value = jackknife.p_value(float(hits.mean()), without, (0.0, 1.0), 0.5, freedom=freedom)
        rejected += p_value is not None and p_value < 0.05
    assert held / 300 >= 0.91
    assert rejected / 300 <= 0.09


def test_intervals_of_correlations_hold() -> None:
    # 1500 sets each: see docs/listeners.md.
    rng = np.random.default_rng(6)

    def answered(n: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        gaps = rng.normal(size=n)
        return gaps, np.where(rng.random(n) < 1 / (1 + np.exp(gaps)), 1, -1)

    gaps, choices = answered(200_000)
    truth = [found.value for found in correlations(gaps, choices, np.zeros(200_000, np.int64))]
    held = np.zeros(2)
    for _ in range(200):
        gaps, choices = answered(100)
        for place, found in enumerate(correlations(gaps, choices, np.arange(100))):
            interval = jackknife.interval(found.value, found.without, (-1.0, 1.0))
            assert interval.low is not None
            assert interval.high is not None
            held[place] += interval.low <= truth[place] <= interval.high
    assert (held / 200 >= 0.9).all()


def test_correlations_without_enough_contradiction_have_no_interval() -> None:
    judgements = drawn()
    row = perception(judgements, vectors(), unit="judgement").row("choice_kendall")
    assert row.low is not None
    few = perception(judgements.take(np.arange(15)), vectors(), unit="judgement").row("choice_kendall")
    assert few.low is None
    assert "no interval: fewer than 10" in few.reason
    assert few.p_value is None


def test_random_systems_are_rarely_significant_with_pairs_as_units() -> None:
    # Each of 14 pairs is judged with 6 sounds: a random system that prefers one of a pair does so in most of them.
    rng = np.random.default_rng(7)
    table: dict[str, list[str]] = {"x": [], "a": [], "b": [], "choice": []}
    for pair in range(14):
        leaning = rng.choice([0.05, 0.95])
        for x in range(6):
            for role, name in (("x", f"x{x}"), ("a", f"a{pair}"), ("b", f"b{pair}")):
                table[role].append(name)
            table["choice"].append("A" if rng.random() < leaning else "B")
    judgements = read_judgements(table)
    rejected = dict.fromkeys(("judgement", "pair"), 0)
    for seed in range(150):
        # Vectors of different lengths: short ones are near to all others.
        rng = np.random.default_rng(seed)
        values = rng.normal(size=(len(judgements.sounds), 4)) * np.exp(rng.normal(size=(len(judgements.sounds), 1)))
        system = Vectors(judgements.sounds, values)
        for unit in rejected:
            row = perception(judgements, system, distance="euclidean", unit=unit).row("choice_accuracy")
            rejected[unit] += row.p_value is not None and row.p_value < 0.05
    assert rejected["pair"] <= 15
    assert rejected["judgement"] >= 23
