"""Reading the board in a browser: sort, filter, search, permalink, compare, download; without scripts; with axe."""

from __future__ import annotations

import csv
import json
import re
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.board.hosted import document
from tests.board.serving import Serving
from tests.e2e.conftest import loaded, swapped, take_pictures

from earmark.submissions import Document

NASTY = "<script>window.broken=1</script>"
PAGES = (
    "/", "/b/vocsim", "/b/vocsim?subset=all&family=Whisper", "/b/codec-superb", "/b/codec-superb/s/d2",
    "/b/vocsim?show=subsets&show=card&show=metrics&q=d30", "/b/vocsim/s/ewmtf-d100",
    "/b/vocsim/compare?s=ewmtf-d100&s=wlm&s=m", "/b/vocsim/pareto", "/b/codec-superb/pareto", "/b/vocsim/subsets",
    "/b/vocsim/subsets/BC", "/b/vocsim/analysis", "/about", "/rules", "/how-to-submit",
)  # fmt: skip


def _send(board: Serving, sent: Document, *, accept: bool = True) -> str:
    """Send a document and accept it, as the first moderator."""

    def call(path: str, body: bytes) -> Any:
        headers = {"Authorization": f"Bearer {board.token()}", "Content-Type": "application/json"}
        request = urllib.request.Request(board.address.rstrip("/") + path, body, headers)
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    made = call("/v1/submissions", sent.to_bytes())
    if accept:
        call(f"/v1/submissions/{made['id']}/decision", b'{"accept": true}')
    return str(made["id"])


def _names(page: Any) -> list[str]:
    """The codes of the systems: they stand beside a title, or alone."""
    codes = "cells => cells.map(cell => (cell.querySelector('code') ?? cell.querySelector('a')).textContent.trim())"
    return page.locator("#results tbody th.name").evaluate_all(codes)


def _column(page: Any, title: str) -> list[float]:
    """The numbers under a heading, without intervals."""
    heads = page.locator("#results thead tr").last.locator("th")
    place = [text.splitlines()[0].split(" ")[0] if text else "" for text in heads.all_inner_texts()].index(title)
    cells = page.locator(f"#results tbody tr > :nth-child({place + 1})").all_inner_texts()
    return [float(text.split()[0]) for text in cells if text.split()[0] != "—"]


@pytest.fixture
def address(published_board: Serving) -> str:
    return published_board.address.rstrip("/")


def test_sort_filter_search_and_the_link_to_it(open_page: Callable[..., Any], address: str) -> None:
    page = open_page()
    page.goto(f"{address}/b/vocsim")
    assert len(_names(page)) == 43  # one printed system only repeats another
    assert _names(page)[0] == "EWMTF D100"
    with swapped(page):
        page.get_by_role("link", name="Birds").click()
    assert "sort=mean:domain:birdsong" in page.url
    birds = _column(page, "Birds")
    assert birds == sorted(birds, reverse=True)
    assert page.locator("th[aria-sort=descending]").inner_text().strip().startswith("Birds")
    with swapped(page):
        page.get_by_role("link", name="Birds").click()
    assert _column(page, "Birds") == sorted(birds)
    assert page.locator("th[aria-sort=ascending]").count() == 1

    with swapped(page):
        page.get_by_label("Metric", exact=True).select_option("GSR")
    with swapped(page):
        page.get_by_label("Distance").select_option("cosine")
    page.locator("summary", has_text="Filters").click()
    with swapped(page):
        page.get_by_label("Family").select_option("Whisper")
    with swapped(page):
        page.get_by_label("Search").press_sequentially("d100", delay=20)
    assert page.get_by_label("Search").input_value() == "d100"
    names = _names(page)
    assert names
    assert all(name.startswith("EW") and name.endswith("D100") for name in names)
    status = page.get_by_role("status").inner_text()
    link = page.url
    assert {"metric=GSR", "setting=cosine", "family=Whisper", "q=d100"} <= set(link.partition("?")[2].split("&"))

    other = open_page()
    other.goto(link)
    assert _names(other) == names
    assert other.get_by_role("status").inner_text() == status
    page.go_back()
    page.wait_for_function("() => !location.search.includes('q=d100')")
    page.wait_for_function(f"() => document.querySelectorAll('#results tbody tr').length > {len(names)}")


def test_compare_and_download(open_page: Callable[..., Any], address: str, tmp_path: Path) -> None:
    page = open_page()
    page.goto(f"{address}/b/vocsim")
    assert page.locator("#compare").is_disabled()
    page.get_by_label("Compare EWMTF D100", exact=True).check()
    page.get_by_label("Compare BEATs").check()
    with loaded(page):
        page.locator("#compare", has_text="Compare 2").click()
    assert "/compare?" in page.url
    assert page.get_by_role("heading", name="Differences, paired over subsets").is_visible()
    page.wait_for_selector("svg.chart use")
    link = page.url
    page.reload()
    assert page.url == link

    page.goto(f"{address}/b/vocsim?q=wlm&show=subsets")
    names = _names(page)
    with page.expect_download() as started:
        page.get_by_role("link", name="CSV").click()
    path = tmp_path / "table.csv"
    started.value.save_as(path)
    with path.open(newline="") as stream:
        assert [row["system"] for row in csv.DictReader(stream)] == names


def test_the_same_pages_without_scripts(open_page: Callable[..., Any], address: str) -> None:
    page = open_page(javascript=False)
    page.goto(f"{address}/b/vocsim")
    page.get_by_label("Metric", exact=True).select_option("CSCF")
    page.get_by_label("Search").fill("whisper")
    with loaded(page):
        page.get_by_role("button", name="Show").first.click()
    assert {"metric=CSCF", "q=whisper"} <= set(page.url.partition("?")[2].split("&"))
    names = _names(page)
    assert names
    with loaded(page):
        page.get_by_role("link", name="Otters").click()
    found = _column(page, "Otters")
    assert found == sorted(found)  # less is better
    page.locator("tbody input[name=s]").nth(0).check()
    page.locator("tbody input[name=s]").nth(1).check()
    with loaded(page):
        page.get_by_role("button", name="Compare").click()
    assert page.get_by_role("heading", name="Subset by subset").is_visible()
    for path in PAGES:
        page.goto(address + path)
        assert page.locator("h1").count() == 1
        for figure in page.locator("figure.figure").all():
            assert figure.locator("svg.chart").is_visible()  # drawn by the server
    page.goto(f"{address}/b/vocsim/s/ewmtf-d100")
    assert "76.2" in page.get_by_role("region", name="All scores", exact=True).inner_text()


def test_axe_finds_nothing_serious_and_only_tables_scroll_sideways(open_page: Callable[..., Any], address: str) -> None:
    """On every page: all rules in light, the rule that depends on colours in dark, and the width of a phone."""
    from axe_playwright_python.sync_playwright import Axe

    page, axe = open_page(), Axe()
    found: list[Any] = []
    for path in PAGES:
        page.set_viewport_size({"width": 1280, "height": 900})
        page.emulate_media(color_scheme="light")
        page.goto(address + path)
        take_pictures(page, path)
        page.emulate_media(color_scheme="light")
        for scheme, rules in (("light", {}), ("dark", {"runOnly": ["color-contrast"]})):
            page.emulate_media(color_scheme=scheme)
            told = axe.run(page, options={"resultTypes": ["violations"], **rules}).response
            assert scheme == "light" or told["passes"] or told["inapplicable"]
            found += [
                (path, scheme, violation["id"], [node["html"][:150] for node in violation["nodes"][:3]])
                for violation in told["violations"]
                if violation["impact"] in ("serious", "critical")
            ]
        for width in (1280, 390):
            page.set_viewport_size({"width": width, "height": 800})
            beyond = page.evaluate("() => document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert beyond <= 0, (path, width)
    assert found == []


def test_light_and_dark_are_chosen_and_kept(open_page: Callable[..., Any], address: str) -> None:
    page = open_page(color_scheme="light")
    page.goto(f"{address}/b/vocsim")
    paper = "() => getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(paper)
    page.get_by_role("button", name=re.compile("dark colours")).click()
    dark = page.evaluate(paper)
    assert dark != light
    page.goto(f"{address}/about")
    assert page.evaluate(paper) == dark
    page.get_by_role("button", name=re.compile("light colours")).click()
    assert page.evaluate(paper) == light


def test_the_keyboard_reaches_the_content_and_the_table(open_page: Callable[..., Any], address: str) -> None:
    page = open_page()
    page.goto(f"{address}/b/vocsim")
    page.keyboard.press("Tab")
    assert page.evaluate("() => document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    assert page.evaluate("() => document.activeElement.id") == "main"
    page.locator("th", has_text="Birds").locator("a").focus()
    with swapped(page):
        page.keyboard.press("Enter")
    assert "sort=" in page.url


def test_a_name_is_text_and_runs_nothing(open_page: Callable[..., Any], published_board: Serving, address: str) -> None:
    _send(published_board, document(NASTY, 0.6, board="mine", description=NASTY, family=NASTY))
    _send(published_board, document("plain", 0.5, board="mine", family=NASTY))
    page = open_page()
    twin = "script-window.broken-1-script"
    for path in ("/b/mine?show=card", "/b/mine/subsets/BC", f"/b/mine/compare?s=plain&s={twin}", "/"):
        page.goto(address + path)
    page.goto(f"{address}/b/mine?show=card")
    with loaded(page):
        page.get_by_role("link", name=NASTY).first.click()
    assert page.locator("h1").inner_text() == NASTY
    page.wait_for_selector("svg.chart use")
    assert page.evaluate("() => window.broken") is None
