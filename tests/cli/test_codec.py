"""The commands `codec list`, `codec run`, `codec compare` and `codecs`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import soundfile
from tests.cli.verbs import runner
from tests.representations.codec_toys import voiced

from earmark.cli import codec, codecs
from earmark.scores import load_scores


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    return runner("codec", codec, capsys)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    for seed in range(3):
        soundfile.write(folder / f"clip{seed}.wav", voiced(seed, 0.8), 16000)
    return folder


def options(corpus: Path, place: Path, name: str = "run") -> list[str]:
    return [
        "--corpus", str(corpus), "--category", "speech", "--metrics", "stft_distance,mel_distance,pesq,stoi",
        "--bootstrap", "50", "--jobs", "0", "--into", str(place / name), "--cache-dir", str(place / "cache"),
    ]  # fmt: skip


def test_the_list_knows_every_setting_and_says_what_is_missing(
    command: Callable[..., tuple[int, str, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = command("list")
    assert code == 0
    assert "\nopus@12 " in out
    assert "\npcm " in out
    code, out, _ = command("list", "opus", "--quiet")
    assert out.split() == [f"opus@{rate}" for rate in (6, 8, 12, 16, 24, 32, 48, 64, 96)]
    code, out, _ = command("list", "--json")
    cards = {card["name"]: card for card in json.loads(out)}
    assert cards["opus@12"]["needs"] == ""
    assert cards["opus@12"]["kbps"] == 12
    same = runner("codecs", codecs, capsys)("--json")
    assert same[1] == out
    code, _, err = command("list", "opsu")
    assert code == 2
    assert "opus" in err


def test_run_and_compare(command: Callable[..., tuple[int, str, str]], corpus: Path, tmp_path: Path) -> None:
    code, out, err = command(
        "run", "--codecs", "pcm,opus@6,opus@12,mulaw@64", *options(corpus, tmp_path), "--out", tmp_path / "all.csv"
    )
    assert code == 0, err
    assert "opus@12" in out
    assert "best overall by rate" in out
    assert "12 clips coded" in err
    scores = load_scores(tmp_path / "run" / "scores.csv")
    assert load_scores(tmp_path / "all.csv") == scores
    assert (tmp_path / "run" / "report.html").stat().st_size > 50_000
    code, out, err = command(
        "compare", tmp_path / "run", "--metrics", "overall,pesq", "--figure", tmp_path / "curves.png", "--html",
        tmp_path / "both.html",
    )  # fmt: skip
    assert code == 0, err
    assert "1 of 1 steps to a higher rate inside a family improve pesq" in out
    assert (tmp_path / "curves.png").stat().st_size > 10_000
    assert (tmp_path / "both.html").stat().st_size > 50_000
    code, out, _ = command("compare", tmp_path / "run", "--json", "--quiet", "--no-differences")
    assert code == 0
    assert json.loads(out) == []  # one family with two rates has nobody to be compared with
    code, _, err = command("compare", tmp_path / "run", "--metrics", "pesk")
    assert code == 2
    assert "There is no pesk to compare by" in err
    assert "pesq" in err


def test_the_plan_says_what_is_left(command: Callable[..., tuple[int, str, str]], corpus: Path, tmp_path: Path) -> None:
    words = ["run", "--codecs", "mulaw@64", *options(corpus, tmp_path), "--no-report"]
    assert "3 of 3 clips" in command(*words, "--plan")[1]
    assert command(*words, "--quiet")[0] == 0
    code, out, _ = command(*words, "--plan", "--json")
    assert code == 0
    assert {(line["step"], line["todo"]) for line in json.loads(out)} == {("code", 0), ("measure", 0)}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run"], "--codecs"),
        (["run", "--codecs", "opus@12"], "--corpus"),
        (["run", "--codecs", "opus@13", "--corpus", "."], "choose from"),
        (["run", "nothing.yaml"], "does not exist"),
        (["run", "--codecs", "opus@12?foo=1", "--corpus", ".", "--category", "audio"], "has no option foo=1"),
        (["run", "--codecs", "lyra:/nowhere@3.2", "--corpus", ".", "--category", "audio"], "/nowhere"),
        (["compare", "nowhere"], "run.json"),
        (["compare", "nowhere", "--figure", "a.gif"], ".png"),
        (["list", "nothing"], "no family"),
        (["mend"], "invalid choice"),
    ],
)
def test_wrong_calls_are_one_sentence(
    command: Callable[..., tuple[int, str, str]],
    words: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = command(*words)
    assert code in (1, 2)
    assert said in err
    assert "Traceback" not in err
