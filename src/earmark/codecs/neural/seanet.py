"""SpeechTokenizer and FunCodec: SEANet around residual codebooks.

SpeechTokenizer has a bidirectional LSTM in its encoder and 8 codebooks, of which the first is about words.

FunCodec has group norms on waveforms (F3 to F6) or on log magnitudes and phases (F1, F2), and 32 codebooks. Its
networks hear every clip at the same loudness. What they were divided by is needed to give it back; the toolkit itself
forgets it when it decodes tokens. Here it travels as the header: one float32 for a clip.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from earmark.codecs.contract import CodecCard, CodecFailure
from earmark.codecs.neural.checkpoints import Config, Layout
from earmark.codecs.neural.token_codec import UNSEEN, TokenCodec, TokenFormat, settings
from earmark.errors import InputError

if TYPE_CHECKING:
    from earmark.networks.seanet import SeanetShape

# --- SpeechTokenizer -----------------------------------------------------------------------------------------

SPEECH_TOKENIZER = tuple(
    settings(
        "speechtokenizer", {1: 2, 2: 4, 4: 8}, codes={4: "A"},
        title="SpeechTokenizer, 16 kHz", rate=16000, frame_rate=50.0, causal=False, licence="Apache-2.0",
        citation="Zhang et al., SpeechTokenizer: unified speech tokenizer for speech language models, ICLR 2024",
        checkpoint="fnlp/SpeechTokenizer",
        how_to_get="speechtokenizer_hubert_avg/config.json and SpeechTokenizer.pt of fnlp/SpeechTokenizer; "
        "allow_pickle=true",
        notes=f"the first codebook is taught what HuBERT hears; {UNSEEN}",
    )
)  # fmt: skip


class SpeechTokenizer(TokenCodec):
    layout = Layout(weights=("SpeechTokenizer.pt",), folder="speechtokenizer_hubert_avg")

    def describe(self, config: Config) -> TokenFormat:
        self.config = config
        sizes = (config.get("codebook_size", int),) * config.get("n_q", int)
        return TokenFormat(config.get("sample_rate", int), math.prod(config.get("strides", tuple[int, ...])), sizes)

    def empty(self) -> Any:
        return tokenizer_of(self.config)


def tokenizer_of(config: Config) -> Any:
    """The SpeechTokenizer that a config describes, without its weights."""
    from earmark.networks.seanet import SeanetCodec, SeanetShape

    names = ("dimension", "n_filters", "n_residual_layers", "residual_kernel_size", "dilation_base", "bidirectional")
    shape = config.fill(
        SeanetShape, names, ratios=tuple((stride,) for stride in config.get("strides", tuple[int, ...])),
        seq_layer_num=config.get("lstm_layers", int),
        activation=config.get("activation", str, known=("ELU", "Snake")),
    )  # fmt: skip
    return SeanetCodec(shape, shape, config.get("n_q", int), config.get("codebook_size", int), "vq")


# --- FunCodec ------------------------------------------------------------------------------------------------

# Configuration in Table 3: paper code, repository of the weights, samples a frame.
_REPOSITORIES = {
    "en_libritts_16k_gr1nq32ds320": ("F1", "freqcodec_magphase-en-libritts-16k-gr1nq32ds320", 320),
    "en_libritts_16k_gr8nq32ds320": ("F2", "freqcodec_magphase-en-libritts-16k-gr8nq32ds320", 320),
    "en_libritts_16k_nq32ds320": ("F3", "encodec-en-libritts-16k-nq32ds320", 320),
    "en_libritts_16k_nq32ds640": ("F4", "encodec-en-libritts-16k-nq32ds640", 640),
    "zh_en_16k_nq32ds320": ("F5", "encodec-zh_en-general-16k-nq32ds320", 320),
    "zh_en_16k_nq32ds640": ("F6", "encodec-zh_en-general-16k-nq32ds640", 640),
}


def _funcodec_cards() -> Iterator[CodecCard]:
    for name, (code, repository, hop) in _REPOSITORIES.items():
        most, weights = 5120 / hop, f"alibaba-damo/audio_codec-{repository}-pytorch"
        yield from settings(
            f"funcodec_{name}", {most / 8: 4, most / 4: 8, most / 2: 16, most: 32}, codes={most: code},
            title=f"FunCodec, {name}", rate=16000, frame_rate=16000 / hop, causal=False,
            licence="MIT (code); terms of the weights: see their page",
            citation="Du et al., FunCodec: a fundamental, reproducible and integrable open-source toolkit for neural "
            "speech codec, ICASSP 2024",
            checkpoint=weights, how_to_get=f"config.yaml and model.pth of {weights}; allow_pickle=true", notes=UNSEEN,
        )  # fmt: skip


FUNCODEC = tuple(_funcodec_cards())
SOUNDS, SPECTROGRAMS = (8, 5, 4, 2), ((4, 1), (4, 1), (4, 2), (4, 1))
CHANNELS = {"mag_phase": 3, "mag_angle": 2}


class FunCodec(TokenCodec):
    layout = Layout(("config.yaml",), ("model.pth",))

    def describe(self, config: Config) -> TokenFormat:
        self.config = config
        model, quantiser = config.part("model_conf"), config.part("quantizer_conf")
        encoder, _, spectrogram = parts_of(config)
        # Clips are brought to one loudness first.
        self.normalised = model.get("audio_normalize", bool, spectrogram is None)
        hop = math.prod(ratio[-1] for ratio in encoder.ratios) * (spectrogram[2] if spectrogram else 1)
        sizes = (quantiser.get("codebook_size", int, 1024),) * quantiser.get("num_quantizers", int, 8)
        return TokenFormat(model.get("target_sample_hz", int, 24000), hop, sizes)

    def empty(self) -> Any:
        return network_of(self.config)

    def tensors(self) -> dict[str, Any]:
        """Codebooks that lie in one tensor [codebooks, size, D] get a name each."""
        tensors = dict(super().tensors())
        root = "quantizer.rq.model."
        stacked = tensors.pop(f"{root}embed", ())
        return tensors | {f"{root}layers.{row}._codebook.embed": table.clone() for row, table in enumerate(stacked)}

    def tokens_of(self, network: Any, sound: Any) -> tuple[Any, bytes]:
        if not self.normalised:
            return super().tokens_of(network, sound)
        loudness = sound.square().mean().sqrt() + 1e-8
        return network.encode(sound / loudness, self.codebooks), struct.pack("<f", float(loudness))

    def sound_of(self, network: Any, tokens: Any, header: bytes) -> Any:
        if not self.normalised:
            return network.decode(tokens)
        if len(header) != 4:
            raise CodecFailure(f"{self.card.name} needs the loudness that its encoder put in the header.")
        return network.decode(tokens) * struct.unpack("<f", header)[0]


def network_of(config: Config) -> Any:
    """The FunCodec that a config describes, without its weights."""
    from earmark.networks.seanet import SeanetCodec, Spectrogram

    encoder, decoder, spectrogram = parts_of(config)
    quantiser = config.part("quantizer_conf")
    codebooks, size = quantiser.get("num_quantizers", int, 8), quantiser.get("codebook_size", int, 1024)
    front = Spectrogram(*spectrogram) if spectrogram else None
    return SeanetCodec(encoder, decoder, codebooks, size, "rq.model", front)


def parts_of(config: Config) -> tuple[SeanetShape, SeanetShape, tuple[str, int, int] | None]:
    """The encoder, the decoder and, where there is one, the spectrogram (domain, window, step) of a config.yaml.

    What it may ask for and is not here is refused.
    """
    model = config.part("model_conf")
    in_frequency = config.get("model", str, "encodec", known=("encodec", "freq_codec")) == "freq_codec"
    _check(config, model, config.part("quantizer_conf"), in_frequency)
    domain = _domain(model) if in_frequency else ""
    encoder, decoder = config.part("encoder_conf"), config.part("decoder_conf")
    ends, axes, dimension = CHANNELS.get(domain, 1), 1 + in_frequency, encoder.get("dimension", int, 128)
    if (config.get("input_size", int, 1), decoder.get("channels", int, 1)) != (ends, ends):
        raise InputError(
            f"The config of {config.checkpoint.name} does not have {ends} channels at both ends, as its domain needs."
        )
    transform = model.part("domain_conf")
    spectrogram = domain, transform.get("n_fft", int, 512), transform.get("hop_length", int, 160)
    shapes = (_shape(half, axes, ends, dimension) for half in (encoder, decoder))
    return (*shapes, spectrogram if domain else None)  # type: ignore[return-value]


def _check(config: Config, model: Config, quantiser: Config, in_frequency: bool) -> None:
    """Refuse what a config may ask for and is not here."""
    ending = "_2d" if in_frequency else ""
    for half in ("encoder", "decoder"):
        config.get(half, str, known=(f"encodec_seanet_{half}{ending}",))
    config.get("quantizer", str, "costume_quantizer", known=("costume_quantizer",))
    unknown = [name for name in ("codec_dim", "codec_range") if quantiser.values.get(name)]
    unknown += ["q0_ds_ratio"] if quantiser.get("q0_ds_ratio", int, 1) != 1 else []
    unknown += ["bypass_quantizer"] if model.values.get("bypass_quantizer") else []
    unknown += ["segment_dur"] if model.values.get("segment_dur", 1.0) is not None else []
    if unknown:
        raise InputError(f"The config of {config.checkpoint.name} asks for {unknown[0]}, which is not here.")


def _domain(model: Config) -> str:
    pair = model.values.get("codec_domain")
    if not isinstance(pair, list | tuple) or len(pair) != 2 or pair[0] != pair[1] or pair[0] not in CHANNELS:
        raise InputError(
            f"The config of {model.checkpoint.name} says codec_domain: {pair!r}; [mag_phase, mag_phase] and "
            f"[mag_angle, mag_angle] are here."
        )
    return str(pair[0])


def _shape(config: Config, axes: int, channels: int, dimension: int) -> SeanetShape:
    """The half that a section describes, with the toolkit's own values where it says nothing."""
    from earmark.networks.seanet import SeanetShape

    tables = tuple[tuple[int, ...], ...]
    ratios = (
        config.get("ratios", tables, SPECTROGRAMS)
        if axes == 2
        else tuple((ratio,) for ratio in config.get("ratios", tuple[int, ...], SOUNDS))
    )
    if config.part("norm_params").get("num_groups", int, 1) != 1:
        raise InputError(f"The config of {config.checkpoint.name} asks for num_groups, of which only 1 is here.")
    memory = config.values.get("seq_model", "lstm")  # the toolkit takes any other word, and null, for none
    if memory == "transformer":
        raise InputError(f"The config of {config.checkpoint.name} asks for seq_model transformer, which is not here.")
    shape = config.fill(
        SeanetShape, ratios=ratios, channels=channels, dimension=dimension, bidirectional=False,
        seq_layer_num=config.get("seq_layer_num", int, 2) if memory == "lstm" else 0,
        norm=config.get("norm", str, "weight_norm", known=("weight_norm", "time_group_norm", "none")),
        pad_mode=config.get("pad_mode", str, "reflect", known=("reflect", "constant")),
        activation=config.get("activation", str, "ELU", known=("ELU", "Snake", "snake")),
        last_out_padding=config.get("last_out_padding", tables, ((0, 1), (0, 0))) if axes == 2 else (),
    )  # fmt: skip
    config.refuse_others("input_size", "dimension", "channels", "seq_model", "seq_layer_num")
    return shape
