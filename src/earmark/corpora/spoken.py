"""SYNTHETIC read sentences by many voices, by espeak-ng (extra `voices`): for recognisers and speaker verifiers.

The label is the sentence, word for word, the group the voice ("speaker"). A voice is an accent of English, a formant
variant, a pitch and a pace: settings of a synthesiser, not a person. Every voice reads every sentence, dry: no room,
no noise, 0.15 s of silence before and after. What two clips of a voice share is therefore the voice alone.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np

from earmark.corpora._voices import Page, dry_sound, speak, synthesiser_card, versions
from earmark.corpora.clips import Clip, Corpus, Samples
from earmark.corpora.synth._sources import RATE, between, stream, wobble
from earmark.errors import InputError, UsageError, require

VERSION = 1  # of the sounds: raise it when any sample changes
SUBSET = "SYN-RS"
MARGIN = 0.15  # seconds of silence at both ends
LEVEL = 0.7  # peak


class Voice(NamedTuple):
    """An accent and a variant of espeak-ng."""

    accent: str
    variant: str

    @property
    def name(self) -> str:
        return f"{self.accent}+{self.variant}"


VOICES = tuple(
    Voice(*spelled.split("+"))
    for spelled in """
    en-us+m1 en-us+f2 en-us+m3 en-us+f4 en-us+Annie en-us+david en-us+m7 en-us+f1
    en-us+belinda en-us+steph en-us+michel en-us+Andy en-us+linda en-us+robert en-us+Mike en-us+aunty
    en-gb+m2 en-gb+f3 en-gb+m5 en-gb+f5 en-gb+grandpa en-gb+anika en-gb+edward en-gb+Alicia
    en-us+m8 en-us+Gene en-us+max en-us+grandma en-gb+benjamin en-gb+john en-gb+victor en-gb+Denis
    """.split()
)

SENTENCES = (
    "The children are playing in the garden behind the house",
    "We took the early train to the city on Monday morning",
    "Please bring a warm coat because the evening will be cold",
    "My brother wants to buy a small boat next summer",
    "The teacher wrote three long words on the board",
    "She put the letter on the table and closed the door",
    "It was raining hard when they came back from the market",
    "You can see the mountains from the window of my room",
    "He asked the doctor about the pain in his left hand",
    "The old man feeds the birds in the park every day",
    "I would like a cup of coffee and some bread with butter",
    "They have been waiting for the bus for half an hour",
    "The river is very deep on the other side of the bridge",
    "Our neighbor plays the piano late in the afternoon",
    "Nobody knows where the little dog has gone",
    "The store will open again at nine in the morning",
    "There is not enough water in the kitchen for the plants",
    "She was happy to find her book under the bed",
    "The farmer sold all of his apples before lunch",
    "We should clean the house before your mother comes",
    "The king lived in a large white castle by the sea",
    "He forgot to turn off the light in the bathroom",
    "The two sisters walk to school together every morning",
    "I have never seen so many stars in the sky",
    "The plane was two hours late because of the snow",
    "Put some salt in the soup and stir it with a spoon",
    "The window was broken by a stone from the street",
    "Her father works in an office near the station",
    "They decided to paint the kitchen yellow and blue",
    "The movie was long but the story was very good",
    "A black cat is sleeping on the roof of the car",
    "We need more money to build a new bridge",
    "The music in the next room is much too loud",
    "He opened the box and found an old photograph",
    "In winter the lake is covered with thick ice",
    "The nurse gave the boy a glass of cold milk",
    "She speaks three languages and is learning another",
    "The road to the village is narrow and full of holes",
    "Tomorrow we will visit the museum with our friends",
    "The last page of the newspaper is missing",
)


def open_spoken(spec: str = "", *, voices: int = 24, sentences: int = 6, first: int = 0, seed: int = 0) -> Corpus:
    """SYNTHETIC read sentences, lazily: nothing is spoken until a clip is read. 16 kHz float32.

    `voices` is how many of `VOICES`, `sentences` how many of `SENTENCES` each of them reads, from number `first` on.
    `spec` is how the command line says it: `spoken:20x8` is 20 voices and 8 sentences. Raises MissingExtra without
    espeakng-loader.
    """
    require("espeakng_loader", "Spoken sentences", "voices")
    if spec:
        counts = spec.split("x")
        if not (len(counts) == 2 and all(count.isdecimal() for count in counts)):
            raise UsageError(f'spoken:{spec} is not understood: write "spoken:20x8" for 20 voices and 8 sentences.')
        voices, sentences = map(int, counts)
    if not 1 <= voices <= len(VOICES):
        raise UsageError(f"The number of voices is between 1 and {len(VOICES)}, not {voices}.")
    if not (0 <= first < len(SENTENCES) and 1 <= sentences <= len(SENTENCES) - first):
        most = max(0, len(SENTENCES) - max(0, first))
        raise UsageError(f"There are {most} sentences from number {first} on: {sentences} cannot be read.")
    read = SENTENCES[first : first + sentences]
    card = synthesiser_card(
        "spoken", "read sentences by many voices", f"{VERSION}, seed {seed}",
        f"{sentences} English sentences by {voices} synthetic voices",
        "a formant synthesiser reads; its voices are settings, not people. The label is the transcript, the group the "
        "voice.",
    )  # fmt: skip
    clips = [
        Clip(
            id=f"{SUBSET}/{voice.name}/{first + number:02d}",
            label=sentence,
            subset=SUBSET,
            group=voice.name,
            make=partial(render, voice, read, seed, number),
            # A sentence sounds a little as those before it left the synthesiser: they belong to the recipe.
            recipe=f"earmark spoken {VERSION}, {versions()}, seed {seed}, {voice.name} {list(read[: number + 1])}",
        )
        for voice in VOICES[:voices]
        for number, sentence in enumerate(read)
    ]
    return Corpus(card, clips)


def render(voice: Voice, read: tuple[str, ...], seed: int, number: int) -> tuple[Samples, int]:
    """The samples of one clip and their rate."""
    dry = dry_sound(_page(voice, read, seed), number)
    if not len(dry):
        raise InputError(f"espeak-ng is silent on {read[number]!r} with the voice {voice.name}.")
    padded = np.pad(LEVEL * dry / np.abs(dry).max(), round(MARGIN * RATE))
    return padded.astype(np.float32), RATE


def _manner(seed: int, voice: Voice, sentence: str) -> tuple[int, int]:
    """How a sentence is read: words per minute, and pitch from 0 to 99. A voice keeps near its own."""
    who, now = stream("reader", seed, voice.name), stream("reader", seed, voice.name, sentence)
    pace = 150 * np.exp(between(who, -0.12, 0.12)) * wobble(now, 0.03)
    return round(float(pace)), round(between(who, 30, 70) + between(now, -3, 3))


@lru_cache(maxsize=64)
def _page(voice: Voice, read: tuple[str, ...], seed: int) -> Page:
    lines = [(sentence, *_manner(seed, voice, sentence)) for sentence in read]
    return speak(voice.accent, voice.variant, lines)
