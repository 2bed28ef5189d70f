"""Ablation, aggregate and statistic: columns of a score row that also stand in its names."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import earmark
from earmark.corpora.clips import Clip, Corpus, CorpusCard
from earmark.errors import InputError
from earmark.report.html import ReportData, render
from earmark.scores import Row, Scores, aggregate, read_scores, validate
from earmark.scores.spelling import (
    columns_of,
    mean_over,
    split_metric,
    with_noise,
    with_sample,
    without_noise,
    without_sample,
    without_samples,
)

RESERVED = ["mean", "mean:speech", "mean:", "x~noise0.05", "~noise1"]
PLAIN = ["", "x~noise", "x~50x5", "meaning", "mean_pitch", "a~b", "noise0.05", "x~noisey"]


def test_names_and_columns_go_both_ways() -> None:
    assert columns_of(with_noise("BS1", 0.05), "", "", "").ablation == "noise0.05"
    assert without_noise(with_noise("BS1", 1e-5)) == "BS1"
    assert with_noise("BS1", 0.0) == "BS1"
    assert columns_of(mean_over("public"), "", "", "").aggregate == "mean:public"
    assert mean_over("mean") == "mean"
    assert split_metric("pesq:p1:difference") == ("pesq:p1", "difference")
    assert split_metric("odd:metric") == ("odd:metric", "")


def test_a_sample_stands_in_the_name_and_is_a_subset_of_its_own() -> None:
    name = with_noise(with_sample("BS1", "50x5:random"), 0.05)
    assert name == "BS1~50x5:random~noise0.05"
    assert columns_of(name, "", "", "").ablation == "sample50x5:random+noise0.05"
    assert (without_sample(name), without_noise(name)) == ("BS1~noise0.05", "BS1~50x5:random")
    assert without_samples("sample50x5+noise0.05") == "noise0.05"
    assert with_sample("BS1", "") == without_sample("BS1") == "BS1"
    row = Row(subset="BS1~50xall", distance="cosine", metric="P@1", value=0.5)
    assert (row.ablation, row.single, row.labelled_subset) == ("sample50xall", True, "BS1~50xall")
    assert not validate([replace(row, suite="s", system="a")])
    assert columns_of("BS1~50x5:seed3", "", "", "").ablation == "sample50x5:seed3"
    assert without_sample("BS1~50x5:random:seed3") == "BS1"
    for other in ("BS1~50x", "BS1~x5", "BS1~50x5b", "BS1 50x5"):
        assert columns_of(other, "", "", "").ablation == ""


def test_a_row_knows_its_columns_however_it_was_made() -> None:
    row = Row(subset="BS1~noise0.25", distance="cosine+dtw", metric="P@1")
    assert (row.ablation, row.label_noise, row.labelled_subset, row.single) == ("noise0.25+dtw", 0.25, "BS1", False)
    later = replace(Row(subset="BS1", distance="cosine+dtw", metric="P@1"), subset="BS1~noise0.25")
    assert later == row
    assert replace(later, metric="P@1:difference").statistic == "difference"
    assert Row(subset="mean:speech", metric="pesq").aggregate == "mean:speech"
    assert not Row(subset="mean", metric="pesq").single


def test_the_columns_survive_every_format(tmp_path: Path) -> None:
    rows = (Row(subset="BS1~noise0.25", metric="P@1", value=0.5), Row(subset="mean", metric="pesq:p1", value=2.0))
    for suffix in ("csv", "jsonl", "json", "parquet"):
        Scores(rows).write(tmp_path / f"scores.{suffix}")
        assert read_scores(tmp_path / f"scores.{suffix}").rows == rows


@pytest.mark.parametrize("name", RESERVED)
def test_a_subset_that_would_be_read_as_something_else_is_refused_at_the_door(name: str, tmp_path: Path) -> None:
    vectors, labels = np.eye(6), list("aabbcc")
    doors: list[Any] = [
        lambda: Corpus(CorpusCard(name="mine"), [Clip(id="a", subset=name)]),
        lambda: earmark.evaluate(vectors, labels, subset=name),
        lambda: earmark.hubness(vectors, subset=name),
        lambda: earmark.compare(vectors, vectors, labels, subset=name),
        lambda: earmark.fidelity(vectors, vectors, subset=name),
    ]
    for door in doors:
        with pytest.raises(InputError, match=f'a subset may not be called "{name}"'):
            door()


@pytest.mark.parametrize("name", PLAIN)
def test_any_other_name_is_a_subset_like_any_other(name: str) -> None:
    rows = tuple(
        Row(suite="mine", subset=subset, system=system, distance="cosine", metric="P@1", value=value, n=10)
        for subset, value in ((name, 0.25), ("other", 0.75))
        for system in ("a", "b")
    )
    Corpus(CorpusCard(name="mine"), [Clip(id="a", subset=name)])
    assert aggregate(Scores(rows), "mean").value("P@1", system="a") == 0.5
    page = render(ReportData(title="One", scores=Scores(rows)))
    assert "0.5" in page or "50.0" in page


@pytest.mark.parametrize("subset", ["A~noise1-2", "A~noise0.1.2", "A~noise", "A~noise0.1e"])
def test_a_name_that_is_no_label_noise_is_an_ordinary_name(subset: str) -> None:
    row = Row(suite="s", subset=subset, system="a", metric="P@1", value=0.5, ablation="noise-free")
    assert row.single is False or row.label_noise == 0.0
    assert Row(suite="s", subset=subset, system="a", metric="P@1", value=0.5).ablation == ""


def test_columns_that_contradict_the_names_are_a_problem() -> None:
    row = Row(suite="s", subset="F", system="a", metric="P@1", value=0.5, ablation="noise0.9")
    assert any("the names of the row say" in problem for problem in validate([row]))
    mean = Row(suite="s", subset="G", system="a", metric="P@1", value=0.5, aggregate="mean")
    assert any("leave aggregate empty" in problem for problem in validate([mean]))
    assert not validate([Row(suite="s", subset="F~noise0.9", system="a", metric="P@1", value=0.5)])
