"""The form that an author fills in beside the file: a card for the one system that the file is about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from earmark.errors import InputError, quoted
from earmark.submissions import Document, Limits, SystemCard, card_from, combined, read_document


class Field(NamedTuple):
    """One line of the form: its name in the card, what people read, and how it is asked for."""

    name: str
    label: str
    help: str = ""
    kind: str = "text"  # text, number, url, lines, choice
    choices: tuple[tuple[str, str], ...] = ()


FIELDS = (
    Field("name", "System", "needed only when the table has no column “system”"),
    Field("kind", "Kind", kind="choice", choices=(
        ("", "as the file says"), ("representation", "representation"), ("codec", "codec"), ("generator", "generator"),
    )),
    Field("title", "Title"),
    Field("family", "Family", "the model behind several configurations, such as Whisper"),
    Field("authors", "Authors", "separated by commas"),
    Field("url", "Address", "of the code, the weights or the paper", "url"),
    Field("licence", "Licence", "of the weights, such as MIT"),
    Field("training_free", "Training-free", "nothing was trained on this benchmark's own data", "choice", (
        ("", "not said"), ("yes", "yes"), ("no", "no"),
    )),
    Field("parameters_m", "Parameters", "in millions", "number"),
    Field("real_time_factor", "Real-time factor", "seconds of work for one second of sound", "number"),
    Field("kbps", "Bitrate", "of a codec, in kbps", "number"),
    Field("pretraining", "Pretraining data", "separated by commas"),
    Field("year", "Year", "of the paper or release", "number"),
    Field("command", "How to reproduce", "the command that made the scores", "lines"),
    Field("citation", "Citation", "BibTeX, or one line", "lines"),
    Field("description", "Description", "", "lines"),
)  # fmt: skip


def document_from(texts: Mapping[str, str], data: bytes, filename: str, limits: Limits) -> Document:
    """The document in the file, with what the form says of its system."""
    if not data:
        raise InputError("No file was chosen; choose a score table or the JSON of a codec.")
    filled = {field: texts.get(field.name, "").replace("\r\n", "\n").strip() for field in FIELDS}
    facts = {field.name: cell_of(field, text) for field, text in filled.items() if text}
    board, name = texts.get("board", "").strip(), str(facts.get("name", ""))
    cards = [card_from(facts, "The form")] if name else None
    document = read_document(data, filename=filename or "document.json", board=board, cards=cards, limits=limits)
    if not facts:
        return document
    measured = {row.system for row in document.scores}
    if len(measured) != 1:
        raise InputError(
            f"The form describes one system and the file has {len(measured)}; leave the form empty and put the cards "
            "into the file."
        )
    (only,) = measured
    if name and name != only:
        raise InputError(f"The form says {quoted(name)} and the file {quoted(only)}; leave the name in the form empty.")
    inside = [card for card in document.cards if card.name == only]
    return replace(document, cards=(combined([*inside, card_from({**facts, "name": only}, "The form")]),))


def cell_of(field: Field, text: str) -> Any:
    """What a line of the form says, of the kind that a card holds; None for an empty text."""
    if not text:
        return None
    if field.name in ("authors", "pretraining"):
        return [part.strip() for part in text.split(",") if part.strip()]
    if field.name == "training_free":
        return text == "yes"
    if field.kind == "number":
        try:
            return int(text) if field.name == "year" else float(text)
        except ValueError:
            raise InputError(f"{field.label} is a number, not {quoted(text)}.") from None
    return text


_LABELS = {field.name: field.label for field in FIELDS}
_UNITS = {"parameters_m": "million", "kbps": "kbps"}


def fact_label(name: str) -> str:
    """What people read for a field of a card."""
    return _LABELS.get(name) or name.replace("_", " ").capitalize()


def fact_text(value: object) -> str:
    """A fact of a card for people: 12 for 12.0, and "not said" where it is not."""
    if value is None or value in ("", (), []):
        return "not said"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:.10g}"
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def fact_unit(name: str) -> str:
    return _UNITS.get(name, "")


def card_facts(card: SystemCard) -> list[tuple[str, str]]:
    """All that a card says beside name and title, with what it leaves open, as labels and texts."""
    shown = [field.name for field in FIELDS if field.name not in ("name", "title")]
    facts = []
    for name in shown:
        value = getattr(card, name)
        unit = fact_unit(name) if value is not None else ""
        facts.append((fact_label(name), f"{fact_text(value)} {unit}".rstrip()))
    return facts + [(fact_label(name), fact_text(value)) for name, value in card.details.items()]
