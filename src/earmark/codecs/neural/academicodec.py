"""AcademiCodec's HiFi-Codec: two groups of two residual codebooks. All are needed: each group is half of the latent."""

from __future__ import annotations

import math
from typing import Any

from earmark.codecs.contract import CodecCard
from earmark.codecs.neural.checkpoints import Layout, config_at, exactly, find, tensors_of
from earmark.codecs.neural.configs import Config
from earmark.codecs.neural.options import Options, options_of
from earmark.codecs.neural.token_codec import TokenCodec
from earmark.errors import InputError, require

__all__ = ["AcademiCodec", "make", "network_of"]

LAYOUTS = {
    "academicodec_16k_320d": Layout(("config_16k_320d.json", "config.json"), ("HiFi-Codec-16k-320d",)),
    "academicodec_16k_320d_large_uni": Layout(
        ("config_16k_320d.json", "config.json"), ("HiFi-Codec-16k-320d-large-universal",)
    ),
    "academicodec_24k_320d": Layout(("config_24k_320d.json", "config.json"), ("HiFi-Codec-24k-320d",)),
}


class AcademiCodec(TokenCodec):
    def __init__(self, card: CodecCard, checkpoint: str, options: Options) -> None:
        layout = LAYOUTS[card.family]
        found = find(card, checkpoint, layout, options)
        self.config = config = Config(config_at(found, layout), found)
        hop = math.prod(config.numbers("upsample_rates"))
        super().__init__(
            card,
            found,
            options,
            rate=config.number("sampling_rate"),
            hop=hop,
            sizes=(config.number("n_codes"),) * (2 * config.number("n_code_groups")),
            whole=hop,
            fewer=False,
        )

    def load(self) -> Any:
        return exactly(network_of(self.config), tensors_of(self.checkpoint), self.checkpoint)


def network_of(config: Config) -> Any:
    """The network that a config describes, without its weights."""
    require("torch", "These codecs", "models")
    from earmark.networks.hificodec import FIRST, WIDTH, HiFiCodec, Shape

    rates, groups = config.numbers("upsample_rates"), config.number("n_code_groups")
    if FIRST * 2 ** len(rates) != WIDTH or WIDTH % groups:
        raise InputError(
            f"The config of {config.checkpoint.name} does not lead to latents of {WIDTH} numbers in whole groups: "
            f"take a published checkpoint of {config.checkpoint.family}."
        )
    return HiFiCodec(
        Shape(
            rates=rates,
            kernels=config.numbers("upsample_kernel_sizes"),
            channels=config.number("upsample_initial_channel"),
            residual_kernels=config.numbers("resblock_kernel_sizes"),
            residual_dilations=config.tables("resblock_dilation_sizes"),
            paired=config.word("resblock", known=("1", "2")) == "1",
            groups=groups,
            size=config.number("n_codes"),
        )
    )


def make(card: CodecCard, checkpoint: str = "", **options: Any) -> TokenCodec:
    return AcademiCodec(card, checkpoint, options_of(card.family, options))
