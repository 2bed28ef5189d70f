"""EnCodec, DAC, Mimi and X-Codec through `transformers`, whose own encode and decode are called.

A residual quantiser is greedy: its first codebooks say the same whether or not others follow. Lower rates are
therefore the first rows of the tokens at the highest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from earmark.codecs.contract import CodecCard
from earmark.codecs.neural.checkpoints import Layout, find
from earmark.codecs.neural.options import Options, options_of
from earmark.codecs.neural.token_codec import TokenCodec
from earmark.errors import InputError, UsageError, require
from earmark.extractors.pretrained import config_of, load_model

__all__ = ["make_dac", "make_encodec", "make_mimi", "make_xcodec"]

LAYOUT = Layout(weights=("pytorch_model.bin", "pytorch_model.bin.index.json"))


class _Library(TokenCodec):
    """What the four share: a config and a model of the library."""

    classes: ClassVar[tuple[str, str]]

    def __init__(self, card: CodecCard, checkpoint: str, options: Options) -> None:
        library = require("transformers", "These codecs", "models")
        found = find(card, checkpoint, LAYOUT, options)
        kind = getattr(library, self.classes[0])
        said = found.json("config.json").get("model_type", kind.model_type)
        if said != kind.model_type:
            raise InputError(f"{found.name} is a checkpoint of {said}, not of {kind.model_type}: give one of those.")
        config = config_of(kind, found)
        if int(getattr(config, "audio_channels", 1) or 1) != 1:
            raise UsageError(f"{found.name} codes two channels: give a checkpoint for one.")
        self.check(config, found.name)
        rate, hop = self.rate_and_hop(config)
        super().__init__(
            card,
            found,
            options,
            rate=rate,
            hop=hop,
            sizes=(int(config.codebook_size),) * self.most(config),
            whole=hop,
            packages=("torch", "transformers"),
        )

    def check(self, config: Any, name: str) -> None:
        """Refuse what the config asks for and tokens alone cannot carry."""

    def rate_and_hop(self, config: Any) -> tuple[int, int]:
        return int(config.sampling_rate), int(config.hop_length)

    def most(self, config: Any) -> int:
        return int(config.num_quantizers)

    def load(self) -> Any:
        kind = getattr(require("transformers", "These codecs", "models"), self.classes[1])
        return load_model(kind, self.checkpoint).float()


class EnCodec(_Library):
    classes = ("EncodecConfig", "EncodecModel")

    def check(self, config: Any, name: str) -> None:
        if config.normalize or config.chunk_length_s is not None:
            raise UsageError(f"{name} codes sound in chunks or sends loudness beside its tokens: give the 24 kHz one.")

    def tokens_of(self, network: Any, sound: Any) -> tuple[Any, bytes]:
        bandwidth = max(network.config.target_bandwidths)
        return network.encode(sound, bandwidth=bandwidth).audio_codes[0, 0, : self.codebooks], b""

    def sound_of(self, network: Any, tokens: Any, header: bytes) -> Any:
        return network.decode(tokens[None, None], [None]).audio_values[0, 0]


class DAC(_Library):
    classes = ("DacConfig", "DacModel")

    def most(self, config: Any) -> int:
        return int(config.n_codebooks)

    def tokens_of(self, network: Any, sound: Any) -> tuple[Any, bytes]:
        return network.encode(sound, n_quantizers=self.codebooks).audio_codes[0], b""

    def sound_of(self, network: Any, tokens: Any, header: bytes) -> Any:
        return network.decode(audio_codes=tokens[None]).audio_values.reshape(-1)


class Mimi(_Library):
    classes = ("MimiConfig", "MimiModel")

    def rate_and_hop(self, config: Any) -> tuple[int, int]:
        return int(config.sampling_rate), round(config.sampling_rate / config.frame_rate)

    def tokens_of(self, network: Any, sound: Any) -> tuple[Any, bytes]:
        return network.encode(sound, num_quantizers=self.codebooks).audio_codes[0], b""

    def sound_of(self, network: Any, tokens: Any, header: bytes) -> Any:
        return network.decode(tokens[None]).audio_values[0, 0]


class XCodec(_Library):
    classes = ("XcodecConfig", "XcodecModel")

    def rate_and_hop(self, config: Any) -> tuple[int, int]:
        return int(config.sample_rate), int(config.hop_length)

    def tokens_of(self, network: Any, sound: Any) -> tuple[Any, bytes]:
        return network.encode(sound).audio_codes[0, : self.codebooks], b""

    def sound_of(self, network: Any, tokens: Any, header: bytes) -> Any:
        return network.decode(tokens[None]).audio_values[0, 0]


def _maker(kind: type[_Library]) -> Callable[..., TokenCodec]:
    def make(card: CodecCard, checkpoint: str = "", **options: Any) -> TokenCodec:
        return kind(card, checkpoint, options_of(card.family, options))

    return make


make_encodec = _maker(EnCodec)
make_dac = _maker(DAC)
make_mimi = _maker(Mimi)
make_xcodec = _maker(XCodec)
