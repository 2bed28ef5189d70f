"""A visitor in a real browser: the table on the first screen, headings that stay, a question answered by clicking."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.board.hosted import document
from tests.board.serving import Serving, serving
from tests.e2e.conftest import loaded, swapped

from earmark.scores import Row, Scores
from earmark.submissions import Document, SystemCard
from earmark.submissions.client import BoardClient

Open = Callable[..., Any]

MINE = ("cats", "dogs", "doors", "rain", "wrens")
OTHERS = ("bells", "frogs", "owls")
COSTS = {"ash": 12, "birch": 95, "cedar": 630, "elm": 5, "fir": 300, "oak": 40}
LEADERS = {"ash", "birch", "cedar"}
"""Those that nobody is surely ahead of on the visitor's five subsets; on the others they are last."""
SIZES = ((1280, 800), (390, 844))
SHARED_VIEWS = (
    "/b/vocsim", "/b/codec-superb", "/b/vocsim?over=public&metric=GSR&setting=cosine",
    "/b/vocsim?family=Whisper&show=subsets&show=intervals&sort=subset:BC&over=subsets:BC,BS1,HP,HW1,OC1",
)  # fmt: skip


def forest() -> Document:
    """Six systems on eight subsets: three are level on the five of `MINE` and far ahead of the rest there."""
    rows = []
    for place, name in enumerate(COSTS):
        for number, subset in enumerate((*MINE, *OTHERS)):
            wiggle = 0.02 * ((place + 2 * number) % 5 - 2)
            ahead = 0.3 if name in LEADERS else 0.0
            value = 0.5 + wiggle + (ahead if subset in MINE else -ahead) - 0.02 * place * (name not in LEADERS)
            value = round(value, 4)
            rows.append(Row(suite="forest", subset=subset, system=name, metric="P@1", value=value, version="0.1"))
    cards = [SystemCard(name, title=f"{name.capitalize()} encoder", parameters_m=cost) for name, cost in COSTS.items()]
    return Document.of(Scores(tuple(rows)), board="forest", cards=cards)


@pytest.fixture(scope="module")
def wood(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("wood"), "--empty", "--registration", "open", "--quiet") as server:
        moderator = BoardClient(server.address, server.token())
        for sent in (forest(), document("there before")):
            made = moderator.submit(sent.to_bytes())
            moderator._ask("POST", f"/v1/submissions/{made.id}/decision", b'{"accept": true}')
        yield server


def level_with_the_best(page: Any) -> set[str]:
    """The codes of the systems in the tier of the best."""
    return set(page.locator("#results tr.level th.name code").all_text_contents())


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_who_is_level_with_the_best_on_five_subsets_and_what_they_cost(
    wood: Serving, open_page: Open, scripts: bool
) -> None:
    page, clicks = open_page(javascript=scripts), 0
    page.goto(wood.address)

    def click(thing: Any) -> None:
        nonlocal clicks
        thing.click()
        clicks += 1

    with loaded(page):
        click(page.get_by_role("link", name="forest", exact=True))
    assert level_with_the_best(page) != LEADERS
    click(page.locator("summary", has_text="Choose subsets"))
    for name in MINE:
        click(page.get_by_role("checkbox", name=name))
    button = page.get_by_role("button", name="Rank by these")
    with swapped(page) if scripts else loaded(page):
        click(button)
    assert not scripts or f"over=subsets:{','.join(MINE)}" in page.url
    assert level_with_the_best(page) == LEADERS
    assert "3 of 6 are not told apart from the best" in page.get_by_role("status").inner_text()
    shared, names = page.url, page.locator("#results tbody th.name code").all_text_contents()

    with loaded(page):
        click(page.get_by_role("link", name="Score and cost"))
    costs = {}
    for row in page.get_by_role("region", name="Systems and their cost").locator("tbody tr").all():
        cells = row.locator("> *").all_inner_texts()
        costs[cells[0].split()[0].lower()] = float(cells[1].split()[0])
    assert {name: costs[name] for name in LEADERS} == {name: COSTS[name] for name in LEADERS}
    assert clicks < 10

    for others_scripts in (True, False):
        fresh = open_page(javascript=others_scripts, width=390)
        fresh.goto(shared)
        assert fresh.locator("#results tbody th.name code").all_text_contents() == names
        assert level_with_the_best(fresh) == LEADERS


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_only_those_level_with_the_best_and_all_or_none_of_the_boxes(
    wood: Serving, open_page: Open, scripts: bool
) -> None:
    page = open_page(javascript=scripts)
    page.goto(f"{wood.address}/b/forest?over=subsets:{','.join(MINE)}&tier=1")
    assert set(page.locator("#results tbody th.name code").all_text_contents()) == LEADERS
    page.locator("summary", has_text="Choose subsets").click()
    assert page.locator("input[name=subset]:checked").count() == len(MINE)
    for word, count in (("none", 0), ("all", len(MINE + OTHERS))):
        with swapped(page) if scripts else loaded(page):
            page.get_by_role("link", name=word, exact=True).click()
        assert page.locator("input[name=subset]:checked").count() == count
        assert page.get_by_role("button", name="Rank by these").is_visible()
    with swapped(page) if scripts else loaded(page):
        page.get_by_role("link", name="not told apart from the best").click()
    assert page.locator("#results tbody th.name").count() == 6


@pytest.mark.parametrize("path", SHARED_VIEWS)
def test_five_systems_are_on_the_first_screen(published_board: Serving, open_page: Open, path: str) -> None:
    page = open_page()
    for width, height in SIZES:
        page.set_viewport_size({"width": width, "height": height})
        page.goto(published_board.address.rstrip("/") + path)
        bottoms = page.locator("#results tbody th.name").evaluate_all(
            "cells => cells.map(cell => cell.getBoundingClientRect().bottom)"
        )
        seen = page.locator(".tall").evaluate("box => Math.min(innerHeight, box.getBoundingClientRect().bottom)")
        assert sum(bottom <= seen for bottom in bottoms) >= 5, (path, width)


def test_headings_and_names_stay_while_a_table_scrolls(published_board: Serving, open_page: Open) -> None:
    page = open_page()
    for width, height in SIZES:
        page.set_viewport_size({"width": width, "height": height})
        page.goto(f"{published_board.address.rstrip('/')}/b/vocsim?show=subsets&show=metrics&show=card")
        box = page.get_by_role("region", name="Table of systems")
        box.evaluate("box => box.scrollTo(700, 500)")
        here = box.bounding_box()
        head = page.locator("#results thead tr").last.bounding_box()
        name = page.locator("#results tbody th.name").nth(20).bounding_box()
        assert here["y"] - 1 <= head["y"] <= here["y"] + 120
        assert abs(name["x"] - here["x"]) <= 2
        corner = page.locator("#results thead th.name")
        assert abs(corner.bounding_box()["x"] - here["x"]) <= 2
        # What is under the corner does not shine through it.
        point = [corner.bounding_box()[side] + 12 for side in ("x", "y")]
        top = page.evaluate("([x, y]) => document.elementFromPoint(x, y).closest('th, td').className", point)
        assert "name" in top
        # The keyboard scrolls it too, and what has the focus is never under the names.
        box.evaluate("box => box.scrollTo(0, 0)")
        box.focus()
        page.keyboard.press("ArrowDown")
        page.wait_for_function("() => document.querySelector('.tall').scrollTop > 0")
        last = page.locator("#results thead th a").last
        last.focus()
        first = page.locator("#results thead th a", has_text="P@1").first
        first.focus()
        assert first.bounding_box()["x"] >= corner.bounding_box()["x"] + corner.bounding_box()["width"] - 1


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_a_column_says_what_it_is_without_a_mouse(published_board: Serving, open_page: Open, scripts: bool) -> None:
    page = open_page(javascript=scripts)
    page.goto(f"{published_board.address.rstrip('/')}/b/vocsim")
    assert "higher is better" in page.locator(".metric").inner_text().lower()
    button = page.get_by_role("button", name="what GSR is")
    words = page.locator(".about[popover]", has_text="separation rate")
    assert not words.is_visible()
    button.focus()
    page.keyboard.press("Enter")
    assert words.is_visible()
    page.keyboard.press("Escape")
    assert not words.is_visible()
    page.locator("summary", has_text="About it").click()
    assert page.get_by_text("Four are blind").is_visible()


def test_every_page_knows_who_is_signed_in(wood: Serving, open_page: Open) -> None:
    page = open_page()
    page.goto(f"{wood.address}/b/forest")
    account = page.locator(".account")
    assert account.inner_text() == "Sign in"
    with loaded(page):
        account.click()
    page.get_by_label("Token").fill(wood.token())
    with loaded(page):
        page.get_by_role("button", name="Sign in").click()
    for path in ("/b/forest", "/", "/b/forest/s/ash", "/about", "/mine"):
        page.goto(wood.address.rstrip("/") + path)
        assert account.inner_text() == "moderator"
    with loaded(page):
        account.click()
    assert page.url.endswith("/mine")
    with loaded(page):
        page.get_by_role("button", name="Sign out", exact=True).click()
    page.goto(f"{wood.address}/b/forest")
    assert account.inner_text() == "Sign in"
    plain = open_page(javascript=False)
    plain.goto(f"{wood.address}/b/forest")
    with loaded(plain):
        plain.get_by_role("link", name="Account").click()
    assert "/sign-in" in plain.url
