"""What a run is to do, as one object: the same from YAML, from flags and from Python.

    config = load_config("run.yaml")
    config = RunConfig(corpus="sounds/", extractors=["logmel"], distances=["cosine"], into="run")

An unknown key is an error that names the nearest known one. `to_yaml` writes the config as resolved, every
default spelled out, and reading that text back gives an equal object.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, get_args

import yaml
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from earmark.errors import InputError, UsageError, did_you_mean
from earmark.evaluation.options import HUB_K, byte_count, kind_of_intervals
from earmark.geometry.corrections import parse_all
from earmark.geometry.spaces import DISTANCES
from earmark.metrics import catalogue
from earmark.plain_yaml import load_yaml

STEPS = ("prepare", "embed", "evaluate", "report")
EXECUTORS = ("local", "dask", "shard")
POLICIES = ("use", "refresh", "off")
COPIES = ("drop", "keep", "refuse")

Policy: TypeAlias = Literal["use", "refresh", "off"]


def _listed(given: object) -> object:
    """One thing stands for a list of one; a text may hold several, separated by commas."""
    if isinstance(given, str):
        return [word.strip() for word in given.split(",") if word.strip()]
    return list(given) if isinstance(given, Sequence) else [given]


def _entries(given: object) -> object:
    """One entry stands for a list of one; entries are not split at commas, because paths may hold them."""
    return [given] if isinstance(given, str | Mapping | BaseModel) else given


def _dimension(given: object) -> object:
    """`none` and 0 mean no PCA; `D100` is the papers' way to write 100."""
    if given is None or given == 0 or str(given).strip().lower() == "none":
        return None
    return str(given).strip().lower().removeprefix("d")


def _dimensions(given: object) -> object:
    return [None] if given is None else _listed(given)


def _distance(name: str) -> str:
    if name not in DISTANCES:
        raise ValueError(
            f"unknown distance {name!r}: choose from {', '.join(DISTANCES)}.{did_you_mean(name, DISTANCES)}"
        )
    return name


def _corrections(given: Any) -> object:
    """Corrections as score tables spell them; `icdm:k=20,iterations=5` is one, whatever its commas."""
    try:
        return [str(one) for one in parse_all(given)]
    except UsageError as error:
        raise ValueError(str(error)) from error


def _layers(given: object) -> object:
    """`all`, or layers by number; a text may hold several."""
    return "all" if str(given).strip().lower() == "all" else given if given is None else _listed(given)


Names: TypeAlias = Annotated[list[str], BeforeValidator(_listed)]
Layers: TypeAlias = Annotated[Literal["all"] | list[int] | None, BeforeValidator(_layers)]
Distances: TypeAlias = Annotated[list[Annotated[str, BeforeValidator(str), Field()]], BeforeValidator(_listed)]
Corrections: TypeAlias = Annotated[list[str], BeforeValidator(_corrections)]
Dimension: TypeAlias = Annotated[
    Annotated[int, Field(ge=1)] | None,
    BeforeValidator(_dimension),
    PlainSerializer(lambda value: "none" if value is None else value),
]
Dimensions: TypeAlias = Annotated[list[Dimension], BeforeValidator(_dimensions)]
Shares: TypeAlias = Annotated[list[Annotated[float, Field(gt=0, lt=1)]], BeforeValidator(_listed)]
Counts: TypeAlias = Annotated[list[Annotated[int, Field(ge=1)]], BeforeValidator(_listed)]


class Section(BaseModel):
    """A part of a config: unknown keys and truth values where numbers belong are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)

    @model_validator(mode="before")
    @classmethod
    def _no_switches(cls, given: Any) -> Any:
        """YAML reads yes, on and true as a truth value, which Python counts as 1."""
        if isinstance(given, Mapping):
            for name, value in given.items():
                field = cls.model_fields.get(name)
                values = value if isinstance(value, list | tuple) else [value]
                if field and any(isinstance(one, bool) for one in values) and _means_number(field.annotation):
                    raise ValueError(f"{name} is a number, not yes or no; write it in digits.")
        return given


def _means_number(annotation: Any) -> bool:
    """Whether a field holds numbers and no truth value."""
    kinds = {annotation}
    while any(get_args(kind) for kind in kinds):
        kinds = {inner for kind in kinds for inner in (get_args(kind) or (kind,)) if _hashable(inner)}
    return bool(kinds & {int, float}) and bool not in kinds


def _hashable(kind: object) -> bool:
    return getattr(type(kind), "__hash__", None) is not None


class CorpusEntry(Section):
    """A corpus: what to open, which of its subsets to take (all when empty), and its name in the scores."""

    spec: str
    name: str | None = None
    subsets: Names = []

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, given: Any) -> Any:
        return {"spec": str(given)} if isinstance(given, str | Path) else given


class ExtractorEntry(Section):
    """A model and the variants of its vectors to score.

    `spec` is a registered name or an import path (`mypackage.mymodule:MyModel`), `parameters` go to its
    constructor. `base` names another entry whose spec and parameters this one shares. Lists left out are taken
    from the config as a whole.
    """

    name: str
    short_name: str = ""
    spec: str = ""
    base: str | None = None
    parameters: dict[str, Any] = {}
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
            given = dict(given)
            if not given.get("name") and given.get("spec"):
                given["name"] = given["spec"]
            if not given.get("spec") and not given.get("base") and given.get("name"):
                given["spec"] = given["name"]
            for name in ("pooling", "pca", "distances"):
                if name in given and given[name] is None:
                    del given[name]
        return given

    @field_validator("distances")
    @classmethod
    def _known(cls, given: list[str] | None) -> list[str] | None:
        return None if given is None else [_distance(name) for name in given]


class DtwOptions(Section):
    """DTW re-ranking: how many of the nearest by `distance` are compared again, frame by frame."""

    candidates: int = Field(200, ge=1)
    radius: float = Field(0.1, gt=0, le=1)
    stride: int = Field(3, ge=1)
    dimension: int = Field(64, ge=1)
    distance: str = "spearman"

    @field_validator("distance")
    @classmethod
    def _known(cls, given: str) -> str:
        return _distance(given)


class CacheOptions(Section):
    """Where finished steps lie (any fsspec URL; empty: EARMARK_CACHE or ~/.cache/earmark) and whether to use them."""

    url: str = ""
    policy: Policy = "use"

    @model_validator(mode="before")
    @classmethod
    def _from_word(cls, given: Any) -> Any:
        if given is False:  # YAML reads a bare `off` as false
            given = "off"
        if isinstance(given, str):
            return {"policy": given} if given in POLICIES else {"url": given}
        if isinstance(given, Mapping) and given.get("policy") is False:
            return {**given, "policy": "off"}
        return given


class RunConfig(Section):
    """Everything about a run: what is measured, how, and where results and finished steps go."""

    suite: Literal["full", "lite"] = "full"  # lite: VocSim's representative subsets alone
    corpus: Annotated[list[CorpusEntry], BeforeValidator(_entries), Field(min_length=1)]
    extractors: Annotated[list[ExtractorEntry], BeforeValidator(_entries), Field(min_length=1)]
    # variants of the vectors; an extractor's own lists come first
    layers: Layers = None  # `all` or numbers, for the extractors that have layers
    pooling: Names = []  # empty: what each extractor's card says
    pca: Dimensions = [None]
    distances: Distances = ["cosine"]
    correct: Corrections = ["none"]  # hubness corrections, each measured by itself
    # measures and calibration
    ties: Literal["average", "ordinal"] = "average"
    metrics: Names | None = None
    k: Counts = [1, 5]
    hub_k: int = Field(HUB_K, ge=1)
    permutations: int = Field(0, ge=0)
    intervals: Literal["jackknife", "bootstrap", "none"] | None = None  # jackknife, unless resamples are asked for
    bootstrap: int = Field(0, ge=0)
    across_groups: bool = False
    min_class_size: int = Field(2, ge=1)
    copies: Literal["drop", "keep", "refuse"] = "drop"  # clips that are one sound: the first alone, all, or an error
    seed: int = Field(0, ge=0)
    # ablations
    label_noise: Shares = []
    dtw: DtwOptions | None = None
    # results and resources
    into: str = "run"
    steps: Names = list(STEPS)
    cache: CacheOptions = CacheOptions()
    executor: Literal["local", "dask", "shard"] = "local"
    workers: int | None = Field(None, ge=1)  # threads that decode
    threads: int | None = Field(None, ge=1)  # threads that compare
    batch: int = Field(16, ge=1)  # clips given to an extractor at once
    memory: str = "2GB"

    @field_validator("corpus")
    @classmethod
    def _of_suite(cls, given: list[CorpusEntry], info: ValidationInfo) -> list[CorpusEntry]:
        return [_lite(entry) for entry in given] if info.data.get("suite") == "lite" else given

    @field_validator("distances")
    @classmethod
    def _known_distances(cls, given: list[str]) -> list[str]:
        return [_distance(name) for name in given]

    @field_validator("metrics")
    @classmethod
    def _known_metrics(cls, given: list[str] | None) -> list[str] | None:
        if given is not None:
            _refused(catalogue.plan, given, [1])
        return given

    @field_validator("bootstrap")
    @classmethod
    def _goes_with_intervals(cls, given: int, info: ValidationInfo) -> int:
        _refused(kind_of_intervals, info.data.get("intervals"), given)
        return given

    @field_validator("memory", mode="before")
    @classmethod
    def _bytes(cls, given: object) -> object:
        text = str(given)
        _refused(byte_count, int(text) if text.isdigit() else text)
        return text

    @field_validator("dtw", mode="before")
    @classmethod
    def _switched(cls, given: object) -> object:
        return {} if given is True else None if given is False else given

    @field_validator("steps")
    @classmethod
    def _known_steps(cls, given: list[str]) -> list[str]:
        for name in given:
            if name not in STEPS:
                raise ValueError(
                    f"there is no step {name!r}: choose from {', '.join(STEPS)}.{did_you_mean(name, STEPS)}"
                )
        return [name for name in STEPS if name in given]

    @field_validator("executor")
    @classmethod
    def _built(cls, given: str) -> str:
        if given != "local":
            raise ValueError(f"executor {given!r} is not in this version of Earmark: use local.")
        return given

    @field_validator("extractors")
    @classmethod
    def _resolve(cls, given: list[ExtractorEntry]) -> list[ExtractorEntry]:
        by_name: dict[str, ExtractorEntry] = {}
        for entry in given:
            if entry.name in by_name:
                raise ValueError(f"two extractors are called {entry.name!r}: give each entry a name of its own.")
            by_name[entry.name] = entry
        return [_based(entry, by_name) for entry in given]

    def options(self) -> dict[str, Any]:
        """The keywords of `earmark.evaluate` that change its values."""
        names = ("metrics", "k", "hub_k", "permutations", "intervals", "bootstrap", "min_class_size", "ties", "seed")
        return {name: getattr(self, name) for name in names}

    def to_yaml(self) -> str:
        return yaml.safe_dump(self.model_dump(mode="json"), sort_keys=False, allow_unicode=True, width=100)


def _lite(entry: CorpusEntry) -> CorpusEntry:
    """A corpus with VocSim's lite subsets alone: VocSim itself, or a copy that has its subsets under their names."""
    from earmark.analysis.suite import LITE

    chosen = list(LITE["vocsim"])
    name, _, rest = entry.spec.partition(":")
    text, mark, option = rest.partition("?") if name == "vocsim" else ("", "", "")
    given = entry.subsets or _listed(text)
    if given and given != chosen:
        raise ValueError(f"the lite suite is VocSim's {', '.join(chosen)}: leave out the subsets, or the suite.")
    if name == "vocsim":
        return entry.model_copy(update={"spec": f"vocsim:{','.join(chosen)}{mark}{option}", "subsets": []})
    there = _subsets_there(entry.spec)
    lacking = next((subset for subset in chosen if there is not None and subset not in there), None)
    if lacking is not None:
        called = entry.name or entry.spec
        raise ValueError(f"the lite suite is VocSim's {', '.join(chosen)}; {called} has no subset {lacking!r}.")
    return entry.model_copy(update={"subsets": chosen})


def _subsets_there(spec: str) -> set[str] | None:
    """The subsets of a corpus as far as they are told without opening it; None where they are not."""
    from earmark.corpora.source import CORPORA

    if spec.partition(":")[0] in CORPORA:
        return set()  # none but VocSim has subsets of VocSim
    place = Path(spec).expanduser()
    if place.suffix.lower() != ".csv" or not place.is_file():
        return None
    with place.open(encoding="utf-8-sig", errors="replace", newline="") as stream:
        rows = csv.DictReader(stream)
        column = next((name for name in rows.fieldnames or () if name.strip().lower() == "subset"), None)
        return {(row[column] or "").strip() for row in rows} if column else set()


def _based(entry: ExtractorEntry, by_name: Mapping[str, ExtractorEntry]) -> ExtractorEntry:
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


def _refused(check: Any, *given: Any) -> None:
    """Let a check of another room speak as a validator."""
    try:
        check(*given)
    except UsageError as error:
        raise ValueError(str(error)) from error


# --- making one ----------------------------------------------------------------------------------------------


def make_config(values: Mapping[str, Any], source: str = "The config") -> RunConfig:
    """A config from a mapping; every mistake is a UsageError of one sentence that says where it is."""
    try:
        return RunConfig.model_validate(dict(values))
    except ValidationError as error:
        raise UsageError(f"{source}: {explain(error)}") from None


def load_config(path: str | Path, overrides: Mapping[str, Any] | None = None) -> RunConfig:
    """A config from a YAML file, with `overrides` (flags) in place of its values.

    Relative corpus paths are taken from the file's folder when they exist there, else from the current one.
    """
    source = Path(path)
    config = make_config({**read_yaml(source, "corpus: sounds/"), **(overrides or {})}, str(source))
    if overrides and "corpus" in overrides:
        return config
    return config.model_copy(update={"corpus": [_beside(entry, source.parent) for entry in config.corpus]})


def read_yaml(source: Path, example: str) -> Mapping[str, Any]:
    """The mapping that a YAML file holds, or one sentence; `example` is a line as it could stand in the file."""
    try:
        loaded = load_yaml(source.read_text("utf-8"), str(source))
    except FileNotFoundError:
        raise InputError(f"{source} does not exist; check the path.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{source} cannot be read ({error}).") from error
    except yaml.YAMLError as error:
        place = getattr(error, "problem_mark", None)
        where = f", line {place.line + 1}" if place else ""
        raise UsageError(f"{source}{where} is not valid YAML ({getattr(error, 'problem', error)}).") from error
    if not isinstance(loaded, Mapping):
        raise UsageError(f"{source} is not a config: it must hold `key: value` lines such as `{example}`.")
    return loaded


def _beside(entry: CorpusEntry, folder: Path) -> CorpusEntry:
    there = folder / entry.spec
    if re.match(r"\w+:", entry.spec) or Path(entry.spec).exists() or not there.exists():
        return entry
    return entry.model_copy(update={"spec": str(there)})


def explain(error: ValidationError, fields_at: Callable[[Sequence[int | str]], Sequence[str]] | None = None) -> str:
    """The first mistake, as one sentence: where it is, what is wrong, and the nearest right word.

    `fields_at` tells which keys may stand at a place; by default those of a `RunConfig`.
    """
    # A misspelt key is the likeliest cause of a missing one: name it first.
    first = min(error.errors(), key=lambda one: one["type"] != "extra_forbidden")
    place = ".".join(str(part) for part in first["loc"])
    match first["type"]:
        case "extra_forbidden":
            key = str(first["loc"][-1])
            known = (fields_at or _fields_at)(first["loc"][:-1])
            hint = did_you_mean(key, known) or f" Known here: {', '.join(known)}."
            return f"unknown key {place!r}.{hint}"
        case "missing":
            return f"{place!r} is missing; it is needed."
        case "value_error":
            return f"{place}: {first['msg'].removeprefix('Value error, ')}".removeprefix(": ")
        case _:
            return f"{place}: {first['msg'][:1].lower()}{first['msg'][1:]}, not {first['input']!r}."


def _fields_at(place: Sequence[int | str]) -> list[str]:
    sections: dict[str, type[Section]] = {
        "corpus": CorpusEntry,
        "extractors": ExtractorEntry,
        "dtw": DtwOptions,
        "cache": CacheOptions,
    }
    section = sections.get(str(place[0]), RunConfig) if place else RunConfig
    return list(section.model_fields)
