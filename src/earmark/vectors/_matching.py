"""Which row of a file of labels belongs to which vector: by id, by a column that holds the ids, or by position.

A column of names is as good as ids. It counts where it holds every name of the other side, as it is, or as a path
whose last parts are the same on both sides, with or without the ending of the file (`wav/a.wav`, `/data/wav/a.wav`,
`a`; the same with a span behind it, `a.wav#0-3`), and no two rows have one name. Where some names agree and stand in
other rows, nothing is joined by position.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from earmark.errors import InputError
from earmark.vectors._values import Labels
from earmark.vectors.columns import names_items
from earmark.vectors.texts import Texts, is_number

_Names = Mapping[str, Sequence[str]]
_ENDING = re.compile(r"(?<=[^/])\.[A-Za-z][A-Za-z0-9]{0,4}$")
_SPAN = re.compile(r"(.*?)((?:#[0-9.]+-[0-9.]+)?)", re.DOTALL)  # dawn.wav#0-3: a file, and a span of it
_DEEPEST = 6  # parts of a path that are compared


class Match(NamedTuple):
    """The row of the labels that belongs to each thing, the names of the things, the column of the labels that holds
    them, what a reader should know, and which of that every score has to say."""

    order: list[int]
    ids: tuple[str, ...] | None
    column: str | None = None
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()


def match_rows(
    ids: Sequence[str] | None, count: int, source: str, labels: Labels, thing: str, *,
    beside: Mapping[str, Texts] | None = None, ordered: bool = True,
) -> Match:  # fmt: skip
    """The row of the labels that belongs to each of `count` things.

    Args:
        ids: The names of the things.
        count: How many there are.
        source: The file they come from.
        labels: The labels.
        thing: What a thing is called in messages.
        beside: Columns of that file that may hold names, where there are no ids.
        ordered: Whether the things have an order that another file can have too.
    """
    if ids is not None and labels.ids is not None:
        order, exactly = _by_id(ids, labels.ids, source, labels.source)
        loosely = () if exactly else (f"{labels.source}: ids were joined to those of {source} by file name.",)
        return Match(order, tuple(ids), None, (*loosely, *_spare(labels, order, thing)))
    ours: _Names = {"id": ids} if ids is not None else _name_columns(beside or {})
    theirs: _Names = {"id": labels.ids} if labels.ids is not None else _name_columns(labels.beside)
    found = _by_names(ours, theirs)
    if found is not None:
        order, our, their, exactly = found
        said = f'{labels.source}: {thing}s and labels were joined by the column "{their}"'
        said += f' and "{our}" of {source}' if ids is None else f", which holds the ids of {source}"
        said += "." if exactly else ", by file name."
        return Match(order, tuple(ours[our]), their, (said, *_spare(labels, order, thing)))
    _refuse_other_order(ours, theirs, count, source, labels, thing)
    if count != len(labels.values):
        raise InputError(_length_mismatch(count, source, labels, thing))
    if not ordered:
        raise InputError(
            f"{source} lists pairs by name, which have no order that the rows of {labels.source} could have: add an "
            "`id` column to the labels, or give the names in their order with --ids FILE."
        )
    names = labels.ids if ids is None else ids
    doubts: tuple[str, ...] = ()
    if (ids is None) != (labels.ids is None) or (ours and theirs):
        without, columns = (source, ours) if ids is None else (labels.source, theirs)
        other = labels.source if ids is None else source
        listed = f" and none of them in {', '.join(columns)}" if columns and other else ""
        doubts = (f"{without} has no ids{listed}; {thing}s and labels were joined by position.",)
    return Match(list(range(count)), None if names is None else tuple(names), None, doubts, doubts)


def _name_columns(columns: Mapping[str, Texts]) -> dict[str, list[str]]:
    """The columns that may hold the names of clips, those first whose own name says so: no gaps, nothing twice, and
    numbers only where the name says so."""
    found: dict[str, list[str]] = {}
    for name in sorted(columns, key=lambda name: not names_items(name)):
        texts = [text for text in columns[name] if text is not None]
        if len(texts) < len(columns[name]) or len(set(texts)) < len(texts) or len(texts) < 2:
            continue
        if names_items(name) or not any(map(is_number, texts)):
            found[name] = texts
    return found


def _by_names(ours: _Names, theirs: _Names) -> tuple[list[int], str, str, bool] | None:
    """The row of each of our names on the other side, the two columns, and whether the names are the same as they are;
    None where no two columns agree on all of ours."""
    if not ours or not theirs:
        return None
    for place, spell in enumerate(_spellings([*ours.values(), *theirs.values()])):
        for our, names in ours.items():
            wanted = [spell(name) for name in names]
            if len(set(wanted)) < len(wanted):
                continue
            for their, others in theirs.items():
                spelled = [spell(name) for name in others]
                row_of = {name: row for row, name in enumerate(spelled)}
                if all(name in row_of for name in wanted):
                    counts = Counter(spelled)
                    if all(counts[name] == 1 for name in wanted):
                        return [row_of[name] for name in wanted], our, their, place == 0
    return None


def _spellings(columns: Sequence[Sequence[str]]) -> Iterator[Callable[[str], str]]:
    """Names as they are; then by ever fewer parts of their paths; then the same without the ending of the file."""
    yield lambda name: name
    depth = max((len(_parts(name)) for names in columns for name in names), default=1)
    for ending in (True, False):
        for parts in range(min(depth, _DEEPEST), 0, -1):
            yield lambda name, parts=parts, ending=ending: _tail(name, parts, ending=ending)  # type: ignore[misc]


def _parts(name: str) -> list[str]:
    return [part for part in name.replace("\\", "/").split("/") if part not in ("", ".")]


def _tail(name: str, parts: int, *, ending: bool) -> str:
    file, span = _SPAN.fullmatch(name).groups()  # type: ignore[union-attr]
    tail = "/".join(_parts(file)[-parts:])
    return (tail if ending else _ENDING.sub("", tail)) + span


def _refuse_other_order(
    ours: _Names, theirs: _Names, count: int, source: str, labels: Labels, thing: str
) -> None:  # fmt: skip
    """Refuse a column that holds some of the names, where by position they would get each other's labels."""
    for names in ours.values():
        mine = [_tail(name, 1, ending=False) for name in names]
        row_of = {name: row for row, name in enumerate(mine)}
        for their, others in theirs.items():
            rows = [row_of.get(_tail(name, 1, ending=False)) for name in others]
            shared = [(row, other) for row, other in enumerate(rows) if other is not None]
            if not shared or len(row_of) < len(mine):
                continue
            if all(row == other for row, other in shared) and count == len(others):
                continue
            there = {other for _, other in shared}
            missing = [name for row, name in enumerate(names) if row not in there]
            lacks = some_names(missing, "name") if missing else "nothing, but has some names twice"
            raise InputError(
                f'{labels.source}: the column "{their}" names {len(there)} of the {count} {thing}s of {source}, in '
                f"another order, and lacks {lacks}; add the rows, or leave the column out to join by position."
            )


def _spare(labels: Labels, order: Sequence[int], thing: str) -> tuple[str, ...]:
    spare = len(labels.values) - len(order)
    if not spare:
        return ()
    rows = "1 row has" if spare == 1 else f"{spare} rows have"
    return (f"{labels.source}: {rows} no {thing} and {'was' if spare == 1 else 'were'} left out.",)


def _by_id(ids: Sequence[str], label_ids: Sequence[str], source: str, label_source: str) -> tuple[list[int], bool]:
    """The row of each id, and whether ids are the same as they are, not only by the names of their files."""
    for names, where in ((ids, source), (label_ids, label_source)):
        repeated = [name for name, count in Counter(names).items() if count > 1]
        if repeated:
            several = where == label_source and names is label_ids
            remedy = (
                ", or --label-separator ';' must say that an id has a row for each of its labels" if several else ""
            )
            raise InputError(f"{where} has {some_names(repeated, 'id')} more than once; ids must be unique{remedy}.")
    row_of = {name: row for row, name in enumerate(label_ids)}
    missing = [name for name in ids if name not in row_of]
    if not missing:
        return [row_of[name] for name in ids], True
    by_file = _by_names({"id": ids}, {"id": label_ids})
    if by_file is not None:
        return by_file[0], False
    like = f' (its own are like "{label_ids[0]}")' if len(missing) == len(ids) and label_ids else ""
    raise InputError(
        f"{label_source} lacks {some_names(missing, 'id')} of {len(ids)} in {source}{like}; add the rows, with an "
        "empty label where nobody looked, and with that of --background where none of the classes is there."
    )


def _length_mismatch(count: int, source: str, labels: Labels, thing: str) -> str:
    short = f"{source} has {count} rows but {labels.source} has {len(labels.values)} labels"
    if labels.header is not None and len(labels.values) + 1 == count:
        return f'{short}; its first line "{labels.header}" was read as the heading: put `label` above it.'
    return f"{short}; give one label for each {thing}, or an `id` column on both sides."


def some_names(names: Sequence[str], noun: str, most: int = 3) -> str:
    """'id "a"', '2 ids ("a", "b")', '9 ids ("a", "b", "c", …)'"""
    shown = ", ".join(f'"{name}"' for name in names[:most])
    if len(names) == 1:
        return f"{noun} {shown}"
    return f"{len(names)} {noun}s ({shown}{', …' if len(names) > most else ''})"
