"""DeepNorm in HuBERT's blocks, as MERT's large models have it: residuals weigh (2 · layers)^(1/4) before each norm.

MERT's `attention_relax`, which comes with it, divides scores before their maximum is taken off and multiplies them
after: the softmax is the same.
"""

from __future__ import annotations

from functools import partial
from typing import Any


def weigh_residuals(model: Any, layers: int) -> None:
    """Let every block of an encoder that normalises after each half weigh its residuals."""
    for block in model.encoder.layers:
        block.forward = partial(_forward, block, (2.0 * layers) ** 0.25)


def _forward(block: Any, weight: float, hidden_states: Any, attention_mask: Any = None, **rest: Any) -> Any:
    attended = block.attention(hidden_states, attention_mask=attention_mask, **rest)[0]
    values = block.layer_norm(weight * hidden_states + attended)
    return block.final_layer_norm(weight * values + block.feed_forward(values))
