"""Numbers as they are printed: fixed or significant digits, percent, an explicit sign, a missing value, an interval."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MISSING = "\N{EN DASH}"
MINUS = "\N{MINUS SIGN}"
HYPHEN = "-"


@dataclass(frozen=True, slots=True)
class NumberFormat:
    """How one column writes its numbers.

    Attributes:
        digits: Digits after the point; significant digits where `significant` is set.
        percent: The values are fractions and are shown times 100.
        significant: Count significant digits instead of decimals.
        unit: What follows a number where the unit is asked for, its space included.
        minus: The sign of negative numbers: a true minus for reading, a hyphen for copying.
    """

    digits: int = 3
    percent: bool = False
    significant: bool = False
    unit: str = ""
    minus: str = MINUS

    def text(self, value: float | None, *, sign: bool = False, unit: bool = False) -> str:
        """The number as text; an en dash when it is missing or NaN.

        Args:
            value: The number, a fraction where the format is in percent.
            sign: Write `+` before a number that is not negative.
            unit: Write the unit behind the number.
        """
        if value is None or value != value:
            return MISSING
        kind = "g" if self.significant else "f"
        text = f"{100 * value if self.percent else value:{'+' if sign else ''}.{self.digits}{kind}}"
        if re.fullmatch(r"-0(\.0+)?", text):  # what is left of a tiny negative number: its sign says nothing
            text = text.replace("-", "+" if sign else "")
        return text.replace("-", self.minus) + (self.unit if unit else "")

    def interval(self, low: float | None, high: float | None, *, sign: bool = False) -> str:
        """`[29.6, 33.8]`, or nothing when an end is missing."""
        if low is None or high is None:
            return ""
        return f"[{self.text(low, sign=sign)}, {self.text(high, sign=sign)}]"


PLAIN_NUMBER = NumberFormat()


def p_value_text(p_value: float) -> str:
    """`p = 0.012`, or `p ≤ 0.001` where three digits would say zero."""
    return f"p = {p_value:.3f}" if p_value >= 0.0015 else f"p ≤ {p_value:.1g}"


_PLAIN_FROM, _PLAIN_TO = 1e-4, 1e16
"""Between these Python writes no exponent."""


def exact_texts(values: NDArray[np.float64]) -> list[str]:
    """Each number with every digit, as `repr` writes it and in a fifth of its time; "" for NaN."""
    import numpy as np
    from pydantic_core import to_json

    texts = to_json(values.tolist(), inf_nan_mode="null").decode()[1:-1].replace("null", "").split(",")
    size = np.abs(values)
    with np.errstate(invalid="ignore"):
        alone = np.flatnonzero((size < _PLAIN_FROM) & (size > 0) | (size >= _PLAIN_TO))
    for at in alone.tolist():
        texts[at] = repr(float(values[at]))
    return texts if len(values) else []
