"""One look for every figure, and figures as text for a page.

Four colours are not fixed but follow the page: ink, muted, grid and paper. On their own, figures have the light
ones; inside a page `as_svg` replaces them by CSS variables, so one drawing is legible on light and dark paper. All
other colours are mid-tones that stand out on both, and are told apart by readers who confuse red and green.
"""

from __future__ import annotations

import hashlib
import html
import io
import logging
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from earmark.atomic import write_whole
from earmark.errors import InputError, require
from earmark.places import locate
from earmark.report.metric_text import facts, title
from earmark.tables import plain

INK, MUTED, GRID, PAPER = "#1b2733", "#5f6c78", "#d5dbe1", "#fffffe"
_FOLLOW = {INK: "var(--ink)", MUTED: "var(--muted)", GRID: "var(--grid)", PAPER: "var(--paper)"}

COLOURS = ("#2b83c4", "#e08a00", "#12997c", "#cf5a1f", "#c06aa0", "#4fb0e0", "#8a78d8")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
SCALE = "cividis"
FONTS = ["DejaVu Sans", "Verdana", "sans-serif"]

_SETTINGS = {
    "font.family": "sans-serif",
    "font.sans-serif": FONTS,
    "font.size": 8.5,
    "axes.titlesize": 9.5,
    "axes.labelsize": 8.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.facecolor": "none",
    "figure.facecolor": PAPER,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "legend.frameon": False,
    "legend.fontsize": 8.0,
    "lines.linewidth": 1.3,
    "savefig.dpi": 150,
    "svg.fonttype": "none",
    "text.color": INK,
    "text.parse_math": False,
    "xtick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.color": MUTED,
    "ytick.labelcolor": INK,
}


def library(module: str = "matplotlib") -> Any:
    """matplotlib, or one sentence that says what to install."""
    return require(module, "Figures", "plots")


@contextmanager
def look() -> Iterator[None]:
    """Draw with Earmark's settings; the caller's are back afterwards. A missing glyph is no reason to speak."""
    fonts = logging.getLogger("matplotlib.font_manager")
    level = fonts.level
    with library().rc_context(_SETTINGS), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        fonts.setLevel(logging.ERROR)
        try:
            yield
        finally:
            fonts.setLevel(level)


def new_figure(width: float, height: float) -> Any:
    """An empty figure of so many inches that needs no window system and no pyplot."""
    library()
    return require("matplotlib.figure", "Figures", "plots").Figure(figsize=(width, height), layout="constrained")


def name_of(text: str, most: int = 28) -> str:
    """A label as it may stand in a figure: one line, of bounded length, with no mathematics in it."""
    return plain(text, most).replace("$", "\N{FULLWIDTH DOLLAR SIGN}")


def names_of(texts: Sequence[str], most: int = 28) -> list[str]:
    """Labels of bounded length that stay different: where cutting makes two equal, they lose the start they share."""
    cut = [name_of(text, most) for text in texts]
    if len(set(cut)) == len(set(texts)):
        return cut
    alike = [text for text, short in zip(texts, cut, strict=True) if cut.count(short) > 1]
    first, last = min(alike), max(alike)
    shared = next((place for place, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), 0)
    return [
        short if cut.count(short) == 1 else name_of(f"…{text[shared:]}", most)
        for text, short in zip(texts, cut, strict=True)
    ]


def axis_title(metric: str) -> str:
    """What people call a metric, with its unit: `word error rate (%)`."""
    return f"{title(metric)} (%)" if facts(metric).percent else title(metric)


def nothing(what: str) -> InputError:
    return InputError(f"The score table has no value to draw as {what}.")


def class_styles(classes: Sequence[str]) -> list[tuple[str, str]]:
    """A colour and a marker for each class: every pair once, colours first."""
    count = len(COLOURS)
    return [(COLOURS[n % count], MARKERS[(n // count) % len(MARKERS)]) for n in range(len(classes))]


def ink_on(red: float, green: float, blue: float) -> str:
    """Black or white, whichever is read better on the colour."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (red, green, blue)]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#000000" if luminance > 0.18 else "#ffffff"


def style_of(place: int) -> tuple[str, str]:
    """The colour and the marker of the n-th line of a figure: neighbours differ in both."""
    return COLOURS[place % len(COLOURS)], MARKERS[place % len(MARKERS)]


def looks(names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """A colour and a marker for each name: every pair once, neighbours differ in both."""
    return {name: (style_of(place)[0], style_of(place + place // len(COLOURS))[1]) for place, name in enumerate(names)}


# --- parts that figures share ---------------------------------------------------------------------------------------


def grid(axes: Any, axis: str = "y") -> None:
    """Thin lines behind everything."""
    axes.grid(axis=axis)
    axes.set_axisbelow(True)


def bare(axes: Any) -> None:
    """No ticks and no frame: a map of cells, or a map of points."""
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def name_lines(axes: Any, names: Sequence[str]) -> None:
    """A line of the figure for each name, the first at the top."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)


def name_columns(axes: Any, names: Sequence[str], *, longest: int, rotation: float) -> None:
    """Names above the columns of a map, slanted where one is longer than `longest`."""
    axes.set_xticks(range(len(names)), [name_of(name, 16) for name in names])
    axes.xaxis.tick_top()
    if max(map(len, names)) > longest:
        axes.tick_params(axis="x", rotation=rotation)
        for label in axes.get_xticklabels():
            label.set_ha("left")


def write_cell(axes: Any, column: int, row: int, text: str, colour: Any, **font: Any) -> None:
    """Text in the middle of a cell, in the ink that is read best on its colour."""
    axes.text(column, row, text, ha="center", va="center", color=ink_on(*colour[:3]), **font)


def frame_cell(axes: Any, column: int, row: int, width: float, height: float, linewidth: float) -> None:
    """A frame of so many cells around the middle of a cell."""
    corner = column - width / 2, row - height / 2
    box = library("matplotlib.patches").Rectangle(
        corner, width, height, fill=False, edgecolor=COLOURS[1], linewidth=linewidth
    )
    axes.add_patch(box)


def colour_bar(
    figure: Any, image: Any, axes: Any, label: str, form: Callable[[float, Any], str] | None = None, **room: Any
) -> None:
    """What the colours of an image mean."""
    bar = figure.colorbar(image, ax=axes, **room)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0)
    if form is not None:
        bar.ax.yaxis.set_major_formatter(form)
    bar.set_label(label)


# --- files and pages ------------------------------------------------------------------------------------------------


def save(figure: Any, path: str) -> None:
    """Write a figure by its suffix: .png, .svg or .pdf. The same figure gives the same bytes."""
    suffix = path.rsplit(".", 1)[-1].lower()
    if suffix not in ("png", "svg", "pdf"):
        raise InputError(f"{path}: a figure is written as .png, .svg or .pdf; choose one of these suffixes.")
    out = io.BytesIO()
    dated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(suffix, {"Software": None})
    with look(), library().rc_context({"svg.hashsalt": "earmark"}):
        figure.savefig(out, format=suffix, metadata=dated)
    write_whole(locate(path), out.getvalue())


def as_svg(figure: Any, name: str, description: str, dpi: int = 110) -> str:
    """The figure as an `<svg>` element for a page: no prologue, no addresses, ids of its own, the page's colours."""
    salt = hashlib.sha256(name.encode()).hexdigest()[:8]
    out = io.StringIO()
    with look(), library().rc_context({"svg.hashsalt": salt}):
        figure.savefig(out, format="svg", transparent=True, dpi=dpi, metadata={"Date": None})
    text = out.getvalue()
    body = text[text.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.S)
    box = re.search(r'viewBox="([^"]*)"', body)
    view = box[1] if box else "0 0 100 100"
    label, width = html.escape(plain(description)), round(float(view.split()[2]) * 4 / 3)
    opening = f'<svg viewBox="{view}" role="img" aria-label="{label}" style="max-width:{width}px">'
    body = re.sub(r"<svg[^>]*>", lambda _: opening, body, count=1)
    body = _own_ids(re.sub(r">\s+<", "><", body), f"f{salt}")
    for fixed, variable in _FOLLOW.items():
        body = body.replace(fixed, variable)
    return body


def _own_ids(body: str, prefix: str) -> str:
    """Keep the ids that are referred to, with a prefix: two figures on a page must not share one."""
    used = set(re.findall(r'href="#([^"]+)"', body)) | set(re.findall(r"url\(#([^)]+)\)", body))
    body = re.sub(r' id="([^"]+)"', lambda found: f' id="{prefix}-{found[1]}"' if found[1] in used else "", body)
    body = re.sub(r'(?:xlink:)?href="#([^"]+)"', rf'href="#{prefix}-\1"', body)
    body = body.replace("xlink:href", "href")
    return re.sub(r"url\(#([^)]+)\)", rf"url(#{prefix}-\1)", body)
