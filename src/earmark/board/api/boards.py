"""/v1/boards: what the board shows, for programs. Every answer has an ETag that changes when the board does."""

from __future__ import annotations

from itertools import islice
from typing import Annotated

from fastapi import APIRouter, Path, Query
from starlette.requests import Request
from starlette.responses import Response

from earmark.board.api import shapes
from earmark.board.api.rows import FILTERS, rows_of
from earmark.board.boards.chosen import MOST_LETTERS
from earmark.board.boards.pairs import compare
from earmark.board.boards.snapshot import Snapshot
from earmark.board.boards.table import table
from earmark.board.boards.view import BoardView
from earmark.board.records import System
from earmark.board.refusals import NotFound
from earmark.board.web.requests import Asked, Context, address_of, cursor_after, cursor_of, kept

router = APIRouter(prefix="/boards", tags=["boards"])

Board = Annotated[str, Path(max_length=200, description="The name of a board, such as vocsim.")]
Slug = Annotated[str, Path(max_length=200, description="The name of a system as addresses have it.")]
Cursor = Annotated[str, Query(max_length=400, description="`next` of the page before; leave it out for the first.")]
Some = Annotated[list[str], Query(max_length=50, description="Give it several times for any of several.")]


@router.get("", response_model=shapes.BoardsShape)
def boards(request: Request, context: Asked) -> Response:
    """All boards of this host."""

    def make() -> shapes.BoardsShape:
        base = address_of(request)
        current = (context.snapshots.current(name) for name in context.snapshots.listed())
        return shapes.BoardsShape(items=[_board(snapshot, base) for snapshot in current])

    return kept(request, make)


@router.get("/{board}", response_model=shapes.BoardShape)
def board(board: Board, request: Request, context: Asked) -> Response:
    """One board: how many systems it has, on which subsets, with which metrics."""
    return kept(request, lambda: _board(context.snapshots.current(board), address_of(request)))


def _board(snapshot: Snapshot, base: str) -> shapes.BoardShape:
    names = rows_of(snapshot).names
    return shapes.BoardShape(
        name=snapshot.board, systems=len(snapshot.lines_of), subsets=list(names["subset"]),
        metrics=list(snapshot.metrics), distances=list(names["distance"]), generation=snapshot.generation,
        page=f"{base}/b/{snapshot.board}",
    )  # fmt: skip


@router.get("/{board}/systems", response_model=shapes.PageShape[shapes.SystemShape])
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

    def make() -> shapes.PageShape[shapes.SystemShape]:
        after = int(cursor_of(cursor, int)[0]) if cursor else -1
        words = q.casefold().split()

        def wanted(system: System) -> bool:
            card = system.card
            text = f"{card.name} {card.title} {card.family}".casefold()
            return system.id > after and all(word in text for word in words) and family in ("", card.family)

        listed = list(islice(filter(wanted, context.snapshots.current(board).systems), limit + 1))
        following = cursor_after([listed[limit - 1].id]) if len(listed) > limit else None
        return shapes.PageShape[shapes.SystemShape](
            items=[_system(each, request) for each in listed[:limit]], next=following
        )

    return kept(request, make)


@router.get("/{board}/systems/{slug}", response_model=shapes.SystemShape)
def system(board: Board, slug: Slug, request: Request, context: Asked) -> Response:
    """One system and its card."""
    return kept(request, lambda: _system(context.snapshots.current(board).system(slug), request))


def _system(system: System, request: Request) -> shapes.SystemShape:
    shape: shapes.SystemShape = shapes.SystemShape.model_validate(system)
    shape.page = f"{address_of(request)}/b/{system.board}/s/{system.slug}"
    return shape


@router.get("/{board}/scores", response_model=shapes.PageShape[shapes.ScoreShape])
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
    given = (system, subset, metric, distance, correction, protocol, status)
    filters = dict(zip(FILTERS, given, strict=True))
    return kept(request, lambda: _scores(context, board, filters, cursor, limit))


def _scores(
    context: Context, board: str, filters: dict[str, list[str]], cursor: str, limit: int
) -> shapes.PageShape[shapes.ScoreShape]:
    snapshot = context.snapshots.current(board)
    rows = rows_of(snapshot)
    start = 0
    if cursor:
        system_id, nth = cursor_of(cursor, int, int)
        start = rows.place_after(snapshot, int(system_id), int(nth))
    places = rows.matching(filters, start)
    following = cursor_after(rows.cursor(snapshot, int(places[limit - 1]))) if len(places) > limit else None
    return shapes.PageShape[shapes.ScoreShape].model_construct(
        items=list(rows.shapes(snapshot, places[:limit])), next=following
    )


@router.get("/{board}/table", response_model=shapes.TableShape)
def ranked(board: Board, request: Request, context: Asked) -> Response:
    """The table of the board's page as data: ranks with their intervals, means, cells.

    It takes the same query as the page, so that any table that a reader sees can be had: `metric`, `over`, `setting`,
    `protocol`, `q`, `family`, `training`, `licence`, `size`, `provenance`, `show`, `sort`, `order`, `page`, `per`.
    """

    def make() -> shapes.TableShape:
        snapshot = _scored(context, board)
        view = BoardView.parse(snapshot, request.query_params.multi_items())
        page = table(snapshot, view)
        return shapes.TableShape(
            board=board, metric=view.metric, over=view.over, lines=page.total, pages=page.pages, page=page.view.page,
            columns=[shapes.ColumnShape.model_validate(column) for column in page.columns],
            items=[shapes.LineShape.model_validate(row) for row in page.rows],
            address=f"{address_of(request)}/b/{board}?{view.query()}".rstrip("?"),
        )  # fmt: skip

    return kept(request, make)


def _scored(context: Context, board: str) -> Snapshot:
    snapshot = context.snapshots.current(board)
    if not snapshot.metrics:
        raise NotFound(f'The board "{board}" has no scores now.')
    return snapshot


@router.get("/{board}/compare", response_model=shapes.ComparisonShape)
def compared(
    board: Board,
    request: Request,
    context: Asked,
    s: Annotated[list[str], Query(max_length=12, description='2 to 6 systems: "slug" or "slug:setting".')],
    metric: Annotated[str, Query(max_length=200)] = "",
    over: Annotated[str, Query(max_length=MOST_LETTERS, description="A mean, or subsets:ONE,OTHER.")] = "",
    protocol: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    """Systems side by side, and each pair subset by subset, with intervals and p-values corrected for 15 pairs."""

    def make() -> shapes.ComparisonShape:
        comparison = compare(_scored(context, board), s, metric=metric, over=over, protocol=protocol)
        keys = [each.key for each in comparison.compared]
        return shapes.ComparisonShape(
            board=board,
            metric=comparison.metric,
            over=comparison.group.key,
            protocol=comparison.protocol,
            subsets=list(comparison.subsets),
            systems=[shapes.ComparedShape.model_validate(each) for each in comparison.compared],
            differences=[
                shapes.DifferenceShape(
                    **{**pair._asdict(), "one": keys[pair.one], "other": keys[pair.other]}, sure=pair.sure
                )
                for pair in comparison.differences
            ],
        )

    return kept(request, make)
