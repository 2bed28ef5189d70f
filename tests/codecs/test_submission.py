"""The submission file: it comes back as it was, and nothing else is believed."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from earmark.codecs.contract import CodecCard
from earmark.codecs.submission import codec_document, to_json
from earmark.errors import InputError
from earmark.scores import Row, Scores
from earmark.submissions import Dataset, Document, enforce, schema
from earmark.submissions import read_document as read_bytes
from earmark.submissions._documents import _KEYS, Limits

CARDS = (
    CodecCard(name="opus@12", family="opus", rate=48000, kbps=12.0, frame_rate=50.0, delay=0, causal=True),
    CodecCard(name="toy", family="toy", codebooks=2, codebook_sizes=(1024, 1024), notes="“quoted” µ"),
)


def row(system: str, metric: str, value: float | None = None, **cells: Any) -> Row:
    return Row(
        suite="codec", subset="esc50", system=system, metric=metric, value=value, n=200, version="0.1.0",
        inputs="ab12", **cells,
    )  # fmt: skip


ROWS = (
    row("opus@12", "kbps", 11.4, low=11.0, high=11.9, reason="header of 0.2 kbit for each clip counted apart"),
    row("opus@12", "pesq", 3.36, low=3.2, high=3.5),
    row("opus@12", "stoi", None, status="failed", reason="it is silent"),
    row("opus@12", "pesq", 2.1, protocol="tandem:3"),
    row("opus@12", "P@1", 0.4, distance="cosine", baseline=0.02, lift=0.38, p_value=0.001),
    row("toy", "kbps", None, status="failed", reason="no clip was coded"),
)
DOCUMENT = codec_document(
    CARDS,
    Scores(ROWS),
    datasets=(Dataset("esc50", "audio", 200, 1000.0, "ff00"),),
    versions={"numpy": "2.3", "pesq": "0.0.4"},
)


def read_document(data: bytes | str) -> Document:
    """The document, if it keeps the rules."""
    document = read_bytes(data if isinstance(data, bytes) else data.encode())
    enforce(document)
    return document


def changed(**changes: Any) -> str:
    plain = json.loads(to_json(DOCUMENT))
    return json.dumps({**plain, **changes})


def with_score(**changes: Any) -> str:
    plain = json.loads(to_json(DOCUMENT))
    plain["scores"][1].update(changes)
    return json.dumps(plain)


def test_it_comes_back_as_it_was() -> None:
    assert read_document(to_json(DOCUMENT)) == DOCUMENT
    assert read_document(DOCUMENT.to_bytes()) == DOCUMENT
    assert to_json(DOCUMENT) == to_json(read_document(to_json(DOCUMENT)))


def test_every_fact_of_a_card_is_kept() -> None:
    opus, toy = DOCUMENT.cards
    assert (opus.kind, opus.family, opus.kbps) == ("codec", "opus", 12.0)
    always = {"version": "1", "isolation": "unknown", "check": "not run"}
    assert opus.details == {"rate": 48000, "frame_rate": 50.0, "causal": True, "delay": 0, **always}
    assert toy.description == "“quoted” µ"
    assert toy.details == {"codebooks": 2, "codebook_sizes": [1024, 1024], **always}


def test_what_is_not_said_is_not_written() -> None:
    score = DOCUMENT.plain["scores"][1]
    assert set(score) == {"subset", "system", "metric", "value", "low", "high", "n", "version", "inputs"}


def test_partial_results_are_welcome() -> None:
    few = codec_document(CARDS[:1], Scores(ROWS[:1]))
    assert read_document(to_json(few)).scores.value("kbps") == 11.4


def test_the_schema_knows_every_key_that_is_written() -> None:
    shape = schema()["properties"]
    assert set(DOCUMENT.plain) <= set(shape) == set(_KEYS)
    for score in DOCUMENT.plain["scores"]:
        assert set(score) <= set(shape["scores"]["items"]["properties"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not valid JSON"),
        ("3", '"format"'),
        ('{"format": "earmark-submission"}', 'version "None"'),
        ('{"format": "earmark-codec-submission"}', 'version "None"'),
        ('{"format": "earmark-codec-submission", "version": 1, "codecs": []}', "codecs"),
        ('{"format": "earmark-codec-submission", "version": 1, "codecs": [{"card": {}}]}', "codec 1"),
        (changed(version=3), "reads version 2"),
        (changed(surprise=1), "surprise"),
        (changed(scores=[]), "no scores"),
        (changed(board=""), "which board"),
        (changed(definitions="own"), "definitions"),
        (changed(versions={"numpy": 2}), "versions"),
        (changed(datasets=[{"subset": "a", "category": "noise", "clips": 1}]), "category"),
        (changed(datasets=[{"subset": "a", "category": "audio"}]), "clips"),
        (changed(datasets=[{"subset": "a", "category": "audio", "clips": 1}] * 2), "twice"),
        (changed(systems=DOCUMENT.plain["systems"][:1] * 2 + DOCUMENT.plain["systems"][1:]), "2 cards"),
        (changed(systems=[{**DOCUMENT.plain["systems"][0], "details": {"a": {}}}]), "details"),
        (to_json(DOCUMENT).replace('"value": 3.36', '"value": NaN'), "NaN"),
        (to_json(DOCUMENT).replace('"value": 3.36', '"value": 1e999'), "inf"),
        (to_json(DOCUMENT).replace('"value": 3.36', '"value": 3.36, "value": 4.6'), "twice"),
        (to_json(DOCUMENT).replace('"value": 3.36', '"value": "3.36"'), "value"),
        (to_json(DOCUMENT).replace('"n": 200', f'"n": {"9" * 500}', 1), "digits"),
        (with_score(value=9.0), "outside"),
        (with_score(metric="pesk"), "no metric"),
        (with_score(n=None), "without n"),
        (with_score(inputs=""), "inputs"),
        (with_score(version=""), "version"),
        (with_score(value=None), "no value"),
        (with_score(status="predicted"), "status"),
        (with_score(low=4.0), "above high"),
        (with_score(protocol="tandem:0"), "protocol"),
        (with_score(metric="kbps", value=11.0), "repeats"),
        ('{"format": ' + "[" * 5000 + "]" * 5000 + "}", "deep"),
        ("\x00", "not valid JSON"),
    ],
)
def test_what_is_no_measurement_is_refused(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_document(text)


def test_a_codec_without_a_counted_rate_is_refused() -> None:
    with pytest.raises(InputError, match="bitrate"):
        to_json(codec_document(CARDS[:1], Scores(ROWS[1:2])))


def test_brackets_inside_text_are_no_depth() -> None:
    card = replace(CARDS[0], notes="[" * 500 + '"\\' + "{" * 500)
    document = codec_document((card, CARDS[1]), Scores(ROWS))
    assert read_document(to_json(document)).cards[0].description == card.notes


def test_a_reason_without_end_is_cut() -> None:
    long = replace(ROWS[2], reason="it broke and " * 400)
    document = codec_document(CARDS, Scores((*ROWS[:2], long, ROWS[5])))
    assert read_document(to_json(document)).scores.row("stoi").reason.endswith("…")


def test_too_much_is_not_even_parsed() -> None:
    with pytest.raises(InputError, match="bytes"):
        read_document(b" " * (Limits().max_body + 1))
    with pytest.raises(InputError, match="UTF-8"):
        read_document(b"\xff\xfe{")
