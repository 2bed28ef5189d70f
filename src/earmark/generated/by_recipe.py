"""Two sets of sounds, or of vectors of any tool, to a distance by a recipe: `earmark.generated.audio_distance`."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.extractors.contract import Extractor
from earmark.generated import listening
from earmark.generated._distributions import frechet_distance, gaussian
from earmark.generated.api import Fidelity, fidelity
from earmark.generated.listening import Points
from earmark.generated.recipes import Recipe, distances_of, find_recipe
from earmark.places import locate
from earmark.scores import PointKey
from earmark.vectors import Vectors, read_vectors
from earmark.wording import counted

Floats = NDArray[np.float64]

VECTOR_FILES = (".npy", ".npz", ".pt")  # whatever else is said; tables may also be manifests of audio
INDIVIDUAL = "frechet_of_clip"  # the distance of the real set and the points of one clip, as fadtk's --indiv has it


def audio_distance(
    real: Any, generated: Any, *, recipe: str | Recipe, extractor: str = "", metrics: str | list[str] | None = None,
    intervals: str = "jackknife", seed: int = 0, bandwidth: float | str = "real", device: str = "auto",
    threads: int | None = None, system: str = "", subset: str = "", suite: str = "", progress: bool = False,
) -> Fidelity:  # fmt: skip
    """How far generated sounds are from real ones, measured as a tool measures it. Returns Fidelity.

    Clips are what intervals and halves of sets are made of, and what `per_sample` has a value for, also where points
    are frames: by how much the clip raises each distance, and as `frechet_of_clip` the distance of its own frames.

    Args:
        real: A folder, manifest or corpus of sounds; a file of vectors (a row for each point, those of one clip in one
            group); a folder of .npy files, one for each clip, as fadtk and kadtk keep them; an array; or Points.
        generated: The same of what was generated.
        recipe: Its name, as `earmark fidelity recipes` lists them, or a Recipe of your own.
        extractor: The recipe's model with a file of weights, `vggish:FILE`, or with other parameters.
        metrics: frechet_distance (fad), fad_inf, kernel_distance, kad; None is what the recipe has.
        intervals: "jackknife" or "none".
        seed: Seed of smaller sets.
        bandwidth: Of kad: whose points' median distance is the width of the kernel, "real" or "generated", or a number.
        device: Where a model runs: auto, cpu, cuda, cuda:1 or mps.
        threads: Threads at work; None is one for each core.
        system: Name of the generator, for the column `system`.
        subset: Name of the data, for the column `subset`.
        suite: Name of the suite, for the column `suite`.
        progress: Whether a bar on stderr shows how far the work is.

    >>> audio_distance("recordings/", "synthesised/", recipe="earmark-mfcc").value("frechet_distance")
    """
    recipe = find_recipe(recipe)
    source = Sources(recipe, extractor, device, threads, progress)
    sets = source.points(real), source.points(generated)
    return measure_points(
        *sets, recipe, source.name, metrics=metrics, intervals=intervals, seed=seed, bandwidth=bandwidth,
        threads=threads, system=system or _name_of(generated), subset=subset or _name_of(real), suite=suite,
        progress=progress,
    )  # fmt: skip


def _name_of(source: object) -> str:
    return str(source) if isinstance(source, str | PathLike) else ""


class Sources:
    """Points from wherever they are; the model is opened when the first sounds ask for it, and once."""

    def __init__(
        self, recipe: Recipe, extractor: str = "", device: str = "auto", threads: int | None = None,
        progress: bool = False, key: str | None = None,
    ) -> None:  # fmt: skip
        self.recipe, self.name = recipe, recipe.name
        self._extractor, self._device, self._threads, self._progress = extractor, device, threads, progress
        self._key = key
        self._model: Extractor | None = None

    def points(self, source: Any) -> Points:
        """The points of a source of any kind, as wide as the recipe's vectors or told."""
        if isinstance(source, Points):
            found = source
        elif not isinstance(source, str | PathLike):
            found = listening.given_points(source if isinstance(source, Vectors) else Vectors(None, np.asarray(source)))
        elif listening.holds_arrays(place := locate(source)):
            found = listening.read_arrays(place)
        elif place.suffix.lower() in VECTOR_FILES:
            found = listening.given_points(read_vectors(str(source), key=self._key))
        else:
            found = self._heard(str(source))
        width = found.values.shape[-1]
        if found.values.ndim == 2 and width != self.recipe.dimension:
            note = f"{_name_of(source) or 'vectors'}: {width} numbers in a vector, and {self.recipe.name} has "
            found = replace(found, notes=(*found.notes, f"{note}{self.recipe.dimension}"))
        return found

    def _heard(self, source: str) -> Points:
        if self._model is None:
            self._model, self.name = listening.open_model(self.recipe, self._extractor, self._device)
        heard = listening.hear_points(source, self.recipe, self._model, threads=self._threads, progress=self._progress)
        return replace(heard, notes=tuple(f"{source}: {note}" for note in heard.notes))


def measure_points(
    real: Points, generated: Points, recipe: Recipe, name: str = "", *, metrics: str | list[str] | None = None,
    **options: Any,
) -> Fidelity:  # fmt: skip
    """The distances of two sets of points, with clips as units; `options` are those of `fidelity`."""
    asked = distances_of(recipe, metrics)
    several = any(len(points.values) > len(points.ids) for points in (real, generated))
    if several:
        options |= {"groups": generated.groups, "real_groups": real.groups}
    scores = fidelity(real.values, generated.values, metrics=asked, correct="none", **options)
    per_sample = _by_clip(scores.per_sample, generated)
    if several:
        per_sample["euclidean", "none", "all", INDIVIDUAL] = _of_each_clip(real, generated)
    rows = tuple(replace(row, protocol=name or recipe.name, unit="clip" if row.unit else "") for row in scores)
    notes = [*real.notes, *generated.notes, *scores.notes, *_said(recipe, name, real, generated)]
    return replace(
        scores, rows=rows, notes=tuple(dict.fromkeys(notes)), per_sample=per_sample,
        per_real=_by_clip(scores.per_real, real), sample_ids=generated.ids, real_ids=real.ids,
    )  # fmt: skip


def _by_clip(values: Any, points: Points) -> dict[PointKey, Floats]:
    """To first order a clip raises a distance by the sum of what its points do."""
    count = len(points.ids)
    return {
        key: np.asarray(np.bincount(points.clips, weights=each, minlength=count), np.float64)
        for key, each in values.items()
    }


def _of_each_clip(real: Points, generated: Points) -> Floats:
    """The Fréchet distance of the real set and of each clip's points by themselves; NaN where a clip has but one."""
    seen = gaussian(real.values)
    order = np.argsort(generated.clips, kind="stable")
    starts = np.searchsorted(generated.clips[order], np.arange(len(generated.ids) + 1))
    found = np.full(len(generated.ids), np.nan)
    for clip, (first, last) in enumerate(pairwise(starts)):
        if last - first > 1:
            found[clip] = frechet_distance(seen, generated.values[order[first:last]])
    return found


def _said(recipe: Recipe, name: str, real: Points, generated: Points) -> list[str]:
    counts = [
        f"{counted(len(points.values), 'point')} of {counted(len(points.ids), f'{which} clip')}"
        for which, points in (("real", real), ("generated", generated))
    ]
    follows = f", which follows {recipe.follows}" if recipe.follows else ""
    said = [f"recipe {name or recipe.name}{follows}: {'; '.join(counts)}"]
    return said + ([f"{recipe.name}: {' '.join(recipe.notes)}"] if recipe.notes else [])
