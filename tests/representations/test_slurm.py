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
    place = tmp_path / "it's 100%a *"
    corpus = sounds.make_folder(place / "so unds", per_class=12)
    options = ["--pool", "mean_time", "--distance", "cosine", "--steps", "prepare,embed,evaluate", "--quiet"]
    words = ["run", "--corpus", str(corpus), "--extractor", sounds.BANDS, *options]
    monkeypatch.chdir(ROOT)  # where the model is found
    path = os.pathsep.join([str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    monkeypatch.setenv("PYTHONPATH", path)
    script, result, table = place / "job 1.slurm", place / "my run", place / "ta ble.csv"
    made = [*words, "--into", str(result), "--cache-dir", str(place / "cache"), "--out", str(table)]
    asked = "cpus-per-task=1,mem=0,time=00:05:00,comment=it's # two words"
    assert main([*made, "--slurm", str(script), "--shards", "2", "--sbatch", asked]) == 0
    if slurm is None:
        for part, task in [("embed", 2), ("embed", 1), ("evaluate", 1), ("evaluate", 2), ("merge", 0)]:
            environment = {**os.environ, "SLURM_ARRAY_TASK_ID": str(task), "SLURM_CPUS_PER_TASK": "1"}
            subprocess.run(["bash", script, part], env=environment, check=True, capture_output=True, timeout=100)
    else:
        environment = {**os.environ, "SLURM_CONF": slurm}
        said = subprocess.run(["bash", script], env=environment, check=True, capture_output=True, text=True).stdout
        assert said.startswith("submitted: embed ")
        queue = ["squeue", "-h", "-o", "%k"]
        listed = subprocess.run(queue, env=environment, check=True, capture_output=True, text=True).stdout
        assert set(listed.splitlines()) == {"it's # two words"}
        for _ in range(600):
            if not subprocess.run(queue, env=environment, check=True, capture_output=True).stdout:
                break
            time.sleep(0.2)
        logs = {log.name.partition("-")[0]: log.read_text() for log in (result / "shards").glob("*.log")}
        assert set(logs) == {"embed", "evaluate", "merge"}, logs
    assert (result / "scores.csv").is_file(), {log.name: log.read_text() for log in (result / "shards").glob("*.log")}
    run({"corpus": str(corpus), "extractors": [sounds.BANDS], "pooling": ["mean_time"], "into": str(tmp_path / "local"),
         "cache": {"url": str(tmp_path / "other")}, "steps": ["prepare", "embed", "evaluate"]})  # fmt: skip
    assert sounds.without_seconds(result / "scores.csv") == sounds.without_seconds(tmp_path / "local" / "scores.csv")
    assert table.read_bytes() == (result / "scores.csv").read_bytes()
    assert "never ran" not in (result / "run.log").read_text()


def test_the_script_is_printed_where_no_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corpus = sounds.make_folder(tmp_path / "sounds", per_class=2)
    words = ["run", "--corpus", str(corpus), "--extractor", "logmel", "--into", str(tmp_path / "run")]
    assert main([*words, "--slurm", "--shards", "3"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("#!/bin/bash\n#SBATCH --time=04:00:00\n")
    assert "shards=3\n" in text
    assert f"-m earmark run {tmp_path}/run/shards/config-" in text
    assert subprocess.run(["bash", "-n"], input=text, text=True).returncode == 0
    assert main([*words[:2], str(tmp_path / "nowhere"), *words[3:], "--slurm"]) == 1


def words_for(tmp_path: Path) -> list[str]:
    corpus = sounds.make_folder(tmp_path / "sounds", per_class=2)
    return ["run", "--corpus", str(corpus), "--extractor", "logmel", "--into", str(tmp_path / "run"), "--slurm"]


def test_the_script_holds_what_jobs_need_and_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("TOKEN", "DATABASE_URL", "BOARD", "TEST_POSTGRES", "WEIGHTS", "PATIENCE"):
        monkeypatch.setenv(f"EARMARK_{name}", f"the {name.lower()}")
    monkeypatch.chdir(tmp_path)
    files = ["--out", "a b.csv", "--per-point", "points.csv", "--json"]
    assert main([*words_for(tmp_path), *files, "--sbatch", "gres=gpu:1"]) == 0
    text = capsys.readouterr().out
    exported = [line.partition("=")[0] for line in text.splitlines() if line.startswith("export ")]
    assert {name for name in exported if "EARMARK" in name} == {"export EARMARK_WEIGHTS", "export EARMARK_PATIENCE"}
    assert not any(secret in text for secret in ("the token", "the database_url", "the board", "the test_postgres"))
    # What bash makes of the lines, told by a program that says its arguments.
    lines = text.replace("set -eo pipefail", "set -eo pipefail; sbatch() { printf '%s|' sbatch \"$@\" >&2; echo 7; }")
    says = "earmark=(printf '%s|' earmark)\ncommon="
    (tmp_path / "job.slurm").write_text(lines.replace("common=", says, 1))
    environment = {**os.environ, "SLURM_ARRAY_TASK_ID": "3", "SLURM_CPUS_PER_TASK": "2"}

    def made_of(part: str) -> str:
        done = subprocess.run(["bash", "job.slurm", part], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    assert made_of("embed") == "earmark|--shard|3/10|--steps|prepare,embed|--jobs|2|"
    assert made_of("merge") == "earmark|--merge|--jobs|2|--out=a b.csv|--per-point=points.csv|--json|"
    assert made_of("submit").count("--gres=gpu:1|") == 1  # measuring needs no GPU


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--shard", "1/2"], "leave --shard and --merge out"),
        (["--merge"], "leave --shard and --merge out"),
        (["--scheduler", "tcp://host:1"], "leave --scheduler and dask out"),
        (["--sbatch", 'comment=a "b"'], "leave quotation marks and backslashes out"),
        (["--sbatch", "two words=3"], "is no option of sbatch"),
        (["--sbatch", "comment=a\nrm -r *"], "cannot stand in a script for SLURM"),
        (["--into", "a\\b"], "choose a folder without a backslash"),
        (["--into", "a\nrm -r *"], "cannot stand in a script for SLURM"),
    ],
)
def test_what_a_script_cannot_hold_is_one_sentence(
    flags: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = [word for word in words_for(tmp_path) if word not in ("--into", str(tmp_path / "run"))]
    assert main([*words, *([] if "--into" in flags else ["--into", "run"]), *flags]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert said in err
