"""The pages of blind evaluation: who sees what, in which state, and where the badge leads."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from tests.board.blind_jobs import announced, archive, facts, figures, queued
from tests.board.hosted import Hosted, hosted

from earmark.board.pages.markdown import markdown
from earmark.board.records import User

HTML = {"Accept": "text/html"}


class Blind:
    """A board that takes packages, with a signed-in author and a worker."""

    def __init__(self, board: Hosted) -> None:
        self.board, self.store, self.client = board, board.store, board.client
        ada = self.store.user("ada")
        assert ada is not None
        self.ada: User = ada
        self.lab = self.store.create_user("lab", role="worker")
        announced(self.store, self.lab, quota=50, entries=50)
        self.sign_in(board.author_token)

    def sign_in(self, token: str) -> None:
        self.client.cookies.clear()
        self.client.post("/sign-in", data={"token": token, "form_token": self.token("/sign-in")}, headers=HTML)

    def token(self, page: str) -> str:
        found = re.search(r'name="form_token" value="([^"]+)"', self.client.get(page, headers=HTML).text)
        assert found is not None
        return found[1]

    def text(self, page: str, status: int = 200) -> str:
        answer = self.client.get(page, headers=HTML)
        assert answer.status_code == status, answer.text
        return answer.text

    def send(self, data: bytes, token: str | None = None, board: str = "mine") -> tuple[int, str]:
        """The status and the text of the page after a package was sent by the form."""
        texts = {"form_token": self.token("/blind/submit") if token is None else token, "board": board}
        files = {"package": ("package.zip", data, "application/zip")}
        answer = self.client.post("/blind/submit", data=texts, files=files, headers=HTML)
        return answer.status_code, answer.text


@pytest.fixture
def blind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Blind]:
    with hosted(tmp_path_factory.mktemp("board"), blind=True) as board:
        yield Blind(board)


def test_a_package_by_the_form_and_what_becomes_of_it(blind: Blind) -> None:
    status, page = blind.send(archive("by form"))
    assert status == 200
    assert "Queued as first." in page
    assert "this page says what becomes of it" in page
    assert 'hx-trigger="every 10s"' in page
    assert "This package was sent before" in blind.send(archive("by form"))[1]
    (job,) = blind.store.jobs(blind.ada)
    lease = blind.store.claim_job(blind.lab, "one")
    assert lease is not None
    blind.store.report_progress(job.id, blind.lab, lease.word, "listening", 4)
    assert "Running: listening to the blind recordings, 40 %." in blind.text(f"/blind/jobs/{job.id}")
    blind.store.fail_job(job.id, blind.lab, lease.word, "model", "your model returned NaN on 3 clips.", "<b>log</b>")
    page = blind.text(f"/blind/jobs/{job.id}")
    assert "Failed: your model returned NaN on 3 clips." in page
    assert "&lt;b&gt;log&lt;/b&gt;" in page
    assert "hx-trigger" not in page
    assert "Failed: your model" in blind.text("/blind")


def test_a_package_that_is_refused_comes_back_with_everything_that_is_wrong(blind: Blind) -> None:
    status, page = blind.send(archive(**{"submission.yaml": "format: 1\nkind: kode\nmodle: x\n"}))
    assert status == 422
    assert "The package was not taken" in page
    assert page.count("<li>") > 2
    assert blind.send(archive(), board="elsewhere")[0] == 404
    assert blind.store.jobs(blind.ada) == []


def test_a_form_of_another_site_and_a_stranger_are_refused(blind: Blind) -> None:
    assert blind.send(archive(), token="forged")[0] == 403
    token = blind.token("/blind/submit")
    blind.client.cookies.clear()
    assert blind.send(archive(), token=token)[0] == 401
    assert blind.store.jobs(blind.ada) == []
    assert "sign in" in blind.text("/blind/submit").lower()


def test_a_job_is_its_teams(blind: Blind) -> None:
    job = queued(blind.store, blind.store.create_user("zoe"), "1")
    blind.text(f"/blind/jobs/{job.id}", 404)
    assert job.id not in blind.text("/blind")
    blind.sign_in(blind.board.moderator_token)
    assert "Queued as first." in blind.text(f"/blind/jobs/{job.id}")


def test_a_page_that_looks_again_after_its_session_has_ended_stays_as_it_is(blind: Blind) -> None:
    job = queued(blind.store, blind.ada, "1")
    blind.client.cookies.clear()
    page = f"/blind/jobs/{job.id}"
    assert blind.client.get(page, headers={**HTML, "HX-Request": "true"}).status_code == 401
    assert "Your token" in blind.text(page)


def test_withdrawing(blind: Blind) -> None:
    job = queued(blind.store, blind.ada, "1")
    form = {"form_token": blind.token(f"/blind/jobs/{job.id}")}
    page = blind.client.post(f"/blind/jobs/{job.id}/withdraw", data=form, headers=HTML).text
    assert "Withdrawn: taken back by ada." in page
    assert "deleted from the board" in page


def test_the_badge_leads_to_the_entry_and_its_policy(blind: Blind) -> None:
    job = queued(blind.store, blind.ada, "1", "whole")
    body = {"policy": blind.store.blind_boards()[0].policy, "package": "ab" * 32}
    remark = {"kind": "signature", "at": "2026-11-16", "body": {"by": "<the owners>", "words": "We agree."}}
    entry = facts(body=body, remarks=[remark])
    made = blind.store.release_job(job.id, blind.lab, entry, figures("whole"))
    blind.board.client.app.state.context.snapshots.refresh()  # type: ignore[attr-defined]
    link = f'href="/blind/audit/{made.id}"'
    for page in ("/b/mine", "/b/mine/s/whole", f"/blind/jobs/{job.id}", "/blind/audit"):
        assert link in blind.text(page), page
    shown = blind.text(f"/blind/audit/{made.id}")
    for part in (
        "field",
        "GSR",
        "cd" * 32,
        "ab" * 32,
        "&lt;the owners&gt;",
        "We agree.",
        f"/blind/policy/{made.policy}",
    ):
        assert part in shown, part
    assert "<strong>steps</strong>" in shown
    assert "<strong>steps</strong>" in blind.text(f"/blind/policy/{made.policy}")
    assert "<h2>Policy</h2>" in blind.text(f"/blind/policy/{made.policy[:12]}")
    blind.store.withdraw_release(job.id, blind.lab, "the owners object.")
    blind.board.client.app.state.context.snapshots.refresh()  # type: ignore[attr-defined]
    assert "the owners object." in blind.text(f"/blind/audit/{made.id}")
    assert link not in blind.text("/b/mine")
    for missing in ("/blind/audit/99", "/blind/audit/x", "/blind/policy/abcdefgh", "/blind/jobs/none"):
        blind.text(missing, 404)


def test_an_audit_entry_has_one_number_that_of_the_hosts_ledger(blind: Blind) -> None:
    """In the ledger a policy comes first, and signatures and refusals between: what owners object to is its number."""
    job = queued(blind.store, blind.ada, "1", "whole")
    made = blind.store.release_job(job.id, blind.lab, facts(number=17), figures("whole"))
    assert (made.id, made.number) == (1, 17)
    assert '<a href="/blind/audit/1">17</a>' in blind.text("/blind/audit")
    page = blind.text("/blind/audit/1")
    assert "<title>Audit entry 17 " in page
    assert "<h1>Audit entry 17 " in page
    assert "audit entry 17</a>" in blind.text(f"/blind/jobs/{job.id}")
    (listed,) = blind.client.get("/v1/blind/releases").json()["items"]
    assert (listed["number"], listed["page"].rpartition("/")[2]) == (17, "1")
    odd = blind.store.release_job(
        queued(blind.store, blind.ada, "2", "other").id, blind.lab, facts(number="x"), figures("other")
    )
    assert odd.number == odd.id == 2  # a host that gives none


def test_a_board_without_blind_evaluation_has_no_queue_and_keeps_its_audit_trail(blind: Blind) -> None:
    with hosted(blind.board.client.app.state.context.settings.data / "off") as board:  # type: ignore[attr-defined]
        assert "Blind evaluation" not in board.client.get("/", headers=HTML).text
        assert board.client.get("/blind", headers=HTML).status_code == 404
        assert board.client.post("/blind/submit", headers=HTML).status_code == 404
        assert board.client.get("/blind/audit", headers=HTML).status_code == 200


def test_the_words_of_a_policy_are_shown_and_nothing_else() -> None:
    words = "# One <i>\n\nWords with `a*b*` and **more**\non two lines.\n\n- first;\n- <script>"
    shown = markdown(f"{words}\n\n| A | B |\n|---|---|\n| 1 | `2` |")
    assert "<h2>One &lt;i&gt;</h2>" in shown
    assert "<p>Words with <code>a*b*</code> and <strong>more</strong> on two lines.</p>" in shown
    assert "<ul><li>first;</li><li>&lt;script&gt;</li></ul>" in shown
    assert '<th scope="col">A</th>' in shown
    assert "<td>1</td><td><code>2</code></td>" in shown
