"""What was heard survives a file, parts make a whole, and clips are matched by id."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from earmark.corpora.clips import Clip
from earmark.embedding.pooling import Block
from earmark.errors import EarmarkError, InputError, UsageError
from earmark.probes import TASKS, Responses, open_task, task_cards
from earmark.probes._contract import align_widths
from earmark.probes._scoring import pair_clips
from earmark.scores import metric_facts
from earmark.scores.validation import PROTOCOLS


def test_what_was_heard_survives_a_file_without_pickles(tmp_path: Path) -> None:
    texts = Responses(("a", "b"), texts=("grüß gott", ""), failures={"c": "it is empty"}, notes=("n",), model="m")
    vectors = Responses(("a",), vectors=np.array([[1.5, -2.0]], np.float32), names=("dog", "rain"))
    for number, heard in enumerate((texts, vectors)):
        np.savez(tmp_path / f"{number}.npz", **heard.to_arrays())
        with np.load(tmp_path / f"{number}.npz", allow_pickle=False) as kept:
            again = Responses.from_arrays(kept)
        assert (again.ids, again.texts, again.failures) == (heard.ids, heard.texts, heard.failures)
        assert (again.names, again.notes, again.model) == (heard.names, heard.notes, heard.model)
        assert (again.vectors is None) == (heard.vectors is None)
    assert again.vectors is not None
    assert again.vectors.tolist() == [[1.5, -2.0]]


def test_a_broken_file_is_told() -> None:
    with pytest.raises(InputError, match="listen again"):
        Responses.from_arrays({"meta": np.frombuffer(b"{}", np.uint8)})
    with pytest.raises(InputError, match="1 clip and 2 texts"):
        Responses(("a",), texts=("x", "y"))


def test_short_vectors_get_zeros_where_blocks_say_how_they_are_made_up() -> None:
    short = Responses(("a",), vectors=np.ones((1, 2), np.float32), blocks=(Block(1, 2),))
    long = Responses(("b",), vectors=np.ones((1, 3), np.float32), blocks=(Block(1, 3),))
    assert [part.tolist() for part in align_widths([short, long])] == [[[1, 1, 0]], [[1, 1, 1]]]


def test_clips_are_matched_by_id_and_the_missing_are_counted_with_a_reason() -> None:
    clips = [Clip(name) for name in "abcd"]
    clean = Responses(("d", "a", "b"), texts=("D", "A", "B"), failures={"c": "too short"})
    coded = Responses(("a", "d"), texts=("a", "d"), failures={"b": "the codec failed", "c": "too short"})
    found = pair_clips(clips, clean, coded)
    assert [clip.id for clip in found.clips] == ["a", "d"]
    assert (found.clean.tolist(), found.coded.tolist()) == ([1, 0], [0, 1])
    assert found.left_out == "2 clips left out, first b: the codec failed"


def test_every_card_names_known_metrics_and_protocols() -> None:
    cards = task_cards()
    assert [card.name for card in cards] == TASKS.names()
    for card in cards:
        assert card.title
        assert card.model
        assert set(card.protocols) <= set(PROTOCOLS)
        for metric in card.metrics:
            metric_facts(metric)


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [("asrr", 'Did you mean "asr"'), ("asr:kaldi", "no recogniser 'kaldi'"), ("asv?tries=3", "cannot be made")],
)
def test_wrong_names_are_told(spec: str, sentence: str) -> None:
    with pytest.raises(EarmarkError, match=sentence):
        open_task(spec)


def test_a_model_that_learns_from_the_clips_is_refused() -> None:
    pytest.importorskip("torch")
    with pytest.raises(UsageError, match="learns from the clips"):
        open_task("content:vae")
