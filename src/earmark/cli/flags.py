"""Flags made from the models that validate them: a field's name, type, default and description are the flag's.

A flag that is not given is None, so that a config file or a function puts its own default there. A field without a
description has the one of the option of `earmark evaluate` with its name: one name has one meaning and one text.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, Field
from pydantic.fields import FieldInfo

from earmark.cli.options import names, whole_numbers
from earmark.errors import UsageError
from earmark.evaluation.options import GIVEN, Options
from earmark.geometry.spaces import DISTANCES
from earmark.runs.config import OF_EACH_CORPUS, CacheOptions, RunSettings, kinds_of
from earmark.vectors import Distances, LabelledDistances, read_distances, read_labelled_distances
from earmark.vectors._distance_checks import SYMMETRISE

Settings = TypeVar("Settings", bound=RunSettings)

_DESCRIBED_AS = {"jobs": "threads", "workers": "threads"}


class VectorFiles(BaseModel):
    """Which columns of files are what, and what the rows of the result are called."""

    key: str | None = Field(default=None, description="the array to take from .npz, .parquet or .pt files")
    dimensions: list[str] = Field(
        default=[],
        description="columns of .csv and .parquet files to use, by name or pattern as in 'f*,energy' (default: all but "
        "labels, groups, ids, an index, and names such as class, speaker_id or fold)",
    )
    label_column: str | None = Field(default=None, description="column that holds the label (default: label)")
    groups: str | None = Field(
        default=None,
        description="column that holds the speaker, bird or recording: the unit of intervals and tests; none leaves "
        "out those that the files hold",
        json_schema_extra={"metavar": "COLUMN"},
    )
    system: str = Field(default="", description="name of the model, for the system column")
    subset: str = Field(default="", description="name of the data, for the subset column")
    suite: str = Field(default="", description="name of the suite, for the suite column")


class DistanceFiles(BaseModel):
    """Distances that were computed elsewhere: which file holds them, and how it is read."""

    distances: list[str] = Field(
        default=[],
        description="distances computed elsewhere, in place of VECTORS: a square or condensed .npy or .npz; or a .csv, "
        ".tsv or .parquet of pairs (a,b,distance) or of a square with names",
        json_schema_extra={"metavar": "FILE"},
    )
    ids: str | None = Field(
        default=None,
        description="file of the names of the items in the order of the matrix: .txt, or a table with a column id, "
        "path or the like",
        json_schema_extra={"metavar": "FILE"},
    )
    pair_columns: list[str] = Field(
        default=[], description="columns of a table of pairs: two of names and that of distances, as in a,b,distance"
    )
    symmetrise: str | None = Field(
        default=None,
        description="what counts where the two directions of a pair differ: mean, min or max (default: refused)",
        json_schema_extra={"choices": [*SYMMETRISE]},
    )
    distance_name: str | None = Field(
        default=None, description=f"what these distances are called in the column distance (default: {GIVEN})"
    )


def add_flags(
    parser: argparse._ActionsContainer,
    model: type[BaseModel],
    wanted: Iterable[str],
    texts: Mapping[str, str] | None = None,
) -> None:
    """A flag for each of these fields.

    Args:
        parser: The parser, or group of its arguments, that gets the flags.
        model: What validates the values.
        wanted: Names of fields, or other spellings of them.
        texts: Help in place of the model's, where a command means something narrower.
    """
    spellings: Mapping[str, tuple[str, ...]] = getattr(model, "SPELLINGS", {})
    for name in wanted:
        field = model.model_fields[spellings.get(name, (name,))[0]]
        flag, settings = _flag_of(name, field, (texts or {}).get(name))
        spelled = (flag, "--group-column") if (model, name) == (VectorFiles, "groups") else (flag,)
        parser.add_argument(*spelled, dest=name, default=None, **settings)


def add_vectors(parser: argparse.ArgumentParser, **texts: str) -> None:
    """Flags of distances, resources, files and names; `texts` are help in place of the general one."""
    group = parser.add_argument_group("distances and resources")
    add_flags(group, Options, ("distance", "ties", "correct", "device", "memory", "threads"), texts)
    add_flags(group, VectorFiles, ("key", "dimensions", "system", "subset", "suite"), texts)
    parser.set_defaults(dimensions=[], system="", subset="", suite="")


def add_distances(parser: argparse.ArgumentParser, **texts: str) -> None:
    """Flags of distances that were computed elsewhere."""
    group = parser.add_argument_group("distances computed elsewhere")
    add_flags(group, DistanceFiles, DistanceFiles.model_fields, texts)


def settle_distances(
    args: argparse.Namespace, *, beside_vectors: bool = False,
    of_files: Sequence[str] = ("ids", "pair_columns", "symmetrise", "distance_name"),
) -> list[str]:  # fmt: skip
    """The files of distances that were given; `--distances cosine,euclidean` is another spelling of --distance.

    `of_files` names the flags that say something of such files alone, and are refused without one.
    """
    files: list[str] = args.distances or []
    if files and all(word in DISTANCES for word in files):
        if args.distance is not None and args.distance != files:
            raise UsageError("--distance and --distances name different distances: give one of them.")
        args.distance, files = files, []
    for name in of_files:
        if not files and getattr(args, name):
            raise UsageError(f"--{name.replace('_', '-')} is for distances computed elsewhere: give --distances FILE.")
    if beside_vectors:
        return files
    if files and args.distance is not None:
        raise UsageError("--distance says what to compute from vectors, and --distances FILE was given: leave one out.")
    if files and args.dimensions:
        raise UsageError("--dimensions chooses columns of vectors, and --distances FILE has none: leave it out.")
    return files


def read_given(args: argparse.Namespace, file: str, *, complete: bool = True) -> Distances:
    """One of the files of --distances; whether a table of pairs must hold every pair."""
    return read_distances(
        file, ids=args.ids, key=args.key, columns=args.pair_columns or None, symmetrise=args.symmetrise,
        complete=complete, progress=not args.quiet,
    )  # fmt: skip


def read_distances_and_labels(args: argparse.Namespace, file: str, labels: str) -> LabelledDistances:
    """One of the files of --distances, with its labels."""
    return read_labelled_distances(
        file, labels, ids=args.ids, key=args.key, pair_columns=args.pair_columns or None, symmetrise=args.symmetrise,
        label_column=args.label_column, groups=args.groups, progress=not args.quiet,
    )  # fmt: skip


def add_labels(parser: argparse.ArgumentParser, **texts: str) -> None:
    """Flags of labels and groups."""
    group = parser.add_argument_group("labels and groups")
    add_flags(group, VectorFiles, ("label_column", "groups"), texts)
    wanted = ("across_groups", "min_class_size", "label_separator", "background", "k", "seed")
    add_flags(group, Options, wanted, texts)


def add_cache(parser: argparse._ActionsContainer) -> None:
    """Where finished steps lie and whether they are used: the section `cache` of a config."""
    for flag, name in (("--cache", "policy"), ("--cache-dir", "url")):
        _, settings = _flag_of(name, CacheOptions.model_fields[name], None)
        parser.add_argument(flag, default=None, **settings)


def given(args: argparse.Namespace, model: type[BaseModel]) -> dict[str, Any]:
    """The values of the flags that were given, under the names that the model knows."""
    known = [*model.model_fields, *getattr(model, "SPELLINGS", ())]
    known += OF_EACH_CORPUS if issubclass(model, RunSettings) else ()
    values = {name: getattr(args, name, None) for name in known if name != "cache"}
    cache = {"policy": getattr(args, "cache", None), "url": getattr(args, "cache_dir", None)}
    values["cache"] = {name: value for name, value in cache.items() if value is not None} or None
    return {name: value for name, value in values.items() if value is not None}


def config_of(args: argparse.Namespace, model: type[Settings], command: str) -> Settings:
    """The one config object, from the file and the flags."""
    changes = given(args, model)
    if args.config:
        return model.load(args.config, changes)
    complete = model.spelled(model.completed(changes))
    spellings = {fields[0]: other for other, fields in model.SPELLINGS.items()}
    for name, field in model.model_fields.items():
        if field.is_required() and name not in complete:
            flag = f"--{spellings.get(name, name)}"
            raise UsageError(
                f"Nothing says what to measure: give a config file, or {flag} (see `earmark {command} --help`)."
            )
    return model.make(complete, "The command line")


def _flag_of(name: str, field: FieldInfo, text: str | None) -> tuple[str, dict[str, Any]]:
    """The spelling of a flag, and what argparse is told about it."""
    described = field if field.description else Options.model_fields[_DESCRIBED_AS.get(name, name)]
    extra: dict[str, Any] = described.json_schema_extra or {}  # type: ignore[assignment]
    kinds = kinds_of(field.annotation)
    choices = extra.get("choices") or [kind for kind in kinds if isinstance(kind, str)]
    flag = "--" + name.replace("_", "-")
    text = text or described.description or ""
    settings: dict[str, Any]
    if name == "corpus":
        settings = {"action": "append", "metavar": "C"}
    elif list in kinds or tuple in kinds:
        numbers = int in kinds and type(None) not in kinds and not choices
        settings = {"type": whole_numbers if numbers else names, "metavar": extra.get("metavar", "LIST")}
    elif field.default is True:
        return f"--no-{flag[2:]}", {"action": "store_false", "help": f"do not {text}"}
    elif bool in kinds or any(isinstance(kind, type) and issubclass(kind, BaseModel) for kind in kinds):
        settings = {"metavar": extra["metavar"]} if "alone" in extra else {"action": "store_true"}
    elif choices:
        settings = {"choices": choices}
    elif int in kinds and "metavar" not in extra:
        settings = {"type": int, "metavar": "N"}
    else:
        settings = {"metavar": extra.get("metavar", "NAME")}
    if "alone" in extra:
        settings |= {"nargs": "?", "const": extra["alone"]}
    elif "default" not in text and text != argparse.SUPPRESS:
        text += _default_of(field)
    return flag, {**settings, "help": text.replace("%", "%%")}


def _default_of(field: FieldInfo) -> str:
    """What help says about a default: nothing where there is none, or none to speak of."""
    value = field.default
    if field.is_required() or value is None or value is False or value in ("", [], ()):
        return ""
    words = [str(item).lower() for item in value] if isinstance(value, list | tuple) else [str(value)]
    return f" (default: {','.join(words)})"
