"""The page, the figures and the texts of codecs, from values that are made up here."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from earmark.codecs.contract import CodecCard
from earmark.codecs.standing import Promise, Standing
from earmark.errors import InputError, UsageError
from earmark.report.codecs._comparison import (
    LADDER,
    CodecReport,
    Difference,
    Failed,
    Heard,
    LeftOut,
    WorstClip,
    apart,
    best_below,
    compare_settings,
    compared_metrics,
)
from earmark.report.codecs.page import render_codecs
from earmark.report.codecs.text import bd_matrix, comparison_text, run_text, winners
from earmark.report.figures.codecs import difference_png, rate_distortion
from earmark.scores import Row, Scores
from earmark.submissions import Dataset

SETTINGS = {
    "good@8": (8.2, 3.0),
    "good@16": (15.9, 4.0),
    "poor@8": (8.0, 2.0),
    "poor@16": (16.1, 3.2),
    "pcm": (256, 4.6),
}
CARDS = {
    name: CodecCard(name=name, family=name.partition("@")[0], lossless=name == "pcm", delay=0, licence="<b>free</b>")
    for name in SETTINGS
}


def rows() -> list[Row]:
    made = []
    for name, (kbps, pesq) in SETTINGS.items():
        cells = {"suite": "codec", "subset": "birds", "system": name, "n": 20, "version": "1", "inputs": "aa"}
        for metric, value in {
            "kbps": kbps, "pesq": pesq, "overall": pesq / 5, "stoi": pesq / 5, "mel_distance": 5 - pesq,
            "delay_ms": 0.0, "encode_rtf": 0.1, "decode_rtf": 0.02, "pesq:p1": pesq - 0.5,
        }.items():  # fmt: skip
            bounds = {"low": value * 0.95, "high": value * 1.05} if metric in ("pesq", "mel_distance") else {}
            made.append(Row(metric=metric, value=value, **bounds, **cells))
        for passes in (1, 2, 3):
            made.append(Row(metric="pesq", protocol=f"tandem:{passes}", value=max(1.1, pesq - 0.3 * passes), **cells))
        made.append(Row(metric="pesq", protocol="loss:10", value=max(1.1, pesq - 1), **cells))
        made.append(Row(metric="wer", value=0.3, reason="20 clips", **cells))
    return made


def fetch() -> Heard:
    t = np.arange(16000) / 16000
    reference = np.sin(2 * np.pi * 440 * t).astype(np.float32)
    return Heard(reference, 0.5 * reference, 16000)


def broken() -> Heard:
    raise InputError("the cache no longer holds what the codec sent")


def report(**changes: Any) -> CodecReport:
    whole = CodecReport(
        title="Codecs on birds",
        scores=Scores(tuple(rows())),
        cards=CARDS,
        datasets=[Dataset("birds", "speech", 20, 40.0, "ab" * 32)],
        metrics=["pesq", "stoi", "mel_distance"],
        differences=[Difference("birds", "pesq", "good@8", "poor@8", 8.2, 8.0, 1.0, 0.8, 1.2, 0.002, 20)],
        worst=[_worst("good@8", fetch), _worst("poor@8", broken)],
        failures=[Failed("birds", name, "f0_corr", "not_applicable", 3, "c1", "unvoiced <i>") for name in SETTINGS],
        versions={"numpy": "2"},
    )
    return replace(whole, **changes)


def _worst(system: str, how: Callable[[], Heard]) -> WorstClip:
    return WorstClip("birds", system, "clip<7>", "pesq", 1.2, 3.0, how)


def compared(metric: str = "pesq", **options: Any) -> Any:
    return compare_settings(Scores(tuple(rows())), CARDS, "birds", metric, **options)


def test_the_front_and_the_winners_are_those_of_a_search_over_all_pairs() -> None:
    found = compared()
    expected = {
        name for name, (kbps, value) in SETTINGS.items() if name != "pcm"
        and not any(k <= kbps and v >= value and (k, v) != (kbps, value) for k, v in SETTINGS.values())
    }  # fmt: skip
    assert {point.system for point in found.front} == expected
    for rate in LADDER:
        within = [name for name, (kbps, _) in SETTINGS.items() if kbps <= rate]
        best = best_below(found, rate)
        assert (best.system if best else None) == max(within, key=lambda name: SETTINGS[name][1], default=None)
    assert winners(found).startswith("best pesq by rate: poor@8 up to 8 kbps (2.000), good@16 up to 16 kbps (4.000)")


def test_anchors_have_no_curve_to_compare() -> None:
    found = compared()
    assert {(pair.anchor, pair.family) for pair in found.bd_rates} == {("good", "poor")}
    assert found.anchors == {"pcm"}
    assert found.monotonicity.total == 2
    distance = compared("mel_distance")
    assert not distance.higher_is_better
    assert {point.system for point in distance.front} == {point.system for point in found.front}
    with pytest.raises(UsageError, match="good"):
        compared(anchor="goood")


def test_a_bd_rate_is_told_with_the_scores_it_is_taken_over() -> None:
    found = compared()
    assert [pair.shared for pair in found.bd_rates] == [(3.0, 3.2)]
    assert "poor against good: over pesq from 3.000 to 3.200" in comparison_text([found])


@pytest.fixture(scope="module")
def page() -> str:
    return render_codecs(report())


def test_the_page_says_who_wins_and_holds_everything_it_shows(page: str) -> None:
    assert "has the best overall of the codecs that lose something" in page
    assert re.search(r"<b>good@16</b> has the best overall", page)
    assert page.count("<audio") == 2  # one clip before and after; the other could not be decoded
    assert "no longer holds what the codec sent" in page
    assert not re.search(r'(?:src|href)="(?!data:|#)', page)
    assert "<i>" not in page
    assert "<b>free</b>" not in page
    assert "clip<7>" not in page
    for part in (
        "answer",
        "curves",
        "table",
        "tasks",
        "speed",
        "repeated",
        "rates",
        "agreement",
        "worst",
        "missing",
        "method",
    ):
        assert f'id="{part}"' in page


def test_the_same_report_gives_the_same_page(page: str) -> None:
    assert page == render_codecs(report())


def test_a_reason_that_all_codecs_share_is_told_once(page: str) -> None:
    assert page.count("unvoiced &lt;i&gt;") == 1
    assert "and 1 more" in page


def test_a_page_of_nothing_but_failures_is_written() -> None:
    failed = [
        Row(suite="codec", subset="birds", system=name, metric=metric, status="failed", reason="it broke", n=0)
        for name in SETTINGS
        for metric in ("kbps", "pesq", "overall")
    ]
    page = render_codecs(report(scores=Scores(tuple(failed)), worst=[], differences=[], failures=[]))
    assert "Nothing could be compared" in page


def test_the_texts_name_every_setting_and_step() -> None:
    text = run_text(Scores(tuple(rows())), CARDS)
    assert all(f"\n  {name if name != 'pcm' else '(pcm)'} " in text for name in SETTINGS)
    assert "best overall by rate" in text
    shown = comparison_text([compared()], report().differences)
    names, cells = bd_matrix(compared())
    assert names == ["good", "poor"]
    there, back = (float(cells[line][1 - line].rstrip(" %").replace("−", "-")) / 100 for line in (0, 1))
    assert (1 + there) * (1 + back) == pytest.approx(1, abs=0.02)
    assert there < 0 < back
    assert "BD-rate" in shown
    assert "2 of 2 steps to a higher rate inside a family improve pesq" in shown
    assert "+1.000" in shown
    worse = {**SETTINGS, "good@16": (15.9, 2.9)}
    lines = [replace(row, value=worse[row.system][1]) if row.metric == "pesq" and row.protocol == "all" and
             row.system == "good@16" else row for row in rows()]  # fmt: skip
    again = compare_settings(Scores(tuple(replace(row, low=None, high=None) for row in lines)), CARDS, "birds", "pesq")
    assert "not: good@8 (8.2 kbps) 3, good@16 (15.9 kbps) 2.9" in comparison_text([again])


def test_what_can_be_drawn_is_drawn_by_metric() -> None:
    scores = Scores(tuple(rows()))
    metrics = compared_metrics(scores, "birds")
    assert [metric for metric, _ in metrics] == ["overall", "pesq", "stoi", "mel_distance", "wer"]
    figure = rate_distortion([compare_settings(scores, CARDS, "birds", metric) for metric, _ in metrics])
    titles = ["overall", "pesq", "stoi", "mel_distance", "word error rate"]
    assert all(axes.get_title().startswith(title) for axes, title in zip(figure.axes, titles, strict=True))
    for axes in figure.axes:
        assert axes.get_xscale() == "log"
    with pytest.raises(InputError, match="no value"):
        rate_distortion([])


def test_a_difference_is_red_where_level_was_added_and_blue_where_it_was_lost() -> None:
    import io

    from PIL import Image

    t = np.arange(16000) / 16000
    low, high = (np.sin(2 * np.pi * f * t).astype(np.float32) for f in (500.0, 6000.0))
    pixels = np.asarray(Image.open(io.BytesIO(difference_png(low, high, 16000))).convert("RGB"), int)
    height = len(pixels)
    at_low = pixels[height - 1 - round(500 / 8000 * height), pixels.shape[1] // 2]
    at_high = pixels[height - 1 - round(6000 / 8000 * height), pixels.shape[1] // 2]
    assert at_low[2] > at_low[0] + 50  # blue: lost
    assert at_high[0] > at_high[2] + 50  # red: added


# --- floors, anchors, and what results rest on -----------------------------------------------------------------------

DWER = {"good@8": 0.3, "good@16": 0.2, "poor@8": 0.6, "poor@16": 0.4, "pcm": 0.117}


def with_dwer() -> list[Row]:
    cells: dict[str, Any] = {"suite": "codec", "subset": "birds", "n": 20, "version": "1", "inputs": "aa"}
    return [*rows(), *(Row(metric="dwer", system=name, value=value, low=value * 0.5, high=value * 1.5, **cells)
                       for name, value in DWER.items())]  # fmt: skip


def test_the_anchor_is_the_floor_that_dwer_is_seen_against() -> None:
    text = run_text(Scores(tuple(with_dwer())), CARDS)
    assert "floor of dwer: 11.7\N{NO-BREAK SPACE}% [5.9, 17.6] of pcm, which loses nothing" in text
    head, *lines = text[text.index("  tasks") :].splitlines()
    assert head.split()[:2] == ["tasks", "kbps"]
    assert "above floor" in head
    assert next(line for line in lines if line.startswith("  good@8")).split()[-1] == "+18.3"
    page = render_codecs(report(scores=Scores(tuple(with_dwer()))))
    assert "dwer above pcm" in page
    assert "+18.3" in page
    without = {name: replace(card, lossless=False) for name, card in CARDS.items()}
    assert "dwer has no floor here: name a codec without loss" in run_text(Scores(tuple(with_dwer())), without)


def test_anchors_are_lines_with_their_interval_and_others_are_hollow() -> None:
    scores = Scores(tuple(with_dwer()))
    hollow = {"poor@8": LeftOut("failed 1/20", "it failed on 1 of 20 clips")}
    (axes,) = rate_distortion([compare_settings(scores, CARDS, "birds", "dwer", left_out=hollow)]).axes
    level = [line for line in axes.get_lines() if line.get_label() == "pcm, lossless"]
    assert [tuple(line.get_ydata()) for line in level] == [pytest.approx((11.7, 11.7))]
    assert len(axes.patches) == 1  # the band
    labels = axes.get_legend_handles_labels()[1]
    assert {"good", "poor", "poor, not ranked", "pcm, lossless", "best at that rate"} == set(labels)
    assert axes.get_xlim()[1] < 64  # the anchor's 256 kbps crowd nobody out


def test_the_page_says_what_results_rest_on() -> None:
    full = Standing("full", "", "passed", "", (Promise("delay", "kept"),))
    standings = dict.fromkeys(SETTINGS, full) | {
        "good@16": Standing("none", "one <process>", "passed"),
        "good@8": Standing("full", "", "passed", "", (Promise("delay", "broken", "7.3 ms and 0 declared"),)),
    }
    page = render_codecs(report(standings=standings))
    assert 'id="standing"' in page
    assert "Not fully isolated: the decoder could have seen the original: good@16." in page
    assert "one &lt;process&gt;" in page
    assert "delay: 7.3 ms and 0 declared" in page
    assert not re.search(r"<b>good@16</b> has the best", page)
    text = run_text(Scores(tuple(rows())), CARDS, standings=standings)
    assert "\n  good@16 ! " in text
    assert "\n! good@16: its decoder was not fully isolated: one <process>" in text
    assert "good@8 broke a promise of its card, delay: 7.3 ms and 0 declared" in text
    assert "good@16 up to" not in text
    unknown = run_text(Scores(tuple(rows())), CARDS, standings=dict.fromkeys(SETTINGS, Standing()))
    assert "good@16 up to" in unknown  # all of one kind are ranked
    assert "Isolation unknown good@8, good@16, poor@8, poor@16: nothing says whether" in unknown
    compared = compare_settings(Scores(tuple(rows())), CARDS, "birds", "pesq", left_out=apart(standings, CARDS))
    assert "good@16 is left out: its decoder was not fully isolated" in comparison_text([compared])


def test_every_table_of_codecs_has_the_rate_and_the_version_is_told(page: str) -> None:
    tables = re.findall(r"<thead>(.*?)</thead>", page)
    of_codecs = [head for head in tables if ">codec</th>" in head and "isolation" not in head]
    assert len(of_codecs) >= 4
    assert all("kbps" in head or ">version<" in head for head in of_codecs)
    assert any(">version<" in head for head in of_codecs)
    assert page.index('id="curves"') < page.index('id="table"')


def test_what_sent_nothing_is_left_out_and_named() -> None:
    made = [replace(row, value=0.0) if (row.metric, row.system) == ("kbps", "good@16") else row for row in rows()]
    found = compare_settings(Scores(tuple(made)), CARDS, "birds", "pesq")
    assert found.left_out["good@16"].mark == "0 kbps"
    assert "good@16" not in {point.system for point in found.points}
    assert "good@16 is left out: nothing that it sent was counted" in comparison_text([found])
