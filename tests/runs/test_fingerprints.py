"""Keys are made of stated versions: no stage changes its numbers unseen, and words compute nothing anew."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.runs.fingerprints import KEPT, PACKAGE, STAGES, changed, fingerprints

from earmark.runs import identity
from earmark.runs.identity import Stage, code_fingerprint


def test_no_stage_changed_without_a_raised_version() -> None:
    assert changed(json.loads(KEPT.read_text()), fingerprints()) == []


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package that may be edited."""
    package = tmp_path_factory.mktemp("tree") / "earmark"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__", "*.csv", "*.json"))
    return package


def edit(path: Path, before: str, after: str) -> None:
    text = path.read_text()
    assert before in text, f"{path.name} no longer says {before!r}"
    path.write_text(text.replace(before, after))


def differing(package: Path) -> list[str]:
    kept = fingerprints()
    return [sentence.split(" changed")[0] for sentence in changed(kept, fingerprints(package))]


def test_a_licence_and_a_reworded_error_change_nothing(tree: Path) -> None:
    edit(tree / "codecs" / "classical" / "cards.py", "BSD-3-Clause (libopus)", "Apache-2.0")
    edit(tree / "audio.py", "check the path", "please look at the path")
    assert differing(tree) == []


def test_a_changed_number_is_noticed_where_it_stands_and_nowhere_else(tree: Path) -> None:
    before = (tree / "codecs" / "tandem.py").read_text()
    (tree / "codecs" / "tandem.py").write_text(before + "\n_MORE = 3\n")
    assert differing(tree) == ["measure"]
    (tree / "codecs" / "tandem.py").write_text(before)
    codec2 = tree / "codecs" / "classical" / "codec2.py"
    codec2.write_text(codec2.read_text() + "\n_MORE = 3\n")
    assert differing(tree) == ["codecs/classical/codec2.py"]


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ('def f(x):\n    """One."""\n    return x', 'def f(x: int) -> int:\n    """Two."""\n    return x', True),
        ('raise ValueError("one")', 'raise ValueError("two", 3)', True),
        ('Card(name="a", licence="MIT")', 'Card(name="a", licence="BSD")', True),
        ('Card(name="a", rate=8000)', 'Card(name="a", rate=16000)', False),
        ('log("a b")', 'log("c d")', True),
        ('mode("linear")', 'mode("cubic")', False),
        ("y = x + 1", "y = x + 2", False),
        ("import a", "import b", True),
    ],
)
def test_what_counts_as_a_change(before: str, after: str, same: bool) -> None:
    assert (code_fingerprint(before) == code_fingerprint(after)) is same


def test_a_key_follows_the_version_and_the_libraries_of_its_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage("embed", 1, libraries=("numpy",))
    first = stage.key("logmel")
    assert Stage("embed", 1, libraries=("numpy",), modules=("audio.py",)).key("logmel") == first
    assert Stage("embed", 2, libraries=("numpy",)).key("logmel") != first
    monkeypatch.setattr(identity, "version_of", lambda name: "99")
    assert stage.key("logmel") != first


def test_every_module_that_a_stage_names_is_there() -> None:
    named = [(stage.name, pattern) for stage in STAGES for pattern in stage.modules]
    assert [pair for pair in named if not list(PACKAGE.glob(pair[1]))] == []
