"""Codec-SUPERB: what its sections 3 to 4 and appendix say about Tables 3, 4 and 6 to 8."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from math import log

from earmark.published._claims._printed import codecs, count, rank_correlation, signed
from earmark.published._claims._record import Judged, judge
from earmark.published._papers import read

_TASKS = {"asr_wer_pct": -1, "asv_eer_pct": -1, "er_acc_pct": 1, "aec_map_pct": 1}
"""Columns of the applications, and whether more is better."""
_ENCODEC, _DAC, _ACADEMIC = ("E1", "E2", "E3", "E4", "E5"), ("D1", "D2", "D3"), ("B1", "B2", "B3")

_AT_LIKE_RATES = (("D1", "C"), ("D1", "E3"), ("D3", "F4"), ("D3", "F6"), ("D2", "E5"))
"""A codec of DAC's and another at a rate like its own."""


def _exceptions(held: dict[str, bool]) -> Judged:
    """How many hold, and the others by name."""
    return "; ".join([count(list(held.values())), *(name for name, true in held.items() if not true)]), all(
        held.values()
    )


def _coded() -> dict[str, Mapping[str, float]]:
    """Table 3 without the row of uncoded sound."""
    return {name: row for name, row in codecs().items() if name != "None"}


def _encodec_at(kbps: float, column: str) -> float:
    """EnCodec at a rate: between the two nearest printed ones."""
    found = [(codecs()[name]["kbps"], codecs()[name][column]) for name in _ENCODEC]
    for (low, worse), (high, better) in pairwise(found):
        if low <= kbps <= high:
            return worse + (better - worse) * log(kbps / low) / log(high / low)
    return found[0][1] if kbps < found[0][0] else found[-1][1]


def _over_encodec(names: tuple[str, ...], column: str) -> dict[str, float]:
    return {name: codecs()[name][column] - _encodec_at(codecs()[name]["kbps"], column) for name in names}


def _said(differences: dict[str, float]) -> str:
    return ", ".join(f"{name} {signed(value, 3)}" for name, value in differences.items())


# --- what was measured --------------------------------------------------------------------------------------------


@judge
def codecs_and_datasets() -> Judged:
    names = [row["family"] for row in read("codec_superb_table3") if row["family"]]
    datasets = Counter(category for category, _ in {(r["category"], r["dataset"]) for r in read("codec_superb_scores")})
    said = ", ".join(f"{number} of {category}" for category, number in sorted(datasets.items()))
    total = sum(datasets.values())
    return f"{len(names)}, {len(set(names))}, {total} ({said})", (len(names), len(set(names)), total) == (19, 6, 20)


@judge
def distances_correlate() -> Judged:
    return _strong(("Mel", "STFT"))


@judge
def qualities_correlate() -> Judged:
    return _strong(("PESQ", "STOI", "F0CORR"))


def _strong(names: tuple[str, ...]) -> Judged:
    rows = [row for row in read("codec_superb_table4_correlations") if row["metric"] in names]
    strong = [abs(float(row["mean_correlation"])) > 0.7 for row in rows]
    weak = [f"{row['metric']} on {row['dataset_category'].lower()} {signed(float(row['mean_correlation']))}"
            for row, held in zip(rows, strong, strict=True) if not held]  # fmt: skip
    return "; ".join([count(strong), *weak]), all(strong)


@judge
def correlations_are_significant() -> Judged:
    values = [float(row["mean_p_value"]) for row in read("codec_superb_table4_correlations")]
    return f"largest mean p {max(values):.3f}".replace("0.", "."), max(values) < 0.05


@judge
def correlations_recomputed() -> Judged:
    return "the metrics' values are not printed", None


# --- signals ------------------------------------------------------------------------------------------------------


def _dac_and_others(column: str) -> tuple[str, list[float], float]:
    """How far DAC's codecs are above EnCodec at their rates, and how far the best of the others is."""
    others = tuple(name for name in _coded() if name not in (*_ENCODEC, *_DAC))
    dac, rest = _over_encodec(_DAC, column), _over_encodec(others, column)
    best = max(rest, key=lambda name: rest[name])
    return f"{_said(dac)}; of the others at most {best} {signed(rest[best], 3)}", list(dac.values()), rest[best]


@judge
def dac_on_speech() -> Judged:
    said, dac, rest = _dac_and_others("speech_overall")
    return said, min(dac) > 0.05 > rest


@judge
def dac_on_audio() -> Judged:
    said, dac, rest = _dac_and_others("audio_overall")
    return said, max(dac) > 0.02 > rest


@judge
def academic_on_speech() -> Judged:
    found = _over_encodec(_ACADEMIC, "speech_overall")
    return _said(found), min(found.values()) > 0


@judge
def academic_on_music() -> Judged:
    same = _over_encodec(_ACADEMIC, "music_overall")
    twice = {name: codecs()[name]["music_overall"] - _encodec_at(2 * codecs()[name]["kbps"], "music_overall")
             for name in _ACADEMIC}  # fmt: skip
    return f"same rate {_said(same)}; twice {_said(twice)}", min(same.values()) > 0 and max(twice.values()) > 0


@judge
def dac_on_music() -> Judged:
    dac = _over_encodec(_DAC, "music_overall")
    first = sorted(_coded(), key=lambda name: -codecs()[name]["music_overall"])[:3]
    return f"{_said(dac)}; the first three are {', '.join(first)}", set(first) == set(_DAC)


# --- applications -------------------------------------------------------------------------------------------------


def _best(column: str) -> list[str]:
    """Codecs from best to worst in one application."""
    return sorted(_coded(), key=lambda name: -_TASKS[column] * codecs()[name][column])


def _rising(column: str) -> bool:
    values = [codecs()[name][column] for name in _ENCODEC]
    return sorted(values, reverse=_TASKS[column] < 0) == values


@judge
def encodec_and_rate() -> Judged:
    held = {column: _rising(column) for column in _TASKS}
    return f"{count(list(held.values()))} applications", all(held.values())


@judge
def dac_and_words() -> Judged:
    coded, plain = codecs()["D2"]["asr_wer_pct"], codecs()["None"]["asr_wer_pct"]
    return f"{coded} and {plain}", coded == plain


@judge
def rate_and_words() -> Judged:
    return _by_rate("asr_wer_pct")


def _by_rate(column: str) -> Judged:
    rows = list(_coded().values())
    rho, p = rank_correlation([row["kbps"] for row in rows], [row[column] for row in rows])
    return f"ρ = {signed(rho)}", _TASKS[column] * rho > 0.5 and p < 0.05


@judge
def rate_and_applications() -> Judged:
    found = {column: _by_rate(column) for column in _TASKS}
    said = ", ".join(f"{_SHORT[column]} {said}" for column, (said, _) in found.items())
    return said, all(holds for _, holds in found.values())


_SHORT = {"asr_wer_pct": "WER", "asv_eer_pct": "EER", "er_acc_pct": "emotion", "aec_map_pct": "events"}


@judge
def dac_has_fewest_errors() -> Judged:
    ahead = [codecs()[mine]["asr_wer_pct"] < codecs()[other]["asr_wer_pct"] for mine, other in _AT_LIKE_RATES]
    order = ", ".join(f"{name} {codecs()[name]['asr_wer_pct']}" for name in _best("asr_wer_pct")[:4])
    return f"{count(ahead)} pairs; by value {order}", all(ahead)


@judge
def audiodec_and_words() -> Judged:
    near = {name: row["asr_wer_pct"] for name, row in _coded().items() if 5 <= row["kbps"] <= 7}
    return ", ".join(f"{name} {value}" for name, value in near.items()), max(near, key=lambda n: near[n]) == "C"


@judge
def funcodec_and_speakers() -> Judged:
    order, mine = _best("asv_eer_pct"), codecs()["F2"]
    first = codecs()[order[0]]
    fastest = max(row["kbps"] for row in _coded().values())
    least = min(row["asv_mindcf"] for row in _coded().values())
    said = f"EER {order[0]} {first['asv_eer_pct']}, F2 {mine['asv_eer_pct']}, place {order.index('F2') + 1}"
    holds = order[0] == "F2" and mine["asv_mindcf"] == least and mine["kbps"] == fastest
    return f"{said}; minDCF {mine['asv_mindcf']}, least {least}; {mine['kbps']:g} of {fastest:g} kbps", holds


@judge
def pareto_of_speakers() -> Judged:
    points = {name: (row["kbps"], row["asv_eer_pct"]) for name, row in _coded().items()}
    front = [name for name, (rate, error) in points.items()
             if not any(r <= rate and e <= error and (r, e) != (rate, error) for r, e in points.values())]  # fmt: skip
    return ", ".join(sorted(front, key=lambda name: points[name])), {"B1", "A", "D1"} <= set(front)


@judge
def dac_and_emotions() -> Judged:
    lost = codecs()["None"]["er_acc_pct"] - codecs()["D2"]["er_acc_pct"]
    first = _best("er_acc_pct")[0]
    return f"{first} {codecs()[first]['er_acc_pct']}, loses {lost:.2f}", first == "D2" and round(lost, 2) == 0.38


@judge
def encodec_and_emotions() -> Judged:
    last = _best("er_acc_pct")[-1]
    return f"{last} {codecs()[last]['er_acc_pct']}", last == "E1"


@judge
def dac_and_emotions_at_its_rate() -> Judged:
    held = {f"{mine} {codecs()[mine]['er_acc_pct']}, {other} {codecs()[other]['er_acc_pct']}":
            codecs()[mine]["er_acc_pct"] > codecs()[other]["er_acc_pct"]
            for mine, other in _AT_LIKE_RATES}  # fmt: skip
    return _exceptions(held)


@judge
def funcodecs_and_emotions() -> Judged:
    values = {name: codecs()[name]["er_acc_pct"] for name in ("F2", "F1", "F3", "F5")}
    repeats = [codecs()[f"F{n}"]["er_acc_pct"] == codecs()[f"E{n + 1}"]["er_acc_pct"] for n in range(1, 5)]
    said = ", ".join(f"{name} {value}" for name, value in values.items())
    return f"{said}; {count(repeats)} repeat EnCodec's", max(values, key=lambda name: values[name]) == "F2"


@judge
def academic_and_emotions() -> Judged:
    value = {name: codecs()[name]["er_acc_pct"] for name in ("B1", "B2", "B3", "E3", "E2")}
    return ", ".join(f"{name} {number}" for name, number in value.items()), (
        value["B1"] > value["B2"] and value["B3"] > value["E3"]
    )


@judge
def weakest_with_emotions() -> Judged:
    pairs = (("E3", "D1"), ("C", "D1"), ("E2", "B3"), ("E5", "D2"))
    values = {name: codecs()[name]["er_acc_pct"] for pair in pairs for name in pair}
    return ", ".join(f"{name} {value}" for name, value in values.items()), all(values[a] < values[b] for a, b in pairs)


@judge
def dac_and_events() -> Judged:
    first = _best("aec_map_pct")[0]
    return f"{first} {codecs()[first]['aec_map_pct']}", first == "D2"


@judge
def academic_and_events() -> Judged:
    mine, theirs = codecs()["B2"]["aec_map_pct"], _encodec_at(2, "aec_map_pct")
    return f"{mine} and {theirs:.1f}", mine > theirs + 5


@judge
def encodec_and_events() -> Judged:
    others = _over_encodec(("A", *_ACADEMIC, "C"), "aec_map_pct")
    said = ", ".join(f"{name} {signed(value, 1)}" for name, value in others.items())
    behind = [value < 0 for value in others.values()]
    return f"{count(behind)} behind EnCodec: {said}", sum(behind) > len(behind) / 2


@judge
def funcodec_and_events() -> Judged:
    mine, theirs = codecs()["F6"]["aec_map_pct"], _encodec_at(8, "aec_map_pct")
    return f"{mine} and {theirs:.1f}", abs(mine - theirs) < 1


@judge
def dac_in_all_applications() -> Judged:
    held = {f"{_SHORT[column]}: {other} before {mine}":
            sign * codecs()[mine][column] > sign * codecs()[other][column]
            for column, sign in _TASKS.items() for mine, other in _AT_LIKE_RATES}  # fmt: skip
    return _exceptions(held)


@judge
def academic_at_low_rates() -> Judged:
    """Its codecs and EnCodec at their rates: ahead in most comparisons, and one of them in every application."""
    ahead = {name: {column: sign * codecs()[name][column] > sign * _encodec_at(codecs()[name]["kbps"], column)
                    for column, sign in _TASKS.items()} for name in _ACADEMIC}  # fmt: skip
    held = {f"{_SHORT[column]}: EnCodec before {name}": true
            for name, own in ahead.items() for column, true in own.items()}  # fmt: skip
    leading = [name for name, own in ahead.items() if all(own.values())]
    said, _ = _exceptions(held)
    return f"{said}; in all four: {', '.join(leading) or 'none'}", sum(held.values()) > len(held) / 2 and bool(leading)
