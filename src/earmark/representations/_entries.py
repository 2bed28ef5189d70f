"""Entries of a run's config: extractors, probes and DTW, and how lists of words and numbers are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import BeforeValidator, Field, PlainSerializer, model_validator

from earmark.embedding.pca import parse_reduction
from earmark.errors import UsageError, did_you_mean
from earmark.geometry.corrections import parse_all
from earmark.geometry.spaces import DISTANCES
from earmark.runs.config import Names, Section, entries, listed
from earmark.specs import parse_spec


def _reduction(given: object) -> object:
    """`none` and 0 mean no PCA; `D100` is the papers' way to write 100, `100w` is whitened."""
    try:
        reduction = parse_reduction(None if str(given).strip() == "0" else given)
    except UsageError as error:
        raise ValueError(str(error)) from error
    return None if reduction is None else str(reduction) if reduction.whiten else reduction.components


def _distance(name: object) -> str:
    if name not in DISTANCES:
        hint = did_you_mean(str(name), DISTANCES)
        raise ValueError(f"unknown distance {str(name)!r}: choose from {', '.join(DISTANCES)}.{hint}")
    return str(name)


def _candidates(given: object) -> object:
    """A number of clips, or `all`."""
    text = str(given).strip().lower()
    if text == "all":
        return "all"
    if isinstance(given, bool) or not text.isdecimal() or int(text) < 1:
        raise ValueError(f"{given!r} is no number of candidates: write 200, or all for every other clip.")
    return int(text)


def _corrections(given: Any) -> object:
    """Corrections as score tables spell them; `icdm:k=20,iterations=5` is one, whatever its commas."""
    try:
        return [str(correction) for correction in parse_all(given)]
    except UsageError as error:
        raise ValueError(str(error)) from error


def _layers(given: object) -> object:
    """`all`, or layers by number; a text may hold several."""
    if given is None:
        return None
    layers = [layer.lower() if isinstance(layer, str) else layer for layer in listed(given)]
    return "all" if layers == ["all"] else layers


def read_probes(given: Any) -> object:
    """Probes as entries; a text may hold several."""
    return listed(given) if isinstance(given, str) else entries(given)


Layers: TypeAlias = Annotated[Literal["all"] | list[int] | None, BeforeValidator(_layers)]
Distances: TypeAlias = Annotated[list[str], BeforeValidator(lambda given: [_distance(name) for name in listed(given)])]
Corrections: TypeAlias = Annotated[list[str], BeforeValidator(_corrections)]
Dimension: TypeAlias = Annotated[
    int | str | None,
    BeforeValidator(_reduction),
    PlainSerializer(lambda value: "none" if value is None else value),
]
Dimensions: TypeAlias = Annotated[
    list[Dimension], BeforeValidator(lambda given: [None] if given is None else listed(given))
]
Shares: TypeAlias = Annotated[list[Annotated[float, Field(gt=0, lt=1)]], BeforeValidator(listed)]
Counts: TypeAlias = Annotated[list[Annotated[int, Field(ge=1)]], BeforeValidator(listed)]


class ExtractorEntry(Section):
    """A model and the variants of its vectors to score.

    `spec` is a registered name or an import path (`mypackage.mymodule:MyModel`), `parameters` go to its
    constructor. `base` names another entry whose spec and parameters this one shares. Lists left out are taken
    from the config as a whole.
    """

    SPELLINGS: ClassVar[dict[str, tuple[str, ...]]] = {"pool": ("pooling",), "distance": ("distances",)}

    name: str
    short_name: str = ""
    spec: str = ""
    base: str | None = None
    parameters: dict[str, Any] = Field({})
    layers: Layers = None  # hidden layers to measure, from one pass; None: the model's own choice
    pooling: Names | None = None
    pca: Dimensions | None = None
    distances: Distances | None = None

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, given: Any) -> Any:
        if isinstance(given, str):
            given = {"name": given}
        if isinstance(given, Mapping):
            left_out = ("pooling", "pca", "distances")
            given = {name: value for name, value in given.items() if value is not None or name not in left_out}
            if not given.get("name") and given.get("spec"):
                given["name"] = given["spec"]
            if not given.get("spec") and not given.get("base") and given.get("name"):
                given["spec"] = given["name"]
        return given


class ProbeEntry(Section):
    """A probe of the vectors: `linear`, `classify`, or `perception` with a file of judgements.

    As text `linear`, `classify?classifiers=knn&folds=5`, `perception:judgements.csv`; as a mapping the keys of
    `options` may stand beside `probe`.
    """

    probe: Literal["linear", "classify", "perception"]
    file: str = ""  # of judgements
    options: dict[str, Any] = Field({})

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, given: Any) -> Any:
        if isinstance(given, str):
            spec = parse_spec(given)
            return {"probe": spec.name, "file": spec.argument or "", "options": spec.options}
        if isinstance(given, Mapping) and "options" not in given:
            own = ("probe", "file", "judgements")
            options = {name: value for name, value in given.items() if name not in own}
            return {"probe": given.get("probe"), "file": given.get("file", given.get("judgements", "")),
                    "options": options}  # fmt: skip
        return given

    @model_validator(mode="after")
    def _check_options(self) -> ProbeEntry:
        if (self.probe == "perception") != bool(self.file):
            raise ValueError(
                "perception needs a file of judgements: write perception:FILE"
                if self.probe == "perception"
                else f"{self.probe} takes no file: options stand behind a question mark, as in {self.probe}?folds=5"
            )
        known = PROBE_OPTIONS[self.probe]
        for name in self.options:
            if name not in known:
                hint = did_you_mean(name, known)
                raise ValueError(f"{self.probe} has no option {name!r}: it has {', '.join(known)}.{hint}")
        return self

    def placed(self, place: Callable[[str], Path]) -> ProbeEntry:
        """The entry with its file as `place` gives it, where that is there."""
        path = place(self.file) if self.file else Path()
        return self.model_copy(update={"file": str(path)}) if self.file and path.exists() else self


PROBE_OPTIONS = {
    "linear": ("folds", "kind", "strengths", "tolerance", "refit", "allow_leaks"),
    "classify": ("classifiers", "preset", "folds", "kind", "select", "allow_leaks", "min_class_size"),
    "perception": ("columns", "where", "min_agreement", "min_repeats", "majority", "unit", "ceiling"),
}
"""What a run may say of a probe; the rest it knows."""


class DtwOptions(Section):
    """DTW re-ranking: how many of the nearest by `distance` are compared again, frame by frame; all: every clip."""

    candidates: Annotated[int | Literal["all"], BeforeValidator(_candidates)] = 200
    radius: float = Field(0.1, gt=0, le=1)
    stride: int = Field(3, ge=1)
    dimension: int = Field(64, ge=1)
    distance: Annotated[str, BeforeValidator(_distance)] = "spearman"


def with_base(entry: ExtractorEntry, by_name: Mapping[str, ExtractorEntry]) -> ExtractorEntry:
    """The entry with the spec and parameters of its base; its own parameters win."""
    if entry.base is None:
        return entry
    if entry.spec and entry.spec != entry.name and entry.base in by_name and entry.spec == by_name[entry.base].spec:
        return entry  # resolved already
    base = by_name.get(entry.base)
    if base is None or base is entry or base.base is not None:
        hint = did_you_mean(entry.base, [name for name in by_name if name != entry.name])
        raise ValueError(f"{entry.name!r} is based on {entry.base!r}, which is not another plain extractor here.{hint}")
    return entry.model_copy(update={"spec": base.spec, "parameters": {**base.parameters, **entry.parameters}})
