"""The rules for submissions: each impossible thing is a problem with a place, each good partial document has none."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from tests.board.documents import row

from earmark.definitions import paper_boards
from earmark.scores import VOCSIM_SUBSETS, MetricFacts, Row, Scores, metric_facts
from earmark.submissions import Document, Limits, SystemCard, check
from earmark.submissions.printed import published_document


def sent(*rows: Row, **card: Any) -> Document:
    names = dict.fromkeys(one.system for one in rows)
    return Document.of(Scores(rows), board=rows[0].suite, cards=[SystemCard(name, **card) for name in names])


# --- what is welcome -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rows",
    [
        (row(),),
        (row(0.0), row(1.0, metric="P@5")),
        (row(0.2, metric="P@1"), row(0.9, metric="P@5")),  # P@5 above P@1 is possible
        (row(None, status="failed", reason="out of memory"), row(0.3, subset="otters")),
        (row(None, status="not_applicable", reason="no groups"), row(0.3, subset="otters")),
        (row(0.4, status="predicted", low=0.2, high=0.6, reason="from 5 subsets"), row(0.3, subset="otters")),
        (row(-0.2, metric="silhouette"), row(12.0, metric="hub_ratio"), row(1.02, metric="overall")),
        (row(0.5, metric="P@37", protocol="across_groups", correction="icdm"),),
        (row(3.2, metric="pesq", protocol="tandem:3"), row(12.0, metric="kbps")),
        (row(3.2, metric="pesq"), row(6.5, metric="delay_ms", n=0), row(6.5, metric="delay_ms", subset="", n=None)),
        (row(0.5, baseline=0.1, lift=0.4, p_value=0.001, low=0.4, high=0.6, baseline_low=0.05, baseline_high=0.15),),
        (row(0.3, suite="vocsim", subset="HW1"), row(0.3, suite="vocsim", subset="mean:public")),
        (row(0.3, suite="vocsim", subset="BS1~noise0.05", n=473),),
        (row(0.7, suite="codec-superb", subset="ESC-50", metric="overall"),
         row(0.03, suite="codec-superb", subset="speech recognition", metric="wer"),
         row(6.0, suite="codec-superb", subset="", metric="kbps")),
    ],
)  # fmt: skip
def test_partial_results_are_welcome(rows: tuple[Row, ...]) -> None:
    assert check(sent(*rows)).problems == []


@pytest.mark.parametrize("board", ["vocsim", "codec-superb"])
def test_the_papers_keep_the_rules(board: str) -> None:
    assert check(published_document(board)).problems == []


def test_settings_are_known_names_or_the_hosts() -> None:
    (distance,) = check(sent(row(distance="cosin"))).problems
    assert (distance.code, distance.pointer) == ("unknown_distance", "/scores/0/distance")
    assert distance.message.endswith('Did you mean "cosine"?')
    (correction,) = check(sent(row(correction="magic-7"), row(correction="magic-7", subset="otters"))).problems
    assert correction.code == "unknown_correction"
    assert check(sent(row(distance="spearman+dtw", correction="csls:k=5"), row(correction="gicdm"))).problems == []
    board = replace(paper_boards()["vocsim"], name="mine", distances=("manhattan",), corrections=("magic-7",))
    own = sent(row(suite="vocsim", subset="HW1", distance="manhattan", correction="magic-7"))
    assert check(own, {"vocsim": board}).problems == []


# --- what is impossible ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cells", "pointer", "said"),
    [
        ({"metric": "GSR", "value": 1.01}, "/scores/0", r"outside \[0, 1\]"),
        ({"metric": "GSR", "value": -0.01}, "/scores/0", r"outside \[0, 1\]"),
        ({"value": 76.2}, "/scores/0", "divide percent by 100"),
        ({"metric": "overall", "value": 1.2}, "/scores/0", "outside"),
        ({"metric": "pesq", "value": 6.0}, "/scores/0", "outside"),
        ({"low": 0.4}, "/scores/0", "give both or neither"),
        ({"low": 0.6, "high": 0.4}, "/scores/0", "exchange"),
        ({"low": -0.2, "high": 0.6}, "/scores/0", "outside"),
        ({"p_value": 0.0}, "/scores/0", "p_value"),
        ({"p_value": 1.5}, "/scores/0", "p_value"),
        ({"n": -1}, "/scores/0", "negative"),
        ({"n": 0}, "/scores/0/n", "rests on 0 clips"),
        ({"seconds": -1.0}, "/scores/0", "negative"),
        ({"status": "failed", "reason": "x"}, "/scores/0", "there is a value"),
        ({"value": None}, "/scores/0", "there is no value"),
        ({"value": None, "status": "failed"}, "/scores/0", "without a reason"),
        ({"status": "predicted", "reason": "x"}, "/scores/0", "without an interval"),
        ({"status": "fine", "value": None}, "/scores/0", "unknown status"),
        ({"protocol": "some"}, "/scores/0", "unknown protocol"),
        ({"metric": "P@0"}, "/scores/0", "no metric"),
        ({"metric": "P@" + "1" * 100}, "/scores/0/metric", "at most 60"),
        ({"metric": "accuracies"}, "/scores/0", 'The nearest are accuracy'),
        ({"baseline": 0.1, "lift": 0.5}, "/scores/0/lift", "is not value 0.5 minus baseline 0.1"),
        ({"subset": "a\nb"}, "/scores/0/subset", r"U\+000A"),
        ({"subset": "a\x00b"}, "/scores/0/subset", r"U\+0000"),
        ({"reason": "\x1b[31m"}, "/scores/0/reason", r"U\+001B"),
        ({"subset": "a‮b"}, "/scores/0/subset", r"U\+202E"),
        ({"version": "\ud800"}, "/scores/0/version", "half a character"),
        ({"subset": "x" * 201}, "/scores/0/subset", "201 characters"),
        ({"reason": "x" * 2001}, "/scores/0/reason", "2,001 characters"),
        ({"system": "a\x00"}, "/systems/0/name", r"U\+0000"),
        ({"system": " a"}, "/systems/0/name", "blanks around"),
        ({"system": ""}, "/systems/0/name", "empty"),
        ({"system": "x" * 201}, "/systems/0/name", "201 characters"),
        ({"suite": "a b"}, "/board", "cannot be a board's name"),
        ({"suite": "../x"}, "/board", "cannot be a board's name"),
        ({"suite": "x" * 64}, "/board", "cannot be a board's name"),
        ({"suite": "vocsim.csv"}, "/board", "ends like a file"),
        ({"subset": "a\u200bb"}, "/scores/0/subset", r"U\+200B"),
        ({"system": "a\u00adb"}, "/systems/0/name", r"U\+00AD"),
        ({"system": "a\u3164"}, "/systems/0/name", r"U\+3164"),
        ({"system": "=HYPERLINK(1)"}, "/scores/0/system", "formula"),
        ({"reason": "@SUM(A1)"}, "/scores/0/reason", "formula"),
        ({"lift": 77.0}, "/scores/0/lift", "no lift can be 77"),
        ({"suite": "vocsim", "subset": "mean:mine"}, "/scores/0/subset", r'no subset "mean:mine"'),
        ({"suite": "vocsim", "subset": "BS1~noise0.05", "n": 474}, "/scores/0/n", "BS1 has 473 clips"),
        ({"suite": "vocsim", "subset": "BS9"}, "/scores/0/subset", r'vocsim has no subset "BS9"'),
        ({"suite": "vocsim", "subset": "BS1~50x5"}, "/scores/0/subset", r'"BS1~50x5" is a sample of BS1, and'),
        ({"suite": "vocsim", "subset": "BS1", "n": 474}, "/scores/0/n", "BS1 has 473 clips"),
        ({"suite": "codec-superb", "subset": "esc50"}, "/scores/0/subset", 'Did you mean "ESC-50"'),
    ],
)  # fmt: skip
def test_each_impossible_thing_is_named_with_its_place(cells: dict[str, Any], pointer: str, said: str) -> None:
    problems = check(sent(row(**{"value": 0.5, **cells}))).problems
    assert any(problem.pointer == pointer for problem in problems), problems
    assert re.search(said, " ".join(problem.message for problem in problems))


@pytest.mark.parametrize(
    ("card", "pointer"),
    [
        ({"url": "javascript:alert(1)"}, "/systems/0/url"),
        ({"url": "data:text/html,x"}, "/systems/0/url"),
        ({"url": "https://"}, "/systems/0/url"),
        ({"url": "https://[x"}, "/systems/0/url"),
        ({"url": "https://a b.org"}, "/systems/0/url"),
        ({"url": "https://a.org/" + "x" * 500}, "/systems/0/url"),
        ({"parameters_m": -1.0}, "/systems/0/parameters_m"),
        ({"kbps": 1e12}, "/systems/0/kbps"),
        ({"real_time_factor": -0.1}, "/systems/0/real_time_factor"),
        ({"year": 20240}, "/systems/0/year"),
        ({"title": "a\x00"}, "/systems/0/title"),
        ({"authors": ("fine", "a\nb")}, "/systems/0/authors/1"),
        ({"authors": ("x",) * 201}, "/systems/0/authors"),
        ({"description": "x" * 2001}, "/systems/0/description"),
        ({"command": "a\x1b[0m"}, "/systems/0/command"),
        ({"citation": '@preamble{"x"} @misc{a, title={b}}'}, "/systems/0/citation"),
        ({"citation": "@misc{a, title={\\input{/etc/passwd}}}"}, "/systems/0/citation"),
        ({"citation": "@misc{a, title={^^5cinput x}}"}, "/systems/0/citation"),
    ],
)
def test_each_impossible_card_is_named_with_its_place(card: dict[str, Any], pointer: str) -> None:
    assert [problem.pointer for problem in check(sent(row(), **card)).problems] == [pointer]


def test_a_good_card() -> None:
    good = {
        "url": "https://example.org/a?b=c", "citation": "@article{a,\n\ttitle={b}}", "description": "two\nlines",
        "parameters_m": 0.0, "year": 2026, "authors": ("Ada L.", "G. Hopper"), "title": "<script>alert(1)</script>",
    }  # fmt: skip
    assert check(sent(row(), **good)).problems == []


def test_rows_and_cards_must_belong_together() -> None:
    good = sent(row())
    assert [p.pointer for p in check(replace(good, cards=())).problems] == ["/systems"]
    two = replace(good, cards=(*good.cards, SystemCard("other")))
    assert [p.pointer for p in check(two).problems] == ["/systems/1"]
    twice = replace(good, cards=(*good.cards, *good.cards))
    assert "2 cards" in check(twice).problems[0].message
    assert check(replace(good, scores=Scores())).problems[0].message.startswith("The document has no scores")
    stray = replace(good, scores=Scores((row(), row(suite="other"))))
    assert [p.pointer for p in check(stray).problems] == ["/scores/1/suite"]
    double = check(sent(row(0.5), row(0.6)))
    assert "repeats row 1" in double.problems[0].message


def test_long_lists_of_problems_are_cut() -> None:
    many = check(sent(*(row(2.0, subset=f"s{k}") for k in range(500))))
    assert len(many.problems) == 101
    assert many.problems[-1].message == "There are more problems; mend these first."
    few = Limits(max_rows=10, max_systems=1)
    shaped = check(sent(*(row(system=f"s{k}") for k in range(11))), limits=few)
    assert [p.pointer for p in shaped.problems] == ["/scores", "/systems"]


def test_rows_far_apart_are_counted_through() -> None:
    rows = [row(subset=f"s{k}") for k in range(450)]
    rows += [row(2.0, subset="last"), row(subset="s3"), row(subset="twice"), row(subset="twice")]
    problems = check(sent(*rows)).problems
    assert [problem.pointer for problem in problems] == ["/scores/450", "/scores/451", "/scores/453"]
    assert [re.findall(r"[Rr]ow (\d+)", problem.message) for problem in problems] == [
        ["451"],
        ["452", "4"],
        ["454", "453"],
    ]


def test_many_wrong_rows_cost_no_more_than_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def counting(metric: str) -> MetricFacts:
        seen.append(metric)
        return metric_facts(metric)

    monkeypatch.setattr("earmark.scores.validation.metric_facts", counting)
    many = check(sent(*(row(metric=f"P@1x{k}", subset="a") for k in range(5000))))
    assert len(many.problems) == 101
    assert len(seen) <= 400  # each unknown name costs a search for a near one


# --- what is worth knowing -------------------------------------------------------------------------------------------


def test_warnings_are_said_and_refuse_nothing() -> None:
    verdict = check(
        sent(
            row(0.5, version="", inputs=""),
            row(0.5, subset="b", low=0.6, high=0.7),
            row(0.5, subset="c", status="predicted", low=0.4, high=0.6, reason="x"),
            row(0.1, subset="d", metric="P@1:difference"),
        )
    )
    assert verdict.problems == []
    assert check(sent(row(version=""), row(version="", subset="b"))).warnings == [
        "2 rows of 2 do not say which version measured them."
    ]
    assert verdict.warnings == [
        "1 of 4 rows does not say which version measured it.",
        "1 of 4 rows has no hash of its inputs: it cannot be compared with a run of the same.",
        "1 of 4 rows has a value outside of its interval.",
        "1 of 4 rows is a prediction: it is shown as such and ranked nowhere.",
        "1 of 4 rows is a difference: the board computes its own.",
    ]
    part = check(sent(row(0.5, suite="vocsim", subset="BC", n=100), row(0.5, suite="vocsim", subset="BS1", n=473)))
    assert part.warnings == ["BC was measured on 100 of its 3,321 clips."]
    assert check(sent(row(None, status="failed", reason="x"))).warnings == ["No row has a value."]


def test_known_boards_are_the_papers() -> None:
    known = paper_boards()
    assert [subset.name for subset in known["vocsim"].subsets] == [subset.name for subset in VOCSIM_SUBSETS]
    assert known["vocsim"].subset("BS1").clips == 473
    suite = [subset for subset in known["codec-superb"].subsets if not subset.task]
    assert len(suite) == 20  # 19 that are printed, and NSynth
    tasks = {subset.name for subset in known["codec-superb"].subsets if subset.task}
    assert tasks >= {"speech recognition", "audio event classification"}
