"""The ledger as a page for the owners of the recordings: what was released when, to whom, and who signed it.

Nothing on it is an exact value, unless the host asks for them by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from earmark.blind.chain import Entry
from earmark.scores import Row, Scores
from earmark.tables import csv_text, no_formula
from earmark.wording import counted

__all__ = ["as_csv", "as_markdown", "standing"]

_FIGURES = ("value", "low", "high", "baseline", "lift")
_COLUMNS = (
    "number", "at", "state", "board", "team", "entry", "job", "policy", "subset", "metric", *_FIGURES, "n", "status",
    "new", "of_job", "hash",
)  # fmt: skip


def standing(entries: Sequence[Entry]) -> dict[int, str]:
    """What became of every release, by its number."""
    about: dict[tuple[int, str], Entry] = {}
    for entry in entries:
        if entry.about is not None:
            about.setdefault((entry.about, entry.kind), entry)
    states = {}
    for entry in entries:
        if entry.kind != "release":
            continue
        objection = about.get((entry.number, "objection"))
        gone = (entry.number, "departure") in about
        if objection is not None:
            told = (objection.number, "departure") in about
            states[entry.number] = "withdrawn" if told else "to be withdrawn" if gone else "stopped"
        elif (entry.number, "not_taken") in about:
            states[entry.number] = "not taken by the board"
        elif gone:
            states[entry.number] = "on the board"
        elif entry.body["sign_off"] == "before" and (entry.number, "signature") not in about:
            states[entry.number] = "waits for a signature"
        else:
            states[entry.number] = "waits for its time"
    return states


def as_markdown(entries: Sequence[Entry], exact: Callable[[int], Scores] | None = None) -> str:
    """The whole ledger as Markdown; with `exact`, the exact values beside the released ones."""
    return "\n".join(_lines(entries, exact)) + "\n"


def _lines(entries: Sequence[Entry], exact: Callable[[int], Scores] | None) -> Iterator[str]:
    states = standing(entries)
    yield "# What was released"
    yield ""
    if not entries:
        yield "Nothing was decided yet."
        return
    last = entries[-1]
    released = sum(state == "on the board" for state in states.values())
    waiting = sum(state.startswith("waits") for state in states.values())
    taken_back = sum(state == "to be withdrawn" for state in states.values())
    refused = sum(entry.kind == "refusal" for entry in entries)
    gone = len(states) - released - waiting - taken_back
    yield (
        f"{counted(len(states), 'release')}: {released} on the board, {waiting} waiting, {gone} withdrawn or unsent. "
        f"{counted(refused, 'refusal')}. All times are UTC."
    )
    yield ""
    if taken_back:
        yield f"**{counted(taken_back, 'release')} that the owners took back not yet withdrawn from the board.**"
        yield ""
    yield "Keep this line. With it anybody can find out later whether the end of the ledger was cut off:"
    yield ""
    yield f"    {last.number}:{last.hash}"
    if exact is not None:
        yield ""
        yield "**This page holds exact values. It is for the host alone.**"
    for entry in entries:
        yield ""
        yield from _section(entry, states, exact)


def _section(entry: Entry, states: Mapping[int, str], exact: Callable[[int], Scores] | None) -> Iterator[str]:
    body = entry.body
    title = {"departure": "left", "signature": "signed", "objection": "objected", "not_taken": "not taken"}.get(
        entry.kind, entry.kind
    )
    about = f" (entry {entry.about})" if entry.about is not None else ""
    yield f"## {entry.number}. {title.capitalize()}{about}, {entry.at[:16].replace('T', ' ')}"
    yield ""
    if entry.kind == "policy":
        yield f"The policy {_text(body['digest'])} holds from here on."
    elif entry.kind == "hearing":
        yield f"A model of {_text(body['team'])} began to hear the recordings, job {_text(body['job'])}."
    elif entry.kind == "departure":
        yield f"The board has the {_text(body['what'])} of job {_text(body['job'])}."
    elif entry.kind == "not_taken":
        yield f"The board does not take the {_text(body['what'])} of job {_text(body['job'])}: {_text(body['words'])}"
    elif entry.kind in ("signature", "objection"):
        yield f"{_text(body['by'])}: {_text(body['words']) or 'without words'}"
    else:
        entry_name, team, board, job = (_text(body[name]) for name in ("entry", "team", "board", "job"))
        yield f"{entry_name} of {team}, board {board}, job {job}."
        if entry.kind == "release":
            yield f"State: {states[entry.number]}; not before {body['not_before'][:16].replace('T', ' ')}."
        yield f"Told: {_text(body['message'])}"
    if entry.kind == "release":
        yield ""
        yield from _figures(entry, exact)
    yield ""
    yield f"Hash `{entry.hash}`"


def _figures(entry: Entry, exact: Callable[[int], Scores] | None) -> Iterator[str]:
    extra = "" if exact is None else " Exact |"
    yield f"| Set | Metric | Value | Interval | Baseline | Lift | New | Of job |{extra}"
    yield "|---|---|---|---|---|---|---|---|" + ("---|" if extra else "")
    scores = None if exact is None else exact(entry.number)
    for row, new, job in _rows(entry):
        cells = [_text(row.subset), row.metric]
        if row.value is None:
            cells += [_text(row.reason), "", "", ""]
        else:
            cells += [f"{row.value:g}", f"{row.low:g} to {row.high:g}"]
            cells += ["" if number is None else f"{number:g}" for number in (row.baseline, row.lift)]
        cells += ["new" if new else "stands", _text(job)]
        if scores is not None:
            measured = scores.row(row.metric, subset=row.subset, protocol="all").value
            cells.append("" if measured is None else repr(measured))
        yield "| " + " | ".join(cells) + " |"


def as_csv(entries: Sequence[Entry]) -> str:
    """One line for each released figure."""
    lines, states = [], standing(entries)
    for entry in entries:
        if entry.kind != "release":
            continue
        common: dict[str, Any] = {name: entry.body[name] for name in ("board", "team", "entry", "job", "policy")}
        common |= {"number": entry.number, "at": entry.at, "state": states[entry.number], "hash": entry.hash}
        for row, new, job in _rows(entry):
            cells = {name: getattr(row, name) for name in ("subset", "metric", *_FIGURES, "n", "status")}
            line = common | cells | {"new": new, "of_job": job}
            lines.append({name: no_formula(cell) for name, cell in line.items()})
    return csv_text(_COLUMNS, lines)


def _rows(entry: Entry) -> Iterator[tuple[Row, bool, str]]:
    """Every released row, whether it is new, and the job that it was measured for."""
    fresh = {tuple(figure) for figure in entry.body["fresh"]}
    for cells, job in zip(entry.body["rows"], entry.body["jobs"], strict=True):
        row = Row(**cells)
        yield row, (row.subset, row.metric) in fresh, job


def _text(given: object) -> str:
    """Words of others inside Markdown: on one line, and nothing in them is markup."""
    words = " ".join(str(given).split())
    return "".join(f"\\{mark}" if mark in "\\`*_{}[]<>#|!" else mark for mark in words)
