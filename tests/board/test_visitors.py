"""What a visitor reads on a page without asking: what the board is, who is level with the best, what a link shows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from html import unescape

import pytest
from tests.board.hosted import Hosted, hosted
from tests.board.test_codecs import snapshot as codec_snapshot

from earmark import published
from earmark.board.boards.snapshot import Snapshot
from earmark.board.boards.table import table
from earmark.board.boards.view import BoardView
from earmark.board.pages.assets import page_templates
from earmark.board.pages.boards import Reader, Source
from earmark.board.pages.definitions import about_page
from earmark.board.pages.subsets import subset_page, subsets_page
from earmark.board.pages.systems import system_page
from earmark.definitions import BoardMetric, BoardSubset, Definition, Reference, SubsetGroup
from earmark.scores import Row, Scores
from earmark.submissions import SystemCard
from earmark.submissions.printed import published_document

SUBSETS = tuple("abcdef")
SYSTEMS = {"Best": 0.9, "Near": 0.89, "Far": 0.5, "Half": 0.95, "Old": 0.99}


class Alone:
    def __init__(self, *snapshots: Snapshot) -> None:
        self.by_name = {snapshot.board: snapshot for snapshot in snapshots}

    def boards(self) -> tuple[str, ...]:
        return tuple(self.by_name)

    def current(self, board: str) -> Snapshot:
        return self.by_name[board]


def reader(*snapshots: Snapshot, base_url: str = "https://example.org/lead") -> Reader:
    return Reader(Source(Alone(*snapshots)), page_templates("Our board"), base_url=base_url)


@pytest.fixture(scope="module")
def sounds() -> Snapshot:
    """Two level systems, one far behind, one with half the subsets, and one that the host does not rank."""
    rows = []
    for name, value in SYSTEMS.items():
        for at, subset in enumerate(SUBSETS if name != "Half" else SUBSETS[:3]):
            lag = round(1 - value + 0.01 * ((at + (name == "Near")) % 3), 4)
            for distance in ("cosine", "euclidean") if name == "Near" else ("cosine",):
                cells = {"suite": "sounds", "subset": subset, "system": name, "distance": distance}
                rows.append(Row(**cells, metric="lag", value=lag))
    definition = Definition(
        "sounds", "Sounds of a yard", "Who hears what in a yard.", "Text with **weight** and <b>no</b> tags.",
        Reference("A. Author, 2026", "https://example.org/paper"), "ask@example.org",
        metrics=(BoardMetric("lag", "time to answer", "seconds until the answer", False, "s"),),
        subsets=tuple(BoardSubset(name, f"yard {name}") for name in SUBSETS),
        groups=(SubsetGroup("mean", "Mean", "Mean", SUBSETS),), rank_by=("mean",), unranked=("Old",),
        closes=date(2031, 5, 4),
    )  # fmt: skip
    cards = {"Best": SystemCard("Best", title="The best of all", details={
        "revision": "abc123", "hardware": "one core", "dimension": 128, "rate": 16000,
    })}  # fmt: skip
    return Snapshot.of_scores("sounds", Scores(tuple(rows)), cards, definition=definition)


def text_of(page: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page)).split())


def rows_of(page: str) -> dict[str, str]:
    """The lines of the table by the name of their system."""
    lines = re.findall(r'<tr[^>]*><td class="pick">.*?</tr>', page)
    return {re.findall(r"<code>([^<]+)|/s/[^>]*>([^<]+)", line)[-1][0] or _linked(line): line for line in lines}


def _linked(line: str) -> str:
    return re.findall(r"/s/[^>]*>([^<]+)", line)[0]


def test_the_board_says_what_it_and_its_metric_are(sounds: Snapshot) -> None:
    page = reader(sounds).board("sounds").body.decode()
    words = text_of(page)
    for text in ("Sounds of a yard", "Who hears what in a yard.", "A. Author, 2026", "ask@example.org"):
        assert text in words
    assert "time to answer lag Lower is better, in s. Seconds until the answer." in words
    assert "<strong>weight</strong>" in page
    assert "&lt;b&gt;no&lt;/b&gt;" in page
    assert 'href="https://example.org/paper"' in page
    # Every heading of a score tells it to whoever asks, by a button.
    told = re.findall(r'popovertarget="(about-\d+)"', page)
    assert len(told) == len(set(told)) >= 2
    assert all(f'popover id="{name}"' in page for name in told)


def test_tiers_the_best_of_a_column_and_those_without_a_rank_are_marked(sounds: Snapshot) -> None:
    page = reader(sounds).board("sounds", [("show", "subsets")]).body.decode()
    lines = rows_of(page)
    assert {name for name, line in lines.items() if 'class="level"' in line} == {"Best", "Near"}
    assert "2 of 3 are not told apart from the best" in text_of(page)
    assert list(lines)[:3] == ["Best", "Near", "Far"]
    labels = re.findall(r'<tr class="tier"><th[^>]*><span>([^<]+)', page)
    assert labels[0] == "Not told apart from the best"
    assert labels[1].startswith("Tier 2")
    assert labels[2:] == ["Shown for comparison, not ranked", "Without a rank: subsets of this mean are missing"]
    assert page.index(labels[2]) < page.index("/s/old") < page.index(labels[3])
    assert page.index(labels[0]) < page.index(">Best</code>") < page.index(labels[1]) < page.index("/s/far")
    assert page.index("/s/far") < page.index(labels[-1]) < page.index("/s/half")
    # Less is better; the best is bold, and a reader who sees no bold is told.
    assert '<b>0.110</b><span class="vh"> best</span>' in lines["Best"]
    assert "<b>" not in lines["Far"]
    assert "3 of 6 subsets" in text_of(lines["Half"])
    assert "the host ranks it nowhere" in text_of(lines["Old"])
    assert re.search(r'<small class="why">(<i>[^<]*</i>)?3 of 6 subsets', lines["Half"])  # phones show the reason alone


def test_the_page_about_a_board_says_which_metrics_have_scores() -> None:
    snapshot = Snapshot.of_scores("vocsim", published.load("vocsim"), provenance="printed")
    page = about_page(reader(snapshot), "vocsim").body.decode()
    assert page.count("<td>yes</td>") == len(snapshot.metrics)
    assert len(snapshot.metrics) + page.count("<td>none yet</td>") == len(snapshot.definition.metrics)


def test_where_means_mix_tiers_each_line_says_its_own_and_no_heading_does() -> None:
    """On the mean of a paper's table a system is surely behind the best, and another with a lower mean is not."""
    snapshot = Snapshot.of_scores("vocsim", published.load("vocsim"), provenance="printed")
    shown = table(snapshot, BoardView.parse(snapshot, ()))
    tiers = [row.tier for row in shown.rows if row.rank]
    assert tiers != sorted(tiers)
    page = reader(snapshot).board("vocsim").body.decode()
    told = [int(tier) for tier in re.findall(r'<td class="n rank">.*?<small>tier (\d+)</small>', page)]
    assert told == tiers
    labels = re.findall(r'<tr class="tier"><th[^>]*><span>([^<]+)', page)
    assert not [label for label in labels if label.startswith(("Tier", "Not told"))]
    # Under headings, in a view whose tiers follow the ranks, no line says its tier again.
    first = reader(snapshot).board("vocsim", [("tier", "1")]).body.decode()
    assert "Not told apart from the best</span>" in first
    assert "<small>tier" not in first


def test_a_line_whose_interval_is_too_wide_is_told_to_be_in_no_tier() -> None:
    """Below three subsets errors are what authors state: one who states none of use is level with nobody."""
    errors = {"first": 0.002, "second": 0.002, "vague": 0.4, "third": 0.002}
    rows = tuple(
        Row(suite="few", subset="one", system=name, metric="P@1", value=value, low=value - error, high=value + error)
        for value, (name, error) in zip((0.8, 0.7, 0.6, 0.5), errors.items(), strict=True)
    )  # fmt: skip
    snapshot = Snapshot.of_scores("few", Scores(rows))
    lines = {row.system.card.name: row for row in table(snapshot, BoardView.parse(snapshot, ())).rows}
    assert {name: line.tier for name, line in lines.items()} == {"first": 1, "second": 2, "vague": 0, "third": 3}
    assert (lines["vague"].rank, lines["vague"].rank_low, lines["vague"].rank_high) == (3, 1, 4)
    page = reader(snapshot).board("few").body.decode()
    labels = re.findall(r'<tr class="tier"><th[^>]*><span>([^<]+)', page)
    assert [label.split(":")[0] for label in labels] == ["Not told apart from the best", "Tier 2", "Tier 3"]
    assert page.count(">no tier</small>") == 1
    alone = reader(snapshot).board("few", [("tier", "1")]).body.decode()
    assert "vague" not in alone


def test_a_metric_of_the_hosts_own_is_written_and_turned_as_the_host_says() -> None:
    rows = [
        Row(suite="own", subset=subset, system=name, metric="slips", value=value)
        for name, value in (("few", 0.125), ("many", 0.5))
        for subset in "abc"
    ]
    definition = Definition(
        "own", metrics=(BoardMetric("slips", words="share of slips", higher_is_better=False, percent=True),),
        subsets=tuple(map(BoardSubset, "abc")), groups=(SubsetGroup("mean", subsets=tuple("abc")),), rank_by=("mean",),
    )  # fmt: skip
    snapshot = Snapshot.of_scores("own", Scores(tuple(rows)), definition=definition)
    page = reader(snapshot).board("own", [("sort", "subset:a"), ("show", "subsets")]).body.decode()
    lines = rows_of(page)
    assert list(lines) == ["few", "many"]
    assert "<b>12.5</b>" in lines["few"]
    assert ">50.0<" in lines["many"]
    assert "% ↓" in page
    for text in (
        system_page(reader(snapshot), "own", "few").body.decode(), reader(snapshot).boards().body.decode(),
        subset_page(reader(snapshot), "own", "a").body.decode(), subsets_page(reader(snapshot), "own").body.decode(),
    ):  # fmt: skip
        told = re.sub(r"<figure.*?</figure>", "", text, flags=re.DOTALL)
        assert "12.5" in told
        assert "0.125" not in told


def test_only_those_level_with_the_best(sounds: Snapshot) -> None:
    view = BoardView.parse(sounds, [("tier", "1")])
    assert [row.system.card.name for row in table(sounds, view).rows] == ["Best", "Near"]
    assert view.query() == "tier=1"
    page = reader(sounds).board("sounds", [("tier", "1")]).body.decode()
    assert set(rows_of(page)) == {"Best", "Near"}
    assert "not told apart from the best × : take away" in text_of(page)


def test_no_anchor_and_nothing_ranked_apart_is_the_best_of_a_column() -> None:
    lines = rows_of(reader(codec_snapshot()).board("codec").body.decode())
    bold = {name for name, line in lines.items() if "<b>" in line}
    assert bold == {"fine@24"}


def test_names_come_before_codes_and_subsets_under_theirs() -> None:
    document = published_document("vocsim")
    cards = {card.name: card for card in document.cards}
    snapshot = Snapshot.of_scores("vocsim", document.scores, cards, provenance="printed")
    page = reader(snapshot).board("vocsim", [("show", "subsets")]).body.decode()
    assert ">Whisper, means over time and features, PCA to 100</a> <code>EWMTF D100</code>" in page
    assert re.search(r">BC</a><button[^>]*>Bird Calls \(Zebra Finch\)", page)
    assert "44 systems, 19 subsets" in text_of(page)


def test_a_link_shows_who_leads_and_has_one_address(sounds: Snapshot) -> None:
    def metas(items: list[tuple[str, str]]) -> dict[str, str]:
        page = reader(sounds).board("sounds", items).body.decode()
        found = dict(re.findall(r'<meta (?:name|property)="([^"]+)" content="([^"]*)"', page))
        found["canonical"] = re.findall(r'<link rel="canonical" href="([^"]*)"', page)[0]
        return {name: unescape(text) for name, text in found.items()}

    plain = metas([])
    assert plain["og:title"] == "Sounds of a yard: lag, mean"
    assert "The best of all (Best) leads with lag 0.110, rank 1–2." in plain["og:description"]
    assert "2 of 3 are not told apart from the best." in plain["og:description"]
    assert plain["canonical"] == plain["og:url"] == "https://example.org/lead/b/sounds"
    assert "robots" not in plain
    chosen = metas([("over", "subsets:a,b,c")])
    assert "robots" not in chosen
    assert chosen["canonical"].endswith("/b/sounds?over=subsets:a,b,c")
    assert metas([("q", "best"), ("sort", "name")])["robots"] == "noindex, follow"
    # Without an address of the site there is none to give.
    page = reader(sounds, base_url="").board("sounds").body.decode()
    assert "canonical" not in page
    assert "og:title" in page


def test_boxes_of_subsets_by_domain_all_and_none() -> None:
    snapshot = Snapshot.of_scores("vocsim", published.load("vocsim"), provenance="printed")

    def ticked(*items: tuple[str, str]) -> list[str]:
        page = reader(snapshot).board("vocsim", items).body.decode()
        assert "<legend><a" in page  # a domain ranks by itself
        return re.findall(r'name="subset" value="(\w+)" checked', page)

    assert ticked() == ticked(("subset", "none")) == []
    assert len(ticked(("subset", "all"))) == 19
    assert ticked(("over", "subsets"), ("subset", "HW1"), ("subset", "BC")) == ["BC", "HW1"]
    assert ticked(("over", "domain:otter_calls")) == ["OC1"]


def test_the_front_page_tells_what_each_board_is_and_who_leads(sounds: Snapshot) -> None:
    words = text_of(reader(sounds).boards().body.decode())
    for text in (
        "Sounds of a yard", "Who hears what in a yard.", "5 systems, 6 subsets, 1 metric.",
        "Takes scores until 2031-05-04.", "2 of 3 are not told apart from the best.", "The best of all Best",
    ):  # fmt: skip
        assert text in words


def test_a_card_names_revision_hardware_dimension_rate_and_the_settings_tried(sounds: Snapshot) -> None:
    words = text_of(system_page(reader(sounds), "sounds", "best").body.decode())
    for text in (
        "Revision abc123", "Hardware one core", "Dimension 128", "Sampling rate 16000 Hz", "Settings tried 1",
        "The best of all Best",
    ):  # fmt: skip
        assert text in words
    near = text_of(system_page(reader(sounds), "sounds", "near").body.decode())
    assert "Revision not stated Hardware not stated Settings tried 2" in near


@pytest.fixture
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosted]:
    with hosted(tmp_path_factory.mktemp("board")) as made:
        yield made


def test_shared_pages_name_nobody_and_personal_ones_do(board: Hosted) -> None:
    html = {"accept": "text/html"}
    shared = board.client.get("/about", headers=html).text
    assert "data-visitor" not in shared
    assert '<a class="account" id="account" href="/mine">Account</a>' in shared
    assert 'data-visitor=""' in board.client.get("/sign-in", headers=html).text
    assert board.client.get("/mine", headers=html, follow_redirects=False).headers["location"].startswith("/sign-in")
