"""Judgements of listeners: read from tables with named columns.

    2afc       X, A, B and a choice: which of A and B is more like X?
    triplets   anchor, positive, negative: the positive was judged more like the anchor than the negative

A triplet is a choice between two sounds whose answer is always the first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.corpora.manifest import SUFFIXES, read_rows
from earmark.errors import InputError, UsageError, did_you_mean, quoted
from earmark.places import locate
from earmark.probes._names import fit, parts_of, without_ending
from earmark.vectors.columns import plain_name, shortened
from earmark.vectors.texts import as_text, column_texts
from earmark.wording import counted

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
Texts = Sequence[str | None]

ROLES = {"2afc": ("x", "a", "b", "choice"), "triplets": ("anchor", "positive", "negative")}
"""The columns of each kind of judgement."""

NAMES = {
    "anchor": "anchor reference ref",
    "positive": "positive pos closer nearer similar",
    "negative": "negative neg farther further dissimilar",
    "x": "x probe soundid sample stimulus query target test reference ref",
    "a": "a left sounda stimulusa optiona candidatea sound1 stimulus1 option1 candidate1 first",
    "b": "b right soundb stimulusb optionb candidateb sound2 stimulus2 option2 candidate2 second",
    "choice": "choice decision response answer judgement judgment chosen selected",
    "listener": "listener listenerid listeners participant participantid subject subjectid rater raterid annotator "
    "annotatorid observer observerid judge judgeid worker workerid",
}
"""Names by which a column is known, in small letters and without marks; the first that is there counts."""

CHOSE_A = frozenset("a left l 1 +1 first".split())
CHOSE_B = frozenset("b right r 2 -1 second".split())
NO_CHOICE = frozenset(
    ("", "na", "n/a", "nan", "none", "null", "no choice", "no_choice", "nochoice", "no response", "no_response",
     "neither", "both", "equal", "same", "tie", "timeout", "skip", "skipped", "?", "-")
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Judgements:
    """Judgements as numbers: `x`, `a` and `b` are places in `sounds`, -1 where a cell is empty.

    `choices` is +1 where A was chosen (always, in triplets), -1 for B and 0 where nothing was. `cells` holds the other
    columns, by their names in small letters; `columns` says which column was taken for what.
    """

    kind: str
    sounds: tuple[str, ...]
    x: Ints
    a: Ints
    b: Ints
    choices: Ints
    listeners: tuple[str | None, ...] | None = None
    cells: Mapping[str, tuple[str | None, ...]] = field(default_factory=dict)
    source: str = "The judgements"
    columns: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.x)

    @property
    def usable(self) -> Mask:
        """Which judgements name three different sounds and made a choice."""
        return np.asarray((self.choices != 0) & self.named & ~self.with_itself)

    @property
    def with_itself(self) -> Mask:
        """Which judgements compare a sound with itself: no distance can be wrong about them, or right."""
        return np.asarray(self.named & ((self.x == self.a) | (self.x == self.b) | (self.a == self.b)))

    @property
    def named(self) -> Mask:
        """Which judgements name three sounds."""
        return np.asarray((self.x >= 0) & (self.a >= 0) & (self.b >= 0))

    @property
    def summary(self) -> str:
        """What was read: `j.csv: 40 judgements (2afc); x: probe; a: left; b: right; choice: decision`."""
        roles = [f"{role}: {name}" for role, name in self.columns.items()]
        return "; ".join([f"{self.source}: {counted(len(self), 'judgement')} ({self.kind})", *roles])

    def take(self, rows: Ints | Mask) -> Judgements:
        """Some of the judgements, in that order."""
        places = np.arange(len(self))[rows]
        return replace(
            self, x=self.x[places], a=self.a[places], b=self.b[places], choices=self.choices[places],
            listeners=None if self.listeners is None else tuple(self.listeners[row] for row in places),
            cells={name: tuple(texts[row] for row in places) for name, texts in self.cells.items()},
        )  # fmt: skip


# --- reading ----------------------------------------------------------------------------------------------------------


def read_judgements(
    table: Any, *, kind: str | None = None, x: str | None = None, a: str | None = None, b: str | None = None,
    choice: str | None = None, anchor: str | None = None, positive: str | None = None, negative: str | None = None,
    listener: str | None = None, chose_a: str | None = None, chose_b: str | None = None,
) -> Judgements:  # fmt: skip
    """Read judgements from a .csv, .tsv, .jsonl or .parquet file, or from columns in memory.

    Columns are known by common names (Anchor, Positive, Negative; sound_id, left, right, decision; x, a, b, choice …)
    in any case, or are named here. A choice is spelled A or B, Left or Right, 1 or 2, 1 or -1, as the name of the
    column, or as the sound's own name; an empty cell, NA or none is no choice.

    Args:
        table: The file; or a mapping, or a data frame, of names to columns.
        kind: "2afc" or "triplets"; None is what the columns say.
        x: Column of the sound that the others are compared with.
        a: Column of the first sound to choose from.
        b: Column of the second sound to choose from.
        choice: Column of the choice.
        anchor: Column of the sound that the others are compared with, of triplets.
        positive: Column of the sound judged nearer.
        negative: Column of the sound judged farther.
        listener: Column that says who judged; "none" for nobody, where a column would be taken for it by its name.
        chose_a: How a choice of A is spelled, where that is none of the above.
        chose_b: How a choice of B is spelled.
    """
    source, columns = _columns_of(table)
    asked = {"x": x, "a": a, "b": b, "choice": choice, "anchor": anchor, "positive": positive, "negative": negative}
    kind = _kind(kind, {role for role, name in asked.items() if name}, list(columns), source)
    taken = {role: _column(role, asked[role], columns, source) for role in ROLES[kind]}
    who = None if listener == "none" else _optional_column("listener", listener, columns, source)
    if who is not None:
        taken["listener"] = who
    for name, times in Counter(taken.values()).items():
        if times > 1:
            roles = ", ".join(role for role, column in taken.items() if column == name)
            raise UsageError(f'{source}: column "{name}" is taken for {roles}: name each with a flag of its own.')
    texts = {role: columns[name] for role, name in taken.items()}
    first, second, third = ROLES[kind][:3]
    whole = _whole_names({name for role in (first, second, third) for name in texts[role] if name})
    named: dict[str, int] = {}
    x_places, a_places, b_places = (
        np.array(
            [named.setdefault(whole.get(name, name), len(named)) if name else -1 for name in texts[role]], np.int64
        )
        for role in (first, second, third)
    )
    notes = [f"{counted(len(whole), 'sound')} named with and without an ending: taken for the same"] if whole else []
    if not len(x_places):
        raise InputError(f"{source} holds no judgements; give a line for each.")
    choices = np.ones(len(x_places), np.int64)
    if kind == "2afc":
        spelled = _Spelling(taken["a"], taken["b"], chose_a, chose_b)
        choices = spelled.read(texts["choice"], texts["a"], texts["b"], f'{source}, column "{taken["choice"]}"')
    return Judgements(
        kind, tuple(named), x_places, a_places, b_places, choices,
        listeners=tuple(texts["listener"]) if who is not None else None,
        cells={name: tuple(cells) for name, cells in columns.items()}, source=source, columns=taken,
        notes=tuple(notes),
    )  # fmt: skip


def _whole_names(names: set[str]) -> dict[str, str]:
    """Names without an ending, with the one name that differs from each by its ending alone: `a` and `a.wav`."""
    endings: dict[str, list[str]] = {}
    for name in names:
        stem = without_ending(name)
        if stem != name and stem in names:
            endings.setdefault(stem, []).append(name)
    return {stem: whole[0] for stem, whole in endings.items() if len(whole) == 1}


def _columns_of(table: Any) -> tuple[str, dict[str, Texts]]:
    """Where a table comes from, and its columns as text, by their names in small letters."""
    if isinstance(table, str | Path):
        source = locate(table)
        if source.suffix.lower() not in (*SUFFIXES, ".jsonl"):
            kinds = ", ".join((*SUFFIXES, ".jsonl"))
            raise InputError(f'{source}: judgements are read from {kinds} files, not from "{source.suffix}".')
        rows, header = read_rows(source)
        if not any(header):
            raise InputError(f"{source} is empty; give a header and a line for each judgement.")
        if len(header) == 1 and "\t" in header[0]:
            raise InputError(f"{source} separates its columns by tabs: name it .tsv, or save it with commas.")
        _refuse_double(header, str(source))
        cells = [row.cells for row in rows]
        return str(source), {name: [as_text(row.get(name)) for row in cells] for name in header if name}
    source_name = "The table of judgements"
    names = list(getattr(table, "columns", table))
    if not hasattr(table, "__getitem__") or not names:
        raise InputError(f"{source_name} is none: give a file, or a mapping of names to columns.")
    _refuse_double([str(name).strip().lower() for name in names], source_name)
    columns: dict[str, Texts] = {str(name).strip().lower(): column_texts(table[name]) for name in names}
    lengths = {len(texts) for texts in columns.values()}
    if len(lengths) > 1:
        raise InputError(f"{source_name} has columns of {' and '.join(map(str, sorted(lengths)))} entries.")
    return source_name, columns


def _refuse_double(header: Iterable[str], source: str) -> None:
    double = [name for name, times in Counter(header).items() if times > 1 and name]
    if double:
        raise InputError(f'{source} has the column "{double[0]}" more than once (in any case); rename one.')


def _known(role: str, names: Iterable[str]) -> str | None:
    """The column that is known for a role by its name."""
    by_plain = {plain_name(name): name for name in reversed(list(names))}
    return next((by_plain[word] for word in NAMES[role].split() if word in by_plain), None)


def _kind(kind: str | None, asked: set[str], names: list[str], source: str) -> str:
    if kind is not None:
        if kind not in ROLES:
            raise UsageError(f"Judgements are 2afc or triplets, not {kind!r}.")
        return kind
    belongs = {other: asked & set(roles) for other, roles in ROLES.items()}
    if all(belongs.values()):
        raise UsageError("x, a, b and choice are columns of 2afc, anchor, positive and negative of triplets: not both.")
    for other, roles in belongs.items():
        if roles:
            return other
    complete = [other for other, roles in ROLES.items() if all(_known(role, names) for role in roles)]
    if len(complete) == 1:
        return complete[0]
    if complete:
        raise UsageError(f"{source} may hold 2afc or triplets: say which kind it is.")
    shown = shortened(names, 12) or "none"
    raise InputError(
        f"{source} has the columns {shown}: name those that hold anchor, positive and negative, or x, a, b and choice."
    )


def _column(role: str, wanted: str | None, columns: Mapping[str, Texts], source: str) -> str:
    """The column of a role: the one asked for, or the one known by its name; InputError where there is none."""
    name = _optional_column(role, wanted, columns, source)
    if name is None:
        shown = shortened(list(columns), 12)
        raise InputError(f"{source} has the columns {shown}: say which of them holds {role} (--{role}).")
    return name


def _optional_column(role: str, wanted: str | None, columns: Mapping[str, Texts], source: str) -> str | None:
    if wanted is None:
        return _known(role, columns)
    name = wanted.strip().lower()
    if name not in columns:
        shown = shortened(list(columns), 12)
        raise InputError(f'{source} has no column "{wanted}"; it has {shown}.{did_you_mean(name, columns)}')
    return name


class _Spelling(NamedTuple):
    """How choices are spelled: by the names of the columns, by two words of the user, or by common words."""

    a: str
    b: str
    chose_a: str | None
    chose_b: str | None

    def read(self, texts: Texts, first: Texts, second: Texts, where: str) -> Ints:
        """+1 for A, -1 for B, 0 for no choice."""
        if (self.chose_a is None) != (self.chose_b is None):
            raise UsageError("Say how both choices are spelled: --chose-a and --chose-b belong together.")
        words = {(text or "").strip().lower() for text in texts}
        if self.chose_a is None and "0" in words:
            raise InputError(
                f"{where} holds 0, which may be the first sound or no choice: give --chose-a and --chose-b, such as "
                "--chose-a 1 --chose-b 0."
            )
        meanings = {word: self._meaning(word) for word in words}
        choices = np.zeros(len(texts), np.int64)
        for row, text in enumerate(texts):
            word = (text or "").strip().lower()
            meaning, named = meanings[word], _named_choice(text, first[row], second[row])
            if meaning is not None and named and self.chose_a is None and meaning != named:
                raise InputError(
                    f"{where}, row {row + 1} holds {quoted(str(text))}, which is a spelling of one choice and the name "
                    "of the other sound: give --chose-a and --chose-b, or rename the sounds."
                )
            if meaning is None and not named and not (text and first[row] == second[row]):
                raise InputError(
                    f"{where}, row {row + 1} holds {quoted(str(text))}, which is neither A nor B nor the name of one "
                    "of the two sounds: give --chose-a and --chose-b."
                )
            choices[row] = named if meaning is None else meaning  # 0 between a sound and itself
        return choices

    def _meaning(self, word: str) -> int | None:
        if self.chose_a is not None and self.chose_b is not None:
            if word in (self.chose_a.strip().lower(), self.chose_b.strip().lower()):
                return 1 if word == self.chose_a.strip().lower() else -1
            return 0 if word in NO_CHOICE else None
        if word in (self.a, self.b):
            return 1 if word == self.a else -1
        return 1 if word in CHOSE_A else -1 if word in CHOSE_B else 0 if word in NO_CHOICE else None


def _named_choice(text: str | None, first: str | None, second: str | None) -> int:
    """+1 or -1 where the choice is the name of one of the two sounds and not of both, else 0."""
    if not text or first == second:
        return 0
    if text in (first, second):
        return 1 if text == first else -1
    same = [name is not None and fit(parts_of(text), parts_of(name)) for name in (first, second)]
    return same[0] - same[1]
