"""Which tasks there are, and how one is opened from a name. Listing them imports no model.

asr                               the default recogniser
asr:whisper:openai/whisper-large  another model, after the task's name
asv:ecapa:/models/ecapa.ckpt?allow_pickle=true
events?bootstrap=1000             with parameters
mypackage.mymodule:MyTask         an import path to a class with `card`, `listen` and `score`
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from earmark.errors import InputError
from earmark.probes.contract import Task, TaskCard
from earmark.registry import Registry
from earmark.specs import parse_spec

__all__ = ["CARDS", "TASKS", "open_task", "task_cards"]

CARDS: dict[str, TaskCard] = {
    card.name: card
    for card in (
        TaskCard(
            name="asr",
            title="Speech recognition: wrong words",
            metrics=("wer", "wer:difference", "dwer"),
            categories=("speech",),
            needs=("transcripts",),
            model="pocketsphinx",
            extra="codecs",
            alternatives=("whisper:CHECKPOINT",),
            licence="MIT and BSD-2-Clause (model en-us 5.2)",
            citation="Huggins-Daines et al., PocketSphinx, ICASSP 2006; Radford et al., Whisper, ICML 2023",
            notes="WER against transcripts (labels of two words or more), dWER against the model's own words on the "
            "clean clip",
        ),
        TaskCard(
            name="asv",
            title="Speaker verification: wrong identities",
            metrics=("eer", "eer:difference", "min_dcf", "speaker_similarity"),
            protocols=("coded_enrol", "clean_enrol", "all"),
            categories=("speech",),
            needs=("groups",),
            model="resemblyzer",
            extra="torch",
            alternatives=("ecapa:FILE", "EXTRACTOR"),
            licence="Apache-2.0",
            citation="Wan et al., GE2E, ICASSP 2018 (Resemblyzer); Desplanques et al., ECAPA-TDNN, Interspeech 2020",
            notes="the group of a clip is its speaker; intervals draw speakers",
        ),
        TaskCard(
            name="emotion",
            title="Emotion recognition: a linear head trained on clean clips",
            metrics=("er_accuracy", "er_accuracy:difference"),
            categories=("speech",),
            needs=("labels",),
            model="opensmile",
            extra="encoders",
            alternatives=("wavlm:CHECKPOINT", "EXTRACTOR"),
            licence="audEERING research licence (openSMILE)",
            citation="Eyben et al., eGeMAPS, IEEE TAC 2016; Chen et al., WavLM, IEEE JSTSP 2022",
            notes="five folds, speakers never on both sides; the labels are those of your clips",
        ),
        TaskCard(
            name="events",
            title="Audio events: retrieval, or a classifier's own labels",
            metrics=("accuracy", "aec_map", "aec_map:difference"),
            protocols=("clean_enrol", "all"),
            categories=("audio", "music"),
            needs=("labels",),
            model="birdnet",
            extra="encoders",
            alternatives=("ast:CHECKPOINT", "EXTRACTOR"),
            licence="CC BY-NC-SA 4.0 (BirdNET's weights)",
            citation="Kahl et al., BirdNET, Ecological Informatics 2021; Gong et al., AST, Interspeech 2021",
            notes="coded clips look for their own kind among clean ones; AST scores the labels it was trained on",
        ),
        TaskCard(
            name="content",
            title="Content identity: does a coded clip still lie with its own kind?",
            metrics=("P@1", "GSR", "P@1:difference", "GSR:difference"),
            protocols=("coded_enrol", "clean_enrol"),
            categories=("speech", "audio", "music"),
            needs=("labels",),
            model="logmel",
            alternatives=("EXTRACTOR",),
            licence="Apache-2.0",
            notes="with a permutation baseline, a lift and paired differences to the clean clips",
        ),
        TaskCard(
            name="fidelity",
            title="Fidelity and coverage of the coded set against the clean set, with and without GICDM",
            metrics=("clipped_density", "clipped_coverage", "density", "coverage"),
            categories=("speech", "audio", "music"),
            model="logmel",
            alternatives=("EXTRACTOR",),
            licence="Apache-2.0",
            notes="needs no labels",
        ),
    )
}

TASKS: Registry[Callable[..., Task]] = Registry(
    "task",
    "earmark.codec_tasks",
    {
        "asr": "earmark.probes.asr:Recognition",
        "asv": "earmark.probes.asv:Verification",
        "content": "earmark.probes.retention:Content",
        "emotion": "earmark.probes.emotion:Emotion",
        "events": "earmark.probes.events:open_events",
        "fidelity": "earmark.probes.retention:CodedFidelity",
    },
    shape="a task with `card`, `listen` and `score`",
)


def task_cards() -> list[TaskCard]:
    """The card of every registered name; a plug-in's own card shows once it is opened."""
    return [CARDS.get(name, TaskCard(name=name, title="(plug-in)")) for name in TASKS]


def open_task(spec: str, **parameters: Any) -> Task:
    """Make the task that `spec` names; the model is opened, not yet run."""
    parsed = parse_spec(spec)
    thing, arguments = TASKS.find(parsed)
    made = TASKS.make(thing, spec, arguments, {**parsed.options, **parameters})
    if not isinstance(made, Task):
        raise InputError(f"{spec} is no task: it needs a card and the methods `listen` and `score`.")
    return made
