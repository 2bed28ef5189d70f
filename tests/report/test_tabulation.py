"""Tables for a paper: the printed ones come out again, and those of runs say what was measured and nothing else."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path
from statistics import fmean, harmonic_mean

import pytest

import earmark
from earmark import published
from earmark.codecs.runs.runner import run_codecs
from earmark.errors import EarmarkError, InputError, UsageError
from earmark.report.tabulation import KINDS, tabulate
from earmark.scores import Row, Scores, aggregate
from earmark.tables import Cell, Table

DISTANCES = {"C": "cosine", "E": "euclidean", "S": "spearman"}
METRICS = {"Weighted Purity": "purity"}


def records(table: Table) -> dict[tuple[str, str], dict[str, object]]:
    return {(str(row["system"]), str(row.get("distance", ""))): row for row in table.records()}


def score(system: str, subset: str, value: float | None, metric: str = "P@1", **cells: object) -> Row:
    return Row(system=system, subset=subset, value=value, metric=metric, **cells)  # type: ignore[arg-type]


# --- what the papers print ----------------------------------------------------------------------------------------


def test_table_2_of_vocsim_comes_out_again() -> None:
    (table,) = tabulate("published:vocsim", with_repeats=True)
    rows = records(table)
    equal = []
    for cell in published.read("vocsim_table2_main"):
        method, _, letter = cell["full_table_key"].rpartition(" ")
        row = rows[method, DISTANCES[letter]]
        name = f"{cell['split']} {cell['metric']}"
        value, low = float(row[name]), float(row[f"{name} low"])  # type: ignore[arg-type]
        equal.append(f"{100 * value:.1f}" == cell["mean_pct"])
        assert f"{100 * (value - low):.1f}" == cell["margin_pct"]
    assert (sum(equal), len(equal)) == (59, 60)
    assert list(table.footnotes) == ["the paper's Table 2 prints 54.4"]
    assert len(rows) == 10
    assert "66.8 ± 0.8" in table.to_text()


def test_without_the_repeats_a_mean_over_them_is_a_dash_and_the_output_says_how_to_get_it() -> None:
    made = tabulate("published:vocsim")
    row = records(made.tables[0])["EWMTF", "spearman"]
    assert row["public P@1"] is None
    assert row["blind P@1"] is None
    assert "–² " in made.to_text()
    assert made.tables[0].footnotes[1] == "no mean: 4 subsets repeat the values of another configuration"
    assert any("--with-repeats" in remark for remark in made.remarks)
    (kept,) = (records(table) for table in tabulate("published:vocsim", metrics="P@1", systems="EWMTF D100/spearman"))
    assert list(kept) == [("EWMTF D100", "")]


@pytest.mark.parametrize("metric", ["P@1", "GSR", "CSR", "CS", "Weighted Purity"])
def test_tables_19_to_25_come_out_again_with_their_averages(metric: str) -> None:
    name = METRICS.get(metric, metric)
    (table,) = tabulate("published:vocsim", "full", metrics=name, with_repeats=True, missing="skip")
    rows = records(table)
    for cell in published.read("vocsim_full_results"):
        if cell["metric"] == metric and cell["value_pct"] and "sentinel" not in cell["check"]:
            value = rows[cell["method"], DISTANCES[cell["distance"]]][cell["subset"]]
            assert f"{100 * float(value):.1f}" == cell["value_pct"]  # type: ignore[arg-type]
    over = "Avg (public)" if metric in ("P@1", "GSR") else "Avg (all)"
    printed = [cell for cell in published.read("vocsim_full_results_averages") if cell["metric"] == metric]
    assert len(printed) == len(rows)
    for cell in printed:
        row = rows[cell["method"], DISTANCES[cell["distance"]]]
        assert f"{100 * float(row[over]):.1f}" == cell["avg_printed"]  # type: ignore[arg-type]
        assert f"{100 * float(row['Avg (blind)']):.1f}" == cell["avg_blind_printed"]  # type: ignore[arg-type]


def test_tables_9_to_11_come_out_again() -> None:
    tables = {table.title.partition(" ")[0]: table for table in tabulate("published:vocsim", "chance")}
    for cell in published.read("vocsim_permutation_tests"):
        row = next(row for row in tables[cell["metric"]].records() if row["set"] == cell["set"])
        shown = [f"{100 * row[name]:.2f}" for name in ("observed", "baseline", "baseline low", "baseline high")]
        assert shown == [cell[f"{name}"] for name in (
            "observed_mean_pct", "baseline_mean_pct", "baseline_ci95_lo", "baseline_ci95_hi")]  # fmt: skip
        assert row["subsets with small p"] == int(cell["p_lt_0.001_count"])
        recomputed = aggregate(published.load("vocsim").select(metric=cell["metric"]), cell["set"])
        mean = recomputed.value(cell["metric"], system="EWMTF D100", distance="spearman")
        noted = "the mean of the full table is 39.4" in tables[cell["metric"]].footnotes
        assert abs(mean - row["observed"]) <= 0.001 or (noted and cell["set"] == "blind")
    (same,) = tabulate("published:vocsim-permutations", "chance", metrics="P@1")
    assert same.records() == [
        {name: value for name, value in row.items() if name != "distance"} for row in tables["P@1"].records()
    ]


def test_table_1_of_vocsim_comes_out_again() -> None:
    (table,) = tabulate("published:vocsim", "subsets")
    rows = {row["subset"]: row for row in table.records()}
    for cell in published.read("vocsim_table1_subsets"):
        row = rows[cell["subset"]]
        assert (row["what"], row["set"]) == (cell["domain"], cell["split"])
        for name, column in (("clips", "n_samples"), ("classes", "n_classes"), ("fewest", "min_samples_per_class"),
                             ("most", "max_samples_per_class"), ("DRI", "DRI_dB")):  # fmt: skip
            assert int(row[name]) == int(cell[column]), (cell["subset"], name)
        assert f"{row['per class']:.1f}" == cell["avg_samples_per_class"]
        for name, column in (("seconds", "avg_dur_s"), ("shortest", "min_dur_s"), ("longest", "max_dur_s")):
            assert f"{row[name]:.2f}" == cell[column]


def test_tables_3_and_6_to_8_of_codec_superb_come_out_again() -> None:
    (table,) = tabulate("published:codec-superb", with_repeats=True)
    names = {"overall speech": "speech_overall", "overall audio": "audio_overall", "overall music": "music_overall",
             "kbps": "kbps", "wer": "asr_wer_pct", "eer": "asv_eer_pct", "min_dcf": "asv_mindcf",
             "er_accuracy": "er_acc_pct", "aec_map": "aec_map_pct"}  # fmt: skip
    rows = {row["system"]: row for row in table.records()}
    for cell in published.read("codec_superb_table3"):
        row = rows["no codec" if cell["codec"] == "None" else cell["codec"]]
        for mine, column in names.items():
            if cell[column]:
                assert row[mine] * (100 if column.endswith("_pct") else 1) == pytest.approx(float(cell[column]))
    repeated = [
        row["system"] for row in tabulate("published:codec-superb").tables[0].records() if row["er_accuracy"] is None
    ]
    assert repeated == ["F1", "F2", "F3", "F4"]
    tables = tabulate("published:codec-superb", "full")
    assert [table.title for table in tables] == ["overall, speech.", "overall, audio.", "overall, music."]
    for table, category in zip(tables, ("speech", "audio", "music"), strict=True):
        for cell in published.read("codec_superb_category_overall_check"):
            if cell["category"] == category:
                row = next(row for row in table.records() if row["system"] == cell["codec"])
                assert row["Overall"] == float(cell["overall_printed"])
    given = published.load("codec-superb").select(metric="overall", system="D2")
    speech = [row.value for row in given if row.subset in tables.tables[0].names]
    assert round(harmonic_mean(speech), 3) == 0.864  # type: ignore[arg-type]


@pytest.mark.parametrize("name", list(published.SETS))
def test_every_printed_set_has_a_main_table(name: str) -> None:
    for table in tabulate(f"published:{name}"):
        assert table.rows
        for render in (table.to_text, table.to_markdown, table.to_latex, table.to_csv):
            assert render()


# --- of runs ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The synthetic suite, three subsets of a few clips, two models and two distances."""
    place = tmp_path_factory.mktemp("run")
    earmark.run({
        "corpus": {"spec": "synth:36", "subsets": ["SYN-BC", "SYN-HP", "SYN-HW"]}, "extractors": ["mfcc", "logmel"],
        "distances": ["cosine", "spearman"], "metrics": ["P@1", "GSR", "silhouette"], "permutations": 30, "k": [1],
        "shuffle": "clips", "into": str(place / "run"), "cache": {"url": str(place / "cache")},
        "steps": ["prepare", "embed", "evaluate"],
    })  # fmt: skip
    return place / "run"


@pytest.fixture(scope="module")
def codec_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("codecs")
    run_codecs({
        "codecs": ["pcm", "mulaw@64"], "corpus": {"spec": "synth:3", "subsets": ["SYN-BS", "SYN-BC"]},
        "category": "audio", "metrics": ["mel_distance", "stft_distance"], "bootstrap": 20, "report": False,
        "into": str(place / "run"), "cache": {"url": str(place / "cache")},
    })  # fmt: skip
    return place / "run"


def test_every_kind_of_table_from_the_synthetic_suite(run: Path, codec_run: Path) -> None:
    for source, kinds in ((run, set(KINDS) - {"codecs"}), (codec_run, set(KINDS) - {"chance", "groups", "classes"})):
        made = tabulate(source, sorted(kinds))
        assert len(made) >= len(kinds)
        for text in (made.to_text(), made.to_markdown(), made.to_latex(label="tab:x"), made.to_csv()):
            assert "nan" not in text.lower().replace("nanm", "")
    for source, kind in ((run, "codecs"), (codec_run, "chance")):
        with pytest.raises(InputError, match=r"has no (codecs|baseline)"):
            tabulate(source, kind)


def test_the_main_table_of_a_run_is_the_mean_of_its_rows(run: Path) -> None:
    scores = earmark.load_scores(run / "scores.csv")
    (table,) = tabulate(run, metrics="P@1,silhouette", interval="ends")
    assert "Means over 3 synthetic subsets." in table.title
    assert "leaving out each group" in table.title
    for (system, distance), row in records(table).items():
        for metric in ("P@1", "silhouette"):
            own = [one.value for one in scores if (one.system, one.distance, one.metric) == (system, distance, metric)]
            assert row[metric] == pytest.approx(fmean(own))
            assert row[f"{metric} low"] < row[metric] < row[f"{metric} high"]  # type: ignore[operator]
    assert tabulate(run / "scores.csv", metrics="P@1") == tabulate(run, metrics="P@1")
    assert tabulate(scores, metrics="P@1").tables[0].rows == tabulate(run, metrics="P@1").tables[0].rows


def test_chance_counts_small_p_values_and_says_what_was_shuffled(run: Path) -> None:
    (table,) = tabulate(run, "chance", metrics="P@1", p_below=0.05)
    assert "over clips whatever their group (p is too small" in table.title
    scores = earmark.load_scores(run / "scores.csv").select(metric="P@1")
    for row in table.records():
        own = [one for one in scores if (one.system, one.distance) == (row["system"], row["distance"])]
        assert row["subsets with small p"] == sum(one.p_value < 0.05 for one in own)
        assert row["baseline"] == pytest.approx(fmean(one.baseline for one in own))
        assert row["observed"] - row["baseline"] == pytest.approx(row["lift"])
    (strict,) = tabulate(run, "chance", metrics="P@1")
    assert list(strict.footnotes) == ["the smallest p is 0.032; below 0.001 it takes 1000 shuffles or more"]
    assert "0/3¹" in strict.to_text()


def test_chance_where_a_subset_has_no_baseline() -> None:
    null = {"baseline": 0.1, "baseline_low": 0.05, "baseline_high": 0.15, "shuffle": "whole_groups"}
    why = "no p-value: with these groups the labels can be arranged in no other way"
    few = "no p-value: with these groups the labels have 15 arrangements, and fewer than 20 never give p <= 0.05"
    rows = Scores((
        score("a", "x", 0.5, lift=0.4, p_value=0.0005, **null), score("a", "y", 0.7, reason=why),
        score("b", "x", 0.4, lift=0.3, p_value=0.2, **null), score("b", "y", 0.6, lift=0.5, reason=few, **null),
    ))  # fmt: skip
    (table,) = tabulate(rows, "chance")
    a, b = table.records()
    assert (a["observed"], a["baseline"], a["lift"]) == (pytest.approx(0.6), None, None)
    assert (b["observed"], b["baseline"], b["subsets with small p"]) == (0.5, pytest.approx(0.1), 0)
    assert table.footnotes[0] == f"no baseline on y: {why.removeprefix('no p-value: ')}"
    assert table.footnotes[2].startswith(f"no p-value on y: {few.removeprefix('no p-value: ')}; the smallest p is 0.2")
    (skipped,) = tabulate(rows, "chance", missing="skip", systems="a")
    (row,) = skipped.records()
    assert (row["observed"], row["baseline"], row["lift"]) == (0.5, 0.1, pytest.approx(0.4))
    assert skipped.footnotes[0] == "without y: no baseline there"


def test_subsets_of_a_run_and_what_a_file_adds(run: Path, tmp_path: Path) -> None:
    (table,) = tabulate(run, "subsets")
    row = table.records()[0]
    assert (row["subset"], row["set"], row["clips"], row["classes"]) == ("SYN-BC", "synthetic", 36, 5)
    assert "DRI" not in row
    (tmp_path / "facts.csv").write_text("subset,clips,classes,dri\nSYN-BC,36,5,17.4\n")
    (more,) = tabulate(run, "subsets", facts=tmp_path / "facts.csv")
    assert more.records()[0]["DRI"] == 17.4
    with pytest.raises(InputError, match="says nothing of its subsets"):
        tabulate(Scores((score("a", "x", 0.5),)), "subsets")


def test_codecs_of_a_run_by_category(codec_run: Path) -> None:
    scores = earmark.load_scores(codec_run / "scores.csv")
    (table,) = tabulate(codec_run, metrics="kbps,overall,mel_distance")
    assert table.names == ["system", "family", "kbps", "overall audio", "mel_distance audio"]
    for row in table.records():
        own = scores.select(system=row["system"])
        assert row["overall audio"] == pytest.approx(own.value("overall", subset="mean:audio"))
        distances = [one.value for one in own if (one.metric, one.protocol) == ("mel_distance", "all")]
        assert row["mel_distance audio"] == pytest.approx(fmean(distances))
    (full,) = tabulate(codec_run, "full")
    assert [row["system"] for row in full.records()] == ["mulaw@64", "pcm"]  # what loses nothing stands last
    assert not any(isinstance(cell, Cell) and cell.bold for row in full.rows for cell in row)


# --- choices ------------------------------------------------------------------------------------------------------

ROWS = Scores(
    tuple(
        score(system, subset, value, distance=distance, n=10)
        for system, distance, values in (
            ("a", "cosine", (0.9, 0.5, 0.30)), ("a", "euclidean", (0.7, 0.6, 0.10)),
            ("b", "cosine", (0.8, 0.8, 0.20)), ("c_d", "cosine", (0.1, 0.1, 0.05)),
        )
        for subset, value in zip(("one", "two", "three"), values, strict=True)
    )
)  # fmt: skip


def systems(table: Table) -> list[str]:
    return [str(row["system"]) for row in table.records()]


def test_rows_are_chosen_sorted_and_cut() -> None:
    assert systems(tabulate(ROWS).tables[0]) == ["b", "a", "a", "c_d"]
    assert systems(tabulate(ROWS, sort="none").tables[0]) == ["a", "a", "b", "c_d"]
    assert systems(tabulate(ROWS, sort="system", top=3).tables[0]) == ["a", "a", "b"]
    assert systems(tabulate(ROWS, "full", sort="one").tables[0]) == ["a", "b", "a", "c_d"]
    assert systems(tabulate(ROWS, one_per_system=True).tables[0]) == ["b", "a", "c_d"]
    assert systems(tabulate(ROWS, systems=["c*", "b"]).tables[0]) == ["c_d", "b"]
    assert systems(tabulate(ROWS, distances="euclidean", rename="a=Model A").tables[0]) == ["Model A"]
    assert systems(tabulate(ROWS, systems="a/euclidean,b").tables[0]) == ["a", "b"]


def test_sets_of_ones_own_and_their_means() -> None:
    (table,) = tabulate(ROWS, sets={"hard": ["three"], "easy": ["*"]}, averages=["easy", "hard", "all"], systems="b")
    row = table.records()[0]
    assert [row["easy P@1"], row["hard P@1"], row["all P@1"]] == pytest.approx([0.8, 0.2, 0.6])
    assert table == tabulate(ROWS, sets=["hard=three", "easy=*"], averages="easy,hard,all", systems="b").tables[0]
    (few,) = tabulate(ROWS, "full", sets=["hard=three", "easy=*"], subsets=["hard", "one"], systems="b")
    assert few.names == ["system", "three", "one", "Avg (hard)", "Avg (easy)"]


def test_captions_say_what_intervals_are_and_name_sets_of_one_subset() -> None:
    held = {"low": 0.4, "high": 0.6, "interval": "jackknife", "unit": "clip"}
    rows = Scores(tuple(score("a", subset, 0.5, **held) for subset in ("x", "y", "z")))
    own = "95 % interval, from leaving out each clip"
    alone = tabulate(rows, sets=["words=x", "y=y"]).tables[0].title
    assert alone.startswith("Subsets x (words) and y.")
    assert alone.endswith(f"±: margin of the {own}.")
    assert tabulate(rows, sets=["words=x", "rest=*"]).tables[0].title.startswith("Means over 1 words and 2 rest")
    assert f"[ ]: {own}; of means, with" in tabulate(rows, "full", interval="ends").tables[0].title
    assert "interval" not in tabulate(rows, "full").tables[0].title


def test_best_and_second_are_marked_among_what_can_be_compared() -> None:
    (table,) = tabulate(ROWS, "full", second=True)
    columns = list(zip(*(row[2:] for row in table.rows), strict=True))
    assert [sum(cell.bold for cell in column) for column in columns] == [1, 1, 1, 1]
    assert [[cell.text for cell in column if cell.underlined] for column in columns] == [
        ["80.0"],
        ["60.0"],
        ["20.0"],
        ["56.7"],
    ]
    other = Scores((*ROWS.rows[:3], *(replace(row, n=9) for row in ROWS.rows[3:])))
    assert "**" not in tabulate(other, "full").to_markdown()  # scored on different clips
    assert "**" not in tabulate(ROWS, best=False).to_markdown()
    both = Scores((*ROWS, *(replace(row, protocol="across_groups", value=0.01) for row in ROWS.rows[:3])))
    (split,) = tabulate(both, "full", metrics="P@1")
    assert sum(cell.bold for row in split.rows for cell in row[3:4]) == 1


def test_missing_failed_and_repeated_values_are_marks_with_footnotes() -> None:
    rows = (
        *ROWS.rows[:3],
        score("e", "one", 0.4, distance="cosine"),
        score("e", "two", None, distance="cosine", status="failed", reason="out of memory"),
        score("e", "three", 0.4, distance="cosine", status="repeated", reason="repeats a"),
    )
    (full,) = tabulate(Scores(rows), "full")
    text = full.to_text().splitlines()
    assert text[-5].split() == ["e", "40.0", "failed¹", "=²", "–³"]
    assert full.footnotes[0] == "out of memory"
    assert full.footnotes[2] == "missing subsets: two (failed), three (repeated)"
    assert list(csv.reader(io.StringIO(full.to_csv())))[2] == ["e", "0.4", "", "", ""]
    (skipped,) = tabulate(Scores(rows), "full", missing="skip")
    cell = skipped.rows[1][-1]
    assert (cell.text, cell.bold, skipped.footnotes[cell.note - 1]) == (
        "40.0", False, "1 of 3 subsets; missing: two (failed), three (repeated)",
    )  # fmt: skip


def test_a_table_of_several_suites_and_one_of_means_alone() -> None:
    two = Scores((score("a", "x", 0.2, suite="s"), score("a", "x", 0.4, suite="t"), score("a", "y", 0.6, suite="t")))
    (table,) = tabulate(two, "full")
    assert table.names == ["system", "s/x", "t/x", "y", "Avg"]
    assert table.records()[0]["Avg"] == pytest.approx(0.4)
    means = Scores((score("a", "mean:public", 0.5), score("a", "mean:blind", 0.25)))
    assert tabulate(means).tables[0].records() == [
        {"system": "a", "public P@1": 0.5, "public P@1 low": None, "public P@1 high": None, "blind P@1": 0.25,
         "blind P@1 low": None, "blind P@1 high": None}
    ]  # fmt: skip
    with pytest.raises(InputError, match="holds means alone"):
        tabulate(means, "full")


def test_a_margin_that_would_leave_the_range_is_shown_as_ends() -> None:
    near = {"low": 0.8, "high": 0.99}
    rows = Scores((score("a", "x", 0.95, **near), score("a", "y", 0.95, **near)))
    assert "95.0 [84.4, 97.8]" in tabulate(rows).to_text()
    assert "95.0 ± 10.6" in tabulate(rows, interval="margin").to_text()
    assert "[" not in tabulate(rows, interval="none").to_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metrics": "P@2"}, 'has no metric "P@2"; it has P@1. Did you mean "P@1"?'),
        ({"subsets": "oen"}, 'has no subset "oen"; it has one, two, three. Did you mean "one"?'),
        ({"systems": "z"}, 'has no system "z"'),
        ({"distances": "cosin"}, 'has no distance "cosin"'),
        ({"protocols": "tandem:2"}, 'has no protocol "tandem:2"; it has all'),
        ({"averages": "public"}, 'has no set of subsets "public"; it has all'),
        ({"sort": "GSR"}, 'has no column "GSR"; it has P@1, system, none'),
        ({"sets": ["blind"]}, "A set of subsets is NAME=SUBSET,SUBSET such as blind=HU3,HU4, not 'blind'"),
        ({"sets": {"all": ["one"]}}, "cannot be called all"),
        ({"sets": ["a=one,two,three", "b=*"]}, "The set b is empty"),
        ({"rename": "a"}, "A new name is OLD=NEW"),
        ({"top": 0}, "top cannot be 0: it should be greater than or equal to 1"),
        ({"kind": "mian"}, "There is no kind of table 'mian'"),
        ({"metric": "P@1"}, "A table has no option 'metric'. Did you mean \"metrics\"?"),
    ],
)
def test_a_wrong_choice_is_one_sentence(options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        tabulate(ROWS, **options)  # type: ignore[arg-type]
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_tables_that_hold_nothing_or_nonsense(tmp_path: Path) -> None:
    for text, message in (
        ("system,subset,metric,value\n", "has no rows"),
        ("system,subset,metric,value\na,x,P@1,nan\n", "leave a missing number empty"),
        ("system,subset,metric,value\na,x,P@1,66.8\n", "divide by 100"),
        ("model,x,y\na,.1,.2\n", "say with one --metric what it measures"),
    ):
        (tmp_path / "scores.csv").write_text(text)
        with pytest.raises(EarmarkError, match=message):
            tabulate(tmp_path / "scores.csv")
    assert tabulate(tmp_path / "scores.csv", metrics="P@1").tables[0].records()[0]["P@1"] == pytest.approx(0.15)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"folder without scores\.csv"):
        tabulate(tmp_path / "empty")


# --- what must not be one number, or the best ---------------------------------------------------------------------


def test_a_sample_and_its_subset_are_never_one_mean() -> None:
    rows = Scores((score("a", "x", 0.9), score("a", "x~50x5", 0.2), score("a", "y", 0.7)))
    (table,) = tabulate(rows)
    (row,) = table.records()
    assert (row["whole P@1"], row["sampled 50x5 P@1"]) == (pytest.approx(0.8), 0.2)
    assert "in part on samples of the clips (sample 50x5)." in table.title
    for options in ({"averages": "all"}, {"sets": ["mine=x,x~50x5"]}):
        with pytest.raises(InputError, match=r'"x" and "x~50x5" share clips'):
            tabulate(rows, **options)
    with pytest.raises(InputError, match="share clips"):
        aggregate(rows, "mean")
    queries = Scores((score("a", "x", 0.9, reason="500 of 4000 clips drawn as queries (seed 0)"),))
    assert "on samples of the clips (500 of 4000 clips drawn as queries, seed 0)." in tabulate(queries).tables[0].title


@pytest.mark.parametrize("kind", ["main", "full", "scores"])
def test_nothing_is_the_best_across_draws_and_the_caption_says_so(kind: str) -> None:
    def drawn(seed: int, n: int = 25) -> Scores:
        reason = "25 of 60 clips, 5 of each of the 5 most frequent classes (sample 5x5, seed {})"
        ends = (("a", 0.8, 0), ("b", 0.9, seed))
        own = (
            score(name, f"{subset}~5x5", value, n=25 if name == "a" else n, reason=reason.format(of))
            for name, value, of in ends
            for subset in ("x", "y")
        )
        return Scores(tuple(own))

    assert "**90.0**" in tabulate(drawn(0), kind).to_markdown()
    assert "o best of P@1" not in tabulate(drawn(0), kind).to_text()
    for other, how in ((drawn(3), "sample 5x5, seed 0 and sample 5x5, seed 3"), (drawn(0, 24), "n = ")):
        assert "**" not in tabulate(other, kind).to_markdown()
        assert "scored on different clips (" + how in tabulate(other, kind).to_text()


def test_means_that_lack_subsets_come_last_and_are_not_chosen() -> None:
    rows = Scores((
        score("a", "x", 0.9, distance="cosine"), score("a", "y", 0.3, distance="cosine"),
        score("a", "x", 0.95, distance="euclidean"), score("b", "x", 0.99, distance="cosine"),
        score("c", "x", None, distance="cosine", status="failed"),
    ))  # fmt: skip
    (table,) = tabulate(rows, missing="skip")
    shown = [(row["system"], row["distance"]) for row in table.records()]
    assert shown == [("a", "cosine"), ("b", "cosine"), ("a", "euclidean"), ("c", "cosine")]
    (alone,) = tabulate(rows, missing="skip", one_per_system=True, sort="system")
    assert [row["P@1"] for row in alone.records()] == [pytest.approx(0.6), 0.99, None]


def test_one_per_system_keeps_protocols_and_says_what_chose() -> None:
    rows = Scores(tuple(
        score("a", "x", value, metric, distance=distance, protocol=protocol)
        for distance, metric, value in (
            ("cosine", "P@1", 0.9), ("cosine", "GSR", 0.1), ("euclidean", "P@1", 0.8), ("euclidean", "GSR", 0.2)
        )
        for protocol in ("all", "across_groups")
    ))  # fmt: skip
    (table,) = tabulate(rows, one_per_system=True, sort="GSR")
    assert [row["protocol"] for row in table.records()] == ["all", "across_groups"]
    assert "Distance euclidean. Each system at its best distance and correction by GSR." in table.title


def test_tables_that_would_show_the_wrong_row_or_name_are_refused() -> None:
    with pytest.raises(InputError, match="no score of a subset as it is labelled"):
        tabulate(Scores((score("a", "x~noise0.1", 0.5),)))
    for kind in ("main", "full", "scores"):
        with pytest.raises(InputError, match=r'"x" has two rows for P@1 of a; merge'):
            tabulate(Scores((score("a", "x", 0.5), score("a", "x", 0.6))), kind)
    with pytest.raises(UsageError, match='has no system "z"'):
        tabulate(ROWS, rename="z=y")
    with pytest.raises(UsageError, match='"a" and "b" would both be called "b"'):
        tabulate(ROWS, rename="a=b")


def test_more_shuffles_are_advised_only_where_they_were_too_few() -> None:
    def notes(*values: float) -> str:
        null = {"baseline": 0.1, "baseline_low": 0.05, "baseline_high": 0.15, "lift": 0.4, "shuffle": "clips"}
        own = (score("a", f"x{place}", 0.5, p_value=p, **null) for place, p in enumerate(values))
        return " ".join(tabulate(Scores(tuple(own)), "chance").tables[0].footnotes)

    assert "it takes 1000 shuffles or more" in notes(4 / 100, 7 / 100)
    assert notes(2013 / 10000, 71 / 10000) == "the smallest p is 0.0071"
