"""Numbers in words, so that "press 1" and "press one" are the same text.

    7 seven · 21 twenty one · 105 one hundred five · 1,000 one thousand · 007 zero zero seven · 3.5 three point five
    2nd second · 21st twenty first

A number is read as a cardinal whatever it stands for: 1984 is one thousand nine hundred eighty four, though a year is
spoken otherwise. Digits inside a word (mp3) stay.
"""

from __future__ import annotations

import re

_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_GROUPS = ("", "thousand", "million", "billion")
_ORDINALS = {
    "one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth", "nine": "ninth",
    "twelve": "twelfth",
}  # fmt: skip
_NUMBER = re.compile(r"(?<!\w)([0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.([0-9]+)|(st|nd|rd|th))?(?!\w)")


def spell_numbers(text: str) -> str:
    """The text with its numbers in English words."""
    return _NUMBER.sub(_spelled, text)


def _spelled(found: re.Match[str]) -> str:
    digits, decimals, ending = found[1].replace(",", ""), found[2], found[3]
    if len(digits) > 3 * len(_GROUPS) or (digits[0] == "0" and len(digits) > 1):
        words = _one_by_one(digits)
    else:
        words = _cardinal(int(digits))
    if decimals:
        words += ["point", *_one_by_one(decimals)]
    if ending:
        last = words[-1]
        words[-1] = _ORDINALS.get(last) or (f"{last[:-1]}ieth" if last.endswith("y") else f"{last}th")
    return " ".join(words)


def _one_by_one(digits: str) -> list[str]:
    return [_SMALL[int(digit)] for digit in digits]


def _cardinal(number: int) -> list[str]:
    if number < 20:
        return [_SMALL[number]]
    words: list[str] = []
    for power in reversed(range(len(_GROUPS))):
        group = number // 1000**power % 1000
        if not group:
            continue
        hundreds, rest = divmod(group, 100)
        words += [_SMALL[hundreds], "hundred"] if hundreds else []
        if rest >= 20:
            words.append(_TENS[rest // 10 - 2])
            rest %= 10
        words += [_SMALL[rest]] if rest else []
        words += [_GROUPS[power]] if power else []
    return words
