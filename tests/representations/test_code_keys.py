"""A cache that lies is worse than none: whatever a model's answers depend on must be in the name of its vectors."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

MODEL = """
import numpy as np
{before}


class Model:
    rate = 16000

    def __init__(self, weights=None):
        self.weights = weights

    def extract(self, waveforms):
        {inside}
        return [np.full((1, 2), factor(), np.float32) for _ in waveforms]


def build():
    return Model()
"""
PREPARED = """
import json, os, sys
from earmark.pipeline import make_config
from earmark.representations._systems import describe_model
for line in sys.stdin:
    folder, name, parameters = json.loads(line)
    if os.fork() == 0:
        os.chdir(folder)
        model = make_config({"corpus": "synth:tiny", "extractors": [{"name": name, "parameters": parameters}]})
        print(describe_model(model.extractors[0]).identity, flush=True)
        os._exit(0)
    if os.wait()[1]:
        print("failed", flush=True)
"""
Identity = Callable[..., str]


@pytest.fixture(scope="module")
def identity() -> Iterator[Identity]:
    """Tells the name of a model's vectors as a second run would: by a process that imported nothing of its user."""
    command = [sys.executable, "-B", "-c", PREPARED]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def told(folder: Path, spec: str, *weights: str) -> str:
            parameters = dict(zip(("weights",), weights, strict=False))
            print(json.dumps([str(folder), spec, parameters]), file=process.stdin, flush=True)
            said = process.stdout.readline().strip()
            assert re.fullmatch("[0-9a-f]{64}", said), said
            return said

        yield told
        process.stdin.close()


def write_package(folder: Path, *, lazy: bool) -> None:
    line = "from mine.dsp import factor"
    text = MODEL.format(before="" if lazy else line, inside=line if lazy else "pass")
    (folder / "mine").mkdir()
    (folder / "mine" / "__init__.py").write_text("")
    (folder / "mine" / "model.py").write_text(text)
    (folder / "mine" / "dsp.py").write_text("def factor():\n    return 1.0\n")


@pytest.mark.parametrize("lazy", [False, True])
def test_an_edit_of_a_module_it_imports_is_noticed(tmp_path: Path, identity: Identity, lazy: bool) -> None:
    write_package(tmp_path, lazy=lazy)
    first = identity(tmp_path, "mine.model:Model")
    (tmp_path / "mine" / "dsp.py").write_text('def factor():\n    """Documented."""\n    return 1.0  # said\n')
    assert identity(tmp_path, "mine.model:Model") == first  # words are not code
    (tmp_path / "mine" / "dsp.py").write_text("def factor():\n    return 2.0\n")
    assert identity(tmp_path, "mine.model:Model") != first


def test_an_edit_of_a_module_beside_it_is_noticed(tmp_path: Path, identity: Identity) -> None:
    (tmp_path / "mymodel.py").write_text(MODEL.format(before="from beside import factor", inside="pass"))
    (tmp_path / "beside.py").write_text("def factor():\n    return 1.0\n")
    first = identity(tmp_path, "mymodel:Model")
    (tmp_path / "beside.py").write_text("def factor():\n    return 2.0\n")
    assert identity(tmp_path, "mymodel:Model") != first


def test_an_edit_of_a_function_that_builds_it_is_noticed(tmp_path: Path, identity: Identity) -> None:
    (tmp_path / "built.py").write_text(MODEL.format(before="factor = lambda: 1.0", inside="pass"))
    (tmp_path / "factory.py").write_text("import built\n\n\ndef make():\n    return built.Model()\n")
    first = identity(tmp_path, "factory:make")
    (tmp_path / "factory.py").write_text("import built\n\n\ndef make():\n    return built.Model(weights=3)\n")
    assert identity(tmp_path, "factory:make") != first


def test_weights_changed_in_place_are_noticed(tmp_path: Path, identity: Identity) -> None:
    (tmp_path / "mymodel.py").write_text(MODEL.format(before="factor = lambda: 1.0", inside="pass"))
    (tmp_path / "weights.bin").write_bytes(b"one")
    first = identity(tmp_path, "mymodel:Model", "weights.bin")
    assert identity(tmp_path, "mymodel:Model", "weights.bin") == first
    (tmp_path / "weights.bin").write_bytes(b"two")
    assert identity(tmp_path, "mymodel:Model", "weights.bin") != first
