"""What a table says of values that rest on samples: of clips of each class, or of queries."""

from __future__ import annotations

from collections.abc import Iterable

from earmark.report.score_index import different_clips, drawn_clips
from earmark.scores import Row


def draws_said(rows: Iterable[Row]) -> str:
    """`Measured on samples of the clips (sample 5x5, seed 0).`; nothing where every clip counts."""
    rows = [row for row in rows if row.value is not None]
    drawn = [drawn_clips(row) or _sample(row) for row in rows]
    names = list(dict.fromkeys(filter(None, drawn)))
    if not names:
        return ""
    shown = "; ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
    return f"Measured {'' if all(drawn) else 'in part '}on samples of the clips ({shown})."


def different_draws(rows: Iterable[Row]) -> str:
    """How the clips of rows of several subsets differ inside one of them: the draws of the first that differs."""
    subsets: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row.status == "ok":
            subsets.setdefault((row.suite, row.subset), []).append(row)
    return next((how for own in subsets.values() if (how := different_clips(own))), "")


def _sample(row: Row) -> str:
    parts = [part for part in row.ablation.split("+") if part.startswith("sample")]
    return ", ".join(part.replace("sample", "sample ", 1) for part in parts)
