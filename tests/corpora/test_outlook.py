"""What is said of a corpus before a run, and that a run agrees."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import earmark
from earmark import audio
from earmark.cli import main
from earmark.corpora.clips import Clip, Corpus, CorpusCard
from earmark.corpora.outlook import Outlook, outlooks
from earmark.errors import EarmarkError


def outlook(*clips: tuple[str | None, str | None], path: str = "") -> Outlook:
    listed = [
        Clip(f"{k}", label=label, group=group, path=path or f"{k}.wav", start=float(k) if path else None)
        for k, (label, group) in enumerate(clips)
    ]
    (found,) = outlooks(Corpus(CorpusCard("x"), listed))
    return found


@pytest.mark.parametrize(
    ("clips", "among_all", "across"),
    [
        ([(None, None)] * 3, False, False),
        ([("a", "1")] * 3, False, False),
        ([("a", "1"), ("a", "2"), ("b", "1")], False, False),
        ([("a", None), ("b", None)], False, False),
        ([("a", "1"), ("a", "2"), ("b", "1"), ("b", "2")], True, True),
        ([("a", "1"), ("a", "1"), ("b", "2"), ("b", "2")], True, False),
        ([("a", "1"), ("a", "1"), ("b", "1"), ("b", "1")], True, False),
        ([("a", None), ("a", None), ("b", None), ("b", None)], True, False),
        ([("a", "1"), ("a", "2"), ("b", "1"), ("b", "1"), ("c", None)], True, True),
    ],
)
def test_the_outlook_says_what_evaluate_does(
    clips: list[tuple[str | None, str | None]], among_all: bool, across: bool
) -> None:
    found = outlook(*clips)
    assert (found.all.possible, found.across_groups.possible) == (among_all, across)
    vectors = np.random.default_rng(0).normal(size=(len(clips), 4))
    labels, groups = [label for label, _ in clips], [group for _, group in clips]
    for possible, options in ((among_all, {}), (across, {"across_groups": True})):
        try:
            rows = earmark.evaluate(vectors, labels, groups=groups, metrics="P@1", permutations=0, **options)
            wanted = [row for row in rows if (row.protocol == "across_groups") == bool(options)]
            measured = any(row.value is not None for row in wanted)
        except EarmarkError:
            measured = False
        assert measured == possible


def test_hints() -> None:
    assert "have no group" in outlook(("a", None), ("a", None), ("b", None), ("b", None), path="tape.wav").hints[-1]
    assert "label of its own" in outlook(("a", None), ("b", None), ("c", None)).hints[0]
    assert "'wren;owl'" in outlook(("wren", "1"), ("wren", "2"), ("owl", "1"), ("wren;owl", "2")).hints[1]
    assert not any("several" in hint for hint in outlook(("dog, small", "1"), ("cat", "1")).hints)
    assert "1 class of fewer than 2 clips" in outlook(("a", "1"), ("a", "1"), ("b", "1")).hints[0]
    assert "group of its own" in outlook(("a", "1"), ("a", "2")).hints[-1]
    assert "--labels-from" in outlook(("a", None), ("a", None), ("b", None), ("b", None)).hints[-1]


def test_labels_that_are_of_one_group_are_named() -> None:
    """A score among all clips would then be as high for a model that hears the speaker alone."""
    confined = outlook(("a", "1"), ("a", "1"), ("b", "2"), ("b", "2"), ("c", "3")).hints[-1]
    assert confined.startswith("all clips of 2 classes are of one group (a, b): ")
    partly = outlook(("a", "1"), ("a", "2"), ("b", "1"), ("b", "1")).hints
    assert [hint.partition(":")[0] for hint in partly] == ["all clips of 1 class are of one group (b)"]
    assert not outlook(("a", "1"), ("a", "2"), ("b", "1"), ("b", "2")).hints
    assert not outlook(("a", "1"), ("a", "1"), ("b", "1"), ("b", "1")).hints


def test_clips_that_cannot_be_read_count_nowhere() -> None:
    clips = [Clip(f"{k}", label="ab"[k % 2], path=f"{k}.wav") for k in range(4)]
    (found,) = outlooks(Corpus(CorpusCard("x"), clips), unreadable=["1"])
    assert (found.clips, found.labels, found.all.possible) == (3, {"a": 2, "b": 1}, False)


def test_describe_says_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(8):
        name = f"{'wren' if number % 2 else 'owl'}_{number}.wav"
        audio.write(tmp_path / name, 0.3 * np.sin(np.arange(1600) * (0.05 + 0.01 * number)), 16_000)
    assert main(["corpus", "describe", str(tmp_path), "--no-dri", "--json", "--quiet"]) == 0
    held = json.loads(capsys.readouterr().out)
    (found,) = held["outlook"]
    assert (found["unlabelled"], found["all"]["possible"]) == (8, False)
    assert found["hints"] == ["--labels-from '{label}_{take}.wav' would give 2 labels (owl, wren)"]
    words = ["--labels-from", "{label}_{take}.wav", "--no-dri", "--quiet"]
    assert main(["corpus", "describe", str(tmp_path), *words]) == 0
    said = capsys.readouterr().out
    assert "labels: 2 (owl: 4, wren: 4)" in said
    assert "measured across groups: no, no clip has a group" in said
