"""Folders of folders, and the one text that names a corpus."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from earmark import audio
from earmark.corpora._folders import read_folder
from earmark.corpora.clips import Corpus, CorpusCard
from earmark.corpora.export import export
from earmark.corpora.source import CORPORA, open_corpus
from earmark.errors import InputError, UsageError


def sound(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    audio.write(path, np.linspace(-0.5, 0.5, 800), 16_000)


def test_the_folder_is_the_label(tmp_path: Path) -> None:
    for name in ("dog/1.wav", "dog/two words.flac", "Kohlmeise ♀/ü.wav", "dog/UPPER.WAV", ".cache/x.wav", "dog/.h.wav"):
        sound(tmp_path / name)
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / "dog" / "notes.TXT").write_text("x")
    corpus = read_folder(tmp_path)
    assert [(clip.id, clip.label, clip.subset) for clip in corpus] == [
        ("Kohlmeise ♀/ü.wav", "Kohlmeise ♀", ""),
        ("dog/1.wav", "dog", ""),
        ("dog/UPPER.WAV", "dog", ""),
        ("dog/two words.flac", "dog", ""),
    ]
    assert "2 .txt" in corpus.notes[0]
    assert all(len(clip.read()[0]) == 800 for clip in corpus)


def test_nested_folders_are_subsets(tmp_path: Path) -> None:
    for name in ("a/x/1.wav", "a/y/1.wav", "b/c/x/1.wav", "loose.wav"):
        sound(tmp_path / name)
    corpus = read_folder(tmp_path)
    assert {clip.id: (clip.subset, clip.label) for clip in corpus} == {
        "a/x/1.wav": ("a", "x"),
        "a/y/1.wav": ("a", "y"),
        "b/c/x/1.wav": ("b/c", "x"),
        "loose.wav": ("", None),
    }
    assert any("1 of 4 clips lie in no folder" in note for note in corpus.notes)
    assert any("subset/label" in note for note in corpus.notes)


def test_links_are_followed_once(tmp_path: Path) -> None:
    sound(tmp_path / "there" / "dog" / "1.wav")
    root = tmp_path / "root"
    root.mkdir()
    (root / "dog").symlink_to(tmp_path / "there" / "dog")
    (root / "loop").symlink_to(root)
    assert [clip.label for clip in read_folder(root)] == ["dog"]


def test_names_that_are_not_utf8(tmp_path: Path) -> None:
    sound(tmp_path / "dog" / "1.wav")
    try:
        (tmp_path / "dog" / "1.wav").rename(tmp_path / "dog" / os.fsdecode(b"\xff.wav"))
    except OSError:
        pytest.skip("this file system takes only UTF-8 names")
    corpus = read_folder(tmp_path)
    assert corpus.clips[0].id == "dog/\ufffd.wav"
    assert len(corpus.clips[0].read()[0]) == 800
    assert len(corpus.clips[0].digest()) == 64
    export(corpus, tmp_path / "out")


def test_folders_without_audio(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no files"):
        read_folder(tmp_path)
    (tmp_path / "a.txt").touch()
    with pytest.raises(InputError, match="1 files are of other kinds"):
        read_folder(tmp_path)
    with pytest.raises(InputError, match="not a folder"):
        read_folder(tmp_path / "none")


# --- one text -----------------------------------------------------------------------------------------------

FOUND = Corpus(CorpusCard("mine"), [])


def opener() -> Corpus:
    return FOUND


def test_every_kind_of_spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sound(tmp_path / "dog" / "1.wav")
    assert len(open_corpus(str(tmp_path))) == 1
    assert open_corpus(str(tmp_path / "dog" / "1.wav")).clips[0].label is None
    (tmp_path / "m.csv").write_text("path,label\ndog/1.wav,dog\n")
    assert open_corpus(str(tmp_path / "m.csv")).name == "m"
    (tmp_path / "manifest.csv").write_text("path,label\ndog/1.wav,hound\n")
    assert open_corpus(str(tmp_path)).clips[0].label == "hound"
    monkeypatch.setitem(sys.modules, "my_corpora", sys.modules[__name__])
    assert open_corpus("my_corpora:FOUND") is FOUND
    assert open_corpus("my_corpora:opener") is FOUND


def test_a_registered_name_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[tuple[str, ...]] = []
    monkeypatch.setattr(CORPORA, "load", lambda name: lambda *args: given.append((name, *args)) or FOUND)
    monkeypatch.chdir(tmp_path)
    sound(tmp_path / "synth" / "dog" / "1.wav")
    assert open_corpus("synth") is FOUND
    assert open_corpus("vocsim:BS1,BS2") is FOUND
    assert given == [("synth",), ("vocsim", "BS1,BS2")]
    assert len(open_corpus("./synth")) == 1


def test_specs_that_name_nothing(tmp_path: Path) -> None:
    for spec, kind, said in (
        ("", UsageError, "is empty"),
        ("sinth", UsageError, 'Did you mean "synth"?'),
        (str(tmp_path / "none"), InputError, "does not exist"),
        ("none.csv", InputError, "does not exist"),
        ("no_such_module_here:x", InputError, "cannot be imported"),
    ):
        with pytest.raises(kind) as caught:
            open_corpus(spec)
        assert said in str(caught.value)
    (tmp_path / "a.pdf").touch()
    with pytest.raises(InputError, match="neither a manifest"):
        open_corpus(str(tmp_path / "a.pdf"))
    with pytest.raises(InputError, match="not a corpus"):
        open_corpus("earmark.corpora.vocsim:HUB_ID")
