"""The frame of the public conformance suites: checks in a list, each with an outcome and one sentence.

A suite is a list of functions of a subject, which is a model or a codec together with the sounds it is tested on
(`earmark.extractors.conformance`, `earmark.codecs.conformance`). "warn" is allowed but should be read: someone's
numbers may depend on it. "skip" says that an earlier failure leaves nothing to look at: one defect is told once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

from earmark.errors import EarmarkError

__all__ = [
    "CheckResult",
    "check_table",
    "describe",
    "failed",
    "judge_card",
    "passed",
    "run_checks",
    "skipped",
    "warned",
]

Status = Literal["pass", "warn", "fail", "skip"]


class CheckResult(NamedTuple):
    """The outcome of one check."""

    name: str
    status: Status
    sentence: str


class Tested(Protocol):
    """Something under test, which says what it was given last."""

    playing: str


S = TypeVar("S", bound=Tested)
Check = Callable[[S], CheckResult]


def passed(sentence: str) -> CheckResult:
    return CheckResult("", "pass", sentence)


def warned(sentence: str) -> CheckResult:
    return CheckResult("", "warn", sentence)


def failed(sentence: str) -> CheckResult:
    return CheckResult("", "fail", sentence)


def skipped(sentence: str) -> CheckResult:
    return CheckResult("", "skip", sentence)


def run_checks(checks: Sequence[Check[S]], subject: S, essential: Check[S], hopeless: str) -> list[CheckResult]:
    """Run every check under the name of its function; an exception is a failure of that check, in one sentence.

    Args:
        checks: the suite.
        subject: what is tested.
        essential: the check that raises where nothing works at all; those after it are then skipped.
        hopeless: the sentence of a check that is skipped.
    """
    results: list[CheckResult] = []
    pointless = False
    for check in checks:
        if pointless:
            result = skipped(hopeless)
        else:
            try:
                result = check(subject)
            except (Exception, SystemExit) as error:
                result = failed(f"{describe(error)} (on {subject.playing}).")
                pointless = check is essential
        results.append(result._replace(name=check.__name__))
    return results


def judge_card(card: Any, missing: Sequence[str], *, own: bool) -> CheckResult:
    """Whether a card states a possible rate, a name, and all that a reader wants to know.

    Args:
        card: the card of a model or a codec.
        missing: the facts that it should state and does not.
        own: whether the thing states a card at all.
    """
    if not isinstance(card.rate, int) or not 1000 <= card.rate <= 1_000_000:
        return failed(f"The rate is {card.rate!r}; it must be a whole number of hertz from 1000 up.")
    if not card.name:
        return failed("The card has no name.")
    if not own:
        return warned(f"There is no card: the name {card.name!r} and {card.rate} Hz are assumed.")
    if missing:
        return warned(f"The card does not state: {', '.join(missing)}.")
    return passed(f"{card.name}, {card.rate} Hz.")


def describe(error: BaseException) -> str:
    """An error as the beginning of a sentence; of one that Earmark raised its message alone."""
    text = (" ".join(str(error).split()) or "no message").removesuffix(".")
    return text if isinstance(error, EarmarkError) else f"It raised {type(error).__name__}: {text}"


def check_table(results: Sequence[CheckResult], title: str) -> str:
    """The results as a Markdown table, with a heading that says how many there are of each."""
    statuses = [result.status for result in results]
    counts = ", ".join(
        f"{statuses.count(status)} {status}" for status in ("pass", "warn", "fail", "skip") if status in statuses
    )
    rows = [("check", "result", "finding")]
    rows += [(result.name, result.status, result.sentence.replace("|", "\\|")) for result in results]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [f"| {' | '.join(f'{cell:{width}}' for cell, width in zip(row, widths, strict=True))} |" for row in rows]
    rule = f"|{'|'.join('-' * (width + 2) for width in widths)}|"
    return "\n".join([f"{title}: {counts}", "", lines[0], rule, *lines[1:]]) + "\n"
