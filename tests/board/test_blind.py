"""Blind subsets: nobody but the host can have measured them, whatever a document or an old database says."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import text
from tests.board.documents import row

from earmark.board.boards.snapshot import Snapshot, Snapshots
from earmark.board.records import User
from earmark.board.refusals import Conflict
from earmark.board.storage import Store
from earmark.cli import main
from earmark.scores import Row, Scores
from earmark.submissions import Document, Refused, SystemCard, check, rules

BLIND = ("HU3", "HU4", "HW3", "HW4")


def claim(
    value: float = 0.97, subsets: tuple[str, ...] = BLIND, system: str = "claimed", **document: object
) -> Document:
    rows = tuple(row(value, suite="vocsim", subset=subset, system=system) for subset in subsets)
    return Document.of(Scores(rows), cards=[SystemCard(system)], **document)  # type: ignore[arg-type]


def test_self_reported_measurements_of_blind_subsets_are_refused() -> None:
    problems = check(claim(subsets=("BC", "HU4", "mean:blind"))).problems
    assert [one.pointer for one in problems] == ["/scores/1/subset", "/scores/2/subset"]
    assert "HU4 is blind, and only the host can measure it" in problems[0].message
    assert check(claim(subsets=("BC", "OC1", "mean:public"))).problems == []
    for provenance in ("blind", "reproduced", "printed"):
        assert check(claim(provenance=provenance)).problems == []


def test_a_prediction_for_a_blind_subset_is_no_claim() -> None:
    rows = (
        row(0.5, suite="vocsim", subset="BC"),
        row(0.2, suite="vocsim", subset="HU4", status="predicted", reason="from BC", low=0.1, high=0.3),
    )
    assert check(Document.of(Scores(rows), cards=[SystemCard("model")])).problems == []


def test_submit_refuses_it_before_it_is_sent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "scores.csv"
    Scores((Row(suite="vocsim", subset="HW3", system="mine", metric="P@1", value=0.9, n=10),)).write(path)
    assert main(["submit", str(path), "--dry-run"]) != 0
    assert "HW3 is blind" in capsys.readouterr().err


def test_the_server_refuses_it_too(store: Store, ada: User, grace: User) -> None:
    with pytest.raises(Refused, match="HU3 is blind"):
        store.submit(claim(), ada)
    made = store.submit(claim(provenance="blind"), grace)
    assert store.decide(made.id, grace, accept=True).provenance == "blind"


def test_what_an_older_version_took_is_not_accepted_and_never_leads(
    store: Store, ada: User, grace: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = store.submit(claim(0.3, system="measured", provenance="blind"), grace)
    store.decide(honest.id, grace, accept=True)
    with monkeypatch.context() as old:
        old.setattr(rules, "_claims", lambda rows, board: iter(()))
        pending = store.submit(claim(), ada)
        again = store.submit(claim(0.99, system="measured"), grace)
    for sent in (pending, again):
        with pytest.raises(Conflict, match="self-reported scores of HU3, HU4, HW3, HW4"):
            store.decide(sent.id, grace, accept=True)
    # As it stands in a database of the version before: accepted and live.
    for sent in (pending, again):
        assert store.decide(sent.id, grace, accept=True, provenance="blind").state == "accepted"
    with store.engine.begin() as connection:
        connection.execute(
            text("UPDATE submissions SET provenance = 'self-reported' WHERE public IN (:one, :other)"),
            {"one": pending.id, "other": again.id},
        )
    snapshot = Snapshots(store).current("vocsim")
    names = {place: system.card.name for place, system in enumerate(snapshot.systems)}
    cells = {
        (names[snapshot.lines[line].system], subset): status
        for panel in snapshot.panels.values()
        for line, codes in zip(panel.lines, panel.status, strict=True)
        for subset, status in zip(panel.subsets, codes.tolist(), strict=True)
    }
    assert set(cells.values()) == {2}  # not applicable: nothing here was measured by the host any more
    # The next thing that happens to the system brings the host's own scores back.
    store.withdraw(again.id, grace)
    field = Snapshots(store).current("vocsim").field("P@1", "subset:HU3")
    panel = Snapshots(store).current("vocsim").panel("P@1")
    assert panel.measured()[field.rows[field.ranks.rank == 1]].tolist() == [[0.3] * 4]


def test_a_snapshot_shows_why_a_claim_is_left_out() -> None:
    scores = claim().scores
    snapshot = Snapshot.of_scores("vocsim", scores, provenance="self-reported")
    panel = snapshot.panel("P@1")
    assert "only the host can measure" in panel.reasons[0, 0]
    assert not (panel.value == panel.value).any()
    assert (Snapshot.of_scores("vocsim", scores, provenance="blind").panel("P@1").measured() == 0.97).all()
    assert (Snapshot.of_scores("mine", scores).panel("P@1").measured() == 0.97).all()
