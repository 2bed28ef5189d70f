"""Figures, frozen copies and frames in a browser: highlights, boxes that tell, clicks; and without a script."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.board.serving import Serving
from tests.e2e.conftest import take_pictures

from earmark.board.boards.snapshot import Snapshot
from earmark.board.pages.boards import Source
from earmark.board.pages.static_site import write_static_site
from earmark.submissions.printed import published_document


@pytest.fixture
def address(published_board: Serving) -> str:
    return published_board.address.rstrip("/")


class Printed:
    """VocSim's printed results without a store."""

    def __init__(self) -> None:
        sent = published_document("vocsim")
        known = {card.name: card for card in sent.cards}
        self._snapshot = Snapshot.of_scores("vocsim", sent.scores, known, provenance="printed")

    def boards(self) -> tuple[str, ...]:
        return ("vocsim",)

    def current(self, board: str) -> Snapshot:
        return self._snapshot


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def web_space(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """Any web space with a frozen copy on it: its address and its folder."""
    folder = tmp_path_factory.mktemp("space")
    write_static_site(Source(Printed()), folder / "frozen", title="Frozen", analyse=False)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}", folder
    server.shutdown()


def test_what_is_pointed_at_comes_forward_in_figure_and_table_and_a_click_opens_it(
    open_page: Callable[..., Any], address: str
) -> None:
    page = open_page()
    page.goto(f"{address}/b/codec-superb/pareto")
    mark = page.locator('svg.chart use[data-s="e3"]')
    mark.hover()
    assert page.locator(".tip").inner_text().startswith("E3")
    assert page.locator('tr[data-s="e3"].on').count() == 1
    assert page.locator("svg.chart.pointing").count() == 1
    page.locator('tr[data-s="f6"] td').first.hover()
    assert page.locator('svg.chart use[data-s="f6"].on').count() == 1
    mark.click()
    page.wait_for_url("**/b/codec-superb/s/e3")


def test_the_keyboard_reaches_the_named_systems_and_escape_lets_go(open_page: Callable[..., Any], address: str) -> None:
    page = open_page()
    page.goto(f"{address}/b/codec-superb/pareto")
    page.locator('svg.chart .labels a[data-s="d2"]').focus()
    assert page.locator(".tip").inner_text().startswith("D2")
    page.keyboard.press("Escape")
    assert page.locator(".tip").is_hidden()
    page.locator('svg.chart .labels a[data-s="d2"]').focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/b/codec-superb/s/d2")


@pytest.mark.parametrize(
    "path",
    ["/b/vocsim/pareto?over=public", "/b/vocsim/analysis", "/b/vocsim/subsets/BC", "/b/codec-superb/s/d1",
     "/b/vocsim/compare?s=beats&s=m&over=public"],
)  # fmt: skip
def test_figures_are_there_without_a_script_and_fit_a_phone(
    open_page: Callable[..., Any], address: str, path: str
) -> None:
    page = open_page(javascript=False, width=390)
    page.goto(f"{address}{path}")
    charts = page.locator("svg.chart")
    assert charts.count() >= 1
    box = charts.first.bounding_box()
    assert box["width"] > 180
    assert box["height"] > 60
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    sizes = charts.first.locator("text").evaluate_all(
        "texts => texts.filter(each => each.getBoundingClientRect().width > 0).map(each => "
        "parseFloat(getComputedStyle(each).fontSize))"
    )
    assert min(sizes) >= 10  # letters do not shrink with the figure


@pytest.mark.parametrize("path", ["/b/vocsim/pareto", "/b/vocsim/analysis", "/b/vocsim/embed"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_names_in_figures_cover_no_other_name(
    open_page: Callable[..., Any], address: str, path: str, scheme: str
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    for width in (1280, 390):
        page = open_page(width=width, color_scheme=scheme, bypass_csp=True)
        page.goto(f"{address}{path}")
        if path.endswith("embed") and width > 500 and scheme == "light":
            take_pictures(page, path)
            page.emulate_media(color_scheme=scheme)
        boxes = page.locator("svg.chart .labels text").evaluate_all(
            "all => all.map(each => each.getBoundingClientRect()).filter(b => b.width > 0)"
            ".map(b => [b.left, b.top + 3, b.right, b.bottom - 3])"
        )
        for place, one in enumerate(boxes):
            for other in boxes[:place]:
                apart = one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
                assert apart, (width, one, other)
        found = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]})
        assert found.violations_count == 0, found.generate_report()


def _lines(page: Any) -> list[str]:
    return page.locator("#results tbody th.name").evaluate_all(
        "cells => cells.map(cell => (cell.querySelector('code') ?? cell.querySelector('a')).textContent.trim())"
    )


def test_a_frozen_copy_searches_sorts_and_filters_and_its_address_keeps_it(
    open_page: Callable[..., Any], web_space: tuple[str, Path]
) -> None:
    page = open_page()
    page.goto(f"{web_space[0]}/frozen/b/vocsim/index.html")
    take_pictures(page, "frozen copy")
    whole = _lines(page)
    assert len(whole) == 43
    assert page.locator("#results tr.tier").count() > 0
    page.fill("#frozen-search", "whisper d100")
    found = _lines(page)
    assert 2 <= len(found) < 43
    assert page.locator("#results tr.tier").count() == 0
    page.fill("#frozen-search", "")
    assert _lines(page) == whole
    column = page.locator("#results thead th", has_text="BS2")
    column.locator("button.sort").click()
    assert column.get_attribute("aria-sort") == "descending"
    place = column.evaluate("head => head.cellIndex")
    shown = page.locator("#results tbody tr").evaluate_all(
        f"rows => rows.map(row => parseFloat(row.cells[{place}].firstChild.textContent.replace(/^[^0-9]+/, '')))"
        ".filter(value => !Number.isNaN(value))"
    )
    assert shown == sorted(shown, reverse=True)
    page.select_option("#frozen-family", "CLAP")
    kept = _lines(page)
    assert len(kept) == 3
    other = open_page()
    other.goto(page.url)
    assert _lines(other) == kept
    plain = open_page(javascript=False)
    plain.goto(f"{web_space[0]}/frozen/b/vocsim/index.html")
    assert len(_lines(plain)) == 43
    assert plain.locator("#frozen-search").count() == 0


def test_a_page_of_another_site_may_frame_the_table_and_no_other_page(
    browser: Any, address: str, web_space: tuple[str, Path]
) -> None:
    (web_space[1] / "mine.html").write_text(
        f'<iframe src="{address}/b/vocsim/embed?lines=3" id="may"></iframe>'
        f'<iframe src="{address}/b/vocsim" id="not"></iframe>'
        f'<img src="{address}/b/vocsim/s/beats/badge.svg" id="badge">'
    )
    page = browser.new_page()
    page.goto(f"{web_space[0]}/mine.html")
    framed = page.frame_locator("#may")
    assert framed.locator("tbody th.name").count() == 3
    assert framed.locator("h1 a").get_attribute("href") == f"{address}/b/vocsim"
    assert page.frame_locator("#not").locator("table").count() == 0
    assert page.locator("#badge").evaluate("image => image.naturalWidth") > 60
    read = page.evaluate(f"fetch('{address}/v1/boards').then(answer => answer.json())")
    assert read
    with pytest.raises(Exception, match="Failed to fetch"):
        page.evaluate(f"fetch('{address}/b/vocsim').then(answer => answer.text())")
    page.close()
