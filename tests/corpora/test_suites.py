"""The registered suites: their cards, their numbers, what may be loaded."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from earmark.corpora import codec_superb, vocsim
from earmark.corpora.clips import Clip
from earmark.corpora.source import open_corpus
from earmark.errors import InputError, UsageError

SHARED = Path(__file__).resolve().parents[2].parent / "shared"
TABLE1 = SHARED / "published" / "vocsim_table1_subsets.csv"
ESC50 = SHARED / "data" / "esc50" / "manifest.csv"


def test_every_subset_has_a_full_card() -> None:
    assert len(vocsim.CARDS) == len(vocsim.PUBLISHED) == 19
    assert list(vocsim.CARDS) == sorted(vocsim.CARDS)
    for name, card in vocsim.CARDS.items():
        assert card.name == f"vocsim:{name}"
        assert all((card.title, card.source, card.licence, card.citation, card.domain, card.notes))
    assert sorted(name for name, card in vocsim.CARDS.items() if card.status == "blind") == ["HU3", "HU4", "HW3", "HW4"]
    assert sum(published.clips for published in vocsim.PUBLISHED.values()) == 125_382


@pytest.mark.skipif(not TABLE1.is_file(), reason="the published tables are not beside the repository")
def test_numbers_are_the_published_ones() -> None:
    with TABLE1.open(encoding="utf-8") as handle:
        for row in csv.DictReader(handle):
            names = ["n_samples", "n_classes"]
            names += [f"{which}_samples_per_class" for which in ("avg", "min", "max")]
            names += [f"{which}_dur_s" for which in ("avg", "min", "max")] + ["DRI_dB"]
            assert tuple(float(row[name]) for name in names) == tuple(map(float, vocsim.PUBLISHED[row["subset"]]))
            assert vocsim.CARDS[row["subset"]].status == row["split"]


@pytest.mark.parametrize("name", ["HU3", "HU4", "HW3", "hw4"])
def test_blind_subsets_say_why(name: str) -> None:
    with pytest.raises(vocsim.BlindSubset) as caught:
        open_corpus(f"vocsim:{name}")
    assert "cannot be loaded" in str(caught.value)
    assert "stay with the community" in str(caught.value)


def test_wrong_names_and_options(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match='Did you mean "BS1"'):
        open_corpus("vocsim:BSS1")
    with pytest.raises(UsageError, match="no option"):
        open_corpus("vocsim:BS1?at=x")
    (tmp_path / "a.wav").write_bytes(b"x")
    (tmp_path / "m.csv").write_text("path,label,subset\na.wav,x,BS2\n")
    with pytest.raises(InputError, match=r"no clips of BS1 \(subsets there: BS2\)"):
        open_corpus(f"vocsim:BS1?from={tmp_path / 'm.csv'}")


@pytest.mark.skipif(not ESC50.is_file(), reason="ESC-50 is not beside the repository")
def test_es1_from_a_local_copy() -> None:
    corpus = vocsim.open_vocsim("ES1", source=str(ESC50))
    assert len(corpus) == vocsim.PUBLISHED["ES1"].clips
    assert corpus.card.licence == "CC BY-NC 3.0"
    assert not [note for note in corpus.notes if "in the paper" in note]


# --- Codec-SUPERB -------------------------------------------------------------------------------------------


def test_datasets_by_category() -> None:
    found = [dataset.category for dataset in codec_superb.DATASETS.values()]
    assert (found.count("speech"), found.count("audio"), found.count("music")) == (11, 4, 6)
    assert all(card.citation for card in codec_superb.cards())
    # The tables list twenty; the one that only the appendix names has no licence there.
    assert sum(bool(card.licence) for card in codec_superb.cards()) == 20
    assert sum(dataset.scored for dataset in codec_superb.DATASETS.values()) == 19


@pytest.mark.parametrize(
    ("name", "kept", "left"),
    [
        (
            "librispeech",
            ["test-clean/1/2/a.flac", "test-other/b.flac"],
            ["train-clean-100/1/a.flac", "a-test-clean.flac"],
        ),
        ("opensinger", ["ManRaw/25_song/a.wav", "WomanRaw/47_x/b.wav"], ["ManRaw/45_x/a.wav", "ManRaw/2_x/25_a.wav"]),
        ("vocal_imitations", ["Vocal_Imitations/included/a.wav"], ["original/a.wav"]),
        ("fsd50k", ["TEST/a.wav", "valid/a.wav"], ["train/a.wav"]),
        ("esc50", ["a.wav", "x/b.wav"], []),
    ],
)
def test_partition_rules(name: str, kept: list[str], left: list[str]) -> None:
    clips = [Clip(place, path=f"/test/{place}") for place in [*kept, *left]]
    assert [clip.id for clip in codec_superb.select(clips, codec_superb.DATASETS[name].partition)] == kept


def test_the_subset_column_names_the_part() -> None:
    clips = [Clip("1", subset="test"), Clip("2", subset="train"), Clip("3", subset="x/Test")]
    kept = codec_superb.select(clips, codec_superb.DATASETS["nsynth"].partition)
    assert [clip.id for clip in kept] == ["1", "3"]


def test_the_most_frequent_languages_are_kept(tmp_path: Path) -> None:
    for number, language in enumerate(sorted(f"l{k:02d}" for k in range(14))):
        for clip in range(20 - number if number % 2 else 3 + number):
            (tmp_path / "dev" / language).mkdir(parents=True, exist_ok=True)
            (tmp_path / "dev" / language / f"{clip}.wav").write_bytes(b"x")
    sizes = {f"l{k:02d}": 20 - k if k % 2 else 3 + k for k in range(14)}
    largest = set(sorted(sizes, key=lambda name: (-sizes[name], name))[:10])
    corpus = open_corpus(f"codec_superb:voxlingua107?from={tmp_path}")
    assert {clip.label for clip in corpus} == largest
    assert len(corpus) == sum(sizes[name] for name in largest)
    assert "ten most frequent languages" in corpus.card.notes
    assert ", ".join(sorted(largest)) in corpus.notes[-1]
    few = codec_superb.select(
        [Clip(f"{k}", label=label) for k, label in enumerate(["et", "fi", None])],
        codec_superb.DATASETS["voxlingua107"].partition,
    )
    assert [clip.label for clip in few] == ["et", "fi"]


def test_opening_a_copy(tmp_path: Path) -> None:
    for name in ("test-clean/1.wav", "train/2.wav"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_bytes(b"x")
    corpus = open_corpus(f"codec_superb:librispeech?from={tmp_path}")
    assert [clip.id for clip in corpus] == ["test-clean/1.wav"]
    assert "1 of 2 clips kept" in corpus.notes[-1]
    with pytest.raises(InputError, match="none of its 2 clips"):
        open_corpus(f"codec_superb:nsynth?from={tmp_path}")
    with pytest.raises(UsageError, match="not distributed"):
        open_corpus("codec_superb:librispeech")
    with pytest.raises(UsageError, match='Did you mean "esc50"'):
        open_corpus("codec_superb:esc-50")
