"""A stranger's code that ends the program (sys.exit) fails at what it was asked for, and the run goes on."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import earmark
from earmark.corpora.clips import Clip
from earmark.corpora.source import open_corpus
from earmark.errors import Ended, InputError, no_exit
from earmark.extractors.catalogue import open_extractor
from earmark.generated.sanity.columns import own_values
from earmark.runs.pool import Pool, ProcessPool

SAID = "it ended the program (exit status 3)"


def leave(batch: Sequence[int]) -> list[int]:
    """A worker that does not survive a 3."""
    if 3 in batch:
        sys.exit(3)
    return [2 * item for item in batch]


@pytest.mark.parametrize(
    ("given", "said"),
    [(3, "3"), (None, "0"), (0, "0"), ("no\n weights", "1: no weights"), (-1, "-1"), (object(), "1: <object object")],
)
def test_the_reason_says_the_status(given: Any, said: str) -> None:
    with pytest.raises(Ended) as found, no_exit():
        sys.exit(given)
    assert str(found.value).startswith(f"it ended the program (exit status {said}")


def test_an_interrupt_is_one() -> None:
    with pytest.raises(KeyboardInterrupt), no_exit():
        raise KeyboardInterrupt


@pytest.mark.parametrize(("kind", "limit"), [(Pool, None), (Pool, 60.0), (ProcessPool, 60.0)])
def test_every_pool_loses_the_item_alone(kind: Any, limit: float | None) -> None:
    with kind(leave, 1, limit=limit) as pool:
        answers = [answer for batch in pool.map([[1, 2], [3, 4]]) for answer in batch]
    assert [(item, str(answer)) for item, answer in answers] == [(1, "2"), (2, "4"), (3, SAID), (4, "8")]


def test_modules_and_functions_that_leave_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "leaving.py").write_text("import sys\nsys.exit(3)\n")
    (tmp_path / "later.py").write_text("import sys\ndef thing(**_):\n    sys.exit(3)\n")
    with pytest.raises(
        InputError, match=r"'leaving.py:Model' cannot be imported: it ended the program \(exit status 3\)"
    ):
        open_extractor("leaving.py:Model")
    with pytest.raises(InputError, match=r"later.py:thing cannot be made: it ended the program \(exit status 3\)"):
        open_extractor("later.py:thing")
    with pytest.raises(InputError, match=r"corpus later.py:thing cannot be opened: it ended the program"):
        open_corpus("later.py:thing")
    with pytest.raises(Ended, match="exit status 3"):
        Clip("a", make=lambda: sys.exit(3)).read()


def test_a_metric_that_leaves_is_a_failed_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "leavingmetric.py").write_text("import sys\ndef leaves(vectors):\n    sys.exit(3)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    vectors = np.random.default_rng(0).standard_normal((12, 3))
    found = earmark.evaluate(vectors, ["a", "b"] * 6, metrics=["P@1", "leavingmetric:leaves"])
    assert (found.row("leaves").status, found.row("leaves").reason) == ("failed", SAID)
    assert found.row("P@1").status == "ok"
    with pytest.raises(InputError, match=r"The metric 'mine' failed: it ended the program \(exit status 3\)\.$"):
        own_values("mine", lambda *_: sys.exit(3), np.zeros((2, 2)), np.zeros((2, 2)))
