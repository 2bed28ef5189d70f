"""What every codec must do, as named checks with one sentence each.

`earmark check mypackage.mymodule:MyCodec` runs them and prints a table to paste in a pull request. From pytest:

    from earmark.codecs.conformance import CHECKS, Subject

    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
    def test_my_codec(check):
        assert check(Subject(MyCodec(), fresh=MyCodec)).status != "fail"

A tokenizer without `decode` has checks of its own, `TOKENIZER_CHECKS`: rate, frames and tokens, and that these depend
on the clip alone.

Sounds are made here; nothing is read from disk. The check that matters most is `decodes_what_was_sent`: what is decoded
may depend on what was encoded and on nothing that the codec remembers, in itself, in its module or in its process.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from earmark.codecs._adapted import Adapted
from earmark.codecs.alignment import FEWEST_CLIPS, aligned
from earmark.codecs.cells import Confinement, IsolatedCodec, isolated, portable
from earmark.codecs.contract import Codec, CodecCard, Coded, Waveform
from earmark.codecs.harness import (
    HEADER_BYTES,
    Encoded,
    RoundTrip,
    check_length,
    check_waveform,
    encode,
    pack,
    payload_bits,
    round_trip,
    unpack,
    without_unused_bits,
)
from earmark.codecs.promises import check_tempo
from earmark.conformance import CheckResult, describe, failed, judge_card, passed, run_checks, warned
from earmark.errors import EarmarkError

LONG_SECONDS = 20.0
NEAR_RATE = 0.15
"""How far, relative to the nominal rate, a codec of constant rate may be off on two seconds."""


HEADER_SHARE = 0.05
"""A header may change with the sound as long as it is this small beside the payload of a second."""
END_SECONDS, END_KEPT = 0.02, 0.05
AUDIBLE = 1e-4
RELATED = 0.2  # noise reaches 0.1, Codec 2 at 0.7 kbps 0.58
"""Correlation of loudness over time in bands, below which two sounds have nothing to do with each other."""
_LATEST_SECONDS = 0.3  # of delay


class Subject:
    """A codec under test, with the sounds it is tested on. `fresh` makes another instance."""

    def __init__(self, codec: Any, fresh: Callable[[], Any] | None = None) -> None:
        self.codec: Codec = _adapted(codec)
        self.fresh = fresh
        self.card: CodecCard = self.codec.card
        self.rate = self.card.rate
        self.playing = "no sound"

    def sound(self, seconds: float, seed: int = 0) -> Waveform:
        """Harmonics of a gliding pitch in noise, another one for every seed, never louder than 0.7."""
        count = max(1, round(seconds * self.rate))
        time = np.arange(count) / self.rate
        pitch = 110.0 + 35.0 * seed + 20.0 * np.sin(2.0 * np.pi * time)
        phase = 2.0 * np.pi * np.cumsum(pitch) / self.rate
        voice = sum(np.sin(order * phase + order) / order for order in range(1, 12))
        noise = np.random.default_rng(seed).standard_normal(count)
        samples = (0.6 + 0.4 * np.sin(2.0 * np.pi * 3.0 * time + seed)) * voice + 0.1 * noise
        return np.asarray(0.7 * samples / max(float(np.abs(samples).max()), 1e-9), np.float32)

    def pass_through(self, waveform: Waveform) -> RoundTrip:
        self.playing = f"{len(waveform) / self.rate:.3g} s" if len(waveform) > 1 else "1 sample"
        return round_trip(self.codec, waveform, self.rate)

    @cached_property
    def two_seconds(self) -> RoundTrip:
        return self.pass_through(self.sound(2.0))

    def send(self, waveform: Waveform, rate: int | None = None) -> Encoded | RoundTrip:
        """Put a sound through the codec: there and back, or only there where it does not decode."""
        self.playing = f"{len(waveform) / (rate or self.rate):.3g} s" if len(waveform) > 1 else "1 sample"
        self.playing += "" if rate is None else f" at {rate} Hz"
        through = encode if self.card.encode_only else round_trip
        return through(self.codec, waveform, rate or self.rate)

    @cached_property
    def sent_seconds(self) -> Encoded | RoundTrip:
        """Two seconds, sent."""
        return self.send(self.sound(2.0)) if self.card.encode_only else self.two_seconds

    @property
    def arrive(self) -> str:
        """What sounds do that pass."""
        return "are encoded" if self.card.encode_only else "come back"


# --- the checks ----------------------------------------------------------------------------------------------


def card(subject: Subject) -> CheckResult:
    """The card states a possible rate and a name, and what is needed to read the numbers."""
    stated = subject.card
    missing = [field for field in ("licence", "title") if not getattr(stated, field)]
    if stated.kbps is None and not (stated.variable_rate or stated.lossless):
        missing.append("kbps")
    return judge_card(stated, missing, own=getattr(subject.codec, "has_own_card", True))


def round_trips(subject: Subject) -> CheckResult:
    """Two seconds go in and come out: a finite waveform of the right length, in which the sound can be heard."""
    made = subject.two_seconds
    if float(np.abs(made.samples).max()) < AUDIBLE:
        return failed("A sound went in and silence came back.")
    if likeness(subject.sound(2.0), made.samples, subject.rate) < RELATED:
        return failed("What came back has nothing to do with the sound that went in.")
    return passed(f"2 s came back with {len(made.samples) - 2 * subject.rate} samples of tail.")


def encodes(subject: Subject) -> CheckResult:
    """Two seconds become tokens, each of a codebook that the card states."""
    tokens = subject.sent_seconds.coded.tokens
    if tokens is None or not tokens.size:
        return failed("Two seconds give no token.")
    entries = len(np.unique(tokens))
    if entries == 1:
        return failed(f"Two seconds give {tokens.size} tokens that are all the same.")
    return passed(f"2 s become {len(tokens)} x {tokens.shape[1]} tokens, {entries} different ones; there is no decode.")


def tokens_of_the_clip(subject: Subject) -> CheckResult:
    """Tokens depend on the clip alone: not on what was encoded before, and not on the instance."""
    clip, other = subject.sound(1.0), subject.sound(1.0, 3)
    first = pack(subject.codec.encode(clip.copy()))
    subject.codec.encode(other)
    if pack(subject.codec.encode(clip.copy())) != first:
        return failed("Encoding a clip after another gives other tokens: start from a cleared state.")
    if subject.fresh is None:
        return passed("They do not depend on what went before (no other instance was at hand).")
    if pack(_adapted(subject.fresh()).encode(clip.copy())) != first:
        return failed("Another instance gives other tokens: seed what is left to chance, and keep nothing.")
    return passed("Another instance gives the same tokens.")


def rate_counted(subject: Subject) -> CheckResult:
    """The bits of the payload are counted, and a constant rate is the nominal one."""
    kbps, nominal = subject.sent_seconds.kbps, subject.card.kbps
    if not subject.sent_seconds.bits:
        return failed("Nothing was sent: put what the decoder needs in packets or tokens.")
    sent = f"{kbps:.3g} kbps were sent"
    if nominal is None:
        return passed(f"{sent}; the card states no rate.")
    if abs(kbps / nominal - 1.0) > NEAR_RATE and not subject.card.variable_rate:
        return warned(f"{sent}, the card states {nominal:g}: correct kbps, or state variable_rate or packet_bits.")
    return passed(f"{sent}, the card states {nominal:g}.")


def frames_as_stated(subject: Subject) -> CheckResult:
    """Packets or frames of tokens come as often as the card says."""
    coded, stated = subject.sent_seconds.coded, subject.card.frame_rate
    count = len(coded.packets) if coded.tokens is None else int(coded.tokens.shape[1])
    if stated is None:
        return passed(f"{count} for 2 s; the card states no frame_rate.")
    delay = (subject.card.delay or 0) / subject.rate
    if not 2.0 * stated - 1.0 <= count <= (2.0 + delay) * stated + 3.0:
        return warned(f"{count} for 2 s, but the card states {stated:g} a second: correct frame_rate.")
    return passed(f"{count} for 2 s, {stated:g} a second stated.")


def deterministic(subject: Subject) -> CheckResult:
    """The same clip twice gives the same payload and the same waveform."""
    again = subject.pass_through(subject.sound(2.0))
    if pack(again.coded) != pack(subject.two_seconds.coded):
        return warned("Two runs send different payloads: seed what is left to chance, keep no state.")
    if not np.array_equal(again.samples, subject.two_seconds.samples):
        return warned("The same payload is decoded differently: seed what is left to chance.")
    return passed("Two runs agree bit for bit.")


def decodes_what_was_sent(subject: Subject) -> CheckResult:
    """What is decoded depends on Coded alone: not on what was encoded or decoded before, and not on the instance."""
    first, second = subject.sound(1.0), subject.sound(1.0, 3)
    sent = subject.codec.encode(first.copy())
    at_once = _decode(subject.codec, sent)
    other = subject.codec.encode(second.copy())
    after = _decode(subject.codec, sent)
    if not np.array_equal(at_once, after):
        return failed(
            "Decoding a clip after encoding another gives something else: decode must use what it is given and keep "
            "nothing from encode."
        )
    _decode(subject.codec, other)
    if not np.array_equal(at_once, _decode(subject.codec, sent)):
        return failed("Decoding a clip after decoding another gives something else: start from a cleared state.")
    if subject.fresh is None:
        return passed("It does not depend on what went before (no other instance was at hand).")
    try:
        elsewhere = _decode(_adapted(subject.fresh()), unpack(pack(sent)))
    except Exception as error:
        return failed(f"Another instance cannot decode it ({describe(error)}): put all that is needed into Coded.")
    if not _same(elsewhere, at_once):
        return failed("Another instance decodes it to something else: put all that is needed into Coded.")
    return _decoded_by_another_process(subject.fresh(), sent, at_once)


def _decoded_by_another_process(codec: Any, sent: Coded, at_once: Waveform) -> CheckResult:
    """What a codec keeps in its class, its module or a file outlives its instances; a cell has seen nothing."""
    elsewhere = codec
    if not isinstance(codec, IsolatedCodec):
        if _is_ours(codec.model if isinstance(codec, Adapted) else codec):
            return passed("Another instance decodes the same from the bytes alone.")
        sendable = portable(_adapted(codec))
        if sendable is None:
            return passed("Another instance decodes the same from the bytes alone (it cannot go to another process).")
        try:
            elsewhere = isolated(sendable, Confinement(), again=True)
        except EarmarkError:  # it cannot be opened elsewhere, as from a notebook
            return passed("Another instance decodes the same from the bytes alone (no other process can open it).")
    try:
        decoded = _decode(elsewhere, unpack(pack(sent)))
    except EarmarkError as error:
        return failed(f"Another process cannot decode it ({describe(error)}): put all that is needed into Coded.")
    if not _same(decoded, at_once):
        return failed("Another process decodes it to something else: put all that is needed into Coded.")
    return passed("Another process decodes the same from the bytes alone.")


def _same(ours: Waveform, theirs: Waveform) -> bool:
    return ours.shape == theirs.shape and bool(np.allclose(ours, theirs, atol=1e-4))


def header_is_set_up(subject: Subject) -> CheckResult:
    """The header, which is no part of the rate, tells of the stream and not of the sound."""
    first, second = (subject.codec.encode(subject.sound(1.0, seed)) for seed in (0, 3))
    bits = 8 * max(len(first.header), len(second.header))
    if first.header == second.header or bits <= 8 * HEADER_BYTES:
        return passed(f"A header of {bits} bits." if bits else "There is no header.")
    if bits > HEADER_SHARE * payload_bits(first, subject.card):
        return failed(f"The header holds {bits} bits that change with the sound: send them as payload.")
    return passed(f"A header of {bits} bits, few beside the payload.")


def keeps_the_end(subject: Subject) -> CheckResult:
    """What the delay pushes past the end of the clip comes back too."""
    if subject.card.delay is None:
        return passed("The card states no delay: it is calibrated on clips.")
    clip = subject.sound(1.0)
    heard = aligned(subject.pass_through(clip).samples, subject.card.delay / subject.rate, subject.rate, len(clip))
    tail = slice(len(clip) - round(END_SECONDS * subject.rate), None)
    kept = float(np.square(heard[tail]).sum() / np.square(clip[tail]).sum())
    if kept < END_KEPT:
        return warned(
            f"{1 - kept:.0%} of the energy of the last {1000 * END_SECONDS:.0f} ms is lost: flush the encoder, "
            "return as many samples more as the delay, and check the delay."
        )
    return passed(f"The last {1000 * END_SECONDS:.0f} ms come back.")


def keeps_time(subject: Subject) -> CheckResult:
    """The sound comes back as fast as it went in."""
    clips = [subject.sound(3.0, seed) for seed in range(1, FEWEST_CLIPS + 1)]
    promise = check_tempo([(clip, subject.pass_through(clip).samples) for clip in clips], subject.rate)
    if promise.status == "broken":
        return failed(f"{promise.reason[0].upper()}{promise.reason[1:]}: keep the rate.")
    said = "at the same tempo" if promise.status == "kept" else f"; of the tempo nothing can be said: {promise.reason}"
    return passed(f"{FEWEST_CLIPS} sounds of 3 s come back {said}.".replace(" ;", ";"))


def uses_stated_bits(subject: Subject) -> CheckResult:
    """Bits of a packet beyond `packet_bits` tell the decoder nothing: runs set them to 0."""
    if subject.card.packet_bits is None or not subject.card.packet_bits % 8:
        return passed("Packets are whole bytes.")
    sent = subject.codec.encode(subject.sound(1.0))
    if not _same(_decode(subject.codec, sent), _decode(subject.codec, without_unused_bits(sent, subject.card))):
        return failed(
            f"It reads more than the {subject.card.packet_bits} bits that the card states: correct packet_bits."
        )
    return passed(f"{subject.card.packet_bits} bits of each packet are used.")


def tells_sounds_apart(subject: Subject) -> CheckResult:
    """Different sounds send different payloads."""
    first, second = (subject.codec.encode(subject.sound(1.0, seed)) for seed in (0, 3))
    if pack(first) == pack(second):
        return failed("Two different sounds send the same payload.")
    return passed("Different sounds send different payloads.")


def short_clips(subject: Subject) -> CheckResult:
    """10 ms and a single sample come back."""
    for seconds in (0.01, 0.0):
        subject.send(subject.sound(seconds))
    return passed(f"10 ms and one sample {subject.arrive}.")


def odd_lengths(subject: Subject) -> CheckResult:
    """Lengths that fill no frame come back, within a frame."""
    for count in (997, 1601, 4099):
        subject.send(subject.sound(1.0)[:count])
    return passed(f"997, 1601 and 4099 samples {subject.arrive}.")


def long_clip(subject: Subject) -> CheckResult:
    """Twenty seconds come back."""
    made = subject.send(np.tile(subject.sound(1.0), int(LONG_SECONDS)))
    return passed(f"{LONG_SECONDS:.0f} s {subject.arrive} at {made.kbps:.3g} kbps.")


def silence(subject: Subject) -> CheckResult:
    """Digital silence comes back finite."""
    made = subject.send(np.zeros(subject.rate, np.float32))
    if isinstance(made, Encoded):
        return passed("A second of silence is encoded.")
    loudest = float(np.abs(made.samples).max())
    if loudest > 0.1:
        return warned(f"Silence comes back as loud as {loudest:.2f} of full scale.")
    return passed(f"A second of silence comes back (peak {loudest:.1e}).")


def full_scale(subject: Subject) -> CheckResult:
    """Samples at and slightly above full scale come back finite and without wrapping."""
    loud = np.float32(1.5) * subject.sound(1.0)
    made = subject.send(loud)
    if isinstance(made, Encoded):
        return passed("A clip that peaks at 1.05 is encoded.")
    loudest = float(np.abs(made.samples).max())
    if loudest > 4.0:
        return warned(f"A clip that peaks at 1.05 comes back at {loudest:.1f}.")
    return passed(f"A clip that peaks at 1.05 comes back at {loudest:.2f}.")


def other_rates(subject: Subject) -> CheckResult:
    """Clips at 8, 16 and 44.1 kHz pass, resampled in and out."""
    for rate in (8000, 16000, 44100):
        clip = np.interp(np.arange(rate) / rate, np.arange(subject.rate) / subject.rate, subject.sound(1.0))
        subject.send(clip.astype(np.float32), rate)
    return passed(f"Clips at 8, 16 and 44.1 kHz {subject.arrive}.")


def input_untouched(subject: Subject) -> CheckResult:
    """The waveform is not modified."""
    given = subject.sound(1.0)
    before = given.copy()
    subject.codec.encode(given)
    if not np.array_equal(given, before):
        return failed("encode changes the waveform it is given: work on a copy.")
    return passed("The waveform is as it was.")


CHECKS: tuple[Callable[[Subject], CheckResult], ...] = (
    card, round_trips, rate_counted, frames_as_stated, deterministic, decodes_what_was_sent, header_is_set_up,
    uses_stated_bits, keeps_the_end, keeps_time, tells_sounds_apart, short_clips, odd_lengths, long_clip, silence,
    full_scale, other_rates, input_untouched,
)  # fmt: skip


TOKENIZER_CHECKS: tuple[Callable[[Subject], CheckResult], ...] = (
    card, encodes, rate_counted, frames_as_stated, tokens_of_the_clip, header_is_set_up, tells_sounds_apart,
    short_clips, odd_lengths, long_clip, silence, full_scale, other_rates, input_untouched,
)  # fmt: skip
"""For what encodes and does not decode."""


def check_codec(codec: Any, fresh: Callable[[], Any] | None = None) -> list[CheckResult]:
    """Run every check; when a sound does not come back at all (`round_trips` raised), those after it are skipped."""
    subject = Subject(codec, fresh)
    if subject.card.encode_only:
        return run_checks(TOKENIZER_CHECKS, subject, encodes, "No sound was encoded: see `encodes`.")
    return run_checks(CHECKS, subject, round_trips, "No sound came back: see `round_trips`.")


# --- is it the same sound ---------------------------------------------------------------------------------------


def likeness(reference: Waveform, heard: Waveform, rate: int) -> float:
    """How alike two sounds rise and fall in bands up to 4 kHz, as a correlation at the delay where it is highest.

    Each band is compared with its own mean, so that noise with the right spectrum is not taken for the sound.
    """
    hop = rate // 50
    ours, theirs = _bands(reference, rate, hop), _bands(heard, rate, hop)
    best = -1.0
    for lag in range(round(_LATEST_SECONDS * rate / hop) + 1):
        frames = min(ours.shape[1], theirs.shape[1] - lag)
        if frames > 1:
            a, b = ours[:, :frames], theirs[:, lag : lag + frames]
            a, b = a - a.mean(1, keepdims=True), b - b.mean(1, keepdims=True)
            scale = float(np.sqrt((a**2).sum() * (b**2).sum()))
            best = max(best, float((a * b).sum()) / scale if scale > 0.0 else 0.0)
    return best


def _bands(samples: Waveform, rate: int, hop: int) -> Any:
    """Level [bands, frames] in decibels, no further than 60 below the loudest."""
    frames = np.lib.stride_tricks.sliding_window_view(np.asarray(samples, np.float64), 2 * hop)[::hop]
    power = np.abs(np.fft.rfft(frames * np.hanning(2 * hop), axis=1)) ** 2
    edges = np.round(np.geomspace(100.0, min(4000.0, 0.45 * rate), 11) * 2 * hop / rate).astype(int)
    level = np.stack([power[:, low : max(high, low + 1)].sum(1) for low, high in pairwise(edges)])
    return 10.0 * np.log10(np.maximum(level, 1e-6 * max(float(level.max()), 1e-20)))


# --- pieces --------------------------------------------------------------------------------------------------


def _adapted(codec: Any) -> Codec:
    stated = isinstance(getattr(codec, "card", None), CodecCard)
    wrapped: Codec = codec if isinstance(codec, Adapted) or (stated and _is_ours(codec)) else Adapted(codec)
    return wrapped


def _is_ours(codec: Any) -> bool:
    return type(codec).__module__.startswith("earmark.codecs.")


def _decode(codec: Codec, coded: Coded) -> Waveform:
    """What the codec decodes, with the harness's checks."""
    payload_bits(coded, codec.card)
    decoded = codec.decode(coded)
    check_waveform(codec.card, decoded)
    check_length(codec.card, len(decoded), coded.samples, codec.card.rate)
    return decoded.copy()
