"""Sounds to points by a recipe: levels, windows, frames, and what of them becomes a point of a distribution."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark import audio
from earmark.embedding.embed import HOPELESS, Failure, fit_extractor
from earmark.embedding.hearing import Heard, Level, heard_clips, settle_rate
from earmark.embedding.pooling import NOT_FINITE
from earmark.errors import InputError, UsageError
from earmark.extractors.catalogue import open_on
from earmark.extractors.contract import Extractor, ExtractorCard, Frames, Waveform, as_array
from earmark.generated.recipes import Recipe
from earmark.progress import Progress
from earmark.runs.engine import reason_of
from earmark.specs import SILENT_OPTIONS, parse_spec
from earmark.vectors import Vectors
from earmark.wording import counted

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Points:
    """Points of a distribution, and the clip that each comes from."""

    values: NDArray[Any]  # [points, D]
    clips: Ints  # the place of each point's clip among `ids`
    ids: tuple[str, ...]
    failures: tuple[Failure, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def groups(self) -> list[str]:
        """The name of every point's clip."""
        return [self.ids[clip] for clip in self.clips]


# --- models -------------------------------------------------------------------------------------------------------


def open_model(recipe: Recipe, spec: str = "", device: str = "auto") -> tuple[Extractor, str]:
    """The model of a recipe, and what the recipe is then called.

    `spec` names the same extractor with a file of weights, or with other parameters (`wav2vec2?layer=6`), which are
    then part of the name; what it does not say is as the recipe has it.
    """
    if not recipe.model:
        raise UsageError(
            f"The model of {recipe.name} is none of Earmark's: give its vectors as files, a row for each point."
        )
    own = parse_spec(recipe.model)
    given = parse_spec(spec) if spec else own
    if given.name != own.name:
        raise UsageError(
            f"{recipe.name} is a recipe for {own.name}, not for {given.name}: give its weights as "
            f"--extractor {own.name}:FILE, or choose another recipe."
        )
    argument = own.argument if given.argument is None else given.argument
    options = {**own.options, **given.options}
    changed = [
        f"{name}={value}"
        for name, value in options.items()
        if own.options.get(name) != value and name not in SILENT_OPTIONS
    ]
    path = own.name if argument is None else f"{own.name}:{argument}"
    model = open_on(device, path, **options)
    model = Windowed(model, recipe) if recipe.window else model
    return model, recipe.name + (f"?{'&'.join(changed)}" if changed else "")


class Windowed:
    """An extractor that hears clips in windows of a recipe, each by itself."""

    def __init__(self, extractor: Extractor, recipe: Recipe) -> None:
        self._extractor, self._filled = extractor, recipe.rest == "filled"
        rate = extractor.card.rate
        self._size, self._step = round(recipe.window * rate), round(recipe.hop * rate)
        self.card: ExtractorCard = replace(extractor.card, frame_rate=1 / recipe.hop, context_seconds=None)

    def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
        pieces = [self._pieces(waveform) for waveform in waveforms]
        answers = iter(self._extractor.extract([piece for those in pieces for piece in those]))
        joined = [np.concatenate([_valid(next(answers)) for _ in those]) for those in pieces]
        return [Frames(values, len(values)) for values in joined]

    def _pieces(self, waveform: Waveform) -> list[Waveform]:
        """Every window that lies in the clip, or that begins in it; of a shorter clip one that is filled with zeros."""
        last = len(waveform) - 1 if self._filled else max(0, len(waveform) - self._size)
        cut = [waveform[start : start + self._size] for start in range(0, last + 1, self._step)]
        return [np.pad(piece, (0, self._size - len(piece))) for piece in cut]


def _valid(frames: Frames) -> Floats:
    return np.asarray(as_array(frames.values)[: frames.valid], np.float32)


# --- sounds -------------------------------------------------------------------------------------------------------


def level_of(recipe: Recipe, rate: int) -> Level:
    """What a recipe does to samples before they are heard."""
    most = round(recipe.longest * rate) or None

    def level(samples: Waveform) -> Waveform:
        heard = np.asarray(samples[:most], np.float32)
        if recipe.level == "peak":
            return audio.peak_normalise(heard)
        if recipe.level == "maximum":
            return np.asarray(heard / max(0.1, float(heard.max(initial=0.0))), np.float32)
        if recipe.level == "16 bit":
            return np.asarray(np.rint(np.clip(heard, -1.0, 1.0) * 32767.0) / 32768.0, np.float32)
        return heard

    return level


def hear_points(
    source: str, recipe: Recipe, model: Extractor, *, threads: int | None = None, progress: Progress = False
) -> Points:
    """The points of a folder, manifest or corpus of sounds by a recipe; clips that fail are left out and named."""
    from earmark.corpora.source import open_corpus

    clips = open_corpus(source, needs_labels=False).clips
    model = settle_rate(model, clips)
    fit_extractor(model, clips, progress=progress)

    def start(frames: Sequence[Frames]) -> list[Callable[[], Floats]]:
        return [partial(_valid, one) for one in frames]

    found: dict[int, Floats] = {}
    failed: dict[int, Failure] = {}
    level = level_of(recipe, model.card.rate)
    for part in heard_clips(clips, model, start, threads=threads, progress=progress, level=level):
        for place, heard in part:
            try:
                found[place] = pooled(_checked(heard), recipe, heard.sound.seconds if heard.sound else 0.0)
            except InputError as error:
                failed[place] = Failure(clips[place].id, str(error))
        if len(failed) >= HOPELESS and not found:
            break
    if not found:
        first = failed[min(failed)] if failed else Failure("", "there are no clips")
        raise InputError(f"None of the clips of {source} could be heard; first {first.id}: {first.reason}")
    kept = sorted(found)
    return _joined([clips[place].id for place in kept], [found[place] for place in kept], tuple(failed.values()))


def _checked(heard: Heard) -> Floats:
    if heard.error is not None:
        raise InputError(reason_of(heard.error)) from heard.error
    frames: Floats = heard.answer
    if not np.isfinite(frames).all():
        raise InputError(NOT_FINITE)
    return frames


def pooled(frames: Floats, recipe: Recipe, seconds: float) -> Floats:
    """The points of one clip: its frames, means of seconds (a rest of frames at the end left out), or their mean."""
    if recipe.point == "clip":
        frames = frames.mean(axis=0, keepdims=True, dtype=np.float64)
    elif recipe.point == "second":
        size = min(max(1, int(len(frames) / max(seconds, 1e-9))), len(frames))
        whole = frames[: len(frames) // size * size]
        frames = whole.reshape(-1, size, whole.shape[1]).mean(axis=1, dtype=np.float64)
    if recipe.rounding == "float16":
        with np.errstate(over="ignore"):
            frames = frames.astype(np.float16)
        if not np.isfinite(frames).all():
            raise InputError("a number is too large for float16, in which the recipe stores vectors")
    return np.asarray(frames, np.float32)


def _joined(ids: Sequence[str], frames: Sequence[NDArray[Any]], failures: tuple[Failure, ...] = ()) -> Points:
    numbers = np.repeat(np.arange(len(frames)), [len(values) for values in frames])
    notes = []
    if failures:
        lost = counted(len(failures), "clip")
        notes.append(f"{lost} of {len(failures) + len(ids)} failed; first {failures[0].id}: {failures[0].reason}")
    return Points(np.concatenate(frames), numbers, tuple(ids), failures, tuple(notes))


# --- vectors ------------------------------------------------------------------------------------------------------


def given_points(vectors: Vectors) -> Points:
    """The rows of a file as points; rows of one group are of one clip."""
    count = len(vectors.values)
    rows = vectors.ids or tuple(f"row {row}" for row in range(count))
    if vectors.groups is None:
        return Points(vectors.values, np.arange(count), rows)
    names = [rows[row] if group is None else group for row, group in enumerate(vectors.groups)]
    places = {name: place for place, name in enumerate(dict.fromkeys(names))}
    return Points(vectors.values, np.array([places[name] for name in names]), tuple(places))


def holds_arrays(folder: Path) -> bool:
    """Whether a folder is one of .npy files, as fadtk and kadtk keep the vectors of each clip."""
    return folder.is_dir() and any(folder.glob("*.npy"))


def read_arrays(folder: Path) -> Points:
    """A folder of .npy files: one for each clip, frames by numbers."""
    frames: list[NDArray[Any]] = []
    names: list[str] = []
    for file in sorted(folder.glob("*.npy")):
        try:
            values = np.load(file, allow_pickle=False)
        except (OSError, ValueError) as error:
            raise InputError(f"{file} is not a readable array ({error}): replace it or leave it out.") from error
        values = np.atleast_2d(values)
        width = frames[0].shape[1] if frames else values.shape[-1]
        if values.ndim != 2 or values.dtype.kind != "f" or values.shape[1] != width or not len(values):
            raise InputError(
                f"{file} holds {values.dtype} of shape {values.shape}: frames by {width} numbers are needed."
            )
        frames.append(values.astype(np.float32 if values.dtype == np.float16 else values.dtype))
        names.append(file.stem)
    return _joined(names, frames)
