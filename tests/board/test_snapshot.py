"""A snapshot holds what the rows say, changes system by system to the same as a new one, and follows its store."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.board.documents import document
from tests.board.scored import cards, scores, snapshot

from earmark.board.boards.contents import NoSuchSystem
from earmark.board.boards.groups import groups_of
from earmark.board.boards.panels import STATUSES, columns_of
from earmark.board.boards.snapshot import NoSuchBoard, Snapshot
from earmark.board.boards.snapshots import Snapshots
from earmark.board.boards.subsets import summarise
from earmark.board.records import System, slug_of
from earmark.board.refusals import NotFound
from earmark.board.storage import Store
from earmark.definitions import Measured, derived_definition, paper_boards
from earmark.errors import UsageError
from earmark.scores import Row, Scores
from earmark.submissions import SystemCard


def _content(whole: Snapshot) -> dict[tuple[str, ...], tuple[Any, ...]]:
    """Every cell by its key, whatever the order of lines, subsets and systems."""
    found = {}
    for metric, panel in whole.panels.items():
        for row, number in enumerate(panel.lines.tolist()):
            line = whole.lines[number]
            for column, subset in enumerate(panel.subsets):
                if panel.status[row, column]:
                    name = whole.systems[line.system].card.name
                    numbers = (panel.value, panel.low, panel.high, panel.lift, panel.baseline)
                    found[metric, subset, name, *line[1:]] = (
                        *(None if np.isnan(part[row, column]) else float(part[row, column]) for part in numbers),
                        int(panel.n[row, column]), STATUSES[panel.status[row, column]],
                        panel.reasons.get((row, column), ""),
                    )  # fmt: skip
    return found


def test_every_row_is_in_it_exactly() -> None:
    table = scores()
    found = _content(snapshot())
    expected = {
        (row.metric, row.subset, row.system, row.distance, row.correction, row.protocol): (
            row.value, row.low, row.high, row.lift, row.baseline, -1 if row.n is None else row.n, row.status, row.reason
        )
        for row in table
    }  # fmt: skip
    assert found == expected


def test_changed_systems_give_what_a_new_snapshot_would() -> None:
    rng = np.random.default_rng(0)
    before, after = scores(8, seed=1), scores(8, seed=2, metrics=("P@1", "CS", "GSR"))
    current = Snapshot.of_scores("mine", before, cards(8))
    rows = {name: [row for row in before if row.system == name] for name in cards(8)}
    extra = Row(suite="mine", subset="a new one", system="model 3", distance="cosine", metric="P@1", value=0.5)
    for generation in range(1, 6):
        changed = [current.systems[place] for place in sorted(rng.choice(8, size=3, replace=False).tolist())]
        for system in changed:
            name = system.card.name
            choice = rng.integers(3)
            rows[name] = [] if choice == 0 else [row for row in after if row.system == name]
            if choice == 2 and name == "model 3":
                rows[name].append(extra)
        new = Scores(tuple(row for system in changed for row in rows[system.card.name]))
        places = {system.card.name: place for place, system in enumerate(changed)}
        current = current.updated(generation, changed, columns_of(new, places))
        everything = Scores(tuple(row for name in rows for row in rows[name]))
        fresh = Snapshot.of_scores("mine", everything, cards(8), definition=current.definition)
        assert _content(current) == _content(fresh)
        assert {system.card.name for system in current.systems} == set(rows)
        for metric in fresh.metrics:
            one, other = current.field(metric), fresh.field(metric)
            assert sorted(one.ranks.rank.tolist()) == sorted(other.ranks.rank.tolist())
            assert sorted(one.means.value.tolist()) == pytest.approx(sorted(other.means.value.tolist()))


def test_a_field_has_a_line_for_each_system_or_setting() -> None:
    whole = snapshot()
    field = whole.field("P@1")
    assert len(field.rows) == 6
    assert len(whole.field("P@1", setting="each").rows) == 12
    assert len(whole.field("P@1", setting="cosine").rows) == 6
    # Where less is better, the best is the least.
    lower = whole.field("CS")
    assert lower.means.value[lower.ranks.rank == 1] == lower.means.value[lower.ranks.rank > 0].min()


def test_what_failed_or_was_predicted_does_not_count() -> None:
    whole = snapshot()
    field = whole.field("P@1", setting="euclidean")
    have = {
        whole.systems[place].card.name: (int(h), int(r))
        for place, h, r in zip(field.systems.tolist(), field.means.have, field.ranks.rank, strict=True)
    }
    assert have["model 0"] == (4, 0)
    assert have["model 1"] == (4, 0)
    assert have["model 5"] == (4, 0)
    assert have["model 2"][0] == 5
    assert field.ranked == 3


def test_a_subset_that_one_author_adds_takes_nobodys_rank() -> None:
    def leads(**counts: int) -> tuple[str, ...]:
        measured = [Measured(n, name, "all", "P@1") for name, count in counts.items() for n in range(count)]
        return groups_of(derived_definition("mine", measured), counts, "P@1")[0].subsets

    assert leads(a=10, b=9, new=1, mean=10, **{"a~noise0.1": 10}) == ("a", "b")
    assert leads(a=2, b=1) == ("a",)
    assert leads(a=3, b=2) == ("a", "b")
    assert leads(a=1, b=1) == ("a", "b")
    vocsim = paper_boards()["vocsim"]
    public = dict.fromkeys("BC BS1 BS2 BS3 BS4 BS5 ES1 HP HS1 HS2 HU1 HU2 HW1 HW2 OC1".split(), 3)
    leading, *others = groups_of(vocsim, {**public, "extra": 3}, "P@1")
    assert (leading.key, len(leading.subsets)) == ("public", 15)
    assert [group.subsets for group in others if group.single] == [(name,) for name in (*public, "extra")]
    assert {group.key for group in others if group.narrow} == {
        "domain:birdsong", "domain:otter_calls", "domain:human_speech", "domain:environmental_sounds"
    }  # fmt: skip
    assert groups_of(vocsim, {"BC": 1}, "P@1")[0].key == "public"  # also while nobody has all of it


def test_names_of_files_and_addresses() -> None:
    assert slug_of("Whisper (large) v3/µ") == "whisper-large-v3"
    assert slug_of("???") == "system"
    twins = Snapshot.of_scores("mine", Scores((Row(system="a b", metric="P@1"), Row(system="a-b", metric="P@1"))))
    assert [system.slug for system in twins.systems] == ["a-b", "a-b-2"]
    with pytest.raises(NoSuchSystem, match='Did you mean "model-1"'):
        snapshot().system("modl-1")
    with pytest.raises(UsageError, match="no metric"):
        snapshot().panel("P@9")


def test_boards_with_little_on_them_are_boards() -> None:
    from earmark.board.boards.table import table
    from earmark.board.boards.view import BoardView

    assert Snapshot.of_scores("empty", Scores()).metrics == ()
    means = Snapshot.of_scores("mine", Scores((Row(system="a", subset="mean:speech", metric="P@1", value=0.5),)))
    assert means.metrics == ()
    failed = Row(system="a", subset="birds", metric="P@1", status="failed", reason="it broke")
    broken = Snapshot.of_scores("mine", Scores((failed,)))
    assert broken.metrics == ("P@1",)
    assert table(broken, BoardView.parse(broken, [])).rows == ()
    alone = Snapshot.of_scores("mine", Scores((Row(system="a", metric="kbps", value=6.0),)))
    page = table(alone, BoardView.parse(alone, []))
    assert [(row.rank, row.rank_low, row.cells[0].value) for row in page.rows] == [(1, 0, 6.0)]


class Counting:
    """A store that notes which systems' scores were read."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.read: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def live_scores(self, board: str, system_ids: Any = None) -> Any:
        self.read.append(system_ids)
        return self._store.live_scores(board, system_ids)


def test_snapshots_follow_the_store(store: Store) -> None:
    ada, grace = store.create_user("ada"), store.create_user("grace", role="moderator")
    counting = Counting(store)
    kept = Snapshots(counting, check_every=3600)  # type: ignore[arg-type]
    assert kept.boards() == ()
    with pytest.raises(NoSuchBoard):
        kept.current("mine")

    first = store.submit(document({"birds": 0.5, "cats": 0.6}, system="one"), ada)
    kept.refresh()
    assert kept.boards() == ()  # pending
    store.decide(first.id, grace, accept=True)
    second = store.submit(document({"birds": 0.7, "cats": 0.8}, system="two"), ada)
    store.decide(second.id, grace, accept=True)
    assert kept.boards() == ()  # it asked a moment ago
    kept.refresh()
    assert [system.card.name for system in kept.current("mine").systems] == ["one", "two"]
    before = kept.current("mine")

    later = store.submit(document({"birds": 0.9}, system="one"), ada)
    store.decide(later.id, grace, accept=True)
    kept.refresh()
    now = kept.current("mine")
    assert kept.generation == now.generation == store.generation()
    assert counting.read[-1] == [now.system("one").id]  # only what changed was read
    birds = {key[2]: cell[0] for key, cell in _content(now).items() if key[1] == "birds"}
    assert birds == {"one": 0.9, "two": 0.7}
    assert _content(before) != _content(now)  # the old one still says what it said

    store.withdraw(later.id, ada, "a mistake")
    kept.refresh()
    assert _content(kept.current("mine")) == _content(before)
    store.withdraw(second.id, ada, "gone")
    kept.refresh()
    assert len(kept.current("mine").lines_of) == 1
    assert isinstance(kept.current("mine").system("two"), System)  # its page stays


def test_a_subset_without_any_measured_value_is_a_sentence_and_not_a_defect() -> None:
    rows = [
        Row(suite="mine", subset="birds", system="a", distance="cosine", metric="P@1", value=0.5, n=10),
        Row(suite="mine", subset="dogs", system="a", distance="cosine", metric="P@1", status="failed", reason="broke"),
    ]
    whole = Snapshot.of_scores("mine", Scores(tuple(rows)), {"a": SystemCard("a")})
    with pytest.raises(NotFound, match='Nothing was measured on "dogs"'):
        summarise(whole, "dogs")


def test_a_system_under_many_distances_counts_once_for_what_is_shared() -> None:
    rows = [
        Row(suite="mine", subset=subset, system=system, distance="cosine", metric="P@1", value=0.5, n=10)
        for system in "abc" for subset in ("birds", "cats")
    ] + [
        Row(suite="mine", subset="dogs", system="a", distance=f"own{i}", metric="P@1", value=0.5, n=10)
        for i in range(20)
    ]  # fmt: skip
    whole = Snapshot.of_scores("mine", Scores(tuple(rows)), {name: SystemCard(name) for name in "abc"})
    assert whole.group("P@1").subsets == ("birds", "cats")
