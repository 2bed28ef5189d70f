"""What strangers bring: a corpus of their own in one file, and labels that tables do not expect."""

from __future__ import annotations

from pathlib import Path

import pytest

from earmark import audio, cli
from earmark.corpora import Clip, Corpus, CorpusCard, open_corpus
from earmark.corpora.export import export
from earmark.scores import load_scores

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_a_corpus_in_one_file_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len((EXAMPLES / "my_corpus.py").read_text().splitlines()) < 30
    assert len(open_corpus(f"{EXAMPLES / 'my_corpus.py'}:my_corpus")) == 18
    monkeypatch.chdir(EXAMPLES)
    assert cli.main(["run", "--corpus", "my_corpus:my_corpus", "--extractor", "logmel", "--into", str(tmp_path / "r"),
                     "--cache", "off", "--quiet"]) == 0  # fmt: skip
    scores = load_scores(tmp_path / "r" / "scores.csv")
    assert {row.suite for row in scores} == {"notes"}
    assert scores.select(metric="P@1", status="ok").rows


def test_a_label_with_line_breaks_survives_an_export(tmp_path: Path) -> None:
    back = open_corpus(str(_exported(tmp_path)))
    assert {clip.label for clip in back} == {"ro\rbin", 'w"ren,'}
    assert {clip.group for clip in back} == {"g\rh"}


def test_a_label_with_line_breaks_survives_a_run(tmp_path: Path) -> None:
    assert cli.main(["run", "--corpus", str(_exported(tmp_path)), "--extractor", "logmel", "--cache", "off",
                     "--into", str(tmp_path / "r"), "--quiet"]) == 0  # fmt: skip


def _exported(tmp_path: Path) -> Path:
    notes = open_corpus(str(_folder_of_tones(tmp_path / "in")))
    odd = {"a": "ro\rbin", "b": 'w"ren,\n'}
    clips = [Clip(clip.id, odd[clip.label or ""], path=clip.path, group="g\rh") for clip in notes]
    export(Corpus(CorpusCard("odd"), clips), tmp_path / "out")
    return tmp_path / "out"


def _folder_of_tones(root: Path) -> Path:
    import numpy as np

    for label, pitch in (("a", 300.0), ("b", 900.0)):
        (root / label).mkdir(parents=True)
        for take in range(4):
            samples = np.sin(2 * np.pi * pitch * (1 + 0.01 * take) * np.arange(4000) / 16_000)
            audio.write(root / label / f"{take}.wav", 0.5 * samples, 16_000)
    return root
