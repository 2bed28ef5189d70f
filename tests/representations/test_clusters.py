"""Runs on a Dask cluster of separate processes over TCP: the same bytes, whoever dies on the way."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import soundfile
from tests.representations import codec_toys, sounds

from earmark.cli import main
from earmark.codecs.runs.config import CodecConfig
from earmark.codecs.runs.runner import run_codecs
from earmark.errors import InputError, UsageError
from earmark.generated.sanity import CHECKS, sanity
from earmark.representations import _workers, run
from earmark.runs import clusters, executors
from earmark.runs.store import Cache

ROOT = Path(__file__).resolve().parents[2]


class Cluster:
    """A scheduler and workers, each a process of its own."""

    def __init__(self, folder: Path, workers: int = 2) -> None:
        self._folder, self._file = folder, folder / "scheduler.json"
        self.scheduler = self._start("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", self._file)
        self.workers = [self.worker() for _ in range(workers)]
        for _ in range(600):
            if self._file.is_file() and self._file.stat().st_size:
                break
            time.sleep(0.05)
        self.address = str(json.loads(self._file.read_text())["address"])

    def worker(self) -> subprocess.Popen[bytes]:
        return self._start("worker", "--scheduler-file", self._file, "--nthreads", "1", "--no-nanny")

    def _start(self, kind: str, *arguments: object) -> subprocess.Popen[bytes]:
        path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])  # not the tests: the run tells
        return subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.dask_{kind}", "--no-dashboard", *map(str, arguments)],
            env={**os.environ, "PYTHONPATH": path}, cwd=self._folder, stderr=(self._folder / "log.txt").open("a"),
        )  # fmt: skip

    def close(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    found = Cluster(tmp_path_factory.mktemp("cluster"))
    yield found
    found.close()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Clips of which one model does not manage three and nobody one."""
    root = sounds.make_folder(tmp_path_factory.mktemp("sounds"), classes=3, per_class=20)
    for number, length in ((1, 301), (2, 303), (3, sounds.FATAL)):
        soundfile.write(root / "class1" / f"odd{number}.wav", sounds.tone(500, number)[:length], sounds.RATE)
    (root / "class0" / "broken.wav").write_bytes(b"RIFF")
    return root


def config(corpus: Path, place: Path, pause: float = 0.0, **changes: Any) -> dict[str, Any]:
    models = [
        {"name": "bands", "spec": sounds.BANDS, "parameters": {"pause": pause}},
        {"name": "fussy", "spec": sounds.FUSSY, "parameters": {"pause": pause}},
    ]
    variants = {"pca": ["none", 3], "distances": ["cosine", "euclidean"], "label_noise": [0.1]}
    return sounds.config(corpus, place, extractors=models, **variants, **changes)


@pytest.fixture(scope="module")
def expected(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], bytes]:
    place = tmp_path_factory.mktemp("local")
    run(config(corpus, place))
    assert b",it ended the program (exit status 3)" in results(place)[1]
    return results(place)


def results(place: Path) -> tuple[list[str], bytes]:
    """Scores but for seconds, and what failed."""
    return sounds.without_seconds(place / "run" / "scores.csv"), (place / "run" / "failures.csv").read_bytes()


def when_packed(cache: Path, packs: int, do: Any) -> threading.Thread:
    """Do something once a run has kept a few packs of vectors."""

    def watch() -> None:
        for _ in range(3000):
            if len(list(cache.glob("vectors/*/*.entry"))) >= packs:
                do()
                return
            time.sleep(0.005)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    return thread


@pytest.mark.usefixtures("several_threads")
def test_two_workers_give_the_bytes_of_one_process(
    cluster: Cluster, corpus: Path, tmp_path: Path, expected: tuple[list[str], bytes]
) -> None:
    found = run(config(corpus, tmp_path, scheduler=cluster.address))
    assert results(tmp_path) == expected
    assert found.counts["embed"]["computed"] == 2 * 64 - 5  # one broken file, three odd ones for one model
    assert found.counts["evaluate"]["computed"] > 0
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert not any(job["cached"] for job in record["evaluations"])
    log = (tmp_path / "run" / "run.log").read_text()
    assert "odd1.wav: ValueError: an odd number of samples" in log  # with the worker it happened on
    assert ", process" in log
    again = run(config(corpus, tmp_path))
    assert (again.counts["embed"]["computed"], again.counts["evaluate"]["computed"]) == (0, 0)
    assert results(tmp_path) == expected


def test_a_worker_killed_in_the_middle_changes_nothing(
    cluster: Cluster, corpus: Path, tmp_path: Path, expected: tuple[list[str], bytes]
) -> None:
    victim = cluster.workers.pop(0)
    blow = when_packed(tmp_path / "cache", 2, lambda: os.kill(victim.pid, signal.SIGKILL))
    # The pause is part of what a model is; scores are of the same vectors.
    run(config(corpus, tmp_path, pause=0.004, scheduler=cluster.address))
    blow.join(10)
    assert victim.wait(10) == -signal.SIGKILL
    assert results(tmp_path) == expected
    cluster.workers.append(cluster.worker())


def test_a_hopeless_model_is_given_up_as_in_one_process(cluster: Cluster, tmp_path: Path) -> None:
    corpus = tmp_path / "sounds"
    for kind in range(2):
        (corpus / f"class{kind}").mkdir(parents=True)
        for number in range(50):
            sound = sounds.tone(300 + 300 * kind, 100 * kind + number)[:301]
            soundfile.write(corpus / f"class{kind}" / f"{number}.wav", sound, sounds.RATE)
    model = {"extractors": [{"name": "fussy", "spec": sounds.FUSSY}]}
    run(sounds.config(corpus, tmp_path / "local", **model))
    run(sounds.config(corpus, tmp_path / "dask", scheduler=cluster.address, **model))
    assert results(tmp_path / "dask") == results(tmp_path / "local")
    assert b"not tried, because the model failed on every clip before it" in results(tmp_path / "dask")[1]


def test_a_wrong_address_is_one_sentence(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(clusters, "CONNECT_SECONDS", 0.5)
    words = ["run", "--corpus", corpus, "--extractor", "logmel", "--into", tmp_path / "run", "--quiet"]
    assert main([*map(str, words), "--cache-dir", str(tmp_path / "cache"), "--scheduler", "tcp://127.0.0.1:9"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "No Dask scheduler answers at tcp://127.0.0.1:9 (" in line
    with pytest.raises(InputError, match=r".nonsense. is no address of a Dask scheduler"):
        run(config(corpus, tmp_path, scheduler="nonsense"))
    with pytest.raises(UsageError, match="leave --cache off out"):
        run(config(corpus, tmp_path, scheduler="tcp://127.0.0.1:9") | {"cache": "off"})


def test_what_a_worker_cannot_see_it_names(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[executors.Step] = []

    class Collecting(executors.Executor):
        def begin(self, step: executors.Step) -> None:
            steps.append(step)
            raise KeyboardInterrupt

    monkeypatch.setattr(_workers, "DaskWorkers", lambda *_: Collecting())
    with pytest.raises(KeyboardInterrupt):
        run(config(corpus, tmp_path, scheduler="tcp://x"))
    (step,) = steps
    entry = Cache(step.job.url).get(executors.JOBS_KIND, step.job.key)
    assert entry is not None

    def elsewhere(**changes: Any) -> executors.Step:
        """The step for a process that has opened nothing, with a config that differs as another machine would."""
        executors._jobs.clear()
        meta = {**entry.meta, "config": {**entry.meta["config"], **changes}}
        Cache(step.job.url).put(executors.JOBS_KIND, "other", type(entry)(meta))
        return executors.Step(step.do, step.job._replace(key="other"), step.name, step.arguments)

    with pytest.raises(executors.Unfit, match=r"process \d+ cannot open the corpus: .*gone"):
        executors.do_step(elsewhere(corpus=[{"spec": str(tmp_path / "gone")}]))
    with pytest.raises(executors.Unfit, match=r"process \d+ has another bands than the run: its code, its weights"):
        executors.do_step(elsewhere(extractors=[{"name": "bands", "spec": sounds.BANDS, "parameters": {"scale": 2.0}}]))
    with pytest.raises(executors.Unfit, match=r"process \d+ cannot open the model bands: .*nobody"):
        executors.do_step(elsewhere(extractors=[{"name": "bands", "spec": "nobody.knows:Bands"}]))
    other = tmp_path / "other" / corpus.name
    shutil.copytree(corpus, other)
    shutil.copy(other / "class1" / "clip1.wav", other / "class0" / "clip1.wav")
    with pytest.raises(executors.Unfit, match=r"process \d+: .*class0/clip1.wav is not the file that the run"):
        executors.do_step(elsewhere(corpus=[{"spec": str(other), "name": corpus.name}]))
    fewer = sounds.make_folder(tmp_path / corpus.name, classes=3, per_class=2)
    with pytest.raises(executors.Unfit, match=r"does not see the clip 'class0/broken.wav' of .*: share it with all"):
        executors.do_step(elsewhere(corpus=[{"spec": str(fewer), "name": corpus.name}]))


# --- codecs --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def voices(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Clips in two classes; one codec refuses two of them, and nobody can read one."""
    root = tmp_path_factory.mktemp("voices")
    for seed in range(10):
        (root / f"k{seed % 2}").mkdir(exist_ok=True)
        peak = {3: 0.2, 8: 0.1}.get(seed, 0.5)
        soundfile.write(root / f"k{seed % 2}" / f"{seed}.wav", codec_toys.voiced(seed, 0.6, peak=peak), codec_toys.RATE)
    (root / "k0" / "broken.wav").write_bytes(b"RIFF")
    return root


def coding(voices: Path, place: Path, **changes: Any) -> dict[str, Any]:
    codecs = ["mulaw@64", "tests.representations.codec_toys:Moody"]
    given = {"codecs": codecs, "corpus": str(voices), "category": "speech", "tasks": ["content:mfcc"]}
    return {**codec_toys.QUICK, **given, "into": str(place / "run"), "cache": str(place / "cache"), **changes}


def coded(place: Path) -> list[str]:
    """The scores of a codec run but for what depends on the hour."""
    lines = sounds.without_seconds(place / "run" / "scores.csv")
    return [line for line in lines if "_rtf," not in line]


@pytest.fixture(scope="module")
def codec_scores(voices: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    place = tmp_path_factory.mktemp("local-codecs")
    run_codecs(coding(voices, place))
    assert "encode: it ended the program (exit status 3)" in (place / "run" / "clips.csv").read_text()
    return coded(place)


@pytest.mark.usefixtures("several_threads")
def test_codecs_on_two_workers_one_of_them_killed_give_the_bytes_of_one_process(
    cluster: Cluster, voices: Path, tmp_path: Path, codec_scores: list[str]
) -> None:
    victim = cluster.workers.pop(0)

    def watch() -> None:
        while len(list((tmp_path / "cache").glob("coded/*/*.entry"))) < 3:
            time.sleep(0.005)
        os.kill(victim.pid, signal.SIGKILL)

    blow = threading.Thread(target=watch, daemon=True)
    blow.start()
    found = run_codecs(coding(voices, tmp_path, scheduler=cluster.address))
    blow.join(10)
    assert victim.wait(10) == -signal.SIGKILL
    assert coded(tmp_path) == codec_scores
    for step, wanted in (("code", 2 * 10 - 2), ("measure", 2 * 10 - 2), ("tasks", 3 * 10 - 2)):
        assert 0 < found.counts[step]["computed"] <= wanted  # what the dead one kept and did not tell is found
    again = run_codecs(coding(voices, tmp_path))
    assert [again.counts.get(step, {}).get("computed", 0) for step in ("code", "measure", "tasks")] == [0, 0, 0]
    assert coded(tmp_path) == codec_scores


@pytest.mark.usefixtures("several_threads")
def test_codecs_in_shares_give_the_bytes_of_one_process(
    voices: Path, tmp_path: Path, codec_scores: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(CodecConfig.make(coding(voices, tmp_path)).to_yaml())
    assert "executor" not in path.read_text()  # which version 0.1.0 does not know
    for share in ("2/2", "1/2"):
        assert main(["codec", "run", str(path), "--shard", share]) == 0
        assert f"shard {share}: " in capsys.readouterr().err
    assert not (tmp_path / "run" / "scores.csv").exists()
    found = run_codecs(coding(voices, tmp_path, executor="shard"), merge=True)
    assert coded(tmp_path) == codec_scores
    assert [found.counts.get(step, {}).get("computed", 0) for step in ("code", "measure", "tasks")] == [0, 0, 0]
    assert not any("shard" in note for note in found.notes)
    assert main(["codec", "run", str(path), "--slurm", str(tmp_path / "script"), "--device", "cpu", "--quiet"]) == 0
    script = (tmp_path / "script").read_text()
    assert "earmark codec run" in script
    assert 'code) "${earmark[@]}" --shard "${SLURM_ARRAY_TASK_ID:' in script
    assert 'common=(--jobs "${SLURM_CPUS_PER_TASK:-1}" --device=cpu)' in script  # which no config of codecs holds
    assert main(["codec", "run", str(path), "--executor", "shard", "--quiet"]) == 2
    assert main(["codec", "run", str(path), "--shard", "1/2", "--merge", "--quiet"]) == 2


@pytest.mark.usefixtures("several_threads")
def test_the_sanity_bench_on_a_cluster_gives_the_scores_of_one_process(cluster: Cluster, tmp_path: Path) -> None:
    asked: dict[str, Any] = {"checks": [next(iter(CHECKS))], "correct": ["none"], "repeats": 2, "n": 30}
    there = sanity(["density", "recall"], **asked, into=tmp_path / "there", scheduler=cluster.address)
    assert there.to_csv() == sanity(["density", "recall"], **asked).to_csv()


def test_a_scheduler_that_dies_leaves_a_run_that_goes_on(
    cluster: Cluster, corpus: Path, tmp_path: Path, expected: tuple[list[str], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clusters, "CONNECT_SECONDS", 2.0)
    blow = when_packed(tmp_path / "cache", 1, cluster.scheduler.kill)  # the last test that needs it
    with pytest.raises(InputError, match=r"no longer answers: start it again; what was computed stays in .*cache"):
        run(config(corpus, tmp_path, pause=0.004, scheduler=cluster.address))
    blow.join(10)
    found = run(config(corpus, tmp_path, pause=0.004))
    assert found.counts["embed"]["cached"] > 0
    assert results(tmp_path) == expected
