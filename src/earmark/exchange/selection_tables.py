"""Clips as spans of their recordings, for programs in which people look and listen: Raven and Audacity.

    raven      RECORDING.Table.1.selections.txt for each recording, and all.selections.txt for these recordings,
               opened as one sequence of files in the order of their names
    audacity   RECORDING_labels.txt for each recording: a track of labels

Tables lie as the recordings do, from the folder that holds them all. `earmark.open_corpus` reads them again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from earmark.atomic import write_whole
from earmark.errors import InputError
from earmark.vectors.birdnet_files import recording_names
from earmark.wording import counted, seconds_text

PROGRAMS = ("raven", "audacity")
RAVEN_COLUMNS = (
    "Selection", "View", "Channel", "Begin Time (s)", "End Time (s)", "Low Freq (Hz)", "High Freq (Hz)", "Begin File",
    "Begin Path", "File Offset (s)", "Species",
)  # fmt: skip


@dataclass(frozen=True)
class Span:
    """A clip: its recording (of `length` seconds), its span, its label, a comment, and other cells by their heading."""

    path: str
    start: float
    end: float
    label: str
    rate: float
    length: float
    comment: str = ""
    cells: Mapping[str, str] = field(default_factory=dict)


def write_selections(spans: Sequence[Span], program: str, place: Path) -> list[Path]:
    """Write the tables of a program into a folder; the files, that of all recordings last."""
    if not spans:
        raise InputError("No clip lies in a file, so there is nothing to select.")
    by_recording: dict[str, list[Span]] = {}
    for span in spans:
        by_recording.setdefault(span.path, []).append(span)
    names = _file_names(by_recording)
    written = []
    for path, held in by_recording.items():
        ordered = sorted(held, key=lambda span: (span.start, span.end))
        if program == "raven":
            file, text = place / f"{names[path]}.Table.1.selections.txt", _raven(ordered, {path: 0.0})
        else:
            file, text = place / f"{names[path]}_labels.txt", _audacity(ordered)
        _write(file, text)
        written.append(file)
    if program == "raven":
        begins, passed = {}, 0.0
        for path, held in sorted(by_recording.items()):
            begins[path] = passed
            passed += max(held[0].length, *(span.end for span in held))
        file = place / "all.selections.txt"
        _write(file, _raven(spans, begins))
        written.append(file)
    return written


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, text.encode("utf-8"))


def _file_names(paths: Iterable[str]) -> dict[str, str]:
    """Where the table of each recording lies; two that differ in their ending alone keep it."""
    short = recording_names(paths)
    stems = {path: PurePosixPath(name).with_suffix("").as_posix() for path, name in short.items()}
    times = [*stems.values()]
    return {path: stem if times.count(stem) == 1 else short[path] for path, stem in stems.items()}


def _raven(spans: Sequence[Span], begins: Mapping[str, float]) -> str:
    """A selection table; `begins` says when each recording begins in the sequence that is open."""
    others = dict.fromkeys(name for span in spans for name in span.cells)
    lines = ["\t".join([*RAVEN_COLUMNS, *others])]
    for number, span in enumerate(spans, start=1):
        begin = begins[span.path]
        cells = [
            str(number), "Spectrogram 1", "1", seconds_text(begin + span.start), seconds_text(begin + span.end), "0",
            f"{span.rate / 2:g}", PurePosixPath(span.path.replace("\\", "/")).name, span.path, seconds_text(span.start),
            span.label,
        ]  # fmt: skip
        lines.append("\t".join(_cell(cell) for cell in [*cells, *(span.cells.get(name, "") for name in others)]))
    return "\n".join(lines) + "\n"


def _audacity(spans: Sequence[Span]) -> str:
    lines = []
    for span in spans:
        text = f"{span.label} ({span.comment})" if span.comment else span.label
        lines.append(f"{span.start:.6f}\t{span.end:.6f}\t{_cell(text)}")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    """A text that stays in its cell."""
    return " ".join(text.split())


def left_out_note(count: int) -> list[str]:
    """What is said of clips that lie in no file."""
    return [f"{counted(count, 'clip')} in no file of this machine left out"] if count else []
