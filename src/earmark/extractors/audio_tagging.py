"""VGGish and PANNs: networks trained to name sounds, on which most Fréchet audio distances are computed.

    VGGish   0.96 s of 64 log-mel bands -- convolutions --> 128 numbers, one vector for each window
    CNN14    a whole clip of 64 mel bands in decibels -- convolutions, pooled --> 2048 numbers, one vector for the clip

Both need a file of their authors', which is named when it is missing. A config.json beside it may describe a network of
another size; the published ones need none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.errors import InputError, UsageError
from earmark.extractors.contract import Waveform
from earmark.extractors.pretrained import fill, read_state, stripped
from earmark.extractors.torch_models import Batch, TorchExtractor

STEP = 160  # samples from a frame of VGGish to the next
WINDOW = 95 * STEP + 400  # samples that 96 frames look at
RATES = {8000: (256, 80, 4000.0), 16000: (512, 160, 8000.0), 32000: (1024, 320, 14000.0)}  # FFT, hop, top of the band
HALVINGS = 5  # of time, in CNN14


class VGGish(TorchExtractor):
    """A vector for every window of 0.96 s, the rest behind the last whole one left out, as its authors do.

    Reads `vggish-10086976.pth` of torchvggish (a pickle), safetensors with the same names, or an .npz with the arrays
    of its authors' checkpoint by name (`vggish/conv1/weights`). A clip shorter than a window is filled with zeros.

    Args:
        checkpoint: The file.
        hop: Seconds from a window to the next.
        activation: Whether vectors go through the last ReLU.
        pca: The authors' vggish_pca_params.npz: vectors are then whitened and rounded to 0..255.
        options: See `Settings`.
    """

    name = "vggish"
    packages = ("torch", "transformers")
    where = "download vggish-10086976.pth from the releases of github.com/harritaylor/torchvggish"

    def __init__(
        self, checkpoint: str = "", *, hop: float = 0.96, activation: bool = False, pca: str = "", **options: Any
    ) -> None:
        from earmark.networks.vggish import VGGishShape

        self._step = round(100 * float(hop))
        if not (self._step >= 1 and math.isclose(self._step, 100 * float(hop), abs_tol=1e-6)):
            raise UsageError(f"A hop of {hop} s is not possible: give a multiple of 0.01 s.")
        self._activation, self._pca = bool(activation), _read_pca(pca)
        super().__init__(checkpoint, find_options={"where": self.where}, **options)
        self._shape = VGGishShape(**_sizes(self._checkpoint.json("config.json")))
        self.complete_card(dimension=self._shape.dimension, frame_rate=100 / self._step)

    def build(self) -> Any:
        from earmark.networks.vggish import VGGish as Network

        return Network(self._shape, self._activation)

    def load(self) -> Any:
        from earmark.networks.vggish import rename_tensors

        file = self._checkpoint.weights
        if file.suffix == ".npz":
            with np.load(file) as arrays:
                state: Mapping[str, Any] = {name.removesuffix(":0"): arrays[name] for name in arrays}
        else:
            state = read_state(self._checkpoint)
        return fill(self.empty(), rename_tensors(stripped(state, "model.", "module.")), self._checkpoint)

    def prepare(self, waveform: Waveform) -> NDArray[np.float32]:
        heard = max(len(waveform), WINDOW)
        windows = 1 + (heard - WINDOW) // (self._step * STEP)
        samples = WINDOW + (windows - 1) * self._step * STEP
        return np.pad(waveform[:samples], (0, max(0, samples - len(waveform))))

    def forward(self, network: Any, batch: Batch, layers: Sequence[int]) -> Mapping[int, Any]:
        from earmark.networks.spectrograms import vggish_mel
        from earmark.networks.vggish import FRAMES, quantised

        mel = vggish_mel(batch.sounds).unfold(1, FRAMES, self._step).transpose(2, 3)  # [B, windows, frames, bands]
        values = network(mel.flatten(0, 1).to(self._dtype))
        if self._pca is not None:
            vectors, means = (self._torch.from_numpy(array).to(values) for array in self._pca)
            values = quantised(values, vectors, means)
        return {0: values.unflatten(0, mel.shape[:2])}


def _read_pca(path: str) -> tuple[NDArray[np.float32], NDArray[np.float32]] | None:
    if not path:
        return None
    try:
        with np.load(Path(path).expanduser()) as arrays:
            vectors, means = arrays["pca_eigen_vectors"], arrays["pca_means"]
    except (OSError, KeyError, ValueError) as error:
        raise InputError(
            f"{path} is not VGGish's file of principal components ({error}): give vggish_pca_params.npz."
        ) from error
    return np.asarray(vectors, np.float32), np.asarray(means, np.float32).reshape(-1)


def _sizes(config: Mapping[str, Any]) -> dict[str, Any]:
    """The sizes in a config.json that a shape knows."""
    return {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in config.items()
        if name in ("widths", "hidden", "dimension")
    }


class Panns(TorchExtractor):
    """CNN14: one vector of a whole clip, of the layer before the classifier.

    Reads `Cnn14_16k_mAP=0.438.pth` and its siblings (pickles), or safetensors with the same names. A clip too short for
    five halvings of its frames (0.32 s) is filled with zeros.

    Args:
        checkpoint: The file.
        rate: Of the sound: 16000, 32000 or 8000, each with a checkpoint of its own.
        options: See `Settings`.
    """

    name = "panns"
    packages = ("torch", "transformers")
    where = "download Cnn14_16k_mAP=0.438.pth from zenodo.org/records/3987831"

    def __init__(self, checkpoint: str = "", *, rate: int = 16000, **options: Any) -> None:
        from earmark.networks.panns import Cnn14Shape

        if rate not in RATES:
            raise UsageError(f"PANNs hear 8000, 16000 or 32000 Hz, not {rate}.")
        self._fft, self._hop, self._top = RATES[rate]
        super().__init__(checkpoint, find_options={"where": self.where}, **options)
        sizes = _sizes(self._checkpoint.json("config.json"))
        self._shape = Cnn14Shape(**sizes, bins=self._fft // 2 + 1)
        self.complete_card(rate=rate, dimension=self._shape.dimension)

    def build(self) -> Any:
        from earmark.networks.panns import Cnn14

        return Cnn14(self._shape)

    def load(self) -> Any:
        from earmark.networks.panns import rename_tensors
        from earmark.networks.spectrograms import mel_bank

        state = read_state(self._checkpoint)
        tensors = rename_tensors(stripped(state.get("model", state), "module."))
        band = self._shape.bins, self._shape.bands, 50.0, self._top, self.card.rate, "slaney", "slaney"
        tensors.setdefault("bank", mel_bank(*band))
        if len(tensors["bank"]) != self._shape.bins:
            raise InputError(
                f"{self._checkpoint.name} has a filter bank of {len(tensors['bank'])} bins, which is none of "
                f"{self.card.rate} Hz: give its rate, panns:FILE?rate=32000."
            )
        counters = {name: value for name, value in self.build().state_dict().items() if name.endswith("_tracked")}
        return fill(self.empty(), {**counters, **tensors}, self._checkpoint)

    def prepare(self, waveform: Waveform) -> NDArray[np.float32]:
        shortest = max((2**HALVINGS - 1) * self._hop, self._fft // 2 + 1)
        return np.pad(waveform, (0, max(0, shortest - len(waveform))))

    def forward(self, network: Any, batch: Batch, layers: Sequence[int]) -> Mapping[int, Any]:
        from earmark.networks.spectrograms import decibel_mel

        decibels = decibel_mel(batch.sounds, network.bank.float(), self._fft, self._hop)
        return {0: network(decibels.to(self._dtype))[:, None]}
