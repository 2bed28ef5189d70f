"""The form beside the file: a card for one system, and what happens when form and file disagree."""

from __future__ import annotations

import pytest
from tests.board.hosted import document

from earmark.board.pages.card_form import FIELDS, document_from
from earmark.errors import InputError
from earmark.scores import Row, Scores
from earmark.submissions import Document, Limits, SystemCard

LIMITS = Limits()


def test_every_fact_of_a_card_can_be_said_in_the_form() -> None:
    assert {field.name for field in FIELDS} == set(SystemCard.__dataclass_fields__) - {"details"}  # of runs of codecs


def test_an_empty_form_leaves_the_file_as_it_is() -> None:
    sent = document(family="Whisper")
    empty = {field.name: " " for field in FIELDS}
    assert document_from(empty, sent.to_bytes(), "d.json", LIMITS).digest == sent.digest


def test_the_form_adds_to_the_card_in_the_file() -> None:
    texts = {
        "title": "Mine", "authors": "A. One, B. Two,", "parameters_m": "12.5", "year": "2025", "training_free": "no",
        "kind": "codec", "description": "one\r\ntwo",
    }  # fmt: skip
    made = document_from(texts, document(family="Whisper", title="Old").to_bytes(), "d.json", LIMITS)
    assert made.cards == (
        SystemCard(
            "my model", "codec", "Mine", "Whisper", "one\ntwo", ("A. One", "B. Two"), training_free=False,
            parameters_m=12.5, year=2025,
        ),
    )  # fmt: skip
    assert made.scores == document().scores


def test_a_table_without_names_gets_its_board_and_system_from_the_form() -> None:
    rows = "metric,subset,distance,value\nP@1,BC,cosine,0.5\n"
    made = document_from({"name": "mine", "board": "vocsim"}, rows.encode(), "C:\\scores.csv", LIMITS)
    assert (made.board, made.cards) == ("vocsim", (SystemCard("mine"),))
    assert made.scores.rows == (
        Row(suite="vocsim", system="mine", metric="P@1", subset="BC", distance="cosine", value=0.5),
    )


def test_what_does_not_fit_together_is_said() -> None:
    two = Document.of(Scores((*document("a").scores.rows, *document("b").scores.rows)))
    for texts, data, said in (
        ({}, b"", "No file was chosen"),
        ({"title": "x"}, two.to_bytes(), "one system and the file has 2"),
        ({"name": "other"}, document().to_bytes(), 'The form says "other" and the file "my model"'),
        ({"year": "soon"}, document().to_bytes(), "Year is a number"),
        ({"parameters_m": "1e999"}, document().to_bytes(), "not a finite number"),
        ({"kind": "thing"}, document().to_bytes(), "kind"),
    ):
        with pytest.raises(InputError, match=said):
            document_from(texts, data, "d.json", LIMITS)
