"""SNAC: codebooks at several rates. A column of tokens is one of the coarsest level and all that lie under it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from earmark.codecs.contract import CodecCard
from earmark.codecs.neural.checkpoints import Layout, config_at, exactly, find, tensors_of
from earmark.codecs.neural.configs import Config
from earmark.codecs.neural.options import Options, options_of
from earmark.codecs.neural.token_codec import TokenCodec
from earmark.errors import InputError, require

if TYPE_CHECKING:
    from earmark.networks.snac import Shape

__all__ = ["Snac", "make", "shape_of"]

LAYOUT = Layout()


class Snac(TokenCodec):
    def __init__(self, card: CodecCard, checkpoint: str, options: Options) -> None:
        require("torch", "These codecs", "models")
        found = find(card, checkpoint, LAYOUT, options)
        config = Config(config_at(found, LAYOUT), found)
        self.shape = shape = shape_of(config)
        coarsest = shape.strides[0]
        if any(coarsest % stride for stride in shape.strides):
            raise InputError(f"The config of {found.name} has vq_strides that do not divide the first of them.")
        hop = shape.hop * coarsest
        super().__init__(
            card,
            found,
            options,
            rate=config.number("sampling_rate"),
            hop=hop,
            sizes=(shape.size,) * shape.slots,
            whole=shape.hop * math.lcm(coarsest, shape.window or 1),
            fewer=False,
        )

    def load(self) -> Any:
        from earmark.networks.snac import SNAC

        return exactly(SNAC(self.shape), tensors_of(self.checkpoint), self.checkpoint)


def shape_of(config: Config) -> Shape:
    """What a config says about the network."""
    from earmark.networks.snac import HEAD, Shape

    width, rates = config.number("encoder_dim"), config.numbers("encoder_rates")
    latent = width * 2 ** len(rates)
    # A window that is null means no attention, and a latent_dim that is null the encoder's own.
    window = None if config.values.get("attn_window_size", 32) is None else config.number("attn_window_size", 32)
    if config.values.get("latent_dim") not in (None, latent):
        raise InputError(f"The config of {config.checkpoint.name} has a latent_dim that is not {latent}.")
    shape = Shape(
        encoder_width=width,
        encoder_rates=rates,
        latent_width=latent,
        decoder_width=config.number("decoder_dim"),
        decoder_rates=config.numbers("decoder_rates"),
        window=window,
        size=config.number("codebook_size"),
        code_dimension=config.number("codebook_dim"),
        strides=config.numbers("vq_strides"),
        noise=config.flag("noise", True),
        depthwise=config.flag("depthwise", True),
    )
    if window is not None and (latent % HEAD or shape.decoder_width % HEAD):
        raise InputError(f"The config of {config.checkpoint.name} has widths that are no multiples of {HEAD}.")
    return shape


def make(card: CodecCard, checkpoint: str = "", **options: Any) -> TokenCodec:
    return Snac(card, checkpoint, options_of(card.family, options))
