"""The submission file: it comes back as it was, and nothing else is believed."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from earmark.codecs.contract import CodecCard
from earmark.codecs.submission import MOST_BYTES, Document, to_document, to_json
from earmark.submissions import Dataset, read_document, schema
from earmark.errors import InputError
from earmark.scores import Row, Scores

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
DOCUMENT = Document(
    CARDS,
    Scores(ROWS),
    datasets=(Dataset("esc50", "audio", 200, 1000.0, "ff00"),),
    versions={"numpy": "2.3", "pesq": "0.0.4"},
)


def changed(**changes: Any) -> str:
    plain = json.loads(to_json(DOCUMENT))
    return json.dumps({**plain, **changes})


def with_result(**changes: Any) -> str:
    plain = json.loads(to_json(DOCUMENT))
    plain["codecs"][0]["results"][1].update(changes)
    return json.dumps(plain)


def test_it_comes_back_as_it_was() -> None:
    assert read_document(to_json(DOCUMENT)) == DOCUMENT
    assert read_document(to_json(DOCUMENT).encode()) == DOCUMENT
    assert to_json(DOCUMENT) == to_json(read_document(to_json(DOCUMENT)))


def test_what_is_not_said_is_not_written() -> None:
    result = to_document(DOCUMENT)["codecs"][0]["results"][1]
    assert set(result) == {"subset", "metric", "value", "low", "high", "n", "status", "version", "inputs"}


def test_partial_results_are_welcome() -> None:
    few = replace(DOCUMENT, cards=CARDS[:1], scores=Scores(ROWS[:1]), datasets=())
    assert read_document(to_json(few)).scores.value("kbps") == 11.4


def test_the_schema_knows_every_key_that_is_written() -> None:
    shape = schema()
    parts = shape["$defs"]
    written = to_document(DOCUMENT)
    assert set(written) <= set(shape["properties"])
    for codec in written["codecs"]:
        assert set(codec["card"]) <= set(parts["_Card"]["properties"])
        assert all(set(result) <= set(parts["_Result"]["properties"]) for result in codec["results"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not valid JSON"),
        ("[]", '"format"'),
        ('{"format": "earmark-codec-submission"}', "version None"),
        (changed(version=2), "reads version 1"),
        (changed(surprise=1), "surprise"),
        (changed(codecs=[]), "codecs"),
        (changed(suite=""), "suite"),
        (changed(datasets=[{"subset": "a", "category": "noise", "clips": 1}]), "category"),
        (changed(datasets=[{"subset": "a", "category": "audio", "clips": 1}] * 2), "twice"),
        (changed(codecs=json.loads(to_json(DOCUMENT))["codecs"][:1] * 2), "two codecs"),
        (to_json(DOCUMENT).replace('"value": 3.36', '"value": NaN'), "NaN"),
        (to_json(DOCUMENT).replace('"value": 3.36', '"value": 1e999'), "finite"),
        (to_json(DOCUMENT).replace('"value": 3.36', '"value": 3.36, "value": 4.6'), "twice"),
        (to_json(DOCUMENT).replace('"value": 3.36', '"value": "3.36"'), "value"),
        (to_json(DOCUMENT).replace('"n": 200', f'"n": {"9" * 30}', 1), "digits"),
        (with_result(value=9.0), "outside"),
        (with_result(metric="pesk"), "unknown metric"),
        (with_result(n=None), "without n"),
        (with_result(inputs=""), "inputs"),
        (with_result(value=None), "no value"),
        (with_result(status="predicted"), "status"),
        (with_result(low=4.0), "above high"),
        (with_result(protocol="tandem:0"), "protocol"),
        (with_result(metric="kbps", value=11.0), "repeats"),
        ('{"format": ' + "[" * 5000 + "]" * 5000 + "}", "deep"),
        ("\x00", "not valid JSON"),
    ],
)
def test_what_is_no_measurement_is_refused(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_document(text)


def test_a_codec_without_a_counted_rate_is_refused() -> None:
    with pytest.raises(InputError, match="bitrate"):
        to_document(replace(DOCUMENT, cards=CARDS[:1], scores=Scores(ROWS[1:2])))


def test_brackets_inside_text_are_no_depth() -> None:
    card = replace(CARDS[0], notes="[" * 500 + '"\\' + "{" * 500)
    document = replace(DOCUMENT, cards=(card, CARDS[1]))
    assert read_document(to_json(document)).cards[0].notes == card.notes


def test_a_reason_without_end_is_cut() -> None:
    long = replace(ROWS[2], reason="it broke and " * 400)
    found = read_document(to_json(replace(DOCUMENT, scores=Scores((*ROWS[:2], long, ROWS[5])))))
    assert found.scores.row("stoi").reason.endswith("…")


def test_too_much_is_not_even_parsed() -> None:
    with pytest.raises(InputError, match="bytes"):
        read_document(b" " * (MOST_BYTES + 1))
    with pytest.raises(InputError, match="UTF-8"):
        read_document(b"\xff\xfe{")
