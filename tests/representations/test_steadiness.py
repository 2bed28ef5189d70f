"""A model that keeps state, throws dice or looks at its neighbours is noticed when it first hears a run's clips."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.representations import sounds

from earmark.cli import main
from earmark.extractors.contract import ExtractorCard, Frames
from earmark.pipeline import read_record, run
from earmark.representations._steadiness import choose, remark_on

Waveform = NDArray[np.float32]
CARD = ExtractorCard(name="hostile", rate=sounds.RATE, dimension=8, frame_rate=125.0)


class Hostile(sounds.Bands):
    card = CARD

    def plain(self, waveforms: Sequence[Waveform]) -> list[NDArray[Any]]:
        return [self._one(waveform).values for waveform in waveforms]


class Dropout(Hostile):
    """A tenth of the features is left out by chance, as in training."""

    def __init__(self) -> None:
        super().__init__()
        self.random = np.random.default_rng()

    def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
        kept = [values * (self.random.random(values.shape) > 0.1) / 0.9 for values in self.plain(waveforms)]
        return [Frames(values, len(values)) for values in kept]


class RunningMean(Hostile):
    """Subtracts the mean of everything it has heard so far."""

    def __init__(self) -> None:
        super().__init__()
        self.mean = np.zeros(8)

    def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
        found = []
        for values in self.plain(waveforms):
            self.mean = 0.9 * self.mean + 0.1 * values.mean(axis=0)
            found.append(Frames(values - self.mean, len(values)))
        return found


class BatchNorm(Hostile):
    """Left in training: a clip is scaled by the clips beside it."""

    def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
        values = self.plain(waveforms)
        stacked = np.concatenate(values)
        return [Frames((one - stacked.mean(axis=0)) / (stacked.std(axis=0) + 1e-5), len(one)) for one in values]


class Padded(Hostile):
    """Every clip is as long as the longest of its batch."""

    def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
        longest = max(len(one) for one in waveforms)
        return super().extract([np.pad(one, (0, longest - len(one))) for one in waveforms])


class OnlyOnce(Hostile):
    """Fails on a clip it has heard before."""

    def __init__(self) -> None:
        super().__init__()
        self.known: set[bytes] = set()

    def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
        if any(one.tobytes() in self.known for one in waveforms):
            raise KeyError("known already")
        self.known |= {one.tobytes() for one in waveforms}
        return super().extract(waveforms)


class Noisy(Hostile):
    """Floating-point noise of half precision, on answers far from the origin: legitimate."""

    def __init__(self) -> None:
        super().__init__()
        self.random = np.random.default_rng()

    def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
        values = [one * (1 + 3e-4 * self.random.standard_normal(one.shape)) for one in self.plain(waveforms)]
        return [Frames(one.astype(np.float32), len(one)) for one in values]


class Meddler(Hostile):
    """Writes into what it is given, and is steady all the same."""

    def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
        found = super().extract(waveforms)
        for one in waveforms:
            one[:] = 0.0
        return found


HEARD_TWICE = "the model gave different vectors for the same clips heard twice"
COMPANY = "the model gave different vectors for the same clips in other company"
HOSTILE = {
    "Dropout": HEARD_TWICE,
    "RunningMean": HEARD_TWICE,
    "BatchNorm": COMPANY,
    "Padded": COMPANY,
    "OnlyOnce": "the model failed on clips it had heard before (KeyError)",
}
STEADY = ["Hostile", "Noisy", "Meddler"]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    root = sounds.make_folder(tmp_path / "sounds")
    for number, path in enumerate(sorted(root.rglob("*.wav"))):  # lengths differ, so that padding shows
        sounds.soundfile.write(path, sounds.tone(300.0 + 50 * number, number, 0.05 + 0.01 * number), sounds.RATE)
    return root


def config(corpus: Path, place: Path, name: str, **changes: Any) -> dict[str, Any]:
    entry = {"name": name, "spec": f"tests.representations.test_steadiness:{name}"}
    return sounds.config(corpus, place, extractors=[entry], **changes)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_model_that_does_not_repeat_itself_is_told_everywhere(corpus: Path, tmp_path: Path, name: str) -> None:
    result = run(config(corpus, tmp_path, name))
    assert [note.startswith(f"{name}: {HOSTILE[name]}") for note in result.notes] == [True]
    assert all(row.status == "ok" and HOSTILE[name] in row.reason for row in result.scores)
    record = read_record(tmp_path / "run")
    assert record["systems"][0]["remark"].startswith(HOSTILE[name])
    assert HOSTILE[name] in (tmp_path / "run" / "run.log").read_text()


@pytest.mark.parametrize("name", STEADY)
def test_a_steady_model_is_left_in_peace(corpus: Path, tmp_path: Path, name: str) -> None:
    result = run(config(corpus, tmp_path, name))
    assert result.notes == ()
    assert not any("the model" in row.reason for row in result.scores)


def test_the_remark_stays_with_the_vectors(corpus: Path, tmp_path: Path) -> None:
    first = run(config(corpus, tmp_path, "Dropout"))
    again = run(config(corpus, tmp_path, "Dropout", distances=["cosine", "euclidean"]))
    assert again.counts["embed"]["computed"] == 0
    assert again.notes[-1:] == first.notes
    assert all(HEARD_TWICE in row.reason for row in again.scores)


def test_the_command_and_the_report_say_it(corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    words = ["run", "--corpus", str(corpus), "--extractor", "tests.representations.test_steadiness:Dropout"]
    words += ["--pool", "mean_time", "--metrics", "P@1", "--into", str(tmp_path / "told")]
    assert main([*words, "--cache-dir", str(tmp_path / "cache")]) == 0
    assert HEARD_TWICE in capsys.readouterr().err
    page = (tmp_path / "told" / "report.html").read_text("utf-8")
    assert "Models that do not repeat themselves" in page


def heard(count: int) -> list[Waveform]:
    return [sounds.tone(300.0 + 70 * number, number) for number in range(count)]


@pytest.mark.parametrize("count", [1, 2, 3, 16])
def test_few_clips_are_heard_again_and_never_in_the_same_company(count: int) -> None:
    chosen = choose(heard(count))
    assert len(chosen) == {1: 1, 2: 1, 3: 2, 16: 4}[count]
    model = sounds.Bands()
    assert remark_on(model.extract, chosen, model.extract(heard(count))) == ""
    shaky = Dropout()
    assert HEARD_TWICE in remark_on(shaky.extract, chosen, shaky.extract(heard(count)))


def test_nothing_is_said_of_silence_and_of_clips_that_are_all_alike() -> None:
    model = sounds.Bands()
    for batch in ([np.zeros(400, np.float32)] * 5, [heard(1)[0]] * 5, []):
        assert remark_on(model.extract, choose(batch), model.extract(batch)) == ""
    noisy = Noisy()
    batch = [heard(1)[0]] * 5
    assert remark_on(noisy.extract, choose(batch), noisy.extract(batch)) == ""
