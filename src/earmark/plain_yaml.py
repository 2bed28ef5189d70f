"""YAML with numbers that mean what they look like.

YAML 1.1 reads `010` as 8, `1:30` as 90, `0x10` as 16 and `1_000` as 1000. Such a number is refused with its line; a
text of that kind is written in quotes. Whether `yes` may stand where it stands is for the reader of the values to say.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from earmark.errors import UsageError

__all__ = ["load_yaml"]

_PLAIN = re.compile(
    r"[-+]?(0|[1-9]\d*)(\.\d*)?([eE][-+]?\d+)?|[-+]?\.\d+([eE][-+]?\d+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
)
_LEADING_ZERO = re.compile(r"[-+]?0\d+")


class _PlainLoader(yaml.SafeLoader):
    pass


class _StrangeNumber(Exception):
    """A number of YAML 1.1 that people read otherwise."""


def _plainly(loader: _PlainLoader, node: yaml.ScalarNode) -> Any:
    text = str(node.value)
    kind = node.tag.rpartition(":")[2]
    strange = _LEADING_ZERO.fullmatch(text) if kind == "str" else not _PLAIN.fullmatch(text)
    if node.style is None and strange:
        raise _StrangeNumber(text, node.start_mark.line + 1)
    return getattr(yaml.SafeLoader, f"construct_yaml_{kind}")(loader, node)


for _kind in ("int", "float", "str"):
    _PlainLoader.add_constructor(f"tag:yaml.org,2002:{_kind}", _plainly)


def load_yaml(text: str, source: str) -> Any:
    """What a YAML text holds. Raises yaml.YAMLError where it is none, and UsageError for a number as above."""
    try:
        return yaml.load(text, Loader=_PlainLoader)
    except _StrangeNumber as found:
        number, line = found.args
        raise UsageError(
            f"{source}, line {line}: {number} is not a plain number; write it in decimal digits, or in quotes if it is "
            "a text."
        ) from None
