"""What must not get in, what must not come out, and who may act: through the app, as an attacker meets it."""

from __future__ import annotations

import io
import json
import logging
import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.board.hosted import Hosted, document, hosted, plain

from earmark.board.web.security import HEADERS, Signer
from earmark.databases import Busy
from earmark.submissions import Limits

HTML = {"Accept": "text/html"}
JSON = {"Content-Type": "application/json"}
SESSION = "earmark_session"


@pytest.fixture
def board(tmp_path: Path) -> Iterator[Hosted]:
    with hosted(tmp_path, limits=Limits(max_body=300_000)) as made:
        yield made


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosted]:
    """One board for the many requests that must change nothing."""
    with hosted(tmp_path_factory.mktemp("board"), limits=Limits(max_body=300_000)) as made:
        yield made


def form_token(page: str) -> str:
    found = re.search(r'name="form_token" value="([^"]+)"', page)
    assert found is not None
    return found[1]


def sign_in(board: Hosted, token: str) -> str:
    """Sign in as a browser does, and return the form token of the session."""
    page = board.client.get("/sign-in", headers=HTML)
    answer = board.client.post(
        "/sign-in", data={"form_token": form_token(page.text), "token": token}, follow_redirects=False
    )
    assert answer.status_code == 303, answer.text
    return form_token(board.client.get("/mine", headers=HTML).text)


# --- documents ------------------------------------------------------------------------------------


def spoiled(change: str) -> bytes:
    """A document in which one thing is as it must not be."""
    whole = plain(document())
    text = json.dumps(whole)
    if change == "nan":
        return text.replace("0.5,", "NaN,", 1).encode()
    if change == "infinity":
        return text.replace("0.5,", "-Infinity,", 1).encode()
    if change == "overflow":
        return text.replace("0.5,", "1e999,", 1).encode()
    if change == "deep":
        return (text[:-1] + ',"x":' + "[" * 60_000 + "]" * 60_000 + "}").encode()
    if change == "deep only":
        return b"[" * 100_000
    if change == "key twice":
        return text.replace('"board": "vocsim"', '"board": "vocsim", "board": "other"').encode()
    if change == "impossible":
        whole["scores"][0].update(metric="GSR", value=1.5)
    if change == "control character":
        whole["systems"][0]["name"] = whole["scores"][0]["system"] = "my\x00model"
    if change == "half a character":
        return text.replace("my model", "my \\ud800 model").encode()
    if change == "address":
        whole["systems"][0]["url"] = "javascript:alert(1)"
    if change == "number of digits":
        return text.replace("0.5,", "1" * 10_000 + ",", 1).encode()
    if change == "not utf-8":
        return text.encode().replace(b"my model", b"my \xff model")
    if change == "zip":
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("scores.json", b"0" * 10_000_000)
        return packed.getvalue()
    if change == "board":
        return text.replace('"board": "vocsim"', '"board": "../../etc/passwd"').encode()
    if change == "nothing":
        return b""
    if change == "cut":
        return text.encode()[:-20]
    return json.dumps(whole).encode()


CHANGES = (
    "nan", "infinity", "overflow", "deep", "deep only", "key twice", "impossible", "control character",
    "half a character", "address", "number of digits", "not utf-8", "zip", "board", "nothing", "cut",
)  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_a_spoiled_document_is_refused_in_a_sentence_and_nothing_is_stored(untouched: Hosted, change: str) -> None:
    before = untouched.counts()
    for path in ("/v1/submissions", "/v1/submissions/validate"):
        answer = untouched.client.post(path, content=spoiled(change), headers={**JSON, **untouched.author})
        if answer.status_code == 200:
            assert answer.json()["accepted"] is False
            continue
        assert answer.status_code == 422, answer.text
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["detail"].isprintable()
    assert untouched.counts() == before


def test_a_parquet_file_that_unpacks_to_much_is_refused(untouched: Hosted) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = 50_000_000
    column = arrow.DictionaryArray.from_arrays(arrow.array([0] * 1000, arrow.int32()), arrow.array(["P@1"]))
    table = arrow.table(
        {
            "metric": arrow.chunked_array([column] * (rows // 1000)),
        }
    )
    packed = io.BytesIO()
    parquet.write_table(table, packed, compression="zstd", row_group_size=rows)
    assert len(packed.getvalue()) < 300_000
    answer = untouched.client.post(
        "/v1/submissions",
        content=packed.getvalue(),
        headers={"Content-Type": "application/vnd.apache.parquet", **untouched.author},
    )
    assert answer.status_code == 422, answer.text
    assert "50,000,000 rows" in answer.json()["detail"]


def test_a_compressed_body_and_a_strange_type_are_refused_unread(untouched: Hosted) -> None:
    packed = zlib.compress(b" " * 1_000_000)
    answer = untouched.client.post(
        "/v1/submissions", content=packed, headers={**JSON, **untouched.author, "Content-Encoding": "deflate"}
    )
    assert answer.status_code == 415
    for kind in ("application/xml", "", "application/zip"):
        answer = untouched.client.post(
            "/v1/submissions", content=b"x", headers={"Content-Type": kind, **untouched.author}
        )
        assert answer.status_code == 415
    assert untouched.counts()[0] == 0


def test_a_large_body_is_refused_by_its_length_and_by_what_arrives(untouched: Hosted) -> None:
    before = untouched.counts()
    large = untouched.client.post("/v1/submissions", content=b" " * 100_000_000, headers={**JSON, **untouched.author})
    assert large.status_code == 413
    assert large.headers["content-type"] == "application/problem+json"

    sent = 0

    def endless() -> Iterator[bytes]:
        nonlocal sent
        for _ in range(1000):
            sent += 100_000
            yield b" " * 100_000

    for path in ("/v1/submissions", "/v1/tokens", "/sign-in"):
        answer = untouched.client.post(path, content=endless(), headers={**JSON, **untouched.author})
        assert answer.status_code in (413, 415), answer.text
    assert untouched.counts() == before


def test_sql_and_html_in_names_are_only_text(board: Hosted) -> None:
    names = [
        "Robert'); DROP TABLE scores;--",
        "<script>alert('x')</script>",
        '"><img src=x onerror=alert(1)>',
        "{{ 7*7 }}",
    ]
    for name in names:
        board.accepted(document(name, family=name, description=name, title=name))
    shown = {one["card"]["name"] for one in board.client.get("/v1/boards/vocsim/systems").json()["items"]}
    assert shown == set(names)
    sign_in(board, board.moderator_token)
    pages = ["/mine", "/moderate", *(f"/submissions/{one.id}" for one in board.store.submissions())]
    for page in pages:
        text = board.client.get(page, headers=HTML).text
        assert "<script>alert" not in text
        assert "<img src=x" not in text
    texts = "".join(board.client.get(page, headers=HTML).text for page in pages)
    assert "&lt;script&gt;alert(" in texts
    assert "{{ 7*7 }}" in texts


@pytest.mark.parametrize(
    "path",
    [
        "/static/../../../etc/passwd",
        "/static/..%2f..%2f..%2fetc%2fpasswd",
        "/static/%2e%2e/%2e%2e/settings.py",
        "/b/..%2f..%2fetc/s/passwd",
        "/v1/boards/..%2f..%2fetc%2fpasswd",
        "/v1/submissions/..%2f..%2fetc%2fpasswd",
        "/submissions/%2e%2e%2f%2e%2e",
    ],
)
def test_no_path_leads_out_of_the_board(untouched: Hosted, path: str) -> None:
    answer = untouched.client.get(path)
    assert answer.status_code in (400, 404)
    assert "root:" not in answer.text


def test_an_upload_keeps_nothing_of_its_file_name(board: Hosted, tmp_path: Path) -> None:
    document().scores.write(tmp_path / "scores.csv")
    data = (tmp_path / "scores.csv").read_bytes()
    answer = board.client.post(
        "/v1/submissions", files={"file": ("../../../../tmp/evil.csv", data)}, headers=board.author
    )
    assert answer.status_code == 201
    assert "evil" not in json.dumps(answer.json())


def test_strange_addresses_are_refused(untouched: Hosted) -> None:
    assert untouched.client.get("/v1/boards/a%00b").status_code == 400
    assert untouched.client.get("/v1/boards/vocsim/systems?q=a%00b").status_code == 400
    assert untouched.client.get("/v1/boards/vocsim/systems?q=" + "a" * 9000).status_code == 414
    assert untouched.client.get("/v1/submissions?owner=%ff%fe").status_code == 200


@pytest.mark.parametrize("host", ["[", "a b", "x/y", "evil.example/?", "é", "", "host:port", "[::1]:8000", "a-b.c_d:1"])
def test_a_host_is_the_name_of_a_host(untouched: Hosted, host: str) -> None:
    fine = host in ("[::1]:8000", "a-b.c_d:1")
    for path in ("/v1/boards", "/sign-in", "/nowhere"):
        answer = untouched.client.get(path, headers={"Host": host.encode(), **HTML})
        assert (answer.status_code != 400) is fine
        assert answer.status_code < 500


# --- tokens ---------------------------------------------------------------------------------------


def test_a_wrong_token_is_refused_and_guessing_is_slowed_down(board: Hosted) -> None:
    for authorization in ("Bearer", "Bearer x", "Basic eDp5", f"Bearer {board.author_token[:-1]}", "Bearer " + "é" * 9):
        answer = board.client.get("/v1/me", headers={"Authorization": authorization.encode()})
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
    answers = [board.client.get("/v1/me", headers={"Authorization": f"Bearer em_{n:030d}"}) for n in range(30)]
    assert {answer.status_code for answer in answers} == {401, 429}
    assert int(answers[-1].headers["retry-after"]) >= 1
    assert board.client.get("/v1/me", headers=board.author).status_code == 200


def test_no_token_is_logged_stored_or_shown(board: Hosted, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    from earmark.board.web.logs import JsonLines

    caplog.set_level(logging.DEBUG)
    sign_in(board, board.author_token)
    board.send(document())
    board.client.get(f"/v1/me?token={board.author_token}", headers=board.author)
    board.client.get(f"/b/{board.author_token}", headers=HTML)
    board.client.get(f"/v1/boards/{board.author_token}", headers=board.author)
    lines = [JsonLines().format(record) for record in caplog.records if record.name.startswith("earmark")]
    assert len(lines) > 5
    assert all(json.loads(line)["message"] for line in lines)
    secret = board.author_token[11:]
    assert secret not in "".join(lines)
    assert board.client.cookies[SESSION]
    assert secret not in board.client.cookies[SESSION]
    assert secret not in board.client.get("/mine", headers=HTML).text
    assert secret not in board.client.get("/metrics").text
    board.store.close()
    assert secret.encode() not in b"".join(path.read_bytes() for path in tmp_path.iterdir())


# --- sessions and forms ---------------------------------------------------------------------------


def test_a_session_ends_with_its_token(board: Hosted) -> None:
    sign_in(board, board.author_token)
    assert "Signed in as" in board.client.get("/mine", headers=HTML).text
    user = board.store.user("ada")
    assert user is not None
    board.store.revoke_token(board.store.tokens(user)[0].id, user)
    assert board.client.get("/mine", headers=HTML, follow_redirects=False).headers["location"].startswith("/sign-in")


def test_sign_out_ends_the_session_on_the_server(board: Hosted) -> None:
    form = sign_in(board, board.author_token)
    stolen = dict(board.client.cookies)
    board.client.post("/sign-out", data={"form_token": form})
    board.client.cookies.update(stolen)
    answer = board.client.get("/mine", headers=HTML, follow_redirects=False)
    assert answer.headers["location"].startswith("/sign-in")


def test_somebody_signs_out_everywhere_and_nobody_else_does(board: Hosted) -> None:
    browsers = []
    for token in (board.author_token, board.author_token, board.moderator_token):
        board.client.cookies.clear()
        form = sign_in(board, token)
        browsers.append((dict(board.client.cookies), form))
    board.client.cookies.clear()
    board.client.cookies.update(browsers[0][0])
    answer = board.client.post("/sign-out", data={"form_token": browsers[0][1], "everywhere": "yes"})
    assert "in this browser and in all others" in answer.text
    signed_in = []
    for cookies, _ in browsers:
        board.client.cookies.clear()
        board.client.cookies.update(cookies)
        signed_in.append(board.client.get("/mine", headers=HTML, follow_redirects=False).status_code == 200)
    assert signed_in == [False, False, True]
    assert board.client.get("/v1/me", headers=board.author).status_code == 200  # tokens stay good


def test_a_session_ends_by_itself_and_a_user_has_only_so_many(board: Hosted) -> None:
    user = board.store.user("ada")
    assert user is not None
    words = [board.store.open_session(user, board.author_token, 72) for _ in range(52)]
    assert [board.store.session_user(word, 72) for word in words[:2]] == [None, None]
    assert board.store.session_user(words[2], 72) == board.store.session_user(words[-1], 72) == user
    assert board.store.session_user(words[-1], 0) is None
    with board.store.engine.connect() as connection:
        kept = connection.exec_driver_sql("SELECT hash FROM sessions").scalars().all()
    assert len(kept) == 50
    assert not set(words) & set(kept)


@pytest.mark.parametrize("settings", [{"secure_cookies": True}, {"base_url": "https://board.example.org"}])
def test_cookies_are_closed_to_scripts_and_other_sites(tmp_path: Path, settings: dict[str, Any]) -> None:
    with hosted(tmp_path, **settings) as board:
        page = board.client.get("https://testserver/sign-in")
        answer = board.client.post(
            "https://testserver/sign-in",
            data={"form_token": form_token(page.text), "token": board.author_token},
            follow_redirects=False,
        )
        assert answer.status_code == 303
        for header in (page.headers["set-cookie"], answer.headers["set-cookie"]):
            parts = {part.strip().lower() for part in header.split(";")}
            assert {"httponly", "samesite=lax", "secure", "path=/"} <= parts
            assert not any(part.startswith("domain") for part in parts)
            assert header.startswith("__Host-earmark_")


def test_boards_under_paths_of_one_host_have_cookies_of_their_own(tmp_path: Path) -> None:
    with hosted(tmp_path, base_url="https://example.org/a/b") as board:
        header = board.client.get("https://testserver/a/b/sign-in").headers["set-cookie"]
    assert header.startswith("__Host-earmark_visit_a_b=")
    assert "path=/;" in header.lower()


def test_a_database_that_does_not_answer_is_a_page_too(board: Hosted, monkeypatch: pytest.MonkeyPatch) -> None:
    sign_in(board, board.author_token)

    def gone(*_: object) -> None:
        raise Busy("The database does not answer; try again in a minute.")

    monkeypatch.setattr(board.store, "session_user", gone)
    answer = board.client.get("/mine", headers=HTML)
    assert answer.status_code == 503
    assert "<h1>Service Unavailable</h1>" in answer.text


@pytest.mark.parametrize("word", ["", ".", "a.b", "x" * 5000, "YWRh.YWRh", "\u00e9.\u00e9"])
def test_a_session_that_was_not_opened_here_is_nobody(untouched: Hosted, word: str) -> None:
    answer = untouched.client.get(
        "/mine", headers={**HTML, "Cookie": f"{SESSION}={word}".encode()}, follow_redirects=False
    )
    assert answer.status_code == 303


def test_a_signature_is_for_one_purpose_and_one_secret() -> None:
    marks = {
        Signer(secret).mark(purpose, text)
        for secret in (b"a", b"b")
        for purpose in ("form", "other")
        for text in ("x", "y")
    }
    assert len(marks) == 8


FORMS: tuple[tuple[str, dict[str, str]], ...] = (
    ("/sign-in", {"token": "x"}),
    ("/sign-out", {}),
    ("/sign-up", {"name": "grace"}),
    ("/tokens", {"label": "x"}),
    ("/tokens/1/revoke", {}),
    ("/submit", {"board": "vocsim"}),
    ("/submissions/ID/withdraw", {"reason": "x"}),
    ("/submissions/ID/decide", {"choice": "accept"}),
)


@pytest.mark.parametrize(("path", "data"), FORMS)
def test_every_form_needs_the_token_of_this_visit_and_session(board: Hosted, path: str, data: dict[str, Any]) -> None:
    sent = board.send(document()).json()["id"]
    good = sign_in(board, board.moderator_token)
    before = board.counts()
    address = path.replace("ID", sent)
    cookies = dict(board.client.cookies)

    def status(token: str | None, **headers: str) -> int:
        fields = {"extra": "", **data, **({"form_token": token} if token is not None else {})}
        answer: int = board.client.post(address, data=fields, headers=headers, follow_redirects=False).status_code
        return answer

    assert status(None) == 403
    assert status("wrong") == 403
    assert status("é") == 403
    for elsewhere in ("cross-site", "same-site"):  # a sibling of the host is another's page, too
        assert status(good, **{"Sec-Fetch-Site": elsewhere}) == 403
    board.client.cookies.clear()
    assert status(good) == 403  # the token without the visit that it belongs to
    board.client.cookies.update(cookies)
    board.client.cookies.delete(SESSION)
    assert status(good) == 403  # nor without its session
    assert board.counts() == before


def test_a_form_token_differs_on_every_page_and_each_is_good(board: Hosted) -> None:
    first = sign_in(board, board.author_token)
    second = form_token(board.client.get("/mine", headers=HTML).text)
    assert first != second
    for number, token in enumerate((first, second)):
        answer = board.client.post("/tokens", data={"form_token": token, "label": str(number)})
        assert answer.status_code == 201
    assert len(board.store.tokens(board.store.user("ada"))) == 3  # type: ignore[arg-type]


def test_sign_in_leads_nowhere_else(untouched: Hosted) -> None:
    page = untouched.client.get("/sign-in", headers=HTML).text
    for target, goes in (("/submit", "/submit"), ("//evil.example", "/mine"), ("https://evil.example", "/mine"),
                         ("/\\evil.example", "/mine"), ("/a\\b", "/mine"), ("javascript:x", "/mine")):  # fmt: skip
        data = {"form_token": form_token(page), "token": untouched.author_token, "next": target}
        answer = untouched.client.post("/sign-in", data=data, follow_redirects=False)
        assert answer.headers["location"] == goes
        untouched.client.cookies.delete(SESSION)


@pytest.mark.parametrize("path", ["/sign-in", "/v1/boards", "/nowhere", "/healthz", "/v1/me"])
def test_every_answer_has_the_security_headers(untouched: Hosted, path: str) -> None:
    answer = untouched.client.get(path, headers=HTML)
    for name, text in HEADERS.items():
        assert answer.headers[name] == text
    policy = HEADERS["content-security-policy"]
    assert "script-src 'self';" in policy
    assert "frame-ancestors 'none'" in policy
