"""GICDM's printed tables of hubness as score rows."""

from __future__ import annotations

from collections.abc import Iterator

from earmark.published.catalogue import read
from earmark.published.cells import printed_row
from earmark.scores import Row


def hubness() -> Iterator[Row]:
    """Tables 5 and 9 to 11: hub ratio and antihub rate of image and music embeddings under corrections.

    Table 4 repeats the uncorrected rows of Tables 9 to 11 and is left to `read`.
    """
    for line, cell in enumerate(read("gicdm_hubness_tables"), start=2):
        if cell["table"] == "4":
            continue
        mean = cell["table"] == "5"
        for metric in ("hub_ratio", "antihub_rate"):
            yield printed_row(
                f"gicdm_hubness_tables:{line}", f"GICDM, Table {cell['table']}", float(cell[metric]),
                suite="gicdm-hubness", subset="mean" if mean else cell["dataset"],
                system="17 embeddings" if mean else cell["embedding"],
                correction="none" if cell["method"] == "Original" else cell["method"].lower().removesuffix("^gauss"),
                metric=metric, reason=cell["note"] or (f"best of several K: {cell['K']}" if cell["K"] else ""),
            )  # fmt: skip
