"""Whatever a model reads is in its key: each kind of thing is changed, and the key changes then, and only then."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.extractors import tiny_onnx as onnx
from tests.representations import sounds

from earmark.codecs.cells import Confinement
from earmark.codecs.runs._systems import open_systems
from earmark.extractors.catalogue import CARDS, is_ready
from earmark.onnx_files import external_data
from earmark.pipeline import make_config
from earmark.representations import run
from earmark.representations._systems import Model, describe_model
from earmark.runs import identity as keys
from earmark.runs import opened_files as files
from earmark.runs import strangers as later
from earmark.runs.packs import Packer
from earmark.runs.store import Cache

BODY = """
    rate = 8000

    def extract(self, waveforms):
        return [np.outer(np.abs(one[:64]), self.weights).astype(np.float32) for one in waveforms]
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder that is the current one; modules from it are forgotten afterwards."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)
    before = set(sys.modules)
    yield folder
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


def model_of(spec: str, **parameters: Any) -> Model:
    entry = {"name": "model", "spec": spec, "parameters": parameters}
    return describe_model(make_config({"corpus": "synth:tiny", "extractors": [entry]}).extractors[0])


def identity(spec: str, **parameters: Any) -> str:
    return model_of(spec, **parameters).identity


def weights(place: Path, seed: int, count: int = 5) -> Path:
    np.save(place, np.random.default_rng(seed).random(count))
    return place


def replaced(place: Path, change: Callable[[], object]) -> None:
    """Change a file, and give it back its times: a file from a reproducible archive keeps them, and its size."""
    times = place.stat()
    change()
    os.utime(place, ns=(times.st_atime_ns, times.st_mtime_ns))


# --- files -----------------------------------------------------------------------------------------------------

OPENED = {
    "while it is made": "import numpy as np\nclass Mine:\n    def __init__(self):\n"
    "        self.weights = np.load('weig' + 'hts.npy')\n",
    "while its module is imported": "import numpy as np\nWEIGHTS = np.load('weig' + 'hts.npy')\n"
    "class Mine:\n    weights = WEIGHTS\n",
    "in a function that remembers": "import functools\nimport numpy as np\n@functools.cache\ndef load():\n"
    "    return np.load('weig' + 'hts.npy')\nclass Mine:\n    def __init__(self):\n        self.weights = load()\n",
    "by a relative path of its source": "from pathlib import Path\nimport numpy as np\nclass Mine:\n"
    "    def __init__(self):\n        self.weights = np.load(Path(__file__).parent / ('weig' + 'hts.npy'))\n",
}


@pytest.mark.parametrize("way", OPENED)
def test_a_file_that_a_model_opens_by_itself(project: Path, way: str) -> None:
    name = f"opens_{list(OPENED).index(way)}"
    (project / f"{name}.py").write_text(OPENED[way] + BODY)
    place = weights(project / "weights.npy", 1)
    weights(project / "others.npy", 1)
    first = model_of(f"{name}:Mine")
    assert [file for file, _ in first.reads.files] == ["weights.npy"]
    assert identity(f"{name}:Mine") == first.identity  # a second time in the same process
    weights(project / "others.npy", 2)
    assert identity(f"{name}:Mine") == first.identity
    replaced(place, lambda: weights(place, 2))
    sys.modules.pop(name)  # a second process
    assert identity(f"{name}:Mine") != first.identity


def test_two_models_that_share_a_remembered_file(project: Path) -> None:
    text = OPENED["in a function that remembers"].replace("class Mine:", "class One:") + BODY
    (project / "shared.py").write_text(text + "\n\nclass Other(One):\n    pass\n")
    weights(project / "weights.npy", 1)
    identity("shared:One")
    second = model_of("shared:Other")  # the file was opened for the first
    sys.modules.pop("shared")
    assert model_of("shared:Other").reads.files == second.reads.files != []


def test_two_models_of_one_module_keep_their_weights_apart(project: Path) -> None:
    head = (
        "import numpy as np\nclass Mine:\n    def __init__(self, seed):\n        self.weights = np.load(f'{seed}.npy')"
    )
    (project / "apart.py").write_text(f"{head}\n{BODY}")
    for seed in (1, 2):
        weights(project / f"{seed}.npy", seed)
    alone = identity("apart:Mine", seed=2)
    identity("apart:Mine", seed=1)
    weights(project / "1.npy", 3)
    assert identity("apart:Mine", seed=2) == alone


def test_what_a_model_writes_is_not_what_it_reads(project: Path) -> None:
    head = (
        "import numpy as np\nfrom pathlib import Path\nclass Mine:\n    weights = np.arange(5)\n"
        "    def __init__(self):\n        Path('log.txt').read_text()\n"
        "        with Path('log.txt').open('a') as log:\n            log.write('made')\n"
    )
    (project / "writes.py").write_text(head + BODY)
    (project / "log.txt").write_text("begun")
    assert identity("writes:Mine") == identity("writes:Mine")


def test_a_moved_project_keeps_its_keys(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "moved.py").write_text(OPENED["by a relative path of its source"] + BODY)
    weights(project / "weights.npy", 1)
    first = identity("moved:Mine")
    shutil.copytree(project, tmp_path / "elsewhere", copy_function=shutil.copy)
    monkeypatch.chdir(tmp_path / "elsewhere")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "elsewhere"), *sys.path])
    sys.modules.pop("moved")
    assert identity("moved:Mine") == first


def test_files_that_a_model_states(project: Path) -> None:
    head = "import numpy as np\nclass Mine:\n    weights = np.arange(5)\n    files = ['a.txt', 'deep']\n"
    (project / "states.py").write_text(head + BODY)
    (project / "deep").mkdir()
    for name in ("a.txt", "deep/b.txt"):
        (project / name).write_text("one")
        first = identity("states:Mine")
        (project / name).write_text("two")
        assert identity("states:Mine") != first


@pytest.mark.parametrize("held", ["self.place = place", "self.load = lambda: place", "self.all = {'w': [place]}"])
def test_weights_whose_name_a_model_holds_for_later(project: Path, held: str) -> None:
    head = (
        "import numpy as np\nclass Mine:\n    weights = np.arange(5)\n    def __init__(self, stem):\n"
        f"        place = f'{{stem}}.safetensors'\n        {held}\n"
    )
    (project / "holds.py").write_text(head + BODY)
    (project / "heavy.safetensors").write_bytes(b"one")
    first = identity("holds:Mine", stem="heavy")
    replaced(project / "heavy.safetensors", lambda: (project / "heavy.safetensors").write_bytes(b"two"))
    assert identity("holds:Mine", stem="heavy") != first


def test_weights_whose_name_stands_in_a_function(project: Path) -> None:
    head = (
        "import numpy as np\nclass Mine:\n    weights = np.arange(5)\n    def load(self):\n"
        "        return unseen(__file__, 'weights', 'network.onnx')\n"
    )
    (project / "spells.py").write_text(head + BODY)
    (project / "weights").mkdir()
    (project / "weights" / "network.onnx").write_bytes(b"one")
    first = identity("spells:Mine")
    (project / "weights" / "network.onnx").write_bytes(b"two")
    assert identity("spells:Mine") != first


def test_every_shard_of_a_checkpoint_folder(project: Path) -> None:
    (project / "takes.py").write_text(
        "import numpy as np\nclass Mine:\n    weights = np.arange(5)\n    def __init__(self, folder): pass\n" + BODY
    )
    folder = project / "checkpoint"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    shards = {f"layer{number}": f"model-0000{number}-of-00002.safetensors" for number in (1, 2)}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": shards}))
    for name in shards.values():
        (folder / name).write_bytes(b"one")
    for place in sorted(folder.iterdir()):
        first = identity("takes:Mine", folder=str(folder))
        assert identity("takes:Mine", folder=str(folder)) == first
        replaced(place, lambda place=place: place.write_bytes(place.read_bytes()[::-1] + b" "))
        assert identity("takes:Mine", folder=str(folder)) != first
    # The index alone leads to its shards too.
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": shards}))
    index = str(folder / "model.safetensors.index.json")
    first = identity("takes:Mine", folder=index)
    (folder / shards["layer2"]).write_bytes(b"other")
    assert identity("takes:Mine", folder=index) != first


def test_a_revision_of_the_hub_stands_for_weights_that_are_opened_unseen(project: Path) -> None:
    (project / "hubbed.py").write_text(
        "import numpy as np\nfrom pathlib import Path\nclass Mine:\n    weights = np.arange(5)\n"
        "    def __init__(self):\n        revision = Path('models--a--b/refs/main').read_text()\n"
        "        Path(f'models--a--b/snapshots/{revision}/config.json').read_text()\n" + BODY
    )
    hub = project / "models--a--b"
    blob = hub / "blobs" / ("0" * 40)
    for revision in ("one", "two"):
        (hub / "snapshots" / revision).mkdir(parents=True)
        blob.parent.mkdir(exist_ok=True)
        blob.write_text("{}")
        (hub / "snapshots" / revision / "config.json").symlink_to(blob)
    (hub / "refs").mkdir()
    (hub / "refs" / "main").write_text("one")
    first = model_of("hubbed:Mine")
    assert first.reads.files == [["one/config.json", "0" * 40]]
    (hub / "refs" / "main").write_text("two")
    assert identity("hubbed:Mine") != first.identity


def test_a_folder_too_large_to_be_read_counts_by_sizes_and_times(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "READ", 10)
    (project / "a.bin").write_bytes(b"123456")
    (project / "b.bin").write_bytes(b"123456")
    found = dict(files.digests([project / "a.bin", project / "b.bin"]))
    assert len(found["a.bin"]) == 64
    assert found["b.bin"].startswith("6 bytes of ")


def test_what_a_hear_module_opens_by_itself(project: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    (project / "my_hear.py").write_text(
        "import numpy as np\nimport torch\n\n\nclass Net(torch.nn.Module):\n    sample_rate = 8000\n"
        "    scene_embedding_size = 5\n\n\ndef load_model(path=''):\n    net = Net()\n"
        "    net.weights = torch.from_numpy(np.load('weig' + 'hts.npy')).float()\n    return net\n\n\n"
        "def get_scene_embeddings(audio, model):\n    return audio.abs().mean(1)[:, None] * model.weights\n"
    )
    place = weights(project / "weights.npy", 1)
    first = identity("hear:my_hear")
    assert identity("hear:my_hear") == first
    replaced(place, lambda: weights(place, 2))
    assert identity("hear:my_hear") != first


def test_a_torchscript_file_that_a_model_opens_by_itself(project: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")

    def save(value: float) -> None:
        module = torch.nn.Linear(1, 5)
        torch.nn.init.constant_(module.weight, value)
        torch.jit.script(module).save(str(project / "net.pt"))

    (project / "scripted.py").write_text(
        "import numpy as np\nimport torch\nclass Mine:\n    def __init__(self):\n"
        "        self.weights = torch.jit.load('net.pt').weight.detach().numpy().ravel()\n" + BODY
    )
    save(1.0)
    first = identity("scripted:Mine")
    save(2.0)
    assert identity("scripted:Mine") != first


# --- ONNX files ------------------------------------------------------------------------------------------------


def trained(path: Path, seed: int, places: dict[str, str]) -> Path:
    """A model of samples as an exporter leaves it: the graph is the same after every training."""
    kernels = np.random.default_rng(seed).standard_normal((4, 1, 64)).astype(np.float32)
    shifts = np.linspace(-0.1, 0.1, 4, dtype=np.float32)
    nodes = [
        onnx.node("Reshape", ["audio", "flat"], ["x"]),
        onnx.node("Conv", ["x", "kernels", "shifts"], ["y"], strides=[32]),
        onnx.node("Transpose", ["y"], ["frames"], perm=[0, 2, 1]),
    ]
    held = {"kernels": kernels, "shifts": shifts, "flat": np.array([1, 1, -1])}
    return onnx.write(path, nodes, {"audio": ["samples"]}, {"frames": [1, "time", 4]}, held, places)


BESIDE = {"kernels": "model.onnx.data"}
SPREAD = {"kernels": "parts/kernels.bin", "shifts": "shifts.bin"}


@pytest.mark.parametrize("places", [BESIDE, SPREAD])
def test_scores_follow_the_external_weights_of_an_onnx_file(project: Path, places: dict[str, str]) -> None:
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    corpus = sounds.make_folder(project / "sounds")
    model = trained(project / "model.onnx", 1, places)
    graph = model.read_bytes()

    def scores() -> tuple[list[Any], float]:
        entry = {"name": "mine", "spec": f"onnx:{model}", "parameters": {"rate": sounds.RATE}}
        done = run(sounds.config(corpus, project, extractors=[entry]))
        return [row.value for row in done.scores], done.counts["embed"]["computed"]

    first, computed = scores()
    assert computed == 18
    assert scores() == (first, 0)
    trained(model, 2, places)
    assert model.read_bytes() == graph
    second, computed = scores()
    assert computed == 18
    assert second != first
    trained(model, 1, places)
    assert scores() == (first, 0)


def test_each_external_file_counts(project: Path) -> None:
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    model = trained(project / "model.onnx", 1, SPREAD)
    for place in SPREAD.values():
        first = identity(f"onnx:{model}")
        assert identity(f"onnx:{model}") == first
        data = (project / place).read_bytes()
        (project / place).write_bytes(data[4:] + data[:4])
        assert identity(f"onnx:{model}") != first


def test_places_of_external_data_anywhere_in_a_model(tmp_path: Path) -> None:
    number, text, external = onnx.number, onnx.text, onnx.external
    values = np.zeros(3, np.float32)
    constant = text(5, text(1, "value") + text(5, external("c", values, "constant.bin")))
    branch = text(5, text(1, "then_branch") + text(6, text(5, external("b", values, "deep/branch.bin"))))
    sparse = text(15, text(1, external("s", values, "sparse.bin")))
    graph = text(1, text(4, "Constant") + constant) + text(1, text(4, "If") + branch) + sparse
    graph += text(5, external("w", values, "w.bin")) + text(5, external("v", values, "w.bin", 12))
    function = text(25, text(7, text(4, "Constant") + text(5, text(5, external("f", values, "function.bin")))))
    model = tmp_path / "model.onnx"
    model.write_bytes(number(1, 8) + text(7, graph) + function)
    names = ["constant.bin", "deep/branch.bin", "sparse.bin", "w.bin", "function.bin"]
    assert external_data(model) == [tmp_path / name for name in names]


@pytest.mark.parametrize("content", [b"", b"\xff" * 40, b"not a model at all", b"\x3a\xff\xff\xff\xff\x0f"])
def test_what_is_no_onnx_file_has_no_external_data(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "model.onnx").write_bytes(content)
    assert external_data(tmp_path / "model.onnx") == []


# --- packages --------------------------------------------------------------------------------------------------


def with_version(monkeypatch: pytest.MonkeyPatch, library: str) -> None:
    real = keys.version_of
    monkeypatch.setattr(keys, "version_of", lambda name: "99.0" if name == library else real(name))


@pytest.mark.parametrize("name", ["crepe", "resemblyzer"])
def test_a_model_that_reaches_torch_by_require_counts_its_version(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if not is_ready(CARDS[name]):
        pytest.skip(f"{name} cannot run here")
    first = identity(name)
    other = identity("logmel")
    with_version(monkeypatch, "torch")
    assert identity(name) != first
    assert identity("logmel") == other  # torch is loaded, and no part of it


def test_a_package_that_no_import_statement_names(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "dynamic.py").write_text(
        "import importlib\nimport numpy as np\nclass Mine:\n    weights = np.arange(5)\n    def __init__(self):\n"
        "        self.scaler = importlib.import_module('skle' + 'arn.preprocessing').StandardScaler()\n" + BODY
    )
    first = model_of("dynamic:Mine")
    assert "scikit-learn" in first.reads.libraries  # imported as sklearn
    assert "scipy" in first.reads.libraries  # which it requires
    with_version(monkeypatch, "scikit-learn")
    assert identity("dynamic:Mine") != first.identity


def test_a_module_of_ones_own_that_no_import_statement_names(project: Path) -> None:
    (project / "chooses.py").write_text(
        "import importlib\ndef make():\n    return importlib.import_module('cho' + 'sen').Mine()\n"
    )
    text = "import numpy as np\nclass Mine:\n    weights = np.arange(5)\n" + BODY
    (project / "chosen.py").write_text(text)
    first = identity("chooses:make")
    (project / "chosen.py").write_text(text.replace("arange(5)", "arange(6)"))
    keys.source_digest.cache_clear()
    sys.modules.pop("chosen")
    assert identity("chooses:make") != first


def test_other_models_of_a_run_change_nothing(project: Path) -> None:
    (project / "plain.py").write_text("import numpy as np\nclass Mine:\n    weights = np.arange(5)\n" + BODY)
    first = identity("plain:Mine")
    pytest.importorskip("sklearn")
    (project / "heavy.py").write_text(
        "import sklearn\nimport numpy as np\nclass Mine:\n    weights = np.ones(5)\n" + BODY
    )
    identity("heavy:Mine")
    assert identity("plain:Mine") == first


# --- files that are opened once sound is heard -----------------------------------------------------------------

LAZY = (
    "import numpy as np\nclass Mine:\n    rate = 8000\n    loaded = None\n    def extract(self, waveforms):\n"
    "        if self.loaded is None:\n            self.loaded = np.load('weig' + 'hts.npy')\n"
    "        return [np.abs(np.fft.rfft(one, 64))[:5] * self.loaded for one in waveforms]\n"
)


def test_a_file_opened_at_the_first_sound_is_found_by_the_next_run(project: Path) -> None:
    (project / "lazy.py").write_text(LAZY)
    corpus = sounds.make_folder(project / "sounds")
    place = weights(project / "weights.npy", 1)

    def scores() -> tuple[list[Any], float]:
        entry = {"name": "lazy", "spec": "lazy:Mine"}
        done = run(sounds.config(corpus, project, extractors=[entry], distances=["euclidean"]))
        return [row.value for row in done.scores], done.counts["embed"]["computed"]

    first, computed = scores()
    assert computed == 18
    assert scores() == (first, 0)
    replaced(place, lambda: weights(place, 2))
    second, computed = scores()
    assert computed == 18
    assert second != first
    assert scores() == (second, 0)
    weights(place, 3)
    assert scores()[1] == 18
    weights(place, 2)
    assert scores() == (second, 0)
    weights(place, 1)
    assert scores() == (first, 0)  # as at first


def test_a_killed_run_leaves_no_vectors_without_what_they_rest_on(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "lazy.py").write_text(LAZY)
    corpus = sounds.make_folder(project / "sounds")
    weights(project / "weights.npy", 1)

    def killed(packer: Packer) -> None:
        assert list((project / "cache" / later.LATER_KIND).glob("*.entry"))
        raise KeyboardInterrupt

    monkeypatch.setattr(Packer, "flush", killed)
    with pytest.raises(KeyboardInterrupt):
        run(sounds.config(corpus, project, extractors=[{"name": "lazy", "spec": "lazy:Mine"}]))


def test_sounds_that_are_decoded_are_no_files_of_the_model(project: Path) -> None:
    corpus = sounds.make_folder(project / "sounds")
    run(sounds.config(corpus, project))
    assert not (project / "cache" / later.LATER_KIND).exists()


# --- codecs ----------------------------------------------------------------------------------------------------


def test_a_file_that_a_codec_opens_by_itself(project: Path) -> None:
    (project / "coder.py").write_text(
        "import numpy as np\nfrom tests.representations.codec_toys import Sixteen\n\n\nclass Mine(Sixteen):\n"
        "    def __init__(self):\n        super().__init__()\n        self.weights = np.load('weig' + 'hts.npy')\n"
    )
    place = weights(project / "weights.npy", 1)
    first = open_systems(["coder:Mine"], Cache(str(project / "cache")), Confinement())[0][0].key
    assert open_systems(["coder:Mine"], Cache(str(project / "cache")), Confinement())[0][0].key == first
    replaced(place, lambda: weights(place, 2))
    assert open_systems(["coder:Mine"], Cache(str(project / "cache")), Confinement())[0][0].key != first
