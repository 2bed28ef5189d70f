"""Labels by order or by time: what a model could learn from when it is asked, and what a participant from when it
answers. Both come to nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.blind.examples import code_package, write_recordings

import earmark
from earmark.blind import measure
from earmark.blind._schedule import make_schedule
from earmark.blind.models import ModelFault
from earmark.blind.packages import Package, unpack
from earmark.blind.policy import Policy
from earmark.blind.sets import BlindSet, Host

COUNTER = '''
import numpy as np
class Counter:
    """Answers with how many clips it has heard."""
    rate = 16000
    calls = 0
    def extract(self, waveforms):
        self.calls += 1
        return [np.array([[self.calls, 1.0]], np.float32)]
'''
REMEMBERS = '''
import numpy as np
class Remembers:
    """Answers with the order of arrival, and the same again for a sound that it knows."""
    rate = 16000
    known = {}
    def extract(self, waveforms):
        key = waveforms[0].tobytes()
        place = self.known.setdefault(key, len(self.known))
        return [np.array([[np.cos(place / 9), np.sin(place / 9)]], np.float32)]
'''
AVERAGES = '''
import numpy as np
class Averages:
    """Takes off the mean of what it has heard so far."""
    rate = 16000
    total, count = 0.0, 0
    def extract(self, waveforms):
        spectrum = np.log1p(np.abs(np.fft.rfft(waveforms[0], 256)))
        self.total, self.count = self.total + spectrum, self.count + 1
        return [(spectrum - self.total / self.count)[None].astype(np.float32)]
'''
HIDES = '''
import numpy as np
class Hides:
    """A counter beside a constant so large that the counter looks like nothing."""
    rate = 16000
    calls = 0
    def extract(self, waveforms):
        self.calls += 1
        return [np.array([[10000.0, np.cos(self.calls), np.sin(self.calls)]], np.float32)]
'''
CLUSTERS = '''
import numpy as np
class Clusters:
    """Far apart by the sound, and inside of a cluster by a counter."""
    rate = 16000
    calls = 0
    def extract(self, waveforms):
        self.calls += 1
        loudest = np.abs(np.fft.rfft(waveforms[0], 256)).argmax() // 4
        return [np.array([[100.0 * loudest, 0.001 * np.cos(self.calls), 0.001 * np.sin(self.calls)]], np.float32)]
'''
SLEEPS = '''
import time
import numpy as np
class Sleeps:
    """Takes its time with sounds that it wants to tell somebody about."""
    rate = 16000
    def extract(self, waveforms):
        spectrum = np.abs(np.fft.rfft(waveforms[0], 256))
        time.sleep(PAUSE if spectrum[:4].sum() > spectrum[4:8].sum() else 0)
        return [spectrum[None].astype(np.float32)]
'''


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Host:
    folder = write_recordings(tmp_path_factory.mktemp("blind") / "words", 4, 5)
    return Host("demo", {"A": BlindSet("A", str(folder))}, Policy(), secret=b"s" * 32)


def heard(source: str, name: str, host: Host, folder: Path, **facts: object) -> tuple[Package, measure.Vectors]:
    sent = code_package(folder / f"{name}-sent", source, f"extractor.py:{name}", **facts)
    package = unpack(sent, folder / f"{name}-package")
    blind = host.sets["A"]
    return package, measure.hear(package, blind, host=host, folder=folder / name, allowed={"not-root"})


@pytest.mark.parametrize(
    ("source", "name", "facts"),
    [
        (COUNTER, "Counter", {}),
        (REMEMBERS, "Remembers", {}),
        (AVERAGES, "Averages", {}),
        (HIDES, "Hides", {"distance": "euclidean"}),
        (HIDES, "Hides", {"pca": 2}),
        (CLUSTERS, "Clusters", {"distance": "euclidean"}),
    ],
)
def test_a_model_that_answers_by_what_it_heard_before_fails(
    source: str, name: str, facts: dict[str, object], host: Host, tmp_path: Path
) -> None:
    with pytest.raises(ModelFault) as raised:
        heard(source, name, host, tmp_path, **facts)
    assert raised.value.sentence == "Your model answered the same sound differently a second time."


def test_the_order_of_arrival_says_nothing_about_labels() -> None:
    """Even where nobody noticed: vectors that are the places in the order score as chance does. In the order of the
    corpus, where clips of a label lie together, they would have been nearly perfect."""
    labels = np.repeat(np.arange(20), 20)
    lifts = []
    for seed in range(10):
        order = [item for item in make_schedule(400, seed).order if item < 400]
        places = np.zeros(400)
        places[order[::-1]] = np.arange(len(order))[::-1]  # the first time counts
        scores = earmark.evaluate(_circle(places), labels, metrics=["P@k"], k=1, permutations=100, intervals="none")
        lifts.append(scores.row("P@1").lift)
    assert abs(np.mean(lifts)) < 0.02
    assert max(np.abs(lifts)) < 0.06
    corpus = earmark.evaluate(_circle(np.arange(400)), labels, metrics=["P@k"], k=1, intervals="none")
    assert corpus.value("P@1") > 0.9


def _circle(places: np.ndarray) -> np.ndarray:
    angles = 2 * np.pi * places / 500
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def test_pauses_change_nothing_that_anybody_is_told(host: Host, tmp_path: Path) -> None:
    results = []
    for name, pause in (("quick", "0"), ("slow", "0.02")):
        package, vectors = heard(SLEEPS.replace("PAUSE", pause), "Sleeps", host, tmp_path / name)
        scores = measure.score(vectors, host.sets["A"], package, host=host)
        results.append((scores, measure.fingerprint(vectors, host.sets["A"], package, host=host)))
        assert all(row.seconds is None for row in scores)
    assert results[0] == results[1]


def test_a_pause_beyond_the_limit_is_one_sentence_whatever_it_would_have_told(host: Host, tmp_path: Path) -> None:
    impatient = replace(host, seconds_per_clip=0.3)
    with pytest.raises(ModelFault) as raised:
        heard(SLEEPS.replace("PAUSE", "30"), "Sleeps", impatient, tmp_path)
    assert raised.value.sentence == "Your model took longer than the host allows on 3 clips."
