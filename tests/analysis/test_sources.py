"""What may hold scores becomes a matrix, and whatever is wrong with it is one sentence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from earmark.analysis._chance import known_chance, vocsim_chance
from earmark.analysis.sources import first_word, open_matrix, open_scores
from earmark.corpora.vocsim import PUBLISHED
from earmark.errors import EarmarkError, InputError, UsageError
from earmark.scores import Row, Scores

TABLE = "model,a,b,c\nm1,.1,.2,.3\nm2,.2,.3,.4\nm3,.5,.1,.6\n"


def written(folder: Path, text: str, name: str = "table.csv") -> Path:
    path = folder / name
    path.write_text(text, "utf-8")
    return path


def test_a_plain_table(tmp_path: Path) -> None:
    found = open_matrix(written(tmp_path, TABLE))
    assert found.matrix.models == ("m1", "m2", "m3")
    assert found.matrix.datasets == ("a", "b", "c")
    assert found.matrix.values[2].tolist() == [0.5, 0.1, 0.6]
    assert found.scores is None


def test_missing_cells_in_every_spelling(tmp_path: Path) -> None:
    text = "model,a,b,c,d,e\nm1,.1,,-,N/A,nan\nm2,.2,.3,.4,.5,.6\nm3,.5,.1,.6,.7,.8\n"
    values = open_matrix(written(tmp_path, text)).matrix.values
    assert np.isnan(values[0]).tolist() == [False, True, True, True, True]
    assert np.isfinite(values[1:]).all()


def test_a_table_in_parquet_is_the_same(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = {"model": ["m1", "m2", "m3"], "a": [0.1, 0.2, 0.5], "b": [0.2, None, 0.1], "c": [0.3, 0.4, 0.6]}
    parquet.write_table(arrow.table(columns), tmp_path / "table.parquet")
    found = open_matrix(tmp_path / "table.parquet").matrix
    assert found.datasets == ("a", "b", "c")
    assert np.isnan(found.values[1, 1])
    Scores(tuple(Row(system=m, subset=s, metric="P@1", value=0.5) for m in "abc" for s in "xy")).write(
        tmp_path / "scores.parquet"
    )
    assert open_matrix(tmp_path / "scores.parquet").matrix.values.shape == (3, 2)


def test_score_tables_in_every_format(tmp_path: Path) -> None:
    rows = [
        Row(system=m, subset=s, distance=d, metric=metric, value=v)
        for m, v in (("x", 0.2), ("y", 0.5))
        for s in "st"
        for d in ("cosine", "euclidean")
        for metric in ("P@1", "GSR")
    ]
    for name in ("scores.csv", "scores.jsonl", "scores.json"):
        Scores(tuple(rows)).write(tmp_path / name)
        found = open_matrix(tmp_path / name, metric="P@1")
        assert found.matrix.models == ("x / cosine", "x / euclidean", "y / cosine", "y / euclidean")
        assert found.matrix.families == ("x", "x", "y", "y")
        assert open_matrix(tmp_path / name, metric="P@1", distance="cosine").matrix.models == ("x", "y")
    with pytest.raises(UsageError, match=r"2 metrics \(P@1, GSR\); choose one with --metric"):
        open_matrix(Scores(tuple(rows)))
    with pytest.raises(UsageError, match=r'no metric "P@11".*Did you mean "P@1"'):
        open_matrix(Scores(tuple(rows)), metric="P@11")
    with pytest.raises(UsageError, match="says itself which way"):
        open_matrix(Scores(tuple(rows)), metric="P@1", lower_is_better=["s"])


def test_predicted_rows_are_left_out_and_counted() -> None:
    rows = [Row(system=m, subset=s, metric="P@1", value=0.5) for m in "abc" for s in "xy"]
    rows.append(
        Row(system="d", subset="x", metric="P@1", value=0.9, low=0.8, high=1, status="predicted", reason="predicted")
    )
    found = open_matrix(Scores(tuple(rows)))
    assert np.isnan(found.matrix.values[3]).all()
    assert any("only measurements count" in remark for remark in found.remarks)


def test_printed_results_by_name() -> None:
    found = open_matrix("published:vocsim", metric="P@1")
    assert found.matrix.values.shape == (129, 19)
    assert len(set(found.matrix.families)) == 20
    assert len(set(open_matrix("published:vocsim", metric="P@1", families="models").matrix.families)) == 12
    assert open_matrix("published:vocsim", metric="P@1", families=None).matrix.families[0] == "EWMTF D100"
    assert found.matrix.chance.tolist() == [1 / PUBLISHED[name].classes for name in found.matrix.datasets]
    codecs = open_matrix("published:codec-superb", metric="overall").matrix
    assert codecs.values.shape == (19, 19)
    assert set(codecs.best) == {1.0}
    assert set(codecs.families) == {"SpeechTokenizer", "AcademiCodec", "AudioDec", "DAC", "EnCodec", "FunCodec"}


def test_of_several_metrics_the_one_with_several_datasets_is_taken() -> None:
    found = open_matrix("published:codec-superb")
    assert found.metric == "overall"
    assert "overall is the only one on more than one dataset" in found.remarks[0]


def test_percent_signs_are_fractions(tmp_path: Path) -> None:
    values = open_matrix(written(tmp_path, TABLE.replace(".2,.3\n", "28.2%,.3\n"))).matrix.values
    assert values[0].tolist() == pytest.approx([0.1, 0.282, 0.3])


def test_numbers_may_name_models_in_a_column_that_says_so(tmp_path: Path) -> None:
    assert open_matrix(written(tmp_path, "id,a,b\n1,.1,.2\n2,.2,.3\n")).matrix.models == ("1", "2")


def test_values_that_a_metric_cannot_have_are_refused() -> None:
    rows = [Row(system=m, subset=s, metric="P@1", value=0.5) for m in "abc" for s in "xy"]
    with pytest.raises(
        InputError, match=r'"d" on "x" has P@1 84, and P@1 is from 0 to 1; write fractions: divide by 100'
    ):
        open_matrix(Scores((*rows, Row(system="d", subset="x", metric="P@1", value=84.0))))


# --- directions, chance, families -----------------------------------------------------------------------------------


def test_lower_is_better_turns_a_column_round(tmp_path: Path) -> None:
    matrix = open_matrix(written(tmp_path, TABLE), lower_is_better=["b"]).matrix
    assert matrix.higher_is_better == (True, False, True)
    assert matrix.normalised()[:, 1].tolist() == pytest.approx([0.8, 0.7, 0.9])
    all_down = open_matrix(written(tmp_path, TABLE), metric="eer").matrix
    assert not any(all_down.higher_is_better)


def test_chance_is_given_or_known_by_name(tmp_path: Path) -> None:
    text = "model,BoolQ - EM,HellaSwag,other\nm1,.6,.3,.3\nm2,.7,.4,.4\nm3,.8,.5,.6\n"
    found = open_matrix(written(tmp_path, text), chance={"HellaSwag": 0.3})
    assert found.matrix.chance.tolist() == [0.5, 0.3, 0.0]
    assert "Chance is known for 1 dataset by name: BoolQ - EM 0.5." in found.remarks
    assert found.warnings == ()
    percent = text.replace(".6,.3", "60,30").replace(".7,.4", "70,40").replace(".8,.5", "80,50")
    assert open_matrix(written(tmp_path, percent)).matrix.chance.tolist() == [50.0, 25.0, 0.0]


def test_chance_of_known_benchmarks() -> None:
    assert vocsim_chance()["BS1"] == pytest.approx(1 / 6)
    assert known_chance(["BS1", "HW3"], "P@5") == {"BS1": 1 / 6, "HW3": 1 / 368}
    assert known_chance(["BS1", "HW3"], "GSR") == {}
    subjects = ["Anatomy - EM", "Astronomy", "marketing", "virology", "High School Computer Scienc...", "sociology"]
    assert known_chance(subjects) == {}  # six could be anybody's datasets
    subjects += ["nutrition", "human_aging", "Formal Logic - EM", "prehistory", "management", "not a subject"]
    assert known_chance(subjects) == dict.fromkeys(subjects[:-1], 0.25)


def test_families_from_a_column_a_mapping_or_the_first_word(tmp_path: Path) -> None:
    text = "model,family,a,b\nm1,f,.1,.2\nm2,f,.2,.3\nm3,g,.5,.1\n"
    assert open_matrix(written(tmp_path, text)).matrix.families == ("f", "f", "g")
    assert open_matrix(written(tmp_path, text)).matrix.datasets == ("a", "b")
    given = open_matrix(written(tmp_path, TABLE), families={"m1": "f", "m2": "f"})
    assert given.matrix.families == ("f", "f", "m3")
    assert any('such as "m3"' in sentence for sentence in given.warnings)
    named = TABLE.replace("m1", "Llama 2 (70B)").replace("m2", "LLaMA (65B)").replace("m3", "gpt-4")
    assert open_matrix(written(tmp_path, named), families="models").matrix.families == ("llama", "llama", "gpt")
    assert first_word("3.5") == "3.5"


# --- what is wrong is one sentence ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("   \n\n", "is empty"),
        ("model,a,b\n", "a header and no lines"),
        ("model\nm1\n", "one column"),
        ("model,a,\nm1,.1,.2\n", "column without a name"),
        ("model;a;b\nm1;.1;.2\n", "not separated by commas"),
        ("model,a,b\nm1,.1\n", "line 2 has 2 cells, the header 3"),
        ("model,a,b\nm1,.1,good\n", '"m1" has "good" in the column "b", which is not a number'),
        ("model,a,b\nm1,85%,.1\nm2,90,.2\n", '"a" has "85%" and "90"'),
        ("model,a,b\nm1,.1,5%6\n", '"5%6"'),
        ("birds,bats\n.1,.2\n.3,\n", 'first column, "birds", has only numbers, and it should name the models'),
        ("model,a,b\nm1,.1,1_0\n", '"1_0"'),
        ("model,a,a\nm1,.1,.2\n", 'dataset "a" appears twice'),
        ("model,a,b\nm1,.1,.2\nm1,.1,.2\n", 'model "m1" appears twice'),
        ("model,a,b\nm1,.1,inf\n", "infinite"),
        ('model,a,b\nm1,.1,"2\n', "not readable as CSV"),
        ("metric,valeu\nP@1,1\n", "valeu"),
    ],
)
def test_bad_tables(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(EarmarkError, match=message) as caught:
        open_matrix(written(tmp_path, text))
    assert "\n" not in str(caught.value)


def test_a_run_folder_and_printed_results_open_as_their_rows(tmp_path: Path) -> None:
    rows = tuple(Row(system=name, subset=subset, metric="P@1", value=0.5) for name in "ab" for subset in "xyz")
    (tmp_path / "run").mkdir()
    Scores(rows).write(tmp_path / "run" / "scores.csv")
    assert open_scores(tmp_path / "run") == (Scores(rows), {})
    assert open_matrix(tmp_path / "run").matrix.models == ("a", "b")
    counted = [sum(row.status == "ok" for row in open_scores("published:vocsim", with_repeats=w)[0]) for w in (0, 1)]
    assert counted[1] - counted[0] == 5099
    assert open_scores("published:codec-superb")[1]["E3"] == "EnCodec"


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        open_matrix(tmp_path / "nothing.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InputError, match="is a folder"):
        open_matrix(tmp_path / "folder.csv")
    (tmp_path / "bytes.csv").write_bytes(b"\xff\xfe\x00abc")
    with pytest.raises(InputError, match="not UTF-8"):
        open_matrix(tmp_path / "bytes.csv")
    with pytest.raises(UsageError, match="no published set"):
        open_matrix("published:nothing")


def test_options_that_name_what_is_not_there(tmp_path: Path) -> None:
    path = written(tmp_path, TABLE)
    for options, message in (
        ({"chance": {"q": 0.5}}, '--chance names "q"'),
        ({"best": {"q": 0.5}}, '--best names "q"'),
        ({"lower_is_better": ["q"]}, '--lower-is-better names "q"'),
        ({"without": ["q"]}, 'no dataset "q" to leave out'),
        ({"distance": "cosine"}, "no distances to choose from"),
        ({"metric": "P@q"}, 'no metric "P@q"'),
    ):
        with pytest.raises(EarmarkError, match=message):
            open_matrix(path, **options)  # type: ignore[arg-type]
    assert open_matrix(path, without=["b"]).matrix.datasets == ("a", "c")
    with pytest.raises(InputError, match="every dataset is left out"):
        open_matrix(path, without=["a", "b", "c"])
