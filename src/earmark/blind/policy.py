"""What may leave the host's side, as one value: read from YAML, hashed, and told in plain words.

A policy is fixed before the first model is heard. Its digest stands in every entry of the ledger and on every released
row, so that nobody can change it unseen. This module reads no database, opens no recordings and needs no model: the
board reads policies with it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from decimal import Decimal
from functools import cached_property
from typing import Any, Literal, get_args

import yaml

from earmark.blind.steps import decimal_step
from earmark.errors import InputError, UsageError, did_you_mean, quoted
from earmark.plain_yaml import load_yaml
from earmark.wording import counted, listed

__all__ = ["METRICS", "Policy", "SetTerms", "read_policy"]

METRICS = ("P@1", "P@5", "GSR")
"""What may be released at all. For each of them more is better: the Ladder climbs."""
SignOff = Literal["before", "after"]
_FORMAT = 1
_LEAST = {
    "quota": 1, "entries": 1, "entries_overall": 1, "period_days": 1, "releases_per_day": 1, "slot_minutes": 1,
    "clips_per_step": 1, "least_clips": 20, "least_classes": 2,
}  # fmt: skip


@dataclass(frozen=True)
class SetTerms:
    """What is public of one blind set: its size, and the step of each metric.

    Args:
        name: The subset, as the board has it.
        clips: How many clips are scored.
        classes: How many classes they have.
        steps: Metric to step: the grid on which its values are released.
    """

    name: str
    clips: int
    classes: int
    steps: Mapping[str, Decimal]

    def __post_init__(self) -> None:
        where = f"The blind set {quoted(self.name)}"
        if not self.name.strip():
            raise UsageError("A blind set has no name; give it the name of its subset on the board.")
        for what in ("clips", "classes"):
            _whole(f"{where}: {what}", getattr(self, what), 1)
        for metric in self.steps:
            if metric not in METRICS:
                hint = did_you_mean(str(metric), METRICS)
                raise UsageError(f"{where}: {metric} is never released; {listed(METRICS)} may be.{hint}")
        steps = {
            metric: decimal_step(self.steps[metric], f"{where}: the step of {metric}")
            for metric in METRICS
            if metric in self.steps
        }
        if not steps:
            raise UsageError(f"{where} has no steps; `earmark blind prepare` measures them.")
        object.__setattr__(self, "steps", steps)


@dataclass(frozen=True)
class Policy:
    """The rules of release of one host. Two policies with one digest are the same.

    Args:
        sets: The blind sets with their steps, by name.
        owners: Who owns the recordings, as they wish to be named.
        contact: Whom to write to about the recordings, a release or a suspicion.
        sign_off: `before`: a release waits until an owner has signed it; `after`: it leaves at its slot, and the owners
            read, sign or object afterwards.
        quota: Releases of one team that may leave on one day.
        entries: New entries of one team in a period.
        entries_overall: New entries of all teams together in a period.
        period_days: The length of the period.
        releases_per_day: Releases of all teams together that may leave on one day.
        slot_minutes: Releases leave at full multiples of so many minutes.
        duplicates: The share of equal neighbours from which two models are nearly the same.
        leverage: The share of a figure that may hang on the label of one clip.
        clips_per_step: A step is at least what so many clips can change of a figure.
        least_clips: Sets with fewer clips are not evaluated.
        least_classes: Sets with fewer classes are not evaluated.
    """

    sets: Mapping[str, SetTerms] = field(default_factory=dict)
    owners: str = "the owners of the recordings"
    contact: str = ""
    sign_off: SignOff = "before"
    quota: int = 2
    entries: int = 5
    entries_overall: int = 50
    period_days: int = 90
    releases_per_day: int = 12
    slot_minutes: int = 15
    duplicates: float = 0.98
    leverage: float = 0.1
    clips_per_step: int = 10
    least_clips: int = 500
    least_classes: int = 20

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            _whole(f"The policy: {name}", getattr(self, name), least)
        if 1440 % self.slot_minutes:
            raise UsageError(f"The policy: a day is no multiple of slot_minutes {self.slot_minutes}; take 15 or 60.")
        if self.sign_off not in get_args(SignOff):
            raise UsageError(f"The policy: sign_off is before or after, not {quoted(str(self.sign_off))}.")
        for name, lowest in (("duplicates", 0.5), ("leverage", 0.01)):
            share = getattr(self, name)
            if isinstance(share, bool) or not isinstance(share, int | float) or not lowest <= share <= 1:
                raise UsageError(f"The policy: {name} is a share from {lowest} to 1, not {share}.")
            object.__setattr__(self, name, float(share))
        for name in ("owners", "contact"):
            if not isinstance(getattr(self, name), str):
                raise UsageError(f"The policy: {name} is text; put quotation marks around it.")
        object.__setattr__(self, "sets", dict(sorted(self.sets.items())))
        for terms in self.sets.values():
            self.refuse_small(terms.name, terms.clips, terms.classes)
            for metric, step in terms.steps.items():
                if step * terms.clips < self.clips_per_step:
                    raise UsageError(
                        f"The blind set {quoted(terms.name)}: {counted(int(step * terms.clips), 'clip')} can move "
                        f"{metric} by its step {step:f}, and the policy asks for clips_per_step "
                        f"{self.clips_per_step}; take a larger step."
                    )

    def refuse_small(self, name: str, clips: int, classes: int) -> None:
        """Raise InputError for a set that is too small for any figure to be released."""
        for what, count, least in (("clip", clips, self.least_clips), ("class", classes, self.least_classes)):
            if count < least:
                raise InputError(
                    f"The blind set {quoted(name)} has {counted(count, what)} and the policy asks for {least}: a "
                    "figure of so few says too much about each; leave the set out, or change the policy in writing."
                )

    @property
    def plain(self) -> dict[str, Any]:
        """The policy as values that JSON and YAML can hold; steps are texts, which stay as they are written."""
        cells = {one.name: getattr(self, one.name) for one in fields(self)}
        cells["sets"] = {
            name: {
                "clips": terms.clips,
                "classes": terms.classes,
                "steps": {metric: format(step, "f") for metric, step in terms.steps.items()},
            }
            for name, terms in self.sets.items()
        }
        return {"format": _FORMAT, **cells}

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the policy, in hexadecimal."""
        data = json.dumps(self.plain, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(data.encode()).hexdigest()

    def to_yaml(self) -> str:
        """The policy as a text that `read_policy` reads."""
        return str(yaml.safe_dump(self.plain, sort_keys=False, allow_unicode=True, width=110))

    def text(self) -> str:
        """The policy in plain words, as Markdown."""
        from earmark.blind.policy_text import policy_text

        return policy_text(self)

    def announcement(self) -> dict[str, Any]:
        """What the board is told, to show and to enforce on its side."""
        names = ("quota", "entries", "entries_overall", "period_days", "sign_off", "slot_minutes", "owners", "contact")
        return {"digest": self.digest, "text": self.text(), **{name: getattr(self, name) for name in names}}


def read_policy(given: str | Mapping[str, Any], source: str = "The policy") -> Policy:
    """A policy from YAML, or from the values of one; unknown keys and values of the wrong kind are errors."""
    plain = _loaded(given, source) if isinstance(given, str) else given
    if not isinstance(plain, Mapping):
        raise UsageError(f"{source} holds no policy; `earmark blind prepare` writes one.")
    cells = dict(plain)
    if cells.pop("format", _FORMAT) != _FORMAT:
        raise UsageError(f"{source}: format {plain['format']} is not known; this version reads format {_FORMAT}.")
    known = [one.name for one in fields(Policy)]
    for name in cells:
        if name not in known:
            raise UsageError(f"{source} has the unknown key {quoted(str(name))}.{did_you_mean(str(name), known)}")
    sets = cells.pop("sets", None) or {}
    if not isinstance(sets, Mapping):
        raise UsageError(f"{source}: sets names each blind set with its clips, classes and steps.")
    return Policy(sets={str(name): _terms(str(name), terms, source) for name, terms in sets.items()}, **cells)


def _loaded(text: str, source: str) -> Any:
    try:
        return load_yaml(text, source)
    except yaml.YAMLError as error:
        line = getattr(getattr(error, "problem_mark", None), "line", None)
        where = source if line is None else f"{source}, line {line + 1}"
        raise UsageError(f"{where}: this is no YAML; mend it, or write it anew with `earmark blind prepare`.") from None


def _terms(name: str, given: object, source: str) -> SetTerms:
    if not isinstance(given, Mapping):
        raise UsageError(f"{source}: the set {quoted(name)} has clips, classes and steps.")
    cells = dict(given)
    known = [one.name for one in fields(SetTerms)]
    for key in cells:
        if key not in known:
            hint = did_you_mean(str(key), known)
            raise UsageError(f"{source}: the set {quoted(name)} has the unknown key {quoted(str(key))}.{hint}")
    for key in ("clips", "classes", "steps"):
        if key not in cells:
            raise UsageError(f"{source}: the set {quoted(name)} has no {key}; `earmark blind prepare` writes them.")
    if not isinstance(cells["steps"], Mapping):
        raise UsageError(f"{source}: the set {quoted(name)}: steps gives each metric its step, such as P@1: 0.02.")
    return SetTerms(**{"name": name, **cells})


def _whole(what: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise UsageError(f"{what} is a whole number of at least {least}, not {value}.")
