"""What a table shows: every choice, in one object for Python, flags and messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from earmark.errors import UsageError, absent, did_you_mean
from earmark.scores.metrics import named

KINDS = {
    "main": "means over sets of subsets, with margins (VocSim's Table 2)",
    "chance": "observed, under shuffled labels, and how many p-values are small (VocSim's Tables 9-11)",
    "full": "one metric, a column for each subset and the means (VocSim's Tables 19-25, Codec-SUPERB's 6-8)",
    "scores": "one subset, a column for each metric, with interval and lift",
    "groups": "of a run: every speaker, bird or recording, the lowest first, and which of them stand out",
    "classes": "of a run: every class, likewise",
    "subsets": "clips, classes, durations and dynamic range of each subset (VocSim's Table 1)",
    "codecs": "rates, overall scores and tasks of codecs (Codec-SUPERB's Table 3)",
}
"""Tables that can be made, in words."""
REST = "*"
"""In place of names of subsets: all that no other set names."""


class Choice(BaseModel):
    """Everything that can be chosen of a table. The descriptions are the help of the flags of these names."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    metrics: tuple[str, ...] = Field(
        (), description="columns and their order (default: P@1, P@5 and GSR, or what the source is about)"
    )
    systems: tuple[str, ...] = Field(
        (), description="rows and their order: names, patterns such as 'EW*', name/distance, or all"
    )
    subsets: tuple[str, ...] = Field((), description="subsets, or sets of them such as blind (default: all)")
    distances: tuple[str, ...] = Field((), description="rows of these distances (default: all)")
    corrections: tuple[str, ...] = Field((), description="rows of these hubness corrections (default: all)")
    protocols: tuple[str, ...] = Field((), description="rows of these protocols (default: all and across_groups)")
    sets: dict[str, tuple[str, ...]] = Field(
        {}, description=f"a set of subsets to average over; {REST} is all that no other set names; may be repeated"
    )
    averages: tuple[str, ...] = Field(
        (), description="which sets to average over, and all (default: public and blind, or what is known)"
    )
    missing: Literal["dash", "skip"] = Field(
        "dash", description="a mean without one of its subsets: a dash, or skip it and say so in a footnote"
    )
    interval: Literal["margin", "ends", "none"] | None = Field(
        None,
        description="95 % intervals: a margin, both ends or none (default: of means a margin, where it fits the range)",
    )
    sort: str = Field("", description="order of rows: a column such as 'P@1 blind', system, or none (as in the source)")
    top: int | None = Field(None, ge=1, description="only so many rows, the first in that order")
    one_per_system: bool = Field(False, description="of each system only its best distance and correction by --sort")
    digits: int | None = Field(None, ge=0, le=12, description="decimals (default: 1 in percent, 3 otherwise)")
    rename: dict[str, str] = Field({}, description="a name to show in place of a system's; may be repeated")
    best: bool = Field(True, description="print the best of a column in bold")
    second: bool = Field(False, description="underline the second best")
    lift: bool = Field(True, description="show the lift over chance, in scores")
    p_below: float = Field(
        0.001, gt=0, lt=1, description="count p-values below this, in chance", json_schema_extra={"metavar": "P"}
    )

    @field_validator(
        "metrics", "systems", "subsets", "distances", "corrections", "protocols", "averages", mode="before"
    )
    @classmethod
    def _names(cls, given: Any) -> Any:
        return tuple(named(given or ()))

    @field_validator("sets", mode="before")
    @classmethod
    def _sets(cls, given: Any) -> Any:
        if isinstance(given, Mapping):
            return {name: tuple(named(subsets)) for name, subsets in given.items()}
        found = {}
        for text in [given] if isinstance(given, str) else given or ():
            name, equals, subsets = text.partition("=")
            if not equals or not name.strip() or not named(subsets):
                raise ValueError(f"A set of subsets is NAME=SUBSET,SUBSET such as blind=HU3,HU4, not {text!r}")
            found[name.strip()] = tuple(named(subsets))
        return found

    @field_validator("rename", mode="before")
    @classmethod
    def _renamed(cls, given: Any) -> Any:
        if isinstance(given, Mapping):
            return given
        pairs = [text.partition("=") for text in ([given] if isinstance(given, str) else given or ())]
        for name, equals, new in pairs:
            if not equals or not name or not new:
                raise ValueError(f"A new name is OLD=NEW such as logmel=Log-Mel, not {name + equals + new!r}")
        return {name: new for name, _, new in pairs}

    @classmethod
    def of(cls, **given: Any) -> Choice:
        """The choice that was given; every mistake is a UsageError of one sentence."""
        for name in given:
            if name not in cls.model_fields:
                raise UsageError(f"A table has no option {name!r}.{did_you_mean(name, cls.model_fields)}")
        try:
            return cls(**given)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            name, value = str(first["loc"][0]), first["input"]
            if first["type"] == "value_error":
                raise UsageError(f"{str(first['ctx']['error']).rstrip('.')}.") from None
            why = first["msg"].replace("Input should", "it should")
            raise UsageError(f"{name.replace('_', ' ')} cannot be {value!r}: {why}.") from None

    def chooses_rows(self) -> bool:
        """Whether rows were asked for in any way."""
        return bool(self.systems or self.sort or self.top or self.one_per_system)


def pick(wanted: Sequence[str], present: Sequence[str], what: str, source: str) -> list[str]:
    """Those of `present` that are wanted, in the order of the wishes; UsageError for one that nothing fits."""
    found: dict[str, None] = {}
    for name in wanted:
        fitting = [one for one in present if one == name] or [one for one in present if fnmatchcase(one, name)]
        if not fitting:
            raise UsageError(absent(name, present, what, source))
        found |= dict.fromkeys(fitting)
    return list(found)
