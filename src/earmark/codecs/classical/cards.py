"""Settings of classical codecs, and where their classes are. Data only: nothing is imported.

`delay` is stated where it is the same for every clip (tests measure it at every setting): the number of samples by
which what is decoded lags when only bytes travel, so that nobody has trimmed anything. Speech coders that do not keep
the waveform (Codec 2) have none stated, and are calibrated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from earmark.codecs.contract import CodecCard

__all__ = ["CARDS", "FACTORIES", "MODULES"]

_HERE = "earmark.codecs.classical"
_FFMPEG = "LGPL-2.1 (FFmpeg)"


def _rates(card: CodecCard, kbps: Iterable[float]) -> Iterator[CodecCard]:
    """One row for each nominal rate."""
    for rate in kbps:
        yield replace(card, name=f"{card.family}@{rate:g}", kbps=rate)


def _at(card: CodecCard, settings: Mapping[float, int], frame: int) -> Iterator[CodecCard]:
    """One row for each nominal rate with its sampling rate; `frame` is in samples."""
    for kbps, rate in settings.items():
        yield replace(card, name=f"{card.family}@{kbps:g}", kbps=kbps, rate=rate, frame_rate=rate / frame)


def _modes(card: CodecCard, bits: Mapping[float, int]) -> Iterator[CodecCard]:
    """One row for each nominal rate with the bits that are used of each packet."""
    for kbps, used in bits.items():
        yield replace(card, name=f"{card.family}@{kbps:g}", kbps=kbps, packet_bits=used)


_OPUS = CodecCard(
    name="opus",
    family="opus",
    title="Opus (libopus)",
    rate=48000,
    frame_rate=50.0,
    causal=True,
    delay=0,
    variable_rate=True,
    licence="BSD-3-Clause (libopus)",
    citation="Valin et al., RFC 6716, 2012",
    extra="codecs",
    notes="20 ms packets, constrained variable rate; the decoder cuts off the pre-skip that the header states; libopus "
    "chooses the bandwidth; options vbr=constrained|on|off, application=audio|voip|lowdelay, frame_duration=20",
)

_MP3 = CodecCard(
    name="mp3",
    family="mp3",
    title="MP3 (LAME)",
    causal=True,
    delay=1105,
    licence="LGPL-2.0 (LAME)",
    citation="ISO/IEC 11172-3, 1993, and 13818-3, 1998",
    extra="codecs",
    notes="1105 samples of delay (576 of the encoder, 529 of the decoder) are there because only bytes are kept: a "
    "file's LAME header would have them cut off; frames borrow bits from those before, so losing one is not applicable",
)

_AAC = CodecCard(
    name="aac",
    family="aac",
    title="AAC-LC (FFmpeg)",
    causal=True,
    delay=1024,
    variable_rate=True,
    licence=_FFMPEG,
    citation="ISO/IEC 14496-3, 2009",
    extra="codecs",
    notes="raw frames without ADTS; 1024 samples of priming, which an MP4 edit list would cut off; the rate is met on "
    "average",
)

_AC3 = CodecCard(
    name="ac3",
    family="ac3",
    title="AC-3 (Dolby Digital, FFmpeg)",
    rate=48000,
    frame_rate=48000 / 1536,
    causal=True,
    delay=256,
    licence=_FFMPEG,
    citation="ATSC A/52, 2018",
    extra="codecs",
)

_AMR_NB = CodecCard(
    name="amr_nb",
    family="amr_nb",
    title="AMR narrow band (OpenCORE)",
    rate=8000,
    frame_rate=50.0,
    causal=True,
    delay=40,
    licence="Apache-2.0 (OpenCORE)",
    citation="3GPP TS 26.071, 1999",
    extra="codecs",
    notes="the byte that names the mode is said once, in the header; the speech bits are the payload; no silence "
    "suppression",
)

_AMR_WB = CodecCard(
    name="amr_wb",
    family="amr_wb",
    title="AMR wide band (VisualOn; FFmpeg decodes)",
    rate=16000,
    frame_rate=50.0,
    causal=True,
    delay=95,
    licence="Apache-2.0 (VisualOn)",
    citation="3GPP TS 26.171, 2001",
    extra="codecs",
    notes="the byte that names the mode is said once, in the header; encoded by the program of imageio-ffmpeg",
)

_SPEEX = CodecCard(
    name="speex",
    family="speex",
    title="Speex narrow band (libspeex; FFmpeg decodes)",
    rate=8000,
    frame_rate=50.0,
    causal=True,
    delay=80,
    licence="BSD-3-Clause (libspeex)",
    citation="Valin, The Speex codec manual, 2007; RFC 5574",
    extra="codecs",
    notes="encoded by the program of imageio-ffmpeg; the rates are those of libspeex's modes",
)

_SPEEX_WB = replace(
    _SPEEX,
    name="speex_wb",
    family="speex_wb",
    title="Speex wide band (libspeex; FFmpeg decodes)",
    rate=16000,
    delay=223,
)

_VORBIS = CodecCard(
    name="vorbis",
    family="vorbis",
    title="Vorbis (libvorbis; FFmpeg decodes)",
    rate=44100,
    delay=0,
    causal=True,
    variable_rate=True,
    licence="BSD-3-Clause (libvorbis)",
    citation="Xiph.Org, Vorbis I specification, 2020",
    extra="codecs",
    notes="encoded by the program of imageio-ffmpeg; its codebooks, 3 to 4 kB, are header and not payload",
)

_G722 = CodecCard(
    name="g722",
    family="g722",
    title="G.722 (FFmpeg)",
    rate=16000,
    frame_rate=50.0,
    causal=True,
    delay=22,
    licence=_FFMPEG,
    citation="ITU-T G.722, 1988",
    extra="codecs",
    notes="packets of 20 ms, as on the internet; 56 and 48 kbps leave out the lowest one or two of each 8 bits",
)

_G726 = CodecCard(
    name="g726",
    family="g726",
    title="G.726 (FFmpeg)",
    rate=8000,
    frame_rate=50.0,
    causal=True,
    delay=0,
    licence=_FFMPEG,
    citation="ITU-T G.726, 1990",
    extra="codecs",
    notes="packets of 20 ms, as on the internet",
)

_G723_1 = CodecCard(
    name="g723_1",
    family="g723_1",
    title="G.723.1 (FFmpeg)",
    rate=8000,
    frame_rate=1000 / 30,
    causal=True,
    delay=60,
    licence=_FFMPEG,
    citation="ITU-T G.723.1, 1996",
    extra="codecs",
    notes="24 bytes each 30 ms are 6.4 kbps: 189 speech bits, two that name the mode, one unused",
)

_G711 = CodecCard(
    name="g711",
    family="g711",
    rate=8000,
    kbps=64.0,
    frame_rate=50.0,
    causal=True,
    delay=0,
    licence=_FFMPEG,
    citation="ITU-T G.711, 1988",
    extra="codecs",
    notes="packets of 20 ms, as on the internet",
)

_SBC = CodecCard(
    name="sbc",
    family="sbc",
    title="SBC (Bluetooth, FFmpeg)",
    causal=True,
    delay=73,
    licence=_FFMPEG,
    citation="Bluetooth SIG, A2DP 1.3, 2012",
    extra="codecs",
)

_FLAC = CodecCard(
    name="flac",
    family="flac",
    title="FLAC, 16 bits (lossless anchor)",
    rate=48000,
    causal=True,
    delay=0,
    lossless=True,
    variable_rate=True,
    licence=_FFMPEG,
    citation="van Beurden and Weaver, RFC 9639, 2024",
    extra="codecs",
    notes="codes the clip at its own rate, rounded to 16 bits",
)

_PCM = CodecCard(
    name="pcm",
    family="pcm",
    title="16-bit samples as they are (identity anchor)",
    rate=48000,
    causal=True,
    delay=0,
    lossless=True,
    variable_rate=True,
    licence="Apache-2.0",
    notes="codes the clip at its own rate, rounded to 16 bits: 16 times the clip's rate",
)

_CODEC2 = CodecCard(
    name="codec2",
    family="codec2",
    title="Codec 2",
    rate=8000,
    causal=True,
    licence="LGPL-2.1",
    citation="Rowe, Codec 2: open source speech coding at 3200 bit/s and below, 2010-2023",
    extra="codecs",
    notes="a vocoder: it keeps no waveform, so its delay is calibrated on envelopes",
)

_LYRA = CodecCard(
    name="lyra",
    family="lyra",
    title="Lyra V2",
    rate=16000,
    frame_rate=50.0,
    causal=True,
    delay=0,
    licence="Apache-2.0",
    citation="Zeghidour et al., SoundStream: an end-to-end neural audio codec, TASLP 2021",
    extra="codecs",
    how_to_get="copy soundstream_encoder.tflite, quantizer.tflite and lyragan.tflite from lyra/model_coeffs of "
    "google/lyra into a folder and name it: lyra:FOLDER@3.2, or EARMARK_LYRA=FOLDER",
    notes="a network with residual codebooks of 16 entries; quantised to eight bits",
)


def _lyra() -> Iterator[CodecCard]:
    for kbps, codebooks in {3.2: 16, 6.0: 30, 9.2: 46}.items():
        sizes = (16,) * codebooks
        yield replace(_LYRA, name=f"lyra@{kbps:g}", kbps=kbps, codebooks=codebooks, codebook_sizes=sizes)


def _codec2() -> Iterator[CodecCard]:
    slow = {1.6: 64, 1.4: 56, 1.3: 52, 1.2: 48, 0.7: 28}
    yield from _modes(replace(_CODEC2, frame_rate=25.0), dict(sorted(slow.items())))
    yield from _modes(replace(_CODEC2, frame_rate=50.0), {2.4: 48, 3.2: 64})


CARDS: tuple[CodecCard, ...] = (
    _PCM,
    _FLAC,
    *_rates(_OPUS, (6, 8, 12, 16, 24, 32, 48, 64, 96)),
    *_at(_MP3, {8: 16000, 16: 16000, 24: 24000, 32: 24000}, 576),
    *_at(_MP3, {64: 44100, 128: 44100}, 1152),
    *_at(_AAC, {16: 16000, 24: 24000, 32: 32000, 64: 44100, 128: 44100}, 1024),
    *_rates(_VORBIS, (48, 64, 96, 128)),
    *_rates(_AC3, (32, 48, 64, 96, 128, 192)),
    *_at(_SBC, {64: 16000, 96: 32000, 128: 44100, 192: 44100}, 128),
    *_modes(_AMR_NB, {4.75: 95, 5.15: 103, 5.9: 118, 6.7: 134, 7.4: 148, 7.95: 159, 10.2: 204, 12.2: 244}),
    *_modes(
        _AMR_WB,
        {6.6: 132, 8.85: 177, 12.65: 253, 14.25: 285, 15.85: 317, 18.25: 365, 19.85: 397, 23.05: 461, 23.85: 477},
    ),
    *_rates(_SPEEX, (4, 6, 8, 11, 15, 18.2)),
    *_rates(_SPEEX_WB, (8, 10, 12.8, 16.8, 20.8, 24, 28)),
    *_rates(_G722, (48, 56, 64)),
    *_rates(_G726, (16, 24, 32, 40)),
    *_rates(_G723_1, (6.3,)),
    replace(_G711, name="mulaw@64", family="mulaw", title="G.711 µ-law (FFmpeg)"),
    replace(_G711, name="alaw@64", family="alaw", title="G.711 A-law (FFmpeg)"),
    *_codec2(),
    *_lyra(),
)

FACTORIES: dict[str, str] = {
    "aac": f"{_HERE}.packets:make_aac",
    "ac3": f"{_HERE}.packets:make_ac3",
    "alaw": f"{_HERE}.telephone:make_alaw",
    "amr_nb": f"{_HERE}.speech:make_amr_nb",
    "amr_wb": f"{_HERE}.ffmpeg_program:make_amr_wb",
    "codec2": f"{_HERE}.codec2:make",
    "flac": f"{_HERE}.packets:make_flac",
    "g722": f"{_HERE}.telephone:make_g722",
    "g723_1": f"{_HERE}.speech:make_g723_1",
    "g726": f"{_HERE}.telephone:make_g726",
    "lyra": f"{_HERE}.lyra:make",
    "mp3": f"{_HERE}.packets:make_mp3",
    "mulaw": f"{_HERE}.telephone:make_mulaw",
    "opus": f"{_HERE}.opus:make",
    "pcm": f"{_HERE}.pcm:make",
    "sbc": f"{_HERE}.packets:make_sbc",
    "speex": f"{_HERE}.ffmpeg_program:make_speex",
    "speex_wb": f"{_HERE}.ffmpeg_program:make_speex",
    "vorbis": f"{_HERE}.ffmpeg_program:make_vorbis",
}

MODULES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(FACTORIES, ("av",)),
    "amr_wb": ("av", "imageio_ffmpeg"),
    "codec2": ("pycodec2",),
    "lyra": ("ai_edge_litert",),
    "pcm": (),
    "speex": ("av", "imageio_ffmpeg"),
    "speex_wb": ("av", "imageio_ffmpeg"),
    "vorbis": ("av", "imageio_ffmpeg"),
}
"""The packages that each family needs."""
