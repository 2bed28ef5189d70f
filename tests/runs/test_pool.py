"""A pool: results in order, a death or a hanging call that costs one item, errors that end the run."""

from __future__ import annotations

from pathlib import Path

import pytest
import soundfile
from tests.representations import codec_toys, sounds
from tests.runs.cubes import cubes

import earmark
from earmark.codecs.runs import _code as code
from earmark.corpora.clips import Clip, Corpus, CorpusCard
from earmark.errors import InputError, UsageError
from earmark.representations import _embed as embed
from earmark.runs.engine import Patience, work_through
from earmark.runs.pool import Died, Overdue, Pool, make_pool


@pytest.mark.parametrize("processes", [0, 2])
def test_results_come_in_order_and_a_failure_costs_its_item(processes: int) -> None:
    batches = [[1, 2], [3, -2, 4], [5]]
    with make_pool(cubes, processes) as pool:
        answers = [pair for batch in pool.map(batches) for pair in batch]
    assert [item for item, _ in answers] == [1, 2, 3, -2, 4, 5]
    assert [result for item, result in answers if item > 0] == [1, 8, 27, 64, 125]
    assert "minus two" in str(answers[3][1])


@pytest.mark.parametrize("processes", [0, 1])
def test_a_call_that_hangs_costs_its_item(processes: int) -> None:
    with make_pool(cubes, processes, limit=2.0) as pool:
        answers = dict(pair for batch in pool.map([[1, 0, 2], [3]]) for pair in batch)
    assert {item: answers[item] for item in (1, 2, 3)} == {1: 1, 2: 8, 3: 27}
    assert isinstance(answers[0], Overdue)
    assert "took longer than" in str(answers[0])


def test_a_process_that_dies_costs_its_item() -> None:
    with make_pool(cubes, 1) as pool:
        answers = dict(pair for batch in pool.map([[1, -1, 2]]) for pair in batch)
    assert isinstance(answers[-1], Died)
    assert (answers[1], answers[2]) == (1, 8)


@pytest.mark.parametrize("processes", [0, 1])
def test_a_wrong_call_ends_the_run(processes: int) -> None:
    with make_pool(cubes, processes) as pool, pytest.raises(UsageError, match="called wrongly"):
        list(pool.map([[1], [-3]]))


def test_what_lives_in_the_main_script_stays_in_this_process() -> None:
    with make_pool(lambda batch: [item() for item in batch], 0) as pool:
        assert next(iter(pool.map([[lambda: 3]])))[0][1] == 3
    with make_pool(cubes, 1) as pool:
        pool.work = lambda batch: [item() for item in batch]  # type: ignore[assignment, misc]
        assert [result for _, result in next(iter(pool.map([[lambda: 4]])))] == [4]  # type: ignore[list-item]


def test_a_hopeless_subject_is_given_up() -> None:
    kept: dict[int, object] = {}

    def keep(item: int, result: int | Exception) -> bool:
        kept[item] = result
        return not isinstance(result, Exception)

    patience: Patience[int] = Patience(2, "model", lambda _: "m")
    with Pool(lambda batch: [1 // 0 for _ in batch]) as pool:
        work_through(([number] for number in range(5)), pool.map, keep=keep, patience=patience)
    assert [type(result) for result in kept.values()] == [ZeroDivisionError] * 2 + [InputError] * 3
    assert "not tried, because the model failed" in str(kept[4])


# --- in runs -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("jobs", [0, 1])
def test_a_codec_that_hangs_costs_its_own_clip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: int) -> None:
    monkeypatch.setattr(code, "ITEM_SECONDS", 10.0 if jobs else 3.0)
    loud = Clip("loud", "k0", samples=codec_toys.voiced(7, peak=0.95), rate=16000)
    corpus = Corpus(CorpusCard("toy"), [*codec_toys.memory(2), loud])
    codecs = [f"tests.representations.codec_toys:{name}" for name in ("Hanging", "Sixteen")]
    options = {**codec_toys.QUICK, "jobs": jobs, "category": "audio", "cache": "off", "into": tmp_path / "run"}
    run = earmark.codec(codecs, corpus, **options)
    row = run.scores.row("stft_distance", system="hanging", subset="toy")
    assert row.n == 2
    assert "took longer than" in row.reason
    assert run.scores.row("stft_distance", system="sixteen", subset="toy").n == 3


def test_a_model_that_hangs_costs_its_own_clip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embed, "ITEM_SECONDS", 1.0)
    corpus = sounds.make_folder(tmp_path / "sounds")
    soundfile.write(corpus / "class1" / "odd.wav", sounds.tone(600, 77)[:-1], sounds.RATE)
    entry = {"name": "hanging", "spec": "tests.representations.sounds:Hanging"}
    result = earmark.run(sounds.config(corpus, tmp_path, extractors=[entry]))
    assert [failure.id for failure in result.failures] == ["class1/odd.wav"]
    assert "took longer than 1 s" in result.failures[0].reason
    assert result.counts["embed"]["computed"] == 18
