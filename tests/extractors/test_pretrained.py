"""Finding and reading checkpoints: what is missing, unsafe or of another model is told, never guessed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.extractors import tiny_models
from tests.extractors.tiny_models import load_file, save_file, sound, torch

from earmark.errors import InputError, UsageError
from earmark.extractors.catalogue import CARDS, open_extractor
from earmark.extractors.pretrained import find
from earmark.specs import parse_spec


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    return tiny_models.whisper(tmp_path / "tiny")


def test_weights_that_are_nowhere_are_named_with_the_place_to_put_them() -> None:
    with pytest.raises(InputError) as told:
        open_extractor("whisper", local_files_only=True)
    assert str(told.value) == (
        "The weights openai/whisper-large-v3 of whisper are not on this machine and cannot be fetched (only local "
        "files may be used): download config.json, preprocessor_config.json and model.safetensors of "
        "openai/whisper-large-v3 into a folder and give it as whisper:/path/to/folder."
    )
    with pytest.raises(InputError, match=r"download CLAP_weights_2023.pth of .*allow_pickle=true"):
        open_extractor("clap_microsoft?local_files_only=true")
    with pytest.raises(InputError, match=r"BEATs_iter3_plus_AS2M.pt .* give it as beats:/path/to/file"):
        open_extractor("beats")


@pytest.mark.parametrize("place", ["/no/such/folder", "./nowhere", "weights.pt", "a/b/c"])
def test_a_path_that_does_not_exist_is_not_looked_for_on_the_hub(place: str) -> None:
    with pytest.raises(InputError, match="does not exist: give wavlm an existing folder"):
        open_extractor(f"wavlm:{place}")


def test_a_folder_without_weights_or_config_is_told(tiny: Path) -> None:
    (tiny / "config.json").rename(tiny / "kept.json")
    with pytest.raises(InputError, match=r"has no config\.json"):
        open_extractor(f"whisper:{tiny}")
    (tiny / "kept.json").rename(tiny / "config.json")
    (tiny / "model.safetensors").unlink()
    with pytest.raises(InputError, match="holds no weights: put "):
        open_extractor(f"whisper:{tiny}")


def test_a_pickle_is_opened_only_when_asked_and_gives_the_same(tiny: Path) -> None:
    clip = [sound(16000, 0.4)]
    expected = open_extractor(f"whisper:{tiny}").extract(clip)[0].values
    torch.save(load_file(tiny / "model.safetensors"), tiny / "pytorch_model.bin")
    (tiny / "model.safetensors").unlink()
    with pytest.raises(UsageError, match=r"is a pickle, not safetensors: .*whisper:.*\?allow_pickle=true"):
        open_extractor(f"whisper:{tiny}")
    found = open_extractor(f"whisper:{tiny}?allow_pickle=true").extract(clip)[0].values
    assert (found == expected).all()


class Object:
    """What a pickle may hold and a file of weights should not."""


def test_a_pickle_with_objects_in_it_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "BEATs.pt"
    torch.save({"cfg": Object(), "model": {}}, place)
    with pytest.raises(InputError, match="it may hold Python objects, which are not run"):
        open_extractor(f"beats:{place}", allow_pickle=True)


def test_safetensors_come_before_pickles(tiny: Path) -> None:
    (tiny / "pytorch_model.bin").write_bytes(b"not weights")
    found = find(str(tiny), CARDS["whisper"])
    assert found.weights == tiny / "model.safetensors"


@pytest.mark.parametrize("family", ["whisper", "eat"])
def test_a_checkpoint_that_lacks_a_tensor_is_refused_and_not_filled_with_chance(tmp_path: Path, family: str) -> None:
    place = tiny_models.FAMILIES[family](tmp_path / "one")
    tensors = load_file(place / "model.safetensors")
    gone = next(name for name in tensors if "mlp.fc1.weight" in name or "encoder.layers.0.fc1.weight" in name)
    save_file({name: value for name, value in tensors.items() if name != gone}, place / "model.safetensors")
    with pytest.raises(InputError, match=rf"lacks 1 of the tensors that {family} needs"):
        open_extractor(f"{family}:{place}").extract([sound(16000, 0.2)])


def test_another_models_checkpoint_is_refused(tiny: Path) -> None:
    with pytest.raises(InputError, match=r"check that it is a checkpoint"):
        open_extractor(f"wavlm:{tiny}").extract([sound(16000, 0.2)])


def test_broken_files_are_named(tiny: Path) -> None:
    (tiny / "model.safetensors").write_bytes(b"torn")
    with pytest.raises(InputError, match="cannot be opened as whisper"):
        open_extractor(f"whisper:{tiny}").extract([sound(16000, 0.2)])
    (tiny / "preprocessor_config.json").write_text("{")
    with pytest.raises(InputError, match="is not readable JSON"):
        open_extractor(f"whisper:{tiny}")


def test_the_decoder_is_not_loaded(tiny: Path) -> None:
    model: Any = open_extractor(f"whisper:{tiny}")
    assert not any("decoder" in name for name, _ in model.network.named_modules())


def test_audiomae_reads_files_without_its_own_norm_and_sizes_from_timm(tmp_path: Path) -> None:
    place = tiny_models.audiomae(tmp_path / "mae")
    clip = [sound(16000, 0.5)]
    expected = open_extractor(f"audiomae:{place}").extract(clip)[0].values
    tensors = load_file(place / "model.safetensors")
    renamed = {
        name.replace("norm.", "fc_norm.", 1) if name.startswith("norm.") else name: tensors[name] for name in tensors
    }
    said = json.loads((place / "config.json").read_text())
    (place / "config.json").write_text(json.dumps({"architecture": "vit", "model_args": said}))
    save_file({f"encoder.{name}": value for name, value in renamed.items()}, place / "model.safetensors")
    assert (open_extractor(f"audiomae:{place}").extract(clip)[0].values == expected).all()


def test_eat_reads_the_names_of_its_training_code(tmp_path: Path) -> None:
    place = tiny_models.eat(tmp_path / "eat")
    clip = [sound(16000, 0.5)]
    expected = open_extractor(f"eat:{place}").extract(clip)[0].values
    front = "modality_encoders.IMAGE."
    moved = {"pre_norm": f"{front}context_encoder.norm", "local_encoder": f"{front}local_encoder"}
    moved |= {"extra_tokens": f"{front}extra_tokens", "fixed_positional_encoder": f"{front}fixed_positional_encoder"}
    tensors = {}
    for name, value in load_file(place / "model.safetensors").items():
        first, dot, rest = name.removeprefix("model.").partition(".")
        tensors[moved.get(first, first) + dot + rest] = value
    save_file(tensors, place / "model.safetensors")
    assert (open_extractor(f"eat:{place}").extract(clip)[0].values == expected).all()


def test_beats_reads_safetensors_with_a_config_beside_them(tmp_path: Path) -> None:
    clip = [sound(16000, 0.7)]
    pickled = tiny_models.beats(tmp_path / "pickled")
    expected = open_extractor(f"beats:{pickled}", allow_pickle=True).extract(clip)[0].values
    folder = tmp_path / "safe"
    folder.mkdir()
    save_file(tiny_models.beats_state(), folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(tiny_models.BEATS))
    assert (open_extractor(f"beats:{folder}").extract(clip)[0].values == expected).all()


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("logmel", ("logmel", None, {})),
        ("whisper:openai/whisper-tiny", ("whisper", "openai/whisper-tiny", {})),
        ("wavlm?layer=9&device=cpu", ("wavlm", None, {"layer": 9, "device": "cpu"})),
        ("beats:/a/B.pt?allow_pickle=true", ("beats", "/a/B.pt", {"allow_pickle": True})),
        ("pack.module:Model?scale=2.5", ("pack.module", "Model", {"scale": 2.5})),
        ("onnx:/odd?name.onnx", ("onnx", "/odd?name.onnx", {})),
        ("onnx:/a?b/m.onnx?rate=8000", ("onnx", "/a?b/m.onnx", {"rate": 8000})),
    ],
)
def test_a_spec_is_a_name_an_argument_and_parameters(text: str, spec: tuple[object, ...]) -> None:
    assert parse_spec(text)[:3] == spec
