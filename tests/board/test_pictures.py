"""The picture beside a link to a board: a PNG of the size that other sites want, of what the table says."""

from __future__ import annotations

import re
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.board.hosted import document, hosted

from earmark.board.pages.pictures import SIZE
from earmark.board.pages.static_site import freeze

Image = pytest.importorskip("PIL.Image", reason="the board needs the extra board")
_PICTURE = re.compile(r'<meta property="og:image" content="([^"]+)">')


def test_a_board_and_its_systems_have_a_picture_that_changes_with_the_board(tmp_path: Path) -> None:
    with hosted(tmp_path, base_url="https://example.org") as board:
        board.accepted(document("Жук", 0.5, title="A <title> that is far too long for the line " * 3))
        page = board.client.get("/b/vocsim?over=subset:BC&q=zzz").text
        address = _PICTURE.search(page)[1].replace("&amp;", "&")  # type: ignore[index]
        assert address == "https://example.org/b/vocsim/preview.png?over=subset%3ABC"
        assert 'content="summary_large_image"' in page
        slug = board.store.submissions(limit=1)[0].systems[0]
        assert "/b/vocsim/preview.png" in board.client.get(f"/b/vocsim/s/{slug}").text
        parts = urlsplit(address)
        first = board.client.get(f"{parts.path}?{parts.query}")
        assert first.headers["content-type"] == "image/png"
        assert first.headers["access-control-allow-origin"] == "*"
        with Image.open(BytesIO(first.content)) as picture:
            assert (picture.format, picture.size) == ("PNG", SIZE)
            assert len(picture.convert("RGB").getcolors(100_000)) > 10  # something is drawn on it
        assert len(first.content) < 300_000
        board.accepted(document("other", 0.9))
        assert board.client.get("/b/vocsim/preview.png?over=subset:BC").content != first.content
        assert board.client.get("/b/nothing/preview.png").status_code == 404


def test_a_private_board_has_none(tmp_path: Path) -> None:
    with hosted(tmp_path) as board:
        board.accepted(document("mine", board="birds"))
        defined = board.store.definition("birds")
        host = next(user for user in board.store.users() if user.moderates)
        assert defined is not None
        board.store.define(replace(defined.definition, private=True, readers=("ada",)), host)
        board.client.app.state.context.snapshots.refresh()  # type: ignore[attr-defined]
        assert board.client.get("/b/birds/preview.png").status_code == 404


def test_a_frozen_copy_brings_its_pictures(tmp_path: Path) -> None:
    with hosted(tmp_path / "board") as board:
        board.accepted(document("mine", 0.5, board="birds"))
        board.accepted(document("other", 0.6, board="birds"))
        freeze(board.store, tmp_path / "site")
    pages = {path: _PICTURE.search(path.read_text("utf-8")) for path in (tmp_path / "site" / "b").rglob("*.html")}
    named = {path: found[1] for path, found in pages.items() if found}
    assert {path.name for path in named} >= {"index.html", "mine.html"}
    for path, picture in named.items():
        with Image.open(path.parent / picture) as drawn:
            assert drawn.size == SIZE
