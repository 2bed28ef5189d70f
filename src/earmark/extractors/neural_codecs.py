"""EnCodec, DAC and Mimi as models that hear: what their encoders say, before or after it is made discrete.

    waveform -- encoder --> latents [T, D] -- residual quantisers --> codes [T, codebooks]

Latents are ordinary vectors. Codes are numbers of codebook entries: VocSim's CC is EnCodec's, flattened. Code 7 is not
nearer to 8 than to 700, so distances between codes say little; they are here because the paper has them.

Convolutions pad the end of a clip by its own rules, so only clips of one length share a batch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from earmark.errors import UsageError
from earmark.extractors.contract import Waveform
from earmark.extractors.torch_models import Batch, TransformersExtractor

VERSION = 2
"""Raised when the output changes: DAC's frames are those of its ratios."""


class CodecEncoder(TransformersExtractor):
    """What the three share; `codes` says whether frames are numbers of codebook entries or latents."""

    codes: ClassVar[bool] = False
    codebooks: int  # how many are used

    def __init__(self, checkpoint: str = "", **options: Any) -> None:
        super().__init__(checkpoint, **options)
        config = self._config
        if int(getattr(config, "audio_channels", 1) or 1) != 1:
            raise UsageError(f"{self._checkpoint.name} hears two channels: give a checkpoint for one.")
        self._hop = self.hop()
        self.codebooks = self.count_codebooks()
        if not self.codes and self.settings.dtype == "float16":
            raise UsageError("Codecs overflow in float16: choose float32 or bfloat16.")
        self.complete_card(
            rate=int(config.sampling_rate),
            dimension=self.codebooks if self.codes else int(config.hidden_size),
            frame_rate=config.sampling_rate / self._hop,
        )

    def build(self) -> Any:
        """The part of the network that hears, which is what the card counts."""
        return super().build().encoder

    def hop(self) -> int:
        return int(self._config.hop_length)

    def count_codebooks(self) -> int:
        raise NotImplementedError

    def latents(self, network: Any, sounds: Any) -> Any:
        """Latents [B, D, T] of sounds [B, 1, S]."""
        return network.encoder(sounds)

    def quantised(self, network: Any, latents: Any) -> Any:
        """Codes [B, codebooks, T]."""
        raise NotImplementedError

    def prepare(self, waveform: Waveform) -> NDArray[np.float32]:
        return np.pad(waveform, (0, max(0, self._hop - len(waveform))))

    def forward(self, network: Any, batch: Batch, layers: Sequence[int]) -> Mapping[int, Any]:
        latents = self.latents(network, batch.sounds[:, None].to(self._dtype))
        values = self.quantised(network, latents) if self.codes else latents
        return {0: values.transpose(1, 2)}

    def valid(self, samples: int, frames: int) -> int:
        return math.ceil(samples / self._hop)


class EnCodec(CodecEncoder):
    """Latents of 128 numbers, 75 a second."""

    name, classes = "encodec", ("EncodecConfig", "EncodecModel")

    def __init__(self, checkpoint: str = "", *, bandwidth: float = 6.0, **options: Any) -> None:
        self.bandwidth = float(bandwidth)
        super().__init__(checkpoint, **options)

    def count_codebooks(self) -> int:
        """Codebooks at the bandwidth asked for (kbit/s); 8 of them at 6."""
        known = [float(bandwidth) for bandwidth in self._config.target_bandwidths]
        if self.bandwidth not in known:
            raise UsageError(f"{self._checkpoint.name} has no bandwidth {self.bandwidth:g}: choose from {known}.")
        bits = math.log2(self._config.codebook_size) * self._config.frame_rate
        return max(1, int(self.bandwidth * 1000 // bits))

    def quantised(self, network: Any, latents: Any) -> Any:
        return network.quantizer.encode(latents, self.bandwidth).transpose(0, 1)


class EnCodecCodes(EnCodec):
    """Numbers of codebook entries, 8 of them 75 times a second."""

    name, codes = "encodec_codes", True


class DAC(CodecEncoder):
    """Latents of the Descript Audio Codec: 1024 numbers, 86 a second at 44.1 kHz."""

    name, classes = "dac", ("DacConfig", "DacModel")

    def hop(self) -> int:
        # The product of the ratios: published configs of 16 and 24 kHz carry the hop_length of 44.1 kHz.
        return math.prod(self._config.downsampling_ratios)

    def count_codebooks(self) -> int:
        return int(self._config.n_codebooks)

    def prepare(self, waveform: Waveform) -> NDArray[np.float32]:
        # Its own processor fills the last frame with zeros.
        return np.pad(waveform, (0, -len(waveform) % self._hop))

    def quantised(self, network: Any, latents: Any) -> Any:
        return network.quantizer(latents, self.codebooks)[1]


class DACCodes(DAC):
    """Numbers of codebook entries of the Descript Audio Codec."""

    name, codes = "dac_codes", True


class Mimi(CodecEncoder):
    """Latents of Mimi: 512 numbers, 12.5 a second, from convolutions and a causal transformer."""

    name, classes = "mimi", ("MimiConfig", "MimiModel")

    def __init__(self, checkpoint: str = "", *, codebooks: int = 8, **options: Any) -> None:
        self.codebooks = int(codebooks)
        super().__init__(checkpoint, **options)

    def hop(self) -> int:
        samples: int = round(self._config.sampling_rate / self._config.frame_rate)
        return samples

    def count_codebooks(self) -> int:
        most = int(self._config.num_quantizers)
        if not 1 <= self.codebooks <= most:
            raise UsageError(f"{self._checkpoint.name} has {most} codebooks: {self.codebooks} are not possible.")
        return self.codebooks

    def latents(self, network: Any, sounds: Any) -> Any:
        return network.encoder(sounds).latents

    def quantised(self, network: Any, latents: Any) -> Any:
        return network.quantizer.encode(latents, self.codebooks).transpose(0, 1)


class MimiCodes(Mimi):
    """Numbers of codebook entries of Mimi, of which the first is the most about words."""

    name, codes = "mimi_codes", True
