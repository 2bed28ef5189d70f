"""How models, codecs and tasks are spelled: one grammar for all of them.

logmel                         a registered name
whisper:openai/whisper-tiny    with the argument that its maker takes first: a checkpoint, a file, a folder
opus@12                        one setting of a family
lyra:FOLDER@3.2                both
wavlm?layer=9&device=cpu       with options; values are read as YAML reads them (9, true, text)
mypackage.mymodule:MyModel     an import path: a class, a function, or an object
folder/my_model.py:MyModel     the same in a Python file
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath
from typing import Any, NamedTuple

import yaml

__all__ = ["Spec", "parse_spec", "scalar"]

SILENT_OPTIONS = ("allow_pickle", "device", "local_files_only")
"""Options that say where and how weights load, which cannot change a sound."""


class Spec(NamedTuple):
    """A spelling taken apart."""

    name: str  # a registered name, or the module or file of an import path
    argument: str | None  # what follows the colon: a checkpoint, or the attribute of an import path
    options: dict[str, Any]
    setting: str = ""  # what follows @: "12", "*", or nothing
    query: str = ""  # the options as they were written

    @property
    def path(self) -> str:
        """The name with its argument, without setting and options."""
        return self.name if self.argument is None else f"{self.name}:{self.argument}"

    @property
    def audible_options(self) -> str:
        """The options that can change the sound, as a name says them: of a path on this machine the last part alone."""
        pairs = [pair.partition("=") for pair in self.query.split("&") if self.query]
        return "&".join(f"{key}={_last_part(value)}" for key, _, value in pairs if key not in SILENT_OPTIONS)

    def with_setting(self, setting: str) -> str:
        """The spelling with another setting."""
        return f"{self.path}{f'@{setting}' if setting else ''}{f'?{self.query}' if self.query else ''}"


def parse_spec(text: str, has_settings: Callable[[str], bool] | None = None) -> Spec:
    """Take a spelling apart.

    A question mark that begins no options belongs to the argument, as it may in a path.

    Args:
        text: the spelling, such as `lyra:FOLDER@3.2?threads=1`.
        has_settings: whether a name may be followed by `@setting` behind an argument; without it @ is a letter.
    """
    path, mark, query = text.rpartition("?")
    pairs = [pair.partition("=") for pair in query.split("&")] if mark else []
    if not pairs or not all(key.isidentifier() and equals for key, equals, _ in pairs):
        path, query, pairs = text, "", []
    name, colon, argument = path.partition(":")
    setting = ""
    if has_settings is not None:
        if not colon:
            name, _, setting = name.partition("@")
        elif "@" in argument and has_settings(name):
            argument, _, setting = argument.rpartition("@")
    return Spec(name, argument if colon else None, {key: scalar(value) for key, _, value in pairs}, setting, query)


def scalar(text: str) -> Any:
    """A value as YAML reads it; text that YAML cannot read is itself."""
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return text


def _last_part(value: str) -> str:
    return PurePath(value).name if value.startswith(("/", "./", "../", "~")) else value
