"""The reading pages of a real app: every link leads somewhere, names are text, and browsers keep what they have."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urldefrag, urljoin

import pytest
from tests.board.hosted import Hosted, hosted
from tests.board.scored import NASTY, cards, scores

from earmark.board.boards.snapshot import Snapshot
from earmark.board.pages.assets import asset, page_templates
from earmark.board.pages.boards import Reader, Source
from earmark.scores import Row, Scores, load_scores
from earmark.submissions import Document, SystemCard

HTML = {"accept": "text/html"}
_VOID = {"meta", "link", "input", "img", "br", "hr", "option"}


class Page(HTMLParser):
    """Links, ids and balance of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: list[str] = []
        self.scripts: list[dict[str, str | None]] = []
        self.tags: list[str] = []
        self.open: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == [], self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.append(tag)
        if tag not in _VOID:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append(given)
        if given.get("id"):
            self.ids.append(str(given["id"]))
        self.links += [str(given[name]) for name in ("href", "src", "action", "hx-get") if given.get(name)]
        assert not any(name.startswith("on") for name in given), given

    def handle_endtag(self, tag: str) -> None:
        if tag not in _VOID:
            assert self.open.pop() == tag, (tag, self.getpos())

    def handle_data(self, data: str) -> None:
        self.words.append(data)


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosted]:
    with hosted(tmp_path_factory.mktemp("board"), title="Our board") as made:
        table = scores()
        made.accepted(Document.of(table, board="mine", cards=list(cards().values())))
        nasty = tuple(
            Row(suite="mine", subset=subset, system=NASTY, distance="cosine", metric="P@1", value=0.95, version="0.1")
            for subset in ("birds", "cats", "dogs", "doors", "rain")
        )
        card = SystemCard(
            NASTY, description=NASTY, family=NASTY, citation=NASTY, command=NASTY, url="https://example.org/"
        )
        made.accepted(Document.of(Scores(nasty), board="mine", cards=[card]))
        made.client.app.state.context.snapshots.refresh()  # type: ignore[attr-defined]
        yield made


def _nasty(board: Hosted) -> str:
    return next(one.slug for one in board.store.systems("mine") if one.card.name == NASTY)


def test_every_link_leads_somewhere_and_every_page_is_sound(board: Hosted) -> None:
    seen: set[str] = set()
    waiting = ["/"]
    pages = 0
    while waiting and len(seen) < 400:
        address = waiting.pop(0)
        if address in seen:
            continue
        seen.add(address)
        answer = board.client.get(address, headers=HTML)
        assert answer.status_code == 200, (address, answer.text[:300])
        if not answer.headers["content-type"].startswith("text/html"):
            continue
        pages += 1
        page = Page(answer.text)
        assert len(page.ids) == len(set(page.ids)), address
        assert page.tags.count("h1") == 1, address
        assert page.tags.count("main") == 1
        assert "<script>alert" not in answer.text
        # Nothing runs that is not a file of ours; descriptions of figures are data.
        assert all(
            str(one.get("src", "")).startswith("/static/") or one.get("type") == "application/json"
            for one in page.scripts
        )
        for link in page.links:
            target = urldefrag(urljoin(address, link)).url
            if target.startswith("/") and not target.startswith(("/submit", "/mine", "/sign", "/v1")):
                waiting.append(target)
    kinds = {re.sub(r"(/s/|/subsets/)[^/?]+", r"\1X", address.partition("?")[0]) for address in seen}
    assert {
        "/", "/about", "/rules", "/how-to-submit", "/b/mine", "/b/mine/s/X", "/b/mine/subsets", "/b/mine/subsets/X",
        "/b/mine/pareto", "/b/mine/analysis", "/b/mine/compare", "/b/mine.csv", "/b/mine.tex", "/b/mine.json",
    } <= kinds  # fmt: skip
    assert pages > 40


def test_a_name_is_text_everywhere(board: Hosted) -> None:
    slug = _nasty(board)
    for path in ("?show=card", f"/s/{slug}", f"/compare?s={slug}&s=model-1", "/subsets/cats"):
        text = board.client.get(f"/b/mine{path}", headers=HTML).text
        assert "<script>alert" not in text
        assert "alert(&#34;x&#34;)" in text or "alert(&quot;x&quot;)" in text, path


def test_the_table_is_the_same_for_a_page_and_its_downloads(board: Hosted) -> None:
    query = "?setting=each&sort=subset:cats&q=model&show=subsets"
    page = board.client.get(f"/b/mine{query}", headers=HTML).text
    shown = re.findall(r'name="s" value="([^"]+)"', page)
    rows = list(csv.DictReader(io.StringIO(board.client.get(f"/b/mine.csv{query}").text)))
    assert shown == [f"{row['slug']}:{row['setting']}" for row in rows]
    loaded = json.loads(board.client.get(f"/b/mine.json{query}").text)
    assert [row["slug"] for row in loaded["rows"]] == [row["slug"] for row in rows]
    latex = board.client.get(f"/b/mine.tex{query}")
    assert latex.headers["content-disposition"] == 'attachment; filename="mine.tex"'
    assert latex.text.count("model ") == len(rows)


def test_a_systems_rows_come_back_as_the_score_table(board: Hosted, tmp_path: Path) -> None:
    expected = {(r.subset, r.distance, r.metric): r.value for r in scores() if r.system == "model 4"}
    text = board.client.get("/b/mine/s/model-4.json").text
    assert {(row["subset"], row["distance"], row["metric"]): row["value"] for row in json.loads(text)} == expected
    path = tmp_path / "scores.csv"
    path.write_bytes(board.client.get("/b/mine/s/model-4.csv").content)
    assert {(row.subset, row.distance, row.metric): row.value for row in load_scores(path)} == expected
    assert "@misc{model_2," in board.client.get("/b/mine/s/model-2.bib").text


def test_browsers_keep_a_page_until_something_changes(board: Hosted) -> None:
    first = board.client.get("/b/mine", headers=HTML)
    tag = first.headers["etag"]
    assert first.headers["content-encoding"] == "gzip"
    again = board.client.get("/b/mine", headers={**HTML, "if-none-match": tag})
    assert (again.status_code, again.content) == (304, b"")
    plain = board.client.get("/b/mine", headers={**HTML, "accept-encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert plain.text == first.text
    row = Row(
        suite="mine", subset="birds", system="model 2", distance="cosine", metric="P@1", value=0.999, version="0.2"
    )
    sent = board.accepted(Document.of(Scores((row,)), board="mine", cards=[SystemCard("model 2")]))
    changed = board.client.get("/b/mine?show=subsets", headers={**HTML, "if-none-match": tag})
    assert changed.status_code == 200
    assert "99.9" in changed.text
    history = board.client.get("/b/mine/s/model-2", headers=HTML).text
    assert f"/submissions/{sent}" in history


def test_a_script_gets_the_part_it_replaces(board: Hosted) -> None:
    part = board.client.get("/b/mine?metric=CS&q=&family=", headers={**HTML, "hx-request": "true"})
    assert part.text.lstrip().startswith('<div id="board">')
    assert part.headers["hx-push-url"] == "/b/mine?metric=CS"
    back = board.client.get(
        "/b/mine?metric=CS", headers={**HTML, "hx-request": "true", "hx-history-restore-request": "true"}
    )
    assert back.text.startswith("<!doctype html>")
    assert "hx-request" in back.headers["vary"]


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("/b/nowhere", 404),
        ("/b/mine/s/nobody", 404),
        ("/b/mine/subsets/nothing", 404),
        ("/b/mine?metric=P@77", 422),
        ("/b/mine?page=x", 422),
        ("/b/mine?sort=nothing", 422),
        ("/b/mine/pareto?x=money", 422),
        ("/b/mine/compare.csv?s=model-1", 422),
        ("/static/../app.py", 404),
        ("/static/%2e%2e/app.py", 404),
        ("/static/vendor", 404),
        ("/b/mine/s/..%2f..%2fetc", 404),
        ("/b/%00", 400),
    ],
)
def test_what_is_not_there_is_a_page_with_a_sentence(board: Hosted, address: str, status: int) -> None:
    answer = board.client.get(address, headers=HTML)
    assert answer.status_code == status
    assert "<script>alert" not in answer.text


class Alone:
    """The boards of one snapshot."""

    def __init__(self, whole: Snapshot) -> None:
        self._whole = whole

    def boards(self) -> tuple[str, ...]:
        return (self._whole.board,)

    def current(self, board: str) -> Snapshot:
        return self._whole


def test_a_board_on_which_nobody_is_ranked_says_why_and_offers_each_subset() -> None:
    rows = tuple(
        Row(suite="mine", subset=subset, system=system, metric=metric, value=0.5)
        for system, subset, metric in (("a", "Garden", "P@1"), ("b", "Forest", "P@1"), ("c", "Forest", "CS"))
    )
    reader = Reader(Source(Alone(Snapshot.of_scores("mine", Scores(rows)))), page_templates("Our board"))
    page = Page(reader.board("mine").body.decode())
    words = " ".join(page.words)
    assert "Nobody has a rank: no system has all 2 subsets of this mean (Forest, Garden)" in words
    assert "2 without a rank; 1 more has no P@1 here" in words
    single = " ".join(Page(reader.board("mine", [("over", "subset:Forest")]).body.decode()).words)
    assert "2 systems by Forest, 1 without a rank; 1 more has no P@1 here" in single


def test_every_page_leads_to_the_account_and_no_trail_ends_with_a_stroke(board: Hosted) -> None:
    for path in ("/", "/b/mine", "/b/mine/s/model-1", "/b/mine/pareto", "/b/mine/subsets/cats"):
        text = board.client.get(path, headers=HTML).text
        assert {"/mine", "/v1/docs"} <= set(Page(text).links)  # which leads whoever is not signed in to sign in
        assert not re.search(r"/\s*</p>", text)


def test_static_files_are_kept_for_ever_under_their_hash(board: Hosted) -> None:
    address = asset("board.css")
    first = board.client.get(address)
    assert first.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert first.headers["content-type"].startswith("text/css")
    assert board.client.get(address.partition("?")[0]).headers["cache-control"] == "no-cache"
    assert board.client.get(address, headers={"if-none-match": first.headers["etag"]}).status_code == 304


def test_the_vendored_script_is_the_one_its_note_names() -> None:
    import hashlib
    from importlib.resources import files

    folder = files("earmark.board") / "static" / "vendor"
    digest = hashlib.sha256((folder / "htmx-2.0.10.min.js").read_bytes()).hexdigest()
    assert digest in (folder / "README.md").read_text()
