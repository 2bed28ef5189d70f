"""A frozen copy needs no server: every link is a file of the copy."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import pytest
from tests.board.scored import NASTY, cards, scores, snapshot

from earmark import published
from earmark.board.boards.snapshot import Snapshot
from earmark.board.boards.subsets import summarise
from earmark.board.pages.boards import Source
from earmark.board.pages.static_site import freeze, write_static_site
from earmark.board.storage import Store
from earmark.definitions import BoardMetric, BoardSubset, Definition
from earmark.errors import UsageError
from earmark.scores import Row, Scores
from earmark.submissions import Document


class Two:
    """Two boards without a store."""

    def __init__(self) -> None:
        rows = tuple(Row(system=NASTY, subset=f"a/{s}", metric="P@1", value=0.5) for s in ("x", "y", "../z"))
        self._kept = {"mine": snapshot(), "odd/name": Snapshot.of_scores("odd/name", Scores(rows))}

    def boards(self) -> tuple[str, ...]:
        return tuple(self._kept)

    def current(self, board: str) -> Snapshot:
        return self._kept[board]


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "frozen"
    write_static_site(Source(Two()), folder, title="Frozen", day="2026-01-02", analyse=False)
    return folder


def test_every_link_is_a_file_of_the_copy(copy: Path) -> None:
    pages = list(copy.rglob("*.html"))
    assert len(pages) > 20
    for page in pages:
        text = page.read_text("utf-8")
        assert "<form" not in text
        assert "hx-get" not in text
        assert "<script>alert" not in text
        assert "2026-01-02" in text
        for link in re.findall(r'(?:href|src)="([^"]*)"', text):
            if link.startswith(("#", "http")):
                continue
            assert not link.startswith("/"), (page, link)
            target = (page.parent / unquote(link)).resolve()
            assert target.is_file(), (page, link)
            assert target.is_relative_to(copy.resolve())


def test_the_copy_has_the_tables_as_files(copy: Path) -> None:
    assert (copy / "b/mine/P@1.csv").read_text("utf-8").startswith("rank,")
    assert (copy / "b/mine/CS.html").exists()
    assert (copy / "b/mine/s/model-1.bib").exists()
    assert (copy / "static/vendor/htmx-LICENSE.txt").exists()
    # "a/x", "a/y" and "a/../z" are three files in the folder of the subsets, whose names no two names share.
    assert len(list((copy / "b").glob("odd_name-*/subsets/*.html"))) == 3


def test_the_copy_has_a_script_for_its_tables_and_facts_to_filter_by(copy: Path) -> None:
    text = (copy / "b/mine/index.html").read_text("utf-8")
    assert "static/frozen.js" in text
    assert " data-down>" in text  # of a score the largest come first
    for fact in ("Family", "Licence", "Training-free"):
        assert f">{fact}<" in text
    assert not any("compare" in link for link in re.findall(r'href="([^"]*)"', text))


def test_boards_that_not_everybody_finds_are_not_in_a_copy(tmp_path: Path) -> None:
    class Some(Two):
        def current(self, board: str) -> Snapshot:
            whole = super().current(board)
            return whole.defined(replace(whole.definition, private=True), 1) if board != "mine" else whole

    write_static_site(Source(Some()), tmp_path / "frozen", analyse=False)
    assert [each.name for each in (tmp_path / "frozen/b").iterdir()] == ["mine"]
    assert "odd/name" not in (tmp_path / "frozen/index.html").read_text("utf-8")


def test_no_name_of_a_metric_or_subset_overwrites_another_page(tmp_path: Path) -> None:
    metrics = ("first", "index", "About", "pareto", "subsets", "analysis", "s", "FIRST")
    subsets = ("-", "a", "A")
    rows = tuple(
        Row(suite="mine", system="one", subset=subset, metric=metric, value=0.5)
        for metric in metrics for subset in subsets
    )  # fmt: skip
    own = Definition("mine", metrics=tuple(map(BoardMetric, metrics)), subsets=tuple(map(BoardSubset, subsets)))

    class Own(Two):
        def __init__(self) -> None:
            self._kept = {"mine": Snapshot.of_scores("mine", Scores(rows), definition=own)}

    folder = tmp_path / "frozen"
    write_static_site(Source(Own()), folder, analyse=False)
    files = [str(file.relative_to(folder)).casefold() for file in folder.rglob("*")]
    assert len(files) == len(set(files))  # also where capitals make no difference
    assert len(list(folder.glob("b/mine/subsets/*.html"))) == len(subsets)
    shown = {file.name: file.read_text("utf-8") for file in folder.glob("b/mine/*.html")}
    assert len(shown) == len(metrics) + 4  # about, pareto, subsets, analysis; the first metric is the index


def test_a_copy_does_not_overwrite(copy: Path) -> None:
    with pytest.raises(UsageError, match="not empty"):
        write_static_site(Source(Two()), copy, analyse=False)


def test_a_store_is_frozen_with_its_history_and_analysis(sqlite_store: Store, tmp_path: Path) -> None:
    ada, grace = sqlite_store.create_user("ada"), sqlite_store.create_user("grace", role="moderator")
    table = Scores(tuple(row for row in scores(4) if row.metric == "P@1" and row.status == "ok"))
    sent = sqlite_store.submit(Document.of(table, board="mine", cards=list(cards(4).values())), ada)
    sqlite_store.decide(sent.id, grace, accept=True)
    assert freeze(sqlite_store, tmp_path / "frozen", title="Kept") > 30
    text = (tmp_path / "frozen/b/mine/s/model-1.html").read_text("utf-8")
    assert sent.id[:12] in text
    assert "value" in (tmp_path / "frozen/b/mine/s/model-1.csv").read_text("utf-8").splitlines()[0]
    assert "being computed" not in (tmp_path / "frozen/b/mine/analysis.html").read_text("utf-8")


def test_the_board_of_a_paper_with_a_rate_of_no_subset_is_frozen_whole(tmp_path: Path) -> None:
    printed = Snapshot.of_scores("codec-superb", published.load("codec-superb"), provenance="printed")

    class One:
        def boards(self) -> tuple[str, ...]:
            return ("codec-superb",)

        def current(self, board: str) -> Snapshot:
            return printed

    write_static_site(Source(One()), tmp_path / "copy", analyse=False)
    assert (tmp_path / "copy" / "b" / "codec-superb" / "subsets" / "-.html").is_file()
    assert summarise(printed, "").standings
