"""Figures of single clips and classes: the map, the confusion matrix, the spectrogram."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from earmark.report._neighbours import Confusions, most_confused
from earmark.report._projection import Projection
from earmark.report._projection import project as _project
from earmark.report.excerpts import Excerpt
from earmark.report.figures import style

MOST_COLOURS = 28
MOST_NAMES = 28
MOST_CLASSES = 30
RASTER = 700
"""Above this many points the dots of a map are an image: a page of circles is slow to open."""

_WRONG = "#e5323f"
_FLOOR = 70.0  # dB
_BANDS = 96
_COLUMNS = 260


def projection(
    vectors: ArrayLike | Projection,
    labels: Sequence[str | None],
    *,
    distance: str = "euclidean",
    seed: int = 0,
    wrong: Sequence[bool] | None = None,
) -> Any:
    """A map of clips coloured by class, class names at their middles; `wrong` clips get a dark rim.

    Beyond 28 classes the largest are coloured and the rest is grey.
    """
    found = vectors if isinstance(vectors, Projection) else _project(vectors, seed, distance=distance)
    with style.look():
        figure = style.new_figure(5.4, 4.9)
        _draw_map(figure.add_subplot(), found, labels, wrong)
    return figure


def maps(found: Sequence[Projection], labels: Sequence[str | None], wrong: Sequence[bool] | None = None) -> Any:
    """Maps of the same clips side by side, each with its method as title, and the classes below."""
    with style.look():
        figure = style.new_figure(4.6 * len(found), 5.1)
        for axes, one in zip(figure.subplots(1, len(found), squeeze=False)[0], found, strict=True):
            styles = _draw_map(axes, one, labels, wrong)
            axes.set_title(one.method, loc="left")
        line = style.library("matplotlib.lines").Line2D
        handles = [
            line([], [], color=colour, marker=marker, linestyle="none", label=style.name_of(name, 18))
            for name, (colour, marker) in styles.items()
        ]
        if handles:
            figure.legend(
                handles=handles, loc="outside lower center", ncols=min(7, 3 * len(found)), fontsize=7.5,
                handletextpad=0.2, columnspacing=1.0,
            )  # fmt: skip
    return figure


def _draw_map(
    axes: Any, found: Projection, labels: Sequence[str | None], wrong: Sequence[bool] | None
) -> dict[str, tuple[str, str]]:
    """The dots and the names of the largest classes; the colour and marker of those that have some."""
    names = [str(labels[row] or "") for row in found.rows]
    sizes = Counter(name for name in names if name)
    chosen = sorted(name for name, _ in sizes.most_common(MOST_COLOURS))
    styles = dict(zip(chosen, style.class_styles(chosen), strict=True))
    extent = float(np.ptp(found.points, axis=0).max(initial=0.0))
    points = (found.points - found.points.mean(axis=0)) / (extent if extent > 0 else 1.0)
    rims = np.zeros(len(names), bool) if wrong is None else np.asarray(wrong, bool)[found.rows]
    size, wide = (26, 1.5) if len(names) <= 400 else (16, 0.7) if len(names) <= 1000 else (9, 0.7)
    for name in ["", *chosen]:
        mine = np.array([(one if one in styles else "") == name for one in names])
        colour, marker = styles.get(name, (style.MUTED, "."))
        for rim in (False, True):
            picked = points[mine & (rims == rim)]
            if len(picked):
                axes.scatter(
                    *picked.T, s=size, c=colour, marker=marker, rasterized=len(names) > RASTER,
                    linewidths=wide if rim else 0.3, edgecolors=_WRONG if rim else style.PAPER, alpha=0.9,
                    zorder=3 if rim else 2,
                )  # fmt: skip
    _class_names(axes, points, names, [name for name, _ in sizes.most_common(MOST_NAMES)])
    axes.set_xticks([])
    axes.set_yticks([])
    style.bare(axes)
    axes.margins(0.06)
    axes.set_aspect("equal", adjustable="datalim")
    return styles


def _class_names(axes: Any, points: Any, names: list[str], shown: list[str]) -> None:
    """Names at the medians of their classes, the largest first; one that would cover another is left out."""
    taken: list[tuple[float, float, float]] = []
    for name in shown:
        mine = points[[one == name for one in names]]
        middle = np.median(mine, axis=0)
        x, y = mine[np.argmin(((mine - middle) ** 2).sum(axis=1))]
        half = 0.011 * len(style.name_of(name, 18)) + 0.01
        if any(abs(x - a) < half + b and abs(y - c) < 0.034 for a, c, b in taken):
            continue
        taken.append((x, y, half))
        box = {"boxstyle": "round,pad=0.15", "facecolor": style.PAPER, "edgecolor": "none", "alpha": 0.75}
        axes.text(x, y, style.name_of(name, 18), fontsize=7.5, ha="center", va="center", bbox=box, zorder=4)


# --- the confusion matrix -----------------------------------------------------------------------------------------


def confusion(found: Confusions, most: int = MOST_CLASSES) -> Any:
    """Rows: the class of a clip. Columns: the class of its nearest neighbour. In percent of the row.

    Classes that are taken for each other stand side by side; beyond `most`, the most confused ones are shown.
    """
    shown = most_confused(found, most)
    totals = dict(zip(found.classes, found.sizes, strict=True))
    sizes = np.array([max(int(totals[name]), 1) for name in shown.classes])
    share = shown.counts / sizes[:, None]
    n = len(shown.classes)
    side = min(max(2.2 + 0.24 * n, 3.4), 8.0)
    with style.look():
        figure = style.new_figure(side + 0.4, side)
        axes = figure.add_subplot()
        diagonal = np.eye(n, dtype=bool)
        # Right answers in grey-blue, wrong ones in orange: the eye should go to what is off the diagonal.
        axes.imshow(_tinted(share, diagonal))
        for i, j in zip(*np.nonzero(shown.counts), strict=True):
            if n <= 16 or (i != j and share[i, j] >= 0.1 and n <= 24):
                axes.text(j, i, f"{100 * share[i, j]:.0f}", ha="center", va="center", fontsize=7, color=style.INK)
        labels = [style.name_of(name, 16) for name in shown.classes]
        axes.set_xticks(range(n), labels, rotation=60, ha="right", rotation_mode="anchor")
        axes.set_yticks(range(n), labels)
        axes.tick_params(length=0, labelsize=8 if n <= 20 else 6.5)
        axes.set_xlabel("its nearest neighbour is")
        axes.set_ylabel("a clip of")
        axes.set_xticks(np.arange(n + 1) - 0.5, minor=True)
        axes.set_yticks(np.arange(n + 1) - 0.5, minor=True)
        axes.grid(which="minor")
        axes.tick_params(which="minor", length=0)
        axes.spines[:].set_visible(False)
    return figure


def _tinted(share: Any, diagonal: Any) -> Any:
    colours = style.library("matplotlib.colors")
    right, wrong = colours.to_rgb(style.COLOURS[0]), colours.to_rgb(style.COLOURS[3])
    image = np.zeros((*share.shape, 4))
    image[..., :3] = np.where(diagonal[..., None], right, wrong)
    image[..., 3] = np.where(share > 0, 0.32 + 0.45 * np.clip(share, 0, 1), 0.0)
    return image


# --- excerpts ---------------------------------------------------------------------------------------------------------


def excerpts(pairs: Sequence[Sequence[Excerpt]]) -> Any:
    """A row for each pair of clips, with one time axis: spectrograms of 70 dB."""
    with style.look():
        figure = style.new_figure(7.4, 1.75 * len(pairs) + 0.2)
        panels = figure.subplots(len(pairs), 2, sharey="row", sharex="row", squeeze=False)
        for row, pair in zip(panels, pairs, strict=True):
            longest = max(len(one.samples) / one.rate for one in pair)
            for axes, one in zip(row, pair, strict=True):
                levels, end, top = spectrogram_levels(one.samples, one.rate, None)
                axes.imshow(
                    levels, origin="lower", aspect="auto", cmap="magma", vmin=0, vmax=_FLOOR, extent=(0, end, 0, top),
                    interpolation="nearest",
                )  # fmt: skip
                axes.set_xlim(0, longest)
                axes.set_title(one.title, loc="left")
                axes.set_facecolor(style.library().colormaps["magma"](0.0))
                axes.yaxis.set_major_formatter(lambda value, _: f"{value / 1000:g}")
            row[0].set_ylabel("kHz")
        for axes in panels[-1]:
            axes.set_xlabel("s")
    return figure


# --- the spectrogram ----------------------------------------------------------------------------------------------


def spectrogram_levels(samples: NDArray[Any], rate: int, seconds: float | None) -> tuple[Any, float, float]:
    """Levels [bands, columns] in dB above the floor, the time they end at, and the highest frequency."""
    mono = np.asarray(samples, np.float64).ravel()
    end = max(seconds or 0.0, len(mono) / rate)
    # A window of a twelfth of the sound, 6 to 24 ms: syllables need times, utterances need harmonics.
    size = 64
    while size < min(max(end / 12, 0.006), 0.024) * rate and size < 4096:
        size *= 2
    length = max(size, 512)
    hop = max(1, int(end * rate) // _COLUMNS)
    mono = np.pad(mono, (size // 2, size // 2 + max(0, int(end * rate) - len(mono))))
    frames = np.lib.stride_tricks.sliding_window_view(mono, size)[::hop]
    power = np.abs(np.fft.rfft(frames * np.hanning(size), length, axis=1)).T ** 2
    edges = np.linspace(0, len(power), min(_BANDS, len(power)) + 1).astype(int)
    bands = np.maximum.reduceat(power, edges[:-1], axis=0)
    levels = 10.0 * np.log10(np.maximum(bands, 1e-20))
    return np.maximum(levels - levels.max() + _FLOOR, 0.0), end, rate / 2


def spectrogram_png(samples: NDArray[Any], rate: int, seconds: float | None = None) -> bytes:
    """The bare picture of a spectrogram, 64 colours, low frequencies at the bottom."""
    image = style.library("PIL.Image")
    levels, _, _ = spectrogram_levels(samples, rate, seconds)
    steps = np.round(levels[::-1] / _FLOOR * 63).astype(np.uint8)
    colours = np.round(style.library().colormaps["magma"](np.linspace(0, 1, 64))[:, :3] * 255).astype(np.uint8)
    picture = image.fromarray(steps).convert("L")
    picture.putpalette(colours.ravel().tolist())
    out = io.BytesIO()
    picture.save(out, "PNG", optimize=True)
    return out.getvalue()
