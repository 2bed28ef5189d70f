"""Export: any corpus as a folder that holds a manifest, a card and 16-bit FLACs, which any tool can read.

    into/manifest.csv   path,label,subset,group,start,end,id
    into/card.json      where the corpus comes from, on what terms
    into/failed.csv     id, reason for each clip that could not be read (only if there are any)
    into/audio/<label>/<id>-<hash>.flac

The hash stands for the content, the span and the rate. A file is renamed into place when it is whole, so a killed
export continues where it stopped and a changed recording is written anew.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from earmark import audio
from earmark.corpora._passes import each
from earmark.corpora.clips import Clip, Corpus
from earmark.corpora.manifest import write_card, write_manifest
from earmark.errors import EarmarkError, InputError
from earmark.places import locate
from earmark.tables import write_csv


class Exported(NamedTuple):
    """What an export did. `scaled` clips passed full scale and were made quieter instead of clipped."""

    manifest: Path
    clips: list[Clip]
    written: int
    reused: int
    scaled: int
    failed: list[tuple[str, str]]


class _Written(NamedTuple):
    path: Path
    reused: bool
    scaled: bool


def export(
    corpus: Corpus,
    into: str | os.PathLike[str],
    *,
    rate: int | None = None,
    threads: int | None = None,
    progress: bool = False,
) -> Exported:
    """Write a corpus into a folder; clips that cannot be read are listed in failed.csv and left out.

    `rate` resamples; without it every clip keeps its own. Raises InputError when no clip can be read.
    """
    root = locate(into)
    corpus.refuse_into(root)
    (root / "audio").mkdir(parents=True, exist_ok=True)
    clips: list[Clip] = []
    failed: list[tuple[str, str]] = []
    written = reused = scaled = 0
    bar = "export" if progress else ""
    for clip, result in each(corpus.clips, lambda one: _write(one, root, rate), threads=threads, progress=bar):
        if isinstance(result, EarmarkError):
            failed.append((clip.id, str(result)))
            continue
        reused += result.reused
        written += not result.reused
        scaled += result.scaled
        plain = {"start": None, "end": None, "samples": None, "rate": None, "make": None, "recipe": ""}
        clips.append(replace(clip, path=str(result.path), **plain))  # type: ignore[arg-type]
    write_failures(root / "failed.csv", failed)
    if not clips:
        raise InputError(f"{corpus.name}: none of its {len(corpus)} clips can be read (first: {failed[0][1]})")
    write_card(root, corpus.card)
    manifest = root / "manifest.csv"
    write_manifest(manifest, clips)
    return Exported(manifest, clips, written, reused, scaled, failed)


def _write(clip: Clip, root: Path, rate: int | None) -> _Written:
    key = hashlib.sha256(f"{clip.digest()} {rate}".encode()).hexdigest()[:12]
    folder = root / "audio" / _file_name(clip.label or "unlabelled")
    target = folder / f"{_file_name(clip.id)}-{key}.flac"
    if target.is_file():
        return _Written(target, True, False)
    samples, native = clip.read(rate)
    peak = float(np.abs(samples).max())
    if peak > 1:
        # Resampling overshoots and float files may be louder than full scale; clipping would add sounds.
        samples = samples / np.float32(peak)
    folder.mkdir(parents=True, exist_ok=True)
    audio.write(target, samples, native)
    return _Written(target, False, peak > 1)


def _file_name(text: str) -> str:
    """A readable name that every file system takes: letters of any script stay, the rest becomes a line."""
    name = re.sub(r"[^\w.+=@-]+", "_", text).strip("._") or "clip"
    return name.encode()[-80:].decode("utf-8", "ignore")


def write_failures(path: Path, failed: Sequence[tuple[str, str]]) -> None:
    """Write (id, reason) rows, or remove a list that an earlier run left when now nothing failed."""
    if failed:
        write_csv(path, ("id", "reason"), failed, errors="replace")
    else:
        path.unlink(missing_ok=True)
