"""What the API sends, as models that OpenAPI describes. Unknown facts are null, as in the score table.

A shape is made of a value that has its fields: `LineShape.model_validate(row)` of a row of a table. Shapes of records
take their fields from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Generic, TypeVar, get_type_hints

from pydantic import AliasPath, BaseModel, ConfigDict, Field, StringConstraints, create_model

from earmark.board.boards.cells import Cell
from earmark.board.boards.columns import Column
from earmark.board.boards.lines import Bitrate, TableRow
from earmark.board.boards.pairs import Compared, Difference
from earmark.board.records import CardChange, Decision, Draft, Event, Submission, System, Token, User
from earmark.submissions import Provenance, SystemCard

Item = TypeVar("Item")
Line = Annotated[str, StringConstraints(max_length=500, pattern=r"^[^\x00-\x1f\x7f]*$")]


class Shape(BaseModel):
    model_config = ConfigDict(from_attributes=True, validate_by_name=True)


def fields_of(
    record: type, *, first: Mapping[str, Any] | None = None, without: tuple[str, ...] = (), **others: Any
) -> type[Shape]:
    """A shape with the fields of a record, but some; `first` come before them, `others` have other types there."""
    kinds = {**(first or {}), **get_type_hints(record), **(first or {}), **others}
    fields: dict[str, Any] = {name: (kind, ...) for name, kind in kinds.items() if name not in without}
    return create_model(f"{record.__name__}Fields", __base__=Shape, **fields)


_OF_SYSTEM = {
    "system": Annotated[str, Field(validation_alias=AliasPath("system", "card", "name"))],
    "slug": Annotated[str, Field(validation_alias=AliasPath("system", "slug"))],
}


class CardShape(fields_of(SystemCard, without=("details",))):  # type: ignore[misc]
    """What the author says of a system."""


class SystemShape(fields_of(System, without=("id",), card=CardShape)):  # type: ignore[misc]
    page: str = ""


class SubmissionShape(fields_of(Submission)):  # type: ignore[misc]
    permalink: str = ""


class DraftShape(fields_of(Draft)):  # type: ignore[misc]
    """A document that its author keeps and has not sent."""


class FeedShape(BaseModel):
    """The address of a private feed: whoever knows it reads the feed. It is shown this once and kept nowhere."""

    address: str


class UserShape(fields_of(User, without=("id", "banned"))):  # type: ignore[misc]
    pass


class TokenShape(fields_of(Token, without=("user",))):  # type: ignore[misc]
    """A token as it may be shown: its beginning only."""


class PageShape(BaseModel, Generic[Item]):
    """Some of a list. `next` is the cursor of the following page, null on the last one."""

    items: list[Item]
    next: str | None = None


class BoardShape(BaseModel):
    """A board: a suite of the score table."""

    name: str
    systems: int
    subsets: list[str]
    metrics: list[str]
    distances: list[str]
    generation: int = Field(description="Grows with every visible change.")
    page: str


class BoardsShape(BaseModel):
    items: list[BoardShape]


class CellShape(fields_of(Cell, without=("heat",))):  # type: ignore[misc]
    """A score as a table shows it: `status` is "" where nothing was measured, `partial` for a mean of some subsets."""


class ScoreShape(BaseModel):
    """A live score, with where it comes from."""

    system: str = Field(description="The name of the system.")
    slug: str
    subset: str
    distance: str
    correction: str
    protocol: str
    metric: str
    value: float | None
    low: float | None
    high: float | None
    baseline: float | None
    lift: float | None
    n: int | None
    status: str
    reason: str
    provenance: str


class BitrateShape(fields_of(Bitrate)):  # type: ignore[misc]
    """The bitrate of a codec; `stated` when its card says it and no row measured it."""


_BITRATE = BitrateShape | None
_LINE = fields_of(TableRow, first=_OF_SYSTEM, without=("line",), cells=list[CellShape], bitrate=_BITRATE)


class LineShape(_LINE):  # type: ignore[valid-type, misc]
    """A line of a table. Its rank lies between `rank_low` and `rank_high`; 0 is none, for the reason in `unranked`.
    Lines of one `kind` are ranked among each other; "" is the kind that is ranked first."""


_COMPARED = fields_of(
    Compared, first=_OF_SYSTEM, without=("key",), mean=CellShape, cells=list[CellShape], bitrate=_BITRATE
)


class ComparedShape(_COMPARED):  # type: ignore[valid-type, misc]
    """One of the systems that are compared."""


class ColumnShape(fields_of(Column, without=("kind", "help"))):  # type: ignore[misc]
    pass


class TableShape(BaseModel):
    """A page of a board's table in one view."""

    board: str
    metric: str
    over: str
    lines: int
    pages: int
    page: int
    columns: list[ColumnShape]
    items: list[LineShape]
    address: str


class DifferenceShape(fields_of(Difference, one=str, other=str)):  # type: ignore[misc]
    """One system minus another: the mean over subsets that both have, its 95 % interval and p-value, both corrected for
    the 15 pairs of six systems; null where they cannot be told apart. A difference of harmonic means has a p-value and
    no interval. Where one of the two lacks subsets of the mean there is no verdict: the reason says so, and `shared` is
    the `over` of the mean that both have."""

    sure: bool = Field(description="Whether the p-value is below 5 %.")


class ComparisonShape(BaseModel):
    board: str
    metric: str
    over: str
    protocol: str
    subsets: list[str]
    systems: list[ComparedShape]
    differences: list[DifferenceShape]


class ProblemShape(BaseModel):
    """One thing that is wrong in a document, and where: a JSON pointer such as /scores/3/value."""

    pointer: str
    detail: str


class VerdictShape(BaseModel):
    """What the rules say of a document that was not stored."""

    accepted: bool
    board: str
    systems: list[str]
    rows: int
    digest: str
    problems: list[ProblemShape]
    warnings: list[str]


class CreatedTokenShape(BaseModel):
    """A new token: `plain` is shown this once and kept nowhere."""

    plain: str
    token: TokenShape


class Asked(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class NameAsked(Asked):
    name: Line


class TokenAsked(Asked):
    label: Line = ""


class UserAsked(Asked):
    name: Line
    team: Line = ""


class WithdrawalAsked(Asked):
    reason: Line = ""


class DecisionAsked(Asked):
    accept: bool
    reason: Line = ""
    provenance: Provenance | None = None


class DecisionsAsked(DecisionAsked):
    ids: Annotated[list[Line], Field(min_length=1, max_length=200)]


class MarkAsked(Asked):
    provenance: Provenance
    reason: Line = ""


class CorrectionAsked(Asked):
    """New values of some fields of a card; null takes a fact back."""

    card: Annotated[dict[Line, str | bool | int | float | list[Line] | None], Field(min_length=1, max_length=30)]
    why: Line = ""


class DecisionShape(fields_of(Decision)):  # type: ignore[misc]
    """What became of one of several: its new state, or what is wrong."""


class CardChangeShape(fields_of(CardChange, without=("decided_by",))):  # type: ignore[misc]
    """A correction of a card: applied, or waiting for a moderator."""


class EventShape(fields_of(Event)):  # type: ignore[misc]
    """A line of the audit trail."""


class OutlookShape(BaseModel):
    """What a board would show if a submission were accepted."""

    warnings: list[str]
    standings: list[dict[str, Any]]
    moved: list[dict[str, Any]]
    tried: list[dict[str, Any]]
    codecs: list[dict[str, Any]]
    rows: list[dict[str, Any]]
