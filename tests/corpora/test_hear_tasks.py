"""Tasks of the HEAR benchmark, from folders as its tools write them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from earmark.corpora.hear_tasks import read_task
from earmark.corpora.source import open_corpus
from earmark.errors import InputError

FOLDS = {
    "fold00": {"b.wav": ["gong"], "a.wav": ["drum"]},
    "fold01": {"c.wav": ["gong"]},
    "fold02": {"d.wav": ["drum"]},
}


def write_task(folder: Path, parts: dict[str, Any], labels: str = "drum,gong", **facts: Any) -> Path:
    """A task's folder without sounds."""
    (folder / "48000").mkdir(parents=True)
    (folder / "16000").mkdir()
    known = {"task_name": "opera", "version": "hear2021", "embedding_type": "scene", "prediction_type": "multiclass"}
    (folder / "task_metadata.json").write_text(json.dumps(known | {"splits": list(parts)} | facts))
    lines = [f"{place},{label}" for place, label in enumerate(labels.split(","))]
    (folder / "labelvocabulary.csv").write_text("\n".join(["idx,label", *lines]) + "\n")
    for name, listing in parts.items():
        (folder / f"{name}.json").write_text(json.dumps(listing))
    return folder


def test_folds_labels_and_sounds(tmp_path: Path) -> None:
    task = read_task(write_task(tmp_path / "task", FOLDS))
    assert (task.name, task.several, task.labels, task.rate) == ("opera", False, ("drum", "gong"), 48000)
    assert task.targets == ["gong", "drum", "gong", "drum"]
    assert task.parts == ["fold00", "fold00", "fold01", "fold02"]
    assert task.clips[0].path == str(tmp_path / "task" / "48000" / "fold00" / "b.wav")


def test_parts_several_labels_and_names_that_occur_twice(tmp_path: Path) -> None:
    parts = {"test": {"a.wav": []}, "train": {"a.wav": ["drum", "gong"], "b.wav": "drum"}, "valid": {"c.wav": ["gong"]}}
    task = read_task(write_task(tmp_path / "task", parts, prediction_type="multilabel", splits=None))
    assert [clip.id for clip in task.clips] == ["train/a.wav", "b.wav", "c.wav", "test/a.wav"]
    assert task.targets == [["drum", "gong"], ["drum"], ["gong"], []]
    assert task.rows_of(["b", "x/train/a.wav", "train/a.wav", "test/a.wav", "c.wav"], "v.npz")[0] == [2, 0, 4, 3]


def test_vectors_are_joined_by_file_name(tmp_path: Path) -> None:
    task = read_task(write_task(tmp_path / "task", FOLDS))
    assert task.rows_of(["48000/fold02/d.wav", "a", "fold00/b.wav"], "v.npz") == ([2, 1, -1, 0], ["c.wav"])
    accents = read_task(
        write_task(tmp_path / "accents", {"fold00": {"u\u0308.wav": "drum"}, "fold01": {"b.wav": "gong"}})
    )
    assert accents.rows_of(["b", "\u00fc.wav"], "v.npz") == ([1, 0], [])
    with pytest.raises(InputError, match=r"v\.npz holds no vector of the 4 clips of opera \(first: b\.wav\)"):
        task.rows_of(["x", "y"], "v.npz")


def test_as_a_corpus(tmp_path: Path) -> None:
    corpus = open_corpus(f"hear:{write_task(tmp_path / 'task', FOLDS)}")
    assert corpus.name == "hear:opera"
    assert [(clip.id, clip.label) for clip in corpus][:2] == [("b.wav", "gong"), ("a.wav", "drum")]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"embedding_type": "event"}, "opera is a task of event embeddings, which asks when something sounds"),
        ({"prediction_type": "regression"}, "prediction_type is .regression., not multiclass or multilabel"),
        ({"splits": ["train", "fold00"]}, "neither foldNN.json files nor train.json and test.json"),
        ({"splits": ["fold09"]}, r"fold09\.json does not exist"),
        ({"parts": {"fold00": {"a.wav": ["flute"]}}}, r'a\.wav has the label "flute", which labelvocabulary\.csv'),
        ({"parts": {"fold00": {"a.wav": ["drum", "gong"]}}}, "without exactly one label"),
        ({"parts": {"fold00": {"a.wav": [{"label": "drum", "start": 0, "end": 1}]}}}, "its labels have times"),
        ({"parts": {"fold00": {"a.wav": [None]}}}, "no list of texts"),
        ({"parts": {"fold00": []}}, "must be a JSON object of file names"),
        ({"parts": {"fold00": {}}}, "lists no clips"),
    ],
)
def test_what_is_no_such_task_is_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    facts = {name: value for name, value in changes.items() if name != "parts"}
    folder = write_task(tmp_path / "task", changes.get("parts", FOLDS), **facts)
    with pytest.raises(InputError, match=message):
        read_task(folder)


def test_damaged_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a folder"):
        read_task(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"task_metadata\.json does not exist"):
        read_task(tmp_path)
    folder = write_task(tmp_path / "task", FOLDS)
    (folder / "fold01.json").write_text("{")
    with pytest.raises(InputError, match=r"fold01\.json is not JSON"):
        read_task(folder)
    (folder / "labelvocabulary.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="no column label"):
        read_task(folder)
