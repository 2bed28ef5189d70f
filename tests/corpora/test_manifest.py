"""Manifests: what a row means, and what is said of a wrong one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from earmark import audio
from earmark.corpora.clips import Clip, CorpusCard
from earmark.corpora.manifest import read_manifest, write_card, write_manifest
from earmark.errors import InputError

ESC50 = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "esc50" / "manifest.csv"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a.wav", "b c.wav", "ü.wav"):
        audio.write(tmp_path / name, np.linspace(-0.5, 0.5, 1600), 16_000)
    return tmp_path


def written(folder: Path, text: str, name: str = "clips.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        read_manifest(path)
    assert path.name in str(caught.value)
    return str(caught.value)


def test_rows_become_clips(folder: Path) -> None:
    path = written(
        folder,
        "Path, label ,subset,group,start,end,id,fold\n"
        "a.wav,dog,ES1,r1,,,one,1\n"
        '"b c.wav","dog, small",ES1,,0.01,0.05,two,2\n'
        "\n"
        "ü.wav,,,,0.02,,three,1\n",
    )
    corpus = read_manifest(path)
    assert corpus.name == "clips"
    assert [clip.id for clip in corpus] == ["one", "two", "three"]
    assert [clip.label for clip in corpus] == ["dog", "dog, small", None]
    assert corpus.clips[0].group == "r1"
    assert corpus.clips[1].group is None
    assert (corpus.clips[1].start, corpus.clips[1].end) == (0.01, 0.05)
    assert [len(clip.read()[0]) for clip in corpus] == [1600, 640, 1280]
    assert [clip.fold for clip in corpus] == ["1", "2", "1"]
    assert corpus.notes == ("clips.csv: 1 of 3 clips have no label.",)


def test_ids_come_from_path_and_span(folder: Path) -> None:
    corpus = read_manifest(written(folder, "path,label,start,end\na.wav,x,,\na.wav,x,0.01,0.05\na.wav,x,0.02,\n"))
    assert [clip.id for clip in corpus] == ["a.wav", "a.wav#0.01-0.05", "a.wav#0.02-"]


def test_byte_order_mark_and_line_ends(folder: Path) -> None:
    (folder / "m.csv").write_bytes("\ufeffpath,label\r\na.wav,é\r\n".encode())
    assert read_manifest(folder / "m.csv").clips[0].label == "é"
    assert read_manifest(written(folder, "path\tlabel\na.wav\tx,y\n", "m.tsv")).clips[0].label == "x,y"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("sound,label\na.wav,x\n", "no column 'path'"),
        ("path,labels\na.wav,x\n", 'Did you mean "labels"?'),
        ("", "no column 'path' (columns: none)"),
        ("path;label\na.wav;x\n", "semicolons"),
        ("path,label,path\na.wav,x,a.wav\n", "'path' twice"),
        ("path,label\n", "lists no clips"),
        ("path,label\na.wav,x\n,x\n", "line 3: the path is empty"),
        ("path,label\na.wav,x,y\n", "line 2 has 3 cells and the header 2"),
        ("path,label\na.wav\n", "line 2 has 1 cells"),
        ('path,label\na.wav,"two\nlines"\na.wav\n', "line 4 has 1 cells"),
        ('path,label\na.wav,"x\n', "line 2"),
        ("path,label,id\na.wav,x,1\nü.wav,y,2\nb c.wav,x,1\n", "line 4: the id '1' was used before"),
        ("path,label,id\na.wav,x,\n", "line 2: the id is empty"),
        ("path,label\na.wav,x\na.wav,x\n", "line 3: the id 'a.wav' was used before"),
        ("path,label,start\na.wav,x,soon\n", "line 2: start is 'soon'"),
        ("path,label,start\na.wav,x,-1\n", "line 2: start is '-1'"),
        ("path,label,end\na.wav,x,nan\n", "line 2: end is 'nan'"),
        ("path,label,start,end\na.wav,x,2,1\n", "line 2: the span ends at 1 s"),
        ("path,label,end\na.wav,x,0\n", "line 2: the span ends at 0 s"),
        ("path,label\nno.wav,x\nnor.wav,y\n", "none of its 2 files is there"),
    ],
)
def test_wrong_manifests(folder: Path, text: str, said: str) -> None:
    assert said in refusal(written(folder, text))


def test_files_that_are_no_manifests(folder: Path) -> None:
    assert "does not exist" in refusal(folder / "none.csv")
    (folder / "latin.csv").write_bytes("path,label\na.wav,ü\n".encode("latin-1"))
    assert "not UTF-8" in refusal(folder / "latin.csv")


def test_a_few_missing_files_are_noted(folder: Path) -> None:
    corpus = read_manifest(written(folder, "path,label\na.wav,x\nnone.wav,y\n"))
    assert len(corpus) == 2
    assert "1 of 2 files are missing" in corpus.notes[0]
    with pytest.raises(InputError, match="does not exist"):
        corpus.clips[1].read()


def test_parquet(folder: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="reads Parquet")
    from pyarrow import parquet

    columns: dict[str, list[Any]] = {
        "path": ["a.wav", "b c.wav"],
        "label": [3, 4],
        "group": [7.0, None],
        "start": [None, 0.01],
        "end": [None, 0.05],
        "embedding": [[1.0], [2.0]],
    }
    parquet.write_table(pyarrow.table(columns), folder / "m.parquet")
    corpus = read_manifest(folder / "m.parquet")
    assert [(clip.label, clip.group, clip.start) for clip in corpus] == [("3", "7", None), ("4", None, 0.01)]
    assert corpus.notes == ("m.parquet: columns ignored: embedding.",)
    (folder / "e\u0301.wav").write_bytes((folder / "a.wav").read_bytes())
    columns["path"][1], columns["label"] = "e\u0301.wav", ["e\u0301", "\u00e9"]
    parquet.write_table(pyarrow.table(columns), folder / "m.parquet")
    accents = read_manifest(folder / "m.parquet")
    assert {clip.label for clip in accents} == {"\u00e9"}
    assert accents.clips[1].read()[1] == 16_000
    columns["path"][1] = None
    parquet.write_table(pyarrow.table(columns), folder / "m.parquet")
    assert "row 2: the path is empty" in refusal(folder / "m.parquet")
    (folder / "m.parquet").write_bytes(b"PAR1 no")
    assert "not a readable Parquet file" in refusal(folder / "m.parquet")


def test_written_manifests_come_back(folder: Path) -> None:
    clips = [
        Clip("1", "x, y", "S", "g", str(folder / "a.wav"), 0.01, 1 / 30),
        Clip("ü", None, "", None, str(folder / "b c.wav")),
    ]
    (folder / "deep").mkdir()
    write_manifest(folder / "deep" / "manifest.csv", clips)
    corpus = read_manifest(folder / "deep" / "manifest.csv")
    assert corpus.name == "deep"
    for found, given in zip(corpus, clips, strict=True):
        assert (found.id, found.label, found.subset, found.group) == (given.id, given.label, given.subset, given.group)
        assert (found.start, found.end) == (given.start, given.end)
        assert Path(found.path or "").resolve() == Path(given.path or "").resolve()
    with pytest.raises(InputError, match="is not a file"):
        write_manifest(folder / "m.csv", [Clip("s", samples=np.zeros(3, np.float32), rate=8000)])


def test_a_card_lies_beside_the_manifest(folder: Path) -> None:
    path = written(folder, "path,label\na.wav,x\n")
    card = CorpusCard("birds", "Birds", licence="CC0", status="public", notes="ä")
    write_card(folder, card)
    assert read_manifest(path).card == CorpusCard("birds", "Birds", licence="CC0", status="public", notes="ä")
    for text, said in (
        ('{"licens": "x"}', 'Did you mean "licence"?'),
        ("[1]", "not a card"),
        ("{", "not a readable card"),
        (json.dumps({"status": "secret"}), "'secret'"),
    ):
        (folder / "card.json").write_text(text)
        with pytest.raises(InputError) as caught:
            read_manifest(path)
        assert said in str(caught.value)


@pytest.mark.skipif(not ESC50.is_file(), reason="ESC-50 is not beside the repository")
def test_esc50() -> None:
    corpus = read_manifest(ESC50)
    assert len(corpus) == 2000
    assert len({clip.label for clip in corpus}) == 50
    samples, rate = corpus.clips[0].read()
    assert (len(samples), rate) == (80_000, 16_000)
