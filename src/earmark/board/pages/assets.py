"""What pages are made of: templates, the files that they load, and the addresses that they link to.

Static files are style, scripts and the vendored htmx. Their address holds a hash of the content, so that browsers may
keep a file for ever and still see every change.

Templates extend `layout.html` and fill the blocks `title`, `head`, `main` and `scripts`. They see `title` (of the
site), `version`, `asset("board.css")` (the address of a static file) and what the page passes: `here` (the current
entry of the navigation) and, on pages made for one reader, `visitor`.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from markupsafe import Markup, escape

from earmark._version import __version__
from earmark.board.web.caching import Page
from earmark.board.web.under_path import with_path

if TYPE_CHECKING:
    from fastapi.templating import Jinja2Templates

_TYPES = {
    ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}  # fmt: skip
STATIC = (
    "board.css", "board.js", "figures.css", "figures.js", "frozen.js", "mark.svg", "theme.js",
    "vendor/htmx-2.0.10.min.js", "vendor/htmx-LICENSE.txt",
)  # fmt: skip
"""The names of all files that pages may load."""


@cache
def find_asset(name: str) -> Page | None:
    """A file by its name; None for every name that is not in the list, so that no path leads anywhere else."""
    if name not in STATIC:
        return None
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


def page_templates(title: str, *, path: str = "", **more: object) -> Jinja2Templates:
    """The templates of `board/templates` with what all of them see; `more` are further names for them.

    `path`: where on its host the board lies, when it does not have the host to itself.
    """
    from fastapi.templating import Jinja2Templates
    from jinja2 import Environment, PackageLoader, StrictUndefined, Template, select_autoescape

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
        "host_texts": dict,
    }
    environment.globals |= {**shared, **more, "option_tags": option_tags}
    if path:

        class UnderPathTemplate(Template):
            def render(self, *values: Any, **named: Any) -> str:
                return with_path(super().render(*values, **named), path)

        environment.template_class = UnderPathTemplate
    return Jinja2Templates(env=environment)


def read_templates(templates: Jinja2Templates) -> None:
    """Read every template once: the first reader of a kind of page would wait for it."""
    for name in templates.env.list_templates(extensions=["html"]):
        templates.env.get_template(name)


def board_address(board: str) -> str:
    return f"/b/{quote(board, safe='')}"


def system_address(board: str, slug: str) -> str:
    return f"{board_address(board)}/s/{quote(slug, safe='')}"


def subset_address(board: str, subset: str) -> str:
    """The page of a subset; the one without a name, which stands for all clips, is "-"."""
    return f"{board_address(board)}/subsets/{quote(subset or '-', safe='')}"


def option_tags(options: Iterable[tuple[str, str]], current: str) -> Markup:
    """The choices of a `<select>`, of which a board has hundreds: written here, a template takes ten times as long."""
    return Markup(
        "".join(
            f'<option value="{escape(value)}"{" selected" if value == current else ""}>{escape(words)}</option>\n'
            for value, words in options
        )
    )
