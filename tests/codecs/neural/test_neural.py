"""Neural codecs end to end on tiny checkpoints: against the authors' code, the library, and the contract."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.codecs.neural.make_golden import SECONDS
from tests.codecs.neural.tiny_codecs import LIBRARY, RATES, WRITERS, sound, torch, transformers

from earmark.codecs.catalogue import open_codec
from earmark.codecs.contract import Codec, CodecFailure, Coded
from earmark.codecs.harness import decode, encode, pack, round_trip, unpack
from earmark.errors import UsageError

GOLDEN = np.load(Path(__file__).with_name("golden.npz"))
ALL = (*WRITERS, *LIBRARY)
Where = Callable[[str], Path]


@cache
def opened(name: str, where: Where, **options: Any) -> Codec:
    """A codec with its network; tests share those of the same options, since coding keeps no state."""
    family, _, kbps = name.partition("@")
    pickled = {} if name in LIBRARY else {"allow_pickle": True}
    return open_codec(f"{family}:{where(name)}@{kbps}", **pickled | options)


# --- the same numbers as others get -------------------------------------------------------------------------


@pytest.mark.parametrize("name", WRITERS)
def test_tokens_and_sounds_are_those_of_the_authors_code(name: str, checkpoint: Where) -> None:
    codec = opened(name, checkpoint)
    coded = codec.encode(sound(RATES[name], SECONDS))
    family = name.partition("@")[0]
    np.testing.assert_array_equal(coded.tokens, GOLDEN[f"{family}.tokens"])
    samples = codec.decode(coded)
    expected = GOLDEN[f"{family}.samples"]
    np.testing.assert_allclose(samples, expected, atol=1e-5 * np.abs(expected).max())
    assert len(np.unique(GOLDEN[f"{family}.tokens"])) > 20
    assert expected.std() > 0.01


def _library(name: str, place: Path, clip: Any) -> tuple[Any, Any]:
    """A direct call of the library: tokens, and the sound it makes of them."""
    given = torch.from_numpy(clip)[None, None]
    if name == "encodec@6":
        model = transformers.EncodecModel.from_pretrained(place).eval()
        found = model.encode(given, bandwidth=6.0)
        return found.audio_codes[0, 0], model.decode(found.audio_codes, found.audio_scales).audio_values
    if name == "dac_16khz@6":
        model = transformers.DacModel.from_pretrained(place).eval()
        codes = model.encode(given).audio_codes
        return codes[0], model.decode(audio_codes=codes).audio_values
    if name == "mimi@1.1":
        model = transformers.MimiModel.from_pretrained(place).eval()
        codes = model.encode(given, num_quantizers=8).audio_codes
        return codes[0], model.decode(codes).audio_values
    model = transformers.XcodecModel.from_pretrained(place).eval()
    codes = model.encode(given, bandwidth=2.0).audio_codes
    return codes[0], model.decode(codes).audio_values


@pytest.mark.parametrize("name", LIBRARY)
def test_the_library_gives_the_same(name: str, checkpoint: Where) -> None:
    clip = sound(RATES[name], 0.48)  # whole frames of all four
    codec = opened(name, checkpoint)
    coded = codec.encode(clip)
    with torch.inference_mode():
        codes, samples = _library(name, checkpoint(name), clip)
    np.testing.assert_array_equal(coded.tokens, codes)
    np.testing.assert_allclose(codec.decode(coded), samples.reshape(-1)[: len(clip)], atol=1e-5)
    assert len(np.unique(codes)) > 15


# --- the contract --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
def test_a_clip_goes_there_and_back_through_bytes_alone(name: str, checkpoint: Where) -> None:
    codec = opened(name, checkpoint)
    card, clip = codec.card, sound(RATES[name], 0.4, seed=1)
    found = encode(codec, clip, card.rate)
    tokens = found.coded.tokens
    assert tokens is not None
    assert tokens.dtype == np.int64
    assert card.codebooks == len(tokens)
    assert card.frame_rate is not None
    frames = tokens.shape[1]
    # A spectrogram has one frame more, and SNAC fills whole windows.
    most = 0.4 * card.frame_rate + (5 if name == "snac_32khz@1.9" else 2)
    assert math.ceil(0.4 * card.frame_rate) <= frames <= most
    assert (tokens >= 0).all()
    assert (tokens < np.array(card.codebook_sizes)[:, None]).all()
    assert found.bits == frames * sum(map(math.log2, card.codebook_sizes))
    assert found.header_bits == (32 if name.startswith("funcodec") else 0)

    again = pickle.loads(pickle.dumps(codec))  # without the weights: they are read again
    first = decode(codec, found.coded, card.rate, len(clip))
    second = decode(again, unpack(pack(found.coded)), card.rate, len(clip))
    np.testing.assert_array_equal(first, second)
    assert first.std() > 0
    assert np.isfinite(first).all()


@pytest.mark.parametrize("name", ALL)
def test_short_and_empty_clips(name: str, checkpoint: Where) -> None:
    codec = opened(name, checkpoint)
    empty = codec.encode(np.zeros(0, np.float32))
    assert empty.tokens is not None
    assert empty.tokens.shape == (codec.card.codebooks, 0)
    assert len(codec.decode(empty)) == 0
    for samples in (1, codec.card.rate // 100):
        clip = sound(codec.card.rate, 1.0)[:samples]
        coded = codec.encode(clip)
        assert coded.tokens is not None
        assert coded.tokens.shape[1] >= 1
        assert len(codec.decode(coded)) == samples
    assert np.isfinite(codec.decode(codec.encode(np.zeros(4000, np.float32)))).all()


@pytest.mark.parametrize(
    "name", ["encodec@6", "speechtokenizer@4", "audiodec_24k@6.4", "funcodec_zh_en_16k_nq32ds640@8"]
)
def test_fewer_codebooks_are_the_first_of_all(name: str, checkpoint: Where) -> None:
    whole, part = opened(name, checkpoint), opened(name, checkpoint, codebooks=3)
    clip = sound(whole.card.rate, 0.3)
    everything, some = whole.encode(clip), part.encode(clip)
    assert everything.tokens is not None
    np.testing.assert_array_equal(some.tokens, everything.tokens[:3])
    card = part.card
    assert (card.codebooks, len(card.codebook_sizes), card.paper_code) == (3, 3, "")
    assert card.frame_rate is not None
    assert card.kbps == pytest.approx(card.frame_rate * 30 / 1000)
    assert card.name == f"{whole.card.name.rpartition('@')[0]}@{card.kbps:.4g}"
    assert np.abs(part.decode(some) - whole.decode(everything)).max() > 1e-4


def test_rates_of_one_checkpoint_are_prefixes_too(checkpoint: Where) -> None:
    place = checkpoint("encodec@6")
    clip = sound(24000, 0.3)
    rows = {kbps: open_codec(f"encodec:{place}@{kbps}").encode(clip).tokens for kbps in (1.5, 3, 24)}
    assert [len(tokens) for tokens in rows.values() if tokens is not None] == [2, 4, 32]
    np.testing.assert_array_equal(rows[3][:2], rows[1.5])  # type: ignore[index]
    card = open_codec(f"encodec:{place}@12").card
    assert (card.paper_code, card.kbps, card.checkpoint) == ("E4", 12, place.name)
    assert "transformers" in card.version


def test_two_threads_share_a_codec(checkpoint: Where) -> None:
    codec = opened("snac_24khz@0.98", checkpoint)
    clips = [sound(24000, 0.2, seed) for seed in range(4)]
    alone = [round_trip(codec, clip, 24000).samples for clip in clips]
    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(lambda clip: round_trip(codec, clip, 24000).samples, clips))
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one, other)


def test_loudness_travels_in_the_header(checkpoint: Where) -> None:
    """FunCodec hears every clip equally loud: tokens are the same, and what comes back is as loud as what went in."""
    codec = opened("funcodec_en_libritts_16k_nq32ds320@16", checkpoint)
    clip = sound(16000, 0.3)
    loud, soft = codec.encode(clip), codec.encode(clip / 4)
    np.testing.assert_array_equal(loud.tokens, soft.tokens)
    np.testing.assert_allclose(codec.decode(soft), codec.decode(loud) / 4, rtol=1e-4, atol=1e-6)
    with pytest.raises(CodecFailure, match="loudness"):
        codec.decode(replace(loud, header=b""))


def test_the_vocoder_decodes_unless_told_otherwise(checkpoint: Where) -> None:
    name = "audiodec_24k@6.4"
    clip = sound(24000, 0.2)
    voiced, symmetric = opened(name, checkpoint), opened(name, checkpoint, decoder="symmetric")
    coded = voiced.encode(clip)
    np.testing.assert_array_equal(coded.tokens, symmetric.encode(clip).tokens)
    assert np.abs(voiced.decode(coded) - symmetric.decode(coded)).max() > 1e-3
    assert voiced.card.version != symmetric.card.version
    names = sorted(checkpoint(name).glob("*/*"))
    alone = open_codec(f"audiodec_24k:{names[0]}@6.4", allow_pickle=True)
    np.testing.assert_array_equal(alone.decode(coded), symmetric.decode(coded))
    joined = open_codec(f"audiodec_24k:{names[0]}@6.4", allow_pickle=True, vocoder=str(names[1]))
    np.testing.assert_array_equal(joined.decode(coded), voiced.decode(coded))
    with pytest.raises(UsageError, match="no decoder other"):
        opened(name, checkpoint, decoder="other")


def test_what_is_no_code_is_refused(checkpoint: Where) -> None:
    codec = opened("speechtokenizer@4", checkpoint)
    for tokens in (None, np.zeros((7, 3), np.int64), np.full((8, 3), 1024), np.full((8, 3), -1)):
        with pytest.raises(CodecFailure, match="speechtokenizer@4"):
            codec.decode(Coded(960, tokens=tokens))


def test_what_must_be_whole_takes_all_codebooks(checkpoint: Where) -> None:
    for name in ("academicodec_16k_320d@2", "snac_24khz@0.98"):
        with pytest.raises(UsageError, match="needs all of its"):
            opened(name, checkpoint, codebooks=2)
