"""The report: one file that fetches nothing, escapes everything, and says what is missing."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import earmark
from earmark.corpora.clips import CorpusCard
from earmark.errors import InputError
from earmark.report.html import CloseUp, Durations, FileNote, ReportData, SubsetFacts, Timing, render, write_report
from earmark.scores import Row, Scores, merge

pytest.importorskip("matplotlib")

RATE = 16_000
CLASSES = ("whistle", "trill", "<script>alert('x')</script>")
CLIPS = 36
VOID = {"meta", "img", "input", "br", "hr", "link"}


class Page(HTMLParser):
    """Checks that tags balance, and keeps what a test may ask for."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open, f"left open: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open[-1] == tag, f"</{tag}> closes <{self.open[-1]}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in ("style", "script"):
            self.words.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", "".join(self.words))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def tone(row: int) -> tuple[np.ndarray, int]:
    time = np.arange(int(RATE * (0.2 + 0.02 * (row % 5)))) / RATE
    return np.sin(2 * np.pi * (600 + 300 * (row % 3)) * time).astype(np.float32), RATE


def measured(subset: str, noise: float, seed: int) -> tuple[Scores, list[CloseUp]]:
    rng = np.random.default_rng(seed)
    labels = [CLASSES[row % 3] for row in range(CLIPS)]
    groups = [f"bird{row % 4}" for row in range(CLIPS)]
    ids = [f"{subset}/clip {row} & more" for row in range(CLIPS)]
    found, close_ups = [], []
    for system, spread in (("logmel", noise), ("mfcc", 2 * noise)):
        vectors = np.eye(8)[np.arange(CLIPS) % 3] + spread * rng.standard_normal((CLIPS, 8))
        scores = earmark.evaluate(
            vectors, labels, distance=["cosine", "euclidean"], metrics=["P@1", "P@5", "GSR", "CSCF", "hub_ratio"],
            permutations=20, bootstrap=20, groups=groups, across_groups=True, per_point=True, ids=ids,
            system=system, subset=subset, suite="tones",
        )  # fmt: skip
        found.append(Scores(scores.rows))
        points = {key[3]: values for key, values in scores.per_point.items() if key[0] == "cosine" and key[2] == "all"}
        nearest = points.pop("nearest_row")
        close_ups.append(
            CloseUp(
                subset=subset, suite="tones", system=system, distance="cosine", labels=labels, ids=ids, groups=groups,
                vectors=vectors, nearest=nearest, per_point=points, fetch=tone,
            )
        )  # fmt: skip
    return merge(*found), close_ups


@pytest.fixture(scope="module")
def data() -> ReportData:
    names = ("calls", "songs", "words", "doors")
    parts = [measured(name, 0.25 + 0.1 * seed, seed) for seed, name in enumerate(names)]
    return ReportData(
        title="Tones & <i>noises</i>",
        scores=merge(*(scores for scores, _ in parts)),
        generated="2025-01-01",
        version="9.9",
        cards=[CorpusCard("tones", title="Tones", citation="A. Author, https://example.org/paper", status="synthetic")],
        subsets=[
            SubsetFacts(
                subset=name, suite="tones", domain="birds" if place < 2 else "others", status="synthetic",
                clips=CLIPS + place, classes=3 + place, per_class=(12, 12), groups=4,
                durations=Durations(0.2, 0.24, 0.24 + place, 0.3, 8.6),
            )
            for place, name in enumerate(names)
        ],
        files=[
            FileNote(clip="bad <b>.wav", kind="failed", reason="it is empty (0 bytes)", outcome="left out"),
            FileNote(clip="ünï cödé.wav", kind="truncated", reason="40 s long", outcome="the first 30 s", system="m"),
        ],
        notes=["2 rows in 2 classes of fewer than 2 dropped"],
        timings=[Timing(stage="embed", seconds=3.25, detail="144 clips")],
        config="corpus: tones\nname: </pre><script>alert(2)</script>\n",
        settings={"permutations": "20", "seed": "0"},
        versions={"NumPy": np.__version__},
        inputs={"corpus": "ab" * 32},
        tables={"Scores": "tables/my scores.csv", "Evil": "javascript:alert(3)", "Away": "https://example.org/x"},
        close_ups=[parts[0][1][1], parts[1][1][0]],
    )  # fmt: skip


@pytest.fixture(scope="module")
def text(data: ReportData) -> str:
    return render(data)


@pytest.fixture(scope="module")
def page(text: str) -> Page:
    return Page(text)


def bare(data: ReportData, **changes: Any) -> ReportData:
    """Two systems in one subset and one distance, nothing from near: what says a sentence needs few figures."""
    scores = data.scores.select(subset="calls", distance="cosine", protocol="all")
    return replace(data, **{"scores": scores, "subsets": data.subsets[:1], "close_ups": (), **changes})


def test_nothing_is_fetched(text: str, page: Page) -> None:
    assert not page.all("link")
    assert not page.all("iframe")
    assert [attributes for attributes in page.all("script") if "src" in attributes] == []
    for _, attributes in page.tags:
        for name, value in attributes.items():
            assert not re.match(r"\s*(https?:)?//", value or ""), (name, value)
            if name == "src":
                assert (value or "").startswith("data:")
    assert "@import" not in text
    assert re.findall(r"https?://[^\s<]*", text) == ["https://example.org/paper"]
    policy = page.all("meta")[2]["content"]
    assert policy is not None
    assert "default-src 'none'" in policy


def test_links_lead_into_the_page_or_beside_it(page: Page) -> None:
    ids = {attributes["id"] for _, attributes in page.tags if attributes.get("id")}
    links = [attributes["href"] or "" for attributes in page.all("a")]
    assert all(link[1:] in ids for link in links if link.startswith("#"))
    assert [link for link in links if not link.startswith("#")] == ["tables/my%20scores.csv"]


def test_ids_are_unique(page: Page) -> None:
    ids = [attributes["id"] for _, attributes in page.tags if attributes.get("id")]
    assert len(ids) == len(set(ids))


def test_everything_is_escaped(text: str, page: Page) -> None:
    assert len(page.all("script")) == 1
    assert "<script>alert" not in text
    assert "<i>noises" not in text
    assert "bad &lt;b&gt;.wav" in text
    assert "<script>alert('x')</script>" in page.text
    assert "<script>alert(2)</script>" in page.text


def test_synthetic_data_is_called_synthetic_before_anything_else(page: Page) -> None:
    assert page.text.index("SYNTHETIC DATA") < page.text.index("The answer")


def test_the_parts_stand_in_reading_order(page: Page) -> None:
    ids = [attributes["id"] for attributes in page.all("section")]
    assert ids == ["answer", "scores", "chance", "agreement", "corpus", "groups", "closer", "files", "method"]


def test_the_answer_rests_on_the_numbers(data: ReportData, page: Page) -> None:
    best = max(
        (row for row in data.scores if row.key[1] == "songs" and row.key[5:] == ("across_groups", "P@1")),
        key=lambda row: row.value or 0.0,
    )
    said = page.text[page.text.index("The answer") : page.text.index("In each column")]
    assert f"{100 * (best.value or 0):.1f}" in said
    assert "averaged over 4 subsets" in said
    assert "above chance" in said
    assert "n = 36" in said


def test_every_file_and_what_happened_to_it_is_named(page: Page) -> None:
    for words in ("bad <b>.wav", "it is empty (0 bytes)", "ünï cödé.wav", "the first 30 s", "2 rows in 2 classes"):
        assert words in page.text


def test_sounds_can_be_played_and_seen(page: Page) -> None:
    players = page.all("audio")
    assert players
    assert all(re.match("data:audio/(flac|wav);base64,", attributes["src"] or "") for attributes in players)
    assert len(page.all("img")) == len(players)
    assert all(attributes["alt"] for attributes in page.all("img"))


def test_figures_are_drawn_and_described(page: Page) -> None:
    drawings = page.all("svg")
    assert len(drawings) >= 1 + 1 + 2 + 2 * 2
    assert all(attributes.get("aria-label") for attributes in drawings)
    assert len(page.all("figcaption")) == len(drawings)


def test_the_file_is_whole_small_and_always_the_same(data: ReportData, text: str, tmp_path: Path) -> None:
    write_report(data, tmp_path / "report.html")
    written = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert written == text
    assert len(written) < 2_500_000
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_a_folder_that_is_not_there_is_said(data: ReportData, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        write_report(bare(data), tmp_path / "nowhere" / "report.html")


def test_long_sounds_do_not_make_a_large_file(data: ReportData) -> None:
    noise = np.random.default_rng(0).standard_normal(RATE * 30).astype(np.float32)
    loud = [replace(item, fetch=lambda row: (noise, RATE)) for item in data.close_ups]
    made = render(bare(data, close_ups=loud, sound_budget=600_000))
    assert sum(len(uri) for uri in re.findall(r'src="(data:audio[^"]*)"', made)) <= 600_000
    assert "of 30.0 s" in made


# --- what is missing is said ----------------------------------------------------------------------------------


def uncalibrated(row: Row) -> Row:
    return replace(row, lift=None, baseline=None, p_value=None, baseline_low=None, baseline_high=None)


def test_without_permutations(data: ReportData) -> None:
    page = Page(render(replace(data, close_ups=(), scores=Scores(tuple(map(uncalibrated, data.scores))))))
    assert "Chance was not measured" in page.text
    assert "above chance," not in page.text


def test_without_intervals(data: ReportData) -> None:
    words = "are the middle 95 % of resamples"
    assert words in Page(render(bare(data))).text
    rows = tuple(replace(row, low=None, high=None) for row in bare(data).scores)
    page = Page(render(bare(data, scores=Scores(rows))))
    assert "There are no intervals" in page.text
    assert words not in page.text


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("jackknife", "left out in turn, as query and as candidate"),
        ("bootstrap_queries", "candidates are held fixed, so these intervals are too narrow"),
        ("", "candidates are held fixed"),  # tables of version 0.1.0
    ],
)
def test_the_report_says_how_its_intervals_were_made(kind: str, said: str) -> None:
    row = Row(system="a", metric="P@1", value=0.5, low=0.4, high=0.6, n=9, interval=kind)
    assert said in Page(render(ReportData(title="One", scores=Scores((row,))))).text


def test_the_report_says_that_groups_bind_the_shuffles() -> None:
    row = Row(system="a", metric="P@1", value=0.5, baseline=0.2, lift=0.3, p_value=0.01, n=9, shuffle="whole_groups")
    assert "only as the groups allow" in Page(render(ReportData(title="One", scores=Scores((row,))))).text


def test_one_subset_and_one_system(data: ReportData) -> None:
    scores = data.scores.select(subset="calls", system="mfcc", distance="cosine", protocol="all")
    page = Page(render(bare(data, scores=scores)))
    assert "mfcc · cosine reaches" in page.text
    assert "Trends over corpus properties take at least 5 subsets; there is 1." in page.text


def test_rows_without_a_value_give_their_reason(data: ReportData) -> None:
    lost = Row(suite="tones", subset="calls", system="mfcc", distance="cosine", metric="NMI", status="not_applicable",
               reason="k-means needs <2> clusters")  # fmt: skip
    page = Page(render(bare(data, scores=Scores((*bare(data).scores.rows, lost)))))
    assert "k-means needs <2> clusters" in page.text


@pytest.mark.parametrize("status", ["failed", "not_applicable"])
def test_no_value_at_all(status: str) -> None:
    row = Row(subset="calls", system="x", distance="cosine", metric="P@1", status=status, reason="the disk burnt")
    page = Page(render(ReportData(title="Nothing", scores=Scores((row,)))))
    assert "No representation has a score" in page.text
    assert "the disk burnt" in page.text


def test_an_empty_table() -> None:
    assert "No representation has a score" in Page(render(ReportData(title="Nothing", scores=Scores()))).text


def test_without_sounds_or_vectors(data: ReportData) -> None:
    mute = [replace(item, fetch=None, vectors=None, per_point={}) for item in data.close_ups]
    page = Page(render(bare(data, close_ups=mute)))
    assert not page.all("audio")
    assert "No sounds were given" in page.text


def test_a_clip_that_cannot_be_fetched_is_said(data: ReportData) -> None:
    def lost(row: int) -> tuple[np.ndarray, int]:
        raise OSError("the <disk> is gone")

    page = Page(render(bare(data, close_ups=[replace(data.close_ups[0], fetch=lost)])))
    assert "no sound: the <disk> is gone" in page.text


def test_a_perfect_representation_has_no_worst_retrieval(data: ReportData) -> None:
    item = data.close_ups[0]
    own = [(row + 3) % CLIPS for row in range(CLIPS)]
    page = Page(render(bare(data, close_ups=[replace(item, nearest=own)])))
    assert f"No clip of {CLIPS} has a nearest neighbour of another class." in page.text
    assert "The worst retrievals" not in page.text


def test_recorded_data_is_not_called_synthetic(data: ReportData) -> None:
    page = Page(render(bare(data, cards=(), subsets=[replace(item, status="local") for item in data.subsets])))
    assert "SYNTHETIC" not in page.text


def test_all_clips_used_is_said(data: ReportData) -> None:
    assert "Every clip was used" in Page(render(bare(data, files=()))).text
