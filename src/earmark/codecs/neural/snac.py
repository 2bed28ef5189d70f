"""SNAC: codebooks at several rates. A column of tokens is one of the coarsest level and all that lie under it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from earmark.codecs.neural.checkpoints import Config
from earmark.codecs.neural.token_codec import UNSEEN, TokenCodec, TokenFormat, settings
from earmark.errors import InputError

if TYPE_CHECKING:
    from earmark.networks.snac import SnacShape

# Checkpoint: kbps, rate, samples of a frame of the encoder, levels. A column is a token of the coarsest level and all
# that lie under it.
_CHECKPOINTS = {
    "24khz": (0.98, 24000, 512, 3),
    "32khz": (1.9, 32000, 384, 4),
    "44khz": (2.6, 44100, 384, 4),
}
CARDS = tuple(
    card
    for name, (kbps, rate, hop, levels) in _CHECKPOINTS.items()
    for card in settings(
        f"snac_{name}", {kbps: 2**levels - 1}, size=4096,
        title=f"SNAC, {name}", rate=rate, frame_rate=rate / (hop * 2 ** (levels - 1)), causal=False, licence="MIT",
        citation="Siuzdak et al., SNAC: multi-scale neural audio codec, 2024",
        checkpoint=f"hubertsiuzdak/snac_{name}",
        how_to_get=f"config.json and pytorch_model.bin of hubertsiuzdak/snac_{name}; allow_pickle=true",
        notes=f"{levels} levels, each twice as fine in time as the last, make {2**levels - 1} tokens a frame; its "
        f"decoder adds noise, which is drawn from a fixed seed; {UNSEEN}",
    )
)  # fmt: skip


class Snac(TokenCodec):
    def describe(self, config: Config) -> TokenFormat:
        self.shape = shape = shape_of(config)
        coarsest = shape.vq_strides[0]
        if any(coarsest % stride for stride in shape.vq_strides):
            name = config.checkpoint.name
            raise InputError(f"The config of {name} has vq_strides that do not divide the first of them.")
        whole = shape.hop * math.lcm(coarsest, shape.attn_window_size or 1)
        sizes = (shape.codebook_size,) * sum(shape.slots)
        return TokenFormat(config.get("sampling_rate", int), shape.hop * coarsest, sizes, whole, fewer=False)

    def empty(self) -> Any:
        from earmark.networks.snac import SNAC

        return SNAC(self.shape)


def shape_of(config: Config) -> SnacShape:
    """What a config says about the network."""
    from earmark.networks.snac import HEAD, SnacShape

    # A window that is null means no attention, and a latent_dim that is null the encoder's own.
    none = config.values.get("attn_window_size", 32) is None
    shape = config.fill(SnacShape, attn_window_size=None if none else config.get("attn_window_size", int, 32))
    latent = shape.latent_dim
    if config.values.get("latent_dim") not in (None, latent):
        raise InputError(f"The config of {config.checkpoint.name} has a latent_dim that is not {latent}.")
    if not none and (latent % HEAD or shape.decoder_dim % HEAD):
        raise InputError(f"The config of {config.checkpoint.name} has widths that are no multiples of {HEAD}.")
    return shape
