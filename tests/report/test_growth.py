"""The work of a report grows with the rows of its table, and no faster."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import pytest

from earmark.report import figures, metric_text, to_markdown
from earmark.report.codecs.text import run_text
from earmark.report.html import ReportData, render
from earmark.scores import Row, Scores

pytest.importorskip("matplotlib")

WORK: Counter[str] = Counter()


class CountedRow(Row):
    """A row that counts how often it is looked at."""

    __slots__ = ()

    def __getattribute__(self, name: str) -> Any:
        WORK["looks"] += 1
        return super().__getattribute__(name)


def table(systems: int, subsets: int) -> Scores:
    rows = []
    for subset, system, protocol, metric in itertools.product(
        range(subsets), range(systems), ("all", "across_groups"), ("P@1", "GSR", "silhouette")
    ):
        value = 0.2 + 0.01 * ((7 * system + 3 * subset) % 50)
        chance = {"baseline": 0.1, "baseline_low": 0.05, "baseline_high": 0.15, "lift": value - 0.1, "p_value": 0.01}
        rows.append(
            CountedRow(
                metric=metric, value=value, low=value - 0.05, high=value + 0.05, n=100, protocol=protocol,
                system=f"system {system}", subset=f"subset {subset}", distance="cosine", **chance,
            )
        )  # fmt: skip
    return Scores(tuple(rows))


@pytest.fixture
def _counting(monkeypatch: pytest.MonkeyPatch) -> None:
    known = metric_text.metric_facts

    def counted(name: str) -> Any:
        WORK["facts"] += 1
        return known(name)

    monkeypatch.setattr(metric_text, "metric_facts", counted)
    monkeypatch.setattr(figures, "as_svg", lambda *_: "<svg></svg>")


@pytest.mark.usefixtures("_counting")
@pytest.mark.parametrize(
    "show",
    [
        lambda scores: render(ReportData(title="growth", scores=scores)),
        to_markdown,
        lambda scores: run_text(scores, {}),
    ],
    ids=["page", "table", "codecs"],
)
def test_four_times_the_rows_are_four_times_the_work(show: Any) -> None:
    work = []
    for systems, subsets in ((8, 8), (16, 16)):
        scores = table(systems, subsets)
        WORK.clear()
        show(scores)
        work.append(dict(WORK))
    for kind, small in work[0].items():
        assert work[1][kind] <= 4.4 * small + 200, kind
