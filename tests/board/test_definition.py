"""A board's definition: what it says, what it refuses, how it is read and written, and who is ranked."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from sqlalchemy import select, update
from tests.board.documents import document, row

from earmark.board.boards.snapshot import Snapshot
from earmark.board.boards.snapshots import Snapshots
from earmark.board.boards.table import table
from earmark.board.boards.view import BoardView
from earmark.board.records import User
from earmark.board.refusals import Conflict, NotAllowed, NotFound, Refusal
from earmark.board.storage import Store
from earmark.board.storage.tables import board_definitions
from earmark.definitions import BoardSubset, Definition, derived_definition, paper_boards, read_definition, to_yaml
from earmark.definitions.derived import measured_in
from earmark.errors import UsageError
from earmark.scores import Scores
from earmark.submissions import Document, Refused

OWN = """
name: reef
title: Sounds of the reef
metrics:
  - P@1
  - {name: misses, words: "share of calls that nobody found", higher_is_better: false, range: [0, 1], percent: true}
subsets:
  - {name: crabs, clips: 120, classes: 4}
  - shrimp
groups:
  - {key: all, title: Mean of the reef, short: Reef, subsets: [crabs, shrimp]}
rank_by: [all]
unranked: ["family:baseline"]
opens: 2027-01-01
closes: 2027-03-31
"""


def test_a_definition_is_read_and_written() -> None:
    own = read_definition(OWN)
    assert own.facts("misses").higher_is_better is False
    assert own.facts("P@1").percent
    assert own.subset("crabs").size == "120 clips, 4 classes"
    assert own.opens == date(2027, 1, 1)
    for board in (own, *paper_boards().values()):
        assert read_definition(to_yaml(board)) == board


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("name: reef\nsubets: [a]", 'has the key "subets".*Did you mean "subsets"'),
        ("name: reef\nmetrics: [{name: P@1, higher_is_better: false}]", "Of P@1, higher is better"),
        ("name: reef\nsubsets: [a]\ngroups: [{key: g, subsets: [b]}]", 'group g names the subset "b"'),
        ("name: reef\nsubsets: [a, a]", '"a" is there twice'),
        ("name: reef\nsubsets: [mean]", "spelled like a mean"),
        ("name: reef\nrank_by: [none]", 'rank_by names the group "none"'),
        ("name: Reef", "small letters"),
        ("name: reef\nopens: 2027-02-01\ncloses: 2027-01-01", "before it opens"),
        ("name: reef\nopens: soon", "a day such as 2027-03-31"),
        ("name: reef\nstate: shut", "one of open, hidden, archived"),
        ("name: reef\nprivate: 1", "true or false"),
        ("name: reef\npaper: {url: 'javascript:alert(1)'}", "begins with https://"),
        ('name: reef\ntitle: "a\\u202Eb"', r"title of the board reef has the character U\+202E, which turns"),
        ('name: reef\nmetrics: [{name: "m\\u2066"}]', r"U\+2066, which turns"),
        ('name: reef\nsubsets: ["a\\u2069"]', r"U\+2069, which turns"),
        ('name: reef\nreaders: ["zo\\u202Ae"]', r"A name in readers of the board reef has the character U\+202A"),
        ("name: [", "line 1 is not YAML"),
        ("title: x", 'lacks the key "name"'),
        ("- reef", "begins with `name:`"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(text: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        read_definition(text)


def test_a_definition_of_before_that_turns_text_around_is_still_read(store: Store, grace: User) -> None:
    store.define(Definition("reef", title="The_reef"), grace)
    with store.engine.begin() as connection:
        held = connection.execute(select(board_definitions.c.text)).scalar_one().replace("The_reef", "The\u202e reef")
        connection.execute(update(board_definitions).values(text=held))
    version = store.definition("reef")
    assert version is not None
    assert version.definition.title == "The reef"


def test_the_day_decides_whether_scores_are_taken() -> None:
    own = read_definition(OWN)
    assert "opens on 2027-01-01" in own.closed(date(2026, 12, 31))
    assert own.closed(date(2027, 1, 1)) == own.closed(date(2027, 3, 31)) == ""
    assert "closed on 2027-03-31" in own.closed(date(2027, 4, 1))


def _rows(system: str, value: float, *subsets: str) -> list[object]:
    return [row(value, suite="reef", system=system, subset=subset, metric="misses") for subset in subsets]


def test_the_hosts_direction_and_baselines_decide_the_ranks() -> None:
    own = read_definition(OWN)
    rows = [*_rows("good", 0.1, "crabs", "shrimp"), *_rows("bad", 0.4, "crabs", "shrimp"), *_rows("half", 0.0, "crabs")]
    rows += _rows("good", 0.1, "whales")
    whole = Snapshot.of_scores("reef", Scores(tuple(rows)), definition=own)  # type: ignore[arg-type]
    names = [whole.systems[whole.lines[line].system].card.name for line in whole.panel("misses").lines]
    field = whole.field("misses")
    ranks = dict(zip((names[row] for row in field.rows), field.ranks.rank.tolist(), strict=True))
    assert ranks == {"good": 1, "bad": 2, "half": 0}
    assert not whole.field("misses", "subset:whales").ranked
    assert "whales is not part" in whole.not_ranked("misses", whole.group("misses", "subset:whales"), whole.lines[0])


def test_the_columns_of_the_definition_stand_side_by_side() -> None:
    own = read_definition(OWN + "columns: [{metric: P@1, group: all}, {metric: misses, group: all}]\n")
    rows = [
        row(value, suite="reef", system=system, subset=subset, metric=metric)
        for system, value in (("a", 0.2), ("b", 0.4)) for subset in ("crabs", "shrimp") for metric in ("P@1", "misses")
    ]  # fmt: skip
    whole = Snapshot.of_scores("reef", Scores(tuple(rows)), definition=own)
    page = table(whole, BoardView.parse(whole, []))
    assert [column.key for column in page.columns] == ["mean:all", "metric:misses"]
    assert [each.cells[1].value for each in page.rows] == [0.4, 0.2]
    least_first = table(whole, BoardView.parse(whole, [("sort", "metric:misses")]))
    assert [each.system.slug for each in least_first.rows] == ["a", "b"]


def test_eight_systems_on_a_new_subset_take_nobodys_rank() -> None:
    """Finding: they left the honest ones without a rank on boards that no paper defines."""
    honest = [row(0.5 + 0.1 * n, system=f"honest {n}", subset=subset) for n in range(3) for subset in ("a", "b")]
    before = Snapshot.of_scores("mine", Scores(tuple(honest)))
    flood = [row(0.9, system=f"flood {n}", subset="new") for n in range(8)]
    after = Snapshot.of_scores("mine", Scores((*honest, *flood)), definition=before.definition)
    assert after.group("P@1").subsets == ("a", "b")
    assert after.field("P@1").ranked == 3
    assert not after.field("P@1", "subset:new").ranked
    assert isinstance(derived_definition("mine", measured_in(honest)), Definition)


# --- kept in the store -----------------------------------------------------------------------------------------------


@pytest.fixture
def ada(store: Store) -> User:
    return store.create_user("ada")


@pytest.fixture
def grace(store: Store) -> User:
    return store.create_user("grace", role="moderator")


def accepted(store: Store, ada: User, grace: User, values: dict[str, float], system: str, **cells: Any) -> None:
    sent = store.submit(document(values, system=system, **cells), ada)
    store.decide(sent.id, grace, accept=True)


def held(store: Store, board: str = "mine") -> Definition:
    version = store.definition(board)
    assert version is not None
    return version.definition


def test_the_first_submission_of_a_board_defines_it_and_no_later_one_does(store: Store, ada: User, grace: User) -> None:
    assert store.definition("mine") is None
    accepted(store, ada, grace, {"a": 0.5, "b": 0.6}, "one")
    first = held(store)
    assert [subset.name for subset in first.subsets] == ["a", "b"]
    for number in range(8):
        accepted(store, ada, grace, {"new": 0.9}, f"flood {number}")
    assert held(store) == first
    snapshot = Snapshots(store).current("mine")
    assert snapshot.definition == first
    assert (snapshot.group("P@1").subsets, snapshot.field("P@1").ranked) == (("a", "b"), 1)
    added = store.add_to_definition("mine", grace, subsets=("new",))
    assert (added.version, added.note) == (2, "changed subsets")
    later = Snapshots(store).current("mine")
    assert later.field("P@1", "subset:new").ranked == 8
    assert later.group("P@1").subsets == ("a", "b")
    assert [event.action for event in store.events(1, None)] == ["defined_board"]


def test_a_board_of_before_gets_its_definition_of_what_is_there(store: Store, ada: User, grace: User) -> None:
    from sqlalchemy import delete

    from earmark.board.storage.tables import board_definitions

    for name in ("one", "two"):
        accepted(store, ada, grace, {"a": 0.5, "b": 0.6}, name)
    with store.engine.begin() as connection:
        connection.execute(delete(board_definitions))
    for name in ("x", "y", "z"):  # an acceptance keeps what held before it
        accepted(store, ada, grace, {"new": 0.9}, name)
    assert held(store).groups[0].subsets == ("a", "b")


def ranks(snapshot: Snapshot) -> dict[tuple[str, str], list[str]]:
    """Of each metric and defined group, the names of those that have a rank, best first."""
    found = {}
    for metric in snapshot.definition.metrics:
        if metric.name not in snapshot.panels:
            continue
        for group in snapshot.groups(metric.name):
            field = snapshot.field(metric.name, group.key)
            lines = field.panel.lines[field.rows]
            names = [snapshot.systems[snapshot.lines[line].system].card.name for line in lines.tolist()]
            ranked = sorted((rank, name) for rank, name in zip(field.ranks.rank.tolist(), names, strict=True) if rank)
            found[metric.name, group.key] = [name for _, name in ranked]
    return found


@pytest.mark.parametrize("seed", range(3))
def test_whatever_is_accepted_only_those_with_all_subsets_join_a_ranking(tmp_path: Any, seed: int) -> None:
    from earmark.board.storage import open_database

    store = Store(open_database(str(tmp_path / "board.sqlite3")))
    ada, grace = store.create_user("ada"), store.create_user("grace", role="moderator")
    rng = np.random.default_rng(seed)
    snapshots = Snapshots(store, check_every=0)
    accepted(store, ada, grace, {"a": 0.5, "b": 0.6, "c": 0.3}, "first")
    before = ranks(snapshots.current("mine"))
    for number in range(12):
        subsets = [name for name in ("a", "b", "c", "d", "e") if rng.random() < 0.6] or ["e"]
        metrics = [name for name in ("P@1", "GSR", "NMI") if rng.random() < 0.6] or ["NMI"]
        rows = [
            row(float(rng.uniform()), subset=subset, system=f"s{number}", metric=metric)
            for subset in subsets for metric in metrics
        ]  # fmt: skip
        sent = store.submit(Document.of(Scores(tuple(rows))), ada)
        store.decide(sent.id, grace, accept=True)
        snapshot = snapshots.current("mine")
        after = ranks(snapshot)
        for key, names in before.items():
            assert [name for name in after[key] if name in names] == names
            group = snapshot.group(*key)
            whole = set(group.subsets) <= set(subsets) and key[0] in metrics
            assert (f"s{number}" in after[key]) is (whole and not snapshot.outside(key[0], group))
        before = after
    store.close()


def test_versions_are_kept_and_a_change_of_another_is_not_overwritten(store: Store, ada: User, grace: User) -> None:
    own = read_definition(OWN)
    with pytest.raises(NotAllowed, match="Only a moderator"):
        store.define(own, ada)
    assert store.define(own, grace, expected=0).version == 1
    assert store.boards() == ["reef"]
    second = replace(own, title="The reef")
    assert store.define(second, grace, expected=1).note == "changed title"
    with pytest.raises(Refusal, match="version 2 holds, not 1"):
        store.define(own, grace, expected=1)
    assert [(each.version, each.user) for each in store.definitions("reef")] == [(2, "grace"), (1, "grace")]
    assert store.define(second, grace).version == 2  # nothing changed
    snapshots = Snapshots(store, check_every=0)
    assert snapshots.current("reef").definition.title == "The reef"
    store.define(replace(second, title="Third"), grace)
    assert snapshots.current("reef").definition.title == "Third"


def test_a_paper_board_may_be_redefined(store: Store, grace: User) -> None:
    assert store.definition("vocsim") == store.definition("vocsim")
    version = store.definition("vocsim")
    assert version is not None
    assert version.version == 0
    own = replace(version.definition, subsets=(*version.definition.subsets, BoardSubset("XX", blind=True)))
    store.define(own, grace)
    assert "XX" in store.blind_subsets("vocsim")


def test_days_archives_and_private_boards(store: Store, ada: User, grace: User) -> None:
    today, day = datetime.now(UTC).date(), timedelta(days=1)
    accepted(store, ada, grace, {"a": 0.5}, "one")
    of = held(store)
    for changed, sentence in (
        (replace(of, opens=today + day), "opens on"),
        (replace(of, closes=today - day), "closed on"),
        (replace(of, state="archived"), "is archived"),
    ):
        store.define(changed, grace)
        with pytest.raises(Conflict, match=sentence):
            store.submit(document({"a": 0.5}, system="late"), ada)
    store.define(replace(of, private=True, readers=("team:analysts",)), grace)
    with pytest.raises(NotAllowed, match="is private"):
        store.submit(document({"a": 0.5}, system="late"), ada)
    member = store.create_user("bob", "analysts")
    assert store.submit(document({"a": 0.5}, system="late"), member).state == "pending"
    assert [store.may_read("mine", user) for user in (None, ada, member, grace)] == [False, False, True, True]
    assert Snapshots(store).listed() == ()


def test_blind_subsets_of_a_definition_are_measured_by_the_host_alone(store: Store, ada: User, grace: User) -> None:
    accepted(store, ada, grace, {"a": 0.5, "b": 0.9}, "one")
    of = held(store)
    store.define(replace(of, subsets=(BoardSubset("a", clips=50), BoardSubset("b", blind=True))), grace)
    with pytest.raises(Refused, match="only the host can measure"):
        store.submit(document({"b": 0.9}, system="two"), ada)
    with pytest.raises(Refused, match="a has 50 clips"):
        store.submit(document({"a": 0.9}, system="two"), ada)
    assert store.live_scores("mine")["subset"] == ["a"]


def test_own_metrics_are_taken_by_the_board_that_defines_them(store: Store, ada: User, grace: User) -> None:
    rows = [row(0.3, suite="reef", subset=name, metric="misses") for name in ("crabs", "shrimp")]
    with pytest.raises(Refused, match="misses is no metric"):
        store.submit(Document.of(Scores(tuple(rows))), ada)
    store.define(replace(read_definition(OWN), opens=None, closes=None), grace)
    assert store.submit(Document.of(Scores(tuple(rows))), ada).state == "pending"
    with pytest.raises(Refused, match="outside"):
        store.submit(Document.of(Scores((replace(rows[0], value=1.5),))), ada)


def test_a_renamed_board_keeps_everything_and_its_old_name_leads_to_it(store: Store, ada: User, grace: User) -> None:
    accepted(store, ada, grace, {"a": 0.5, "b": 0.6}, "one")
    snapshots = Snapshots(store, check_every=0)
    before = ranks(snapshots.current("mine"))
    store.rename_board("mine", "ours", grace)
    assert (store.boards(), snapshots.boards(), snapshots.name_now("mine")) == (["ours"], ("ours",), "ours")
    assert ranks(snapshots.current("ours")) == before
    accepted(store, ada, grace, {"a": 0.7, "b": 0.6}, "two")  # sent to the old name
    assert snapshots.current("ours").field("P@1").ranked == 2
    store.rename_board("ours", "theirs", grace)
    assert store.former_names() == {"mine": "theirs", "ours": "theirs"}
    store.rename_board("theirs", "mine", grace)
    assert store.former_names() == {"ours": "mine", "theirs": "mine"}
    accepted(store, ada, grace, {"a": 0.7}, "three")
    with pytest.raises(NotFound, match="to rename"):
        store.rename_board("none", "other", grace)
    store.define(read_definition(OWN), grace)
    with pytest.raises(Conflict, match="another board"):
        store.rename_board("mine", "reef", grace)
