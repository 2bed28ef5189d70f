"""Blind sets heard and scored: the numbers are those of `earmark.embed` and `earmark.evaluate`, and nothing is lost."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.blind.examples import code_package, onnx_package, safetensors_package, write_recordings

import earmark
from earmark.blind import _schedule, measure, models
from earmark.blind._inside import opened
from earmark.blind._journal import Journal
from earmark.blind._schedule import canary, make_schedule
from earmark.blind.duplicates import similarity
from earmark.blind.duplicates import unpack as unpack_fingerprint
from earmark.blind.models import ModelFault
from earmark.blind.packages import Package, inspect, unpack
from earmark.blind.policy import Policy
from earmark.blind.sets import BlindSet, Host
from earmark.errors import InputError

ALLOWED = frozenset({"not-root"})


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_recordings(tmp_path_factory.mktemp("blind") / "words")


@pytest.fixture
def host(recordings: Path) -> Host:
    return Host("demo", {"A": BlindSet("A", str(recordings))}, Policy(), secret=b"s" * 32)


def taken(folder: Path) -> Package:
    return unpack(folder, folder.parent / f"{folder.name}-unpacked")


def heard(package: Package, host: Host, folder: Path, **options: Any) -> measure.Vectors:
    return measure.hear(package, host.sets["A"], host=host, folder=folder, allowed=ALLOWED, **options)


@pytest.mark.parametrize("kind", ["onnx", "code", "safetensors"])
def test_scores_are_those_of_embed_and_evaluate(
    kind: str, host: Host, recordings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    variants: dict[str, tuple[Callable[..., Path], dict[str, Any]]] = {
        "onnx": (onnx_package, {"pooling": "MTF D5", "distance": "spearman"}),
        "code": (code_package, {"pooling": "max_time", "correction": "nicdm:k=4", "options": {"size": 128}}),
        "safetensors": (safetensors_package, {"pca": 7, "distance": "euclidean", "options": {"layer": 2}}),
    }
    write, changes = variants[kind]
    if kind == "safetensors":
        monkeypatch.setattr(measure, "make_schedule", without_renewals)
    package = taken(write(tmp_path / "a", **changes))
    vectors = heard(package, host, tmp_path / "job")
    scores = measure.score(vectors, host.sets["A"], package, host=host)

    names = ("kind", "folder", "model", "architecture", "setup", "options")
    sys.modules.pop("extractor", None)  # of another package in this process
    model = opened({name: getattr(package, name) for name in names})
    sys.modules.pop("extractor", None)
    if kind == "safetensors":  # float32 by torch differs in its last bits with the clips beside a clip, and by threads
        model = OneByOne(model)
    found = earmark.embed(str(recordings), model, package.pooling, package.pca)
    expected = earmark.evaluate(
        found.vectors, found.labels, groups=found.groups, distance=package.distance, correct=package.correction,
        metrics=["P@k", "GSR"], k=(1, 5), permutations=1000, suite="demo", subset="A", system="tiny",
    )  # fmt: skip
    assert np.array_equal(measure.reduced(vectors, package), found.vectors)
    assert [row.metric for row in scores] == ["P@1", "P@5", "GSR"]
    for row, other in zip(scores, expected, strict=True):
        assert row == replace(other, seconds=None)
        assert None not in (row.value, row.low, row.high, row.baseline, row.lift)


class OneByOne:
    """A torch model that hears a clip at a time, in one thread, as in a cell."""

    def __init__(self, model: Any) -> None:
        self.model, self.card = model, model.card

    def extract(self, waveforms: Any) -> list[Any]:
        import torch

        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            return [frames for waveform in waveforms for frames in self.model.extract([waveform])]
        finally:
            torch.set_num_threads(threads)


def without_renewals(clips: int, seed: int) -> _schedule.Schedule:
    return make_schedule(clips, seed)._replace(renewals=frozenset())


# --- the order -------------------------------------------------------------------------------------------------------


def test_every_clip_is_heard_and_some_things_twice() -> None:
    for clips in (2, 24, 1001, 4540):
        schedule = make_schedule(clips, 5)
        counts = Counter(schedule.order)
        assert set(range(clips)) <= set(counts)
        assert set(counts.values()) <= {1, 2}
        canaries = [item for item in counts if item >= clips]
        assert len(canaries) == _schedule.CANARIES
        assert all(counts[item] == 2 for item in canaries)
        assert sum(counts[item] == 2 for item in range(clips)) >= min(clips, _schedule.LEAST_AGAIN)
        assert all(0 < place < len(schedule.order) for place in schedule.renewals)


def test_a_new_cell_lies_between_things_that_are_heard_twice() -> None:
    for seed in range(200):
        schedule = make_schedule(100, seed)
        places: dict[int, list[int]] = {}
        for place, item in enumerate(schedule.order):
            places.setdefault(item, []).append(place)
        pairs = [pair for pair in places.values() if len(pair) == 2]
        assert any(first < cut <= second for first, second in pairs for cut in schedule.renewals)


def test_the_order_differs_from_job_to_job_and_from_the_corpus(tmp_path: Path) -> None:
    orders = [make_schedule(500, seed).order for seed in range(20)]
    assert len(set(orders)) == 20
    for order in orders:
        clips = [item for item in order if item < 500]
        assert abs(np.corrcoef(np.arange(len(clips)), clips)[0, 1]) < 0.2
    files = [tmp_path / name for name in ("one", "two")]
    seeds = [measure._job_seed(file) for file in files]
    assert seeds[0] != seeds[1]
    assert [measure._job_seed(file) for file in files] == seeds  # a job keeps its order when it is taken up again


def test_canaries_follow_the_secret_and_the_set() -> None:
    sounds = [canary(3, b"a" * 32, "A", 16000), canary(3, b"b" * 32, "A", 16000), canary(4, b"a" * 32, "A", 16000)]
    assert len({sound.tobytes() for sound in sounds}) == 3
    assert np.array_equal(sounds[0], canary(3, b"a" * 32, "A", 16000))
    assert all(np.abs(sound).max() == 1 and sound.dtype == np.float32 for sound in sounds)


# --- faults and limits -----------------------------------------------------------------------------------------------

FAILING = """
import numpy as np
class Failing:
    rate = 16000
    def extract(self, waveforms):
        (waveform,) = waveforms
        vector = np.abs(np.fft.rfft(waveform, 256))
        return [vector * (np.nan if CONDITION else 1)]
"""


def test_the_third_failing_clip_ends_the_job(host: Host, tmp_path: Path) -> None:
    source = FAILING.replace("CONDITION", "True")
    package = taken(code_package(tmp_path / "a", source, "extractor.py:Failing"))
    played: list[int] = []
    with pytest.raises(ModelFault) as raised:
        heard(package, host, tmp_path / "job", progress=lambda done, total: played.append(done))
    assert raised.value.sentence == "Your model returned NaN or infinity on 3 clips."
    assert len(played) == 2
    log = (tmp_path / "job/host.log").read_text()
    assert log.count(": nan\n") == 3


def test_the_hosts_log_marks_what_a_model_said(host: Host, tmp_path: Path) -> None:
    source = FAILING.replace(
        "return", "print('\\x1b]0;evil\\x07A: item 3: forged\\nsecond'); raise KeyError('\\x1b[2J') #"
    )
    package = taken(code_package(tmp_path / "a", source, "extractor.py:Failing"))
    with pytest.raises(ModelFault, match="raised an error on 3 clips"):
        heard(package, host, tmp_path / "job")
    log = (tmp_path / "job/host.log").read_text()
    assert all(mark.isprintable() or mark == "\n" for mark in log)
    assert "forged" in log
    assert "KeyError" in log
    for line in log.splitlines():
        assert line.startswith("A: model| ") or line.startswith("A: item ")
        assert line.startswith("A: model| ") or "forged" not in line


def test_one_failing_clip_costs_the_job_and_is_told_as_one(host: Host, tmp_path: Path) -> None:
    longest = max(len(clip.read(16000)[0]) for clip in host.sets["A"].clips)
    source = FAILING.replace("CONDITION", f"len(waveform) == {longest}")
    package = taken(code_package(tmp_path / "a", source, "extractor.py:Failing"))
    with pytest.raises(ModelFault, match=r"on [12] clips?\.$"):
        heard(package, host, tmp_path / "job")


def test_a_job_that_takes_too_long_is_ended(host: Host, tmp_path: Path) -> None:
    package = taken(code_package(tmp_path / "a"))
    with pytest.raises(ModelFault) as raised:
        heard(package, replace(host, job_seconds=1e-3), tmp_path / "job")
    assert raised.value.kind == "too_long"
    assert float((tmp_path / "job/seconds").read_text()) > 0
    with pytest.raises(ModelFault, match="whole job"):  # the time of the first try counts
        heard(package, replace(host, job_seconds=2e-3), tmp_path / "job")


def test_vectors_that_the_host_cannot_hold_end_the_job(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure, "MOST_VECTOR_BYTES", 50_000)
    package = taken(code_package(tmp_path / "a", pooling="flatten"))
    with pytest.raises(ModelFault, match="pooling that gives shorter ones"):
        heard(package, host, tmp_path / "job")


def test_numbers_that_are_too_large_are_the_models_fault(host: Host, tmp_path: Path) -> None:
    """Finite, and what is made of them is not: never an error of the host's, which would be free."""
    source = FAILING.replace("return [vector * (np.nan if CONDITION else 1)]", "return [vector[None] * 1e300]")
    package = taken(code_package(tmp_path / "a", source, "extractor.py:Failing"))
    with pytest.raises(ModelFault, match="NaN or infinity on 3 clips"):
        heard(package, host, tmp_path / "job")
    random = np.random.default_rng(0)
    scale = np.where(np.arange(24) % 2, 1e38, 1e-38)[:, None]
    wild = measure.Vectors("A", (random.standard_normal((24, 10)) * scale).astype(np.float32))
    reducing = replace(package, pca=3)
    with pytest.raises(ModelFault, match="too large to be compared"):
        measure.score(wild, host.sets["A"], reducing, host=host)
    with pytest.raises(ModelFault, match="too large to be compared"):
        measure.fingerprint(wild, host.sets["A"], reducing, host=host)


@pytest.mark.parametrize("scale", [0.0, 1e-44, 3e37])
def test_vectors_that_say_nothing_have_scores_or_reasons(scale: float, host: Host, tmp_path: Path) -> None:
    package = inspect(code_package(tmp_path / "a", pca=3))
    values = np.random.default_rng(0).standard_normal((24, 10))
    vectors = measure.Vectors("A", (values * scale).astype(np.float32))
    for row in measure.score(vectors, host.sets["A"], package, host=host):
        assert row.value is not None or row.reason
    assert measure.fingerprint(vectors, host.sets["A"], package, host=host)


def test_a_recording_that_cannot_be_read_is_the_hosts_fault(host: Host, tmp_path: Path) -> None:
    folder = write_recordings(tmp_path / "words", 2, 2)
    next(folder.rglob("*.wav")).write_bytes(b"RIFF")
    package = taken(code_package(tmp_path / "a"))
    with pytest.raises(InputError) as raised:
        measure.hear(package, BlindSet("A", str(folder)), host=host, folder=tmp_path / "job", allowed=ALLOWED)
    assert not isinstance(raised.value, ModelFault)


def test_a_sandbox_that_does_not_start_is_the_hosts_fault(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(models, "_FUNCTION", "earmark.blind.nothing:answer")
    package = taken(code_package(tmp_path / "a"))
    with pytest.raises(InputError, match="The host's sandbox does not start") as raised:
        heard(package, host, tmp_path / "job")
    assert not isinstance(raised.value, ModelFault)


# --- restarts --------------------------------------------------------------------------------------------------------


class Killed(Exception):
    pass


def test_a_worker_that_is_killed_goes_on_where_it_stopped(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure, "make_schedule", without_renewals)
    package = taken(code_package(tmp_path / "a", pooling="MTF"))
    whole = heard(package, host, tmp_path / "undisturbed")

    def kill_at(most: int) -> Callable[[int, int], None]:
        def progress(done: int, total: int) -> None:
            if done >= most:
                raise Killed

        return progress

    reached = []
    for most in (5, 20):
        with pytest.raises(Killed):
            heard(package, host, tmp_path / "job", progress=kill_at(most))
        with Journal(tmp_path / "job/sets/A/journal", 2) as journal:
            reached.append(len(journal.answers))
    assert reached == [5, 20]
    file = tmp_path / "job/sets/A/journal"
    file.write_bytes(file.read_bytes()[:-3])  # cut in the middle of a record
    played: list[int] = []
    again = heard(package, host, tmp_path / "job", progress=lambda done, total: played.append(done))
    assert np.array_equal(again.values, whole.values)
    finished = heard(package, host, tmp_path / "job")
    assert np.array_equal(finished.values, whole.values)


def test_a_journal_keeps_every_bit(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    vectors = [random.standard_normal(size).astype(np.float32) for size in (3, 0, 7)]
    with Journal(tmp_path / "journal", 3) as journal:
        journal.add(9, vectors, 3)
        journal.add(2, vectors[::-1], 3)
    data = (tmp_path / "journal").read_bytes()
    with Journal(tmp_path / "journal", 3) as journal:
        assert list(journal.answers) == [9, 2]
        assert all(map(np.array_equal, journal.answers[9].vectors, vectors))
        assert all(map(np.array_equal, journal.answers[2].vectors, vectors[::-1]))
    for place in range(0, len(data), 5):
        changed = bytearray(data)
        changed[place] ^= 1
        (tmp_path / "journal").write_bytes(changed)
        with Journal(tmp_path / "journal", 3) as journal:
            assert list(journal.answers) in ([], [9])


# --- fingerprints ----------------------------------------------------------------------------------------------------


def test_models_that_are_nearly_the_same_have_nearly_the_same_fingerprint(host: Host, tmp_path: Path) -> None:
    blind = host.sets["A"]
    package = taken(code_package(tmp_path / "a"))
    random = np.random.default_rng(0)
    values = random.standard_normal((24, 40)).astype(np.float32)
    turned = values @ np.linalg.qr(random.standard_normal((40, 40)))[0].astype(np.float32) * 3
    other = random.standard_normal((24, 40)).astype(np.float32)
    prints = [
        measure.fingerprint(measure.Vectors("A", one), blind, package, host=host) for one in (values, turned, other)
    ]
    assert similarity({"A": prints[0]}, {"A": prints[1]}) > 0.98
    assert similarity({"A": prints[0]}, {"A": prints[2]}) < 0.6
    assert unpack_fingerprint(prints[0]).shape == (24, 5)


def test_a_fingerprint_is_of_the_neighbours_that_are_scored(host: Host, tmp_path: Path) -> None:
    blind = host.sets["A"]
    plain = inspect(code_package(tmp_path / "a"))
    vectors = measure.Vectors("A", np.random.default_rng(1).standard_normal((24, 6)).astype(np.float32))
    for correction in ("csls:k=4", "icdm:k=4", "mp"):
        corrected = replace(plain, correction=correction)
        lists = unpack_fingerprint(measure.fingerprint(vectors, blind, corrected, host=host))
        expected = earmark.evaluation.study_hubness(vectors.values, k=5, correct=correction).lists["cosine", correction]
        assert np.array_equal(lists, expected)
        assert not np.array_equal(lists, unpack_fingerprint(measure.fingerprint(vectors, blind, plain, host=host)))
    too_few = replace(plain, correction="icdm:k=30")
    prints = [measure.fingerprint(vectors, blind, package, host=host) for package in (too_few, plain)]
    assert prints[0] == prints[1]
