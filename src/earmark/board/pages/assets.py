"""The files that pages load: style, scripts, the vendored htmx, and Plotly's script out of its own package.

An address holds a hash of the content, so that browsers may keep a file for ever and still see every change.
"""

from __future__ import annotations

import gzip
import hashlib
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from earmark.errors import MissingExtra

__all__ = ["Asset", "asset", "find_asset", "local_files"]

_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
PLOTLY = "plotly.min.js"
_OURS = (
    "board.css",
    "board.js",
    "figures.js",
    "mark.svg",
    "theme.js",
    "vendor/htmx-2.0.10.min.js",
    "vendor/htmx-LICENSE.txt",
)


class Asset(NamedTuple):
    """A file as it is sent."""

    content: bytes
    compressed: bytes
    media_type: str
    digest: str


def local_files() -> tuple[str, ...]:
    """The names of all files that pages may load."""
    return (*_OURS, PLOTLY)


@cache
def find_asset(name: str) -> Asset | None:
    """A file by its name; None for every name that is not in the list, so that no path leads anywhere else."""
    if name == PLOTLY:
        package = find_spec("plotly")  # its script is a file: nothing of it has to be imported
        if package is None or package.origin is None:
            raise MissingExtra("Figures of the leaderboard", "board")
        content = (Path(package.origin).parent / "package_data" / "plotly.min.js").read_bytes()
    elif name in _OURS:
        content = (files("earmark.board") / "static" / name).read_bytes()
    else:
        return None
    media_type = _TYPES["." + name.rsplit(".", 1)[-1]]
    return Asset(content, gzip.compress(content, 6, mtime=0), media_type, hashlib.sha256(content).hexdigest()[:12])


@cache
def asset(name: str) -> str:
    """The address of a file: "/static/board.css?v=1a2b3c4d5e6f"."""
    found = find_asset(name)
    if found is None:
        raise LookupError(f"there is no static file {name!r}")
    return f"/static/{name}?v={found.digest}"
