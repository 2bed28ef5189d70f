"""What a corpus is made of, as in the VocSim paper's Table 1: clips, classes, durations, dynamic range.

Dynamic range index (DRI, dB) of a clip: frames of 30 ms every 15 ms at 16 kHz; mean power of the frames at or above
the 80th percentile over mean power of those at or below the 20th; 10·log10, floored at 0. Powers are floored at
-120 dB, so that digital silence gives a number. A clip shorter than two frames has 0 dB. A subset's DRI is the mean
over its clips.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from earmark.corpora.clips import Clip, Corpus
from earmark.corpora.copies import CopySet, find_copies
from earmark.corpora.passes import each
from earmark.errors import EarmarkError, InputError, UsageError, require
from earmark.wording import counted

__all__ = ["Description", "SubsetStatistics", "copies_text", "describe", "draw", "dynamic_range_index", "table"]

RATE = 16_000
_FRAME, _HOP = 480, 240
_SILENCE = 1e-12
_NAMED = 5  # sets of copies that are named
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
    seconds: float
    dri: float | None
    digest: str


def describe(corpus: Corpus, *, dri: bool = True, threads: int | None = None, progress: bool = False) -> Description:
    """Measure every clip. Without `dri` hardly a clip is decoded. Clips that cannot be read are counted, not fatal."""
    measured: dict[str, list[_Measured]] = {}
    readable: dict[str, list[Clip]] = {}
    unreadable: list[tuple[str, str]] = []
    failed: Counter[str] = Counter()
    work = _measure if dri else _duration
    for clip, result in each(corpus.clips, work, threads=threads, progress="describe" if progress else ""):
        if isinstance(result, EarmarkError):
            unreadable.append((clip.id, str(result)))
            failed[clip.subset] += 1
        else:
            measured.setdefault(clip.subset, []).append(result)
            readable.setdefault(clip.subset, []).append(clip)
    subsets = corpus.subsets()
    copies = {name: _copies(clips, measured[name], threads) for name, clips in readable.items()}
    sizes = {name: _class_sizes(clips) for name, clips in subsets.items()}
    rows = [
        _statistics(name, clips, sizes[name], measured.get(name, []), failed[name], copies.get(name, []))
        for name, clips in subsets.items()
    ]
    durations = {name: [one.seconds for one in measured.get(name, [])] for name in subsets}
    return Description(rows, sizes, durations, unreadable, {name: found for name, found in copies.items() if found})


def _copies(clips: Sequence[Clip], measured: Sequence[_Measured], threads: int | None) -> list[CopySet]:
    digests, seconds = [one.digest for one in measured], [one.seconds for one in measured]
    return find_copies(clips, digests, seconds, threads=threads or min(8, os.cpu_count() or 1))


def _measure(clip: Clip) -> _Measured:
    samples, rate = clip.read(RATE)
    return _Measured(len(samples) / rate, dynamic_range_index(samples), clip.digest())


def _duration(clip: Clip) -> _Measured:
    return _Measured(clip.seconds(), None, clip.digest())


def _class_sizes(clips: Iterable[Clip]) -> list[int]:
    """Clips per class, largest class first; unlabelled clips are in none."""
    return sorted(Counter(clip.label for clip in clips if clip.label is not None).values(), reverse=True)


def _statistics(
    name: str,
    clips: Sequence[Clip],
    sizes: Sequence[int],
    measured: Sequence[_Measured],
    failed: int,
    copies: Sequence[CopySet],
) -> SubsetStatistics:
    seconds = [one.seconds for one in measured]
    ranges = [one.dri for one in measured if one.dri is not None]
    return SubsetStatistics(
        subset=name,
        clips=len(clips),
        classes=len(sizes),
        per_class=sum(sizes) / len(sizes) if sizes else 0.0,
        smallest=min(sizes, default=0),
        largest=max(sizes, default=0),
        groups=len({clip.group for clip in clips if clip.group is not None}),
        unlabelled=len(clips) - sum(sizes),
        unreadable=failed,
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
    powers = _frame_powers(np.asarray(samples, dtype=np.float32))
    if len(powers) < 2:
        return 0.0
    low, high = np.percentile(powers, [20, 80])
    loud, quiet = powers[powers >= high].mean(), powers[powers <= low].mean()
    return max(0.0, float(10 * np.log10((loud + _SILENCE) / (quiet + _SILENCE))))


def _frame_powers(samples: NDArray[np.float32]) -> NDArray[np.float64]:
    if len(samples) < _FRAME:
        return np.empty(0)
    frames = np.lib.stride_tricks.sliding_window_view(samples, _FRAME)[::_HOP]
    powers: NDArray[np.float64] = np.einsum("ij,ij->i", frames, frames, dtype=np.float64) / _FRAME
    return powers


# --- as text and as a figure --------------------------------------------------------------------------------


def table(rows: Sequence[SubsetStatistics]) -> str:
    """The statistics as an aligned table, one line per subset."""
    heads = ("subset", "clips", "classes", "per class (range)", "seconds (range)", "total", "groups", "DRI dB")
    lines = [heads, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(heads))]
    return "\n".join(
        "  ".join(cell.ljust(width) if not column else cell.rjust(width)
                  for column, (cell, width) in enumerate(zip(line, widths, strict=True))).rstrip()
        for line in lines
    ) + "\n"  # fmt: skip


def copies_text(description: Description) -> str:
    """A line for each subset that holds copies: how many, and the first of them. Nothing where there are none."""
    lines = []
    for row in description.rows:
        sets = sorted(description.copies.get(row.subset, []), key=lambda found: not found.conflicting)
        if sets:
            mixed = f", {counted(row.under_several_labels, 'sound')} under more than one label"
            said = f"{counted(row.copies, 'clip')} are copies of one another{mixed if row.under_several_labels else ''}"
            more = "; ..." if len(sets) > _NAMED else ""
            lines.append(f"{row.subset or '(all)'}: {said}: {'; '.join(one.text for one in sets[:_NAMED])}{more}\n")
    return "".join(lines)


def _cells(row: SubsetStatistics) -> tuple[str, ...]:
    seconds = "–" if row.seconds is None else f"{row.seconds:.2f} ({row.shortest:.2f}-{row.longest:.2f})"
    return (
        row.subset or "(all)",
        f"{row.clips:,}",
        f"{row.classes:,}",
        f"{row.per_class:.1f} ({row.smallest}-{row.largest})",
        seconds,
        _clock(row.total_seconds),
        f"{row.groups:,}" if row.groups else "–",
        "–" if row.dri is None else f"{row.dri:.1f}",
    )


def _clock(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 3600 else f"{seconds / 3600:.1f} h"


def draw(description: Description, path: str | os.PathLike[str], *, title: str = "") -> None:
    """Class sizes and durations, a row of two panels for each subset; the suffix of the file says its format."""
    require("matplotlib", "Figures", "plots")
    from matplotlib.figure import Figure

    names = list(description.class_sizes)
    if not names:
        raise InputError("The corpus holds no clips, so there is nothing to draw.")
    figure = Figure(figsize=(9, 0.6 + 2.1 * len(names)), layout="constrained")
    panels = figure.subplots(len(names), 2, squeeze=False)
    for row, name in enumerate(names):
        _draw_sizes(panels[row][0], description.class_sizes[name], name)
        _draw_durations(panels[row][1], description.durations[name])
    panels[-1][0].set_xlabel("classes, largest first")
    panels[-1][1].set_xlabel("duration, s")
    if title:
        figure.suptitle(title, fontsize=11)
    try:
        figure.savefig(path, dpi=150)
    except ValueError as error:
        raise UsageError(f"{Path(path)} cannot be drawn: give a name that ends in .png, .svg or .pdf.") from error


def _draw_sizes(panel: Any, sizes: Sequence[int], name: str) -> None:
    panel.set_ylabel("clips")
    panel.set_title(f"{name or 'all clips'}: {sum(sizes):,} clips, {len(sizes):,} classes", fontsize=9, loc="left")
    _plain(panel)
    if sizes:
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
    else:
        panel.text(0.5, 0.5, "no labels", ha="center", va="center", transform=panel.transAxes)


def _draw_durations(panel: Any, seconds: Sequence[float]) -> None:
    _plain(panel)
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
    panel.set_title(
        f"{np.mean(seconds):.2f} s on average, {_clock(float(np.sum(seconds)))} in all", fontsize=9, loc="left"
    )
    panel.yaxis.get_major_locator().set_params(integer=True)


def _plain(panel: Any) -> None:
    panel.spines[["top", "right"]].set_visible(False)
    panel.tick_params(labelsize=8)
