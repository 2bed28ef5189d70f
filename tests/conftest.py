"""Rules for the whole suite."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from typing import Any

import pytest

from earmark.scores import metrics

NO_SKIPS = bool(os.environ.get("EARMARK_NO_SKIPS"))
"""Set where everything a test could want is there, as in continuous integration: a skip is then a failure."""


@pytest.fixture(autouse=True)
def _metrics_of_one_test() -> Iterator[None]:
    """A metric that a test, or a page of the documentation, makes known is forgotten after it."""
    before = {*metrics._RECORDS, *metrics.BY_PATH}
    yield
    for known in (metrics._RECORDS, metrics.BY_PATH):
        for name in set(known) - before:
            if not getattr(known[name].function, "__module__", "earmark.").startswith("earmark."):
                del known[name]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    return _no_skip((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    return _no_skip((yield))


def _no_skip(report: Any) -> Any:
    if NO_SKIPS and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"EARMARK_NO_SKIPS forbids to skip this: {report.longrepr[-1]}"
    return report
