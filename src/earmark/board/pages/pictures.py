"""The picture that other sites show beside a link to a board: its title, and its first systems with their intervals.

A PNG of 1200 × 630 pixels, since sites that preview links read no SVG.
"""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from earmark.board.boards.lines import TableRow
from earmark.board.boards.snapshot import Snapshot
from earmark.board.boards.table import TablePage, table
from earmark.board.boards.view import BoardView
from earmark.board.pages.boards import Items, Reader
from earmark.board.pages.outlets import open_board
from earmark.board.pages.previews import TABLE_ITEMS
from earmark.board.pages.summaries import rank_interval, told_apart
from earmark.board.web.caching import Page, packed
from earmark.board.web.sharing import PICTURE_POLICY
from earmark.report.metric_text import number
from earmark.scores import Metric
from earmark.tables import plain

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw

SIZE = (1200, 630)
_SYSTEMS = 5
_SECONDS = 600
_EDGE, _TOP, _STEP = 64, 222, 64
_NAMES, _BARS, _BAR_LENGTH = 150, 640, 330
_PAPER, _INK, _SOFT, _BAR, _BEST, _LINE = "#ffffff", "#16202a", "#4d5b68", "#8fb3d4", "#2f7d68", "#16202a"


def board_picture(reader: Reader, board: str, items: Items = ()) -> Page:
    """The picture of a table of a board."""
    snapshot = open_board(reader, board)
    view = BoardView.parse(snapshot, [item for item in items if item[0] in TABLE_ITEMS])
    shown = table(snapshot, view) if view.metric else None
    headers = {"cache-control": f"public, max-age={_SECONDS}", "content-security-policy": PICTURE_POLICY}
    return packed(_drawn(reader.site_title, snapshot, shown), "image/png", headers)


def _drawn(site: str, snapshot: Snapshot, shown: TablePage | None) -> bytes:
    from PIL import Image, ImageDraw

    image = Image.new("RGB", SIZE, _PAPER)
    draw = ImageDraw.Draw(image)
    width = SIZE[0] - 2 * _EDGE
    draw.rectangle((0, 0, SIZE[0], 12), fill=_BEST)
    _write(draw, (_EDGE, 44), snapshot.definition.heading, 56, _INK, width, bold=True)
    if shown is None:
        _write(draw, (_EDGE, 140), snapshot.definition.summary or "No accepted scores yet.", 28, _SOFT, width)
    else:
        known = snapshot.definition.facts(shown.field.metric)
        way = "higher" if known.higher_is_better else "lower"
        words = f"{shown.field.metric}{' (%)' if known.percent else ''}, {shown.field.group.words}, {way} is better"
        _write(draw, (_EDGE, 132), words, 28, _SOFT, width)
        rows = [row for row in shown.rows if row.rank][:_SYSTEMS]
        _write(draw, (_EDGE, 174), "" if rows else "Nobody is ranked yet.", 28, _SOFT, width)
        scale = _Scale(rows)
        for place, row in enumerate(rows):
            _draw_row(draw, _TOP + place * _STEP, row, scale, known)
        _write(draw, (_EDGE, 560), told_apart(shown), 28, _INK, width - 330)
    _write(draw, (SIZE[0] - _EDGE, 562), site, 24, _SOFT, 310, right=True)
    file = BytesIO()
    image.save(file, "PNG", optimize=True)
    return file.getvalue()


class _Scale:
    """From values to pixels: from 0, or the least end of an interval below it, to the largest end."""

    def __init__(self, rows: list[TableRow]) -> None:
        ends = [end for row in rows for end in row.cells[0][:3] if end is not None]
        self._least, self._most = min([0.0, *ends]), max([0.0, *ends])

    def __call__(self, value: float) -> float:
        return _BARS + _BAR_LENGTH * (value - self._least) / ((self._most - self._least) or 1.0)


def _draw_row(draw: ImageDraw, top: int, row: TableRow, scale: _Scale, known: Metric) -> None:
    card, cell = row.system.card, row.cells[0]
    _write(draw, (_EDGE, top + 6), str(row.rank), 28, _INK, 60, bold=True)
    if row.rank_low:
        _write(draw, (_EDGE, top + 38), rank_interval(row.rank_low, row.rank_high), 17, _SOFT, 80)
    _write(draw, (_NAMES, top + 6), card.title or card.name, 28, _INK, _BARS - _NAMES - 24)
    if cell.value is None:
        return
    ends = sorted((scale(0.0), scale(cell.value)))
    draw.rectangle((ends[0], top + 8, ends[1], top + 40), fill=_BEST if row.tier == 1 else _BAR)
    if cell.low is not None and cell.high is not None:
        left, right = scale(cell.low), scale(cell.high)
        draw.line((left, top + 24, right, top + 24), fill=_LINE, width=3)
        for end in (left, right):
            draw.line((end, top + 16, end, top + 32), fill=_LINE, width=3)
    _write(draw, (SIZE[0] - _EDGE, top + 6), number(cell.value, known), 28, _INK, 150, bold=True, right=True)


def _write(
    draw: ImageDraw, at: tuple[int, int], text: str, size: int, colour: str, most: int, *, bold: bool = False,
    right: bool = False,
) -> None:  # fmt: skip
    """A line of text that is cut where it would be longer than `most` pixels; `right`: it ends at the place."""
    font, text = _font(size, bold), plain(text, 200)
    if font.getlength(text) > most:
        while text and font.getlength(f"{text}…") > most:
            text = text[:-1]
        text = f"{text.rstrip()}…"
    draw.text(at, text, fill=colour, font=font, anchor="ra" if right else "la")


@lru_cache(32)
def _font(size: int, bold: bool) -> Any:
    """DejaVu, which has most scripts, where matplotlib or the system brings it; else Pillow's own, which is Latin."""
    from PIL import ImageFont

    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    spec = find_spec("matplotlib")
    packaged = str(Path(spec.origin).parent / "mpl-data" / "fonts" / "ttf" / name) if spec and spec.origin else name
    for file in (packaged, name):  # a bare name is looked for where the system keeps its fonts
        with suppress(OSError):
            return ImageFont.truetype(file, size)
    return ImageFont.load_default(size)
