"""The whole way in a real browser: a package is sent, waits, is measured on a synthetic blind set, and stands on the
board with a badge that leads to policy and audit entry."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.blind.examples import code_package, onnx_package
from tests.board.data_side import make_worker, write_sets
from tests.board.serving import Serving, serving
from tests.e2e.conftest import loaded, take_pictures

from earmark.blind.packages import archive
from earmark.blind.worker import Worker
from earmark.board.storage import Store, open_database

Open = Callable[..., Any]


class Field(NamedTuple):
    """A board, an author's token, and the worker beside the recordings."""

    board: Serving
    token: str
    worker: Worker


@pytest.fixture(scope="module")
def field(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Field]:
    folder = tmp_path_factory.mktemp("blind")
    with serving(folder / "board", "--empty", "--quiet", verb=("blind", "serve")) as board:
        store = Store(open_database(f"sqlite:///{folder / 'board' / 'earmark-board.sqlite3'}"))
        author = store.create_token(store.create_user("ada", team="analysts"))[0]
        host = store.create_token(store.create_user("host", role="worker"))[0]
        store.close()
        sets = write_sets(folder, names=("HX1", "HX2"))
        worker = make_worker(sets, board.address, host, str(folder / "ledger.sqlite3"), folder / "worker")
        worker.announce()
        yield Field(board, author, worker)
        worker.ledger.close()


PACKAGES = {"an ONNX model": onnx_package, "code": code_package}


@pytest.mark.parametrize("kind", PACKAGES)
def test_from_a_package_to_a_badge(field: Field, open_page: Open, tmp_path: Path, kind: str) -> None:
    name = f"{kind} of ours"
    folder = PACKAGES[kind](tmp_path / "package", system={"name": name, "licence": "MIT"})
    sent = archive(folder, tmp_path / "package.zip")
    page = open_page()

    page.goto(f"{field.board.address}/blind/submit")
    with loaded(page):
        page.locator("main").get_by_role("link", name="sign in").click()
    page.get_by_label("Your token").fill(field.token)
    with loaded(page):
        page.get_by_role("button", name="Sign in").click()
    assert "/blind/submit" in page.url
    page.get_by_label("Package").set_input_files(sent)
    with loaded(page):
        page.get_by_role("button", name="Send").click()
    assert "/blind/jobs/" in page.url
    job = page.url.partition("?")[0]
    assert page.locator("h1 .badge").inner_text() == "queued"
    assert "Queued as first" in page.locator("#job").inner_text()

    assert field.worker.step()
    page.goto(job)
    assert page.locator("h1 .badge").inner_text() == "released"

    page.goto(f"{field.board.address}/b/field")
    line = page.locator("#results tbody tr", has_text=name)
    assert re.search(r"\d", line.inner_text())
    with loaded(page):
        line.get_by_role("link", name=re.compile("^blind", re.IGNORECASE)).click()
    assert re.search(r"/blind/audit/\d+", page.url)
    assert name in page.locator("main").inner_text()
    figures = page.locator("main table").first.inner_text()
    assert all(word in figures for word in ("HX1", "HX2", "P@1", "P@5", "GSR"))
    with loaded(page):
        page.locator("main dl a", has_text=re.compile("[0-9a-f]{8}")).first.click()
    assert "/blind/policy/" in page.url
    assert "What leaves" in page.locator("main").inner_text()
    for text in (page.content(), figures):
        assert "word0" not in text  # no label, and no name of a file


def test_pages_of_blind_evaluation_have_no_serious_barriers(field: Field, open_page: Open) -> None:
    from axe_playwright_python.sync_playwright import Axe

    for scheme in ("light", "dark"):
        page = open_page(color_scheme=scheme, width=1280 if scheme == "light" else 375)
        for address in ("/blind", "/blind/submit", "/blind/audit", "/blind/audit/1"):
            page.goto(field.board.address + address)
            if scheme == "light":
                take_pictures(page, address)
                page.emulate_media(color_scheme=scheme)
            found = Axe().run(page).response["violations"]
            assert [one["id"] for one in found if one["impact"] in ("serious", "critical")] == [], address
