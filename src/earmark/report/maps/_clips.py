"""Sounds for vectors: which recording, or span of one, belongs to each row."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from earmark.corpora.clips import Clip, Corpus
from earmark.corpora.source import open_corpus
from earmark.errors import EarmarkError, InputError, UsageError
from earmark.places import locate
from earmark.wording import counted

Audio = str | os.PathLike[str] | Corpus | Sequence[Clip] | None


def clips_of(audio: Audio, ids: Sequence[str]) -> tuple[list[Clip | None], list[str]]:
    """The clip of each id, and remarks: by id, else by as much of the end of a path as most clips share with an id.

    Clips without a match are None. InputError where not one matches. A name that two clips or two ids have names none.
    """
    if audio is None:
        return [None] * len(ids), []
    if isinstance(audio, str | os.PathLike):
        audio = open_corpus(str(audio), needs_labels=False)
    known = list(audio.clips if isinstance(audio, Corpus) else audio)
    if not all(isinstance(clip, Clip) for clip in known):
        raise UsageError("audio must be a folder, a manifest, a corpus or a list of clips.")
    best: list[Clip | None] = [None] * len(ids)
    for spelled in (_whole, partial(_end, parts=3), partial(_end, parts=2), partial(_end, parts=1), _stem):
        found = _by(spelled, known)
        names = Counter(map(spelled, ids))
        own = [found.get(spelled(name)) if names[spelled(name)] == 1 else None for name in ids]
        if sum(clip is not None for clip in own) > sum(clip is not None for clip in best):
            best = own
    missing = sum(clip is None for clip in best)
    if missing == len(ids):
        shown = known[0].id if known else "nothing"
        raise InputError(
            f"No id of the vectors names a sound: they are like {ids[0]!r}, and sounds like {shown!r}. Give the "
            "vectors ids that are names of files, or the sounds as a manifest whose column id has those of the vectors."
        )
    return best, [f"{counted(missing, 'clip')} without a sound."] if missing else []


def _whole(name: str) -> str:
    return name.replace("\\", "/").removeprefix("./")


def _end(name: str, parts: int) -> str:
    return "/".join(PurePosixPath(_whole(name)).parts[-parts:])


def _stem(name: str) -> str:
    return PurePosixPath(_whole(name)).stem


def _by(spelled: Callable[[str], str], clips: Sequence[Clip]) -> dict[str, Clip]:
    """Clips by a name that belongs to one of them alone: its id, or its file where no span of it is meant."""
    found: dict[str, Clip] = {}
    twice: set[str] = set()
    for clip in clips:
        names = {spelled(clip.id)}
        if clip.path is not None and clip.start is None and clip.end is None:
            names.add(spelled(clip.path))
        for name in names:
            if name in found:
                twice.add(name)
            found[name] = clip
    return {name: clip for name, clip in found.items() if name not in twice}


def columns_of(clips: Sequence[Clip | None]) -> dict[str, Any]:
    """Paths, spans and durations of clips, as the columns of a `ClipTable`."""
    spans = [(np.nan, np.nan) if clip is None else (_number(clip.start), _number(clip.end)) for clip in clips]
    starts, ends = np.array(spans, np.float64).reshape(-1, 2).T
    return {
        "paths": [None if clip is None or clip.path is None else str(locate(clip.path).absolute()) for clip in clips],
        "starts": starts,
        "ends": ends,
        "seconds": np.array([_seconds(clip) for clip in clips]),
    }


def _number(time: float | None) -> float:
    return np.nan if time is None else time


def _seconds(clip: Clip | None) -> float:
    """How long a clip lasts, from its span or the header of its file; NaN where nobody knows."""
    try:
        return np.nan if clip is None else clip.seconds()
    except (EarmarkError, OSError):
        return np.nan
