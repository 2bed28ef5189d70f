"""One config for each kind of run: the same object from YAML, from flags and from Python.

An unknown key is an error that names the nearest known one. `to_yaml` writes a config as resolved, every default
spelled out, and reading that text back gives an equal object. A relative path of a corpus is relative to the config
that names it; the registered name of a corpus comes before a folder of that name, as everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeAlias, get_args, get_origin

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from earmark.errors import InputError, UsageError, did_you_mean
from earmark.places import locate, without_keys
from earmark.plain_yaml import load_yaml

Policy: TypeAlias = Literal["use", "refresh", "off"]


def listed(given: object) -> list[Any]:
    """One thing stands for a list of one; a text may hold several, separated by commas."""
    if isinstance(given, str):
        return [word.strip() for word in given.split(",") if word.strip()]
    return list(given) if isinstance(given, Sequence) else [given]


def entries(given: Any) -> Any:
    """One entry stands for a list of one; entries are not split at commas, because paths may hold them."""
    return [given] if isinstance(given, str | Path | Mapping | BaseModel) else given


def refused(check: Callable[..., Any], *given: Any) -> None:
    """Let a check of another room speak as a validator."""
    try:
        check(*given)
    except UsageError as error:
        raise ValueError(str(error)) from error


Names: TypeAlias = Annotated[list[str], BeforeValidator(listed)]


class Section(BaseModel):
    """A part of a config: unknown keys and truth values where numbers belong are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)

    SPELLINGS: ClassVar[dict[str, tuple[str, ...]]] = {}
    """Other names of fields, as they are called on the command line; one may stand for several."""

    @classmethod
    def spelled(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """The values under the names of the fields, whichever spelling was used."""
        values = {name: value for name, value in given.items() if name not in cls.SPELLINGS}
        for other, names in cls.SPELLINGS.items():
            if other in given:
                if len(names) == 1 and names[0] in values:
                    raise ValueError(f"{other} and {names[0]} are two spellings of one key: give one of them.")
                values = {**dict.fromkeys(names, given[other]), **values}
        return values

    @model_validator(mode="before")
    @classmethod
    def _plain_values(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        values = cls.spelled(given)
        try:
            values = without_keys(values)
        except InputError as error:
            raise ValueError(str(error)) from None
        # YAML reads yes, on and true as a truth value, which Python counts as 1.
        for name, value in values.items():
            field = cls.model_fields.get(name)
            items = value if isinstance(value, list | tuple) else [value]
            if field and any(isinstance(item, bool) for item in items) and _means_number(field.annotation):
                raise ValueError(f"{name} is a number, not yes or no; write it in digits.")
        return values


def _means_number(annotation: Any) -> bool:
    """Whether a field holds numbers and no truth value."""
    kinds = kinds_of(annotation)
    return bool not in kinds and (int in kinds or float in kinds)


def kinds_of(annotation: Any) -> list[Any]:
    """The types, constraints and literal values that an annotation is made of, at any depth."""
    origin = get_origin(annotation)
    found = [origin if isinstance(origin, type) else annotation]
    for part in get_args(annotation):
        found += kinds_of(part) if get_origin(annotation) is not Literal else [part]
    return found


class CorpusEntry(Section):
    """A corpus: what to open, its name in the scores, which of its subsets to take (all when empty), and which columns
    of a manifest hold labels and groups."""

    SPELLINGS: ClassVar[dict[str, tuple[str, ...]]] = {"subset": ("subsets",), "group_column": ("groups",)}

    spec: str
    name: str | None = None
    subsets: Names = Field([], description="subsets of the corpus (default: all)")
    label_column: str | None = Field(None, description="column of a manifest that holds the label (default: label)")
    groups: str | None = Field(
        None,
        description="column of a manifest that holds the speaker, bird or recording (default: group)",
        json_schema_extra={"metavar": "COLUMN"},
    )
    path_column: str | None = Field(None, description="column of a manifest that holds the file (default: path)")
    subset_column: str | None = Field(None, description="column of a manifest that holds the subset (default: subset)")
    labels_from: str | None = Field(
        None,
        description="labels from names of files, by a pattern such as '{label}_{group}_{take}.wav'",
        json_schema_extra={"metavar": "PATTERN"},
    )

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, given: Any) -> Any:
        return {"spec": str(given)} if isinstance(given, str | Path) else given

    def placed(self, place: Callable[[str], Path]) -> CorpusEntry:
        """The entry with its path as `place` gives it; names, hub ids and import paths stay."""
        if self.spec.startswith("hub:") or is_registered(self.spec):
            return self
        path = place(self.spec)
        return self.model_copy(update={"spec": str(path)}) if path.exists() else self


def is_registered(spec: str) -> bool:
    """Whether a corpus is called by a registered name, which comes before a folder of the same name."""
    corpora = import_module("earmark.corpora.source")  # a room above this one
    return spec.partition(":")[0] in corpora.CORPORA


class CacheOptions(Section):
    """Where finished steps lie and whether they are used."""

    url: str = Field(
        default="",
        description="where finished steps lie, any fsspec URL (default: EARMARK_CACHE or ~/.cache/earmark)",
        json_schema_extra={"metavar": "URL"},
    )
    policy: Policy = Field(default="use", description="finished steps: use, redo or keep none")

    @model_validator(mode="before")
    @classmethod
    def _from_word(cls, given: Any) -> Any:
        if given is False:  # YAML reads a bare `off` as false
            given = "off"
        if isinstance(given, str):
            return {"policy": given} if given in get_args(Policy) else {"url": given}
        if isinstance(given, Mapping) and given.get("policy") is False:
            return {**given, "policy": "off"}
        return given


CorpusEntries: TypeAlias = Annotated[
    list[CorpusEntry],
    BeforeValidator(entries),
    Field(min_length=1, description="folder, manifest, name or import path; may be repeated"),
]


class ClusterOptions(Section):
    """A Dask cluster that a run starts and ends: what it is made of, and how large it is.

    `options` go to the class of that kind: dask.distributed.LocalCluster, dask_jobqueue.SLURMCluster or
    dask_kubernetes.operator.KubeCluster.
    """

    kind: Literal["local", "slurm", "kubernetes"] = "local"
    workers: int = Field(default=2, ge=1)
    cores: int = Field(default=1, ge=1)  # of each worker
    memory: str = ""  # of each worker, such as 8GB
    wait: float = Field(default=600.0, gt=0)  # seconds without any worker before the run gives up
    options: dict[str, Any] = Field(default={})


EXECUTORS = ("local", "dask", "shard")


def check_executor(executor: str, scheduler: str, cluster: ClusterOptions | None) -> None:
    """Refuse an executor that is not there, and one that has nowhere to send its steps."""
    if executor not in EXECUTORS:
        hint = did_you_mean(executor, EXECUTORS)
        raise ValueError(f"there is no executor {executor!r}: choose from {', '.join(EXECUTORS)}.{hint}")
    if executor == "dask" and not scheduler and cluster is None:
        raise ValueError(
            "the executor dask needs a cluster: give --scheduler tcp://HOST:8786, or `cluster:` in the config, such as "
            "`cluster: {kind: local, workers: 4}`."
        )


def refuse_unshared(executor: str, cache: CacheOptions, in_memory: bool = False, merge: bool = False) -> None:
    """Refuse what other machines cannot reach, and a share without its number."""
    if executor == "shard" and not merge:
        raise UsageError(
            "The executor shard does a share of the run: give --shard 1/10, or --merge once shards are done."
        )
    if executor != "dask" and not merge:
        return
    if in_memory:
        raise UsageError("What exists only in memory cannot be sent to workers: name it by a path, or work locally.")
    if cache.policy == "off":
        raise UsageError("Workers hand results over in the cache: leave --cache off out, or use --executor local.")


LATER_KEYS: dict[str, Any] = {
    "scheduler": "",
    "cluster": None,
    "device": "auto",
    "label_column": None,
    "groups": None,
    "path_column": None,
    "subset_column": None,
    "labels_from": None,
    "probes": [],
    "queries": 0,
    "sample": "",
    "speed": 1.0,
    "label_separator": "",
    "background": "",
}
"""Keys that version 0.1.0 does not know, with the value that says nothing."""

COLUMN_KEYS = ("label_column", "group_column", "path_column", "subset_column", "labels_from")
"""Keys of a corpus that say where labels, groups, files and subsets stand."""

OF_EACH_CORPUS = ("subset", *COLUMN_KEYS, "groups")
"""Keys of a corpus that may also stand at the top of a config, for all of its corpora."""


class RunSettings(Section):
    """A whole config; each kind of run adds its fields."""

    EXAMPLE: ClassVar[str] = "corpus: sounds/"
    PATHS: ClassVar[tuple[str, ...]] = ("corpus",)
    """Keys whose entries name files."""
    LATER: ClassVar[dict[str, Any]] = {}
    """Beside LATER_KEYS, for this kind of run."""

    if TYPE_CHECKING:  # each kind of run says where these fields stand in its file
        corpus: list[CorpusEntry]
        cache: CacheOptions
        into: str

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, given: Any) -> Any:
        return cls.completed(given) if isinstance(given, Mapping) else given

    @classmethod
    def completed(cls, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """The values with those that follow from others: what is said of all corpora is said of each; and a cluster is
        one of Dask."""
        if "executor" not in given and (given.get("scheduler") or given.get("cluster")):
            given = {**given, "executor": "dask"}
        shared = {name: given[name] for name in OF_EACH_CORPUS if name in given}
        if not shared or "corpus" not in given:
            return given
        corpora = [CorpusEntry.spelled(dict(entry)) if isinstance(entry, Mapping | BaseModel) else {"spec": str(entry)}
                   for entry in entries(given["corpus"])]  # fmt: skip
        rest = {name: value for name, value in given.items() if name not in shared}
        of_all = CorpusEntry.spelled(shared)
        return {**rest, "corpus": [{**entry, **of_all} for entry in corpora]}

    @classmethod
    def make(cls, values: Mapping[str, Any], source: str = "The config") -> Self:
        """A config from a mapping; every mistake is a UsageError of one sentence that says where it is."""
        try:
            return cls.model_validate(dict(values))
        except ValidationError as error:
            raise UsageError(f"{source}: {explain(error, cls)}") from None

    @classmethod
    def load(cls, path: str | Path, overrides: Mapping[str, Any] | None = None) -> Self:
        """A config from a YAML file, with `overrides` (flags) in place of its values.

        Relative paths of corpora are taken from the file's folder; where nothing is there, from the current one.
        """
        source, changes = locate(path), cls.spelled(overrides or {})
        cache = changes.pop("cache", {})
        try:
            config = cls.make({**cls.spelled(read_yaml(source, cls.EXAMPLE)), **changes}, str(source))
        except ValueError as error:
            raise UsageError(f"{source}: {error}") from None
        config = config.model_copy(update={"cache": config.cache.model_copy(update=cache)})
        if source.parent.resolve() == Path.cwd():
            return config
        return config.with_files(lambda spec: source.parent / locate(spec).expanduser(), but=changes)

    @classmethod
    def resolve(cls, config: Self | Mapping[str, Any] | str | Path) -> Self:
        """The config itself, or one from a mapping or a YAML file."""
        if isinstance(config, cls):
            return config
        return cls.load(config) if isinstance(config, str | Path) else cls.make(config)  # type: ignore[arg-type]

    def to_yaml(self) -> str:
        """The config as resolved. Keys that came later stand where they say something: older versions read the rest."""
        values = self.model_dump(mode="json")
        for part in (values, *values["corpus"]):
            for name in [name for name, silent in {**LATER_KEYS, **self.LATER}.items() if part.get(name) == silent]:
                part.pop(name, None)
        return yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=100)

    def portable(self) -> Self:
        """The config with corpora by absolute path, so that it does the same from any folder; names stay names."""
        return self.with_files(lambda spec: locate(spec).expanduser().absolute())

    def with_files(self, place: Callable[[str], Path], but: Iterable[str] = ()) -> Self:
        """The config with every path that it names as `place` gives it, but those of some keys."""
        named = [name for name in self.PATHS if name not in but]
        return self.model_copy(update={name: [entry.placed(place) for entry in getattr(self, name)] for name in named})


def read_yaml(source: Path, example: str) -> Mapping[str, Any]:
    """The mapping that a YAML file holds, or one sentence; `example` is a line as it could stand in the file."""
    try:
        loaded = load_yaml(source.read_text("utf-8"), str(source))
    except FileNotFoundError:
        raise InputError(f"{source} does not exist; check the path.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{source} cannot be read ({error}).") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        raise UsageError(f"{source}{where} is not valid YAML ({getattr(error, 'problem', error)}).") from error
    if not isinstance(loaded, Mapping):
        raise UsageError(f"{source} is not a config: it must hold `key: value` lines such as `{example}`.")
    return loaded


def explain(error: ValidationError, model: type[BaseModel]) -> str:
    """The first mistake, as one sentence: where it is, what is wrong, and the nearest right word."""
    # A misspelt key is the likeliest cause of a missing one: name it first.
    first = min(error.errors(), key=lambda mistake: mistake["type"] != "extra_forbidden")
    where = ".".join(str(part) for part in first["loc"])
    match first["type"]:
        case "extra_forbidden":
            known = _keys_at(model, first["loc"][:-1])
            hint = did_you_mean(str(first["loc"][-1]), known) or f" Known here: {', '.join(known)}."
            return f"unknown key {where!r}.{hint}"
        case "missing":
            return f"{where!r} is missing; it is needed."
        case "value_error":
            return f"{where}: {first['msg'].removeprefix('Value error, ')}".removeprefix(": ")
        case _:
            return f"{where}: {first['msg'][:1].lower()}{first['msg'][1:]}, not {first['input']!r}."


def _keys_at(model: type[BaseModel], path: Sequence[int | str]) -> list[str]:
    """The keys that may stand at a place of a config."""
    for part in path:
        if part in model.model_fields:
            kinds = kinds_of(model.model_fields[str(part)].annotation)
            model = next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)), model)
    shared = OF_EACH_CORPUS if issubclass(model, RunSettings) else ()
    return [*model.model_fields, *getattr(model, "SPELLINGS", ()), *shared]
