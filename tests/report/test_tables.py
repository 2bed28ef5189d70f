"""Score tables as Markdown, LaTeX and terminal text."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from earmark.errors import InputError, UsageError
from earmark.report import long_text, to_latex, to_markdown, to_text
from earmark.scores import Row, Scores


def row(metric: str = "P@1", value: float | None = 0.5, **cells: Any) -> Row:
    return Row(metric=metric, value=value, **cells)


def missing(metric: str, reason: str, status: str = "not_applicable", **cells: Any) -> Row:
    return Row(metric=metric, status=status, reason=reason, **cells)


@pytest.fixture
def scores() -> Scores:
    return Scores(
        (
            row(
                value=0.3175,
                low=0.2965,
                high=0.338,
                lift=0.2975,
                system="logmel",
                distance="cosine",
                suite="v",
            ),
            row("CSCF", 0.2073, system="logmel", distance="cosine", suite="v"),
            row("silhouette", -0.0521, system="logmel", distance="cosine", suite="v"),
            row(value=0.3141, system="logmel", distance="euclidean", suite="v"),
            row("CSCF", 0.12, system="logmel", distance="euclidean", suite="v"),
            missing("silhouette", "a single class", system="logmel", distance="euclidean", suite="v"),
        )
    )


def test_markdown_pivots_and_moves_constants_to_the_caption(scores: Scores) -> None:
    assert to_markdown(scores).splitlines() == [
        r"Suite v, system logmel, correction none, protocol all. Value \[95 % interval\] (lift over chance).",
        "",
        "| distance | P@1 (%) ↑ | CSCF (%) ↓ | silhouette ↑ |",
        "| :-- | --: | --: | --: |",
        "| cosine | **31.8** [29.6, 33.8] (+29.8) | 20.7 | -0.052 |",
        "| euclidean | 31.4 | **12.0** | –¹ |",
        "",
        "¹ a single class",
    ]


def test_latex_is_a_booktabs_table(scores: Scores) -> None:
    assert to_latex(scores, label="tab:esc").splitlines() == [
        r"\begin{table}",
        r"\centering",
        r"\caption{Suite v, system logmel, correction none, protocol all. "
        r"Value {[}95 \% interval] (lift over chance).}",
        r"\label{tab:esc}",
        r"\begin{tabular}{lrrr}",
        r"\toprule",
        r"distance & P@1 (\%) $\uparrow$ & CSCF (\%) $\downarrow$ & silhouette $\uparrow$ \\",
        r"\midrule",
        r"cosine & \textbf{31.8} [29.6, 33.8] (+29.8) & 20.7 & $-$0.052 \\",
        r"euclidean & 31.4 & \textbf{12.0} & --\textsuperscript{1} \\",
        r"\bottomrule",
        r"\end{tabular}",
        "",
        r"{\footnotesize \textsuperscript{1} a single class}",
        r"\end{table}",
    ]


def test_text_is_aligned(scores: Scores) -> None:
    assert to_text(scores, caption="").splitlines() == [
        "distance                   P@1 (%) ↑  CSCF (%) ↓  silhouette ↑",
        "─────────  ─────────────────────────  ──────────  ────────────",
        "cosine     31.8 [29.6, 33.8] (+29.8)        20.7        -0.052",
        "euclidean                       31.4        12.0            –¹",
        "",
        "¹ a single class",
    ]


def test_a_listing_has_a_line_for_each_metric() -> None:
    whole: dict[str, Any] = {"distance": "cosine", "system": "logmel", "n": 2000}
    scores = Scores(
        (
            row(
                value=0.3175,
                low=0.2965,
                high=0.338,
                baseline=0.02,
                baseline_low=0.015,
                baseline_high=0.026,
                lift=0.2975,
                p_value=1 / 1001,
                **whole,
            ),
            row("hub_skew", 1.23456, **whole),
            missing("CSR", "one class", **whole),
            missing("purity", "no disk", status="failed", distance="cosine", system="logmel"),
            row(value=0.1705, protocol="across_groups", **whole),
            row(value=0.2, correction="icdm", **whole),
        ),
        notes=("12 rows without a label were dropped.",),
    )
    assert long_text(scores).splitlines() == [
        "logmel · cosine · no correction · all pairs",
        "  metric    value  95% interval           chance   lift      p     n",
        "  P@1       31.8%  [29.6, 33.8]  2.0% [1.5, 2.6]  +29.8  0.001  2000",
        "  hub_skew  1.235                                               2000",
        "  CSR           –                                               2000  not applicable: one class",
        "  purity        –  failed: no disk",
        "",
        "logmel · cosine · no correction · across groups",
        "  metric  value     n",
        "  P@1     17.1%  2000",
        "",
        "logmel · cosine · icdm correction · all pairs",
        "  metric  value     n",
        "  P@1     20.0%  2000",
        "",
        "Note: 12 rows without a label were dropped.",
    ]


def test_a_listing_leaves_defaults_unsaid() -> None:
    assert long_text(Scores((row(distance="cosine"),))).splitlines()[0] == "cosine"
    assert long_text(Scores((row(),))).splitlines() == ["scores", "  metric  value", "  P@1     50.0%"]


@pytest.mark.parametrize("render", [to_markdown, to_latex, to_text, long_text])
def test_an_empty_table_cannot_be_printed(render: Callable[[Scores], str]) -> None:
    with pytest.raises(InputError, match="empty"):
        render(Scores())


@pytest.mark.parametrize("render", [to_markdown, to_latex, to_text])
def test_repeated_keys_are_refused(render: Callable[[Scores], str]) -> None:
    with pytest.raises(InputError, match="same key"):
        render(Scores((row(value=0.1), row(value=0.2))))


def test_columns_can_be_chosen_and_ordered(scores: Scores) -> None:
    table = to_markdown(scores, metrics=["silhouette", "P@1"], interval=False, lift=False, caption="Mine_")
    assert table.splitlines()[:3] == [r"Mine\_", "", "| distance | silhouette ↑ | P@1 (%) ↑ |"]
    assert "[29.6" not in table
    assert "+29.8" not in table
    with pytest.raises(UsageError, match=r'no metric "P@2".*Did you mean "P@1"'):
        to_markdown(scores, metrics=["P@2"])


def test_one_line_needs_no_index() -> None:
    assert to_markdown(Scores((row(),)), caption="").splitlines() == ["| P@1 (%) ↑ |", "| --: |", "| 50.0 |"]


def test_what_was_not_measured_is_empty_and_what_failed_says_so() -> None:
    scores = Scores(
        (
            row(system="a"),
            row("GSR", 0.4, system="b"),
            missing("P@1", "out of memory", status="failed", system="b"),
            missing("NMI", "out of memory", system="b"),
        )
    )
    lines = to_markdown(scores, caption="").splitlines()
    assert lines[2] == "| a | 50.0 |  |  |"
    assert lines[3] == "| b | failed¹ | 40.0 | –¹ |"
    assert lines[-1] == "¹ out of memory"


def test_footnotes_are_numbered_past_nine() -> None:
    scores = Scores(tuple(missing("P@1", f"reason {place}", system=f"s{place}") for place in range(12)))
    assert "| s11 | –¹² |" in to_markdown(scores)
    assert "¹² reason 11" in to_text(scores)
    assert r"\textsuperscript{12} reason 11" in to_latex(scores)


def test_a_reservation_about_a_value_is_a_footnote() -> None:
    scores = Scores((row(system="a", reason="1 of 2 subsets; missing: b"), row(value=0.4, system="b")))
    assert "| a | **50.0**¹ |" in to_markdown(scores)
    assert "¹ 1 of 2 subsets; missing: b" in to_markdown(scores)


def test_the_best_is_bold_by_direction_and_ties_print_alike() -> None:
    scores = Scores(
        (
            row(value=0.70001, system="a"),
            row(value=0.70002, system="b"),
            row(value=0.5, system="c"),
            row("CS", 0.3, system="a"),
            row("CS", 0.2, system="b"),
            row("CS", 0.4, system="c"),
            row("GSR", 0.5, system="a"),
            row("GSR", 0.5, system="b"),
            row("NMI", 0.9, system="a"),
        )
    )
    lines = to_markdown(scores, caption="").splitlines()[2:]
    assert lines == [
        "| a | **70.0** | 30.0 | 50.0 | 90.0 |",  # alone, or all alike: nothing to single out
        "| b | **70.0** | **20.0** | 50.0 |  |",
        "| c | 50.0 | 40.0 |  |  |",
    ]


def test_the_best_is_chosen_among_comparable_lines() -> None:
    scores = Scores(
        tuple(
            row(value=value, system=system, subset=subset, protocol=protocol)
            for system, subset, protocol, value in [
                ("a", "x", "all", 0.9),
                ("b", "x", "all", 0.8),
                ("a", "y", "all", 0.1),
                ("b", "y", "all", 0.2),
                ("a", "x", "across_groups", 0.3),
                ("b", "x", "across_groups", 0.4),
            ]
        )
    )
    assert re.findall(r"\*\*(.*?)\*\*", to_markdown(scores)) == ["90.0", "20.0", "40.0"]


def test_numbers_print_in_their_own_units() -> None:
    scores = Scores(
        (
            row("P@1:difference", 0.0123, system="a"),
            row("P@1:difference", -0.00001, system="b"),
            row("hub_skew", 12.3456, system="a", lift=-0.00001),
            row("my_metric", 2.0, system="a"),
        )
    )
    lines = to_markdown(scores, caption="").splitlines()
    assert lines[0] == "| system | P@1 difference (points) ↑ | hub_skew ↓ | my_metric ↑ |"
    assert lines[2] == "| a | **1.2** | 12.346 (+0.000) | 2.000 |"
    assert lines[3] == "| b | 0.0 |  |  |"


NASTY = "a_b & 50% of #1 {x} ~ ^ \\ $y$ | `c` *d* _e_ <f> [g] \x1b[31m\u202ered\nline"


def test_markdown_escapes_names() -> None:
    line = to_markdown(Scores((row(system=NASTY), row(system="z"))), caption="").splitlines()[2]
    assert line == (r"| a_b & 50% of #1 {x} ~ ^ \\ $y$ \| \`c\` \*d\* \_e\_ \<f> \[g\] ?\[31m?red line | 50.0 |")


def test_latex_escapes_names() -> None:
    text = to_latex(Scores((row(system=NASTY), row(system="z"))))
    assert (
        r"a\_b \& 50\% of \#1 \{x\} \textasciitilde{} \textasciicircum{} \textbackslash{} \$y\$ \textbar{} "
        r"`c` {*}d{*} \_e\_ \textless{}f\textgreater{} {[}g] ?{[}31m?red line & 50.0 \\" in text
    )


def test_text_never_steers_the_terminal() -> None:
    scores = Scores((row(system=NASTY, reason=NASTY), row(system="z")), notes=(NASTY,))
    for shown in (to_text(scores), long_text(scores)):
        assert "\x1b" not in shown
        assert "\u202e" not in shown


def test_wide_characters_keep_columns_aligned() -> None:
    lines = to_text(Scores((row(system="鸟鸣"), row(system="bird"), row(system="e\u0301te\u0301")))).splitlines()
    assert lines[-3:] == ["鸟鸣         50.0", "bird         50.0", "e\u0301te\u0301          50.0"]


def test_a_bracket_cannot_open_a_latex_line() -> None:
    for name in ("[12pt]", "*"):
        body = to_latex(Scores((row(system=name), row(system="z")))).splitlines()
        assert not any(line.startswith(("[", "*")) for line in body)
