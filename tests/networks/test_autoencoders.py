"""VocSim's VAE and AE: parameters as printed, the objective against torch, front ends bin by bin."""

from __future__ import annotations

import math
import re
from functools import cache
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from scipy import signal  # noqa: E402
from torch.distributions import LowRankMultivariateNormal, Normal  # noqa: E402

from earmark.extractors.model_cards import CARDS  # noqa: E402
from earmark.networks import autoencoder_inputs as inputs  # noqa: E402
from earmark.networks.autoencoders import (  # noqa: E402
    SPARSITY,
    Autoencoder,
    VariationalAutoencoder,
    low_rank_sample,
    negative_elbo,
)


def count(module: Any) -> int:
    return sum(weights.numel() for weights in module.parameters())


# --- networks ------------------------------------------------------------------------------------------------


def test_parameters_are_those_that_are_printed() -> None:
    """8.73 M and 1.96 M (Table 10): the VAE's encoder alone, the AE's encoder and decoder."""
    with torch.device("meta"):
        vae, ae = VariationalAutoencoder(), Autoencoder()
    convolutions = [(1, 8), (8, 8), (8, 16), (16, 16), (16, 24), (24, 24), (24, 32)]
    by_hand = sum(9 * before * after + after + 2 * before for before, after in convolutions)
    by_hand += 8192 * 1024 + 1024 + 1024 * 256 + 256 + 3 * (256 * 64 + 64 + 64 * 32 + 32)
    decoding = re.compile(r"fc[5-8]\.|convt|bn(8|9|1\d)\.")
    encoder = sum(weights.numel() for name, weights in vae.named_parameters() if not decoding.match(name))
    assert encoder == by_hand == CARDS["vae"].parameters
    assert f"{by_hand / 1e6:.2f}" == "8.73"
    assert f"{count(ae) / 1e6:.2f}" == "1.96"
    assert count(ae.encoder) == CARDS["ae"].parameters


def test_layers_are_named_as_in_the_released_checkpoints() -> None:
    with torch.device("meta"):
        vae, ae = VariationalAutoencoder().state_dict(), Autoencoder().state_dict()
    shapes = {name: tuple(values.shape) for name, values in (vae | ae).items()}
    expected = {
        "conv1.weight": (8, 1, 3, 3), "conv7.weight": (32, 24, 3, 3), "bn1.weight": (1,), "bn7.running_mean": (24,),
        "fc1.weight": (1024, 8192), "fc33.weight": (64, 256), "fc43.bias": (32,), "fc5.weight": (64, 32),
        "fc8.weight": (8192, 1024), "convt1.weight": (32, 24, 3, 3), "convt7.weight": (8, 1, 3, 3), "bn8.weight": (32,),
        "bn14.weight": (8,), "encoder.0.0.weight": (32, 1, 3, 3), "encoder.3.1.running_var": (256,),
        "encoder.4.weight": (256, 256, 3, 3), "decoder.0.0.weight": (256, 256, 3, 3), "decoder.4.bias": (1,),
    }  # fmt: skip
    assert {name: shapes[name] for name in expected} == expected
    assert "bn15.weight" not in shapes


def test_codes_have_the_published_shapes_and_decoders_give_the_input_s() -> None:
    vae, ae = VariationalAutoencoder(channels=(2,) * 7, hidden=(8, 8, 8)), Autoencoder(channels=(2, 2, 2, 2))
    patches, clips = torch.zeros(2, 1, 128, 128), torch.zeros(2, 1, 128, 512)
    assert [tuple(part.shape) for part in vae.encode(patches)] == [(2, 32)] * 3
    assert vae.decode(torch.zeros(2, 32)).shape == patches.shape
    assert ae.encoder(clips).shape == (2, 256, 4, 16)
    assert ae.decoder(ae.encoder(clips)).shape == clips.shape


# --- the objective -------------------------------------------------------------------------------------------


def test_elbo_is_that_of_torch_s_distributions() -> None:
    random = torch.Generator().manual_seed(0)
    mean, factor, log_diagonal, latent = (torch.randn(5, 7, generator=random, dtype=torch.float64) for _ in range(4))
    patches, decoded = (torch.randn(5, 1, 4, 4, generator=random, dtype=torch.float64) for _ in range(2))
    posterior = LowRankMultivariateNormal(mean, factor[..., None], log_diagonal.exp())
    likelihood = Normal(decoded, 1 / math.sqrt(10.0)).log_prob(patches).sum((1, 2, 3))
    expected = -(likelihood + Normal(0.0, 1.0).log_prob(latent).sum(1) + posterior.entropy())
    found = negative_elbo(patches, decoded.double(), latent, factor, log_diagonal)
    assert found.numpy() == pytest.approx(expected.numpy(), abs=1e-4)  # the error is taken in float32


def test_samples_have_the_posterior_s_mean_and_covariance() -> None:
    random = torch.Generator().manual_seed(1)
    mean, factor, log_diagonal = (torch.randn(1, 3, generator=random) for _ in range(3))
    noise = torch.randn(200_000, 4, generator=random)
    drawn = low_rank_sample(mean, factor, log_diagonal, noise)
    posterior = LowRankMultivariateNormal(mean[0], factor[0][:, None], log_diagonal[0].exp())
    assert drawn.mean(0).numpy() == pytest.approx(posterior.mean.numpy(), abs=0.02)
    assert np.cov(drawn.T.numpy()) == pytest.approx(posterior.covariance_matrix.numpy(), abs=0.05)


def test_the_ae_s_loss_is_the_mean_error_and_a_hundredth_of_the_mean_code() -> None:
    torch.manual_seed(0)
    ae = Autoencoder(code=4, channels=(2, 2, 2, 2)).eval()
    clips = torch.randn(2, 1, 32, 64)
    with torch.no_grad():
        code = ae.encoder(clips)
        expected = np.abs((ae.decoder(code) - clips).numpy()).mean() + SPARSITY * np.abs(code.numpy()).mean()
        assert float(ae.loss(clips)) == pytest.approx(float(expected), rel=1e-6)
    assert SPARSITY == 0.01


# --- what they see -------------------------------------------------------------------------------------------


def stft(samples: np.ndarray, size: int) -> np.ndarray:
    """Magnitudes [bins, frames] by definition: each frame cut out of the reflected sound, tapered and transformed."""
    padded = np.pad(samples.astype(np.float64), size // 2, mode="reflect")
    starts = range(0, len(padded) - size + 1, 256)
    taper = signal.get_window("hann", size)
    return np.abs(np.stack([np.fft.rfft(padded[start : start + size] * taper) for start in starts], axis=1))


@cache
def slaney_bank(size: int) -> np.ndarray:
    """128 triangles of area 1 (in hertz) to 8 kHz: 3 mels for 200 Hz up to 1 kHz, then 27 for a factor of 6.4."""
    top = 15.0 + 27.0 * math.log(8.0) / math.log(6.4)
    mels = np.linspace(0.0, top, 130)
    hertz = np.array([mel * 200 / 3 if mel < 15 else 1000 * 6.4 ** ((mel - 15) / 27) for mel in mels])
    bins = np.arange(size // 2 + 1) * 16000 / size
    bank = np.zeros((128, len(bins)))
    for band in range(128):
        low, peak, high = hertz[band : band + 3]
        for number, frequency in enumerate(bins):
            rising, falling = (frequency - low) / (peak - low), (high - frequency) / (high - peak)
            bank[band, number] = max(0.0, min(rising, falling)) * 2 / (high - low)
    return bank


def sound(samples: int, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    time = np.arange(samples) / 16000
    return (0.5 * np.sin(2 * np.pi * (300 + 2000 * time) * time) + 0.1 * random.standard_normal(samples)).astype("f")


def test_patches_are_linear_spectrograms_resized() -> None:
    samples = sound(inputs.PATCH)
    logs = np.log1p(stft(samples, 512))
    assert logs.shape == (257, 128)
    expected = np.empty((128, 128))
    for row in range(128):  # half-pixel centres, two neighbours, time is not resized
        place = (row + 0.5) * 257 / 128 - 0.5
        below = math.floor(place)
        expected[row] = (below + 1 - place) * logs[below] + (place - below) * logs[min(below + 1, 256)]
    found = inputs.patch_spectrograms(torch.from_numpy(samples)[None])
    assert found.shape == (1, 1, 128, 128)
    assert found[0, 0].numpy() == pytest.approx(expected, abs=2e-5)


def test_patches_of_the_text_are_mel_bands() -> None:
    samples = sound(inputs.PATCH)
    found = inputs.patch_spectrograms(torch.from_numpy(samples)[None], "mel")[0, 0].numpy()
    from earmark.extractors.logmel import mel_bank  # HTK bands as in the log-mel spectrogram of the paper

    assert found == pytest.approx(np.log1p(mel_bank() @ stft(samples, 512) ** 2), rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("samples", [1, 40_000, 511 * 256])
def test_clips_are_normed_slaney_mels(samples: int) -> None:
    given = np.zeros(511 * 256, np.float32)
    given[:samples] = sound(samples, samples)
    logs = np.log1p(np.maximum(slaney_bank(1024) @ stft(given, 1024) ** 2, 1e-9))
    expected = (logs - logs.mean()) / np.sqrt(logs.var() + 1e-4)
    found = inputs.clip_spectrograms(torch.from_numpy(given)[None])
    assert found.shape == (1, 1, 128, 512)
    assert found[0, 0].numpy() == pytest.approx(expected, rel=1e-4, abs=2e-4)


def test_silence_and_company_change_nothing() -> None:
    clips = torch.zeros(2, 511 * 256)
    clips[1] = torch.from_numpy(sound(511 * 256))
    found = inputs.clip_spectrograms(clips)
    assert float(found[0].abs().max()) < 1e-9
    assert torch.allclose(found[1], inputs.clip_spectrograms(clips[1:])[0], atol=1e-6)


LENGTHS = [1, 100, 32_511, 32_512, 32_513, 48_767, 48_768, 48_769, 65_024, 65_025, 80_000, 160_000, 479_999]


@pytest.mark.parametrize("samples", LENGTHS)
def test_patches_cover_the_clip_half_overlapping(samples: int) -> None:
    starts = inputs.patch_starts(samples)
    assert starts[0] == 0
    if samples <= inputs.PATCH:
        assert starts == [0]
        return
    assert starts[-1] + inputs.PATCH == samples
    assert all(start == 16_256 * place for place, start in enumerate(starts[:-1]))
    assert 0 < starts[-1] - starts[-2] <= 16_256


def test_patches_of_an_esc_50_clip() -> None:
    assert inputs.patch_starts(80_000) == [0, 16_256, 32_512, 47_488]
