"""VocSim's two models that learn from the sounds they are measured with, as its released code has them.

    VAE   [B, 1, 128, 128] ─ 7 convolutions ─ 8192 ─ 1024 ─ 256 ─┬ 64 ─ 32  mean
                                                                 ├ 64 ─ 32  factor
          and mirrored: 32 ─ 64 ─ 256 ─ 1024 ─ 8192 ─ …          └ 64 ─ 32  log of the diagonal

    AE    [B, 1, 128, T] ─ 5 convolutions, each halving both axes ─ [B, 256, 4, T / 32] ─ and mirrored

The VAE is that of Goffinet et al. (2021): batch norm before each 3 x 3 convolution; a posterior N(mean, factor factor'
+ diag) and a likelihood of precision 10. Layers are named as in checkpoints of the released code.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, nn
from torch.nn import functional

PRECISION = 10.0
SPARSITY = 0.01
SHRINK = 32
"""Frames of a spectrogram for one step of the AE's code."""


class VariationalAutoencoder(nn.Module):  # type: ignore[misc]
    """Patches [B, 1, size, size] to and from `latent` numbers; every second convolution halves both axes."""

    def __init__(
        self,
        latent: int = 32,
        size: int = 128,
        channels: Sequence[int] = (8, 8, 16, 16, 24, 24, 32),
        hidden: Sequence[int] = (1024, 256, 64),
    ) -> None:
        super().__init__()
        self.latent, self.depth = latent, len(channels)
        wide, middle, narrow = hidden
        strides = [1 + place % 2 for place in range(self.depth)]
        path = [1, *channels]
        for place, (before, after) in enumerate(pairwise(path)):
            self.add_module(f"conv{place + 1}", nn.Conv2d(before, after, 3, strides[place], padding=1))
            self.add_module(f"bn{place + 1}", nn.BatchNorm2d(before))
        side = size // 2 ** (self.depth // 2)
        self.inner = (channels[-1], side, side)
        flat = math.prod(self.inner)
        self.fc1, self.fc2 = nn.Linear(flat, wide), nn.Linear(wide, middle)
        for head in (1, 2, 3):  # mean, factor, log of the diagonal
            self.add_module(f"fc3{head}", nn.Linear(middle, narrow))
            self.add_module(f"fc4{head}", nn.Linear(narrow, latent))
        for number, (before, after) in enumerate(pairwise((latent, narrow, middle, wide, flat)), start=5):
            self.add_module(f"fc{number}", nn.Linear(before, after))
        backwards = list(zip(pairwise(path[::-1]), strides[::-1], strict=True))
        for place, ((before, after), stride) in enumerate(backwards):
            mirrored = nn.ConvTranspose2d(before, after, 3, stride, padding=1, output_padding=stride - 1)
            self.add_module(f"convt{place + 1}", mirrored)
            self.add_module(f"bn{self.depth + place + 1}", nn.BatchNorm2d(before))

    def encode(self, patches: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Mean, factor and log of the diagonal of each patch's posterior, [B, latent] each."""
        hidden = patches
        for place in range(1, self.depth + 1):
            hidden = functional.relu(self._through(f"conv{place}", self._through(f"bn{place}", hidden)))
        hidden = functional.relu(self.fc1(hidden.flatten(1)))
        hidden = functional.relu(self.fc2(hidden))
        heads = [
            self._through(f"fc4{head}", functional.relu(self._through(f"fc3{head}", hidden))) for head in (1, 2, 3)
        ]
        return heads[0].float(), heads[1].float(), heads[2].float()

    def decode(self, latent: Tensor) -> Tensor:
        """Patches of latent vectors."""
        hidden = latent
        for number in (5, 6, 7, 8):
            hidden = functional.relu(self._through(f"fc{number}", hidden))
        hidden = hidden.unflatten(1, self.inner)
        for place in range(1, self.depth + 1):
            hidden = self._through(f"convt{place}", self._through(f"bn{self.depth + place}", hidden))
            if place < self.depth:
                hidden = functional.relu(hidden)
        return hidden

    def loss(self, patches: Tensor, noise: Tensor | None) -> Tensor:
        """-ELBO, the mean over patches; `noise` [B, latent + 1] is standard normal, None stands for the means."""
        mean, factor, log_diagonal = self.encode(patches)
        latent = mean if noise is None else low_rank_sample(mean, factor, log_diagonal, noise)
        return negative_elbo(patches, self.decode(latent), latent, factor, log_diagonal).mean()

    def _through(self, name: str, values: Tensor) -> Tensor:
        answer: Tensor = self.get_submodule(name)(values)
        return answer


class Autoencoder(nn.Module):  # type: ignore[misc]
    """Spectrograms [B, 1, bands, T] to and from a code [B, code, bands / 32, T / 32]."""

    def __init__(self, code: int = 256, channels: Sequence[int] = (32, 64, 128, 256)) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            *[_block(nn.Conv2d(*pair, 3, stride=2, padding=1)) for pair in pairwise((1, *channels))],
            nn.Conv2d(channels[-1], code, 3, stride=2, padding=1),
        )
        up = [
            nn.ConvTranspose2d(*pair, 3, stride=2, padding=1, output_padding=1)
            for pair in pairwise((code, *channels[::-1], 1))
        ]
        self.decoder = nn.Sequential(*map(_block, up[:-1]), up[-1])

    def loss(self, spectrograms: Tensor, noise: Tensor | None = None) -> Tensor:
        """The mean absolute error and a hundredth of the mean absolute code; there is no noise."""
        code = self.encoder(spectrograms)
        error = (self.decoder(code).float() - spectrograms).abs().mean()
        return error + SPARSITY * code.float().abs().mean()


def _block(convolution: nn.Conv2d | nn.ConvTranspose2d) -> nn.Sequential:
    return nn.Sequential(convolution, nn.BatchNorm2d(convolution.out_channels), nn.ReLU())


# --- the VAE's objective -------------------------------------------------------------------------------------


def low_rank_sample(mean: Tensor, factor: Tensor, log_diagonal: Tensor, noise: Tensor) -> Tensor:
    """Draws [B, D] from N(mean, factor factor' + diag(exp(log_diagonal))); noise [B, 1 + D] is standard normal."""
    return mean + factor * noise[:, :1] + (0.5 * log_diagonal).exp() * noise[:, 1:]


def negative_elbo(
    patches: Tensor, decoded: Tensor, latent: Tensor, factor: Tensor, log_diagonal: Tensor, precision: float = PRECISION
) -> Tensor:
    """-ELBO of each patch [B]: -log p(x | z) - log p(z) - H(q).

    p(x | z) is normal around `decoded` with variance 1 / precision, p(z) is standard normal. The entropy has a
    closed form: det(diag + factor factor') = det(diag) (1 + factor' diag^-1 factor).
    """
    error = (decoded.float() - patches).square().flatten(1)
    likelihood = -0.5 * precision * error.sum(1) - 0.5 * error.shape[1] * math.log(2.0 * math.pi / precision)
    prior = -0.5 * latent.square().sum(1) - 0.5 * latent.shape[1] * math.log(2.0 * math.pi)
    log_determinant = log_diagonal.sum(1) + (factor.square() * (-log_diagonal).exp()).sum(1).log1p()
    entropy = 0.5 * (latent.shape[1] * (1.0 + math.log(2.0 * math.pi)) + log_determinant)
    return -(likelihood + prior + entropy)
