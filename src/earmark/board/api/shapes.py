"""What the API sends, as models that OpenAPI describes. Unknown facts are null, as in the score table.

`Shape.model_validate(value)` makes a shape of the value of the same fields: a record, a row or a cell of a table.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Generic, TypeVar

from pydantic import AliasPath, BaseModel, ConfigDict, Field, StringConstraints

from earmark.board.records import Role, State
from earmark.submissions import Kind, Provenance

__all__ = [
    "BoardShape",
    "BoardsShape",
    "ComparisonShape",
    "CreatedTokenShape",
    "DecisionAsked",
    "PageShape",
    "ProblemShape",
    "ScoreShape",
    "SubmissionShape",
    "SystemShape",
    "TableShape",
    "TokenAsked",
    "TokenShape",
    "UserAsked",
    "UserShape",
    "VerdictShape",
    "WithdrawalAsked",
]

Item = TypeVar("Item")
Line = Annotated[str, StringConstraints(max_length=500, pattern=r"^[^\x00-\x1f\x7f]*$")]
_SystemName = Annotated[str, Field(validation_alias=AliasPath("system", "card", "name"))]
_SystemSlug = Annotated[str, Field(validation_alias=AliasPath("system", "slug"))]


class Shape(BaseModel):
    model_config = ConfigDict(from_attributes=True, validate_by_name=True)


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


class CardShape(Shape):
    """What the author says of a system."""

    name: str
    kind: Kind
    title: str
    family: str
    description: str
    authors: list[str]
    url: str
    licence: str
    training_free: bool | None
    parameters_m: float | None
    real_time_factor: float | None
    kbps: float | None
    pretraining: list[str]
    command: str
    citation: str
    year: int | None


class SystemShape(Shape):
    board: str
    slug: str
    card: CardShape
    owner: str
    team: str
    created: datetime
    page: str = ""


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


class CellShape(Shape):
    """A score as a table shows it: `status` is "" where nothing was measured, `partial` for a mean of some subsets."""

    value: float | None
    low: float | None
    high: float | None
    lift: float | None
    status: str
    reason: str


class LineShape(Shape):
    """A line of a table. Its rank lies between `rank_low` and `rank_high`; 0 is none, for the reason in `unranked`."""

    system: _SystemName
    slug: _SystemSlug
    setting: str
    protocol: str
    rank: int
    rank_low: int
    rank_high: int
    unranked: str
    provenance: list[str]
    cells: list[CellShape]


class ColumnShape(Shape):
    key: str
    title: str
    metric: str
    subset: str


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


class ComparedShape(Shape):
    """One of the systems that are compared."""

    system: _SystemName
    slug: _SystemSlug
    setting: str
    rank: int
    rank_low: int
    rank_high: int
    mean: CellShape
    cells: list[CellShape]


class DifferenceShape(BaseModel):
    """One system minus another: the mean over subsets that both have, and its 95 % interval."""

    one: str
    other: str
    mean: float | None
    low: float | None
    high: float | None
    subsets: int
    better: int
    worse: int
    sure: bool = Field(description="Whether the interval leaves out 0.")


class ComparisonShape(BaseModel):
    board: str
    metric: str
    over: str
    protocol: str
    subsets: list[str]
    systems: list[ComparedShape]
    differences: list[DifferenceShape]


class SubmissionShape(Shape):
    id: str
    board: str
    systems: list[str]
    owner: str
    team: str
    state: State
    provenance: Provenance
    created: datetime
    decided: datetime | None
    decided_by: str
    reason: str
    rows: int
    digest: str
    version: str
    notes: list[str]
    names: list[str]
    permalink: str = ""


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


class UserShape(Shape):
    name: str
    team: str
    role: Role
    created: datetime


class TokenShape(Shape):
    """A token as it may be shown: its beginning only."""

    id: int
    prefix: str
    label: str
    created: datetime
    last_used: datetime | None
    revoked: datetime | None


class CreatedTokenShape(BaseModel):
    """A new token: `plain` is shown this once and kept nowhere."""

    plain: str
    token: TokenShape


class _Asked(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class TokenAsked(_Asked):
    label: Line = ""


class UserAsked(_Asked):
    name: Line
    team: Line = ""


class WithdrawalAsked(_Asked):
    reason: Line = ""


class DecisionAsked(_Asked):
    accept: bool
    reason: Line = ""
    provenance: Provenance | None = None
