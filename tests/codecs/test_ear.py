"""What a task heard: each clip once, across codecs and runs, in portions that a killed run keeps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

from earmark.codecs.runs import _ear
from earmark.codecs.runs._ear import Ear, HeardClip
from earmark.corpora.clips import Clip
from earmark.embedding.pooling import Block
from earmark.errors import EarmarkError
from earmark.probes import Responses, TaskCard
from earmark.runs.engine import Ledger
from earmark.runs.store import Cache


class Counting:
    """Two numbers and a row as long as the clip; keeps a list of how many clips it was given."""

    card: ClassVar[TaskCard] = TaskCard("counting")

    def __init__(self) -> None:
        self.calls: list[int] = []

    def listen(self, clips: Sequence[Clip], *, progress: Any = False) -> Responses:
        self.calls.append(len(clips))
        assert len({clip.id for clip in clips}) == len(clips)
        sounds = {clip.id: clip.read()[0] for clip in clips}
        good = {name: sound for name, sound in sounds.items() if np.isfinite(sound).all()}
        longest = max(map(len, sounds.values()))
        rows = [np.r_[sound.min(), sound.max(), np.pad(sound, (0, longest - len(sound)))] for sound in good.values()]
        return Responses(
            tuple(good), vectors=np.array(rows, np.float32), failures=dict.fromkeys(sounds.keys() - good, "NaN"),
            names=("a", "b"), model="m", blocks=(Block(2, 1), Block(1, longest)),
        )  # fmt: skip


class Writing(Counting):
    def listen(self, clips: Sequence[Clip], *, progress: Any = False) -> Responses:
        self.calls.append(len(clips))
        return Responses(tuple(clip.id for clip in clips), texts=tuple(str(len(clip.read()[0])) for clip in clips))


class Raising(Counting):
    def listen(self, clips: Sequence[Clip], *, progress: Any = False) -> Responses:
        raise RuntimeError("the model is broken")


def ear(folder: Path, task: Any, **options: Any) -> Ear:
    ledger = Ledger()
    work: Any = SimpleNamespace(cache=Cache(str(folder)), progress=False, count=ledger.count, counts=ledger.counts)
    work.count_cached = lambda step, amount: ledger.count(step, cached=amount)
    return Ear(work, task, "key", **options)


def sounds(codec: int, clips: int, seed: int = 0) -> list[HeardClip]:
    """Clips of different lengths, under the same ids for every codec."""
    made = []
    for number in range(clips):
        values = np.random.default_rng([seed, codec, number]).normal(size=3 + number).astype(np.float32)
        clip = Clip(f"clip{number}", samples=values, rate=8000)
        made.append(HeardClip(clip.id, clip.digest(), lambda clip=clip: clip))  # type: ignore[misc]
    return made


def whole(sets: Sequence[HeardClip]) -> Responses:
    clips = [item.clip() for item in sets]
    return Counting().listen([clip for clip in clips if clip is not None])


def same(one: Any, two: Responses) -> bool:
    return (one.ids, one.blocks, one.names, one.model) == (
        two.ids,
        two.blocks,
        two.names,
        two.model,
    ) and np.array_equal(one.vectors, two.vectors)


def test_sets_are_heard_together_and_each_clip_once(tmp_path: Path) -> None:
    task = Counting()
    first = ear(tmp_path, task)
    first.listen([sounds(0, 5), sounds(1, 5), sounds(0, 5)])
    assert task.calls == [10]
    assert first._work.counts["tasks"] == {"cached": 0, "computed": 10, "failed": 0}
    second = ear(tmp_path, task)
    second.listen([sounds(0, 6), sounds(1, 5), sounds(2, 2)])
    assert task.calls == [10, 3]
    for codec, clips in ((0, 6), (0, 5), (1, 5), (2, 2), (0, 1)):  # as one who heard the set alone would say it
        assert same(second.responses(sounds(codec, clips)), whole(sounds(codec, clips)))


def test_texts_are_kept_too(tmp_path: Path) -> None:
    for expected in ([3], []):
        task = Writing()
        listener = ear(tmp_path, task)
        listener.listen([sounds(0, 3)])
        answer = listener.responses(sounds(0, 3))
        assert isinstance(answer, Responses)
        assert answer.texts == ("3", "4", "5")
        assert task.calls == expected


def test_portions_are_kept_one_by_one_and_lost_ones_heard_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_ear, "PORTION_CLIPS", 4)
    task = Counting()
    ear(tmp_path, task).listen([sounds(0, 5), sounds(1, 5)])
    assert task.calls == [4, 4, 2]
    packs = sorted((tmp_path / "codec-heard" / "key").glob("*"))
    assert len(packs) == 3
    known = ear(tmp_path, task)  # knows all packs by their headers
    packs[0].unlink()
    assert same(known.responses(sounds(0, 5)), whole(sounds(0, 5)))
    again = ear(tmp_path, task)
    again.listen([sounds(0, 5), sounds(1, 5)])
    assert sum(task.calls) <= 10 + 5
    assert same(again.responses(sounds(1, 5)), whole(sounds(1, 5)))


def test_a_task_that_hears_clips_by_their_set_is_given_whole_sets(tmp_path: Path) -> None:
    task = Counting()
    for expected in ([3, 3], []):
        task.calls.clear()
        listener = ear(tmp_path, task, together=True)
        listener.listen([sounds(0, 3), sounds(1, 3)])
        assert task.calls == expected
        assert same(listener.responses(sounds(1, 3)), whole(sounds(1, 3)))
    other = ear(tmp_path, task, together=True)
    other.listen([sounds(0, 4)])
    assert task.calls == [4]
    # The same sound twice is two clips of the set, and one that fails costs no second hearing.
    broken = Clip("broken", samples=np.full(4, np.nan, np.float32), rate=8000)
    twice = [*sounds(0, 2), sounds(0, 1)[0]._replace(id="copy"), HeardClip("broken", broken.digest(), lambda: broken)]
    task.calls.clear()
    for _ in range(2):
        listener = ear(tmp_path, task, together=True)
        listener.listen([twice])
        answer = listener.responses(twice)
        assert isinstance(answer, Responses)
        assert answer.ids == ("clip0", "clip1", "copy")
        assert answer.failures == {"broken": "NaN"}
    assert task.calls == [4]


def test_what_fails_is_told_by_the_clip(tmp_path: Path) -> None:
    listener = ear(tmp_path, Counting())
    broken = Clip("broken", samples=np.full(4, np.nan, np.float32), rate=8000)
    gone = HeardClip("gone", "0" * 64, lambda: None)
    sets = [*sounds(0, 2), HeardClip("broken", broken.digest(), lambda: broken), gone]
    listener.listen([sets])
    answer = listener.responses(sets)
    assert isinstance(answer, Responses)
    assert answer.ids == ("clip0", "clip1")
    assert set(answer.failures) == {"broken", "gone"}
    assert "no longer in the cache" in answer.failures["gone"]
    hopeless = ear(tmp_path / "other", Raising())
    hopeless.listen([sets])
    error = hopeless.responses(sets)
    assert isinstance(error, EarmarkError)
    assert str(error) == "RuntimeError: the model is broken"
