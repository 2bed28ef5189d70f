"""Read sentences: the label is the transcript, the group the voice, and the samples are the same every time."""

from __future__ import annotations

import numpy as np
import pytest

from earmark.corpora.source import open_corpus
from earmark.corpora.spoken import SENTENCES, VOICES, open_spoken
from earmark.errors import UsageError

pytest.importorskip("espeakng_loader")


def test_every_voice_reads_every_sentence() -> None:
    corpus = open_corpus("spoken:3x4")
    assert len(corpus) == 12
    assert {clip.label for clip in corpus} == set(SENTENCES[:4])
    assert {clip.group for clip in corpus} == {voice.name for voice in VOICES[:3]}
    assert len({clip.id for clip in corpus}) == len({clip.digest() for clip in corpus}) == 12
    assert corpus.card.status == "synthetic"
    assert len(set(VOICES)) == len(VOICES)
    assert len(set(SENTENCES)) == len(SENTENCES)


def test_sounds_are_reproducible_dry_and_of_a_sentences_length() -> None:
    clip = open_spoken(voices=2, sentences=2, first=5).clips[3]
    samples, rate = clip.read()
    assert (rate, samples.dtype) == (16000, np.float32)
    assert 1.5 < len(samples) / rate < 6.0
    assert np.abs(samples).max() == pytest.approx(0.7, abs=1e-3)
    assert not samples[:1600].any()
    from earmark.corpora import spoken

    spoken._page.cache_clear()
    again, _ = open_spoken(voices=2, sentences=2, first=5).clips[3].read()
    np.testing.assert_array_equal(samples, again)


@pytest.mark.parametrize("spec", ["spoken:0x3", "spoken:4", "spoken:2x41", "spoken:99x1", "spoken:axb"])
def test_wrong_counts_are_told(spec: str) -> None:
    with pytest.raises(UsageError):
        open_corpus(spec)
