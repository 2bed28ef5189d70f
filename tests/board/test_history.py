"""The papers' results as the first rows of a board."""

from __future__ import annotations

from earmark import published
from earmark.board.papers import load_published
from earmark.board.storage import Store
from earmark.scores import Scores
from earmark.submissions.printed import PUBLISHED_BOARDS


def test_the_printed_results_load_once_and_whole(store: Store) -> None:
    first = load_published(store)
    assert [one.board for one in first] == list(PUBLISHED_BOARDS)
    assert all(one.new and one.submission.state == "accepted" for one in first)
    assert store.boards() == sorted(PUBLISHED_BOARDS)
    generation = store.generation()
    for one in first:
        printed = published.load(one.board)
        assert one.rows == len(printed)
        live = store.live_scores(one.board)
        assert set(live["provenance"]) == {"printed"}
        names = {system.id: system.card.name for system in store.systems(one.board)}
        assert set(live.rows(one.board, names)) == set(printed.rows)
        assert store.rows_of(one.submission.id) == Scores(printed.rows)
        assert {system.owner for system in store.systems(one.board)} == {"papers"}

    cards = {system.card.name: system.card for system in store.systems("vocsim")}
    whisper = cards["EWMTF D100"]
    assert (whisper.family, whisper.parameters_m, whisper.training_free, whisper.kind) == (
        "Whisper", 635.05, True, "representation",
    )  # fmt: skip
    assert whisper.title == "Whisper, means over time and features, PCA to 100"
    assert (cards["EWT"].title, cards["E"].title, cards["CLP D30"].title, cards["BEATs"].title) == (
        "Whisper, first frame", "WhisperSeg", "CLAP, PCA to 30", "BEATs",
    )  # fmt: skip
    assert [name for name, card in cards.items() if card.training_free is False] == ["VC", "AC"]
    assert (cards["M"].parameters_m, cards["EAT"].parameters_m) == (0.0, None)  # Table 17 has no EAT
    codecs = {system.card.name: system.card for system in store.systems("codec-superb")}
    assert (codecs["E3"].family, codecs["E3"].kbps, codecs["E3"].kind) == ("EnCodec", 6.0, "codec")
    assert codecs["no codec"].kbps is None
    assert all(card.kbps is not None for name, card in codecs.items() if name != "no codec")

    again = load_published(store)
    assert [(one.new, one.submission.id) for one in again] == [(False, one.submission.id) for one in first]
    assert store.generation() == generation
    assert len(store.submissions()) == 2

    # What a moderator withdrew stays withdrawn.
    grace = store.create_user("grace", role="moderator")
    store.withdraw(again[1].submission.id, grace, "not on this board")
    assert [one.submission.state for one in load_published(store)] == ["accepted", "withdrawn"]
    assert len(store.live_scores("codec-superb")) == 0
