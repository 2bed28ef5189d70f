"""What authors send to a leaderboard: one format, one reader, one writer and one list of rules.

`earmark submit`, `earmark codec run` and the board share it. `read_document` reads every file that may be sent,
`check` says everything that is wrong with a document as a list of `Problem` values.
"""

from __future__ import annotations

from earmark.submissions._cards import Dataset, Kind, SystemCard, card_from, combined, plain_card
from earmark.submissions._documents import Document, Provenance, read_document, schema
from earmark.submissions._problems import Problem, Refused
from earmark.submissions._strictness import Limits
from earmark.submissions.rules import Verdict, check, enforce

__all__ = [
    "Dataset",
    "Document",
    "Kind",
    "Limits",
    "Problem",
    "Provenance",
    "Refused",
    "SystemCard",
    "Verdict",
    "card_from",
    "check",
    "combined",
    "enforce",
    "plain_card",
    "read_document",
    "schema",
]
