"""An analysis for people: its sentences follow its numbers, and every figure can be drawn."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from earmark import published
from earmark.analysis.matrix import from_table
from earmark.analysis.prowl import win_rates
from earmark.analysis.stalk import stalk
from earmark.analysis.study import Study, analyze
from earmark.errors import InputError, UsageError
from earmark.report.analysis import (
    analysis_figures,
    analysis_text,
    missing_tables,
    paper_tables,
    render_analysis,
    save_figures,
    tables_text,
    write_analysis,
)

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
    said = text.replace("\n  ", " ")
    assert f"its coverage is {best.scauc:.3f} (SCAUC)" in said
    assert f"{100 * best.swapped:.0f} % of the pairs of models change places" in said
    assert "12 models × 6 datasets" in text
    assert len([line for line in text.splitlines() if re.match(r"(random|hardest|Pearson|Jensen)", line)]) == 4


def test_the_first_answer_says_what_speaks_against_it(tmp_path: Path) -> None:
    """On the printed codecs one dataset is enough, two are not, and another one alone is better."""
    found = analyze("published:codec-superb", random_orders=20, core=True)
    lead = re.sub(r"<[^>]+>", "", re.search(r'<p class="lead">.*?</p>', render_analysis(found), re.S)[0])  # type: ignore[index]
    best = max(found.prowl.selections[2:], key=lambda selection: round(selection.scauc, 6))
    assert best.size == 1 < best.stable_size
    assert f"falls to {best.coverage[1]:.3f}" in lead
    assert f"only from {best.stable_size} datasets on" in lead
    exact = found.exact[0]
    rates = [win_rates(found.matrix.normalised())[:, list(one)].mean(axis=1) for one in (exact.members, range(19))]
    assert exact.swapped == pytest.approx(
        np.mean([(rates[0][i] - rates[0][j]) * (rates[1][i] - rates[1][j]) < 0 for i, j in combinations(range(19), 2)])
    )
    name = found.prowl.datasets[exact.members[0]]
    assert f"The best single dataset, found by trying them all, is {name} ({exact.value:.3f}, " in lead
    assert "measures of likeness choose VoxLingua107" in lead
    assert not {"kbps"} & {metric for entry in found.metrics for metric in (entry.one, entry.other)}


def test_lines_differ_and_ranks_are_whole(study: Study) -> None:
    from earmark.report.analysis import _figures as figures

    assert len({figures.line_style(number)[0] for number in range(9)}) == 9
    assert len({(colour, str(dashes)) for colour, _, dashes in map(figures.line_style, range(9))}) == 9
    ticks = figures.rank_plot(study).axes[0].get_xticks()
    assert ticks[0] == 1
    assert all(tick == int(tick) for tick in ticks)


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
    assert {"Which datasets say the same? (stalk)", "How sure is the ranking?"} <= set(checker.headings)
    assert "Do the predictions hold?" not in checker.headings  # nobody asked
    assert "<script>alert" not in page
    write_analysis(study, tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text("utf-8") == page
    with pytest.raises(InputError, match="does not exist"):
        write_analysis(study, tmp_path / "no" / "page.html")


def test_small_and_large_relation_maps(study: Study) -> None:
    from earmark.report.analysis import _figures as figures

    rng = np.random.default_rng(0)
    for count in (2, 35, 80):
        values = rng.uniform(size=(9, count))
        matrix = from_table(values, [f"m{i}" for i in range(9)], [f"d{j}" for j in range(count)])
        figure = figures.relation_map(replace(study, stalk=stalk(matrix)))
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
    assert set(analysis_figures(small)) == {"relations_of_datasets", "relations_of_models", "coverage_curves"}
    assert "Run " in analysis_text(small)


# --- noise, folds, beams, and the paper's tables --------------------------------------------------------------------


@pytest.fixture(scope="module")
def tried(study: Study) -> Study:
    """The same matrix under the paper's settings, its networks left out."""
    return analyze(
        study.source.name, paper=True, regressors=["ridge", "knn", "mean"], random_orders=20, draws=3, core=True
    )


def test_what_was_tried_is_said_and_drawn(tried: Study) -> None:
    text = analysis_text(tried).replace("\n  ", " ")
    noisy = tried.noise[0].forecast("knn")
    clean = tried.pounce.forecast("knn").auc_mse  # type: ignore[union-attr]
    assert f"5 nearest models {noisy.auc_mse:.4f} ± {max(noisy.error or 0, 1e-4):.4f}, " in text
    assert f"{noisy.auc_mse / clean:.1f} times" in text
    fold = tried.folds.forecast("ridge")  # type: ignore[union-attr]
    assert f"ridge from {min(fold.by_split.values()):.4f} to {max(fold.by_split.values()):.4f} (mean " in text
    assert "It is no interval" in text
    assert "against a beam of 1" in text
    page = render_analysis(tried)
    for heading in ("Do the predictions hold?", "Would a wider search find better subsets?"):
        assert f"<h2>{heading}</h2>" in page
    for word in ("(SCAUC)", "(|S*|)", "(AUC-MSE)", "(stalk)", "(prowl)", "(pounce)"):
        assert word in page


def test_a_regressor_that_noise_makes_useless_is_named(tried: Study) -> None:
    worse = [
        "No better than the training mean" in sentence
        for sentence in analysis_text(tried).replace("\n  ", " ").split("With noise of variance")[1:]
    ]
    for found, said in zip(tried.noise, worse, strict=True):
        errors = {forecast.regressor: forecast.auc_mse for forecast in found.forecasts}
        assert said == (max(errors["ridge"], errors["knn"]) >= errors["mean"])


def test_every_figure_is_saved(tried: Study, tmp_path: Path) -> None:
    written = save_figures(tried, tmp_path / "new" / "folder", ["svg", ".SVG"])
    names = {"relations_of_datasets", "relations_of_models", "coverage_curves", "beam_widths", "error_curves",
             "noise_curves", "fold_errors"}  # fmt: skip
    assert {Path(name).stem for name in written} == names == set(analysis_figures(tried))
    assert len(written) == len(names)
    for name in written:
        assert Path(name).read_bytes().startswith(b"<?xml")
    with pytest.raises(UsageError, match='not "gif"'):
        save_figures(tried, tmp_path, ["gif"])


def test_what_is_not_there_is_not_drawn(study: Study) -> None:
    from earmark.report.analysis import _check_figures as checks

    assert not {"noise_curves", "fold_errors", "beam_widths"} & set(analysis_figures(study))
    for draw in (checks.noise_curves, checks.fold_errors, checks.beam_widths):
        with pytest.raises(InputError, match="ask for"):
            draw(study)


def test_the_tables_have_the_papers_lines(tried: Study) -> None:
    tables = paper_tables({"A": tried, "B": tried})
    assert list(tables) == [f"simba_table{n}" for n in range(1, 7)]
    for name, place in (("simba_table1", 0), ("simba_table2", 4)):
        printed = [row["relationship"] for row in published.read("simba_tables1_2")[place : place + 4]]
        assert [row[0] for row in tables[name].rows] == [*printed, "Total"]
        assert tables[name].header == ["Relationships", "A", "B"]
    printed = [row["similarity"].replace("1000", "20") for row in published.read("simba_table3")]
    assert [row[0] for row in tables["simba_table3"].rows] == printed
    assert tables["simba_table3"].header[1:3] == ["A SCAUC (↑)", "A |S*| (↓)"]
    short = [re.sub(r" \((L1|L3|P=3)\)", "", row["similarity"]) for row in published.read("simba_table6")]
    assert [re.sub(r" \(P=3\)", "", str(row[0])) for row in tables["simba_table6"].rows] == short
    assert [row[0] for row in tables["simba_table4"].rows] == ["RIDGE", "KNN", "TRAINING MEAN"]
    assert [row[0] for row in tables["simba_table5"].rows] == ["σ² = 0.05"] * 3 + ["σ² = 0.1"] * 3


def test_the_tables_hold_the_studys_numbers(tried: Study) -> None:
    texts = dict(zip(paper_tables(tried), tables_text(tried, "csv"), strict=True))
    rows = {name: list(csv.DictReader(io.StringIO(text))) for name, text in texts.items()}
    assert float(rows["simba_table4"][0]["AUC-MSE (↓)"]) == tried.pounce.forecast("ridge").auc_mse  # type: ignore[union-attr]
    assert float(rows["simba_table5"][4]["AUC-MSE (↓)"]) == tried.noise[1].forecast("knn").auc_mse
    pearson = tried.prowl.selection("pearson")
    assert float(rows["simba_table3"][3]["SCAUC (↑)"]) == pearson.scauc
    assert float(rows["simba_table6"][2]["Max2 (↑)"]) == pearson.beats_random_early
    counts = tried.stalk.datasets.counts
    assert [int(row["table.csv"]) for row in rows["simba_table1"]] == [*counts.values(), sum(counts.values())]


def test_the_best_of_a_column_is_bold(tried: Study) -> None:
    markdown = tables_text(tried, "markdown")
    lines = [line for line in markdown[3].splitlines() if re.match(r"\| (RIDGE|KNN|TRAINING)", line)]
    errors = {forecast.regressor: forecast.auc_mse for forecast in tried.pounce.forecasts}  # type: ignore[union-attr]
    best = f"{min(errors.values()):.3f}"
    assert [f"**{best}**" in line for line in lines] == [f"{error:.3f}" == best for error in errors.values()]
    latex = tables_text(tried, "latex")
    assert all(text.startswith("\\begin{table}") for text in latex)
    assert all(ord(mark) < 128 or mark in "–" for text in latex for mark in text), "not every LaTeX knows it"


def test_tables_that_cannot_be_made_say_why(study: Study, tmp_path: Path) -> None:
    assert list(missing_tables(study)) == ["simba_table5"]
    assert "--noise" in missing_tables(study)["simba_table5"]
    path = tmp_path / "small.csv"
    path.write_text("model,a,b\nm,.1,.2\nn,.2,.4\no,.3,.3\n")
    small = analyze(path, random_orders=0, core=True)
    assert "only with all of them" in analysis_text(small).replace("\n  ", " ")  # two datasets stand for themselves
    assert set(missing_tables(small)) == {"simba_table4", "simba_table5", "simba_table6"}
    assert list(paper_tables(small)) == ["simba_table1", "simba_table2", "simba_table3"]
