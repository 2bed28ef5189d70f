"""The rehearsal: what a host would refuse is found on synthetic sounds, with everything that helps the author."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.blind.examples import code_package

from earmark.blind.models import scrubbed
from earmark.blind.packages import unpack
from earmark.blind.rehearsal import CHECKS, TOLD, Rehearsal, rehearse

HEAD = "import itertools\nimport numpy as np\n"
MODEL = (
    HEAD
    + """
class Model:
    rate = 16000
    count = itertools.count(1)
    def extract(self, waveforms):
        (waveform,) = waveforms
        spectrum = np.abs(np.fft.rfft(waveform, 512))[None].astype(np.float32)
        BODY
"""
)


def rehearsed(folder: Path, body: str, **changes: object) -> Rehearsal:
    sent = code_package(folder / "a", MODEL.replace("BODY", body), "extractor.py:Model", **changes)
    return rehearse(unpack(sent, folder / "b"), allowed={"not-root"}, seconds_per_clip=2.0)


def test_a_sound_model_passes(tmp_path: Path) -> None:
    played: list[int] = []
    sent = code_package(tmp_path / "a", pooling="MTF")
    found = rehearse(
        unpack(sent, tmp_path / "b"), allowed={"not-root"}, progress=lambda done, total: played.append(done)
    )
    assert found.passed
    assert found.sentence == "The rehearsal on synthetic sounds passed."
    assert {finding.status for finding in found.findings} == {"pass"}
    assert played == sorted(played)
    assert played[-1] == max(played) > 20


@pytest.mark.parametrize(
    ("body", "check", "words"),
    [
        ("return [spectrum + next(self.count)]", "deterministic", "no state"),
        ("return [spectrum if len(waveform) > 200 else spectrum * np.nan]", "short_clips", "NaN"),
        ("return [np.log(spectrum)]", "silence", "NaN or infinity"),
        ("return [spectrum * 0 + 1]", "tells_sounds_apart", "the same numbers"),
        ("return [spectrum, spectrum]", "shape", "2 items"),
    ],
)
def test_what_is_wrong_with_a_model_is_found(tmp_path: Path, body: str, check: str, words: str) -> None:
    found = rehearsed(tmp_path, body)
    assert not found.passed
    (finding,) = [one for one in found.findings if one.name == check]
    assert finding.status == "fail"
    assert words in finding.sentence
    assert found.sentence.startswith("The rehearsal on synthetic sounds failed:")
    assert TOLD[check] in found.told


def test_state_that_shows_only_in_a_new_process_is_found(tmp_path: Path) -> None:
    """A number is drawn once for a process: two runs agree, and a new cell does not."""
    drawn = HEAD + "DRAWN = np.random.default_rng().random()\n" + MODEL.removeprefix(HEAD)
    sent = code_package(
        tmp_path / "c", drawn.replace("BODY", "return [spectrum + DRAWN * spectrum.max()]"), "extractor.py:Model"
    )
    found = rehearse(unpack(sent, tmp_path / "d"), allowed={"not-root"})
    (finding,) = [one for one in found.findings if one.status == "fail"]
    assert finding.name == "steady"
    assert "in a new process" in finding.sentence


def test_a_counter_beside_a_large_constant_is_found(tmp_path: Path) -> None:
    body = "return [np.concatenate([[[1e4]], [[next(self.count) % 7]], 1e-3 * spectrum[:, :2]], axis=1)]"
    found = rehearsed(tmp_path, body, distance="euclidean")
    assert "steady" in [finding.name for finding in found.findings if finding.status == "fail"]


def test_what_a_host_tells_is_chosen_from_words_of_ours(tmp_path: Path) -> None:
    """The machine of a host has memories: what a model says there, in a rehearsal too, may come from them."""
    found = rehearsed(tmp_path, "raise KeyError('LEAK 0x1234')")
    assert "LEAK" in found.sentence
    assert "LEAK" in found.log
    assert found.told == (
        "The rehearsal on synthetic sounds failed: your model did not give frames [T, D] with one number of features; "
        "`earmark blind check` shows more on your machine."
    )
    never_fail = {"long_clip", "memory"}
    assert {check.__name__ for check in CHECKS} | {"opens"} == {*TOLD, *never_fail}


def test_an_author_reads_what_the_model_raised_and_printed(tmp_path: Path) -> None:
    body = "print('\\x1b[2Jnear', len(waveform)); raise KeyError('no weights for \\x07')"
    found = rehearsed(tmp_path, body)
    assert not found.passed
    assert "KeyError" in found.sentence
    assert "no weights for" in found.sentence
    assert "Traceback" in found.log
    assert "near" in found.log
    assert all(letter.isprintable() or letter == "\n" for letter in found.log + found.sentence)


def test_a_model_that_does_not_open_is_told_why(tmp_path: Path) -> None:
    sent = code_package(tmp_path / "a", "import nothing_of_that_name\n", "extractor.py:Model")
    found = rehearse(unpack(sent, tmp_path / "b"), allowed={"not-root"})
    assert not found.passed
    assert [finding.name for finding in found.findings] == ["opens"]
    assert "nothing_of_that_name" in found.sentence
    other = code_package(tmp_path / "c", MODEL.replace("BODY", "return [spectrum]"), "extractor.py:Model", rate=8000)
    found = rehearse(unpack(other, tmp_path / "d"), allowed={"not-root"})
    assert "16000 Hz, and the package states 8000" in found.sentence


def test_a_long_log_is_cut_where_it_begins() -> None:
    assert scrubbed("a" * 50_000 + "the end").endswith("the end")
    assert len(scrubbed("a" * 50_000)) == 16_001
