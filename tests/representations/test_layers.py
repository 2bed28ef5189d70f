"""Hidden layers as systems: named, from one pass, found again, each with its own numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.representations import sounds
from tests.representations.layered import Towers

from earmark.errors import UsageError
from earmark.pipeline import load_vectors, make_config, plan, read_record, run
from earmark.representations._layers import choose_layers as counted
from earmark.representations._layers import layers_of, part_of, split

SPEC = "tests.representations.layered:Towers"
NAMES = ["towers@0 mean_time", "towers@1 mean_time", "towers@2 mean_time"]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    Towers.passes.clear()
    return sounds.make_folder(tmp_path / "sounds")


def config(corpus: Path, tmp_path: Path, **changes: Any) -> Any:
    entry = {"name": "towers", "spec": SPEC, **changes.pop("entry", {})}
    return sounds.config(corpus, tmp_path, **{"extractors": [entry], **changes})


def values_of(place: Path, system: str) -> Any:
    return load_vectors(place / "run", "sounds", system).values


def test_every_layer_is_a_system_and_one_pass_serves_all(corpus: Path, tmp_path: Path) -> None:
    result = run(config(corpus, tmp_path, layers="all", batch=18))
    assert list(dict.fromkeys(row.system for row in result.scores)) == NAMES
    assert Towers.passes == [(0, 1, 2)] * 3  # the second and third hear a few clips again
    record = read_record(tmp_path / "run")
    assert [(one["code"], one["layer"]) for one in record["systems"]] == [("TW@0MT", 0), ("TW@1MT", 1), ("TW@2MT", 2)]
    model = Towers()
    clips = [sounds.tone(300.0, number) for number in range(1)]
    for layer, name in enumerate(NAMES):
        (frames,) = [model.layer(clip / np.abs(clip).max(), layer) for clip in clips]
        expected = frames.values.mean(axis=0)
        # Files hold 16 bits, so the sounds are not the same to the last digit.
        np.testing.assert_allclose(values_of(tmp_path, name)[0], expected, rtol=5e-3, atol=1e-4)


def test_a_second_run_and_a_single_layer_compute_nothing_new(corpus: Path, tmp_path: Path) -> None:
    run(config(corpus, tmp_path, layers="all"))
    Towers.passes.clear()
    again = run(config(corpus, tmp_path, layers=[1]))
    assert Towers.passes == []
    assert again.counts["embed"]["computed"] == 0
    assert {row.system for row in again.scores} == {"towers@1 mean_time"}


def test_layers_and_the_models_own_answer_may_be_asked_for_together(corpus: Path, tmp_path: Path) -> None:
    entries = [{"name": "towers", "spec": SPEC}, {"name": "deep", "base": "towers", "layers": [0, -1]}]
    result = run(config(corpus, tmp_path, extractors=entries))
    names = list(dict.fromkeys(row.system for row in result.scores))
    assert names == ["towers mean_time", "deep@0 mean_time", "deep@2 mean_time"]
    np.testing.assert_array_equal(values_of(tmp_path, names[0]), values_of(tmp_path, names[2]))
    assert (values_of(tmp_path, names[0]) != values_of(tmp_path, names[1])).any()


def test_poolings_pca_and_frames_for_dtw_are_of_the_layer(corpus: Path, tmp_path: Path) -> None:
    asked = {"layers": [0, 2], "pooling": ["MTF", "max_time D2"], "dtw": {"candidates": 5, "dimension": 2}}
    result = run(config(corpus, tmp_path, **asked))
    joined = "mean_time+mean_feature"
    systems = [f"towers@{layer} {rest}" for rest in (joined, "max_time D2") for layer in (0, 2)]
    assert list(dict.fromkeys(row.system for row in result.scores)) == systems
    both = values_of(tmp_path, f"towers@2 {joined}")
    mean = both[:, :8]
    assert mean.mean(axis=1) == pytest.approx(both[:, 8:].mean(axis=1), rel=1e-5)
    reranked = result.scores.select(distance="spearman+dtw", metric="P@1")
    assert [row.system for row in reranked if row.status == "ok"] == systems


def test_models_without_layers_stand_beside_those_with_them(corpus: Path, tmp_path: Path) -> None:
    entries = [{"name": "bands", "spec": "tests.representations.sounds:Bands"}, {"name": "towers", "spec": SPEC}]
    result = run(config(corpus, tmp_path, extractors=entries, layers="0,1"))
    assert list(dict.fromkeys(row.system for row in result.scores)) == ["bands mean_time", *NAMES[:2]]


def test_a_plan_names_the_layers(corpus: Path, tmp_path: Path) -> None:
    lines, _ = plan(config(corpus, tmp_path, layers="all"))
    assert [line.what for line in lines if line.step == "evaluate"] == NAMES
    assert [line.what for line in lines if line.step == "embed"] == ["towers"]


def test_layers_that_are_not_there_are_told(corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="towers has layers 0 to 2: there is no layer 3"):
        run(config(corpus, tmp_path, layers=[3]))
    entry = {"spec": "tests.representations.sounds:Bands", "layers": "all"}
    with pytest.raises(UsageError, match="towers has no hidden layers to choose from"):
        run(config(corpus, tmp_path, entry=entry))
    result = run(config(corpus, tmp_path, entry={"spec": "tests.representations.layered:Uneven"}, layers="all"))
    assert {row.status for row in result.scores} == {"failed"}
    assert "layers of towers have frames of different shapes" in result.failures[0].reason


def test_a_config_reads_layers_as_a_word_numbers_or_text() -> None:
    def read(layers: Any) -> Any:
        made = make_config({"corpus": "x", "extractors": "towers", "layers": layers})
        assert make_config(__import__("yaml").safe_load(made.to_yaml())) == made
        return made.layers

    assert [read(given) for given in ("all", "0, 6,12", [3], 4, None)] == ["all", [0, 6, 12], [3], [4], None]
    with pytest.raises(UsageError, match="layers"):
        read("some")


def test_parts_carry_their_layer() -> None:
    assert [split(part_of(layer, "frames/3/width")) for layer in (None, 0, 12)] == [
        (None, "frames/3/width"), (0, "frames/3/width"), (12, "frames/3/width"),
    ]  # fmt: skip
    assert layers_of(["@2/a", "b", "@2/c", "@0/a"]) == (2, None, 0)
    assert counted("all", 3, "x") == (0, 1, 2, 3)
    assert counted([-1, 0, 3], 3, "x") == (3, 0)
