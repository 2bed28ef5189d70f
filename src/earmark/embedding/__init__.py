"""Clips to vectors: frames of a model, pooling, PCA. `earmark.embed` is `embed_audio`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from earmark.lazy import lazy_names

if TYPE_CHECKING:
    from earmark.embedding.embed import Embedded, Embedding, Failure, embed_audio

__all__ = ["Embedded", "Embedding", "Failure", "embed_audio"]

__getattr__ = lazy_names("earmark.embedding", dict.fromkeys(__all__, "embed"))
