"""Names that fit ids, what intervals of agreement rest on, and judgements that are no evidence."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.probes.listening import drawn, sound_vectors

from earmark.calibrate import jackknife
from earmark.errors import InputError
from earmark.probes._choice_statistics import shares_without
from earmark.probes._units import Units, deletions
from earmark.probes.perception import perception, read_judgements
from earmark.vectors import Vectors

# --- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("judged", "known"),
    [
        ("b2/a.wav", "b1/a.wav"),
        ("bird1/a.wav", "x/bird2/a.wav"),
        ("bird1/a", "bird2/a.wav"),
        ("s1.noisy", "s1.clean"),
        ("s1.noisy", "s1"),
        ("s1.wav", "s1.mp3"),
        ("s1.wav", "s1.npy"),
    ],
)
def test_names_that_contradict_each_other_are_other_sounds(judged: str, known: str) -> None:
    for name, row in ((judged, known), (known, judged)):
        triplets = read_judgements({"anchor": [name, "p"], "positive": ["p", "q"], "negative": ["q", "r"]})
        system = Vectors((row, "p", "q", "r"), np.array([[0.0], [1.0], [3.0], [9.0]]))
        scores = perception(triplets, {"S": system}, distance="euclidean")
        assert scores.row("triplet_accuracy").n == 1
        assert "1 judgement of 2 left out for 1 missing sound" in scores.row("triplet_accuracy").reason
        assert scores.notes == (f"S lacks 1 of the 4 sounds that were judged: {name}",)


def test_the_name_with_more_in_common_counts_and_doubt_is_refused() -> None:
    values = np.array([[0.0], [1.0], [5.0], [2.0]])
    for judged, ids in (("x/b2/a.wav", ("b2/a.wav", "a.wav")), ("b.wav", ("1/b.wav", "1/b"))):
        triplets = read_judgements({"anchor": ["p"], "positive": [judged], "negative": ["q"]})
        system = Vectors(("p", *ids, "q"), values)
        assert perception(triplets, system, distance="euclidean").value("triplet_accuracy") == 1.0
    doubtful = read_judgements({"anchor": ["p"], "positive": ["x/a.wav"], "negative": ["q"]})
    with pytest.raises(InputError, match=r'the sound "x/a\.wav" may be a\.wav, x/a'):
        perception(doubtful, Vectors(("p", "a.wav", "x/a", "q"), values))


def test_a_sound_compared_with_itself_is_no_evidence() -> None:
    table = {
        "x": ["s00", "s00", "s01", "s02", "s03"], "a": ["s00", "s01", "s02", "s05", "s05"],
        "b": ["s01", "s00", "s02", "s06", "s06"], "choice": ["A", "B", "s02", "B", "NA"],
    }  # fmt: skip
    row = perception(table, sound_vectors()).row("choice_accuracy")
    assert row.n == 1
    assert "3 judgements left out that compare a sound with itself" in row.reason
    assert "1 judgement without a choice left out" in row.reason
    nothing = perception({role: names[:3] for role, names in table.items()}, sound_vectors()).row("choice_accuracy")
    assert nothing.status == "not_applicable"
    assert "3 judgements left out that compare a sound with itself" in nothing.reason
    # Two names of one row are one sound, too, and this is said.
    triplets = {"anchor": ["s00", "s03"], "positive": ["calls/s00.wav", "s04"], "negative": ["s01", "s05"]}
    scores = perception(triplets, {"S": sound_vectors()})
    assert scores.row("triplet_accuracy").n == 1
    assert "1 judgement left out that compares a sound with itself" in scores.row("triplet_accuracy").reason
    assert scores.notes == ("S: 1 sound judged under several names: s00 and calls/s00.wav are both calls/s00.wav",)


# --- units ------------------------------------------------------------------------------------------------------------


def test_a_conclusion_says_what_it_holds_for() -> None:
    crossed, system = drawn(listeners=9), sound_vectors()
    scores = perception(crossed, {"one": system, "two": sound_vectors(2)}, unit="listener")
    of_systems = [row for row in scores if row.system != "listeners"]
    assert len(of_systems) == 7
    for row in of_systems:
        assert (row.unit, row.units) == ("listener", 9)
        assert "holds for these sounds only" in row.reason
    assert "holds for these listeners only" in perception(crossed, system, unit="pair").row("choice_accuracy").reason
    pairs = len({frozenset(pair) for pair in zip(crossed.a.tolist(), crossed.b.tolist(), strict=True)})
    for row in perception(crossed, {"one": system, "two": sound_vectors(2)}):
        if row.system != "listeners":
            assert (row.unit, row.units) == ("listener+pair", 9)
            assert f"rests on 9 listeners and {pairs} pairs: holds for others of both" in row.reason
    # Nothing that two listeners judged: other listeners are other sounds.
    names = [f"{n:02d}" for n in range(60)]
    own = {"anchor": names[:20], "positive": names[20:40], "negative": names[40:], "listener": [*"abcde"] * 4}
    row = perception(own, np.random.default_rng(0).normal(size=(60, 4)), ids=names).row("triplet_accuracy")
    assert (row.unit, row.units, row.reason) == ("listener", 5, "")


def test_few_pairs_that_recur_allow_no_interval_however_often_they_were_judged() -> None:
    thrice = {"anchor": ["s00", "s01", "s02"], "positive": ["s03", "s04", "s05"], "negative": ["s06", "s07", "s08"]}
    table = {role: names * 1000 for role, names in thrice.items()}
    row = perception(table, sound_vectors()).row("triplet_accuracy")
    assert (row.low, row.p_value, row.unit, row.n) == (None, None, "", 3000)
    assert "3 pairs are too few" in row.reason
    asked = perception(table, sound_vectors(), unit="judgement").row("triplet_accuracy")
    assert asked.interval == "binomial"
    assert "judgements taken as independent, though they share 3 pairs" in asked.reason
    # Ten listeners do not make up for them.
    heard = {**table, "listener": [f"L{n % 10}" for n in range(3000)]}
    row = perception(heard, sound_vectors()).row("triplet_accuracy")
    assert (row.low, row.p_value) == (None, None)
    assert "3 pairs are too few" in row.reason
    # One X with many pairs.
    positive, negative = ([f"s{n:02d}" for n in numbers] for numbers in (range(1, 7), range(7, 13)))
    one = {"anchor": ["s00"] * 6, "positive": positive, "negative": negative}
    assert "1 anchor is too few" in perception(one, sound_vectors()).row("triplet_accuracy").reason


def test_judgements_of_nobody_are_no_listeners() -> None:
    some = drawn(listeners=3)
    some = replace(some, listeners=tuple(None if n % 10 else name for n, name in enumerate(some.listeners or ())))
    for unit in (None, "listener"):
        row = perception(some, sound_vectors(), unit=unit).row("choice_accuracy")
        assert (row.n, row.low, row.p_value) == (12, None, None)
        assert "108 judgements of unknown listeners left out" in row.reason
        assert "3 listeners are too few" in row.reason
    assert perception(some, sound_vectors(), unit="pair").row("choice_accuracy").n == 120
    nobody = replace(some, listeners=(None,) * 120)
    assert perception(nobody, sound_vectors()).row("choice_accuracy").unit == "pair"


def test_the_error_over_two_kinds_of_units_is_that_of_each_less_what_both_count() -> None:
    rng = np.random.default_rng(9)
    listener, pair = rng.integers(7, size=150), rng.integers(12, size=150)
    values = rng.normal(size=150) + rng.normal(size=7)[listener] + rng.normal(size=12)[pair]
    units = Units.of(("listener", "pair"), (listener, pair))
    without = [np.array([values[codes != one].mean() for one in np.unique(codes)]) for codes in units.codes]
    unit, of_fewer, error, freedom = deletions(units, without)
    one, other, cell = ((len(w) - 1) / len(w) * ((w - w.mean()) ** 2).sum() for w in without)
    assert (unit, len(of_fewer)) == ("listener", 7)
    assert error == pytest.approx(np.sqrt(one + other - cell))
    assert freedom == min(jackknife.freedom_of(np.bincount(codes).astype(float)) for codes in units.codes[:2])
    assert len(np.unique(units.codes[2])) == len({*zip(listener.tolist(), pair.tolist(), strict=True)})


# --- by simulation ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("listeners", "items"), [(10, 30), (6, 20)])
def test_random_systems_are_rarely_significant_where_listeners_answer_alike(listeners: int, items: int) -> None:
    # Of each item 85 in 100 listeners give the same answer. 1000 sets gave .01 to .04 (docs/listeners.md), and .4 to .5
    # with listeners as the only unit.
    rng = np.random.default_rng(listeners)
    names = [f"s{n}" for n in range(3 * items)]
    rejected: dict[tuple[str, str], int] = {}
    item = np.tile(np.arange(items), listeners)
    for _ in range(40):
        left = (rng.random(len(item)) < 0.85) == (item % 2 == 0)
        judgements = read_judgements({
            **{role: [names[3 * n + place] for n in item] for place, role in enumerate("xab")},
            "choice": np.where(left, "A", "B").tolist(), "who": [f"L{n}" for n in np.arange(len(item)) // items],
        }, listener="who")  # fmt: skip
        systems = {name: Vectors(tuple(names), rng.normal(size=(len(names), 8))) for name in "pq"}
        for unit in (None, "listener"):
            for row in perception(judgements, systems, unit=unit, threads=1):
                if row.system in ("p", "p - q"):
                    key = (row.metric, row.unit)
                    rejected[key] = rejected.get(key, 0) + (row.p_value is not None and row.p_value < 0.05)
    for metric in ("choice_accuracy", "choice_accuracy:difference", "choice_spearman", "choice_kendall"):
        assert rejected[metric, "listener+pair"] <= 5
        assert rejected[metric, "listener"] >= 8


@pytest.mark.parametrize(("of_listeners", "of_pairs"), [(0.5, 0.5), (0.3, 1.5), (1.0, 0.3)])
def test_intervals_over_listeners_and_pairs_hold(of_listeners: float, of_pairs: float) -> None:
    # 1000 sets each: see docs/listeners.md.
    rng = np.random.default_rng(8)
    spread = rng.normal(size=100_000) * np.hypot(of_listeners, of_pairs)
    expected = float((1 / (1 + np.exp(-0.5 - spread))).mean())
    listener, pair = np.divmod(np.arange(200), 20)
    units = Units.of(("listener", "pair"), (listener, pair))
    held = 0
    for _ in range(200):
        level = 0.5 + of_listeners * rng.normal(size=10)[listener] + of_pairs * rng.normal(size=20)[pair]
        hits = rng.random(200) < 1 / (1 + np.exp(-level))
        unit, without, error, freedom = deletions(units, [shares_without(hits, codes) for codes in units.codes])
        interval = jackknife.interval(float(hits.mean()), without, (0.0, 1.0), unit, freedom=freedom, error=error)
        assert interval.low is not None
        assert interval.high is not None
        held += interval.low <= expected <= interval.high
    assert held >= 180
