"""Speech recognition: what a recogniser no longer understands.

wer    words wrong against the clips' transcripts: their texts, else labels of two words or more
dwer   words wrong against what the same recogniser wrote for the clean clip; needs no transcripts

A weak recogniser is wrong on clean speech too, so `wer` comes with `wer:difference`, coded minus clean on the same
clips. Intervals draw clips, or groups of clips where there are groups.

Normalisation. Unicode compatibility forms (NFKC), lower case, numbers in English words (`_number_words`), every mark
that is not a letter, a digit or an apostrophe inside a word becomes a space, and spaces are one. Nothing else is done,
so that two people get the same count. (Version 0.1.0 left numbers as they were written. A recogniser that writes "press
1" for a clip and "press one" for its coded copy has understood both: with Moonshine on recorded prompts that was most
of what was counted against good codecs.)

The word error rate of a set is (substitutions + deletions + insertions) / words of the reference, both summed over
all clips: long sentences count for more. It is 0 at best and may pass 1. A clip whose reference has no words adds its
insertions and no words; a set without any words has no rate.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from earmark.corpora.clips import Clip, transcript_of
from earmark.errors import UsageError, require
from earmark.probes._contract import Responses
from earmark.probes._number_words import spell_numbers
from earmark.probes._scoring import (
    RESAMPLES,
    draw_clips,
    join_notes,
    measured,
    not_applicable,
    pair_clips,
    ratio_interval,
)
from earmark.probes.tasks import CARDS
from earmark.progress import Progress
from earmark.registry import Registry
from earmark.scores import Row
from earmark.specs import parse_spec
from earmark.wording import counted

_QUOTES = str.maketrans({"’": "'", "‘": "'", "ʼ": "'"})
_NO_WORD = re.compile(r"[^\w']|_|(?<!\w)'|'(?!\w)")


class Recogniser(Protocol):
    """Something that writes down what is said in clips; a clip that fails is in `failures` of its responses.

    It may have a `version`, text that changes when its words do: clips are then heard again.
    """

    name: str

    def transcribe(self, clips: Sequence[Clip], *, progress: Progress = False) -> Responses: ...


RECOGNISERS: Registry[Callable[..., Recogniser]] = Registry(
    "recogniser",
    "earmark.recognisers",
    {
        "moonshine": "earmark.probes.moonshine:MoonshineRecogniser",
        "moonshine-base": "earmark.probes.moonshine:open_base",
        "pocketsphinx": "earmark.probes.pocketsphinx:PocketSphinx",
        "whisper": "earmark.probes.whisper:WhisperRecogniser",
    },
)


class Recognition:
    """`asr`, `asr:moonshine:base`, `asr:pocketsphinx`, `asr:whisper:openai/whisper-large`.

    Other parameters go to the recogniser. `effort` is one of PocketSphinx's alone, and names it.
    """

    card = CARDS["asr"]
    each_clip = True  # what is heard of a clip does not depend on the others

    def __init__(
        self, model: str | Recogniser = "", *, transcripts: bool = True, bootstrap: int = RESAMPLES, **options: object
    ) -> None:
        self.transcripts, self.bootstrap = transcripts, bootstrap
        if isinstance(model, str):
            spec = parse_spec(model or ("pocketsphinx" if "effort" in options else self.card.model))
            make, arguments = RECOGNISERS.find(spec)
            model = make(*arguments, **{**spec.options, **options})
        self.recogniser = model
        version = f"{self.card.version}; {getattr(self.recogniser, 'version', '1')}"
        self.card = replace(self.card, model=self.recogniser.name, version=version)

    def listen(self, clips: Sequence[Clip], *, progress: Progress = False) -> Responses:
        return self.recogniser.transcribe(clips, progress=progress)

    def score(self, clips: Sequence[Clip], clean: Responses, coded: Responses, *, seed: int = 0) -> list[Row]:
        """Scores `wer`, `wer:difference` and `dwer`, protocol `all`."""
        pairs = pair_clips(clips, clean, coded)
        before, after = _texts(clean, pairs.clean), _texts(coded, pairs.coded)
        draws = draw_clips(pairs.clips, self.bootstrap, seed) if pairs.clips else np.zeros((0, 0))
        silent = f"{self.recogniser.name} heard no word in the clean clips"
        changed = _rate("dwer", count_errors(before, after), draws, pairs.left_out, silent)
        kept = [row for row, clip in enumerate(pairs.clips) if self.transcripts and transcript_of(clip)]
        if not kept:
            why = "no clip has a transcript: give texts, or sentences (two words or more) as labels"
            return [*(not_applicable(metric, "all", why) for metric in ("wer", "wer:difference")), changed]
        chosen = [pairs.clips[row] for row in kept]
        transcripts = [transcript_of(clip) or "" for clip in chosen]
        draws = draw_clips(chosen, self.bootstrap, seed)
        wrong, wrong_before = (
            count_errors(transcripts, [texts[row] for row in kept]) for texts in (after, before)
        )  # fmt: skip
        without = len(pairs.clips) - len(kept)
        note = join_notes(pairs.left_out, f"{counted(without, 'clip')} without transcript" if without else "")
        lost = WordErrors(wrong.errors - wrong_before.errors, wrong.words)
        return [_rate("wer", wrong, draws, note), _rate("wer:difference", lost, draws, note), changed]


def _rate(metric: str, errors: WordErrors, draws: NDArray[Any], note: str, silent: str = "") -> Row:
    if errors.rate is None:
        return not_applicable(metric, "all", join_notes(silent, note) or "no words")
    between = ratio_interval(errors.errors, errors.words, draws) if len(draws) else (None, None)
    reason = join_notes(counted(int(errors.words.sum()), "word"), note)
    return measured(metric, "all", errors.rate, between, n=len(errors.words), reason=reason)


def _texts(responses: Responses, rows: NDArray[np.int64]) -> list[str]:
    if responses.texts is None:
        raise UsageError("Speech recognition compares texts, and vectors were heard: listen with the task `asr`.")
    return [responses.texts[row] for row in rows]


# --- words -----------------------------------------------------------------------------------------------------


def normalise(text: str) -> str:
    """Words in one spelling, with single spaces between them."""
    plain = unicodedata.normalize("NFKC", text).translate(_QUOTES).lower()
    return " ".join(_NO_WORD.sub(" ", spell_numbers(plain)).split())


class WordErrors(NamedTuple):
    """For each clip: words that were wrong, missing or too many, and words of the reference."""

    errors: NDArray[np.float64]
    words: NDArray[np.float64]

    @property
    def rate(self) -> float | None:
        """Errors over words of the whole set; None when there are no words."""
        return float(self.errors.sum() / self.words.sum()) if self.words.sum() else None


def count_errors(references: Sequence[str], texts: Sequence[str]) -> WordErrors:
    """The least edits that turn each reference into the text, counted in words."""
    jiwer = require("jiwer", "Word error rates", "codecs")
    errors, words = np.zeros(len(references)), np.zeros(len(references))
    for row, (reference, text) in enumerate(zip(map(normalise, references), map(normalise, texts), strict=True)):
        words[row] = len(reference.split())
        if not reference:  # jiwer takes no empty reference
            errors[row] = len(text.split())
            continue
        counts = jiwer.process_words(reference, text)
        errors[row] = counts.substitutions + counts.deletions + counts.insertions
    return WordErrors(errors, words)
