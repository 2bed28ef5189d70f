"""Encoders that PyAV does not have, run as the program of imageio-ffmpeg: AMR-WB, Speex and Vorbis.

    samples ── ffmpeg (pipe) ── container in memory ── PyAV takes it apart ── packets ── PyAV's decoders

Only packets are kept. The container's own bytes are nobody's payload; the headers of Speex and Vorbis are
`Coded.header`. FFmpeg as a program decodes wide-band Speex to twice its length and says nothing; packet by packet, with
the rate that the header states, it is right.
"""

from __future__ import annotations

import io
import subprocess
from collections.abc import Sequence

import numpy as np

from earmark.codecs.classical.packets import (
    Muting,
    PacketCodec,
    Recipe,
    Stream,
    as_int16,
    check_coders,
    decode_packets,
    no_options,
    pyav,
)
from earmark.codecs.classical.telephone import Amr
from earmark.codecs.contract import CodecCard, CodecFailure, Coded, Waveform
from earmark.errors import require

_PATIENCE = 600.0


class ProgramCodec(PacketCodec):
    """A codec whose encoder is a program."""

    container = "ogg"

    def __init__(self, card: CodecCard, recipe: Recipe) -> None:
        self.card, self.recipe = card, recipe
        self.program = str(require("imageio_ffmpeg", f"{card.family} encoders", "codecs").get_ffmpeg_exe())
        check_coders(card.name, "flac", recipe.decoder)

    def _stream(self, waveform: Waveform) -> Stream:
        recipe = self.recipe
        length = len(waveform) + recipe.flush
        missing = -length % recipe.block if recipe.block else 0  # samples of silence that complete the last frame
        sound = np.pad(waveform, (0, recipe.flush + missing))
        arguments = ["-c:a", recipe.encoder, "-b:a", str(recipe.bit_rate)]
        return taken_apart(run_program(self.program, sound, self.card.rate, arguments, self.container), self.container)


class AmrWide(ProgramCodec, Amr):
    """AMR-WB: frames without their mode bytes. FFmpeg's decoder has no concealment: a lost frame is silence."""

    container = "amr"

    def decode(self, coded: Coded) -> Waveform:
        sent = (coded.header + bits for bits in coded.packets)
        return self._cut(decode_packets(sent, self.card.rate, self.recipe), coded)


class Speex(ProgramCodec, Muting):
    """Speex; FFmpeg's decoder conceals nothing: a lost frame is silence."""


def run_program(program: str, waveform: Waveform, rate: int, arguments: Sequence[str], container: str) -> bytes:
    """A waveform as a file of the kind asked for, in memory."""
    command = [program, "-v", "error", "-threads", "1", "-f", "s16le", "-ar", str(rate), "-ac", "1", "-i", "pipe:0"]
    command += [*arguments, "-f", container, "pipe:1"]
    done = subprocess.run(
        command, input=as_int16(waveform).astype("<i2").tobytes(), capture_output=True, timeout=_PATIENCE, check=False
    )
    if done.returncode != 0:
        message = " ".join(done.stderr.decode(errors="replace").split())[-200:]
        raise CodecFailure(f"ffmpeg could not encode a clip ({message}).")
    return done.stdout


def taken_apart(data: bytes, container: str) -> Stream:
    """The packets and the stream header of a file in memory."""
    with pyav().open(io.BytesIO(data), format=container) as opened:
        stream = opened.streams.audio[0]
        packets = tuple(bytes(packet) for packet in opened.demux(stream) if packet.size)
        return Stream(packets, bytes(stream.codec_context.extradata or b""))


def make(card: CodecCard, checkpoint: str = "", **options: object) -> ProgramCodec:
    no_options(card, checkpoint, options)
    match card.family:
        case "amr_wb":
            return AmrWide(card, Recipe("libvo_amrwbenc", "amrwb", flush=95, block=320).at(card))
        case "vorbis":
            return ProgramCodec(card, Recipe("libvorbis", "vorbis").at(card))
    frame = card.rate // 50
    return Speex(card, Recipe("libspeex", "speex", flush=card.delay or 0, block=frame, muted=frame).at(card))
