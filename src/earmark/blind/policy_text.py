"""A policy in plain words, for the owners of the recordings, their lawyers, and everybody who submits."""

from __future__ import annotations

from collections.abc import Iterator

from earmark.blind.policy import METRICS, Policy, SetTerms
from earmark.wording import counted

__all__ = ["HEARINGS", "new_entries", "policy_text"]

HEARINGS = 3
"""So many times may the recordings be heard for each release that may leave on a day."""

_FIGURES = {
    "P@1": "P@1: the share of clips whose nearest clip, as the model hears them, has the same label",
    "P@5": "P@5: the share of the five nearest clips that have the same label",
    "GSR": "GSR: how far clips of other labels lie from a clip, against clips of its own",
}


def policy_text(policy: Policy) -> str:
    """The policy as Markdown; every number in it is the number that the program uses."""
    return "\n\n".join(_paragraphs(policy)) + "\n"


def _paragraphs(policy: Policy) -> Iterator[str]:
    yield "# What leaves the host, and what never does"
    contact = f" Questions, objections and suspicions go to {policy.contact}." if policy.contact else ""
    yield (
        f"The recordings belong to {policy.owners}. They stay with the host. Models come to the recordings; the "
        f"recordings go nowhere.{contact}"
    )
    yield "## What never leaves"
    yield (
        "No recording and no part of one. No label, and no list of labels. No result for a single clip, class, speaker "
        "or other part of a set. No measured number as it was measured. Nothing that a model writes, prints or names "
        "on the host's machine."
    )
    yield "## What leaves"
    yield f"For each set and each submission {_numbers(policy)}:"
    yield "\n".join(f"- {_FIGURES[metric]};" for metric in METRICS if _in_use(policy, metric)).rstrip(";") + "."
    yield (
        "With each figure go the figure that guessing would give (baseline), the difference of the two (lift), and an "
        "interval that says how uncertain the figure is. No time that was needed, no p-value and no count."
    )
    yield (
        "Beside the figures: the names of the sets, with how many clips and classes they have; how far a submission "
        "is, in tenths; and sentences that were written beforehand, such as the one for a model that failed."
    )
    yield "## How exact it is"
    yield (
        "A figure is rounded to a step. The step was fixed before any submission, from the uncertainty of a common "
        "model on the set: smaller differences say little about models, and could say something about labels. It takes "
        f"at least {counted(policy.clips_per_step, 'clip')} to move a figure by a step. The interval is widened to "
        "whole steps. The baseline is rounded to a tenth of a step, because it does not depend on which clip has which "
        "label; where it does, because labels are shuffled inside groups only, to a step."
    )
    if policy.sets:
        yield _table(policy)
    yield (
        f"A set with fewer than {counted(policy.least_clips, 'clip')} or {counted(policy.least_classes, 'class')} is "
        "not evaluated."
    )
    yield "## How often"
    yield "\n".join(f"- {line}" for line in _bounds(policy))
    yield "## Who decides"
    yield _sign_off(policy)
    yield (
        "Every release, refusal, signature and objection is an entry of a ledger. Each entry holds the hash of the one "
        "before it, so that none can be changed, removed or put elsewhere without being noticed. The owners can read "
        "the ledger at any time. Exact values are in it for the host alone, so that each release can be checked."
    )
    yield "## What remains"
    yield (
        "A figure is itself a little knowledge about the labels: that is its purpose. In a simulation of an attacker "
        "who spends a thousand submissions on nothing but labels, he knows them afterwards no better than by guessing; "
        "the documentation has the numbers, and what else a model could signal. The rules do not protect against a "
        "host who breaks them: therefore the ledger."
    )
    yield f"Digest of this policy: `{policy.digest}`"


def _numbers(policy: Policy) -> str:
    count = sum(_in_use(policy, metric) for metric in METRICS)
    return {1: "one figure", 2: "two figures", 3: "three figures"}[count]


def _in_use(policy: Policy, metric: str) -> bool:
    return not policy.sets or any(metric in terms.steps for terms in policy.sets.values())


def _table(policy: Policy) -> str:
    metrics = [metric for metric in METRICS if _in_use(policy, metric)]
    lines = [
        "| Set | Clips | Classes | " + " | ".join(f"Step of {metric}" for metric in metrics) + " |",
        "|---|---|---|" + "---|" * len(metrics),
    ]
    return "\n".join(lines + [_line(terms, metrics) for terms in policy.sets.values()])


def _line(terms: SetTerms, metrics: list[str]) -> str:
    steps = [format(terms.steps[metric], "f") if metric in terms.steps else "not released" for metric in metrics]
    name = terms.name.replace("|", "\\|")
    return f"| {name} | {terms.clips:,} | {terms.classes:,} | " + " | ".join(steps) + " |"


def _bounds(policy: Policy) -> Iterator[str]:
    days = counted(policy.period_days, "day")
    yield (
        "A team that submits again under the same name is told a new figure only if it is better than the one before "
        "by more than a step. Otherwise the figure before stands, and this is all it is told."
    )
    yield (
        f"A team may begin {new_entries(policy.entries)} in {days}, all teams together "
        f"{new_entries(policy.entries_overall)}. An entry keeps the distance and the correction that it began with."
    )
    yield (
        f"Of one team {_releases(policy.quota)} may leave on one day, of all teams together "
        f"{_releases(policy.releases_per_day)}. More wait for a later day."
    )
    yield (f"For each of these the recordings are heard at most {HEARINGS} times, whether anything comes of it or not.")
    yield (
        f"Results leave only at full multiples of {counted(policy.slot_minutes, 'minute')}, so that the time at which "
        "they appear tells little."
    )
    yield (
        f"A model in which one clip is the nearest of more than {policy.leverage:.0%} of the others is refused: its "
        "figures would hang on the label of that clip. Where one clip lies so far from all others that GSR would, GSR "
        "is not released."
    )
    yield (
        f"If a model finds the same neighbours as an earlier one for {policy.duplicates:.1%} of them or more, and no "
        "figure differs by more than a step, the earlier measurement counts for both. Nobody learns by it whether "
        "another team submitted something alike."
    )


def new_entries(number: int) -> str:
    """So many new entries, in words."""
    return "1 new entry" if number == 1 else f"{number} new entries"


def _releases(number: int) -> str:
    return counted(number, "release")


def _sign_off(policy: Policy) -> str:
    objection = (
        "An objection withdraws the release, and every later one of the same entry, from the board; what people have "
        "read by then cannot be unread."
    )
    if policy.sign_off == "before":
        return (
            f"Nothing leaves before somebody who speaks for {policy.owners} has signed the release by name. Until then "
            f"the participant is told that it waits. {objection}"
        )
    return (
        f"A release leaves at its time without being asked for. Whoever speaks for {policy.owners} reads it "
        f"afterwards, and signs it or objects. {objection}"
    )
