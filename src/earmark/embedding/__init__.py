"""Clips to vectors: frames of a model, pooling, PCA. `earmark.embed` is `embed_audio`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from earmark.embedding.embed import Embedded, Embedding, Failure, embed_audio

__all__ = ["Embedded", "Embedding", "Failure", "embed_audio"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module("earmark.embedding.embed"), name)
    raise AttributeError(f"module 'earmark.embedding' has no attribute {name!r}")
