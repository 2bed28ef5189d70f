from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.blind.red_team import cells

from earmark.isolation import Cell


@pytest.fixture(scope="session")
def inside() -> Iterator[Cell]:
    """A sealed cell for attempts that do not end it."""
    with cells.sealed_cell() as cell:
        yield cell


@pytest.fixture(scope="session")
def outside() -> Iterator[Cell]:
    """A cell that is not confined: here the attempts succeed."""
    with cells.open_cell() as cell:
        yield cell
