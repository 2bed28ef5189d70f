"""Rules for the whole suite."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Iterator
from typing import Any

import pytest

from earmark.scores import metrics

NO_SKIPS = bool(os.environ.get("EARMARK_NO_SKIPS"))
"""Set where everything a test could want is there, as in continuous integration: a skip is then a failure."""


LONG = (
    "tests/cli/test_demo.py", "tests/representations/test_esc50.py",
    "tests/docs/test_snippets.py", "tests/test_evaluation.py", "tests/simulation/", "tests/blind/",
    "tests/codecs/", "tests/representations/", "tests/extractors/", "tests/probes/", "tests/board/", "tests/e2e/",
    "tests/runs/", "tests/generated/", "tests/deploy/",
)  # fmt: skip
"""What takes long begins first, so that no process works alone at the end."""
PAGE_BY_PAGE = "tests/docs/test_snippets.py"
"""The one file whose tests share nothing: its pages are spread over the processes."""


def pytest_configure() -> None:
    """Each process of several computes on its share of the cores: threads that wait for a core spin meanwhile.

    Set before anything is imported that computes, for this process and those that tests start. A test in which
    several threads matter asks for them.
    """
    processes = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if processes > 1:
        share = str(max(1, (os.cpu_count() or 1) // processes))
        for library in ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "NUMBA"):
            os.environ.setdefault(f"{library}_NUM_THREADS", share)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    def turn(item: pytest.Item) -> int:
        return next((at for at, start in enumerate(LONG) if item.nodeid.startswith(start)), len(LONG))

    items.sort(key=turn)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Files as wholes, because tests of a file share what is slow to set up; the documentation page by page."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return nodeid if nodeid.startswith(PAGE_BY_PAGE) else super()._split_scope(nodeid)

    config.option.loadscopereorder = False  # files with few tests are not the quick ones
    return Scheduling(config, log)


@pytest.fixture(autouse=True)
def _metrics_of_one_test() -> Iterator[None]:
    """A metric that a test, or a page of the documentation, makes known is forgotten after it."""
    before = {*metrics._RECORDS, *metrics.BY_PATH}
    yield
    for known in (metrics._RECORDS, metrics.BY_PATH):
        for name in set(known) - before:
            if not getattr(known[name].function, "__module__", "earmark.").startswith("earmark."):
                del known[name]


@pytest.fixture
def several_threads() -> Iterator[None]:
    """BLAS and torch compute on two threads unless they are held to one: for tests that no bit depends on them."""
    from threadpoolctl import threadpool_limits

    torch = sys.modules.get("torch")
    before = torch.get_num_threads() if torch else 0
    with threadpool_limits(2):
        if torch:
            torch.set_num_threads(2)
        yield
    if torch:
        torch.set_num_threads(before)


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
