"""Numbers in sentences."""

from __future__ import annotations

from earmark.wording import counted


def test_counted() -> None:
    assert [counted(number, "row") for number in (0, 1, 2)] == ["0 rows", "1 row", "2 rows"]
    assert [counted(number, "class") for number in (1, 2)] == ["1 class", "2 classes"]
