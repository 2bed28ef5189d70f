"""Parts of the networks against plain arithmetic, and whole ones against the sizes that their authors print."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.codecs.neural.tiny_codecs import funcodec_config, sound, torch

from earmark.codecs.neural.checkpoints import Config
from earmark.codecs.neural.seanet import network_of
from earmark.codecs.neural.snac import shape_of
from earmark.extractors.pretrained import Checkpoint
from earmark.networks.layers import Lstm, PaddedConvolution, PaddedTransposed, ResidualQuantiser, Snake
from earmark.networks.seanet import Spectrogram
from earmark.networks.snac import SNAC


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("samples", [1, 2, 7, 40, 41, 44])
def test_convolutions_give_whole_frames_and_as_many_samples_back(causal: bool, samples: int) -> None:
    with torch.inference_mode():
        down = PaddedConvolution(1, 3, (10,), stride=(5,), causal=causal)
        up = PaddedTransposed(3, 1, (10,), (5,), causal=causal)
        frames = down(torch.ones(1, 1, samples))
        assert frames.shape[-1] == math.ceil(samples / 5)
        assert up(frames).shape[-1] == 5 * frames.shape[-1]


def test_a_causal_convolution_hears_no_future() -> None:
    torch.manual_seed(0)
    layer = PaddedConvolution(1, 2, (7,), dilation=(3,), causal=True, pad_mode="constant")
    clip = torch.randn(1, 1, 50)
    later = clip.clone()
    later[..., 30:] += 1.0
    with torch.inference_mode():
        before, after = layer(clip), layer(later)
    torch.testing.assert_close(before[..., :30], after[..., :30])
    assert (before[..., 30:] - after[..., 30:]).abs().max() > 0.01


def test_mirrored_padding_is_numpys() -> None:
    layer = PaddedConvolution(1, 1, (7,))
    torch.nn.init.ones_(layer.conv.conv.weight)
    torch.nn.init.zeros_(layer.conv.conv.bias)
    clip = np.random.default_rng(0).standard_normal(20).astype(np.float32)
    expected = np.convolve(np.pad(clip, 3, mode="reflect"), np.ones(7), "valid")
    with torch.inference_mode():
        np.testing.assert_allclose(layer(torch.from_numpy(clip)[None, None])[0, 0], expected, atol=1e-5)


def test_an_lstm_adds_what_enters_to_what_leaves() -> None:
    torch.manual_seed(1)
    layer, values = Lstm(4, 1, bidirectional=True), torch.randn(1, 4, 6)
    with torch.inference_mode():
        inner, _ = layer.lstm(values.permute(2, 0, 1))
        expected = inner.permute(1, 2, 0) + torch.cat([values, values], 1)
        torch.testing.assert_close(layer(values), expected)


def test_snake_in_one_and_two_axes() -> None:
    layer = Snake(2)
    layer.alpha.data = torch.tensor([0.5, 2.0])[None, :, None]
    values = torch.linspace(-3, 3, 24).reshape(1, 2, 3, 4)
    alpha = np.array([0.5, 2.0])[None, :, None, None]
    expected = values.numpy() + np.sin(alpha * values.numpy()) ** 2 / alpha
    with torch.inference_mode():
        np.testing.assert_allclose(layer(values), expected, atol=1e-6)


def test_a_residual_quantiser_says_the_nearest_entry_of_what_is_left() -> None:
    rng = np.random.default_rng(2)
    entries, latents = rng.standard_normal((3, 11, 4)), rng.standard_normal((4, 9))
    quantiser = ResidualQuantiser(3, 11, 4)
    for layer, values in zip(quantiser.layers, entries, strict=True):
        layer._codebook.embed.copy_(torch.from_numpy(values))
    expected, left = [], latents.T.copy()
    for values in entries:
        chosen = [int(np.argmin([np.sum((one - entry) ** 2) for entry in values])) for one in left]
        expected.append(chosen)
        left -= values[chosen]
    tokens = quantiser.encode(torch.from_numpy(latents)[None].float(), 3)
    np.testing.assert_array_equal(tokens, expected)
    np.testing.assert_allclose(quantiser.decode(tokens)[0].T, latents.T - left, atol=1e-6)


@pytest.mark.parametrize("domain", ["mag_phase", "mag_angle"])
def test_a_spectrogram_leads_back_to_its_sound(domain: str) -> None:
    """A decoder that says magnitude and phase exactly gives the sound exactly."""
    transform = Spectrogram(domain, 512, 160)
    clip = torch.from_numpy(sound(16000, 0.1))[None, None]
    heard = transform.analyse(clip)
    assert heard.shape == (1, 3 if domain == "mag_phase" else 2, 257, 11)
    magnitude = torch.log(torch.expm1(heard[:, 0].exp().double())).float()  # what softplus undoes
    rest = heard[:, 1:] if domain == "mag_phase" else torch.asin((heard[:, 1:] / torch.pi).clamp(-1, 1))
    back = transform.synthesise(torch.cat([magnitude[:, None], rest], 1))
    np.testing.assert_allclose(back[0, 0], clip[0, 0, : back.shape[-1]], atol=2e-5)


def _said(values: dict[str, Any]) -> Config:
    return Config(values, Checkpoint("whole", "whole", Path("whole")))


def _millions(network: Any) -> float:
    return float(sum(parameter.numel() for parameter in network.parameters())) / 1e6


def test_whole_networks_have_the_sizes_that_are_printed() -> None:
    """FunCodec's list of models prints 14.85 M for its recipe of 320 samples; SNAC's prints 19.8 and 54.5 M."""
    recipe = funcodec_config()
    for half in ("encoder_conf", "decoder_conf"):
        recipe[half] = {name: recipe[half][name] for name in ("norm", "causal")}
    small = {"sampling_rate": 24000, "codebook_size": 4096, "codebook_dim": 8}
    large = small | {"encoder_dim": 64, "encoder_rates": [2, 3, 8, 8], "decoder_dim": 1536}
    large |= {"decoder_rates": [8, 8, 3, 2], "attn_window_size": 32, "vq_strides": [8, 4, 2, 1]}
    small |= {"encoder_dim": 48, "encoder_rates": [2, 4, 8, 8], "decoder_dim": 1024}
    small |= {"decoder_rates": [8, 8, 4, 2], "attn_window_size": None, "vq_strides": [4, 2, 1]}
    with torch.device("meta"):
        assert _millions(network_of(_said(recipe))) == pytest.approx(14.85, abs=0.01)
        assert _millions(SNAC(shape_of(_said(small)))) == pytest.approx(19.8, abs=0.05)
        assert _millions(SNAC(shape_of(_said(large)))) == pytest.approx(54.5, abs=0.05)
