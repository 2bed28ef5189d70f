"""Columns under names of their own, and labels from the names of files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from earmark import audio
from earmark.cli import main
from earmark.corpora.clips import Clip
from earmark.corpora.names import hint_of, likely_pattern, parse_pattern
from earmark.corpora.source import open_corpus
from earmark.errors import InputError, UsageError

DIGITS = [f"{digit}_{speaker}_{take}.wav" for digit in range(3) for speaker in ("george", "lucas") for take in range(3)]


def sounds(root: Path, names: list[str]) -> Path:
    for number, name in enumerate(names):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        audio.write(root / name, 0.3 * np.sin(np.arange(1600) * (0.05 + 0.01 * number)), 16_000)
    return root


# --- columns ------------------------------------------------------------------------------------------------


def test_well_known_spellings_are_taken_with_a_note(tmp_path: Path) -> None:
    sounds(tmp_path, ["a.wav", "b.wav"])
    table = tmp_path / "clips.csv"
    for name in ("file_name", "filename", "file", "File_Path"):
        table.write_text(f"{name},label,Speaker\na.wav,x,s1\nb.wav,y,s2\n")
        corpus = open_corpus(str(table))
        assert [(clip.id, clip.group) for clip in corpus] == [("a.wav", "s1"), ("b.wav", "s2")]
        assert corpus.notes[0] == f"clips.csv: the column {name.lower()} is taken for the path."
        assert corpus.notes[1].startswith("clips.csv: the column speaker is taken for the group.")
    without = open_corpus(str(table), group_column="none")
    assert [clip.group for clip in without] == [None, None]
    table.write_text("path,file,label,group,speaker\na.wav,no.wav,x,g1,s1\nb.wav,no.wav,y,g2,s2\n")
    plain = open_corpus(str(table))
    assert [clip.group for clip in plain] == ["g1", "g2"]
    assert plain.notes == ("clips.csv: columns ignored: file, speaker.",)


def test_columns_are_named_in_a_manifest_and_in_an_audio_folder(tmp_path: Path) -> None:
    sounds(tmp_path, ["a.wav", "b.wav"])
    named = {"label_column": "Species", "group_column": "bird", "path_column": "sound", "subset_column": "site"}
    rows = "a.wav,wren,b1,north\nb.wav,owl,b2,south\n"
    expected = [("wren", "b1", "north"), ("owl", "b2", "south")]
    for file in ("clips.csv", "metadata.csv"):
        (tmp_path / file).write_text(f"sound,species,bird,site\n{rows}")
        corpus = open_corpus(str(tmp_path / file if file == "clips.csv" else tmp_path), **named)
        assert [(clip.label, clip.group, clip.subset) for clip in corpus] == expected
    (tmp_path / "metadata.csv").unlink()
    with pytest.raises(UsageError, match="no manifest and has none in it"):
        open_corpus(str(tmp_path), label_column="species")
    with pytest.raises(UsageError, match="is no manifest"):
        open_corpus("synth:tiny", path_column="x")
    with pytest.raises(UsageError, match="two names of one thing"):
        open_corpus(str(tmp_path), groups="a", group_column="b")


def test_columns_of_a_config_and_of_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from earmark.representations.config import RunConfig

    values = {"extractors": "logmel", "group_column": "bird", "path_column": "sound"}
    config = RunConfig.make({**values, "corpus": [{"spec": "a.csv", "groups": "nest"}, "b.csv"]})
    assert [(entry.groups, entry.path_column) for entry in config.corpus] == [("bird", "sound")] * 2
    assert RunConfig.make({"corpus": "a", "extractors": "logmel"}).to_yaml().count("column") == 0
    sounds(tmp_path, ["a.wav", "b.wav", "c.wav", "d.wav"])
    (tmp_path / "t.csv").write_text("sound,kind,bird\n" + "".join(f"{k}.wav,{k in 'ab'},n{k}\n" for k in "abcd"))
    words = "--path-column sound --label-column kind --group-column bird --quiet".split()
    assert main(["corpus", "describe", str(tmp_path / "t.csv"), *words, "--json"]) == 0
    assert '"groups": 4' in capsys.readouterr().out
    assert main(["embed", str(tmp_path / "t.csv"), *words, "--out", str(tmp_path / "v.npz")]) == 0
    assert list(np.load(tmp_path / "v.npz")["groups"]) == ["na", "nb", "nc", "nd"]
    words += ["--extractor", "logmel", "--metrics", "P@1", "--steps", "prepare,embed,evaluate"]
    assert main(["run", "--corpus", str(tmp_path / "t.csv"), *words, "--into", str(tmp_path / "run")]) == 0


# --- names --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "path", "fields"),
    [
        ("{label}_{group}_{take}.wav", "x/0_george_12.WAV", {"label": "0", "group": "george"}),
        ("{fold}-{clip}-{take}-{label}", "1-100032-A-0.ogg", {"fold": "1", "label": "0"}),
        ("{label+}_{take}", "song_thrush_07.flac", {"label": "song_thrush"}),
        ("{label}{take#}", "robin07.wav", {"label": "robin"}),
        ("{group}/{label}/{take}", "deep/b1/trill/0.7.wav", {"group": "b1", "label": "trill"}),
        ("{subset}__{label}__{x}", "north__a_b__1.wav", {"subset": "north", "label": "a_b"}),
        ("{label}_{take}", "song_thrush_07.flac", {"label": "song"}),
        ("{label}_{group}_{take}.wav", "0_george.wav", None),
        ("{label}_{take}.wav", "0_1.flac", None),
        ("{label}_{take#}", "0_a.wav", None),
        ("x({label})", "x(1).wav", {"label": "1"}),
    ],
)
def test_patterns(pattern: str, path: str, fields: dict[str, str] | None) -> None:
    assert parse_pattern(pattern).fields_of(path) == fields


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("{lable}_{take}", 'names no {label}: .*Did you mean "lable"'),
        ("{label}_{label}", "twice"),
        ("{label}{group}", "nothing between"),
        ("{label+}_{group+}_x", "two fields with a"),
        ("{label_{take}", "brace"),
        ("label}", "brace"),
    ],
)
def test_wrong_patterns(pattern: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_pattern(pattern)


def test_labels_from_names(tmp_path: Path) -> None:
    sounds(tmp_path, DIGITS)
    corpus = open_corpus(str(tmp_path), labels_from="{label}_{group}_{take}.wav")
    assert {(clip.label, clip.group) for clip in corpus} == {(d, s) for d in "012" for s in ("george", "lucas")}
    assert "3 labels (0, 1, 2) and 2 groups (george, lucas)" in corpus.notes[-1]
    assert not any("no label" in note for note in corpus.notes)
    sounds(tmp_path, ["readme.wav"])
    with pytest.raises(InputError, match=r"readme\.wav does not fit the pattern \{label\}"):
        open_corpus(str(tmp_path), labels_from="{label}_{group}_{take}.wav")
    with pytest.raises(UsageError, match="names of files"):
        open_corpus("synth:tiny", labels_from="{label}")


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("2024-05-{day:02d}_SMM{site}_{bird}-call({day}).wav", "{date}_{group}_{label}-call({part5}).wav"),
        ("SMM{site}_20240501_0530{day:02d}_{bird}.wav", "{group}_{date}_{part3}_{label}.wav"),
        ("2024-05-01-{bird}-{day}.wav", "{date+}-{label}-{part3}.wav"),
        ("SMM{site}_202405{day:02d}_053000.wav", None),  # nothing says what is heard
        ("song_{bird}_{day:02d}.flac", "{part1}_{label}_{take}.flac"),
    ],
)
def test_dates_and_recorders_are_no_labels(name: str, pattern: str | None) -> None:
    told = {
        name.format(day=day, site=day % 3, bird=bird): bird for bird in ("wren", "owl") for day in range(1, 9)
    }  # fmt: skip
    found = likely_pattern([*told])
    assert (found and found.text) == pattern
    if found is not None:
        assert {path: (found.fields_of(path) or {})["label"] for path in told} == told


def test_the_sign_before_a_number_is_no_part_of_the_label() -> None:
    names = [f"{bird}_{take:02d}.wav" for bird in ("song_thrush", "wren") for take in range(4)]
    found = likely_pattern(names)
    assert found is not None
    assert {(found.fields_of(name) or {})["label"] for name in names} == {"song_thrush", "wren"}


def test_likely_patterns() -> None:
    def text(*names: str) -> str | None:
        found = likely_pattern(names)
        return found and found.text

    assert text(*DIGITS) == "{label}_{group}_{take}.wav"
    assert text("wren-1.wav", "wren-2.wav", "owl-3.wav", "owl-4.wav") == "{label}-{take}.wav"
    assert text("wren1.wav", "wren2.flac", "owl3.wav", "owl4.wav") == "{label}{take#}"
    assert text("r1_wren_1.wav", "r2_wren_2.wav", "r3_owl_3.wav", "r4_owl_4.wav") == "{part1}_{label}_{take}.wav"
    assert text("a.wav", "b.wav", "c.wav", "d.wav") is None
    assert text("rec_1.wav", "rec_2.wav", "rec_3.wav", "rec_4.wav") is None
    assert hint_of([Clip("a", path="a.wav")]) == ""


def test_nothing_is_embedded_where_no_clip_has_a_label(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sounds(tmp_path / "flat", DIGITS)
    into = tmp_path / "run"
    words = [
        "run",
        "--corpus",
        str(tmp_path / "flat"),
        "--extractor",
        "logmel",
        "--metrics",
        "P@1",
        "--into",
        str(into),
    ]
    words += ["--cache-dir", str(tmp_path / "cache"), "--quiet"]
    assert main(words) == 1
    said = capsys.readouterr().err
    assert "None of the 18 clips of flat has a label, so nothing can be measured" in said
    assert "--labels-from '{label}_{group}_{take}.wav' would give 3 labels (0, 1, 2)" in said
    assert not list((tmp_path / "cache").rglob("*embed*"))
    assert main([*words, "--labels-from", "{label}_{group}_{take}.wav", "--across-groups"]) == 0
