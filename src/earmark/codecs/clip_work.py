"""What is done with one clip and a few codecs, in whichever process: encode it; decode what was sent, and measure.

The two are separate errands: every clip is encoded before the first is decoded, and where codecs are isolated the two
halves run in processes that share nothing. Codecs come a few at a time because the reference's share of a metric is
then computed once for all of them.

Every measurement has a name, "protocol metric", such as `all pesq`, `unaligned stoi`, `tandem:3 pesq` or
`loss:5#0 pesq` (packets lost by seed 0). Asked for a list of names, `do` returns a value, or a status with a reason,
for each.
"""

from __future__ import annotations

import functools
import pickle
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from earmark.codecs import harness
from earmark.codecs.alignment import aligned
from earmark.codecs.catalogue import open_codec
from earmark.codecs.cells import Confinement, IsolatedCodec, Portable, isolated
from earmark.codecs.contract import Category, Codec, Coded, Measured, Waveform
from earmark.codecs.packet_loss import decode_lossy, frames_of, lose
from earmark.codecs.signal import Sound, measure
from earmark.codecs.tandem import tandem
from earmark.corpora.clips import Clip
from earmark.errors import EarmarkError, Unreachable
from earmark.isolation import CellOverdue

MOST_SECONDS = 120.0
"""Longer clips are left out, with a status that says so: a metric of minutes hides what happens in seconds."""
TOGETHER = 6
"""Codecs that are measured on a clip in one go, and kept open for it."""

Values = dict[str, Measured]
AnyCodec = str | Portable | Codec
"""A codec by its spelling, as bytes that another process can open, or as an object of this process."""
UNCONFINED = Confinement("off")


DECODE_SECONDS = "time decode_seconds"
"""The name under which the time of decoding stands beside the measurements."""


class Known(NamedTuple):
    """What is known of a clip that was coded: bits, seconds of sound and of work, and its length."""

    bits: int
    header_bits: int
    seconds: float
    encode_seconds: float
    samples: int
    rate: int
    decode_seconds: float | None = None


@dataclass(frozen=True)
class Part:
    """A codec and what is wanted of it: without `payload` the clip is encoded, with it what was sent is decoded."""

    codec: AnyCodec
    payload: bytes | None = None
    delay: float | None = None  # seconds; None: not known yet, so that nothing can be measured
    wanted: tuple[str, ...] = ()
    decoded: bool = False  # whether the decoded sound is to be returned
    confinement: Confinement = UNCONFINED


@dataclass(frozen=True)
class Job:
    """A clip and a few codecs."""

    clip: Clip
    digest: str
    parts: tuple[Part, ...]
    category: Category = "speech"


@dataclass
class Outcome:
    """What came of a part. `refused` says why the clip could not be coded at all, with its status."""

    known: Known | None = None
    payload: bytes | None = None
    values: Values = field(default_factory=dict)
    decoded: Waveform | None = None
    refused: Measured | None = None
    files: tuple[str, ...] = ()  # that the codec opened
    overdue: bool = False  # whether it was given up because it took too long


def do(job: Job) -> list[Outcome]:
    """An outcome for each part; whatever fails is told in it, not raised."""
    try:
        samples, rate = job.clip.read()
        sound = Sound(samples, rate)
    except Unreachable:
        raise
    except Exception as error:  # whatever a file or a stranger's generator does, the run goes on
        # No codec is to blame: the clip counts for none of them.
        return [Outcome(refused=Measured.not_applicable(reason_of(error))) for _ in job.parts]
    if len(samples) > MOST_SECONDS * rate:
        said = f"the clip lasts {len(samples) / rate:.0f} s, more than {MOST_SECONDS:.0f} s: cut it"
        return [Outcome(refused=Measured.not_applicable(said)) for _ in job.parts]
    return [_done(job, part, samples, sound) for part in job.parts]


def _done(job: Job, part: Part, samples: Waveform, sound: Sound) -> Outcome:
    try:
        codec = opened(part.codec, part.confinement)
        outcome = _encoded(codec, samples, sound.rate) if part.payload is None else _decoded(codec, job, part, sound)
    except Exception as error:  # a stranger's codec may raise anything
        overdue = isinstance(error.__cause__, CellOverdue)
        return Outcome(refused=Measured.failed(reason_of(error)), overdue=overdue)
    outcome.files = tuple(sorted(getattr(codec, "files", ()))) if isinstance(codec, IsolatedCodec) else ()
    return outcome


def _encoded(codec: Codec, samples: Waveform, rate: int) -> Outcome:
    made = harness.encode(codec, samples, rate)
    known = Known(made.bits, made.header_bits, made.seconds, made.encode_seconds, len(samples), rate)
    return Outcome(known, harness.pack(made.coded))


def _decoded(codec: Codec, job: Job, part: Part, sound: Sound) -> Outcome:
    samples = sound.samples
    coded = harness.unpack(part.payload or b"")
    started = time.perf_counter()
    decoded = harness.decode(codec, coded, sound.rate, len(samples))
    seconds = time.perf_counter() - started
    outcome = Outcome(values={DECODE_SECONDS: Measured(seconds)}, decoded=decoded if part.decoded else None)
    wanted = [name for name in part.wanted if name != DECODE_SECONDS]
    if wanted and part.delay is not None:
        outcome.values |= _Measuring(codec, job, part.delay, samples, sound, coded, decoded).all(wanted)
    return outcome


@functools.lru_cache(maxsize=TOGETHER)
def _by_spec(spec: str) -> Codec:
    return open_codec(spec)


def opened(codec: AnyCodec, confinement: Confinement = UNCONFINED) -> Codec:
    """The codec, in cells of its own unless that was turned off or it cannot go to another process.

    Those that are named are opened once and kept while clip after clip comes for them.
    """
    if isinstance(codec, str | Portable) and confinement.mode != "off":
        return isolated(codec, confinement)
    if isinstance(codec, Portable):
        return _by_bytes(codec)
    return _by_spec(codec) if isinstance(codec, str) else codec


@functools.lru_cache(maxsize=TOGETHER)
def _by_bytes(codec: Portable) -> Codec:
    thing: Codec = pickle.loads(codec.data)
    return thing


def reason_of(error: BaseException) -> str:
    """An error as one sentence of bounded length."""
    if isinstance(error, EarmarkError):
        return str(error)
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


@dataclass
class _Measuring:
    """The measurements of one clip through one codec, protocol by protocol."""

    codec: Codec
    job: Job
    delay: float
    samples: Waveform
    sound: Sound
    coded: Coded
    decoded: Waveform

    def all(self, wanted: Sequence[str]) -> Values:
        by_protocol: dict[str, list[str]] = {}
        for name in wanted:
            protocol, metric = name.split(" ", 1)
            by_protocol.setdefault(protocol, []).append(metric)
        found: Values = {}
        passes: dict[int, list[str]] = {}
        for protocol, metrics in by_protocol.items():
            kind, _, rest = protocol.partition(":")
            if kind == "tandem":
                passes[int(rest)] = metrics
            elif kind == "loss":
                percent, _, seed = rest.partition("#")
                found |= self._guarded(protocol, metrics, functools.partial(self._loss, float(percent), int(seed)))
            else:
                found |= self._guarded(protocol, metrics, functools.partial(self._once, protocol))
        return found | (self._tandem(passes) if passes else {})

    def _guarded(
        self, protocol: str, metrics: Sequence[str], measured: Callable[[Sequence[str]], dict[str, Measured]]
    ) -> Values:
        try:
            values = measured(metrics)
        except Exception as error:
            values = dict.fromkeys(metrics, Measured.failed(reason_of(error)))
        return {f"{protocol} {metric}": values[metric] for metric in metrics}

    def _aligned(self, decoded: Waveform, delay: float) -> Waveform:
        return aligned(decoded, delay, self.sound.rate, len(self.samples))

    def _measure(self, decoded: Waveform, metrics: Sequence[str], **options: Any) -> dict[str, Measured]:
        return measure(self.sound, decoded, self.sound.rate, tuple(metrics), category=self.job.category, **options)

    def _once(self, protocol: str, metrics: Sequence[str]) -> dict[str, Measured]:
        if protocol == "reference":  # the published definitions, which know no delay and pad the shorter clip
            return self._measure(self.decoded, metrics, definitions="reference")
        delay = 0.0 if protocol == "unaligned" else self.delay
        return self._measure(self._aligned(self.decoded, delay), metrics, gain_match=protocol == "gain_matched")

    def _tandem(self, wanted: dict[int, list[str]]) -> Values:
        found: Values = {}
        done = 0
        try:
            bits = harness.payload_bits(self.coded, self.codec.card)
            heard = tandem(self.codec, self.samples, self.sound.rate, max(wanted), self.delay, bits)
            for done, decoded in enumerate(heard, start=1):
                if done in wanted:
                    measured = functools.partial(self._measure, decoded)
                    found |= self._guarded(f"tandem:{done}", wanted[done], measured)
        except Exception as error:
            failed = Measured.failed(f"pass {done + 1}: {reason_of(error)}")
            for left, metrics in wanted.items():
                found |= {f"tandem:{left} {metric}": failed for metric in metrics if left > done}
        return found

    def _loss(self, percent: float, seed: int, metrics: Sequence[str]) -> dict[str, Measured]:
        # Another pattern for every clip, the same for every codec with as many packets.
        lost = lose(frames_of(self.coded), percent, zlib.crc32(f"{seed} {self.job.digest}".encode()))
        decoded = decode_lossy(self.codec, self.coded, lost, self.sound.rate, len(self.samples))
        if isinstance(decoded, Measured):
            return dict.fromkeys(metrics, decoded)
        return self._measure(self._aligned(decoded, self.delay), metrics)
