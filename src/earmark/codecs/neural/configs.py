"""Reading the configs of published checkpoints: every value is asked for by name and kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from earmark.errors import InputError
from earmark.extractors.pretrained import Checkpoint

__all__ = ["Config"]


class Config:
    """Values of a config; one that is missing, of the wrong kind or never asked for is told in one sentence."""

    def __init__(self, values: Mapping[str, Any], checkpoint: Checkpoint) -> None:
        self.values, self.checkpoint = values, checkpoint
        self.asked: set[str] = set()

    def number(self, name: str, default: int | None = None) -> int:
        found = self._found(name, default)
        if isinstance(found, bool) or not isinstance(found, int) or found < -1:
            raise self._wrong(name, found, "a whole number")
        return found

    def flag(self, name: str, default: bool | None = None) -> bool:
        found = self._found(name, default)
        if not isinstance(found, bool):
            raise self._wrong(name, found, "true or false")
        return found

    def word(self, name: str, default: str | None = None, known: tuple[str, ...] = ()) -> str:
        found = str(self._found(name, default))
        if known and found not in known:
            raise self._wrong(name, found, " or ".join(known))
        return found

    def numbers(self, name: str, default: tuple[int, ...] | None = None) -> tuple[int, ...]:
        found = self._found(name, default)
        if not _are_numbers(found):
            raise self._wrong(name, found, "a list of whole numbers")
        return tuple(found)

    def tables(self, name: str, default: tuple[tuple[int, ...], ...] | None = None) -> tuple[tuple[int, ...], ...]:
        found = self._found(name, default)
        if not isinstance(found, list | tuple) or not all(_are_numbers(row) for row in found):
            raise self._wrong(name, found, "a list of lists of whole numbers")
        return tuple(tuple(row) for row in found)

    def part(self, name: str) -> Config:
        """A section of the config; an empty one where it has none."""
        found = self._found(name, {})
        if not isinstance(found, Mapping):
            raise self._wrong(name, found, "a section")
        return Config(found, self.checkpoint)

    def only(self, *passed_over: str) -> None:
        """Refuse names that were not asked for: they would change the network in a way that is not here."""
        left = sorted(set(self.values) - self.asked - set(passed_over))
        if left:
            raise InputError(
                f"The config of {self.checkpoint.name} asks for {left[0]}, which {self.checkpoint.family} does not "
                f"know here: take a published checkpoint."
            )

    def _found(self, name: str, default: Any) -> Any:
        self.asked.add(name)
        found = self.values.get(name)
        found = default if found is None else found
        if found is None:
            raise InputError(
                f"The config of {self.checkpoint.name} lacks {name}: check that it is one of {self.checkpoint.family}."
            )
        return found

    def _wrong(self, name: str, found: Any, kind: str) -> InputError:
        return InputError(
            f"The config of {self.checkpoint.name} says {name}: {found!r}, and {self.checkpoint.family} wants {kind}."
        )


def _are_numbers(values: Any) -> bool:
    return (
        isinstance(values, list | tuple)
        and bool(values)
        and all(isinstance(one, int) and not isinstance(one, bool) for one in values)
    )
