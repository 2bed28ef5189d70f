"""What a policy lets out of exact scores: nothing finer than a step, nothing worse than before, nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.blind.ledgers import SIZES, STEPS, exact_scores, fingerprints_of, policy_of

from earmark.blind.duplicates import leverage, pack, similarity, unpack
from earmark.blind.policy import Policy, SetTerms, read_policy
from earmark.blind.release import NO_INTERVAL, NO_VALUE, release
from earmark.blind.steps import around, on_grid, rises_above, step_for
from earmark.errors import InputError, UsageError
from earmark.scores import Row, Scores
from earmark.submissions import Document, SystemCard, check

fractions = st.floats(0, 1, allow_nan=False)
steps = st.sampled_from(["0.001", "0.002", "0.005", "0.01", "0.02", "0.05"]).map(Decimal)


def _release(exact: Scores, history: dict[tuple[str, str], Row] | None = None, policy: Policy | None = None) -> Scores:
    told = release(policy or policy_of(), exact, history or {}, board="vocsim", entry="bat")
    return Scores(told.rows)


def _pairs(numbers: list[float]) -> Iterator[tuple[float, float]]:
    return zip(numbers[::2], numbers[1::2], strict=True)


def _standing(rows: Scores) -> dict[tuple[str, str], Row]:
    return {(row.subset, row.metric): row for row in rows}


# --- steps -----------------------------------------------------------------------------------------------------------


@given(fractions, steps)
def test_a_figure_is_the_nearest_multiple_of_its_step(value: float, step: Decimal) -> None:
    told = on_grid(value, step)
    assert Decimal(str(told)) % step == 0
    assert abs(Decimal(value) - Decimal(str(told))) <= step / 2


@given(fractions, st.floats(0, 0.2), st.floats(0, 0.2), steps)
def test_a_released_interval_holds_the_measured_one_and_its_ends_lie_on_the_grid(
    value: float, below: float, above: float, step: Decimal
) -> None:
    low, high = max(0.0, value - below), min(1.0, value + above)
    told = around(value, low, high, step, (0.0, 1.0))
    assert told.low <= low <= high <= told.high
    assert all(Decimal(str(end)) % step == 0 for end in told)
    # The margin does not depend on where between two multiples the value lay.
    assert told.high <= max(high, value) + max(below, above) + 2 * float(step) + 1e-9


@given(st.integers(1, 40), st.lists(st.floats(-0.49, 0.49), min_size=2, max_size=2), st.floats(0.0001, 0.1), steps)
def test_the_margin_tells_nothing_of_where_a_value_lay_inside_its_step(
    place: int, parts: list[float], margin: float, step: Decimal
) -> None:
    told = set()
    margin_steps = (
        round(margin / float(step), 3) * float(step) + 1e-7
    )  # away from the ends, where float sums may differ
    for part in parts:
        value = (place + part) * float(step)
        told.add(around(value, value - margin_steps, value + margin_steps, step, (-9.0, 9.0)))
    assert len(told) == 1


def test_steps_are_1_2_or_5_no_larger_than_the_margin_and_worth_some_clips() -> None:
    margins = (0.00005, 0.0001, 0.00019, 0.0049, 0.005, 0.0213, 0.2, 0.9)
    expected = ("0.0001", "0.0001", "0.0001", "0.002", "0.005", "0.02", "0.2", "0.5")
    assert [str(step_for(margin, 1_000_000, 1).normalize()) for margin in margins] == list(expected)
    sizes = {1001: "0.01", 999: "0.02", 4540: "0.005", 20: "0.5", 10: "0.5"}
    assert {clips: str(step_for(0.001, clips, 10).normalize()) for clips in sizes} == sizes
    with pytest.raises(UsageError, match=r"5 clips can move GSR by its step 0\.005, and the policy asks for"):
        policy_of(clips_per_step=10)


# --- what leaves -----------------------------------------------------------------------------------------------------


def test_a_release_holds_rounded_figures_and_no_other_cell_of_the_measured_row() -> None:
    told = _release(exact_scores()).row("P@1", subset="HU4")
    cells = {name: cell for name, cell in told.as_dict().items() if cell not in (None, "")}
    version = cells.pop("version")
    assert version != "0.0"
    assert cells == {
        "suite": "vocsim", "subset": "HU4", "system": "bat", "distance": "cosine", "correction": "none",
        "protocol": "all", "metric": "P@1", "value": 0.14, "low": 0.1, "high": 0.18, "baseline": 0.016, "lift": 0.124,
        "n": 1001, "status": "ok", "interval": "jackknife", "unit": "clip",
    }  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-0.0008, 0.0008), min_size=12, max_size=12), st.floats(0, 1e3), st.text(max_size=20))
def test_tables_that_round_alike_leave_as_the_same_bytes(noise: list[float], seconds: float, words: str) -> None:
    middle = {"P@1": 0.14, "P@5": 0.09, "GSR": 0.395}

    def table(numbers: list[float], **cells: object) -> Scores:
        rows = []
        for row, (shift, more) in zip(exact_scores(), _pairs(numbers), strict=True):
            value = middle[row.metric] + shift
            margin = 0.0131 + abs(more) if row.metric != "GSR" else 0.0061 + more
            rows.append(replace(row, value=value, low=value - margin, high=value + margin, **cells))  # type: ignore[arg-type]
        return Scores(tuple(rows))

    cells = {"seconds": seconds, "reason": words.replace("sample", ""), "inputs": words, "n": 12, "p_value": 0.5}
    one, other = (
        Document("vocsim", (SystemCard("bat"),), _release(exact), provenance="blind").to_bytes()
        for exact in (table([0.0] * 12), table(noise, **cells))
    )
    assert one == other


def test_other_metrics_protocols_and_subsets_never_leave() -> None:
    rows = list(exact_scores())
    more = [
        replace(rows[0], metric="CSR"), replace(rows[0], metric="silhouette"), replace(rows[0], subset="secret"),
        replace(rows[0], protocol="across_groups"), replace(rows[0], metric="P@1:difference"),
        replace(rows[0], subset="mean:blind"),
    ]  # fmt: skip
    assert _release(Scores((*more, *rows))) == _release(exact_scores())


def test_a_release_is_a_document_that_the_board_takes() -> None:
    document = Document("vocsim", (SystemCard("bat"),), _release(exact_scores()), provenance="blind")
    assert check(document).problems == []


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"status": "not_applicable", "value": None, "reason": "2 clips of Maria"}, NO_VALUE),
        ({"low": None, "high": None, "reason": "no clip changes it"}, NO_INTERVAL),
        ({"interval": "bootstrap_queries"}, NO_INTERVAL),
    ],
)
def test_a_figure_without_value_or_interval_is_told_in_fixed_words(change: dict[str, object], reason: str) -> None:
    told = _release(exact_scores(**change))
    assert {(row.status, row.value, row.low, row.reason, row.n) for row in told} == {
        ("not_applicable", None, None, reason, None)
    }


def test_nothing_leaves_when_a_figure_is_missing_or_there_twice() -> None:
    rows = exact_scores().rows
    with pytest.raises(InputError, match=r"GSR of the blind set HW3 was not measured; nothing is released\."):
        _release(Scores(rows[:-1]))
    with pytest.raises(InputError, match="P@1 of the blind set HU4 was measured more than once"):
        _release(Scores((*rows, replace(rows[0], distance="euclidean"))))
    with pytest.raises(InputError, match="names no blind set"):
        _release(exact_scores(), policy=Policy())


# --- the Ladder ------------------------------------------------------------------------------------------------------


def test_a_figure_that_is_better_by_more_than_a_step_is_new_and_any_other_stands_as_it_was() -> None:
    first = _release(exact_scores())
    for shift in (-0.05, -0.004, 0.0, 0.0009):
        assert _release(exact_scores(shift), _standing(first)) == first
    better = release(policy_of(), exact_scores(0.0069), _standing(first), board="vocsim", entry="bat")
    assert better.fresh == {("HU4", "GSR"), ("HW3", "GSR")}
    assert better.message == (
        "Released: 2 figures are new, each of the others is not better than the figure before by more than a step, so "
        "that the figure before stands."
    )
    for row in better.rows:
        assert (row in first.rows) == ((row.subset, row.metric) not in better.fresh)


@given(st.lists(fractions, min_size=1, max_size=30), steps)
def test_what_a_ladder_tells_only_rises_and_by_at_least_a_step(values: list[float], step: Decimal) -> None:
    told = [on_grid(values[0], step)]
    for value in values[1:]:
        if rises_above(value, told[-1], step):
            told.append(on_grid(value, step))
            assert Decimal(str(told[-1])) - Decimal(str(told[-2])) >= step
    assert max(values) <= told[-1] + 1.5 * float(step) + 1e-12


def test_a_figure_that_was_not_defined_before_may_be_told_later_and_does_not_vanish_again() -> None:
    nothing = _release(exact_scores(low=None, high=None))
    first = release(policy_of(), exact_scores(), _standing(nothing), board="vocsim", entry="bat")
    assert len(first.fresh) == 6
    assert (
        _release(exact_scores(status="failed", value=None, reason="x"), _standing(Scores(first.rows))).rows
        == first.rows
    )


# --- near-duplicates -------------------------------------------------------------------------------------------------


def test_fingerprints_tell_how_many_neighbours_two_models_share() -> None:
    lists = np.arange(20).reshape(4, 5)
    other = lists.copy()
    other[0] = other[0][::-1]  # the same neighbours in another order
    other[1, :2] = 99, 98
    assert unpack(pack(lists)).tolist() == lists.tolist()
    assert similarity({"A": pack(lists)}, {"A": pack(other)}) == 0.9
    assert similarity({"A": pack(lists), "B": pack(lists)}, {"A": pack(lists), "B": pack(other)}) == 0.9
    assert similarity({"A": pack(lists)}, {"B": pack(lists)}) == similarity({}, {}) == 0.0
    assert similarity({"A": pack(lists)}, {"A": pack(lists[:3])}) == 0.0
    assert similarity(fingerprints_of(1), fingerprints_of(1, 0.01)) == pytest.approx(0.99)


def test_a_clip_that_is_nearest_to_many_has_leverage() -> None:
    lists = np.arange(500).reshape(100, 5)
    assert leverage(pack(lists)) == 0.0
    hub = lists.copy()
    hub[:30, 0] = 7
    assert leverage(pack(hub)) == 0.3
    among = lists.copy()
    among[:60, 3] = 7
    among[60:72, 0] = 8
    assert leverage(pack(among)) == pytest.approx(61 / 500)
    assert leverage(pack(np.zeros((10, 5), int))) == 0.0  # too few lists to tell


@pytest.mark.parametrize("damaged", [b"", b"\0", b"\0\0\0\0", b"\5\0\0\0abcdefgh", b"\0\0\0\0abcd"])
def test_a_damaged_fingerprint_is_an_error(damaged: bytes) -> None:
    with pytest.raises(InputError, match="damaged"):
        unpack(damaged)


# --- the file and the words ------------------------------------------------------------------------------------------


def test_a_policy_is_written_read_and_hashed_the_same() -> None:
    policy = policy_of(contact="speakers@example.org", quota=3)
    again = read_policy(policy.to_yaml())
    assert again == policy
    assert again.digest == policy.digest
    assert read_policy(policy.plain).digest == policy.digest
    assert len({policy.digest, policy_of().digest, policy_of(quota=4).digest}) == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("quotas: 3", 'The policy has the unknown key "quotas". Did you mean "quota"?'),
        ("quota: 0", "The policy: quota is a whole number of at least 1, not 0."),
        ("quota: true", "The policy: quota is a whole number of at least 1, not True."),
        ("sign_off: never", 'The policy: sign_off is before or after, not "never".'),
        ("slot_minutes: 7", "The policy: a day is no multiple of slot_minutes 7; take 15 or 60."),
        ("duplicates: 98", "The policy: duplicates is a share from 0.5 to 1, not 98."),
        ("format: 2", "The policy: format 2 is not known; this version reads format 1."),
        ("- 1", "The policy holds no policy; `earmark blind prepare` writes one."),
        ("a: [", "The policy, line 1: this is no YAML; mend it, or write it anew with `earmark blind prepare`."),
        (
            "quota: 010",
            "The policy, line 1: 010 is not a plain number; write it in decimal digits, or in quotes if it is a text.",
        ),
        (
            "sets: {A: {clips: 900, classes: 30}}",
            'The policy: the set "A" has no steps; `earmark blind prepare` writes them.',
        ),
        (
            "sets: {A: {clips: 900, classes: 30, steps: {CS: 0.1}}}",
            'The blind set "A": CS is never released; P@1, P@5 and GSR may be.',
        ),
        (
            "sets: {A: {clips: 900, classes: 30, steps: {P@1: 0.03}}}",
            'The blind set "A": the step of P@1 is 1, 2 or 5 times a power of ten, such as 0.01, 0.02 or 0.05, '
            "not 0.03.",
        ),
        (
            "sets: {A: {clips: 900, classes: 30, steps: {P@1: .nan}}}",
            'The blind set "A": the step of P@1 is a number from 0.0001 to 0.5, such as 0.02, not nan.',
        ),
    ],
)  # fmt: skip
def test_a_policy_that_is_not_understood_is_refused_in_one_sentence(text: str, message: str) -> None:
    with pytest.raises(UsageError) as refused:
        read_policy(text)
    assert str(refused.value) == message


@pytest.mark.parametrize(("clips", "classes", "what"), [(499, 80, "499 clips"), (1001, 19, "19 classes")])
def test_a_set_that_is_too_small_is_refused(clips: int, classes: int, what: str) -> None:
    with pytest.raises(InputError, match=f'"tiny" has {what} and the policy asks for'):
        Policy(sets={"tiny": SetTerms("tiny", clips, classes, STEPS)})


def test_the_words_give_every_number_of_the_policy() -> None:
    policy = policy_of(
        quota=3, entries=7, entries_overall=61, period_days=77, releases_per_day=13, slot_minutes=20, least_clips=503,
        clips_per_step=4, leverage=0.07,
        least_classes=23, duplicates=0.975, contact="speakers@example.org", sign_off="before",
    )  # fmt: skip
    words = policy.text()
    told = (
        "3 releases", "7 new entries", "61 new entries", "77 days", "13 releases", "20 minutes", "503 clips",
        "4 clips", "7%",
        "23 classes", "97.5%", "speakers@example.org", "the speakers", "Nothing leaves before", policy.digest,
    )  # fmt: skip
    assert [number for number in told if number not in words] == []
    for name, (clips, classes) in SIZES.items():
        assert f"| {name} | {clips:,} | {classes} | 0.02 | 0.01 | 0.005 |" in words
    assert "without being asked for" in policy_of().text()
    assert policy.announcement()["text"] == words
