"""What the papers' texts say in numbers, held against their tables: every verdict is worked out, and can change."""

from __future__ import annotations

import csv
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from earmark import published
from earmark.published._claims import _printed
from earmark.published._claims._record import JUDGES

CLAIMS = {claim.name: claim for claim in published.claims()}


def test_every_claim_is_worked_out_and_has_the_verdict_it_had() -> None:
    assert len(CLAIMS) == len(JUDGES) > 100
    for claim in CLAIMS.values():
        assert claim.as_known, (claim.name, claim.verdict, claim.computed)
        assert claim.paper in published.PAPERS
        assert claim.where
        assert claim.computed
        assert claim.verdict == "agrees" or claim.reading, claim.name  # who contradicts says how it was read
    assert {claim.verdict for claim in CLAIMS.values()} == set(published.VERDICTS)


def test_no_quoted_number_is_long_and_none_is_a_sentence() -> None:
    for claim in CLAIMS.values():
        assert len(claim.quoted) < 70, claim.name
        assert not claim.quoted or re.search(r"\d|likely", claim.quoted), claim.name


def test_a_changed_table_changes_verdicts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The arithmetic is done each time: with other numbers in a table the sentences about it stand differently."""
    from earmark.published._claims import vocsim_validation

    rows = published.read("vocsim_table18_hear")
    for row in rows[:5]:
        row["whisper_d100_acc_pct"] = str(float(row["hear_sota_acc_pct"]) + 0.1)
    real = vocsim_validation.read
    monkeypatch.setattr(vocsim_validation, "read", lambda name: rows if name == "vocsim_table18_hear" else real(name))
    changed = {claim.name: claim for claim in published.claims()}
    assert CLAIMS["hear-records"].computed == "above in 4, equal in 1, below in 2"
    assert changed["hear-records"].computed == "above in 7, equal in 0, below in 0"
    assert not changed["hear-tonics"].as_known


# --- a second way to the numbers that matter most, with NumPy and from the files -----------------------------------


def _column(metric: str) -> dict[tuple[str, str], dict[str, float]]:
    """A full table, read from the file by other means."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    with (Path(published.__file__).parent / "data" / "vocsim_full_results.csv").open(encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            if row["metric"] == metric and row["value_pct"] and "sentinel" not in row["check"]:
                found.setdefault((row["method"], row["distance"]), {})[row["subset"]] = float(row["value_pct"])
    return found


def test_trends_by_hand() -> None:
    """Ranks of 19 subsets by hand: ρ of P@1 with clips and classes, of the best 6 of 127 whole configurations."""
    facts = {row["subset"]: row for row in published.read("vocsim_table1_subsets")}
    names = list(facts)
    table = np.array([[row.get(name, np.nan) for name in names] for row in _column("P@1").values()])
    table = table[np.isfinite(table).all(axis=1)]
    assert len(table) == 127
    best = np.argsort(-np.round(table.mean(axis=1), 9), kind="stable")[:6]
    values = np.round(table[best].mean(axis=0), 9)
    for column, name in (("n_samples", "precision-and-clips"), ("n_classes", "precision-and-classes")):
        facts_ranks = stats.rankdata([float(facts[subset][column]) for subset in names])
        rho = np.corrcoef(facts_ranks, stats.rankdata(values))[0, 1]
        assert CLAIMS[name].computed.startswith(f"P@1 {_printed.signed(rho)} ")
    assert CLAIMS["precision-and-clips"].computed.startswith("P@1 +.05 (p = .855)")
    assert (
        CLAIMS["precision-and-classes"].computed
        == "P@1 −.61 (p = .009, corrected .130), P@5 −.72 (p = .001, corrected .018)"
    )


def test_trends_are_those_of_the_command() -> None:
    """One selection of configurations, one ρ and one corrected p in the claims and in `earmark figures`."""
    from earmark.published._claims.vocsim_trends import _TRENDS, _trend
    from earmark.report.drawing import draw_figures

    (figure,) = draw_figures("published:vocsim", figure="trend-correlations", with_repeats=True)
    columns = {"clips": "n_samples", "classes": "n_classes", "clips per class": "clips per class"}
    compared = [row for row in figure.rows if row["property"] in columns]
    assert len(compared) == 27
    for row in compared:
        rho, p = _trend(row["metric"], columns[row["property"]], row["top"] / 100)
        assert rho == pytest.approx(row["rho"], abs=1e-9), row
        assert min(1.0, _TRENDS * p) == pytest.approx(row["p_value"], abs=1e-9), row
        assert row["comparisons"] == _TRENDS


def test_check_and_claims_count_the_observed_means_alike() -> None:
    (finding,) = [one for one in published.check() if one.name.startswith("Tables 9–11")]
    assert (finding.reproduced, finding.total) == (5, 6)
    assert CLAIMS["observed-means"].computed.startswith(f"{finding.reproduced} of {finding.total}; blind GSR 39.38")
    assert "39.52" in finding.remark


def test_words_and_purity_by_hand() -> None:
    row = _column("P@1")["EWMTF D100", "S"]
    facts = {line["subset"]: line for line in published.read("vocsim_table1_subsets")}
    shipibo = [name for name in facts if "Shipibo" in facts[name]["domain"]]
    words = [name for name in facts if "Words" in facts[name]["domain"] and facts[name]["split"] == "public"]
    assert (sorted(words), sorted(shipibo)) == (["HW1", "HW2"], ["HU3", "HW3"])
    public, blind = (np.mean([row[name] for name in names]) for names in (words, shipibo))
    assert f"words to Shipibo {public:.1f} to {blind:.1f} " in CLAIMS["drop-at-equal-range"].computed
    assert CLAIMS["dynamic-range-of-words"].verdict == "agrees"  # in parity, whatever the numbers
    blind_names = {"HW3", "HU3", "HW4", "HU4"}
    purity = {
        key: np.mean([value for name, value in row.items() if name not in blind_names])
        for key, row in _column("Weighted Purity").items()
    }
    order = sorted(purity, key=lambda key: -purity[key])
    assert order[0] == ("CLP D100", "C")
    assert order.index(("EWMTF D100", "S")) == 5
    assert f"place 6 of {len(order)} (CLP D100 C {purity[order[0]]:.1f})" in CLAIMS["purity-leads"].computed


def test_metric_correlations_are_those_of_the_analysis() -> None:
    """Table 12 by another room's code, which ranks in its own way."""
    from earmark.analysis.similarities import rank_correlations

    one, other = _printed.means("GSR", "public"), _printed.means("P@1", "public")
    shared = [key for key in one if key in other]
    pair = [np.array([values[key] for key in shared])[:, None] for values in (one, other)]
    assert f"GSR with P@1 {_printed.signed(rank_correlations(*pair)[0, 0])}" in CLAIMS["metric-correlations"].computed


def test_encodec_between_two_rates() -> None:
    """At a printed rate it is the printed value; between two it lies between them, at half the octave in the middle."""
    from earmark.published._claims.codec_superb import _encodec_at

    assert [_encodec_at(rate, "speech_overall") for rate in (1.5, 3, 6, 12, 24)] == [0.579, 0.636, 0.697, 0.748, 0.775]
    assert _encodec_at(3 * 2**0.5, "speech_overall") == pytest.approx((0.636 + 0.697) / 2)
    assert _encodec_at(1, "speech_overall") == 0.579


def test_academicodec_beside_encodec_at_its_rates() -> None:
    """B1 and B2 have 2 kbps and are not held against EnCodec at 3: by hand, 0.415 of the way from 1.5 to 3."""
    table = {row["codec"]: row for row in published.read("codec_superb_table3")}
    way = float(np.log2(2 / 1.5))
    ahead = 0
    for column, sign in (("asr_wer_pct", -1), ("asv_eer_pct", -1), ("er_acc_pct", 1), ("aec_map_pct", 1)):
        slow, fast = (float(table[name][column]) for name in ("E1", "E2"))
        for name, theirs in (("B1", slow + way * (fast - slow)), ("B2", slow + way * (fast - slow)), ("B3", fast)):
            ahead += sign * float(table[name][column]) > sign * theirs
    assert CLAIMS["academic-at-low-rates"].computed.startswith(f"{ahead} of 12; ")
    assert CLAIMS["academic-at-low-rates"].computed.endswith("in all four: B2")


def test_the_best_distance_is_judged_by_class() -> None:
    said = CLAIMS["best-distance-is-reported"].computed
    assert said.startswith("best by class: Whisper and CLAP, S in P@1, P@5, GSR; SSL, E in GSR;")


def test_what_cannot_be_told_is_no_failure() -> None:
    """`check` counts agreed of decided claims, and the others apart."""
    for found in published.check():
        if found.name.startswith("claims of the text"):
            verdicts = [claim.verdict for claim in CLAIMS.values() if claim.paper == found.paper]
            undecided = verdicts.count("cannot be told")
            assert (found.reproduced, found.total) == (verdicts.count("agrees"), len(verdicts) - undecided)
            assert found.name.endswith(f"({undecided} cannot be told)")


def test_signs() -> None:
    assert [_printed.signed(value) for value in (0.094, -0.58, 10.9, -10.9, 0)] == [
        "+.09", "−.58", "+10.90", "−10.90", "+.00",
    ]  # fmt: skip


def test_commands_of_claims_parse() -> None:
    from earmark.cli import parser_of

    for command in {claim.command for claim in CLAIMS.values()}:
        program, verb, *rest = shlex.split(command)
        assert program == "earmark"
        parser_of(verb)[0].parse_args(rest)


def test_the_command_prints_and_writes_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from earmark.cli import main

    assert main(["published", "claims", "--paper", "codec-superb", "--verdict", "differs"]) == 0
    printed = capsys.readouterr().out
    assert "EER F1 1.5, F2 1.81, place 6" in printed
    assert "VocSim" not in printed
    assert main(["published", "claims", "--out", str(tmp_path / "claims.md"), "--quiet"]) == 0
    page = (tmp_path / "claims.md").read_text(encoding="utf-8")
    assert page == published.claims_page(published.claims())
    assert main(["published", "claims", "--out", str(tmp_path / "claims.csv"), "--quiet"]) == 0
    with (tmp_path / "claims.csv").open(encoding="utf-8") as stream:
        assert [row["name"] for row in csv.DictReader(stream)] == list(CLAIMS)
    assert main(["published", "claims", "--paper", "simbo"]) == 2
    assert 'Did you mean "simba"?' in capsys.readouterr().err
    assert main(["published", "claims", "--out", str(tmp_path / "claims.txt")]) == 2


def test_parameters_beside_table_17() -> None:
    """What docs/judged.md says of Table 17: the cards' numbers of parameters, in millions, and the printed ones."""
    from earmark.extractors import CARDS

    names = {"Whisper-L-v3": "whisper", "WavLM-Large": "wavlm", "Wav2Vec2-Base": "wav2vec2", "AudioMAE": "audiomae",
             "CLAP": "clap", "EnCodec (24kHz)": "encodec"}  # fmt: skip
    printed = {row["model"]: float(row["params_M"]) for row in published.read("vocsim_table17_efficiency")}
    cards = {model: CARDS[name].parameters / 1e6 for model, name in names.items()}
    page = (Path(__file__).resolve().parents[2] / "docs" / "judged.md").read_text(encoding="utf-8")
    assert f"WavLM Large has {cards['WavLM-Large']:.2f} M where {printed['WavLM-Large']:.2f} is printed" in page
    for model, words in (("Wav2Vec2-Base", "Wav2Vec 2.0"), ("Whisper-L-v3", "the Whisper encoder")):
        assert f"{words} {cards[model]:.2f} ({printed[model]:.2f})" in page
    for model in ("AudioMAE", "CLAP", "EnCodec (24kHz)"):
        assert printed[model] == pytest.approx(cards[model], rel=0.005)
    attention = 24 * 4 * (1024 * 1024 + 1024)
    convolution = 1024 * (1024 // 16) * 128
    assert cards["WavLM-Large"] - (attention + convolution) / 1e6 == pytest.approx(printed["WavLM-Large"], abs=0.02)
