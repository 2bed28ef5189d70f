"""What a value is worth: null by permutation, values without each unit, intervals and differences from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from earmark.lazy import lazy_names

if TYPE_CHECKING:
    from earmark.calibrate.deletions import Units, leave_out, units_of
    from earmark.calibrate.jackknife import Difference, Interval, difference, interval
    from earmark.calibrate.permutation import Null, against_null, null_distributions

__all__ = [
    "Difference",
    "Interval",
    "Null",
    "Units",
    "against_null",
    "difference",
    "interval",
    "leave_out",
    "null_distributions",
    "units_of",
]

__getattr__ = lazy_names(
    "earmark.calibrate",
    {
        "Difference": "jackknife",
        "Interval": "jackknife",
        "Null": "permutation",
        "Units": "deletions",
        "against_null": "permutation",
        "difference": "jackknife",
        "interval": "jackknife",
        "leave_out": "deletions",
        "null_distributions": "permutation",
        "units_of": "deletions",
    },
)
