"""A frozen copy of a board: its reading pages as files in a folder, to keep, to cite, to put on any web space.

    write_static_site(Source(snapshots), Path("frozen"))

The pages are those of the server with relative links. Each metric of a board has its own page with all lines, which a
small script searches, filters and sorts; what needs a server (comparing, submitting, means of one's own) is left out,
and so are boards that not everybody finds.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import quote, unquote

from earmark.atomic import write_whole
from earmark.board.boards.analyses import Analysis, analysed, matrix_of
from earmark.board.boards.snapshots import Snapshots
from earmark.board.boards.subsets import metrics_on
from earmark.board.pages import assets
from earmark.board.pages.analyses import analysis_file, analysis_page
from earmark.board.pages.boards import Reader, Source, store_source
from earmark.board.pages.comparisons import pareto_file, pareto_page
from earmark.board.pages.definitions import about_page
from earmark.board.pages.pictures import board_picture
from earmark.board.pages.subsets import subset_file, subset_page, subsets_page
from earmark.board.pages.systems import system_file, system_page
from earmark.board.web.caching import Page
from earmark.errors import UsageError

if TYPE_CHECKING:
    from earmark.board.storage import Store

FrozenPage: TypeAlias = tuple[str, str, Callable[[], Page]]
"""Its address on a server, its place in the folder, and what makes it."""

_ALL = (("per", "all"), ("show", "domains"), ("show", "subsets"), ("show", "card"), ("show", "intervals"))
_OTHER_PAGES = ("index", "about", "pareto", "subsets", "analysis", "s")
"""What the folder of a board has beside the pages of its metrics."""
_FORMATS = ("csv", "tex", "json")
_LINK = re.compile(r'(\s(?:href|src)|property="og:image" content)="(/[^"]*)"')


def freeze(store: Store, folder: Path, *, title: str = "Earmark leaderboard") -> int:
    """The frozen copy of everything that a store shows; returns the number of files."""
    return write_static_site(store_source(store, Snapshots(store)), folder, title=title)


def write_static_site(
    source: Source, folder: Path, *, title: str = "Earmark leaderboard", day: str = "", analyse: bool = True
) -> int:
    """Write the pages of all boards into a folder that is empty or does not exist; returns the number of files.

    Boards without an analysis get one, which takes a while; `analyse=False` leaves it out.
    """
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(f"{folder} is not empty; a frozen copy is written into a new folder.")
    known = source.analysis
    made: dict[str, Analysis] = {}
    source = source._replace(analysis=lambda board: known(board) or made.get(board), analysis_current=lambda _: True)
    reader = Reader(source, assets.page_templates(title), frozen=day or datetime.now(UTC).date().isoformat())
    if analyse:
        made |= {board: analysed(matrix_of(source.boards.current(board))) for board in reader.listed()}
    pages = list(_pages(reader))
    files = {address: place for address, place, _ in pages}
    makers = {place: make for _, place, make in pages}
    for place, make in makers.items():
        page = make()
        data = _relative(page.body.decode(), place, files).encode() if place.endswith(".html") else page.body
        _write(folder / place, data)
    for name in assets.STATIC:
        file = assets.find_asset(name)
        assert file is not None
        _write(folder / "static" / name, file.body)
    return len(makers) + len(assets.STATIC)


def _pages(reader: Reader) -> Iterator[FrozenPage]:
    """Every page and file."""
    yield "/", "index.html", reader.boards
    for name in ("about", "rules"):
        yield f"/{name}", f"{name}.html", partial(reader.words, name)
    for board, folder in _names(reader.listed()).items():
        yield from _board_pages(reader, board, f"b/{folder}")


def _board_pages(reader: Reader, board: str, root: str) -> Iterator[FrozenPage]:
    snapshot = reader.source.boards.current(board)
    at, names = assets.board_address(board), _names(snapshot.metrics, _OTHER_PAGES)
    yield at, f"{root}/index.html", partial(reader.board, board, _ALL)
    yield f"{at}/preview.png", f"{root}/preview.png", partial(board_picture, reader, board)
    for metric in snapshot.metrics:
        items = (*_ALL, ("metric", metric))
        place = f"{root}/{'index' if metric == snapshot.metrics[0] else names[metric]}.html"
        yield f"{at}?metric={metric}", place, partial(reader.board, board, items)
        for kind in _FORMATS:
            file = partial(reader.board_file, board, items, kind)
            yield f"{at}/{metric}.{kind}", f"{root}/{names[metric]}.{kind}", file
        picture = partial(board_picture, reader, board, [("metric", metric)])
        yield f"{at}/preview.png?metric={quote(metric)}", f"{root}/{names[metric]}-preview.png", picture
    if not snapshot.metrics:
        return
    yield f"{at}/about", f"{root}/about.html", partial(about_page, reader, board)
    yield f"{at}/pareto", f"{root}/pareto.html", partial(pareto_page, reader, board, ())
    yield f"{at}/subsets", f"{root}/subsets.html", partial(subsets_page, reader, board)
    yield f"{at}/analysis", f"{root}/analysis.html", partial(analysis_page, reader, board)
    if reader.source.analysis(board) is not None:
        yield f"{at}/analysis.json", f"{root}/analysis.json", partial(analysis_file, reader, board)
    for kind in _FORMATS:
        yield f"{at}/pareto.{kind}", f"{root}/pareto.{kind}", partial(pareto_file, reader, board, (), kind)
    for subset, name in _names(each for metric in snapshot.metrics for each in snapshot.subsets(metric)).items():
        if not metrics_on(snapshot, subset):
            continue
        where, stem = assets.subset_address(board, subset), f"{root}/subsets/{name}"
        yield where, f"{stem}.html", partial(subset_page, reader, board, subset)
        for kind in _FORMATS:
            yield f"{where}.{kind}", f"{stem}.{kind}", partial(subset_file, reader, board, subset, (), kind)
    for place_of in sorted({line.system for line in snapshot.lines}):
        slug = snapshot.systems[place_of].slug
        where, stem = assets.system_address(board, slug), f"{root}/s/{slug}"
        yield where, f"{stem}.html", partial(system_page, reader, board, slug)
        for kind in ("csv", "json", "bib"):
            yield f"{where}.{kind}", f"{stem}.{kind}", partial(system_file, reader, board, slug, kind)


def _names(texts: Iterable[str], taken: Iterable[str] = ()) -> dict[str, str]:
    """Each text as a file of one folder may be called on every system: no separators, no reserved marks, not hidden.

    A name that had to be changed, or that differs from another or from those `taken` in capitals at most, carries a
    part of its hash, so that no two become one file.
    """
    names: dict[str, str] = {}
    used = {each.casefold() for each in taken}
    for text in dict.fromkeys(texts):
        wanted = text or "-"
        plain = re.sub(r'[\\/:*?"<>|%#\x00-\x1f]|^\.', "_", wanted)
        mark = hashlib.sha256(text.encode()).hexdigest()
        marked = (f"{plain}-{mark[:length]}" for length in range(6, len(mark) + 1))
        own = plain if plain == wanted and plain.casefold() not in used else ""
        names[text] = own or next(each for each in marked if each.casefold() not in used)
        used.add(names[text].casefold())
    return names


def _write(target: Path, data: bytes) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    write_whole(target, data)


def _relative(text: str, place: str, files: dict[str, str]) -> str:
    """A page whose links point at the files of the copy; links to pages that it does not have lose their target."""
    depth = len(PurePosixPath(place).parts) - 1
    up = "../" * depth

    def link(match: re.Match[str]) -> str:
        address = match[2].replace("&amp;", "&")
        path = address.partition("?")[0]
        if path.startswith("/static/"):
            return f'{match[1]}="{up}{path[1:]}"'
        target = files.get(address) or files.get(unquote(address)) or files.get(path)
        if target is None:
            return match[1].replace("href", "data-was").replace("src", "data-was") + f'="{match[2]}"'
        return f'{match[1]}="{up}{quote(target)}"'

    return _LINK.sub(link, text)
