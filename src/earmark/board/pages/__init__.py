"""The pages of the board: those that everybody reads, and those of authors and moderators.

    templates = page_templates("Earmark leaderboard")     one Jinja2 environment for all pages
    app.include_router(reading_pages(context))            board, system, compare, pareto, subset, analysis, about

Templates extend `layout.html` and fill the blocks `title`, `head`, `main` and `scripts`. They see `title` (of the
site), `version`, `asset("board.css")` (the address of a static file, which changes with its content) and what the page
passes: `here` (the current entry of the navigation) and, on pages made for one reader, `visitor`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from earmark._version import __version__
from earmark.board.pages.assets import asset

if TYPE_CHECKING:
    from fastapi.templating import Jinja2Templates

__all__ = ["page_templates"]


def page_templates(title: str, **more: object) -> Jinja2Templates:
    """The templates of `board/templates` with what all of them see; `more` are further names for them."""
    from fastapi.templating import Jinja2Templates
    from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

    environment = Environment(
        loader=PackageLoader("earmark.board", "templates"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.globals |= {
        "title": title,
        "version": __version__,
        "asset": asset,
        "here": "",
        "visitor": None,
        "frozen": "",
        **more,
    }
    return Jinja2Templates(env=environment)
