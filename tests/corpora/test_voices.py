"""Spoken words by espeak-ng: voiced, the same every time, and a plain sentence when the extra is absent."""

from __future__ import annotations

import io
import pickle
import sys

import numpy as np
import pytest

from earmark.corpora import _espeak as espeak
from earmark.corpora import _voices as voices
from earmark.corpora._voices import HELD_OUT, LANGUAGES, open_voices, words_of
from earmark.corpora.clips import Clip
from earmark.errors import InputError, MissingExtra, UsageError


@pytest.fixture(autouse=True)
def _fresh_pages() -> None:
    voices._page.cache_clear()


def needs_espeak() -> None:
    pytest.importorskip("espeakng_loader", reason="the extra `voices` (espeakng-loader) is not installed")


def made(clip: Clip) -> np.ndarray:
    assert clip.make is not None
    samples, rate = clip.make()
    assert rate == 16_000
    return samples


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "espeakng_loader", None)
    with pytest.raises(MissingExtra, match=r"pip install \"earmark\[voices\]\""):
        open_voices()


def test_words_are_embedded_for_every_language() -> None:
    assert not set(LANGUAGES) & set(HELD_OUT)
    for language in LANGUAGES + HELD_OUT:
        words = words_of(language)
        assert len(set(words)) == len(words) >= 10


def test_default_corpus_holds_languages_out() -> None:
    needs_espeak()
    corpus = open_voices()
    assert corpus.card.status == "synthetic"
    assert "SYNTHETIC" in corpus.card.title
    subsets = corpus.subsets()
    assert list(subsets) == ["SYN-VW", "SYN-VO"]
    assert {str(clip.label).rpartition("_")[0] for clip in subsets["SYN-VO"]} <= set(HELD_OUT)
    assert len({clip.id for clip in corpus}) == len({clip.recipe for clip in corpus}) == len(corpus) == 1728


@pytest.mark.parametrize("language", ["de", "hi", *HELD_OUT])
def test_languages_are_voiced(language: str) -> None:
    needs_espeak()
    clips = open_voices(words=15, languages=[language], variants=["f2"]).clips
    sounds = [made(clip) for clip in clips]
    assert len(clips) == 2 * len(words_of(language))
    for samples in sounds:
        assert samples.dtype == np.float32
        assert np.isfinite(samples).all()
        assert 0.1 < len(samples) / 16_000 < 2.5
        assert 0.01 < np.abs(samples).max() < 1.0
    assert len({samples.tobytes() for samples in sounds}) == len(sounds)


def test_same_samples_in_any_order_and_from_a_pickle() -> None:
    needs_espeak()
    clips = open_voices(words=4, languages=["sw"], variants=["f2", "m1"]).clips
    forward = [made(clip) for clip in clips]
    voices._page.cache_clear()
    backward = [made(pickle.loads(pickle.dumps(clip))) for clip in reversed(clips)]
    assert all(np.array_equal(one, two) for one, two in zip(forward, reversed(backward), strict=True))


def test_more_words_do_not_change_the_first() -> None:
    needs_espeak()
    few, many = (open_voices(words=count, languages=["qu"], variants=["m3"]).clips for count in (2, 6))
    for one, two in zip(few, many, strict=False):
        assert one.recipe == two.recipe
        assert np.array_equal(made(one), made(two))


def test_words_of_ones_own() -> None:
    needs_espeak()
    clips = open_voices(words={"en-gb": ["kettle"], "gn": ["5"]}, variants=1).clips
    assert [clip.label for clip in clips] == ["en-gb_kettle"] * 2 + ["gn_5"] * 2
    assert all(len(made(clip)) > 1600 for clip in clips)


def test_a_silent_word_is_named() -> None:
    needs_espeak()
    clip = open_voices(words={"de": ["."]}, variants=1).clips[0]
    with pytest.raises(InputError, match=r"silent on '\.'"):
        made(clip)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"languages": ["swa"]}, "no language 'swa'"),
        ({"languages": ["fo"]}, "no dictionary"),
        ({"variants": ["anie"]}, 'Did you mean "Annie"'),
        ({"variants": 0}, "between 1 and"),
        ({"words": 99}, "between 1 and 15"),
        ({"words": {"de": ["Haus"]}, "languages": ["fr"]}, "No words were given"),
    ],
)
def test_wrong_words(options: dict[str, object], message: str) -> None:
    needs_espeak()
    with pytest.raises(UsageError, match=message):
        open_voices(**options)  # type: ignore[arg-type]


def test_worker_names_a_missing_voice(capsys: pytest.CaptureFixture[str]) -> None:
    needs_espeak()
    import json

    import espeakng_loader

    page = {
        "library": espeakng_loader.get_library_path(),
        "data": espeakng_loader.get_data_path(),
        "voice": "nowhere",
        "lines": [],
    }
    assert espeak.main(io.BytesIO(json.dumps(page).encode()), io.BytesIO()) == 1
    assert "nowhere" in capsys.readouterr().err
