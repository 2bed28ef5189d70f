"""Word errors against a table of edits, written out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earmark.probes.asr import count_errors, normalise

pytest.importorskip("jiwer")


def slow_distance(one: list[str], two: list[str]) -> int:
    """The least insertions, deletions and substitutions, cell by cell."""
    table = np.zeros((len(one) + 1, len(two) + 1), int)
    table[:, 0], table[0, :] = range(len(one) + 1), range(len(two) + 1)
    for i, a in enumerate(one):
        for j, b in enumerate(two):
            table[i + 1, j + 1] = min(table[i, j] + (a != b), table[i, j + 1] + 1, table[i + 1, j] + 1)
    return int(table[-1, -1])


sentences = st.lists(st.sampled_from(["a", "b", "c", "it's"]), max_size=7)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(sentences, sentences), min_size=1, max_size=4))
def test_edits_are_those_of_the_slow_table(pairs: list[tuple[list[str], list[str]]]) -> None:
    found = count_errors([" ".join(one) for one, _ in pairs], [" ".join(two) for _, two in pairs])
    assert found.errors.tolist() == [slow_distance(one, two) for one, two in pairs]
    assert found.words.tolist() == [len(one) for one, _ in pairs]
    total = sum(len(one) for one, _ in pairs)
    assert found.rate == (pytest.approx(found.errors.sum() / total) if total else None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  Hello,  WORLD!\n", "hello world"),
        ("It’s the dogs' 'best' day", "it's the dogs best day"),
        ("well-known_thing", "well known thing"),
        ("ﬁne ２０", "fine twenty"),
        ("Press 1, or 21.", "press one or twenty one"),
        (
            "It costs 1,050 or 3.05 in the mp3 of the 2nd, 12th and 20th",
            "it costs one thousand fifty or three point zero five in the mp3 of the second twelfth and twentieth",
        ),
        ("007 at 10:30", "zero zero seven at ten thirty"),
        ("1,2 and 9999999999999", "one two and" + 13 * " nine"),
        ("Grüße — ça va?", "grüße ça va"),
        ("...", ""),
    ],
)
def test_texts_are_brought_to_one_spelling(text: str, expected: str) -> None:
    assert normalise(text) == expected
    assert normalise(expected) == expected


def read_aloud(words: str) -> int:
    """The number that words stand for."""
    units = (
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen"
    ).split()
    tens = "twenty thirty forty fifty sixty seventy eighty ninety".split()
    small = {word: value for value, word in enumerate(units)} | {word: 10 * n for n, word in enumerate(tens, 2)}
    total = group = 0
    for word in words.split():
        if word == "hundred":
            group *= 100
        elif word in ("thousand", "million", "billion"):
            total, group = total + group * 1000 ** (1 + ["thousand", "million", "billion"].index(word)), 0
        else:
            group += small[word]
    return total + group


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 10**12 - 1) | st.integers(0, 2000))
def test_numbers_in_words_are_those_numbers(number: int) -> None:
    assert read_aloud(normalise(str(number))) == number
    assert normalise(f"{number:,}") == normalise(str(number))


def test_a_long_sentence_counts_for_more() -> None:
    found = count_errors(["a", "a b c d e f g h i"], ["b", "a b c d e f g h i"])
    assert found.rate == pytest.approx(0.1)
