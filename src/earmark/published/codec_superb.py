"""Codec-SUPERB's printed tables as score rows."""

from __future__ import annotations

from collections.abc import Iterator

from earmark.published.catalogue import read
from earmark.published.cells import fraction, printed_row
from earmark.scores import Row

SUITE = "codec-superb"
CATEGORIES = ("speech", "audio", "music")
_TABLE = {"speech": 6, "audio": 7, "music": 8}
_APPLICATIONS = {
    "asr_wer_pct": ("wer", "speech recognition"),
    "asv_eer_pct": ("eer", "speaker verification"),
    "asv_mindcf": ("min_dcf", "speaker verification"),
    "er_acc_pct": ("er_accuracy", "emotion recognition"),
    "aec_map_pct": ("aec_map", "audio event classification"),
}


def codec_scores() -> Iterator[Row]:
    """Tables 6 to 8 and 3: overall scores on 19 datasets and three categories, rates, and four applications."""
    for line, cell in enumerate(read("codec_superb_scores"), start=2):
        yield printed_row(
            f"codec_superb_scores:{line}", f"Codec-SUPERB, Table {_TABLE[cell['category']]}",
            float(cell["overall_score"]), suite=SUITE, subset=cell["dataset"], system=cell["codec"], metric="overall",
        )  # fmt: skip
    for line, cell in enumerate(read("codec_superb_table3"), start=2):
        yield from _table3(cell, line)


def _table3(cell: dict[str, str], line: int) -> Iterator[Row]:
    system = "no codec" if cell["codec"] == "None" else cell["codec"]
    source, printed = f"codec_superb_table3:{line}", "Codec-SUPERB, Table 3"
    for category in CATEGORIES if cell["kbps"] else ():
        unseen = "NSynth, which enters this mean, is not printed" if category == "music" else ""
        yield printed_row(
            source, printed, float(cell[f"{category}_overall"]), suite=SUITE, subset=f"mean:{category}", system=system,
            metric="overall", reason=unseen,
        )  # fmt: skip
    if cell["kbps"]:
        yield printed_row(source, printed, float(cell["kbps"]), suite=SUITE, system=system, metric="kbps")
    for column, (metric, task) in _APPLICATIONS.items():
        value = fraction(cell[column]) if column.endswith("_pct") else float(cell[column])
        yield printed_row(source, printed, value, suite=SUITE, subset=task, system=system, metric=metric)
