"""Packets that are lost: which, and what is heard instead."""

from __future__ import annotations

import numpy as np
import pytest
from tests.codecs.sounds import snr, voice

from earmark.codecs._adapted import Adapted
from earmark.codecs.catalogue import card_of, open_codec
from earmark.codecs.contract import CodecCard, Coded, Measured
from earmark.codecs.harness import round_trip
from earmark.codecs.packet_loss import decode_lossy, frames_of, lose, repeat_last
from earmark.errors import UsageError

CONCEALING = [
    "opus@12", "opus@64", "amr_nb@4.75", "amr_nb@12.2", "g723_1@6.3", "g722@64", "g722@48", "g726@24", "mulaw@64",
    "alaw@64", "aac@32", "ac3@64", "sbc@64", "amr_wb@12.65", "speex@8", "speex_wb@16.8", "codec2@1.3",
]  # fmt: skip
CONTINUES = ["opus@12", "opus@64", "amr_nb@12.2", "g723_1@6.3", "codec2@1.3"]
SILENT = ["mulaw@64", "alaw@64", "g722@64", "g726@24", "amr_wb@12.65", "speex@8"]


def test_losses_are_drawn_by_the_seed_and_as_many_as_asked() -> None:
    lost = lose(100_000, 10, seed=1)
    np.testing.assert_array_equal(lost, lose(100_000, 10, seed=1))
    assert (lost != lose(100_000, 10, seed=2)).any()
    assert lost.mean() == pytest.approx(0.10, abs=0.01)
    assert not lose(1000, 0, seed=0).any()


def runs(lost: np.ndarray) -> float:
    """The mean length of runs of losses."""
    starts = np.flatnonzero(np.diff(lost.astype(int), prepend=0) == 1)
    return float(lost.sum() / len(starts))


@pytest.mark.parametrize("burst", [1.0, 3.0])
def test_bursts_are_as_long_as_asked(burst: float) -> None:
    lost = lose(200_000, 20, seed=0, burst=burst)
    assert lost.mean() == pytest.approx(0.20, abs=0.01)
    # Losses that know nothing of each other come in runs of 1 / (1 - 0.2).
    assert runs(lost) == pytest.approx(burst / 0.8, rel=0.05)


@pytest.mark.parametrize(("percent", "burst"), [(100, 1), (-1, 1), (5, 0.5)])
def test_impossible_losses_are_refused(percent: float, burst: float) -> None:
    with pytest.raises(UsageError, match="not possible"):
        lose(10, percent, 0, burst)


def test_the_last_that_arrived_is_repeated() -> None:
    lost = np.array([True, True, False, True, False, False, True])
    assert repeat_last(lost).tolist() == [2, 2, 2, 2, 4, 5, 5]


@pytest.mark.parametrize("name", CONCEALING)
def test_losses_change_their_own_part_and_little_before_it(name: str) -> None:
    codec, rate = open_codec(name), card_of(name).rate
    clip = voice(rate, 2.0)
    whole = round_trip(codec, clip, rate)
    lost = np.zeros(frames_of(whole.coded), np.bool_)
    none = decode_lossy(codec, whole.coded, lost, rate, len(clip))
    assert not isinstance(none, Measured)
    np.testing.assert_array_equal(none, whole.samples)
    hole = slice(len(lost) // 2, len(lost) // 2 + 3)
    lost[hole] = True
    heard = decode_lossy(codec, whole.coded, lost, rate, len(clip))
    assert not isinstance(heard, Measured)
    assert len(heard) == len(whole.samples)
    frame = rate / (codec.card.frame_rate or 1)
    # Frames overlap by at most one in AAC and AC-3; before that nothing has happened yet.
    before = slice(0, int((hole.start - 2) * frame))
    np.testing.assert_array_equal(heard[before], whole.samples[before])
    inside = slice(int(hole.start * frame), int((hole.stop + 2) * frame))
    assert np.abs(heard[inside] - whole.samples[inside]).max() > 1e-3
    assert 0.6 < np.std(heard) / np.std(whole.samples) < 1.3


@pytest.mark.parametrize(("names", "is_silent"), [(CONTINUES, False), (SILENT, True)])
def test_who_conceals_and_who_is_silent(names: list[str], is_silent: bool) -> None:
    for name in names:
        codec, rate = open_codec(name), card_of(name).rate
        time = np.arange(2 * rate) / rate
        steady = sum(np.sin(2 * np.pi * 150 * order * time + order) / order for order in range(1, 15))
        clip = (0.15 * steady).astype(np.float32)
        whole = round_trip(codec, clip, rate)
        lost = np.zeros(frames_of(whole.coded), np.bool_)
        lost[len(lost) // 2] = True
        heard = decode_lossy(codec, whole.coded, lost, rate, len(clip))
        assert not isinstance(heard, Measured)
        frame = rate / (codec.card.frame_rate or 1)
        middle = slice(int((len(lost) // 2 + 0.3) * frame), int((len(lost) // 2 + 0.9) * frame))
        loudness = np.std(heard[middle]) / np.std(whole.samples[middle])
        assert (loudness < 0.05) == is_silent, name
        assert loudness > 0.3 or is_silent, name


@pytest.mark.parametrize("name", ["opus@24", "amr_nb@12.2", "mulaw@64"])
def test_more_loss_is_worse(name: str) -> None:
    codec, rate = open_codec(name), card_of(name).rate
    clip = voice(rate, 3.0)
    whole = round_trip(codec, clip, rate)
    kept = []
    for percent in (2, 10, 40):
        lost = lose(frames_of(whole.coded), percent, seed=3)
        assert lost.any()
        heard = decode_lossy(codec, whole.coded, lost, rate, len(clip))
        assert not isinstance(heard, Measured)
        kept.append(snr(whole.samples, heard))
    assert kept == sorted(kept, reverse=True)


@pytest.mark.parametrize(
    ("name", "said"),
    [("pcm", "one packet"), ("flac", "does not say"), ("mp3@32", "does not say"), ("vorbis@64", "does not say")],
)
def test_codecs_without_frames_to_lose_are_not_applicable(name: str, said: str) -> None:
    codec = open_codec(name)
    clip = voice(44100)
    coded = round_trip(codec, clip, 44100).coded
    answer = decode_lossy(codec, coded, np.zeros(frames_of(coded), np.bool_), 44100, len(clip))
    assert isinstance(answer, Measured)
    assert answer.status == "not_applicable"
    assert answer.value is None
    assert said in answer.reason


class Levels:
    """A token for each 100 samples: the level of its frame."""

    card = CodecCard(name="levels", family="levels", rate=8000, frame_rate=80.0, codebook_sizes=(256,), delay=0)

    def encode(self, waveform: np.ndarray) -> Coded:
        frames = np.pad(waveform, (0, -len(waveform) % 100)).reshape(-1, 100)
        return Coded(len(waveform), tokens=np.rint(255 * frames[:, :1].T).astype(np.int64))

    def decode(self, coded: Coded) -> np.ndarray:
        assert coded.tokens is not None
        return np.repeat(coded.tokens[0] / 255, 100)[: coded.samples].astype(np.float32)


def test_lost_tokens_repeat_the_last_that_arrived() -> None:
    clip = np.repeat(np.arange(8) / 8, 100).astype(np.float32)
    codec = Levels()
    coded = codec.encode(clip)
    lost = np.array([False, False, True, True, False, False, False, True])
    heard = decode_lossy(codec, coded, lost, 8000, len(clip))
    assert not isinstance(heard, Measured)
    np.testing.assert_allclose(heard[::100], np.array([0, 1, 1, 1, 4, 5, 6, 6]) / 8, atol=1 / 255)
    gone = decode_lossy(codec, coded, np.ones(8, np.bool_), 8000, len(clip))
    assert isinstance(gone, Measured)
    assert gone.status == "not_applicable"
    with pytest.raises(UsageError, match="one for each"):
        decode_lossy(codec, coded, np.ones(3, np.bool_), 8000, len(clip))


@pytest.mark.parametrize("name", ["opus@24", "codec2@2.4", "mulaw@64"])
def test_when_all_is_lost_nobody_is_measured(name: str) -> None:
    """Codec 2 would repeat a frame that never arrived, and others would fail where no codec could do better."""
    codec, rate = open_codec(name), card_of(name).rate
    clip = voice(rate, 0.2)
    coded = round_trip(codec, clip, rate).coded
    answer = decode_lossy(codec, coded, np.ones(frames_of(coded), np.bool_), rate, len(clip))
    assert isinstance(answer, Measured)
    assert answer.status == "not_applicable"


class Concealer:
    """A stranger's codec without a card, which says how it conceals."""

    rate = 8000

    def encode(self, waveform: np.ndarray) -> list[bytes]:
        data = np.rint(127 * waveform).astype(np.int8).tobytes()
        return [data[start : start + 160] for start in range(0, len(data), 160)]

    def decode(self, packets: list[bytes]) -> np.ndarray:
        return (np.frombuffer(b"".join(packets), np.int8) / 127).astype(np.float32)

    def decode_with_losses(self, packets: list[bytes], lost: np.ndarray) -> np.ndarray:
        return self.decode([bytes([64]) * len(one) if gone else one for one, gone in zip(packets, lost, strict=True)])


def test_a_strangers_concealment_is_used() -> None:
    """Its method is passed on by the adapter and is no attribute of the adapter's class."""
    codec, clip = Adapted(Concealer()), voice(8000)
    coded = round_trip(codec, clip, 8000).coded
    lost = np.zeros(frames_of(coded), np.bool_)
    lost[3] = True
    heard = decode_lossy(codec, coded, lost, 8000, len(clip))
    assert not isinstance(heard, Measured)
    np.testing.assert_allclose(heard[480:640], 64 / 127, atol=1e-6)
