"""Extractors and systems of a run: which models there are, what identifies their vectors, and how they are named.

A model is a spec and its parameters. A system is a model with a pooling and a PCA dimension; it has a name in the
score table that does not depend on what else is in the run:

    logmel flatten          extractor and pooling
    whisper mean_time D100  with PCA to 100 dimensions
    clap                    one vector per clip: no pooling to name
    wavlm@9 mean_time       one of its hidden layers
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from earmark.embedding import pooling
from earmark.errors import UsageError
from earmark.extractors.catalogue import open_extractor, parse_spec
from earmark.extractors.contract import Extractor, ExtractorCard, LayeredExtractor
from earmark.pipeline import identity, keys, layers
from earmark.pipeline.cache import Cache
from earmark.pipeline.config import ExtractorEntry, RunConfig
from earmark.pipeline.identity import Reads
from earmark.pipeline.prepare import Subset


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
    reads: Reads
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
    remark: str = ""  # what was noticed of the model when it first heard sound


def describe_model(entry: ExtractorEntry, cache: Cache | None = None) -> Model:
    """The model of an entry; opens it once: for its card, for what it reads, and to fail early when it cannot be had.

    A `cache` knows which files it opened later, when it first heard sound.
    """
    spec = parse_spec(entry.spec)
    opened, reads = identity.opening(
        lambda: open_extractor(entry.spec, **entry.parameters),
        modules=[spec.name],
        given=[spec.argument or "", entry.parameters],
    )
    card = opened.card
    own = keys.fingerprint(
        "vectors",
        2,
        card.name,
        card.version,
        card.rate,
        entry.spec,
        entry.parameters,
        reads.key,
        keys.code_of(keys.EMBEDDING_CODE),
        keys.versions(*keys.EMBEDDING_LIBRARIES),
    )
    short = entry.short_name or card.short_name or entry.name
    layers = opened.layers if isinstance(opened, LayeredExtractor) else None
    if cache is not None:
        own = identity.resolved(cache, own)
    return Model(entry.name, short, entry.spec, entry.parameters, card, own, hasattr(opened, "fit"), reads, layers)


def systems_of(config: RunConfig, cache: Cache | None = None) -> list[System]:
    """Every system of a config in its order; entries that share spec and parameters share the model's vectors."""
    systems: list[System] = []
    for entry in config.extractors:
        model = describe_model(entry, cache)
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
        "remark": system.remark,
        "card": asdict(system.model.card),
    }
