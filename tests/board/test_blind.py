"""Blind subsets: nobody but the host can have measured them, whatever a document or an old database says."""

from __future__ import annotations

import html
from pathlib import Path
from urllib.parse import parse_qsl

import numpy as np
import pytest
from sqlalchemy import text
from tests.board.documents import row

from earmark import published
from earmark.board.boards import BoardView, TablePage, table
from earmark.board.boards.snapshot import Snapshot
from earmark.board.boards.snapshots import Snapshots
from earmark.board.pages.assets import page_templates
from earmark.board.pages.boards import Reader, Source
from earmark.board.records import User
from earmark.board.refusals import Conflict
from earmark.board.storage import Store
from earmark.cli import main
from earmark.definitions import BoardSubset, Definition
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


@pytest.mark.parametrize(
    "name",
    [
        "hu4",
        "HU-4",
        "HU 4",
        "HU_4",
        "\u041dU4",
        "HU\uff14",
        "HU\u20114",
        "H\u00da4",
        "mean:HU4",
        "mean: blind",
        "Mean:Blind",
    ],
)
def test_a_name_that_reads_like_a_blind_subset_is_a_claim_too(name: str) -> None:
    for board in ("vocsim", "mine"):
        rows = (row(0.9, suite=board, subset=name), row(0.5, suite=board, subset="birds"))
        document = Document.of(Scores(rows), board=board, cards=[SystemCard("model")])
        found = [one for one in check(document, announced=("HU4",)).problems if one.code == "blind_subset"]
        assert [one.pointer for one in found] == ["/scores/0/subset"], board
        assert f'"{name}" reads like "' in found[0].message
    assert check(document).problems == []  # nothing is blind on this board before it was announced


@pytest.mark.parametrize("name", ["HWl", "HWI", "hwı", "HW|", "mean: HWl"])
def test_letters_that_look_like_digits_make_no_other_subset(name: str) -> None:
    sent = Document.of(
        Scores((row(0.9, subset=name), row(0.5, subset="birds"))), board="mine", cards=[SystemCard("model")]
    )
    assert [one.code for one in check(sent, announced=("HW1",)).problems] == ["blind_subset"]
    # Where it came before the host announced anything, it is no measurement from then on.
    whole = Snapshot.of_scores("mine", sent.scores, blind=["HW1"])
    there = np.isfinite(whole.panel("P@1").measured())
    assert [subset for subset, column in zip(whole.panel("P@1").subsets, there.T, strict=True) if column.any()] == [
        "birds"
    ]
    # A public subset of the host's own that looks like a blind one is what its host says it is.
    own = {"mine": Definition("mine", subsets=(BoardSubset(name.removeprefix("mean: ")), BoardSubset("birds")))}
    named = Document.of(
        Scores((row(0.9, subset=name.removeprefix("mean: ")),)), board="mine", cards=[SystemCard("model")]
    )
    assert check(named, own, announced=("HW1",)).problems == []


@pytest.mark.parametrize("name", ["HU41", "HU", "blind", "blind date", "mean:public", "HU4.5"])
def test_another_name_is_another_subset(name: str) -> None:
    document = Document.of(Scores((row(0.9, subset=name),)), board="mine", cards=[SystemCard("model")])
    assert check(document, announced=("HU4", "HU45")).problems == []


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


def ranked(snapshot: Snapshot, query: str = "") -> TablePage:
    return table(snapshot, BoardView.parse(snapshot, parse_qsl(query)))


def test_vocsim_ranks_by_the_blind_mean_first_as_its_paper_says() -> None:
    """Printed of EWMTF D100 under spearman: P@1 16.3, 13.3, 8.6, 7.6, and a mean GSR of 39.4."""
    whole = Snapshot.of_scores("vocsim", published.load("vocsim"), provenance="printed")
    page = ranked(whole)
    assert [column.key for column in page.columns[:4]] == ["mean:blind", "blind:P@5", "blind:GSR", "mean:public"]
    first = page.rows[0]
    assert (first.rank, first.system.card.name, first.setting) == (1, "EWMTF D100", "spearman")
    assert first.cells[0].value == pytest.approx((0.163 + 0.133 + 0.086 + 0.076) / 4)
    assert first.cells[2].value == pytest.approx(0.394, abs=5e-4)
    # A raw row repeats its PCA row in print: it has no rank by the blind mean, stays in the table, and has one beside.
    names = {row.system.card.name: row for row in page.rows}
    assert {row.rank > 0 for name, row in names.items() if name.endswith("D100")} == {True}
    assert (names["EWMTF"].rank, names["EWMTF"].cells[0].value) == (0, None)
    assert "HU3" in names["EWMTF"].unranked
    public = ranked(whole, "over=public")
    assert public.columns[0].key == "mean:public"
    assert next(row for row in public.rows if row.system.card.name == "EWMTF D100").rank == 1
    assert {row.system.slug for row in public.rows} == {row.system.slug for row in page.rows}
    # Those without a rank stand last, the best public mean first.
    last = [row.cells[3].value for row in page.rows if not row.rank and row.cells[3].status == "ok"]
    assert last == sorted(last, reverse=True)


def test_who_was_measured_on_all_sets_that_a_host_announces_has_a_rank() -> None:
    """HU3 and HW3 are of the paper, and nobody measures them here: they keep nobody from a rank."""
    printed = published.load("vocsim").rows
    mine = [row(0.1, suite="vocsim", subset=subset, system="conv-one") for subset in ("HU4", "HW4")]
    scores = Scores((*printed, *mine))
    before = Snapshot.of_scores("vocsim", scores, provenance="printed")
    assert before.group("P@1").subsets == BLIND
    whole = Snapshot.of_scores("vocsim", scores, provenance="printed", offered=("HU4", "HW4"))
    assert whole.group("P@1").subsets == ("HU4", "HW4")
    assert whole.group("P@1", "blind_all").subsets == BLIND  # the paper's own, beside it
    assert whole.public_group("P@1").key == "public"
    rows = {each.system.slug: each for each in ranked(whole).rows}
    assert rows["conv-one"].rank > 0
    assert rows["conv-one"].cells[0].value == pytest.approx(0.1)
    assert rows["ewmtf-d100"].cells[0].value == pytest.approx((0.133 + 0.076) / 2, abs=5e-4)
    assert ranked(whole).columns[0].help == "P@1. Blind mean: HU4, HW4"
    everything = Snapshot.of_scores("vocsim", scores, provenance="printed", offered=BLIND)
    assert everything.group("P@1") == before.group("P@1")
    # A set of a name of its own is averaged once it was measured; it never mixes with the paper's.
    own = Snapshot.of_scores("vocsim", scores, provenance="printed", blind=(*BLIND, "HX1"), offered=("HX1",))
    assert own.group("P@1").subsets == BLIND


class One:
    """A board of one snapshot, to be read."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot

    def boards(self) -> tuple[str, ...]:
        return (self.snapshot.board,)

    def current(self, board: str) -> Snapshot:
        return self.snapshot


def page_of(snapshot: Snapshot, **query: str) -> str:
    reader = Reader(Source(One(snapshot)), page_templates("Board"))
    return html.unescape(reader.board(snapshot.board, list(query.items())).body.decode())


def test_the_page_names_the_sets_of_the_blind_mean_and_who_lacks_which() -> None:
    scores = published.load("vocsim")
    page = page_of(Snapshot.of_scores("vocsim", scores, provenance="printed", offered=("HU4", "HW4")))
    assert ">Blind mean<i>: HU4, HW4</i></th>" in page
    lacking = "13 systems have no figures of HU4 and HW4 (HU3, HW3, which nobody measures here, are not in this mean)."
    assert lacking in page
    alone = page_of(Snapshot.of_scores("vocsim", scores, provenance="printed"))
    assert "13 systems have no figures of HU3, HU4, HW3 and HW4, which nobody measures here." in alone


def test_ranks_that_say_nothing_are_said_to_once_above_the_table() -> None:
    snapshot = Snapshot.of_scores("vocsim", published.load("vocsim"), provenance="printed")
    sentence = "27 of 30 are not told apart from the best: the order says little"
    page = page_of(snapshot)
    assert page.index(sentence) < page.index("<table>")
    assert "the order says little" not in page_of(snapshot, over="public")


def test_columns_of_the_blind_mean_sort() -> None:
    whole = Snapshot.of_scores("vocsim", published.load("vocsim"), provenance="printed")
    for key, place in (("mean:blind", 0), ("blind:P@5", 1), ("blind:GSR", 2), ("mean:public", 3)):
        values = [row.cells[place].value for row in ranked(whole, f"sort={key}").rows]
        there = [value for value in values if value is not None]
        assert there == sorted(there, reverse=True), key
        assert None not in values[: len(there)]
    gsr = ranked(whole, "metric=GSR")
    assert [column.metric for column in gsr.columns[:3]] == ["GSR", "P@1", "P@5"]


def test_a_board_of_ones_own_ranks_by_the_sets_that_were_announced() -> None:
    rows = [row(0.5 + 0.1 * place, system=name, subset="birds") for place, name in enumerate("abc")]
    rows += [row(value, system=name, subset=subset) for name, value in (("a", 0.4), ("b", 0.3)) for subset in "xy"]
    rows += [row(0.9, system="a", subset="z")]
    snapshot = Snapshot.of_scores("mine", Scores(tuple(rows)), provenance="blind", blind=("x", "y", "z", "unheard"))
    assert [group.key for group in snapshot.groups("P@1")][:2] == ["blind", "mean"]
    assert snapshot.group("P@1").subsets == ("x", "y")  # z was measured for one alone and takes nobody's rank
    page = ranked(snapshot)
    assert [(row.system.slug, row.rank) for row in page.rows] == [("a", 1), ("b", 2), ("c", 0)]
    assert [column.key for column in page.columns] == ["mean:blind", "mean:mean"]
    assert [row.system.slug for row in ranked(snapshot, "over=mean").rows] == ["c", "b", "a"]
    # Without any figures of blind sets the board is ranked as before.
    before = Snapshot.of_scores("mine", Scores(tuple(rows[:3])), blind=("x", "y"))
    assert before.group("P@1").title == "Value"


def test_of_systems_without_blind_figures_the_best_setting_is_that_of_the_public_mean() -> None:
    rows = [row(0.4, system="a", subset="x"), row(0.5, system="a")]
    rows += [row(value, system="b", distance=name) for name, value in (("euclidean", 0.2), ("cosine", 0.7))]
    snapshot = Snapshot.of_scores("mine", Scores(tuple(rows)), provenance="blind", blind=("x",))
    assert [(row.system.slug, row.setting) for row in ranked(snapshot).rows] == [("a", "cosine"), ("b", "cosine")]
