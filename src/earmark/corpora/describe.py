"""What a corpus is made of, as in the VocSim paper's Table 1: clips, classes, durations, dynamic range.

Dynamic range index (DRI, dB) of a clip: frames of 30 ms every 15 ms at 16 kHz; mean power of the frames at or above
the 80th percentile over mean power of those at or below the 20th; 10·log10, floored at 0. Powers are floored at
-120 dB, so that digital silence gives a number. A clip shorter than two frames has 0 dB. A subset's DRI is the mean
over its clips.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from earmark.corpora._passes import each
from earmark.corpora.clips import Clip, Corpus
from earmark.corpora.copies import CopySet, find_copies
from earmark.errors import EarmarkError, InputError, UsageError, require
from earmark.tables import MISSING, aligned
from earmark.wording import counted, first_of

RATE = 16_000
_FRAME, _HOP = 480, 240
_SILENCE = 1e-12
_NAMED = 5  # sets of copies, and clips that cannot be read, that are named
_UNLIKE = 10  # a length so many times the median, or the median so many times a length, is worth a line
_BLUE, _SAND = "#4477AA", "#CCBB44"


@dataclass(frozen=True)
class SubsetStatistics:
    """One row of the table. Seconds and DRI are None when no clip could be read, DRI also when it was not asked for."""

    subset: str
    clips: int
    classes: int
    per_class: float
    smallest: int
    largest: int
    groups: int
    unlabelled: int
    unreadable: int
    seconds: float | None
    shortest: float | None
    longest: float | None
    total_seconds: float
    dri: float | None
    copies: int = 0  # clips that are the same sound as another clip of the subset
    under_several_labels: int = 0  # sounds that stand under more than one label


class Description(NamedTuple):
    """Statistics by subset, what a figure needs, why clips could not be read ((id, reason) pairs), and copies."""

    rows: list[SubsetStatistics]
    class_sizes: dict[str, list[int]]
    durations: dict[str, list[float]]
    unreadable: list[tuple[str, str]]
    copies: dict[str, list[CopySet]]

    def as_dicts(self) -> list[dict[str, Any]]:
        return [asdict(row) for row in self.rows]


class _Measured(NamedTuple):
    clip: Clip
    seconds: float
    dri: float | None
    digest: str


def describe(corpus: Corpus, *, dri: bool = True, threads: int | None = None, progress: bool = False) -> Description:
    """Measure every clip. Without `dri` hardly a clip is decoded. Clips that cannot be read are counted, not fatal."""

    def measure(clip: Clip) -> _Measured:
        if not dri:
            return _Measured(clip, clip.seconds(), None, clip.digest())
        samples, rate = clip.read(RATE)
        return _Measured(clip, len(samples) / rate, dynamic_range_index(samples), clip.digest())

    subsets = corpus.subsets()
    measured: dict[str, list[_Measured]] = {name: [] for name in subsets}
    unreadable: list[tuple[str, str]] = []
    for clip, result in each(corpus.clips, measure, threads=threads, progress="describe" if progress else ""):
        if isinstance(result, EarmarkError):
            unreadable.append((clip.id, str(result)))
        else:
            measured[clip.subset].append(result)
    durations = {name: [m.seconds for m in found] for name, found in measured.items()}
    workers = threads or min(8, os.cpu_count() or 1)
    copies = {
        name: find_copies([m.clip for m in found], [m.digest for m in found], durations[name], threads=workers)
        for name, found in measured.items()
    }
    # Clips per class, largest class first; unlabelled clips are in none.
    sizes = {
        name: sorted(Counter(clip.label for clip in clips if clip.label is not None).values(), reverse=True)
        for name, clips in subsets.items()
    }
    rows = [_statistics(name, subsets[name], sizes[name], measured[name], copies[name]) for name in subsets]
    return Description(rows, sizes, durations, unreadable, {name: found for name, found in copies.items() if found})


def _statistics(
    name: str, clips: Sequence[Clip], sizes: Sequence[int], measured: Sequence[_Measured], copies: Sequence[CopySet]
) -> SubsetStatistics:
    seconds = [m.seconds for m in measured]
    ranges = [m.dri for m in measured if m.dri is not None]
    return SubsetStatistics(
        subset=name,
        clips=len(clips),
        classes=len(sizes),
        per_class=sum(sizes) / len(sizes) if sizes else 0.0,
        smallest=min(sizes, default=0),
        largest=max(sizes, default=0),
        groups=len({clip.group for clip in clips if clip.group is not None}),
        unlabelled=len(clips) - sum(sizes),
        unreadable=len(clips) - len(measured),
        seconds=float(np.mean(seconds)) if seconds else None,
        shortest=min(seconds, default=None),
        longest=max(seconds, default=None),
        total_seconds=float(np.sum(seconds)),
        dri=float(np.mean(ranges)) if ranges else None,
        copies=sum(len(found.ids) for found in copies),
        under_several_labels=sum(found.conflicting for found in copies),
    )


def dynamic_range_index(samples: ArrayLike) -> float:
    """The DRI in dB of mono samples at 16 kHz: 0 for a steady sound, at most 120 + the peak power in dB."""
    mono = np.asarray(samples, dtype=np.float32)
    if len(mono) < _FRAME + _HOP:
        return 0.0
    frames = np.lib.stride_tricks.sliding_window_view(mono, _FRAME)[::_HOP]
    powers: NDArray[np.float64] = np.einsum("ij,ij->i", frames, frames, dtype=np.float64) / _FRAME
    low, high = np.percentile(powers, [20, 80])
    loud, quiet = powers[powers >= high].mean(), powers[powers <= low].mean()
    return max(0.0, float(10 * np.log10((loud + _SILENCE) / (quiet + _SILENCE))))


# --- as text and as a figure --------------------------------------------------------------------------------


def table(rows: Sequence[SubsetStatistics]) -> str:
    """The statistics as an aligned table, one line per subset."""
    heads = ("subset", "clips", "classes", "per class (range)", "seconds (range)", "total", "groups", "DRI dB")
    lines = [
        (
            row.subset or "(all)",
            f"{row.clips:,}",
            f"{row.classes:,}",
            f"{row.per_class:.1f} ({row.smallest}-{row.largest})",
            MISSING if row.seconds is None else f"{row.seconds:.2f} ({row.shortest:.2f}-{row.longest:.2f})",
            _clock(row.total_seconds),
            f"{row.groups:,}" if row.groups else MISSING,
            MISSING if row.dri is None else f"{row.dri:.1f}",
        )
        for row in rows
    ]
    return "\n".join(aligned([heads, *lines], left=1)) + "\n"


def copies_text(description: Description) -> str:
    """A line for each subset that holds copies: how many, and the first of them. Nothing where there are none."""
    lines = []
    for row in description.rows:
        sets = sorted(description.copies.get(row.subset, []), key=lambda copies: not copies.conflicting)
        if sets:
            line = f"{row.subset or '(all)'}: {counted(row.copies, 'clip')} are copies of one another"
            if row.under_several_labels:
                line += f", {counted(row.under_several_labels, 'sound')} under more than one label"
            more = "; ..." if len(sets) > _NAMED else ""
            lines.append(f"{line}: {'; '.join(copies.text for copies in sets[:_NAMED])}{more}\n")
    return "".join(lines)


def unreadable_text(description: Description) -> str:
    """A line for the clips that cannot be read, and the first of them. Nothing where all can."""
    broken = [name for name, _ in description.unreadable]
    if not broken:
        return ""
    return f"{counted(len(broken), 'clip')} cannot be read, and a run would leave out: {first_of(broken, _NAMED)}\n"


def lengths_text(description: Description) -> str:
    """A line for each subset whose shortest or longest clip is far from its median, which a mean does not show."""
    lines = []
    for row in description.rows:
        if row.shortest is None or row.longest is None:
            continue
        median = float(np.median(description.durations[row.subset]))
        if row.longest > _UNLIKE * median or median > _UNLIKE * row.shortest:
            lines.append(
                f"{row.subset or '(all)'}: clips differ much in length (median {median:.3g} s, shortest "
                f"{row.shortest:.3g} s, longest {row.longest:.3g} s), and a model may tell them apart by that\n"
            )
    return "".join(lines)


def _clock(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 3600 else f"{seconds / 3600:.1f} h"


def draw(description: Description, path: str | os.PathLike[str], *, title: str = "") -> None:
    """Write `figure_of` a description; the suffix of the file says its format."""
    try:
        figure_of(description, title=title).savefig(path, dpi=150)
    except ValueError as error:
        raise UsageError(f"{Path(path)} cannot be drawn: give a name that ends in .png, .svg or .pdf.") from error


def figure_of(description: Description, *, title: str = "") -> Any:
    """Class sizes and durations, a row of two panels for each subset, as a figure of matplotlib."""
    require("matplotlib", "Figures", "plots")
    from matplotlib.figure import Figure

    names = list(description.class_sizes)
    if not names:
        raise InputError("The corpus holds no clips, so there is nothing to draw.")
    figure = Figure(figsize=(9, 0.6 + 2.1 * len(names)), layout="constrained")
    panels = figure.subplots(len(names), 2, squeeze=False)
    for panel in panels.ravel():
        panel.spines[["top", "right"]].set_visible(False)
        panel.tick_params(labelsize=8)
    for (left, right), name in zip(panels, names, strict=True):
        _draw_sizes(left, description.class_sizes[name], name)
        _draw_durations(right, description.durations[name])
    panels[-1][0].set_xlabel("classes, largest first")
    panels[-1][1].set_xlabel("duration, s")
    if title:
        figure.suptitle(title, fontsize=11)
    return figure


def _draw_sizes(panel: Any, sizes: Sequence[int], name: str) -> None:
    panel.set_ylabel("clips")
    panel.set_title(f"{name or 'all clips'}: {sum(sizes):,} clips, {len(sizes):,} classes", fontsize=9, loc="left")
    if not sizes:
        panel.text(0.5, 0.5, "no labels", ha="center", va="center", transform=panel.transAxes)
        return
    places = np.arange(1, len(sizes) + 1)
    if len(sizes) <= 60:
        panel.bar(places, sizes, width=0.85, color=_BLUE)
    else:
        # A thousand bars with gaps are a grey shimmer; their outline is what there is to see.
        panel.stairs(sizes, np.append(places, len(sizes) + 1) - 0.5, fill=True, color=_BLUE)
    panel.set_xlim(0.5, len(sizes) + 0.5)
    panel.set_ylim(0, max(sizes) * 1.08)
    panel.xaxis.get_major_locator().set_params(integer=True)
    panel.yaxis.get_major_locator().set_params(integer=True)


def _draw_durations(panel: Any, seconds: Sequence[float]) -> None:
    if not seconds:
        panel.text(0.5, 0.5, "no readable clips", ha="center", va="center", transform=panel.transAxes)
        return
    shortest, longest = min(seconds), max(seconds)
    bins = int(np.clip(2 * np.sqrt(len(seconds)), 5, 40))
    if longest - shortest < 0.01 * longest:
        # All of one length: a bar of visible width around it.
        edges = np.linspace(0.9 * longest, 1.1 * longest, 12)
    elif longest > 20 * max(shortest, 1e-3):
        edges = np.geomspace(max(shortest, 1e-3), longest, bins + 1)
        panel.set_xscale("log")
    else:
        edges = np.linspace(shortest, longest, bins + 1)
    panel.hist(seconds, bins=edges, color=_SAND)
    mean, total = np.mean(seconds), _clock(float(np.sum(seconds)))
    panel.set_title(f"{mean:.2f} s on average, {total} in all", fontsize=9, loc="left")
    panel.yaxis.get_major_locator().set_params(integer=True)
