"""Metrics of one's own: a function with an import path gives rows like any other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.fresh import run_fresh

import earmark
from earmark import audio
from earmark.codecs.signal import measure, require_packages
from earmark.errors import UsageError
from earmark.metrics import catalogue
from earmark.scores import METRICS, metric_facts, validate
from earmark.scores import metrics as records

MODULE = """
import numpy as np
from earmark.scores import metric

@metric(range=(0, 1), percent=True, words="share of clips whose nearest neighbour has their label")
def hits(neighbours, labels):
    return labels[neighbours[:, 0]] == labels

def spread(vectors):
    return float(np.linalg.norm(vectors - vectors.mean(axis=0), axis=1).mean())

def broken(labels):
    raise RuntimeError("no such luck")

def strange(labels, moon):
    return 0.0

def GSR(labels):
    return 0.0

@metric(higher_is_better=False, unit="dB")
def peak_error(reference, decoded, rate):
    return 20 * np.log10(np.abs(reference - decoded).max())
"""


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "minemetrics.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    for name in ("hits", "spread", "broken", "strange", "peak_error"):
        records._RECORDS.pop(name, None)
    records.BY_PATH.clear()


def data() -> tuple[np.ndarray, list[str], list[str]]:
    rng = np.random.default_rng(3)
    labels = [name for name in ("owl", "wren", "rook") for _ in range(8)]
    centres = {name: rng.normal(size=6) for name in set(labels)}
    vectors = np.stack([centres[name] + 0.8 * rng.normal(size=6) for name in labels])
    order = rng.permutation(len(labels))
    return vectors[order], [labels[row] for row in order], [f"g{row % 4}" for row in range(len(labels))]


def test_a_function_gives_rows_beside_the_others() -> None:
    vectors, labels, groups = data()
    scores = earmark.evaluate(
        vectors, labels, groups=groups, across_groups=True, per_point=True, bootstrap=20,
        metrics="P@1, minemetrics:hits,minemetrics:spread",
    )  # fmt: skip
    for protocol in ("all", "across_groups"):
        own, usual = scores.row("hits", protocol=protocol), scores.row("P@1", protocol=protocol)
        assert own.value == usual.value
        assert (own.low, own.high, own.n) == (usual.low, usual.high, usual.n)
    key = ("cosine", "none", "all")
    assert (scores.per_point[(*key, "hits")] == scores.per_point[(*key, "P@1")]).all()
    centred = np.linalg.norm(vectors - vectors.mean(axis=0), axis=1).mean()
    assert scores.value("spread") == pytest.approx(centred)
    assert len(scores.select(metric="spread")) == 1  # it needs no pairs, so groups mean nothing to it
    assert metric_facts("hits").percent
    assert scores.row("hits", protocol="all").inputs != scores.row("P@1", protocol="all").inputs
    assert len(catalogue.digest("P@1,minemetrics:hits")) == 64
    assert catalogue.digest(["P@1", "GSR"]) == ""
    assert validate(scores) == []


def test_without_bootstrap_the_row_says_why_it_has_no_interval() -> None:
    vectors, labels, _ = data()
    row = earmark.evaluate(vectors, labels, metrics=["minemetrics:hits"]).row("hits")
    assert row.low is None
    assert "no interval" in row.reason


def test_one_that_fails_is_a_row_with_a_reason_and_harms_no_other() -> None:
    vectors, labels, _ = data()
    scores = earmark.evaluate(vectors, labels, metrics=["P@1", "minemetrics:broken"])
    assert (scores.row("broken").status, scores.row("broken").reason) == ("failed", "RuntimeError: no such luck")
    assert scores.row("P@1").status == "ok"


def test_what_it_asks_for_must_be_there_and_its_name_free() -> None:
    vectors, labels, _ = data()
    with pytest.raises(UsageError, match="takes 'moon', which is not offered here: vectors, labels"):
        earmark.evaluate(vectors, labels, metrics=["minemetrics:strange"])
    with pytest.raises(UsageError, match="The name GSR belongs to a metric of Earmark"):
        earmark.evaluate(vectors, labels, metrics=["minemetrics:GSR"])
    with pytest.raises(UsageError, match="takes 'reference'"):
        earmark.evaluate(vectors, labels, metrics=["minemetrics:peak_error"])


def test_a_codec_is_measured_by_it_too() -> None:
    clean = np.sin(np.arange(16000, dtype=np.float32) / 20)
    heard = (0.9 * clean).astype(np.float32)
    found = measure(clean, heard, 16000, "si_sdr,minemetrics:peak_error")
    assert found["minemetrics:peak_error"].value == pytest.approx(20 * np.log10(np.abs(clean - heard).max()))
    assert found["si_sdr"].status == "not_applicable"
    assert catalogue.name_of("minemetrics:peak_error") == "peak_error"
    assert catalogue.name_of("minemetrics:peak_error:p1") == "peak_error:p1"
    assert catalogue.name_of("pesq:p1") == "pesq:p1"
    assert not metric_facts("minemetrics:peak_error").higher_is_better
    require_packages(["minemetrics:peak_error"])
    with pytest.raises(UsageError, match="takes 'neighbours'"):
        measure(clean, heard, 16000, ["minemetrics:hits"])


def test_every_metric_of_the_registry_has_its_record() -> None:
    for name in METRICS:
        record = metric_facts(name)
        assert record.name == name
        assert record.range[0] < record.range[1]


def _tone(pitch: float, take: int) -> np.ndarray:
    time = np.arange(16000) / 16000
    return (0.4 * np.sin(2 * np.pi * (pitch + 10 * take) * time)).astype(np.float32)


def test_a_run_of_codecs_and_a_run_of_representations_measure_it(tmp_path: Path) -> None:
    for label, pitch in (("low", 220.0), ("high", 880.0)):
        (tmp_path / "tones" / label).mkdir(parents=True)
        for take in range(3):
            audio.write(tmp_path / "tones" / label / f"{take}.wav", _tone(pitch, take), 16000)
    shared = {"corpus": str(tmp_path / "tones"), "cache": {"url": str(tmp_path / "cache")}}
    coded = earmark.codec(
        "opus@12", **shared, category="audio", metrics=["mel_distance", "minemetrics:peak_error"], jobs=1, bootstrap=0,
        into=tmp_path / "codec", report=False,
    )  # fmt: skip
    assert coded.scores.row("peak_error").status == "ok"
    assert {row.metric for row in coded.scores} >= {"peak_error", "peak_error:p1", "mel_distance"}
    header = (tmp_path / "codec" / "clips.csv").read_text().splitlines()[0].split(",")
    assert "peak_error" in header
    given = {**shared, "extractors": ["logmel"], "metrics": ["P@1", "minemetrics:hits"], "into": str(tmp_path / "run")}
    scores = earmark.run(given).scores
    assert scores.value("hits") == scores.value("P@1")


def test_a_changed_import_of_a_metric_changes_its_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code = "from earmark.metrics.catalogue import digest; print(digest(['leaning.py:leaning']))"
    (tmp_path / "leaning.py").write_text("from beside_it import factor\n\ndef leaning(labels):\n    return factor()\n")
    digests = []
    for value in ("0.25", "0.25", "0.5"):
        (tmp_path / "beside_it.py").write_text(f"def factor():\n    return {value}\n")
        digests.append(run_fresh(code))
    assert digests[0] == digests[1] != digests[2]


def test_two_metrics_of_one_name_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("first_same", "second_same"):
        (tmp_path / f"{name}.py").write_text("def same(labels):\n    return 0.1\n")
    with pytest.raises(UsageError, match="both called same"):
        catalogue.plan(["first_same.py:same", "second_same.py:same"], (1,))


def test_a_metric_of_ones_own_may_have_an_at_sign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "with_at.py").write_text(
        "from earmark.scores import metric\n\n@metric('hits@3')\ndef hits(labels):\n    return 0.5\n"
    )
    labels = np.repeat(["a", "b"], 6)
    vectors = np.random.default_rng(0).normal(size=(12, 3))
    assert earmark.evaluate(vectors, labels, metrics="with_at.py:hits").value("hits@3") == 0.5
