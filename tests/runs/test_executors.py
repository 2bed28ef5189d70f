"""Steps and who does them: in this process, in worker processes; what is lost, refused and logged."""

from __future__ import annotations

import logging
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from earmark.cli import main
from earmark.errors import InputError, UsageError
from earmark.runs import clusters, executors
from earmark.runs.executors import (
    Done,
    Executor,
    Job,
    Listed,
    LocalProcesses,
    Step,
    Unfit,
    carry_out,
    do_step,
    keep_job,
)
from earmark.runs.pool import Lost
from earmark.runs.shards import ShardRecord, Share, notes_on, parse_share, read_shards, write_shard
from earmark.runs.slurm import sbatch_options, slurm_script
from earmark.runs.store import Cache, Entry

HERE = "tests.runs.test_executors"


def square(job: Job, number: int) -> Done:
    """Writes its result into the cache and counts how often this process has been here."""
    job.kept["times"] = job.kept.get("times", 0) + 1
    job.cache.put("squares", str(number), Entry({"square": number**2 + job.config["plus"]}))
    logging.getLogger("earmark.runs").warning("squared %d\nin %d threads", number, job.threads)
    return Done({"computed": 1}, facts={"times": job.kept["times"], "process": os.getpid()})


def die(job: Job) -> Done:
    os.kill(os.getpid(), signal.SIGKILL)
    return Done()


def refuse(job: Job) -> Done:
    raise InputError("the disk is full")


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(str(tmp_path / "cache"))


def steps(cache: Cache, names: dict[str, tuple[Any, ...]], plus: int = 0) -> list[Step]:
    job = keep_job(cache, {"plus": plus}, ["numpy"])
    return [Step(f"{HERE}:{name.split()[0]}", job, name, arguments) for name, arguments in names.items()]


@pytest.mark.parametrize("executor", [Executor(), LocalProcesses(2)])
def test_steps_write_into_the_cache_and_bring_home_counts(
    cache: Cache, executor: Executor, caplog: pytest.LogCaptureFixture
) -> None:
    agenda, ticks = Listed(steps(cache, {f"square {n}": (n,) for n in range(5)}, plus=1)), []
    with caplog.at_level(logging.INFO, "earmark.runs"), executor:
        carry_out(executor, agenda, ticks.append)
    assert ticks == [1] * 5
    found = [cache.get("squares", str(number)) for number in range(5)]
    assert [entry.meta["square"] for entry in found if entry] == [number**2 + 1 for number in range(5)]
    answers = [answer for answer in agenda.answers.values() if isinstance(answer, Done)]
    assert sum(answer.counts["computed"] for answer in answers) == 5
    assert any(answer.facts["times"] > 1 for answer in answers)  # what a process has opened it keeps
    assert sum("squared 3 in 1 threads" in line for line in caplog.messages) == (type(executor) is LocalProcesses)
    assert sorted(line for answer in answers for line in answer.log)[0] == "WARNING squared 0 in 1 threads"


def test_a_worker_that_ends_costs_its_step(cache: Cache) -> None:
    agenda = Listed(steps(cache, {"square 1": (1,), "die": (), "square 2": (2,), "refuse": (), "square 3": (3,)}))
    with LocalProcesses(2) as executor:
        carry_out(executor, agenda)
    assert isinstance(agenda.answers["die"], Lost)
    assert "SIGKILL" in str(agenda.answers["die"])
    assert str(agenda.answers["refuse"]) == "the disk is full"
    assert all(isinstance(agenda.answers[f"square {n}"], Done) for n in (1, 2, 3))


def test_an_agenda_whose_steps_wait_for_each_other(cache: Cache) -> None:
    class Chain:
        def __init__(self) -> None:
            self.waiting, self.order = steps(cache, {f"square {n}": (n,) for n in range(4)}), []
            self.free = True

        def ready(self) -> list[Step]:
            return [self.waiting.pop(0)] if self.waiting and self.free and not setattr(self, "free", False) else []

        def note(self, step: Step, answer: Any) -> None:
            self.order.append(step.name)
            self.free = True

    chain = Chain()
    with Executor() as executor:
        carry_out(executor, chain)
    assert chain.order == [f"square {n}" for n in range(4)]


def test_a_worker_that_cannot_do_it_says_so_by_name(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    (step,) = steps(cache, {"square 1": (1,)})
    elsewhere = step.job._replace(url="/nowhere/at/all")
    with pytest.raises(Unfit, match=r"process \d+ does not see the cache /nowhere/at/all: give a folder that all"):
        do_step(Step(step.do, elsewhere, step.name, step.arguments))
    monkeypatch.setattr(executors, "__version__", "0.0.7")
    with pytest.raises(Unfit, match=r"has Earmark 0\.0\.7, and the run has .*: install the same version there"):
        do_step(step)
    monkeypatch.undo()
    monkeypatch.setattr(executors, "versions", lambda *names: dict.fromkeys(names, "0.1"))
    with pytest.raises(Unfit, match=r"has numpy 0\.1, and the run has [\d.]+: install the same"):
        do_step(step)


def test_old_entries_are_no_ones_while_a_run_refreshes(cache: Cache) -> None:
    cache.put("squares", "1", Entry({"square": 0}))
    fresh = Cache(cache.url, "refresh")
    job = keep_job(fresh, {}, [])
    assert job.since == fresh.since > 0
    assert Cache(job.url, since=job.since).get("squares", "1") is None
    assert Cache(job.url).get("squares", "1") is not None


# --- shards --------------------------------------------------------------------------------------------------


def test_shares_never_overlap_and_leave_nothing() -> None:
    for of in (1, 2, 7, 40):
        taken = [[place for place in range(100) if Share(number, of).takes(place)] for number in range(1, of + 1)]
        assert sorted(place for places in taken for place in places) == list(range(100))
    assert parse_share(" 3 / 40 ") == Share(3, 40)
    for text in ("0/4", "5/4", "3", "a/b", "-1/4", "1/0"):
        with pytest.raises(UsageError, match="is no share of a run: write 3/40"):
            parse_share(text)


def test_what_shards_say_of_themselves(tmp_path: Path) -> None:
    assert "no shard has run" in notes_on(read_shards(tmp_path), "earmark run x.yaml")[0]
    write_shard(tmp_path, ShardRecord(1, 9, status="finished", started="2020-01-01T00:00:00+00:00"))
    for number, status in ((1, "finished"), (2, "running"), (4, "the disk is full")):
        write_shard(tmp_path, ShardRecord(number, 4, status=status))
    (tmp_path / "shards" / "x-of-y").mkdir()
    records = read_shards(tmp_path)
    assert [str(record.share) for record in records] == ["1/4", "2/4", "4/4", "1/9"]
    text = "; ".join(notes_on(records, "earmark run x.yaml"))
    assert "1 shard of 4 never ran: 3/4" in text
    assert "1 shard of 4 did not finish: 2/4 (begun " in text
    assert "1 shard of 4 failed: 4/4 (the disk is full)" in text
    assert "run earmark run x.yaml --shard 3/4 first" in text
    for number in (2, 3, 4):
        write_shard(tmp_path, ShardRecord(number, 4, status="finished"))
    assert notes_on(read_shards(tmp_path), "earmark run x.yaml") == []
    (tmp_path / "shards" / "1-of-4" / "shard.json").write_text("{")  # a disk that was full
    assert "never ran: 1/4" in notes_on(read_shards(tmp_path), "earmark run x.yaml")[0]


def test_a_script_for_slurm_asks_for_what_it_is_told(tmp_path: Path) -> None:
    options = sbatch_options(["partition=long", "--time=08:00:00", "gres=gpu:1"])
    script = slurm_script("run", tmp_path / "a config.yaml", tmp_path, 12, options, {"embed": "-a", "evaluate": "-b"})
    for line in ("#SBATCH --partition=long", "#SBATCH --time=08:00:00", "#SBATCH --mem=8G", "shards=12"):
        assert line in script.splitlines()
    assert "#SBATCH --gres" not in script  # the merge needs no GPU
    assert "first=(--gres=gpu:1) " in script
    assert "a config.yaml'" in script  # quoted
    for wrong in ("partition", "=x", "a\nb=c"):
        with pytest.raises(UsageError, match="is no option of sbatch"):
            sbatch_options([wrong])
    assert "mem" not in sbatch_options(["mem-per-cpu=2G"])  # sbatch takes one of the two
    with pytest.raises(UsageError, match="what array its jobs have"):
        sbatch_options(["array=1-3"])


@pytest.mark.parametrize("address", ["banana", "127.0.0.1", "http://head:8786", "tcp://head"])
def test_what_is_no_address_is_refused_before_anybody_waits_for_it(address: str) -> None:
    with pytest.raises(InputError, match="is no address of a Dask scheduler: write tcp://HOST:8786"):
        clusters.DaskWorkers(address, None, "cache").__enter__()


@pytest.mark.parametrize(
    "flags", [["--shards", "7"], ["--sbatch", "mem=2G"], ["--shard", "1/2", "--scheduler", "tcp://head:8786"]]
)
def test_flags_that_would_be_ignored_are_refused(flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--corpus", "synth:tiny", "--extractor", "logmel", *flags]) == 2
    assert "--s" in capsys.readouterr().err
