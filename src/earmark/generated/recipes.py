"""Fréchet and kernel audio distances as tools compute them: one entry of a table for each, so that a number has a name.

    sound -- level, windows --> model -- frames --> points --> distance

Everything in which tools differ is a field: the model with its layer and rate, what is done to the level of a sound,
where windows are cut, what a point is, how vectors are rounded, and which distance is taken. What cannot be a field
(the resampler, a random cut) stands in the notes. The table is recipes.yaml, and a file of one's own has the same form.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, get_args, get_type_hints

import yaml

from earmark.errors import InputError, UsageError, did_you_mean
from earmark.generated.metrics import ALIASES, DISTANCES, plan
from earmark.plain_yaml import load_yaml
from earmark.scores.metrics import named
from earmark.specs import parse_spec

POINTS: dict[str, str] = {
    "frame": "every frame or window of every clip",
    "second": "the mean of every second of every clip",
    "clip": "the mean of every clip",
}
LEVELS: dict[str, str] = {
    "as it is": "as it is in the file",
    "16 bit": "as it is in the file, rounded to 16 bits",
    "maximum": "divided by its largest sample, and by no less than 0.1",
    "peak": "peak normalised",
}
SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One way to a number.

    Args:
        name: How it is asked for.
        follows: The tool whose numbers it should give, with the version that was read.
        model: The extractor with checkpoint, layer and parameters; empty where the model is none of Earmark's, so that
            only vectors can be measured.
        dimension: Numbers in a vector.
        point: What becomes a point of the distribution: `POINTS`.
        metrics: What is measured, the tool's own first.
        level: What is done to a sound before: `LEVELS`.
        window: Seconds that are cut out of a clip and given to the model by themselves; 0: the whole clip.
        hop: Seconds from one window to the next.
        rest: What becomes of windows that pass the end of a clip: `dropped`, or `filled` with zeros.
        longest: Seconds of a clip that are heard at most; 0: all.
        rounding: How vectors are kept before the distance: float16, or nothing.
        weights: Where the weights are had, for models that bring none.
        notes: What differs from the tool all the same, and what is odd about the tool.
        paper: Where it comes from.
    """

    name: str
    follows: str = ""
    model: str = ""
    dimension: int
    point: Literal["frame", "second", "clip"]
    metrics: tuple[str, ...] = DISTANCES
    level: Literal["as it is", "16 bit", "maximum", "peak"] = "as it is"
    window: float = 0.0
    hop: float = 0.0
    rest: Literal["dropped", "filled"] = "dropped"
    longest: float = 0.0
    rounding: Literal["", "float16"] = ""
    weights: str = ""
    notes: tuple[str, ...] = ()
    paper: str = ""

    @property
    def extractor(self) -> str:
        """The registered name of the model."""
        return parse_spec(self.model).name if self.model else ""


@cache
def recipes() -> dict[str, Recipe]:
    """Every recipe of the table by name. No model is loaded."""
    table = load_yaml((files("earmark.generated") / "recipes.yaml").read_text("utf-8"), "recipes.yaml")
    return {name: _recipe(name, entry, table, "recipes.yaml") for name, entry in table["recipes"].items()}


def find_recipe(name: str | Recipe) -> Recipe:
    """A recipe by its name, or the one in a YAML file of one's own."""
    if isinstance(name, Recipe):
        return name
    if name in recipes():
        return recipes()[name]
    if name.lower().endswith(SUFFIXES):
        return _read(Path(name).expanduser())
    raise UsageError(
        f"There is no recipe {name!r}.{did_you_mean(name, recipes())} `earmark fidelity recipes` lists them."
    )


def distances_of(recipe: Recipe, metrics: str | Iterable[str] | None = None) -> tuple[str, ...]:
    """The distances that are measured by a recipe: its own, or those asked for, which must be distances."""
    asked = plan(recipe.metrics if metrics is None else metrics, recipe.metrics)
    foreign = [metric for metric in asked if metric not in DISTANCES]
    if foreign:
        raise InputError(
            f"{foreign[0]} is no distance of two distributions: a recipe measures {', '.join(DISTANCES)}; leave "
            "--recipe out for other metrics."
        )
    return asked


def _read(path: Path) -> Recipe:
    try:
        entry = load_yaml(path.read_text("utf-8"), str(path))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(f"{path} cannot be read as a recipe ({' '.join(str(error).split())}).") from error
    if not isinstance(entry, Mapping):
        raise InputError(f"{path} holds no recipe: give its fields, as in recipes.yaml.")
    return _recipe(path.stem, entry, {}, str(path))


def _recipe(name: str, entry: Mapping[str, Any], table: Mapping[str, Any], source: str) -> Recipe:
    """A recipe from an entry, with the remarks, weights and papers that it names by a word."""
    known = [field.name for field in fields(Recipe)]
    for key in entry:
        if key not in known:
            raise InputError(f"{source}: a recipe has no {key!r}.{did_you_mean(str(key), known)}")
    notes = entry.get("notes", ())
    notes = [notes] if isinstance(notes, str) else notes
    texts = {
        "notes": tuple(table.get("remarks", {}).get(note, note) for note in notes),
        "weights": table.get("weights", {}).get(entry.get("weights", ""), entry.get("weights", "")),
        "paper": table.get("papers", {}).get(entry.get("paper", ""), entry.get("paper", "")),
        "metrics": tuple(ALIASES.get(name, name) for name in named(entry.get("metrics", DISTANCES))),
    }
    try:
        recipe = Recipe(**{"name": name, **entry, **texts})
    except TypeError as error:
        raise InputError(f"{source}: a recipe needs dimension and point ({error}).") from None
    _check(recipe, source)
    return recipe


def _check(recipe: Recipe, source: str) -> None:
    hints = get_type_hints(Recipe)
    for field in ("point", "level", "rest", "rounding"):
        choices = get_args(hints[field])
        if getattr(recipe, field) not in choices:
            raise InputError(f"{source}: {field} is {getattr(recipe, field)!r}; choose from {', '.join(choices)}.")
    numbers = (recipe.dimension, recipe.window, recipe.hop, recipe.longest)
    if not all(isinstance(number, int | float) and number >= 0 for number in numbers) or (
        recipe.window and not recipe.hop
    ):
        raise InputError(f"{source}: dimension, window, hop and longest are numbers, and a window needs a hop.")
    for metric in recipe.metrics:
        if metric not in DISTANCES:
            raise InputError(
                f"{source}: {metric!r} is none of {', '.join(DISTANCES)}.{did_you_mean(metric, DISTANCES)}"
            )
