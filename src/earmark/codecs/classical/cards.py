"""Settings of classical codecs, and where their makers are. Data only: nothing is imported.

`delay` is stated where it is the same for every clip (tests measure it at every setting): the number of samples by
which what is decoded lags when only bytes travel, so that nobody has trimmed anything. Speech coders that do not keep
the waveform (Codec 2) have none stated, and are calibrated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from earmark.codecs.contract import CodecCard

_FFMPEG = "LGPL-2.1 (FFmpeg)"
_PROGRAM = "encoded by the program of imageio-ffmpeg"
_20_MS = "packets of 20 ms, as on the internet"
_MODE_BYTE = "the byte that names the mode is said once, in the header"

Setting = Mapping[str, Any]


def _plain(*kbps: float) -> list[Setting]:
    """A setting for each nominal rate."""
    return [{"kbps": rate} for rate in kbps]


def _at(frame: int, rates: Mapping[float, int]) -> list[Setting]:
    """A setting for each nominal rate with its sampling rate; `frame` is in samples."""
    return [{"kbps": kbps, "rate": rate, "frame_rate": rate / frame} for kbps, rate in rates.items()]


def _modes(bits: Mapping[float, int], **facts: Any) -> list[Setting]:
    """A setting for each nominal rate with the bits that are used of each packet."""
    return [{"kbps": kbps, "packet_bits": used, **facts} for kbps, used in bits.items()]


def _family(family: str, title: str, settings: Iterable[Setting], **facts: Any) -> list[CodecCard]:
    """The cards of a family: what all its settings share, and what each has of its own."""
    common = {"family": family, "title": title, "causal": True, "extra": "codecs", **facts}
    return [CodecCard(**{"name": f"{family}@{setting['kbps']:g}", **common, **setting}) for setting in settings]


# fmt: off
CARDS: tuple[CodecCard, ...] = (
    CodecCard(
        "pcm", "pcm", "16-bit samples as they are (identity anchor)", rate=48000, causal=True, delay=0, lossless=True,
        variable_rate=True, licence="Apache-2.0",
        notes="codes the clip at its own rate, rounded to 16 bits: 16 times the clip's rate"),
    CodecCard(
        "flac", "flac", "FLAC, 16 bits (lossless anchor)", rate=48000, causal=True, delay=0, lossless=True,
        variable_rate=True, licence=_FFMPEG, citation="van Beurden and Weaver, RFC 9639, 2024", extra="codecs",
        notes="codes the clip at its own rate, rounded to 16 bits"),
    *_family(
        "opus", "Opus (libopus)", _plain(6, 8, 12, 16, 24, 32, 48, 64, 96), rate=48000, frame_rate=50.0, delay=0,
        variable_rate=True, licence="BSD-3-Clause (libopus)", citation="Valin et al., RFC 6716, 2012",
        notes="20 ms packets, constrained variable rate; the decoder cuts off the pre-skip that the header states; "
        "libopus chooses the bandwidth; options vbr=constrained|on|off, application=audio|voip|lowdelay, "
        "frame_duration=20"),
    *_family(
        "mp3", "MP3 (LAME)",
        [*_at(576, {8: 16000, 16: 16000, 24: 24000, 32: 24000}), *_at(1152, {64: 44100, 128: 44100})], delay=1105,
        licence="LGPL-2.0 (LAME)", citation="ISO/IEC 11172-3, 1993, and 13818-3, 1998",
        notes="1105 samples of delay (576 of the encoder, 529 of the decoder) are there because only bytes are kept: a "
        "file's LAME header would have them cut off; frames borrow bits from those before, so losing one is not "
        "applicable"),
    *_family(
        "aac", "AAC-LC (FFmpeg)", _at(1024, {16: 16000, 24: 24000, 32: 32000, 64: 44100, 128: 44100}), delay=1024,
        variable_rate=True, licence=_FFMPEG, citation="ISO/IEC 14496-3, 2009",
        notes="raw frames without ADTS; 1024 samples of priming, which an MP4 edit list would cut off; the rate is met "
        "on average"),
    *_family(
        "vorbis", "Vorbis (libvorbis; FFmpeg decodes)", _plain(48, 64, 96, 128), rate=44100, delay=0,
        variable_rate=True, licence="BSD-3-Clause (libvorbis)", citation="Xiph.Org, Vorbis I specification, 2020",
        notes=f"{_PROGRAM}; its codebooks, 3 to 4 kB, are header and not payload"),
    *_family(
        "ac3", "AC-3 (Dolby Digital, FFmpeg)", _plain(32, 48, 64, 96, 128, 192), rate=48000, frame_rate=48000 / 1536,
        delay=256, licence=_FFMPEG, citation="ATSC A/52, 2018"),
    *_family(
        "sbc", "SBC (Bluetooth, FFmpeg)", _at(128, {64: 16000, 96: 32000, 128: 44100, 192: 44100}), delay=73,
        licence=_FFMPEG, citation="Bluetooth SIG, A2DP 1.3, 2012"),
    *_family(
        "amr_nb", "AMR narrow band (OpenCORE)",
        _modes({4.75: 95, 5.15: 103, 5.9: 118, 6.7: 134, 7.4: 148, 7.95: 159, 10.2: 204, 12.2: 244}),
        rate=8000, frame_rate=50.0, delay=40, licence="Apache-2.0 (OpenCORE)", citation="3GPP TS 26.071, 1999",
        notes=f"{_MODE_BYTE}; the speech bits are the payload; no silence suppression"),
    *_family(
        "amr_wb", "AMR wide band (VisualOn; FFmpeg decodes)",
        _modes({6.6: 132, 8.85: 177, 12.65: 253, 14.25: 285, 15.85: 317, 18.25: 365, 19.85: 397, 23.05: 461,
                23.85: 477}),
        frame_rate=50.0, delay=95, licence="Apache-2.0 (VisualOn)", citation="3GPP TS 26.171, 2001",
        notes=f"{_MODE_BYTE}; {_PROGRAM}"),
    *(card for family, band, rate, delay, kbps in (
        ("speex", "narrow", 8000, 80, (4, 6, 8, 11, 15, 18.2)),
        ("speex_wb", "wide", 16000, 223, (8, 10, 12.8, 16.8, 20.8, 24, 28)),
    ) for card in _family(
        family, f"Speex {band} band (libspeex; FFmpeg decodes)", _plain(*kbps), rate=rate, frame_rate=50.0,
        delay=delay, licence="BSD-3-Clause (libspeex)", citation="Valin, The Speex codec manual, 2007; RFC 5574",
        notes=f"{_PROGRAM}; the rates are those of libspeex's modes")),
    *_family(
        "g722", "G.722 (FFmpeg)", _plain(48, 56, 64), frame_rate=50.0, delay=22, licence=_FFMPEG,
        citation="ITU-T G.722, 1988",
        notes=f"{_20_MS}; 56 and 48 kbps leave out the lowest one or two of each 8 bits"),
    *_family(
        "g726", "G.726 (FFmpeg)", _plain(16, 24, 32, 40), rate=8000, frame_rate=50.0, delay=0, licence=_FFMPEG,
        citation="ITU-T G.726, 1990", notes=_20_MS),
    *_family(
        "g723_1", "G.723.1 (FFmpeg)", _plain(6.3), rate=8000, frame_rate=1000 / 30, delay=60, licence=_FFMPEG,
        citation="ITU-T G.723.1, 1996",
        notes="24 bytes each 30 ms are 6.4 kbps: 189 speech bits, two that name the mode, one unused"),
    *(card for family, law in (("mulaw", "µ-law"), ("alaw", "A-law")) for card in _family(
        family, f"G.711 {law} (FFmpeg)", _plain(64.0), rate=8000, frame_rate=50.0, delay=0, licence=_FFMPEG,
        citation="ITU-T G.711, 1988", notes=_20_MS)),
    *_family(
        "codec2", "Codec 2",
        [*_modes({0.7: 28, 1.2: 48, 1.3: 52, 1.4: 56, 1.6: 64}, frame_rate=25.0),
         *_modes({2.4: 48, 3.2: 64}, frame_rate=50.0)],
        rate=8000, licence="LGPL-2.1",
        citation="Rowe, Codec 2: open source speech coding at 3200 bit/s and below, 2010-2023",
        notes="a vocoder: it keeps no waveform, so its delay is calibrated on envelopes"),
    *_family(
        "lyra", "Lyra V2",
        [{"kbps": kbps, "codebooks": count, "codebook_sizes": (16,) * count}
         for kbps, count in {3.2: 16, 6.0: 30, 9.2: 46}.items()],
        frame_rate=50.0, delay=0, licence="Apache-2.0",
        citation="Zeghidour et al., SoundStream: an end-to-end neural audio codec, TASLP 2021",
        how_to_get="copy soundstream_encoder.tflite, quantizer.tflite and lyragan.tflite from lyra/model_coeffs of "
        "google/lyra into a folder and name it: lyra:FOLDER@3.2, or EARMARK_LYRA=FOLDER",
        notes="a network with residual codebooks of 16 entries; quantised to eight bits"),
)
# fmt: on

_MAKERS: dict[str, tuple[str, ...]] = {  # module and function, families
    "packets:make": ("aac", "ac3", "flac", "mp3", "pcm", "sbc"),
    "telephone:make": ("alaw", "amr_nb", "g722", "g723_1", "g726", "mulaw"),
    "ffmpeg_program:make": ("amr_wb", "speex", "speex_wb", "vorbis"),
    "codec2:make": ("codec2",),
    "lyra:make": ("lyra",),
    "opus:make": ("opus",),
}

FACTORIES: dict[str, str] = {
    family: f"earmark.codecs.classical.{path}" for path, families in _MAKERS.items() for family in families
}

MODULES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(FACTORIES, ("av",)),
    **dict.fromkeys(_MAKERS["ffmpeg_program:make"], ("av", "imageio_ffmpeg")),
    "codec2": ("pycodec2",),
    "lyra": ("ai_edge_litert",),
    "pcm": (),
}
"""The packages that each family needs."""
