"""FunCodec: SEANet with group norms on waveforms (F3 to F6) or on log magnitudes and phases (F1, F2), 32 codebooks.

Its networks hear every clip at the same loudness. What they were divided by is needed to give it back; the toolkit
itself forgets it when it decodes tokens. Here it travels as the header: one float32 for a clip.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from earmark.codecs.contract import CodecCard, CodecFailure
from earmark.codecs.neural.checkpoints import Layout, config_at, exactly, find, tensors_of
from earmark.codecs.neural.configs import Config
from earmark.codecs.neural.options import Options, options_of
from earmark.codecs.neural.token_codec import TokenCodec
from earmark.errors import InputError, require

if TYPE_CHECKING:
    from earmark.networks.seanet import Shape

__all__ = ["FunCodec", "design_of", "make", "network_of"]

LAYOUT = Layout(("config.yaml",), ("model.pth",))
SOUNDS, SPECTROGRAMS = (8, 5, 4, 2), ((4, 1), (4, 1), (4, 2), (4, 1))
CHANNELS = {"mag_phase": 3, "mag_angle": 2}


@dataclass(frozen=True)
class Design:
    """What a config says about the network."""

    encoder: Shape
    decoder: Shape
    domain: str  # of the spectrogram; empty for waveforms
    window: int
    step: int
    codebooks: int
    size: int
    rate: int
    normalised: bool  # clips are brought to one loudness first

    @property
    def hop(self) -> int:
        return (self.step if self.domain else 1) * math.prod(ratio[-1] for ratio in self.encoder.ratios)


class FunCodec(TokenCodec):
    def __init__(self, card: CodecCard, checkpoint: str, options: Options) -> None:
        require("torch", "These codecs", "models")
        found = find(card, checkpoint, LAYOUT, options)
        self.design = design = design_of(Config(config_at(found, LAYOUT), found))
        super().__init__(
            card, found, options, rate=design.rate, hop=design.hop, sizes=(design.size,) * design.codebooks
        )

    def load(self) -> Any:
        return exactly(network_of(self.design), _unstacked(tensors_of(self.checkpoint)), self.checkpoint)

    def tokens_of(self, network: Any, sound: Any) -> tuple[Any, bytes]:
        if not self.design.normalised:
            return network.encode(sound, self.codebooks), b""
        loudness = sound.square().mean().sqrt() + 1e-8
        return network.encode(sound / loudness, self.codebooks), struct.pack("<f", float(loudness))

    def sound_of(self, network: Any, tokens: Any, header: bytes) -> Any:
        if not self.design.normalised:
            return network.decode(tokens)
        if len(header) != 4:
            raise CodecFailure(f"{self.card.name} needs the loudness that its encoder put in the header.")
        return network.decode(tokens) * struct.unpack("<f", header)[0]


def design_of(config: Config) -> Design:
    """Read a config.yaml; what it may ask for and is not here is refused."""
    model, quantiser = config.part("model_conf"), config.part("quantizer_conf")
    in_frequency = config.word("model", "encodec", known=("encodec", "freq_codec")) == "freq_codec"
    _check(config, model, quantiser, in_frequency)
    domain = _domain(model) if in_frequency else ""
    encoder, decoder = config.part("encoder_conf"), config.part("decoder_conf")
    ends, axes, dimension = CHANNELS.get(domain, 1), 1 + in_frequency, encoder.number("dimension", 128)
    if (config.number("input_size", 1), decoder.number("channels", 1)) != (ends, ends):
        raise InputError(
            f"The config of {config.checkpoint.name} does not have {ends} channels at both ends, as its domain needs."
        )
    transform = model.part("domain_conf")
    return Design(
        encoder=_shape(encoder, axes, ends, dimension),
        decoder=_shape(decoder, axes, ends, dimension),
        domain=domain,
        window=transform.number("n_fft", 512),
        step=transform.number("hop_length", 160),
        codebooks=quantiser.number("num_quantizers", 8),
        size=quantiser.number("codebook_size", 1024),
        rate=model.number("target_sample_hz", 24000),
        normalised=model.flag("audio_normalize", not in_frequency),
    )


def network_of(design: Design) -> Any:
    """The network of a design, without its weights."""
    from earmark.networks.codecs import FunCodec as Network
    from earmark.networks.codecs import Spectrogram

    spectrogram = Spectrogram(design.domain, design.window, design.step) if design.domain else None
    return Network(design.encoder, design.decoder, design.codebooks, design.size, spectrogram)


def _check(config: Config, model: Config, quantiser: Config, in_frequency: bool) -> None:
    """Refuse what a config may ask for and is not here."""
    ending = "_2d" if in_frequency else ""
    for half in ("encoder", "decoder"):
        config.word(half, known=(f"encodec_seanet_{half}{ending}",))
    config.word("quantizer", "costume_quantizer", known=("costume_quantizer",))
    asked = [name for name in ("codec_dim", "codec_range") if quantiser.values.get(name)]
    asked += ["q0_ds_ratio"] if quantiser.number("q0_ds_ratio", 1) != 1 else []
    asked += ["bypass_quantizer"] if model.values.get("bypass_quantizer") else []
    asked += ["segment_dur"] if model.values.get("segment_dur", 1.0) is not None else []
    if asked:
        raise InputError(f"The config of {config.checkpoint.name} asks for {asked[0]}, which is not here.")


def _domain(model: Config) -> str:
    found = model.values.get("codec_domain")
    if not isinstance(found, list | tuple) or len(found) != 2 or found[0] != found[1] or found[0] not in CHANNELS:
        raise InputError(
            f"The config of {model.checkpoint.name} says codec_domain: {found!r}; [mag_phase, mag_phase] and "
            f"[mag_angle, mag_angle] are here."
        )
    return str(found[0])


def _shape(config: Config, axes: int, channels: int, dimension: int) -> Shape:
    """The half that a section describes, with the toolkit's own values where it says nothing."""
    from earmark.networks.seanet import Shape

    ratios = (
        config.tables("ratios", SPECTROGRAMS) if axes == 2 else tuple((n,) for n in config.numbers("ratios", SOUNDS))
    )
    if config.part("norm_params").number("num_groups", 1) != 1:
        raise InputError(f"The config of {config.checkpoint.name} asks for num_groups, of which only 1 is here.")
    memory = config.values.get("seq_model", "lstm")  # the toolkit takes any other word, and null, for none
    if memory == "transformer":
        raise InputError(f"The config of {config.checkpoint.name} asks for seq_model transformer, which is not here.")
    shape = Shape(
        ratios=ratios,
        channels=channels,
        dimension=dimension,
        filters=config.number("n_filters", 32),
        residual_layers=config.number("n_residual_layers", 1),
        kernel=config.number("kernel_size", 7),
        last_kernel=config.number("last_kernel_size", 7),
        residual_kernel=config.number("residual_kernel_size", 3),
        dilation_base=config.number("dilation_base", 2),
        compress=config.number("compress", 2),
        lstm=config.number("seq_layer_num", 2) if memory == "lstm" else 0,
        skip_lstm=config.flag("res_seq", True),
        true_skip=config.flag("true_skip", False),
        causal=config.flag("causal", False),
        norm=config.word("norm", "weight_norm", known=("weight_norm", "time_group_norm", "none")),
        pad_mode=config.word("pad_mode", "reflect", known=("reflect", "constant")),
        activation=config.word("activation", "ELU", known=("ELU", "Snake", "snake")),
        group_ratio=config.number("conv_group_ratio", -1),
        transposed_group_ratio=config.number("tr_conv_group_ratio", -1),
        last_kept=config.tables("last_out_padding", ((0, 1), (0, 0))) if axes == 2 else (),
    )
    config.only("input_size", "dimension", "channels", "seq_model", "seq_layer_num")
    return shape


def _unstacked(state: Mapping[str, Any]) -> dict[str, Any]:
    """Codebooks that lie in one tensor [codebooks, size, D], each under its own name."""
    found = dict(state)
    root = "quantizer.rq.model."
    stacked = found.pop(f"{root}embed", None)
    if stacked is not None:
        found |= {f"{root}layers.{number}._codebook.embed": one.clone() for number, one in enumerate(stacked)}
    return found


def make(card: CodecCard, checkpoint: str = "", **options: Any) -> TokenCodec:
    return FunCodec(card, checkpoint, options_of(card.family, options))
