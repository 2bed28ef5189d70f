"""What a document must fulfil before the board shows it, as one value for each problem.

The same rules run in `earmark submit`, before anything is sent, and in the board, before anything is stored. A problem
refuses the whole document; a warning is kept beside the submission, for the moderator and the reader. Partial results
are welcome: nothing has to be there except what is needed to read what is there.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, islice
from urllib.parse import urlsplit

from earmark.definitions import Definition, paper_boards
from earmark.definitions.settings import is_correction, is_distance, known_corrections, known_distances
from earmark.errors import EarmarkError, InputError, did_you_mean, nearest_names, quoted
from earmark.scores import METRICS, RULES, Metric, Row, metric_facts
from earmark.scores.spelling import mean_over, without_sample
from earmark.scores.validation import table_problems
from earmark.submissions._cards import SystemCard
from earmark.submissions._documents import Document
from earmark.submissions._problems import Problem, Refused
from earmark.submissions._strictness import Limits
from earmark.submissions.blind_names import BlindNames
from earmark.submissions.texts import fault_of
from earmark.wording import counted

_BOARD = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
_HASH = re.compile(r"[0-9a-f]{16,128}")
_LISTED_PROBLEMS = 100
_PAGES = (".csv", ".tex", ".json", ".bib")
_FORMULAS = ("=", "+", "-", "@")
_ROUNDING = 1e-6
_NAME = 200
_MOST_ENTRIES = 200
_OF_NO_CLIPS = frozenset({"delay_ms", "kbps", "parameters_m", "macs_g"})
"""Metrics that may be declared or counted of the system itself: 0 clips, or an unknown number, is no contradiction."""
_NO_VERSION = ("does not say which version measured it.", "do not say which version measured them.")
_NO_HASH = (
    "has no hash of its inputs: it cannot be compared with a run of the same.",
    "have no hash of their inputs: they cannot be compared with a run of the same.",
)
_MOST = {"subset": _NAME, "system": _NAME, "distance": 60, "correction": 60, "protocol": 60, "metric": 60}
"""The most characters of a name. Databases find rows by these, and do not take long ones."""


@dataclass(frozen=True)
class Verdict:
    """What the rules say of a document. It may be stored when there is no problem."""

    problems: list[Problem] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def check(
    document: Document,
    known: Mapping[str, Definition] | None = None,
    limits: Limits | None = None,
    announced: Collection[str] = (),
) -> Verdict:
    """Everything that is wrong with a document, and what is worth knowing about it.

    `known` are definitions of boards, by default those of the papers. Some take no other subsets than theirs.
    `announced` are subsets of its board that a host measures blind, beside those that are known to be.
    """
    limits = limits or Limits()
    rows = document.scores.rows
    board = (paper_boards() if known is None else known).get(document.board)
    blind = frozenset(announced) | (board.blind if board else frozenset())
    found = chain(
        _shape(document, limits),
        _cards(document.cards, limits),
        _texts(rows, limits),
        _run_texts(document, limits),
        run_problems(document, board.known_facts if board else metric_facts),
        () if board is None else _subsets(rows, board, document.board, announced),
        _claims(rows, BlindNames(blind, board.subset_names if board else ()))
        if blind and document.provenance == "self-reported"
        else (),
        _stored(document, limits),
        _settings(rows, board),
    )
    # A sentence costs far more than a row: whoever sends 200,000 wrong rows is told of the first and costs no more.
    problems = list(islice(found, _LISTED_PROBLEMS + 1))
    if len(problems) > _LISTED_PROBLEMS:
        problems[-1] = Problem("more_problems", "There are more problems; mend these first.")
    return Verdict(problems, _warnings(document) + ([] if board is None else _sizes(rows, board)))


def enforce(
    document: Document,
    limits: Limits | None = None,
    announced: Collection[str] = (),
    known: Mapping[str, Definition] | None = None,
) -> Verdict:
    """The verdict on a document without problems; `Refused` for any other."""
    verdict = check(document, known, limits, announced)
    if verdict.problems:
        raise Refused(verdict.problems)
    return verdict


def run_problems(document: Document, facts_of: Callable[[str], Metric] = metric_facts) -> Iterator[Problem]:
    """What no measurement can give, and what a run of codecs lacks."""
    yield from _measurements(document.scores.rows, facts_of)
    if document.definitions:
        yield from _codec_run(document)


def _problem(code: str, message: str, *where: str | int) -> Problem:
    """A problem at a place of the document: the part, the number in it (from 0) and the key."""
    return Problem(code, message, "".join(f"/{step}" for step in where), str(where[2]) if len(where) > 2 else "")


def _in_row(code: str, place: int, column: str, message: str) -> Problem:
    return _problem(code, f"Row {place + 1}{message}", "scores", place, column)._replace(row=place + 1)


# --- shape and texts -------------------------------------------------------------------------------------------------


def _shape(document: Document, limits: Limits) -> Iterator[Problem]:
    rows, names = document.scores.rows, [card.name for card in document.cards]
    if not _BOARD.fullmatch(document.board):
        message = f"{quoted(document.board)} cannot be a board's name; use small letters, digits, hyphens and dots."
        yield _problem("board_name", message, "board")
    elif document.board.endswith(_PAGES):
        message = f"{quoted(document.board)} ends like a file of another board's table; leave out the ending."
        yield _problem("board_name", message, "board")
    if not rows:
        yield _problem("no_scores", "The document has no scores; send at least one row.", "scores")
    yield from _extents(document, limits)
    for name, times in Counter(names).items():
        if times > 1:
            message = f"The document has {times} cards for {quoted(name)}; keep one of them."
            yield _problem("repeated_card", message, "systems")
    scored = {row.system for row in rows}
    for place, name in enumerate(names):
        if name not in scored:
            message = f"{quoted(name)} has a card and no scores; send at least one row of it."
            yield _problem("no_scores", message, "systems", place)
    for name in sorted(scored - set(names)):
        yield _problem("no_card", f"{quoted(name)} has scores and no card; add one with its name.", "systems")
    for place, row in enumerate(rows):
        if row.suite != document.board:
            message = (
                f" is of the suite {quoted(row.suite)}, the document for the board {quoted(document.board)}; send each "
                "board its own scores."
            )
            yield _in_row("other_suite", place, "suite", message)
            break


def _extents(document: Document, limits: Limits) -> Iterator[Problem]:
    """What there is more of than one document may have."""
    rows = document.scores.rows
    for part, name, count, most in (
        ("scores", "rows", len(rows), limits.max_rows),
        ("systems", "systems", len(document.cards), limits.max_systems),
        ("scores", "subsets", len({row.subset for row in rows}), limits.max_subsets),
    ):
        if count > most:
            message = f"The document has {count:,} {name}; at most {most:,} are taken: {limits.remedy}."
            yield _problem("too_many", message, part)
    settings = {(row.system, row.distance, row.correction, row.protocol) for row in rows}
    for name, count in Counter(setting[0] for setting in settings).items():
        if count > limits.max_settings:
            message = (
                f"{quoted(name)} has {count:,} settings (distance, correction and protocol); at most "
                f"{limits.max_settings:,} are taken: keep those that mean something."
            )
            yield _problem("too_many", message, "scores")


def _stored(document: Document, limits: Limits) -> Iterator[Problem]:
    """A packed table may say in few bytes what takes many where it is stored."""
    try:
        size = len(document.to_bytes())
    except InputError:  # a text that cannot be written has a problem of its own
        return
    if size > limits.max_body:
        message = f"The document is stored as {size:,} bytes; at most {limits.max_body:,} are taken: {limits.remedy}."
        yield _problem("too_large", message, "scores")


def card_problems(card: SystemCard, limits: Limits | None = None) -> list[Problem]:
    """What is wrong with the card of a system that has no scores yet."""
    return list(_cards([card], limits or Limits()))


def _cards(cards: Iterable[SystemCard], limits: Limits) -> Iterator[Problem]:
    for place, card in enumerate(cards):
        if not card.name.strip() or card.name != card.name.strip():
            message = f"The name {quoted(card.name)} is empty or has blanks around it; rename it."
            yield _problem("card_name", message, "systems", place, "name")
        for name, fault in _card_faults(card, limits):
            message = f"The card of {quoted(card.name)}: {fault}."
            yield _problem("card_" + name.partition("/")[0], message, "systems", place, name)


def _card_faults(card: SystemCard, limits: Limits) -> Iterator[tuple[str, str]]:
    """The keys of a card that cannot be kept, and why."""
    if fault := _bibtex_fault(card.citation):
        yield "citation", f"citation {fault}"
    texts = {"name": card.name, "title": card.title, "family": card.family, "licence": card.licence}
    lists = {"authors": card.authors, "pretraining": card.pretraining}
    texts |= {f"{name}/{number}": text for name, items in lists.items() for number, text in enumerate(items)}
    for name, text in texts.items():
        if fault := fault_of(text, _NAME):
            yield name, f"{name} {fault}"
    for name, entries in {**lists, "details": card.details}.items():
        if len(entries) > _MOST_ENTRIES:
            yield name, f"{name} has {len(entries):,} entries; at most {_MOST_ENTRIES} are kept"
    for name in ("description", "citation", "command"):
        if fault := fault_of(getattr(card, name), limits.max_text, lines=True):
            yield name, f"{name} {fault}"
    for name, value in card.details.items():
        if fault := fault_of(name, _NAME) or fault_of(str(value), limits.max_text):
            yield "details", f"details {fault}"
    if card.url and (fault := _url_fault(card.url)):
        yield "url", f"url {fault}"
    for name in ("parameters_m", "real_time_factor", "kbps"):
        number = getattr(card, name)
        if number is not None and not 0 <= number <= 1e9:
            yield name, f"{name} {number:g} is not possible; leave it out if unknown"
    if card.year is not None and not 1900 <= card.year <= 2200:
        yield "year", f"{card.year} is no year; leave it out if unknown"


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
                yield _in_row("text", place, name, f": {name} {fault}.")
            elif text.startswith(_FORMULAS):
                message = f": {name} {quoted(text)} begins as a formula of a spreadsheet; begin it with a letter."
                yield _in_row("formula", place, name, message)
            else:
                fine.add(text)


def _settings(rows: Iterable[Row], board: Definition | None) -> Iterator[Problem]:
    """Distances and corrections that nobody knows: under free names one could try as many as one likes."""
    distances, corrections = (board.distances, board.corrections) if board else ((), ())
    seen: set[tuple[str, str]] = set()
    for place, row in enumerate(rows):
        if (row.distance, row.correction) in seen:
            continue
        seen.add((row.distance, row.correction))
        if not is_distance(row.distance, distances):
            yield _unknown_setting(place, "distance", row.distance, known_distances(distances))
        if not is_correction(row.correction, corrections):
            yield _unknown_setting(place, "correction", row.correction, known_corrections(corrections))


def _unknown_setting(place: int, column: str, name: str, known: Collection[str]) -> Problem:
    message = (
        f": {quoted(name)} is no known {column}; choose from {', '.join(known)}, or ask the host to allow it."
        f"{did_you_mean(name, known)}"
    )
    return _in_row(f"unknown_{column}", place, column, message)


def _run_texts(document: Document, limits: Limits) -> Iterator[Problem]:
    for part, items in (("versions", document.versions), ("datasets", document.datasets)):
        if len(items) > limits.max_systems:
            message = f"The document has {len(items):,} {part}; at most {limits.max_systems:,} are taken."
            yield _problem("too_many", message, part)
    for name, version in document.versions.items():
        if fault := fault_of(name, _NAME) or fault_of(version, limits.max_text):
            yield _problem("text", f"The version of {quoted(name)} {fault}.", "versions")
    for place, dataset in enumerate(document.datasets):
        for text in (dataset.subset, dataset.digest, dataset.title):
            if fault := fault_of(text, limits.max_text):
                yield _problem("text", f"The dataset {quoted(dataset.subset)} {fault}.", "datasets", place)
        if dataset.clips < 0 or dataset.seconds < 0:
            message = f"The dataset {quoted(dataset.subset)} has less than nothing; count it again."
            yield _problem("negative", message, "datasets", place)
    for subset, times in Counter(dataset.subset for dataset in document.datasets).items():
        if times > 1:
            message = f"The document describes the dataset {quoted(subset)} twice; keep one of them."
            yield _problem("repeated_dataset", message, "datasets")


# --- values ----------------------------------------------------------------------------------------------------------


def _measurements(rows: tuple[Row, ...], facts_of: Callable[[str], Metric]) -> Iterator[Problem]:
    """What no measurement can give: the score table's own rules, and cells that contradict each other."""
    unknown: set[str] = set()
    for problem in table_problems(rows, facts_of):
        message, metric = problem.message, rows[problem.row - 1].metric
        if problem.code == "unknown_metric":
            if metric in unknown:
                continue
            unknown.add(metric)
            message = f"{quoted(metric)[1:-1]} is no metric that Earmark knows.{nearest_names(metric, METRICS)}"
        yield Problem(problem.code, message, f"/scores/{problem.row - 1}", problem.field, problem.row)
    for place, row in enumerate(rows):
        at = f" ({row.metric})"
        if row.lift is not None and row.value is not None and row.baseline is not None:
            apart = abs(row.lift - (row.value - row.baseline))
            if apart > _ROUNDING * max(1.0, abs(row.value)):
                sum_of = f"lift {row.lift:g} is not value {row.value:g} minus baseline {row.baseline:g}; mend it."
                yield _in_row("lift", place, "lift", f"{at}: {sum_of}")
        elif row.lift is not None and abs(row.lift) > _span(row.metric, facts_of):
            message = f"{at}: no lift can be {row.lift:g}; it is value minus baseline."
            yield _in_row("lift", place, "lift", message)
        if row.sampled:
            message = f"{at}: it rests on a sample of queries, and another seed gives another; leave out queries."
            yield _in_row("sampled", place, "reason", message)
        if row.n == 0 and row.value is not None and row.metric not in _OF_NO_CLIPS:
            yield _in_row("no_clips", place, "n", f"{at}: a value that rests on 0 clips; say on how many it rests.")


def _codec_run(document: Document) -> Iterator[Problem]:
    """A run of codecs is whole: every rate was counted, and every value says what it rests on."""
    rows = document.scores.rows
    counted_rates = {row.system for row in rows if row.metric == "kbps"}
    for place, card in enumerate(document.cards):
        if card.name not in counted_rates:
            message = (
                f"{card.name} has no row for its bitrate: measure kbps from the payload, as `earmark codec run` does."
            )
            yield _problem("no_bitrate", message, "systems", place)
    for place, row in enumerate(rows):
        at = f" ({row.metric})"
        if (
            row.status in ("ok", "incomplete") and row.n is None and row.metric != "delay_ms"
        ):  # a card may state a delay
            yield _in_row("no_clips", place, "n", f"{at}: a value without n; say on how many clips it rests.")
        for name in ("version", "inputs"):
            if not getattr(row, name):
                message = f"{at}: {name} is empty; a run says what measured each row, and from which inputs."
                yield _in_row(f"no_{name}", place, name, message)


def _span(metric: str, facts_of: Callable[[str], Metric]) -> float:
    """How far two values of a metric can lie apart; without end for a metric that is not known."""
    try:
        low, high = facts_of(metric).range
    except EarmarkError:
        return math.inf
    return high - low + _ROUNDING


def _warnings(document: Document) -> list[str]:
    rows = document.scores.rows
    measured = [row for row in rows if row.status == "ok"]
    printed = document.provenance == "printed"
    outside = [row for row in measured if row.value is not None and not _inside(row)]
    means = sum(bool(row.aggregate) for row in rows)
    counts = (
        (sum(not row.version for row in measured), *_NO_VERSION),
        (0 if printed else sum(_HASH.fullmatch(row.inputs) is None for row in measured), *_NO_HASH),
        (len(outside), "has a value outside of its interval.", "have values outside of their intervals."),
        (
            sum(row.status == "predicted" for row in rows),
            "is a prediction: it is shown as such and ranked nowhere.",
            "are predictions: they are shown as such and ranked nowhere.",
        ),
        (
            sum(row.status == "repeated" for row in rows),
            "repeats another system's: it is shown as such and ranked nowhere.",
            "repeat other systems': they are shown as such and ranked nowhere.",
        ),
        (
            sum(row.status == "incomplete" for row in rows),
            "lacks the clips that the system failed on: it is shown as such and ranked nowhere.",
            "lack the clips that the system failed on: they are shown as such and ranked nowhere.",
        ),
        (
            sum(row.statistic == "difference" for row in rows),
            "is a difference: the board computes its own.",
            "are differences: the board computes its own.",
        ),
        (
            0 if printed else means,
            "is a mean: the board computes its own, and ranks by those.",
            "are means: the board computes its own, and ranks by those.",
        ),
    )
    total = counted(len(rows), "row")
    warnings = [
        f"1 of {total} {one}" if count == 1 else f"{counted(count, 'row')} of {len(rows):,} {several}"
        for count, one, several in counts
        if count
    ]
    if rows and not any(row.value is not None for row in rows):
        warnings.append("No row has a value.")
    return warnings


def is_routine(warning: str) -> bool:
    """Whether a warning is of the kind that nearly every table from elsewhere gets, and that decides nothing."""
    return warning.endswith(_NO_VERSION + _NO_HASH)


def _inside(row: Row) -> bool:
    ends = (row.low, row.value, row.high)
    return None in ends or row.low <= row.value <= row.high  # type: ignore[operator]


# --- boards whose subsets are known ----------------------------------------------------------------------------------


_MEANS = tuple(mean_over(name) for name in (*RULES, "speech", "audio", "music"))
"""The means that Earmark and the papers give; the board shows them and ranks by its own."""


def _subsets(rows: Iterable[Row], board: Definition, name: str, announced: Collection[str]) -> Iterator[Problem]:
    allowed = {*board.subset_names, *announced, "", *_MEANS}
    suite = [subset.name for subset in board.subsets if not subset.task]
    unknown: set[str] = set()
    for place, row in enumerate(rows):
        subset = row.labelled_subset
        whole = without_sample(subset)
        if board.other_subsets:
            pass
        elif subset not in allowed and subset not in unknown and whole in allowed:
            unknown.add(subset)
            message = (
                f": {quoted(subset)} is a sample of {whole}, and {name} takes whole subsets; run it without --sample."
            )
            yield _in_row("sampled_subset", place, "subset", message)
        elif subset not in allowed and subset not in unknown:
            unknown.add(subset)
            hint = did_you_mean(subset, allowed) or f" It has {', '.join(suite)}."
            message = f": {name} has no subset {quoted(subset)}; rename it.{hint}"
            yield _in_row("unknown_subset", place, "subset", message)
        clips = board.subset(subset).clips
        if clips is not None and row.n is not None and row.n > clips:
            message = (
                f" ({row.metric}): n is {row.n:,}, but {subset} has {clips:,} clips; measure it on the subset as it is "
                "published."
            )
            yield _in_row("too_many_clips", place, "n", message)


def _claims(rows: Iterable[Row], blind: BlindNames) -> Iterator[Problem]:
    """Measurements of blind subsets that no author can have made; one problem for each subset."""
    seen: set[str] = set()
    for place, row in enumerate(rows):
        subset = without_sample(row.labelled_subset)
        if row.status not in ("ok", "repeated", "incomplete") or subset in seen:
            continue
        seen.add(subset)
        meant = blind.meant(subset)
        if not meant:
            continue
        exact = subset in (meant, "mean:blind")
        what = f"{subset} is blind" if exact else f"{quoted(subset)} reads like {quoted(meant)}, which is blind"
        message = (
            f" ({row.metric}): {what}, and only the host can measure it; leave its rows out, and send the host a "
            "package (`earmark blind submit`)."
        )
        yield _in_row("blind_subset", place, "subset", message)


def _sizes(rows: Iterable[Row], board: Definition) -> list[str]:
    """Subsets that were not measured whole: allowed, and worth knowing."""
    fewest: dict[str, int] = {}
    for row in rows:
        clips = board.subset(row.subset).clips
        if clips is not None and row.n is not None and row.status == "ok" and row.n < clips:
            fewest[row.subset] = min(row.n, fewest.get(row.subset, clips))
    return [
        f"{subset} was measured on {count:,} of its {board.subset(subset).clips:,} clips."
        for subset, count in fewest.items()
    ]
