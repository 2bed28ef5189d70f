"""Telephone prompts of Asterisk: eight voices in five languages, recorded in studios.

    asterisk                      the five voices of the core prompts, at 8 kHz
    asterisk:en                   one of them
    asterisk:en@16k               the same prompts at 16 kHz, coded once before in G.722 at 64 kbps
    asterisk:it,it-menardi        two voices of one language
    asterisk:it,it-menardi?only=digits,letters    some folders of the prompts
    asterisk:en?only=.            the prompts in no folder, most of them phrases and sentences
    asterisk:it,it-menardi,fr,fr-armelle?only=digits&label=word    the label says the language too

The label is the prompt's name (`digits/7`, `vm-goodbye`), the same in every language and for every voice; the group is
the voice. The text is what the list of prompts says that comes with the package, where it says it without brackets. A
prompt is spoken once by each voice. Across languages one name means other words; within one language the second voice
reads a translation of its own, so that only the short prompts (digits, letters, days, months) are the same words: with
`label=word` a class is a prompt in one language, spoken by its voices.
"""

from __future__ import annotations

import gzip
import re
from dataclasses import dataclass, replace
from pathlib import Path

from earmark.corpora.clips import Clip, Corpus, CorpusCard
from earmark.corpora.recordings.packages import Copy, Package, locate, need
from earmark.corpora.recordings.reading import count_notes, licence_notes, named_parts, split_options
from earmark.errors import UsageError
from earmark.wording import counted

_SOUNDS = "usr/share/asterisk/sounds"
_WIDE = "@16k"
_TELEPHONE = "mastered for telephones at 8 kHz, 16-bit PCM"
_G722 = "coded once before in G.722 at 64 kbps, at 16 kHz"
_GSM = "mastered for telephones at 8 kHz and coded once before in GSM 06.10 at 13.2 kbps"
NOT_SPEECH = frozenset(
    {"ascending-2tone", "beep", "beeperr", "confbridge-join", "confbridge-leave", "descending-2tone", "tt-monkeys"}
)
"""Prompts that are tones, or screams of monkeys."""


@dataclass(frozen=True)
class Voice:
    """One voice at one rate: which package holds it, in which folder, on what terms."""

    key: str
    package: Package
    suffix: str
    speaker: str
    sex: str
    language: str
    licence: str
    holder: str
    history: str
    text: Package | None  # the package with the list of what is spoken
    clips: int  # without silence, tones and monkeys, in the version of Debian 12

    @property
    def rate(self) -> str:
        return "16 kHz" if self.suffix == ".g722" else "8 kHz"


def _package(name: str, content: str, megabytes: float) -> Package:
    return Package(name, f"{_SOUNDS}/{content}", megabytes)


def _core(
    key: str, folder: str, sex: str, language: str, licence: str, holder: str, clips: int, sizes: tuple[float, float]
) -> list[Voice]:
    """The voice of a language at 8 and at 16 kHz."""
    listed = f"usr/share/doc/asterisk-core-sounds-{key}/core-sounds-{key}.txt.gz"
    text = Package(f"asterisk-core-sounds-{key}", listed, 0.02)
    return [
        Voice(
            key + suffix_key, _package(f"asterisk-core-sounds-{key}-{kind}", f"{folder}/vm-goodbye.{kind}", size),
            f".{kind}", folder.rpartition("_")[2], sex, language, licence, holder, history, text, clips,
        )
        for kind, suffix_key, history, size in (("wav", "", _TELEPHONE, sizes[0]), ("g722", _WIDE, _G722, sizes[1]))
    ]  # fmt: skip


VOICES: dict[str, Voice] = {
    voice.key: voice
    for voice in (
        *_core("en", "en_US_f_Allison", "female", "en-US", "CC-BY-SA-3.0", "2003-2010, Allison Smith",
               551, (18.3, 10.6)),
        *_core("es", "es_MX_f_Allison", "female", "es-MX", "CC-BY-SA-3.0", "2003-2010, Allison Smith",
               510, (23.8, 13.0)),
        *_core("fr", "fr_CA_f_June", "female", "fr-CA", "CC-BY-SA-3.0", "2006-2008, June Wallack", 544, (18.5, 10.8)),
        *_core("it", "it_IT_m_Carlo", "male", "it-IT", "CC-BY-3.0", "2012, Carlo Flora", 582, (18.3, 10.1)),
        *_core("ru", "ru_RU_f_IvrvoiceRU", "female", "ru-RU", "CC-BY-3.0", "2010, Maxim Topal", 559, (18.8, 10.6)),
        Voice("it-menardi", _package("asterisk-prompt-it-menardi-wav", "it_IT_f_Menardi/vm-goodbye.wav", 18.8),
              ".wav", "Menardi", "female", "it-IT", "CC-SA-BY-3.0 (Attribution Share Alike 3.0 Italian)",
              "2006-2011, Marco Menardi and Paola Dal Zot, http://www.voip.ammdomus.it",
              _TELEPHONE, None, 538),
        Voice("fr-armelle", _package("asterisk-prompt-fr-armelle", "fr/vm-goodbye.gsm", 1.5),
              ".gsm", "Armelle", "female", "fr-FR", "own terms: free with its notice, no endorsement",
              "2006, Michel Gutierrez (voice: Armelle Desjardins)",
              _GSM, None, 327),
        Voice("es-co", _package("asterisk-prompt-es-co", "es/vm-goodbye.gsm", 1.0),
              ".gsm", "July", "female", "es-CO", "GPL-2", "2006, Avatar Ltda. (voice: July E. Jiménez)",
              _GSM, None, 283),
    )
}  # fmt: skip
OPTIONS = ("only", "label")
CORE = ("en", "es", "fr", "it", "ru")


def voices_of(argument: str) -> list[Voice]:
    """The voices that a list such as `en,it-menardi` names; all core voices where it is empty."""
    return named_parts(argument, "asterisk", VOICES, "voice", CORE)


def packages_of(argument: str) -> list[Package]:
    """What has to be on the machine for a corpus, and the lists of what is spoken."""
    voices = voices_of(split_options(argument, "asterisk", OPTIONS)[0])
    return [*dict.fromkeys(p for voice in voices for p in (voice.package, voice.text) if p is not None)]


def open_asterisk(argument: str = "") -> Corpus:
    """Open prompts: `en`, `en@16k`, `it,it-menardi?only=digits`. No file is decoded."""
    keys, options = split_options(argument, "asterisk", OPTIONS)
    voices = voices_of(keys)
    if options.get("label", "word") not in ("prompt", "word"):
        raise UsageError(f"asterisk labels by prompt or word, not by {options['label']!r}.")
    by_word = options.get("label") == "word"
    spec = f"asterisk:{argument}" if argument else "asterisk"
    copies = need([voice.package for voice in voices], spec)
    folders = tuple(name.strip().strip("/") for name in options.get("only", "").split(",") if name.strip())
    clips: list[Clip] = []
    notes: list[str] = []
    for voice, copy in zip(voices, copies, strict=True):
        texts, missing = _texts(voice)
        notes += [*missing, *licence_notes(copy, voice.licence)]
        found, left_out = _clips(voice, copy.content.parent, texts)
        if left_out:
            notes.append(f"{voice.key}: {counted(left_out, 'prompt')} of silence, tones or screams left out.")
        notes += count_notes(copy, len(found), voice.clips, "prompt")
        chosen = [clip for clip in found if not folders or _folder(clip) in folders]
        if not chosen:
            there = sorted({_folder(clip) for clip in found})
            raise UsageError(f"{spec}: no prompt lies in {', '.join(folders)}; there are {', '.join(there)}.")
        language = voice.language.partition("-")[0]
        clips += [replace(clip, label=f"{language}/{clip.label}") for clip in chosen] if by_word else chosen
    return Corpus(_card(spec, voices, copies), clips, tuple(notes))


def _folder(clip: Clip) -> str:
    return str(clip.label).rpartition("/")[0] or "."


def _clips(voice: Voice, folder: Path, texts: dict[str, str]) -> tuple[list[Clip], int]:
    """The prompts of a voice by name, and how many were passed over because nobody speaks in them."""
    clips = []
    left_out = 0
    for file in sorted(folder.rglob(f"*{voice.suffix}")):
        name = file.relative_to(folder).with_suffix("").as_posix()
        if name in NOT_SPEECH or name.startswith("silence/"):
            left_out += 1
            continue
        clips.append(Clip(f"{voice.key}/{name}", label=name, group=voice.speaker, path=str(file), text=texts.get(name)))
    return clips, left_out


def _texts(voice: Voice) -> tuple[dict[str, str], list[str]]:
    """What is spoken in the prompts, by name; and a note where the list is not on this machine."""
    if voice.text is None:
        return {}, [f"{voice.key}: no list says what is spoken."]
    copy = locate(voice.text)
    if copy is None:
        return {}, [
            f"{voice.key}: without texts, since {voice.text.name} is not here; "
            f"`earmark corpus fetch asterisk:{voice.key}` gets it."
        ]
    return read_texts(gzip.decompress(copy.content.read_bytes()).decode("utf-8-sig", "replace")), []


def read_texts(listed: str) -> dict[str, str]:
    """Texts by prompt from lines such as `vm-goodbye: Goodbye.`, those that say it without remarks in brackets.

    A sign in square brackets behind a name (`dollar [$]`) is dropped. A name that is listed twice has no text, since
    the two lines need not agree.
    """
    texts: dict[str, str] = {}
    doubled: set[str] = set()
    for line in listed.splitlines():
        name, colon, text = (part.strip() for part in line.partition(":"))
        if line.startswith(";") or not colon:
            continue
        if name in texts:
            doubled.add(name)
        text = re.sub(r"\s*\[[^\w\s]?\s*\]$", "", text)
        if re.search(r"\w", text) and not re.search(r"[][()<>]", text):
            texts[name] = " ".join(text.split())
    return {name: text for name, text in texts.items() if name not in doubled}


def _card(spec: str, voices: list[Voice], copies: list[Copy]) -> CorpusCard:
    def joined(values: list[str]) -> str:
        return "; ".join(dict.fromkeys(values))

    speakers = joined([voice.speaker for voice in voices]).split("; ")
    return CorpusCard(
        name=spec,
        title=f"telephone prompts of Asterisk, {counted(len(speakers), 'voice')} ({', '.join(speakers)})",
        source=joined([f"https://packages.debian.org/stable/{voice.package.name}" for voice in voices]),
        revision=joined([copy.revision for copy in copies]),
        licence=joined([voice.licence for voice in voices]),
        citation=joined([f"Copyright {voice.holder}" for voice in voices]),
        domain="human_speech",
        drawn_from="Asterisk core sounds",
        status="public",
        language=joined([voice.language for voice in voices]),
        rate=joined([voice.rate for voice in voices]),
        history=joined([voice.history for voice in voices]),
        notes="Recorded in studios; the label is the prompt's name, the group the voice. Texts are those of the "
        "package, not checked against the recordings.",
    )
