"""Cards that are corrected without scores, provenance that changes later, and drafts."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import update
from tests.board.documents import document, row

from earmark.board.records import User
from earmark.board.refusals import Conflict, NotAllowed, NotFound, Refusal
from earmark.board.storage import Store
from earmark.board.storage.accounts import now
from earmark.board.storage.drafts import MOST_DRAFTS
from earmark.board.storage.tables import drafts
from earmark.errors import InputError, UsageError
from earmark.scores import Scores
from earmark.submissions import Document, Refused, SystemCard


def accepted(store: Store, sent: Document, user: User, moderator: User) -> str:
    id = store.submit(sent, user).id
    store.decide(id, moderator, accept=True)
    return id


def card_of(store: Store) -> SystemCard:
    (system,) = store.systems("mine")
    return system.card


def test_what_nothing_rests_on_is_corrected_at_once(store: Store, ada: User, grace: User) -> None:
    accepted(store, document(title="Old", licence="MIT"), ada, grace)
    before = store.generation()
    (change,) = store.correct_card("mine", "model", ada, {"title": "New", "authors": ["A. Author"]}, "a typo")
    assert (change.state, change.before["title"]) == ("applied", "Old")
    assert (card_of(store).title, card_of(store).authors, card_of(store).licence) == ("New", ("A. Author",), "MIT")
    assert store.generation() > before  # readers see it
    assert (store.events(1)[0].action, store.events(1)[0].detail) == (
        "corrected_card",
        "mine: model: title and authors: a typo",
    )
    (line,) = store.changes_of("mine", "model")
    assert line.what == "title: Old → New; authors: not stated → A. Author"
    store.correct_card("mine", "model", ada, {"title": ""})
    assert card_of(store).title == ""
    with pytest.raises(Conflict, match="says all of that already"):
        store.correct_card("mine", "model", ada, {"title": None})


def test_what_ranks_and_filters_rest_on_waits_for_a_moderator(store: Store, ada: User, grace: User) -> None:
    accepted(store, document(training_free=False), ada, grace)
    done, waiting = store.correct_card("mine", "model", ada, {"training_free": True, "year": 2025})
    assert (done.state, waiting.state) == ("applied", "waiting")
    assert (card_of(store).training_free, card_of(store).year) == (False, 2025)
    with pytest.raises(NotAllowed):
        store.decide_card(waiting.id, ada, True)
    with pytest.raises(InputError, match="reason"):
        store.decide_card(waiting.id, grace, False)
    store.decide_card(waiting.id, grace, True)
    assert card_of(store).training_free is True
    with pytest.raises(Conflict, match="applied already"):
        store.decide_card(waiting.id, grace, False, "late")
    (other,) = store.correct_card("mine", "model", ada, {"kind": "codec"})
    assert store.decide_card(other.id, grace, False, "it is none").state == "rejected"
    assert card_of(store).kind == "representation"
    (own,) = store.correct_card("mine", "model", grace, {"parameters_m": 10.0})  # a moderator's is applied at once
    assert (own.state, card_of(store).parameters_m) == ("applied", 10.0)
    assert [event.action for event in store.events(5)] == [
        "corrected_card", "rejected_card", "asked_card", "accepted_card", "asked_card",
    ]  # fmt: skip
    with pytest.raises(NotFound):
        store.decide_card(999, grace, True)


def test_a_title_like_anothers_name_waits(store: Store, ada: User, grace: User) -> None:
    accepted(store, document(system="EWMTF-D100"), store.create_user("bob"), grace)
    accepted(store, document(), ada, grace)
    (change,) = store.correct_card("mine", "model", ada, {"title": "EWMTF Dl00"})
    assert change.state == "waiting"


def test_corrections_that_are_refused(store: Store, ada: User, grace: User) -> None:
    accepted(store, document(), ada, grace)
    with pytest.raises(NotAllowed, match="belongs to ada"):
        store.correct_card("mine", "model", store.create_user("bob"), {"title": "mine now"})
    with pytest.raises(NotFound):
        store.correct_card("mine", "none", ada, {"title": "x"})
    with pytest.raises(UsageError, match='"name" of a card cannot be corrected'):
        store.correct_card("mine", "model", ada, {"name": "better"})
    with pytest.raises(Refused, match="url"):
        store.correct_card("mine", "model", ada, {"url": "javascript:alert(1)"})
    with pytest.raises(InputError):
        store.correct_card("mine", "model", ada, {"year": "soon"})
    assert card_of(store) == SystemCard("model")


def test_a_later_submission_says_its_own(store: Store, ada: User, grace: User) -> None:
    accepted(store, document(title="first", licence="MIT"), ada, grace)
    store.correct_card("mine", "model", ada, {"title": "corrected", "licence": ""}, "")
    (waiting,) = store.card_changes(state="waiting")
    store.decide_card(waiting.id, grace, True)
    accepted(store, document({"birds": 0.7}), ada, grace)  # says nothing of the title
    assert (card_of(store).title, card_of(store).licence) == ("corrected", "")
    accepted(store, document({"birds": 0.8}, title="third"), ada, grace)
    assert card_of(store).title == "third"


def test_scores_are_reproduced_months_later(store: Store, ada: User, grace: User) -> None:
    id = accepted(store, document(), ada, grace)
    assert set(store.live_scores("mine")["provenance"]) == {"self-reported"}
    with pytest.raises(NotAllowed):
        store.mark(id, ada, "reproduced")
    before = store.generation()
    assert store.mark(id, grace, "reproduced", "ran it on our machines").provenance == "reproduced"
    assert set(store.live_scores("mine")["provenance"]) == {"reproduced"}
    assert store.generation() > before
    (line,) = store.changes_of("mine", "model")
    assert line.what == f"provenance of {id}: self-reported to reproduced: ran it on our machines"
    assert (line.user, store.events(1)[0].action) == ("grace", "marked")
    with pytest.raises(Conflict, match="reproduced already"):
        store.mark(id, grace, "reproduced")
    with pytest.raises(UsageError, match="A provenance is"):
        store.mark(id, grace, "true")  # type: ignore[arg-type]
    pending = store.submit(document({"birds": 0.9}), ada)
    with pytest.raises(Conflict, match="only what is accepted"):
        store.mark(pending.id, grace, "reproduced")


def test_what_only_a_host_measures_cannot_become_self_reported(store: Store, grace: User) -> None:
    blind = replace(row(0.5), suite="vocsim", subset="HU3")
    sent = Document.of(Scores((blind,)), cards=[SystemCard("model")], provenance="reproduced")
    id = accepted(store, sent, grace, grace)
    with pytest.raises(Conflict, match="only the host can measure"):
        store.mark(id, grace, "self-reported")


# --- deciding about several ------------------------------------------------------------------------------------------


def test_several_are_decided_each_by_itself(store: Store, ada: User, grace: User) -> None:
    ids = [store.submit(document({"birds": 0.1 * number}, system=f"m{number}"), ada).id for number in range(4)]
    store.withdraw(ids[1], ada)
    decisions = store.decide_each([*ids, ids[0], "nothing"], grace, True)
    assert [each.state for each in decisions] == ["accepted", None, "accepted", "accepted", None]
    assert "withdrawn already" in decisions[1].wrong
    assert "no submission" in decisions[4].wrong
    assert len(store.live_scores("mine")) == 3
    assert [each.state for each in store.decide_each(ids, ada, True)] == [None] * 4


# --- drafts ----------------------------------------------------------------------------------------------------------


def test_a_draft_is_its_authors_alone(store: Store, ada: User, grace: User) -> None:
    sent = document(title="Mine")
    draft = store.save_draft(sent, ada, ["a remark"])
    assert (draft.names, draft.rows, draft.notes[-1]) == (("model",), 1, "a remark")
    assert store.draft(draft.id, ada) == (draft, sent)
    assert store.submissions() == []
    with pytest.raises(NotFound):
        store.draft(draft.id, grace)
    with pytest.raises(NotFound):
        store.delete_draft(draft.id, grace)
    # The name is not taken by a draft.
    assert store.submit(document(), store.create_user("bob")).state == "pending"
    store.delete_draft(draft.id, ada)
    assert store.drafts(ada) == []
    assert [event.action for event in store.events(1)] == ["deleted_draft"]


def test_drafts_keep_the_rules_and_their_number(store: Store, ada: User) -> None:
    with pytest.raises(Refused):
        store.save_draft(document({"birds": 61.0}), ada)
    for number in range(MOST_DRAFTS):
        store.save_draft(document({"birds": number / 100}), ada)
    with pytest.raises(Refusal, match="send or delete one"):
        store.save_draft(document(), ada)


def test_drafts_expire(store: Store, ada: User) -> None:
    old = store.save_draft(document(), ada)
    with store.engine.begin() as connection:
        connection.execute(update(drafts).values(created=now() - timedelta(days=31)))
    assert store.drafts(ada) == []
    with pytest.raises(NotFound, match="expired"):
        store.draft(old.id, ada)
    store.save_draft(document({"birds": 0.7}), ada)  # sweeps
    assert "expired_drafts" in [event.action for event in store.events(3)]
    with store.engine.connect() as connection:
        assert len(connection.execute(drafts.select()).all()) == 1
