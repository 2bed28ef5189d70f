"""EnCodec, DAC, Mimi and X-Codec through `transformers`, whose own encode and decode are called.

Their files are those of the hub; DAC's and EnCodec's may also be those that their authors publish outside it
(`author_files`).

A residual quantiser is greedy: its first codebooks say the same whether or not others follow. Lower rates are
therefore the first rows of the tokens at the highest.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

from earmark.codecs.contract import CodecCard
from earmark.codecs.neural.author_files import AuthorFile, read_dac, read_encodec
from earmark.codecs.neural.checkpoints import Layout, fill_exactly
from earmark.codecs.neural.token_codec import TokenCodec, TokenFormat, settings
from earmark.errors import InputError, UsageError, require
from earmark.extractors.pretrained import Checkpoint, config_of, load_model


class LibraryCodec(TokenCodec):
    """What the four share: a config and a model of the library."""

    layout = Layout(weights=("pytorch_model.bin", "pytorch_model.bin.index.json"))
    packages = ("torch", "transformers")
    classes: ClassVar[tuple[str, str]]  # names of the config and of the model
    rate_name: ClassVar[str] = "sampling_rate"  # of the config
    count_name: ClassVar[str] = "num_quantizers"
    encode_option: ClassVar[str] = ""  # the keyword of the model's `encode` that limits the codebooks, if it has one

    def open_config(self, card: CodecCard, checkpoint: Checkpoint) -> TokenFormat:
        config = self._config_of(checkpoint)
        if int(getattr(config, "audio_channels", 1) or 1) != 1:
            raise UsageError(f"{checkpoint.name} codes two channels: give a checkpoint for one.")
        self.check(config, checkpoint.name)
        rate, hop = int(getattr(config, self.rate_name)), self.hop_of(config)
        sizes = (int(config.codebook_size),) * int(getattr(config, self.count_name))
        stated = getattr(config, "hop_length", hop)
        remark = (
            f"its config says hop_length {stated}, and its layers make {hop}, which counts" if stated != hop else ""
        )
        return TokenFormat(rate, hop, sizes, whole=hop, remark=remark)

    def _config_of(self, checkpoint: Checkpoint) -> Any:
        """The config beside the weights, or that of a file in the authors' own layout."""
        kind = getattr(require("transformers", "These codecs", "models"), self.classes[0])
        file = self._author_file(checkpoint)
        if file is not None:
            return kind.from_dict(file.config)
        given = checkpoint.json("config.json").get("model_type", kind.model_type)
        if given != kind.model_type:
            raise InputError(
                f"{checkpoint.name} is a checkpoint of {given}, not of {kind.model_type}: give one of those."
            )
        return config_of(kind, checkpoint)

    def _author_file(self, checkpoint: Checkpoint) -> AuthorFile | None:
        """What a file in the authors' own layout holds; None where a config.json lies beside the weights."""
        return None if (checkpoint.folder / "config.json").is_file() else self.read_file(checkpoint)

    def read_file(self, checkpoint: Checkpoint) -> AuthorFile | None:
        """A file without config.json, as the authors publish it; None for a family that has none."""
        return None

    def check(self, config: Any, name: str) -> None:
        """Refuse what the config asks for and tokens alone cannot carry."""

    def hop_of(self, config: Any) -> int:
        return int(config.hop_length)

    def load(self) -> Any:
        kind = getattr(require("transformers", "These codecs", "models"), self.classes[1])
        file = self._author_file(self.checkpoint)
        if file is not None:
            return fill_exactly(kind(kind.config_class.from_dict(file.config)), file.tensors, self.checkpoint)
        return load_model(kind, self.checkpoint).float()

    def tokens_of(self, network: Any, sound: Any) -> tuple[Any, bytes]:
        chosen = {self.encode_option: self.codebooks} if self.encode_option else {}
        return network.encode(sound, **chosen).audio_codes[0, : self.codebooks], b""

    def sound_of(self, network: Any, tokens: Any, header: bytes) -> Any:
        return network.decode(audio_codes=tokens[None]).audio_values.reshape(-1)


ENCODEC = tuple(
    settings(
        "encodec", {1.5: 2, 3: 4, 6: 8, 12: 16, 24: 32}, codes={1.5: "E1", 3: "E2", 6: "E3", 12: "E4", 24: "E5"},
        title="EnCodec, 24 kHz", rate=24000, frame_rate=75.0, causal=True,
        licence="MIT (code; CC BY-NC 4.0 as the package 0.1.1); terms of the weights: see their page",
        citation="Défossez et al., High fidelity neural audio compression, TMLR 2023",
        checkpoint="facebook/encodec_24khz", notes="the checkpoint of 48 kHz hears two channels and is refused",
    )
)  # fmt: skip


class EnCodec(LibraryCodec):
    classes = ("EncodecConfig", "EncodecModel")

    def read_file(self, checkpoint: Checkpoint) -> AuthorFile:
        return read_encodec(checkpoint)

    def check(self, config: Any, name: str) -> None:
        if config.normalize or config.chunk_length_s is not None:
            raise UsageError(f"{name} codes sound in chunks or sends loudness beside its tokens: give the 24 kHz one.")

    def tokens_of(self, network: Any, sound: Any) -> tuple[Any, bytes]:
        bandwidth = max(network.config.target_bandwidths)
        return network.encode(sound, bandwidth=bandwidth).audio_codes[0, 0, : self.codebooks], b""

    def sound_of(self, network: Any, tokens: Any, header: bytes) -> Any:
        return network.decode(tokens[None, None], [None]).audio_values[0, 0]


DAC_CARDS = tuple(
    card
    for name, rate, frame_rate, codebooks, codes, notes in (
        ("16khz", 16000, 50.0, {1: 2, 2: 4, 4: 8, 6: 12}, {6: "D1"}, ""),
        ("24khz", 24000, 75.0, {1.5: 2, 3: 4, 6: 8, 12: 16, 24: 32}, {24: "D2"}, ""),
        ("44khz", 44100, 44100 / 512, {1.7: 2, 3.4: 4, 5.2: 6, 8: 9}, {8: "D3"},
         "Table 3 prints 8 kbps for 9 codebooks, which send 7.75"),
    )
    for card in settings(
        f"dac_{name}", codebooks, codes=codes,
        title=f"Descript Audio Codec, {name}", rate=rate, frame_rate=frame_rate, causal=False, licence="MIT",
        citation="Kumar et al., High-fidelity audio compression with improved RVQGAN, NeurIPS 2023",
        checkpoint=f"descript/dac_{name}", notes=notes,
    )
)  # fmt: skip


class DAC(LibraryCodec):
    classes, count_name, encode_option = ("DacConfig", "DacModel"), "n_codebooks", "n_quantizers"

    def read_file(self, checkpoint: Checkpoint) -> AuthorFile:
        return read_dac(checkpoint)

    def hop_of(self, config: Any) -> int:
        """The product of the ratios: published configs of 16 and 24 kHz carry the hop_length of 44.1 kHz."""
        down, up = map(math.prod, (config.downsampling_ratios, config.upsampling_ratios))
        if down != up:
            raise InputError(f"A config of dac goes down by {down} samples and up by {up}: check its ratios.")
        return down


MIMI = tuple(
    settings(
        "mimi", {0.55: 4, 1.1: 8, 2.2: 16, 4.4: 32}, size=2048,
        title="Mimi", rate=24000, frame_rate=12.5, causal=True, licence="CC BY 4.0 (weights)",
        citation="Défossez et al., Moshi: a speech-text foundation model for real-time dialogue, 2024",
        checkpoint="kyutai/mimi",
        notes="the first codebook is taught what words sound like; Moshi uses 8 of the 32",
    )
)  # fmt: skip


class Mimi(LibraryCodec):
    classes, encode_option = ("MimiConfig", "MimiModel"), "num_quantizers"

    def hop_of(self, config: Any) -> int:
        hop: int = round(config.sampling_rate / config.frame_rate)
        return hop


XCODEC = tuple(
    settings(
        "xcodec", {0.5: 1, 1: 2, 1.5: 3, 2: 4, 4: 8},
        title="X-Codec (HuBERT, LibriSpeech)", rate=16000, frame_rate=50.0, causal=False,
        licence="see its page: the authors' repository shows no licence",
        citation="Ye et al., Codec does matter: exploring the semantic shortcoming of codec for audio language model, "
        "AAAI 2025",
        checkpoint="hf-audio/xcodec-hubert-librispeech",
    )
)  # fmt: skip


class XCodec(LibraryCodec):
    classes, rate_name = ("XcodecConfig", "XcodecModel"), "sample_rate"
