"""A paragraph on methods, from the record of a run: what a paper must say so that others can do it again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from earmark.metrics.catalogue import HEADLINES
from earmark.scores import Row
from earmark.wording import counted, listed

_SHORT = 12
"""Digits of a hash that a text shows; run.json has all of them."""
LIBRARIES = (
    "numpy", "scipy", "numba", "scikit-learn", "soundfile", "soxr", "av", "torch", "transformers", "onnxruntime",
    "ai-edge-litert", "opensmile", "librosa", "mteb", "sentence-transformers",
)  # fmt: skip
"""Distributions whose versions a run records, when they are loaded."""
MODULES = {
    "scikit-learn": "sklearn", "ai-edge-litert": "ai_edge_litert", "sentence-transformers": "sentence_transformers"
}  # fmt: skip
"""What those are imported as that have another name."""
_COPIES = {"drop": "all but the first left out", "keep": "kept", "refuse": "none"}
_INTERVALS = {
    "jackknife": "95 % intervals leave out each {unit} in turn, as query and as candidate",
    "bootstrap_queries": "95 % intervals are the middle of resampled queries, the candidates held fixed",
    "bootstrap_points": "95 % intervals are the middle of resampled points",
}


def methods_text(record: Mapping[str, Any], settings: Mapping[str, Any], rows: Sequence[Row]) -> str:
    """The paragraph. `settings` are those of the run's config, `rows` its scores."""
    sentences = [
        f"{counted(len(record['systems']), 'representation')} of {_sounds(record)} were evaluated with Earmark "
        f"{record['earmark']}, without training on the labels.",
        *_corpora(record["corpora"]),
        *_models(record["systems"]),
        *_measures(settings, rows),
        f"Seed {settings['seed']}; {_versions(record['versions'])}.",
    ]
    return " ".join(sentence for sentence in sentences if sentence)


def _sounds(record: Mapping[str, Any]) -> str:
    subsets = record["subsets"]
    clips, classes = (sum(subset[name] for subset in subsets) for name in ("clips", "classes"))
    where = f" in {counted(len(subsets), 'subset')}" if len(subsets) > 1 else ""
    return f"{counted(clips, 'clip')} of {counted(classes, 'class')}{where}"


def _corpora(corpora: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    for corpus in corpora:
        facts = [corpus["source"], corpus["revision"] and f"revision {corpus['revision']}", corpus["licence"]]
        known = "; ".join(filter(None, facts))
        name = corpus["title"] or corpus["name"]
        yield f"Sounds: {name}{f' ({known})' if known else ''}."


def _models(systems: Sequence[Mapping[str, Any]]) -> Iterable[str]:
    for spec in dict.fromkeys(system["spec"] for system in systems):
        own = [system for system in systems if system["spec"] == spec]
        card = own[0]["card"]
        layers = sorted({system["layer"] for system in own if system["layer"] is not None})
        reduced = sorted({system["pca"] for system in own if system["pca"]})
        facts = [
            spec if spec != card["title"] else "",
            f"weights {listed(_weights(own[0]))}" if own[0].get("files") else "",
            f"hidden layers {', '.join(map(str, layers))}" if layers else "",
            f"pooled by {listed(dict.fromkeys(system['pooling'] for system in own))}" if card["frame_rate"] else "",
            f"PCA to {listed(map(str, reduced))} dimensions" if reduced else "",
            f"trained on {own[0]['trained_on']}" if own[0]["trained_on"] else "",
        ]
        yield f"{card['title'] or card['name']} ({', '.join(filter(None, facts))})."


def _weights(system: Mapping[str, Any]) -> list[str]:
    return [f"{name} (SHA-256 {digest[:_SHORT]}…)" for name, digest in system["files"]]


def _measures(settings: Mapping[str, Any], rows: Sequence[Row]) -> Iterable[str]:
    measured = [row for row in rows if row.value is not None]
    distances = list(dict.fromkeys(row.distance for row in measured if row.distance))
    corrections = [name for name in dict.fromkeys(row.correction for row in measured) if name not in ("", "none")]
    metrics = dict.fromkeys(row.metric for row in measured)
    leading = [name for name in HEADLINES if name in metrics] or list(metrics)[:3]
    if distances:
        yield f"Distances: {listed(distances)}{f', corrected by {listed(corrections)}' if corrections else ''}."
    if leading:
        yield f"Metrics: {listed(leading)}{' and others' if len(metrics) > len(leading) else ''}."
    groups = any(row.protocol == "across_groups" for row in measured)
    yield "Pairs of one group were left out as well (across groups)." if groups else ""
    yield f"Copies of one sound: {_COPIES[settings['copies']]}."
    if settings["min_class_size"] > 2:
        yield f"Classes of fewer than {settings['min_class_size']} clips were left out."
    kinds = dict.fromkeys((row.interval, row.unit or "clip") for row in measured if row.low is not None)
    for kind, unit in kinds:
        if kind in _INTERVALS:
            yield _INTERVALS[kind].format(unit=unit) + "."
    if settings["permutations"]:
        yield f"Chance levels and p-values come from {settings['permutations']} permutations of the labels."


def _versions(versions: Mapping[str, str]) -> str:
    known = [f"{name} {versions[name]}" for name in ("python", *LIBRARIES) if versions.get(name)]
    return ", ".join(known)
