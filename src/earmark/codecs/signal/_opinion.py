"""Predicted opinion scores beyond PESQ, by other people's packages: ViSQOL, Zimtohrli and DNSMOS.

All are mean opinion scores from 1 to 5, higher is better. ViSQOL and Zimtohrli compare with the reference; DNSMOS hears
only the decoded clip, was made for noise suppression, and its overall score does not rank codecs (P.808 does, roughly).
"""

from __future__ import annotations

import warnings
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from earmark.codecs.contract import Measured, Waveform
from earmark.codecs.signal._sound import Pair
from earmark.errors import require
from earmark.onnx_files import open_session
from earmark.scores.metrics import metric

SHORTEST = 0.5  # seconds
MOS = (1.0, 5.0)


@metric(range=MOS, package=("visqol", "ViSQOL scores"), paper="Chinen et al., QoMEX 2020", words="ViSQOL v3")
def visqol(pair: Pair) -> Measured:
    """ViSQOL v3: the speech model at 16 kHz for speech, the audio model at 48 kHz for everything else.

    Chinen et al., QoMEX 2020. It searches for the best match in time itself; the score of the same waveform is about
    4.7 and not 5.
    """
    if pair.reference.seconds < SHORTEST:
        return _too_short()
    mode, rate = ("speech", 16_000) if pair.category == "speech" else ("audio", 48_000)
    clean, heard = (sound.at(rate).astype(np.float64) for sound in (pair.reference, pair.decoded))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = _visqol(mode).measure_from_arrays(clean, heard, rate)
    return _opinion(found.moslqo)


@metric(range=MOS, package=("zimtohrli", "Zimtohrli scores"), words="Zimtohrli as an opinion score")
def zimtohrli(pair: Pair) -> Measured:
    """Zimtohrli at 48 kHz, mapped to a mean opinion score by its own formula; 5 for the same waveform."""
    if pair.reference.seconds < SHORTEST:
        return _too_short()
    package = require("zimtohrli", "Zimtohrli scores", "codecs")
    return _opinion(package.mos_from_signals(pair.reference.at(48_000), pair.decoded.at(48_000)))


_dnsmos_metric = partial(metric, range=MOS, package=("speechmos.dnsmos", "DNSMOS scores"))


@_dnsmos_metric(paper="Reddy et al., ICASSP 2022", words="DNSMOS of the decoded clip alone, overall")
def dnsmos(pair: Pair) -> Measured:
    """DNSMOS, overall quality of the decoded clip at 16 kHz. Reddy et al., ICASSP 2022."""
    return _dnsmos(pair, "ovrl_mos")


@_dnsmos_metric(paper="Reddy et al., ICASSP 2021", words="DNSMOS of the decoded clip alone, P.808")
def dnsmos_p808(pair: Pair) -> Measured:
    """DNSMOS, the model trained on ITU-T P.808 ratings. Reddy et al., ICASSP 2021."""
    return _dnsmos(pair, "p808_mos")


def _dnsmos(pair: Pair, score: str) -> Measured:
    """One of the scores of a clip. Samples beyond full scale, which the package refuses, are clipped."""
    if pair.reference.seconds < SHORTEST:
        return _too_short()
    clipped: Waveform = np.clip(pair.decoded.at(16_000), -1.0, 1.0)
    return _opinion(pair.decoded.once("dnsmos", lambda: _dnsmos_models()(clipped, 16_000, False))[score])


@lru_cache(maxsize=1)
def _dnsmos_models() -> Any:
    """The package's scorer on one thread: its own sessions take every core, and clips are what runs in parallel."""
    package = require("speechmos.dnsmos", "DNSMOS scores", "codecs")
    folder = Path(package.__file__).parent / "dnsmos_models"
    files = [str(folder / name) for name in ("sig_bak_ovr.onnx", "model_v8.onnx")]
    scorer = package.DNSMOS(*files)
    scorer.onnx_sess, scorer.p808_onnx_sess = (open_session(file, "DNSMOS scores", "codecs") for file in files)
    return scorer


@lru_cache(maxsize=2)
def _visqol(mode: str) -> Any:
    api = require("visqol", "ViSQOL scores", "codecs").VisqolApi()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        api.create(mode=mode)
    return api


def _opinion(value: Any) -> Measured:
    """A score in the range of opinion scores: the packages' polynomials can leave it by a little."""
    return Measured(min(max(float(value), 1.0), 5.0))


def _too_short() -> Measured:
    return Measured.not_applicable(f"the clip is shorter than {SHORTEST:g} s")
