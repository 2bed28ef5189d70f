"""Values that show themselves: a short text in a console, a table in a notebook, a figure on request.

How a value is shown is known to a room above, `_room`, and looked up there when it is shown.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, ClassVar


class Displayed:
    """Has a text, a table in HTML, and a figure."""

    __slots__ = ()
    _room: ClassVar[str] = "earmark.report.display"

    def __repr__(self) -> str:
        return str(self._shown("as_text"))

    def _repr_html_(self) -> str:
        return str(self._shown("as_html"))

    def plot(self, **options: Any) -> Any:
        """The figure that people want first, of matplotlib; `earmark.report.display.draw` says what it is of."""
        return self._shown("draw", **options)

    def _shown(self, how: str, **options: Any) -> Any:
        return getattr(import_module(self._room), how)(self, **options)
