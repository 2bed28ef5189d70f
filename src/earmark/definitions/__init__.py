"""What a board is: the value that its host writes, that of the papers' boards, and one made of the scores there are."""

from __future__ import annotations

from earmark.definitions._checks import DIRECTION, check_name
from earmark.definitions.board import (
    BEST,
    BLIND,
    BoardMetric,
    BoardSubset,
    Definition,
    MainColumn,
    Reference,
    SubsetGroup,
    group_words,
)
from earmark.definitions.derived import Measured, derived_definition, measured_in
from earmark.definitions.papers import paper_boards
from earmark.definitions.plain import from_plain, read_definition, to_plain, to_yaml

__all__ = [
    "BEST",
    "BLIND",
    "DIRECTION",
    "BoardMetric",
    "BoardSubset",
    "Definition",
    "MainColumn",
    "Measured",
    "Reference",
    "SubsetGroup",
    "check_name",
    "derived_definition",
    "from_plain",
    "group_words",
    "measured_in",
    "paper_boards",
    "read_definition",
    "to_plain",
    "to_yaml",
]
