"""Label-noise curves: what is left, of the value and above chance, and which systems are drawn."""

from __future__ import annotations

from typing import Any

import pytest

from earmark.errors import InputError
from earmark.report.figures._noise import noise_curves
from earmark.report.noise import ABOVE_CHANCE, OF_VALUE, find_noise, noise_sentences
from earmark.scores import Row, Scores

LEFT = {0.0: 1.0, 0.05: 0.9, 0.2: 0.6}


def rows(system: str, subset: str, value: float, metric: str = "P@1", **cells: Any) -> list[Row]:
    given = {"suite": "s", "system": system, "distance": "cosine", "metric": metric, **cells}
    made = []
    for share, left in LEFT.items():
        name = f"{subset}~noise{share:g}" if share else subset
        made.append(Row(subset=name, value=value * left, baseline=0.1, lift=value * left - 0.1, **given))
    return made


def test_what_is_left_of_the_value_and_above_chance() -> None:
    found = find_noise(Scores((*rows("a", "A", 0.8), *rows("a", "A", 0.3, "GSR"))))
    assert found.shares == (0.0, 0.05, 0.2)
    curves = {curve.metric: curve for curve in found.curves}
    for metric, value in (("P@1", 0.8), ("GSR", 0.3)):
        left = curves[metric].left
        assert left[OF_VALUE] == pytest.approx([1.0, 0.9, 0.6])
        assert left[ABOVE_CHANCE] == pytest.approx([1.0, (0.9 * value - 0.1) / (value - 0.1),
                                                    (0.6 * value - 0.1) / (value - 0.1)])  # fmt: skip
    text = " ".join(noise_sentences(found))
    assert "At 20 % noise P@1 60 % and GSR 60 % of the clean score are left." in text
    assert "P@1 54 % and GSR 40 % of the clean score's lead over chance are left." in text


def test_a_share_of_few_clips_is_said_as_it_came_out() -> None:
    text = " ".join(noise_sentences(find_noise(Scores(tuple(rows("a", "A", 0.8, n=54))))))
    assert "5 % of 54 clips is 5.6 % and 20 % of 54 clips is 20.4 %" in text
    assert "rounded" not in " ".join(noise_sentences(find_noise(Scores(tuple(rows("a", "A", 0.8, n=1000))))))


def test_a_value_that_is_no_better_than_chance_has_nothing_to_lose() -> None:
    found = find_noise(Scores(tuple(rows("a", "A", 0.15, baseline_high=0.2))))
    assert found.kinds == [OF_VALUE]
    assert "scores are not above it" in " ".join(noise_sentences(found))


def test_the_best_of_each_model_is_drawn_and_many_subsets_are_averaged() -> None:
    table = []
    for place, subset in enumerate("ABCDE"):
        table += rows("a mean_time", subset, 0.5 + 0.05 * place)
        table += rows("a max_time", subset, 0.4)
        table += rows("b", subset, 0.3)
    table += rows("c", "A", 0.9)  # lacks subsets
    found = find_noise(Scores(tuple(table)), most=2)
    assert [line.system for line in found.lines] == ["a mean_time", "b"]
    assert found.averaged == 5
    assert found.subsets == ("mean of 5 subsets",)
    assert found.curves[0].values[0] == pytest.approx(0.6)
    assert found.curves[0].left[OF_VALUE] == pytest.approx([1.0, 0.9, 0.6])
    assert "Drawn are 2 of 4 configurations" in " ".join(noise_sentences(found))
    everyone = find_noise(Scores(tuple(table)))
    assert [line.system for line in everyone.lines] == ["a mean_time", "b", "c"]
    assert everyone.subsets == ("A",)  # the only one that all three have


def test_across_groups_counts_where_it_was_measured_and_one_level_is_enough() -> None:
    table = [*rows("a", "A", 0.8), *rows("a", "A", 0.5, protocol="across_groups")]
    found = find_noise(Scores(tuple(row for row in table if row.label_noise in (0.0, 0.2))))
    assert found.curves[0].values[0] == 0.5
    assert found.shares == (0.0, 0.2)
    assert found.protocol == "across groups"


def test_a_figure_is_of_one_protocol() -> None:
    table = [row for name in "ABCD" for row in rows("a", name, 0.8)]
    table += [row for name in "EFG" for row in rows("a", name, 0.5, protocol="across_groups")]
    found = find_noise(Scores(tuple(table)))
    assert (found.subsets, found.protocol) == (("A", "B", "C", "D"), "all pairs")
    assert "Left out: 3 subsets measured under another protocol only." in noise_sentences(found)
    tied = find_noise(Scores(tuple(row for row in table if not row.subset.startswith("D"))))
    assert (tied.subsets, tied.protocol) == (("E", "F", "G"), "across groups")
    both = [*rows("a", "A", 0.8), *rows("a", "A", 0.4, "GSR"), *rows("a", "A", 0.5, protocol="across_groups")]
    found = find_noise(Scores(tuple(both)))
    assert (found.metrics, found.protocol) == (("P@1", "GSR"), "all pairs")  # GSR has no other


def test_nothing_is_left_of_a_metric_of_which_less_is_better() -> None:
    table = Scores((*rows("a", "A", 0.2, "CS"), *rows("a", "A", 0.8)))
    found = find_noise(table, ("P@1", "CS"))
    assert found.metrics == ("P@1",)
    assert "Not drawn: CS, of which less is better." in noise_sentences(found)
    with pytest.raises(InputError, match=r"Less is better in CS.*--vary noise"):
        find_noise(table, ("CS",))
    unnamed = Scores((*rows("a", "A", 0.2, "CS"), *rows("a", "A", 0.8, "P@5")))
    assert find_noise(unnamed).metrics == ("P@5",)


def test_without_noise_it_says_what_to_run() -> None:
    with pytest.raises(InputError, match=r"--label-noise 0\.01,0\.05,0\.1,0\.2"):
        find_noise(Scores(tuple(row for row in rows("a", "A", 0.5) if not row.label_noise)))
    with pytest.raises(InputError, match="both with and without"):
        find_noise(Scores(tuple(row for row in rows("a", "A", 0.5) if row.label_noise)))


def test_a_panel_for_each_subset_and_kind() -> None:
    pytest.importorskip("matplotlib")
    table = [row for subset in "AB" for row in rows("a", subset, 0.6)]
    figure = noise_curves(find_noise(Scores(tuple(table))))
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["A", "B", "", ""]
    drawn = [line.get_ydata() for line in figure.axes[0].lines if line.get_marker() == "o"]
    assert list(drawn[0]) == pytest.approx([100.0, 90.0, 60.0])
