"""EnCodec, DAC and Mimi against direct calls of the library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.extractors import tiny_models
from tests.extractors.tiny_models import sound, torch, transformers

from earmark.errors import UsageError
from earmark.extractors.catalogue import open_extractor


def compare(name: str, place: Path, clip: Any, latents: Any, codes: Any) -> None:
    """Latents to the last digits, codes exactly."""
    found = open_extractor(f"{name}:{place}").extract([clip])[0]
    np.testing.assert_allclose(found.values, latents[0].T, atol=1e-6)
    numbers = open_extractor(f"{name}_codes:{place}").extract([clip])[0]
    np.testing.assert_array_equal(numbers.values, codes.T)
    assert len(np.unique(codes)) > 5
    assert numbers.valid == len(numbers.values) == len(found.values)


def test_encodec_is_the_librarys_at_6_kbit(tmp_path: Path) -> None:
    torch.manual_seed(6)
    place, clip = tiny_models.encodec(tmp_path / "tiny"), sound(24000, 0.7)
    model = transformers.EncodecModel.from_pretrained(place).eval()
    with torch.inference_mode():
        given = torch.from_numpy(clip)[None, None]
        compare("encodec", place, clip, model.encoder(given), model.encode(given, bandwidth=6.0).audio_codes[0, 0])
    assert open_extractor(f"encodec_codes:{place}?bandwidth=3").extract([clip])[0].values.shape[1] == 4
    with pytest.raises(UsageError, match="has no bandwidth 7"):
        open_extractor(f"encodec_codes:{place}", bandwidth=7)


def test_dac_is_the_librarys(tmp_path: Path) -> None:
    torch.manual_seed(7)
    place, clip = tiny_models.dac(tmp_path / "tiny"), sound(16000, 0.7)
    model = transformers.DacModel.from_pretrained(place).eval()
    features = transformers.DacFeatureExtractor(sampling_rate=16000, hop_length=model.config.hop_length)
    with torch.inference_mode():
        given = torch.as_tensor(np.asarray(features(clip, sampling_rate=16000).input_values))
        compare("dac", place, clip, model.encoder(given), model.encode(given).audio_codes[0])


def test_mimi_is_the_librarys(tmp_path: Path) -> None:
    torch.manual_seed(8)
    place, clip = tiny_models.mimi(tmp_path / "tiny"), sound(24000, 0.7)
    model = transformers.MimiModel.from_pretrained(place).eval()
    with torch.inference_mode():
        given = torch.from_numpy(clip)[None, None]
        codes = model.encode(given, num_quantizers=8).audio_codes[0]
        compare("mimi", place, clip, model.encoder(given).latents, codes)
    with pytest.raises(UsageError, match="has 12 codebooks: 13 are not possible"):
        open_extractor(f"mimi_codes:{place}", codebooks=13)


def test_two_channels_and_half_precision_that_overflows_are_refused(tmp_path: Path) -> None:
    place = tmp_path / "stereo"
    config = transformers.EncodecConfig(audio_channels=2, num_filters=2, hidden_size=8, codebook_dim=8)
    transformers.EncodecModel(config).save_pretrained(place)
    with pytest.raises(UsageError, match="hears two channels"):
        open_extractor(f"encodec:{place}")
