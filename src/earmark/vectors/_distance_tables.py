"""Distances in tables: pairs with two columns of names, or a square with the names above and beside it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.errors import InputError, quoted
from earmark.progress import progress_bar
from earmark.tables import CsvLine, read_csv
from earmark.vectors._distance_checks import SIMILARITIES
from earmark.vectors.columns import MissingColumn, is_index_name, plain_name, refuse_other_separators, shortened
from earmark.vectors.table_files import read_parquet
from earmark.vectors.texts import as_text, is_number

Floats = NDArray[np.float64]

STEP = 1 << 20  # characters of a table between two signs of progress
_DISTANCE_NAMES = frozenset("distance distances dist d dissimilarity dissim dtw divergence".split())
_SIMILARITY_NAMES = frozenset("similarity similarities sim simil correlation corr cosinesimilarity".split())
_DOUBTFUL_NAMES = frozenset(
    "score scores likeness resemblance affinity proximity closeness match agreement overlap confidence trial trials "
    "count counts n number rank order index session repeat repetition block time listener subject judge".split()
)
_ENDINGS = (("1", "2"), ("0", "1"), ("a", "b"), ("i", "j"), ("x", "y"), ("left", "right"), ("first", "second"))
_TWINS = (("from", "to"), ("source", "target"), ("row", "column"), ("row", "col"), ("query", "reference"))
_MISSING = frozenset({"", "na", "n/a", "null", "none"})


class PairList(NamedTuple):
    """Pairs by name, in the order of the file, and their distances."""

    first: list[str]
    second: list[str]
    distances: Floats
    notes: tuple[str, ...] = ()


class Square(NamedTuple):
    """A square matrix, and the names of its rows where it has them."""

    values: Floats
    names: list[str] | None


def read_table(source: Path, columns: tuple[str, str, str] | None, *, progress: bool = False) -> PairList | Square:
    """Read a table of pairs or a square table; `columns` names those of the pairs."""
    if source.suffix.lower() == ".parquet":
        return _from_lines(*_parquet_lines(source), columns, source)
    with (
        source.open(encoding="utf-8-sig", newline="") as stream,
        progress_bar(progress, source.stat().st_size, f"{source.name}: lines", "byte") as tick,
    ):
        mark = _separator(stream.readline(), source)
        stream.seek(0)
        lines = read_csv(_ticking(stream, tick), source, delimiter=mark)
        first = next(lines, None)
        if first is None:
            raise InputError(f"{source} is empty; write it again.")
        if mark == ",":
            refuse_other_separators(first.cells, source)
        elif len(first.cells) == 1:
            raise InputError(f"{source} is not separated by tabs; save it so, or as a .csv file.")
        return _from_lines(first, lines, columns, source)


def _ticking(lines: Iterable[str], tick: Callable[[int], None]) -> Iterator[str]:
    """The lines, and how far they are."""
    read = 0
    for line in lines:
        read += len(line)
        if read > STEP:
            tick(read)
            read = 0
        yield line
    tick(read)


def _separator(line: str, source: Path) -> str:
    """What separates the cells of a table: commas in .csv; tabs elsewhere, or in .txt also blanks, as NumPy writes."""
    if source.suffix.lower() == ".csv":
        return ","
    return " " if source.suffix.lower() == ".txt" and "\t" not in line else "\t"


def _parquet_lines(source: Path) -> tuple[CsvLine, Iterator[CsvLine]]:
    """A Parquet file as lines of text: an index with names comes first, a plain one is left out."""
    table = read_parquet(source)
    names = [str(name) for name in table.column_names]
    texts = {name: [as_text(item) or "" for item in table.column(name).to_pylist()] for name in names}
    index = [name for name in names if is_index_name(name)]
    plain = [name for name in index if all(map(is_number, texts[name]))]
    order = [*(name for name in index if name not in plain), *(name for name in names if name not in index)]
    body = (
        CsvLine(row, list(cells)) for row, cells in enumerate(zip(*(texts[n] for n in order), strict=True), start=1)
    )
    heading = ["" if name in index else name for name in order]
    return CsvLine(0, heading), body


def _from_lines(
    first: CsvLine, rest: Iterator[CsvLine], columns: tuple[str, str, str] | None, source: Path
) -> PairList | Square:
    opening = list(itertools.islice(rest, 3))
    heading = [cell.strip() for cell in first.cells]
    body = itertools.chain(opening, rest)
    if columns is not None:
        for name in columns:
            if name not in heading:
                raise MissingColumn(source, name, heading)
        return _pairs([heading.index(name) for name in columns], len(heading), body, source)
    if not _is_square(heading, opening):
        found = _pair_columns(heading, opening, source)
        if found is not None:
            places, headed = found
            pairs = _pairs(places, len(heading), body if headed else itertools.chain([first], body), source)
            name = heading[places[-1]]
            if not headed or _says_distance(plain_name(name)):
                return pairs
            return pairs._replace(notes=(f'{source}: the column "{name}" is taken as the distance',))
    return _square(first, heading, body, source)


# --- pairs ------------------------------------------------------------------------------------------------------


def _is_square(heading: Sequence[str], opening: Sequence[CsvLine]) -> bool:
    """Whether the first names above are the first names beside; of few columns, also whether the rest is numbers."""
    beside = [line.cells[0].strip() for line in opening]
    above = list(heading) if opening and len(opening[0].cells) == len(heading) + 1 else list(heading[1:])
    return bool(beside) and above[: len(beside)] == beside and (len(above) > 3 or _all_numbers(opening))


def _pair_columns(heading: Sequence[str], opening: Sequence[CsvLine], source: Path) -> tuple[list[int], bool] | None:
    """The places of the two names and the distance, and whether there is a heading; None where it is no such table."""
    plain = [plain_name(name) for name in heading]
    offered = [place for place, name in enumerate(plain) if _says_distance(name)]
    named = [place for place in range(len(plain)) if not is_index_name(heading[place]) and place not in offered]
    twins = [(i, j) for i, j in itertools.combinations(named, 2) if _are_twins(plain[i], plain[j])]
    if len(offered) == 1 and len(twins) == 1:
        return [*twins[0], offered[0]], True
    useful = [place for place in range(len(plain)) if not is_index_name(heading[place])]
    likenesses = [place for place, name in enumerate(plain) if name in _SIMILARITY_NAMES or "similarity" in name]
    if len(useful) == 3 and plain[useful[-1]] in _DOUBTFUL_NAMES:
        likenesses.append(useful[-1])
    if likenesses and not offered and (twins or len(useful) == 3):
        name = heading[likenesses[0]]
        pair = twins[0] if twins else [place for place in useful if place not in likenesses][:2]
        columns = ",".join([*(heading[place] for place in pair), name])
        raise InputError(
            f'{source} has the column "{name}" and none of distances; {SIMILARITIES}, or, if they are distances, name '
            f'the columns with --pair-columns "{columns}".'
        )
    if len(useful) == 3 and len(heading) <= 4:
        last = useful[-1]
        if not is_number(heading[last]):
            if opening and all(_is_value(line.cells[last]) for line in opening if len(line.cells) > last):
                return useful, True
        elif not any(is_number(heading[place]) for place in useful[:2]):
            return useful, False
    if (offered and twins) or (opening and not _all_numbers(opening)):
        raise InputError(
            f"{source} has the columns {shortened(heading, 12)}; say which hold the two names and the distance with "
            "--pair-columns a,b,distance."
        )
    return None


def _says_distance(plain: str) -> bool:
    return plain in _DISTANCE_NAMES or plain.endswith(("distance", "dissimilarity"))


def _are_twins(one: str, other: str) -> bool:
    """Whether two names differ as those of two items do: id1 and id2, file_a and file_b, from and to."""
    if (one, other) in _TWINS:
        return True
    for ending, its_twin in _ENDINGS:
        for strip in (str.removesuffix, str.removeprefix):
            stem = strip(one, ending)
            if stem != one and strip(other, its_twin) == stem != other:
                return True
    return False


def _is_value(cell: str) -> bool:
    return is_number(cell) or cell.strip().lower() in _MISSING


def _all_numbers(lines: Sequence[CsvLine]) -> bool:
    return all(_is_value(cell) for line in lines for cell in line.cells[1:])


def _pairs(places: Sequence[int], width: int, body: Iterator[CsvLine], source: Path) -> PairList:
    first: list[str] = []
    second: list[str] = []
    values: list[float] = []
    a, b, d = places
    texts: dict[str, str | None] = {}  # of cells: few names stand in many lines
    for line, cells in body:
        if len(cells) != width:
            raise InputError(f"{source}, line {line} has {len(cells)} cells, not {width}; check its commas.")
        for cell, names in ((cells[a], first), (cells[b], second)):
            if cell not in texts:
                texts[cell] = as_text(cell)
            name = texts[cell]
            if name is None:
                raise InputError(
                    f"{source}, line {line} lacks one of its two names; fill it in, or leave the line out."
                )
            names.append(name)
        values.append(_number(cells[d], source, line))
    if not values:
        raise InputError(f"{source} has a heading but no pairs; write it again.")
    return PairList(first, second, np.array(values, np.float64))


def _number(cell: str, source: Path, line: int) -> float:
    try:
        return float(cell)
    except ValueError:
        if cell.strip().lower() in _MISSING:
            return float("nan")
        raise InputError(f"{source}, line {line} has {quoted(cell)} where a distance belongs; give a number.") from None


# --- squares ----------------------------------------------------------------------------------------------------


def _square(first: CsvLine, heading: list[str], body: Iterator[CsvLine], source: Path) -> Square:
    """A square table: bare numbers, names above alone, or names above and beside; R leaves out the corner."""
    beside: list[str] = []
    rows: list[Floats] = []
    for line, cells in body:
        if rows and len(cells) != len(rows[0]) + 1:
            raise InputError(f"{source}, line {line} has {len(cells)} cells, not {len(rows[0]) + 1}; check its commas.")
        beside.append(cells[0].strip())
        rows.append(_numbers(cells[1:], source, line))
    if not rows:
        raise InputError(f"{source} has one line; give a square table, or pairs as a,b,distance.")
    width = len(rows[0]) + 1
    above = heading if width == len(heading) + 1 else heading[1:]
    if len(above) == len(rows) == width - 1 and not (all(map(is_number, heading)) and len(heading) == width):
        return _named_square(np.vstack(rows), beside, above, source)
    if len(heading) == width and all(map(_is_value, [*heading, *beside])) and width in (len(rows), len(rows) + 1):
        own = _numbers(beside, source, 2)
        rows = [np.append(own[row], cells) for row, cells in enumerate(rows)]
        if width == len(rows):
            counting = heading == [str(place) for place in range(width)]
            return Square(_whole(np.vstack(rows)), None if counting else heading)
        return Square(_whole(np.vstack([_numbers(heading, source, first.number), *rows])), None)
    if len(heading) == width == len(rows) and all(map(_is_value, beside)):
        own = _numbers(beside, source, 2)
        return Square(_whole(np.column_stack([own, np.vstack(rows)])), heading)
    raise InputError(
        f"{source} has {len(rows)} rows under its first line and {width} columns: neither pairs (a,b,distance; name "
        "their columns with --pair-columns) nor a square table with names above and beside it."
    )


def _whole(values: Floats) -> Floats:
    """A square of which one triangle is blank, with that one filled from the other; any other as it is."""
    upper = np.triu_indices(len(values), 1)
    for half in (values, values.T):
        if len(upper[0]) and np.isnan(half[upper]).all() and not np.isnan(half.T[upper]).any():
            half[upper] = half.T[upper]
            break
    return values


def _named_square(values: Floats, beside: list[str], above: list[str], source: Path) -> Square:
    if beside != above and [_as_in_r(name) for name in beside] != [_as_in_r(name) for name in above]:
        if len(set(above)) != len(above) or set(beside) != set(above):
            odd = next(i for i, (one, other) in enumerate(zip(beside, above, strict=True)) if one != other)
            raise InputError(
                f'{source}: row {odd + 1} is named "{beside[odd]}" and column {odd + 1} "{above[odd]}"; give rows and '
                "columns the same names."
            )
        place = {name: number for number, name in enumerate(above)}
        values = values[:, [place[name] for name in beside]]
    return Square(_whole(values), beside)


def _as_in_r(name: str) -> str:
    """A name as R's data frames spell it above a column."""
    spelled = re.sub(r"[^A-Za-z0-9._]", ".", name)
    return spelled if re.match(r"[A-Za-z]|\.(?!\d)", spelled) else f"X{spelled}"


def _numbers(cells: Sequence[str], source: Path, line: int) -> Floats:
    try:
        return np.array([float(cell) for cell in cells])
    except ValueError:
        return np.array([_number(cell, source, line) for cell in cells])
