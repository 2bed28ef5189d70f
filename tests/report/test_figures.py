"""Figures: each is a matplotlib Figure, says what it cannot draw, and becomes markup that a page can hold."""

from __future__ import annotations

import builtins
import io
import re
import sys
import wave
from base64 import b64decode
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from earmark.errors import InputError, MissingExtra
from earmark.report import _audio_player as audio_player
from earmark.report import figures
from earmark.report._neighbours import (
    confusions,
    hubs,
    most_confused,
    retrieve,
    top_confusions,
    worst_queries,
)
from earmark.report.content import CloseUp, Durations, SubsetFacts
from earmark.report.trends import find_trends
from earmark.scores import Row, Scores

matplotlib = pytest.importorskip("matplotlib")


def score(value: float, subset: str = "a", system: str = "logmel", **cells: Any) -> Row:
    given: dict[str, Any] = {"metric": "P@1", "distance": "cosine", "n": 40, "low": value - 0.05, "high": value + 0.05}
    given |= {"baseline": 0.1, "lift": value - 0.1, "p_value": 0.01, "baseline_low": 0.05, "baseline_high": 0.15}
    return Row(value=value, subset=subset, system=system, **(given | cells))


@pytest.fixture
def scores() -> Scores:
    rows = []
    for place, subset in enumerate("abcd"):
        for step, system in enumerate(("logmel", "mfcc")):
            for protocol in ("all", "across_groups"):
                value = 0.4 + 0.1 * place - 0.08 * step - 0.1 * (protocol != "all")
                rows.append(score(value, subset, system, protocol=protocol))
                rows.append(score(value / 2, subset, system, protocol=protocol, metric="GSR"))
    return Scores(tuple(rows))


@pytest.fixture
def properties() -> list[SubsetFacts]:
    return [
        SubsetFacts(
            subset=name,
            clips=40 * (place + 1),
            classes=4 + place,
            domain="birds" if place < 2 else "speech",
            durations=Durations(0.1, 0.3, 0.3 + place, 3.0, 60.0),
        )
        for place, name in enumerate("abcd")
    ]


def texts(figure: Any) -> list[str]:
    import matplotlib.text

    return [item.get_text() for item in figure.findobj(matplotlib.text.Text) if item.get_text()]


def test_the_heat_map_prints_every_value_in_percent(scores: Scores) -> None:
    shown = texts(figures.score_heatmap(scores, protocol="all"))
    assert {"40.0", "50.0", "60.0", "70.0", "32.0"} <= set(shown)
    assert "70.0" not in texts(figures.score_heatmap(scores))  # across groups, where that was measured
    assert {"a", "b", "c", "d", "logmel · cosine", "mfcc · cosine"} <= set(shown)


def test_one_subset_gets_a_column_for_each_metric(scores: Scores) -> None:
    shown = texts(figures.score_heatmap(scores.select(subset="a")))
    assert {"P@1", "GSR"} <= set(shown)


def test_lift_has_a_panel_for_each_protocol(scores: Scores) -> None:
    figure = figures.lift_plot(scores)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["across groups", "all pairs"]
    assert len(figures.lift_plot(scores.select(protocol="all")).axes) == 1


def test_without_permutations_there_is_no_lift_to_draw() -> None:
    with pytest.raises(InputError, match="permutations"):
        figures.lift_plot(Scores((score(0.4, lift=None, baseline=None),)))


def test_an_empty_table_has_no_heat_map() -> None:
    with pytest.raises(InputError, match="heat map"):
        figures.score_heatmap(Scores())


def test_many_systems_are_cut_to_the_best() -> None:
    rows = tuple(score(0.01 * number, subset, f"s{number:02}") for number in range(30) for subset in "abcd")
    shown = figures.lift_systems(Scores(rows), "P@1")
    assert shown == [f"s{number:02}" for number in range(30 - len(shown), 30)]
    assert len(shown) < 30


def test_trends_have_a_panel_for_each_property_and_the_domains(scores: Scores, properties: list[SubsetFacts]) -> None:
    found = find_trends(scores, properties)
    figure = figures.trends(found)
    labels = [axes.get_xlabel() for axes in figure.axes]
    assert labels == ["clips", "classes", "clips per class", "mean duration (s)", "domain (subsets)"]
    assert not any("ρ" in text for text in texts(figure))  # of four subsets
    more = [*properties, SubsetFacts(subset="e", clips=500, classes=9)]
    rows = [*scores, *(replace(row, subset="e", value=0.9) for row in scores.select(subset="d", protocol="all"))]
    figure = figures.trends(find_trends(Scores(tuple(rows)), more, ["P@1", "GSR"]))
    assert sum("ρ = " in text for text in texts(figure)) == 6
    with pytest.raises(InputError, match="three subsets"):
        find_trends(scores.select(subset="a"), properties)


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_a_figure_is_one_file_and_always_the_same(scores: Scores, tmp_path: Path, suffix: str) -> None:
    paths = [tmp_path / f"{name}.{suffix}" for name in ("one", "two")]
    for path in paths:
        figures.save(figures.lift_plot(scores), str(path))
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_a_figure_has_a_known_suffix(scores: Scores, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"\.png, \.svg or \.pdf"):
        figures.save(figures.lift_plot(scores), str(tmp_path / "figure.txt"))


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.names: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.ids += [value for name, value in attrs if name == "id" and value]


def test_inline_drawings_share_no_id_and_name_no_address(scores: Scores) -> None:
    one, two = (figures.as_svg(figures.lift_plot(scores), name, 'a "drawing" <b>') for name in ("one", "two"))
    found = [Tags(), Tags()]
    for parser, drawing in zip(found, (one, two), strict=True):
        parser.feed(drawing)
    assert found[0].ids
    assert not set(found[0].ids) & set(found[1].ids)
    assert "http" not in one
    assert 'aria-label="a &quot;drawing&quot; &lt;b&gt;"' in one
    assert one == figures.as_svg(figures.lift_plot(scores), "one", 'a "drawing" <b>')
    for reference in re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', one):
        assert "".join(reference) in found[0].ids


def test_drawings_follow_the_colours_of_the_page(scores: Scores) -> None:
    drawing = figures.as_svg(figures.score_heatmap(scores), "x", "x")
    assert "var(--ink)" in drawing
    assert "#1b2733" not in drawing


def test_labels_cannot_write_markup_or_mathematics() -> None:
    labels = [r"<script>alert(1)</script>", r"$\frac{1}{0}$", "a & b", "鳥", ""] * 4
    drawing = figures.as_svg(
        figures.projection(np.random.default_rng(0).standard_normal((20, 3)), labels), "map", "map"
    )
    parser = Tags()
    parser.feed(drawing)
    assert "script" not in parser.names
    assert "＄" in drawing


def test_a_map_marks_what_is_wrong_and_greys_what_is_too_much() -> None:
    vectors = np.random.default_rng(0).standard_normal((80, 3))
    labels = [f"class {number % 40}" for number in range(80)]
    figure = figures.projection(vectors, labels, wrong=[number == 0 for number in range(80)])
    assert len(figure.axes[0].collections) > 28


def test_confusions_count_what_is_taken_for_what() -> None:
    labels = ["a", "a", "a", "b", "b", None]
    found = confusions(labels, [1, 3, 4, 0, 3, np.nan])
    assert found.classes == ["a", "b"]
    assert found.counts.tolist() == [[1, 2], [1, 1]]
    assert [tuple(pair) for pair in top_confusions(found)] == [("a", "b", 2, 3), ("b", "a", 1, 2)]
    assert {"67", "33", "50"} <= set(texts(figures.confusion(found)))


def test_confused_classes_stand_side_by_side() -> None:
    labels = [name for name in "abcd" for _ in range(4)]
    nearest = [8, 1, 8, 1, 5, 4, 7, 6, 0, 9, 0, 9, 13, 12, 15, 14]
    order = most_confused(confusions(labels, nearest), 4).classes
    assert abs(order.index("a") - order.index("c")) == 1
    assert len(most_confused(confusions(labels, nearest), 2).classes) == 2


@pytest.fixture
def close_up() -> CloseUp:
    vectors = np.array([[0.0], [0.1], [5.0], [5.1], [0.12], [5.2], [9.0]])
    return CloseUp(
        subset="s",
        system="x",
        distance="euclidean",
        labels=["a", "a", "b", "b", "b", "a", "a"],
        ids=[f"clip{number}" for number in range(7)],
        nearest=[1, 4, 3, 2, 1, 3, 5],
        vectors=vectors,
        groups=["g", "g", "h", "h", "g", None, None],
        per_point={"GSR": np.array([0.6, 0.4, 0.9, 0.8, 0.1, 0.05, 0.5])},
    )


def test_the_worst_retrievals_come_first_one_for_each_pair(close_up: CloseUp) -> None:
    assert worst_queries(close_up) == [5, 4, 1]


def test_a_retrieval_names_its_neighbours_and_the_nearest_of_its_own(close_up: CloseUp) -> None:
    (found,) = retrieve(close_up, [4])
    assert [near.row for near in found.neighbours] == [1, 0, 2]
    assert [near.same for near in found.neighbours] == [False, False, True]
    assert found.neighbours[0].distance == pytest.approx(0.02)
    assert (found.own_rank, found.candidates) == (3, 6)
    assert found.own is not None
    assert found.own.distance == pytest.approx(4.88)


def test_hubs_are_nearest_to_at_least_four() -> None:
    crowd = CloseUp(subset="s", system="x", distance="cosine", labels=list("abbbb"), ids=list("vwxyz"),
                    nearest=[1, 0, 0, 0, 0], per_point={"hub_ratio": np.arange(5.0)})  # fmt: skip
    assert [tuple(hub) for hub in hubs(crowd)] == [(0, 4, 4, 0)]


def test_a_close_up_has_fields_of_one_length() -> None:
    with pytest.raises(InputError, match="lengths"):
        CloseUp(subset="s", system="x", distance="cosine", labels=["a"], ids=["1", "2"], nearest=[0])


def tone(frequency: float, seconds: float, rate: int) -> np.ndarray:
    return np.sin(2 * np.pi * frequency * np.arange(int(seconds * rate)) / rate).astype(np.float32)


def test_a_spectrogram_puts_a_tone_where_it_sounds() -> None:
    from earmark.report.figures._points import spectrogram_levels

    levels, end, top = spectrogram_levels(tone(2000, 0.5, 16_000), 16_000, 1.0)
    loudest = levels[:, : levels.shape[1] // 2].mean(axis=1).argmax() / len(levels) * top
    assert loudest == pytest.approx(2000, abs=120)
    assert end == 1.0
    assert levels[:, -20:].max() == 0.0
    assert figures.spectrogram_png(np.zeros(5, np.float32), 16_000).startswith(b"\x89PNG")


def test_a_player_cuts_to_the_loudest_part_and_stays_in_its_room() -> None:
    rate = 16_000
    samples = np.concatenate([0.01 * tone(300, 4, rate), tone(500, 1, rate), 0.01 * tone(300, 4, rate)])
    sound = audio_player.cut(samples, rate, 2.0)
    assert sound.seconds == 2.0
    assert 3.0 <= sound.start <= 4.0
    made = audio_player.player(sound, 30_000)
    assert made is not None
    assert len(made.uri) <= 30_000
    assert "of 9.0 s" in made.remark
    assert audio_player.player(sound, 500) is None


def test_sound_above_hearing_is_played_slower() -> None:
    made = audio_player.player(audio_player.cut(tone(60_000, 0.2, 250_000), 250_000), 1_000_000)
    assert made is not None
    assert made.remark == "played 8 times slower"
    plain = audio_player.player(audio_player.cut(tone(600, 0.2, 96_000), 96_000), 1_000_000)
    assert plain is not None
    assert plain.remark == ""


def test_without_soundfile_sounds_are_wav(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "soundfile", None)
    made = audio_player.player(audio_player.cut(tone(600, 0.2, 44_100), 44_100), 1_000_000)
    assert made is not None
    kind, data = made.uri.split(";base64,")
    assert kind == "data:audio/wav"
    with wave.open(io.BytesIO(b64decode(data))) as heard:
        assert (heard.getframerate(), heard.getnchannels(), heard.getsampwidth()) == (16_000, 1, 2)
        assert heard.getnframes() == pytest.approx(3200, abs=2)


@pytest.mark.parametrize("samples", [np.zeros(0), np.zeros(100), np.full(100, np.nan), np.zeros((50, 2))])
def test_odd_sounds_are_still_cut(samples: np.ndarray) -> None:
    sound = audio_player.cut(samples, 8000)
    assert np.isfinite(sound.samples).all()
    assert sound.samples.ndim == 1


def test_without_matplotlib_one_sentence_says_what_to_install(scores: Scores, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name.split(".")[0] == "matplotlib":
            raise ImportError(name)
        return real(name, *rest, **more)

    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtra, match=r"earmark\[plots\]"):
        figures.score_heatmap(scores)
