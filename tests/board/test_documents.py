"""Documents from bytes: every format gives the same document, and what is no document is refused in one sentence."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zipfile
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.board.documents import document, read_own, row

from earmark.errors import EarmarkError, InputError
from earmark.scores import Row, Scores
from earmark.submissions import Document, Limits, SystemCard, card_from, combined, plain_card, read_document
from earmark.submissions._strictness import strict_json

ROWS = (
    row(1 / 3, low=0.1, high=0.5, n=473, seconds=1e-9),
    row(None, subset="otters, “both”\nkinds", status="failed", reason='said "no"'),
)


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "json", "parquet"])
def test_every_format_gives_the_same_document(tmp_path: Path, suffix: str) -> None:
    place = tmp_path / f"scores.{suffix}"
    Scores(ROWS).write(place)
    found = read_document(place.read_bytes(), filename=place.name, cards=[SystemCard("model", family="F")])
    assert found.board == "mine"
    assert found.scores.rows == ROWS
    assert found.cards == (SystemCard("model", family="F"),)
    assert found.digest == Document.of(Scores(ROWS), cards=found.cards).digest
    # The form in which it is kept is read back as the same.
    again = read_document(found.to_bytes())
    assert (again, again.digest) == (found, found.digest)


def test_the_board_and_the_system_may_be_said_beside_the_table() -> None:
    table = b"subset,metric,value\nbirds,P@1,0.5\n"
    found = read_document(table, filename="s.csv", board="mine", cards=[SystemCard("model")])
    assert found.scores.rows == (Row(suite="mine", subset="birds", system="model", metric="P@1", value=0.5),)
    with pytest.raises(InputError, match="which board"):
        read_document(table, filename="s.csv")
    with pytest.raises(InputError, match="name 2 suites"):
        read_document(b"suite,metric,value\na,P@1,0\nb,P@1,0\n", filename="s.csv")
    own = document().to_bytes()
    with pytest.raises(InputError, match='for the board "mine", not for "other"'):
        read_document(own, board="other")


def test_a_codec_document_is_read_with_its_cards() -> None:
    result = {"value": 1.0, "n": 3, "version": "0.1", "inputs": "ab" * 32}
    plain = {
        "format": "earmark-codec-submission", "version": 1, "earmark": "0.1", "suite": "codec",
        "codecs": [{
            "card": {"name": "opus@12", "family": "opus", "kbps": 12.0, "licence": "BSD"},
            "results": [{"subset": "esc50", "metric": "kbps", **result, "value": 12.1},
                        {"subset": "esc50", "metric": "pesq", **result}],
        }],
    }  # fmt: skip
    data = json.dumps(plain).encode()
    found = read_document(data, filename="codecs.json")
    assert found.board == "codec"
    assert found.cards == (SystemCard("opus@12", kind="codec", family="opus", kbps=12.0, licence="BSD"),)
    assert [r.metric for r in found.scores] == ["kbps", "pesq"]
    moved = read_document(data, filename="codecs.json", board="codec-superb")
    assert {r.suite for r in moved.scores} == {moved.board} == {"codec-superb"}


# --- what is refused -------------------------------------------------------------------------------------------------

SCORES = '"scores": [{"system": "model", "metric": "P@1", "value": %s}]'
OWN = '{"format": "earmark-submission", "version": 1, "board": "mine", %s}'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (OWN % (SCORES % "NaN"), "holds NaN"),
        (OWN % (SCORES % "Infinity"), "holds Infinity"),
        (OWN % (SCORES % "-Infinity"), "holds -Infinity"),
        (OWN % (SCORES % "1e999"), "inf"),
        (OWN % (SCORES % ("1" * 5000)), "5,000 digits"),
        (OWN % (SCORES % '"0.5"'), "not a number"),
        (OWN % (SCORES % "true"), "not a number"),
        (OWN % (SCORES % "0.5, \"value\": 0.6"), 'the key "value" twice'),
        (OWN % ('"board": "x", ' + SCORES % 0.5), 'the key "board" twice'),
        (OWN % '"scores": [{"metric": "P@1", "vlaue": 1}]', 'unknown column "vlaue".*Did you mean "value"'),
        (OWN % '"scores": [{"value": 1}]', 'no "metric"'),
        (OWN % '"scores": [1]', "not a JSON object"),
        (OWN % '"scores": {}', "arrays"),
        (OWN % '"systems": 3', "arrays"),
        (OWN % '"systems": [{"name": ""}]', 'no "name"'),
        (OWN % '"systems": [{"name": "a", "kbps": 1e999}]', "not a finite number"),
        (OWN % '"systems": [{"name": "a", "kbps": NaN}]', "holds NaN"),
        (OWN % '"systems": [{"name": "a", "year": 2.5}]', "whole number"),
        (OWN % '"systems": [{"name": "a", "authors": "b"}]', "list of texts"),
        (OWN % '"systems": [{"name": "a", "parameters": 1}]', "unknown key"),
        (OWN % '"provenance": "true", "scores": []', "provenance"),
        (OWN % '"more": 1', 'unknown key "more"'),
        ('{"format": "earmark-submission", "version": 3}', "reads version 2"),
        ('{"format": "earmark-submission", "version": true}', "reads version 2"),
        ('{"format": "something"}', "neither an array"),
        ("[", "not valid JSON"),
        ("3", "neither an array"),
        ("null", "neither an array"),
        ('{"a": "' + "b" * 10, "not valid JSON"),
        ("", "is empty"),
        ("  \n", "is empty"),
    ],
)  # fmt: skip
def test_strict_json(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said) as refused:
        read_document(text.encode(), filename="scores.json")
    assert len(str(refused.value)) < 400


@pytest.mark.parametrize("opening", ["[", '{"a":', '[{"a":'])
def test_deep_nesting_is_refused_before_it_is_parsed(opening: str) -> None:
    deep = (opening * 1_000_000)[:7_000_000]
    with pytest.raises(InputError, match="nested more than 32 deep"):
        read_document(deep.encode())
    lines = (opening * 100).encode()
    with pytest.raises(InputError, match="line 1 is nested"):
        read_document(lines, filename="s.jsonl")
    # Brackets in texts are no brackets.
    assert strict_json(b'["' + b"[" * 1000 + b'\\"]"]', "x", Limits()) == ["[" * 1000 + '"]']


def test_hostile_texts_take_linear_time() -> None:
    """Strings that never end, made of quotation marks and backslashes: in quadratic time this would take days."""
    for data in (b'["' + b'\\"' * 900_000, b'"' * 1_900_001, b'["' + b"\\" * 1_900_000):
        with pytest.raises(InputError, match="not valid JSON"):
            read_document(data)


@settings(max_examples=60, deadline=None)
@given(st.recursive(st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
                    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
                    max_leaves=20))  # fmt: skip
def test_strict_json_reads_what_json_reads(plain: Any) -> None:
    assert strict_json(json.dumps(plain).encode(), "x", Limits(max_depth=100)) == plain


def _read_or_refused(data: bytes, name: str = "") -> str:
    """What is said of the bytes; empty when they are a document. Anything but an EarmarkError is a failure."""
    try:
        read_document(data, filename=name)
    except EarmarkError as error:
        return str(error)
    return ""


@settings(max_examples=150, deadline=None)
@given(
    st.binary(max_size=300), st.sampled_from(["a.json", "a.csv", "a.jsonl", "a.parquet", "a.exe", "", "../../x.csv"])
)
def test_no_bytes_break_the_reader(data: bytes, name: str) -> None:
    assert "\n" not in _read_or_refused(data, name)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_no_change_of_a_good_document_breaks_the_reader(data: st.DataObject) -> None:
    good = bytearray(document().to_bytes())
    place = data.draw(st.integers(0, len(good) - 1))
    good[place : place + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=4))
    assert "\n" not in _read_or_refused(bytes(good))


def test_large_and_long_documents_are_refused() -> None:
    with pytest.raises(InputError, match="has 100,000,000 bytes"):
        read_document(bytes(100_000_000), filename="scores.json")
    few = Limits(max_rows=3, max_systems=2)
    rows = tuple(row(subset=f"s{k}") for k in range(4))
    many = Document.of(Scores(rows)).to_bytes()
    with pytest.raises(InputError, match="more than 3 rows"):
        read_document(many, limits=few)
    table = "metric,value\n" + "P@1,0.5\n" * 10
    with pytest.raises(InputError, match="more than 3 lines"):
        read_document(table.encode(), filename="s.csv", limits=few)
    systems = Document.of(Scores(tuple(row(system=f"s{k}") for k in range(3)))).to_bytes()
    with pytest.raises(InputError, match="3 systems"):
        read_document(systems, limits=few)


def test_compressed_files_are_refused() -> None:
    bomb = gzip.compress(bytes(1_000_000))
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as zipped:
        zipped.writestr("scores.csv", "x" * 1_000_000)
    for data, packing in ((bomb, "gzip"), (archive.getvalue(), "zip")):
        for name in ("scores.json", "scores.csv", "scores.parquet", "scores.csv.gz"):
            with pytest.raises(InputError, match=rf"compressed \({packing}\)"):
                read_document(data, filename=name)
    with pytest.raises(InputError):
        read_document(zlib.compress(bytes(1000)), filename="scores.json")


@pytest.mark.parametrize(
    ("name", "said"),
    [("scores.xlsx", "is one of .csv"), ("scores", "is one of .csv"), ("/etc/passwd", "passwd: a document is one of")],
)
def test_other_files_are_refused_and_no_path_is_followed(name: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_document(b"metric,value\n", filename=name)


def test_what_is_said_of_a_table_names_the_file_and_not_where_it_lay() -> None:
    with pytest.raises(InputError) as refused:
        read_document(b"metric,value\nP@1,much\n", filename="C:\\mine\\scores.csv", board="mine")
    assert str(refused.value).startswith('scores.csv, line 2, column "value" holds "much"')


# --- Parquet ---------------------------------------------------------------------------------------------------------


def _parquet(columns: dict[str, Any], **options: Any) -> bytes:
    out = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(columns), out, **options)
    return out.getvalue()


def test_parquet_bombs_are_refused() -> None:
    limits = Limits(max_rows=1000)
    many = _parquet({"metric": pyarrow.array(["P@1"] * 1_000_000), "value": pyarrow.array([0.5] * 1_000_000)})
    assert len(many) < 100_000
    with pytest.raises(InputError, match="1,000,000 rows"):
        read_document(many, filename="s.parquet", limits=limits)
    # A dictionary of one long text, which each row repeats: 20 MB from less than 200 kB.
    long = _parquet({"metric": ["P@1"] * 200, "reason": ["x" * 100_000] * 200, "value": [0.5] * 200})
    assert len(long) < 200_000
    with pytest.raises(InputError, match="holds a text of 100,000 bytes"):
        read_document(long, filename="s.parquet", limits=limits)
    packed = _parquet({"metric": ["x" * 1_000_000], "value": [0.5]}, compression="zstd")
    with pytest.raises(InputError, match="packed with ZSTD"):
        read_document(packed, filename="s.parquet")
    nested = _parquet({"metric": [["P@1"]], "value": [0.5]})
    with pytest.raises(InputError, match="holds list"):
        read_document(nested, filename="s.parquet")
    wide = _parquet({f"c{k}": [1] for k in range(500)})
    with pytest.raises(InputError, match="500 columns"):
        read_document(wide, filename="s.parquet")


def test_a_text_that_each_row_prolongs_is_refused() -> None:
    """Delta encoding keeps what a text shares with the one before only once: 3 MB of text from some kB."""
    texts = ["x" * 3000 + str(k) for k in range(1000)]
    data = _parquet(
        {"metric": ["P@1"] * 1000, "reason": texts, "value": [0.5] * 1000},
        use_dictionary=False, column_encoding={"reason": "DELTA_BYTE_ARRAY"},
    )  # fmt: skip
    assert len(data) < 100_000
    with pytest.raises(InputError, match="holds a text of 3,0"):
        read_document(data, filename="s.parquet", limits=Limits(max_text=500))


@pytest.mark.parametrize("encoded", [False, True])
def test_texts_count_as_often_as_they_stand_in_a_row(encoded: bool) -> None:
    """Twenty kilobytes that become twenty megabytes of values in Python, whatever the columns take."""
    reasons = pyarrow.array(["x" * 1900] * 10_000)
    if encoded:
        reasons = reasons.dictionary_encode()
    data = _parquet({"metric": ["P@1"] * 10_000, "value": [0.5] * 10_000, "reason": reasons})
    assert len(data) < 100_000
    with pytest.raises(InputError, match="unpacks to more than"):
        read_document(data, filename="s.parquet", limits=Limits(max_body=2_000_000))


def test_categorical_and_damaged_parquet() -> None:
    category = pyarrow.array(["P@1", "GSR"]).dictionary_encode()
    data = _parquet({"metric": category, "value": [0.5, 0.25]})
    found = read_document(data, filename="s.parquet", board="mine", cards=[SystemCard("m")])
    assert [(r.metric, r.value) for r in found.scores] == [("P@1", 0.5), ("GSR", 0.25)]
    for cut in (5, len(data) // 2, len(data) - 5):
        with pytest.raises(InputError, match="not readable as Parquet"):
            read_document(data[:cut], filename="s.parquet")


# --- cards -----------------------------------------------------------------------------------------------------------


def test_a_card_survives_and_a_later_one_adds_to_it() -> None:
    card = SystemCard("m", kind="codec", authors=("a", "b"), training_free=False, kbps=0.0, url="https://x.org")
    assert card_from(json.loads(json.dumps(plain_card(card)))) == card
    assert plain_card(SystemCard("m")) == {"name": "m"}
    later = SystemCard("m", kind="codec", kbps=6.0, licence="MIT")
    assert combined([card, later]) == replace(card, kbps=6.0, licence="MIT")
    assert read_own(systems=[{"name": "model", "training_free": False, "kbps": None}]).cards[0].training_free is False


def test_equal_documents_have_equal_digests() -> None:
    table = io.StringIO()
    writer = csv.writer(table)
    writer.writerow(["value", "metric", "suite", "subset", "system"])
    writer.writerow(["0.50", "P@1", "mine", "birds", "model"])
    one = read_document(table.getvalue().encode(), filename="a.csv")
    cells = {"subset": "birds", "system": "model", "metric": "P@1", "value": 0.5}
    assert one.digest == read_own(scores=[cells]).digest
    assert one.digest != read_own(scores=[{**cells, "value": 0.51}]).digest
