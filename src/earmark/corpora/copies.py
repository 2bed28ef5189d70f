"""Clips that are the same sound: a copy finds its twin at distance 0 and raises every score that rests on neighbours.

Two clips are copies when their decoded samples and rates are equal, whatever their files are called and however they
store them: a WAV and a FLAC of one take are copies, so are two files that differ in their tags alone. Most clips are
told apart without being decoded:

    hash of the file's bytes and span ── equal: copies
    length by the header              ── different: not copies
    first samples                     ── different: not copies
    all samples                       ── equal: copies

Clips of a hub dataset and clips that a recipe makes are compared by their hash alone.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from earmark.corpora.clips import Clip
from earmark.errors import Unreachable

_OPENING = 0.05  # seconds that tell most sounds apart


class CopySet(NamedTuple):
    """Ids of clips that are one sound, in the order of the corpus, and the different labels they have."""

    ids: tuple[str, ...]
    labels: tuple[str, ...]

    @property
    def conflicting(self) -> bool:
        """Whether the sound stands under more than one label: at most one of them is right."""
        return len(self.labels) > 1

    @property
    def text(self) -> str:
        """`a.wav = b.wav (labelled cat and dog)`, shortened where there are many."""
        shown = " = ".join(self.ids[:3]) + (f" = {len(self.ids) - 3} more" if len(self.ids) > 3 else "")
        return shown + (f" (labelled {' and '.join(self.labels[:4])})" if self.conflicting else "")


def find_copies(
    clips: Sequence[Clip], digests: Sequence[str | None], seconds: Sequence[float], *, threads: int = 1
) -> list[CopySet]:
    """The sets of clips that are one sound, in order of their first clip.

    `digests` are those of `Clip.digest`, None where a clip cannot be read; `seconds` are lengths by the headers, 0
    where they are not known. A clip that cannot be decoded is no sound, and so no copy.
    """
    first: dict[str, int] = {}
    for row, digest in enumerate(digests):
        if digest is not None:
            first.setdefault(digest, row)
    repeated = {digest for digest, count in Counter(digests).items() if count > 1}
    rows = [row for row in first.values() if clips[row].path is not None or clips[row].samples is not None]
    lengths = {row: round(1e4 * seconds[row]) for row in rows}
    with ThreadPoolExecutor(max(1, threads)) as pool:
        rows = _in_company(rows, lengths.values())
        openings = pool.map(lambda row: _opening(clips[row], seconds[row]), rows)
        rows = _in_company(rows, [(lengths[row], opening) for row, opening in zip(rows, openings, strict=True)])
        rows = list(dict.fromkeys([*rows, *(first[digest] for digest in repeated if digest is not None)]))
        decoded = dict(zip(rows, pool.map(lambda row: _sound(clips[row], digests[row]), rows), strict=True))
    members: dict[str, list[Clip]] = {}
    for clip, digest in zip(clips, digests, strict=True):
        sound = None if digest is None else decoded.get(first[digest])
        if sound is not None:
            members.setdefault(sound, []).append(clip)
    return [
        CopySet(tuple(clip.id for clip in alike), tuple(dict.fromkeys(clip.label for clip in alike if clip.label)))
        for alike in members.values()
        if len(alike) > 1
    ]


def _in_company(rows: Sequence[int], found: Iterable[Hashable]) -> list[int]:
    """The rows that have what another one has."""
    each = list(found)
    counts = Counter(each)
    return [row for row, what in zip(rows, each, strict=True) if counts[what] > 1]


def _opening(clip: Clip, seconds: float) -> str | None:
    """A hash of the first samples; None where the clip is no longer than that, or cannot be decoded."""
    if clip.path is None or seconds * clip.speed <= _OPENING:
        return None
    from earmark import audio

    start = clip.start or 0.0
    try:
        samples, rate = audio.read(clip.path, start=start, end=start + _OPENING)
    except Unreachable:
        raise
    except Exception:  # decoding it whole will tell what is wrong
        return None
    return _hash(samples, rate)


def _sound(clip: Clip, digest: str | None) -> str | None:
    """A hash of all samples; the digest where they would have to be fetched or made; None where there are none."""
    if clip.path is None and clip.samples is None:
        return digest
    try:
        return _hash(*clip.read())
    except Unreachable:
        raise
    except Exception:  # it fails in the step that needs it, and is told there
        return None


def _hash(samples: np.ndarray, rate: int) -> str:
    content = np.ascontiguousarray(samples, dtype="<f4") + np.float32(0)  # one zero, not two
    return f"{rate} {hashlib.sha256(content.tobytes()).hexdigest()}"
