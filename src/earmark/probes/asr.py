"""Speech recognition: what a recogniser no longer understands.

wer    words wrong against the clips' transcripts: their labels, where a label has two words or more
dwer   words wrong against what the same recogniser wrote for the clean clip; needs no transcripts

A weak recogniser is wrong on clean speech too, so `wer` comes with `wer:difference`, coded minus clean on the same
clips. Both are pooled over words (see `words`), and intervals draw clips, or groups of clips where there are groups.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from earmark.corpora.clips import Clip
from earmark.errors import UsageError, did_you_mean
from earmark.probes.catalogue import CARDS
from earmark.probes.contract import RESAMPLES, Finding, Heard, Pairs, paired
from earmark.probes.resampling import draws_of, ratio_interval
from earmark.probes.words import Edits, edits
from earmark.progress import Progress
from earmark.registry import Registry
from earmark.specs import parse_spec
from earmark.wording import counted

__all__ = ["RECOGNISERS", "Recogniser", "Recognition"]


class Recogniser(Protocol):
    """Something that writes down what is said in clips; a clip that fails is in `failures` of what it heard.

    It may have a `version`, text that changes when its words do: what was heard is then heard again.
    """

    name: str

    def transcribe(self, clips: Sequence[Clip], *, progress: Progress = False) -> Heard: ...


RECOGNISERS: Registry[Callable[..., Recogniser]] = Registry(
    "recogniser",
    "earmark.recognisers",
    {
        "pocketsphinx": "earmark.probes.pocketsphinx:PocketSphinx",
        "whisper": "earmark.probes.whisper:WhisperRecogniser",
    },
)


class Recognition:
    """`asr`, `asr:pocketsphinx`, `asr:whisper:openai/whisper-large`; other parameters go to the recogniser."""

    card = CARDS["asr"]

    def __init__(
        self, model: str | Recogniser = "", *, transcripts: bool = True, bootstrap: int = RESAMPLES, **options: object
    ) -> None:
        self.transcripts, self.bootstrap = transcripts, bootstrap
        self.recogniser = _opened(model or self.card.model, options) if isinstance(model, str) else model
        version = f"{self.card.version}; {getattr(self.recogniser, 'version', '1')}"
        self.card = replace(self.card, model=self.recogniser.name, version=version)

    def listen(self, clips: Sequence[Clip], *, progress: Progress = False) -> Heard:
        return self.recogniser.transcribe(clips, progress=progress)

    def score(self, clips: Sequence[Clip], clean: Heard, coded: Heard, *, seed: int = 0) -> list[Finding]:
        """Findings `wer`, `wer:difference` and `dwer`, protocol `all`."""
        pairs = paired(clips, clean, coded)
        return [*self._against_transcripts(pairs, clean, coded, seed), self._against_clean(pairs, clean, coded, seed)]

    def _against_clean(self, pairs: Pairs, clean: Heard, coded: Heard, seed: int) -> Finding:
        draws = draws_of(pairs.clips, self.bootstrap, seed) if pairs.clips else np.zeros((0, 0))
        found = edits(_texts(clean, pairs.clean), _texts(coded, pairs.coded))
        return _finding(
            "dwer", found, draws, pairs.left_out, f"{self.recogniser.name} heard no word in the clean clips"
        )

    def _against_transcripts(self, pairs: Pairs, clean: Heard, coded: Heard, seed: int) -> list[Finding]:
        kept = [place for place, clip in enumerate(pairs.clips) if self.transcripts and has_transcript(clip)]
        if not kept:
            why = "no clip has a transcript: give sentences (two words or more) as labels"
            return [Finding.not_applicable(metric, "all", why) for metric in ("wer", "wer:difference")]
        chosen = [pairs.clips[place] for place in kept]
        said = [clip.label or "" for clip in chosen]
        draws = draws_of(chosen, self.bootstrap, seed)
        after = edits(said, _texts(coded, pairs.coded[kept]))
        before = edits(said, _texts(clean, pairs.clean[kept]))
        without = len(pairs.clips) - len(kept)
        note = "; ".join(
            part
            for part in (pairs.left_out, f"{counted(without, 'clip')} without transcript" if without else "")
            if part
        )
        lost = Edits(after.errors - before.errors, after.words)
        return [_finding("wer", after, draws, note, ""), _finding("wer:difference", lost, draws, note, "")]


def has_transcript(clip: Clip) -> bool:
    """Whether a label is a sentence: two words or more. Names of classes are one word or joined by underscores."""
    return len((clip.label or "").split()) > 1


def _finding(
    metric: str, found: Edits, draws: np.ndarray[tuple[int, int], np.dtype[np.float64]], note: str, empty: str
) -> Finding:
    value = found.rate
    if value is None:
        return Finding.not_applicable(metric, "all", "; ".join(part for part in (empty, note) if part) or "no words")
    low, high = ratio_interval(found.errors, found.words, draws) if len(draws) else (None, None)
    words = f"{counted(int(found.words.sum()), 'word')}"
    reason = f"{words}; {note}" if note else words
    return Finding(metric, "all", value, low, high, n=len(found.words), reason=reason)


def _texts(heard: Heard, places: np.ndarray[tuple[int], np.dtype[np.int64]]) -> list[str]:
    if heard.texts is None:
        raise UsageError("Speech recognition compares texts, and vectors were heard: listen with the task `asr`.")
    return [heard.texts[place] for place in places]


def _opened(spec: str, options: dict[str, object]) -> Recogniser:
    parsed = parse_spec(spec)
    name = parsed.name
    if "." not in name and name not in RECOGNISERS:
        raise UsageError(
            f"There is no recogniser {name!r}.{did_you_mean(name, RECOGNISERS)} Known: {', '.join(RECOGNISERS)}; or "
            "give an import path such as mypackage.mymodule:Recogniser."
        )
    maker, arguments = RECOGNISERS.find(parsed)
    return maker(*arguments, **{**parsed.options, **options})
