"""How to evaluate: everything that is not data. One object serves Python, flags and config files."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, InstanceOf, model_validator

from earmark.errors import UsageError
from earmark.geometry import devices, spaces
from earmark.geometry.corrections import Correction
from earmark.vectors.class_samples import MEANING, parse_sample

HUB_K = 5
GIVEN = "given"  # what distances computed elsewhere are called, where nobody names them
INTERVALS = ("jackknife", "bootstrap", "none")
SHUFFLES = ("auto", "clips")
RESAMPLES = 300
LEAST = {"queries": 0, "permutations": 0, "bootstrap": 0, "min_class_size": 1, "hub_k": 1, "seed": 0, "threads": 1}


class Options(BaseModel):
    """Everything about an evaluation that is not data. The descriptions are the help of the flags of these names."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    distance: tuple[str, ...] = Field(
        default=("cosine",), description="cosine, euclidean, spearman; several with commas"
    )
    correct: tuple[InstanceOf[Correction], ...] = Field(
        default=(Correction(),),
        description="hubness correction: none, sphere, ls, nicdm, icdm, csls, mp, dsl; several with commas, parameters "
        "as in icdm:k=20,iterations=5",
    )
    metrics: tuple[str, ...] | None = Field(
        default=None,
        description="metrics to compute, or `all` (default: all but clustering, NMI, ARI, kmeans_purity and purity)",
    )
    k: tuple[int, ...] = Field(default=(1, 5), description="k of P@k")
    hub_k: int = Field(default=HUB_K, description="neighbours that hubness counts")
    sample: str = Field(
        default="",
        description=f"measure {MEANING}",
        json_schema_extra={"metavar": "CxN"},
    )
    queries: int = Field(
        default=0,
        description="for large collections: draw N clips at random to ask for their neighbours among all; intervals "
        "know what that costs (default: every clip asks)",
    )
    permutations: int = Field(
        default=0,
        description="shuffle the labels N times, as groups allow: chance baseline, lift, p-value (1000 when N is left "
        "out; default: none)",
        json_schema_extra={"alone": 1000},
    )
    shuffle: str = Field(
        default="auto",
        description="which labels change places: auto, as groups allow; clips, each with any other whatever their "
        "group, as in papers that know no groups (protocol all; p is too small where clips of a group are alike)",
        json_schema_extra={"choices": [*SHUFFLES]},
    )
    intervals: str = Field(
        default="jackknife",
        description="how 95 % intervals are made: jackknife, the default, leaves out each clip, or group, as "
        "query and as candidate; bootstrap draws queries and holds the candidates fixed, which is too narrow; none",
        json_schema_extra={"choices": [*INTERVALS]},
    )
    bootstrap: int = Field(
        default=0,
        description=f"the same as --intervals bootstrap, with N resamples ({RESAMPLES} when N is left out)",
        json_schema_extra={"alone": RESAMPLES},
    )
    across_groups: bool = Field(
        default=False,
        description="also leave out all pairs of one group, as protocol across_groups",
    )
    min_class_size: int = Field(default=2, description="drop classes with fewer clips")
    label_separator: str = Field(
        default="",
        description="what stands between the labels of a clip that has several, as in wren;owl (default: a label is "
        "one); neighbours are then right that share a label",
        json_schema_extra={"metavar": "SIGN"},
    )
    background: str = Field(
        default="",
        description="the label of clips that hold none of the classes: candidates, never queries, and right for nobody",
        json_schema_extra={"metavar": "LABEL"},
    )
    ties: spaces.Ties = Field(
        default="average", description="ranks of equal values under spearman; ordinal reproduces published numbers"
    )
    seed: int = Field(default=0, description="seed of shuffles, resamples and k-means")
    memory: int = Field(
        default=2 << 30,
        description="budget for tiles and batches, beside the vectors (default: 2GB)",
        json_schema_extra={"metavar": "SIZE"},
    )
    threads: int = Field(
        default=1, description="how many things are done at once (default: as many as there are cores)"
    )
    device: str = Field(
        default="cpu",
        description="where distances are computed: auto, cpu, cuda or cuda:1 (default: auto, a GPU if torch sees one "
        "and it pays); no score depends on it",
    )
    per_point: bool = False
    per_unit: bool = False
    progress: bool = False

    @model_validator(mode="before")
    @classmethod
    def _check(cls, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Every mistake is a UsageError of one sentence."""
        values = {name: field.default for name, field in cls.model_fields.items()} | dict(given)
        for distance in values["distance"]:
            if distance not in spaces.DISTANCES:
                raise UsageError(f"Unknown distance {distance!r}: choose from {', '.join(spaces.DISTANCES)}.")
        if not values["distance"]:
            raise UsageError(f"No distance was asked for: choose from {', '.join(spaces.DISTANCES)}.")
        if values["intervals"] not in INTERVALS:
            raise UsageError(f"Unknown kind of intervals {values['intervals']!r}: choose {', '.join(INTERVALS)}.")
        if values["shuffle"] not in SHUFFLES:
            raise UsageError(f"Unknown way to shuffle {values['shuffle']!r}: choose {' or '.join(SHUFFLES)}.")
        if values["ties"] not in ("average", "ordinal"):
            raise UsageError(f"Unknown way with ties {values['ties']!r}: choose average or ordinal.")
        devices.check(values["device"])
        if values["queries"] and values["intervals"] == "bootstrap":
            raise UsageError("queries goes with jackknife intervals or none: the bootstrap draws its own queries.")
        for name in ("label_separator", "background"):
            if not isinstance(values[name], str):
                raise UsageError(f"{name} must be a text, not {values[name]!r}.")
        values |= {name: whole(name, values[name], least) for name, least in LEAST.items()}
        values["sample"] = settle_sample(values["sample"], values["min_class_size"])
        values |= {name: bool(values[name]) for name in ("across_groups", "per_point", "per_unit", "progress")}
        return values

    def fingerprint(self) -> str:
        """What of the options a value depends on: not threads, memory, device or progress, which change no result."""
        skipped = {
            "memory", "threads", "device", "progress", "per_point", "per_unit", "distance", "correct", "metrics", "k",
        }  # fmt: skip
        added = ("queries", "sample", "label_separator", "background")  # old tables keep their inputs
        skipped |= {name for name in added if not getattr(self, name)}
        if self.shuffle == "auto":
            skipped.add("shuffle")
        return repr(sorted((name, value) for name, value in vars(self).items() if name not in skipped))


def settle_sample(given: Any, min_class_size: int) -> str:
    """A sample of classes and clips in one spelling; "" for none."""
    if not given:
        return ""
    if not isinstance(given, str):
        raise UsageError(f"sample must be a text such as 50x5, not {given!r}.")
    sample = parse_sample(given)
    if sample.clips is not None and sample.clips < min_class_size:
        raise UsageError(
            f"The sample {sample} leaves {sample.clips} clips of each class, fewer than min_class_size "
            f"{min_class_size}: ask for more, or lower it."
        )
    return str(sample)


def kind_of_intervals(intervals: str | None, bootstrap: int) -> tuple[str, int]:
    """The kind of intervals asked for, and the number of resamples: naming a number of resamples asks for them."""
    bootstrap = whole("bootstrap", bootstrap, 0)
    if intervals is None:
        intervals = "bootstrap" if bootstrap else "jackknife"
    if intervals == "bootstrap":
        return intervals, bootstrap or RESAMPLES
    if bootstrap:
        raise UsageError(f'bootstrap={bootstrap} goes with intervals="bootstrap", not with {intervals!r}.')
    return intervals, 0


def whole(name: str, value: Any, least: int) -> int:
    """A whole number of at least `least`, whatever kind of integer it is; True and False are none."""
    try:
        if isinstance(value, bool | np.bool_):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise UsageError(f"{name} must be a whole number, not {value!r}.") from None
    if number < least:
        raise UsageError(f"{name} must be at least {least}, not {number}.")
    return number


def as_names(given: Any, what: str = "names") -> tuple[str, ...]:
    """One name or several, each once; a text may hold several, separated by commas."""
    if isinstance(given, str):
        given = [word for word in (part.strip() for part in given.split(",")) if word] or [given]
    names: list[Any] = list(given) if isinstance(given, Iterable) else [None]
    if not all(isinstance(name, str) for name in names):
        raise UsageError(f"{what} must be a name or a list of names, not {given!r}.")
    return tuple(dict.fromkeys(names))


def as_counts(given: Any, what: str) -> tuple[int, ...]:
    """One whole number or several, each at least 1."""
    numbers = list(given) if isinstance(given, Iterable) and not isinstance(given, str) else [given]
    if not numbers:
        raise UsageError(f"{what} is empty: give at least one number.")
    return tuple(dict.fromkeys(whole(what, number, 1) for number in numbers))


def size_in_bytes(text: str, name: str) -> int:
    """2GB, 500MB, 1.5GiB or a number of bytes; UsageError, which calls it by `name`, when it is none."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?\s*", text.lower())
    if not match:
        raise UsageError(f"{name} {text!r} is not understood: write it like 2GB or 500MB.")
    return int(float(match[1]) * (1024 if match[3] else 1000) ** " kmgt".index(match[2] or " "))


def byte_count(memory: Any) -> int:
    """A memory budget in bytes: 2GB, 500MB, 1.5GiB or a number of bytes."""
    amount = size_in_bytes(memory, "Memory") if isinstance(memory, str) else whole("memory", memory, 0)
    if amount < 1_000_000:
        raise UsageError(f"A memory budget of {amount} bytes is too small: give at least 1MB.")
    return amount
