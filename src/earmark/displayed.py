"""Values that show themselves: a short text in a console, a table in a notebook, a figure on request.

How a value is shown is known to a room above, `_room`, and looked up there when it is shown.
"""

from __future__ import annotations

import sys
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
        figure = self._shown("draw", **options)
        _let_notebooks_show(type(figure))
        return figure

    def _shown(self, how: str, **options: Any) -> Any:
        return getattr(import_module(self._room), how)(self, **options)


def _let_notebooks_show(kind: type) -> None:
    """A notebook shows figures as pictures only once pyplot was used: before that, their name. Then ask for PNG."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is None:
        return
    formatters = shell.display_formatter.formatters
    if not any(kind in formatters[picture] for picture in ("image/png", "image/svg+xml", "image/jpeg")):
        import_module("IPython.core.pylabtools").select_figure_formats(shell, {"png"})
