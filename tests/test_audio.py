"""Audio files: what is read, what is sought, what is refused and in which words."""

from __future__ import annotations

import io
import os
import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from numpy.typing import NDArray

from earmark import audio
from earmark import audio_containers as containers
from earmark.corpora.clips import Clip
from earmark.errors import EarmarkError, InputError, MissingExtra, UsageError

av = pytest.importorskip("av", reason="PyAV decodes M4A and AAC")


def chirp(rate: int = 48_000, seconds: float = 3.0) -> NDArray[np.float32]:
    """A rising tone: every moment differs from every other, and lossy coders make small frames of it."""
    t = np.arange(round(rate * seconds)) / rate
    return (0.5 * np.sin(2 * np.pi * 300 * t * (1 + t / 9))).astype(np.float32)


def encode(
    path: Path, samples: NDArray[np.float32], rate: int, codec: str, container: str, layout: str = "mono"
) -> Path:
    with av.open(str(path), "w", format=container, options={"movflags": "faststart"}) as out:
        stream = out.add_stream(codec, rate=rate, layout=layout)
        frame = av.AudioFrame.from_ndarray(np.atleast_2d(samples), format="fltp", layout=layout)
        frame.rate, frame.pts = rate, 0
        for packet in [*stream.encode(frame), *stream.encode(None)]:
            out.mux(packet)
    return path


def make(folder: Path, kind: str, rate: int = 48_000) -> Path:
    path = folder / f"tone.{kind.split('-')[0]}"
    if kind in ("m4a", "aac"):
        return encode(path, chirp(rate), rate, "aac", {"m4a": "mp4", "aac": "adts"}[kind])
    subtype = {"ogg-opus": "OPUS"}.get(kind)
    soundfile.write(path, chirp(rate), rate, subtype=subtype)
    return path


def refusal(path: Path | str, **span: float) -> str:
    """The sentence with which a file is refused."""
    with pytest.raises(InputError) as caught:
        audio.read(path, **span)  # type: ignore[arg-type]
    text = str(caught.value)
    assert str(path) in text
    assert "\n" not in text
    assert text.endswith(".")
    return text


# --- reading ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["wav", "flac", "ogg", "ogg-opus", "mp3", "m4a", "aac"])
def test_every_format_sounds_the_same(tmp_path: Path, kind: str) -> None:
    samples, rate = audio.read(make(tmp_path, kind))
    assert rate == 48_000
    assert samples.dtype == np.float32
    wanted = chirp()
    # A raw AAC stream keeps the encoder's lead-in, which no header tells.
    lead = 1024 if kind == "aac" else 0
    found = samples[lead : lead + len(wanted)]
    assert len(found) == len(wanted)
    if kind != "aac":
        assert len(samples) == len(wanted)
    middle = slice(4000, -4000)
    # Opus and its relatives keep what is heard, not the phase to the last digit.
    assert np.corrcoef(found[middle], wanted[middle])[0, 1] > 0.99


@pytest.mark.parametrize("kind", ["wav", "flac", "ogg", "ogg-opus", "mp3", "m4a", "aac"])
@pytest.mark.parametrize("rate", [16_000, 48_000])
def test_a_span_is_the_same_as_that_part_of_the_whole(tmp_path: Path, kind: str, rate: int) -> None:
    path = make(tmp_path, kind, rate)
    whole, _ = audio.read(path)
    # AAC fills bands with noise from a generator that a seek does not rewind.
    tolerance = 5e-3 if kind in ("m4a", "aac") else 1e-6
    for start, end in [(0.0, 0.2), (0.01, 0.02), (1.0, 1.5), (2.3, 2.4), (2.5, None), (2.9, 3.0), (None, 0.5)]:
        part, _ = audio.read(path, start=start, end=end)
        first = round((start or 0) * rate)
        wanted = whole[first : None if end is None else round(end * rate)]
        assert len(part) == len(wanted)
        np.testing.assert_allclose(part, wanted, atol=tolerance)


@pytest.mark.parametrize("subtype", ["PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE"])
def test_every_sample_format(tmp_path: Path, subtype: str) -> None:
    soundfile.write(tmp_path / "a.wav", chirp(8000, 0.5), 8000, subtype=subtype)
    samples, rate = audio.read(tmp_path / "a.wav")
    assert rate == 8000
    np.testing.assert_allclose(samples, chirp(8000, 0.5), atol=1 / 120 if subtype == "PCM_U8" else 1e-4)


def test_channels_are_averaged(tmp_path: Path) -> None:
    stereo = np.stack([chirp(96_000, 0.2), np.zeros_like(chirp(96_000, 0.2))], axis=1)
    soundfile.write(tmp_path / "a.wav", stereo, 96_000, subtype="FLOAT")
    samples, rate = audio.read(tmp_path / "a.wav")
    assert rate == 96_000
    np.testing.assert_allclose(samples, chirp(96_000, 0.2) / 2, atol=1e-7)
    encode(tmp_path / "a.m4a", stereo.T.copy(), 48_000, "aac", "mp4", "stereo")
    samples, _ = audio.read(tmp_path / "a.m4a")
    assert 0.2 < np.abs(samples[4000:-4000]).max() < 0.3


def test_bytes_in_memory_read_like_a_file(tmp_path: Path) -> None:
    for kind in ("flac", "m4a"):
        path = make(tmp_path, kind)
        samples, rate = audio.read_bytes(path.read_bytes(), "row 3")
        np.testing.assert_array_equal(samples, audio.read(path)[0])
        assert rate == 48_000
    with pytest.raises(InputError, match=r"^row 3 is empty"):
        audio.read_bytes(b"", "row 3")
    with pytest.raises(InputError, match=r"^row 3 is not readable audio"):
        audio.read_bytes(b"no sound at all" * 20, "row 3")


def test_unicode_and_spaces_in_names(tmp_path: Path) -> None:
    path = tmp_path / "Zaunkönig – ♫ 鳥" / "two words.flac"
    path.parent.mkdir()
    audio.write(path, chirp(16_000, 0.1), 16_000)
    assert len(audio.read(path)[0]) == 1600
    assert audio.probe(path).duration == pytest.approx(0.1)


# --- probing ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["wav", "flac", "ogg", "mp3", "m4a", "aac"])
def test_probe_agrees_with_read(tmp_path: Path, kind: str) -> None:
    path = make(tmp_path, kind)
    found = audio.probe(path)
    samples, rate = audio.read(path)
    assert found.rate == rate
    assert found.channels == 1
    assert found.duration == pytest.approx(len(samples) / rate, abs=1e-4)


def test_probe_refuses_what_read_refuses(tmp_path: Path) -> None:
    (tmp_path / "empty.wav").touch()
    (tmp_path / "text.wav").write_text("these are words\n" * 30)
    for name in ("empty.wav", "text.wav", "missing.wav"):
        with pytest.raises(InputError, match=name):
            audio.probe(tmp_path / name)


# --- refusing -----------------------------------------------------------------------------------------------


def test_missing_folder_and_empty(tmp_path: Path) -> None:
    assert "does not exist" in refusal(tmp_path / "none.wav")
    assert "is a folder" in refusal(tmp_path)
    (tmp_path / "empty.wav").touch()
    assert "is empty (0 bytes)" in refusal(tmp_path / "empty.wav")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are a Unix thing")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    link = tmp_path / "null.wav"
    link.symlink_to(os.devnull)
    assert "not a regular file" in refusal(link)


def test_permission_denied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make(tmp_path, "wav")

    def denied(*_: Any, **__: Any) -> Any:
        raise PermissionError(13, "Permission denied", str(path))

    # The superuser may read everything, so the refusal is played.
    monkeypatch.setattr(Path, "open", denied)
    assert "permission denied" in refusal(path)


@pytest.mark.parametrize("name", ["text.wav", "text.mp3", "text.m4a", "text.raw"])
def test_text_is_not_audio(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("these are words, and no sound\n" * 40)
    assert "is not readable audio" in refusal(tmp_path / name)


def test_a_playlist_is_not_followed(tmp_path: Path) -> None:
    make(tmp_path, "wav")
    (tmp_path / "list.m4a").write_text("#EXTM3U\n#EXT-X-TARGETDURATION:3\n#EXTINF:3,\ntone.wav\n#EXT-X-ENDLIST\n")
    assert "is not readable audio" in refusal(tmp_path / "list.m4a")


@pytest.mark.parametrize("kind", ["wav", "flac", "ogg", "mp3", "m4a", "aac"])
def test_half_a_file(tmp_path: Path, kind: str) -> None:
    whole = make(tmp_path, kind)
    half = tmp_path / f"half.{kind}"
    half.write_bytes(whole.read_bytes()[: whole.stat().st_size // 2 + 1])
    refusal(half)


def test_a_span_before_the_cut_is_still_good(tmp_path: Path) -> None:
    whole = make(tmp_path, "wav")
    half = tmp_path / "half.wav"
    half.write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
    np.testing.assert_array_equal(audio.read(half, start=0.5, end=1.0)[0], audio.read(whole, start=0.5, end=1.0)[0])
    assert "cut short" in refusal(half, start=2.0, end=2.5)


def test_a_wav_written_to_a_pipe_is_whole(tmp_path: Path) -> None:
    data = bytearray(make(tmp_path, "wav").read_bytes())
    place = data.index(b"data")
    data[place + 4 : place + 8] = struct.pack("<I", 0xFFFFFFFF)
    (tmp_path / "piped.wav").write_bytes(data)
    assert len(audio.read(tmp_path / "piped.wav")[0]) == 3 * 48_000


def test_damage_in_the_middle(tmp_path: Path) -> None:
    data = bytearray(make(tmp_path, "flac").read_bytes())
    middle = len(data) // 2
    data[middle : middle + 2000] = b"\xff" * 2000
    (tmp_path / "broken.flac").write_bytes(data)
    assert "damaged or cut short" in refusal(tmp_path / "broken.flac")


def pages(data: bytes) -> list[int]:
    """Where the pages of an OGG file start."""
    starts, place = [], 0
    while place < len(data):
        starts.append(place)
        place += 27 + data[place + 26] + sum(data[place + 27 : place + 27 + data[place + 26]])
    return starts


@pytest.mark.parametrize("kind", ["ogg", "ogg-opus"])
@pytest.mark.parametrize("harm", ["cut between pages", "a page is gone", "one byte", "noise", "a page unmarked"])
def test_an_ogg_that_loses_samples(tmp_path: Path, kind: str, harm: str) -> None:
    rng = np.random.default_rng(0)
    whole = tmp_path / "whole.ogg"
    loud = 0.3 * rng.normal(size=10 * 48_000)  # noise fills many pages
    soundfile.write(whole, loud, 48_000, format="OGG", subtype="OPUS" if kind == "ogg-opus" else "VORBIS")
    assert len(audio.read(whole)[0]) == len(loud)
    data = bytearray(whole.read_bytes())
    starts = pages(bytes(data))
    assert len(starts) > 6
    middle = len(starts) // 2
    if harm == "cut between pages":
        del data[starts[middle] :]
    elif harm == "a page is gone":
        del data[starts[middle] : starts[middle + 1]]
    elif harm == "one byte":
        data[starts[middle] + 300] ^= 0xFF
    elif harm == "noise":
        data[starts[middle] :] = rng.bytes(len(data) - starts[middle])
    else:
        data[starts[middle]] = 0
    harmed = tmp_path / "harmed.ogg"
    harmed.write_bytes(data)
    text = refusal(harmed)
    assert "is damaged: " in text or "is cut short: " in text
    with pytest.raises(InputError, match=r"is damaged|is cut short"):
        audio.read_bytes(bytes(data), "harmed")
    if "cut" not in harm and harm != "noise":
        assert "is damaged" in refusal(harmed, start=0.1, end=0.2)


def test_an_ogg_with_tags_behind_it_is_whole(tmp_path: Path) -> None:
    path = make(tmp_path, "ogg")
    length = len(audio.read(path)[0])
    path.write_bytes(path.read_bytes() + b"TAG" + bytes(125))
    assert len(audio.read(path)[0]) == length


def test_ogg_streams_behind_each_other_are_whole(tmp_path: Path) -> None:
    path = make(tmp_path, "ogg")
    assert not containers.ogg_damage(io.BytesIO(path.read_bytes()))
    assert not containers.ogg_damage(io.BytesIO(path.read_bytes() * 2))


@pytest.mark.parametrize("kind", ["AIFF", "AU", "CAF", "W64", "RF64", "WAV"])
@pytest.mark.parametrize("subtype", ["PCM_16", "FLOAT"])
def test_containers_that_promise_more_than_they_hold(tmp_path: Path, kind: str, subtype: str) -> None:
    path = tmp_path / f"tone.{kind.lower()}"
    soundfile.write(path, chirp(8000)[:12_001], 8000, format=kind, subtype=subtype)
    assert len(audio.read(path)[0]) == 12_001
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    assert "cut short: its header promises" in refusal(path)


def test_a_matroska_file_that_ends_early(tmp_path: Path) -> None:
    path = encode(tmp_path / "tone.mka", chirp(48_000, 6.0), 48_000, "aac", "matroska")
    assert abs(len(audio.read(path)[0]) - 6 * 48_000) < 4096
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    refusal(path)


def test_no_samples(tmp_path: Path) -> None:
    soundfile.write(tmp_path / "none.wav", np.empty(0, np.float32), 16_000)
    assert "holds no samples" in refusal(tmp_path / "none.wav")
    with pytest.raises(InputError, match="holds no samples"):
        audio.probe(tmp_path / "none.wav")


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_that_are_no_numbers(tmp_path: Path, bad: float) -> None:
    samples = chirp(16_000, 0.1)
    samples[7:9] = bad
    soundfile.write(tmp_path / "bad.wav", samples, 16_000, subtype="FLOAT")
    assert "holds 2 NaN or infinite of 1600 samples" in refusal(tmp_path / "bad.wav")


@pytest.mark.parametrize("kind", ["wav", "m4a"])
def test_spans_outside_the_file(tmp_path: Path, kind: str) -> None:
    path = make(tmp_path, kind)
    assert "lasts 3.000 s" in refusal(path, start=2.5, end=4.0)
    assert "lasts 3.000 s" in refusal(path, start=5.0)
    assert "not after its start" in refusal(path, start=2.0, end=1.0)
    assert "give seconds from 0 up" in refusal(path, start=-1.0)
    assert "give seconds from 0 up" in refusal(path, end=float("nan"))
    # Annotations are rounded: a few milliseconds past the end mean the end.
    assert len(audio.read(path, start=2.0, end=3.004)[0]) in (48_000, 48_192)


def test_without_pyav(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make(tmp_path, "m4a")
    (tmp_path / "text.wav").write_text("words\n" * 100)
    monkeypatch.setitem(__import__("sys").modules, "av", None)
    with pytest.raises(MissingExtra, match=r"earmark\[audio\]"):
        audio.read(path)
    assert "earmark[audio]" in refusal(tmp_path / "text.wav")


def test_errors_reach_other_processes(tmp_path: Path) -> None:
    with pytest.raises(EarmarkError) as caught:
        audio.read(tmp_path / "none.wav")
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


# --- samples ------------------------------------------------------------------------------------------------


def test_resampling_keeps_a_tone(tmp_path: Path) -> None:
    t48, t16 = np.arange(48_000) / 48_000, np.arange(16_000) / 16_000
    made = audio.resample(np.sin(2 * np.pi * 440 * t48), 48_000, 16_000)
    assert made.dtype == np.float32
    np.testing.assert_allclose(made[200:-200], np.sin(2 * np.pi * 440 * t16)[200:-200], atol=1e-4)
    path = make(tmp_path, "wav")
    samples, rate = audio.read(path, rate=16_000)
    assert (len(samples), rate) == (48_000, 16_000)


@pytest.mark.parametrize("count", [1, 2, 5, 160, 161])
@pytest.mark.parametrize(("rate", "to"), [(96_000, 16_000), (16_000, 44_100), (250_000, 16_000), (44_100, 16_000)])
def test_short_clips_survive_resampling(count: int, rate: int, to: int) -> None:
    made = audio.resample(np.ones(count, np.float32), rate, to)
    assert len(made) == max(1, round(count * to / rate))
    assert np.isfinite(made).all()


def test_resampling_to_the_same_rate_changes_nothing() -> None:
    samples = chirp(16_000, 0.1)
    np.testing.assert_array_equal(audio.resample(samples, 16_000, 16_000), samples)
    with pytest.raises(UsageError):
        audio.resample(samples, 16_000, 0)


def test_peak_normalisation() -> None:
    assert np.abs(audio.peak_normalise(np.float32([0.1, -0.25]))).max() == 1.0
    np.testing.assert_array_equal(audio.peak_normalise(np.zeros(4)), np.zeros(4))
    assert audio.peak_normalise(np.empty(0)).shape == (0,)


# --- writing ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".wav", ".flac"])
def test_sixteen_bit_audio_comes_through_unchanged(tmp_path: Path, suffix: str) -> None:
    grid = np.random.default_rng(0).integers(-32768, 32768, 5000).astype(np.int16)
    grid[:2] = -32768, 32767
    soundfile.write(tmp_path / "given.wav", grid, 16_000)
    samples, rate = audio.read(tmp_path / "given.wav")
    audio.write(tmp_path / f"made{suffix}", samples, rate)
    np.testing.assert_array_equal(soundfile.read(tmp_path / f"made{suffix}", dtype="int16")[0], grid)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["given.wav", f"made{suffix}"]


def test_what_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"\.flac or \.wav"):
        audio.write(tmp_path / "a.mp3", chirp(), 48_000)
    with pytest.raises(InputError, match="NaN"):
        audio.write(tmp_path / "a.wav", [np.nan], 48_000)
    with pytest.raises(InputError, match="at least one sample"):
        audio.write(tmp_path / "a.wav", [], 48_000)
    with pytest.raises(FileNotFoundError):
        audio.write(tmp_path / "no" / "a.wav", chirp(), 48_000)
    assert list(tmp_path.iterdir()) == []


# --- identity -----------------------------------------------------------------------------------------------


def test_digest_follows_the_content(tmp_path: Path) -> None:
    path = make(tmp_path, "wav")
    copy = tmp_path / "copy.wav"
    copy.write_bytes(path.read_bytes())
    first = Clip("a", path=str(path)).digest()
    assert Clip("b", label="x", path=str(copy)).digest() == first
    assert Clip("a", path=str(path), start=0.5).digest() != first
    assert Clip("a", path=str(path), start=0.5).digest() != Clip("a", path=str(path), end=0.5).digest()
    audio.write(path, chirp(48_000, 1.0), 48_000)
    assert Clip("a", path=str(path)).digest() != first
    with pytest.raises(InputError, match="does not exist"):
        Clip("a", path=str(tmp_path / "none.wav")).digest()


def test_a_file_is_hashed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(make(tmp_path, "wav"))
    calls: list[int] = []
    real = audio.hashlib.file_digest
    monkeypatch.setattr(audio.hashlib, "file_digest", lambda *args: calls.append(1) or real(*args))
    for start in (None, 0.5, 1.0):
        Clip("a", path=path, start=start).digest()
    assert len(calls) == 1


def test_a_clip_opens_its_file_once_for_hash_and_header_and_once_for_samples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Any] = []
    path, real_open, real_sound = make(tmp_path, "wav"), Path.open, soundfile.SoundFile
    monkeypatch.setattr(Path, "open", lambda *args, **options: opened.append(args[0]) or real_open(*args, **options))
    monkeypatch.setattr(
        soundfile,
        "SoundFile",
        lambda file, **options: (None if isinstance(file, int) else opened.append(file)) or real_sound(file, **options),
    )
    clip = Clip("a", path=str(path))
    clip.digest()
    assert clip.seconds() == pytest.approx(3.0)
    clip.read(16_000)
    assert audio.probe(path).channels == 1
    assert opened == [path, path]


class Content:
    """A maker that knows a hash of its content."""

    def __call__(self) -> tuple[NDArray[np.float32], int]:
        raise AssertionError("a digest needs no sound")

    def digest(self) -> str:
        return "abc"


def test_digest_of_clips_that_are_no_files() -> None:
    samples = chirp(16_000, 0.1)
    one = Clip("a", samples=samples, rate=16_000).digest()
    assert one == Clip("b", samples=samples.copy(), rate=16_000).digest()
    assert one != Clip("a", samples=samples, rate=8_000).digest()
    assert one != Clip("a", samples=samples * 2, rate=16_000).digest()
    assert Clip("a", make=Content(), recipe="x").digest() == Clip("b", make=Content()).digest()
    made = Clip("a", make=lambda: (samples, 16_000), recipe="chirp 1")
    assert made.digest() != Clip("a", make=lambda: (samples, 16_000), recipe="chirp 2").digest()
    assert Clip("a", make=lambda: (samples, 16_000)).digest() == one


def test_a_clip_knows_its_length(tmp_path: Path) -> None:
    path = str(make(tmp_path, "wav"))
    assert Clip("a", path=path).seconds() == pytest.approx(3.0)
    assert Clip("a", path=path, start=1.0).seconds() == pytest.approx(2.0)
    assert Clip("a", path=path, start=1.0, end=1.25).seconds() == pytest.approx(0.25)
    assert Clip("a", samples=chirp(16_000, 0.5), rate=16_000).seconds() == pytest.approx(0.5)


def test_unknown_length_in_the_header(tmp_path: Path) -> None:
    """An encoder that writes to a pipe leaves the number of samples of a FLAC stream at 0."""
    data = bytearray(make(tmp_path, "flac").read_bytes())
    # STREAMINFO: the 36-bit count of samples ends 16 bytes before the end of its 34 bytes, which start at 8.
    data[21] &= 0xF0
    data[22:26] = bytes(4)
    (tmp_path / "piped.flac").write_bytes(data)
    assert len(audio.read(tmp_path / "piped.flac")[0]) == 3 * 48_000
    assert audio.probe(tmp_path / "piped.flac").duration == pytest.approx(3.0)


def test_reading_needs_no_more_than_libsndfile() -> None:
    buffer = io.BytesIO()
    soundfile.write(buffer, chirp(16_000, 0.1), 16_000, format="WAV")
    assert len(audio.read_bytes(buffer.getvalue(), "memory")[0]) == 1600
