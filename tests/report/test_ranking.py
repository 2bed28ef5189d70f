"""Who is called the best: across groups where that was measured, and only among systems scored on the same clips."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.report.test_html import Page

from earmark.report import answer, figures, to_markdown
from earmark.report.content import CopyNote, ReportData
from earmark.report.html import render
from earmark.report.layers import layered
from earmark.report.ranking import ClipCount, SharedClips, lost_said, rank
from earmark.report.score_index import ScoreIndex
from earmark.scores import Row, Scores

pytest.importorskip("matplotlib")


def row(system: str, value: float | None, protocol: str = "all", subset: str = "digits", **more: Any) -> Row:
    given = {"metric": "P@1", "distance": "cosine", "n": 300, "suite": "s", **more}
    if value is None:
        given |= {"status": "not_applicable", "reason": "no class has clips of two groups", "n": None}
    return Row(system=system, subset=subset, protocol=protocol, value=value, **given)


def pair(system: str, across: float, over_all: float, subset: str = "digits", **more: Any) -> list[Row]:
    return [row(system, over_all, "all", subset, **more), row(system, across, "across_groups", subset, **more)]


def opening(rows: list[Row], *given: Any) -> str:
    return " ".join(answer.lead(rank(Scores(tuple(rows)), *given))).replace("\N{NO-BREAK SPACE}", " ")


DIGITS = [*pair("mfcc", 0.442, 0.962), *pair("birdnet", 0.553, 0.901), *pair("logmel", 0.3, 0.7)]


# --- across groups --------------------------------------------------------------------------------------------------


def test_the_answer_is_about_across_groups_and_names_who_is_best_over_all_pairs() -> None:
    said = opening(DIGITS)
    assert "On digits, birdnet · cosine does best of 3: 55.3 %, n = 300." in said
    assert "another one does best: mfcc · cosine, with 96.2 % and 44.2 % across groups" in said
    assert "birdnet · cosine has 90.1 % there" in said
    assert "from another group" in said
    assert answer.champion(rank(Scores(tuple(DIGITS)))) == "birdnet · cosine"


def test_a_best_that_stays_the_best_is_said_to() -> None:
    said = opening([*pair("mfcc", 0.6, 0.9), *pair("logmel", 0.5, 0.8)])
    assert "mfcc · cosine has 90.0 %, +30.0 points against its value across groups, and is the best there too" in said
    assert "another one" not in said


def test_over_several_subsets_both_champions_are_named_with_both_means() -> None:
    rows = [*pair("mfcc", 0.4, 0.95), *pair("birdnet", 0.5, 0.9), *pair("mfcc", 0.3, 0.85, "words")]
    rows += [*pair("birdnet", 0.6, 0.8, "words")]
    said = opening(rows)
    assert "birdnet · cosine does best on both subsets (55.0 % averaged over 2 subsets" in said
    assert "mfcc · cosine does best on average, with 90.0 % and 35.0 % across groups" in said
    assert "birdnet · cosine has 85.0 % there" in said
    assert "The best one changes on digits and words." in said


def table(**values: tuple[float, ...]) -> list[Row]:
    return [row(name, value, subset=f"s{k}") for name, own in values.items() for k, value in enumerate(own)]


def test_a_best_value_that_several_have_is_nobodys_win() -> None:
    shared = opening(table(logmel=(1.0, 0.87), mfcc=(1.0, 0.94)))
    assert "mfcc · cosine has the best value on both subsets (97.0 % averaged over 2 subsets" in shared
    assert ", 1 of them shared with others." in shared
    assert "logmel" not in shared.partition("shared with others.")[0]
    alone = opening(table(logmel=(0.9, 0.87), mfcc=(1.0, 0.94)))
    assert "mfcc · cosine does best on both subsets (97.0 %" in alone
    apart = opening(table(a=(0.9, 0.9, 0.3, 0.3), b=(0.1, 0.1, 0.8, 0.8), c=(0.85, 0.85, 0.7, 0.7)))
    assert "c · cosine does best on the whole" in apart
    assert "; a · cosine and b · cosine have the best value on 2 of 4 subsets each." in apart


def test_a_subset_without_groups_is_answered_over_all_pairs_and_said_so() -> None:
    rows = [*DIGITS, row("mfcc", 0.5, subset="rain"), row("birdnet", 0.4, subset="rain")]
    said = opening(rows)
    assert "on rain, not measured across groups, over all pairs" in said
    best = {finding.subset.name: finding.best.system for finding in answer.findings(rank(Scores(tuple(rows))))}
    assert best == {"digits": "birdnet", "rain": "mfcc"}


def test_where_nothing_could_be_measured_across_groups_all_pairs_answer() -> None:
    rows = [
        row("mfcc", 0.9),
        row("logmel", 0.8),
        row("mfcc", None, "across_groups"),
        row("logmel", None, "across_groups"),
    ]
    assert "mfcc · cosine does best of 2: 90.0 %" in opening(rows)


def test_the_page_shows_both_protocols_side_by_side_and_draws_the_one_that_answers() -> None:
    page = Page(render(ReportData(title="digits", scores=Scores(tuple(DIGITS)))))
    text = page.text
    lead = text[text.index("The answer") : text.index("Both protocols side by side")]
    assert lead.index("birdnet · cosine") < lead.index("mfcc · cosine")
    table = text[text.index("Both protocols side by side") : text.index("In each column")]
    assert table.index("birdnet") < table.index("mfcc") < table.index("logmel")
    assert "55.3" in table
    assert "90.1" in table


def test_figures_rank_across_groups() -> None:
    columns = figures._heatmaps.heat_columns(ScoreIndex(Scores(tuple(DIGITS))), None, None)
    assert {found.protocol for _, rows in columns for found in rows.values()} == {"across_groups"}
    layers = [row for layer, (across, over_all) in enumerate([(0.2, 0.9), (0.6, 0.5)])
              for row in pair(f"wavlm@{layer} mean_time", across, over_all)]  # fmt: skip
    (found,) = layered(Scores(tuple(layers)))
    assert found.behind()[:, 0] == pytest.approx([0.4, 0.0])


# --- clips that failed ----------------------------------------------------------------------------------------------


def counts(*scored: tuple[str, int]) -> list[ClipCount]:
    return [ClipCount("s", "digits", system, number, 300) for system, number in scored]


def test_a_system_that_lost_most_clips_is_not_crowned_and_says_so() -> None:
    rows = [row("mfcc", 0.2, low=0.15, high=0.25), row("lucky", 0.9, n=19, low=0.8, high=0.99)]
    known = counts(("mfcc", 300), ("lucky", 22))
    said = opening(rows, None, known)
    assert "mfcc · cosine reaches 20.0 %" in said
    assert "lucky failed on 278 of 300 clips, more than half, and is not ranked." in said
    assert lost_said(known) == ["lucky failed on 278 of 300 clips of digits: more than half, so it is not ranked"]
    page = Page(render(ReportData(title="d", scores=Scores(tuple(rows)), counts=known))).text
    assert "22 of 300" in page
    assert "not ranked" in page
    assert "clear of" not in page


def test_systems_are_ranked_by_the_clips_they_share() -> None:
    rows = [row("mfcc", 0.70), row("fussy", 0.75, n=200)]
    compared = Scores((row("mfcc", 0.80, n=200), row("fussy", 0.75, n=200)))
    known, shared = counts(("mfcc", 300), ("fussy", 200)), [SharedClips("s", "digits", 200, 300, 2)]
    said = opening(rows, compared, known, shared)
    assert "mfcc · cosine does best of 2: 80.0 %, n = 200." in said
    assert "fussy was scored on 200 of 300 clips." in said
    assert "compared on the 200 clips that both of them have" in said
    page = Page(
        render(ReportData(title="d", scores=Scores(tuple(rows)), compared=compared, counts=known, shared=shared))
    ).text
    assert "200 of 300 clips" in page
    assert "Scores of each system on its own clips" in page


def test_where_too_few_clips_are_shared_nothing_is_the_best() -> None:
    rows = [row("a", 0.7, n=160), row("b", 0.9, n=160)]
    shared = [SharedClips("s", "digits", 20, 300, 2)]
    said = opening(rows, None, counts(("a", 160), ("b", 160)), shared)
    assert "On digits no representation is called the best: its 2 systems share only 20 of 300 clips." in said
    assert "does best" not in said
    ranking = rank(Scores(tuple(rows)), None, counts(("a", 160), ("b", 160)), shared)
    assert answer.champion(ranking) is None
    assert answer.verdict(answer.findings(ranking)[0]).startswith("no verdict")
    assert render(ReportData(title="d", scores=Scores(tuple(rows)), shared=shared))


def test_rows_of_different_clips_have_no_best_even_when_nothing_is_known_of_failures() -> None:
    rows = [row("a", 0.7, n=300), row("b", 0.9, n=19)]
    assert "scored on different clips (n = 19 to 300)" in opening(rows)
    assert "**" not in to_markdown(Scores(tuple(rows)))
    assert "**90.0**" in to_markdown(Scores(tuple(replace(one, n=300) for one in rows)))


def test_when_every_system_lost_its_clips_there_is_no_answer() -> None:
    said = opening([row("a", 0.7, n=20)], None, counts(("a", 20)))
    assert "a failed on 280 of 300 clips" in said
    assert "No representation has a score that can be ranked" in said


def test_many_systems_that_failed_alike_are_told_in_one_sentence() -> None:
    rows = [row(f"m{number}", 0.5, n=290) for number in range(9)]
    said = opening(rows, None, counts(*((f"m{number}", 290) for number in range(9))))
    assert "m0, m1, m2 and 6 more systems were scored on 290 of 300 clips." in said


# --- what is called a difference --------------------------------------------------------------------------------------


def test_a_paired_difference_decides_before_intervals_do() -> None:
    best, other = row("a", 0.8, low=0.7, high=0.9), row("b", 0.75, low=0.65, high=0.85)
    assert answer.separated(best, other, None) is False
    assert answer.separated(best, replace(other, low=0.6, high=0.69), None) is True
    assert answer.separated(best, replace(other, low=None), None) is None
    difference = replace(other, metric="P@1:difference", value=0.05, low=0.01, high=0.09, p_value=0.01)
    assert answer.separated(best, other, difference) is True
    assert answer.separated(best, other, replace(difference, p_value=0.2)) is False
    (found,) = answer.findings(rank(Scores((best, other)), Scores((difference,))))
    assert found.tested == "clip"
    assert "larger than a change of clips explains" in opening([best, other], Scores((difference,)))
    assert answer.verdict(found) == "clear of the other one"


def test_the_opening_says_whether_the_best_over_all_pairs_is_ahead_there() -> None:
    rows = [*pair("mfcc", 0.5, 0.9), *pair("birdnet", 0.6, 0.8)]

    def against(line: Row, p_value: float) -> Row:
        return replace(line, metric="P@1:difference", value=0.1, low=-0.1, high=0.3, p_value=p_value, unit="group")

    for p_value, said in [(0.4, "a difference no larger than"), (0.01, "a difference larger than")]:
        tested = Scores((against(rows[1], 0.3), against(rows[2], p_value)))
        assert f"birdnet · cosine has 80.0 % there, {said} a change of groups explains." in opening(rows, tested)
    assert "birdnet · cosine has 80.0 % there." in opening(rows)


def test_the_page_says_what_its_verdicts_rest_on() -> None:
    best, other = row("a", 0.8, low=0.7, high=0.9), row("b", 0.75, low=0.65, high=0.85)
    difference = replace(other, metric="P@1:difference", value=0.05, low=0.01, high=0.09, p_value=0.01)
    tested = Page(render(ReportData(title="d", scores=Scores((best, other)), compared=Scores((difference,))))).text
    assert "rests on paired differences on the same clips" in tested
    untested = Page(render(ReportData(title="d", scores=Scores((best, other))))).text
    assert "No paired differences were measured" in untested
    for page in (tested, untested):
        assert "earmark compare" not in page
        assert "against chance is not corrected" not in page


def test_a_subset_that_cannot_be_judged_is_not_counted_among_the_clear_ones() -> None:
    def subset(name: str, high: float | None) -> list[Row]:
        ends = {"low": None, "high": None} if high is None else {"low": high - 0.3, "high": high}
        return [row("a", 0.9, subset=name, low=0.85, high=0.95), row("b", 0.5, subset=name, **ends)]

    said = opening([*subset("rain", 0.6), *subset("wind", 0.7), *subset("seals", None)])
    assert "In each subset" not in said
    assert "larger than the intervals on rain and wind; on seals that cannot be judged" in said
    said = opening([*subset("rain", 0.6), *subset("seals", None), *subset("bats", None)])
    assert "over every other" not in said
    assert "larger than the intervals on rain; on seals and bats that cannot be judged" in said
    said = opening([*subset("rain", 0.9), *subset("seals", None)])
    assert "On rain the lead of the best is smaller than the intervals: others may be as good; on seals" in said
    assert "In each subset the lead" in opening([*subset("rain", 0.6), *subset("wind", 0.7)])


def test_a_subset_without_a_p_value_is_not_said_to_be_above_chance() -> None:
    known = {"baseline": 0.1, "lift": 0.4, "p_value": 0.001}
    tested, untested = row("a", 0.5, **known), row("a", 0.5, subset="seals", **{**known, "p_value": None})
    unknown = row("a", 0.5, subset="bats")
    assert "everywhere more than shuffled labels explain" in opening([tested, replace(tested, subset="rain")])
    for others in ([untested], [unknown], [untested, unknown]):
        said = opening([tested, *others])
        assert "everywhere" not in said
        assert "whether it is more than shuffled labels explain was not tested" in said
    assert "The best of digits lies +40.0 points above chance; on bats" in opening([tested, unknown])
    assert "was not tested" in opening([untested])
    assert "was not tested" not in opening([tested])


# --- copies -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("policy", "said"), [("drop", "4 clips of them were left out"), ("keep", "They were kept")])
def test_copies_have_a_paragraph_of_their_own(policy: str, said: str) -> None:
    note = CopyNote(
        subset="digits", policy=policy, sounds=3, clips=7, left_out=4 if policy == "drop" else 0,
        under_several_labels=1, examples=[(["a.wav", "<b>.wav"], ["one", "two"])],
    )  # fmt: skip
    text = render(ReportData(title="d", scores=Scores(tuple(DIGITS)), copies=[note]))
    page = Page(text).text
    assert "7 clips of digits are copies of 3 sounds, 1 sound under more than one label" in page
    assert said in page
    assert "a.wav = <b>.wav (labelled one and two)" in page
    assert ('class="synthetic"' in text) == (policy == "keep")


def test_an_exact_tie_has_no_single_winner() -> None:
    said = opening([*pair("mfcc", 0.6, 0.9), *pair("logmel", 0.6, 0.8), *pair("noise", 0.1, 0.1)])
    assert "mfcc · cosine and logmel · cosine share the best value of 3: 60.0 %" in said


def test_sentences_fit_one_two_and_three_systems_and_subsets() -> None:
    values = {"a": 0.9, "b": 0.7, "c": 0.5}
    for systems in (1, 2, 3):
        for subsets in (["digits"], ["digits", "words"], ["digits", "words", "calls"]):
            rows = [
                row(name, values[name], subset=subset, low=values[name] - 0.01, high=values[name] + 0.01)
                for subset in subsets
                for name in list(values)[:systems]
            ]
            said = opening(rows)
            page = render(ReportData(title="t", scores=Scores(tuple(rows))))
            for wrong in ("all 1", "all 2", "1 others", "1 subsets", "1 clips", "none of the 2", "1 representations"):
                assert wrong not in said
                assert wrong not in page
            if len(subsets) == 2:
                assert "a · cosine does best on both subsets" in said
            if systems == 2:
                assert "clear of the other one" in page
