"""Records of metrics that no function of arrays computes here: what tasks, codecs and papers report."""

from __future__ import annotations

import math

from earmark.scores.metrics import FRACTION, UNBOUNDED, Metric, register

_POSITIVE = (0.0, math.inf)

_TITLES = {
    "wer": "word error rate",
    "eer": "equal error rate",
    "er_accuracy": "accuracy",
    "aec_map": "mean average precision",
}

# Name, range, whether higher is better, whether it is printed in percent, unit, words
for _name, _range, _higher, _percent, _unit, _words in (
    # tasks on coded sound
    ("wer", _POSITIVE, False, True, "", "wrong, missing and added words of a recogniser over the words of the text"),
    ("dwer", _POSITIVE, False, True, "", "the same against what the recogniser makes of the clean clip"),
    ("eer", FRACTION, False, True, "", "error of speaker verification where misses and false alarms are equal"),
    ("min_dcf", FRACTION, False, False, "", "lowest detection cost of speaker verification"),
    ("speaker_similarity", (-1.0, 1.0), True, False, "", "cosine of speaker vectors, coded against clean"),
    ("er_accuracy", FRACTION, True, True, "", "share of clips whose emotion is recognised"),
    ("aec_map", FRACTION, True, True, "", "mean average precision of sound events"),
    # external validation
    ("accuracy", FRACTION, True, True, "", "share of clips whose class is found"),
    ("top5_accuracy", FRACTION, True, True, "", "share of clips whose class is among the first five"),
    ("triplet_accuracy", FRACTION, True, True, "", "share of human judgements of three sounds that are agreed with"),
    ("choice_accuracy", FRACTION, True, True, "", "share of choices between two sounds that are agreed with"),
    ("choice_spearman", (-1.0, 1.0), False, False, "", "rank correlation of d(X, A) - d(X, B) with the choice of A"),
    ("choice_kendall", (-1.0, 1.0), False, False, "", "Kendall's tau-b of d(X, A) - d(X, B) with the choice of A"),
    ("agreement_between", FRACTION, True, True, "", "how often two listeners give the same answer"),
    ("agreement_within", FRACTION, True, True, "", "how often a listener gives the same answer again"),
    ("agreement_repeats", FRACTION, True, True, "", "how often a question asked again gets the same answer"),
    ("attainable_accuracy", FRACTION, True, True, "", "what one answer to each question can agree with at most"),
    ("mean_average_precision", FRACTION, True, True, "", "average precision of a probe, averaged over labels"),
    ("transfer_spearman", (-1.0, 1.0), True, False, "", "rank correlation of a training-free measure with a probe"),
    # rate, delay, speed and tokens of a codec
    ("kbps", _POSITIVE, False, False, "kbps", "bits that were written over the seconds they last"),
    (
        "header_kbps",
        _POSITIVE,
        False,
        False,
        "kbps",
        "bits that are sent once for each clip, over the seconds it lasts",
    ),
    ("entropy_kbps", _POSITIVE, False, False, "kbps", "the rate that an ideal coder of the tokens would need"),
    ("bd_rate", (-1.0, math.inf), False, True, "", "rate that is saved or wasted at equal quality"),
    ("delay_ms", UNBOUNDED, False, False, "ms", "how late the decoded clip is"),
    ("encode_rtf", _POSITIVE, False, False, "", "seconds of encoding over seconds of sound"),
    ("decode_rtf", _POSITIVE, False, False, "", "seconds of decoding over seconds of sound"),
    ("token_usage", FRACTION, True, True, "", "share of the codebooks' entries that occur"),
    ("token_entropy", _POSITIVE, True, False, "bit", "entropy of the tokens of a codebook"),
    ("token_perplexity", (1.0, math.inf), True, False, "", "how many entries of a codebook are in use, in effect"),
    # cost of a model, as the papers print it
    ("parameters_m", _POSITIVE, False, False, "million", "parameters of the model"),
    ("macs_g", _POSITIVE, False, False, "billion", "multiplications for a second of sound"),
    ("peak_memory_gb", _POSITIVE, False, False, "GB", "most memory in use"),
):
    register(Metric(_name, _range, _higher, _percent, _words, unit=_unit, title=_TITLES.get(_name, "")))
