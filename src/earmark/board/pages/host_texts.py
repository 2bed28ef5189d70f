"""The host's own words as pages show them: sanitised, and read anew when the board has changed."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from markupsafe import Markup

from earmark.board.pages.markdown import markdown
from earmark.databases import Busy

if TYPE_CHECKING:
    from earmark.board.boards.snapshots import Snapshots
    from earmark.board.storage import Store


class ShownTexts:
    """What the host wrote, by name, as HTML; while the database is away, what was read last."""

    def __init__(self, store: Store, snapshots: Snapshots | None = None) -> None:
        self._store = store
        self._snapshots = snapshots
        self._read = (-2, dict[str, Markup]())  # of which generation, and the texts

    def __call__(self) -> Mapping[str, Markup]:
        generation = self._snapshots.generation if self._snapshots else 0
        if self._read[0] != generation:
            with contextlib.suppress(Busy):
                shown = {name: markdown(text) for name, text in self._store.host_texts().items()}
                self._read = (generation, shown)
        return self._read[1]
