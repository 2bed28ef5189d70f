"""The app of one board: database, snapshots, API and pages put together, with health and metrics.

    app = create_app(Settings(data=Path("board")))

uvicorn's worker processes each call `application`, which takes its settings from the environment.
"""

from __future__ import annotations

import contextlib
import secrets
import threading
from collections.abc import AsyncIterator

import anyio
from fastapi import FastAPI
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.concurrency import run_in_threadpool
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from earmark._version import __version__
from earmark.board.api import add_api
from earmark.board.boards.snapshots import Snapshots
from earmark.board.courier import Courier
from earmark.board.packages import Packages
from earmark.board.pages import accounts, authors, blind, definitions, moderation, people, submissions
from earmark.board.pages.assets import page_templates
from earmark.board.pages.host_texts import ShownTexts
from earmark.board.pages.site import reading_pages
from earmark.board.settings import Settings, Throttle
from earmark.board.storage import Store, open_database
from earmark.board.web.caching import PageCache
from earmark.board.web.lanes import turns
from earmark.board.web.logs import LOGGER, Meters, log_to_stderr
from earmark.board.web.middleware import Guarded, Observed
from earmark.board.web.on_boards import OnBoards
from earmark.board.web.problems import add_handlers
from earmark.board.web.readiness import Readiness
from earmark.board.web.reading import CELLS
from earmark.board.web.requests import INSPECTORS, Context
from earmark.board.web.security import Signer
from earmark.board.web.sharing import Shared
from earmark.board.web.stopping import end_in_time
from earmark.board.web.under_path import UnderPath

_SECRET = "secret"


def create_app(settings: Settings, *, store: Store | None = None) -> FastAPI:
    """The app of the board that the settings describe; its database is made and migrated when need be."""
    store = store or Store(open_database(settings.database), settings.limits, settings.quotas, settings.draft_days)
    # What sessions are signed with: made at the first start, kept in the database, the same in every worker.
    secret = bytes.fromhex(store.set_meta(_SECRET, secrets.token_hex(32), keep=True))
    snapshots = Snapshots(store)
    context = Context(
        settings=settings, store=store, snapshots=snapshots,
        templates=page_templates(
            settings.title, path=settings.path, registration=settings.registration, blind=settings.blind,
            host_texts=ShownTexts(store, snapshots),
        ),
        signer=Signer(secret), sign_ins=Throttle(settings.sign_ins), answers=PageCache(32_000_000), meters=Meters(),
        packages=Packages(settings.packages, settings.max_package),
    )  # fmt: skip

    readiness = Readiness(settings, store)

    courier = Courier(store, settings)

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.inspectors = anyio.CapacityLimiter(INSPECTORS)
        app.state.lanes = turns(settings)
        threading.Thread(target=CELLS.warm, name="warm", daemon=True).start()
        if settings.blind:
            await run_in_threadpool(context.packages.sweep, store)
        courier.start()
        LOGGER.info("ready", extra={"fields": {"version": __version__}})
        yield
        await run_in_threadpool(courier.stop)
        readiness.close()
        store.close()
        LOGGER.info("stopped")

    # The interactive pages that FastAPI offers load scripts from elsewhere: the description itself is enough.
    app = FastAPI(
        title=settings.title, version=__version__,
        description="Systems, scores and submissions of a leaderboard of audio models.",
        openapi_url="/v1/openapi.json", docs_url=None, redoc_url=None, lifespan=lifespan,
    )  # fmt: skip
    app.state.context = context
    add_handlers(app)
    add_api(app)
    pages = reading_pages(context)
    app.include_router(pages, include_in_schema=False)
    for part in (accounts, authors, moderation, people, submissions, blind, definitions):
        app.include_router(part.router, include_in_schema=False)
    _add_operation(app, context, readiness)
    app.add_middleware(OnBoards, context=context)
    app.add_middleware(GZipMiddleware, minimum_size=1000, compresslevel=5)
    app.add_middleware(Shared)
    app.add_middleware(Guarded, settings=settings, meters=context.meters)
    # Plain routes do not leave their path with the request, as those of FastAPI do.
    plain = {route.endpoint: route.path for route in pages.routes if isinstance(route, Route)}
    app.add_middleware(Observed, meters=context.meters, plain_routes=plain)
    if settings.path:
        app.add_middleware(UnderPath, path=settings.path)
    return app


def application() -> FastAPI:
    """The app for uvicorn's workers: `uvicorn --factory earmark.board.app:application`."""
    settings = Settings.from_environment()
    log_to_stderr(settings.log_level)
    app = create_app(settings)
    app.state.context.snapshots.settle = True

    def release() -> None:
        if (background := getattr(app.state, "background", None)) is not None:
            background.kill()
        CELLS.close()

    end_in_time(release)
    return app


def _add_operation(app: FastAPI, context: Context, readiness: Readiness) -> None:
    """Health (the process answers), readiness (the board can work), and meters for Prometheus."""

    @app.get("/healthz", include_in_schema=False)
    async def health() -> PlainTextResponse:
        return PlainTextResponse("ok\n")

    @app.get("/readyz", include_in_schema=False)
    def ready() -> PlainTextResponse:
        problems = readiness.problems(getattr(app.state, "background", None))
        return PlainTextResponse("".join(f"{sentence}\n" for sentence in problems) or "ok\n", 503 if problems else 200)

    @app.get("/metrics", include_in_schema=False)
    def metrics() -> Response:
        context.meters.generation.set(max(0, context.snapshots.generation))
        return Response(generate_latest(context.meters.registry), media_type=CONTENT_TYPE_LATEST)
