"""What shards of a run leave for the others: sounds that failed, so that nobody tries them again needlessly."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from earmark.representations._embed import Refusal
from earmark.representations._folder import Key
from earmark.representations._record import Work
from earmark.runs.shards import ShardRecord, notes_on, read_shards


def as_facts(refused: dict[Key, dict[str, Refusal]]) -> list[Any]:
    """Failures by model and subset, as JSON holds them."""
    return [[*key, {digest: list(refusal) for digest, refusal in found.items()}] for key, found in refused.items()]


def refusals_of(records: Iterable[ShardRecord]) -> dict[Key, dict[str, Refusal]]:
    """What failed in shards, by model and subset."""
    refused: dict[Key, dict[str, Refusal]] = {}
    for record in records:
        for identity, suite, subset, found in record.about.get("refused", []):
            known = refused.setdefault((identity, suite, subset), {})
            known.update({digest: Refusal(*refusal) for digest, refusal in found.items()})
    return refused


def take_shards(work: Work, path: Path) -> None:
    """Know what shards did, and say which of them are missing."""
    records = read_shards(path)
    work.notes += notes_on(records, "earmark run CONFIG", work.config, show=work.progress)
    work.refused = refusals_of(records)
