"""The printed results of the papers, as score tables with their provenance.

scores = published.load("vocsim")          rows of the score table, 7 metrics x 124-129 configurations x 19 subsets
rows = published.read("simba_table3")      any table exactly as printed, as text
findings = published.check()               every printed average, recomputed
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

from earmark.errors import UsageError, did_you_mean
from earmark.published import codec_superb, gicdm, vocsim
from earmark.published.catalogue import PAPERS, Paper, Table, read, table, tables
from earmark.published.checks import Finding, check
from earmark.published.families import codec_family, families, vocsim_family, vocsim_kind
from earmark.published.repeats import Repeat, counted_as_measured, find_repeats, flagged
from earmark.scores import Row, Scores

__all__ = [
    "PAPERS",
    "SETS",
    "Finding",
    "Paper",
    "Repeat",
    "Table",
    "check",
    "codec_family",
    "families",
    "find_repeats",
    "load",
    "read",
    "repeats",
    "table",
    "tables",
    "vocsim_family",
    "vocsim_kind",
]

SETS: dict[str, tuple[str, Callable[[], Iterator[Row]]]] = {
    "vocsim": ("7 metrics of 124–129 configurations on 19 subsets", vocsim.full_results),
    "vocsim-main": ("Table 2: means with margins of error", vocsim.main_table),
    "vocsim-permutations": ("Tables 9–11: the best configuration against chance", vocsim.permutation_tests),
    "vocsim-pooling": ("Table 13: six poolings of Whisper", vocsim.pooling_ablation),
    "vocsim-dtw": ("Tables 14 and 15: DTW re-ranking", vocsim.dtw),
    "vocsim-clustering": ("Table 16: k-means", vocsim.clustering),
    "vocsim-efficiency": ("Table 17: parameters, multiply-adds, memory", vocsim.efficiency),
    "vocsim-hear": ("Table 18: seven HEAR tasks", vocsim.hear),
    "vocsim-avian": ("Table 26: agreement with zebra finches", vocsim.avian),
    "vocsim-mouse-strain": ("which strain a mouse is of", vocsim.mouse_strain),
    "vocsim-mouse-identity": ("which mouse called", vocsim.mouse_identity),
    "codec-superb": ("overall scores of 19 codecs on 19 datasets, rates and applications", codec_superb.codec_scores),
    "gicdm-hubness": ("hubness of 17 embeddings under eight corrections", gicdm.hubness),
}
"""Printed results that are score tables: what each holds and how it is made."""


@cache
def load(name: str, *, with_repeats: bool = False) -> Scores:
    """A set of printed results as a score table.

    `version` says which table of which paper a row is from and `inputs` which line of which file; a printed dash is
    not_applicable, a printed number that is no measurement is failed, and a doubtful one has a reason beside it. One
    that repeats another system's is repeated: it keeps its value and counts nowhere, unless `with_repeats` asks for
    it as an ok one.
    """
    if name not in SETS:
        known = ", ".join(SETS)
        raise UsageError(f'There is no published set "{name}"; there are {known}.{did_you_mean(name, SETS)}')
    if with_repeats:
        return Scores(tuple(counted_as_measured(load(name))))
    return Scores(tuple(flagged(SETS[name][1](), vocsim_kind if name.startswith("vocsim") else str)))


def repeats(name: str) -> list[Repeat]:
    """The blocks of a set that repeat others."""
    if name.startswith("vocsim"):
        return find_repeats(load(name, with_repeats=True), vocsim_kind)
    return find_repeats(load(name, with_repeats=True))
