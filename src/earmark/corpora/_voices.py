"""SYNTHETIC spoken words in many languages and voice variants, by espeak-ng (extra `voices`).

Two subsets: SYN-VW, and SYN-VO with low-resource languages held out, to ask how far a representation carries.
The label is a word of a language, the group a voice variant ("speaker": formant settings, not a person) with
its own room, noise and level. Rendering happens in a fresh process per language and variant (see `espeak`),
so it may be called from any thread or worker and gives the same samples every time.
"""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.corpora import _espeak as espeak
from earmark.corpora.clips import Clip, Corpus, CorpusCard, Samples
from earmark.corpora.synth._nuisances import draw_conditions, recorded
from earmark.corpora.synth._sources import RATE, between, stream, wobble
from earmark.errors import EarmarkError, InputError, UsageError, did_you_mean, require

VERSION = 1  # of the sounds: raise it when any sample changes
TAKES = 2  # renditions of a word by one voice

# Water, house, dog, sun, bread where the words are known; figures are read out in every language.
_NOUNS: dict[str, tuple[str, ...]] = {
    "en-us": ("water", "house", "dog", "sun", "bread"),
    "de": ("Wasser", "Haus", "Hund", "Sonne", "Brot"),
    "fr": ("eau", "maison", "chien", "soleil", "pain"),
    "es": ("agua", "casa", "perro", "sol", "pan"),
    "it": ("acqua", "casa", "cane", "sole", "pane"),
    "pt": ("água", "casa", "cão", "sol", "pão"),
    "nl": ("water", "huis", "hond", "zon", "brood"),
    "sv": ("vatten", "hus", "hund", "sol", "bröd"),
    "pl": ("woda", "dom", "pies", "słońce", "chleb"),
    "cs": ("voda", "dům", "pes", "slunce", "chléb"),
    "ru": ("вода", "дом", "собака", "солнце", "хлеб"),
    "el": ("νερό", "σπίτι", "σκύλος", "ήλιος", "ψωμί"),
    "tr": ("su", "ev", "köpek", "güneş", "ekmek"),
    "fi": ("vesi", "talo", "koira", "aurinko", "leipä"),
    "hu": ("víz", "ház", "kutya", "nap", "kenyér"),
    "id": ("air", "rumah", "anjing", "matahari", "roti"),
    "hi": ("पानी", "घर", "कुत्ता", "सूरज", "रोटी"),
    "sw": ("maji", "nyumba", "mbwa", "jua", "mkate"),
    "mi": ("wai", "whare", "kurī", "rā", "parāoa"),
    "qu": ("yaku", "wasi", "allqu", "inti", "tanta"),
}
_FIGURES = tuple(str(number) for number in range(1, 11))

LANGUAGES = ("en-us", "de", "es", "ru", "tr", "hi", "fi", "id", "fr", "pl", "el", "hu")
HELD_OUT = ("gn", "qu", "mi", "om", "sw", "tn", "quc", "haw", "smj", "mto", "nci")
VARIANTS = ("m1", "f2", "m3", "f4", "Annie", "david", "m7", "f1", "klatt2", "belinda", "pablo", "steph")

_BY_FILE_NAME = {"en-gb": "en", "fr-fr": "fr"}  # tags known only by the name of the voice's file
_SILENT = frozenset({"fo", "kaa", "xex"})  # their dictionaries are not shipped


def words_of(language: str) -> tuple[str, ...]:
    """The embedded words of a language: nouns where they are known, then the figures 1 to 10."""
    return _NOUNS.get(language, ()) + _FIGURES


def open_voices(
    spec: str = "",
    *,
    words: int | Mapping[str, Sequence[str]] = 8,
    languages: Sequence[str] | None = None,
    variants: int | Sequence[str] = 6,
    seed: int = 0,
) -> Corpus:
    """SYNTHETIC spoken words, lazily: nothing is rendered until a clip is read. 16 kHz float32.

    `words` is a number per language (of `words_of`, 15 at most) or words by language; `languages` are
    espeak-ng tags, by default `LANGUAGES` and the first six of `HELD_OUT`; any language of `HELD_OUT` goes
    to the subset SYN-VO, all others to SYN-VW; `variants` are names of espeak-ng's voice variants, or how
    many of `VARIANTS`. Each voice says each word twice. `spec` is how the command line names languages:
    "de,qu" for `voices:de,qu`. Raises MissingExtra without espeakng-loader.
    """
    loader = require("espeakng_loader", "Spoken words in many languages", "voices")
    if spec:
        languages = [name.strip() for name in spec.split(",") if name.strip()]
    if languages is None:
        languages = tuple(words) if isinstance(words, Mapping) else LANGUAGES + HELD_OUT[:6]
    voices = _check_variants(variants, Path(loader.get_data_path()))
    _check_languages(languages, Path(loader.get_data_path()))
    clips = [
        clip
        for language in languages
        for voice in voices
        for clip in _page_clips(language, voice, _words(words, language), seed)
    ]
    domain = f"spoken words in {len(languages)} languages by {len(voices)} voice variants"
    card = synthesiser_card(
        "voices", "spoken words in many languages", f"{VERSION}, seed {seed}", domain,
        "a formant synthesiser speaks; its variants are settings, not people. SYN-VO holds low-resource languages out.",
    )  # fmt: skip
    return Corpus(card, clips)


def synthesiser_card(name: str, title: str, revision: str, domain: str, notes: str) -> CorpusCard:
    """The card of a corpus that espeak-ng renders."""
    return CorpusCard(
        name=name,
        title=f"SYNTHETIC {title} (espeak-ng)",
        source=f"generated by espeak-ng ({versions()})",
        revision=revision,
        licence="rendered by espeak-ng, which is GPL-3.0-or-later",
        domain=domain,
        status="synthetic",
        notes=f"SYNTHETIC: {notes} Scores do not say how a model does on human speech.",
    )


# --- what was asked for -----------------------------------------------------------------------------------


def _words(words: int | Mapping[str, Sequence[str]], language: str) -> tuple[str, ...]:
    if isinstance(words, Mapping):
        if not words.get(language):
            raise UsageError(f"No words were given for the language {language!r}.")
        return tuple(dict.fromkeys(words[language]))
    if not 1 <= words <= len(_FIGURES) + 5:
        raise UsageError(f"The number of words per language is between 1 and 15, not {words}.")
    return words_of(language)[:words]


def _check_variants(variants: int | Sequence[str], data: Path) -> tuple[str, ...]:
    if isinstance(variants, int):
        if not 1 <= variants <= len(VARIANTS):
            raise UsageError(f"The number of variants is between 1 and {len(VARIANTS)}, not {variants}.")
        return VARIANTS[:variants]
    known = {path.name for path in (data / "voices" / "!v").iterdir()}
    for variant in variants:
        if variant not in known:
            raise UsageError(f"espeak-ng has no voice variant {variant!r}.{did_you_mean(variant, known)}")
    return tuple(dict.fromkeys(variants))


def _check_languages(languages: Sequence[str], data: Path) -> None:
    known = {path.name.lower() for path in (data / "lang").rglob("*") if path.is_file()} | set(_BY_FILE_NAME)
    for language in languages:
        if language.lower() not in known:
            raise UsageError(f"espeak-ng has no language {language!r}.{did_you_mean(language, known)}")
        if language in _SILENT:
            raise UsageError(f"espeak-ng has no dictionary for the language {language!r}: choose another.")


@lru_cache(maxsize=1)
def versions() -> str:
    """What the samples depend on beside the recipe's own words."""
    names = ("espeakng-loader", "numpy", "scipy")
    return ", ".join(f"{name} {metadata.version(name)}" for name in names)


# --- clips ------------------------------------------------------------------------------------------------


def _page_clips(language: str, variant: str, words: tuple[str, ...], seed: int) -> list[Clip]:
    subset = "SYN-VO" if language in HELD_OUT else "SYN-VW"
    made = f"earmark voices {VERSION}, {versions()}"
    return [
        Clip(
            id=f"{subset}/{language}_{word}/{variant}_{take}",
            label=f"{language}_{word}",
            subset=subset,
            group=variant,
            make=partial(render, language, variant, words, seed, number, take),
            # A word sounds a little as the words before it left the synthesiser: they belong to the recipe.
            recipe=f"{made}, seed {seed}, {language}+{variant} {list(words[: number + 1])} take {take}",
        )
        for number, word in enumerate(words)
        for take in range(TAKES)
    ]


def render(
    language: str, variant: str, words: tuple[str, ...], seed: int, number: int, take: int
) -> tuple[Samples, int]:
    """The samples of one clip and their rate."""
    dry = dry_sound(_page(language, variant, words, seed), number * TAKES + take)
    if not len(dry):
        raise InputError(f"espeak-ng is silent on {words[number]!r} in the language {language!r}.")
    where = draw_conditions(seed, "voices", variant, harshness=0.8)
    rng = stream(VERSION, seed, "voices", language, variant, words[number], take)
    return recorded(dry, rng, where, margin=0.05).astype(np.float32), RATE


class Page(NamedTuple):
    """What a worker spoke: the rate, and one array per line."""

    rate: int
    lines: tuple[NDArray[np.int16], ...]


def dry_sound(page: Page, line: int) -> NDArray[np.float64]:
    """A line at 16 kHz, without the silence at both ends but for 10 ms; empty when nothing is heard."""
    from scipy.signal import resample_poly

    samples = page.lines[line]
    loud = np.flatnonzero(np.abs(samples.astype(np.int32)) > 200)
    if not len(loud):
        return np.empty(0)
    margin = page.rate // 100
    spoken = samples[max(0, loud[0] - margin) : loud[-1] + margin]
    divisor = int(np.gcd(page.rate, RATE))
    return np.asarray(resample_poly(spoken / 32768.0, RATE // divisor, page.rate // divisor))


def _manner(seed: int, language: str, variant: str, word: str, take: int) -> tuple[int, int]:
    """How one rendition is spoken: words per minute, and pitch from 0 to 99."""
    who, now = stream("manner", seed, variant), stream("manner", seed, language, variant, word, take)
    pace = 165 * np.exp(between(who, -0.15, 0.15)) * wobble(now, 0.06)
    return round(float(pace)), round(between(who, 38, 62) + between(now, -6, 6))


@lru_cache(maxsize=32)
def _page(language: str, variant: str, words: tuple[str, ...], seed: int) -> Page:
    """All renditions of a language's words by one voice, in order, by a fresh process."""
    lines = [(word, *_manner(seed, language, variant, word, take)) for word in words for take in range(TAKES)]
    return speak(language, variant, lines)


def speak(language: str, variant: str, lines: Sequence[tuple[str, int, int]]) -> Page:
    """Lines of (text, words per minute, pitch from 0 to 99) by one voice, in order, in a fresh process."""
    loader: Any = require("espeakng_loader", "Spoken words in many languages", "voices")
    page = {
        "library": loader.get_library_path(),
        "data": loader.get_data_path(),
        "voice": f"{_BY_FILE_NAME.get(language, language)}+{variant}",
        "lines": [list(line) for line in lines],
    }
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(espeak.__file__)],
        input=json.dumps(page).encode(),
        capture_output=True,
        check=False,
        timeout=120,
    )
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        reason = said if done.returncode == 1 and said else f"it crashed (status {done.returncode})"
        raise EarmarkError(f"espeak-ng could not speak {language}+{variant}: {reason}.")
    (rate,) = struct.unpack_from("<i", done.stdout)
    at, spoken = 4, []
    for _ in lines:
        (length,) = struct.unpack_from("<i", done.stdout, at)
        spoken.append(np.frombuffer(done.stdout, dtype="<i2", count=length, offset=at + 4).astype(np.int16))
        at += 4 + 2 * length
    return Page(rate, tuple(spoken))
