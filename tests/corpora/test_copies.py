"""Copies are found by what they sound like, whatever their files look like."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import soundfile

from earmark import cli
from earmark.corpora.clips import Clip
from earmark.corpora.copies import find_copies

RATE = 16_000


def noise(seed: int, seconds: float = 0.2) -> np.ndarray:
    """Whole numbers, which WAV and FLAC store alike."""
    return (3000 * np.random.default_rng(seed).standard_normal(int(seconds * RATE)).clip(-4, 4)).astype(np.int16)


def found(clips: list[Clip]) -> list[tuple[str, ...]]:
    seconds = [clip.seconds() for clip in clips]
    return [copies.ids for copies in find_copies(clips, [clip.digest() for clip in clips], seconds, threads=2)]


def test_the_same_samples_in_another_file_are_a_copy(tmp_path: Path) -> None:
    sound = noise(0)
    soundfile.write(tmp_path / "a.wav", sound, RATE, subtype="PCM_16")
    soundfile.write(tmp_path / "b.flac", sound, RATE, subtype="PCM_16")
    with soundfile.SoundFile(tmp_path / "c.wav", "w", RATE, 1, subtype="PCM_16") as tagged:
        tagged.title = "the same take, with a title"
        tagged.write(sound)
    soundfile.write(tmp_path / "d.wav", np.stack([sound, sound], axis=1), RATE, subtype="PCM_16")
    soundfile.write(
        tmp_path / "e.wav", np.concatenate([sound[:-1], sound[:1]]), RATE, subtype="PCM_16"
    )  # the last differs
    soundfile.write(tmp_path / "f.wav", sound, RATE // 2, subtype="PCM_16")  # half as fast
    paths = sorted(tmp_path.iterdir())
    assert len({Clip(path.name, path=str(path)).digest() for path in paths}) == 6
    assert found([Clip(path.name, path=str(path)) for path in paths]) == [("a.wav", "b.flac", "c.wav", "d.wav")]


def test_spans_of_one_file_are_compared_as_spans(tmp_path: Path) -> None:
    sound = noise(1, 0.5)
    soundfile.write(tmp_path / "long.wav", np.concatenate([sound, noise(2, 0.5)]), RATE, subtype="PCM_16")
    soundfile.write(tmp_path / "cut.wav", sound, RATE, subtype="PCM_16")
    long = str(tmp_path / "long.wav")
    clips = [Clip("first", path=long, start=0.0, end=0.5), Clip("second", path=long, start=0.5, end=1.0),
             Clip("cut", path=str(tmp_path / "cut.wav")), Clip("whole", path=long)]  # fmt: skip
    assert found(clips) == [("first", "cut")]


def test_labels_that_disagree_are_told_and_a_missing_label_does_not() -> None:
    sound = noise(3).astype(np.float32) / 32768
    clips = [Clip(name, label=label, samples=sound, rate=RATE)
             for name, label in (("a", "cat"), ("b", None), ("c", "dog"))]  # fmt: skip
    (copies,) = find_copies(clips, [clip.digest() for clip in clips], [0.2] * 3)
    assert copies.conflicting
    assert copies.text == "a = b = c (labelled cat and dog)"
    (copies,) = find_copies(clips[:2], [clip.digest() for clip in clips[:2]], [0.2] * 2)
    assert not copies.conflicting


def test_what_cannot_be_decoded_or_read_is_no_copy(tmp_path: Path) -> None:
    for name in ("a.wav", "b.wav"):
        (tmp_path / name).write_text("the same text, and no sound")
    clips = [Clip(name, path=str(tmp_path / name)) for name in ("a.wav", "b.wav")]
    assert find_copies(clips, [clip.digest() for clip in clips], [0.0, 0.0]) == []
    assert find_copies(clips, [None, None], [0.0, 0.0]) == []


def test_very_short_clips_and_made_clips(tmp_path: Path) -> None:
    for name, seed in (("a.wav", 5), ("b.wav", 6), ("c.flac", 5)):
        soundfile.write(tmp_path / name, noise(seed, 0.01), RATE, subtype="PCM_16")
    assert found([Clip(path.name, path=str(path)) for path in sorted(tmp_path.iterdir())]) == [("a.wav", "c.flac")]
    made = [
        Clip(name, make=lambda: (noise(0).astype(np.float32), RATE), recipe=recipe)
        for name, recipe in (("x", "r"), ("y", "r"))
    ]
    assert [one.ids for one in find_copies(made, [clip.digest() for clip in made], [0.0, 0.0])] == [("x", "y")]


def test_describe_names_copies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for label in ("cat", "dog"):
        (tmp_path / "sounds" / label).mkdir(parents=True)
        soundfile.write(tmp_path / "sounds" / label / "own.wav", noise(len(label) + ord(label[0])), RATE)
        soundfile.write(tmp_path / "sounds" / label / "both.wav", noise(9), RATE)
    for flags in ([], ["--no-dri"]):
        assert cli.main(["corpus", "describe", str(tmp_path / "sounds"), "--quiet", *flags]) == 0
        said = capsys.readouterr().out
        assert "2 clips are copies of one another, 1 sound under more than one label" in said
        assert "cat/both.wav = dog/both.wav (labelled cat and dog)" in said
    assert cli.main(["corpus", "describe", str(tmp_path / "sounds"), "--json", "--quiet"]) == 0
    written = json.loads(capsys.readouterr().out)
    assert written["copies"][0]["ids"] == ["cat/both.wav", "dog/both.wav"]
    assert written["subsets"][0]["copies"] == 2
