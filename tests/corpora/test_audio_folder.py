"""A Hugging Face AudioFolder: its metadata say what the sounds are, its folders do not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import earmark
from earmark import audio
from earmark.corpora import _hub as hub
from earmark.corpora.source import open_corpus
from earmark.errors import InputError

KINDS = ("owl", "wren", "crow")


def rows(folder: str = "") -> list[dict[str, Any]]:
    return [
        {"file_name": f"{folder}{row:02d}.wav", "label": KINDS[row % 3], "speaker": f"bird{row % 4}", "length": row}
        for row in range(6)
    ]


def write(path: Path, table: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in table))
    elif path.suffix == ".csv":
        lines = [list(table[0]), *(list(row.values()) for row in table)]
        path.write_text("".join(",".join(map(str, line)) + "\n" for line in lines))
    else:
        arrow: Any = pytest.importorskip("pyarrow", reason="Parquet files need pyarrow")
        files: Any = pytest.importorskip("pyarrow.parquet", reason="Parquet files need pyarrow")
        files.write_table(arrow.Table.from_pylist(table), path)


def sounds(root: Path, *names: str) -> None:
    for number, name in enumerate(names):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        audio.write(root / name, 0.5 * np.sin(np.arange(1600) * (0.1 + 0.05 * (number % 3)) + 0.1 * number), 16_000)


@pytest.fixture(params=["metadata.csv", "metadata.jsonl", "metadata.parquet"])
def at_the_root(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    table = [*rows("train/"), *rows("test/")]
    sounds(tmp_path, *(row["file_name"] for row in table))
    write(tmp_path / request.param, table)
    return tmp_path


def test_labels_are_those_of_the_metadata(at_the_root: Path) -> None:
    for spec in (str(at_the_root), f"hub:{at_the_root}"):
        corpus = open_corpus(spec)
        assert [clip.label for clip in corpus] == [KINDS[row % 3] for row in range(6)] * 2
        assert [clip.group for clip in corpus] == [f"bird{row % 4}" for row in range(6)] * 2
        assert {clip.subset for clip in corpus} == {""}
        assert corpus.clips[0].id == "train/00.wav"
        assert len(corpus.clips[7].read()[0]) == 1600
        assert corpus.notes == ()


def test_splits_and_other_columns(at_the_root: Path) -> None:
    corpus = open_corpus(f"hub:{at_the_root}?split=test&label=speaker&group=label")
    assert [clip.id for clip in corpus] == [f"test/{row:02d}.wav" for row in range(6)]
    assert [clip.label for clip in corpus] == [f"bird{row % 4}" for row in range(6)]
    assert corpus.clips[0].group == "owl"
    with pytest.raises(InputError, match=r"no column 'species' \(columns: file_name, label, speaker, length\)"):
        open_corpus(f"hub:{at_the_root}?label=species")
    with pytest.raises(InputError, match="list no clips of the split 'dev'"):
        open_corpus(f"hub:{at_the_root}?split=dev")


def test_metadata_in_each_folder(tmp_path: Path) -> None:
    for split in ("train", "validation"):
        sounds(tmp_path, *(f"{split}/{row['file_name']}" for row in rows()))
        write(tmp_path / split / "metadata.csv", rows())
    sounds(tmp_path, "train/loose.wav")
    corpus = open_corpus(str(tmp_path))
    assert len(corpus) == 12
    assert corpus.clips[-1].id == "validation/05.wav"
    assert any("1 sound files" in note for note in corpus.notes)


def test_without_a_label_column_clips_have_no_label(tmp_path: Path) -> None:
    table = [{"file_name": row["file_name"], "transcription": "tu-whit"} for row in rows()]
    sounds(tmp_path, *(row["file_name"] for row in table))
    write(tmp_path / "metadata.csv", table)
    corpus = open_corpus(str(tmp_path))
    assert {clip.label for clip in corpus} == {None}
    assert "choose one with --label-column COLUMN, or as in hub:" in corpus.notes[0]
    assert open_corpus(f"hub:{tmp_path}?label=transcription").clips[0].label == "tu-whit"


def test_missing_files_and_bad_lines(tmp_path: Path) -> None:
    write(tmp_path / "metadata.csv", rows())
    with pytest.raises(InputError, match="none of its 6 files is there"):
        open_corpus(str(tmp_path))
    (tmp_path / "metadata.csv").unlink()
    sounds(tmp_path, "00.wav")
    write(tmp_path / "metadata.jsonl", rows())
    assert "5 of 6 files are missing" in open_corpus(str(tmp_path)).notes[0]
    (tmp_path / "metadata.jsonl").write_text('{"file_name": "00.wav", "label": "owl"}\n{"file_name"\n')
    with pytest.raises(InputError, match="line 2 is not JSON"):
        open_corpus(str(tmp_path))


def test_metadata_of_another_kind_change_nothing(tmp_path: Path) -> None:
    sounds(tmp_path, "owl/1.wav", "wren/1.wav")
    (tmp_path / "metadata.csv").write_text("recordist,year\nme,1999\n")
    assert [clip.label for clip in open_corpus(str(tmp_path))] == ["owl", "wren"]


def test_folders_that_are_splits_are_no_labels(tmp_path: Path) -> None:
    sounds(tmp_path, "train/1.wav", "train/2.wav", "Test/1.wav")
    corpus = open_corpus(str(tmp_path))
    assert {(clip.subset, clip.label) for clip in corpus} == {("train", None), ("Test", None)}
    assert "splits, which are subsets and no labels" in corpus.notes[0]
    sounds(tmp_path, "tram/1.wav")  # then `train` is a vehicle
    assert {clip.label for clip in open_corpus(str(tmp_path))} == {"train", "Test", "tram"}


def test_a_run_measures_the_labels(at_the_root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    into = tmp_path_factory.mktemp("run")
    config = {"corpus": str(at_the_root), "extractors": ["mfcc"], "metrics": "P@1", "steps": "prepare,embed,evaluate"}
    done = earmark.run({**config, "into": str(into / "run"), "cache": "off"})
    assert done.scores.row("P@1").n == 12
    assert done.scores.value("P@1") == 1.0


def test_the_real_cause_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets: Any = pytest.importorskip("datasets", reason="reads Hugging Face datasets")

    def missing(*_: Any, **__: Any) -> None:
        try:
            raise ImportError("To support encoding audio data, please install 'torchcodec'.")
        except ImportError as error:
            raise RuntimeError("An error occurred while generating the dataset") from error

    def broken(*_: Any, **__: Any) -> None:
        try:
            raise ValueError("row 7 has no column b")
        except ValueError as error:
            raise RuntimeError("An error occurred while generating the dataset") from error

    (tmp_path / "data.json").write_text("{}")
    monkeypatch.setattr(datasets, "load_dataset", missing)
    hub._splits.cache_clear()
    with pytest.raises(InputError, match=r"a package is missing \(To support encoding .* 'torchcodec'\): install it"):
        open_corpus(f"hub:{tmp_path}")
    monkeypatch.setattr(datasets, "load_dataset", broken)
    with pytest.raises(InputError, match="row 7 has no column b"):
        open_corpus(f"hub:{tmp_path}")


def test_what_is_spoken_is_the_text(tmp_path: Path) -> None:
    table = [{**row, "transcription": f"sentence {number}"} for number, row in enumerate(rows())]
    sounds(tmp_path, *(row["file_name"] for row in table))
    write(tmp_path / "metadata.csv", table)
    assert [clip.text for clip in open_corpus(str(tmp_path))] == [f"sentence {number}" for number in range(6)]
    assert {clip.text for clip in open_corpus(f"hub:{tmp_path}?text=length")} == {str(number) for number in range(6)}
