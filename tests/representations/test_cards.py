"""Several GPUs, one process each: each sees its own card, and scores are those of one process. Cores play the cards."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.representations import sounds

from earmark.extractors.torch_models import cards_of
from earmark.representations import _workers, run
from earmark.runs.executors import Done, Job, Listed, LocalProcesses, Step, carry_out, keep_job
from earmark.runs.store import Cache


def look(job: Job, number: int) -> Done:
    """What this process sees."""
    return Done(facts={"card": os.environ["CUDA_VISIBLE_DEVICES"], "threads": job.threads, "process": os.getpid()})


def test_a_process_for_each_card(tmp_path: Path) -> None:
    job = keep_job(Cache(str(tmp_path)), {}, [])
    agenda = Listed([Step(f"{__name__}:look", job, str(number), (number,)) for number in range(8)])
    with LocalProcesses(cards=["3", "GPU-7"], threads=4) as executor:
        assert executor.workers == 2
        carry_out(executor, agenda)
    facts = [answer.facts for answer in agenda.answers.values() if isinstance(answer, Done)]
    assert len(facts) == 8
    assert {fact["card"] for fact in facts} == {"3", "GPU-7"}
    assert {fact["threads"] for fact in facts} == {4}
    assert len({(fact["card"], fact["process"]) for fact in facts}) == 2


@pytest.mark.usefixtures("several_threads")
def test_a_run_on_two_cards_has_the_scores_of_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = sounds.make_folder(tmp_path / "sounds", classes=3, per_class=30)
    models = [{"name": "bands", "spec": sounds.BANDS, "parameters": {"pause": 0.0}}]
    here = run(sounds.config(corpus, tmp_path / "one", extractors=models))
    monkeypatch.setattr(_workers, "WORTH_SECONDS", 0.0)
    monkeypatch.setattr(_workers, "WORTH_WINDOWS", 1)
    monkeypatch.setattr(_workers, "cards_of", lambda device: ["0", "1"])
    made = []

    class Noted(LocalProcesses):
        def __init__(self, *given: object, **named: object) -> None:
            super().__init__(*given, **named)  # type: ignore[arg-type]
            made.append(self)

    monkeypatch.setattr(_workers, "LocalProcesses", Noted)
    there = run(sounds.config(corpus, tmp_path / "two", extractors=models, batch=2))
    assert [executor.workers for executor in made] == [2]
    assert there.counts["embed"]["computed"] == here.counts["embed"]["computed"] == 90
    tables = [sounds.without_seconds(tmp_path / place / "run" / "scores.csv") for place in ("one", "two")]
    assert tables[0] == tables[1]


def test_which_cards_a_device_means(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch", reason="torch is an extra")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    for count, seen, device, cards in (
        (1, None, "cuda", []),
        (3, None, "cuda", ["0", "1", "2"]),
        (3, None, "auto", ["0", "1", "2"]),
        (2, "4,6", "cuda", ["4", "6"]),
        (2, " GPU-a , GPU-b ", "cuda", ["GPU-a", "GPU-b"]),
        (3, None, "cuda:1", []),
        (3, None, "cpu", []),
    ):
        monkeypatch.setattr(torch.cuda, "device_count", lambda count=count: count)
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        if seen is not None:
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", seen)
        assert cards_of(device) == cards
