"""What a card promises is checked while a codec is measured, and what breaks costs a mark or a clip, not the run."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
import soundfile
from tests.codecs import promise_toys
from tests.codecs.promise_toys import RATE
from tests.codecs.sounds import voice

import earmark
from earmark.cli import main
from earmark.codecs import harness
from earmark.codecs.catalogue import open_codec
from earmark.codecs.harness import round_trip
from earmark.codecs.promises import check_delay, check_repeats, check_tempo
from earmark.isolation import support

HERE = Path(promise_toys.__file__)
needs_bubblewrap = pytest.mark.skipif(
    support().level != "full", reason="bubblewrap is not here: scripts/services install"
)


def bursts(seed: int, seconds: float = 3.0, rate: int = RATE) -> np.ndarray:
    """Syllables of chance lengths and pitches in a little noise."""
    rng = np.random.default_rng(seed)
    samples = 0.002 * rng.standard_normal(round(seconds * rate))
    place = 0
    while place < len(samples) - rate // 10:
        count = min(int(rng.integers(rate // 12, rate // 4)), len(samples) - place)
        tone = voice(rate, 0.5, int(rng.integers(1, 12)))[:count]
        samples[place : place + count] += np.hanning(count) * tone * rng.uniform(0.5, 2.5)
        place += count + int(rng.integers(rate // 20, rate // 5))
    return (0.7 * samples / np.abs(samples).max()).astype(np.float32)


SOUNDS = [(bursts(seed), RATE) for seed in range(6)]


def pairs_of(codec):
    return [(sound, round_trip(codec, sound, RATE).samples) for sound, _ in SOUNDS]


def test_a_wrong_delay_is_noticed_and_a_right_one_is_not():
    for codec, status in ((promise_toys.Honest(), "kept"), (promise_toys.WrongDelay(), "broken")):
        assert check_delay(codec.card, pairs_of(codec), RATE).status == status
    assert "7.3 ms measured" in check_delay(codec.card, pairs_of(codec), RATE).reason


@pytest.mark.parametrize("factor", [1.03, 0.97, 0.96, 1.08])
def test_another_tempo_is_noticed(factor):
    codec = promise_toys.Slow()
    codec.factor = factor
    promise = check_tempo(pairs_of(codec), RATE)
    assert promise.status == "broken"
    measured = float(promise.reason.split(" %")[0].split()[-1])
    assert abs(measured - 100 * abs(factor - 1)) <= 0.5
    assert ("slower" if factor > 1 else "faster") in promise.reason


@pytest.mark.parametrize(
    "spec", ["opus@6", "codec2@0.7", "codec2@3.2", "mp3@16", "amr_nb@4.75", "g723_1@6.3", "speex@8", "aac@16"]
)
def test_honest_codecs_are_not_accused(spec):
    codec = open_codec(spec)
    pairs = pairs_of(codec)
    assert check_tempo(pairs, RATE).status == "kept"
    assert check_delay(codec.card, pairs, RATE).status != "broken"


def test_a_clip_that_is_too_short_or_too_even_says_nothing():
    tone = np.sin(np.arange(3 * RATE) * 0.1).astype(np.float32)
    short = SOUNDS[0][0][: RATE // 2]
    assert check_tempo([(short, short)] * 9, RATE).status == "unknown"
    assert check_tempo([(tone, np.zeros_like(tone))] * 9, RATE).status == "unknown"


@pytest.mark.parametrize(
    ("toy", "state", "determinism"),
    [("Honest", "kept", "kept"), ("Remembering", "broken", "kept"), ("Echoing", "broken", "kept"),
     ("Chancy", "unknown", "broken")],
)  # fmt: skip
def test_state_and_chance_are_told_apart(toy, state, determinism):
    kind = getattr(promise_toys, toy)
    warm, payloads = kind(), []
    for sound in SOUNDS:
        payloads.append(harness.pack(harness.encode(warm, *sound).coded))
    (first, second), decoded = check_repeats(lambda: nullcontext(kind()), SOUNDS, payloads)
    assert (first.status, second.status) == (state, determinism)
    assert len(decoded) == len(SOUNDS)


@pytest.fixture
def clips(tmp_path):
    folder = tmp_path / "clips"
    folder.mkdir()
    for number, (sound, rate) in enumerate(SOUNDS):
        level = {2: 0.98, 3: 0.9}.get(number, 0.5)
        soundfile.write(folder / f"{number}.wav", level * sound / np.abs(sound).max(), rate)
    return folder


def run(clips, toys, **options):
    settings = {"metrics": ["mel_distance"], "bootstrap": 0, "report": False, "jobs": 0, "check": False}
    names = [f"{HERE}:{toy}" for toy in toys]
    into = clips.parent / "run"
    cache = {"url": str(clips.parent / "cache")}
    result = earmark.codec(names, clips, category="speech", into=into, cache=cache, **{**settings, **options})
    record = json.loads((into / "run.json").read_text())
    return result, {codec["card"]["name"]: codec for codec in record["codecs"]}, record


def test_a_run_marks_what_was_broken_and_goes_on_after_hangs_and_exits(clips):
    result, codecs, record = run(clips, ["Slow", "Troubled"], clip_timeout=3.0)
    broken = {name: [p["name"] for p in codec["standing"]["promises"] if p["status"] == "broken"]
              for name, codec in codecs.items()}  # fmt: skip
    assert broken["slow"] == ["tempo"]
    assert broken["troubled"] == []
    reasons = [line["reason"] for line in record["missing"] if line["system"] == "troubled"]
    assert len(reasons) == 2
    assert any("longer than 3 s" in reason for reason in reasons)
    assert any("it ended the program" in reason for reason in reasons)
    assert any("slow breaks a promise (tempo: what comes back is 3.0 % slower" in note for note in result.notes)


@needs_bubblewrap
def test_weights_that_a_codec_finds_by_itself_enter_its_key(clips, tmp_path, monkeypatch):
    weights = tmp_path / "weights"
    weights.mkdir()
    monkeypatch.setenv("EARMARK_LYRA", str(weights))
    values = []
    for gain in ("1.0", "0.5", "1.0"):
        (weights / "gain.txt").write_text(gain)
        result, *_ = run(clips, ["Weighted"], readable=[str(weights)])
        values.append(result.scores.value("mel_distance", system="weighted", subset="clips"))
    assert values[0] == values[2] < 0.01 < values[1]


@needs_bubblewrap
def test_a_file_outside_of_what_is_readable_is_named_with_the_remedy(clips, tmp_path, monkeypatch):
    weights = tmp_path / "weights"
    weights.mkdir()
    (weights / "gain.txt").write_text("1.0")
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "other"))
    monkeypatch.setattr(promise_toys, "__doc__", "")
    monkeypatch.setenv("EARMARK_LYRA", "")
    monkeypatch.chdir(tmp_path / "clips")
    _, _, record = run(clips, ["Weighted"])
    assert record["missing"][0]["clips"] == len(SOUNDS)
    assert "gain.txt" in record["missing"][0]["reason"]


def test_a_hang_fails_the_check_that_met_it_and_the_others_go_on(capsys):
    assert main(["check", f"{HERE}:Troubled", "--clip-timeout", "4", "--json"]) == 1
    findings = {finding["name"]: finding for finding in json.loads(capsys.readouterr().out)}
    assert "longer than 4 s" in findings["full_scale"]["sentence"]
    assert [name for name in findings if findings[name]["status"] == "fail"] == ["full_scale"]
