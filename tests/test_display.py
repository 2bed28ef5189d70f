"""Values that show themselves in consoles and notebooks, and data frames in and out."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import earmark
from earmark.errors import InputError, UsageError
from earmark.scores import COLUMNS, Row, Scores
from earmark.vectors.columns import MissingColumn

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
pytest.importorskip("pyarrow")

LABELS = np.repeat(["bark", "chirp", "hum"], 20)
TAPES = np.repeat([f"tape{number}" for number in range(12)], 5)


def vectors(seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(60, 6)) + np.repeat(rng.normal(size=(3, 6)), 20, axis=0)


def frame(values: np.ndarray) -> object:
    table = pandas.DataFrame(values, columns=[f"f{number}" for number in range(values.shape[1])])
    return table.assign(species=LABELS, tape=TAPES, remark="windy", day=pandas.Timestamp("2026-01-01"))


def test_columns_of_a_frame_stand_for_labels_and_groups() -> None:
    expected = earmark.evaluate(vectors(), LABELS, groups=TAPES, metrics="P@1,GSR")
    table = frame(vectors())
    for given in (table, polars.from_pandas(table.drop(columns="day"))):
        scores = earmark.evaluate(given, "species", groups="tape", metrics="P@1,GSR")
        assert [(row.value, row.low, row.high) for row in scores] == [
            (row.value, row.low, row.high) for row in expected
        ]
        assert "left out: remark" in scores.notes[0]


def test_a_column_of_lists_is_the_vectors_and_a_column_label_needs_no_name() -> None:
    table = pandas.DataFrame({"embedding": list(vectors()), "label": LABELS, "clip": [f"c{n}" for n in range(60)]})
    scores = earmark.evaluate(table, ids="clip", metrics="P@1", per_point=True)
    assert scores.value("P@1") == earmark.evaluate(vectors(), LABELS, metrics="P@1").value("P@1")
    assert scores.point_ids is not None
    assert scores.point_ids[0] == "c0"


def test_frames_are_compared_by_a_column_that_they_share() -> None:
    first, second = frame(vectors(0)), frame(vectors(1))
    compared = earmark.compare({"a": first, "b": second}, "species", groups="tape", metrics="P@1")
    plain = earmark.compare({"a": vectors(0), "b": vectors(1)}, LABELS, groups=TAPES, metrics="P@1")
    assert compared.rows[0].value == plain.rows[0].value
    with pytest.raises(InputError, match=r"differ in the label of row 0 .*'bark' and 'hum'; .*ids='clip'"):
        earmark.compare({"a": first, "b": second.assign(species=LABELS[::-1])}, "species")
    with pytest.raises(InputError, match="differ in the group of row 0"):
        earmark.compare({"a": first, "b": second.assign(tape=TAPES[::-1])}, "species", groups="tape")
    with pytest.raises(InputError, match="a has 60 rows and b has 50"):
        earmark.compare({"a": first, "b": second.iloc[:50]}, "species")


def named(values: np.ndarray) -> object:
    return frame(values).assign(clip=[f"c{number}" for number in range(60)]).drop(columns="day")


def test_frames_are_joined_by_a_column_that_names_clips() -> None:
    plain = earmark.compare({"a": vectors(0), "b": vectors(1)}, LABELS, groups=TAPES, metrics="P@1")
    first, second = named(vectors(0)), named(vectors(1))
    words = {"groups": "tape", "metrics": "P@1", "ids": "clip"}
    mixed = second.sample(frac=1, random_state=0)
    for a, b in ((first, mixed), (polars.from_pandas(first), polars.from_pandas(mixed))):
        assert earmark.compare({"a": a, "b": b}, "species", **words).rows[0].value == plain.rows[0].value
    part = earmark.compare({"a": first, "b": mixed[mixed["clip"] != "c3"]}, "species", **words)
    assert part.rows[0].n == 59
    assert "Compared on the 59 clips, of 60, that all frames have" in part.notes
    with pytest.raises(InputError, match="b has c3 more than once in 'clip'"):
        earmark.compare({"a": first, "b": second.assign(clip="c3")}, "species", ids="clip")
    with pytest.raises(InputError, match="no clip in common"):
        earmark.compare({"a": first, "b": second.assign(clip="z" + second["clip"])}, "species", ids="clip")
    with pytest.raises(UsageError, match="names of columns"):
        earmark.compare({"a": first, "b": mixed}, LABELS, ids="clip")


def test_frames_with_equal_labels_and_another_order_are_refused() -> None:
    first, second = named(vectors(0)), named(vectors(1))
    turned = second.iloc[[*range(19, -1, -1), *range(20, 60)]]  # bark stays bark
    with pytest.raises(InputError, match=r"another order, by their column 'clip': join them with ids='clip'"):
        earmark.compare({"a": first, "b": turned}, "species")
    with pytest.raises(InputError, match="another order, by their index"):
        earmark.compare({"a": first.drop(columns="clip"), "b": turned.drop(columns="clip")}, "species")
    again = turned.drop(columns="clip").reset_index(drop=True)
    assert earmark.compare({"a": first.drop(columns="clip"), "b": again}, "species", metrics="P@1").rows[0].n == 60


def test_columns_beside_numbered_ones_are_doubted() -> None:
    values = np.random.default_rng(0).normal(size=(60, 9))
    table = frame(values).drop(columns="day").assign(duration=values[:, 0] ** 2)
    with pytest.warns(UserWarning, match='"duration" is taken as a feature; if it is none, drop it from the frame'):
        earmark.evaluate(table, "species", metrics="P@1")
    with pytest.raises(InputError, match="drop it from the frame"):
        earmark.evaluate(table.assign(duration=range(5, 65)), "species", metrics="P@1")


def test_the_table_of_groups_is_shown_and_becomes_a_frame() -> None:
    scores = earmark.evaluate(frame(vectors()), "species", groups="tape", metrics="P@1", per_point=True)
    parts = scores.by_group()
    lines = parts.to_pandas()
    assert list(lines.columns[:4]) == ["group", "clips", "classes", "P@1"]
    assert lines["clips"].sum() == 60
    assert lines["P@1 low"].dtype == float
    assert repr(parts.table()).splitlines()[2].startswith("group")


def test_a_wrong_name_is_told_with_the_names_that_are_there() -> None:
    with pytest.raises(MissingColumn, match=r'no column "specie".* Did you mean "species"'):
        earmark.evaluate(frame(vectors()), "specie")
    with pytest.raises(UsageError, match="names a column, and the vectors are no data frame"):
        earmark.evaluate(vectors(), "species")
    with pytest.raises(UsageError, match="labels='species'"):
        earmark.evaluate(frame(vectors()))


def test_scores_become_frames_without_losing_what_is_missing() -> None:
    rows = (
        Row(system="a", metric="P@1", value=0.5, low=0.4, high=0.6, n=10),
        Row(system="b", metric="P@1", status="failed", reason="it broke"),
    )
    table = Scores(rows).to_pandas()
    assert list(table.columns) == list(COLUMNS)
    assert table.loc[0, "n"] == 10
    assert table[["value", "n"]].isna().loc[1].all()
    other = Scores(rows).to_polars()
    assert other["value"].to_list() == [0.5, None]
    assert other["reason"].to_list() == ["", "it broke"]
    assert Scores().to_pandas().shape == Scores().to_polars().shape == (0, len(COLUMNS))


def test_scores_show_three_metrics_and_say_where_the_others_are() -> None:
    scores = earmark.evaluate(vectors(), LABELS)
    text, page = repr(scores), scores._repr_html_()
    for shown in (text, page):
        assert "P@1" in shown
        assert "Also measured: CSR" in shown
        assert "hub_ratio" in shown
    assert "Row(" not in text
    assert page.count('scope="col"') == 3
    assert repr(Scores()).strip().endswith("no rows")


def test_markup_in_names_is_shown_as_text() -> None:
    rows = [Row(system=f"<script>{n}</script>", metric="P@1", value=0.5) for n in range(2)]
    page = Scores(tuple(rows))._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_long_tables_are_cut_and_say_so() -> None:
    scores = Scores(tuple(Row(system=f"model {n}", metric="P@1", value=0.5) for n in range(200)))
    assert repr(scores).count("model ") == 20
    assert "20 of 200 lines" in repr(scores)


def test_corpora_and_analyses_show_themselves() -> None:
    corpus = earmark.open_corpus("synth:tiny")
    assert "SYN-HW" in repr(corpus)
    assert "<table" in corpus._repr_html_()
    rng = np.random.default_rng(0)
    rows = tuple(
        Row(subset=f"s{subset}", system=f"m{model}", metric="P@1", value=float(rng.uniform()))
        for model in range(8)
        for subset in range(5)
    )
    study = earmark.analyze(Scores(rows), metric="P@1")
    assert "8 models on 5 datasets" in repr(study)
    assert "<table" in study._repr_html_()


def test_figures_have_what_the_tables_have() -> None:
    pytest.importorskip("matplotlib")
    scores = earmark.evaluate(vectors(), LABELS, distance=["cosine", "euclidean"], permutations=20)
    axes = scores.plot().axes[0]
    assert sorted(label.get_text() for label in axes.get_yticklabels()) == ["cosine", "euclidean"]
    compared = earmark.compare(vectors(0), vectors(1), LABELS, names=("a", "b"))
    assert compared.plot(metric="GSR:difference").axes[0].get_xlabel().startswith("GSR")
    with pytest.raises(InputError, match="nothing to draw"):
        Scores().plot()


def test_a_tensor_with_a_gradient_is_measured() -> None:
    torch = pytest.importorskip("torch")
    scores = earmark.evaluate(torch.tensor(vectors(), requires_grad=True), LABELS, metrics="P@1")
    assert scores.value("P@1") == earmark.evaluate(vectors(), LABELS, metrics="P@1").value("P@1")


def test_a_column_that_dwarfs_the_features_brings_a_warning() -> None:
    rng = np.random.default_rng(0)
    names = ["centroid", "flatness", "slope", "energy", "pitch", "rolloff"]
    table = pandas.DataFrame(vectors(), columns=names).assign(species=LABELS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        earmark.evaluate(table, "species", metrics="P@1")
    with pytest.warns(UserWarning, match='"duration_ms" is taken as a feature, .* times as wide'):
        earmark.evaluate(table.assign(duration_ms=rng.uniform(200, 3000, 60)), "species", metrics="P@1")
    with pytest.warns(UserWarning, match='"year"'):
        earmark.evaluate(table.assign(year=rng.integers(2020, 2024, 60)), "species", metrics="P@1")
