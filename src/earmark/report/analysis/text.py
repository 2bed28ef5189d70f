"""An analysis for a terminal: the findings in sentences, then two small tables."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from earmark.analysis.similarities import NINE
from earmark.analysis.study import Study
from earmark.report.analysis import sentences
from earmark.report.analysis.figures import SPELLED

_WIDTH = 100


def analysis_text(study: Study) -> str:
    """What an analysis found, to read in a minute."""
    blocks = [f"{sentences.title(study)}: {sentences.size(study)}"]
    for name, said in (
        ("Which datasets are redundant", sentences.redundancy(study)),
        ("Which to run first", sentences.representatives(study)),
        ("What the others would say", sentences.predictions(study)),
        ("How sure the ranking is", sentences.ranks(study)),
        ("What the blind subsets add", sentences.blind(study)),
        ("Do distances and metrics agree", sentences.agreements(study)),
        ("The lite suite", sentences.lite(study)),
    ):
        if said:
            body = textwrap.fill(" ".join(said), _WIDTH, initial_indent="  ", subsequent_indent="  ")
            blocks.append(f"{name}\n{body}")
    blocks.append(_representatives(study))
    return "\n\n".join(blocks) + "\n"


def _representatives(study: Study) -> str:
    header = ["order by", "SCAUC", "|S*|", "stable", "S*"]
    rows = []
    for row in study.prowl.rows():
        chosen = " ".join(row["order"][: int(row["size"])]) if row["similarity"] in NINE else ""
        rows.append(
            [
                SPELLED.get(row["similarity"], row["similarity"]),
                f"{row['scauc']:.3f}",
                f"{row['size']:.3g}",
                f"{row['stable_size']:.3g}",
                chosen if len(chosen) <= 48 else f"{chosen[:47]}…",
            ]
        )
    return _aligned([header, *rows])


def _aligned(table: Sequence[Sequence[str]]) -> str:
    widths = [max(len(line[place]) for line in table) for place in range(len(table[0]))]
    lines = []
    for line in table:
        cells = [
            cell.rjust(width) if 0 < place < len(line) - 1 else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
