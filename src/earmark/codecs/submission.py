"""A run of codecs as a document of `earmark.submissions`: their cards as cards of systems, and every measured row."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace

from earmark.codecs.contract import CodecCard
from earmark.codecs.standing import Standing
from earmark.scores import Scores
from earmark.submissions import Dataset, Document, Limits, Refused, SystemCard, read_document, schema
from earmark.submissions.rules import run_problems

__all__ = ["Dataset", "codec_document", "read_document", "schema", "to_json"]

_CARD = ("name", "family", "title", "kbps", "licence", "citation")


def codec_document(
    cards: Sequence[CodecCard],
    scores: Scores,
    *,
    suite: str = "codec",
    definitions: str = "mended",
    datasets: Sequence[Dataset] = (),
    versions: Mapping[str, str] | None = None,
    standings: Mapping[str, Standing] | None = None,
) -> Document:
    """The submission of a run: `suite` is its name, `datasets` what it was measured on, `standings` by codec."""
    most = Limits().max_text  # a file must stay readable; clips.csv has every reason
    rows = tuple(
        replace(row, suite=suite, reason=row.reason if len(row.reason) <= most else row.reason[: most - 1] + "…")
        for row in scores
    )
    systems = tuple(_system_card(card, (standings or {}).get(card.name, Standing())) for card in cards)
    return Document(
        suite, systems, Scores(rows), definitions=definitions, datasets=tuple(datasets), versions=dict(versions or {})
    )


def _system_card(card: CodecCard, standing: Standing) -> SystemCard:
    known = {part.name: getattr(card, part.name) for part in fields(card) if getattr(card, part.name) != part.default}
    known = {name: list(value) if isinstance(value, tuple) else value for name, value in known.items()}
    shared = {name: known.pop(name) for name in _CARD if name in known}
    notes = known.pop("notes", "")
    details = {**known, "version": card.version, **standing.details}
    return SystemCard(**shared, kind="codec", description=notes, details=details)


def to_json(document: Document) -> str:
    """The text of the file: the same document gives the same text. `Refused` when it is no whole run."""
    problems = list(run_problems(document))
    if problems:
        raise Refused(problems)
    return json.dumps(document.plain, ensure_ascii=False, allow_nan=False, indent=1) + "\n"
