"""Submissions of older versions are still read, with the same numbers; what boards have stored keeps its digest."""

from __future__ import annotations

import json
from pathlib import Path

from earmark.submissions import Dataset, check, read_document

HERE = Path(__file__).parent


def test_a_submission_of_the_first_version_keeps_its_bytes() -> None:
    data = (HERE / "submission_v1.json").read_bytes()
    document = read_document(data)
    assert document.to_bytes() == data
    assert document.digest == "6b65924dc4183a4cbd0ee237cdf193e0382b51a8d76234642c0d06cbc51a3be7"
    assert document.board == "mine"
    assert document.cards[0].authors == ("Ada", "Grace")
    assert document.scores.value("P@1", subset="birds") == 1 / 3
    assert document.scores.row("P@1", subset="birds~noise0.05").ablation == "noise0.05"
    assert check(document).problems == []


def test_a_codec_submission_of_the_first_version_is_read() -> None:
    data = (HERE / "codec_submission_v1.json").read_bytes()
    document = read_document(data)
    opus, toy = document.cards
    assert (opus.name, opus.kind, opus.family, opus.kbps, opus.licence) == (
        "opus@12",
        "codec",
        "opus",
        12.0,
        "BSD-3-Clause",
    )
    assert opus.details == {"rate": 48000, "frame_rate": 50.0, "causal": True, "delay": 0}
    assert (toy.description, toy.details["codebook_sizes"]) == ("“quoted” µ", [1024, 1024])
    assert document.datasets == (Dataset("esc50", "audio", 200, 1000.0, "ff00"),)
    assert document.definitions == "mended"
    assert document.versions == {"numpy": "2.3", "pesq": "0.0.4"}
    assert [row.system for row in document.scores] == ["opus@12"] * 5 + ["toy"]
    assert document.scores.value("pesq", protocol="tandem:3") == 2.1
    assert check(document).problems == []
    assert read_document(document.to_bytes()) == document
    assert json.loads(document.to_bytes())["version"] == 2
    assert {row.suite for row in read_document(data, board="codec-superb").scores} == {"codec-superb"}
