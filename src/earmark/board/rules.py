"""What a document must fulfil before the board shows it, as one sentence for each problem.

The same rules run in `earmark submit`, before anything is sent, and in the board, before anything is stored. A problem
refuses the whole document; a warning is kept beside the submission, for the moderator and the reader. Partial results
are welcome: nothing has to be there except what is needed to read what is there.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from typing import NamedTuple
from urllib.parse import urlsplit

from earmark import published
from earmark.board.groups import blind_subsets
from earmark.board.limits import Limits
from earmark.board.records import SystemCard
from earmark.board.refusals import Problem
from earmark.board.submission import Document
from earmark.board.texts import fault_of
from earmark.errors import EarmarkError, did_you_mean, quoted
from earmark.scores import KEY, RULES, VOCSIM_SUBSETS, Row, metric_facts, validate
from earmark.scores.spelling import mean_over
from earmark.wording import counted

__all__ = ["KnownBoard", "KnownBoards", "Problem", "Verdict", "check", "known_boards"]

_BOARD = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
_HASH = re.compile(r"[0-9a-f]{16,128}")
_LISTED_PROBLEMS = 100
_AT_ONCE = 200
_PAGES = (".csv", ".tex", ".json", ".bib")
_FORMULAS = ("=", "+", "-", "@")
_ROUNDING = 1e-6
_NAME = 200
_OF_NO_CLIPS = frozenset({"delay_ms", "kbps", "parameters_m", "macs_g"})
"""Metrics that may be declared or counted of the system itself: 0 clips, or an unknown number, is no contradiction."""
_MOST = {"subset": _NAME, "system": _NAME, "distance": 60, "correction": 60, "protocol": 60, "metric": 60}
"""The most characters of a name. Databases find rows by these, and do not take long ones."""


class KnownBoard(NamedTuple):
    """What is known of a board before anybody submits: its subsets with their clips (None: not known).

    `others` are subsets that are no part of the suite and allowed there, such as applications. `blind` ones only the
    host can measure.
    """

    subsets: Mapping[str, int | None]
    others: frozenset[str] = frozenset()
    blind: frozenset[str] = frozenset()


KnownBoards = Mapping[str, KnownBoard]


@dataclass(frozen=True)
class Verdict:
    """What the rules say of a document. It may be stored when there is no problem."""

    problems: list[Problem] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def known_boards() -> KnownBoards:
    """VocSim's subsets with the clips that the paper counts, and Codec-SUPERB's datasets and applications."""
    clips = {cell["subset"]: int(cell["n_samples"]) for cell in published.read("vocsim_table1_subsets")}
    datasets = dict.fromkeys(cell["dataset"] for cell in published.read("codec_superb_scores"))
    applications = frozenset(
        row.subset for row in published.load("codec-superb") if row.subset not in datasets and ":" not in row.subset
    )
    return {
        "vocsim": KnownBoard(
            {subset.name: clips[subset.name] for subset in VOCSIM_SUBSETS}, blind=blind_subsets("vocsim")
        ),
        "codec-superb": KnownBoard({**dict.fromkeys(datasets, None), "NSynth": None}, applications),
    }


def check(document: Document, known: KnownBoards | None = None, limits: Limits | None = None) -> Verdict:
    """Everything that is wrong with a document, and what is worth knowing about it."""
    limits = limits or Limits()
    rows = document.scores.rows
    board = (known_boards() if known is None else known).get(document.board)
    found = chain(
        _shape(document, limits),
        _cards(document.cards, limits),
        _texts(rows, limits),
        _measurements(rows),
        () if board is None else _subsets(rows, board, document.board),
        () if board is None or document.provenance != "self-reported" else _claims(rows, board),
    )
    # A sentence costs far more than a row: whoever sends 200,000 wrong rows is told of the first and costs no more.
    problems = list(islice(found, _LISTED_PROBLEMS + 1))
    if len(problems) > _LISTED_PROBLEMS:
        problems[-1] = Problem("", "There are more problems; mend these first.")
    return Verdict(problems, _warnings(document) + ([] if board is None else _sizes(rows, board)))


# --- shape and texts -------------------------------------------------------------------------------------------------


def _shape(document: Document, limits: Limits) -> Iterator[Problem]:
    rows, names = document.scores.rows, [card.name for card in document.cards]
    if not _BOARD.fullmatch(document.board):
        yield Problem(
            "/board", f"{quoted(document.board)} cannot be a board's name; use small letters, digits, hyphens and dots."
        )
    elif document.board.endswith(_PAGES):
        yield Problem(
            "/board", f"{quoted(document.board)} ends like a file of another board's table; leave out the ending."
        )
    if not rows:
        yield Problem("/scores", "The document has no scores; send at least one row.")
    if len(rows) > limits.max_rows:
        yield Problem("/scores", f"The document has {len(rows):,} rows; at most {limits.max_rows:,} are taken.")
    if len(names) > limits.max_systems:
        yield Problem("/systems", f"The document has {len(names):,} systems; at most {limits.max_systems:,} are taken.")
    for name, times in Counter(names).items():
        if times > 1:
            yield Problem("/systems", f"The document has {times} cards for {quoted(name)}; keep one of them.")
    scored = {row.system for row in rows}
    for place, name in enumerate(names):
        if name not in scored:
            yield Problem(f"/systems/{place}", f"{quoted(name)} has a card and no scores; send at least one row of it.")
    for name in sorted(scored - set(names)):
        yield Problem("/systems", f"{quoted(name)} has scores and no card; add one with its name.")
    for place, row in enumerate(rows):
        if row.suite != document.board:
            yield Problem(
                f"/scores/{place}/suite",
                f"Row {place + 1} is of the suite {quoted(row.suite)}, the document for the board "
                f"{quoted(document.board)}; send each board its own scores.",
            )
            break


def _cards(cards: Iterable[SystemCard], limits: Limits) -> Iterator[Problem]:
    for place, card in enumerate(cards):
        at, called = f"/systems/{place}", f"The card of {quoted(card.name)}"
        if not card.name.strip() or card.name != card.name.strip():
            yield Problem(f"{at}/name", f"The name {quoted(card.name)} is empty or has blanks around it; rename it.")
        if fault := _bibtex_fault(card.citation):
            yield Problem(f"{at}/citation", f"{called}: citation {fault}.")
        texts = {"name": card.name, "title": card.title, "family": card.family, "licence": card.licence}
        lists = {"authors": card.authors, "pretraining": card.pretraining}
        texts |= {f"{name}/{number}": text for name, items in lists.items() for number, text in enumerate(items)}
        for name, text in texts.items():
            if fault := fault_of(text, _NAME):
                yield Problem(f"{at}/{name}", f"{called}: {name} {fault}.")
        for name, items in lists.items():
            if len(items) > 200:
                yield Problem(f"{at}/{name}", f"{called}: {name} has {len(items):,} entries; at most 200 are kept.")
        for name in ("description", "citation", "command"):
            if fault := fault_of(getattr(card, name), limits.max_text, lines=True):
                yield Problem(f"{at}/{name}", f"{called}: {name} {fault}.")
        if card.url and (fault := _url_fault(card.url)):
            yield Problem(f"{at}/url", f"{called}: url {fault}.")
        for name in ("parameters_m", "real_time_factor", "kbps"):
            number = getattr(card, name)
            if number is not None and not 0 <= number <= 1e9:
                yield Problem(f"{at}/{name}", f"{called}: {name} {number:g} is not possible; leave it out if unknown.")
        if card.year is not None and not 1900 <= card.year <= 2200:
            yield Problem(f"{at}/year", f"{called}: {card.year} is no year; leave it out if unknown.")


def _url_fault(url: str) -> str:
    if fault := fault_of(url, 500):
        return fault
    try:
        parts = urlsplit(url)
    except ValueError:
        return "is no address; begin it with https://"
    if parts.scheme not in ("http", "https") or not parts.hostname or any(mark.isspace() for mark in url):
        return "is no address of the web; begin it with https://"
    return ""


_ENTRY = re.compile(r"@\s*(\w+)")
_COMMAND = re.compile(r"\\([A-Za-z@]+)")
_NO_ENTRIES = ("preamble", "string", "comment", "include")
_PLAIN_COMMANDS = frozenset(
    "a aa AA ae AE b bf c cdot circ d dag emph H href i it j k l L ldots mathbb mathbf mathcal mathit mathrm mathsf o "
    "O oe OE P pm r rm S sc sim sl ss t textasciitilde textbf textit textrm textsc textsf textsubscript "
    "textsuperscript texttt times tt u url v em and alpha beta gamma delta epsilon lambda mu pi sigma tau omega infty "
    "ast star".split()
)
"""What a citation needs: accents, letters, fonts and a little mathematics."""


def _bibtex_fault(citation: str) -> str:
    """What is wrong with a citation in BibTeX, which readers download and run through TeX as it is."""
    if not citation.lstrip().startswith("@"):
        return ""
    for kind in _ENTRY.findall(citation):
        if kind.lower() in _NO_ENTRIES:
            return f"holds @{quoted(kind)[1:-1]}, which is no entry; keep the entry itself"
    for command in _COMMAND.findall(citation):
        if command not in _PLAIN_COMMANDS:
            return f"holds the TeX command \\{quoted(command)[1:-1]}; write it without"
    return "holds ^^, with which TeX hides commands; write it without" if "^^" in citation else ""


def _texts(rows: Iterable[Row], limits: Limits) -> Iterator[Problem]:
    fine: set[str] = set()  # rows repeat each other's texts: each is looked at once
    for place, row in enumerate(rows):
        for name in (*_MOST, "reason", "version", "inputs"):
            text, most = getattr(row, name), _MOST.get(name, limits.max_text)
            if text in fine and len(text) <= most:
                continue
            if fault := fault_of(text, most):
                yield Problem(f"/scores/{place}/{name}", f"Row {place + 1}: {name} {fault}.")
            elif text.startswith(_FORMULAS):
                yield Problem(
                    f"/scores/{place}/{name}",
                    f"Row {place + 1}: {name} {quoted(text)} begins as a formula of a spreadsheet; begin it with a "
                    "letter.",
                )
            else:
                fine.add(text)


# --- values ----------------------------------------------------------------------------------------------------------


def _measurements(rows: tuple[Row, ...]) -> Iterator[Problem]:
    """What no measurement can give: the score table's own rules, and cells that contradict each other."""
    yield from _table_problems(rows)
    for place, row in enumerate(rows):
        at = f"Row {place + 1} ({row.metric})"
        if row.lift is not None and row.value is not None and row.baseline is not None:
            apart = abs(row.lift - (row.value - row.baseline))
            if apart > _ROUNDING * max(1.0, abs(row.value)):
                yield Problem(
                    f"/scores/{place}/lift",
                    f"{at}: lift {row.lift:g} is not value {row.value:g} minus baseline {row.baseline:g}; mend it.",
                )
        elif row.lift is not None and abs(row.lift) > _span(row.metric):
            yield Problem(f"/scores/{place}/lift", f"{at}: no lift can be {row.lift:g}; it is value minus baseline.")
        if row.n == 0 and row.value is not None and row.metric not in _OF_NO_CLIPS:
            yield Problem(f"/scores/{place}/n", f"{at}: a value that rests on 0 clips; say on how many it rests.")


def _table_problems(rows: tuple[Row, ...]) -> Iterator[Problem]:
    """What the score table's own rules say, some rows at a time, so that the first problems do not wait for the last.

    The rules count the rows that they are given; what they say is told with the numbers of the whole document.
    """
    first: dict[tuple[str, ...], int] = {}
    for start in range(0, len(rows), _AT_ONCE):
        some = rows[start : start + _AT_ONCE]
        for sentence in validate(some):
            number = re.match(r"Row (\d+)", sentence)
            told = re.sub(r"^Row (\d+)|(?<=: repeats row )(\d+)", partial(_counted_on, start), sentence)
            yield Problem(f"/scores/{start + int(number[1]) - 1}" if number else "/scores", told)
        for place, row in enumerate(some, start):
            earlier = first.setdefault(row.key, place)
            if earlier < start:
                yield Problem(
                    f"/scores/{place}",
                    f"Row {place + 1} ({row.metric}): repeats row {earlier + 1} ({', '.join(KEY)} are the same); keep "
                    "one of them.",
                )


def _counted_on(start: int, found: re.Match[str]) -> str:
    before, _, number = found[0].rpartition(" ")
    return f"{before} {start + int(number)}".strip()


def _span(metric: str) -> float:
    """How far two values of a metric can lie apart; without end for a metric that is not known."""
    try:
        low, high = metric_facts(metric).range
    except EarmarkError:
        return math.inf
    return high - low + _ROUNDING


def _warnings(document: Document) -> list[str]:
    rows = document.scores.rows
    measured = [row for row in rows if row.status == "ok"]
    found: list[str] = []

    def note(count: int, one: str, several: str) -> None:
        if count == 1:
            found.append(f"1 of {counted(len(rows), 'row')} {one}")
        elif count:
            found.append(f"{counted(count, 'row')} of {len(rows):,} {several}")

    note(
        sum(not row.version for row in measured),
        "does not say which version measured it.",
        "do not say which version measured them.",
    )
    if document.provenance != "printed":
        hashed = sum(_HASH.fullmatch(row.inputs) is None for row in measured)
        note(
            hashed,
            "has no hash of its inputs: it cannot be compared with a run of the same.",
            "have no hash of their inputs: they cannot be compared with a run of the same.",
        )
    missed = [
        row
        for row in measured
        if None not in (row.value, row.low, row.high) and not row.low <= row.value <= row.high  # type: ignore[operator]
    ]
    note(len(missed), "has a value outside of its interval.", "have values outside of their intervals.")
    note(
        sum(row.status == "predicted" for row in rows),
        "is a prediction: it is shown as such and ranked nowhere.",
        "are predictions: they are shown as such and ranked nowhere.",
    )
    note(
        sum(row.status == "repeated" for row in rows),
        "repeats another system's: it is shown as such and ranked nowhere.",
        "repeat other systems': they are shown as such and ranked nowhere.",
    )
    differences = sum(row.statistic == "difference" for row in rows)
    note(differences, "is a difference: the board computes its own.", "are differences: the board computes its own.")
    means = sum(bool(row.aggregate) for row in rows)
    if document.provenance != "printed":
        ranked = "the board computes its own, and ranks by those."
        note(means, f"is a mean: {ranked}", f"are means: {ranked}")
    if rows and not any(row.value is not None for row in rows):
        found.append("No row has a value.")
    return found


# --- boards whose subsets are known ----------------------------------------------------------------------------------


_MEANS = tuple(mean_over(name) for name in (*RULES, "speech", "audio", "music"))
"""The means that Earmark and the papers give; the board shows them and ranks by its own."""


def _subsets(rows: Iterable[Row], board: KnownBoard, name: str) -> Iterator[Problem]:
    allowed = {*board.subsets, *board.others, "", *_MEANS}
    told: set[str] = set()
    for place, row in enumerate(rows):
        subset = row.labelled_subset
        if subset not in allowed and subset not in told:
            told.add(subset)
            hint = did_you_mean(subset, allowed) or f" It has {', '.join(board.subsets)}."
            yield Problem(
                f"/scores/{place}/subset",
                f"Row {place + 1}: {name} has no subset {quoted(subset)}; rename it.{hint}",
            )
        clips = board.subsets.get(subset)
        if clips is not None and row.n is not None and row.n > clips:
            yield Problem(
                f"/scores/{place}/n",
                f"Row {place + 1} ({row.metric}): n is {row.n:,}, but {subset} has {clips:,} clips; measure it on the "
                "subset as it is published.",
            )


def _claims(rows: Iterable[Row], board: KnownBoard) -> Iterator[Problem]:
    """Measurements of blind subsets that no author can have made; one problem for each subset."""
    told: set[str] = set()
    for place, row in enumerate(rows):
        subset = row.labelled_subset
        blind = subset in board.blind or (subset == "mean:blind" and bool(board.blind))
        if blind and row.status in ("ok", "repeated") and subset not in told:
            told.add(subset)
            yield Problem(
                f"/scores/{place}/subset",
                f"Row {place + 1} ({row.metric}): {subset} is blind, and only the host can measure it; leave its rows "
                "out, and ask the host to run the system on it.",
            )


def _sizes(rows: Iterable[Row], board: KnownBoard) -> list[str]:
    """Subsets that were not measured whole: allowed, and worth knowing."""
    fewest: dict[str, int] = {}
    for row in rows:
        clips = board.subsets.get(row.subset)
        if clips is not None and row.n is not None and row.status == "ok" and row.n < clips:
            fewest[row.subset] = min(row.n, fewest.get(row.subset, clips))
    return [
        f"{subset} was measured on {count:,} of its {board.subsets[subset]:,} clips."
        for subset, count in fewest.items()
    ]
