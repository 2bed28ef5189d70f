"""Tasks of the HEAR benchmark as they lie on disk: clips, their labels, and the parts they are split into.

    tasks/beijing_opera-v1.0-hear2021-full/
        task_metadata.json      embedding_type, prediction_type, …
        labelvocabulary.csv     idx,label
        fold00.json …           or train.json, valid.json, test.json: {"file.wav": ["label", …], …}
        48000/fold00/file.wav   the sounds, at one or several rates

    hear:tasks/beijing_opera-v1.0-hear2021-full      as a corpus: labels of a clip joined by ";", the part as subset

Tasks with one answer for a whole clip (`"embedding_type": "scene"`) are read; those that ask when something sounds are
not.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from earmark.corpora.clips import Clip, Corpus, CorpusCard
from earmark.errors import InputError
from earmark.tables import read_csv_records, read_text
from earmark.vectors.texts import composed
from earmark.wording import counted, first_of

METADATA, VOCABULARY = "task_metadata.json", "labelvocabulary.csv"
PARTS = ("train", "valid", "test")
_TERMS = "those of the dataset that the task was made of"


@dataclass(frozen=True)
class HearClip:
    """A clip of a task: its name, the file of its sound, its labels, and its fold or part."""

    id: str
    path: str
    labels: tuple[str, ...]
    part: str


@dataclass(frozen=True)
class HearTask:
    """A task: its clips, whether they have several labels each, and all labels there are."""

    name: str
    folder: str
    several: bool
    labels: tuple[str, ...]
    clips: tuple[HearClip, ...]
    rate: int | None  # of the sounds; None where there are none

    @property
    def targets(self) -> list[str] | list[list[str]]:
        """The label of each clip, or its list of labels."""
        return [list(clip.labels) for clip in self.clips] if self.several else [clip.labels[0] for clip in self.clips]

    @property
    def parts(self) -> list[str]:
        """The fold or part of each clip."""
        return [clip.part for clip in self.clips]

    def rows_of(self, ids: list[str] | tuple[str, ...], source: str) -> tuple[list[int], list[str]]:
        """The row of the vector of each clip, by name (`-1` where there is none), and the names of clips without one.

        A vector is a clip's if its id is the clip's file name, a path that ends in it, or the name without its ending.
        """
        row_of: dict[str, int] = {}
        for spell in (lambda name: name, _file_name, _stem):
            spelled = [spell(composed(name).replace("\\", "/")) for name in ids]
            counts = Counter(spelled)
            for row, name in enumerate(spelled):
                if counts[name] == 1:
                    row_of.setdefault(name, row)
        rows = []
        for clip in self.clips:
            names = (clip.id, f"{clip.part}/{_file_name(clip.id)}", _file_name(clip.id), _stem(clip.id))
            rows.append(next((row_of[name] for name in map(composed, names) if name in row_of), -1))
        missing = [clip.id for clip, row in zip(self.clips, rows, strict=True) if row < 0]
        if len(missing) == len(self.clips):
            raise InputError(
                f"{source} holds no vector of the {len(missing)} clips of {self.name} (first: {missing[0]}): give ids "
                "that are the names of its sound files."
            )
        return rows, missing


def read_task(folder: str | Path) -> HearTask:
    """Read a task's folder; no sound is opened.

    Raises InputError for a folder that is no task, for tasks with time stamps, and for labels outside the vocabulary.
    """
    root = Path(folder).expanduser()
    metadata = _json(root / METADATA, root)
    if not isinstance(metadata, dict):
        raise InputError(f"{root / METADATA} holds no facts about a task: it must be a JSON object.")
    name = str(metadata.get("task_name") or root.name)
    kind = metadata.get("embedding_type", "scene")
    if kind != "scene":
        raise InputError(
            f"{name} is a task of {kind} embeddings, which asks when something sounds: a linear probe takes tasks with "
            "one answer for a whole clip (embedding_type scene)."
        )
    prediction = metadata.get("prediction_type", "multiclass")
    if prediction not in ("multiclass", "multilabel"):
        raise InputError(f'{root / METADATA}: prediction_type is "{prediction}", not multiclass or multilabel.')
    vocabulary = _vocabulary(root / VOCABULARY)
    rate = max((int(part.name) for part in root.iterdir() if part.is_dir() and part.name.isdecimal()), default=None)
    clips: list[HearClip] = []
    for part in _parts(root, metadata):
        listing = _json(root / f"{part}.json", root)
        if not isinstance(listing, dict):
            raise InputError(f"{root / part}.json must be a JSON object of file names with their labels.")
        for file, found in listing.items():
            labels = _labels(found, f"{root / part}.json, {file}")
            path = root / str(rate or 48000) / part / file
            clips.append(HearClip(file, str(path), labels, part))
    several = prediction == "multilabel"
    _check(root, clips, vocabulary, several)
    repeated = {file for file, count in Counter(clip.id for clip in clips).items() if count > 1}
    if repeated:
        clips = [_with_part(clip) if clip.id in repeated else clip for clip in clips]
    return HearTask(name, str(root), several, vocabulary, tuple(clips), rate)


def open_hear(folder: str) -> Corpus:
    """A task as a corpus."""
    task = read_task(folder)
    card = CorpusCard(
        name=f"hear:{task.name}", title=f"HEAR task {task.name}", source=task.folder, licence=_TERMS,
        citation="Turian et al., HEAR: Holistic Evaluation of Audio Representations, PMLR 176, 2022",
        rate=f"{task.rate} Hz" if task.rate else "",
    )  # fmt: skip
    clips = [Clip(id=clip.id, label=";".join(clip.labels) or None, path=clip.path) for clip in task.clips]
    return Corpus(card, clips)


def _parts(root: Path, metadata: dict[str, Any]) -> list[str]:
    """Names of folds or parts, in order: as the metadata has them, else by the files that are there."""
    stated = metadata.get("splits")
    if isinstance(stated, list) and stated and all(isinstance(part, str) for part in stated):
        names = stated
    else:
        names = sorted(file.stem for file in root.glob("fold*.json")) or [
            part for part in PARTS if (root / f"{part}.json").is_file()
        ]
    folds = [name for name in names if name not in PARTS]
    if not names or (folds and len(folds) < len(names)) or (not folds and not {"train", "test"} <= set(names)):
        held = f" ({', '.join(names)})" if names else ""
        raise InputError(f"{root} has neither foldNN.json files nor train.json and test.json{held}: give a HEAR task.")
    return sorted(names) if folds else [part for part in PARTS if part in names]


def _vocabulary(file: Path) -> tuple[str, ...]:
    if not file.is_file():
        raise InputError(f"{file} does not exist: a HEAR task lists its labels there, under idx,label.")
    lines = list(read_csv_records(read_text(file), file))
    if not lines or "label" not in lines[0]:
        raise InputError(f"{file} has no column label: a HEAR task lists its labels there, under idx,label.")
    return tuple(line["label"].strip() for line in lines)


def _labels(found: Any, where: str) -> tuple[str, ...]:
    items = found if isinstance(found, list) else [found]
    if any(isinstance(item, dict) for item in items):
        raise InputError(f"{where}: its labels have times; a linear probe takes tasks with labels for whole clips.")
    if not all(isinstance(item, str | int | float) and not isinstance(item, bool) for item in items):
        raise InputError(f"{where}: its labels are no list of texts.")
    return tuple(dict.fromkeys(str(item).strip() for item in items))


def _check(root: Path, clips: list[HearClip], vocabulary: tuple[str, ...], several: bool) -> None:
    if not clips:
        raise InputError(f"{root} lists no clips: give a HEAR task.")
    known = set(vocabulary)
    for clip in clips:
        unknown = [label for label in clip.labels if label not in known]
        if unknown:
            raise InputError(f'{root}: {clip.id} has the label "{unknown[0]}", which {VOCABULARY} does not list.')
    if several:
        return
    odd = [clip.id for clip in clips if len(clip.labels) != 1]
    if odd:
        named = first_of(odd, 3)
        raise InputError(
            f"{root}: {counted(len(odd), 'clip')} ({named}) of a multiclass task without exactly one label: repair "
            'them, or set prediction_type to "multilabel".'
        )


def _with_part(clip: HearClip) -> HearClip:
    return HearClip(f"{clip.part}/{clip.id}", clip.path, clip.labels, clip.part)


def _json(file: Path, root: Path) -> Any:
    if not file.is_file():
        if not root.is_dir():
            raise InputError(f"{root} is not a folder: give the folder of a HEAR task.")
        raise InputError(f"{file} does not exist: a HEAR task's folder holds {METADATA} and a file for each part.")
    try:
        return json.loads(read_text(file))
    except ValueError as error:
        raise InputError(f"{file} is not JSON ({error}): download the task again.") from None


def _file_name(name: str) -> str:
    return name.rpartition("/")[2]


def _stem(name: str) -> str:
    return _file_name(name).rpartition(".")[0] or _file_name(name)
