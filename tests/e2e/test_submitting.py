"""Author and moderator in a real browser: sign up, send a file, see it pending, accept it, see it ranked, withdraw it.

Once with scripts and once without: forms are plain forms.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.board.hosted import document
from tests.board.serving import Serving, serving
from tests.e2e.conftest import loaded

from earmark.submissions.client import BoardClient

Open = Callable[..., Any]


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A board with one system that was there before."""
    with serving(tmp_path_factory.mktemp("board"), "--empty", "--registration", "open", "--quiet") as server:
        moderator = BoardClient(server.address, server.token())
        sent = moderator.submit(document("there before", 0.4).to_bytes())
        moderator._ask("POST", f"/v1/submissions/{sent.id}/decision", b'{"accept": true}')
        yield server


def ranked(page: Any, board: Serving) -> str:
    """The text of the board's table."""
    page.goto(f"{board.address}/b/vocsim")
    text: str = page.locator("#results").inner_text()
    return text


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_from_a_file_to_a_rank_and_back(board: Serving, open_page: Open, tmp_path: Path, scripts: bool) -> None:
    name = f"best {'with' if scripts else 'without'}"
    file = tmp_path / "scores.csv"
    document(name, 0.9).scores.write(file)
    author, moderator = open_page(javascript=scripts), open_page(javascript=scripts)

    author.goto(f"{board.address}/submit")
    with loaded(author):
        author.get_by_role("link", name="sign up").click()
    author.get_by_label("Name").fill(f"ada {scripts}")
    with loaded(author):
        author.get_by_role("button", name="Sign up").click()
    assert author.locator("#new-token").inner_text().startswith("em_")

    with loaded(author):
        author.get_by_role("link", name="Submit results").click()
    author.get_by_label("File", exact=True).set_input_files(file)
    author.get_by_text("About the system").click()
    author.get_by_label("Family").fill("Whisper")
    with loaded(author):
        author.get_by_role("button", name="Send").click()
    author.wait_for_url(re.compile("/submissions/"))
    permalink = author.url.partition("?")[0]
    assert author.locator("h1 .badge").inner_text() == "pending"
    assert name not in ranked(author, board)
    author.goto(f"{board.address}/mine")
    assert author.locator("tbody .badge").inner_text() == "pending"

    moderator.goto(f"{board.address}/moderate")
    moderator.get_by_label("Your token").fill(board.token())
    with loaded(moderator):
        moderator.get_by_role("button", name="Sign in").click()
    moderator.wait_for_url(re.compile("/moderate"))
    with loaded(moderator):
        moderator.locator("tbody").first.get_by_role("link").click()
    assert moderator.url == permalink
    moderator.get_by_role("button", name="Reject").click()  # without a reason: the browser does not send it
    assert moderator.locator("#reason:invalid").count() == 1
    moderator.locator("#reason").fill(" ")
    with loaded(moderator):
        moderator.get_by_role("button", name="Reject").click()  # nor does the board take blanks for one
    assert "reason" in moderator.get_by_role("alert").inner_text().lower()
    moderator.goto(permalink)
    moderator.get_by_label("Provenance").select_option("reproduced")
    with loaded(moderator):
        moderator.get_by_role("button", name="Accept").click()
    assert moderator.locator("h1 .badge").inner_text() == "accepted"

    table = ranked(author, board)
    assert table.index(name) < table.index("there before")
    author.goto(permalink)
    assert "reproduced" in author.locator("dl.facts").inner_text()
    author.get_by_text("Withdraw").first.click()
    author.get_by_label("Reason").fill("a bug in the labels")
    with loaded(author):
        author.get_by_role("button", name="Withdraw").click()
    assert author.locator("h1 .badge").inner_text() == "withdrawn"
    assert "a bug in the labels" in author.locator("dl.facts").inner_text()
    assert name not in ranked(author, board)


def test_what_is_wrong_with_a_file_is_listed_and_nothing_kept(board: Serving, open_page: Open, tmp_path: Path) -> None:
    file = tmp_path / "percent.csv"
    document("percent", 50.0).scores.write(file)
    page = open_page()
    page.goto(f"{board.address}/sign-in?next=/submit")
    page.get_by_label("Your token").fill(board.token())
    with loaded(page):
        page.get_by_role("button", name="Sign in").click()
    page.get_by_label("File", exact=True).set_input_files(file)
    page.get_by_text("About the system").click()
    page.get_by_label("Title").fill("kept in the form")
    with loaded(page):
        page.get_by_role("button", name="Send").click()
    alert = page.get_by_role("alert")
    assert "Nothing was stored" in alert.inner_text()
    assert "divide percent by 100" in alert.inner_text()
    assert page.get_by_label("Title").input_value() == "kept in the form"
    document("percent", 0.5).scores.write(file)
    page.get_by_label("File", exact=True).set_input_files(file)
    with loaded(page):
        page.get_by_role("button", name="Only check").click()
    assert "can be sent to the board vocsim" in page.get_by_role("status").inner_text()
    page.goto(f"{board.address}/mine")
    assert "percent" not in page.locator("main").inner_text()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pages_of_authors_have_no_serious_barriers(board: Serving, open_page: Open, theme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = open_page(color_scheme=theme)
    client = BoardClient(board.address, board.token())
    waiting = client.submit(document(f"waiting {theme}").to_bytes())
    page.goto(f"{board.address}/sign-up")
    serious = _barriers(axe, page)
    page.goto(f"{board.address}/sign-in")
    serious += _barriers(axe, page)
    page.get_by_label("Your token").fill(board.token())
    with loaded(page):
        page.get_by_role("button", name="Sign in").click()
    for path in ("mine", "moderate", "submit", f"submissions/{waiting.id}", "nowhere", "v1/docs"):
        page.goto(f"{board.address}/{path}")
        for summary in page.locator("summary").all():
            summary.click()
        serious += _barriers(axe, page)
    assert serious == []


def _barriers(axe: Any, page: Any) -> list[str]:
    found = axe.run(page).response["violations"]
    return [
        f"{page.url}: {one['id']}: {one['nodes'][0]['html']}"
        for one in found
        if one["impact"] in ("serious", "critical")
    ]
