"""The queue of blind evaluation, on both databases: no job is lost, none is given to two, none is released twice."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import timedelta

import pytest
from tests.board.blind_jobs import SETS, Clock, announced, facts, figures, queued
from tests.board.documents import row

from earmark.board.boards.snapshots import Snapshots
from earmark.board.jobs import BlindSet, Job, ordinal
from earmark.board.records import User
from earmark.board.refusals import Conflict, NotAllowed, NotFound, Refusal
from earmark.board.storage import Store, open_database
from earmark.scores import Scores
from earmark.submissions import Document, Refused, SystemCard


@pytest.fixture
def clock(store: Store) -> Clock:
    store.clock = made = Clock()
    return made


@pytest.fixture
def lab(store: Store, clock: Clock) -> User:
    """The host's worker account, which has announced two sets on the board "mine"."""
    made = store.create_user("lab", role="worker")
    announced(store, made, quota=20, entries=20)
    return made


def claim(store: Store, lab: User, worker: str = "one") -> str:
    """The lease of the next job."""
    lease = store.claim_job(lab, worker)
    assert lease is not None
    return lease.word


def test_teams_take_turns_and_each_gets_its_oldest_first(store: Store, lab: User, ada: User) -> None:
    zoe = store.create_user("zoe")
    many = [queued(store, ada, f"{number}") for number in range(4)]
    few = queued(store, zoe, "9")
    assert [store.job(job.id).place for job in (*many, few)] == [1, 3, 4, 5, 2]
    order: list[str] = []
    while (lease := store.claim_job(lab, f"worker {len(order)}")) is not None:
        order.append(lease.id)
    assert order == [many[0].id, few.id, *(job.id for job in many[1:])]
    # Whoever was served last waits, also when both send again.
    assert store.claim_job(lab, "idle") is None


def test_two_workers_at_once_never_get_one_job(url: str) -> None:
    store = Store(open_database(url))
    lab, ada = store.create_user("lab", role="worker"), store.create_user("ada")
    announced(store, lab, quota=50, entries=50)
    jobs = {queued(store, ada, f"{number}").id for number in range(12)}
    taken: list[str] = []
    begin = threading.Barrier(4)

    def work(name: str) -> None:
        own = Store(open_database(url))
        begin.wait()
        number = 0
        while (lease := own.claim_job(lab, f"{name} {number}")) is not None:
            taken.append(lease.id)
            number += 1
        own.close()

    threads = [threading.Thread(target=work, args=(f"worker {number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == sorted(jobs)
    store.close()


def test_a_lease_that_ended_goes_to_another_and_the_old_word_changes_nothing(
    store: Store, lab: User, ada: User, clock: Clock
) -> None:
    job = queued(store, ada, "1")
    old = claim(store, lab, "one")
    store.report_progress(job.id, lab, old, "listening", 4)
    assert store.claim_job(lab, "two") is None
    clock.pass_by(seconds=121)
    new = claim(store, lab, "two")
    assert new != old
    before = store.job(job.id)
    with pytest.raises(Conflict, match="lease"):
        store.report_progress(job.id, lab, old, "listening", 9)
    with pytest.raises(Conflict):
        store.hold_job(job.id, lab, old, "late")
    with pytest.raises(Conflict):
        store.fail_job(job.id, lab, old, "model", "late")
    with pytest.raises(Conflict):
        store.leased_job(job.id, lab, old)
    assert store.job(job.id) == before
    assert (before.attempts, before.tenths) == (2, 0)
    store.report_progress(job.id, lab, new, "listening", 5)


def test_a_worker_that_is_late_keeps_its_job_while_nobody_else_has_it(
    store: Store, lab: User, ada: User, clock: Clock
) -> None:
    job = queued(store, ada, "1")
    word = claim(store, lab)
    clock.pass_by(hours=1)
    store.report_progress(job.id, lab, word, "listening", 5)
    assert store.claim_job(lab, "two") is None


def test_a_worker_that_comes_back_gets_its_job_again(store: Store, lab: User, ada: User, clock: Clock) -> None:
    """Killed twenty times, and longer than its lease: it is one attempt, and the job goes on."""
    first, second = queued(store, ada, "1"), queued(store, ada, "2")
    words = set()
    for _ in range(20):
        lease = store.claim_job(lab, "one")
        assert lease is not None
        assert (lease.id, lease.attempt) == (first.id, 1)
        words.add(lease.word)
        clock.pass_by(minutes=5)
    assert len(words) == 20
    other = store.claim_job(lab, "two")  # and another, to whom its lease has ended, begins it anew
    assert other is not None
    assert (other.id, other.attempt) == (first.id, 2)
    assert store.job(second.id).place == 1


def test_a_job_that_fells_its_worker_ends(store: Store, lab: User, ada: User) -> None:
    job = queued(store, ada, "1")
    for _ in range(60):
        if store.claim_job(lab, "one") is None:
            break
    ended = store.job(job.id)
    assert (ended.state, ended.blame) == ("failed", "infrastructure")


def test_failures_of_the_machines_are_tried_again_and_free(store: Store, lab: User, ada: User, clock: Clock) -> None:
    announced(store, lab, quota=1)
    job = queued(store, ada, "1")
    for attempt in (1, 2, 3):
        assert store.job(job.id).state == "queued"
        word = claim(store, lab, f"worker {attempt}")
        store.fail_job(job.id, lab, word, "infrastructure", "the disk is full")
    failed = store.job(job.id)
    assert (failed.state, failed.finished) == ("failed", clock.now)
    assert "failed 3 times" in failed.told(clock.now)
    assert "does not count" in failed.told(clock.now)
    assert queued(store, ada, "1", number=2).place == 1  # the same package, on the same day, with a quota of one


def test_a_lease_that_ends_three_times_is_a_failure_of_the_machines(
    store: Store, lab: User, ada: User, clock: Clock
) -> None:
    job = queued(store, ada, "1")
    for attempt in range(3):
        claim(store, lab, f"worker {attempt}")
        clock.pass_by(minutes=10)
    assert store.claim_job(lab, "fourth") is None
    assert (store.job(job.id).state, store.job(job.id).blame) == ("failed", "infrastructure")


def test_failures_of_the_model_count_and_are_told(store: Store, lab: User, ada: User, clock: Clock) -> None:
    announced(store, lab, quota=1)
    job = queued(store, ada, "1")
    word = claim(store, lab)
    sentence = "your model returned NaN on 3 clips."
    for _ in range(2):  # said again, after a lost answer
        failed = store.fail_job(job.id, lab, word, "model", sentence, "log\x1b[31m of the rehearsal")
    assert failed.told(clock.now) == f"Failed: {sentence}"
    assert failed.log == "log\ufffd[31m of the rehearsal"
    with pytest.raises(Conflict, match="allows 1 a day"):
        queued(store, ada, "2")
    clock.pass_by(days=1)
    assert queued(store, ada, "2").place == 1


def test_the_quota_is_of_the_team_and_what_never_ran_is_free(store: Store, lab: User, clock: Clock) -> None:
    announced(store, lab, quota=2, entries=1, period_days=30)
    eve, joe = (store.create_user(name, "team x", join=True) for name in ("eve", "joe"))
    own = store.create_user("team x")  # a user of that name is not that team
    withdrawn = queued(store, eve, "1", "net")
    assert store.withdraw_job(withdrawn.id, joe).state == "withdrawn"
    queued(store, eve, "2", "net")
    with pytest.raises(Conflict, match="allows each team 1 new systems"):
        queued(store, joe, "3", "another")
    queued(store, joe, "3", "net")
    with pytest.raises(Conflict, match="today"):
        queued(store, eve, "4", "net")
    with pytest.raises(Conflict, match="today"):
        store.check_quota(eve, "mine")
    store.check_quota(own, "mine")
    clock.pass_by(days=31)
    queued(store, eve, "5", "another")


def test_the_same_package_is_the_same_job(store: Store, lab: User, ada: User) -> None:
    job = queued(store, ada, "1")
    assert queued(store, ada, "1").id == job.id
    assert len(store.jobs(ada)) == 1
    assert queued(store, store.create_user("zoe"), "1").id != job.id


def test_a_withdrawn_job_is_gone_for_its_worker(store: Store, lab: User, ada: User, clock: Clock) -> None:
    job = queued(store, ada, "1")
    word = claim(store, lab)
    with pytest.raises(NotFound):
        store.withdraw_job(job.id, store.create_user("zoe"))
    assert store.withdraw_job(job.id, ada).told(clock.now) == "Withdrawn: taken back by ada."
    assert store.withdraw_job(job.id, ada).state == "withdrawn"
    for call in (
        lambda: store.report_progress(job.id, lab, word, "listening", 3),
        lambda: store.release_job(job.id, lab, facts(), figures(job.entry)),
    ):
        with pytest.raises(Refusal) as refusal:
            call()
        assert refusal.value.status == 410
    assert store.boards() == []


def release(store: Store, lab: User, job: Job, value: float = 0.4) -> None:
    store.release_job(job.id, lab, facts(), figures(job.entry, value=value))


@pytest.mark.parametrize("state", ["queued", "running", "held"])
def test_a_release_is_there_once_whole_and_the_first_one_stands(
    store: Store, lab: User, ada: User, clock: Clock, state: str
) -> None:
    job = queued(store, ada, "1")
    if state != "queued":
        word = claim(store, lab)
    if state == "held":
        for _ in range(2):
            held = store.hold_job(job.id, lab, word, "The figures leave at 12:15.")
        assert held.told(clock.now) == "Measured. The figures leave at 12:15."
        assert replace(held, message="Measured. At 12:15.").told(clock.now) == "Measured. At 12:15."
        with pytest.raises(Conflict):
            store.report_progress(job.id, lab, word, "listening", 3)
    first = store.release_job(job.id, lab, facts(), figures(job.entry))
    assert store.release_job(job.id, lab, facts(), figures(job.entry)) == first
    with pytest.raises(Conflict, match="the first ones stand"):
        release(store, lab, job, 0.9)
    done = store.job(job.id)
    assert (done.state, done.release, done.submission) == ("released", first.id, first.submission)
    sent = store.submission(first.submission)
    assert sent is not None
    assert (sent.state, sent.provenance, sent.owner, sent.decided_by) == ("accepted", "blind", "ada", "lab")
    assert len(store.submissions()) == len(store.releases()) == 1
    assert len(store.live_scores("mine")) == 6
    assert store.release(first.id) == first
    assert store.claim_job(lab, "two") is None
    with pytest.raises(Conflict, match=f"withdraw the submission {first.submission}"):
        store.withdraw_job(job.id, ada)


def test_a_release_is_of_the_entry_and_of_announced_sets_alone(store: Store, lab: User, ada: User) -> None:
    job = queued(store, ada, "1")
    for wrong in (figures("other"), figures(job.entry, subsets=("field", "class 3")), figures(job.entry, "yours")):
        with pytest.raises(Refused):
            store.release_job(job.id, lab, facts(), wrong)
    assert store.submissions() == []
    assert store.job(job.id).state == "queued"


def test_the_owners_take_a_release_back_or_keep_it_from_leaving(
    store: Store, lab: User, ada: User, clock: Clock
) -> None:
    out, kept = queued(store, ada, "1", "out"), queued(store, ada, "2", "kept")
    release(store, lab, out)
    store.hold_job(kept.id, lab, claim(store, lab), "")
    for job in (out, kept):
        for _ in range(2):
            done = store.withdraw_release(job.id, lab, "the owners object.")
        assert done.told(clock.now) == "Withdrawn: the owners object."
    assert len(store.live_scores("mine")) == 0
    (entry,) = store.releases()
    assert (entry.reason, entry.withdrawn) == ("the owners object.", clock.now)
    with pytest.raises(Refusal):
        release(store, lab, kept)


def test_a_team_takes_its_released_figures_back(store: Store, lab: User, ada: User, clock: Clock) -> None:
    job = queued(store, ada, "1")
    sent = facts(body={"rows": [{"value": 0.4}], "message": "one figure"})
    made = store.release_job(job.id, lab, sent, figures(job.entry))
    assert made.shown["body"]["rows"] == [{"value": 0.4}]
    store.withdraw(made.submission, ada, "a mistake")
    taken = store.job(job.id)
    assert taken.told(clock.now) == "Withdrawn: its figures were released, and taken off the board later."
    (entry,) = store.releases()
    assert (entry.withdrawn is not None, entry.reason) == (True, "a mistake")
    assert "body" not in entry.shown  # no figure of it is told any more
    assert entry.shown["hash"] == sent["hash"]
    assert store.release_numbers("mine") == {}


def test_an_entry_takes_nobodys_name(store: Store, lab: User, ada: User, grace: User) -> None:
    sent = store.submit(Document.of(Scores((row(system="taken"),)), cards=[SystemCard("taken")]), ada)
    store.decide(sent.id, grace, accept=True)
    zoe = store.create_user("zoe")
    for name in ("taken", "Taken"):
        with pytest.raises(NotAllowed):
            queued(store, zoe, "1", name)
    queued(store, zoe, "2", "reserved")
    with pytest.raises(NotAllowed):  # while it is measured the name is kept
        store.submit(Document.of(Scores((row(system="reserved"),)), cards=[SystemCard("reserved")]), ada)
    # One's own rows of public subsets stand beside the host's.
    own = queued(store, ada, "3", "taken")
    release(store, lab, own)
    live = store.live_scores("mine")
    assert sorted(set(zip(live["subset"], live["provenance"], strict=True))) == [
        ("birds", "self-reported"), ("field", "blind"), ("river", "blind"),
    ]  # fmt: skip


def test_announced_sets_are_blind_from_then_on(store: Store, clock: Clock, ada: User, grace: User) -> None:
    """Self-reported rows of them are refused, and those that were there before no longer count."""
    claimed = Document.of(Scores((row(0.99, subset="field"), row(0.5))), cards=[SystemCard("model")])
    early = store.submit(claimed, ada)
    late = store.submit(Document.of(Scores((row(0.9, subset="river"),)), cards=[SystemCard("model")]), ada)
    store.decide(early.id, grace, accept=True)
    snapshots = Snapshots(store, check_every=0)
    assert snapshots.current("mine").panel("P@1").measured().tolist() == [[0.5, 0.99]]
    lab = store.create_user("lab", role="worker")
    announced(store, lab)
    assert store.blind_subsets("mine") == {"field", "river"}
    assert snapshots.current("mine").panel("P@1").measured().tolist() == [[0.5]]
    with pytest.raises(Refused, match="field is blind"):
        store.submit(Document.of(Scores((row(0.98, subset="field", system="new"),))), ada)
    with pytest.raises(Conflict, match="self-reported scores of river"):
        store.decide(late.id, grace, accept=True)
    # Left out of the next announcement, a set is not offered, and stays blind.
    assert [each.subset for each in announced(store, lab, sets=SETS[:1]).offered] == ["field"]
    assert store.blind_subsets("mine") == {"field", "river"}


def test_who_may_announce_what(store: Store, lab: User, ada: User) -> None:
    other = store.create_user("other", role="worker")
    with pytest.raises(NotAllowed, match="Only a worker"):
        announced(store, ada)
    with pytest.raises(Conflict, match="another worker account"):
        announced(store, other)
    with pytest.raises(Conflict, match="BC is a public subset"):
        announced(store, other, "vocsim", (BlindSet("BC", "", 10, 2),))
    with pytest.raises(Conflict, match="Another policy"):
        announced(store, other, "third", digest=store.blind_boards()[0].policy, quota=9)
    announced(store, other, "third")
    # Each sees the jobs of its own boards alone.
    job = queued(store, ada, "1")
    assert store.claim_job(other, "one") is None
    word = claim(store, lab)
    with pytest.raises(NotFound):
        store.report_progress(job.id, other, word, "listening", 1)
    with pytest.raises(NotFound):
        store.release_job(job.id, other, facts(), figures(job.entry))
    with pytest.raises(NotAllowed):
        store.claim_job(ada, "one")
    with pytest.raises(NotAllowed, match="does not take part"):
        queued(store, other, "2")
    with pytest.raises(NotFound, match="there are some on mine, third"):
        queued(store, ada, "3", board="elsewhere")


def test_one_name_stands_for_one_set_of_recordings(store: Store, lab: User, ada: User, grace: User) -> None:
    paper = store.create_user("paper", role="worker")
    with pytest.raises(Conflict, match=r"HU4 of vocsim has 1,001 clips as published.*announced has 688.*another name"):
        announced(store, paper, "vocsim", (BlindSet("HU4", "", 688, 25),))
    made = announced(store, paper, "vocsim", (BlindSet("HU4", "", 1001, 80), BlindSet("HU4b", "", 688, 25)))
    assert [each.subset for each in made.offered] == ["HU4", "HU4b"]
    # Before anything is measured a set may change; afterwards it is another one.
    announced(store, lab, sets=[BlindSet("field", "", 700, 30), SETS[1]])
    announced(store, lab)
    release(store, lab, queued(store, ada, "1"))
    announced(store, lab)
    for clips, why in (
        (700, "had 600 clips when figures of it were released"),
        (500, "figures that rest on 600 clips"),
    ):
        with pytest.raises(Conflict, match=why):
            announced(store, lab, sets=[BlindSet("field", "", clips, 30), SETS[1]])
    assert [each.clips for each in store.blind_boards()[0].sets] == [600, 900]


def test_names_that_read_alike_are_not_announced(store: Store) -> None:
    lab = store.create_user("lab2", role="worker")
    with pytest.raises(Conflict, match="BC is a public subset"):
        announced(store, lab, "vocsim", (BlindSet("b-c", "", 10, 2),))
    with pytest.raises(Conflict, match="read alike"):
        announced(store, lab, "fourth", (BlindSet("field", "", 10, 2), BlindSet("Field ", "", 10, 2)))


def test_figures_of_announced_sets_are_blind_by_a_release_alone(
    store: Store, lab: User, ada: User, grace: User
) -> None:
    forged = store.submit(figures("forged"), grace)
    with pytest.raises(Conflict, match=r"field, river, which a host measures.*audit entry alone"):
        store.decide(forged.id, grace, accept=True)
    with pytest.raises(Conflict, match="audit entry alone"):
        store.decide(forged.id, grace, accept=True, provenance="blind")
    assert len(store.live_scores("mine")) == 0
    release(store, lab, queued(store, ada, "1"))
    assert set(store.live_scores("mine")["provenance"]) == {"blind"}
    assert store.decide(forged.id, grace, accept=True, provenance="reproduced").provenance == "reproduced"


def test_a_set_that_is_no_longer_measured_leaves_the_ranking(store: Store, lab: User, ada: User) -> None:
    """Who was measured on all that can be measured has a rank, and readers see it without a release between."""
    snapshots = Snapshots(store, check_every=0)
    release(store, lab, queued(store, ada, "1", "first"))
    assert snapshots.current("mine").group("P@1").subsets == ("field", "river")
    announced(store, lab, sets=SETS[:1])
    assert snapshots.current("mine").group("P@1").subsets == ("field",)
    later = queued(store, ada, "2", "later")
    store.release_job(later.id, lab, facts(), figures("later", subsets=("field",)))
    assert snapshots.current("mine").field("P@1").ranked == 2


def test_a_participant_is_never_left_in_silence(store: Store, lab: User, ada: User, clock: Clock) -> None:
    jobs = [queued(store, ada, f"{number}") for number in range(3)]
    assert store.job(jobs[2].id).told(clock.now) == "Queued as third."
    word = claim(store, lab)
    store.report_progress(jobs[0].id, lab, word, "listening", 4)
    assert store.job(jobs[0].id).told(clock.now) == "Running: listening to the blind recordings, 40 %."
    clock.pass_by(minutes=65)
    later = clock.now + timedelta(days=1)
    assert "No worker has been seen since 12:00 UTC" in store.job(jobs[1].id).told(clock.now)
    assert "since 16 Nov 2026, 12:00 UTC" in store.job(jobs[1].id).told(later)
    assert store.claim_job(lab, "one") is not None
    assert store.job(jobs[1].id).told(clock.now) == "Queued as first."


def test_numbers_in_words() -> None:
    assert [ordinal(number) for number in (1, 3, 10, 11, 12, 22, 103, 111)] == [
        "first", "third", "tenth", "11th", "12th", "22nd", "103rd", "111th",
    ]  # fmt: skip
