"""Recognisers: Moonshine and PocketSphinx on synthetic sentences, a tiny Whisper, and the counts of errors."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.extractors.test_packaged import needs

from earmark.corpora.clips import Clip
from earmark.errors import InputError, UsageError
from earmark.probes import Responses, Row, open_task
from earmark.probes.asr import Recognition


class Parrot:
    """Writes down what it was told for each clip."""

    name = "parrot"

    def transcribe(self, clips: Sequence[Clip], *, progress: Any = False) -> Responses:
        return Responses(
            tuple(clip.id for clip in clips), texts=tuple(clip.label or "" for clip in clips), model=self.name
        )


def by_metric(found: list[Row]) -> dict[str, Row]:
    return {one.metric: one for one in found}


def said(**texts: str) -> Responses:
    return Responses(tuple(texts), texts=tuple(texts.values()))


CLIPS = [
    Clip("a", "the cat sat down", group="x"),
    Clip("b", "a dog barks", group="x"),
    Clip("c", "rain falls today", group="y"),
    Clip("d", "thunder", group="y"),
]


def test_words_are_counted_against_transcripts_and_against_the_clean_text() -> None:
    pytest.importorskip("jiwer")
    task = Recognition(Parrot(), bootstrap=50)
    clean = said(a="the cat sat down", b="a log barks", c="rain falls today", d="under")
    coded = said(a="The bat sat", b="a log barks", c="rain falls to day!", d="under under")
    found = by_metric(task.score(CLIPS, clean, coded))
    assert found["wer"].value == pytest.approx((2 + 1 + 2) / 10)
    assert found["wer:difference"].value == pytest.approx((2 + 0 + 2) / 10)
    assert found["dwer"].value == pytest.approx((2 + 0 + 2 + 1) / 11)
    assert (found["wer"].n, found["dwer"].n) == (3, 4)
    assert found["wer"].reason == "10 words; 1 clip without transcript"
    for one in found.values():
        assert one.low is not None
        assert one.high is not None
        assert one.value is not None
        assert one.low <= one.value <= one.high


def test_intervals_draw_groups() -> None:
    pytest.importorskip("jiwer")
    task = Recognition(Parrot(), bootstrap=200)
    clean = said(a="one two", b="one two", c="one two", d="one two")
    coded = said(a="one two", b="one two", c="", d="")
    found = by_metric(task.score(CLIPS, clean, coded))["dwer"]
    assert (found.value, found.low, found.high) == (0.5, 0.0, 1.0)
    alone = [Clip(clip.id, clip.label) for clip in CLIPS * 1]
    found = by_metric(task.score(alone, clean, coded))["dwer"]
    assert found.high is not None
    assert found.low is not None
    assert found.high - found.low <= 1.0


def test_what_cannot_be_counted_has_a_reason() -> None:
    pytest.importorskip("jiwer")
    task = Recognition(Parrot(), bootstrap=10)
    found = by_metric(task.score(CLIPS[3:], said(d=""), said(d="noise")))
    assert {one.status for one in found.values()} == {"not_applicable"}
    assert "no clip has a transcript" in found["wer"].reason
    assert "heard no word" in found["dwer"].reason
    with pytest.raises(UsageError, match="vectors were heard"):
        task.score(CLIPS[3:], said(d=""), Responses(("d",), vectors=np.zeros((1, 2), np.float32)))


def test_pocketsphinx_writes_the_same_whatever_it_heard_before() -> None:
    pytest.importorskip("pocketsphinx")
    pytest.importorskip("espeakng_loader")
    from earmark.corpora.spoken import open_spoken

    clips = list(open_spoken(voices=2, sentences=1, first=39).clips)
    task = open_task("asr?effort=fast&processes=1")
    silent = Clip("silent", samples=np.zeros(16000, np.float32), rate=16000)
    broken = Clip("broken", samples=np.full(16000, np.nan, np.float32), rate=16000)
    empty = Clip("empty", samples=np.zeros(0, np.float32), rate=16000)
    heard = task.listen([*clips, silent, broken, empty])
    assert heard.texts is not None
    assert len(heard.texts[0].split()) >= 3
    assert set(heard.failures) == {"broken", "empty"}
    assert task.listen(clips[1:]).texts == heard.texts[1:2]


# --- Moonshine ------------------------------------------------------------------------------------------------


def spoken(voices: int = 2, sentences: int = 2) -> list[Clip]:
    pytest.importorskip("espeakng_loader")
    from earmark.corpora.spoken import open_spoken

    return list(open_spoken(voices=voices, sentences=sentences, first=4).clips)


@pytest.mark.parametrize("spec", ["asr", "asr:moonshine-base"])
def test_moonshine_understands_synthetic_sentences(spec: str) -> None:
    needs("moonshine")
    task = open_task(f"{spec}?processes=1")
    clips = spoken()
    heard = task.listen(clips)
    assert task.card.model == ("moonshine" if spec == "asr" else "moonshine:base")
    found = by_metric(task.score(clips, heard, heard))
    assert found["wer"].value is not None
    assert found["wer"].value < 0.2
    assert found["dwer"].value == 0.0


def test_moonshine_writes_the_same_whatever_it_heard_before_and_beside() -> None:
    needs("moonshine")
    clips = spoken(3, 1)
    silent = Clip("silent", samples=np.zeros(16000, np.float32), rate=16000)
    broken = Clip("broken", samples=np.full(16000, np.nan, np.float32), rate=16000)
    empty = Clip("empty", samples=np.zeros(0, np.float32), rate=16000)
    heard = open_task("asr?processes=2").listen([*clips, silent, broken, empty])
    assert heard.texts is not None
    assert heard.texts[3] == ""
    assert set(heard.failures) == {"broken", "empty"}
    assert open_task("asr?processes=1").listen(clips[::-1]).texts == heard.texts[:3][::-1]


def test_moonshine_ends_and_cuts_long_clips_where_they_are_quiet() -> None:
    needs("moonshine")
    from earmark.extractors.moonshine import LONGEST, SIZES
    from earmark.probes.moonshine import Network, quiet_parts

    network = Network(SIZES["tiny"])
    rng = np.random.default_rng(0)
    noise = rng.standard_normal(32000).astype(np.float32)
    assert len(network.tokens(noise / 4)) <= 13
    loud = rng.standard_normal(3 * LONGEST).astype(np.float32)
    loud[400000:404000] = loud[800000:801600] = 0.0
    parts = list(quiet_parts(loud))
    np.testing.assert_array_equal(np.concatenate(parts), loud)
    assert [len(part) for part in parts][:2] == [pytest.approx(402000, abs=1300), pytest.approx(398800, abs=2600)]
    assert max(map(len, parts)) <= LONGEST
    assert all(len(part) >= 1600 for part in quiet_parts(loud[: LONGEST + 1]))


def test_words_are_those_of_the_tokenizers_library() -> None:
    needs("moonshine")
    library = pytest.importorskip("tokenizers")
    from earmark.extractors.wheel_weights import paths_of
    from earmark.probes.moonshine import Words

    path = paths_of("moonshine")[2]
    words, expected = Words(path), library.Tokenizer.from_file(str(path))
    for text in ("The cat sat down, at 20 o'clock.", "Zürich — naïve café 🙂", ""):
        tokens = expected.encode(text).ids
        assert words.text(tokens) == expected.decode(tokens).strip() == text


def test_the_old_spelling_of_pocketsphinx_still_names_it() -> None:
    pytest.importorskip("pocketsphinx")
    assert open_task("asr?effort=fast").card.model == "pocketsphinx?effort=fast"
    assert open_task("asr:pocketsphinx").card.model == "pocketsphinx"
    needs("moonshine")
    assert open_task("asr:moonshine:base").card == open_task("asr:moonshine-base").card


# --- Whisper ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests.extractors import tiny_models

    tiny_models.torch.manual_seed(3)
    place = tiny_models.whisper(tmp_path_factory.mktemp("whisper") / "tiny")
    model = tiny_models.transformers.WhisperForConditionalGeneration.from_pretrained(place)
    for parameter in model.model.decoder.parameters():  # as they start, every step repeats the first token
        tiny_models.torch.nn.init.normal_(parameter, std=0.7)
    model.save_pretrained(place)
    letters = "abcdefghijklmnop"
    vocabulary = {"<pad>": 0, "<bos>": 1, "<|endoftext|>": 2, "Ġ": 3} | {one: 4 + n for n, one in enumerate(letters)}
    (place / "vocab.json").write_text(json.dumps(vocabulary))
    (place / "merges.txt").write_text("#version: 0.2\n")
    said = {"tokenizer_class": "WhisperTokenizer", "eos_token": "<|endoftext|>", "bos_token": "<bos>"}
    (place / "tokenizer_config.json").write_text(
        json.dumps({**said, "pad_token": "<pad>", "unk_token": "<|endoftext|>"})
    )
    return place


def test_whisper_writes_what_the_library_writes(tiny: Path) -> None:
    from tests.extractors.tiny_models import sound, torch, transformers

    clips = [Clip(str(n), samples=sound(16000, 0.6 + n, n), rate=16000) for n in range(3)]
    broken = Clip("broken", samples=np.full(16000, np.nan, np.float32), rate=16000)
    task = open_task(f"asr:whisper:{tiny}?tokens=6&device=cpu")
    heard = task.listen([*clips, broken])
    model = transformers.WhisperForConditionalGeneration.from_pretrained(tiny).eval()
    features = transformers.WhisperFeatureExtractor.from_pretrained(tiny)
    words = transformers.AutoTokenizer.from_pretrained(tiny)
    for clip, text in zip(clips, heard.texts or (), strict=True):
        assert clip.samples is not None
        loudest = clip.samples / np.abs(clip.samples).max()
        mel = features([loudest], sampling_rate=16000, return_tensors="pt").input_features
        with torch.inference_mode():
            tokens = model.generate(mel, max_new_tokens=6, do_sample=False)
        assert text == words.batch_decode(tokens, skip_special_tokens=True)[0].strip()
    assert any(heard.texts or ())
    assert set(heard.failures) == {"broken"}
    assert heard.notes == ("1 clip longer than 2 s: the rest was not heard",)


def test_whisper_without_a_tokenizer_is_told(tiny: Path, tmp_path: Path) -> None:
    for name in ("config.json", "model.safetensors", "preprocessor_config.json"):
        (tmp_path / name).write_bytes((tiny / name).read_bytes())
    with pytest.raises(InputError, match=r"tokenizer\.json"):
        open_task(f"asr:whisper:{tmp_path}")
