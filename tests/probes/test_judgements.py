"""Judgements from tables: which column is what, how choices are spelled, what is refused, which are filtered."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from earmark.errors import InputError, UsageError
from earmark.probes._items import fulfilling, items_of, majority_of, parse_where
from earmark.probes.perception import Judgements, read_judgements

NAMES = {"x": ["p", "p", "q"], "a": ["s", "t", "s"], "b": ["t", "s", "t"]}


def choices(texts: list[object], **flags: str) -> list[int]:
    table = {**{name: cells[:1] * len(texts) for name, cells in NAMES.items()}, "choice": texts}
    return read_judgements(table, **flags).choices.tolist()


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["A", "b", "NA"], [1, -1, 0]),
        (["Left", "RIGHT", ""], [1, -1, 0]),
        ([1, 2, None], [1, -1, 0]),
        ([1.0, -1.0, float("nan")], [1, -1, 0]),
        (["s", "t", "none"], [1, -1, 0]),
        (["s.wav", "calls/t.wav", "?"], [1, -1, 0]),
        (["first", "second", "tie"], [1, -1, 0]),
    ],
)
def test_choices_are_spelled_in_many_ways(texts: list[object], expected: list[int]) -> None:
    assert choices(texts) == expected


def test_a_choice_may_be_the_name_of_its_column() -> None:
    table = {"probe": ["p"] * 3, "one": ["s"] * 3, "two": ["t"] * 3, "answer": ["two", "One", "none"]}
    assert read_judgements(table, a="one", b="two").choices.tolist() == [-1, 1, 0]
    # The columns may be exchanged: then a word means what stands in the column of that name.
    table = {"x": ["p"], "left": ["s"], "right": ["t"], "choice": ["Left"]}
    assert read_judgements(table, a="right", b="left").choices.tolist() == [-1]


def test_own_spellings_of_choices() -> None:
    assert choices([1, 0, "na"], chose_a="1", chose_b="0") == [1, -1, 0]
    assert choices(["yes", "no", "YES"], chose_a="yes", chose_b="no") == [1, -1, 1]


@pytest.mark.parametrize(
    ("texts", "flags", "words"),
    [
        ([0, 1], {}, "holds 0, which may be the first sound or no choice"),
        (["A", "up"], {}, 'row 2 holds "up"'),
        (["A"], {"chose_a": "A"}, "belong together"),
    ],
)
def test_doubtful_choices_are_refused(texts: list[object], flags: dict[str, str], words: str) -> None:
    with pytest.raises((InputError, UsageError), match=words):
        choices(texts, **flags)


def test_a_choice_that_is_a_word_and_the_other_sounds_name_is_refused() -> None:
    table = {"x": ["c"], "a": ["b"], "b": ["a"], "choice": ["a"]}
    with pytest.raises(InputError, match="a spelling of one choice and the name of the other sound"):
        read_judgements(table)
    assert read_judgements(table, chose_a="a", chose_b="b").choices.tolist() == [1]


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        (("Anchor", "Positive", "Negative"), "triplets"),
        (("ref", "closer", "farther"), "triplets"),
        (("sound_id", "left", "right", "decision"), "2afc"),
        (("X", "A", "B", "Choice"), "2afc"),
        (("Probe", "Stimulus A", "Stimulus_B", "response"), "2afc"),
        (("reference", "option1", "option2", "selected"), "2afc"),
    ],
)
def test_columns_are_known_by_common_names(names: tuple[str, ...], kind: str, tmp_path: Path) -> None:
    cells = ("p", "s", "t", "A")[: len(names)]
    for mark, suffix in ((",", ".csv"), ("\t", ".tsv")):
        path = tmp_path / f"j{suffix}"
        path.write_text(f"{mark.join(names)}\n{mark.join(cells)}\n", encoding="utf-8")
        read = read_judgements(path)
        assert (read.kind, read.sounds, read.choices.tolist()) == (kind, ("p", "s", "t"), [1])


def test_parquet_and_frames_are_read_like_csv(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({**NAMES, "choice": ["A", None, "B"], "listener": [1, 2, 2]})
    frame.to_parquet(tmp_path / "j.parquet")
    for table in (frame, tmp_path / "j.parquet"):
        read = read_judgements(table)
        assert read.choices.tolist() == [1, 0, -1]
        assert read.listeners == ("1", "2", "2")


@pytest.mark.parametrize(
    ("text", "flags", "words"),
    [
        ("u,v,w\n1,2,3\n", {}, "name those that hold anchor, positive and negative"),
        ("anchor,positive\n1,2\n", {"anchor": "anchor"}, "say which of them holds negative"),
        ("anchor,positive,negative\n", {}, "holds no judgements"),
        ("", {}, "is empty"),
        ("anchor\tpositive\tnegative\n1\t2\t3\n", {}, "by tabs: name it .tsv"),
        ("anchor,positive,negative,Anchor\n1,2,3,4\n", {}, "more than once"),
        ("x,a,b,choice,anchor,positive,negative\n1,2,3,A,1,2,3\n", {}, "may hold 2afc or triplets"),
        ("x,a,b,choice\n1,2,3,A\n", {"a": "bee"}, 'no column "bee"'),
        ("x,a,b,choice\n1,2,3,A\n", {"a": "b"}, 'column "b" is taken for a, b'),
        ("x,a,b,choice\n1,2,3,A\n", {"x": "x", "anchor": "a"}, "not both"),
    ],
)
def test_tables_that_say_too_little_are_refused(text: str, flags: dict[str, str], words: str, tmp_path: Path) -> None:
    path = tmp_path / "j.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises((InputError, UsageError), match=words):
        read_judgements(path, **flags)


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="judgements are read from"):
        read_judgements(tmp_path / "j.xlsx")
    with pytest.raises(InputError, match="does not exist"):
        read_judgements(tmp_path / "j.csv")


def test_one_sound_under_two_spellings_is_one_sound() -> None:
    table = {"anchor": ["a.wav", "a"], "positive": ["b", "b.wav"], "negative": ["c.wav", "c.flac"]}
    read = read_judgements(table)
    assert read.sounds == ("a.wav", "b.wav", "c.wav", "c.flac")
    assert read.notes == ("2 sounds named with and without an ending: taken for the same",)


# --- items and filters ------------------------------------------------------------------------------------------------


@pytest.fixture
def repeated() -> Judgements:
    """Item 1 five times (4 : 1, once with the sides exchanged), item 2 twice (1 : 1), item 3 once, once undecided."""
    return read_judgements({
        "x": ["p"] * 5 + ["q"] * 2 + ["r"] * 2,
        "a": ["s", "s", "s", "s", "t", "s", "s", "s", "s"],
        "b": ["t", "t", "t", "t", "s", "t", "t", "u", "u"],
        "choice": ["A", "A", "A", "B", "B", "A", "B", "A", "NA"],
        "day": ["1", "1", "2", "2", "x", None, "3", "3", "1.0"],
        "sure": [0.1, 0.5, 0.8, 0.9, None, 1, 1, 0.8, 0.8],
    })  # fmt: skip


def test_repeats_are_counted_in_both_orders(repeated: Judgements) -> None:
    items = items_of(repeated)
    assert sorted(map(sorted, items.votes.tolist())) == [[0, 1], [1, 1], [1, 4]]
    kept = fulfilling(repeated, parse_where("agreement>=0.8 & repeats>=3"))
    assert np.flatnonzero(kept).tolist() == [0, 1, 2, 3, 4]
    assert fulfilling(repeated, parse_where("repeats<3")).sum() == 4


def test_the_majority_is_one_judgement_for_each_item(repeated: Judgements) -> None:
    whole = majority_of(repeated)
    assert [(whole.sounds[x], int(choice)) for x, choice in zip(whole.x, whole.choices, strict=True)] == [
        ("p", 1), ("q", 0), ("r", 1),
    ]  # fmt: skip
    triplets = read_judgements({"anchor": ["p"] * 3, "positive": ["s", "t", "t"], "negative": ["t", "s", "s"]})
    winner = majority_of(triplets)
    assert (winner.sounds[winner.a[0]], winner.sounds[winner.b[0]], winner.choices.tolist()) == ("t", "s", [1])


@pytest.mark.parametrize(
    ("where", "rows"),
    [
        ("day=1", [0, 1, 8]),
        ("Day != 1", [2, 3, 4, 6, 7]),
        ("sure>=0.8", [2, 3, 5, 6, 7, 8]),
        ("sure<0.8", [0, 1]),
        ("day=1&sure>0.4", [1, 8]),
    ],
)
def test_filters_choose_by_columns(repeated: Judgements, where: str, rows: list[int]) -> None:
    assert np.flatnonzero(fulfilling(repeated, parse_where(where))).tolist() == rows


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("day", "write COLUMN=VALUE"),
        ("day>=early", "which is no number"),
        ("dya=1", 'no column "dya".*Did you mean "day"'),
        ("day=9", "no judgement has day=9; the column holds 1, 1.0, 2"),
        ("day>=2", 'holds "x", no number'),
        ("=3", "write COLUMN=VALUE"),
    ],
)
def test_filters_that_mean_nothing_are_refused(repeated: Judgements, where: str, words: str) -> None:
    with pytest.raises((InputError, UsageError), match=words):
        fulfilling(repeated, parse_where(where))
