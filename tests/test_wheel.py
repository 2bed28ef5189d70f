"""The wheel holds everything that the package reads, says the truth about itself, and starts where it is installed."""

from __future__ import annotations

import email
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email.message import Message
from pathlib import Path

import pytest

from earmark._version import __version__

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "src" / "earmark"
NEEDED = ("src", "README.md", "LICENSE", "pyproject.toml", "CHANGELOG.md", "CITATION.cff", "constraints.txt")
if not SOURCES.is_dir():  # the tests of an installed package lie beside no sources
    pytest.skip("the sources are not here", allow_module_level=True)
pytest.importorskip("hatchling")


def build(folder: Path, into: Path, kind: str) -> Path:
    """The archive that a folder of sources builds, with what is installed here alone."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(into)]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    (made,) = into.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return made


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what is in the repository, without what was built or left there."""
    folder = tmp_path_factory.mktemp("tree")
    ignored = shutil.ignore_patterns("__pycache__")
    for name in NEEDED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=ignored)
        else:
            shutil.copy(source, folder / name)
    return folder


@pytest.fixture(scope="module")
def wheel(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tree, tmp_path_factory.mktemp("wheel"), "wheel")


@pytest.fixture(scope="module")
def archive(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tree, tmp_path_factory.mktemp("archive"), "sdist")


def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as file:
        (name,) = [name for name in file.namelist() if name.endswith(".dist-info/METADATA")]
        return email.message_from_bytes(file.read(name))


def test_every_file_of_the_package_is_in_the_wheel(wheel: Path) -> None:
    wanted = {
        f"earmark/{path.relative_to(SOURCES).as_posix()}"
        for path in SOURCES.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    with zipfile.ZipFile(wheel) as file:
        names = set(file.namelist())
    assert {name for name in names if ".dist-info/" not in name} == wanted
    for ending in (".html", ".css", ".js", ".mako", ".csv", ".yaml", "py.typed"):
        assert any(name.endswith(ending) for name in wanted)


def test_the_metadata_is_true(wheel: Path) -> None:
    about = metadata(wheel)
    assert (about["Name"], about["Version"]) == ("earmark", __version__)
    assert (about["License-Expression"], about["Requires-Python"]) == ("Apache-2.0", ">=3.11")
    versions = {line.rsplit(" ", 1)[1] for line in about.get_all("Classifier", []) if "Python :: 3." in line}
    assert versions == {"3.11", "3.12", "3.13"}
    assert not any("License ::" in line for line in about.get_all("Classifier", []))  # the expression says it
    extras = set(about.get_all("Provides-Extra", []))
    named = {word for line in about.get_all("Requires-Dist", []) for word in re.findall(r"extra == '([\w-]+)'", line)}
    assert named <= extras
    core = [line for line in about.get_all("Requires-Dist", []) if "extra ==" not in line]
    assert len(core) < 15  # the core stays light
    assert not any(name in line for line in core for name in ("torch", "mlflow", "wandb", "matplotlib"))


def test_the_readme_has_what_a_package_page_can_show(wheel: Path) -> None:
    about = metadata(wheel)
    assert about["Description-Content-Type"] == "text/markdown"
    assert str(about.get_payload()).lstrip().startswith("#")


def test_every_extra_that_a_message_names_exists(wheel: Path) -> None:
    extras = set(metadata(wheel).get_all("Provides-Extra", []))
    pattern = re.compile(r"earmark\[([\w,-]+)\]")
    pages = [*SOURCES.rglob("*.py"), *(ROOT / "docs").glob("*.md"), ROOT / "README.md"]
    named = {name for page in pages for group in pattern.findall(page.read_text("utf-8")) for name in group.split(",")}
    pages_named = re.compile(r"pip install ['\"]?\.\[([\w,-]+)\]")
    for page in (ROOT / "docs").glob("*.md"):
        named |= {name for group in pages_named.findall(page.read_text("utf-8")) for name in group.split(",")}
    assert named - extras - {"NAME", "EXTRA"} == set()


def test_the_archive_builds_the_same_wheel(archive: Path, wheel: Path, tmp_path: Path) -> None:
    with tarfile.open(archive) as file:
        file.extractall(tmp_path, filter="data")
    (folder,) = [path for path in tmp_path.iterdir() if path.is_dir()]
    again = build(folder, tmp_path / "again", "wheel")
    with zipfile.ZipFile(wheel) as first, zipfile.ZipFile(again) as second:
        assert {name: first.getinfo(name).CRC for name in first.namelist()} == {
            name: second.getinfo(name).CRC for name in second.namelist()
        }
    assert (folder / "CITATION.cff").is_file()


def test_the_wheel_starts_where_it_is_unpacked(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as file:
        file.extractall(tmp_path / "site")
    place = {**os.environ, "PYTHONPATH": str(tmp_path / "site"), "PYTHONDONTWRITEBYTECODE": "1"}
    code = (
        "import earmark, sys; from earmark.cli import main;"
        "from earmark.definitions import paper_boards; paper_boards();"
        f"assert earmark.__file__.startswith({str(tmp_path)!r}), earmark.__file__;"
        "sys.exit(main(['published', 'list']) or main(['fidelity', 'recipes']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=place, capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stderr
    assert "vocsim" in done.stdout.lower()
