"""Labels, groups and ids as text, whatever library they come from: what is missing there is None here.

    None · NaN · pandas.NA · NaT · a masked entry · a null of Arrow or Polars · an empty text         missing
    3 · 3.0 · numpy.float32(3) · Decimal("3.0") · tensor(3.) · "3.0" in a column of numbers           the text 3

In text, `NaN`, `NaT` and `<NA>` are how libraries print a missing value. `nan`, `None`, `null` and `NA` are words that
may be labels, and mean missing only where every other entry is a number. An accented letter may be spelt as one
character or as letter and accent, and looks the same: texts have the first spelling (Unicode's NFC).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Texts: TypeAlias = list[str | None]

_ALWAYS_MISSING = frozenset({"NaN", "NaT", "<NA>"})
_MISSING_AMONG_NUMBERS = frozenset({"nan", "none", "null", "na", "n/a"})


def is_missing(item: object) -> bool:
    """Whether an entry stands for no value, in the way of Python, NumPy, pandas or any number type with a NaN."""
    if item is None or item is np.ma.masked or type(item).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(item, str | bytes | int):
        return False
    try:
        unequal = item != item  # as every NaN is to itself
    except Exception:  # a type that cannot be compared is no number
        return False
    return isinstance(unequal, bool | np.bool_) and bool(unequal)


def as_text(item: object) -> str | None:
    """A label, group or id as text; None when it is missing or says nothing."""
    text = as_written(item)
    return None if text is None else composed(text)


def as_written(item: object) -> str | None:
    """`as_text` with every character as it is, for names of files."""
    if hasattr(item, "detach"):  # a tensor of one number
        item = item.tolist()  # type: ignore[attr-defined]
    if hasattr(item, "as_py"):  # a scalar of Arrow
        item = item.as_py()
    if is_missing(item):
        return None
    if isinstance(item, bytes):
        item = item.decode("utf-8", "backslashreplace")
    if isinstance(item, float | np.floating | Decimal) and float(item).is_integer():
        item = int(item)
    return str(item).strip() or None


def composed(text: str) -> str:
    """A text with accented letters as single characters."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def column_texts(given: Any) -> Texts:
    """The entries of a list, array, masked array, tensor, series or column as text."""
    given = as_array(given)
    if isinstance(given, np.ndarray) and not np.ma.isMaskedArray(given) and given.dtype.kind in "iub":
        return list(given.astype(str))
    if isinstance(given, np.ndarray) and given.dtype.kind not in "mM":
        given = given.tolist()  # None where an entry is masked
    return settled([as_text(item) for item in given])


def as_array(given: Any) -> Any:
    """A tensor of torch as an array; anything else as it is."""
    if not (hasattr(given, "detach") and hasattr(given, "cpu")):
        return given
    tensor = given.detach().cpu()
    # NumPy has no bfloat16; float32 holds every value of it.
    array: NDArray[Any] = (tensor.float() if str(tensor.dtype).endswith("bfloat16") else tensor).numpy()
    return array


def settled(texts: Sequence[str | None]) -> Texts:
    """One spelling for what is missing, and in a column of numbers one for every whole number."""
    known = [None if text in _ALWAYS_MISSING else text for text in texts]
    different = {text for text in known if text is not None}
    words = {text for text in different if text.lower() in _MISSING_AMONG_NUMBERS}
    numbers = different - words
    if not numbers or not all(map(is_number, numbers)):
        return known
    return [None if text is None or text in words else re.sub(r"(?<=\d)\.0*$", "", text) for text in known]


def is_number(text: str) -> bool:
    """Whether a text is a number (NaN is one too), as NumPy reads them."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text and text.isascii()  # Python accepts 1_000 and Arabic digits, NumPy does not
