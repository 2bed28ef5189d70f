"""A host and an author in a real browser: pages without barriers, in two widths and two themes, and without scripts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.board.hosted import document, listening
from tests.e2e.conftest import loaded, take_pictures
from tests.e2e.test_submitting import _barriers

from earmark.board.storage import Store
from earmark.submissions import SystemCard

Open = Callable[..., Any]


class Tried:
    """A board with something on every page of authors, moderators and hosts."""

    def __init__(self, address: str, store: Store) -> None:
        self.address, self.store = address, store
        host, ada = store.create_user("hilda", role="host"), store.create_user("ada", "analysts")
        bob = store.create_user("bob")
        self.host_token, self.author_token = store.create_token(host)[0], store.create_token(ada)[0]
        for name, value in (("alpha", 0.5), ("beta", 0.4), ("EWMTF-D100", 0.6)):
            store.decide(
                store.submit(document(name, value, board="birds", title="A system"), bob).id, host, accept=True
            )
        mine = store.submit(document("mine", 0.45, board="birds"), ada)
        self.accepted = store.decide(mine.id, host, accept=True).id
        self.pending = store.submit(document("EWMTF Dl00", 0.7, board="birds"), ada, notes=["A remark."]).id
        self.again = store.submit(document("mine", 0.65, board="birds"), ada).id
        details = {"isolation": "none", "isolation_reason": "one process", "check": "failed", "check_reason": "a delay"}
        codec = document("codec", 0.3, board="birds")
        self.codec = store.submit(
            type(codec).of(codec.scores, board="birds", cards=[SystemCard("codec", "codec", details=details)]), ada
        ).id
        self.draft = store.save_draft(document("mine", 0.8, board="birds"), ada).id
        store.correct_card("birds", "mine", ada, {"training_free": True, "title": "Mine"}, "it is frozen")
        store.ban("bob", host, "a test")
        store.set_host_text("news", "We move on **Friday**.", host)
        store.set_host_text("footer", "Run by the lab.", host)
        store.set_host_text("imprint", "# Who we are\n\n- A. Host\n- The lab", host)


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tried]:
    with listening(tmp_path_factory.mktemp("hosting"), smtp="smtp://127.0.0.1:9") as (address, store):
        yield Tried(address, store)


def sign_in(page: Any, tried: Tried, token: str) -> None:
    page.goto(f"{tried.address}/sign-in")
    page.get_by_label("Your token").fill(token)
    with loaded(page):
        page.get_by_role("button", name="Sign in").click()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_pages_of_hosts_have_no_serious_barriers(tried: Tried, open_page: Open, theme: str, width: int) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    pages = {
        tried.host_token: (
            "moderate", f"submissions/{tried.pending}", f"submissions/{tried.codec}", f"submissions/{tried.accepted}",
            "audit", "users", "texts", "imprint", "b/birds/s/mine", "b/birds/define", "b/birds/about",
        ),
        tried.author_token: (
            "mine", f"drafts/{tried.draft}", "b/birds/s/mine/correct", "contact/confirm?code=x", "submit",
            f"submissions/{tried.pending}", "nowhere",
        ),
    }  # fmt: skip
    serious = []
    for token, paths in pages.items():
        page = open_page(color_scheme=theme, width=width)
        sign_in(page, tried, token)
        for path in paths:
            page.goto(f"{tried.address}/{path}")
            for summary in page.locator("main summary").all()[:4]:
                summary.click()
            if (theme, width) == ("light", 1280):
                take_pictures(page, f"signed-in {path}")
                page.emulate_media(color_scheme=theme)
            serious += _barriers(axe, page)
            wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert wide <= 0, f"{path} is {wide} pixels too wide"
    assert serious == []


def test_several_are_decided_without_scripts(tried: Tried, open_page: Open) -> None:
    page = open_page(javascript=False)
    sign_in(page, tried, tried.host_token)
    page.goto(f"{tried.address}/moderate")
    for id in (tried.again, tried.codec):
        page.locator(f'input[value="{id}"]').check()
    page.get_by_text("Decide about those that are chosen").click()
    page.get_by_label("Reason, which a rejection needs").first.fill("measured twice")
    with loaded(page):
        page.get_by_role("button", name="Reject them").click()
    assert page.get_by_text(": rejected").count() == 2
    states = {id: sent.state for id in (tried.again, tried.codec) if (sent := tried.store.submission(id))}
    assert set(states.values()) == {"rejected"}
