"""The app of one board: database, snapshots, API and pages put together, with health and metrics.

    app = create_app(Settings(data=Path("board")))

uvicorn's worker processes each call `application`, which takes its settings from the environment.
"""

from __future__ import annotations

import contextlib
import secrets
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
from earmark.board.boards.snapshot import Snapshots
from earmark.board.packages import Packages
from earmark.board.pages import accounts, blind, submissions
from earmark.board.pages.assets import page_templates
from earmark.board.pages.site import reading_pages
from earmark.board.settings import Settings, Throttle
from earmark.board.storage import Store, open_database
from earmark.board.web.caching import PageCache
from earmark.board.web.logs import LOGGER, Meters, log_to_stderr
from earmark.board.web.middleware import Guarded, Observed
from earmark.board.web.problems import add_handlers
from earmark.board.web.requests import READERS, Context
from earmark.board.web.security import Signer

_SECRET = "secret"


def create_app(settings: Settings, *, store: Store | None = None) -> FastAPI:
    """The app of the board that the settings describe; its database is made and migrated when need be."""
    store = store or Store(open_database(settings.database), settings.limits)
    # What sessions are signed with: made at the first start, kept in the database, the same in every worker.
    secret = bytes.fromhex(store.set_meta(_SECRET, secrets.token_hex(32), keep=True))
    context = Context(
        settings=settings, store=store, snapshots=Snapshots(store),
        templates=page_templates(settings.title, registration=settings.registration, blind=settings.blind),
        signer=Signer(secret), sign_ins=Throttle(settings.sign_ins), answers=PageCache(32_000_000), meters=Meters(),
        packages=Packages(settings.packages, settings.max_package),
    )  # fmt: skip

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.readers = anyio.CapacityLimiter(READERS)
        if settings.blind:
            await run_in_threadpool(context.packages.sweep, store)
        LOGGER.info("ready", extra={"fields": {"version": __version__}})
        yield
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
    for part in (accounts, submissions, blind):
        app.include_router(part.router, include_in_schema=False)
    _add_operation(app, context)
    app.add_middleware(GZipMiddleware, minimum_size=1000, compresslevel=5)
    app.add_middleware(Guarded, settings=settings, meters=context.meters)
    # Plain routes do not leave their path with the request, as those of FastAPI do.
    plain = {route.endpoint: route.path for route in pages.routes if isinstance(route, Route)}
    app.add_middleware(Observed, meters=context.meters, plain_routes=plain)
    return app


def application() -> FastAPI:
    """The app for uvicorn's workers: `uvicorn --factory earmark.board.app:application`."""
    settings = Settings.from_environment()
    log_to_stderr(settings.log_level)
    return create_app(settings)


def _add_operation(app: FastAPI, context: Context) -> None:
    """Health (the process answers), readiness (the database does), and meters for Prometheus."""

    @app.get("/healthz", include_in_schema=False)
    async def health() -> PlainTextResponse:
        return PlainTextResponse("ok\n")

    @app.get("/readyz", include_in_schema=False)
    def readiness() -> PlainTextResponse:
        try:
            context.store.generation()
        except Exception:  # whatever the driver raises: the answer is the same
            LOGGER.exception("the database does not answer")
            return PlainTextResponse("the database does not answer\n", 503)
        return PlainTextResponse("ok\n")

    @app.get("/metrics", include_in_schema=False)
    def metrics() -> Response:
        context.meters.generation.set(context.store.generation())
        return Response(generate_latest(context.meters.registry), media_type=CONTENT_TYPE_LATEST)
