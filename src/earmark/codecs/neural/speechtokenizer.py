"""SpeechTokenizer: SEANet with a bidirectional LSTM in its encoder, 8 codebooks of which the first is about words."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from earmark.codecs.contract import CodecCard
from earmark.codecs.neural.checkpoints import Layout, config_at, exactly, find, tensors_of
from earmark.codecs.neural.configs import Config
from earmark.codecs.neural.options import Options, options_of
from earmark.codecs.neural.token_codec import TokenCodec
from earmark.errors import require

__all__ = ["SpeechTokenizer", "make", "network_of"]

LAYOUT = Layout(weights=("SpeechTokenizer.pt",), folder="speechtokenizer_hubert_avg")


class SpeechTokenizer(TokenCodec):
    def __init__(self, card: CodecCard, checkpoint: str, options: Options) -> None:
        found = find(card, checkpoint, LAYOUT, options)
        self.config = config = Config(config_at(found, LAYOUT), found)
        super().__init__(
            card,
            found,
            options,
            rate=config.number("sample_rate"),
            hop=math.prod(config.numbers("strides")),
            sizes=(config.number("codebook_size"),) * config.number("n_q"),
        )

    def load(self) -> Any:
        return exactly(network_of(self.config), tensors_of(self.checkpoint), self.checkpoint)


def network_of(config: Config) -> Any:
    """The network that a config describes, without its weights."""
    require("torch", "These codecs", "models")
    from earmark.networks.codecs import SpeechTokenizer as Network
    from earmark.networks.seanet import Shape

    encoder = Shape(
        ratios=tuple((stride,) for stride in config.numbers("strides")),
        dimension=config.number("dimension"),
        filters=config.number("n_filters"),
        residual_layers=config.number("n_residual_layers"),
        residual_kernel=config.number("residual_kernel_size"),
        dilation_base=config.number("dilation_base"),
        lstm=config.number("lstm_layers"),
        bidirectional=config.flag("bidirectional"),
        activation=config.word("activation", known=("ELU", "Snake")),
    )
    decoder = replace(encoder, bidirectional=False)
    return Network(encoder, decoder, config.number("n_q"), config.number("codebook_size"))


def make(card: CodecCard, checkpoint: str = "", **options: Any) -> TokenCodec:
    return SpeechTokenizer(card, checkpoint, options_of(card.family, options))
