"""Weights that are missing, incomplete, pickled or of something else: one sentence each, which names the thing."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.codecs.neural.tiny_codecs import sound, torch

from earmark.codecs.catalogue import open_codec
from earmark.codecs.neural.checkpoints import read_tensors
from earmark.errors import EarmarkError, InputError, UsageError
from earmark.extractors.pretrained import Checkpoint

Where = Callable[[str], Path]
SETTING = "speechtokenizer@4"


@pytest.fixture
def copied(checkpoint: Where, tmp_path: Path) -> Path:
    """A tiny SpeechTokenizer that may be damaged."""
    return Path(shutil.copytree(checkpoint(SETTING), tmp_path / "copy"))


def changed(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    state = torch.load(folder / "SpeechTokenizer.pt")
    change(state)
    torch.save(state, folder / "SpeechTokenizer.pt")


def said(folder: Path, **options: Any) -> str:
    """What opening and loading a checkpoint is refused with."""
    with pytest.raises(EarmarkError) as caught:
        open_codec(f"speechtokenizer:{folder}@4", **{"allow_pickle": True} | options).encode(sound(16000, 0.1))
    return str(caught.value)


def test_a_missing_tensor_is_named(copied: Path) -> None:
    changed(copied, lambda state: state.pop("decoder.model.1.lstm.weight_ih_l1"))
    assert "has no tensor decoder.model.1.lstm.weight_ih_l1 (one of 1 " in said(copied)


def test_half_of_a_normalised_weight_is_missed(copied: Path) -> None:
    changed(copied, lambda state: state.pop("encoder.model.0.conv.conv.weight_g"))
    assert "has no tensor encoder.model.0.conv.conv.weight " in said(copied)


def test_a_tensor_of_another_shape_is_named(copied: Path) -> None:
    changed(copied, lambda state: state.update({"quantizer.vq.layers.3._codebook.embed": torch.zeros(512, 32)}))
    message = said(copied)
    assert "quantizer.vq.layers.3._codebook.embed of shape [512, 32], and its config asks for [1024, 32]" in message


def test_a_tensor_too_many_is_named(copied: Path) -> None:
    changed(copied, lambda state: state.update({"quantizer.vq.layers.8._codebook.embed": torch.zeros(1024, 32)}))
    assert "has the tensor quantizer.vq.layers.8._codebook.embed (one of 1), which its config does not" in said(copied)


def test_weights_folder_and_config_must_be_there(copied: Path, tmp_path: Path) -> None:
    assert "nowhere does not exist: give speechtokenizer an existing" in said(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    assert "holds no weights of speechtokenizer: it needs speechtokenizer_hubert_avg/config" in said(tmp_path / "empty")
    (copied / "config.json").unlink()
    assert "has no config.json: download it beside the weights" in said(copied)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"n_filters": None}, "lacks n_filters"),
        ({"n_filters": "four"}, "says n_filters: 'four', and speechtokenizer wants a whole number"),
        ({"strides": [8, "5"]}, "says strides: [8, '5'], and speechtokenizer wants a list of whole numbers"),
        ({"activation": "GELU"}, "says activation: 'GELU', and speechtokenizer wants ELU or Snake"),
    ],
)
def test_a_config_that_says_something_else(copied: Path, change: dict[str, Any], expected: str) -> None:
    config = json.loads((copied / "config.json").read_text())
    (copied / "config.json").write_text(json.dumps(config | change))
    assert expected in said(copied)


def test_an_unreadable_config(copied: Path) -> None:
    (copied / "config.json").write_text("{")
    assert "config.json is not readable" in said(copied)
    (copied / "config.json").write_text("[1]")
    assert "is not a config" in said(copied)


def test_pickles_need_leave_and_are_not_run(copied: Path) -> None:
    message = said(copied, allow_pickle=False)
    assert "SpeechTokenizer.pt is a pickle, not safetensors" in message
    assert message.endswith(f"say speechtokenizer:{copied}@4?allow_pickle=true.")
    torch.save({"weights": Path("anything")}, copied / "SpeechTokenizer.pt")
    assert "it may hold Python objects, which are not run" in said(copied)


def test_safetensors_come_first(copied: Path) -> None:
    from safetensors.torch import save_file

    state = torch.load(copied / "SpeechTokenizer.pt")
    save_file({name: value.contiguous() for name, value in state.items()}, copied / "weights.safetensors")
    (copied / "SpeechTokenizer.pt").write_bytes(b"not weights")
    codec = open_codec(f"speechtokenizer:{copied}@4")
    assert codec.network is not None  # type: ignore[attr-defined]
    alone = open_codec(f"speechtokenizer:{copied / 'weights.safetensors'}@4")
    assert alone.card.version == codec.card.version, "a digest of the same file"


def test_the_digest_of_other_weights_is_another(copied: Path, checkpoint: Where) -> None:
    changed(copied, lambda state: state["encoder.model.0.conv.conv.bias"].add_(1))
    one = open_codec(f"speechtokenizer:{checkpoint(SETTING)}@4", allow_pickle=True)
    other = open_codec(f"speechtokenizer:{copied}@4", allow_pickle=True)
    assert one.card.version != other.card.version


def test_weight_normalisation_is_multiplied_out(copied: Path) -> None:
    """Against torch's own parametrisation."""
    state = torch.load(copied / "SpeechTokenizer.pt")
    length, direction = (state[f"encoder.model.0.conv.conv.{name}"] for name in ("weight_g", "weight_v"))
    expected = torch._weight_norm(direction, length)
    found = read_tensors(Checkpoint("copy", "any", copied / "SpeechTokenizer.pt", allow_pickle=True))
    torch.testing.assert_close(found["encoder.model.0.conv.conv.weight"], expected)


def test_the_hub_is_not_asked_when_it_may_not_be() -> None:
    with pytest.raises(InputError, match=r"only local files may be used\): give speechtokenizer_hubert_avg/config"):
        open_codec(SETTING, local_files_only=True, allow_pickle=True)
    with pytest.raises(InputError, match="facebook/encodec_24khz of encodec are not on this machine"):
        open_codec("encodec@6", local_files_only=True)
    with pytest.raises(InputError, match=r"AudioDecBenchmark/AudioDec of audiodec_24k .*: give exp\.zip"):
        open_codec("audiodec_24k@6.4", local_files_only=True)
    with pytest.raises(InputError, match=r"audiodec_48k@12\.8 cannot be had by name: give exp\.zip"):
        open_codec("audiodec_48k@12.8")


def test_options_are_checked(checkpoint: Where) -> None:
    with pytest.raises(UsageError, match=r'takes no option codebook: .* Did you mean "codebooks"\?'):
        open_codec(f"encodec:{checkpoint('encodec@6')}@6", codebook=3)
    with pytest.raises(UsageError, match="has 32 codebooks: 33 are not possible"):
        open_codec(f"encodec:{checkpoint('encodec@6')}@6", codebooks=33)
    with pytest.raises(UsageError, match="cannot use many codebooks"):
        open_codec(f"encodec:{checkpoint('encodec@6')}@6", codebooks="many")
    with pytest.raises(UsageError, match="no device"):
        open_codec(f"encodec:{checkpoint('encodec@6')}@6", device="abacus")


def test_a_checkpoint_of_another_rate_does_not_take_the_name(checkpoint: Where) -> None:
    with pytest.raises(UsageError, match=r"sends 1 kbps with 2 codebooks, not the 1\.5 of its name"):
        open_codec(f"dac_24khz:{checkpoint('dac_16khz@6')}@1.5")
    with pytest.raises(InputError, match="is a checkpoint of encodec, not of dac"):
        open_codec(f"dac_16khz:{checkpoint('encodec@6')}@6")


def test_two_channels_are_refused(checkpoint: Where, tmp_path: Path) -> None:
    place = Path(shutil.copytree(checkpoint("encodec@6"), tmp_path / "stereo"))
    config = json.loads((place / "config.json").read_text())
    (place / "config.json").write_text(json.dumps(config | {"audio_channels": 2}))
    with pytest.raises(UsageError, match="codes two channels: give a checkpoint for one"):
        open_codec(f"encodec:{place}@6")
    (place / "config.json").write_text(json.dumps(config | {"normalize": True}))
    with pytest.raises(UsageError, match="sends loudness beside its tokens"):
        open_codec(f"encodec:{place}@6")


@pytest.mark.parametrize(
    ("section", "change", "expected"),
    [
        ("encoder_conf", {"seq_model": "transformer"}, "asks for seq_model transformer"),
        ("encoder_conf", {"double_filters": False}, "asks for double_filters"),
        ("quantizer_conf", {"codec_dim": 8}, "asks for codec_dim, which is not here"),
        ("model_conf", {"segment_dur": 1.0}, "asks for segment_dur, which is not here"),
        ("model_conf", {"codec_domain": ["mag", "time"]}, r"says codec_domain: \['mag', 'time'\]"),
        ("decoder_conf", {"channels": 2}, "does not have 3 channels at both ends"),
    ],
)
def test_a_funcodec_that_is_not_here(
    checkpoint: Where, tmp_path: Path, section: str, change: dict[str, Any], expected: str
) -> None:
    name = "funcodec_en_libritts_16k_gr1nq32ds320"
    place = Path(shutil.copytree(checkpoint(f"{name}@16"), tmp_path / "copy"))
    config = yaml.safe_load((place / "config.yaml").read_text())
    config[section] |= change
    (place / "config.yaml").write_text(yaml.safe_dump(config))
    with pytest.raises(InputError, match=expected):
        open_codec(f"{name}:{place}@16", allow_pickle=True)
