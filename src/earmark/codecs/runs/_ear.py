"""What a task's model heard, kept for each clip by the hash of its sound: no clip is heard twice, in whatever run.

    sets of clips ── less what the cache holds ── portions ── listen ── packs ── Responses of a set

Portions go across codecs, so that a list of sixty codecs with a few clips each keeps every core busy, and a killed run
loses one portion. A task whose answer for a clip depends on the others (it does not state `each_clip`) hears each set
by itself, and is kept by the set.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from numpy.typing import NDArray

from earmark.codecs.runs.state import CodecWork
from earmark.corpora.clips import Clip, length_of
from earmark.embedding.pooling import Block
from earmark.errors import EarmarkError, Unreachable, no_exit
from earmark.probes import Responses, Task
from earmark.progress import progress_bar
from earmark.runs.engine import reason_of
from earmark.runs.identity import fingerprint
from earmark.runs.packs import LostPacks, Packer, read_records

PORTION_CLIPS = 256
PORTION_SECONDS = 900.0
VECTOR, FAILED = "vector", "failed"

log = logging.getLogger("earmark.runs")


class HeardClip(NamedTuple):
    """A clip of a set: its id, the hash of its sound, and how to get the sound (None: it is gone)."""

    id: str
    identity: str
    clip: Callable[[], Clip | None]


class Ear:
    """One task's model, and what it has heard.

    Args:
        work: the run.
        task: whose `listen` is called.
        key: the hash of all that decides what is heard of a sound.
        together: whether a set is heard as a whole.
    """

    def __init__(self, work: CodecWork, task: Task, key: str, *, together: bool = False) -> None:
        self._work, self._task, self.together = work, task, together
        self._records = read_records(work.cache, f"codec-heard/{key}")
        self._failures: dict[str, str] = {}

    def listen(self, sets: Iterable[Sequence[HeardClip]]) -> None:
        """Hear whatever is not known yet."""
        todo: list[dict[str, HeardClip]] = []
        everything: set[str] = set()
        for sounds in sets:
            named = dict(zip(self._names(sounds), sounds, strict=True))
            missing = {name: item for name, item in named.items() if name not in self._records.records}
            todo.append(named if missing and self.together else missing)
            everything.update(named)
        wanted = {name for names in todo for name in names}
        self._work.count_cached("tasks", len(everything) - len(wanted))
        if not wanted:
            return
        self._work.cache.check_writable()
        title = self._task.card.name
        heard = 0
        with progress_bar(self._work.progress, len(wanted), title, "clip") as bar:
            packer = Packer(self._records)
            for portion in self._portions(todo):

                def so_far(done: float, _: float | None, before: int = heard) -> None:
                    bar.reach(before + done)

                self._hear(portion, packer, so_far if self._work.progress else False)
                packer.flush()
                heard += len(portion)
                bar.reach(heard)

    def lacking(self, sounds: Sequence[HeardClip]) -> list[HeardClip]:
        """What is not known yet of a set; all of it where it is heard as a whole."""
        named = list(zip(self._names(sounds), sounds, strict=True))
        missing = [item for name, item in named if name not in self._records.records]
        return list(sounds) if missing and self.together else missing

    def _names(self, sounds: Sequence[HeardClip]) -> list[str]:
        """What the answers for clips are kept under: the sound, or the set that it was heard in and the clip's id."""
        if not self.together:
            return [item.identity for item in sounds]
        whole = fingerprint([[item.id, item.identity] for item in sounds])
        return [fingerprint(whole, item.id) for item in sounds]

    def _portions(self, todo: Sequence[dict[str, HeardClip]]) -> Iterator[dict[str, Clip]]:
        """Clips by the name of their answer, each once: a set, or as many as are heard in one go."""
        portion: dict[str, Clip] = {}
        seen: set[str] = set()
        seconds = 0.0
        for names in todo:
            for name, item in names.items():
                if name in seen:
                    continue
                seen.add(name)
                clip = item.clip()
                if clip is None:
                    self._failures[name] = "what the codec sent is no longer in the cache: run again"
                    continue
                portion[name] = replace(clip, id=item.id)
                seconds += length_of(clip)
                if not self.together and (len(portion) >= PORTION_CLIPS or seconds >= PORTION_SECONDS):
                    yield portion
                    portion, seconds = {}, 0.0
            if self.together and portion:
                yield portion
                portion, seconds = {}, 0.0
        if portion:
            yield portion

    def _hear(self, portion: dict[str, Clip], packer: Packer, progress: Any) -> None:
        # Two codecs have clips of one id: in a portion each has an id of its own.
        ids = {clip.id if self.together else f"{clip.id} {name[:16]}": name for name, clip in portion.items()}
        clips = [replace(portion[name], id=unique) for unique, name in ids.items()]
        try:
            with no_exit():
                responses = self._task.listen(clips, progress=progress)
        except Unreachable:
            raise
        except Exception as error:  # a stranger's task may raise anything
            self._failures |= dict.fromkeys(portion, reason_of(error))
            return
        packer.about |= {"model": responses.model, "names": list(responses.names), "notes": list(responses.notes)}
        for answer in responses.apart():
            record: dict[str, Any] = {} if answer.texts is None else {"text": answer.texts[0]}
            parts = {} if answer.vectors is None else {VECTOR: answer.vectors[0]}
            record["blocks"] = [list(block) for block in answer.blocks]
            packer.add(ids[answer.ids[0]], record, parts)
        failures = {ids[unique]: why for unique, why in responses.failures.items() if unique in ids}
        self._failures |= failures
        if self.together:  # a set is heard again as a whole: what failed in it is known too
            for name in portion.keys() - {ids[unique] for unique in responses.ids}:
                packer.add(name, {FAILED: failures.get(name, "it was not heard")})
        self._work.count("tasks", computed=len(responses.ids), failed=len(clips) - len(responses.ids))

    def responses(self, sounds: Sequence[HeardClip]) -> Responses | EarmarkError:
        """What was heard of a set; the error that all of its clips met where there is nothing."""
        known: list[tuple[str, str]] = []
        unheard: dict[str, str] = {}
        for item, name in zip(sounds, self._names(sounds), strict=True):
            record = self._records.records.get(name)
            if record is None or FAILED in record:
                unheard[item.id] = record[FAILED] if record else self._failures.get(name, "it was not heard")
            else:
                known.append((item.id, name))
        if not known:
            return EarmarkError(next(iter(unheard.values()), "there are no clips"))
        vectors = self._vectors([name for _, name in known])
        if vectors is None:  # packs are gone or damaged
            self.listen([sounds])
            return self.responses(sounds)
        about: dict[str, Any] = next((facts for facts in self._records.about.values() if facts), {})
        parts = [self._response(clip, self._records.records[name], vectors.get(name)) for clip, name in known]
        joined = Responses.joined(parts)
        return replace(joined, failures=unheard, names=tuple(about.get("names", ())), model=about.get("model", ""))

    def _response(self, clip: str, record: Mapping[str, Any], vector: NDArray[Any] | None) -> Responses:
        return Responses(
            (clip,),
            texts=(record["text"],) if "text" in record else None,
            vectors=None if vector is None else vector[None],
            blocks=tuple(Block(*block) for block in record["blocks"]),
        )

    def _vectors(self, names: Sequence[str]) -> dict[str, NDArray[Any]] | None:
        """The vectors of those that have one; None where packs are gone, which are then forgotten."""
        kept = [name for name in names if name in self._records.spans.get(VECTOR, {})]
        try:
            return {kept[row]: vector for row, vector in self._records.arrays(kept, VECTOR)}
        except LostPacks as lost:
            self._records.forget(lost.packs)
            return None
