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
from typing import TYPE_CHECKING, Any, NamedTuple

from earmark.codecs.contract import CodecCard
from earmark.codecs.neural.checkpoints import (
    Config,
    Layout,
    Options,
    fetch,
    fill_exactly,
    find,
    fingerprint,
    on_hub,
    read_config,
    read_tensors,
)
from earmark.codecs.neural.token_codec import UNSEEN, TokenCodec, TokenFormat, settings
from earmark.errors import InputError, UsageError, require
from earmark.extractors.pretrained import Checkpoint, stripped

if TYPE_CHECKING:
    from earmark.networks.audiodec import VocoderShape

PREFIXES = ("model.generator.", "generator.")


class ArchiveFolders(NamedTuple):
    """Folders of the authors' archive that Codec-SUPERB (24 kHz) and the authors' demo (48 kHz) use."""

    auto_encoder: str
    vocoder: str


ARCHIVE = {
    "audiodec_24k": ArchiveFolders("symAD_libritts_24000_hop300", "AudioDec_v1_symAD_libritts_24000_hop300_clean"),
    "audiodec_48k": ArchiveFolders("symAD_vctk_48000_hop300", "AudioDec_v1_symAD_vctk_48000_hop300_clean"),
}
_TABLE_3 = "Table 3 calls it 24k_320d, but 6.4 kbps is a frame of 300 samples, as its weights have; "
CARDS = tuple(
    card
    for family, kbps, rate, code, checkpoint, note in (
        ("audiodec_24k", 6.4, 24000, "C", "AudioDecBenchmark/AudioDec", _TABLE_3),
        ("audiodec_48k", 12.8, 48000, "", "", ""),
    )
    for card in settings(
        family, {kbps: 8}, codes={kbps: code},
        title=f"AudioDec, {family.removeprefix('audiodec_')}", rate=rate, frame_rate=rate / 300, causal=True,
        licence="CC BY-NC 4.0",
        citation="Wu et al., AudioDec: an open-source streaming high-fidelity neural audio codec, ICASSP 2023",
        checkpoint=checkpoint,
        how_to_get="exp.zip of the releases of facebookresearch/AudioDec, unpacked: the folder that holds "
        f"autoencoder/{ARCHIVE[family].auto_encoder} and vocoder/{ARCHIVE[family].vocoder}, each with config.yml and "
        "its checkpoint; allow_pickle=true",
        notes="the vocoder decodes where it lies there, else the autoencoder's own decoder (decoder=symmetric asks "
        f"for that); {note}{UNSEEN}",
    )
)  # fmt: skip


class AudioDec(TokenCodec):
    layout = Layout(("config.yml", "config.yaml"), ())

    def __init__(
        self, card: CodecCard, checkpoint: Checkpoint, options: Options, vocoder: tuple[Checkpoint, Config] | None
    ) -> None:
        self.vocoder = vocoder
        super().__init__(card, checkpoint, options)
        if vocoder is not None:
            self.card = replace(self.card, version=f"{self.card.version}; {fingerprint(vocoder[0])}")

    @classmethod
    def make(
        cls, card: CodecCard, checkpoint: str = "", *, vocoder: str = "", decoder: str = "", **options: Any
    ) -> TokenCodec:
        """`vocoder` is its folder; `decoder` is vocoder or symmetric."""
        require("torch", "These codecs", "models")
        given = Options.of(card.family, options)
        coder, voice = _folders(card, checkpoint or card.checkpoint, vocoder, given)
        if decoder not in ("", "vocoder", "symmetric"):
            raise UsageError(f"{card.family} has no decoder {decoder}: give vocoder or symmetric.")
        if decoder == "vocoder" and voice is None:
            raise InputError(
                f"{checkpoint} has no vocoder/{ARCHIVE[card.family].vocoder}: give its folder with vocoder=."
            )
        opened, step = None, ""
        if voice is not None and decoder != "symmetric":
            weights = _find(card, voice, given)
            config = read_config(weights, cls.layout)
            # The vocoder learnt from the codes of one step of the autoencoder's training, which its config names.
            opened, step = (weights, config.part("generator_params")), Path(config.get("analyzer", str, "-")).name
        return cls(card, _find(card, coder, given, step), given, opened)

    def describe(self, config: Config) -> TokenFormat:
        from earmark.networks.audiodec import AutoEncoderShape

        parameters = config.part("generator_params")
        hop = math.prod(parameters.get("enc_strides", tuple[int, ...]))
        _check(parameters, hop)
        if self.vocoder is not None:
            _check_vocoder(self.vocoder[1], hop)
        self.shape = shape = parameters.fill(AutoEncoderShape)
        sizes = (shape.codebook_size,) * shape.codebook_num
        return TokenFormat(config.get("sampling_rate", int), hop, sizes, whole=hop)

    def empty(self) -> Any:
        from earmark.networks.audiodec import AutoEncoder

        return AutoEncoder(self.shape)

    def tensors(self) -> dict[str, Any]:
        return stripped(super().tensors(), *PREFIXES)

    def load(self) -> Any:
        network = super().load()
        if self.vocoder is not None:
            from earmark.networks.audiodec import Vocoder

            checkpoint, config = self.vocoder
            tensors = stripped(read_tensors(checkpoint), *PREFIXES)
            network.decoder = fill_exactly(Vocoder(vocoder_shape(config)), tensors, checkpoint)
        return network


def vocoder_shape(config: Config) -> VocoderShape:
    """What generator_params say about a vocoder."""
    from earmark.networks.audiodec import VocoderShape

    slope = config.part("nonlinear_activation_params").values.get("negative_slope", 0.1)
    return config.fill(VocoderShape, slope=float(slope), normalised=config.values.get("stats") is not None)


def _folders(card: CodecCard, checkpoint: str, vocoder: str, options: Options) -> tuple[Path, Path | None]:
    """The folders (or files) of the autoencoder and the vocoder."""
    spec, names = f"{card.family}:FOLDER@{card.kbps:g}", ARCHIVE[card.family]
    if not checkpoint:
        raise InputError(f"{card.name} cannot be had by name: give {card.how_to_get} as {spec}.")
    path = Path(checkpoint).expanduser()
    if not path.exists() and on_hub(checkpoint):
        patterns = (f"autoencoder/{names.auto_encoder}/*", f"vocoder/{names.vocoder}/*")
        path = fetch(card, checkpoint, patterns, options, spec)
    coder, voice = path / "autoencoder" / names.auto_encoder, path / "vocoder" / names.vocoder
    chosen = Path(vocoder).expanduser() if vocoder else (voice if voice.is_dir() else None)
    return (coder if coder.is_dir() else path), chosen


def _find(card: CodecCard, path: Path, options: Options, step: str = "") -> Checkpoint:
    """The checkpoint of a folder: the named step if it is there, else the last."""
    if path.is_dir() and not any(file.suffix == ".safetensors" for file in path.iterdir()):
        steps = sorted(path.glob("*.pkl"), key=_steps)
        path = path / step if step and (path / step).is_file() else (steps[-1] if steps else path)
    return find(card, str(path), AudioDec.layout, options)


def _steps(path: Path) -> int:
    number = re.search(r"(\d+)steps", path.name)
    return int(number[1]) if number else -1


def _check(config: Config, hop: int) -> None:
    """Refuse what the config of an autoencoder may ask for and is not here."""
    for name, known in (
        ("mode", "causal"), ("codec", "audiodec"), ("projector", "conv1d"), ("quantier", "residual_vq")
    ):  # fmt: skip
        config.get(name, str, known, known=(known,))
    title = config.checkpoint.name
    if (config.get("input_channels", int, 1), config.get("output_channels", int, 1)) != (1, 1):
        raise UsageError(f"{title} codes more than one channel: give a checkpoint for one.")
    if math.prod(config.get("dec_strides", tuple[int, ...])) != hop:
        raise InputError(f"The config of {title} goes down by {hop} samples and up by another number.")


def _check_vocoder(config: Config, hop: int) -> None:
    config.get("nonlinear_activation", str, "LeakyReLU", known=("LeakyReLU",))
    scales, kernels = (config.get(f"upsample_{name}", tuple[int, ...]) for name in ("scales", "kernel_sizes"))
    if math.prod(scales) != hop:
        raise InputError(f"{config.checkpoint.name} is a vocoder for another hop than {hop} samples.")
    if any(kernel != 2 * scale for kernel, scale in zip(kernels, scales, strict=True)):
        raise InputError(f"The config of {config.checkpoint.name} has kernels that are not twice its scales.")
