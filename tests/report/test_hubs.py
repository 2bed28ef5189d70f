"""Hubs in text, figures and on a page: counted from lists made by hand."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from earmark.errors import InputError
from earmark.report import figures
from earmark.report.figures import hubness as drawn
from earmark.report.html import ReportData, render
from earmark.report.html import _variants as variants
from earmark.report.html.hubness import render_hubness
from earmark.report.hubs import HubView, bins, distribution_text, hubs_text
from earmark.report.score_index import ScoreIndex
from earmark.scores import Row, Scores

NONE = np.array([[1], [2], [1], [1], [1], [1]])  # point 1 is in five lists, 2 in one, the others in none
ICDM = np.array([[1], [2], [3], [4], [5], [0]])


def hub_row(correction: str, value: float | None, metric: str = "hub_ratio", **cells: Any) -> Row:
    status = {} if value is not None else {"status": "not_applicable", "reason": "too few points"}
    return Row(metric=metric, distance="cosine", correction=correction, value=value, n=6, **(status | cells))


@pytest.fixture
def view() -> HubView:
    return HubView(
        title="v.npy",
        scores=Scores((hub_row("none", 5.0), hub_row("icdm", 1.0), hub_row("ls", None))),
        lists={("cosine", "none"): NONE, ("cosine", "icdm"): ICDM},
        k=1,
        ids=["a", "<b>", "c", "d", "e", "f"],
        labels=["bark", "hum", None, "", "bark", "hum"],
        vectors=np.random.default_rng(0).normal(size=(6, 3)),
    )


def texts(figure: Any) -> str:
    import matplotlib.text

    return "\n".join(item.get_text() for item in figure.findobj(matplotlib.text.Text))


def test_who_lists_whom(view: HubView) -> None:
    assert view.occurrences("cosine", "none").tolist() == [0, 5, 1, 0, 0, 0]
    assert view.listed_by("cosine", "none", 1).tolist() == [0, 2, 3, 4, 5]
    assert view.hubs("cosine", 2).tolist() == [1, 2]
    assert (view.before("cosine"), view.after("cosine")) == ("none", "icdm")
    assert (view.name(1), view.name(2), view.name(3)) == ("<b> (hum)", "c", "d")
    with pytest.raises(InputError, match="no neighbour lists"):
        view.before("euclidean")


def test_bins_cover_every_number_of_lists_once() -> None:
    for k in (1, 2, 5, 10):
        edges = bins(k)
        covered = [n for _, low, high in edges for n in range(low, min(high, 15 * k) + 1)]
        assert covered == list(range(15 * k + 1))
    assert [title for title, _, _ in bins(5)] == ["0", "1–5", "6–10", "11–25", "26–50", "over 50"]


def test_text(view: HubView) -> None:
    lines = [line.split() for line in distribution_text(view, "cosine").splitlines()]
    assert lines[2] == ["none", "4", "1", "0", "1", "0", "0", "5"]  # in 0, 1, 2, 3-5, 6-10 and over 10 lists; the most
    assert lines[3] == ["icdm", "0", "6", "0", "0", "0", "0", "1"]
    told = [line.split() for line in hubs_text(view, "cosine", 2).splitlines()]
    assert told[1:] == [["none", "icdm"], ["<b>", "(hum)", "5", "1"], ["c", "1", "1"]]


def test_points_without_ids_go_by_their_rows(view: HubView) -> None:
    bare = HubView(title="v", scores=view.scores, lists=view.lists, k=1)
    assert bare.name(4) == "row 4"


def test_the_page_says_it_in_words_and_escapes_names(view: HubView) -> None:
    pytest.importorskip("matplotlib")
    page = render_hubness(view, "1.2")
    assert "&lt;b&gt; (hum) stands in 5 lists where 1 would be even, and 4 points of 6 in none" in page
    assert "Under icdm the same point stands in 1 list, and 0 points in none" in page
    assert "icdm brings 4 of them back" in page
    assert "<b>" not in re.sub(r"<svg.*?</svg>", "", page, flags=re.S)
    assert "ls: too few points" in page
    assert "http" not in re.sub(r"http-equiv", "", page)


def test_figures_tell_before_and_after(view: HubView, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    shown = texts(drawn.neighbourhood(view, "cosine"))
    assert "no correction: <b> (hum) is in 5 lists\n4 of 6 points are in none" in shown
    assert "icdm: <b> (hum) is in 1 list\n0 of 6 points are in none" in shown
    assert {"66.7 %", "0.0 %"} <= set(texts(drawn.occurrences(view, "cosine")).splitlines())
    for suffix in ("png", "svg"):
        drawn.hub_figure(view, str(tmp_path / f"hubs.{suffix}"))
        assert (tmp_path / f"hubs.{suffix}").stat().st_size > 5000
    with pytest.raises(InputError, match="hubness"):
        drawn.hub_figure(HubView(title="", scores=Scores(()), lists={}, k=5), "nowhere.png")


def test_one_set_of_lists_is_drawn_alone(view: HubView) -> None:
    pytest.importorskip("matplotlib")
    alone = HubView(title="v", scores=view.scores, lists={("cosine", "none"): NONE}, k=1, vectors=view.vectors)
    assert len(drawn.neighbourhood(alone, "cosine").axes) == 1
    assert "icdm" not in render_hubness(alone).split("</style>")[1].split("<section")[1].split("correction")[0]


# --- in the report of a run -----------------------------------------------------------------------


def run_scores() -> Scores:
    rows = []
    for subset in "ab":
        for correction, good, hubs in (("none", 0.5, 9.0), ("icdm", 0.6, 2.0), ("csls", 0.45, 4.0)):
            for metric, value in (("P@1", good), ("hub_ratio", hubs), ("antihub_rate", hubs / 100)):
                rows.append(hub_row(correction, value, metric, subset=subset, system="logmel"))
    rows.append(hub_row("none", 0.7, "P@1", subset="a", system="mfcc"))
    return Scores(tuple(rows))


def test_lines_are_those_measured_with_and_without() -> None:
    lines, corrections, metrics = drawn.before_after_lines(run_scores())
    assert list(lines) == ["a · logmel · cosine", "b · logmel · cosine"]  # mfcc was not corrected
    assert corrections == ["none", "icdm", "csls"]
    assert metrics == ["P@1", "hub_ratio", "antihub_rate"]
    assert lines["a · logmel · cosine"]["P@1"]["icdm"].value == 0.6
    bare = Scores(tuple(replace(row, distance="") for row in run_scores()))
    assert list(drawn.before_after_lines(bare)[0]) == ["a · logmel", "b · logmel"]
    assert [axes.get_title("left") for axes in drawn.before_after(bare).axes][2] == "antihubs, in no list (%) ↓"


def test_the_report_shows_each_representation_before_and_after() -> None:
    pytest.importorskip("matplotlib")
    page = render(ReportData(title="t", scores=run_scores()))
    part = page[page.index('id="corrected"') :]
    part = part[: part.index("</section>")]
    assert "+10.0 points" in part
    assert "−7.000" in part
    assert part.count('class="best"') == 2 * (1 + 4)  # csls has better lists and worse neighbours
    assert 'href="#corrected"' in page
    assert "until every point&#x27;s nearest are equally far" in page
    figure = drawn.before_after(run_scores())
    assert {"no correction", "icdm", "csls"} <= {t.get_text() for t in figure.legends[0].get_texts()}


def test_a_report_without_corrections_has_no_such_part() -> None:
    pytest.importorskip("matplotlib")
    plain = run_scores().select(correction="none")
    assert variants.before_and_after(ScoreIndex(plain)) is None
    assert 'id="corrected"' not in render(ReportData(title="t", scores=plain))
    with pytest.raises(InputError, match="before and after"):
        drawn.before_after(plain)


def test_hub_figures_become_markup(view: HubView) -> None:
    pytest.importorskip("matplotlib")
    assert figures.as_svg(drawn.occurrences(view, "cosine"), "n", "d").startswith("<svg")
