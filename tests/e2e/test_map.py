"""The map in a browser: opened from a file, clicked, searched, heard, by hand and by keys; no network, no barriers."""

from __future__ import annotations

import csv
import http.server
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.e2e.test_figures import Quiet
from tests.report.test_maps import HOSTILE, clouds, lists_of, tones

from earmark import audio
from earmark.corpora.clips import Clip
from earmark.report.maps import map_clips

COUNT = 60


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """60 clips with sounds, in groups, under two distances."""
    vectors, labels, groups = clouds(COUNT, spread=1.5)
    ids = [f"tone {row}.wav" for row in range(COUNT)]
    made = map_clips(
        vectors, labels, groups=groups, ids=ids, audio=tones(COUNT, 0.3), distance=["cosine", "euclidean"],
        across_groups=True, title="Sixty tones",
    )  # fmt: skip
    return made.save(tmp_path_factory.mktemp("map") / "map.html")


class Told:
    """A page, what it asked the network for, and what it complained about."""

    def __init__(self, page: Any, path: Path, state: str = "") -> None:
        self.page = page
        self.asked: list[str] = []
        self.complaints: list[str] = []
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("console", lambda message: self.complaints.append(message.text))
        page.goto(path.as_uri() + state)
        page.wait_for_selector("html.ready", state="attached")

    def click_point(self, row: int) -> None:
        """Click where a clip lies, brought close so that no other lies there."""
        self.page.evaluate(f"flyTo(layoutNow().x[{row}] / 65535, layoutNow().y[{row}] / 65535, 60)")
        self.page.wait_for_timeout(350)
        box = self.page.locator("#map").bounding_box()
        x, y = self.page.evaluate(f"[screenX({row}), screenY({row})]")
        self.page.mouse.click(box["x"] + x, box["y"] + y)

    @property
    def neighbours(self) -> list[int]:
        return [int(item.get_attribute("data-row")) for item in self.page.locator("#clip .near li").all()]

    @property
    def clip(self) -> str:
        return str(self.page.locator("#clip .title").inner_text())


@pytest.fixture
def told(open_page: Callable[..., Any], page_file: Path) -> Told:
    return Told(open_page(reduced_motion="reduce"), page_file)


def test_a_click_shows_the_true_neighbours_of_a_clip_and_plays_it(told: Told, page_file: Path) -> None:
    html = page_file.read_text("utf-8")
    for row in (0, 17):
        told.click_point(row)
        assert told.clip == f"tone {row}.wav"
        assert told.neighbours == lists_of(html, 0)[0][row].tolist()
    assert "group" in told.page.locator("#clip .facts").inner_text()
    assert "GSR" in told.page.locator("#clip .facts").inner_text()
    told.page.click("#play")
    told.page.wait_for_function("() => player.ended || player.currentTime > 0.05")
    first = told.neighbours[0]
    told.page.locator("#clip .near li").first.get_by_role("button", name="Play").click()
    told.page.wait_for_function(f"() => playing === {first} && player.currentTime > 0")
    told.page.locator("#clip .near button.go").first.click()
    assert told.clip == f"tone {first}.wav"
    told.page.get_by_role("button", name="Back").click()
    assert told.clip == "tone 17.wav"
    assert [url for url in told.asked if not url.startswith("data:")] == [page_file.as_uri()]
    assert told.complaints == []


def test_another_distance_has_its_own_neighbours_and_says_how_true_the_picture_is(told: Told, page_file: Path) -> None:
    html = page_file.read_text("utf-8")
    told.click_point(5)
    for view in range(4):
        told.page.select_option("#view", str(view))
        assert told.neighbours == lists_of(html, view)[0][5].tolist()
    assert "euclidean distance" in told.page.inner_text("#told")
    assert "t-SNE" in told.page.inner_text("#told")
    assert "trustworthiness at 10 is 0." in told.page.inner_text("#told")
    told.page.select_option("#layout", label="PCA")
    assert "of the variance" in told.page.inner_text("#told")


def test_every_way_to_colour_has_a_legend_that_filters(told: Told) -> None:
    for name in ("label", "group", "error", "hubness", "GSR", "duration"):
        told.page.select_option("#colour", name)
        sizes = [int(number) for number in told.page.locator("#legend .number").all_inner_texts()]
        assert sum(sizes) == COUNT
        assert told.page.inner_text("#count") == ""
        told.page.locator("#legend .entries button").first.click()
        assert told.page.evaluate("lit.reduce((sum, one) => sum + one, 0)") == sizes[0]
        if sizes[0] < COUNT:
            assert told.page.inner_text("#count") == f"{sizes[0]} of 60 clips"
        told.page.click("#all")


def test_errors_are_clips_whose_nearest_neighbour_has_another_label(told: Told, page_file: Path) -> None:
    _, labels, _ = clouds(COUNT, spread=1.5)
    nearest = lists_of(page_file.read_text("utf-8"), 0)[0][:, 0]
    wrong = sum(labels[row] != labels[other] for row, other in enumerate(nearest))
    told.page.select_option("#colour", "error")
    entry = told.page.locator("#legend button", has_text="another label")
    assert entry.locator(".number").inner_text() == str(wrong)


def test_search_finds_and_enter_goes_there(told: Told) -> None:
    told.page.fill("#search", "TONE 42")
    assert told.page.inner_text("#count") == "1 of 60 clips"
    told.page.press("#search", "Enter")
    assert told.clip == "tone 42.wav"
    assert told.page.evaluate("document.activeElement.id") == "map"
    told.page.keyboard.press("Escape")
    assert told.page.inner_text("#count") == ""
    assert told.page.locator("#clip .title").count() == 0


def test_keys_alone_go_from_clip_to_clip_and_to_neighbours(told: Told, page_file: Path) -> None:
    told.page.focus("#map")
    told.page.keyboard.press("ArrowRight")
    first = told.clip
    told.page.keyboard.press("ArrowLeft")
    assert told.clip != first
    row = told.page.evaluate("state.clip")
    told.page.keyboard.press("2")
    second = int(lists_of(page_file.read_text("utf-8"), 0)[0][row, 1])
    assert told.page.evaluate("state.clip") == second
    assert f"tone {second}.wav" in told.page.inner_text("#status")
    told.page.keyboard.press("Backspace")
    assert told.page.evaluate("state.clip") == row
    told.page.keyboard.press("Enter")
    told.page.wait_for_function("() => player.ended || player.currentTime > 0")
    before = told.page.evaluate("scaleNow()")
    told.page.keyboard.press("+")
    assert told.page.evaluate("scaleNow()") > before
    told.page.keyboard.press("0")
    told.page.wait_for_function("() => state.zoom === 1")


def test_wheel_and_drag_move_the_map(told: Told) -> None:
    box = told.page.locator("#map").bounding_box()
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    told.page.mouse.move(*middle)
    told.page.mouse.wheel(0, -300)
    told.page.wait_for_function("() => state.zoom > 1.3")
    told.page.mouse.down()
    told.page.mouse.move(middle[0] + 80, middle[1] + 30, steps=4)
    told.page.mouse.up()
    assert told.page.evaluate("state.x") < 0.49
    assert told.page.evaluate("state.clip") == -1


def test_a_loop_counts_its_clips_and_saves_them(told: Told, tmp_path: Path) -> None:
    box = told.page.locator("#map").bounding_box()
    told.page.click("#loop")
    corners = [(2, 60), (box["width"] - 2, 60), (box["width"] - 2, box["height"] - 2), (2, box["height"] - 2), (2, 70)]
    told.page.mouse.move(box["x"] + corners[0][0], box["y"] + corners[0][1])
    told.page.mouse.down()
    for x, y in corners[1:]:
        told.page.mouse.move(box["x"] + x, box["y"] + y, steps=3)
    told.page.mouse.up()
    expected = told.page.evaluate("state.looped.size")
    assert expected > 50
    assert told.page.inner_text("#loop-count").startswith(f"{expected} clips, 3 labels")
    with told.page.expect_download() as saved:
        told.page.click("#download")
    saved.value.save_as(tmp_path / "clips.csv")
    with (tmp_path / "clips.csv").open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == expected
    assert {"id", "label", "group", "nearest_id"} <= set(lines[0])
    assert lines[0]["id"].startswith("tone ")


def test_the_address_brings_a_view_back(told: Told, open_page: Callable[..., Any], page_file: Path) -> None:
    told.page.select_option("#view", "2")
    told.page.select_option("#colour", "group")
    told.page.locator("#legend .entries button").first.click()
    told.click_point(8) if told.page.evaluate("lit[8]") else told.page.evaluate("choose(8)")
    told.page.wait_for_function("() => location.hash.includes('clip=') && location.hash.includes('only=')")
    again = Told(open_page(), page_file, told.page.evaluate("location.hash"))
    assert again.clip == "tone 8.wav"
    for what in ("state.view", "state.colour", "[...state.focus]", "state.layout"):
        assert again.page.evaluate(what) == told.page.evaluate(what)
    broken = Told(open_page(), page_file, "#view=99&places=-1&colour=zzz&clip=nobody&at=a,b,c&only=7777.x")
    assert broken.page.evaluate("[state.view, state.clip, state.zoom]") == [0, -1, 1]


def test_the_table_lists_sorts_and_chooses(told: Told) -> None:
    told.page.click("#table-part summary")
    assert "60 clips" in told.page.inner_text("#table .pages")
    assert told.page.locator("#table tbody tr").count() == 50
    told.page.get_by_role("button", name="in lists").click()
    told.page.get_by_role("button", name="in lists").click()
    counts = [int(text) for text in told.page.locator("#table tbody tr td:nth-last-child(2)").all_inner_texts()]
    assert counts == sorted(counts, reverse=True)
    told.page.locator("#table tbody th button").first.click()
    assert told.clip == told.page.locator("#table tbody th button").first.inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_has_no_barriers_and_no_sideways_scroll(
    open_page: Callable[..., Any], page_file: Path, width: int, scheme: str
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    told = Told(open_page(width=width, color_scheme=scheme, reduced_motion="reduce"), page_file)
    told.page.evaluate("choose(3)")
    told.page.evaluate("document.getElementById('table-part').open = true")
    told.page.wait_for_selector("#table tbody tr")
    found = Axe().run(told.page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]})
    assert [rule["id"] for rule in found.response["violations"]] == []
    assert told.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_hostile_names_are_text(open_page: Callable[..., Any], tmp_path: Path) -> None:
    vectors = np.random.default_rng(0).standard_normal((len(HOSTILE), 5))
    made = map_clips(vectors, HOSTILE, ids=HOSTILE, groups=HOSTILE, title=HOSTILE[0])
    told = Told(open_page(), made.save(tmp_path / "map.html"))
    for row in range(len(HOSTILE)):
        told.page.evaluate(f"choose({row})")
        assert told.page.locator("#clip .title").count() == 1
    told.page.evaluate("document.getElementById('table-part').open = true; showTip(0, [5, 5])")
    assert told.page.locator("#table tbody tr").count() == len(HOSTILE)
    assert told.page.locator("img, main script:not([type])").count() == 0
    assert told.complaints == []


@pytest.mark.parametrize("count", [1, 2])
def test_one_clip_and_two_clips_open(open_page: Callable[..., Any], tmp_path: Path, count: int) -> None:
    told = Told(open_page(), map_clips(np.ones((count, 3))).save(tmp_path / "map.html"))
    told.click_point(0)
    assert told.clip == "0" if count == 1 else told.clip in ("0", "1")
    assert len(told.neighbours) == count - 1
    assert told.complaints == []


def test_many_classes_are_brought_forward_by_name(open_page: Callable[..., Any], tmp_path: Path) -> None:
    vectors, labels, _ = clouds(400, classes=60)
    told = Told(open_page(), map_clips(vectors, labels, projection="pca").save(tmp_path / "map.html"))
    assert told.page.evaluate("colouring.entries.filter((entry) => !entry.quiet).length") == 14
    told.page.fill(".legend-search", "class 5")
    told.page.get_by_role("button", name="class 57").click()
    assert told.page.evaluate("styleOf([...state.focus][0]).quiet") is None
    told.page.wait_for_function("() => document.querySelector('#count').textContent.includes('of 400 clips')")


def test_a_map_shows_itself_inside_a_notebook(open_page: Callable[..., Any], tmp_path: Path) -> None:
    vectors, labels, _ = clouds(40)
    frame = map_clips(vectors, labels, audio=tones(40, 0.1), ids=[f"tone {row}.wav" for row in range(40)])._repr_html_()
    (tmp_path / "notebook.html").write_text(f"<!doctype html><title>cell</title>{frame}", "utf-8")
    page = open_page()
    page.goto((tmp_path / "notebook.html").as_uri())
    inside = page.frame_locator("iframe")
    inside.locator("#map").click()
    inside.locator("#map").press("ArrowRight")
    inside.locator("#clip .near li").first.wait_for()
    inside.locator("#play").click()


@pytest.fixture
def web_space(tmp_path: Path) -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()


def test_linked_recordings_are_played_from_beside_the_page(
    open_page: Callable[..., Any], tmp_path: Path, web_space: str
) -> None:
    times = np.arange(16000) / 16000
    audio.write(tmp_path / "a b.wav", np.sin(2000 * times).astype(np.float32), 16000)
    clips = [Clip("a", path=str(tmp_path / "a b.wav"), start=0.2, end=0.6), Clip("b", path=str(tmp_path / "gone.wav"))]
    saved = map_clips(np.eye(2), ids=["a", "b"], audio=clips, sounds="link").save(tmp_path / "map.html")
    for address in (saved.as_uri(), f"{web_space}/map.html"):
        page = open_page()
        page.goto(address)
        page.wait_for_selector("html.ready", state="attached")
        page.evaluate("choose(0)")
        page.click("#play")
        page.wait_for_function("() => player.currentTime > 0.2")
        page.evaluate("choose(1)")
        page.click("#play")
        page.wait_for_function("() => document.querySelector('#sound-note').textContent.includes('cannot be played')")
