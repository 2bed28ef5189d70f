"""Tokenizers that encode and do not decode: checked, run, counted, and heard through their tokens."""

from __future__ import annotations

import math
import pickle
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import soundfile
from tests.representations.codec_toys import QUICK, Sixteen, voiced

from earmark.codecs._adapted import Adapted
from earmark.codecs.conformance import TOKENIZER_CHECKS, check_codec
from earmark.codecs.contract import ENCODE_ONLY, CodecCard, CodecFailure, Coded
from earmark.codecs.harness import encode
from earmark.codecs.runs.runner import run_codecs
from earmark.codecs.tokens import token_statistics
from earmark.errors import InputError
from earmark.extractors.adapters.tokens import Tokens
from earmark.submissions import check, read_document

SIZES = (8, 3)


class Peaks:
    """Two tokens for each 20 ms: where the loudest sample is, and its sign or silence."""

    card: ClassVar[Any] = {"name": "peaks", "rate": 16000, "codebook_sizes": SIZES, "frame_rate": 50.0}

    def encode(self, waveform: Any) -> Any:
        frames = np.pad(waveform, (0, -len(waveform) % 320)).reshape(-1, 320)
        places = np.abs(frames).argmax(1)
        signs = np.sign(frames[np.arange(len(frames)), places]).astype(int) + 1
        return np.stack([places // 40, signs])


class Forgetful(Peaks):
    """A packet codec whose author forgot `decode`."""

    def encode(self, waveform: Any) -> Any:
        return [waveform.tobytes()]


class Counting(Peaks):
    """Says how many clips came before."""

    def __init__(self) -> None:
        self.clips = 0

    def encode(self, waveform: Any) -> Any:
        self.clips += 1
        tokens = super().encode(waveform)
        return np.stack([(tokens[0] + self.clips) % 8, tokens[1]])


class Constant(Peaks):
    def encode(self, waveform: Any) -> Any:
        return np.zeros_like(super().encode(waveform))


class Beyond(Peaks):
    """More entries than its card states."""

    def encode(self, waveform: Any) -> Any:
        return super().encode(waveform) + 1


class Unhurried(Peaks):
    """Its card states no frame rate, and it fails on silence."""

    card: ClassVar[Any] = CodecCard(name="unhurried", family="peaks", rate=16000, codebook_sizes=SIZES)

    def encode(self, waveform: Any) -> Any:
        if not np.any(waveform):
            raise ValueError("nothing to hear")
        return Coded(len(waveform), tokens=super().encode(waveform))


# --- the contract --------------------------------------------------------------------------------------------


def test_what_has_no_decode_only_encodes() -> None:
    codec = pickle.loads(pickle.dumps(Adapted(Peaks())))
    assert codec.card.encode_only
    made = encode(codec, voiced(0), 16000)
    assert made.coded.tokens is not None
    assert made.bits == math.ceil(made.coded.tokens.shape[1] * (3 + math.log2(3)) - 1e-9)
    with pytest.raises(CodecFailure, match=f"peaks: {ENCODE_ONLY}"):
        codec.decode(made.coded)
    assert not Adapted(Sixteen()).card.encode_only


def test_packets_that_nobody_decodes_are_no_tokens() -> None:
    with pytest.raises(CodecFailure, match="there is no decode, and encode returned packets"):
        encode(Adapted(Forgetful()), voiced(0), 16000)


# --- the checks ----------------------------------------------------------------------------------------------


def found(codec: type) -> dict[str, tuple[str, str]]:
    return {name: (status, sentence) for name, status, sentence in check_codec(codec(), fresh=codec)}


def test_a_tokenizer_passes_checks_of_its_own() -> None:
    results = found(Peaks)
    assert list(results) == [one.__name__ for one in TOKENIZER_CHECKS]
    assert {name for name, (status, _) in results.items() if status != "pass"} == {"card"}  # no licence, title, kbps
    assert "there is no decode" in results["encodes"][1]


@pytest.mark.parametrize(
    ("codec", "name", "sentence"),
    [
        (Forgetful, "encodes", "there is no decode, and encode returned packets"),
        (Counting, "tokens_of_the_clip", "Encoding a clip after another gives other tokens"),
        (Constant, "encodes", "all the same"),
        (Beyond, "encodes", "has 8 entries and a token of 1 to 8"),
        (Unhurried, "silence", "nothing to hear"),
    ],
)
def test_a_broken_tokenizer_fails_where_it_breaks(codec: type, name: str, sentence: str) -> None:
    status, said = found(codec)[name]
    assert status == "fail"
    assert sentence in said


# --- runs ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, dict[str, Any], Path]:
    """A run of two tokenizers beside a codec, with tasks, a second pass, lost packets and a report."""
    folder = tmp_path_factory.mktemp("tokenizers")
    for seed in range(4):
        (folder / "sounds" / f"k{seed % 2}").mkdir(parents=True, exist_ok=True)
        soundfile.write(folder / "sounds" / f"k{seed % 2}" / f"{seed}.wav", voiced(seed), 16000)
    soundfile.write(folder / "sounds" / "k0" / "silence.wav", np.zeros(8000, np.float32), 16000)
    config = {
        **QUICK, "codecs": ["given"], "corpus": str(folder / "sounds"), "category": "speech",
        "into": str(folder / "run"), "cache": {"url": str(folder / "cache")}, "tandem": 2, "loss": [10],
        "retention": "logmel", "report": True,
    }  # fmt: skip
    codecs: list[Any] = [Peaks(), Unhurried(), Sixteen()]
    return run_codecs(config, codecs=codecs), config, folder


def rows_of(run: Any, system: str) -> dict[tuple[str, str], Any]:
    rows = [row for row in run.scores if row.system == system and not row.subset.startswith("mean:")]
    return {(row.protocol, row.metric): row for row in rows}


def test_rate_and_tokens_are_measured_and_nothing_of_the_sound(finished: tuple[Any, dict[str, Any], Path]) -> None:
    run, _, folder = finished
    rows = rows_of(run, "peaks")
    clips = [soundfile.read(path, dtype="float32")[0] for path in sorted((folder / "sounds").rglob("*.wav"))]
    tokens = [Peaks().encode(clip) for clip in clips]
    expected = token_statistics(tokens, SIZES, 50.0)
    bits = sum(math.ceil(array.shape[1] * (3 + math.log2(3)) - 1e-9) for array in tokens)
    assert rows["all", "kbps"].value == pytest.approx(bits / sum(map(len, clips)) * 16)
    for metric, value in (
        ("token_usage", expected.usage),
        ("token_entropy", expected.entropy_bits),
        ("token_perplexity", expected.perplexity),
        ("entropy_kbps", expected.entropy_kbps),
    ):
        assert rows["all", metric].value == pytest.approx(value)
    assert rows["all", "encode_rtf"].status == "ok"
    counted = {"kbps", "header_kbps", "encode_rtf", "token_usage", "token_entropy", "token_perplexity", "entropy_kbps"}
    others = [row for (_, metric), row in rows.items() if metric not in counted]
    assert len(others) > 15
    for row in others:
        assert (row.status, row.value) == ("not_applicable", None)
        assert ENCODE_ONLY in row.reason
    assert {("all", "overall"), ("all", "delay_ms"), ("all", "decode_rtf"), ("tandem:2", "mel_distance")} <= set(rows)
    assert any("earmark run" in row.reason for row in others), "a task says where content is measured"


def test_a_codec_beside_it_is_as_it_was(finished: tuple[Any, dict[str, Any], Path]) -> None:
    rows = rows_of(finished[0], "sixteen")
    assert rows["all", "mel_distance"].status == "ok"
    assert rows["all", "decode_rtf"].status == "ok"


def test_frames_are_counted_where_none_are_stated_and_a_failed_clip_is_a_failure(
    finished: tuple[Any, dict[str, Any], Path],
) -> None:
    rows = rows_of(finished[0], "unhurried")
    assert "50" in rows["all", "entropy_kbps"].reason
    assert "frames a second were counted" in rows["all", "entropy_kbps"].reason
    assert rows["all", "kbps"].n == 4
    assert "nothing to hear" in rows["all", "kbps"].reason


def test_report_and_submission_know_tokenizers(finished: tuple[Any, dict[str, Any], Path]) -> None:
    run, _, _ = finished
    page = (run.folder / "report.html").read_text("utf-8")
    assert "peaks" in page
    assert check(read_document((run.folder / "submission.json").read_bytes())).problems == []


def test_nothing_is_encoded_twice(finished: tuple[Any, dict[str, Any], Path]) -> None:
    _, config, folder = finished
    again = run_codecs({**config, "into": str(folder / "again"), "report": False}, codecs=[Peaks()])
    assert "code" not in again.counts


# --- as a representation -------------------------------------------------------------------------------------


def test_the_tokenizers_own_vectors_come_first() -> None:
    class Embedding(Peaks):
        codebook_vectors = (np.zeros((8, 2)), np.zeros((3, 2)))

        def embed(self, tokens: Any) -> Any:
            return tokens.T * 2.0

    frames = Tokens(Embedding()).extract([voiced(0)])[0]
    np.testing.assert_array_equal(frames.values, 2.0 * Peaks().encode(voiced(0)).T)
    assert frames.valid == len(frames.values)


def test_entries_of_a_frame_are_added() -> None:
    class Residual(Peaks):
        codebook_vectors = tuple(np.random.default_rng(0).standard_normal((size, 5)) for size in SIZES)

    tokens = Peaks().encode(voiced(1))
    expected = [sum(Residual.codebook_vectors[book][entry] for book, entry in enumerate(frame)) for frame in tokens.T]
    np.testing.assert_allclose(Tokens(Residual()).extract([voiced(1)])[0].values, expected)


def test_without_vectors_entries_are_counted() -> None:
    extractor = Tokens(Peaks())
    vector = extractor.extract([voiced(2)])[0].values[0]
    tokens = Peaks().encode(voiced(2))
    expected = [np.mean(tokens[book] == entry) for book, size in enumerate(SIZES) for entry in range(size)]
    np.testing.assert_allclose(vector, expected, atol=1e-6)
    assert (extractor.card.name, extractor.card.rate, extractor.has_own_card) == ("peaks", 16000, True)


def test_what_cannot_be_heard_is_told() -> None:
    class Nameless:
        rate = 16000

        def encode(self, waveform: Any) -> Any:
            return Peaks().encode(waveform)

    class Uneven(Peaks):
        codebook_vectors = (np.zeros((8, 2)), np.zeros((3, 4)))

    for model, sentence in (
        (Forgetful(), "only tokens can be heard"),
        (Nameless(), "no vectors of them: give it `embed`"),
        (Uneven(), "all of the same D"),
        (Beyond(), "has 8 entries and a token of 1 to 8"),
    ):
        with pytest.raises(InputError, match=sentence):
            Tokens(model).extract([voiced(0)])
