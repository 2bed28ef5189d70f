"""Codec-SUPERB's evaluation sets: category, licence and which part of each is used, as data.

    codec_superb:librispeech?from=copies/LibriSpeech      the evaluation part of a local copy

The recordings are not distributed here. A rule is applied to a local copy: parts are names that a clip's subset or
one of the folders in its id must have, a pattern is looked for in the id, and of the labels only the most frequent may
be kept. Names are compared without regard to case.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from earmark.corpora.clips import Clip, Corpus, CorpusCard
from earmark.errors import InputError, UsageError, did_you_mean

Category = Literal["speech", "audio", "music"]
_PAPER = "Codec-SUPERB: an in-depth analysis of sound codec models"


@dataclass(frozen=True)
class Partition:
    """Which clips are evaluated, in words, and as names of parts, a pattern or a number of labels; without, all.

    `most_frequent` labels are those with most clips in the copy at hand; among equals, the first by name.
    """

    rule: str = "the whole dataset"
    parts: tuple[str, ...] = ()
    pattern: str = ""
    most_frequent: int = 0


@dataclass(frozen=True)
class Dataset:
    """One dataset of the suite. `scored` is whether the paper prints its results."""

    name: str
    title: str
    category: Category
    features: str
    licence: str
    citation: str
    partition: Partition = Partition()
    scored: bool = True
    notes: str = ""


def _test(*parts: str) -> Partition:
    return Partition(f"only {' and '.join(parts)}", parts)


DATASETS: dict[str, Dataset] = {
    dataset.name: dataset
    for dataset in (
        Dataset("librispeech", "LibriSpeech", "speech", "audiobooks read by many speakers", "CC BY 4.0",
                "Panayotov et al. 2015", _test("test-clean", "test-other")),
        Dataset("voxceleb1", "VoxCeleb1", "speech", "interviews with celebrities, from videos", "CC BY 4.0",
                "Nagrani et al. 2017", _test("test")),
        Dataset("speech_commands", "Speech Commands v1", "speech", "spoken keywords of one second", "CC BY 4.0",
                "Warden 2017"),
        Dataset("quesst", "QUESST 2014", "speech", "six low-resource languages, 8 kHz", "free for research",
                "Anguera et al. 2015"),
        Dataset("voxlingua107", "VoxLingua107 Top 10", "speech", "languages, from videos", "CC BY 4.0",
                "Valk & Alumäe 2021", Partition("the ten most frequent languages of the 107", most_frequent=10)),
        Dataset("audio_snips", "Audio SNIPS", "speech", "synthesised commands, several accents", "CC0 1.0",
                "Lai et al. 2021", _test("test", "valid")),
        Dataset("iemocap", "IEMOCAP", "speech", "acted emotions in dialogue", "SAIL agreement", "Busso et al. 2008"),
        Dataset("crema_d", "CREMA-D", "speech", "acted emotions, 91 actors", "Open Database License",
                "Cao et al. 2014"),
        Dataset("libri2mix", "Libri2Mix", "speech", "two speakers at once, with noise", "MIT",
                "Cosentino et al. 2020", _test("test")),
        Dataset("libricount", "LibriCount", "speech", "up to ten speakers at once", "CC BY 4.0",
                "Stöter et al. 2018"),
        Dataset("fluent_speech_commands", "Fluent Speech Commands", "speech", "commands to smart homes", "",
                "Lugosch et al. 2019", _test("test"), scored=False,
                notes="Described in the paper's appendix, absent from its tables, which give no licence."),
        Dataset("esc50", "ESC-50", "audio", "environmental sounds", "CC BY-NC 3.0", "Piczak 2015"),
        Dataset("fsd50k", "FSD50K", "audio", "sound events of 200 classes",
                "CC0; CC BY 4.0; CC BY-NC 4.0; CC Sampling+ 1.0", "Fonseca et al. 2022", _test("test", "valid")),
        Dataset("gunshot_triangulation", "Gunshot Triangulation", "audio", "shots heard by four telephones", "CC0",
                "Cooper & Shaw 2020"),
        Dataset("vocal_imitations", "Vocal Imitations", "audio", "voices imitating sounds", "CC BY 4.0",
                "Kim et al. 2018",
                Partition("the imitations, not the originals, of the part named included", ("included",))),
        Dataset("opensinger", "OpenSinger", "music", "Chinese songs, many singers", "CC BY-NC-SA 2.0",
                "Huang et al. 2021",
                Partition("male singers 25 to 27 and female singers 45 to 47",
                          pattern=r"(^|/)(man|male)[^/]*/(25|26|27)_|(^|/)(woman|female)[^/]*/(45|46|47)_")),
        Dataset("m4singer", "M4Singer", "music", "Chinese pop songs, four voice types", "CC BY-NC-SA 4.0",
                "Zhang et al. 2022", _test("test")),
        Dataset("vocalset", "VocalSet", "music", "singing techniques", "CC BY 4.0", "Wilkins et al. 2018",
                _test("test")),
        Dataset("nsynth", "NSynth", "music", "single notes of instruments", "CC BY 4.0", "Engel et al. 2017",
                _test("test"), scored=False, notes="Listed by the paper, but its results are not printed."),
        Dataset("gtzan_genre", "GTZAN Genre", "music", "ten genres, 30 s", "CC BY 4.0; Apache 2.0",
                "Tzanetakis & Cook 2002"),
        Dataset("gtzan_music_speech", "GTZAN Music Speech", "music", "music and speech, 30 s",
                "CC BY 4.0; Apache 2.0", "Tzanetakis & Cook 2002"),
    )
}  # fmt: skip


def cards() -> list[CorpusCard]:
    """A card for each dataset, in the order of the paper's categories."""
    return [_card(dataset) for dataset in DATASETS.values()]


def _card(dataset: Dataset, revision: str = "") -> CorpusCard:
    return CorpusCard(
        name=f"codec_superb:{dataset.name}",
        title=f"{dataset.title}: {dataset.features}",
        revision=revision,
        licence=dataset.licence,
        citation=f"{dataset.citation}; in {_PAPER}",
        domain=dataset.category,
        drawn_from=dataset.title,
        status="public",
        notes=f"Part: {dataset.partition.rule}. {dataset.notes}".rstrip(),
    )


def select(clips: Iterable[Clip], partition: Partition) -> list[Clip]:
    """The clips that a partition rule keeps, in their order."""
    parts = {part.lower() for part in partition.parts}
    pattern = re.compile(partition.pattern, re.IGNORECASE) if partition.pattern else None

    def keeps(clip: Clip) -> bool:
        # The id is the path inside the corpus, or split/row: folders above the corpus must not count.
        names = {clip.subset.lower(), *clip.subset.lower().split("/"), *clip.id.lower().split("/")[:-1]}
        return (not parts or not parts.isdisjoint(names)) and (pattern is None or pattern.search(clip.id) is not None)

    kept = [clip for clip in clips if keeps(clip)]
    if not partition.most_frequent:
        return kept
    sizes = Counter(clip.label for clip in kept if clip.label is not None)
    largest = sorted(sizes, key=lambda label: (-sizes[label], label))[: partition.most_frequent]
    return [clip for clip in kept if clip.label in largest]


def open_codec_superb(spec: str = "") -> Corpus:
    """Open the evaluation part of one dataset from a local copy: `librispeech?from=copies/LibriSpeech`."""
    from earmark.corpora.source import open_corpus

    name, _, option = spec.partition("?")
    if name not in DATASETS:
        raise UsageError(
            f"Codec-SUPERB has no dataset {name!r}.{did_you_mean(name, DATASETS)} Known: {', '.join(DATASETS)}."
        )
    key, _, place = option.partition("=")
    if key != "from" or not place:
        raise UsageError(
            f"Codec-SUPERB's {DATASETS[name].title} is not distributed with Earmark: "
            f"write codec_superb:{name}?from=PLACE with the place of your copy."
        )
    dataset = DATASETS[name]
    copy = open_corpus(place)
    kept = select(copy.clips, dataset.partition)
    if not kept:
        raise InputError(
            f"{place}: none of its {len(copy)} clips is in the part that Codec-SUPERB uses of {dataset.title} "
            f"({dataset.partition.rule}); name the part in the subset column or in a folder."
        )
    notes = [f"{dataset.title}: {len(kept)} of {len(copy)} clips kept ({dataset.partition.rule})."]
    wanted = dataset.partition.most_frequent
    if wanted:
        # Which labels were taken for the most frequent: they are counted in the copy at hand, which may be a part.
        labels = sorted({clip.label for clip in kept if clip.label is not None})
        few = f", {wanted} were wanted" if len(labels) < wanted else ""
        notes.append(f"{dataset.title}: the most frequent labels of this copy are {', '.join(labels)}{few}.")
    return Corpus(_card(dataset, place), kept, (*copy.notes, *notes))
