"""Labels, groups and subsets from the names of files, by a pattern.

    {label}_{group}_{take}.wav     0_george_12.wav           label 0, group george
    {fold}-{clip}-{take}-{label}   1-100032-A-0.wav          fold 1, label 0; without a suffix, any
    {label+}_{take}                song_thrush_07.flac       + : the field may hold the text that ends it
    {label}{take#}                 robin07.wav               # : digits alone
    {group}/{label}/{take}         b1/trill/07.wav           the last folders of the path as well

`label`, `group`, `subset` and `fold` are taken, other names are passed over. A field without a sign ends where the
text behind it begins, and so a name fits in one way or not at all.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from earmark.audio import SUFFIXES
from earmark.corpora.clips import Clip, Corpus
from earmark.errors import InputError, UsageError, did_you_mean
from earmark.wording import counted, first_of

TAKEN = ("label", "group", "subset", "fold")
EXAMPLE = "{label}_{group}_{take}.wav"
_FIELD = re.compile(r"\{([^{}]*)\}")
_DATE = re.compile(r"(?<!\d)(?:19|20)\d\d(?:-[01]\d-[0-3]\d|[01]\d[0-3]\d)(?!\d)")
_SEPARATORS = ("_", "-", " ", ".")


@dataclass(frozen=True)
class NamePattern:
    """How names of files are made; `matcher` has a group for each field that is taken."""

    text: str
    matcher: re.Pattern[str]

    def fields_of(self, path: str) -> dict[str, str] | None:
        """What the name of a file says, or None where it does not fit."""
        parts = path.replace("\\", "/").split("/")
        name = "/".join(parts[-1 - self.text.count("/") :])
        if "." not in self.text.rpartition("}")[2]:
            name = name.removesuffix(PurePosixPath(name).suffix)
        match = self.matcher.fullmatch(name)
        return None if match is None else match.groupdict()

    def applied(self, corpus: Corpus) -> Corpus:
        """The corpus with what the names of its files say; InputError for the first that does not fit."""
        if not corpus.clips:
            return corpus
        notes = [note for note in corpus.notes if "have no label" not in note and "subset/label" not in note]
        clips = [self._named(clip, corpus.name) for clip in corpus.clips]
        return replace(corpus, clips=clips, notes=(*notes, self._note(clips)))

    def _named(self, clip: Clip, corpus: str) -> Clip:
        if clip.path is None:
            raise UsageError(f"labels_from reads names of files, and {clip.id} of {corpus} is none: leave it out.")
        fields = self.fields_of(clip.path)
        if fields is None:
            raise InputError(
                f"{clip.id} does not fit the pattern {self.text}: correct the pattern (a field that holds the text "
                "behind it is written {label+}), or take the file away."
            )
        subset = clip.subset if clip.label is None else ""  # of a folder, the folders were taken for subset/label
        return replace(clip, **{"subset": subset, **fields})  # type: ignore[arg-type]

    def _note(self, clips: Sequence[Clip]) -> str:
        held = {
            name: Counter(getattr(clip, name) for clip in clips) for name in TAKEN if name in self.matcher.groupindex
        }
        facts = [f"{counted(len(values), name)} ({first_of(sorted(values), 4)})" for name, values in held.items()]
        return f"names of files, as {self.text}, give {' and '.join(facts)}."


def parse_pattern(text: str) -> NamePattern:
    """A pattern, or a UsageError that says what is wrong with it."""
    pieces = _FIELD.split(text.strip())
    names = [piece.rstrip("+#") for piece in pieces[1::2]]
    if any(mark in piece for piece in pieces[::2] for mark in "{}"):
        raise UsageError(f"The pattern {text!r} has a brace without its other half: write {EXAMPLE}.")
    if "label" not in names:
        raise UsageError(
            f"The pattern {text!r} names no {{label}}: call the part that holds it so, as in {EXAMPLE}."
            f"{did_you_mean('label', names)}"
        )
    doubled = sorted({name for name in names if name in TAKEN and names.count(name) > 1})
    if doubled:
        raise UsageError(f"The pattern {text!r} names {{{doubled[0]}}} twice: call one of them otherwise.")
    if sum(piece.endswith("+") for piece in pieces[1::2]) > 1:
        raise UsageError(
            f"The pattern {text!r} has two fields with a +, and a name could fit in several ways: leave one."
        )
    expression = re.escape(pieces[0])
    for number in range(1, len(pieces), 2):
        field, behind = pieces[number], pieces[number + 1]
        if not behind and number + 2 < len(pieces) and not {field[-1:], pieces[number + 2][-1:]} & {"#"}:
            raise UsageError(
                f"The pattern {text!r} has nothing between {{{field}}} and {{{pieces[number + 2]}}}: put a text "
                "between them, or a # behind one that holds digits alone."
            )
        expression += _expression(field, behind, last=number + 2 >= len(pieces)) + re.escape(behind)
    return NamePattern(text.strip(), re.compile(expression, re.IGNORECASE))


def _expression(field: str, behind: str, *, last: bool) -> str:
    name = field.rstrip("+#")
    if field.endswith("#"):
        held = r"[0-9]+"
    elif field.endswith("+"):
        held = r"[^/]+"
    elif not behind or (last and behind.lower() in SUFFIXES):
        held = r"[^/]+?"
    else:
        held = rf"(?:(?!{re.escape(behind)})[^/])+"
    return f"(?P<{name}>{held})" if name in TAKEN else held


# --- a pattern that would fit ---------------------------------------------------------------------------------


def likely_pattern(paths: Sequence[str]) -> NamePattern | None:
    """The pattern that names of unlabelled files look like, or None: the first part that recurs is the label.

    Names must have as many parts, between the same signs, in at least two files of each of at least two labels.
    """
    stems = [PurePosixPath(path.replace("\\", "/")).stem for path in paths]
    suffixes = {PurePosixPath(path).suffix for path in paths}
    end = suffixes.pop() if len(suffixes) == 1 else ""
    if any(map(_DATE.search, stems)):
        return _dated_pattern(stems, end)
    for sign in _SEPARATORS:
        split = [stem.split(sign) for stem in stems]
        if len(split[0]) > 1 and len({len(parts) for parts in split}) == 1 and all(all(parts) for parts in split):
            fields = _fields_of_columns([Counter(column) for column in zip(*split, strict=True)], len(stems))
            return None if fields is None else parse_pattern(sign.join(fields) + end)
    runs = [re.fullmatch(r"(.*[^0-9])[0-9]+", stem) for stem in stems]
    if all(runs) and _recurs(Counter(match[1] for match in runs if match), len(stems)):
        signs = {match[1][-1] for match in runs if match}
        sign = signs.pop() if len(signs) == 1 and signs <= {*_SEPARATORS} else ""
        return parse_pattern(("{label+}" + sign if sign else "{label}") + "{take#}" + end)
    return None


def _dated_pattern(stems: Sequence[str], end: str) -> NamePattern | None:
    """The pattern of names with a date, as recorders write them: the first word that recurs is the label.

    Dates and other numbers recur too and are no labels; a part of letters and digits (SMM2) is the recorder. Nothing
    where names are made in several ways, or no word recurs.
    """
    split = [re.split(r"([^A-Za-z0-9\0]+)", _DATE.sub("\0", stem)) for stem in stems]
    if len({tuple(parts[1::2]) for parts in split}) > 1:
        return None
    columns = [Counter(column) for column in zip(*(parts[::2] for parts in split), strict=True)]
    recurring = [place for place, values in enumerate(columns) if _recurs(values, len(stems))]
    words = [place for place in recurring if all(text.isalpha() for text in columns[place])]
    recorders = [place for place in recurring if not any(text.isalpha() or text.isdigit() for text in columns[place])]
    if not words:
        return None
    roles = dict.fromkeys(recorders[:1], "group") | {words[0]: "label"}
    signs = [*split[0][1::2], end]
    fields = []
    for place, (values, sign) in enumerate(zip(columns, signs, strict=True)):
        text = next(iter(values))
        date = "date+" if sign.startswith("-") else "date"  # which may hold the sign
        name = date if text == "\0" else roles.get(place, f"part{place + 1}")
        fields.append(text if len(values) == 1 and text.isalpha() else "{" + name + "}" if text else "")
    pattern = parse_pattern("".join(field + sign for field, sign in zip(fields, signs, strict=True)))
    labels = [(pattern.fields_of(stem + end) or {}).get("label") for stem in stems]
    return pattern if labels == [parts[2 * words[0]] for parts in split] else None


def _recurs(values: Counter[str], count: int) -> bool:
    """Whether values part files into classes: two or more of them, each of which several files have."""
    return len(values) > 1 and 2 * len(values) <= count and sum(number > 1 for number in values.values()) > 1


def _fields_of_columns(columns: Sequence[Counter[str]], count: int) -> list[str] | None:
    recurring = [place for place, values in enumerate(columns) if _recurs(values, count)]
    if not recurring:
        return None
    roles = dict(zip(recurring, ("label", "group"), strict=False))
    if len(recurring) == len(columns) and len(columns) == 2:
        roles = {recurring[0]: "label"}
    if 1 in [recurring.index(place) for place in roles] and recurring[1] == len(columns) - 1:
        roles.pop(recurring[1])  # the last part counts takes, as a rule
    return ["{" + roles.get(place, "take" if place == len(columns) - 1 else f"part{place + 1}") + "}"
            for place in range(len(columns))]  # fmt: skip


def hint_of(clips: Sequence[Clip]) -> str:
    """What to give for clips without labels whose names look like a pattern; nothing where they do not."""
    paths = [clip.path for clip in clips if clip.path is not None and clip.label is None]
    pattern = likely_pattern(paths) if len(paths) == len(clips) and len(paths) > 3 else None
    if pattern is None:
        return ""
    labels = sorted({(pattern.fields_of(path) or {}).get("label", "") for path in paths})
    return f"--labels-from '{pattern.text}' would give {counted(len(labels), 'label')} ({first_of(labels, 4)})"
