"""Extractors and systems of a run: which models there are, what identifies their vectors, and how they are named.

A model is a spec and its parameters. A system is a model with a pooling and a PCA dimension; it has a name in the
score table that does not depend on what else is in the run:

    logmel flatten          extractor and pooling
    whisper mean_time D100  with PCA to 100 dimensions
    clap                    one vector per clip: no pooling to name
    wavlm@9 mean_time       one of its hidden layers
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from earmark.embed import pooling
from earmark.errors import UsageError
from earmark.extractors.catalogue import open_extractor, parse_spec
from earmark.extractors.contract import Extractor, ExtractorCard, LayeredExtractor
from earmark.pipeline import keys, layers
from earmark.pipeline.config import ExtractorEntry, RunConfig
from earmark.pipeline.prepare import Subset

_SHARED = ("earmark.extractors.contract", "earmark.extractors.progress")
"""Modules of extractors that only describe and tell: they change no number."""


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
    layers: int | None = None  # hidden layers, where they can be chosen

    def key(self, subset: Subset) -> str:
        """What its vectors of a subset depend on, beside each clip; one that learns depends on all, in order."""
        if not self.learns:
            return self.identity
        return keys.fingerprint(self.identity, keys.versions("torch"), [digest for _, digest in subset.readable])

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
    layer: int | None = None  # None: the one that the model gives unasked


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
        code_behind(getattr(opened, "model", opened), entry.spec),
        weights_behind(parse_spec(entry.spec).argument or "", entry.parameters),
        keys.code_of(keys.EMBEDDING_CODE),
        keys.versions(*keys.EMBEDDING_LIBRARIES),
    )
    short = entry.short_name or card.short_name or entry.name
    layers = opened.layers if isinstance(opened, LayeredExtractor) else None
    return Model(entry.name, short, entry.spec, entry.parameters, card, identity, hasattr(opened, "fit"), layers)


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
                for layer in _layers(entry, model, config):
                    systems.append(_system(model, layer, variant.pooling, dimension, distances))
    twice = {system.name for system in systems if sum(other.name == system.name for other in systems) > 1}
    if twice:
        raise UsageError(f"{sorted(twice)[0]!r} is asked for twice: leave one of them out.")
    return systems


def _layers(entry: ExtractorEntry, model: Model, config: RunConfig) -> tuple[int | None, ...]:
    """The layers of a model to measure; those of the whole run concern only models that have some."""
    if entry.layers is not None:
        return layers.counted(entry.layers, model.layers, model.name)
    if config.layers is not None and model.layers is not None:
        return layers.counted(config.layers, model.layers, model.name)
    return (None,)


def _system(model: Model, layer: int | None, spelled: str, dimension: int | None, distances: list[str]) -> System:
    card = replace(model.card, short_name=layers.named(model.short_name, layer))
    whole = card.frame_rate is None and spelled == card.pooling
    suffix = "" if dimension is None else f" D{dimension}"
    name = f"{layers.named(model.name, layer)}{'' if whole else f' {spelled}'}{suffix}"
    code = pooling.system_code(card, spelled, dimension)
    parts = tuple(layers.part_of(layer, atom) for atom in pooling.atoms(spelled))
    return System(name, code, model, spelled, parts, dimension, tuple(distances), layer)


def card_of(system: System) -> dict[str, Any]:
    """A system for the run's record."""
    return {
        "system": system.name,
        "code": system.code,
        "extractor": system.model.name,
        "short_name": system.model.short_name,
        "spec": system.model.spec,
        "parameters": system.model.parameters,
        "layer": system.layer,
        "pooling": system.pooling,
        "pca": system.pca,
        "distances": list(system.distances),
        "card": asdict(system.model.card),
    }


# --- what a model's answers depend on --------------------------------------------------------------------------


def code_behind(thing: object, spec: str) -> str:
    """The hash of the code a model runs: the module its spec names, those of its classes, and all they import.

    Source counts for Earmark's extractors and for everything that is not installed (a user's own files); an
    installed package counts by its version. Imports are followed where they are written, also inside functions.
    """
    waiting = sorted({kind.__module__ for kind in type(thing).__mro__} | {spec.partition(":")[0]})
    sources: dict[str, str] = {}
    versions: dict[str, str] = {}
    while waiting:
        name = waiting.pop()
        file = _file_of(name)
        if name in sources or name in _SHARED or file is None:
            continue
        top = name.partition(".")[0]
        if top == "earmark" and not name.startswith("earmark.extractors."):
            continue
        if top != "earmark" and _installed(file):
            versions[top] = keys.version_of(top)
            continue
        sources[name] = keys.source_digest(file)
        waiting += _imported_by(file, name)
    return keys.fingerprint(sources, versions)


def weights_behind(*given: Any) -> dict[str, str]:
    """The content of every file, and the listing of every folder, that a model's parameters name."""
    found: dict[str, str] = {}
    for value in given:
        if isinstance(value, dict):
            found |= weights_behind(*value.values())
        elif isinstance(value, list | tuple):
            found |= weights_behind(*value)
        elif isinstance(value, str) and value and len(value) < 4096:
            found |= _content(Path(value).expanduser())
    return found


def _content(place: Path) -> dict[str, str]:
    try:
        if place.is_file():
            with place.open("rb") as stream:
                return {str(place): hashlib.file_digest(stream, "sha256").hexdigest()}
        if place.is_dir():
            inside = sorted(path for path in place.rglob("*") if path.is_file())[:10_000]
            stats = [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in inside]
            return {str(place): keys.fingerprint(stats)}
    except OSError:
        pass
    return {}


def _file_of(name: str) -> Path | None:
    """The source file of a module, whether it is imported yet or not."""
    known = getattr(sys.modules.get(name), "__file__", None)
    if known is None and name not in sys.modules and all(part.isidentifier() for part in name.split(".")):
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, ValueError, AttributeError):
            return None
        known = spec.origin if spec is not None else None
    return Path(known) if known and Path(known).is_file() else None


def _installed(file: Path) -> bool:
    """Whether a file belongs to Python or to an installed package, rather than to the user."""
    return any(file.is_relative_to(folder) for folder in _installed_folders())


@functools.cache
def _installed_folders() -> tuple[Path, ...]:
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    return tuple({Path(sysconfig.get_paths()[name]).resolve() for name in names} | {
        Path(sysconfig.get_paths()[name]) for name in names
    })  # fmt: skip


def _imported_by(file: Path, name: str) -> list[str]:
    """Names of modules that a file's import statements mention."""
    if file.suffix != ".py":
        return []
    package = name if file.name == "__init__.py" else name.rpartition(".")[0]
    return list(_imports(ast.parse(file.read_bytes()), package))


def _imports(tree: ast.AST, package: str) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*parents, *([node.module] if node.module else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)
