"""Long recordings cut by annotation: a clip for each span, the recording as its group.

A file of annotations lies beside its recording (`dawn.wav`, `dawn.Table.1.selections.txt`, `dawn.TextGrid`, …) or
anywhere in the folder and names it in its rows. Only the headers of recordings are read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from earmark import audio
from earmark.corpora._folders import files_under
from earmark.corpora.annotation_files import SUFFIXES as TABLE_SUFFIXES
from earmark.corpora.annotation_files import Annotation, kind_of, read_annotation_file
from earmark.corpora.clips import Clip, Corpus
from earmark.corpora.manifest import read_card
from earmark.errors import EarmarkError, InputError
from earmark.places import is_remote
from earmark.vectors.birdnet_files import recording_names
from earmark.wording import counted, first_of, seconds_text

_TAILS = re.compile(
    r"(\.table\.\d+)?\.selections?$|\.birdnet\.(selection\.table|results(\.kaleidoscope)?)$|[._ -]labels?$",
    re.IGNORECASE,
)


def annotation_files(root: Path) -> list[Path]:
    """The files under a folder of this machine that hold annotations."""
    return [] if is_remote(root) else [file for file in files_under(root) if kind_of(file) is not None]


def read_annotated(
    root: Path, files: Sequence[Path], columns: Mapping[str, str], name: str, separator: str = "", *, whole: bool = True
) -> Corpus:
    """The spans that files of annotations name, as clips of the recordings under `root`.

    A span with several labels has them with `separator` between; without one it is left out. Where `files` are those of
    the `whole` folder, notes name what gave no clip: recordings, and tables whose header has a typing error.
    """
    reading = _Reading(root, dict(columns), separator)
    for file in files:
        reading.add(file)
    clips = reading.clips()
    if not clips:
        why = f" (first: {reading.broken[0]})" if reading.broken else ""
        raise InputError(f"{root}: its annotations name no span of a recording{why}.")
    unused = reading.unused(clips, files) if whole else []
    return Corpus(read_card(root, name, str(root)), clips, (*reading.notes(clips), *unused))


@dataclass
class _Reading:
    """What was read so far: spans by recording, and what was left out."""

    root: Path
    columns: dict[str, str]
    separator: str = ""
    broken: list[str] = field(default_factory=list)
    label_places: dict[str, None] = field(default_factory=dict)
    spans: dict[tuple[Path, float, float], list[Annotation]] = field(default_factory=dict)
    cut: int = 0
    channels: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.by_stem: dict[str, list[Path]] = {}
        for file in files_under(self.root):
            if file.suffix.lower() in audio.SUFFIXES:
                self.by_stem.setdefault(file.stem.lower(), []).append(file)
        self.lengths: dict[Path, float] = {}

    def add(self, file: Path) -> None:
        kind = kind_of(file)
        assert kind is not None
        found = read_annotation_file(file, kind, self.columns)
        self.broken += found.broken
        self.channels |= found.channels
        if found.labels:
            self.label_places[found.labels] = None
        for span in found.spans:
            recording = self._recording(span, file)
            if isinstance(recording, str):
                self.broken.append(f"{span.where}: {recording}")
                continue
            length = self._length(recording)
            if span.start >= length:
                self.broken.append(f"{span.where}: it begins at {span.start:g} s, after the end of {recording.name}")
                continue
            self.cut += span.end > length + 0.05
            # times are written to the microsecond: the same span, counted from another beginning, is one span
            cut = (recording, round(span.start, 6), round(min(span.end, length), 6))
            self.spans.setdefault(cut, []).append(span)

    def _recording(self, span: Annotation, file: Path) -> Path | str:
        """The recording of a span, or why there is none."""
        if span.recording is not None:
            named = span.recording.replace("\\", "/")
            near = [file.parent / named, self.root / named, file.parent / PurePosixPath(named).name]
            there = next((path for path in near if path.is_file() and path.suffix.lower() in audio.SUFFIXES), None)
            if there is not None:
                return there
            stem, shown = PurePosixPath(named).stem, named
        else:
            stem = _TAILS.sub("", file.stem)
            stem, shown = _without_audio_suffix(stem), f"a recording called {_without_audio_suffix(stem)}"
        known = self.by_stem.get(stem.lower(), [])
        beside = [path for path in known if path.parent == file.parent]
        if len(beside or known) == 1:
            return (beside or known)[0]
        return f"{shown} is not there" if not known else f"{shown} could be any of {len(known)} files"

    def _length(self, recording: Path) -> float:
        if recording not in self.lengths:
            try:
                self.lengths[recording] = audio.probe(str(recording)).duration
            except EarmarkError:  # reading the clip will tell what is wrong
                self.lengths[recording] = float("inf")
        return self.lengths[recording]

    def clips(self) -> list[Clip]:
        """A clip for each span; without a separator, one that has several labels is of no class and left out."""
        clips = []
        names = self._names()
        for (recording, start, end), rows in sorted(self.spans.items(), key=lambda item: item[0]):
            labels = sorted({row.label for row in rows if row.label})
            within = names[recording]
            if len(labels) > 1 and not self.separator:
                continue
            group = rows[0].group if "group" in self.columns else within
            clip = Clip(
                f"{within}#{seconds_text(start)}-{seconds_text(end)}",
                group=group,
                path=str(recording),
                start=start,
                end=end,
            )
            clips.append(replace(clip, label=self.separator.join(labels) or None, subset=rows[0].subset))
        return clips

    def _names(self) -> dict[Path, str]:
        """What recordings are called: by their path from the folder; of those elsewhere, from one that holds all."""
        used = dict.fromkeys(recording for recording, _, _ in self.spans)
        elsewhere = recording_names(str(path) for path in used if not path.is_relative_to(self.root))
        return {
            path: path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else elsewhere[str(path)]
            for path in used
        }

    def notes(self, clips: Sequence[Clip]) -> list[str]:
        root = self.root.name
        labels = f"; labels are {first_of([*self.label_places], 3)}" if self.label_places else ""
        groups = "" if "group" in self.columns else ", and the recording is the group (--group-column none: no groups)"
        recordings = counted(len({clip.path for clip in clips}), "recording")
        notes = [f"{root}: annotations cut {counted(len(clips), 'clip')} from {recordings}{groups}{labels}."]
        if self.broken:
            notes.append(f"{root}: {counted(len(self.broken), 'row')} left out ({'; '.join(self.broken[:3])}).")
        several = [rows for rows in self.spans.values() if len({row.label for row in rows if row.label}) > 1]
        if several:
            first = "; ".join(f"{row.where}: {row.label}" for row in several[0] if row.label)
            what = f"{root}: {counted(len(several), 'span')} with several labels"
            left_out = (
                ""
                if self.separator
                else " left out, since a clip is of one class here; --label-separator ';' keeps "
                "them, or choose one label for each"
            )
            notes.append(f"{what}{left_out} (first: {first}).")
        if self.cut:
            notes.append(f"{root}: {counted(self.cut, 'span')} passed the end of the recording and was cut there.")
        if len(self.channels) > 1:
            notes.append(
                f"{root}: selections are on channels {first_of(sorted(self.channels), 4)}; clips are read with all "
                "channels mixed."
            )
        unlabelled = sum(clip.label is None for clip in clips)
        if unlabelled:
            notes.append(f"{root}: {unlabelled} of {len(clips)} clips have no label.")
        return notes

    def unused(self, clips: Sequence[Clip], files: Sequence[Path]) -> list[str]:
        """What lies under the folder, looks as if it belonged to the annotations, and gave no clip."""
        known = {*files}
        tables = [
            file.relative_to(self.root).as_posix()
            for file in files_under(self.root)
            if file not in known and self._resembles_annotations(file)
        ]
        used = {clip.path for clip in clips}
        recordings = [path for paths in self.by_stem.values() for path in paths if str(path) not in used]
        silent = sorted(path.relative_to(self.root).as_posix() for path in recordings)
        notes = []
        if tables:
            notes.append(
                f"{self.root.name}: {counted(len(tables), 'file')} not read, since the first line is not that of a "
                f"program's annotations ({first_of(tables, 3)}); compare its columns with those of one that is."
            )
        if silent:
            notes.append(
                f"{self.root.name}: {counted(len(silent), 'recording')} without a clip ({first_of(silent, 3)})."
            )
        return notes

    def _resembles_annotations(self, file: Path) -> bool:
        """Whether a table that was not read has the name of one, or of a recording."""
        if file.suffix.lower() not in TABLE_SUFFIXES:
            return False
        stem = _TAILS.sub("", file.stem)
        return stem != file.stem or _without_audio_suffix(stem).lower() in self.by_stem


def _without_audio_suffix(stem: str) -> str:
    path = PurePosixPath(stem)
    return path.stem if path.suffix.lower() in audio.SUFFIXES else stem
