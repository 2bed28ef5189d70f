"""/v1/boards: what the board shows, for programs. Every answer has an ETag that changes when the board does."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query
from starlette.requests import Request
from starlette.responses import Response

from earmark.board.web.requests import Asked, address_of, cursor_after, cursor_of, kept
from earmark.board.api.rows import rows_of
from earmark.board.api.shapes import (
    BoardShape,
    BoardsShape,
    CellShape,
    ColumnShape,
    ComparedShape,
    ComparisonShape,
    DifferenceShape,
    LineShape,
    PageShape,
    ScoreShape,
    SystemShape,
    TableShape,
)
from earmark.board.boards.pairs import Comparison, compare
from earmark.board.web.context import Context
from earmark.board.refusals import NotFound
from earmark.board.boards.snapshot import Snapshot
from earmark.board.boards.table import Cell, TablePage, table
from earmark.board.boards.view import BoardView

__all__ = ["router"]

router = APIRouter(prefix="/boards", tags=["boards"])

Board = Annotated[str, Path(max_length=200, description="The name of a board, such as vocsim.")]
Slug = Annotated[str, Path(max_length=200, description="The name of a system as addresses have it.")]
Cursor = Annotated[str, Query(max_length=400, description="`next` of the page before; leave it out for the first.")]
Some = Annotated[list[str], Query(max_length=50, description="Give it several times for any of several.")]


@router.get("", response_model=BoardsShape)
def boards(request: Request, context: Asked) -> Response:
    """All boards of this host."""

    def make() -> BoardsShape:
        base = address_of(request)
        current = (context.snapshots.current(name) for name in context.snapshots.boards())
        return BoardsShape(items=[_board(snapshot, base) for snapshot in current])

    return kept(request, make)


@router.get("/{board}", response_model=BoardShape)
def board(board: Board, request: Request, context: Asked) -> Response:
    """One board: how many systems it has, on which subsets, with which metrics."""
    return kept(request, lambda: _board(context.snapshots.current(board), address_of(request)))


def _board(snapshot: Snapshot, base: str) -> BoardShape:
    names = rows_of(snapshot).names
    return BoardShape(
        name=snapshot.board,
        systems=snapshot.ranked_systems,
        subsets=list(names["subset"]),
        metrics=list(snapshot.metrics),
        distances=list(names["distance"]),
        generation=snapshot.generation,
        page=f"{base}/b/{snapshot.board}",
    )


@router.get("/{board}/systems", response_model=PageShape[SystemShape])
def systems(
    board: Board,
    request: Request,
    context: Asked,
    q: Annotated[str, Query(max_length=200, description="Words in name, title or family.")] = "",
    family: Annotated[str, Query(max_length=200)] = "",
    cursor: Cursor = "",
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Response:
    """The systems of a board with their cards, in the order in which they came."""

    def make() -> PageShape[SystemShape]:
        after = int(cursor_of(cursor, int)[0]) if cursor else None
        words = q.casefold().split()
        found = []
        for system in context.snapshots.current(board).systems:
            told = f"{system.card.name} {system.card.title} {system.card.family}".casefold()
            if (
                (after is None or system.id > after)
                and all(word in told for word in words)
                and (not family or system.card.family == family)
            ):
                found.append(system)
                if len(found) > limit:
                    break
        base = address_of(request)
        following = cursor_after([found[limit - 1].id]) if len(found) > limit else None
        return PageShape[SystemShape](items=[SystemShape.of(one, base) for one in found[:limit]], next=following)

    return kept(request, make)


@router.get("/{board}/systems/{slug}", response_model=SystemShape)
def system(board: Board, slug: Slug, request: Request, context: Asked) -> Response:
    """One system and its card."""
    return kept(request, lambda: SystemShape.of(context.snapshots.current(board).system(slug), address_of(request)))


@router.get("/{board}/scores", response_model=PageShape[ScoreShape])
def scores(
    board: Board,
    request: Request,
    context: Asked,
    system: Some = [],  # noqa: B006 - FastAPI copies it
    subset: Some = [],  # noqa: B006
    metric: Some = [],  # noqa: B006
    distance: Some = [],  # noqa: B006
    correction: Some = [],  # noqa: B006
    protocol: Some = [],  # noqa: B006
    status: Some = [],  # noqa: B006
    cursor: Cursor = "",
    limit: Annotated[int, Query(ge=1, le=5000)] = 500,
) -> Response:
    """The live scores of a board: of each measurement the newest accepted one. `system` is a slug."""
    filters = {
        "system": system,
        "subset": subset,
        "metric": metric,
        "distance": distance,
        "correction": correction,
        "protocol": protocol,
        "status": status,
    }
    return kept(request, lambda: _scores(context, board, filters, cursor, limit))


def _scores(
    context: Context, board: str, filters: dict[str, list[str]], cursor: str, limit: int
) -> PageShape[ScoreShape]:
    snapshot = context.snapshots.current(board)
    rows = rows_of(snapshot)
    start = 0
    if cursor:
        system_id, nth = cursor_of(cursor, int, int)
        start = rows.place_after(snapshot, int(system_id), int(nth))
    places = rows.matching(filters, start)
    following = cursor_after(rows.cursor(snapshot, int(places[limit - 1]))) if len(places) > limit else None
    return PageShape[ScoreShape].model_construct(items=list(rows.shapes(snapshot, places[:limit])), next=following)


@router.get("/{board}/table", response_model=TableShape)
def ranked(board: Board, request: Request, context: Asked) -> Response:
    """The table of the board's page as data: ranks with their intervals, means, cells.

    It takes the same query as the page, so that any table that a reader sees can be had: `metric`, `over`, `setting`,
    `protocol`, `q`, `family`, `training`, `licence`, `size`, `provenance`, `show`, `sort`, `order`, `page`, `per`.
    """

    def make() -> TableShape:
        snapshot = context.snapshots.current(board)
        view = BoardView.parse(snapshot, request.query_params.multi_items())
        if not view.metric:
            raise NotFound(f'The board "{board}" has no scores now.')
        return _table(table(snapshot, view), f"{address_of(request)}/b/{board}?{view.query()}".rstrip("?"))

    return kept(request, make)


def _table(page: TablePage, address: str) -> TableShape:
    return TableShape(
        board=page.view.board,
        metric=page.view.metric,
        over=page.view.over,
        lines=page.total,
        pages=page.pages,
        page=page.view.page,
        columns=[ColumnShape(key=c.key, title=c.title, metric=c.metric, subset=c.subset) for c in page.columns],
        items=[
            LineShape(
                system=row.system.card.name,
                slug=row.system.slug,
                setting=row.setting,
                protocol=row.protocol,
                rank=row.rank,
                rank_low=row.rank_low,
                rank_high=row.rank_high,
                unranked=row.unranked,
                provenance=list(row.provenance),
                cells=[_cell(cell) for cell in row.cells],
            )
            for row in page.rows
        ],
        address=address,
    )


def _cell(cell: Cell) -> CellShape:
    return CellShape.model_construct(
        value=cell.value, low=cell.low, high=cell.high, lift=cell.lift, status=cell.status, reason=cell.reason
    )


@router.get("/{board}/compare", response_model=ComparisonShape)
def compared(
    board: Board,
    request: Request,
    context: Asked,
    s: Annotated[list[str], Query(max_length=12, description='2 to 6 systems: "slug" or "slug:setting".')],
    metric: Annotated[str, Query(max_length=200)] = "",
    over: Annotated[str, Query(max_length=200)] = "",
    protocol: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    """Systems side by side, and each pair subset by subset, with intervals from drawing the subsets again."""

    def make() -> ComparisonShape:
        snapshot = context.snapshots.current(board)
        if not snapshot.metrics:
            raise NotFound(f'The board "{board}" has no scores now.')
        return _comparison(board, compare(snapshot, s, metric=metric, over=over, protocol=protocol))

    return kept(request, make)


def _comparison(board: str, found: Comparison) -> ComparisonShape:
    keys = [one.key for one in found.compared]
    return ComparisonShape(
        board=board,
        metric=found.metric,
        over=found.group.key,
        protocol=found.protocol,
        subsets=list(found.subsets),
        systems=[
            ComparedShape(
                system=one.system.card.name,
                slug=one.system.slug,
                setting=one.setting,
                rank=one.rank,
                rank_low=one.rank_low,
                rank_high=one.rank_high,
                mean=_cell(one.mean),
                cells=[_cell(cell) for cell in one.cells],
            )
            for one in found.compared
        ],
        differences=[
            DifferenceShape(
                one=keys[apart.one],
                other=keys[apart.other],
                mean=apart.mean,
                low=apart.low,
                high=apart.high,
                subsets=apart.subsets,
                better=apart.better,
                worse=apart.worse,
                sure=apart.sure,
            )
            for apart in found.differences
        ],
    )
