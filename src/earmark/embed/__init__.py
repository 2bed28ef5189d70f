"""Frames to vectors: pooling, PCA, and the way from clips to both.

The package is also the function: `earmark.embed("recordings/", "logmel", "mean_time")` is `embed_audio`, whether
or not `earmark.embed.pooling` has been imported before, which binds `earmark.embed` to this package.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from earmark.embed.embedding import Embedded, Embedding, Failure, embed, embed_audio

__all__ = ["Embedded", "Embedding", "Failure", "embed", "embed_audio"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module("earmark.embed.embedding"), name)
    raise AttributeError(f"module 'earmark.embed' has no attribute {name!r}")


class _Callable(ModuleType):
    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self.embed_audio(*arguments, **options)


sys.modules[__name__].__class__ = _Callable
