"""Embeddings of BirdNET-Analyzer: windows with ids, times and groups."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from earmark.corpora.annotation_files import kind_of
from earmark.errors import InputError
from earmark.vectors import read_labelled, read_vectors


def write(path: Path, count: int = 4, width: int = 12) -> Path:
    vectors = np.random.default_rng(count).random((count, width))
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"{1.5 * k}\t{1.5 * k + 3.0}\t" + ",".join(map(str, row)) for k, row in enumerate(vectors)]
    path.write_bytes("\r\n".join([*lines, ""]).encode())
    return path


def test_a_file_and_a_folder(tmp_path: Path) -> None:
    file = write(tmp_path / "north" / "dawn.birdnet.embeddings.txt")
    one = read_vectors(file)
    assert one.ids == ("dawn#0-3", "dawn#1.5-4.5", "dawn#3-6", "dawn#4.5-7.5")
    assert one.groups == ("dawn",) * 4
    assert np.allclose(one.values, np.random.default_rng(4).random((4, 12)))
    assert kind_of(file) is None
    write(tmp_path / "south" / "dawn.birdnet.embeddings.txt", 2)
    several = read_vectors(tmp_path)
    assert several.ids is not None
    assert several.ids[3:5] == ("north/dawn#4.5-7.5", "south/dawn#0-3")
    assert "6 windows of 2 recordings" in several.notes[0]


def test_labels_join_by_window(tmp_path: Path) -> None:
    file = write(tmp_path / "dawn.birdnet.embeddings.txt")
    names = ("dawn#4.5-7.5", "dawn#0-3", "dawn#1.5-4.5", "dawn#3-6")
    (tmp_path / "labels.csv").write_text("id,label\n" + "".join(f"{name},{k}x\n" for k, name in enumerate(names)))
    joined = read_labelled(file, tmp_path / "labels.csv")
    assert list(joined.labels) == ["1x", "2x", "3x", "0x"]
    assert not any("by file name" in note for note in joined.notes)


def test_labels_join_by_window_whatever_the_ending_and_the_folder_of_the_recording(tmp_path: Path) -> None:
    file = write(tmp_path / "dawn.birdnet.embeddings.txt")
    names = ("rec/dawn.wav#4.5-7.5", "rec/dawn.wav#0-3", "rec/dawn.wav#1.5-4.5", "rec/dawn.wav#3-6")
    (tmp_path / "labels.csv").write_text("id,label\n" + "".join(f"{name},{k}x\n" for k, name in enumerate(names)))
    joined = read_labelled(file, tmp_path / "labels.csv")
    assert list(joined.labels) == ["1x", "2x", "3x", "0x"]
    assert any("joined to those of" in note and "by file name" in note for note in joined.notes)
    (tmp_path / "labels.csv").write_text(
        "id,label\n" + "".join(f"dusk{name[8:]},{k}x\n" for k, name in enumerate(names))
    )
    with pytest.raises(InputError, match=r"lacks 4 ids .*its own are like .*where nobody looked.*--background"):
        read_labelled(file, tmp_path / "labels.csv")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0\t3\n", "line 1 is no window"),
        ("0\t3\t1,2\n3\t6\t1,x\n", "line 2 is no window"),
        ("0\t3\t1,2\n3\t6\t1,2,3\n", "line 2 has 3 numbers, not 2"),
        ("0\t3\t1,nan\n", "not finite"),
        ("0\t3\t1,2\n0\t3\t1,2\n", "dawn#0-3 twice"),
        ("\n", "holds no windows"),
    ],
)
def test_damaged_files(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "dawn.birdnet.embeddings.txt"
    file.write_text(text)
    with pytest.raises(InputError, match=said):
        read_vectors(file)
    with pytest.raises(InputError, match="no named columns"):
        read_vectors(file, label_column="x")
