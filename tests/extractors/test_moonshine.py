"""Moonshine's encoder: its layers against the graph as its authors publish it, lengths, and what it has heard."""

from __future__ import annotations

from functools import cache

import numpy as np
import onnxruntime
import pytest
from tests.extractors.test_packaged import needs, noise, tone

from earmark.corpora.clips import CorpusCard
from earmark.errors import InputError, UsageError
from earmark.extractors.catalogue import CARDS, open_extractor
from earmark.extractors.contract import Extractor, LayeredExtractor
from earmark.extractors.moonshine import LONGEST, Moonshine
from earmark.extractors.overlap import audit
from earmark.extractors.wheel_weights import WEIGHTS, path_of
from earmark.onnx_files import open_session


@cache
def opened(spec: str) -> Extractor:
    needs("moonshine")
    return open_extractor(spec)


@pytest.mark.parametrize(("spec", "layers", "dimension"), [("moonshine", 6, 288), ("moonshine:base", 8, 416)])
def test_layers_are_those_of_the_published_graph(spec: str, layers: int, dimension: int) -> None:
    model = opened(spec)
    assert isinstance(model, LayeredExtractor)
    assert (model.layers, model.card.dimension) == (layers, dimension)
    clips = [tone(150, 1.3), noise(9000)]
    plain = onnxruntime.InferenceSession(str(path_of(WEIGHTS[spec][0], spec)))
    swept = dict(model.extract_layers(clips, [0, 1, layers, -1]))
    for number, clip in enumerate(clips):
        (expected,) = plain.run(None, {"input_values": clip[None]})
        np.testing.assert_allclose(model.extract([clip])[0].values, expected[0], atol=1e-5)
        frames = swept[number]
        np.testing.assert_array_equal(frames[-1].values, frames[layers].values)
        assert frames[0].values.shape == frames[1].values.shape == expected[0].shape
        assert np.abs(frames[0].values - frames[1].values).max() > 0.01


def test_the_last_block_and_the_final_norm_make_the_last_layer() -> None:
    """Layer n is the norm of what leaves block n: deviation 1 in every frame, up to the norm's own weights."""
    needs("moonshine")
    path = path_of(WEIGHTS["moonshine"][0], "moonshine")
    session = open_session(path, inner=["/layers.5/Add_1_output_0"])
    last, before = session.run(None, {"input_values": noise(16000)[None]})
    centred = before[0] - before[0].mean(axis=1, keepdims=True)
    normal = centred / np.sqrt(np.square(centred).mean(axis=1, keepdims=True) + 1e-5)
    weights = (last[0] / normal).mean(axis=0)
    np.testing.assert_allclose(normal * weights, last[0], atol=1e-3)


def test_clips_over_30_s_are_heard_in_equal_parts_and_nothing_is_lost() -> None:
    model = opened("moonshine")
    long = noise(LONGEST + 2000)
    first, second = model.extract([long[: len(long) // 2], long[len(long) // 2 :]])
    np.testing.assert_array_equal(model.extract([long])[0].values, np.concatenate([first.values, second.values]))


def test_a_graph_with_inner_tensors_gives_the_same_answers_as_without() -> None:
    needs("moonshine")
    path = path_of(WEIGHTS["moonshine"][0], "moonshine")
    given = {"input_values": noise(8000)[None]}
    plain, both = open_session(path), open_session(path, inner=["/layers.0/Add_1_output_0"])
    assert [node.name for node in both.get_outputs()] == ["last_hidden_state", "/layers.0/Add_1_output_0"]
    np.testing.assert_array_equal(plain.run(None, given)[0], both.run(None, given)[0])
    with pytest.raises(InputError, match="cannot be opened as an ONNX model"):
        open_session(path, inner=["no such tensor"])


def test_what_is_not_there_is_said() -> None:
    needs("moonshine")
    with pytest.raises(UsageError, match="no Moonshine 'large': choose from tiny, base"):
        Moonshine("large")
    with pytest.raises(UsageError, match="layers 0 to 6, or -1 for the last; there is no 7"):
        Moonshine(layer=7)
    assert open_extractor("moonshine:base?layer=3").card.checkpoint == "base"


def test_what_it_has_heard_is_told_as_far_as_its_authors_tell_it() -> None:
    card = CARDS["moonshine"]
    libri = CorpusCard("libri", domain="speech", drawn_from="LibriSpeech")
    prompts = CorpusCard("prompts", domain="speech", drawn_from="telephone prompts")
    birds = CorpusCard("birds", domain="bird", drawn_from="Xeno-canto")
    assert [audit(card, corpus).verdict for corpus in (libri, prompts, birds)] == ["confirmed", "likely", "no evidence"]
