"""Residual vector quantisation: each codebook says the nearest of its entries to what the ones before left over."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

__all__ = ["ResidualQuantiser", "nearest"]


def nearest(vectors: Any, entries: Any) -> Any:
    """Numbers [N] of the entries [size, D] that lie nearest to vectors [N, D]; the first of several as near."""
    distances = entries.square().sum(1) - 2 * vectors @ entries.T + vectors.square().sum(1, keepdim=True)
    return distances.argmin(1)


class _Codebook(nn.Module):  # type: ignore[misc]
    def __init__(self, size: int, dimension: int) -> None:
        super().__init__()
        self.register_buffer("embed", torch.zeros(size, dimension))


class _Layer(nn.Module):  # type: ignore[misc]
    """Under the names of EnCodec's checkpoints: `_codebook.embed` [size, D]."""

    def __init__(self, size: int, dimension: int) -> None:
        super().__init__()
        self._codebook = _Codebook(size, dimension)

    @property
    def entries(self) -> Any:
        return self._codebook.embed


class ResidualQuantiser(nn.Module):  # type: ignore[misc]
    """Codebooks of one size over latents [B, D, T]; tokens are [codebooks, T], and one sound at a time is coded."""

    def __init__(self, codebooks: int, size: int, dimension: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList([_Layer(size, dimension) for _ in range(codebooks)])

    def encode(self, latents: Any, codebooks: int) -> Any:
        left = latents[0].T
        tokens = []
        for layer in self.layers[:codebooks]:
            tokens.append(nearest(left, layer.entries))
            left = left - functional.embedding(tokens[-1], layer.entries)
        return torch.stack(tokens)

    def decode(self, tokens: Any) -> Any:
        chosen = [
            functional.embedding(row, layer.entries)
            for row, layer in zip(tokens, self.layers[: len(tokens)], strict=True)
        ]
        return torch.stack(chosen).sum(0).T[None]
