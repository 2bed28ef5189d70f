"""What does the score itself tell? An attacker who wants labels and not a model, against the policy and its parts.

    python benchmarks/blind_attack.py                                    the table of docs/blind-threats.md
    python benchmarks/blind_attack.py --attackers 3 --set 1001x80        a quick look
    python benchmarks/blind_attack.py --figure docs/images/blind-attack.png

His model knows every clip by its sound and may answer any vector: he decides which clip is nearest to which (a test
builds such vectors). P@1 then counts how many of his guesses "i has the label of j" are right. Every submission is a
question about all clips at once, and its figure is the answer, told by `earmark.blind.release` as to any participant.

    pooled   every clip points at one of K clips drawn at random; all answers together are decoded by mean-field
             inference, which tells each clip's share in each answer. Answers in steps are kept at the edge of a step by
             letting some clips point into a large class: how many, the answers steer.
    climbing some clips point elsewhere than before; kept if the figure rises
    sizes    all clips point at one: the figure is the size of its class, the largest leverage that one label has. Where
             the policy bounds what may hang on one clip, as many as it allows do, and the others at random.
"""

from __future__ import annotations

import argparse
import csv
import math
import multiprocessing
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit
from scipy.stats import rankdata

from earmark.blind.policy import Policy, SetTerms
from earmark.blind.release import release
from earmark.blind.steps import step_for
from earmark.scores import Row, Scores
from earmark.tables import aligned

SUBMISSIONS = 1000
DAYS = 90
Labels = NDArray[np.int64]
Floats = NDArray[np.float64]


def draw_labels(clips: int, classes: int, random: np.random.Generator) -> Labels:
    """Classes of uneven sizes, each of two clips or more, as words and utterances have them."""
    weights = random.lognormal(0.0, 0.8, classes)
    extra = random.multinomial(clips - 2 * classes, weights / weights.sum())
    return random.permutation(np.repeat(np.arange(classes), 2 + extra))


def hits(labels: Labels, pointers: Labels) -> float:
    """P@1 when the nearest clip of i is pointers[i]; a clip that points at itself misses."""
    return float(((labels == labels[pointers]) & (pointers != np.arange(len(labels)))).mean())


# --- what he is told -------------------------------------------------------------------------------------------------


class Terms(NamedTuple):
    """One way to answer: rounded or not, with the Ladder or without, and how often."""

    name: str
    rounded: bool
    ladder: bool
    submissions: int = SUBMISSIONS
    entries: int = 1
    leverage: float = 1.0


def variants(policy: Policy) -> list[Terms]:
    """No policy, its parts, all of it, and all of it with a board that makes teams up."""
    days = math.ceil(SUBMISSIONS / policy.quota)
    entries = policy.entries * math.ceil(days / policy.period_days)
    invented = policy.entries_overall * math.ceil(SUBMISSIONS / policy.releases_per_day / policy.period_days)
    return [
        Terms("no policy: exact figures", False, False),
        Terms(f"quota only ({policy.quota * DAYS} in {DAYS} days)", False, False, policy.quota * DAYS),
        Terms("Ladder only", False, True),
        Terms("rounding only", True, False),
        Terms("bounded leverage only", False, False, leverage=policy.leverage),
        Terms("rounding and Ladder, one entry", True, True),
        Terms(f"all but bounded leverage ({entries} entries)", True, True, SUBMISSIONS, entries),
        Terms(f"the whole policy ({entries} entries)", True, True, SUBMISSIONS, entries, policy.leverage),
        Terms(
            f"whole, each figure asked by itself ({3 * entries})",
            True,
            True,
            3 * SUBMISSIONS,
            3 * entries,
            policy.leverage,
        ),
        Terms(
            f"the same with made-up teams ({3 * invented})", True, True, 3 * SUBMISSIONS, 3 * invented, policy.leverage
        ),
    ]


@dataclass
class Board:
    """Answers submissions under some terms with the code that answers participants."""

    policy: Policy
    terms: Terms
    told: list[float] = field(default_factory=list)
    _row: Row | None = None

    @property
    def step(self) -> float:
        return float(self.policy.sets["set"].steps["P@1"]) if self.terms.rounded else 0.0

    @property
    def most(self) -> int:
        """How many clips may point at one."""
        return int(self.terms.leverage * self.policy.sets["set"].clips)

    @property
    def left(self) -> int:
        return self.terms.submissions - len(self.told)

    @property
    def begins(self) -> bool:
        """Whether the next submission is the first of an entry: he begins new ones as often as he may."""
        return len(self.told) % math.ceil(self.terms.submissions / self.terms.entries) == 0

    def submit(self, value: float) -> float:
        """What is told of an exact value."""
        if not self.terms.rounded and not self.terms.ladder:
            self.told.append(value)
            return value
        if not self.terms.ladder or self.begins:
            self._row = None
        cells = {"low": max(0.0, value - 0.02), "high": min(1.0, value + 0.02), "interval": "jackknife"}
        exact = Scores((Row(subset="set", metric="P@1", distance="cosine", value=value, **cells),))
        history = {} if self._row is None else {("set", "P@1"): self._row}
        (self._row,) = release(self.policy, exact, history, board="b", entry="e").rows
        assert self._row.value is not None
        self.told.append(self._row.value)
        return self._row.value


def policy_for(clips: int, classes: int, terms: Terms) -> Policy:
    """The policy of a set whose reference model finds 13 % of nearest clips right, as printed for HU4."""
    margin = 1.96 * math.sqrt(0.13 * 0.87 / clips)
    worth = Policy().clips_per_step if terms.rounded else 1  # the Ladder alone climbs by single clips
    step = step_for(margin if terms.rounded else 0.0, clips, worth)
    return Policy(sets={"set": SetTerms("set", clips, classes, {"P@1": step})}, clips_per_step=worth)


# --- what he does ----------------------------------------------------------------------------------------------------


class Belief(NamedTuple):
    """What he ends with: the clip that each clip is likest to, and how much each belongs to each of his groups."""

    pointers: Labels
    shares: Floats


def pooled(labels: Labels, board: Board, random: np.random.Generator, anchors: int) -> Belief:
    clips = len(labels)
    anchors = max(anchors, math.ceil(1.5 * clips / board.most))
    large = _clip_of_a_large_class(labels, board, random)
    chosen = random.choice(clips, anchors, replace=False)
    order, knob = random.permutation(clips), 0.0
    guesses = np.empty((board.left, clips), np.int16)
    answers, recent = np.empty(board.left), 0.0
    for query in range(board.left):
        guess = random.integers(0, anchors, clips)
        ballast = order[: round(knob)]
        pointers = chosen[guess]
        pointers[ballast] = large
        guess[ballast] = -1
        answer = board.submit(hits(labels, pointers))
        recent = answer if query == 0 else 0.95 * recent + 0.05 * answer
        if board.step:  # as many above the edge as below
            knob = float(np.clip(knob + (4.0 if answer <= recent else -4.0), 0, min(board.most, clips) // 2))
        guesses[query], answers[query] = guess, answer
    return _decoded(guesses, answers, chosen, board.step, random)


def _clip_of_a_large_class(labels: Labels, board: Board, random: np.random.Generator, tries: int = 20) -> int:
    tried = random.choice(len(labels), tries, replace=False)
    answers = [_size(labels, board, clip, random) for clip in tried]
    return int(tried[int(np.argmax(answers))])


def _decoded(
    guesses: NDArray[np.int16], answers: Floats, chosen: Labels, step: float, random: np.random.Generator
) -> Belief:
    """How much each clip belongs to the class of each chosen one, from the answers to all guesses."""
    queries, clips = guesses.shape
    anchors = len(chosen)
    shares = np.full((clips, anchors), 1.0 / anchors)
    # What ballast adds is unknown and slow: the answers are taken against their neighbours in time.
    width = min(41, queries | 1)
    smooth = np.convolve(np.pad(answers, width // 2, mode="edge"), np.ones(width) / width, "valid")[:queries]
    signal = (answers - smooth) * clips
    columns = np.arange(clips)
    flat = columns * (anchors + 1) + np.where(guesses >= 0, guesses, anchors)
    for _ in range(12):
        padded = np.concatenate([shares, np.zeros((clips, 1))], axis=1).ravel()
        own = padded[flat]
        expected = own.sum(axis=1)
        residual = signal - (expected - expected.mean())
        noise = max(float(residual.var()), float((own * (1 - own)).sum(axis=1).mean()), (step * clips) ** 2 / 12, 1e-3)
        terms = (residual[:, None] + own - 0.5) / noise
        evidence = np.bincount(flat.ravel(), terms.ravel(), clips * (anchors + 1)).reshape(clips, -1)[:, :anchors]
        evidence -= evidence.max(axis=1, keepdims=True)
        fresh = np.exp(evidence)
        shares = 0.5 * shares + 0.5 * fresh / fresh.sum(axis=1, keepdims=True)
    best = np.argmax(shares + 1e-9 * random.random(shares.shape), axis=1)
    return Belief(chosen[best], shares)


def climbing(labels: Labels, board: Board, random: np.random.Generator, anchors: int) -> Belief:
    clips = len(labels)
    chosen = random.choice(clips, anchors, replace=False)
    current = random.integers(0, anchors, clips)
    best = board.submit(hits(labels, chosen[current]))
    while board.left:
        block = random.choice(clips, max(1, anchors // 2), replace=False)
        changed = current.copy()
        changed[block] = random.integers(0, anchors, len(block))
        answer = board.submit(hits(labels, chosen[changed]))
        if answer > best:
            current, best = changed, answer
    return Belief(chosen[current], np.eye(anchors)[current])


def sizes(labels: Labels, board: Board, random: np.random.Generator, anchors: int) -> Belief:
    """Clips by what was told of the size of their class; under the Ladder, silence says that it is not larger."""
    clips = len(labels)
    asked = random.permutation(clips)[: board.left]
    answers = np.empty(len(asked))
    for place, clip in enumerate(asked):
        begins = board.begins
        standing = 0.0 if begins else board.told[-1]
        answer = _size(labels, board, int(clip), random)
        stands = board.terms.ladder and not begins and answer == standing
        answers[place] = -standing - 1.0 if stands else answer
    levels, group = np.unique(answers, return_inverse=True)
    groups = random.choice(group, clips)  # of clips that were not asked about nothing is known
    groups[asked] = group
    members = [asked[group == level] for level in range(len(levels))]
    return Belief(np.array([random.choice(members[own]) for own in groups]), np.eye(len(levels))[groups])


def _size(labels: Labels, board: Board, clip: int, random: np.random.Generator) -> float:
    """What is told when as many clips as allowed point at one."""
    clips = len(labels)
    pointers = random.permutation(clips)
    pointers[random.permutation(clips)[: board.most]] = clip
    return board.submit(hits(labels, pointers))


Attack = Callable[[Labels, Board, np.random.Generator, int], Belief]
ATTACKS: dict[str, tuple[Attack, int]] = {
    "pooled, K=10": (pooled, 10),
    "pooled, K=30": (pooled, 30),
    "climbing": (climbing, 30),
    "sizes": (sizes, 1),
}


# --- what it is worth ------------------------------------------------------------------------------------------------


class Leak(NamedTuple):
    """What an attacker knows at the end.

    p1 is P@1 of his last vectors; shuffled the same when his answers are dealt to clips at random: to have found a
    large class is no knowledge of clips; auc how well he tells pairs of one label from others (0.5: not at all); bits
    what his groups tell about the labels of all clips together, less what groups dealt at random seem to tell; told how
    many times the answer was a new one; fresh P@1 of clips that he never asked about, among those he did.
    """

    p1: float
    shuffled: float
    auc: float
    bits: float
    told: float
    fresh: float

    @property
    def gain(self) -> float:
        """P@1 above chance: what he knows of single clips."""
        return self.p1 - self.shuffled


def worth(labels: Labels, belief: Belief, board: Board, random: np.random.Generator) -> Leak:
    dealt = [hits(labels, random.permutation(belief.pointers)) for _ in range(50)]
    groups = np.argmax(belief.shares + 1e-9 * random.random(belief.shares.shape), axis=1)
    by_chance = np.mean([_information(labels, random.permutation(groups)) for _ in range(20)])
    bits = len(labels) * (_information(labels, groups) - float(by_chance))
    changes = 1 + int(np.count_nonzero(np.diff(board.told)))
    # A new recording of the same classes is unknown to him: his answers are for others, and he can only deal them.
    fresh = float((random.permutation(labels) == labels[belief.pointers]).mean())
    auc = _auc(labels, belief.shares, random)
    return Leak(hits(labels, belief.pointers), float(np.mean(dealt)), auc, bits, changes, fresh)


def _information(labels: Labels, groups: Labels) -> float:
    """Mutual information of labels and groups in bits for a clip."""
    table = np.zeros((labels.max() + 1, groups.max() + 1))
    np.add.at(table, (labels, groups), 1 / len(labels))
    product = table.sum(axis=1, keepdims=True) * table.sum(axis=0, keepdims=True)
    seen = table > 0
    return float((table[seen] * np.log2(table[seen] / product[seen])).sum())


def _auc(labels: Labels, shares: Floats, random: np.random.Generator, pairs: int = 40_000) -> float:
    first, second = random.integers(0, len(labels), (2, pairs * 20))
    apart = first != second
    first, second = first[apart], second[apart]
    same = labels[first] == labels[second]
    kept = np.concatenate([np.flatnonzero(same)[:pairs], np.flatnonzero(~same)[:pairs]])
    first, second, same = first[kept], second[kept], same[kept]
    ranks = rankdata(np.einsum("ij,ij->i", shares[first], shares[second]))
    ones, others = int(same.sum()), int((~same).sum())
    return float((ranks[same].sum() - ones * (ones + 1) / 2) / (ones * others))


def attack(clips: int, classes: int, terms: Terms, name: str, seed: int) -> Leak:
    """One attacker on one set of labels."""
    random = np.random.default_rng([seed, clips, len(terms.name), *map(ord, name)])
    labels = draw_labels(clips, classes, random)
    board = Board(policy_for(clips, classes, terms), terms)
    run, anchors = ATTACKS[name]
    return worth(labels, run(labels, board, random, anchors), board, random)


class Line(NamedTuple):
    """All attackers of one kind under one variant."""

    clips: int
    classes: int
    variant: str
    attack: str
    leaks: tuple[Leak, ...]

    def mean(self, name: str) -> tuple[float, float]:
        """Mean over attackers, and half of its 95 % interval."""
        values = np.array([getattr(leak, name) for leak in self.leaks])
        if len(values) < 2:
            return float(values.mean()), 0.0
        quantile = float(stdtrit(len(values) - 1, 0.975))
        return float(values.mean()), quantile * float(values.std(ddof=1)) / math.sqrt(len(values))


def lines(sets: Sequence[tuple[int, int]], attackers: int, processes: int) -> Iterator[Line]:
    work = [
        (clips, classes, terms, name) for clips, classes in sets for terms in variants(Policy()) for name in ATTACKS
    ]
    jobs = [(*item, seed) for item in work for seed in range(attackers)]
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        leaks = pool.starmap(attack, jobs, chunksize=1)
    for place, (clips, classes, terms, name) in enumerate(work):
        yield Line(clips, classes, terms.name, name, tuple(leaks[place * attackers : (place + 1) * attackers]))


# --- what honest participants pay ------------------------------------------------------------------------------------


class Price(NamedTuple):
    """How often an improvement under the same entry is seen, and how far released figures lie from exact ones."""

    improvement: float  # in steps
    seen: float
    error: float  # in steps, root of the mean square


def honest(improvements: Sequence[float], repeats: int = 2000, seed: int = 0) -> list[Price]:
    terms = Terms("", True, True)
    policy = policy_for(1001, 80, terms)
    step = float(policy.sets["set"].steps["P@1"])
    random = np.random.default_rng(seed)
    prices = []
    for improvement in improvements:
        seen, errors = 0, []
        for value in random.uniform(0.1, 0.3, repeats):
            board = Board(policy, terms)
            first = board.submit(value)
            second = board.submit(value + improvement * step)
            seen += second > first
            errors.append((second - (value + improvement * step)) / step)
        prices.append(Price(improvement, seen / repeats, float(np.sqrt(np.mean(np.square(errors))))))
    return prices


# --- showing ---------------------------------------------------------------------------------------------------------


def table(found: Sequence[Line]) -> str:
    rows = [
        ["set", "variant", "attack", "P@1", "dealt at random", "gain", "fresh clips", "AUC of pairs", "bits", "answers"]
    ]
    for line in found:
        cells = [f"{line.mean('p1')[0]:.3f} ± {line.mean('p1')[1]:.3f}", f"{line.mean('shuffled')[0]:.3f}"]
        cells += [f"{line.mean('gain')[0]:+.4f} ± {line.mean('gain')[1]:.4f}", f"{line.mean('fresh')[0]:.3f}"]
        cells += [f"{line.mean('auc')[0]:.3f} ± {line.mean('auc')[1]:.3f}"]
        cells += [f"{line.mean('bits')[0]:.0f} ± {line.mean('bits')[1]:.0f}", f"{line.mean('told')[0]:.0f}"]
        rows.append([f"{line.clips}/{line.classes}", line.variant, line.attack, *cells])
    return "\n".join(aligned(rows))


def strongest(found: Sequence[Line]) -> list[Line]:
    """Of every variant and set the attack with the largest gain; where there is none to have, the luckiest."""
    best: dict[tuple[int, str], Line] = {}
    for line in found:
        key = (line.clips, line.variant)
        if key not in best or line.mean("gain") > best[key].mean("gain"):
            best[key] = line
    return list(best.values())


def draw(found: Sequence[Line], target: str) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    best = strongest(found)
    sets = list(dict.fromkeys((line.clips, line.classes) for line in best))
    figure, axes = plt.subplots(1, len(sets), figsize=(3.2 + 3.6 * len(sets), 3.8), sharey=True, squeeze=False)
    for panel, (clips, classes) in zip(axes[0], sets, strict=True):
        chosen = [line for line in best if line.clips == clips][::-1]
        places = np.arange(len(chosen))
        values, margins = zip(*(line.mean("p1") for line in chosen), strict=True)
        panel.barh(places, values, xerr=margins, color="#3b6ea5", height=0.62)
        panel.plot([line.mean("shuffled")[0] for line in chosen], places, "k|", markersize=14, markeredgewidth=2)
        panel.set_yticks(places, [line.variant for line in chosen])
        panel.set_title(f"{clips:,} clips, {classes} classes", loc="left", fontsize=10)
        panel.set_xlabel("P@1 of the attacker; black mark: chance")
        panel.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(target, dpi=130)


def write(found: Sequence[Line], target: Path) -> None:
    with target.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow([*Line._fields[:-1], *Leak._fields])
        writer.writerows((*line[:4], *leak) for line in found for leak in line.leaks)


def read(source: Path) -> list[Line]:
    """What `write` wrote."""
    leaks: dict[tuple[str, ...], list[Leak]] = {}
    with source.open(newline="") as stream:
        for cells in list(csv.reader(stream))[1:]:
            leaks.setdefault(tuple(cells[:4]), []).append(Leak(*map(float, cells[4:])))
    return [Line(int(key[0]), int(key[1]), key[2], key[3], tuple(group)) for key, group in leaks.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attackers", type=int, default=8, help="of each kind (default: 8)")
    parser.add_argument("--set", action="append", metavar="CLIPSxCLASSES", help="default: 1001x80 and 4540x368")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--csv", type=Path, metavar="FILE", help="keep every attacker's result there")
    parser.add_argument(
        "--read", type=Path, nargs="+", metavar="FILE", help="show what such files hold, attack nothing"
    )
    parser.add_argument("--figure", metavar="PNG")
    args = parser.parse_args()
    if args.read:
        found = [line for source in args.read for line in read(source)]
    else:
        texts = args.set or ["1001x80", "4540x368"]
        sets = [(int(clips), int(classes)) for clips, classes in (text.split("x") for text in texts)]
        found = list(lines(sets, args.attackers, args.processes))
    if args.csv:
        write(found, args.csv)
    print(table(found), "", "strongest attack of each variant:", table(strongest(found)), sep="\n")
    print("\nimprovement (steps)  seen  error (steps)")
    for price in honest((0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0)):
        print(f"{price.improvement:19.2f}  {price.seen:4.0%}  {price.error:13.2f}")
    if args.figure:
        draw(found, args.figure)


if __name__ == "__main__":
    sys.exit(main())
