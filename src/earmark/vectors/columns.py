"""Which columns of a table are dimensions of the vectors, and which say what a row is.

Names with a meaning of their own, in any case, singular or plural: `id`, `label`, `group`. Others get that meaning
because the caller names them. A column is no dimension when
- it is the label, the group or the id, by its name or because the caller says so;
- it is an index: without a name, named by pandas, or counting the rows under any name;
- its name says that it tells rows apart, or cuts them out (class, speaker_id, fold, file_name, start, …).

Columns of whole numbers among columns of fractions are suspicious. Where all others share one name with running numbers
(f0 … f127) such a column is refused until the caller decides with `dimensions`; elsewhere it is noted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.errors import InputError, UsageError, did_you_mean, quoted
from earmark.vectors.texts import is_number

_TELLING = frozenset(
    "class target category species genre emotion gender sex language accent dialect instrument digit word phoneme "
    "syllable annotation annotator speaker singer talker actor subject participant patient individual bird animal "
    "recording recordist session site fold split subset partition set file filename path filepath clip uuid utterance "
    "item track segment frame row index sample timestamp date start end begin".split()
)
_TELLING_ENDS = frozenset("id ids uuid label labels class name path file filename".split())
_NAMING = frozenset(
    "path filepath file filename name clip audio wav sound stimulus stimuli item utterance uuid key id".split()
)
_MARKS = frozenset("idx index no nr num number code time s sec seconds ms".split())


class MissingColumn(InputError):
    """A column or array that was asked for by name and is not there; the message names those that are."""

    def __init__(self, source: Path, wanted: str, names: Sequence[str]) -> None:
        shown = shortened(names, 12) or "none with a name"
        super().__init__(f'{source} has no column "{wanted}"; it has {shown}.{did_you_mean(wanted, names)}')
        self.source, self.wanted, self.names = source, wanted, tuple(names)

    def __reduce__(self) -> Any:
        return type(self), (self.source, self.wanted, self.names)


class NamelessColumns(InputError):
    """A column was asked for by name in a file that names none."""


def role_of(name: str) -> str | None:
    """`id`, `label` or `group` when a column or array has that meaning."""
    singular = name.strip().lower().removesuffix("s")
    return singular if singular in ("id", "label", "group") else None


def roles_of(names: Sequence[str], label: str | None, groups: str | None, source: Path) -> dict[str, str]:
    """Meaning → name of the column or array that has it, by its own name or because it was asked for."""
    roles: dict[str, str] = {}
    for name in names:
        role = role_of(name)
        if role is not None and roles.setdefault(role, name) != name:
            raise InputError(f"{source} has both `{roles[role]}` and `{name}`; remove one of them.")
    for wanted, role in ((label, "label"), (groups, "group")):
        if wanted is None:
            continue
        if wanted not in names:
            raise MissingColumn(source, wanted, [name for name in names if name.strip()])
        roles[role] = wanted
    if groups is None and label is not None and roles.get("group") == label:
        del roles["group"]
    return roles


def pick_columns(names: Sequence[str], label: str | None, groups: str | None, source: Path) -> dict[str, str]:
    """Which columns or arrays of a file of labels hold the labels, the groups and the ids."""
    roles = roles_of(names, label, groups, source)
    if "label" not in roles:
        others = [name for name in names if name not in roles.values() and not is_index_name(name)]
        if len(others) != 1:
            raise InputError(f"{source} has the columns {', '.join(names)}; name the one with the labels `label`.")
        roles["label"] = others[0]
    return roles


def refuse_columns(source: Path, label: str | None, groups: str | None) -> None:
    """For formats that hold one nameless list of labels."""
    if label is not None or groups is not None:
        raise NamelessColumns(
            f"{source} has no named columns; give a .csv, .npz or .parquet file to choose one by name."
        )


def is_index_name(name: str) -> bool:
    """Whether pandas writes its row index under this name."""
    return re.fullmatch(r"(unnamed: *\d+.*|index|level_\d+|__index_level_\d+__)?", name.strip().lower()) is not None


def plain_name(name: str) -> str:
    """A name without its case and marks: `filename` of File_Name."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def telling(name: str) -> bool:
    """Whether a name says that a column tells rows apart or cuts them out: class, speaker_id, foldNumber, file name."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name.strip())
    words = [word for word in re.split(r"[^a-z0-9]+", spaced.lower()) if word]
    if len(words) > 1 and words[-1] in _TELLING_ENDS:
        return True
    while len(words) > 1 and words[-1] in _MARKS:
        words.pop()
    while len(words) > 1 and words[0] in ("cv", "true"):
        words.pop(0)
    return len(words) == 1 and (words[0] in _TELLING or words[0].removesuffix("s") in _TELLING)


def names_items(name: str) -> bool:
    """Whether a name says that a column holds the name of a clip: path, file_name, audio file, clipId."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name.strip())
    words = [word.removesuffix("s") for word in re.split(r"[^a-z]+", spaced.lower()) if word]
    return bool(words) and all(word in _NAMING or f"{word}s" in _NAMING for word in words)


def family(names: Sequence[str]) -> str | None:
    """What names with running numbers share: `f` of f0, f1, f2, and the empty text of 0, 1, 2; else None."""
    parts = [re.fullmatch(r"(.*?)(\d+)", name) for name in names]
    if len(names) < 2 or any(part is None for part in parts):
        return None
    stems = {part[1] for part in parts if part}
    return stems.pop() if len(stems) == 1 else None


def beside_a_family(names: Sequence[str]) -> list[str]:
    """The names that stand beside many with running numbers: `duration` beside f0 … f127; none where many do."""
    stems = {name: match[1] for name in names if (match := re.fullmatch(r"(.*?)(\d+)", name))}
    if not stems:
        return []
    stem, count = Counter(stems.values()).most_common(1)[0]
    others = [name for name in names if stems.get(name) != stem]
    return others if count >= _FEW_ROWS and 4 * len(others) <= count else []


def shortened(names: Sequence[str], most: int = 6) -> str:
    """`f0 … f127, energy`: runs by their ends, and of many names the first and the last."""
    runs: list[list[str]] = []
    for name in names:
        if runs and family([runs[-1][-1], name]) is not None:
            runs[-1].append(name)
        else:
            runs.append([name])
    shown = [text for run in runs for text in ([f"{run[0]} … {run[-1]}"] if len(run) > 2 else run)]
    if len(shown) > most:
        shown = [*shown[: most - 2], "…", shown[-1]]
    return ", ".join(shown)


# --- dimensions ---------------------------------------------------------------------------------------------

FRAME = Path("The data frame")  # the source of columns that come from no file
_FEW_ROWS = 8
"""Below so many rows a column may count them, or hold whole numbers, by chance."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the caller says of the columns: those of the label and of the groups, which must be there; names that are
    no dimensions where they are there; and, as patterns (`f*`), the dimensions."""

    label: str | None = None
    groups: str | None = None
    apart: tuple[str, ...] = ()
    dimensions: tuple[str, ...] = ()


class Columns(NamedTuple):
    """Places of the dimensions, the place of each meaning (`id`, `label`, `group`), and places of neither."""

    dimensions: list[int]
    roles: dict[str, int]
    left_out: list[int]


def choose_columns(names: Sequence[str], asked: Asked, source: Path, index: Collection[str] = ()) -> Columns:
    """What each column of a table is, by its name. `index` names columns that the file itself calls an index."""
    roles = {role: names.index(name) for role, name in roles_of(names, asked.label, asked.groups, source).items()}
    others = [place for place in range(len(names)) if place not in roles.values()]
    if asked.dimensions:
        chosen: set[int] = set()
        for pattern in asked.dimensions:
            matching = {place for place, name in enumerate(names) if fnmatchcase(name, pattern)}
            if not matching:
                raise MissingColumn(source, pattern, names)
            if matching.isdisjoint(others):
                raise UsageError(f'{source}: "{pattern}" is the label, the group or the id, and so no dimension.')
            chosen |= matching & set(others)
        wanted = sorted(chosen)
    else:
        apart = {name.strip().lower() for name in asked.apart}
        wanted = [
            place
            for place in others
            if not (names[place].strip().lower() in apart or names[place] in index)
            and not (role_of(names[place]) or is_index_name(names[place]) or telling(names[place]))
        ]
    return Columns(wanted, roles, [place for place in others if place not in wanted])


class Numbered(NamedTuple):
    """The places of the dimensions that stay, those of an index, those that may be labels by what they hold, and what
    a reader should know."""

    kept: list[int]
    counting: list[int]
    doubtful: list[int]
    notes: tuple[str, ...]


def without_index(values: NDArray[Any], names: Sequence[str] | None, source: Path) -> Numbered:
    """Find the columns that count the rows, and say which others may be labels or ids by what they hold."""
    width = values.shape[1]
    everything = list(range(width))
    if len(values) < _FEW_ROWS or width < 2:
        return Numbered(everything, [], [], ())
    index = _counting(values)
    kept = [place for place in everything if place not in index]
    if not kept:  # all of them: a pattern, not an index beside vectors
        return Numbered(everything, [], [], ())
    whole = _whole_among_fractions(values, kept)
    if not whole:
        return Numbered(kept, index, [], ())
    shown = ", ".join(f'"{names[place]}"' if names else f"{place + 1}" for place in whole)
    holds = f"column {shown} holds" if len(whole) == 1 else f"columns {shown} hold"
    others = [place for place in kept if place not in whole]
    stem = None if names is None else family([names[place] for place in others])
    odd = names is not None and family([names[others[0]], *(names[place] for place in whole)]) is None
    if names is not None and stem is not None and odd:
        pattern = f"{stem}*" if stem else "[0-9]*"
        both = ",".join([pattern, *(names[place] for place in whole)])
        choice = (
            "drop it from the frame, or turn it into fractions to keep it"
            if source == FRAME
            else f'say what counts with --dimensions "{pattern}", or "{both}" to keep it'
        )
        raise InputError(
            f"{source}: {holds} whole numbers beside {len(others)} dimensions {shortened([names[p] for p in others])}, "
            f"as a label or an id would; {choice}."
        )
    remedy = "leave it out with --dimensions" if names else "write it to a file of its own"
    remedy = "drop it from the frame" if source == FRAME else remedy
    note = f"{source}: {holds} whole numbers among fractions; if that is a label or an id, {remedy}."
    return Numbered(kept, index, whole, (note,))


def _counting(values: NDArray[Any]) -> list[int]:
    """Columns that are 0 … N-1 or 1 … N: in order, or in any order if there is only one (several are ranks)."""
    count = len(values)
    low, high = values.min(axis=0), values.max(axis=0)
    ordered: list[int] = []
    shuffled: list[int] = []
    for place in np.flatnonzero(((low == 0) & (high == count - 1)) | ((low == 1) & (high == count))):
        column = values[:, place]
        numbers = np.arange(count) + low[place]
        if np.array_equal(column, numbers):
            ordered.append(int(place))
        elif np.array_equal(np.sort(column), numbers):
            shuffled.append(int(place))
    return sorted(ordered + (shuffled if len(shuffled) == 1 else []))


def _whole_among_fractions(values: NDArray[Any], places: Sequence[int]) -> list[int]:
    """One or two columns of whole numbers, not all the same, where all others (four or more) hold fractions."""
    if values.dtype.kind != "f":
        return []
    opening = values[:64, places]
    likely = np.flatnonzero((opening == np.rint(opening)).all(axis=0))
    if len(likely) > max(2, len(places) // 8):  # many: nothing is special about them
        return []
    whole = []
    for place in (places[int(number)] for number in likely):
        column = values[:, place]
        if (column == np.rint(column)).all():
            whole.append(place)
    varied = [place for place in whole if (values[:, place] != values[0, place]).any()]
    return varied if len(varied) <= 2 and len(places) - len(whole) >= 4 else []


# --- the first row of a CSV file: names or a vector? pandas heads nameless columns 0, 1, 2, … -----------------------


def refuse_other_separators(first: Sequence[str], source: Path) -> None:
    """A file saved with semicolons or tabs would be one column of long texts."""
    if len(first) == 1 and len(re.split(r"[;\t]", first[0])) > 1:
        raise InputError(f"{source} is not separated by commas; save it as comma-separated values.")


def has_heading(rows: Sequence[Sequence[str]], source: Path, asked: Asked) -> bool:
    """Whether the first of the opening rows holds names.

    It does when a name has a meaning or was asked for, and when no cell is a number. Else its numbers must be whole:
    0, 1, 2, …, or rising over four or more columns that hold nothing but fractions. 0, 1, 2, … over whole numbers is a
    heading from four columns on; with fewer, or where every row holds these numbers in some order, it is refused.
    """
    first = [cell.strip() for cell in rows[0]]
    refuse_other_separators(first, source)
    places = [place for place, cell in enumerate(first) if is_number(cell)]
    words = [(place, cell) for place, cell in enumerate(first) if place not in places]
    wanted = {asked.label, asked.groups, *asked.apart, *asked.dimensions}
    if not places or any(role_of(cell) or cell in wanted for cell in first):
        return True
    numbers = [first[place] for place in places]
    body = [[cell.strip() for cell in cells] for cells in rows[1:] if len(cells) == len(first)]
    rising = all(map(_is_whole, numbers)) and all(int(low) < int(high) for low, high in pairwise(numbers))
    if not body or not rising or not all(_heads(cell, place, body) for place, cell in words):
        return False
    values = [[cells[place] for place in places] for cells in body]
    if numbers != [str(place) for place in range(len(numbers))]:
        return len(numbers) > 3 and len(body) > 2 and not any(_is_whole(cell) for cells in values for cell in cells)
    if words or not all(_is_whole(cell) for cells in values for cell in cells):
        return bool(words) or len(numbers) > 1
    # 0, 1, 2, … over whole numbers
    width = len(numbers)
    same = all(sorted(cells) == sorted(numbers) for cells in values)
    if width < 2 or (width == 2 and all(cell in ("0", "1") for cells in values for cell in cells)):
        return False
    if width > 3 and not same:
        return True
    shown = quoted(",".join(numbers))
    raise InputError(
        f"{source}: its first line {shown} may be a heading or a vector; put names above the columns (x0,x1,…)."
    )


def _heads(word: str, place: int, body: Sequence[Sequence[str]]) -> bool:
    """Whether a word, or a blank at the start, can only be the name of its column."""
    if not word:
        return place == 0
    return is_index_name(word) or telling(word) or all(is_number(cells[place]) for cells in body)


def _is_whole(text: str) -> bool:
    return re.fullmatch(r"[+-]?\d+", text) is not None
