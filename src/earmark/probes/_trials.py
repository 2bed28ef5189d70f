"""Which clips meet in trials: every pair, a seeded sample of the pairs where they are many, or a list of the user's.

    pairs of one speaker     n_s (n_s - 1) / 2 for each speaker s
    pairs of two speakers    n_s (N - n_s) / 2 for each speaker s, its share of them

Where there are more than `most` pairs, half as many of each kind are drawn, or all of a kind that has fewer, without
replacement and with every speaker's share to within one: the error rates of all pairs are those that the sample
estimates. An EER of 4 % from 25,000 trials of each kind is off by about 0.1 points for the sampling; who the speakers
are makes far more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.corpora.clips import Clip
from earmark.errors import InputError
from earmark.places import locate
from earmark.probes._scoring import join_notes
from earmark.wording import counted

MOST_TRIALS = 50_000
"""Pairs of clips that are all tried: those of 316 clips. Of more, as many are drawn."""

Codes = NDArray[np.int64]


class TrialClips(NamedTuple):
    """Which clips meet in a trial, by their row, and whether it is one speaker's."""

    first: Codes
    second: Codes
    same: NDArray[np.bool_]
    note: str


def choose_trials(speakers: Codes, most: int, seed: int) -> TrialClips:
    """Pairs of clips that have a speaker (-1: none), all of them or `most`."""
    kept = np.flatnonzero(speakers >= 0)
    if not len(kept):
        raise InputError("no clip has a group: name its speaker there, or give a list of trials")
    codes, sizes = np.unique(speakers[kept], return_inverse=True, return_counts=True)[1:]
    if len(sizes) < 2 or sizes.max() < 2:
        raise InputError(
            f"{counted(len(kept), 'clip')} of {counted(len(sizes), 'speaker')} make no trials of both kinds: at least "
            "two speakers and one with two clips are needed"
        )
    without = len(speakers) - len(kept)
    note = join_notes(
        counted(len(sizes), "speaker"), f"{counted(without, 'clip')} without speaker" if without else ""
    )  # fmt: skip
    count = len(kept) * (len(kept) - 1) // 2
    if count <= most:
        rows, columns = np.triu_indices(len(kept), 1)
    else:
        rows, columns = _drawn(codes.astype(np.int64), sizes.astype(np.int64), most, np.random.default_rng([seed, 11]))
        note = join_notes(note, f"drawn from {count} pairs")
    return TrialClips(kept[rows], kept[columns], codes[rows] == codes[columns], note)


def _drawn(codes: Codes, sizes: Codes, most: int, rng: np.random.Generator) -> tuple[Codes, Codes]:
    """Rows of the two clips of each trial, the lower one first, in order."""
    clips = len(codes)
    members = np.split(np.argsort(codes, kind="stable"), np.cumsum(sizes)[:-1])
    of_one, of_two = sizes * (sizes - 1) // 2, sizes * (clips - sizes)  # a pair of two speakers is in the share of both
    same = min(most // 2, int(of_one.sum()))
    other = min(most - same, int(of_two.sum()) // 2)
    keys: set[int] = set()
    for own, pairs, quota in zip(members, of_one, _shares(of_one, same), strict=True):
        numbers = _without_replacement(int(pairs), int(quota), rng)
        # Pair number p of the lower triangle: row r has the pairs r (r - 1) / 2 to r (r + 1) / 2 - 1.
        rows = ((1 + np.sqrt(1 + 8.0 * numbers)) / 2).astype(np.int64)
        rows += (rows + 1) * rows // 2 <= numbers  # where the root was rounded
        rows -= rows * (rows - 1) // 2 > numbers
        keys.update(_keys(own[numbers - rows * (rows - 1) // 2], own[rows], clips).tolist())
    for own, pairs, quota in zip(members, of_two, _shares(of_two, other), strict=True):
        others = clips - len(own)
        wanted = len(keys) + int(quota)
        while len(keys) < wanted:  # a pair that the other speaker's share holds already is drawn anew
            numbers = rng.permutation(_without_replacement(int(pairs), min(int(pairs), 2 * (wanted - len(keys))), rng))
            drawn = _keys(own[numbers // others], _not_among(own, numbers % others), clips).tolist()
            new = [key for key in dict.fromkeys(drawn) if key not in keys]
            keys.update(new[: wanted - len(keys)])
            if not new:
                break  # it has no pairs left
    ordered = np.sort(np.fromiter(keys, np.int64, len(keys)))
    return ordered // clips, ordered % clips


def _not_among(own: Codes, numbers: Codes) -> Codes:
    """The rows with these numbers among all that are not in `own`, which is sorted: no list of the others is made."""
    return numbers + np.searchsorted(own - np.arange(len(own)), numbers, side="right")


def _keys(one: Codes, two: Codes, clips: int) -> Codes:
    """A number for each pair, whichever of the two comes first."""
    return np.minimum(one, two) * clips + np.maximum(one, two)


def _shares(amounts: Codes, total: int) -> Codes:
    """A total shared out in proportion to the amounts, whole and exact: the largest remainders are rounded up."""
    exact = amounts * (total / amounts.sum()) if amounts.sum() else np.zeros(len(amounts))
    shares = np.floor(exact).astype(np.int64)
    order = np.argsort(shares - exact, kind="stable")
    shares[order[: total - int(shares.sum())]] += 1
    return np.minimum(shares, amounts)


def _without_replacement(total: int, count: int, rng: np.random.Generator) -> Codes:
    """So many different numbers below `total`; memory follows the count, not the total."""
    if count >= total:
        return np.arange(total)
    return np.sort(rng.choice(total, count, replace=False, shuffle=False)).astype(np.int64)


def read_trials(path: str) -> list[tuple[bool, str, str]]:
    """Lines `1 enrolled tested` of a file of trials, as VoxCeleb has them; ids of clips hold no spaces."""
    try:
        lines = locate(path).expanduser().read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read as a list of trials ({error}).") from error
    trials = []
    for number, line in enumerate(lines, start=1):
        cells = line.split()
        if not cells:
            continue
        if len(cells) != 3 or cells[0] not in ("0", "1"):
            raise InputError(f"Line {number} of {path} is no trial: write 1 (one speaker) or 0, and two ids of clips.")
        trials.append((cells[0] == "1", cells[1], cells[2]))
    return trials


def listed_trials(trials: Sequence[tuple[bool, str, str]], clips: Sequence[Clip]) -> TrialClips:
    """The trials of a list whose clips are here."""
    rows = {clip.id: row for row, clip in enumerate(clips)}
    kept = [(rows[first], rows[second], same) for same, first, second in trials if first in rows and second in rows]
    first, second, same = np.array(kept, np.int64).reshape(-1, 3).T
    if not same.any() or same.all():
        raise InputError(f"the {counted(len(kept), 'listed trial')} of these clips are not of both kinds")
    note = f"{len(trials) - len(kept)} listed trials of other clips" if len(kept) < len(trials) else ""
    return TrialClips(first, second, same.astype(np.bool_), note)
