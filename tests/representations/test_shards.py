"""A run in shares, in any order, with one killed and one that never ran: the same bytes as in one process."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import soundfile
import yaml
from tests.representations import sounds

from earmark.cli import main
from earmark.errors import InputError, UsageError
from earmark.representations import run
from earmark.representations.shards import run_shard
from earmark.runs.shards import read_shards

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = sounds.make_folder(tmp_path_factory.mktemp("sounds"), classes=3, per_class=30)
    for number, length in ((1, 301), (2, sounds.FATAL)):  # not managed by one of the models
        soundfile.write(root / "class1" / f"odd{number}.wav", sounds.tone(500, number)[:length], sounds.RATE)
    return root


def config(corpus: Path, place: Path, pause: float = 0.0, **changes: Any) -> dict[str, Any]:
    models = [
        {"name": "bands", "spec": sounds.BANDS, "parameters": {"pause": pause}},
        {"name": "fussy", "spec": sounds.FUSSY},
    ]
    variants = {"pca": ["none", 3], "distances": ["cosine", "euclidean"]}
    return sounds.config(corpus, place, extractors=models, **variants, **changes)


def results(place: Path) -> tuple[list[str], bytes]:
    return sounds.without_seconds(place / "run" / "scores.csv"), (place / "run" / "failures.csv").read_bytes()


@pytest.fixture(scope="module")
def expected(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], bytes]:
    place = tmp_path_factory.mktemp("local")
    run(config(corpus, place))
    return results(place)


def test_shards_in_any_order_then_merged(corpus: Path, tmp_path: Path, expected: tuple[list[str], bytes]) -> None:
    heard = sounds.Bands.heard
    shards = [run_shard(config(corpus, tmp_path), f"{number}/3") for number in (3, 1, 2)]
    computed = [shard.counts["embed"]["computed"] for shard in shards]
    assert sum(computed) == 2 * 92 - 2  # no clip twice
    assert all(count > 0 for count in computed)
    again = [run_shard(config(corpus, tmp_path, steps=["prepare", "evaluate"]), f"{number}/3") for number in (1, 2, 3)]
    assert [shard.left for shard in again] == [0, 0, 0]
    assert sum(shard.counts["evaluate"]["computed"] for shard in [*shards, *again]) == 8
    assert sounds.Bands.heard > heard
    heard = sounds.Bands.heard
    merged = run(config(corpus, tmp_path), merge=True)
    assert sounds.Bands.heard == heard  # what failed is not tried again either
    assert merged.counts["evaluate"]["computed"] == 4  # on the clips that both models have, to compare them
    assert not [note for note in merged.notes if "shard" in note]
    assert results(tmp_path) == expected


def test_a_shard_that_never_ran_is_named_and_made_up_for(
    corpus: Path, tmp_path: Path, expected: tuple[list[str], bytes]
) -> None:
    run_shard(config(corpus, tmp_path), "2/3")
    merged = run(config(corpus, tmp_path), merge=True)
    assert "2 shards of 3 never ran: 1/3, 3/3" in merged.notes
    assert merged.counts["embed"]["cached"] > 0
    assert results(tmp_path) == expected


def test_a_shard_killed_in_the_middle(corpus: Path, tmp_path: Path, expected: tuple[list[str], bytes]) -> None:
    given = config(corpus, tmp_path, pause=0.02)
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(given))
    path = os.pathsep.join([str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "earmark", "run", str(tmp_path / "config.yaml"), "--shard", "1/2", "--quiet"]
    shard = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path}, cwd=ROOT)
    for _ in range(2000):
        if list((tmp_path / "cache").glob("vectors/*/*.entry")) or shard.poll() is not None:
            break
        time.sleep(0.01)
    shard.kill()
    assert shard.wait() == -signal.SIGKILL
    run_shard(given, "2/2")  # on the same cache, whatever the other one left
    merged = run(given, merge=True)
    assert any("1 shard of 2 did not finish: 1/2 (begun " in note for note in merged.notes)
    assert merged.counts["embed"]["cached"] >= 16
    assert results(tmp_path) == expected


def test_a_shard_that_fails_says_why(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: Any) -> None:
        raise InputError("The cache is full.")

    monkeypatch.setattr("earmark.runs.packs.Packer.flush", full)
    given = config(corpus, tmp_path)
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(given))
    monkeypatch.chdir(ROOT)
    assert main(["run", str(tmp_path / "config.yaml"), "--shard", "1/2", "--quiet"]) == 1
    assert capsys.readouterr().err == "earmark: The cache is full.\n"
    (record,) = read_shards(tmp_path / "run")
    assert record.status == "The cache is full."
    monkeypatch.undo()
    monkeypatch.chdir(ROOT)
    assert main(["run", str(tmp_path / "config.yaml"), "--shard", "1/2", "--json"]) == 0
    assert '"shard": "1/2"' in capsys.readouterr().out
    assert main(["run", str(tmp_path / "config.yaml"), "--merge"]) == 0
    assert "note: 1 shard of 2 never ran: 2/2" in capsys.readouterr().err


def test_a_model_that_learns_is_one_shards(corpus: Path, tmp_path: Path) -> None:
    model = {"extractors": [{"name": "learner", "spec": sounds.LEARNER}]}
    run(sounds.config(corpus, tmp_path / "local", **model))
    fits = sounds.Learner.fits
    shards = [run_shard(sounds.config(corpus, tmp_path / "shards", **model), f"{number}/2") for number in (2, 1)]
    assert sorted(shard.counts["embed"]["computed"] for shard in shards) == [0, 92]
    assert sounds.Learner.fits == fits + 1
    run(sounds.config(corpus, tmp_path / "shards", **model), merge=True)
    assert results(tmp_path / "shards") == results(tmp_path / "local")


def test_a_model_that_is_not_steady_is_noticed_by_one_shard(corpus: Path, tmp_path: Path) -> None:
    model = {"extractors": [{"name": "dice", "spec": "tests.representations.test_steadiness:Dropout"}]}
    for number in (2, 1):
        run_shard(sounds.config(corpus, tmp_path, **model), f"{number}/2")
    merged = run(sounds.config(corpus, tmp_path, **model), merge=True)
    (note,) = merged.notes
    assert note.startswith("dice: the model gave different vectors for the same clips heard twice")


def test_what_only_this_process_knows_cannot_be_shared(corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="leave --cache off out"):
        run_shard(config(corpus, tmp_path) | {"cache": "off"}, "1/2")
    with pytest.raises(UsageError, match="give --shard 1/10, or --merge"):
        run(config(corpus, tmp_path, executor="shard"))


def test_a_share_of_another_run_is_named(corpus: Path, tmp_path: Path) -> None:
    given = sounds.config(corpus, tmp_path)
    run_shard(given, "1/2")
    run_shard({**given, "seed": 5, "steps": ["prepare", "embed"], "jobs": 1}, "2/2")
    assert "1 shard of 2 had another config: 2/2" in run(given, merge=True).notes
    run_shard({**given, "steps": ["prepare", "embed"], "jobs": 1}, "2/2")  # where and how far is not what
    assert not any("shard" in note for note in run(given, merge=True).notes)


def test_a_file_that_changes_under_a_run_is_never_heard(corpus: Path, tmp_path: Path) -> None:
    (own := tmp_path / "own").mkdir()
    for kind in range(3):
        (own / f"class{kind}").mkdir()
        for number in range(3):
            shutil.copy(corpus / f"class{kind}" / f"clip{number}.wav", own / f"class{kind}")
    model = {"name": "meddler", "spec": "tests.representations.sounds:Meddler", "parameters": {"path": str(own)}}
    given = sounds.config(own, tmp_path, extractors=[model], batch=1)
    with pytest.raises(InputError, match=r"class2/clip2.wav is not the file that the run has hashed: it was changed"):
        run(given)
    again = run(given)  # the file is another one now, and found under its own hash
    assert again.counts["embed"]["failed"] == 0
