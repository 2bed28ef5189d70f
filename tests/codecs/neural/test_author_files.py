"""DAC and EnCodec from every file that is published: the hub's, as its converter writes it, and the authors' own."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.codecs.neural import tiny_files
from tests.codecs.neural.make_golden import SECONDS
from tests.codecs.neural.tiny_codecs import sound, torch

from earmark import open_extractor
from earmark.codecs.catalogue import open_codec
from earmark.errors import InputError, UsageError

GOLDEN = np.load(Path(__file__).with_name("golden.npz"))
Where = Callable[[str], Path]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Where:
    """Where a tiny checkpoint lies: the setting's in its authors' file, or `hub`."""
    writers = {**tiny_files.FILES, "hub": tiny_files.dac_of_the_hub}
    return cache(lambda name: writers[name](tmp_path_factory.mktemp("file") / "tiny"))


def agrees(codec: Any, name: str) -> None:
    """Tokens and samples are those that the authors' package gave."""
    family = name.partition("@")[0]
    coded = codec.encode(sound(codec.card.rate, SECONDS))
    np.testing.assert_array_equal(coded.tokens, GOLDEN[f"{family}.tokens"])
    expected = GOLDEN[f"{family}.samples"]
    decoded = codec.decode(coded)[: len(expected)]  # odd strides give a few samples less
    np.testing.assert_allclose(decoded, expected[: len(decoded)], atol=1e-5 * np.abs(expected).max())
    assert len(np.unique(coded.tokens)) > 20
    assert expected.std() > 0.01
    assert np.abs(expected).max() < 0.999


@pytest.mark.parametrize("name", tiny_files.FILES)
def test_the_authors_file_gives_what_their_package_gives(name: str, file: Where) -> None:
    family, _, kbps = name.partition("@")
    codec = open_codec(f"{family}:{file(name)}@{kbps}", allow_pickle=True)
    agrees(codec, name)
    assert codec.card.kbps == float(kbps)
    alone = next(file(name).iterdir())
    same = open_codec(f"{family}:{alone}@{kbps}", allow_pickle=True)
    assert same.card.version == codec.card.version


def test_the_hub_s_dac_gives_what_the_package_gives(file: Where) -> None:
    codec = open_codec(f"dac_16khz:{file('hub')}@6")
    agrees(codec, "dac_16khz@6")
    config = json.loads((file("hub") / "config.json").read_text())
    assert config["hop_length"] == 512
    assert (codec.card.frame_rate, codec.card.kbps, codec.card.paper_code) == (50.0, 6.0, "D1")
    assert "its config says hop_length 512, and its layers make 320, which counts" in codec.card.notes


def test_the_rate_of_24_khz_is_that_of_its_ratios(tmp_path: Path) -> None:
    place = tiny_files.dac_of_the_hub(tmp_path / "tiny", sampling_rate=24000, n_codebooks=32)
    for kbps, codebooks in ((1.5, 2), (24, 32)):
        card = open_codec(f"dac_24khz:{place}@{kbps}").card
        assert (card.frame_rate, card.kbps, card.codebooks) == (75.0, kbps, codebooks)
    with pytest.raises(UsageError, match=r"sends 24 kbps with 32 codebooks|has 32 codebooks"):
        open_codec(f"dac_24khz:{place}@24", codebooks=33)


def test_a_config_of_44_khz_has_nothing_to_say(tmp_path: Path) -> None:
    changes = {"downsampling_ratios": [2, 4, 8, 8], "upsampling_ratios": [8, 8, 4, 2]}
    place = tiny_files.dac_of_the_hub(tmp_path / "tiny", sampling_rate=44100, n_codebooks=9, **changes)
    card = open_codec(f"dac_44khz:{place}@8").card
    assert card.frame_rate == 44100 / 512
    assert "hop_length" not in card.notes


def test_ratios_must_lead_back(tmp_path: Path) -> None:
    place = tiny_files.dac_of_the_hub(tmp_path / "tiny", upsampling_ratios=[8, 5, 4, 4])
    with pytest.raises(InputError, match="goes down by 320 samples and up by 640: check its ratios"):
        open_codec(f"dac_16khz:{place}@6")


def test_the_extractor_counts_frames_by_the_ratios_too(file: Where) -> None:
    extractor = open_extractor(f"dac:{file('hub')}")
    assert extractor.card.frame_rate == 50.0
    assert extractor.card.rate == 16000
    frames = extractor.extract([sound(16000, 0.51)])[0]
    assert (len(frames.values), frames.valid) == (26, 26)


def test_other_files_are_named(file: Where, tmp_path: Path) -> None:
    torch.save({"state_dict": {"x": torch.zeros(1)}}, tmp_path / "weights.pth")
    with pytest.raises(InputError, match="not a file of dac_16khz as its authors publish it, and has no config"):
        open_codec(f"dac_16khz:{tmp_path}@6", allow_pickle=True)
    with pytest.raises(InputError, match="not a file of encodec as its authors publish it"):
        open_codec(f"encodec:{tmp_path}@24", allow_pickle=True)
    place = next(file("dac_16khz@6").iterdir())
    with pytest.raises(UsageError, match="is a pickle, not safetensors"):
        open_codec(f"dac_16khz:{place}@6")
    copy = Path(shutil.copy(place, tmp_path / "copy.pth"))
    held = torch.load(copy)
    held["state_dict"].pop("decoder.model.2.block.1.weight_v")
    torch.save(held, copy)
    with pytest.raises(InputError, match=r"has no tensor decoder\.block\.1\.conv_t1\.weight "):
        open_codec(f"dac_16khz:{copy}@6", allow_pickle=True).encode(sound(16000, 0.1))


def test_two_channels_in_the_authors_file_are_refused(tmp_path: Path) -> None:
    place = tiny_files.encodec(tmp_path / "stereo", channels=2)
    with pytest.raises(UsageError, match="codes two channels: give a checkpoint for one"):
        open_codec(f"encodec:{place}@24", allow_pickle=True)
