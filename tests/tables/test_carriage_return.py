"""A label with a carriage return goes through a run and through an export."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from earmark import audio, cli
from earmark.corpora import open_corpus
from earmark.tables import read_csv_records, read_text, write_csv

LABEL = "wren\rlow"


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    lines = []
    for number in range(8):
        audio.write(tmp_path / f"{number}.wav", rng.uniform(-0.5, 0.5, 4000).astype(np.float32), 16_000)
        lines.append([f"{number}.wav", LABEL if number % 2 else "owl"])
    write_csv(tmp_path / "manifest.csv", ["path", "label"], lines)
    return tmp_path / "manifest.csv"


def test_a_run_keeps_it_and_reads_it_again(manifest: Path, tmp_path: Path) -> None:
    words = ["run", "--corpus", str(manifest), "--extractor", "logmel", "--pool", "mean_time", "--metrics", "P@1"]
    words += ["--intervals", "none", "--cache-dir", str(tmp_path / "cache"), "--into", str(tmp_path / "run"), "--quiet"]
    for _ in range(2):  # the second reads what the first has written
        assert cli.main(words) == 0
    path = tmp_path / "run" / "clips.csv"
    assert {record["label"] for record in read_csv_records(read_text(path), path)} == {LABEL, "owl"}


def test_an_export_writes_a_manifest_that_opens(manifest: Path, tmp_path: Path) -> None:
    assert cli.main(["corpus", "export", str(manifest), "--into", str(tmp_path / "out"), "--quiet"]) == 0
    again = open_corpus(str(tmp_path / "out" / "manifest.csv"))
    assert {clip.label for clip in again.clips} == {LABEL, "owl"}
