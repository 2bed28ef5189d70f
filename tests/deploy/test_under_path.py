"""A board under a path of its host: every page, file, redirect and cookie, the API and the command line."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.board.hosted import document, hosted
from tests.board.serving import Serving, serving
from tests.deploy.walking import sign_in, walk
from tests.s3 import free_port

from earmark.board.app import create_app
from earmark.board.settings import OWN_NAMES, Settings, public_address
from earmark.board.web.under_path import with_path
from earmark.errors import UsageError
from earmark.submissions.client import BoardClient

PATH = "/suites/leaderboard"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A real server that knows only its path; its host is the one on which it listens."""
    port = free_port()
    folder = tmp_path_factory.mktemp("under-a-path")
    options = ("--url", f"http://127.0.0.1:{port}{PATH}", "--registration", "open")
    with serving(folder, *options, port=port, verb=("blind", "serve")) as running:
        yield running


@pytest.fixture
def base(server: Serving) -> str:
    return server.address + PATH


def test_no_link_of_any_page_leads_out_of_the_path_and_none_is_broken(server: Serving, base: str) -> None:
    client = BoardClient(base, server.token())
    client.submit(document("to be decided").to_bytes())
    with httpx.Client(timeout=60, follow_redirects=True) as visitor:
        read = walk(visitor, base)
        sign_in(visitor, base, server.token())
        signed_in = walk(visitor, base)
    assert read.outside + signed_in.outside == []
    assert read.broken + signed_in.broken == []
    opened = {page.removeprefix(base) for page in read.pages + signed_in.pages}
    assert {
        "/",
        "/b/vocsim",
        "/b/vocsim/pareto",
        "/b/vocsim/analysis",
        "/submit",
        "/blind",
        "/moderate",
        "/mine",
    } <= opened
    assert any(page.startswith("/static/board.css?v=") for page in opened)
    assert any(page.startswith("/submissions/") for page in opened)


def test_what_a_program_reads_names_the_whole_address(server: Serving, base: str) -> None:
    receipt = BoardClient(base, server.token()).submit(document("permalink").to_bytes())
    assert receipt.permalink == f"{base}/submissions/{receipt.id}"
    assert httpx.get(receipt.permalink, headers={"Accept": "text/html"}).status_code in (200, 404)
    described = httpx.get(f"{base}/v1/openapi.json").json()
    assert described["servers"] == [{"url": PATH}]
    assert httpx.get(f"{base}/v1/boards").json()["items"][0]["page"].startswith(f"{base}/b/")
    bibtex = httpx.get(f"{base}/b/vocsim/s/ewmtf-d100.bib").text
    assert f"{base}/b/vocsim/s/" in bibtex
    assert f"--to {base} " in httpx.get(f"{base}/how-to-submit").text


def test_redirects_and_cookies_stay_under_the_path(server: Serving, base: str) -> None:
    asked = httpx.get(f"{base}/mine")
    assert (asked.status_code, asked.headers["location"]) == (303, f"{PATH}/sign-in?next=/mine")
    assert httpx.get(f"{base}/about/").headers["location"] == f"{PATH}/about"
    with httpx.Client(timeout=30, follow_redirects=True) as visitor:
        sign_in(visitor, base, server.token())
        names = {f"earmark_{purpose}{PATH.replace('/', '_')}" for purpose in ("session", "visit")}
        assert {cookie.name for cookie in visitor.cookies.jar} == names  # beside those of another board on the host
        assert visitor.get(f"{base}/mine").url == f"{base}/mine"
    created = httpx.post(
        f"{base}/v1/submissions", content=document("location").to_bytes(),
        headers={"Authorization": f"Bearer {server.token()}", "Content-Type": "application/json"},
    )  # fmt: skip
    assert created.headers["location"] == f"{PATH}/v1/submissions/{created.json()['id']}"


@pytest.mark.parametrize("page", ["", "/", "/b/vocsim", "/b/vocsim/s/ewmtf-d100"])
def test_the_command_line_takes_the_address_of_any_page_under_the_path(
    server: Serving, base: str, tmp_path: Path, page: str
) -> None:
    name = f"sent to {page.count('/')}{len(page)}"
    document(name).scores.write(tmp_path / "scores.csv")
    told = ["submit", str(tmp_path / "scores.csv"), "--board", "vocsim", "--to", base + page, "--yes", "--quiet"]
    done = subprocess.run(
        [sys.executable, "-m", "earmark", *told, "--token", server.token()], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{base}/submissions/")


def test_participants_of_blind_evaluation_reach_it_under_the_path(server: Serving, base: str) -> None:
    assert BoardClient(base, server.token()).jobs() == []


def test_a_proxy_that_takes_the_path_away_and_one_that_leaves_it_see_the_same(tmp_path: Path) -> None:
    with hosted(tmp_path, base_url="https://example.org/leaderboard") as board:
        board.accepted(document("a system"))
        for page in ("/", "/b/vocsim", "/v1/boards", "/v1/openapi.json", "/nothing", "/static/board.css", "/readyz"):
            stripped, whole = board.client.get(page), board.client.get(f"/leaderboard{page}")
            assert (stripped.status_code, stripped.content) == (whole.status_code, whole.content), page
        assert board.client.get("/leaderboard").text == board.client.get("/").text
        assert board.client.get("/leaderboards").status_code == 404


def test_addresses_of_other_sites_and_words_that_look_like_links_stay_as_they_are(tmp_path: Path) -> None:
    page = '<a href="/b/x">, <a href="//other.org/b">, <a href="https://o.org/"> &#34; href=&#34;/b <input value="/b">'
    assert with_path(page, "/p") == page.replace('href="/b/x"', 'href="/p/b/x"')
    with hosted(tmp_path, base_url="https://example.org/leaderboard") as board:
        board.accepted(document("a", title='" href="/b/x', url="https://example.org/b/paper"))
        shown = board.client.get("/b/vocsim/s/a").text
        assert 'href="https://example.org/b/paper"' in shown
        assert "leaderboard/b/x" not in shown


def test_a_path_that_the_board_could_not_tell_from_its_own_is_refused(tmp_path: Path) -> None:
    app = create_app(Settings(data=tmp_path, blind=True))
    own = [path for route in app.routes for path in _paths(route)]
    names = {path.split("/")[1] for path in own} - {""}
    assert {"b", "v1", "static", "mine", "blind"} <= names
    assert names <= OWN_NAMES
    for path, why in (("/b", "/b is a page"), ("/x/v1", "/v1 is a page"), ("/a//b", "single"), ("/a/../c", "single")):
        with pytest.raises(UsageError, match=why):
            public_address(f"https://example.org{path}", "--url")
    assert public_address("https://example.org/leaderboard/", "--url") == "https://example.org/leaderboard"


def _paths(route: Any) -> list[str]:
    """The addresses of a route, or of all routes of a router that was included."""
    if (router := getattr(route, "original_router", None)) is None:
        return [route.path]
    return [f"{route.include_context.prefix}{path}" for inner in router.routes for path in _paths(inner)]
