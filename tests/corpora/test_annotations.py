"""Annotations as Raven, Audacity, Praat, Kaleidoscope and BirdNET-Analyzer write them, whole and damaged."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from earmark import audio
from earmark.cli import main
from earmark.corpora.annotation_files import kind_of
from earmark.corpora.clips import Corpus
from earmark.corpora.source import open_corpus
from earmark.errors import InputError
from earmark.representations import load_points, load_vectors
from earmark.scores import load_scores

RAVEN = (
    "Selection\tView\tChannel\tBegin Time (s)\tEnd Time (s)\tLow Freq (Hz)\tHigh Freq (Hz)\tSpecies\n"
    "1\tWaveform 1\t1\t0.5\t1.0\t2000\t8000\twren\n"
    "1\tSpectrogram 1\t1\t0.5\t1.0\t2000\t8000\twren\n"
    "2\tSpectrogram 1\t1\t2.0\t2.75\t2000\t8000\towl\n"
)
BIRDNET = (
    "Selection\tView\tChannel\tBegin Time (s)\tEnd Time (s)\tLow Freq (Hz)\tHigh Freq (Hz)\tCommon Name\tSpecies Code\t"
    "Confidence\tBegin Path\tFile Offset (s)\n"
    "1\tSpectrogram 1\t1\t0\t3.0\t0\t15000\tEurasian Wren\twinwre4\t0.91\tC:\\field\\dawn.wav\t0\n"
    "2\tSpectrogram 1\t1\t0\t3.0\t0\t15000\tTawny Owl\ttawowl1\t0.31\tC:\\field\\dawn.wav\t0\n"
    "3\tSpectrogram 1\t1\t63\t66\t0\t15000\tTawny Owl\ttawowl1\t0.77\tC:\\field\\dusk.wav\t1.0\n"
)
LONG_GRID = """File type = "ooTextFile"
Object class = "TextGrid"

xmin = 0
xmax = 4
tiers? <exists>
size = 2
item []:
    item [1]:
        class = "IntervalTier"
        name = "syllable 1"
        xmin = 0
        xmax = 4
        intervals: size = 3
        intervals [1]:
            xmin = 0
            xmax = 0.5
            text = ""
        intervals [2]:
            xmin = 0.5
            xmax = 1
            text = "a ""loud"" é"
        intervals [3]:
            xmin = 1
            xmax = 4
            text = "b"
    item [2]:
        class = "TextTier"
        name = "clicks"
        xmin = 0
        xmax = 4
        points: size = 1
        points [1]:
            number = 2
            mark = "x"
"""
SHORT_GRID = (
    'File type = "ooTextFile"\nObject class = "TextGrid"\n\n0\n4\n<exists>\n1\n"IntervalTier"\n"s"\n0\n4\n2\n'
    '0\n1\n"a"\n1\n4\n"b"\n'
)
KALEIDOSCOPE = (
    "INDIR,FOLDER,IN FILE,CHANNEL,OFFSET,DURATION,Fmin,TOP1MATCH*,MANUAL ID\r\n"
    'D:\\bats,night,dawn.wav,0,0.5,0.25,30000,Cluster 1,PIPPIP\r\n"D:\\bats","",dusk.wav,0,1.0,0.5,30000,Cluster 2,\r\n'
)


@pytest.fixture
def field(tmp_path: Path) -> Path:
    root = tmp_path / "field"
    root.mkdir()
    for number, name in enumerate(("dawn", "dusk")):
        audio.write(root / f"{name}.wav", 0.3 * np.random.default_rng(number).normal(size=4 * 8000), 8000)
    return root


def spans(corpus: Corpus) -> list[tuple[str, str | None, float | None, float | None]]:
    return [(Path(clip.path or "").stem, clip.label, clip.start, clip.end) for clip in corpus]


def test_raven_beside_a_recording(field: Path) -> None:
    table = field / "dawn.Table.1.selections.txt"
    table.write_bytes(b"\xef\xbb\xbf" + RAVEN.replace("\n", "\r\n").encode())
    for spec in (field, table):
        corpus = open_corpus(str(spec))
        assert spans(corpus) == [("dawn", "wren", 0.5, 1.0), ("dawn", "owl", 2.0, 2.75)]
        assert [clip.group for clip in corpus] == ["dawn.wav"] * 2
        assert "2 clips from 1 recording, and the recording is the group" in corpus.notes[0]
        assert "the column species" in corpus.notes[0]
        assert len(corpus.clips[1].read()[0]) == 6000
    assert [clip.group for clip in open_corpus(str(table), group_column="none")] == [None, None]
    assert [clip.label for clip in open_corpus(str(table), label_column="View")] == ["Waveform 1", "Spectrogram 1"]
    with pytest.raises(InputError, match=r"no column 'specie' .*Did you mean \"species\""):
        open_corpus(str(table), label_column="specie")


def test_birdnet_windows_with_several_species_are_left_out(field: Path) -> None:
    (field / "all.BirdNET.selection.table.txt").write_text(BIRDNET)
    corpus = open_corpus(str(field))
    assert spans(corpus) == [("dusk", "Tawny Owl", 1.0, 4.0)]
    assert "1 span with several labels left out" in corpus.notes[1]


def test_broken_rows_have_reasons(field: Path) -> None:
    times = ("soon\t2", "2\t1", "9\t10", "3,5\t4,5")
    rows = "".join(f"{k + 3}\tS\t1\t{pair}\t0\t1\t{'owl' if k == 3 else 'wren'}\n" for k, pair in enumerate(times))
    (field / "dawn.selections.txt").write_text(RAVEN + rows + "7\tS\t1\t-1\t2\t0\t1\twren\n8\n")
    corpus = open_corpus(str(field))
    assert spans(corpus)[-1] == ("dawn", "owl", 3.5, 4.0)
    assert len(corpus) == 3
    assert "5 rows left out" in corpus.notes[1]
    assert "line 5: a time is no number of seconds" in corpus.notes[1]
    assert "line 6: it ends at 1 s, not after its start at 2 s" in corpus.notes[1]
    assert "1 span passed the end of the recording" in corpus.notes[2]
    (field / "dawn.selections.txt").write_text(RAVEN.splitlines()[0] + "\n" + "5\tS\t1\t9\t10\t0\t1\twren\n")
    with pytest.raises(InputError, match=r"line 2: it begins at 9 s, after the end of dawn\.wav"):
        open_corpus(str(field))


def test_missing_and_doubtful_recordings(field: Path) -> None:
    (field / "noon.selections.txt").write_text(RAVEN)
    with pytest.raises(InputError, match="a recording called noon is not there"):
        open_corpus(str(field))
    for folder in ("a", "b"):
        (field / folder).mkdir()
        audio.write(field / folder / "noon.wav", np.zeros(8000 * 4), 8000)
    with pytest.raises(InputError, match="could be any of 2 files"):
        open_corpus(str(field))
    (field / "a" / "noon.selections.txt").write_text(RAVEN)
    assert {clip.group for clip in open_corpus(str(field))} == {"a/noon.wav"}


def test_audacity(field: Path) -> None:
    text = "0.500000\t1.000000\twren\n\\\t2000.0\t8000.0\n2,0\t2,5\towl song\n3.0\t3.0\tpoint\n"
    (field / "dusk_labels.txt").write_text(text)
    corpus = open_corpus(str(field))
    assert spans(corpus) == [("dusk", "wren", 0.5, 1.0), ("dusk", "owl song", 2.0, 2.5)]
    assert "line 4: it ends at 3 s" in corpus.notes[1]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_textgrids(field: Path, encoding: str) -> None:
    (field / "dawn.TextGrid").write_bytes(LONG_GRID.encode(encoding))
    (field / "dusk.TextGrid").write_bytes(SHORT_GRID.encode(encoding))
    corpus = open_corpus(str(field))
    assert spans(corpus) == [
        ("dawn", 'a "loud" é', 0.5, 1.0), ("dawn", "b", 1.0, 4.0), ("dusk", "a", 0.0, 1.0), ("dusk", "b", 1.0, 4.0),
    ]  # fmt: skip
    (field / "dusk.TextGrid").write_text(SHORT_GRID[:-30])
    with pytest.raises(InputError, match="ends too early"):
        open_corpus(str(field))
    (field / "dusk.TextGrid").write_text(LONG_GRID.replace("TextTier", "IntervalTier").replace("mark =", "3 mark ="))
    with pytest.raises(InputError, match=r"2 tiers of intervals \(syllable 1, clicks\): name one"):
        open_corpus(str(field / "dusk.TextGrid"))
    assert len(open_corpus(str(field / "dusk.TextGrid"), label_column="clicks")) == 1


def test_kaleidoscope(field: Path) -> None:
    (field / "night").mkdir()
    (field / "dawn.wav").rename(field / "night" / "dawn.wav")
    (field / "id.csv").write_text(KALEIDOSCOPE)
    corpus = open_corpus(str(field))
    assert spans(corpus) == [("dusk", None, 1.0, 1.5), ("dawn", "PIPPIP", 0.5, 0.75)]
    assert [clip.label for clip in open_corpus(str(field), label_column="TOP1MATCH*")] == ["Cluster 2", "Cluster 1"]


def test_other_texts_are_no_annotations(tmp_path: Path) -> None:
    for name, text in (("a.txt", "1 2 three\n"), ("b.csv", "path,label\na.wav,x\n"), ("c.txt", ""), ("d.md", RAVEN)):
        (tmp_path / name).write_text(text)
        assert kind_of(tmp_path / name) is None
    audio.write(tmp_path / "wren.wav", np.zeros(800), 8000)
    assert len(open_corpus(str(tmp_path))) == 1


def test_a_run_on_annotations(field: Path, tmp_path: Path) -> None:
    for name in ("dawn", "dusk"):
        lines = [f"{k / 2}\t{k / 2 + 0.4}\t{'wren' if k % 2 else 'owl'}" for k in range(7)]
        (field / f"{name}.txt").write_text("\n".join(lines))
    words = "--extractor logmel --metrics P@1 --across-groups --steps prepare,embed,evaluate --quiet".split()
    into = ["--into", str(tmp_path / "run"), "--cache-dir", str(tmp_path / "cache")]
    assert main(["run", "--corpus", str(field), *words, *into]) == 0
    assert "across_groups" in (tmp_path / "run" / "scores.csv").read_text()


# --- as they come from the field -----------------------------------------------------------------------------------


def test_windows_with_several_species_are_kept_with_a_separator(field: Path) -> None:
    (field / "all.BirdNET.selection.table.txt").write_text(BIRDNET)
    corpus = open_corpus(str(field), label_separator=";")
    assert spans(corpus) == [("dawn", "Eurasian Wren;Tawny Owl", 0.0, 3.0), ("dusk", "Tawny Owl", 1.0, 4.0)]
    assert "1 span with several labels" in corpus.notes[1]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "utf-16-be"])
def test_raven_and_audacity_in_utf16_and_with_decimal_commas(field: Path, encoding: str) -> None:
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    text = RAVEN.replace("0.5\t1.0", "0,5\t1,0").replace("wren", "Zaunkönig")
    (field / "dawn.Table.1.selections.txt").write_bytes((mark + text).encode(encoding))
    (field / "dusk.txt").write_bytes((mark + "0,25\t0,75\tKauz\n").encode(encoding))
    expected = [("dawn", "Zaunkönig", 0.5, 1.0), ("dawn", "owl", 2.0, 2.75), ("dusk", "Kauz", 0.25, 0.75)]
    assert spans(open_corpus(str(field))) == expected


def test_several_tables_of_a_recording_and_selections_that_overlap(field: Path) -> None:
    (field / "dawn.Table.1.selections.txt").write_text(RAVEN)
    (field / "dawn.Table.2.selections.txt").write_text(RAVEN.replace("0.5\t1.0", "0.75\t1.25"))
    corpus = open_corpus(str(field))
    # The owl stands in both tables and is one clip; the wrens overlap and are two.
    assert spans(corpus) == [("dawn", "wren", 0.5, 1.0), ("dawn", "wren", 0.75, 1.25), ("dawn", "owl", 2.0, 2.75)]


def test_a_span_counted_from_another_beginning_is_one_clip_and_contradictions_are_named(field: Path) -> None:
    # 60.1 + 0.3 - 60.1 is not 0.3 in binary numbers
    header = "Selection\tBegin Time (s)\tEnd Time (s)\tBegin File\tFile Offset (s)\tSpecies\n"
    (field / "all.selections.txt").write_text(header + "1\t60.4\t60.7\tdawn.wav\t0.3\twren\n")
    own = field / "dawn.Table.1.selections.txt"
    own.write_text(header + "1\t0.3\t0.6\tdawn.wav\t0.3\twren\n")
    assert spans(open_corpus(str(field))) == [("dawn", "wren", 0.3, 0.6)]
    own.write_text(own.read_text().replace("wren", "owl") + "2\t2\t3\tdawn.wav\t2\towl\n")
    corpus = open_corpus(str(field))
    assert spans(corpus) == [("dawn", "owl", 2.0, 3.0)]
    assert "(first: all.selections.txt, line 2: wren; dawn.Table.1.selections.txt, line 2: owl)" in corpus.notes[1]


def test_tables_that_cannot_be_read_and_recordings_without_clips_are_named(field: Path) -> None:
    (field / "dawn.Table.1.selections.txt").write_text(RAVEN)
    (field / "notes.txt").write_text("windy")
    typed = field / "dusk.Table.1.selections.txt"
    typed.write_text(RAVEN.replace("Begin Time", "Begin Tme"))
    *_, tables, recordings = open_corpus(str(field)).notes
    assert "1 file not read" in tables
    assert "(dusk.Table.1.selections.txt)" in tables
    assert "1 recording without a clip (dusk.wav)" in recordings
    assert not any("without a clip" in note for note in open_corpus(str(field / "dawn.Table.1.selections.txt")).notes)
    typed.write_text(RAVEN)
    assert not any("not read" in note or "without a clip" in note for note in open_corpus(str(field)).notes)


def test_selections_on_several_channels_are_told(field: Path) -> None:
    (field / "dawn.Table.1.selections.txt").write_text(RAVEN.replace("2\tSpectrogram 1\t1\t", "2\tSpectrogram 1\t2\t"))
    assert any("on channels 1, 2" in note for note in open_corpus(str(field)).notes)


def test_a_sequence_of_files_counts_from_the_offset_in_each(field: Path) -> None:
    lines = [
        "Selection\tView\tChannel\tBegin Time (s)\tEnd Time (s)\tBegin File\tFile Offset (s)\tSpecies",
        "1\tSpectrogram 1\t1\t1.0\t1.5\tdawn.wav\t1.0\twren",
        "2\tSpectrogram 1\t1\t5.0\t5.5\tdusk.wav\t1.0\towl",
    ]
    (field / "night.selections.txt").write_text("\n".join(lines))
    assert spans(open_corpus(str(field))) == [("dawn", "wren", 1.0, 1.5), ("dusk", "owl", 1.0, 1.5)]


def test_annotations_in_another_folder_than_their_recordings(field: Path, tmp_path: Path) -> None:
    tables = tmp_path / "tables"
    tables.mkdir()
    header = RAVEN.splitlines()[0]
    row = f"1\tSpectrogram 1\t1\t0.5\t1.0\t0\t4000\twren\t{field / 'dawn.wav'}"
    (tables / "mine.txt").write_text(f"{header}\tBegin Path\n{row}\n")
    corpus = open_corpus(str(tables))
    assert [(clip.id, clip.label, clip.group) for clip in corpus] == [("dawn.wav#0.5-1", "wren", "dawn.wav")]


BIRDNET_CSV = (
    "Start (s),End (s),Scientific name,Common name,Confidence,File\n"
    "0.0,3.0,Troglodytes troglodytes,Eurasian Wren,0.91,/home/ada/dawn.wav\n"
    "1.0,4.0,Strix aluco,Tawny Owl,0.7,/home/ada/dawn.wav\n"
)
BIRDNET_KALEIDOSCOPE = (
    "INDIR,FOLDER,IN FILE,OFFSET,DURATION,scientific_name,common_name,confidence,lat,lon,week,overlap,sensitivity\n"
    "/home/ada,field,dawn.wav,0.0,3.0,Troglodytes troglodytes,Eurasian Wren,0.91,-1,-1,-1,0,1\n"
    "/home/ada,field,dawn.wav,1.0,3.0,Strix aluco,Tawny Owl,0.7,-1,-1,-1,0,1\n"
)
BIRDNET_AUDACITY = "0.0\t3.0\tEurasian Wren\t0.91\n1.0\t4.0\tTawny Owl\t0.7\n"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("dawn.BirdNET.results.csv", BIRDNET_CSV),
        ("dawn.BirdNET.results.kaleidoscope.csv", BIRDNET_KALEIDOSCOPE),
        ("dawn.BirdNET.results.txt", BIRDNET_AUDACITY),
    ],
)
def test_every_table_that_birdnet_analyzer_writes(name: str, text: str, field: Path) -> None:
    (field / name).write_text(text)
    assert spans(open_corpus(str(field))) == [("dawn", "Eurasian Wren", 0.0, 3.0), ("dawn", "Tawny Owl", 1.0, 4.0)]


# --- the worst clips out, and in again --------------------------------------------------------------------------------


@pytest.fixture
def run(field: Path, tmp_path: Path) -> Path:
    for name in ("dawn", "dusk"):
        lines = [f"{k / 2}\t{k / 2 + 0.4}\t{('wren', 'owl', 'tit')[k % 3]}" for k in range(7)]
        (field / f"{name}.txt").write_text("\n".join(lines))
    words = "--extractor logmel --metrics P@1,GSR --across-groups --steps prepare,embed,evaluate --quiet".split()
    into = ["--into", str(tmp_path / "run"), "--cache-dir", str(tmp_path / "cache")]
    assert main(["run", "--corpus", str(field), *words, *into]) == 0
    return tmp_path / "run"


def test_the_worst_clips_of_a_run_as_selection_tables_open_again(run: Path, tmp_path: Path) -> None:
    points = load_points(run, "field", "logmel flatten", "cosine")
    look = tmp_path / "look"
    assert main(["export", str(run), "--as", "raven", "--worst", "6", "--into", str(look), "--quiet"]) == 0
    ids = load_vectors(run, "field", "logmel flatten").ids
    hit, score = points["across_groups", "P@1"], points["across_groups", "GSR"]
    expected = sorted(range(len(ids)), key=lambda row: (hit[row], score[row]))[:6]
    header, *rows = [line.split("\t") for line in (look / "all.selections.txt").read_text().splitlines()]
    table = [dict(zip(header, row, strict=True)) for row in rows]
    assert [row["Clip"] for row in table] == [ids[row] for row in expected]
    nearest = points["across_groups", "nearest_row"]
    labels = load_vectors(run, "field", "logmel flatten").labels
    assert [row["Nearest Label"] for row in table] == [labels[int(nearest[row])] for row in expected]
    assert [float(row["GSR"]) for row in table] == pytest.approx([score[row] for row in expected], abs=1e-4)
    # In Raven, which orders them by name, a recording begins where the one before it ends; offsets are its own.
    first = min(row["Begin File"] for row in table)
    for row in table:
        shift = 0.0 if row["Begin File"] == first else 4.0
        assert float(row["Begin Time (s)"]) == pytest.approx(float(row["File Offset (s)"]) + shift)
    again = open_corpus(str(look))
    assert sorted((clip.id, clip.label) for clip in again) == sorted((ids[row], labels[row]) for row in expected)
    by_recording = sorted(file.name for file in look.glob("*.Table.1.selections.txt"))
    assert by_recording == sorted({f"{Path(row['Begin File']).stem}.Table.1.selections.txt" for row in table})


def test_the_worst_clips_as_tracks_of_audacity(run: Path, tmp_path: Path) -> None:
    look = tmp_path / "look"
    assert main(["export", str(run), "--as", "audacity", "--worst", "3", "--into", str(look), "--quiet"]) == 0
    lines = [line for file in sorted(look.glob("*_labels.txt")) for line in file.read_text().splitlines()]
    assert len(lines) == 3
    assert all("(nearest: " in line for line in lines)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--systems", "logmel flaten"], 'Did you mean "logmel flatten"?'),
        (["--protocol", "across"], "no neighbours under the protocol 'across'"),
        (["--worst", "0"], "at least 1"),
        (["--distance", "euclidean"], 'no distance "euclidean"'),
    ],
)
def test_selections_that_cannot_be_had(
    words: list[str], message: str, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", str(run), "--as", "raven", *words, "--into", str(tmp_path / "look")]) == 2
    assert message in capsys.readouterr().err


def test_a_run_on_clips_with_several_labels_and_background(field: Path, tmp_path: Path) -> None:
    texts = ("wren", "owl", "noise", "wren;owl")
    for name in ("dawn", "dusk"):
        lines = [f"{k / 2}\t{k / 2 + 0.4}\t{texts[k % 4]}" for k in range(8)]
        (field / f"{name}.txt").write_text("\n".join(lines))
    words = "--extractor logmel --across-groups --quiet --label-separator ; --background noise".split()
    into = ["--into", str(tmp_path / "run"), "--cache-dir", str(tmp_path / "cache")]
    assert main(["run", "--corpus", str(field), *words, *into]) == 0
    scores = load_scores(tmp_path / "run" / "scores.csv")
    assert scores.row("P@1", protocol="all").n == 12
    assert scores.row("label_jaccard", protocol="across_groups").status == "ok"
    assert scores.row("GSR", protocol="all").status == "not_applicable"
    clips = (tmp_path / "run" / "clips.csv").read_text()
    assert clips.count("background: a candidate, never a query") == 4
    assert (tmp_path / "run" / "report.html").exists()
    assert main(["run", "--corpus", str(field), *words, *into, "--label-noise", "0.1"]) == 2


def test_comparing_a_run_knows_its_label_sets(field: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = ("wren", "owl", "noise", "wren;owl")
    for name in ("dawn", "dusk"):
        (field / f"{name}.txt").write_text("\n".join(f"{k / 2}\t{k / 2 + 0.4}\t{texts[k % 4]}" for k in range(8)))
    words = "--metrics P@1 --group-column none --quiet --label-separator ; --background noise".split()
    cache = ["--steps", "prepare,embed,evaluate", "--cache-dir", str(tmp_path / "cache")]
    arguments = ["run", "--corpus", str(field), *words, *cache, "--extractor", "logmel,mfcc"]
    assert main([*arguments, "--into", str(tmp_path / "run")]) == 0
    capsys.readouterr()
    assert main(["compare", str(tmp_path / "run"), "--json", "--quiet"]) == 0
    rows = {row["metric"]: row for row in json.loads(capsys.readouterr().out)}
    values = [row.value for row in load_scores(tmp_path / "run" / "scores.csv")]
    assert rows["P@1:difference"]["value"] == pytest.approx(values[0] - values[1])
    assert rows["P@1:difference"]["n"] == 12
    assert "label_jaccard:difference" in rows
