"""Every family of pretrained models, on a tiny checkpoint that is opened as a real one is: by its path."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.extractors.tiny_models import FAMILIES, PARAMETERS, sound, torch

from earmark.errors import UsageError
from earmark.extractors import conformance
from earmark.extractors.catalogue import CARDS, EXTRACTORS, open_extractor
from earmark.extractors.contract import Extractor, LayeredExtractor
from earmark.extractors.model_cards import PRETRAINED
from earmark.extractors.neural_codecs import CodecEncoder

CLOSE = 1e-4
NO_LAYERS = (
    "clap",
    "clap_microsoft",
    "vggish",
    "panns",
    "encodec",
    "encodec_codes",
    "dac",
    "dac_codes",
    "mimi",
    "mimi_codes",
)
LAYERED = [name for name in FAMILIES if name not in NO_LAYERS]


@pytest.fixture(scope="session")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The tiny checkpoints, each written once."""
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("checkpoints")
    return {name: write(folder / name) for name, write in FAMILIES.items()}


def opened(checkpoints: dict[str, Path], name: str, **parameters: Any) -> Any:
    given = {"device": "cpu", **PARAMETERS.get(name, {}), **parameters}
    return open_extractor(f"{name}:{checkpoints[name]}", **given)


def difference(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> float:
    return float(np.abs(one - other).max() / np.abs(other).max())


def test_every_card_of_a_family_has_a_tiny_checkpoint_here() -> None:
    assert {card.name for card in PRETRAINED} == set(FAMILIES)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_clip_alone_equals_the_clip_in_a_batch_and_again(checkpoints: dict[str, Path], name: str) -> None:
    model = opened(checkpoints, name)
    rate = model.card.rate
    clips = [sound(rate, seconds, seed) for seed, seconds in enumerate((0.3, 1.1, 0.62, 1.1))]
    beside, again = model.extract(clips), model.extract(clips)
    for clip, one, other in zip(clips, beside, again, strict=True):
        (alone,) = model.extract([clip])
        assert alone.values.shape == one.values.shape
        assert alone.valid == one.valid
        assert difference(alone.values, one.values) <= CLOSE
        np.testing.assert_array_equal(one.values, other.values)
        assert one.values.shape[1] == model.card.dimension
        assert 1 <= one.valid <= len(one.values)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_keeps_every_promise(checkpoints: dict[str, Path], name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conformance, "LONG_SECONDS", 4.0)  # a minute takes long in random attention
    findings = conformance.check_extractor(opened(checkpoints, name))
    assert {finding.name: finding.sentence for finding in findings if finding.status == "fail"} == {}
    warned = {finding.name for finding in findings if finding.status == "warn"}
    assert warned == ({"dtype"} if name.endswith("_codes") else set())


@pytest.mark.parametrize("name", FAMILIES)
def test_opening_completes_the_card(checkpoints: dict[str, Path], name: str) -> None:
    model = opened(checkpoints, name)
    assert isinstance(model, Extractor)
    known = CARDS[name]
    assert (model.card.name, model.card.short_name) == (known.name, known.short_name)
    assert model.card.checkpoint == str(checkpoints[name])
    assert f"torch {torch.__version__.partition('+')[0]}" in model.card.version
    assert model.card.parameters == sum(p.numel() for p in _hearing(model).parameters())
    assert model.card.parameters < known.parameters


def _hearing(model: Any) -> Any:
    return model.network.encoder if isinstance(model, CodecEncoder) else model.network


@pytest.mark.parametrize("name", [*LAYERED, "clap", "encodec"])
def test_frames_come_as_often_as_the_card_says(checkpoints: dict[str, Path], name: str) -> None:
    model = opened(checkpoints, name)
    (frames,) = model.extract([sound(model.card.rate, 1.2)])
    if model.card.frame_rate is None:
        assert len(frames.values) == 1
    else:
        assert frames.valid == pytest.approx(1.2 * model.card.frame_rate, rel=0.12)


@pytest.mark.parametrize("name", ["whisper", "clap", "clap_microsoft", "ast", "eat", "audiomae"])
def test_what_lies_beyond_the_context_is_not_heard(checkpoints: dict[str, Path], name: str) -> None:
    model = opened(checkpoints, name)
    card = model.card
    assert card.context_seconds is not None
    heard = sound(card.rate, card.context_seconds)
    longer = np.concatenate([heard, sound(card.rate, 0.5, 3)])
    np.testing.assert_array_equal(model.extract([longer])[0].values, model.extract([heard])[0].values)
    changed = heard.copy()
    changed[-card.rate // 10 :] *= -0.5
    assert difference(model.extract([changed])[0].values, model.extract([heard])[0].values) > 1e-6


# --- layers --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LAYERED)
def test_one_pass_gives_every_layer(checkpoints: dict[str, Path], name: str) -> None:
    sweeping = opened(checkpoints, name)
    assert isinstance(sweeping, LayeredExtractor)
    clips = [sound(sweeping.card.rate, seconds, seed) for seed, seconds in enumerate((1.1, 0.4, 0.9))]
    layers = [*range(sweeping.layers + 1), -1]
    found = dict(sweeping.extract_layers(clips, layers))
    assert sorted(found) == [0, 1, 2]
    for layer in layers:
        single = opened(checkpoints, name, layer=layer).extract(clips)
        for place, frames in enumerate(single):
            assert frames.valid == found[place][layer].valid
            assert difference(found[place][layer].values, frames.values) <= CLOSE
    first, last = (np.concatenate([found[p][layer].values for p in range(3)]) for layer in (0, -1))
    assert difference(first, last) > 0.01
    np.testing.assert_array_equal(found[0][sweeping.layers].values, found[0][-1].values)


def test_a_layer_that_is_not_there_is_told(checkpoints: dict[str, Path]) -> None:
    with pytest.raises(UsageError, match="whisper has layers 0 to 3: there is no layer 4"):
        opened(checkpoints, "whisper", layer=4).extract([sound(16000, 0.1)])
    with pytest.raises(UsageError, match="clap has one answer and no hidden layers: there is no layer 2"):
        opened(checkpoints, "clap", layer=2).extract([sound(48000, 0.1)])


# --- devices and memory --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["whisper", "wav2vec2", "ast", "beats", "eat", "audiomae", "mimi"])
def test_half_the_bits_give_nearly_the_same(checkpoints: dict[str, Path], name: str) -> None:
    clip = [sound(opened(checkpoints, name).card.rate, 0.8)]
    whole = opened(checkpoints, name).extract(clip)[0].values
    half = opened(checkpoints, name, dtype="bfloat16").extract(clip)[0].values
    assert half.dtype == np.float32
    cosine = (whole * half).sum() / np.linalg.norm(whole) / np.linalg.norm(half)
    assert 0.98 < cosine < 1.0


def test_when_memory_is_short_batches_are_halved_and_the_work_goes_on(
    checkpoints: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    clips = [sound(16000, 0.5, seed) for seed in range(7)]
    model = opened(checkpoints, "whisper", batch=7)
    expected = model.extract(clips)
    forward, sizes = type(model).forward, []

    def small(self: Any, network: Any, batch: Any, layers: Any) -> Any:
        sizes.append(len(batch.samples))
        if len(batch.samples) > 2:
            raise torch.OutOfMemoryError("no room")
        return forward(self, network, batch, layers)

    monkeypatch.setattr(type(model), "forward", small)
    for one, other in zip(model.extract(clips), expected, strict=True):
        assert difference(one.values, other.values) <= CLOSE
    assert sizes == [7, 3, 1, 1, 1, 1, 1, 1, 1]
    monkeypatch.setattr(type(model), "forward", lambda *_: (_ for _ in ()).throw(torch.OutOfMemoryError("no room")))
    with pytest.raises(Exception, match="not the memory for a single clip"):
        model.extract(clips[:1])


def test_parameters_that_cannot_be_are_usage(checkpoints: dict[str, Path]) -> None:
    for parameters, sentence in (
        ({"device": "abacus"}, "There is no device 'abacus'"),
        ({"dtype": "int8"}, "There is no dtype 'int8'"),
        ({"batch": 0}, "at least 1"),
        ({"colour": "red"}, "unexpected keyword argument 'colour'"),
    ):
        with pytest.raises(UsageError, match=sentence):
            opened(checkpoints, "whisper", **parameters)
    with pytest.raises(UsageError, match=r"no \[CLS\] token"):
        opened(checkpoints, "beats", tokens="cls")
    with pytest.raises(UsageError, match="There are no tokens 'words'"):
        opened(checkpoints, "eat", tokens="words")


def test_names_stand_for_classes_that_can_be_imported() -> None:
    for name in FAMILIES:
        assert callable(EXTRACTORS.load(name))
