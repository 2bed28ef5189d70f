"""Extractors and systems of a run: which models there are, what identifies their vectors, and how they are named.

A model is a spec and its parameters. A system is a model with a pooling and a PCA dimension; it has a name in the
score table that does not depend on what else is in the run:

    logmel flatten          extractor and pooling
    whisper mean_time D100  with PCA to 100 dimensions
    clap                    one vector per clip: no pooling to name
"""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from earmark.embed import pooling
from earmark.errors import UsageError
from earmark.extractors.catalogue import open_extractor
from earmark.extractors.contract import Extractor, ExtractorCard
from earmark.pipeline import keys
from earmark.pipeline.config import ExtractorEntry, RunConfig
from earmark.pipeline.prepare import Subset

_SHARED = ("earmark.extractors.catalogue", "earmark.extractors.contract")
"""Modules of extractors that only list and describe: they change no number."""


@dataclass(frozen=True)
class Model:
    """An extractor before it is opened: its card, and the hash of what its frames depend on."""

    name: str
    short_name: str
    spec: str
    parameters: dict[str, Any]
    card: ExtractorCard
    identity: str
    learns: bool

    def key(self, subset: Subset) -> str:
        """What its vectors of a subset depend on, beside each clip; a model that learns depends on them all."""
        if not self.learns:
            return self.identity
        return keys.fingerprint(self.identity, keys.set_key(digest for _, digest in subset.readable))

    def open(self) -> Extractor:
        return open_extractor(self.spec, **self.parameters)


@dataclass(frozen=True)
class System:
    """What a row of the score table is about: a model, a pooling, a PCA dimension, and the distances to use."""

    name: str
    code: str
    model: Model
    pooling: str
    parts: tuple[str, ...]
    pca: int | None
    distances: tuple[str, ...]


def describe_model(entry: ExtractorEntry) -> Model:
    """The model of an entry; opens it once, to read its card and to fail early when it cannot be had."""
    opened = open_extractor(entry.spec, **entry.parameters)
    card = opened.card
    identity = keys.fingerprint(
        "vectors",
        1,
        card.name,
        card.version,
        card.rate,
        entry.spec,
        entry.parameters,
        code_behind(getattr(opened, "model", opened)),
        keys.code_of(keys.EMBEDDING_CODE),
    )
    short = entry.short_name or card.short_name or entry.name
    return Model(entry.name, short, entry.spec, entry.parameters, card, identity, hasattr(opened, "fit"))


def systems_of(config: RunConfig) -> list[System]:
    """Every system of a config in its order; entries that share spec and parameters share the model's vectors."""
    systems: list[System] = []
    for entry in config.extractors:
        model = describe_model(entry)
        dimensions = entry.pca if entry.pca is not None else config.pca
        distances = entry.distances or config.distances
        for asked in entry.pooling or config.pooling or [model.card.pooling]:
            variant = pooling.parse(asked)  # `MTF D100` names its own dimension
            for dimension in dimensions if variant.pca is None else [variant.pca]:
                systems.append(_system(model, variant.pooling, dimension, distances))
    twice = {system.name for system in systems if sum(other.name == system.name for other in systems) > 1}
    if twice:
        raise UsageError(f"{sorted(twice)[0]!r} is asked for twice: leave one of them out.")
    return systems


def _system(model: Model, spelled: str, dimension: int | None, distances: list[str]) -> System:
    card = replace(model.card, short_name=model.short_name)
    whole = card.frame_rate is None and spelled == card.pooling
    suffix = "" if dimension is None else f" D{dimension}"
    name = f"{model.name}{'' if whole else f' {spelled}'}{suffix}"
    code = pooling.system_code(card, spelled, dimension)
    return System(name, code, model, spelled, pooling.atoms(spelled), dimension, tuple(distances))


def card_of(system: System) -> dict[str, Any]:
    """A system for the run's record."""
    return {
        "system": system.name,
        "code": system.code,
        "extractor": system.model.name,
        "short_name": system.model.short_name,
        "spec": system.model.spec,
        "parameters": system.model.parameters,
        "pooling": system.pooling,
        "pca": system.pca,
        "distances": list(system.distances),
        "card": asdict(system.model.card),
    }


# --- code ----------------------------------------------------------------------------------------------------


def code_behind(thing: object) -> str:
    """The hash of the modules that define a model: its classes' and those they import from the same package."""
    modules = {kind.__module__ for kind in type(thing).__mro__ if kind.__module__ != "builtins"}
    reached: set[str] = set()
    waiting = sorted(modules)
    while waiting:
        name = waiting.pop()
        module = sys.modules.get(name)
        if name in reached or module is None or name in _SHARED:
            continue
        reached.add(name)
        waiting += [other for other in imported_by(module) if _same_package(other, name)]
    files = {name: getattr(sys.modules[name], "__file__", None) for name in sorted(reached)}
    digests = {name: keys.source_digest(Path(file)) for name, file in files.items() if file and Path(file).is_file()}
    return keys.fingerprint(digests)


def _same_package(other: str, name: str) -> bool:
    top = name.partition(".")[0]
    return other.startswith("earmark.extractors.") if top == "earmark" else other.partition(".")[0] == top


@functools.cache
def imported_by(module: ModuleType) -> tuple[str, ...]:
    """Names of modules that a module's import statements mention."""
    file = getattr(module, "__file__", None)
    if not file or not Path(file).is_file() or Path(file).suffix != ".py":
        return ()
    return tuple(_imports(ast.parse(Path(file).read_bytes()), module.__package__ or ""))


def _imports(tree: ast.AST, package: str) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*parents, *([node.module] if node.module else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)
