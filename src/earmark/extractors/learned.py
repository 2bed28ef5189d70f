"""Models that learn from the sounds of a subset, or of several together, never from labels: VocSim's VAE and AE.

                 sees                                          puts out                      loss
    vae   VC     patches of 2 s, half overlapping, 128 x 128   [patches, 32], latent means   -ELBO, precision 10
    ae    AC     the first 8.2 s of a clip, 128 mels x 512     [16, 256], over time          mean |x - y| + .01 mean |z|

Their mean over time is the vector that VocSim's code takes; the sequence is there for other poolings and for DTW.
Networks and front ends are in `earmark.networks`, recipes in `earmark.extractors.baselines`.

`fit` once, then `extract`. Sounds are decoded once and spectrograms made batch by batch, so memory does not grow with
the corpus. Clips that cannot be read are left out here; embedding them reports why.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from earmark.corpora.clips import Clip
from earmark.errors import EarmarkError, InputError, UsageError, require
from earmark.extractors.baselines import Baseline, ClipAe, PatchVae
from earmark.extractors.contract import ExtractorCard, Frames, Waveform, subsets_named
from earmark.extractors.model_cards import CARDS
from earmark.extractors.torch_models import device_of, exact
from earmark.extractors.training import resume, torch_of
from earmark.extractors.training_sounds import Sounds
from earmark.progress import Progress, progress_bar
from earmark.workers import Workers, thread_count

VERSION = 2
SHOWN = 4
AT_ONCE = 64  # clips that a GPU hears together

Array = NDArray[Any]


class _Learned:
    """What both models share: sounds in, training with checkpoints, the figure. The rest is theirs."""

    card: ExtractorCard
    kind: ClassVar[type[Baseline]]
    scale: ClassVar[str]  # what the values of a spectrogram are

    def __init__(
        self,
        *,
        recipe: str = "released",
        trained_on: str | Sequence[str] = "subset",
        epochs: int = 50,
        patience: int | None = None,
        held_out: float | None = None,
        mixed: bool | None = None,
        seed: int = 0,
        device: str = "auto",
        threads: int | None = None,
        **options: Any,
    ) -> None:
        """Prepare an untrained model.

        Args:
            recipe: `released`, as the authors' code trains it, or `text`, as their paper says.
            trained_on: in a run, `subset`: a network for each subset; `all`: one for all subsets together; or names of
                subsets, as a list or as `A+B`. Elsewhere it learns from the clips it is given, or from those of the
                subsets that are named.
            epochs: passes over the sounds, at most.
            patience: passes without a smaller loss after which training ends; 0: never.
            held_out: the share of examples whose loss is watched instead of that of training.
            mixed: mixed precision on a GPU: of the AE yes, of the VAE no, unless said.
            seed: of weights, order and noise.
            device: auto (a GPU if there is one), cpu, cuda, cuda:1 or mps.
            threads: threads that decode.
            options: what one of the two takes: `batch_of` (vae: clips or patches), `frames` (ae: 512).
        """
        torch = torch_of()
        self.trained_on = subsets_named(trained_on)
        self.threads = thread_count(threads)
        self.device = str(device_of(torch, device))
        if epochs < 1 or (held_out is not None and not 0 <= held_out < 1):
            raise UsageError("Training takes at least one epoch, and less than all of the examples may be held out.")
        self.model = self.kind(
            recipe, seed=seed, device=self.device, epochs=epochs, patience=patience, held_out=held_out, mixed=mixed,
            **options,
        )  # fmt: skip
        self.card = self._describe()
        self.fitted = False
        self._shown: Array = np.empty((0, 0, 0), np.float32)

    def _describe(self) -> ExtractorCard:
        title = self.card.title
        if self.trained_on == "all":
            title = title.replace("the subset itself", "all subsets together")
        elif self.trained_on != "subset":
            title = title.replace("the subset itself", " and ".join(self.trained_on))
        return replace(self.card, title=title)

    @property
    def network(self) -> Any:
        """The torch module, encoder and decoder."""
        return self.model.network

    @property
    def history(self) -> list[dict[str, float]]:
        """The loss of each epoch."""
        return self.model.history

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
            self.model.history, self._shown = saved["history"], saved["extras"]["shown"].numpy()
            self.fitted = True
            return
        sounds = Sounds(folder=None if file is None else file.parent)
        try:
            for samples in self._decoded(items, progress):
                sounds.add(samples[: self.model.most])
            if not len(sounds):
                raise InputError(f"{self.card.name} has no readable clip to learn from.")
            sounds.settle(self.device)
            shown = self._liveliest(sounds)
            with progress_bar(progress, self.model.recipe.epochs, f"train {self.card.name}", "epoch") as bar:
                self.model.fit(
                    sounds, checkpoint=file, fingerprint=fingerprint, extras={"shown": shown}, tell=bar.reach
                )
        finally:
            sounds.close()
        self._shown = shown.numpy()
        self.fitted = True

    def _fingerprint(self, items: Sequence[Any]) -> str:
        """A hash of everything the weights depend on."""
        about = f"{self.card.name} {VERSION} {self.model.settings}"
        digest = hashlib.sha256(about.encode())
        for item in items:
            digest.update(_digest(item))
        return digest.hexdigest()

    def _decoded(self, items: Sequence[Any], progress: Progress) -> Iterator[Array]:
        """Waveforms at their largest, in order, a few ahead; those that cannot be read are left out."""
        shown = progress is True  # a function counts epochs
        title = f"read the sounds that {self.card.name} learns from"
        with Workers(self.threads) as workers, progress_bar(shown, len(items), title, "clip") as tick:
            for samples in workers.map(_waveform, items):
                tick()
                if samples is not None:
                    yield samples

    def _liveliest(self, sounds: Sounds) -> Any:
        """A few examples [n, bands, frames] that vary much, in their order: pauses make a poor figure."""
        spots = [(clip, start) for clip, length in enumerate(sounds.lengths) for start in self.model.starts(length)]
        tried = self.model.load(sounds, spots[:: max(1, len(spots) // (4 * SHOWN))])[:, 0].cpu()
        chosen = tried.std(dim=(1, 2)).argsort(descending=True, stable=True)[:SHOWN].sort().values
        return tried[chosen].clone()

    # --- using ---

    def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
        if not self.fitted:
            raise UsageError(f"{self.card.name} learns from the sounds it is used on: call fit(clips) first.")
        # One clip at a time on a CPU, so that a clip's numbers do not depend on its company to the last bit.
        together = AT_ONCE if self.device.startswith("cuda") else 1
        codes: list[Array] = []
        with exact(torch_of()):
            for low in range(0, len(waveforms), together):
                codes += self.model.encode(waveforms[low : low + together])
        return [
            Frames(values, self.model.heard(len(waveform), len(values)))
            for values, waveform in zip(codes, waveforms, strict=True)
        ]

    def as_untrained(self) -> tuple[str, ...]:
        """Let it hear with the weights it began with, to see what it costs; returns what is to be said of that."""
        self.fitted = True
        whole = sum(weights.numel() for weights in self.network.parameters())
        return (
            "measured with untrained weights, on which its cost does not depend; training comes on top",
            f"{whole / 1e6:.2f} M parameters with its decoder, which training alone uses",
        )

    def reconstruction_figure(self, path: str | PathLike[str]) -> None:
        """Draw a few of the sounds it learned from (above) and what comes out again (below)."""
        if not self.fitted or not len(self._shown):
            raise UsageError(f"{self.card.name} has nothing to show before fit(clips).")
        figures = require("matplotlib.figure", "Figures", "plots")
        torch = torch_of()
        with torch.no_grad():
            batch = torch.from_numpy(self._shown[:, None]).to(self.device)
            pairs = [self._shown, self.model.reconstruct(batch)[:, 0].float().cpu().numpy()]
        columns = len(self._shown)
        seconds = self.model.size / self.card.rate
        low, high = (float(np.quantile(self._shown, share)) for share in (0.001, 0.999))
        figure = figures.Figure(figsize=(2.6 * columns + 0.8, 5.0), layout="constrained")
        axes = figure.subplots(2, columns, squeeze=False, sharex=True, sharey=True)
        for row, (images, title) in enumerate(zip(pairs, ("heard", "reconstructed"), strict=True)):
            for axis, image in zip(axes[row], images, strict=True):
                drawn = axis.imshow(
                    image, origin="lower", aspect="auto", vmin=low, vmax=high, extent=(0, seconds, 0, self.model.top)
                )
                axis.set(xlabel="seconds" if row else "", ylabel="")
            axes[row][0].set_ylabel(f"{title}\n{self.model.rows}")
        figure.colorbar(drawn, ax=axes, label=self.scale, shrink=0.8)
        figure.suptitle(f"{self.card.title}, {len(self.history)} epochs", fontsize=10)
        figure.savefig(path, dpi=120)


class VariationalAutoencoder(_Learned):
    """32 latent means per patch of 127 x 256 samples (2 s), patches half overlapping."""

    card = CARDS["vae"]
    kind = PatchVae
    scale = "log(1 + magnitude)"


class Autoencoder(_Learned):
    """256 numbers for every half second of the first 8.2 s, averaged over frequency; `frames=1024` hears 16.4 s."""

    card = CARDS["ae"]
    kind = ClipAe
    scale = "log(1 + power), normed"

    def _describe(self) -> ExtractorCard:
        card = super()._describe()
        return replace(card, context_seconds=self.model.size / card.rate)


# --- pieces --------------------------------------------------------------------------------------------------


def _waveform(item: Any) -> Array | None:
    """A clip's or a waveform's samples at 16 kHz, peak-normalised, or None when it cannot be read."""
    from earmark import audio

    try:
        waveform = item.read(CARDS["vae"].rate)[0] if isinstance(item, Clip) else item
    except EarmarkError:
        return None
    return audio.peak_normalise(waveform)


def _digest(item: Any) -> bytes:
    if not isinstance(item, Clip):
        return hashlib.sha256(np.ascontiguousarray(item, dtype=np.float32).tobytes()).digest()
    try:
        return (item.expected or item.digest()).encode()
    except EarmarkError:
        return b"unreadable"
