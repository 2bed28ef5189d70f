"""VocSim's VAE and AE as things that can be trained: network, what it sees, its loss and its recipe.

                 example                      batch                 training ends
    vae          a patch of 2 s               all of 64 clips       after 50 epochs, with the last weights
    vae, text    a patch of 2 s, mel bands    64 patches            after 10 epochs without gain, with the best weights
    ae           a clip, up to 8.2 s          128 clips             after 10 epochs without gain; 5 halve the rate

Where the paper's text and its released code differ, `recipe` chooses: "released", or "text". The code watches the loss
of training and holds nothing out. NumPy and torch suffice for this module: no card, no catalogue, no audio file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from earmark.errors import UsageError, did_you_mean
from earmark.extractors.training import Batches, Recipe, torch_of, train
from earmark.extractors.training_sounds import Sounds

RECIPES = ("released", "text")
AT_ONCE = 128  # spans that are encoded together
MOST_PATCHES = 512
"""Patches of one step at most, whatever the length of the clips: 1.5 GB on the CPU."""

Array = NDArray[Any]
Example = tuple[int, int]
"""A clip and the sample at which it begins."""


class Baseline:
    """What both models share. Every example spans `size` samples."""

    name: ClassVar[str]
    own: ClassVar[tuple[str, ...]]  # options that this one alone takes
    recipes: ClassVar[dict[str, Recipe]]
    widths: ClassVar[dict[str, Any]] = {}  # of the network's layers, where they are not the published ones
    rows, top = "mel band", 128.0  # what the rows of a spectrogram are, and where they end
    size: int
    most: int | None = None  # samples of a clip that it sees; None: all

    def __init__(
        self,
        recipe: str = "released",
        *,
        seed: int = 0,
        device: str = "cpu",
        **changes: Any,
    ) -> None:
        """`changes` replace what the recipe says: epochs, patience, held_out, mixed, batch, rate and the others."""
        if recipe not in RECIPES:
            raise UsageError(
                f"There is no recipe {recipe!r}: choose from {', '.join(RECIPES)}.{did_you_mean(str(recipe), RECIPES)}"
            )
        known = [field.name for field in fields(Recipe)]
        for name in changes:
            if name not in known:
                raise UsageError(f"{self.name} has no option {name!r}.{did_you_mean(name, [*known, *self.own])}")
        given = {name: value for name, value in changes.items() if value is not None}
        self.kind, self.device = recipe, device
        self.recipe = replace(self.recipes[recipe], seed=seed, **given)
        self.history: list[dict[str, float]] = []
        torch = torch_of()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.network = self.build().to(device).eval()

    @property
    def settings(self) -> str:
        """All that its weights depend on beside the sounds."""
        return f"{self.kind} {self.recipe}"

    # --- what each says ---

    def build(self) -> Any:
        raise NotImplementedError

    def starts(self, samples: int) -> list[int]:
        """Where the examples of a clip begin."""
        raise NotImplementedError

    def see(self, spans: Any) -> Any:
        """Spectrograms [B, 1, bands, frames] of spans [B, size]."""
        raise NotImplementedError

    def codes(self, spectrograms: Any) -> Any:
        """Codes [B, T, D], T a second axis that a clip's examples are strung along."""
        raise NotImplementedError

    def reconstruct(self, spectrograms: Any) -> Any:
        raise NotImplementedError

    def loss(self, spectrograms: Any, generator: Any) -> Any:
        """The mean loss of a batch; without a generator there is no noise."""
        return self.network.loss(spectrograms, None)

    # --- learning ---

    def examples(self, sounds: Sounds) -> list[list[Example]]:
        """What training counts as one example: here every span for itself."""
        return [[(clip, start)] for clip, length in enumerate(sounds.lengths) for start in self.starts(length)]

    def batches(self, units: Sequence[Sequence[Example]]) -> Batches:
        """How an order of units is cut: `recipe.batch` of them, fewer where they hold too many spans."""

        def cut(order: Sequence[int]) -> list[list[int]]:
            found: list[list[int]] = []
            spans = MOST_PATCHES
            for place in order:
                spans += len(units[place])
                if not found or len(found[-1]) == self.recipe.batch or spans > MOST_PATCHES:
                    found.append([])
                    spans = len(units[place])
                found[-1].append(place)
            return found

        return cut

    def fit(
        self,
        sounds: Sounds,
        *,
        checkpoint: Path | None = None,
        fingerprint: str = "",
        extras: dict[str, Any] | None = None,
        tell: Callable[[int], None] | None = None,
    ) -> None:
        """Learn from settled sounds."""
        units = self.examples(sounds)

        def load(indices: Sequence[int]) -> Any:
            return self.load(sounds, [span for index in indices for span in units[index]])

        trained = train(
            self.network, self.loss, load, len(units), self.recipe, device=self.device, batches=self.batches(units),
            checkpoint=checkpoint, fingerprint=fingerprint, extras=extras, tell=tell,
        )  # fmt: skip
        self.history = trained.history

    def load(self, sounds: Sounds, examples: Sequence[Example]) -> Any:
        """Spectrograms of examples."""
        clips, starts = zip(*examples, strict=True)
        with torch_of().no_grad():
            return self.see(sounds.spans(clips, starts, self.size, self.device))

    # --- using ---

    def heard(self, samples: int, codes: int) -> int:
        """How many of a clip's codes heard sound, not the zeros behind it."""
        return codes

    def encode(self, waveforms: Sequence[Array]) -> list[Array]:
        """Codes [T, D] of clips at 16 kHz."""
        torch = torch_of()
        rows: list[Array] = []
        counts: list[int] = []
        for waveform in waveforms:
            samples = np.ascontiguousarray(waveform, np.float32)
            spans = [samples[start : start + self.size] for start in self.starts(len(samples))]
            rows += [np.pad(span, (0, self.size - len(span))) for span in spans]
            counts.append(len(spans))
        found = []
        with torch.no_grad():
            for low in range(0, len(rows), AT_ONCE):
                spans = torch.from_numpy(np.stack(rows[low : low + AT_ONCE])).to(self.device)
                found.append(self.codes(self.see(spans)).cpu())
        return [own.flatten(0, 1).numpy() for own in torch.cat(found).split(counts)]


class PatchVae(Baseline):
    """32 latent means for each patch of 127 x 256 samples, patches half overlapping."""

    name, own = "vae", ("batch_of",)
    recipes: ClassVar = {
        "released": Recipe(epochs=50, batch=64, rate=1e-3, patience=0),
        "text": Recipe(epochs=50, batch=64, rate=1e-3, patience=10, keep="best"),
    }

    def __init__(self, recipe: Any = "released", *, batch_of: str | None = None, **options: Any) -> None:
        self.batch_of = batch_of or ("clips" if recipe == "released" else "patches")
        if self.batch_of not in ("clips", "patches"):
            raise UsageError(f"A batch is of clips or of patches, not of {self.batch_of}.")
        self.rows, self.top = ("kHz", 8.0) if recipe == "released" else ("mel band", 128.0)
        super().__init__(recipe, **options)

    @property
    def settings(self) -> str:
        return f"{super().settings} {self.batch_of}"

    def build(self) -> Any:
        inputs, networks = _room("autoencoder_inputs"), _room("autoencoders")
        self.size = inputs.PATCH
        return networks.VariationalAutoencoder(**self.widths)

    def examples(self, sounds: Sounds) -> list[list[Example]]:
        """Patches; in the released code clips, all of whose patches go into one batch."""
        if self.batch_of == "patches":
            return super().examples(sounds)
        return [[(clip, start) for start in self.starts(length)] for clip, length in enumerate(sounds.lengths)]

    def starts(self, samples: int) -> list[int]:
        found: list[int] = _room("autoencoder_inputs").patch_starts(samples)
        return found

    def see(self, spans: Any) -> Any:
        bands = "linear" if self.kind == "released" else "mel"
        return _room("autoencoder_inputs").patch_spectrograms(spans, bands)

    def loss(self, spectrograms: Any, generator: Any) -> Any:
        noise = None
        if generator is not None:
            shape = len(spectrograms), self.network.latent + 1
            noise = torch_of().randn(shape, generator=generator).to(self.device, non_blocking=True)
        return self.network.loss(spectrograms, noise)

    def codes(self, spectrograms: Any) -> Any:
        return self.network.encode(spectrograms)[0][:, None]

    def reconstruct(self, spectrograms: Any) -> Any:
        return self.network.decode(self.network.encode(spectrograms)[0])


class ClipAe(Baseline):
    """A code of 256 for every 32 frames of a clip of `frames` frames, averaged over its four rows of frequency."""

    name, own = "ae", ("frames",)
    recipes: ClassVar = dict.fromkeys(
        RECIPES,
        Recipe(
            epochs=50, batch=128, rate=3e-4, optimiser="AdamW", weight_decay=1e-2, plateau=True, patience=10, clip=1.0,
            mixed=True,
        ),
    )  # fmt: skip

    def __init__(self, recipe: Any = "released", *, frames: int = 512, **options: Any) -> None:
        self.frames = frames
        super().__init__(recipe, **options)

    @property
    def settings(self) -> str:
        return f"{super().settings} {self.frames}"

    def build(self) -> Any:
        inputs, networks = _room("autoencoder_inputs"), _room("autoencoders")
        if self.frames < networks.SHRINK or self.frames % networks.SHRINK:
            raise UsageError(f"The AE sees a multiple of {networks.SHRINK} frames, not {self.frames}.")
        self.size = self.most = (self.frames - 1) * inputs.HOP
        return networks.Autoencoder(**self.widths)

    def starts(self, samples: int) -> list[int]:
        return [0]

    def heard(self, samples: int, codes: int) -> int:
        """Steps of 32 frames, a frame every 256 samples."""
        frames = 1 + samples // int(_room("autoencoder_inputs").HOP)
        return min(codes, -(-frames // int(_room("autoencoders").SHRINK)))

    def see(self, spans: Any) -> Any:
        return _room("autoencoder_inputs").clip_spectrograms(spans)

    def codes(self, spectrograms: Any) -> Any:
        return self.network.encoder(spectrograms).float().mean(2).transpose(1, 2)

    def reconstruct(self, spectrograms: Any) -> Any:
        return self.network.decoder(self.network.encoder(spectrograms))


BASELINES: dict[str, type[Baseline]] = {"vae": PatchVae, "ae": ClipAe}


def _room(name: str) -> Any:
    """A module of `earmark.networks`, which imports torch."""
    from importlib import import_module

    torch_of()
    return import_module(f"earmark.networks.{name}")
