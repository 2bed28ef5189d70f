"""VocSim's external validation: HEAR, finches, mice; and what models may have heard before."""

from __future__ import annotations

from earmark.published._claims._printed import BEST, averages, count, place, rank_correlation, signed, small, subsets
from earmark.published._claims._record import Judged, judge
from earmark.published._papers import read


def _hear(one: str, other: str) -> list[float]:
    """The differences of two columns, over the seven tasks."""
    rows = read("vocsim_table18_hear")
    return [round(float(row[f"{one}_acc_pct"]) - float(row[f"{other}_acc_pct"]), 2) for row in rows]


def _compared(differences: list[float]) -> str:
    above, equal = sum(value > 0 for value in differences), sum(value == 0 for value in differences)
    return f"above in {above}, equal in {equal}, below in {len(differences) - above - equal}"


@judge
def hear_records() -> Judged:
    found = _hear("whisper_d100", "hear_sota")
    return _compared(found), sum(value > 0 for value in found) == 5


@judge
def hear_over_clap() -> Judged:
    found = _hear("whisper_d100", "clap_d100")
    return _compared(found), all(value > 0 for value in found)


@judge
def hear_tonics() -> Judged:
    row = next(row for row in read("vocsim_table18_hear") if row["task"] == "Mridangam Tonic")
    difference = float(row["hear_sota_acc_pct"]) - float(row["whisper_d100_acc_pct"])
    return f"{difference:.1f} points", round(difference) == 7


@judge
def hear_speech_and_emotion() -> Judged:
    rows = {row["task"].split()[0]: row for row in read("vocsim_table18_hear")}
    pairs = [
        (float(rows[task]["whisper_d100_acc_pct"]), float(rows[task]["hear_sota_acc_pct"]))
        for task in ("Speech", "CREMA-D")
    ]
    return ", ".join(f"{mine} over {best}" for mine, best in pairs), all(mine > best for mine, best in pairs)


@judge
def finches() -> Judged:
    rows = read("vocsim_avian_triplet_accuracy")
    best = max(rows, key=lambda row: float(row["triplet_acc_pct"]))
    return f"{best['method_as_printed']} {best['triplet_acc_pct']}", 80 <= float(best["triplet_acc_pct"]) <= 90


@judge
def leaders_and_finches() -> Judged:
    rows = read("vocsim_avian_triplet_accuracy")
    there = any(row["method"] == BEST[0] for row in rows)
    found = averages("P@1")
    rank = min(place(found, key) for key in found if key[0] == "EW")
    said = f"EWMTF D100 {'is' if there else 'is not'} printed; EW is place {rank} of {len(found)} in public P@1"
    return said, None


@judge
def transfer_to_finches() -> Judged:
    found = averages("P@1")
    pairs = [
        (found[key], float(row["triplet_acc_pct"]))
        for row in read("vocsim_avian_triplet_accuracy")
        if (key := ("CLP" if row["method"] == "CLAP" else row["method"], row["distance"])) in found
    ]
    rho, p = rank_correlation(*zip(*pairs, strict=True))
    return f"ρ = {signed(rho)} ({small(p)}, taken as independent) over {len(pairs)} configurations", None


@judge
def strain_and_spectrograms() -> Judged:
    rows = {row["method"]: float(row["mlp_a0.001_top1"]) for row in read("vocsim_mouse_strain")}
    best = max(value for name, value in rows.items() if name.startswith("Spectrogram"))
    latent = next(value for name, value in rows.items() if name.startswith("Latent"))
    return f"{max(rows.values())}; spectrograms {best}, latent features {latent}", abs(best - 90) < 1


@judge
def leaders_and_mice() -> Judged:
    ours = {row["method"]: float(row["mlp_a0.001_top1"]) for row in read("vocsim_mouse_strain") if _own(row)}
    rank = 1 + sum(value > ours[BEST[0]] for value in ours.values())
    found = averages("P@1")
    identity = {row["feature_set"]: float(row["mlp_a0.01_top1_pct"]) for row in read("vocsim_mouse_identity")}
    said = (
        f"strain: EWMTF D100 is place {rank} of {len(ours)}; identity: ET D100 {identity['ET (D=100)']}, EMTF D100 "
        f"{identity['EMTF (D=100)']}, where public P@1 is {found['ET D100', 'S']} and {found['EMTF D100', 'S']}"
    )
    return said, None


def _own(row: dict[str, str]) -> bool:
    return row["source"] == "VocSim"


@judge
def identity_of_mice() -> Judged:
    best = max(read("vocsim_mouse_identity"), key=lambda row: float(row["mlp_a0.01_top1_pct"]))
    value = float(best["mlp_a0.01_top1_pct"])
    return f"{best['feature_set']} {value}, chance {100 / 36:.1f}", value == 53.1


@judge
def animals_unheard() -> Judged:
    animals = {name for name, row in subsets().items() if row["group"] == "Animal Vocalizations"}
    verdicts = [row["verdict"] for row in read("vocsim_table5_overlap") if row["subset"] in animals]
    return f"no evidence in {count([verdict == 'no evidence' for verdict in verdicts])} cells", not any(
        verdict == "confirmed" for verdict in verdicts
    )


@judge
def esc50_heard() -> Judged:
    rows = [row for row in read("vocsim_table5_overlap") if row["subset"] == "ES1"]
    confirmed = [row["model"] for row in rows if row["verdict"] == "confirmed"]
    return f"confirmed: {', '.join(confirmed)}", not confirmed
