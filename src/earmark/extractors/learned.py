"""Models that learn from the sounds of one subset, never from its labels: a VAE and an AE on log-mel spectrograms.

                 sees                                     puts out            loss
    vae   VC     patches of 128 frames, every 64          [patches, 32]       -ELBO, Gaussian of precision 10
    ae    AC     the whole clip, in pieces of 512 frames  [T / 16, 256]       mean |x - y| + 0.01 mean |z|

A spectrogram enters as (dB - clip maximum + 80) / 80, in [0, 1]; what is missing to a whole patch, or to a
multiple of 16 frames, is 0, the floor. The ELBO follows Goffinet et al. (2021) with a diagonal posterior, and a
patch is represented by its latent mean. The AE is convolutional in time, so that a clip gives a sequence.

Training: `fit` once per subset, then `extract`. Spectrograms are held in float16 while training (16 kB a second).
A tenth of the examples, if there are ten, decides when to stop and which epoch's weights are kept.
Clips that cannot be read are left out here; embedding them reports why.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from earmark.corpora.clips import Clip
from earmark.errors import EarmarkError, InputError, UsageError, require
from earmark.extractors.contract import ExtractorCard, Frames, Waveform
from earmark.extractors.logmel import BANDS, RANGE_DB, log_mel
from earmark.extractors.model_cards import CARDS
from earmark.extractors.torch_models import device_of
from earmark.extractors.training import Recipe, resume, torch_of, train
from earmark.extractors.windows import clip_by_clip, map_clips
from earmark.progress import Progress, progress_bar
from earmark.workers import thread_count

PATCH = 128
STEP = 64
PRECISION = 10.0
PIECE = 512
SHRINK = 16
SPARSITY = 0.01
SHOWN = 4

Array = NDArray[Any]


class _Learned:
    """What both models share: data in, training with checkpoints, the figure. The rest is theirs."""

    card: ClassVar[ExtractorCard]
    recipe: Recipe
    window: ClassVar[int]  # frames an example spans at most
    step: ClassVar[int]  # frames from one example to the next

    def __init__(
        self, *, epochs: int = 50, patience: int = 10, seed: int = 0, device: str = "auto", threads: int | None = None
    ) -> None:
        torch = torch_of()
        self.recipe = replace(self.recipe, epochs=epochs, patience=patience, seed=seed)
        self.threads = thread_count(threads)
        self.device = str(device_of(torch, device))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.network = self._build(torch.nn).to(self.device).eval()
        self.fitted = False
        self.history: list[dict[str, float]] = []
        self._examples: Array = np.empty((0, BANDS, 0), np.float32)

    def _build(self, nn: Any) -> Any:
        raise NotImplementedError

    def _loss(self, batch: Any, generator: Any) -> Any:
        """The mean loss of (spectrograms [B, 1, bands, frames], frames of each that are its own)."""
        raise NotImplementedError

    def _encode(self, batch: Any) -> Any:
        """Codes [B, T', D] of a batch [B, 1, bands, frames]."""
        raise NotImplementedError

    def _reconstruct(self, batch: Any) -> Any:
        raise NotImplementedError

    # --- learning ---

    def fit(
        self,
        clips: Iterable[Clip] | Iterable[Waveform],
        *,
        progress: Progress = False,
        checkpoint: str | PathLike[str] | None = None,
    ) -> None:
        """Learn from clips, or from waveforms at 16 kHz. With `checkpoint`, a file, each epoch is saved and a
        killed training goes on where it stopped; a finished one is only loaded."""
        items: list[Any] = list(clips)
        fingerprint = self._fingerprint(items)
        file = None if checkpoint is None else Path(checkpoint)
        saved = resume(file, fingerprint)
        if saved is not None and saved["finished"]:
            self.network.load_state_dict(saved["best"])
            self.history, self._examples = saved["history"], saved["extras"]["shown"].numpy()
            self.fitted = True
            return
        spectrograms = [values for values in map_clips(_spectrogram, items, self.threads) if values is not None]
        if not spectrograms:
            raise InputError(f"{self.card.name} has no readable clip to learn from.")
        spots = [(clip, start) for clip, values in enumerate(spectrograms) for start in self._starts(len(values))]
        torch = torch_of()

        def load(indices: list[int]) -> Any:
            cut = [spectrograms[clip][start : start + self.window] for clip, start in (spots[i] for i in indices)]
            widths = torch.tensor([_round_up(len(piece), SHRINK) for piece in cut])
            return torch.from_numpy(self._stacked(cut)).to(self.device), widths.to(self.device)

        shown = _liveliest(load(list(range(0, len(spots), max(1, len(spots) // (4 * SHOWN)))))[0][:, 0].cpu())
        with progress_bar(progress, self.recipe.epochs, f"train {self.card.name}", "epoch") as bar:
            trained = train(
                self.network, self._loss, load, len(spots), self.recipe,
                checkpoint=file, fingerprint=fingerprint, extras={"shown": shown}, tell=bar.reach,
            )  # fmt: skip
        self.history, self._examples = trained.history, shown.numpy()
        self.fitted = True

    def _fingerprint(self, items: Sequence[Any]) -> str:
        """A hash of everything the weights depend on."""
        digest = hashlib.sha256(f"{self.card.name} {self.card.version} {self.recipe}".encode())
        for item in items:
            digest.update(_digest(item))
        return digest.hexdigest()

    def _starts(self, frames: int) -> range:
        """Where examples begin: every `step` frames, the last one reaching the end."""
        return range(0, max(frames - self.window, 0) + self.step, self.step)

    def _stacked(self, pieces: Sequence[Array]) -> Array:
        """Pieces [t, bands] as a batch [B, 1, bands, frames], padded with the floor."""
        width = self.window if self.step < self.window else _round_up(max(map(len, pieces)), SHRINK)
        batch = np.zeros((len(pieces), 1, BANDS, width), np.float32)
        for row, piece in zip(batch, pieces, strict=True):
            row[0, :, : len(piece)] = piece.T
        return batch

    # --- using ---

    def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
        if not self.fitted:
            raise UsageError(f"{self.card.name} learns from the sounds it is used on: call fit(clips) first.")
        return clip_by_clip(self._encode_clip, map_clips(_scaled, list(waveforms), self.threads))

    def _encode_clip(self, spectrogram: Array) -> Array:
        """One clip at a time, so that a clip's numbers do not depend on its company."""
        torch = torch_of()
        pieces = [spectrogram[start : start + self.window] for start in self._starts(len(spectrogram))]
        groups = [pieces] if self.step < self.window else [[piece] for piece in pieces]
        codes = []
        with torch.no_grad():
            for group in groups:
                for low in range(0, len(group), self.recipe.batch):
                    batch = torch.from_numpy(self._stacked(group[low : low + self.recipe.batch])).to(self.device)
                    codes.append(self._encode(batch).flatten(0, 1).cpu().numpy())
        return np.concatenate(codes)

    def reconstruction_figure(self, path: str | PathLike[str]) -> None:
        """Draw a few of the sounds it learned from (above) and what comes out again (below)."""
        if not self.fitted:
            raise UsageError(f"{self.card.name} has nothing to show before fit(clips).")
        figures = require("matplotlib.figure", "Figures", "plots")
        torch = torch_of()
        with torch.no_grad():
            batch = torch.from_numpy(self._examples[:, None]).to(self.device)
            pairs = [self._examples, self._reconstruct(batch)[:, 0].cpu().numpy()]
        columns = len(self._examples)
        figure = figures.Figure(figsize=(2.6 * columns + 0.8, 5.0), layout="constrained")
        axes = figure.subplots(2, columns, squeeze=False, sharex=True, sharey=True)
        for row, (images, title) in enumerate(zip(pairs, ("heard", "reconstructed"), strict=True)):
            for axis, image in zip(axes[row], images, strict=True):
                drawn = axis.imshow(image * RANGE_DB - RANGE_DB, origin="lower", aspect="auto", vmin=-RANGE_DB, vmax=0)
                axis.set(xlabel="frame" if row else "", ylabel="")
            axes[row][0].set_ylabel(f"{title}\nmel band")
        figure.colorbar(drawn, ax=axes, label="dB below the clip's maximum", shrink=0.8)
        figure.suptitle(f"{self.card.title}, {len(self.history)} epochs", fontsize=10)
        figure.savefig(path, dpi=120)


class VariationalAutoencoder(_Learned):
    """32 latent means per patch of 128 frames, patches half overlapping."""

    card = CARDS["vae"]
    recipe = Recipe(epochs=50, batch=64, rate=1e-3)
    window, step = PATCH, STEP
    latent = 32

    def _build(self, nn: Any) -> Any:
        encoder = nn.Sequential(
            *_down(nn, (1, 8, 16, 24, 32)),
            nn.Flatten(),
            nn.Linear(2048, 256),
            nn.ReLU(),
            nn.Linear(256, 2 * self.latent),
        )
        decoder = nn.Sequential(
            nn.Linear(self.latent, 256), nn.ReLU(), nn.Linear(256, 2048), nn.ReLU(), nn.Unflatten(1, (32, 8, 8)),
            *_up(nn, (32, 24, 16, 8, 1)),
        )  # fmt: skip
        return nn.ModuleDict({"encoder": encoder, "decoder": decoder})

    def _loss(self, batch: Any, generator: Any) -> Any:
        """-ELBO per patch, up to a constant; the noise of the latent is left out without a generator."""
        torch = torch_of()
        patches, _ = batch
        mean, log_variance = self.network["encoder"](patches).chunk(2, dim=1)
        latent = mean
        if generator is not None:
            noise = torch.randn(mean.shape, generator=generator).to(mean.device)
            latent = mean + noise * (0.5 * log_variance).exp()
        error = (self.network["decoder"](latent) - patches).square().sum(dim=(1, 2, 3))
        divergence = 0.5 * (mean.square() + log_variance.exp() - 1.0 - log_variance).sum(dim=1)
        return (0.5 * PRECISION * error + divergence).mean()

    def _encode(self, batch: Any) -> Any:
        return self.network["encoder"](batch).chunk(2, dim=1)[0][:, None]

    def _reconstruct(self, batch: Any) -> Any:
        return self.network["decoder"](self._encode(batch)[:, 0])


class Autoencoder(_Learned):
    """A bottleneck of 256 every 16 frames, over the whole clip."""

    card = CARDS["ae"]
    recipe = Recipe(epochs=50, batch=128, rate=3e-4, optimiser="AdamW", weight_decay=1e-2, plateau=True)
    window, step = PIECE, PIECE
    bottleneck = 256

    def _build(self, nn: Any) -> Any:
        high = BANDS // SHRINK
        encoder = nn.Sequential(*_down(nn, (1, 16, 32, 64, 128)), nn.Conv2d(128, self.bottleneck, (high, 1)))
        decoder = nn.Sequential(
            nn.ConvTranspose2d(self.bottleneck, 128, (high, 1)), nn.ReLU(), *_up(nn, (128, 64, 32, 16, 1))
        )
        return nn.ModuleDict({"encoder": encoder, "decoder": decoder})

    def _loss(self, batch: Any, generator: Any) -> Any:
        """Each clip's mean over its own frames, so that shorter clips are not judged by padding."""
        torch = torch_of()
        clips, widths = batch
        codes = self.network["encoder"](clips)
        error = (self.network["decoder"](codes) - clips).abs().mean(dim=(1, 2))
        own = torch.arange(error.shape[1], device=error.device) < widths[:, None]
        sparse = codes.abs().mean(dim=(1, 2))
        return _mean_where(error, own) + SPARSITY * _mean_where(sparse, own[:, ::SHRINK])

    def _encode(self, batch: Any) -> Any:
        return self.network["encoder"](batch)[:, :, 0].transpose(1, 2)

    def _reconstruct(self, batch: Any) -> Any:
        return self.network["decoder"](self.network["encoder"](batch))


# --- pieces --------------------------------------------------------------------------------------------------


def _down(nn: Any, channels: Sequence[int]) -> list[Any]:
    """Convolutions that halve both axes, each with ReLU.

    There is no batch normalisation: what it does in training and in use differs for as long as its averages
    settle, and on a small subset, with few steps an epoch, early stopping would come first.
    """
    layers = []
    for narrow, wide in pairwise(channels):
        layers += [nn.Conv2d(narrow, wide, 3, stride=2, padding=1), nn.ReLU()]
    return layers


def _up(nn: Any, channels: Sequence[int]) -> list[Any]:
    """The mirror image of `_down`; the last layer is plain."""
    layers = []
    for wide, narrow in pairwise(channels):
        layers += [nn.ConvTranspose2d(wide, narrow, 3, stride=2, padding=1, output_padding=1), nn.ReLU()]
    return layers[:-1]


def _liveliest(examples: Any) -> Any:
    """The few examples [n, bands, frames] that vary most, in their order: pauses make a poor figure."""
    chosen = examples.std(dim=(1, 2)).argsort(descending=True, stable=True)[:SHOWN].sort().values
    return examples[chosen].clone()


def _mean_where(values: Any, own: Any) -> Any:
    """The mean over rows of each row's mean over its own columns."""
    return ((values * own).sum(dim=1) / own.sum(dim=1)).mean()


def _scaled(waveform: Waveform) -> Array:
    """The spectrogram [T, bands] in [0, 1]: 1 is the clip's maximum, 0 is 80 dB below."""
    decibels = log_mel(waveform)
    return np.asarray((decibels - decibels.max()) / np.float32(RANGE_DB) + np.float32(1.0))


def _spectrogram(item: Any) -> Array | None:
    """A clip's or a waveform's spectrogram for training, or None when it cannot be read."""
    from earmark import audio

    try:
        waveform = item.read(CARDS["logmel"].rate)[0] if isinstance(item, Clip) else item
    except EarmarkError:
        return None
    return _scaled(audio.peak_normalise(waveform)).astype(np.float16)


def _digest(item: Any) -> bytes:
    if not isinstance(item, Clip):
        return hashlib.sha256(np.ascontiguousarray(item, dtype=np.float32).tobytes()).digest()
    try:
        return item.digest().encode()
    except EarmarkError:
        return b"unreadable"


def _round_up(number: int, unit: int) -> int:
    return -(-number // unit) * unit
