"""schemathesis asks every route of the API for hundreds of strange things: none of them may be a defect of ours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from fastapi import FastAPI
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests.board.blind_jobs import announced, queued
from tests.board.hosted import Hosted, document, hosted

from earmark.board.api import add_api
from earmark.board.settings import Rate

EXAMPLES = 15
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosted]:
    free = Rate(0, 1)
    folder = tmp_path_factory.mktemp("board")
    with hosted(folder, reads=free, writes=free, sign_ins=free, registration="open", blind=True) as made:
        made.accepted(document("one"))
        made.accepted(document("two", 0.7))
        lab, ada = made.store.create_user("lab", role="worker"), made.store.user("ada")
        assert ada is not None
        announced(made.store, lab)
        queued(made.store, ada, "1")
        made.worker = {"Authorization": f"Bearer {made.store.create_token(lab, 'test')[0]}"}
        yield made


def routes() -> list[tuple[str, str]]:
    """Every route that the API describes, known before there is a board."""
    app = FastAPI()
    add_api(app)
    return [(method, path) for path, methods in app.openapi()["paths"].items() for method in methods]


@pytest.fixture(scope="module")
def api(board: Hosted) -> Any:
    return schemathesis.openapi.from_asgi("/v1/openapi.json", board.client.app)


@pytest.mark.parametrize(("method", "path"), routes())
def test_no_request_is_answered_with_a_defect(board: Hosted, api: Any, method: str, path: str) -> None:
    there = {"board": "vocsim", "slug": "one", "submission": board.store.submissions(limit=1)[0].id, "token": 1_000}
    there["system"] = there["slug"]
    moderator = next(user for user in board.store.users() if user.moderates)
    there["draft"] = board.store.save_draft(document("kept"), moderator).id if "{draft}" in path else ""
    there["job"] = board.store.jobs(board.store.users()[1])[0].id
    # A moderator may do everything but a worker's work: so the request gets furthest.
    headers = board.worker if path.startswith("/v1/blind") else board.moderator

    @settings(
        max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, database=None
    )
    @given(case=api[path][method].as_strategy())
    def ask(case: schemathesis.Case) -> None:
        case.call_and_validate(headers=headers, checks=CHECKS)
        if case.path_parameters:
            # Strange questions about something that is there, which nobody would find by chance.
            case.path_parameters = {name: there[name] for name in case.path_parameters}
            case.call_and_validate(headers=headers, checks=CHECKS)

    ask()
