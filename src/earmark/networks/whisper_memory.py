"""Whisper's encoder without the copies that its library makes: the same operations on the same numbers.

In half precision a large GPU multiplies faster than it can copy. The library leaves what comes out of the
convolutions transposed, so that every sum and every norm behind it walks through memory the long way, and copies
queries, keys and values into another order before attention, which reads them in either. Both together were a third of
the time of Whisper-large in bfloat16 on an H200.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
from torch.nn import functional

_NEEDED = ("q_proj", "k_proj", "v_proj", "out_proj", "num_heads", "head_dim", "scaling")


def spare_copies(encoder: Any) -> Any:
    """Let a `WhisperEncoder` of transformers work in place; what is not built as expected is left as it is."""
    layers = list(encoder.layers)
    if layers:
        layers[0].register_forward_pre_hook(_in_order, with_kwargs=True)
    for layer in layers:
        attention: Any = getattr(layer, "self_attn", None)
        if all(hasattr(attention, name) for name in _NEEDED):
            attention.forward = partial(_attend, attention)
    return encoder


def _in_order(layer: Any, given: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What enters the first layer, frame after frame in memory."""
    tidy = [value.contiguous() if isinstance(value, torch.Tensor) else value for value in (*given, *named.values())]
    return tuple(tidy[: len(given)]), dict(zip(named, tidy[len(given) :], strict=True))


def _attend(attention: Any, hidden_states: torch.Tensor, *_: Any, **__: Any) -> tuple[torch.Tensor, None]:
    """Self-attention over all frames: the encoder has no mask."""
    batch, frames, width = hidden_states.shape
    shape = (batch, frames, attention.num_heads, attention.head_dim)
    scale = float(attention.scaling)
    queries = attention.q_proj(hidden_states)
    if math.frexp(scale)[0] != 0.5:  # a power of two may be multiplied in anywhere: no bit depends on it
        queries, scale = queries * scale, 1.0
    queries = queries.view(shape).transpose(1, 2)
    keys = attention.k_proj(hidden_states).view(shape).transpose(1, 2)
    values = attention.v_proj(hidden_states).view(shape).transpose(1, 2)
    mixed = functional.scaled_dot_product_attention(queries, keys, values, scale=scale)
    return attention.out_proj(mixed.transpose(1, 2).reshape(batch, frames, width)), None
