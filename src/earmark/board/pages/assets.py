"""What pages are made of: templates, the files that they load, and the addresses that they link to.

Static files are style, scripts, the vendored htmx, and Plotly's script out of its own package. Their address holds a
hash of the content, so that browsers may keep a file for ever and still see every change.

Templates extend `layout.html` and fill the blocks `title`, `head`, `main` and `scripts`. They see `title` (of the
site), `version`, `asset("board.css")` (the address of a static file) and what the page passes: `here` (the current
entry of the navigation) and, on pages made for one reader, `visitor`.
"""

from __future__ import annotations

import gzip
import hashlib
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from earmark._version import __version__
from earmark.board.web.caching import Page
from earmark.errors import MissingExtra

if TYPE_CHECKING:
    from fastapi.templating import Jinja2Templates

_TYPES = {
    ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}  # fmt: skip
_PLOTLY = "plotly.min.js"
STATIC = (
    "board.css", "board.js", "figures.js", "mark.svg", "theme.js", "vendor/htmx-2.0.10.min.js",
    "vendor/htmx-LICENSE.txt", _PLOTLY,
)  # fmt: skip
"""The names of all files that pages may load."""


@cache
def find_asset(name: str) -> Page | None:
    """A file by its name; None for every name that is not in the list, so that no path leads anywhere else."""
    if name not in STATIC:
        return None
    if name == _PLOTLY:
        package = find_spec("plotly")  # its script is a file: nothing of it has to be imported
        if package is None or package.origin is None:
            raise MissingExtra("Figures of the leaderboard", "board")
        content = (Path(package.origin).parent / "package_data" / "plotly.min.js").read_bytes()
    else:
        content = (files("earmark.board") / "static" / name).read_bytes()
    compressed = gzip.compress(content, 6, mtime=0) if len(content) > 1000 else b""
    digest = hashlib.sha256(content).hexdigest()[:12]
    return Page(content, _TYPES[Path(name).suffix], {}, compressed, f'"{digest}"')


@cache
def asset(name: str) -> str:
    """The address of a file: "/static/board.css?v=1a2b3c4d5e6f"."""
    file = find_asset(name)
    if file is None:
        raise LookupError(f"there is no static file {name!r}")
    return f"/static/{name}?v=" + file.tag.strip('"')


def page_templates(title: str, **more: object) -> Jinja2Templates:
    """The templates of `board/templates` with what all of them see; `more` are further names for them."""
    from fastapi.templating import Jinja2Templates
    from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

    environment = Environment(
        loader=PackageLoader("earmark.board", "templates"),
        autoescape=select_autoescape(default=True, default_for_string=True), undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, auto_reload=False,
    )  # fmt: skip
    shared = {
        "title": title,
        "version": __version__,
        "asset": asset,
        "here": "",
        "visitor": None,
        "frozen": "",
        "blind": False,
    }
    environment.globals |= {**shared, **more}
    return Jinja2Templates(env=environment)


def board_address(board: str) -> str:
    return f"/b/{quote(board, safe='')}"


def system_address(board: str, slug: str) -> str:
    return f"{board_address(board)}/s/{quote(slug, safe='')}"


def subset_address(board: str, subset: str) -> str:
    """The page of a subset; the one without a name, which stands for all clips, is "-"."""
    return f"{board_address(board)}/subsets/{quote(subset or '-', safe='')}"
