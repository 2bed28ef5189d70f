"""The host's book: decided once, written whole, changed never unseen."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import sqlite3
import stat
import time
from concurrent.futures import ProcessPoolExecutor
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import text
from tests.blind.ledgers import NOON, exact_scores, fingerprints_of, job_of, ledger_url, policy_of

from earmark.blind.audit_page import as_markdown
from earmark.blind.chain import Entry
from earmark.blind.duplicates import pack
from earmark.blind.ledger import Decision, Ledger
from earmark.databases import writing
from earmark.errors import InputError, UsageError
from earmark.scores import Scores
from earmark.submissions import read_document

__all__ = ["ledger_url"]
FORKED = multiprocessing.get_context("fork")  # a fresh interpreter takes seconds to import what this one has
LATER = NOON + timedelta(days=365)


@pytest.fixture
def ledger(ledger_url: str) -> Any:
    made = Ledger(ledger_url)
    yield made
    made.close()


@pytest.fixture
def light(tmp_path: Path) -> Any:
    """A ledger where the database does not matter."""
    made = Ledger(str(tmp_path / "ledger.sqlite3"))
    yield made
    made.close()


def _values(decision: Decision) -> dict[tuple[str, str], float]:
    assert decision.document is not None
    document = read_document(json.dumps(decision.document).encode())
    return {(row.subset, row.metric): row.value for row in document.scores if row.value is not None}


# --- deciding --------------------------------------------------------------------------------------------------------


def test_a_job_is_decided_once_left_once_and_written_down(ledger: Ledger) -> None:
    first = ledger.decide(**job_of(1))
    assert (first.kind, first.job, first.not_before) == ("release", "job1", NOON)
    assert _values(first)["HU4", "P@1"] == 0.14
    assert ledger.decide(**job_of(1, exact=exact_scores(0.3), now=LATER)) == first == ledger.decision("job1")
    assert ledger.due(NOON) == [first]
    ledger.acknowledge("job1")
    ledger.acknowledge("job1")
    assert ledger.due(LATER) == []
    assert [entry.kind for entry in ledger.entries()] == ["policy", "release", "departure"]
    assert ledger.verify() == []
    with pytest.raises(InputError, match="job1 was decided for another package"):
        ledger.decide(**job_of(1, digest="f" * 64))
    with pytest.raises(InputError, match="no withdrawal of the job"):
        ledger.acknowledge("job1", "withdrawal")


def test_no_entry_and_no_page_holds_an_exact_value(light: Ledger) -> None:
    decision = light.decide(**job_of(1))
    public = json.dumps([light.public_entry(entry.number) for entry in light.entries()] + [decision.document])
    for row in exact_scores():
        for cell in (row.value, row.low, row.high, row.p_value, row.baseline_error, row.seconds, row.lift):
            assert repr(cell) not in public
        assert row.reason not in public
        assert row.inputs not in public
    assert light.exact(decision.number) == exact_scores()
    with pytest.raises(InputError, match="is no release"):
        light.exact(1)


def test_the_ladder_remembers_what_an_entry_was_told(light: Ledger) -> None:
    light.decide(**job_of(1))
    worse, better, again = (
        light.decide(**job_of(number, exact=exact_scores(shift)))
        for number, shift in ((2, -0.05), (3, 0.05), (4, 0.049))
    )
    assert _values(worse)["HU4", "P@1"] == 0.14
    assert worse.message.startswith("Released without a new figure: each is not better than the figure before")
    assert better.public["body"]["jobs"] == again.public["body"]["jobs"] == ["job3"] * 6
    assert worse.public["body"]["jobs"] == ["job1"] * 6  # whose figures they are, and not the last that was sent
    assert _values(better)["HU4", "P@1"] == _values(again)["HU4", "P@1"] == 0.18
    other_entry = light.decide(**job_of(5, entry="owl", exact=exact_scores(-0.05)))
    assert _values(other_entry)["HU4", "P@1"] == 0.08
    assert light.verify() == []


def test_releases_leave_at_slots_and_what_is_more_than_a_day_holds_waits(light: Ledger) -> None:
    policy = policy_of(quota=2, releases_per_day=3)
    start = NOON + timedelta(minutes=1)
    jobs = [("a", 1), ("a", 2), ("a", 3), ("b", 4), ("b", 5), ("c", 6)]
    slots = [
        light.decide(**job_of(number, team=team, policy=policy, now=start)).not_before.isoformat()[8:16]
        for team, number in jobs
    ]
    # Two of a and one of b fill the first day; the third of a, the second of b and c's fill the next.
    assert slots == ["01T12:15", "01T12:15", "02T00:00", "01T12:15", "02T00:00", "02T00:00"]
    assert light.due(start) == []
    assert len(light.due(NOON + timedelta(minutes=15))) == 3
    assert len(light.due(NOON + timedelta(days=1))) == 6


def test_a_flood_is_refused_before_it_fills_the_calendar(light: Ledger) -> None:
    policy = policy_of(quota=1, releases_per_day=1)
    kinds = [light.decide(**job_of(number, policy=policy)).kind for number in range(34)]
    assert kinds == ["release"] * 31 + ["refusal"] * 3
    assert light.decision("job33").message.startswith("More was sent than the policy can release")  # type: ignore[union-attr]


def test_new_entries_are_bounded_for_a_team_and_for_all(light: Ledger) -> None:
    policy = policy_of(entries=2, entries_overall=3, quota=9)
    admission = {"job": "x", "board": "vocsim", "distance": "cosine", "correction": "none", "policy": policy}
    for number, (team, entry) in enumerate([("a", "one"), ("a", "two"), ("b", "one")]):
        assert light.admit(**admission, team=team, entry=entry, now=NOON) == ""
        light.decide(**job_of(number, team=team, entry=entry, policy=policy))
    assert light.admit(**admission, team="a", entry="three", now=NOON) == (
        "Your team has 2 new entries in 90 days (one, two), as many as the policy allows; submit under the name of an "
        "entry of yours, or a new one after 2026-05-30."
    )
    assert light.admit(**admission, team="c", entry="one", now=NOON) == (
        "All teams together have 3 new entries in 90 days, as many as the policy allows; submit under the name of an "
        "entry of yours, or a new one after 2026-05-30."
    )
    refused = light.decide(**job_of(7, team="a", entry="three", policy=policy))
    assert (refused.kind, refused.document) == ("refusal", None)
    assert light.decide(**job_of(8, team="a", entry="two", policy=policy)).kind == "release"
    assert light.admit(**admission, team="a", entry="three", now=NOON + timedelta(days=91)) == ""
    light.acknowledge("job7", "refusal")
    assert "job7" not in [decision.job for decision in light.due(LATER)]
    assert light.verify() == []


def _admission(number: int, **more: Any) -> dict[str, Any]:
    asked = {name: cell for name, cell in job_of(number).items() if name in ("job", "board", "team", "entry", "now")}
    return {
        **asked,
        "distance": "cosine",
        "correction": "none",
        "policy": policy_of(quota=2, releases_per_day=3),
        **more,
    }


def test_hearings_are_counted_whatever_became_of_them(light: Ledger) -> None:
    """A job that fails on the host's side is free on the board; it may not be a way to hear without end."""

    def begin(number: int, team: str = "analysts", days: int = 0) -> str:
        return light.admit(**_admission(number, team=team, now=NOON + timedelta(days=days)))

    assert [begin(1) for _ in range(7)] == [""] * 6 + [
        "The recordings were heard by 6 submissions of your team today, as many as may; submit again tomorrow."
    ]
    assert light.admit(**_admission(1, resumed=True)) == ""
    others = [begin(number, f"t{number}") for number in range(2, 6)]
    assert others[:3] == [""] * 3
    assert others[3].startswith("The recordings were heard by 9 submissions of all teams together today")
    assert begin(1, days=1) == ""
    assert [entry.kind for entry in light.entries()] == ["hearing"] * 10
    assert light.verify() == []
    assert "A model of analysts began to hear the recordings, job job1." in as_markdown(light.entries())
    problems = _edited(light, "UPDATE blind_ledger_entries SET team = 'x' WHERE number = 1")
    assert problems == ["Entry 1 is filed under another team than it says."]


@pytest.mark.parametrize(
    ("card", "entry", "message"),
    [
        ({}, "=poison", "The board would not take the card of the system"),
        ({"details": {"x": float("nan")}}, "bat", "The card of the system cannot be kept"),
        ({"details": {"x": [float("inf")]}}, "bat", "The card of the system cannot be kept"),
        ({"url": "javascript:alert(1)"}, "bat", "The board would not take the card of the system"),
        ({"title": "\ud800"}, "bat", "The "),
        ({"titel": "x"}, "bat", "The card of the system cannot be kept"),
    ],
)
def test_a_card_that_could_not_be_released_is_refused_before_anything_is_heard(
    light: Ledger, card: dict[str, Any], entry: str, message: str
) -> None:
    assert light.admit(**_admission(1, entry=entry, card=card)).startswith(message)
    assert light.entries() == []
    assert light.admit(**_admission(1, card={"name": "bat", "details": {"layers": [1, 2.5]}})) == ""


def test_an_entry_keeps_its_distance_and_correction(light: Ledger) -> None:
    light.decide(**job_of(1))
    other = light.decide(**job_of(2, exact=exact_scores(0.2, distance="euclidean")))
    assert (other.kind, other.message) == (
        "refusal",
        'The entry "bat" was released with distance cosine and correction none; submit other settings under a name of '
        "their own.",
    )


def test_vectors_that_hang_on_one_clip_are_refused(light: Ledger) -> None:
    lists = np.random.default_rng(0).integers(0, 1001, (1000, 5))
    lists[:150, 0] = 5
    hub = fingerprints_of(1) | {"HU4": pack(lists)}
    refused = light.decide(**job_of(1, fingerprints=hub))
    assert refused.message.startswith("One clip is the nearest of more than 10% of the others")
    assert light.decide(**job_of(2, fingerprints=hub, policy=policy_of(leverage=0.2))).kind == "release"


def test_names_that_cannot_be_kept_are_refused(light: Ledger) -> None:
    for change in ({"team": " "}, {"entry": "x" * 201}, {"job": ""}):
        with pytest.raises((UsageError, InputError)):
            light.decide(**job_of(1, **change))
    mixed = Scores((*exact_scores().rows[:3], *exact_scores(distance="euclidean").rows[3:]))
    with pytest.raises(InputError, match="The blind set HW3 has no fingerprint of this model"):
        light.decide(**job_of(1, fingerprints={"HU4": fingerprints_of(1)["HU4"]}))
    with pytest.raises(InputError, match="several distances"):
        light.decide(**job_of(1, exact=mixed))
    assert light.entries() == []


def test_while_a_release_waits_nothing_is_told_of_what_was_measured(light: Ledger) -> None:
    """How many figures are new is part of the release: it leaves with it."""
    light.decide(**job_of(1))
    same, better = (light.decide(**job_of(number, exact=exact_scores(shift))) for number, shift in ((2, 0.0), (3, 0.1)))
    assert same.message != better.message
    assert same.waiting == "The figures leave at 2026-03-01 12:00 UTC."
    signed = light.decide(**job_of(4, exact=exact_scores(0.2), policy=policy_of(sign_off="before")))
    assert signed.waiting == (
        "The figures leave once the owners of the recordings have signed them, not before 2026-03-02 00:00 UTC."
    )


# --- near-duplicates -------------------------------------------------------------------------------------------------


def test_nearly_the_same_model_counts_as_the_first_and_only_its_own_team_is_told(light: Ledger) -> None:
    """0.149 rounds to 0.14 and 0.151 to 0.16: without the rule, small changes would find where a value lies."""
    near = {"fingerprints": fingerprints_of(1, 0.01)}
    first = light.decide(**job_of(1, exact=exact_scores(0.0155)))
    stranger = light.decide(**job_of(2, team="others", entry="owl", exact=exact_scores(0.0173), **near))
    renamed = light.decide(**job_of(3, entry="owl", exact=exact_scores(0.0173), **near))
    again = light.decide(**job_of(4, exact=exact_scores(0.0173), **near))
    apart = light.decide(**job_of(5, team="more", exact=exact_scores(0.0173), fingerprints=fingerprints_of(1, 0.05)))
    values = [_values(one)["HU4", "P@1"] for one in (first, stranger, renamed, again, apart)]
    assert values == [0.14, 0.14, 0.14, 0.14, 0.16]
    assert stranger.message == first.message  # nothing about anybody else's model
    assert "job1" not in json.dumps(stranger.public)
    assert renamed.message.startswith("Nearly the same model as your job job1, whose measurement counts for both.")
    assert {row["status"] for row in renamed.public["body"]["rows"]} == {"repeated"}
    assert renamed.public["body"]["rows"][0]["reason"] == "nearly the same model as the entry bat of the same team"
    assert again.public["body"]["fresh"] == []
    assert light.verify() == []


def test_equal_neighbours_with_a_figure_more_than_a_step_away_are_another_model(light: Ledger) -> None:
    """Neighbours do not decide GSR: a model may keep them all and change its distances."""
    light.decide(**job_of(1))
    far = light.decide(**job_of(2, team="others", exact=exact_scores(0.006), fingerprints=fingerprints_of(1)))
    assert _values(far)["HU4", "GSR"] == 0.4


# --- the owners ------------------------------------------------------------------------------------------------------


def test_what_the_board_never_takes_is_not_due_for_ever_and_owners_come_first(light: Ledger) -> None:
    for number in (1, 2, 3):
        light.decide(**job_of(number, entry=f"e{number}"))
    light.acknowledge("job3", now=LATER)
    light.object_to(4, "María", "No.")
    assert [(due.job, due.kind) for due in light.due(LATER)] == [
        ("job3", "withdrawal"), ("job1", "release"), ("job2", "release"),
    ]  # fmt: skip
    light.acknowledge("job1", taken=False, words="The name belongs to another team.", now=LATER)
    light.acknowledge("job1", now=LATER)
    assert [due.job for due in light.due(LATER)] == ["job3", "job2"]
    page = as_markdown(light.entries())
    assert "State: not taken by the board" in page
    assert "The board does not take the release of job job1: The name belongs to another team." in page
    assert light.verify() == []


def test_a_withdrawal_stays_due_until_the_board_has_it(light: Ledger) -> None:
    for number in (1, 2):
        light.decide(**job_of(number, entry=f"e{number}"))
    light.acknowledge("job1", now=LATER)
    light.object_to(2, "María", "No.")
    light.object_to(3, "María", "No.")
    for _ in range(2):  # a board, or a proxy before it, that says 404 or 422
        light.acknowledge("job1", "withdrawal", taken=False, words="There is no such release.", now=LATER)
        light.acknowledge("job2", "withdrawal", taken=False, words="There is no such release.", now=LATER)
    assert [(due.job, due.kind) for due in light.due(LATER)] == [("job1", "withdrawal")]  # job2 had never left
    assert "**1 release that the owners took back" in as_markdown(light.entries())
    light.acknowledge("job1", "withdrawal", now=LATER)
    assert light.due(LATER) == []
    assert light.verify() == []


def test_a_board_is_told_what_is_its_own(light: Ledger) -> None:
    light.decide(**job_of(1))
    light.decide(**job_of(2, board="field"))
    light.acknowledge("job2", now=LATER)
    light.object_to(3, "María", "No.")
    assert [(due.job, due.kind) for due in light.due(LATER, "field")] == [("job2", "withdrawal")]
    assert [(due.job, due.kind) for due in light.due(LATER, board="vocsim")] == [("job1", "release")]
    assert light.due(LATER, "elsewhere") == []


def test_with_sign_off_before_nothing_leaves_unsigned(ledger: Ledger) -> None:
    decision = ledger.decide(**job_of(1, policy=policy_of(sign_off="before")))
    assert ledger.due(LATER) == []
    signature = ledger.sign(decision.number, "María Quispe", "Read on Tuesday.", now=NOON)
    (due,) = ledger.due(NOON)
    assert due.job == "job1"
    assert due.public["remarks"] == [signature.plain]
    assert ledger.verify() == []
    with pytest.raises(InputError, match="releases and policies are signed"):
        ledger.sign(signature.number, "María Quispe")
    ledger.sign(1, "María Quispe", "The policy.")
    with pytest.raises(InputError, match="no entry 99"):
        ledger.sign(99, "María Quispe")
    with pytest.raises(UsageError, match="gives a name"):
        ledger.sign(decision.number, " ")


@pytest.mark.parametrize("words", ["after", '","sign_off":"after'])
def test_nothing_that_a_participant_writes_signs_for_the_owners(light: Ledger, words: str) -> None:
    card = {"name": "bat", "details": {"sign_off": "after", "more": words}, "description": '"sign_off":"after"'}
    decision = light.decide(**job_of(1, policy=policy_of(sign_off="before"), card=card))
    assert light.due(LATER) == []
    light.acknowledge("job1", now=LATER)  # a worker that sends all the same
    assert light.verify() == [f"Entry {decision.number} left without the owners' signature that its policy asks for."]


def test_a_release_that_left_before_its_time_is_found(light: Ledger) -> None:
    decision = light.decide(**job_of(1))
    light.acknowledge("job1", now=NOON - timedelta(minutes=1))
    assert light.verify() == [f"Entry {decision.number} left before its time."]


def test_an_objection_withdraws_what_left_stops_what_waits_and_closes_the_entry(ledger: Ledger) -> None:
    one, two = (ledger.decide(**job_of(number, exact=exact_scores(number / 20))) for number in (1, 2))
    other = ledger.decide(**job_of(3, entry="owl"))
    ledger.acknowledge("job1")
    with pytest.raises(UsageError, match="says why"):
        ledger.object_to(one.number, "María Quispe", "")
    objections = ledger.object_to(one.number, "María Quispe", "A name can be heard.", now=NOON)
    assert [entry.about for entry in objections] == [one.number, two.number]
    due = {(decision.job, decision.kind) for decision in ledger.due(LATER)}
    assert due == {("job1", "withdrawal"), ("job2", "withdrawal"), ("job3", "release")}
    assert "A name can be heard" not in " ".join(decision.message for decision in ledger.due(LATER))
    # The release was on its way to the board while the owners objected: its acknowledgement ends the release alone.
    ledger.acknowledge("job2", "release")
    ledger.acknowledge("job1", "withdrawal")
    assert {(decision.job, decision.kind) for decision in ledger.due(LATER)} == {
        ("job2", "withdrawal"), ("job3", "release"),
    }  # fmt: skip
    assert ledger.decide(**job_of(4)).message == (
        'The owners objected to a release of the entry "bat"; nothing more is released under this name.'
    )
    assert ledger.object_to(one.number, "María Quispe", "Again.") == []
    with pytest.raises(InputError, match="was objected to"):
        ledger.sign(one.number, "María Quispe")
    assert other.kind == "release"
    assert ledger.verify() == []


# --- tampering -------------------------------------------------------------------------------------------------------


def _filled(ledger: Ledger) -> list[Entry]:
    for number in range(1, 4):
        ledger.decide(**job_of(number, exact=exact_scores(number / 20), entry=f"e{number}"))
        ledger.acknowledge(f"job{number}", now=LATER)
    assert ledger.verify() == []
    return ledger.entries()


def _edited(ledger: Ledger, *statements: str) -> list[str]:
    def edit(connection: Any) -> None:
        if connection.dialect.name == "sqlite":
            connection.execute(text("PRAGMA defer_foreign_keys=ON"))
        for statement in statements:
            connection.execute(text(statement))

    writing(ledger.engine, edit)
    return ledger.verify()


@pytest.mark.parametrize(
    ("statements", "found"),
    [
        (["UPDATE blind_ledger_entries SET body = replace(body, '0.18', '1') WHERE number = 2"], "Entry 2 was changed"),
        (["UPDATE blind_ledger_entries SET body = '{' WHERE number = 2"], "Entry 2 cannot be read"),
        (["UPDATE blind_ledger_entries SET at = '2020-01-01T00:00:00+00:00' WHERE number = 4"], "Entry 4 was changed"),
        (["UPDATE blind_ledger_entries SET team = 'others' WHERE number = 2"], "Entry 2 is filed under another team"),
        (["DELETE FROM blind_ledger_entries WHERE number = 5"], "Entry 5 is missing"),
        (
            [
                "UPDATE blind_ledger_entries SET number = 99 WHERE number = 3",
                "UPDATE blind_ledger_entries SET number = 3 WHERE number = 5",
                "UPDATE blind_ledger_entries SET number = 5 WHERE number = 99",
            ],
            "Entry 3 does not follow the entry before it",
        ),
        (["UPDATE blind_ledger_private SET body = replace(body, '0.1837', '0.1937')"], "exact values of entry 2 were"),
        (["DELETE FROM blind_ledger_private WHERE number = 4"], "The exact values of entry 4 are missing"),
        (["UPDATE blind_ledger_fingerprints SET data = x'00' WHERE number = 4"], "The fingerprints of entry 4 were"),
    ],
)  # fmt: skip
def test_every_edit_of_the_file_is_found(light: Ledger, statements: list[str], found: str) -> None:
    _filled(light)
    assert any(problem.startswith(found) or found in problem for problem in _edited(light, *statements))


def test_a_cut_off_end_is_found_by_whoever_kept_the_last_hash(light: Ledger) -> None:
    last = _filled(light)[-1]
    assert light.verify((last.number, last.hash)) == []
    assert light.verify((2, last.hash)) == ["Entry 2 has another hash than the one that was written down."]
    assert _edited(light, f"DELETE FROM blind_ledger_entries WHERE number = {last.number}") == []
    assert light.verify((last.number, last.hash)) == [
        "Entry 7 was there once and is missing: the ledger ends with entry 6."
    ]


def test_a_release_that_its_policy_did_not_allow_is_found_though_the_chain_is_whole(light: Ledger) -> None:
    """A dishonest host who writes the whole chain anew is found by computing every release again."""
    _filled(light)

    def forge(connection: Any) -> None:
        previous = None
        from earmark.blind import _tables

        for row in connection.execute(_tables.entries.select().order_by(_tables.entries.c.number)).all():
            entry = _tables.entry_of(row)
            body = json.loads(row.body.replace('"value":0.18', '"value":0.28'))
            forged = Entry(entry.number, entry.at, entry.kind, entry.about, body, entry.commitment,
                           entry.previous if previous is None else previous)  # fmt: skip
            previous = forged.sealed()
            where = _tables.entries.c.number == entry.number
            cells = {"body": json.dumps(body, sort_keys=True, separators=(",", ":")), "hash": previous}
            connection.execute(_tables.entries.update().where(where).values(**cells, previous=forged.previous))

    writing(light.engine, forge)
    assert light.verify() == ["Entry 2 released other figures than its policy lets out of its exact values."]


# --- crashes and company ---------------------------------------------------------------------------------------------


def _decided(url: str, number: int) -> tuple[int, str]:
    ledger = Ledger(url)
    decision = ledger.decide(**job_of(number))
    ledger.close()
    return decision.number, json.dumps(decision.document, sort_keys=True)


def test_processes_that_decide_at_once_give_each_job_one_entry(ledger_url: str) -> None:
    Ledger(ledger_url).close()
    jobs = [1, 1, 2, 3, 1, 2, 3, 4, 4, 4]
    with ProcessPoolExecutor(4, mp_context=FORKED) as pool:
        decided = list(pool.map(_decided, [ledger_url] * len(jobs), jobs))
    assert len(set(zip(jobs, decided, strict=True))) == 4
    ledger = Ledger(ledger_url)
    assert [entry.kind for entry in ledger.entries()] == ["policy"] + ["release"] * 4
    assert ledger.verify() == []
    # One team, one entry, the same scores: the first was new and the others repeat it, in whatever order they came.
    assert sorted(len(entry.body["fresh"]) for entry in ledger.entries()[1:]) == [0, 0, 0, 6]
    ledger.close()


def _decide_without_end(url: str, start: int, told: Connection) -> None:
    ledger = Ledger(url)
    for number in range(start, 10_000):
        ledger.decide(**job_of(number, entry=f"e{number % 4}", policy=policy_of(quota=10_000, releases_per_day=10_000)))
        ledger.acknowledge(f"job{number}")
        told.send(number)


def test_a_killed_process_leaves_whole_entries_and_the_next_goes_on(ledger_url: str) -> None:
    last = -1
    for wait in (0.0, 0.005, 0.01, 0.02, 0.03):
        reader, writer = FORKED.Pipe(duplex=False)
        process = FORKED.Process(target=_decide_without_end, args=(ledger_url, max(0, last), writer))
        process.start()
        writer.close()
        while (told := reader.recv()) <= last:  # decided before the kill: decided again, and found
            pass
        time.sleep(wait)
        process.kill()
        process.join()
        with contextlib.suppress(EOFError):
            while True:
                told = reader.recv()
        last = told
        ledger = Ledger(ledger_url)
        assert ledger.verify() == []
        known = {entry.body["job"] for entry in ledger.entries() if entry.kind == "release"}
        assert {f"job{number}" for number in range(last + 1)} <= known  # what was told is there
        ledger.close()
    assert last >= 4


def test_a_ledger_is_readable_by_its_owner_alone_and_not_made_by_a_reader(tmp_path: Path) -> None:
    place = tmp_path / "ledger.sqlite3"
    with pytest.raises(InputError, match="There is no ledger at"):
        Ledger(str(place), create=False)
    assert not place.exists()
    with sqlite3.connect(tmp_path / "other.sqlite3") as other:
        other.execute("CREATE TABLE notes (text)")
    with pytest.raises(InputError, match="holds no ledger"):
        Ledger(str(tmp_path / "other.sqlite3"), create=False)
    assert [name for (name,) in other.execute("SELECT name FROM sqlite_master")] == ["notes"]
    other.close()
    Ledger(str(place)).close()
    Ledger(str(place), create=False).close()
    assert stat.S_IMODE(place.stat().st_mode) == 0o600


def test_a_ledger_of_a_later_version_is_refused(light: Ledger, tmp_path: Path) -> None:
    _edited(light, "UPDATE blind_ledger_version SET version = 2")
    with pytest.raises(InputError, match="version 2 and this Earmark reads version 1"):
        Ledger(str(tmp_path / "ledger.sqlite3"))


def test_a_change_of_policy_is_signed_by_owners_who_sign_releases(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path / "ledger.sqlite3"))
    asked, unasked = policy_of(sign_off="before"), policy_of(sign_off="after")
    assert ledger.adopt(asked, NOON) == ""
    refused = ledger.adopt(unasked, NOON)
    number = ledger.entries()[-1].number
    assert f"sign entry {number} first" in refused
    assert ledger.adopt(unasked, NOON) == refused
    assert ledger.entries()[-1].number == number  # it is written down once
    assert ledger.adopt(asked, NOON) == ""  # the one before holds on
    assert ledger.adopt(unasked, NOON) != ""
    ledger.sign(ledger.entries()[-1].number, "an owner", now=NOON)
    assert ledger.adopt(unasked, NOON) == ""
    assert ledger.verify() == []
    ledger.close()


def test_what_is_signed_between_slots_leaves_at_the_next(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path / "ledger.sqlite3"))
    decision = ledger.decide(**job_of(1, policy=policy_of(sign_off="before", slot_minutes=15)))
    ledger.sign(decision.number, "an owner", now=NOON + timedelta(minutes=16))
    assert ledger.due(NOON + timedelta(minutes=29)) == []
    assert [one.number for one in ledger.due(NOON + timedelta(minutes=30))] == [decision.number]
    ledger.close()
