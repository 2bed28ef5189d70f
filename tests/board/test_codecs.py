"""A board of codecs: honest, failing, cheating, faulty and printed ones, and anchors, on every page that shows them."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest

from earmark.board.api.shapes import LineShape
from earmark.board.boards.costs import pareto
from earmark.board.boards.pairs import compare
from earmark.board.boards.snapshot import Snapshot
from earmark.board.boards.subsets import summarise
from earmark.board.boards.table import table
from earmark.board.boards.view import BoardView
from earmark.board.pages.assets import page_templates
from earmark.board.pages.boards import Reader, Source
from earmark.board.pages.comparisons import compare_page, pareto_page
from earmark.board.pages.subsets import subset_page
from earmark.board.pages.systems import system_page
from earmark.codecs.standing import Promise, Standing
from earmark.scores import Row, Scores
from earmark.submissions import SystemCard
from earmark.submissions.printed import published_document

FULL = Standing("full", "", "passed")
CODECS: dict[str, tuple[float, float, dict[str, object]]] = {  # rate, overall, details
    "fine@12": (11.8, 0.70, {"version": "2.1", **FULL.details}),
    "fine@24": (23.5, 0.80, FULL.details),
    "plain": (30.0, 0.75, FULL.details),
    "failing": (16.0, 0.95, FULL.details),
    "cheat": (0.02, 1.0, Standing("none", "one <process>", "passed").details),
    "faulty": (20.0, 0.9, Standing("full", promises=(Promise("state", "broken", "clips remember"),)).details),
    "old": (18.0, 0.85, {}),
    "pcm": (256.0, 1.007, {"lossless": True, **FULL.details}),
}
SUBSETS = ("birds", "talk")


def rows() -> Scores:
    made = []
    for name, (kbps, value, _) in CODECS.items():
        for subset in SUBSETS:
            lost: dict[str, Any] = {}
            if name == "failing":
                lost = {"status": "incomplete", "reason": "10 of 20 clips failed"}
            cells: dict[str, Any] = {"suite": "codec", "subset": subset, "system": name, "n": 10 if lost else 20} | lost
            made += [
                Row(metric="kbps", value=kbps, **cells),
                Row(metric="overall", value=value, low=value - 0.01, high=value + 0.01, **cells),
            ]
    return Scores(tuple(made))


def snapshot() -> Snapshot:
    cards = {
        name: SystemCard(name, kind="codec", family=name.partition("@")[0], kbps=round(kbps), details=details)
        for name, (kbps, _, details) in CODECS.items()
    }
    return Snapshot.of_scores("codec", rows(), cards)


class One:
    def __init__(self, made: Snapshot) -> None:
        self.made = made

    def boards(self) -> tuple[str, ...]:
        return (self.made.board,)

    def current(self, board: str) -> Snapshot:
        return self.made


@pytest.fixture(scope="module")
def made() -> Snapshot:
    return snapshot()


@pytest.fixture(scope="module")
def reader(made: Snapshot) -> Reader:
    return Reader(Source(One(made)), page_templates("Board"))


def text_of(page: Any) -> str:
    return str(page.body.decode())


def test_each_kind_is_ranked_by_itself_below_the_isolated_ones(made: Snapshot) -> None:
    page = table(made, BoardView.parse(made, ()))
    lines = [(row.system.card.name, row.kind, row.rank) for row in page.rows]
    assert lines == [
        ("fine@24", "", 1), ("plain", "", 2), ("fine@12", "", 3), ("failing", "", 0), ("old", "unknown", 1),
        ("cheat", "unisolated", 1), ("faulty", "faulty", 1), ("pcm", "anchor", 0),
    ]  # fmt: skip
    failing = page.rows[3]
    assert failing.unranked == "no rank: incomplete on birds, talk: 10 of 20 clips failed"
    assert (failing.cells[0].status, failing.cells[0].value) == ("incomplete", pytest.approx(0.95))
    assert page.rows[-1].unranked == "no rank: an anchor, which loses nothing"
    assert [row.bitrate.kbps for row in page.rows if row.bitrate][:2] == pytest.approx([23.5, 30.0])
    by_rate = table(made, BoardView.parse(made, [("sort", "kbps")]))
    assert [row.system.card.name for row in by_rate.rows][:3] == ["fine@12", "failing", "fine@24"]
    shape = LineShape.model_validate(page.rows[0])
    assert (shape.kind, shape.bitrate.kbps, shape.bitrate.stated) == ("", 23.5, False)


def test_isolation_is_the_authors_word_until_the_host_has_measured_it(made: Snapshot, reader: Reader) -> None:
    rows_of = {row.system.card.name: row for row in table(made, BoardView.parse(made, ())).rows}
    assert {name: row.isolation for name, row in rows_of.items()} == dict.fromkeys(CODECS, "") | dict.fromkeys(
        ("fine@12", "fine@24", "plain", "failing"), "stated"
    )
    assert LineShape.model_validate(rows_of["plain"]).isolation == "stated"
    assert text_of(reader.board("codec")).count(">isolation stated<") == 4
    file = {row["system"]: row for row in csv.DictReader(io.StringIO(text_of(reader.board_file("codec", (), "csv"))))}
    assert (file["plain"]["isolation"], file["cheat"]["isolation"]) == ("stated", "")
    assert "plain (isolation stated)" in text_of(reader.board_file("codec", (), "tex"))
    assert "full, stated by the author" in text_of(system_page(reader, "codec", "plain"))
    for page in (
        compare_page(reader, "codec", [("s", "plain"), ("s", "fine-12")]),
        pareto_page(reader, "codec", [("x", "kbps")]),
        subset_page(reader, "codec", "birds"), system_page(reader, "codec", "plain"),
    ):  # fmt: skip
        assert ">isolation stated<" in text_of(page)
    for provenance, word in (("reproduced", "confirmed"), ("blind", "confirmed"), ("self-reported", "stated")):
        again = Snapshot.of_scores("codec", rows(), {s.card.name: s.card for s in made.systems}, provenance=provenance)
        lines = table(again, BoardView.parse(again, ())).rows
        assert {row.isolation for row in lines if row.system.card.name == "plain"} == {word}
    host = Reader(Source(One(Snapshot.of_scores(
        "codec", rows(), {system.card.name: system.card for system in made.systems}, provenance="reproduced"
    ))), page_templates("Board"))  # fmt: skip
    assert ">isolated<" in text_of(host.board("codec"))
    assert "full, confirmed by the host" in text_of(system_page(host, "codec", "plain"))


def test_what_is_ranked_apart_is_on_no_front_and_anchors_are_lines(made: Snapshot) -> None:
    front = pareto(made, "kbps")
    assert {point.system.card.name for point in front.points if point.front} == {"fine@12", "fine@24"}
    assert {point.system.card.name for point in front.apart} == {"old", "cheat", "faulty"}
    assert [anchor.system.card.name for anchor in front.anchors] == ["pcm"]
    assert "failing" not in {point.system.card.name for point in front.points}


def test_the_pages_say_it(made: Snapshot, reader: Reader) -> None:
    board = text_of(reader.board("codec"))
    for words in (
        "Not fully isolated: the decoder could have seen the original", "Isolation unknown", ">anchor<",
        "one &lt;process&gt;", "*0.950", ">kbps<", ">23.50<",
    ):  # fmt: skip
        assert words in board
    assert "<process>" not in board
    costs = text_of(pareto_page(reader, "codec", [("x", "kbps")]))
    front = pareto(made, "kbps")
    assert [point.x for point in front.points if point.front] == pytest.approx([11.8, 23.5])
    assert "pcm (256 kbps): 1.007" in costs  # a dashed line, whose rate crowds nobody out
    assert costs.count('<line class="anchor"') == 1
    hollow = costs.split('<g class="others hollow">')[1].split("</g>")[0]
    assert hollow.count("<use ") == 3
    for rate in ("0.02 kbps", "18 kbps", "20 kbps"):
        assert rate in hollow
    both = text_of(compare_page(reader, "codec", [("s", "fine-12"), ("s", "cheat"), ("s", "failing")]))
    assert ">11.80<" in both
    assert "Ranks are of separate lists" in both
    assert "not isolated" in both
    one = text_of(system_page(reader, "codec", "fine-12"))
    for words in ("Version of the codec", "2.1", "Isolation", "full", "overall against the rate", "Nominal bit rate"):
        assert words in one
    assert one.index("overall against the rate") < one.index("overall subset by subset")
    cheat = text_of(system_page(reader, "codec", "cheat"))
    assert "none: one &lt;process&gt;" in cheat
    assert "1 of 1" in cheat  # among its own kind
    assert "Ranked apart. Not fully isolated" in cheat
    assert "Ranked apart" not in one
    faulty = text_of(system_page(reader, "codec", "faulty"))
    assert "state: clips remember" in faulty
    assert "isolation unknown" in text_of(system_page(reader, "codec", "old"))
    subset = text_of(subset_page(reader, "codec", "talk"))
    assert "ranked apart" in subset


def test_a_subset_is_judged_by_those_that_are_ranked_first(made: Snapshot) -> None:
    found = summarise(made, "talk", metric="overall")
    assert [(one.system.card.name, one.rank) for one in found.standings] == [
        ("fine@24", 1), ("plain", 2), ("fine@12", 3), ("old", 1), ("cheat", 1), ("faulty", 1), ("pcm", 0),
    ]  # fmt: skip
    assert (found.best, found.median) == (0.8, 0.75)
    pair = compare(made, ["fine-24", "failing"], metric="overall")
    assert [each.rank for each in pair.compared] == [1, 0]
    assert pair.differences[0].mean is None  # incomplete values are not subtracted


def test_a_download_says_kind_and_rate(reader: Reader) -> None:
    lines = list(csv.DictReader(io.StringIO(text_of(reader.board_file("codec", (), "csv")))))
    by_name = {line["system"]: line for line in lines}
    assert (by_name["cheat"]["kind"], by_name["cheat"]["kbps"], by_name["cheat"]["rank"]) == ("unisolated", "0.02", "1")
    assert by_name["failing"]["unranked"].startswith("no rank: incomplete")
    tex = text_of(reader.board_file("codec", (), "tex"))
    assert "cheat (not isolated)" in tex
    assert "kbps" in tex


def test_printed_results_are_ranked_as_before_and_the_untouched_sound_is_an_anchor() -> None:
    document = published_document("codec-superb")
    cards = {card.name: card for card in document.cards}
    printed = Snapshot.of_scores("codec-superb", document.scores, cards, provenance="printed")
    kinds = dict(zip((system.card.name for system in printed.systems), printed.kinds, strict=True))
    assert kinds.pop("no codec") == "anchor"
    assert set(kinds.values()) == {""}
    assert printed.field("overall").ranked == 19


def test_values_at_single_sampling_rates_take_no_rank_from_the_others() -> None:
    """A subset of several rates has an overall score at each; the mean of the board is over the other subsets."""
    more = [
        Row(suite="codec", subset="mixed", system=name, metric="overall", protocol=f"all@{rate}", value=0.5, n=10)
        for name in ("fine@12", "fine@24", "plain")
        for rate in (16000, 44100)
    ]
    cards = {name: SystemCard(name, kind="codec", details=details) for name, (_, _, details) in CODECS.items()}
    both = Snapshot.of_scores("codec", Scores((*rows(), *more)), cards)
    assert both.group("overall").subsets == SUBSETS
    assert both.field("overall").ranks.rank.max() == 3
    assert both.group("overall", "subset:mixed").subsets == ("mixed",)
    assert both.field("overall", "subset:mixed", "all@44100").ranked == 3
    alone = Snapshot.of_scores("codec", Scores(tuple(more)), cards)
    assert alone.protocols("overall")[0] == "all@16000"
    assert alone.field("overall").ranked == 3
