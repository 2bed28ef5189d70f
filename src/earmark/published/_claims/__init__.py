"""What the papers' texts say in numbers, each recomputed from their printed tables.

`claims.csv` holds the sentences: where they stand, what they say in our words, the numbers they quote, how they were
read, and the verdict that was found. The modules hold the arithmetic: a function for each name, which looks the numbers
up and says whether they bear the sentence out. No verdict is taken from the file; one that is not as known means that a
file of this package has changed.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import cast

from earmark.published._claims._record import JUDGES, VERDICTS, Claim, Verdict, verdict_of
from earmark.tables import read_csv_records

_ROOMS = ("vocsim_results", "vocsim_trends", "vocsim_ablations", "vocsim_validation", "codec_superb", "simba", "gicdm")

__all__ = ["VERDICTS", "Claim", "claims"]


def claims() -> list[Claim]:
    """Every claim of the papers' texts that can be held against their printed tables, recomputed."""
    for room in _ROOMS:
        import_module(f"{__name__}.{room}")
    return [_judged(row) for row in _sentences()]


@cache
def _sentences() -> tuple[dict[str, str], ...]:
    text = (files("earmark.published") / "claims.csv").read_text(encoding="utf-8")
    return tuple(read_csv_records(text, "claims.csv"))


def _judged(row: dict[str, str]) -> Claim:
    computed, holds = JUDGES[row["name"]]()
    known = cast("Verdict", row["known"])
    texts = {name: text for name, text in row.items() if name != "known"}
    return Claim(**texts, computed=computed, verdict=verdict_of(holds), known=known)
