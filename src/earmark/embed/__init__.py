"""Frames to vectors: pooling, PCA, and the way from clips to both.

`earmark.embed(...)` is `earmark.embed.embed(...)`, the function `embed_audio`. Importing any module of this package
binds the name `earmark.embed` to the package, so the package itself can be called and does the same.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from earmark.embed.embedding import Embedded, Embedding, Failure
    from earmark.embed.embedding import embed_audio as embed

__all__ = ["Embedded", "Embedding", "Failure", "embed"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module("earmark.embed.embedding"), "embed_audio" if name == "embed" else name)
    raise AttributeError(f"module 'earmark.embed' has no attribute {name!r}")


class _Callable(ModuleType):
    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self.embed(*arguments, **options)


sys.modules[__name__].__class__ = _Callable
