"""Vectors and labels that are joined by names, by position with a remark, or not at all, on the command line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from earmark.cli import main

N = 24
NAMES = [f"wav/clip{i:02d}.wav" for i in range(N)]
KINDS = np.arange(N) % 2


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """x.npz with ids and groups; shuffled.csv names its clips, strange.csv names others, plain.txt none."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((N, 4)) + 20 * KINDS[:, None]
    birds = [f"bird{i // 4}" for i in range(N)]
    np.savez("x.npz", vectors=vectors, ids=NAMES, groups=birds)
    np.savez("y.npz", vectors=vectors * [1, 1, 1, 3], ids=NAMES, groups=birds)
    order = rng.permutation(N)
    rows = [f"{NAMES[i]},kind{KINDS[i]},{i // 2 % 3}" for i in order]
    Path("shuffled.csv").write_text("\n".join(["path,label,fold", *rows]) + "\n")
    rows = [f"sound{i:02d},kind{KINDS[i]},{i // 2 % 3}" for i in range(N)]
    Path("strange.csv").write_text("\n".join(["path,label,fold", *rows]) + "\n")
    Path("plain.txt").write_text("".join(f"kind{kind}\n" for kind in KINDS))


def call(capsys: pytest.CaptureFixture[str], words: Sequence[str]) -> tuple[list[dict[str, object]], str]:
    assert main([*words, "--json"]) == 0
    printed = capsys.readouterr()
    return json.loads(printed.out), printed.err


COMMANDS = {
    "evaluate": ["evaluate", "x.npz", "LABELS", "--metrics", "P@1"],
    "compare": ["compare", "x.npz", "y.npz", "LABELS", "--metrics", "P@1"],
    "classify": [
        "probe", "classify", "x.npz", "LABELS", "--classifier", "knn:k=3", "--no-selection", "--groups", "none",
    ],
    "linear": ["probe", "linear", "x.npz", "LABELS", "--groups", "none", "--folds", "3", "--C", "1"],
}  # fmt: skip


@pytest.mark.parametrize("name", [*COMMANDS])
def test_a_manifest_is_joined_by_its_paths_and_doubts_stand_in_every_row(
    capsys: pytest.CaptureFixture[str], name: str
) -> None:
    words = [[file if word == "LABELS" else word for word in COMMANDS[name]] for file in ("shuffled.csv", "plain.txt")]
    rows, said = call(capsys, words[0])
    assert 'joined by the column "path"' in said
    assert not any("by position" in str(row["reason"]) for row in rows)
    quiet, said = call(capsys, [*words[1], "--quiet"])
    assert said == ""
    assert all(
        "plain.txt has no ids; vectors and labels were joined by position" in str(row["reason"]) for row in quiet
    )
    assert [row["value"] for row in rows] == pytest.approx([row["value"] for row in quiet])
    if name != "compare":
        assert rows[0]["value"] == 1.0


def test_folds_come_through_the_same_join(capsys: pytest.CaptureFixture[str]) -> None:
    for file in ("shuffled.csv", "strange.csv"):  # in disorder with names; in order with other names
        words = ["probe", "linear", "x.npz", file, "--fold-column", "fold", "--C", "1", "--groups", "none"]
        assert main([*words, "--per-point", f"{file}.points.csv", "--quiet"]) == 0
    capsys.readouterr()
    assert Path("shuffled.csv.points.csv").read_text() == Path("strange.csv.points.csv").read_text()


def test_groups_of_the_vectors_can_be_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["evaluate", "x.npz", "shuffled.csv", "--metrics", "P@1", "--quiet"]
    assert [row["unit"] for row in call(capsys, words)[0]] == ["group"]
    assert [row["unit"] for row in call(capsys, [*words, "--groups", "none"])[0]] == ["clip"]
    leaking = ["probe", "classify", "x.npz", "shuffled.csv", "--fold-column", "fold", "--classifier", "knn:k=3"]
    assert main([*leaking, "--quiet"]) == 1
    said = capsys.readouterr().err
    for remedy in ("--kind group-stratified", "--allow-leaks", "--groups none"):
        assert remedy in said
    assert main([*leaking, "--groups", "none", "--quiet"]) == 0


def test_pairs_have_no_order(capsys: pytest.CaptureFixture[str]) -> None:
    vectors = np.load("x.npz")["vectors"]
    pairs = [f"{NAMES[i]},{NAMES[j]},{np.abs(vectors[i] - vectors[j]).sum()}" for j in range(N) for i in range(j)]
    Path("pairs.csv").write_text("\n".join(["a,b,distance", *pairs[::-1]]) + "\n")
    words = ["evaluate", "--distances", "pairs.csv", "--metrics", "P@1"]
    assert main([*words, "plain.txt"]) == 1
    assert "lists pairs by name, which have no order" in capsys.readouterr().err
    for more in (["shuffled.csv"], ["shuffled.csv", "--ids", "shuffled.csv"]):
        assert call(capsys, [*words, *more])[0][0]["value"] == 1.0
    Path("names.txt").write_text("\n".join(NAMES) + "\n")
    (row,), _ = call(capsys, [*words, "plain.txt", "--ids", "names.txt"])
    assert row["value"] == 1.0
    assert "joined by position" in str(row["reason"])
