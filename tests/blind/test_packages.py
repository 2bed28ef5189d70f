"""Packages: what they say of themselves, and that a folder, a zip of it and what is unpacked are the same."""

from __future__ import annotations

import io
import json
import shutil
import stat
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from tests.blind.examples import code_package, onnx_package, write_manifest

from earmark.blind import packages
from earmark.blind.packages import Package, PackageRefused, archive, inspect, unpack
from earmark.errors import InputError


def problems_of(path: Path) -> tuple[str, ...]:
    with pytest.raises(PackageRefused) as refusal:
        inspect(path)
    assert all(problem.endswith((".", "?")) and "\n" not in problem for problem in refusal.value.problems)
    return refusal.value.problems


def test_a_package_says_what_it_is(tmp_path: Path) -> None:
    package = inspect(onnx_package(tmp_path / "a", pooling="MTF D7", distance="spearman", correction="icdm:k=20"))
    assert package.kind == "onnx"
    assert package.model == "model.onnx"
    assert package.entry == "tiny"
    assert package.system["licence"] == "MIT"
    assert (package.pooling, package.pca) == ("mean_time+mean_feature", 7)
    assert (package.distance, package.correction) == ("spearman", "icdm:k=20")
    assert package.setup["output_layout"] == ["batch", "feature", "time"]
    assert package.rate == 16000
    assert package.folder is None


def test_a_folder_its_zip_and_what_is_unpacked_are_one_package(tmp_path: Path) -> None:
    folder = code_package(tmp_path / "a", options={"size": 128})
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__/extractor.cpython-311.pyc").write_bytes(b"compiled")
    packed = archive(folder, tmp_path / "a.zip")
    again = archive(folder, tmp_path / "b.zip")
    assert packed.read_bytes() == again.read_bytes()
    package = unpack(packed, tmp_path / "c")
    assert package.digest == inspect(folder).digest == inspect(packed).digest == inspect(tmp_path / "c").digest
    assert package.files == ("extractor.py", "submission.yaml")
    assert package.folder == str(tmp_path / "c")
    for name in package.files:
        assert (tmp_path / "c" / name).read_bytes() == (folder / name).read_bytes()
        assert not stat.S_IMODE((tmp_path / "c" / name).stat().st_mode) & 0o111


def test_a_zip_of_the_folder_itself_is_taken(tmp_path: Path) -> None:
    folder = code_package(tmp_path / "mine")
    with zipfile.ZipFile(tmp_path / "mine.zip", "w") as made:
        made.mkdir("mine")
        for name in ("extractor.py", "submission.yaml"):
            made.write(folder / name, f"mine/{name}")
        made.writestr("__MACOSX/mine/._extractor.py", b"\0\5\x16\7")
    assert inspect(tmp_path / "mine.zip").digest == inspect(folder).digest


class Unseekable(io.RawIOBase):
    """As a pipe: what writes a zip into it puts sizes behind the files."""

    def __init__(self) -> None:
        self.data = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.data += data
        return len(data)


def test_zips_of_usual_tools_are_taken(tmp_path: Path) -> None:
    folder = code_package(tmp_path / "mine")
    (folder / "parts").mkdir()
    (folder / "parts/größe.py").write_text("")
    wanted = inspect(folder).digest
    made = [Path(shutil.make_archive(str(tmp_path / "a"), "zip", folder))]
    made.append(Path(shutil.make_archive(str(tmp_path / "b"), "zip", tmp_path, "mine")))
    stream = Unseekable()
    with zipfile.ZipFile(stream, "w") as piped:  # type: ignore[arg-type]
        for path in sorted(folder.rglob("*")):
            piped.write(path, path.relative_to(folder))
    made.append(tmp_path / "c.zip")
    made[-1].write_bytes(stream.data)
    assert [inspect(path).digest for path in made] == [wanted] * 3


def test_the_digest_follows_names_and_contents(tmp_path: Path) -> None:
    folder = code_package(tmp_path / "a")
    first = inspect(folder).digest
    (folder / "notes.txt").write_text("a")
    second = inspect(folder).digest
    (folder / "notes.txt").rename(folder / "note.txt")
    assert len({first, second, inspect(folder).digest}) == 3


def test_looking_imports_no_framework_and_runs_nothing(tmp_path: Path) -> None:
    folder = code_package(tmp_path / "a", "raise SystemExit('it was run')\n")
    script = (
        "import sys; from earmark.blind.packages import inspect, unpack\n"
        f"inspect({str(folder)!r}); unpack({str(folder)!r}, {str(tmp_path / 'b')!r})\n"
        "print([name for name in ('torch', 'onnxruntime', 'transformers', 'onnx') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_looking_ends_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "LOOKING_SECONDS", -1.0)
    assert "takes more than" in problems_of(code_package(tmp_path / "a"))[0]


def test_a_package_is_not_unpacked_over_something(tmp_path: Path) -> None:
    folder = code_package(tmp_path / "a")
    with pytest.raises(InputError, match="not empty"):
        unpack(folder, folder)
    with pytest.raises(InputError, match="does not exist"):
        inspect(tmp_path / "nothing")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"format": 2}, "format: 1"),
        ({"kind": "pickle"}, "onnx, safetensors or code"),
        ({"model": None}, "which file is the model"),
        ({"model": "extractor.py"}, "extractor.py:MyModel"),
        ({"model": "../extractor.py:A"}, "no file"),
        ({"model": "other.py:A"}, "no file"),
        ({"model": "extractor.py:a.b"}, "extractor.py:MyModel"),
        ({"pooling": "mean_tim"}, "mean_time"),
        ({"pooling": "MTF D10", "pca": 5}, "give one of them"),
        ({"pca": 0}, "at least 1"),
        ({"pca": True}, "at least 1"),
        ({"pca": 10**9}, "too many"),
        ({"distance": "cosin"}, "cosine"),
        ({"distance": ["cosine"]}, "one of"),
        ({"correction": "cls"}, "csls"),
        ({"correction": "icdm:k=5,iterations=1000000000"}, "at most"),
        ({"system": {"name": "cafe\u0301"}}, "plain line"),
        ({"rate": 3}, "from 1000"),
        ({"rate": 400_000}, "to 96000"),
        ({"rate": "16k"}, "whole number"),
        ({"architecture": "wavlm"}, "leave it out"),
        ({"front_end": {"mels": 64}}, "leave it out"),
        ({"options": {"weights": "/etc/passwd"}}, "names a path"),
        ({"options": ["a"]}, "name: value"),
        ({"options": {"a": [1]}}, "plain name"),
        ({"poling": "mean_time"}, 'Did you mean "pooling"'),
        ({"system": None}, "name"),
        ({"system": {"name": "a", "licens": "MIT"}}, "licence"),
        ({"system": {"name": "a" * 100}}, "at most"),
        ({"system": {"name": "a\nb"}}, "one plain line"),
        ({"system": {"name": "a", "kind": "codec"}}, "representation"),
        ({"system": {"name": "=poison"}}, "formula"),
        ({"system": {"name": "@poison"}}, "formula"),
        ({"system": {"name": "a", "url": "javascript:alert(1)"}}, "url"),
        ({"system": {"name": "a", "details": {"x": float("nan")}}}, "finite"),
        ({"system": {"name": "a", "details": {"x": [float("inf")]}}}, "finite"),
        ({"system": {"name": "a", "details": {"x": 10**400}}}, "finite"),
        ({"system": {"name": "a", "parameters_m": -1}}, "not possible"),
    ],
)
def test_what_a_manifest_may_not_say_is_told(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    (problem, *_) = problems_of(code_package(tmp_path / "a", **changes))
    assert words in problem


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model": "model.txt"}, "no file"),
        ({"front_end": {"mel": 64}}, "mels"),
        ({"front_end": {"rate": 10**9}}, "states another"),
        ({"layout": ["batch", "tims"]}, "layout"),
        ({"seconds": -1}, "positive"),
        ({"seconds": "long"}, "cannot be set up"),
        ({"options": {"layer": 3}}, "leave it out"),
        ({"card": {"name": "a"}}, "unknown key"),
    ],
)
def test_what_a_manifest_of_an_onnx_file_may_not_say_is_told(
    tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    (problem, *_) = problems_of(onnx_package(tmp_path / "a", **changes))
    assert words in problem


def test_a_description_beside_the_model_is_not_read_behind_the_manifest(tmp_path: Path) -> None:
    folder = onnx_package(tmp_path / "a")
    (folder / "model.yaml").write_text("rate: 8000\n")
    assert "belong into submission.yaml" in problems_of(folder)[0]


def test_several_problems_are_all_told(tmp_path: Path) -> None:
    problems = problems_of(code_package(tmp_path / "a", format=3, distance="x", pooling="y"))
    assert len(problems) == 3


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"a: [", "cannot be read"),
        (b"- a\n- b\n", "key: value"),
        (b"", "key: value"),
        (b"\xff\xfe", "UTF-8"),
        (b"format: 010\n", "plain number"),
        (b"a: &x [1]\nb: *x\n", "repeat"),
        (b"[" * 5000, "nested"),
        (b"a: !!python/object/apply:os.system [ls]\n", "cannot be read"),
        (b"#" * 100_000, "64,000"),
    ],
)
def test_a_strange_manifest_is_one_sentence(tmp_path: Path, text: bytes, words: str) -> None:
    (tmp_path / "submission.yaml").write_bytes(text)
    assert words in problems_of(tmp_path)[0]


def test_a_package_without_a_manifest_is_told_how_to_begin(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("")
    assert "earmark blind new" in problems_of(tmp_path)[0]


def weights_package(folder: Path, **changes: Any) -> Path:
    """Weights that no model fits: looking at a package does not open it."""
    write_manifest(folder, **{"kind": "safetensors", "model": "w", "architecture": "wavlm", **changes})
    (folder / "w").mkdir()
    header = json.dumps({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    (folder / "w/model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
    (folder / "w/config.json").write_text("{}")
    return folder


def test_weights_of_an_architecture_that_earmark_knows_are_a_package(tmp_path: Path) -> None:
    package: Package = inspect(weights_package(tmp_path / "a", options={"layer": 2}))
    assert (package.architecture, package.model, package.options) == ("wavlm", "w", {"layer": 2})
    named = inspect(weights_package(tmp_path / "b", model="w/model.safetensors"))
    assert named.model == "w"
    assert inspect(weights_package(tmp_path / "c", architecture="encodec_codes")).pooling == "flatten"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"architecture": None}, "name the architecture"),
        ({"architecture": "wavln"}, 'Did you mean "wavlm"'),
        ({"architecture": "vae"}, "learns from the sounds"),
        ({"architecture": "logmel"}, "knows no architecture"),
        ({"model": "v"}, "no .safetensors file"),
        ({"model": "../w"}, "no .safetensors file"),
        ({"options": {"allow_pickle": True}}, "host's to decide"),
        ({"options": {"device": "cuda"}}, "host's to decide"),
        ({"rate": 8000}, "leave it out"),
    ],
)
def test_what_a_manifest_of_weights_may_not_say_is_told(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    assert words in problems_of(weights_package(tmp_path / "a", **changes))[0]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("config.json", '{"auto_map": {"AutoModel": "evil.Model"}}', "auto_map"),
        ("config.json", "{", "readable JSON"),
        ("config.json", "[" * 100_000, "readable JSON"),
        ("model.safetensors.index.json", '{"weight_map": {"a": "../../etc/passwd"}}', "does not lie beside it"),
        ("model.safetensors.index.json", '{"weight_map": {"a": "model-2.safetensors"}}', "does not lie beside it"),
        ("model.safetensors.index.json", "{}", "does not lie beside it"),
    ],
)
def test_what_lies_beside_weights_is_read_too(tmp_path: Path, name: str, text: str, words: str) -> None:
    folder = weights_package(tmp_path / "a")
    (folder / "w" / name).write_text(text)
    assert words in problems_of(folder)[0]
