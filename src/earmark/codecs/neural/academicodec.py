"""AcademiCodec's HiFi-Codec: two groups of two residual codebooks. All are needed: each group is half of the latent."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from earmark.codecs.contract import CodecCard
from earmark.codecs.neural.checkpoints import Config, Layout
from earmark.codecs.neural.token_codec import UNSEEN, TokenCodec, TokenFormat, settings
from earmark.errors import InputError

if TYPE_CHECKING:
    from earmark.networks.hificodec import HiFiCodecShape

# Configuration in Table 3: paper code, rate, kbps, file of weights, config.
_FILES = {
    "16k_320d": ("B1", 16000, 2, "HiFi-Codec-16k-320d", "config_16k_320d.json"),
    "16k_320d_large_uni": ("B2", 16000, 2, "HiFi-Codec-16k-320d-large-universal", "config_16k_320d.json"),
    "24k_320d": ("B3", 24000, 3, "HiFi-Codec-24k-320d", "config_24k_320d.json"),
}
CARDS = tuple(
    card
    for name, (code, rate, kbps, weights, config) in _FILES.items()
    for card in settings(
        f"academicodec_{name}", {kbps: 4}, codes={kbps: code},
        title=f"AcademiCodec, HiFi-Codec {name}", rate=rate, frame_rate=rate / 320, causal=False,
        licence="MIT (code); terms of the weights: see their page",
        citation="Yang et al., HiFi-Codec: group-residual vector quantization for high fidelity audio codec, 2023",
        checkpoint="Dongchao/AcademiCodec",
        how_to_get=f"{weights} of Dongchao/AcademiCodec, and {config} of the repository yangdongchao/AcademiCodec "
        "beside it; allow_pickle=true",
        notes=f"two groups of two residual codebooks, which are all needed; {UNSEEN}",
    )
)  # fmt: skip


class AcademiCodec(TokenCodec):
    @classmethod
    def layout_of(cls, card: CodecCard) -> Layout:
        *_, weights, config = _FILES[card.family.removeprefix("academicodec_")]
        return Layout((config, "config.json"), (weights,))

    def describe(self, config: Config) -> TokenFormat:
        self.shape = shape = shape_of(config)
        hop = math.prod(shape.upsample_rates)
        sizes = (shape.n_codes,) * (2 * shape.n_code_groups)
        return TokenFormat(config.get("sampling_rate", int), hop, sizes, whole=hop, fewer=False)

    def empty(self) -> Any:
        from earmark.networks.hificodec import HiFiCodec

        return HiFiCodec(self.shape)


def shape_of(config: Config) -> HiFiCodecShape:
    """What a config says about the network."""
    from earmark.networks.hificodec import FIRST, WIDTH, HiFiCodecShape

    shape = config.fill(HiFiCodecShape, paired=config.get("resblock", str, known=("1", "2")) == "1")
    if FIRST * 2 ** len(shape.upsample_rates) != WIDTH or WIDTH % shape.n_code_groups:
        raise InputError(
            f"The config of {config.checkpoint.name} does not lead to latents of {WIDTH} numbers in whole groups: "
            f"take a published checkpoint of {config.checkpoint.family}."
        )
    return shape
