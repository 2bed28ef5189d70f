"""AudioDec: an autoencoder that codes, and a vocoder that decodes its codes; both lie in folders of their own.

    audiodec_24k:EXP@6.4              EXP/autoencoder/NAME and EXP/vocoder/NAME, as the authors' archive unpacks
    audiodec_24k:FOLDER@6.4           an autoencoder alone (config.yml, checkpoint-*steps.pkl), which decodes itself
    audiodec_24k:FOLDER@6.4?vocoder=FOLDER2

The toolkit streams, and warms its buffers with silence; here each clip begins with the padding of training.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from earmark.codecs.contract import CodecCard
from earmark.codecs.neural.checkpoints import Layout, config_at, exactly, fetched, find, fingerprint, on_hub, tensors_of
from earmark.codecs.neural.configs import Config
from earmark.codecs.neural.options import Options, options_of
from earmark.codecs.neural.token_codec import TokenCodec
from earmark.errors import InputError, UsageError, require
from earmark.extractors.pretrained import Checkpoint, stripped

__all__ = ["AudioDec", "coder_of", "make", "vocoder_of"]

LAYOUT = Layout(("config.yml", "config.yaml"), ())
PREFIXES = ("model.generator.", "generator.")


class Names(NamedTuple):
    """Folders of the authors' archive that Codec-SUPERB (24 kHz) and the authors' demo (48 kHz) use."""

    auto_encoder: str
    vocoder: str


NAMES = {
    "audiodec_24k": Names("symAD_libritts_24000_hop300", "AudioDec_v1_symAD_libritts_24000_hop300_clean"),
    "audiodec_48k": Names("symAD_vctk_48000_hop300", "AudioDec_v1_symAD_vctk_48000_hop300_clean"),
}


class AudioDec(TokenCodec):
    def __init__(self, card: CodecCard, checkpoint: str, options: Options, vocoder: str, decoder: str) -> None:
        coder, voice = _places(card, checkpoint or card.checkpoint, vocoder, options)
        if decoder not in ("", "vocoder", "symmetric"):
            raise UsageError(f"{card.family} has no decoder {decoder}: give vocoder or symmetric.")
        if decoder == "vocoder" and voice is None:
            raise InputError(
                f"{checkpoint} has no vocoder/{NAMES[card.family].vocoder}: give its folder with vocoder=."
            )
        voice = None if decoder == "symmetric" else voice
        self.vocoder, said = None, None
        if voice is not None:
            self.vocoder = _opened(card, voice, options)
            said = Config(config_at(self.vocoder, LAYOUT), self.vocoder)
        # The vocoder learnt from the codes of one step of the autoencoder's training, which its config names.
        step = Path(said.word("analyzer", "-")).name if said else ""
        found = _opened(card, coder, options, step)
        config = Config(config_at(found, LAYOUT), found)
        self.config, self.voice = config.part("generator_params"), said.part("generator_params") if said else None
        hop = math.prod(self.config.numbers("enc_strides"))
        _check(self.config, self.voice, hop)
        super().__init__(
            card,
            found,
            options,
            rate=config.number("sampling_rate"),
            hop=hop,
            sizes=(self.config.number("codebook_size"),) * self.config.number("codebook_num"),
            whole=hop,
        )
        if self.vocoder is not None:
            self.card = replace(self.card, version=f"{self.card.version}; {fingerprint(self.vocoder)}")

    def load(self) -> Any:
        state = stripped(tensors_of(self.checkpoint), *PREFIXES)
        network = exactly(coder_of(self.config), state, self.checkpoint)
        if self.voice is not None and self.vocoder is not None:
            state = stripped(tensors_of(self.vocoder), *PREFIXES)
            network.decoder = exactly(vocoder_of(self.voice), state, self.vocoder)
        return network

    def sound_of(self, network: Any, tokens: Any, header: bytes) -> Any:
        return network.decoder(network.quantizer.decode(tokens))[0, 0]


def coder_of(config: Config) -> Any:
    """The autoencoder that generator_params describe, without its weights."""
    require("torch", "These codecs", "models")
    from earmark.networks.audiodec import AutoEncoder, AutoEncoderShape

    return AutoEncoder(
        AutoEncoderShape(
            encoder_channels=config.number("encode_channels"),
            decoder_channels=config.number("decode_channels"),
            code_dimension=config.number("code_dim"),
            codebooks=config.number("codebook_num"),
            size=config.number("codebook_size"),
            encoder_ratios=config.numbers("enc_ratios"),
            decoder_ratios=config.numbers("dec_ratios"),
            encoder_strides=config.numbers("enc_strides"),
            decoder_strides=config.numbers("dec_strides"),
            bias=config.flag("bias", True),
        )
    )


def vocoder_of(config: Config) -> Any:
    """The vocoder that generator_params describe, without its weights."""
    require("torch", "These codecs", "models")
    from earmark.networks.audiodec import Vocoder, VocoderShape

    return Vocoder(
        VocoderShape(
            inputs=config.number("in_channels"),
            channels=config.number("channels"),
            kernel=config.number("kernel_size"),
            rates=config.numbers("upsample_scales"),
            residual_kernels=config.numbers("resblock_kernel_sizes"),
            residual_dilations=config.tables("resblock_dilations"),
            groups=config.number("groups", 1),
            bias=config.flag("bias", True),
            paired=config.flag("use_additional_convs", True),
            slope=float(config.part("nonlinear_activation_params").values.get("negative_slope", 0.1)),
            normalised=config.values.get("stats") is not None,
        )
    )


def _places(card: CodecCard, checkpoint: str, vocoder: str, options: Options) -> tuple[Path, Path | None]:
    """The folders (or files) of the autoencoder and the vocoder."""
    spec, names = f"{card.family}:FOLDER@{card.kbps:g}", NAMES[card.family]
    if not checkpoint:
        raise InputError(f"{card.name} cannot be had by name: give {card.how_to_get} as {spec}.")
    place = Path(checkpoint).expanduser()
    if not place.exists() and on_hub(checkpoint):
        patterns = (f"autoencoder/{names.auto_encoder}/*", f"vocoder/{names.vocoder}/*")
        place = fetched(card, checkpoint, patterns, options, spec)
    coder, voice = place / "autoencoder" / names.auto_encoder, place / "vocoder" / names.vocoder
    chosen = Path(vocoder).expanduser() if vocoder else (voice if voice.is_dir() else None)
    return (coder if coder.is_dir() else place), chosen


def _opened(card: CodecCard, place: Path, options: Options, step: str = "") -> Checkpoint:
    """The checkpoint of a folder: the named step if it is there, else the last."""
    if place.is_dir() and not any(path.suffix == ".safetensors" for path in place.iterdir()):
        steps = sorted(place.glob("*.pkl"), key=_steps)
        place = place / step if step and (place / step).is_file() else (steps[-1] if steps else place)
    return find(card, str(place), LAYOUT, options)


def _steps(path: Path) -> int:
    found = re.search(r"(\d+)steps", path.name)
    return int(found[1]) if found else -1


def _check(config: Config, voice: Config | None, hop: int) -> None:
    """Refuse what a config may ask for and is not here."""
    config.word("mode", "causal", known=("causal",))
    config.word("codec", "audiodec", known=("audiodec",))
    config.word("projector", "conv1d", known=("conv1d",))
    config.word("quantier", "residual_vq", known=("residual_vq",))
    name = config.checkpoint.name
    if (config.number("input_channels", 1), config.number("output_channels", 1)) != (1, 1):
        raise UsageError(f"{name} codes more than one channel: give a checkpoint for one.")
    if math.prod(config.numbers("dec_strides")) != hop:
        raise InputError(f"The config of {name} goes down by {hop} samples and up by another number.")
    if voice is not None:
        voice.word("nonlinear_activation", "LeakyReLU", known=("LeakyReLU",))
        if math.prod(voice.numbers("upsample_scales")) != hop:
            raise InputError(f"{voice.checkpoint.name} is a vocoder for another hop than {hop} samples.")
        if any(
            kernel != 2 * rate
            for kernel, rate in zip(
                voice.numbers("upsample_kernel_sizes"), voice.numbers("upsample_scales"), strict=True
            )
        ):
            raise InputError(f"The config of {voice.checkpoint.name} has kernels that are not twice its scales.")


def make(card: CodecCard, checkpoint: str = "", *, vocoder: str = "", decoder: str = "", **options: Any) -> TokenCodec:
    return AudioDec(card, checkpoint, options_of(card.family, options), vocoder, decoder)
