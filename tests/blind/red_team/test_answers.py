"""Models that try with their answers: what they return is checked, and nothing that they choose is told.

One package holds them all. Which of them a clip meets follows from its number of samples, so that one cell serves many.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.blind.examples import code_package, onnx_package
from tests.extractors import tiny_onnx
from tests.extractors.tiny_onnx import node

from earmark.blind.models import FAULTS, ConfinedModel, ModelFault
from earmark.blind.packages import unpack
from earmark.isolation import Limits

SECRET = "the label is word7"
SOURCE = '''
import os, sys, time
import numpy as np

SECRET = "the label is word7"
GOOD = np.ones((3, 4), np.float32)


class Loud(Exception):
    pass


class Liar:
    """Not an array, and says it is one."""
    def __len__(self):
        return 1 << 60


def nan(): return GOOD * np.nan
def infinite(): return GOOD / 0
def no_frames(): return np.zeros((0, 4), np.float32)
def no_features(): return np.zeros((3, 0), np.float32)
def cube(): return np.zeros((2, 2, 2), np.float32)
def text(): return SECRET
def nothing(): return None
def objects(): return np.array([[SECRET]], object)
def complex_numbers(): return GOOD.astype(complex)
def other_features(): return np.ones((3, 5), np.float32)
def wrong_valid(): return GOOD, 99
def no_valid(): return GOOD, 0
def negative_valid(): return GOOD, -1
def large(): return np.zeros((1 << 13, 4), np.float32)
def raises(): raise Loud(SECRET)
def raises_memory(): raise MemoryError(SECRET)
def raises_exit(): raise SystemExit(SECRET)
def raises_interrupt(): raise KeyboardInterrupt(SECRET)
def liar(): return Liar()
def ends(): os._exit(7)
def allocates(): return np.ones((50 << 30,), np.uint8)
def loops():
    while True:
        pass
def sleeps(): time.sleep(60)
def recurses(): return recurses()
def prints(): print(SECRET); sys.stderr.write(SECRET * 10); return GOOD
def half_an_answer():
    """Writes to every pipe it has, and ends."""
    for pipe in range(3, 64):
        try:
            os.write(pipe, b"\\x10\\0\\0\\0{\\"sizes\\": [9999999")
        except OSError:
            pass
    os._exit(0)
def forges():
    """A head that claims ten gigabytes."""
    for pipe in range(3, 64):
        try:
            head = b'{"valid": 1, "arrays": [["<f4", [50000, 50000]]], "sizes": [10000000000]}'
            os.write(pipe, len(head).to_bytes(4, "little") + head + bytes(1000))
        except OSError:
            pass
    return GOOD
def drips():
    for pipe in range(3, 64):
        try:
            os.write(pipe, b"\\xff")
        except OSError:
            pass
    while True:
        time.sleep(0.2)
        for pipe in range(3, 64):
            try:
                os.write(pipe, b"\\0")
            except OSError:
                pass


WAYS = [value for value in list(globals().values()) if callable(value) and not isinstance(value, type)]


class Tries:
    rate = 16000
    def extract(self, waveforms):
        number = len(waveforms[0]) - 1000
        return [WAYS[number]() if 0 <= number < len(WAYS) else GOOD]
'''
WAYS = re.findall(r"^def (\w+)\(", SOURCE, re.MULTILINE)

EXPECTED = {
    "nan": "nan", "infinite": "nan", "no_frames": "shape", "no_features": "shape", "cube": "raised", "text": "raised",
    "nothing": "raised", "objects": "raised", "complex_numbers": "raised", "other_features": "features",
    "wrong_valid": "shape", "no_valid": "shape", "negative_valid": "shape", "large": "too_large", "raises": "raised",
    "raises_memory": "out_of_memory", "raises_exit": "raised", "raises_interrupt": "raised", "liar": "raised",
    "ends": "died", "allocates": "out_of_memory", "loops": "too_slow", "sleeps": "too_slow", "recurses": "raised",
    "half_an_answer": "malformed|died", "forges": "malformed", "drips": "malformed|too_slow",
}  # fmt: skip


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConfinedModel]:
    folder = tmp_path_factory.mktemp("tries")
    package = unpack(code_package(folder / "a", SOURCE, "extractor.py:Tries"), folder / "b")
    limits = Limits(memory=2 << 30)
    with ConfinedModel(
        package, limits=limits, allowed={"not-root"}, seconds_per_clip=1.0, most_numbers=1 << 14
    ) as confined:
        confined.extract([np.zeros(10, np.float32)])
        yield confined


def test_every_way_is_tried() -> None:
    assert set(WAYS) == {*EXPECTED, "prints"}


@pytest.mark.parametrize("way", EXPECTED)
def test_an_answer_that_tries_is_a_fault_of_a_fixed_kind(way: str, model: ConfinedModel) -> None:
    started = time.monotonic()
    with pytest.raises(ModelFault) as raised:
        model.extract([np.zeros(1000 + WAYS.index(way), np.float32)])
    assert time.monotonic() - started < 8
    fault = raised.value
    assert fault.kind in EXPECTED[way].split("|")
    assert fault.sentence == str(fault) == FAULTS[fault.kind].format(clips="1 clip")
    assert "word7" not in fault.sentence
    (frames,) = model.extract([np.zeros(10, np.float32)])  # the next clip is heard as if nothing had been
    assert (frames.values == 1).all()


def test_a_count_never_says_more_than_three() -> None:
    assert ModelFault("nan", 3000).sentence == "Your model returned NaN or infinity on 3 clips."
    assert all("{" not in ModelFault(kind, 2).sentence for kind in FAULTS)


def test_what_a_model_prints_is_for_the_host(model: ConfinedModel) -> None:
    heard: list[str] = []
    kept, model._say = model._say, heard.append
    try:
        (frames,) = model.extract([np.zeros(1000 + WAYS.index("prints"), np.float32)])
        model.renew()
    finally:
        model._say = kept
    assert frames.values.shape == (3, 4)
    assert SECRET in "".join(heard)


def test_two_threads_get_their_own_answers(model: ConfinedModel) -> None:
    found: list[int] = []

    def ask() -> None:
        for _ in range(20):
            found.append(model.extract([np.zeros(10, np.float32)])[0].valid)

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [3] * 40


def test_the_package_is_all_that_a_model_reads(tmp_path: Path) -> None:
    """Beside its own files, it sees nothing of the folder that the package or the recordings lie in."""
    source = """
import numpy as np
from pathlib import Path
HERE = Path(__file__).parent
class Reads:
    rate = 16000
    def extract(self, waveforms):
        seen = []
        for path in (HERE / "own.txt", HERE.parent / "other.txt", HERE.parent / "recordings/label.txt"):
            try:
                seen.append(float(len(path.read_text())))
            except OSError:
                seen.append(-1.0)
        try:
            (HERE / "left.txt").write_text("a")
            seen.append(1.0)
        except OSError:
            seen.append(-1.0)
        seen.append(float(len(list(HERE.parent.iterdir()))))
        return [np.array([seen], np.float32)]
"""
    folder = code_package(tmp_path / "sent", source, "extractor.py:Reads")
    (folder / "own.txt").write_text("mine")
    (tmp_path / "host").mkdir()
    (tmp_path / "host/other.txt").write_text("other")
    (tmp_path / "host/recordings").mkdir()
    (tmp_path / "host/recordings/label.txt").write_text("label")
    package = unpack(folder, tmp_path / "host/package")
    with ConfinedModel(package, allowed={"not-root"}) as confined:
        (frames,) = confined.extract([np.zeros(100, np.float32)])
    assert frames.values[0].tolist() == [4.0, -1.0, -1.0, -1.0, 1.0]
    assert {path.name for path in (tmp_path / "host").iterdir()} == {"other.txt", "recordings", "package"}


BOMBS = {
    "ConstantOfShape": ([node("ConstantOfShape", ["size"], ["y"])], {"size": np.array([1, 10**11], np.int64)}),
    "Tile": ([node("Tile", ["x", "repeats"], ["y"])], {"repeats": np.array([1, 10**8], np.int64)}),
    "Range": (
        [node("Range", ["start", "limit", "step"], ["y"])],
        {name: np.array(value, np.float32) for name, value in (("start", 0), ("limit", 1e12), ("step", 1))},
    ),
}


@pytest.mark.parametrize("operator", BOMBS)
def test_a_graph_that_fills_the_memory_meets_its_limit(operator: str, tmp_path: Path) -> None:
    nodes, weights = BOMBS[operator]
    folder = onnx_package(tmp_path / "a", output_layout=None)
    tiny_onnx.write(folder / "model.onnx", nodes, {"x": [1, "time"]}, {"y": [1, "frames"]}, weights)
    package = unpack(folder, tmp_path / "b")  # nothing in the file tells
    started = time.monotonic()
    with pytest.raises(ModelFault) as raised:
        ConfinedModel(package, limits=Limits(memory=2 << 30), allowed={"not-root"})
    assert raised.value.sentence == "Your model could not be opened."
    assert time.monotonic() - started < 20
