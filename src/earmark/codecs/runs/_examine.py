"""The promises of each codec of a run: examined once on a few of its clips, and kept in the cache."""

from __future__ import annotations

import itertools
import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import cast

from earmark import audio
from earmark.codecs import harness
from earmark.codecs.catalogue import open_codec
from earmark.codecs.cells import Confinement, Portable, fresh_cells, isolated
from earmark.codecs.clip_work import AnyCodec, opened, reason_of
from earmark.codecs.conformance import check_codec
from earmark.codecs.contract import Codec
from earmark.codecs.promises import check_delay, check_repeats, check_tempo
from earmark.codecs.runs._systems import CodecSystem
from earmark.codecs.runs.state import CodecWork, Sample
from earmark.codecs.standing import CheckStatus, Promise
from earmark.conformance import CheckResult
from earmark.corpora.clips import Clip
from earmark.runs.identity import Stage
from earmark.runs.store import Entry

EXAMINE = Stage(
    "examine",
    4,
    libraries=("numpy", "scipy", "soxr"),
    modules=("codecs/alignment.py", "codecs/promises.py", "codecs/runs/_examine.py"),
)
CHECK = Stage("check", 2, libraries=("numpy", "scipy"), modules=("codecs/conformance.py", "codecs/promises.py"))
KIND, CHECK_KIND = "codec-promises", "codec-checks"
EXAMINED = 6
"""Clips that a codec's promises are checked on."""

log = logging.getLogger("earmark.runs")


@dataclass(frozen=True)
class ExaminationItem:
    """A codec, the clips it is examined on, and what it sent for them in the run."""

    system: str
    key: str
    codec: AnyCodec
    clips: tuple[Clip, ...]
    digests: tuple[str, ...]
    payloads: tuple[bytes, ...]
    confinement: Confinement
    check_key: str = ""  # "": the checks of `earmark check` are known, or not wanted


@dataclass(frozen=True)
class Examination:
    """Which promises were kept, the results of the checks, and clips (by hash) that could not be coded once more."""

    promises: tuple[Promise, ...] = ()
    checks: tuple[CheckResult, ...] = ()
    failed: tuple[str, ...] = ()


def examination_item(
    work: CodecWork, system: CodecSystem, coded: Sequence[tuple[Sample, bytes]]
) -> ExaminationItem:  # fmt: skip
    """What is to be examined, with the key under which the result lies."""
    key = EXAMINE.key(system.key, system.card.delay, [sample.digest for sample, _ in coded], work.confinement.mode)
    clips, payloads = tuple(sample.clip for sample, _ in coded), tuple(payload for _, payload in coded)
    digests = tuple(sample.digest for sample, _ in coded)
    wanted = work.config.check and system.stranger  # codecs of the list are checked by the project's own tests
    check_key = CHECK.key(system.key, asdict(system.card), work.confinement.mode) if wanted else ""
    return ExaminationItem(system.name, key, system.codec, clips, digests, payloads, work.confinement, check_key)


def left_to_examine(work: CodecWork, item: ExaminationItem) -> ExaminationItem | None:
    """What of an item the cache does not know; None where it knows all."""
    promises = work.cache.get(KIND, item.key) if item.clips else None
    checks = work.cache.get(CHECK_KIND, item.check_key) if item.check_key else None
    if not item.clips:
        work.promises[item.system] = (Promise("delay", "unknown", "no clip suits"),)
    elif promises is not None:
        work.promises[item.system] = tuple(Promise(*promise) for promise in promises.meta["promises"])
        work.unrepeated[item.system] = tuple(promises.meta["failed"])
        item = replace(item, clips=(), digests=(), payloads=())
    if checks is not None:
        work.checks[item.system] = _summary([CheckResult(*check) for check in checks.meta["checks"]])
        item = replace(item, check_key="")
    return item if item.clips or item.check_key else None


def keep_promises(work: CodecWork, item: ExaminationItem, answer: Examination | Exception) -> None:
    """Note what an examination came to; one that failed is not kept, since it may pass another time."""
    if isinstance(answer, Exception):
        log.warning("%s: its promises could not be examined: %s", item.system, answer)
        work.promises[item.system] = (Promise("state", "unknown", str(answer)),)
        work.checks[item.system] = "failed", f"it did not come to an end: {answer}"
        return
    if item.clips:
        work.promises[item.system], work.unrepeated[item.system] = answer.promises, answer.failed
        promises = [list(promise) for promise in answer.promises]
        work.cache.put(KIND, item.key, Entry({"promises": promises, "failed": list(answer.failed)}))
    if item.check_key:
        work.checks[item.system] = _summary(answer.checks)
        work.cache.put(CHECK_KIND, item.check_key, Entry({"checks": [list(check) for check in answer.checks]}))


def _summary(checks: Sequence[CheckResult]) -> tuple[CheckStatus, str]:
    """The worst of the checks, with the sentences of those that are as bad."""
    for status, word in (("fail", "failed"), ("warn", "warned")):
        sentences = [f"{check.name}: {check.sentence}" for check in checks if check.status == status]
        if sentences:
            return cast(CheckStatus, word), " ".join(sentences)[:1000]
    return "passed", ""


def examine(item: ExaminationItem) -> Examination:
    """Code the clips once more by an instance that saw nothing else, compare times, and run the checks."""
    checks: tuple[CheckResult, ...] = ()
    try:
        checks = tuple(check_codec(_again(item), fresh=lambda: _again(item))) if item.check_key else ()
    except Exception as error:  # a stranger's codec may raise anything
        checks = (CheckResult("opens", "fail", reason_of(error)),)
    failed = tuple(_unrepeatable(item))
    kept = [number for number, digest in enumerate(item.digests) if digest not in failed]
    item = replace(item, clips=tuple(item.clips[n] for n in kept), payloads=tuple(item.payloads[n] for n in kept))
    try:
        return Examination(_promises(item) if item.clips else (), checks, failed)
    except Exception as error:
        return Examination((Promise("state", "unknown", reason_of(error)),), checks, item.digests)


def _unrepeatable(item: ExaminationItem) -> Iterator[str]:
    """Clips that the codec does not encode and decode once more. It may have failed on them in the run too."""
    for clip, digest, payload in zip(item.clips, item.digests, item.payloads, strict=True):
        try:
            samples, rate = clip.read()
            codec = _again(item)
            harness.encode(codec, samples, rate)
            harness.decode(codec, harness.unpack(payload), rate, len(samples))
        except Exception:  # a stranger's codec may raise anything
            yield digest


def _promises(item: ExaminationItem) -> tuple[Promise, ...]:
    sounds = [clip.read() for clip in item.clips]
    opened = itertools.count()

    @contextmanager
    def fresh() -> Iterator[Codec]:
        # The second pair of cells has seen none of these clips; only in doubt are more processes started.
        if next(opened) == 0 or not _can_be_isolated(item):
            yield _again(item)
            return
        with fresh_cells(item.codec, item.confinement) as codec:  # type: ignore[arg-type]  # see `_can_be_isolated`
            yield codec

    repeats, decoded = check_repeats(fresh, sounds, item.payloads)
    if _again(item).card.encode_only:
        return repeats
    common = Counter(rate for _, rate in sounds).most_common(1)[0][0]
    pairs = [
        (audio.resample(clip, rate, common), audio.resample(heard, rate, common))
        for (clip, rate), heard in zip(sounds, decoded, strict=True)
    ]
    tempo = check_tempo(pairs, common)
    if tempo.status == "broken":
        return Promise("delay", "unknown", "the tempo is another"), tempo, *repeats
    return check_delay(_again(item).card, pairs, common), tempo, *repeats


def _again(item: ExaminationItem) -> Codec:
    if isinstance(item.codec, str | Portable) and _can_be_isolated(item):
        return isolated(item.codec, item.confinement, again=True)
    return open_codec(item.codec) if isinstance(item.codec, str) else opened(item.codec)


def _can_be_isolated(item: ExaminationItem) -> bool:
    return isinstance(item.codec, str | Portable) and item.confinement.mode != "off"
