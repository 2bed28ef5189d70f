"""A definition as YAML and back: what a host writes, what the API sends, what the store keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import date, datetime
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import yaml

from earmark.definitions._checks import check_name
from earmark.definitions.board import Definition
from earmark.errors import UsageError, did_you_mean, quoted
from earmark.plain_yaml import load_yaml

_FIRST = {"BoardMetric": "name", "BoardSubset": "name"}
"""What a text alone stands for in a list of these."""
_LONGEST = 1_000_000


def read_definition(text: str, source: str = "The definition") -> Definition:
    """A definition from YAML (or JSON, which is YAML). UsageError says what is wrong and where."""
    if len(text) > _LONGEST:
        raise UsageError(f"{source} has more than {_LONGEST:,} characters; shorten it.")
    try:
        plain = load_yaml(text, source)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        raise UsageError(f"{source}{where} is not YAML: {getattr(error, 'problem', None) or error}.") from None
    return from_plain(plain, source)


def from_plain(plain: Any, source: str = "The definition") -> Definition:
    """A definition from what a YAML or JSON text holds."""
    if not isinstance(plain, Mapping):
        raise UsageError(f"{source} is a list of keys and values; it begins with `name:`.")
    made: Definition = _read(Definition, plain, source)
    check_name(made.name)
    return made


def to_plain(definition: Definition) -> dict[str, Any]:
    """What differs from an empty definition, as plain values."""
    plain: dict[str, Any] = _plain(definition)
    return plain


def to_yaml(definition: Definition) -> str:
    """The definition as YAML that `read_definition` reads to the same."""
    return yaml.dump(to_plain(definition), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)


class _Dumper(yaml.SafeDumper):
    pass


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text and not any(line.endswith(" ") for line in text.splitlines()) else None
    if style is None and text.lstrip("+-.")[:1].isdigit():
        style = "'"  # what YAML 1.1 reads as a number is none
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _list(dumper: _Dumper, items: list[Any]) -> yaml.SequenceNode:
    short = all(not isinstance(item, (dict, list)) for item in items)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=short)


_Dumper.add_representer(str, _text)
_Dumper.add_representer(list, _list)


# --- writing ---------------------------------------------------------------------------------------------------------


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        stated = {part.name: getattr(value, part.name) for part in fields(value) if _is_stated(value, part)}
        named = _FIRST.get(type(value).__name__)
        return (
            stated[named]
            if named and list(stated) == [named]
            else {name: _plain(each) for name, each in stated.items()}
        )
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return value.isoformat() if isinstance(value, date) else value


def _is_stated(value: Any, part: Any) -> bool:
    return part.default is MISSING or getattr(value, part.name) != part.default


# --- reading ---------------------------------------------------------------------------------------------------------


def _read(kind: Any, value: Any, where: str) -> Any:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return (
            None if value is None else _read(next(each for each in arguments if each is not type(None)), value, where)
        )
    if is_dataclass(kind):
        return _read_record(kind, value, where)
    if origin is tuple:
        return _read_list(arguments, value, where)
    if kind is date:
        return _read_date(value, where)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if get_origin(kind) is not None or kind is str:  # a Literal is checked by the definition
        if not isinstance(value, str):
            hint = " Put it in quotes." if isinstance(value, (bool, int, float, date)) else ""
            raise UsageError(f"{where} is a text, not {_shown(value)}.{hint}")
        return value
    if not isinstance(value, kind) or isinstance(value, bool) is not (kind is bool):
        words = {bool: "true or false", int: "a whole number", float: "a number"}
        raise UsageError(f"{where} is {words[kind]}, not {_shown(value)}.")
    return value


def _read_record(kind: Any, value: Any, where: str) -> Any:
    named = _FIRST.get(kind.__name__)
    if named and isinstance(value, str):
        value = {named: value}
    if not isinstance(value, Mapping):
        raise UsageError(f"{where} is a list of keys and values, not {_shown(value)}.")
    hints, given = get_type_hints(kind), {}
    for key, each in value.items():
        if key not in hints:
            raise UsageError(
                f"{where} has the key {quoted(str(key))}, which nothing reads; the keys are {', '.join(hints)}."
                f"{did_you_mean(str(key), hints)}"
            )
        given[key] = _read(hints[key], each, f"{where}: {key}")
    for part in fields(kind):
        if part.default is MISSING and part.name not in given:
            raise UsageError(f"{where} lacks the key {quoted(part.name)}.")
    try:
        return kind(**given)
    except UsageError as error:
        raise UsageError(str(error) if kind is not Definition else f"{where}: {error}") from None


def _read_list(arguments: tuple[Any, ...], value: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(value, (list, tuple)):
        raise UsageError(f"{where} is a list, not {_shown(value)}.")
    if arguments[-1] is Ellipsis:
        return tuple(_read(arguments[0], each, f"{where}[{place}]") for place, each in enumerate(value, 1))
    if len(value) != len(arguments):
        raise UsageError(f"{where} has {len(arguments)} numbers, not {len(value)}.")
    return tuple(
        _read(kind, each, f"{where}[{n}]") for n, (kind, each) in enumerate(zip(arguments, value, strict=True), 1)
    )


def _read_date(value: Any, where: str) -> date:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    try:
        return date.fromisoformat(value)
    except (ValueError, TypeError):
        raise UsageError(f"{where} is a day such as 2027-03-31, not {_shown(value)}.") from None


def _shown(value: Any) -> str:
    return quoted(value) if isinstance(value, str) else "nothing" if value is None else quoted(str(value), 40)
