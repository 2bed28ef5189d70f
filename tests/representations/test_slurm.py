"""The script for SLURM, end to end: by a real SLURM of one node, else by hand with the scheduler's variables set."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.representations import sounds

from earmark.cli import main
from earmark.representations import run

ROOT = Path(__file__).resolve().parents[2]
SERVICES = ROOT / "scripts" / "services"


@pytest.fixture(scope="module")
def slurm() -> Iterator[str | None]:
    """The configuration of a running SLURM, or None where there is none to start."""
    if shutil.which("slurmctld", path=f"{os.environ['PATH']}:/usr/sbin") is None:
        yield None
        return
    started = subprocess.run([SERVICES, "slurm", "start"], capture_output=True, text=True, timeout=60)
    assert started.returncode == 0, started.stderr
    conf = started.stdout.strip()
    yield conf
    subprocess.run([SERVICES, "slurm", "stop", conf], check=True, timeout=60)


def test_the_script_gives_the_scores_of_one_process(
    slurm: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = sounds.make_folder(tmp_path / "so unds", per_class=24)
    options = ["--pool", "mean_time", "--distance", "cosine", "--steps", "prepare,embed,evaluate", "--quiet"]
    words = ["run", "--corpus", str(corpus), "--extractor", sounds.BANDS, *options]
    monkeypatch.chdir(ROOT)  # where the model is found
    path = os.pathsep.join([str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    monkeypatch.setenv("PYTHONPATH", path)
    script, result = tmp_path / "job.slurm", tmp_path / "run"
    made = [*words, "--into", str(result), "--cache-dir", str(tmp_path / "cache"), "--slurm", str(script)]
    assert main([*made, "--shards", "2", "--sbatch", "cpus-per-task=1,mem=0,time=00:05:00"]) == 0
    if slurm is None:
        for part, task in [("embed", 2), ("embed", 1), ("evaluate", 1), ("evaluate", 2), ("merge", 0)]:
            environment = {**os.environ, "SLURM_ARRAY_TASK_ID": str(task), "SLURM_CPUS_PER_TASK": "1"}
            subprocess.run(["bash", script, part], env=environment, check=True, capture_output=True, timeout=100)
    else:
        environment = {**os.environ, "SLURM_CONF": slurm}
        said = subprocess.run(["bash", script], env=environment, check=True, capture_output=True, text=True).stdout
        assert said.startswith("submitted: embed ")
        for _ in range(600):
            if not subprocess.run(["squeue", "-h"], env=environment, check=True, capture_output=True).stdout:
                break
            time.sleep(0.2)
        logs = {log.name.partition("-")[0]: log.read_text() for log in (result / "shards").glob("*.log")}
        assert set(logs) == {"embed", "evaluate", "merge"}, logs
    assert (result / "scores.csv").is_file(), {log.name: log.read_text() for log in (result / "shards").glob("*.log")}
    run({"corpus": str(corpus), "extractors": [sounds.BANDS], "pooling": ["mean_time"], "into": str(tmp_path / "local"),
         "cache": {"url": str(tmp_path / "other")}, "steps": ["prepare", "embed", "evaluate"]})  # fmt: skip
    assert sounds.without_seconds(result / "scores.csv") == sounds.without_seconds(tmp_path / "local" / "scores.csv")
    assert "never ran" not in (result / "run.log").read_text()


def test_the_script_is_printed_where_no_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corpus = sounds.make_folder(tmp_path / "sounds", per_class=2)
    words = ["run", "--corpus", str(corpus), "--extractor", "logmel", "--into", str(tmp_path / "run")]
    assert main([*words, "--slurm", "--shards", "3"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("#!/bin/bash\n#SBATCH --time=04:00:00\n")
    assert "shards=3\n" in text
    assert f"-m earmark run {tmp_path}/run/config.yaml" in text
    assert subprocess.run(["bash", "-n"], input=text, text=True).returncode == 0
    assert main([*words[:2], str(tmp_path / "nowhere"), *words[3:], "--slurm"]) == 1
