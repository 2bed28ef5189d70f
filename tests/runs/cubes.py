"""What workers of a pool do in tests, where importing it takes no time."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from earmark.errors import UsageError


def cubes(batch: Sequence[int]) -> list[int]:
    """Cubes; 0 hangs, -1 dies, -2 raises, -3 is a wrong call."""
    for number in batch:
        if number == 0:
            time.sleep(3600)
        if number == -1:
            os._exit(7)
        if number == -2:
            raise ZeroDivisionError("minus two")
        if number == -3:
            raise UsageError("It is called wrongly.")
    return [number**3 for number in batch]
