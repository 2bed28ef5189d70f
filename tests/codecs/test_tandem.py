"""A codec after itself."""

from __future__ import annotations

import numpy as np
import pytest
from tests.codecs.sounds import snr, voice

from earmark.codecs.catalogue import open_codec
from earmark.codecs.tandem import tandem
from earmark.errors import UsageError


@pytest.mark.parametrize("name", ["opus@12", "mp3@16", "g726@24", "amr_nb@12.2"])
def test_every_pass_takes_something_away(name: str) -> None:
    codec = open_codec(name)
    clip = voice(16000)
    delay = (codec.card.delay or 0) / codec.card.rate
    passes = list(tandem(codec, clip, 16000, 3, delay))
    assert [len(heard) for heard in passes] == [len(clip)] * 3
    # Against the first pass: filters of speech coders turn phases, which the clean clip would hold against pass 1.
    distance = [snr(passes[0], heard) for heard in passes[1:]]
    assert distance[0] > distance[1]
    assert np.isfinite(distance).all()


def test_passes_stay_aligned() -> None:
    """22 samples of delay a pass would be 88 after four, which leaves nothing of the waveform at 440 Hz."""
    codec = open_codec("g722@64")
    clip = voice(16000)
    heard = list(tandem(codec, clip, 16000, 4, 22 / 16000))[-1]
    assert snr(clip, heard) > 10


def test_the_identity_never_tires() -> None:
    clip = np.round(voice(44100, 0.2) * 32768) / np.float32(32768)
    for heard in tandem(open_codec("pcm"), clip, 44100, 5, 0.0):
        np.testing.assert_array_equal(heard, clip)


def test_no_passes_are_refused() -> None:
    with pytest.raises(UsageError, match="at least 1"):
        next(tandem(open_codec("pcm"), voice(8000), 8000, 0, 0.0))
