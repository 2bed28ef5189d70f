"""An analysis for people: its sentences follow its numbers, and every figure can be drawn."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from earmark.analysis.matrix import from_table
from earmark.analysis.stalk import relations
from earmark.analysis.study import Study, analyze
from earmark.errors import InputError
from earmark.report.analysis import analysis_text, render_analysis, write_analysis

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    rng = np.random.default_rng(0)
    values = np.clip(np.linspace(0.2, 0.8, 12)[:, None] + 0.05 * rng.normal(size=(12, 6)), 0, 1)
    path = tmp_path_factory.mktemp("table") / "table.csv"
    lines = ["model," + ",".join(["a", "b", "c", "d", "e", "<script>alert(1)</script>"])]
    lines += [f"m{i}," + ",".join(map(str, row)) for i, row in enumerate(values)]
    path.write_text("\n".join(lines) + "\n")
    return analyze(path, random_orders=20)


def test_the_text_says_what_the_numbers_are(study: Study) -> None:
    text = analysis_text(study)
    best = max(study.prowl.selections[2:], key=lambda selection: round(selection.scauc, 6))
    assert f"SCAUC {best.scauc:.3f}" in text.replace("\n  ", " ")
    assert "12 models × 6 datasets" in text
    assert len([line for line in text.splitlines() if re.match(r"(random|hardest|Pearson|Jensen)", line)]) == 4


class _Checker(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.scripts = 0
        self.headings: list[str] = []
        self._in = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._in = tag
        self.scripts += tag == "script"
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_data(self, data: str) -> None:
        if self._in == "h2":
            self.headings.append(data)
            self._in = ""


def test_the_page_is_whole_and_safe(study: Study, tmp_path: Path) -> None:
    page = render_analysis(study)
    checker = _Checker()
    checker.feed(page)
    assert checker.scripts == 1
    assert all(address.startswith(("#", "data:")) for address in checker.addresses)
    assert checker.headings[0] == "The answer"
    assert {"Which datasets are redundant?", "How sure is the ranking?"} <= set(checker.headings)
    assert "<script>alert" not in page
    write_analysis(study, tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text("utf-8") == page
    with pytest.raises(InputError, match="does not exist"):
        write_analysis(study, tmp_path / "no" / "page.html")


def test_small_and_large_relation_maps() -> None:
    from earmark.report.analysis import _figures as figures

    rng = np.random.default_rng(0)
    for count in (2, 35, 80):
        values = rng.uniform(size=(9, count))
        matrix = from_table(values, [f"m{i}" for i in range(9)], [f"d{j}" for j in range(count)])
        figure = figures.relation_map(relations(matrix.normalised(), matrix.datasets))
        assert len(figure.axes) == 3


def test_a_core_study_has_a_page_without_the_rest(tmp_path: Path) -> None:
    values = np.linspace(0.1, 0.9, 12).reshape(4, 3) + np.array([0, 0.02, 0.01])
    path = tmp_path / "small.csv"
    path.write_text(
        "model,a,b,c\n" + "".join(f"m{i}," + ",".join(map(str, row)) + "\n" for i, row in enumerate(values))
    )
    small = analyze(path, random_orders=0, core=True)
    page = render_analysis(small)
    assert "What would the others say" not in page
    assert "Run " in analysis_text(small)
