"""The shell of every page: one HTML file that needs nothing else, on any screen or on paper."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path

from earmark.atomic import write_whole
from earmark.errors import InputError
from earmark.tables.html import Child, Html, tag, trusted


def whole_page(
    title: str, version: str, *body: Child | Iterable[Child], sounds: bool = True, media: str = "data:",
    styles: Sequence[str] = ("report.css",), scripts: Sequence[str] = ("report.js",),
) -> str:  # fmt: skip
    """The text of a page with Earmark's style and script in it; without `sounds` the browser plays none.

    `media` says where sounds may come from, as a content security policy has it; `styles` and `scripts` name templates.
    """
    templates = files("earmark.report") / "templates"
    style, script = (
        "".join((templates / name).read_text(encoding="utf-8") for name in names) for names in (styles, scripts)
    )
    # The browser's own guarantee: nothing is fetched, and no script runs but ours.
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; img-src data:; {f'media-src {media}; ' * sounds}style-src 'unsafe-inline'; "
        f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="generator", content=f"Earmark {version}".strip()),
        tag("title", title),
        tag("style", trusted(style)),
    )
    page = tag("html", head, tag("body", tag("main", *body), tag("script", trusted(script))), lang="en")
    return f"<!doctype html>\n{page}\n"


def footer(version: str) -> Html:
    by = f"Written by Earmark {version}".strip()
    return tag("footer", f"{by}. This file holds everything it shows and loads nothing from a network.")


def write_page(text: str, path: Path) -> None:
    """Write a page. Another process sees the old file or the whole new one, never a part."""
    try:
        write_whole(path, text.encode("utf-8", "replace"))
    except FileNotFoundError as error:
        raise InputError(f"{path}: the folder {path.parent} does not exist; create it first.") from error
    except OSError as error:
        raise InputError(f"{path} cannot be written ({error.strerror}); choose another place.") from error
