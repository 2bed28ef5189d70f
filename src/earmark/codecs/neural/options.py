"""What may stand behind the question mark of a neural codec: `encodec@6?device=cpu&allow_pickle=true`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from earmark.errors import UsageError, did_you_mean

__all__ = ["Options", "options_of"]


@dataclass(frozen=True)
class Options:
    """Parameters that every neural family takes."""

    codebooks: int | None = None  # fewer than the checkpoint has; None: as many as the card says
    device: str = "auto"  # cuda where there is one, else cpu
    local_files_only: bool = False
    allow_pickle: bool = False
    revision: str | None = None


def options_of(family: str, given: Mapping[str, Any]) -> Options:
    """The options, or one sentence that names what is unknown."""
    known = [field.name for field in fields(Options)]
    for name in given:
        if name not in known:
            raise UsageError(
                f"{family} takes no option {name}: choose from {', '.join(known)}.{did_you_mean(name, known)}"
            )
    options = Options(**given)
    if options.codebooks is not None and (isinstance(options.codebooks, bool) or not str(options.codebooks).isdigit()):
        raise UsageError(f"{family} cannot use {options.codebooks} codebooks: give a whole number.")
    return options
