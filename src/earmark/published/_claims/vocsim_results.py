"""VocSim: who leads, what PCA and distances do, and the gap to the blind subsets. Sections are the later version's."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, median

from earmark.published._claims._printed import (
    BEST,
    Configuration,
    averages,
    best_of_models,
    cells,
    count,
    means,
    members,
    permuted_means,
    place,
    rank_correlation,
    signed,
    subsets,
)
from earmark.published._claims._record import Judged, judge
from earmark.published._papers import read
from earmark.published._repeats import NEARLY_ALL
from earmark.published.families import vocsim_family
from earmark.scores import LEADING

_SMALL = ("log-mel", "VAE", "AE")
_WEAKLY_SUPERVISED = ("Whisper", "CLAP")


# --- who leads ----------------------------------------------------------------------------------------------------


@judge
def whisper_leads_in_public() -> Judged:
    places = [place(averages(metric), BEST) for metric in LEADING]
    values = ", ".join(f"{metric} {averages(metric)[BEST]}" for metric in LEADING)
    rivals = sum(value == averages("GSR")[BEST] for value in averages("GSR").values())
    return f"{values}; first in all three, in GSR with {rivals - 1} other", places == [1, 1, 1]


@judge
def whisper_leads_in_blind() -> Judged:
    parts = []
    for metric in LEADING:
        best = best_of_models(metric, "blind")
        model, (value, (method, distance)) = max(
            ((model, found) for model, found in best.items() if model != "Whisper"), key=lambda item: item[1][0]
        )
        parts.append(f"{metric} {best['Whisper'][0]}, next {model} ({method} {distance}) {value}")
    return "; ".join(parts), all(place(averages(metric, "blind"), BEST) == 1 for metric in LEADING)


@judge
def weak_supervision_wins() -> Judged:
    best = {model: value for model, (value, _) in best_of_models("P@1").items()}
    weak = _WEAKLY_SUPERVISED
    others = ("WavLM", "BEATs", "EAT", "AudioMAE", "Wav2Vec2")
    said = ", ".join(f"{model} {best[model]}" for model in sorted((*weak, *others), key=lambda model: -best[model]))
    return said, min(best[model] for model in weak) > max(best[model] for model in others)


@judge
def trained_baselines_stay_behind() -> Judged:
    best = best_of_models("P@1")
    said = ", ".join(f"{model} {best[model][0]}" for model in ("Whisper", "VAE", "AE"))
    return f"best public P@1: {said}", best["Whisper"][0] > max(best["VAE"][0], best["AE"][0])


@judge
def best_distance_is_reported() -> Judged:
    classes: dict[str, list[tuple[str, str]]] = {"Whisper and CLAP": [], "SSL": []}
    baselines = []
    for key in dict.fromkeys(row["full_table_key"] for row in read("vocsim_table2_main")):
        method, _, distance = key.rpartition(" ")
        model = vocsim_family(method, "model")
        if model in _SMALL:
            baselines.append(f"{model} {distance} in {len(_best_under([(method, distance)]))}")
        else:
            classes["Whisper and CLAP" if model in _WEAKLY_SUPERVISED else "SSL"].append((method, distance))
    best = {name: _best_under(rows) for name, rows in classes.items()}
    said = "; ".join(f"{name}, {rows[0][1]} in {', '.join(best[name]) or 'none'}" for name, rows in classes.items())
    return f"best by class: {said}; of three metrics, baselines: {', '.join(baselines)}", all(best.values())


def _best_under(rows: Sequence[Configuration]) -> list[str]:
    """The metrics in which the rows' distance has the highest mean over the rows' methods, of the printed distances."""
    (distance,) = {distance for _, distance in rows}
    best = []
    for metric in LEADING:
        found = averages(metric)
        means_of = {
            dist: fmean(found[method, dist] for method, _ in rows)
            for dist in "CES"
            if all((method, dist) in found for method, _ in rows)
        }
        if means_of[distance] == max(means_of.values()):
            best.append(metric)
    return best


@judge
def spearman_gains() -> Judged:
    parts, shares = [], []
    for metric in LEADING:
        found = averages(metric)
        methods = [
            method
            for method in dict.fromkeys(method for method, _ in found)
            if vocsim_family(method, "model") not in _SMALL and all((method, dist) in found for dist in "CES")
        ]
        best = [found[name, "S"] > max(found[name, "C"], found[name, "E"]) for name in methods]
        shares.append(sum(best) / len(best))
        parts.append(f"{metric} {count(best)}")
    return f"spearman is the best of three in {', '.join(parts)}", min(shares) > 0.5


@judge
def spearman_and_hubs() -> Judged:
    return "no numbers are printed", None


@judge
def margins_of_error() -> Judged:
    rows = {
        (row["full_table_key"], row["metric"]): row for row in read("vocsim_table2_main") if row["split"] == "blind"
    }
    pairs = [("EWMTF D100 S", "EWMTF S"), ("CLP D100 S", "CLP S"), ("WLM D100 E", "WLM E")]
    gaps = [
        abs(float(rows[one, metric]["margin_pct"]) - float(rows[other, metric]["margin_pct"]))
        for one, other in pairs
        for metric in LEADING
    ]
    return f"equal blind rows: margins differ in {count([gap > 0 for gap in gaps])}, by up to {max(gaps):.1f}", None


# --- PCA ----------------------------------------------------------------------------------------------------------


def _gains(metric: str, split: str) -> dict[str, float]:
    """D100 minus no PCA, of every method and distance that has both."""
    found = averages(metric, split)
    return {
        f"{method} {distance}": round(value - found[method.removesuffix(" D100"), distance], 1)
        for (method, distance), value in found.items()
        if method.endswith(" D100") and (method.removesuffix(" D100"), distance) in found
    }


def _equal_to_d100(split: str) -> tuple[int, int]:
    """In how many cells of a split the row without PCA equals that of D100."""
    names, alike = set(members(split)), []
    for metric in (*LEADING, "CSR", "CS", "CSCF", "Weighted Purity"):
        rows = cells(metric)
        for (method, distance), row in rows.items():
            pca = rows.get((f"{method} D100", distance), {})
            alike += [row[name] == pca[name] for name in names & set(row) & set(pca)]
    return sum(alike), len(alike)


@judge
def pca_gains_in_public() -> Judged:
    gains = _gains("P@1", "public")
    low, high = min(gains.values()), max(gains.values())
    return f"D100 minus raw from {signed(low, 1)} to {signed(high, 1)} in {len(gains)} pairs", None


@judge
def pca_is_idle_in_blind() -> Judged:
    gains = _gains("P@1", "blind")
    equal, total = _equal_to_d100("blind")
    said = f"difference 0.0 in {count([gain == 0 for gain in gains.values()])} averages; {equal} of {total} cells equal"
    return said, None if equal >= NEARLY_ALL * total else all(abs(gain) < 0.5 for gain in gains.values())


# --- the gap ------------------------------------------------------------------------------------------------------


def _permuted(metric: str, split: str) -> dict[str, str]:
    rows = read("vocsim_permutation_tests")
    return next(row for row in rows if (row["metric"], row["set"]) == (metric, split))


def _lift(split: str) -> float:
    row = _permuted("GSR", split)
    return float(row["observed_mean_pct"]) - float(row["baseline_mean_pct"])


@judge
def lift_of_gsr() -> Judged:
    public, blind = round(_lift("public"), 1), round(_lift("blind"), 1)
    return f"{signed(public, 1)}, {signed(blind, 1)}", (public, blind) == (16.9, 5.8)


@judge
def gap_of_precision() -> Judged:
    public, blind = averages("P@1")[BEST], averages("P@1", "blind")[BEST]
    return f"{public} to {blind}", (round(public), blind) == (67, 11.5)


@judge
def observed_means() -> Judged:
    found = permuted_means()
    held = [follows for _, _, follows in found]
    missed = [f"{row['set']} {row['metric']} {mean:.2f}, printed {row['observed_mean_pct']}"
              for row, mean, follows in found if not follows]  # fmt: skip
    return f"{count(held)}; {'; '.join(missed)}", all(held)


@judge
def chance_of_precision() -> Judged:
    parts, holds = [], True
    for split in ("public", "blind"):
        least = 100 * fmean(
            (int(subsets()[name]["n_samples"]) / int(subsets()[name]["n_classes"]) - 1)
            / (int(subsets()[name]["n_samples"]) - 1)
            for name in members(split)
        )
        one, five = (float(_permuted(metric, split)["baseline_mean_pct"]) for metric in ("P@1", "P@5"))
        holds &= least <= min(one, five) and abs(one - five) <= 0.011
        parts.append(f"{split} {one} and {five}, at least {least:.2f}")
    return "; ".join(parts), holds


@judge
def drop_at_equal_range() -> Judged:
    """The drop between the subsets that were found alike in dynamic range should be most of the drop it explains."""
    row, public, blind = cells("P@1")[BEST], averages("P@1")[BEST], averages("P@1", "blind")[BEST]
    words, shipibo = (fmean(row[name] for name in names) for names in (_WORDS, _SHIPIBO))
    said = f"all {public} to {blind}; public words to Shipibo {words:.1f} to {shipibo:.1f}"
    each = ", ".join(f"{name} {row[name]}" for name in (*_WORDS, *_SHIPIBO))
    return f"{said} ({each})", words - shipibo > (public - blind) / 2


_WORDS, _SHIPIBO = ("HW1", "HW2"), ("HW3", "HU3")
"""Public words, and the blind words and utterances of Shipibo-Conibo; HW4 and HU4 are Chintang."""


@judge
def dynamic_range_of_words() -> Judged:
    dri = {name: float(row["DRI_dB"]) for name, row in subsets().items()}
    words, shipibo = (fmean(dri[name] for name in names) for names in (_WORDS, _SHIPIBO))
    return f"{words:.1f} and {shipibo:.1f} dB", abs(words - shipibo) <= 1


@judge
def fewer_classes_in_blind() -> Judged:
    counts = {split: [int(subsets()[name]["n_classes"]) for name in members(split)] for split in ("public", "blind")}
    said = [f"{what.__name__.removeprefix('f')} {what(counts['public']):.0f} and {what(counts['blind']):.0f}"
            for what in (fmean, median)]  # fmt: skip
    return f"classes, public and blind: {', '.join(said)}", None


@judge
def vae_below_chance() -> Judged:
    observed = averages("GSR", "blind")["VC", "E"]
    chance = float(_permuted("GSR", "blind")["baseline_mean_pct"])
    return f"{observed} − {chance} = {signed(observed - chance, 1)}", None


# --- clustering and metrics ---------------------------------------------------------------------------------------


@judge
def purity_leads() -> Judged:
    public, blind = (means("Weighted Purity", split) for split in ("public", "blind"))
    first = max(public, key=lambda key: public[key])
    said = (
        f"public {public[BEST]:.1f}, place {place(public, BEST)} of {len(public)} ({' '.join(first)} "
        f"{public[first]:.1f}); blind {blind[BEST]:.1f}, place {place(blind, BEST)}"
    )
    return said, place(public, BEST) == place(blind, BEST) == 1


@judge
def purity_mirrors_retrieval() -> Judged:
    purity, parts, found = means("Weighted Purity", "public"), [], []
    for metric in LEADING:
        other = means(metric, "public")
        shared = [key for key in purity if key in other]
        found.append(rank_correlation([purity[key] for key in shared], [other[key] for key in shared])[0])
        parts.append(f"{metric} {signed(found[-1])}")
    return ", ".join(parts), min(found) > 0.5


_TWELVE = ("GSR", "P@1", "P@5", "CSR", "CS", "CSCF")


def _metric_correlation(one: str, other: str) -> float:
    """As Table 12 is said to be made: public means of every configuration, better is higher."""
    sign = {"CS": -1, "CSCF": -1}
    first, second = means(one, "public"), means(other, "public")
    shared = [key for key in first if key in second]
    rho, _ = rank_correlation([first[key] for key in shared], [second[key] for key in shared])
    return sign.get(one, 1) * sign.get(other, 1) * rho


@judge
def metric_correlations() -> Judged:
    printed = {row["metric"]: row for row in read("vocsim_table12_metric_correlations")}
    pairs = [(one, other) for place, one in enumerate(_TWELVE) for other in _TWELVE[place + 1 :]]
    found = {pair: _metric_correlation(*pair) for pair in pairs}
    held = [abs(found[one, other] - float(printed[one][other])) <= 0.05 for one, other in pairs]
    said = ", ".join(f"{name} {signed(found['GSR', name])}" for name in ("P@1", "P@5", "CSCF", "CS"))
    return f"{count(held)} within .05; GSR with {said}", all(held)


@judge
def separation_and_boundaries() -> Judged:
    found = _metric_correlation("CSR", "CS")
    return f"ρ = {signed(found)}", abs(found) < 0.2


@judge
def strong_correlations() -> Judged:
    printed = {row["metric"]: row for row in read("vocsim_table12_metric_correlations")}
    names = ("GSR", "Silhouette", "P@5", "CSCF")
    found = {(a, b): float(printed[a][b]) for place, a in enumerate(names) for b in names[place + 1 :]}
    held = [value >= 0.82 for value in found.values()]
    missed = ", ".join(f"{a} with {b} {value}" for (a, b), value in found.items() if value < 0.82)
    return f"{count(held)}; {missed}", all(held)
