"""Events: retrieval on toys and on ESC-50 with a real encoder, and the labels of a tiny AST."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import average_precision_score
from tests.probes import toys

from earmark.corpora.clips import Clip
from earmark.errors import InputError, MissingExtra
from earmark.probes import Responses, Row, open_task
from earmark.probes.events import EventLabels, EventRetrieval

ESC50 = Path(__file__).resolve().parents[3] / "shared" / "data" / "esc50"


def by_metric(found: list[Row]) -> dict[str, Row]:
    return {one.metric: one for one in found}


def test_a_coded_clip_finds_its_kind_less_often_the_more_noise_there_is() -> None:
    clips = toys.tones()
    task = EventRetrieval(toys.Spectrum(), bootstrap=40, permutations=40)
    clean = task.listen(clips)
    rows = [by_metric(task.score(clips, clean, task.listen(toys.noisy(clips, level)))) for level in (0.01, 0.5, 5.0)]
    for metric in ("accuracy", "aec_map"):
        values = [row[metric].value or 0.0 for row in rows]
        assert values == sorted(values, reverse=True)
        assert values[0] > 0.9
        assert rows[-1][metric].baseline == pytest.approx(9 / 39, abs=0.12)
    assert (rows[0]["accuracy"].p_value or 1.0) < 0.05
    assert (rows[2]["aec_map:difference"].value or 0.0) < -0.2
    none = by_metric(task.score(clips, clean, clean))
    assert none["aec_map:difference"].value == 0.0


def test_labels_that_nobody_shares_are_no_question() -> None:
    clips = [Clip(clip.id, clip.id, samples=clip.samples, rate=clip.rate) for clip in toys.tones(1, 3, 1)]
    task = EventRetrieval(toys.Spectrum())
    heard = task.listen(clips)
    found = task.score(clips, heard, heard)
    assert {one.status for one in found} == {"not_applicable"}
    assert found[0].reason == "no two clips share a label"


def test_a_real_encoder_tells_esc50_apart_and_noise_hides_it() -> None:
    if not (ESC50 / "manifest.csv").is_file():
        pytest.skip(f"no ESC-50 at {ESC50}")
    from earmark.corpora.source import open_corpus

    wanted = ("clock_alarm", "crow", "dog", "rain")
    every = [clip for clip in open_corpus(str(ESC50)) if clip.label in wanted]
    clips = [clip for label in wanted for clip in [one for one in every if one.label == label][:4]]
    assert len(clips) == 16
    try:
        task = open_task("events", bootstrap=20, permutations=20)
    except (InputError, MissingExtra) as error:
        pytest.skip(str(error))
    rng = np.random.default_rng(0)
    coded = []
    for clip in clips:
        samples, rate = clip.read()
        level = float(np.sqrt(np.mean(samples**2)))
        drowned = (samples + 3 * level * rng.standard_normal(len(samples))).astype(np.float32)
        coded.append(Clip(clip.id, clip.label, samples=drowned, rate=rate))
    clean = task.listen(clips)
    before = by_metric(task.score(clips, clean, clean))
    after = by_metric(task.score(clips, clean, task.listen(coded)))
    assert (before["accuracy"].value or 0.0) >= 0.7
    assert (after["aec_map"].value or 0.0) < (before["aec_map"].value or 0.0)


# --- AST --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests.extractors import tiny_models

    tiny_models.torch.manual_seed(0)
    place = tiny_models.ast(tmp_path_factory.mktemp("ast") / "tiny")
    config = json.loads((place / "config.json").read_text())
    names = ("Dog", "Rain", "Crowing, rooster", "Hum", "Speech")
    config["id2label"] = {str(n): name for n, name in enumerate(names)}
    config["label2id"] = {name: n for n, name in enumerate(names)}
    (place / "config.json").write_text(json.dumps(config))
    return place


def test_ast_scores_its_labels_as_the_library_does(tiny: Path) -> None:
    from tests.extractors.tiny_models import sound, torch, transformers

    task: Any = open_task(f"events:ast:{tiny}", device="cpu")
    clips = [Clip(str(n), samples=sound(16000, 1.0, n), rate=16000) for n in range(2)]
    heard = task.listen(clips)
    assert heard.names == ("Dog", "Rain", "Crowing, rooster", "Hum", "Speech")
    model = transformers.ASTForAudioClassification.from_pretrained(tiny).eval()
    features = transformers.ASTFeatureExtractor.from_pretrained(tiny)
    for clip, scores in zip(clips, toys.vectors(heard), strict=True):
        assert clip.samples is not None
        loudest = clip.samples / np.abs(clip.samples).max()
        given = features(loudest, sampling_rate=16000, return_tensors="pt").input_values
        with torch.inference_mode():
            expected = model(given).logits.sigmoid()[0].numpy()
        np.testing.assert_allclose(scores, expected, atol=2e-3)


def test_map_is_the_mean_of_scikit_learns_over_the_classes_there_are(tiny: Path) -> None:
    task = EventLabels(f"ast:{tiny}", bootstrap=30, device="cpu")
    rng = np.random.default_rng(0)
    labels = ["dog", "rain;Dog", "RAIN", "hum", "crowing,_rooster", "unknown", None, "dog"]
    clips = [Clip(str(n), label, group=str(n // 2)) for n, label in enumerate(labels)]
    ids, names = tuple(str(n) for n in range(8)), ("Dog", "Rain", "Crowing, rooster", "Hum", "Speech")
    clean = Responses(ids, vectors=rng.random((8, 5)).astype(np.float32), names=names)
    coded = Responses(ids, vectors=rng.random((8, 5)).astype(np.float32), names=names)
    truth = np.zeros((8, 4), bool)
    for row, column in ((0, 0), (1, 0), (7, 0), (1, 1), (2, 1), (4, 2), (3, 3)):
        truth[row, column] = True
    expected = [average_precision_score(truth, toys.vectors(one)[:, :4], average="macro") for one in (clean, coded)]
    found = by_metric(task.score(clips, clean, coded))
    assert found["aec_map"].value == pytest.approx(expected[1])
    assert found["aec_map:difference"].value == pytest.approx(expected[1] - expected[0])
    assert found["aec_map"].reason == "4 classes"
    assert found["aec_map"].low is not None
    strange = [Clip(name, "glockenspiel") for name in ids]
    missing = task.score(strange, clean, coded)
    assert {one.status for one in missing} == {"not_applicable"}
    assert "glockenspiel" in missing[0].reason
