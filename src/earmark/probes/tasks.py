"""Which tasks there are, and how one is opened from a name. Listing them imports no model.

asr                               the default recogniser
asr:whisper:openai/whisper-large  another model, after the task's name
asv:ecapa:/models/ecapa.ckpt?allow_pickle=true
events?bootstrap=1000             with parameters
mypackage.mymodule:MyTask         an import path to a class with `card`, `listen` and `score`
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from earmark.errors import InputError
from earmark.probes._contract import Task, TaskCard
from earmark.registry import Registry
from earmark.specs import parse_spec


class TaskRecord(NamedTuple):
    """A task: where its maker is, and its card."""

    maker: str
    card: TaskCard


_EVERY_SOUND = ("speech", "audio", "music")
RECORDS = (
    TaskRecord("asr:Recognition", TaskCard(
        "asr", "Speech recognition: wrong words", ("wer", "wer:difference", "dwer"),
        needs=("transcripts",), model="moonshine", extra="onnx", licence="MIT (Moonshine's weights)",
        citation="Jeffries et al., Moonshine, 2024; Huggins-Daines et al., PocketSphinx, ICASSP 2006; Radford et al., "
        "Whisper, ICML 2023",
        notes="WER against transcripts (labels of two words or more), dWER against the model's own words on the "
        "clean clip",
    )),
    TaskRecord("asv:Verification", TaskCard(
        "asv", "Speaker verification: wrong identities", ("eer", "eer:difference", "min_dcf", "speaker_similarity"),
        ("coded_enrol", "clean_enrol", "all"), needs=("groups",), model="resemblyzer", extra="torch",
        licence="Apache-2.0",
        citation="Wan et al., GE2E, ICASSP 2018 (Resemblyzer); Desplanques et al., ECAPA-TDNN, Interspeech 2020",
        notes="the group of a clip is its speaker; intervals leave out speakers",
    )),
    TaskRecord("retention:Content", TaskCard(
        "content", "Content identity: does a coded clip still lie with its own kind?",
        ("P@1", "GSR", "P@1:difference", "GSR:difference"), ("coded_enrol", "clean_enrol"), _EVERY_SOUND, ("labels",),
        model="logmel", licence="Apache-2.0",
        notes="with a permutation baseline, a lift and paired differences to the clean clips",
    )),
    TaskRecord("emotion:Emotion", TaskCard(
        "emotion", "Emotion recognition: a linear head trained on clean clips",
        ("er_accuracy", "er_accuracy:difference"), needs=("labels",), model="opensmile", extra="encoders",
        licence="audEERING research licence (openSMILE)",
        citation="Eyben et al., eGeMAPS, IEEE TAC 2016; Chen et al., WavLM, IEEE JSTSP 2022",
        notes="five folds, speakers never on both sides; the labels are those of your clips",
    )),
    TaskRecord("events:open_events", TaskCard(
        "events", "Audio events: retrieval, or a classifier's own labels",
        ("accuracy", "aec_map", "aec_map:difference"), ("clean_enrol", "all"), ("audio", "music"), ("labels",),
        model="birdnet", extra="encoders", licence="CC BY-NC-SA 4.0 (BirdNET's weights)",
        citation="Kahl et al., BirdNET, Ecological Informatics 2021; Gong et al., AST, Interspeech 2021",
        notes="coded clips look for their own kind among clean ones; AST scores the labels it was trained on",
    )),
    TaskRecord("retention:CodedFidelity", TaskCard(
        "fidelity", "Fidelity and coverage of the coded set against the clean set, with and without GICDM",
        ("clipped_density", "clipped_coverage", "density", "coverage"), categories=_EVERY_SOUND, model="logmel",
        licence="Apache-2.0", notes="needs no labels",
    )),
)  # fmt: skip
CARDS: dict[str, TaskCard] = {record.card.name: record.card for record in RECORDS}
TASKS: Registry[Callable[..., Task]] = Registry(
    "task", "earmark.codec_tasks", {record.card.name: f"earmark.probes.{record.maker}" for record in RECORDS}
)


def task_cards() -> list[TaskCard]:
    """The card of every registered name; a plug-in's own card shows once it is opened."""
    return [CARDS.get(name, TaskCard(name=name, title="(plug-in)")) for name in TASKS]


def open_task(spec: str, **parameters: Any) -> Task:
    """Make the task that `spec` names; the model is opened, not yet run."""
    parsed = parse_spec(spec)
    maker, arguments = TASKS.find(parsed)
    task = TASKS.make(maker, spec, arguments, {**parsed.options, **parameters})
    if not isinstance(task, Task):
        raise InputError(f"{spec} is no task: it needs a card and the methods `listen` and `score`.")
    if not isinstance(task.card, TaskCard):
        raise InputError(f"The card of {spec} is of type {type(task.card).__name__}: give an earmark.probes.TaskCard.")
    return task
