"""The sounds of a map: excerpts inside the page up to a budget, links to recordings beside it, or none."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from earmark.errors import UsageError
from earmark.evaluation.options import size_in_bytes
from earmark.places import is_remote, locate
from earmark.progress import progress_bar
from earmark.report._audio_player import LONGEST, Sound, cut, player
from earmark.report.maps._lists import Lists
from earmark.report.maps.content import ClipTable, Fetch, MapContent
from earmark.vectors.several_labels import labels_agree
from earmark.wording import counted

BUDGET = "5MB"
SHORTEST = 1.0
"""Seconds. Where all clips would get less, some get more and others nothing."""
_PER_SECOND = 5600.0
"""Characters that a second of MP3 takes in a page."""
_HEADER = 1100


class Sounds(NamedTuple):
    """What can be heard: an address for each row that has one, remarks on some, and a sentence on all."""

    kind: str
    addresses: dict[int, str]
    remarks: dict[int, str]
    note: str


def parse_sounds(given: str) -> str | int:
    """`link`, `none`, or a budget in bytes."""
    word = given.strip().lower()
    if word in ("link", "none"):
        return word
    try:
        return size_in_bytes(word, "Sounds")
    except UsageError:
        raise UsageError(f"Sounds are a size such as 5MB, or link, or none: not {given!r}.") from None


def no_sounds(note: str = "") -> Sounds:
    return Sounds("none", {}, {}, note)


def embedded(content: MapContent, budget: int, *, progress: bool = False) -> Sounds:
    """Excerpts for as many clips as the budget allows, those that are taken for another class first."""
    fetch = content.fetch
    count = len(content.clips)
    if fetch is None or not count or not budget:
        return no_sounds()
    each = max(budget // count, int(SHORTEST * _PER_SECOND + _HEADER))
    longest = min(LONGEST, (each - _HEADER) / _PER_SECOND)
    addresses: dict[int, str] = {}
    remarks: dict[int, str] = {}
    failed = used = 0
    order = listening_order(content)
    with progress_bar(progress, len(order), "sounds", "clip") as tick:
        for row in order:
            tick(1)
            if budget - used < _HEADER + SHORTEST * _PER_SECOND / 2:
                break
            sound = _read(fetch, row, longest)
            if sound is None:
                failed += 1
                continue
            made = player(sound, min(budget - used, each), lossy=True)
            if made is not None:
                addresses[row], used = made.uri, used + len(made.uri)
                if made.remark:
                    remarks[row] = made.remark
    return Sounds("embedded", addresses, remarks, _told(len(addresses), count, failed))


def _told(heard: int, count: int, failed: int) -> str:
    lost = f" {counted(failed, 'recording')} could not be read." if failed else ""
    if heard + failed == count:
        return f"{'Each clip' if not failed else counted(heard, 'clip')} can be heard.{lost}"
    rest = "those whose nearest neighbour is of another class first; a larger budget of sounds has room for more."
    return f"{heard} of {counted(count, 'clip')} can be heard, {rest}{lost}"


def listening_order(content: MapContent) -> list[int]:
    """Clips whose nearest neighbour is of another class and that neighbour, then the others, evenly."""
    labels = content.clips.labels
    lists: Lists = content.views[0].lists
    nearest = lists.rows[:, 0].tolist() if lists.rows.shape[1] else []
    pairs = ((row, other) for row, other in enumerate(nearest) if other >= 0 and labels[row] and labels[other])
    apart = content.separator, content.background
    wrong = [row for pair in pairs if not labels_agree(labels[pair[0]], labels[pair[1]], *apart) for row in pair]
    rest = np.random.default_rng(0).permutation(len(labels)).tolist()
    return list(dict.fromkeys([*wrong, *rest]))


def _read(fetch: Fetch, row: int, longest: float) -> Sound | None:
    try:
        samples, rate = fetch(row)
        return cut(samples, rate, longest) if len(samples) else None
    except Exception:  # whatever a file or a stranger's function does, the map is drawn
        return None


def files_of(clips: ClipTable) -> Sequence[str | None]:
    """The recordings of clips; UsageError where none is known."""
    if clips.paths is None or not any(clips.paths):
        raise UsageError("The files of these clips are not known: give them with --audio, or leave out --sounds link.")
    return clips.paths


def linked(content: MapContent, beside: Path) -> Sounds:
    """Relative addresses of the recordings, with the span of a clip, as seen from the folder of the page."""
    clips = content.clips
    here = beside.resolve()
    addresses: dict[int, str] = {}
    for row, path in enumerate(files_of(clips)):
        if path and not is_remote(locate(path)):
            span = _span(clips.starts, clips.ends, row)
            addresses[row] = _relative(Path(path).absolute(), here) + span
    heard, count = len(addresses), len(clips)
    note = f"Sounds are played from their files, {heard} of {counted(count, 'clip')}: keep this page where it lies."
    return Sounds("linked", addresses, {}, note)


def _relative(path: Path, folder: Path) -> str:
    try:
        return quote(Path(os.path.relpath(path, folder)).as_posix())
    except ValueError:  # another drive
        return path.as_uri()


def _span(starts: NDArray[np.float64] | None, ends: NDArray[np.float64] | None, row: int) -> str:
    times: Iterable[float] = (np.nan if column is None else column[row] for column in (starts, ends))
    start, end = ("" if np.isnan(time) else f"{time:.3f}" for time in times)
    return f"#t={start or 0}{',' + end if end else ''}" if start or end else ""
