"""Ablations of a run: DTW with every distance known, whitening, and variants before, after and by their difference.

Differences are taken from values that the measurements left in the cache; `earmark.compare`, which measures the vectors
anew, must say the same.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from scipy.spatial.distance import squareform
from tests.representations import layered, sounds

import earmark
from earmark import audio, cli
from earmark.embedding import pca
from earmark.errors import InputError, UsageError
from earmark.evaluation import dtw
from earmark.pipeline import run
from earmark.representations import _sequences as sequences
from earmark.representations import compare_variants, load_points, load_vectors
from earmark.representations._folder import open_clips
from earmark.representations.config import RunConfig
from earmark.scores import Row, load_scores

TOWERS = {"name": "towers", "spec": "tests.representations.layered:Towers"}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A manifest of 24 rising and falling tones of many lengths in two subsets, by five birds; two clips have no label
    and one class is too small."""
    folder = tmp_path_factory.mktemp("calls")
    lines = []
    for subset in ("A", "B"):
        for number in range(13):
            label = ["rise", "fall", "hum"][number % 3] if number < 12 else ""
            generator = np.random.default_rng([ord(subset), number])
            t = np.arange(int((0.06 + 0.02 * (number % 4)) * sounds.RATE)) / sounds.RATE
            course = {"rise": t / t[-1], "fall": 1 - t / t[-1]}.get(label, 0.5 + 0 * t)
            sound = 0.3 * np.sin(2 * np.pi * np.cumsum(500 + 1500 * course) / sounds.RATE)
            sound += 0.25 * generator.standard_normal(len(t))
            soundfile.write(folder / f"{subset}{number}.wav", sound, sounds.RATE)
            lines.append([f"{subset}{number}.wav", label, subset, f"bird{number % 5}"])
        soundfile.write(folder / f"{subset}alone.wav", sounds.tone(700, 3 + ord(subset)), sounds.RATE)
        lines.append([f"{subset}alone.wav", "alone", subset, "bird0"])
    with (folder / "calls.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([["path", "label", "subset", "group"], *lines])
    return folder / "calls.csv"


@pytest.fixture(scope="module")
def finished(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with every kind of variant."""
    place = tmp_path_factory.mktemp("run")
    given = sounds.config(
        corpus, place, extractors=[TOWERS], layers=[1, 2], pooling=["mean_time", "max_time"], pca=["none", "2w"],
        distances=["spearman"], dtw={"candidates": "all", "stride": 1, "dimension": 4}, correct=["none", "icdm"],
        across_groups=True,
    )  # fmt: skip
    run(given)
    return place / "run"


def slow_distances(folder: Path, subset: str, layer: int) -> np.ndarray[Any, Any]:
    """The DTW distances of all clips of a subset that are scored, clip by clip."""
    clips = [clip for clip in open_clips(folder)["calls", subset].values() if clip.label not in (None, "alone")]
    waveforms = [audio.peak_normalise(clip.read(sounds.RATE)[0]) for clip in clips]
    frames = [layered.Towers().layer(waveform, layer).values for waveform in waveforms]
    ready = dtw.prepare(frames, components=4, stride=1)
    return squareform(dtw.all_distances(ready))


def same(row: Row, other: Row, *names: str) -> None:
    for name in names or ("value", "low", "high", "p_value", "n", "units", "comparisons"):
        one, two = getattr(row, name), getattr(other, name)
        assert one == two if one is None or two is None else one == pytest.approx(two, abs=1e-6), (row.key, name)


def test_all_dtw_distances_are_measured_like_any_distances(finished: Path) -> None:
    far = slow_distances(finished, "A", 1)
    vectors = load_vectors(finished, "A", "towers@1 mean_time")
    kept = [row for row, label in enumerate(vectors.labels) if label not in (None, "alone")]
    labels = [vectors.labels[row] for row in kept]
    wanted = earmark.evaluate(
        distances=far, labels=labels, groups=[vectors.groups[row] for row in kept], across_groups=True,
        metrics="P@1,P@5,GSR", correct="none,icdm", distance_name="spearman+dtw",
    )  # fmt: skip
    scores = load_scores(finished / "scores.csv")
    for row in wanted:
        found = scores.row(
            row.metric, subset="A", system="towers@1 mean_time", distance="spearman+dtw", correction=row.correction,
            protocol=row.protocol,
        )  # fmt: skip
        same(found, row, "value", "low", "high", "n", "unit", "units", "interval")
        assert "1 unlabelled row dropped" in found.reason
        assert found.ablation == "dtw"
    # GSR by its definition
    alike = np.array(labels)[:, None] == np.array(labels)
    np.fill_diagonal(far, np.nan)
    near, mean = np.nanmin(np.where(alike, np.nan, far), axis=1), np.nanmean(np.where(alike, far, np.nan), axis=1)
    assert wanted.value("GSR", protocol="all", correction="none") == pytest.approx(
        ((near - mean) / (near + mean) + 1).mean() / 2
    )
    points = load_points(finished, "A", "towers@1 mean_time", "spearman+dtw")["all", "GSR"]
    assert np.isfinite(points).tolist() == [row in kept for row in range(14)]


def test_fewer_candidates_say_what_they_lack(corpus: Path, tmp_path: Path) -> None:
    given = sounds.config(corpus, tmp_path, dtw=5, distances=["spearman"], across_groups=True)
    rows = run(given).scores.select(subset="A", distance="spearman+dtw")
    status = {(row.protocol, row.metric): row.status for row in rows}
    assert status == {
        ("all", "P@1"): "ok", ("all", "P@5"): "ok", ("all", "GSR"): "not_applicable",
        **{("across_groups", metric): "not_applicable" for metric in ("P@1", "P@5", "GSR")},
    }  # fmt: skip
    lacking = "needs the DTW distances to all 11 other clips, and each clip was compared with 5: give --dtw all"
    assert rows.row("GSR", protocol="all").reason.endswith(lacking)
    complete = run({**given, "dtw": 11}).scores
    assert complete.row("GSR", subset="A", distance="spearman+dtw", protocol="across_groups").status == "ok"
    assert run({**given, "dtw": "all"}).counts["evaluate"]["computed"] == 0
    assert complete.row("P@1", subset="B", distance="spearman+dtw", protocol="all").low is not None


def test_distances_that_do_not_fit_into_memory_are_refused_in_words(corpus: Path, tmp_path: Path) -> None:
    config = RunConfig.make(sounds.config(corpus, tmp_path, dtw="all", memory="1MB"))
    many = sequences.alignment_of(["a"] * 1000, ["0"] * 1000, None, config)
    with pytest.raises(InputError, match=r"all pairs of 1000 clips take .* and --memory allows .*: draw clips"):
        sequences.all_distances(many, None, "", config)  # type: ignore[arg-type]


def test_whitened_components(finished: Path) -> None:
    raw, white = (load_vectors(finished, "B", f"towers@2 mean_time{code}").values for code in ("", " D2W"))
    plain = pca.reduce(raw, 2).vectors
    assert np.allclose(white.std(axis=0, ddof=1), 1.0, atol=1e-5)
    assert np.allclose(white, plain / plain.std(axis=0, ddof=1), atol=1e-5)


@pytest.mark.parametrize(
    ("vary", "reference", "before", "others"),
    [
        ("pooling", None, "towers@2 mean_time", {"max_time": "towers@2 max_time"}),
        ("pooling", "XT", "towers@2 max_time", {"mean_time": "towers@2 mean_time"}),
        ("pca", None, "towers@2 mean_time", {"D2W": "towers@2 mean_time D2W"}),
        ("pca", "2w", "towers@2 mean_time D2W", {"no PCA": "towers@2 mean_time"}),
        ("layer", None, "towers@2 mean_time", {"1": "towers@1 mean_time"}),
    ],
)
def test_differences_are_those_of_compare(
    finished: Path, vary: str, reference: str | None, before: str, others: dict[str, str]
) -> None:
    systems = [before, *others.values()]
    found = compare_variants(finished, vary, reference=reference, subset="A", systems=systems)
    vectors = {system: load_vectors(finished, "A", system) for system in systems}
    first = vectors[before]
    wanted = earmark.compare(
        {system: of.values for system, of in vectors.items()}, first.labels, groups=first.groups, across_groups=True,
        reference=before, distance="spearman", metrics="P@1,P@5,GSR",
    )  # fmt: skip
    pairs = [pair for pair in found.pairs if (pair.after.distance, pair.after.correction) == ("spearman", "none")]
    assert len(pairs) == len(wanted.rows)
    assert {pair.levels[1] for pair in pairs} == set(others)
    for pair in pairs:
        other = wanted.row(
            f"{pair.after.metric}:difference", system=f"{pair.after.system} - {before}", protocol=pair.after.protocol
        )
        same(pair.difference, other, "value", "n", "units")
        assert pair.difference.comparisons == (4 if vary == "layer" else 2)  # two corrections; of layers, with DTW
        assert pair.difference.value == pytest.approx((pair.after.value or 0.0) - (pair.before.value or 0.0))
        assert not found.means  # of one subset


def test_dtw_against_the_vectors_it_starts_from(finished: Path) -> None:
    system = "towers@1 mean_time D2W"
    found = compare_variants(finished, "dtw", subset="A", systems=[system], across_groups=False, metrics=["GSR", "P@1"])
    vectors = load_vectors(finished, "A", system)
    kept = [row for row, label in enumerate(vectors.labels) if label not in (None, "alone")]
    wanted = earmark.compare(
        earmark.vectors.given_distances(slow_distances(finished, "A", 1)), vectors.values[kept],
        [vectors.labels[row] for row in kept], groups=[vectors.groups[row] for row in kept], distance="spearman",
        metrics="P@1,GSR", names=("dtw", "pooled"),
    )  # fmt: skip
    plain = [pair for pair in found.pairs if pair.after.correction == "none"]
    assert [pair.after.metric for pair in plain] == ["GSR", "P@1"]
    for pair in plain:
        assert pair.levels == ("spearman", "spearman+dtw")
        assert pair.difference.distance == "spearman+dtw - spearman"
        same(pair.difference, wanted.row(f"{pair.after.metric}:difference"), "value", "n", "units")
        assert pair.difference.comparisons == 2  # with and without correction


def test_one_comparison_has_the_interval_of_compare(corpus: Path, tmp_path: Path) -> None:
    """Nothing to correct for: interval and p-value are those of `compare`, too; and means over subsets."""
    run(sounds.config(corpus, tmp_path, pooling=["mean_time", "max_time"], label_noise=[0.3]))
    found = compare_variants(tmp_path / "run", "pooling")
    for subset in ("A", "B"):
        a, b = (load_vectors(tmp_path / "run", subset, f"bands {pooling}") for pooling in ("max_time", "mean_time"))
        wanted = earmark.compare(a.values, b.values, a.labels, groups=a.groups, metrics="P@1,P@5,GSR")
        for pair in found.pairs:
            if pair.after.subset == subset:
                same(pair.difference, wanted.row(f"{pair.after.metric}:difference"))
    for mean in found.means:
        of = [pair for pair in found.pairs if pair.after.metric == mean.after.metric]
        for name in ("before", "after", "difference"):
            values = [getattr(pair, name).value for pair in of]
            assert getattr(mean, name).value == pytest.approx(np.mean(values))
        assert mean.difference.low is not None
        assert mean.difference.subset == "mean"
        assert "mean of 2 subsets" in mean.difference.reason
    assert [mean.after.metric for mean in found.means] == ["P@1", "P@5", "GSR"]
    keys = [row.key for row in found.scores]
    assert len(set(keys)) == len(keys) == 3 * 3 * 3
    noisy = compare_variants(tmp_path / "run", "noise", systems=["bands max_time"], metrics=["P@1"])
    (pair, _), (mean,) = noisy.pairs, noisy.means
    assert pair.levels == ("as labelled", "30 %")
    assert (pair.before.subset, pair.after.subset, pair.difference.subset) == ("A", "A~noise0.3", "A~noise0.3")
    assert pair.difference.low is not None
    assert (mean.before.subset, mean.after.subset) == ("mean", "mean~noise0.3")


def test_what_cannot_be_varied_is_told(finished: Path, corpus: Path, tmp_path: Path) -> None:
    run(sounds.config(corpus, tmp_path))
    for vary, said in (
        ("dtw", "nothing that differs in dtw: run it with --distance spearman --dtw all"),
        ("pooling", r"differs in pooling \(mean_time\): run it with --pool"),
        ("pca", r"differs in pca \(no PCA\)"),
        ("layer", "--layers all"),
        ("noise", "--label-noise"),
        ("correct", "--correct none,icdm"),
    ):
        with pytest.raises(InputError, match=said):
            compare_variants(tmp_path / "run", vary)
    for options, said in (
        ({"reference": "min_time"}, "was not run with pooling 'min_time'"),
        ({"systems": ["towers@1 mean_tim"]}, 'Did you mean "towers@1 mean_time'),
        ({"metrics": ["CSR"]}, "holds no CSR"),
    ):
        with pytest.raises((InputError, UsageError), match=said):
            compare_variants(finished, "pooling", **options)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="There is no choice 'dwt'"):
        compare_variants(finished, "dwt")
    same_twice = compare_variants(finished, "pooling", subset="A", systems=["towers@1 mean_time", "towers@1 max_time"])
    assert "towers@1 · spearman+dtw: max_time and mean_time are one measurement, and not compared" in same_twice.notes


def test_the_table_as_ablations_are_printed(finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["compare", str(finished), "--vary", "dtw", "--systems", "towers@1 mean_time", "--metrics", "P@1,GSR"]
    targets = [tmp_path / f"dtw{ending}" for ending in (".md", ".tex", ".csv")]
    for target in targets:
        assert cli.main([*words, "--table", str(target), "--quiet"]) == 0
    assert capsys.readouterr().out.startswith(
        "Value [95 % interval]; difference on the same clips, paired, corrected for 2 "
    )
    lines = targets[2].read_text().splitlines()
    assert lines[0] == "subset,model,pairs,metric,spearman,spearman+dtw,difference,p"
    assert len(lines) == 1 + 2 * (3 * 2 * 2)  # metrics; A, B and mean; protocols; corrections
    assert r"\toprule" in targets[1].read_text()
    assert targets[0].read_text().count("| A |") == 8
    for wrong, said in (
        (["--table", "x.md"], "--table is for --vary"),
        (["--vary", "dtw", "--table", "x.png"], "choose a name that ends in .md"),
        (["--vary", "dtw", "--distance", "cosine"], "--distance says how to measure"),
    ):
        assert cli.main(["compare", str(finished), *wrong]) == 2
        assert said in capsys.readouterr().err
