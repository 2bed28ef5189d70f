"""A real server in a process of its own, and Debian's Chromium to look at it.

Where there is no Chromium the tests are skipped with a reason; `scripts/services` installs one.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

playwright = pytest.importorskip("playwright.sync_api", reason="the tests in a browser need the extra test")
pytest.importorskip("uvicorn", reason="the board needs the extra board")

from tests.board.serving import Serving, serving  # noqa: E402

FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("there is no Chromium: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=path, args=list(FLAGS))
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def published_board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """`earmark serve` on a fresh folder: it loads the printed results by itself."""
    with serving(tmp_path_factory.mktemp("published") / "data") as made:
        yield made


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Any]]:
    """A page in a context of its own: `open_page(javascript=False, color_scheme="dark")`. A script that fails, or that
    the page's own policy stops, fails the test."""
    contexts: list[Any] = []
    wrong: list[str] = []

    def opened(*, javascript: bool = True, width: int = 1280, **options: Any) -> Any:
        context = browser.new_context(
            java_script_enabled=javascript, viewport={"width": width, "height": 900}, accept_downloads=True, **options
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda said: wrong.append(said.text) if "Content Security Policy" in said.text else None)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert wrong == []


SIZES = (1280, 390)
THEMES = ("light", "dark")


def take_pictures(page: Any, name: str) -> None:
    """Write the page as images, in two widths and two themes, into the folder that EARMARK_SHOTS names, if it does."""
    if not (folder := os.environ.get("EARMARK_SHOTS", "")):
        return
    plain = re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-") or "front"
    before = page.viewport_size
    for width in SIZES:
        for theme in THEMES:
            page.set_viewport_size({"width": width, "height": 900 if width > 500 else 844})
            page.emulate_media(color_scheme=theme)
            page.screenshot(path=Path(folder) / f"{plain}--{width}-{theme}.png", full_page=True)
    page.set_viewport_size(before)


@contextmanager
def loaded(page: Any) -> Iterator[None]:
    """Wait until the page that a link or a form leads to is there as a whole: a click alone returns before."""
    with page.expect_navigation(wait_until="load"):
        yield


@contextmanager
def swapped(page: Any) -> Iterator[None]:
    """Wait until a script has put a new part in its place."""
    page.evaluate(
        "() => { window.settled = false;"
        " document.addEventListener('htmx:afterSettle', () => { window.settled = true; }, {once: true}); }"
    )
    yield
    page.wait_for_function("() => window.settled")
