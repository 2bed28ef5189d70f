"""Predicted scores: marked as such everywhere, never from the same model, and as good as the intervals say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import earmark
from earmark import published
from earmark.analysis.matrix import Matrix, from_scores
from earmark.analysis.predict import predict
from earmark.analysis.suite import LITE
from earmark.errors import InputError, UsageError
from earmark.report import by_subset, to_latex, to_text
from earmark.scores import Row, Scores, aggregate, load_scores, validate


def part(system: str = "CLP D100", subsets: tuple[str, ...] = LITE["vocsim"], metric: str = "P@1") -> Scores:
    printed = published.load("vocsim").select(system=system, distance="cosine", metric=metric)
    return Scores(tuple(Row(suite="vocsim", subset=row.subset, system="mine", distance="cosine", metric=metric,
                            value=row.value) for row in printed if row.subset in subsets))  # fmt: skip


@pytest.fixture(scope="module")
def filled() -> Scores:
    return predict(part())


def test_every_other_subset_is_predicted_with_an_interval(filled: Scores) -> None:
    rows = [row for row in filled if row.status == "predicted"]
    assert {row.subset for row in rows} == {row.subset for row in published.load("vocsim")} - set(LITE["vocsim"]) | {
        "mean:public", "mean:blind",
    }  # fmt: skip
    for row in rows:
        assert None not in (row.value, row.low, row.high)
        assert 0 <= row.low <= row.value <= row.high <= 1
        assert row.reason.startswith("predicted from BS4, HS1 and HW2 by ridge regression over 89 configurations")
        assert len(row.inputs) == 64
    assert validate(filled.rows) == []
    measured = [row for row in filled if row.status == "ok"]
    assert Scores(tuple(measured)) == part()


def test_nobody_takes_a_prediction_for_a_measurement(filled: Scores, tmp_path) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match="P@1 has no value here: predicted"):
        filled.value("P@1", subset="HU3")
    mean = aggregate(filled, "mean").row("P@1")
    assert mean.value == pytest.approx(np.mean([row.value for row in part()]))
    assert aggregate(filled, "public").row("P@1").status == "not_applicable"
    filled.write(tmp_path / "filled.csv")
    assert load_scores(tmp_path / "filled.csv") == filled
    assert predict(load_scores(tmp_path / "filled.csv")) == filled  # old predictions are made anew, not used
    text = by_subset(filled, "P@1")
    assert text.count("~") == 18
    assert "~" in to_text(filled)
    assert r"$\sim$" in to_latex(filled)


def test_a_prediction_is_never_the_best_of_a_column() -> None:
    rows = (
        Row(system="a", metric="P@1", value=0.4),
        Row(system="b", metric="P@1", value=0.9, low=0.8, high=1.0, status="predicted", reason="predicted from x"),
        Row(system="c", metric="P@1", value=0.3),
    )
    from earmark.report import to_markdown

    assert "**40.0**" in to_markdown(Scores(rows))
    assert "**~" not in to_markdown(Scores(rows))


def test_a_prediction_without_interval_or_reason_is_refused() -> None:
    bare = Row(metric="P@1", value=0.5, status="predicted")
    problems = " ".join(validate([bare]))
    assert "without an interval" in problems
    assert "without a reason" in problems
    assert "no value" in " ".join(validate([Row(metric="P@1", status="predicted", reason="x")]))


def test_the_same_model_is_never_in_the_history(histories: list[Matrix]) -> None:
    printed = published.load("vocsim").select(system="EWMTF D100", distance="cosine", metric="P@1")
    predict(Scores(tuple(row for row in printed if row.subset in LITE["vocsim"])))
    (history,) = histories
    assert "Whisper" not in history.families
    assert not any(name.startswith("EW") for name in history.models)
    assert any(name.startswith("EMTF") for name in history.models)
    histories.clear()
    mine = part()
    predict(mine, families={"mine": "CLAP"})
    assert "CLAP" not in histories[0].families


def test_other_systems_of_the_table_are_history_and_tables_are_too() -> None:
    """With a history of one's own alone: five models that follow one skill, and a sixth that is measured on one set."""
    rng = np.random.default_rng(0)
    rows = []
    for system in range(6):
        for subset in range(4):
            value = 0.2 + 0.1 * system + 0.02 * subset + 0.002 * rng.normal()
            rows.append(Row(suite="s", subset=f"d{subset}", system=f"m{system}", metric="P@1", value=value))
    table = Scores(tuple(row for row in rows if row.system != "m3" or row.subset == "d0"))
    found = predict(table)
    predicted = {row.subset: row for row in found if row.status == "predicted"}
    assert set(predicted) == {"d1", "d2", "d3"}
    truth = {row.subset: row.value for row in rows if row.system == "m3"}
    for subset, row in predicted.items():
        assert row.low <= truth[subset] <= row.high
        assert "of 5 other models" in row.reason
    only = Scores(tuple(row for row in table if row.system == "m3"))
    again = predict(only, [Scores(tuple(row for row in table if row.system != "m3"))])
    assert {row.subset: row.value for row in again if row.status == "predicted"} == {
        subset: row.value for subset, row in predicted.items()
    }
    assert predict(only).notes == (
        "m3, P@1: the history has 0 other models with these subsets of s, and 4 are needed; "
        "give tables with --history.",
    )


def test_extrapolation_and_strange_subsets_are_said() -> None:
    high = Scores(tuple(Row(suite="vocsim", subset=s, system="mine", metric="P@1", value=0.99) for s in ("HW2", "BS4")))
    assert any("outside everything in the history" in note for note in predict(high).notes)
    odd = Scores(
        (*part().rows, Row(suite="vocsim", subset="XX", system="mine", distance="cosine", metric="P@1", value=0.5))
    )
    found = predict(odd)
    assert any("XX is in too little of the history" in note for note in found.notes)
    assert len([row for row in found if row.status == "predicted"]) == 18
    mine = [
        Row(suite="vocsim", subset=s, system=f"own{n}", metric="P@1", value=0.1 * n)
        for n in range(6)
        for s in ("XX", "BC")
    ]
    (row,) = [row for row in predict(odd, [Scores(tuple(mine))]) if row.subset == "HU3"]
    assert "89 configurations" in row.reason  # six models that have XX do not cost the others that have not


def test_what_is_said_of_several_is_said_once() -> None:
    rows = [Row(suite="s", subset="d0", system=f"m{n}", metric="P@1", value=0.1 * n) for n in range(3)]
    (note,) = predict(Scores(tuple(rows))).notes
    assert note.startswith("m0, P@1; m1, P@1; m2, P@1: the history has")
    (note,) = predict(Scores(tuple(replace(rows[0], distance=name) for name in "abcde"))).notes
    assert note.startswith("m0 under a, P@1; m0 under b, P@1; m0 under c, P@1; 2 more: the history has")


def test_percentages_are_refused_wherever_they_stand() -> None:
    percent = Scores(tuple(replace(row, value=100 * row.value) for row in part()))  # type: ignore[operator]
    with pytest.raises(InputError, match="write fractions: divide by 100"):
        predict(percent)
    with pytest.raises(InputError, match="write fractions: divide by 100"):
        predict(part(), [percent])


def test_a_plain_table_is_the_score_table_of_its_metric(tmp_path: Path) -> None:
    header = ",".join(row.subset for row in part())
    values = ",".join(repr(row.value) for row in part())
    (tmp_path / "plain.csv").write_text(f"model,{header}\nmine,{values}\n")
    found = predict(tmp_path / "plain.csv", metric="P@1")
    bare = {row.subset: row.value for row in predict(part()) if row.status == "predicted"}
    assert {row.subset: row.value for row in found if row.status == "predicted"} == pytest.approx(bare)
    with pytest.raises(UsageError, match="is a plain table of models and datasets: say with one --metric"):
        predict(tmp_path / "plain.csv")
    (tmp_path / "kin.csv").write_text(f"model,family,{header}\nmine,CLAP,{values}\n")
    (row,) = predict(tmp_path / "kin.csv", metric="P@1").select(subset="HU3").rows
    assert "of 11 other models" in row.reason


def test_the_public_name_is_lazy() -> None:
    assert earmark.predict is predict


def test_a_copy_of_vocsim_under_another_name_is_recognised() -> None:
    copy = Scores(
        tuple(Row(suite="copies", subset=r.subset, system="mine", metric="P@1", value=r.value) for r in part())
    )
    found = predict(copy)
    assert {row.suite for row in found} == {"vocsim"}
    assert any("taken for it" in note for note in found.notes)


def test_lower_is_better_stays_in_its_range() -> None:
    found = predict(part(metric="CSCF"))
    for row in found:
        if row.status == "predicted":
            assert 0 <= row.low <= row.value <= row.high <= 1  # type: ignore[operator]


def test_nothing_to_predict_from_and_nothing_to_predict() -> None:
    with pytest.raises(InputError, match="no measured value"):
        predict(Scores((Row(suite="vocsim", subset="BC", metric="P@1", status="failed", reason="x"),)))
    whole = published.load("vocsim").select(system="CLP D100", distance="cosine", metric="P@1")
    found = predict(whole)
    assert [row for row in found if row.status == "predicted"] == []
    assert "every subset" in found.notes[0]


def test_a_sample_and_its_subset_are_not_two_datasets() -> None:
    rows = Scores((*part(), *(replace(row, subset=f"{row.subset}~50x5", ablation="sample50x5") for row in part())))
    for work in (predict, from_scores):
        with pytest.raises(InputError, match=r'"BS4" and "BS4~50x5" share clips and cannot be two datasets'):
            work(rows)
    (row, *_) = part()
    two = [replace(row, subset=f"BS1~50x5{seed}") for seed in ("", ":seed3")]
    with pytest.raises(InputError, match=r'"BS1~50x5" and "BS1~50x5:seed3" share clips'):
        from_scores(Scores(tuple(two)))


def test_intervals_hold_for_models_that_were_never_seen() -> None:
    """Each model of VocSim predicted from the lite suite by the others: about nine cells in ten lie inside."""
    table = published.load("vocsim").select(metric="P@1", distance="cosine", status="ok")
    systems = [
        "EWMTF D100", "EMTF D100", "CLP D100", "WLM D100", "W2V D100", "MAE D100",
        "M", "VC", "AC", "CC", "EAT", "BEATs",
    ]  # fmt: skip
    inside = total = 0
    asked = Scores(tuple(r for r in table if r.system in systems and r.subset in LITE["vocsim"]))
    truth = {(row.system, row.subset): row.value for row in table}
    found = predict(asked)
    for row in found:
        if row.status == "predicted" and (row.system, row.subset) in truth:
            inside += row.low <= truth[row.system, row.subset] <= row.high  # type: ignore[operator]
            total += 1
    assert total == 12 * 16
    assert 0.85 <= inside / total <= 0.97


def test_a_mean_takes_what_was_measured_as_it_is() -> None:
    """14 of 15 subsets at 0.7 leave a mean between 0.653 and 0.720, whatever the history says."""
    from earmark.analysis.predict import MEANS

    members = MEANS["mean:public"]
    for left_out in ("OC1", "HP"):
        rows = tuple(
            Row(suite="vocsim", subset=name, system="x", distance="cosine", metric="P@1", value=0.7)
            for name in members
            if name != left_out
        )
        filled = predict(Scores(rows))
        mean, single = (filled.row("P@1", subset=name) for name in ("mean:public", left_out))
        assert 14 * 0.7 / 15 <= mean.low <= mean.value <= mean.high <= (14 * 0.7 + 1) / 15
        assert mean.value == pytest.approx((14 * 0.7 + single.value) / 15, abs=1e-9)
        assert (mean.low, mean.high) == (
            pytest.approx((14 * 0.7 + single.low) / 15), pytest.approx((14 * 0.7 + single.high) / 15),
        )  # fmt: skip
        assert "14 of its 15 subsets as measured" in mean.reason
        assert filled.row("P@1", subset="mean:blind").status == "predicted"


def test_predicted_means_of_held_out_models_are_near_and_their_intervals_hold() -> None:
    from earmark.analysis.predict import MEANS

    members = MEANS["mean:public"]
    scores = published.load("vocsim").select(metric="P@1", distance="cosine", status="ok")
    values: dict[str, dict[str, float]] = {}
    for row in scores:
        values.setdefault(row.system, {})[row.subset] = row.value  # type: ignore[assignment]
    rng = np.random.default_rng(0)
    errors, inside = [], []
    for system, mine in values.items():
        if not set(members) <= set(mine):
            continue
        kept = rng.permutation(members)[:14]
        part = Scores(tuple(row for row in scores if row.system == system and row.subset in kept))
        found = predict(part).row("P@1", subset="mean:public")
        true = float(np.mean([mine[name] for name in members]))
        errors.append(found.value - true)
        inside.append(found.low - 1e-9 <= true <= found.high + 1e-9)
    assert len(errors) >= 15
    assert float(np.sqrt(np.mean(np.square(errors)))) < 0.008  # 0.023 when the mean was predicted as a whole
    assert np.mean(inside) >= 0.85  # 0.9 is asked for, of some twenty
