"""Which systems are one model: the names of a run's systems, and the papers' codes beside them."""

from __future__ import annotations

import numpy as np
import pytest

from earmark import published
from earmark.analysis import predict as module
from earmark.analysis._naming import families_of, model_of, parts_of
from earmark.analysis.matrix import Matrix
from earmark.analysis.sources import open_matrix
from earmark.embedding.pooling import ALIASES, POOLINGS
from earmark.representations._layers import layer_name as named
from earmark.scores import Row, Scores

OWN = (
    "mine mean_time D100",
    "mine MTF D100",
    "mine mean_time+mean_feature D30",
    "mine@6 mean_time",
    "mine D30",
    "mine",
)


@pytest.mark.parametrize("system", [*OWN, "mine@12", "mine D30", "mine@6 T", "mine F D30", "mine max_time / cosine"])
def test_configurations_of_one_model(system: str) -> None:
    assert model_of(system) == "mine"


@pytest.mark.parametrize("pooling", [*POOLINGS, *(name for name in ALIASES if len(name) > 1), "max_time+flatten"])
def test_every_name_that_a_run_can_give(pooling: str) -> None:
    for layer in (None, 0, 11):
        for size in ("", " D30", " D100W"):
            assert model_of(f"{named('package.module:My Model', layer)} {pooling}{size}") == "package.module:My Model"


@pytest.mark.parametrize(
    "system", ["system T", "system F", "model D", "mean_time", "D100", "MTF", "my model", "a@b", "whisper-v3", "@6", ""]
)
def test_other_names_stay(system: str) -> None:
    assert model_of(system) == system


def test_a_layer_given_as_a_parameter() -> None:
    assert model_of("wavlm?layer=9 mean_time") == "wavlm"
    assert model_of("wavlm?layer=9&device=cpu mean_time D30") == "wavlm?device=cpu"
    assert model_of("x:Model?size=9") == "x:Model?size=9"


def test_printed_names_keep_their_families() -> None:
    for suite in ("vocsim", "codec-superb"):
        systems = list(dict.fromkeys(row.system for row in published.load(suite)))
        for level in ("method", "model"):
            assert families_of(suite, systems, level) == published.families(suite, systems, level)


def test_extractors_are_the_printed_models() -> None:
    found = families_of("vocsim", ["whisper mean_time+mean_feature D100", "logmel flatten", "EW@6MTF D30", "hubert MT"])
    assert list(found.values()) == ["Whisper", "log-mel", "Whisper", "hubert"]


def test_nothing_is_predicted_from_another_configuration_of_the_same_model(histories: list[Matrix]) -> None:
    rng = np.random.default_rng(0)
    rows = [
        Row(suite="s", subset=f"d{subset}", system=system, metric="P@1", value=float(rng.uniform(0.2, 0.8)))
        for system in (*OWN, "a mean_time", "b mean_time", "c MTF D30", "d@3")
        for subset in range(4)
        if system != OWN[0] or subset == 0
    ]
    found = module.predict(Scores(tuple(rows)))
    assert {row.system for row in found if row.status == "predicted"} == {OWN[0]}
    assert set(histories[0].families) == {"a", "b", "c", "d"}
    assert not any(name.startswith("mine") for name in histories[0].models)


def test_a_score_table_is_grouped_by_model() -> None:
    systems = (*OWN, "other mean_time")
    table = Scores(tuple(Row(system=m, subset=s, metric="P@1", value=0.5) for m in systems for s in "xy"))
    assert open_matrix(table).matrix.families == ("mine",) * len(OWN) + ("other",)
    assert open_matrix(table, families=None).matrix.families == systems


@pytest.mark.parametrize(
    ("system", "parts"),
    [
        ("mine@6 MTF D100", ("mine", 6, "mean_time+mean_feature", 100)),
        ("mine max_time / cosine", ("mine", None, "max_time", None)),
        ("wavlm?layer=9 mean_time", ("wavlm", 9, "mean_time", None)),
        ("WLM@9MT", ("WavLM", 9, "mean_time", None)),
        ("EWMTF D100", ("Whisper", None, "mean_time+mean_feature", 100)),
        ("ET D30", ("WhisperSeg", None, "first_time", 30)),
        ("EW", ("Whisper", None, "", None)),
        ("CLP D30", ("CLAP", None, "", 30)),
        ("Whisper, Max Pooling", ("Whisper", None, "Max Pooling", None)),
        ("system T", ("system T", None, "", None)),
        ("", ("", None, "", None)),
    ],
)
def test_a_name_has_parts(system: str, parts: tuple[str, int | None, str, int | None]) -> None:
    assert parts_of(system) == (*parts, False)
    if parts[-1] is not None:
        assert parts_of(f"{system}W") == (*parts, True)
