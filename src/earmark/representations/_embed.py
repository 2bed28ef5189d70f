"""The stage from clips to vectors: what is missing is heard window by window, pooled, and packed into the cache.

    clips ── less what the cache holds ── earmark.embedding.hearing ── pool ── pack

Frames are dropped as soon as they are pooled: beside the pack being filled, memory holds two windows of sound.
"""

from __future__ import annotations

import logging
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, cast

from earmark.atomic import write_whole
from earmark.corpora.clips import Clip
from earmark.corpora.subsets import PreparedSubset
from earmark.embedding import hearing
from earmark.embedding.hearing import Heard
from earmark.errors import InputError, no_exit
from earmark.extractors.catalogue import as_frames
from earmark.extractors.contract import Extractor, ExtractorCard, Frames, Waveform
from earmark.extractors.torch_models import on_device
from earmark.representations import _layers as layers
from earmark.representations import _steadiness as steadiness
from earmark.representations._systems import Model
from earmark.runs import strangers
from earmark.runs.engine import Failure, Patience, Tick, work_through
from earmark.runs.opened_files import Seen, watching
from earmark.runs.packs import Packer, Records
from earmark.runs.pool import ITEM_SECONDS, Overdue, Timed
from earmark.runs.store import Cache, default_url
from earmark.workers import Workers, torch_on_one_thread

log = logging.getLogger("earmark.runs")

HOPELESS = 64
"""A model that has failed on this many clips and managed none is not tried on the others."""

SLOWER = 20
"""A call that takes so many times as long as the slowest one before it, and longer than ITEM_SECONDS, is given up."""

Item = tuple[Clip, str]
"""A clip and the digest of its sound."""


class Todo(NamedTuple):
    """Clips whose parts are not in the cache, in windows, and the parts that are wanted of them."""

    windows: list[list[Item]]
    parts: tuple[str, ...]
    cached: int

    @property
    def clips(self) -> int:
        return sum(map(len, self.windows))


def missing(subset: PreparedSubset, records: Records, parts: Sequence[str], batch: int) -> Todo:
    """What is to be computed: windows cut from the subset's order, less what the cache holds."""
    readable = subset.readable
    digests = {digest for _, digest in readable}
    wanted = tuple(part for part in parts if not digests <= records.spans.get(part, {}).keys())
    windows: list[list[Item]] = []
    known = records.having(wanted) if wanted else digests
    seen: set[str] = set()
    for cut in hearing.windows(subset.seconds, batch):
        window = []
        for clip, digest in readable[cut]:
            if digest not in seen and digest not in known:
                window.append((clip, digest))
            seen.add(digest)
        if window:
            windows.append(window)
    return Todo(windows, wanted, len(seen) - sum(map(len, windows)))


class Refusal(NamedTuple):
    """Why a sound has no vectors, and whether that is the model's doing: one that does not decode is not."""

    reason: str
    of_model: bool


class Recalled(InputError):
    """A failure that is known from elsewhere."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.reason)
        self.refusal = refusal


@dataclass
class Outcome:
    """What embedding a subset with a model came to."""

    cached: int = 0
    computed: int = 0
    features: int = 0
    failures: list[Failure] = field(default_factory=list)
    refused: dict[str, Refusal] = field(default_factory=dict)  # by the hash of the sound, those that were tried


@dataclass
class Before:
    """What is known of a model and a subset from elsewhere, when their clips are spread over processes.

    `failed` counts clips that the model failed on where it has managed none; `refused` are sounds that are not tried
    again, in the order in which they failed; `first` says whether these clips are the ones it hears twice.
    """

    first: bool = True
    failed: int = 0
    features: int = 0
    refused: Mapping[str, Refusal] = field(default_factory=dict)
    opened: dict[Any, Extractor] = field(default_factory=dict)  # the model that this process opened last


def embed(
    subset: PreparedSubset,
    model: Model,
    todo: Todo,
    records: Records,
    *,
    batch: int,
    workers: int,
    tick: Tick = lambda _: None,
    progress: bool = False,
    before: Before | None = None,
) -> Outcome:
    """Compute what is missing of one subset and store it pack by pack; failed clips are noted and passed over."""
    before = before or Before()
    outcome = Outcome(cached=todo.cached)
    if not todo.windows:
        return outcome
    cache = records.cache
    cache.check_writable()

    def opened() -> Extractor:
        extractor = hearing.settle_rate(model.open(), [clip for clip, _ in subset.readable])
        if model.learns:
            _learn(extractor, [clip for clip, _ in model.lessons(subset)], model.key(subset), cache, progress)
        return layers.sweep_layers(on_device(extractor), todo.parts)

    later = strangers.Later(cache, model.identity, model.reads)
    same = model.key(subset), todo.parts, "" if model.card.rate else (subset.suite, subset.name)
    first = before.first and not records.computed
    watched = _Watched(opened, later.seen, first=first, extractor=before.opened.get(same))
    packer = Packer(records)
    known = (about["features"] for about in records.about.values() if "features" in about)
    packer.about["features"] = next(known, before.features)
    patience: Patience[Item] = Patience(
        HOPELESS, "model", lambda _: model.name, [model.name] if todo.cached else [], {model.name: before.failed}
    )
    failed: dict[str, Failure] = {}  # by the hash of the sound

    def start(frames: Sequence[Frames]) -> list[Callable[[], layers.Taken]]:
        return layers.start_taking(frames, todo.parts)

    def answers(windows: Iterator[Sequence[Item]]) -> Iterator[Iterable[tuple[Item, Heard | Exception]]]:
        ahead: deque[tuple[Sequence[Item], list[Item]]] = deque()  # one window is decoded while another is heard
        order = {digest: place for place, digest in enumerate(before.refused)}

        def recalled(window: Sequence[Item]) -> list[tuple[Item, Recalled]]:
            again = sorted((item for item in window if item[1] in order), key=lambda item: order[item[1]])
            return [(item, Recalled(before.refused[item[1]])) for item in again]

        def clips() -> Iterator[list[Clip]]:
            for window in windows:
                left = [item for item in window if item[1] not in order]
                ahead.append((window, left))
                yield [clip for clip, _ in left]

        if all(digest in order for window in todo.windows for _, digest in window):
            yield from map(recalled, windows)
            return
        # Frames of many layers are held at once: fewer clips then.
        most = max(batch, getattr(watched.extractor, "clips_at_once", 0))
        together = max(1, most // max(1, len(layers.layers_of(todo.parts)) // 4))
        for heard in hearing.hear(clips(), cast(Extractor, watched), batch=together, threads=workers, start=start):
            window, left = ahead.popleft()
            if patience.hopeless(window[0]):
                yield [(item, patience.refusal) for item in window]
            else:
                yield from filter(None, [recalled(window)])
                yield ((left[answer.place], answer) for answer in heard)

    def keep(item: Item, heard: Heard | Exception) -> bool | None:
        clip, digest = item
        error = heard if isinstance(heard, Exception) else heard.error or _pack(heard, digest, packer)
        if error is None:
            outcome.computed += 1
            return True
        failed[digest] = subset.failure(clip, "embed", model.name, error)
        outcome.failures.append(failed[digest])
        if isinstance(heard, Recalled):
            return False if heard.refusal.of_model else None
        log.warning("%s/%s %s: %s", subset.suite, subset.name, clip.id, failed[digest].reason)
        if heard is patience.refusal:
            return None
        # A clip that does not decode says nothing of the model.
        of_model = not isinstance(heard, Exception) and heard.sound is not None
        outcome.refused[digest] = Refusal(failed[digest].reason, of_model)
        return False if of_model else None

    def after_window() -> None:
        later.keep()
        if watched.remark:
            packer.about["remark"] = watched.remark
        packer.flush_if_full()

    try:
        if any(digest not in before.refused for window in todo.windows for _, digest in window):
            watched.extractor.card  # noqa: B018  # opened, so that the libraries it brings are known
        with Workers(1):  # BLAS on one thread, as in a worker: a vector must not depend on who computed it
            work_through(todo.windows, answers, keep=keep, patience=patience, after_batch=after_window, tick=tick)
    finally:
        watched.close()
    packer.flush()
    before.opened.clear()
    before.opened.update({same: watched.opened} if watched.opened is not None else {})
    outcome.features = packer.about["features"]
    named = {failure.id for failure in outcome.failures}
    for clip, digest in subset.readable if failed else []:
        other = failed.get(digest)
        if other is not None and clip.id not in named:  # a sound is tried once
            reason = InputError(f"the same sound as {other.id}, which failed: {other.reason}")
            outcome.failures.append(subset.failure(clip, "embed", model.name, reason))
    return outcome


class _Watched:
    """A model as it is heard: what it opens is noted, the first batch that it manages is heard twice, and a call that
    takes too long costs the clip: the model is then opened anew."""

    def __init__(
        self, open_model: Callable[[], Extractor], seen: Seen, *, first: bool, extractor: Extractor | None = None
    ) -> None:
        self._open, self._seen, self._first = open_model, seen, first
        self._timed = Timed(None)
        self._slowest: float | None = None  # seconds for a sample, in a call that came back
        self.opened, self.remark = extractor, ""

    @property
    def extractor(self) -> Extractor:
        """The model, opened when it is first needed."""
        if self.opened is None:
            self.opened = self._open()
        return self.opened

    @property
    def card(self) -> ExtractorCard:
        return self.extractor.card

    def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
        chosen = steadiness.choose(waveforms) if self._first else {}
        answers = self._hear(waveforms)
        if self._first:
            self._first = False
            self.remark = steadiness.remark_on(self._hear, chosen, answers)
        return answers

    def _hear(self, waveforms: Sequence[Waveform]) -> list[Frames]:
        # A slow model is no hanging one: before its pace is known every clip of a batch has its time.
        samples = sum(map(len, waveforms))
        patient = ITEM_SECONDS * len(waveforms)
        if self._slowest is not None:
            patient = max(ITEM_SECONDS, SLOWER * self._slowest * samples)
        self._timed.limit = patient
        started = time.perf_counter()
        try:
            answers = self._timed.call(self._noted, waveforms)
        except Overdue:
            self.opened = self._open()
            raise
        self._slowest = max(self._slowest or 0.0, (time.perf_counter() - started) / max(1, samples))
        return answers

    def _noted(self, waveforms: Sequence[Waveform]) -> list[Frames]:
        with watching(self._seen), torch_on_one_thread():
            return as_frames(self.extractor.extract(waveforms), len(waveforms), there=True)

    def close(self) -> None:
        self._timed.close()


def _pack(heard: Heard, digest: str, packer: Packer) -> Exception | None:
    """Put what was heard of a clip into the pack, or return what is wrong with it."""
    assert heard.sound is not None
    taken: layers.Taken = heard.answer
    known = packer.about["features"]
    if known and taken.features != known:
        return InputError(f"the model returned {taken.features} features, and {known} for the clips before")
    packer.about["features"] = taken.features
    sound = heard.sound
    packer.add(digest, {"seconds": sound.seconds, "rate": sound.rate, "channels": sound.channels}, taken.vectors)
    return None


# --- models that learn ---------------------------------------------------------------------------------------


def _learn(extractor: Any, clips: Sequence[Clip], key: str, cache: Cache, progress: bool) -> None:
    """Let a model learn from the sounds; its checkpoint lies on this machine, named by content."""
    path = _checkpoint(cache, key)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if cache.policy == "refresh":
            path.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(
            f"{path.parent} cannot be written ({error.strerror}): give another place for the cache."
        ) from error
    with no_exit():
        if not getattr(extractor, "fitted", False):
            extractor.fit(clips, progress=progress, checkpoint=path)
    draw = getattr(extractor, "reconstruction_figure", None)
    if draw is None:
        return
    try:
        with tempfile.TemporaryDirectory(prefix="earmark-") as folder:
            picture = Path(folder) / "picture.png"
            draw(picture)
            write_whole(picture_of(cache, key), picture.read_bytes())
    except Exception as error:  # matplotlib is not there, or the disk is full: it costs no vectors
        log.warning("there is no picture of what %s learnt: %s", extractor.card.name, error)


def _checkpoint(cache: Cache, key: str) -> Path:
    return (cache.folder() or Path(default_url()).expanduser()) / "learnt" / f"{key}.checkpoint"


def picture_of(cache: Cache, key: str) -> Path:
    """Where the picture of what a model has learnt lies, if it draws one: beside its checkpoint."""
    return _checkpoint(cache, key).with_suffix(".png")
