"""Speaker verification: whether a coded voice is still taken for the one it was.

Every clip becomes a vector, a trial is two clips, its score the cosine of their vectors. By default all pairs of
different clips are tried, or a sample where they are more than `most_trials` (`_trials`); `trials` names a file of
lines `1 enrolled tested` (0: two speakers) with ids of clips.

    coded_enrol   both clips of a trial were coded: what a codec does to voices
    clean_enrol   the first is clean, the second coded, in both orders: what it does to a system that enrolled before

`eer` and `min_dcf` are defined in `_verification`, with intervals that leave out speakers. `eer:difference` is coded
minus clean, speaker by speaker. `speaker_similarity` is the mean cosine of a clip's vectors before and after coding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.calibrate import jackknife
from earmark.corpora.clips import Clip
from earmark.errors import InputError, UsageError, require
from earmark.extractors.contract import Extractor, ExtractorCard, Frames, Waveform
from earmark.extractors.pretrained import fill, find, read_state, stripped, versioned
from earmark.extractors.torch_models import Settings, device_of
from earmark.probes import _verification as verification
from earmark.probes._contract import Responses
from earmark.probes._encoding import EncoderTask, codes_of, unit_vectors
from earmark.probes._scoring import (
    CleanShare,
    PairedClips,
    draw_clips,
    join_notes,
    mean_interval,
    measured,
    not_applicable,
    pair_clips,
    rests_on,
)
from earmark.probes._trials import MOST_TRIALS, TrialClips, choose_trials, listed_trials, read_trials
from earmark.probes._verification import Deletions, Trials
from earmark.probes.tasks import CARDS
from earmark.scores import Row
from earmark.specs import parse_spec

_ENROLMENTS = ("coded_enrol", "clean_enrol")
_METRICS = ("eer", "eer:difference", "min_dcf")
_AT_ONCE = 1 << 16  # trials whose vectors are gathered at once

Matrix = NDArray[np.float64]
Codes = NDArray[np.int64]


class CleanTrials(NamedTuple):
    """What the clean clips decide, for every codec alike: who meets whom, and how often they are mistaken."""

    chosen: TrialClips
    speakers: Codes
    eer: float
    without: Deletions


class Verification(EncoderTask):
    """`asv`, `asv:ecapa:/models/embedding_model.ckpt?allow_pickle=true`, `asv:` and any extractor."""

    card = CARDS["asv"]

    def __init__(
        self, model: str | Extractor = "", *, trials: str = "", most_trials: int = MOST_TRIALS,
        p_target: float = verification.P_TARGET, **options: Any,
    ) -> None:  # fmt: skip
        if most_trials < 2:
            raise UsageError(f"At least 2 trials are needed, not {most_trials}.")
        self.p_target, self.most_trials = p_target, most_trials
        self.trials = read_trials(trials) if trials else None
        self._clean: CleanShare[CleanTrials] = CleanShare()
        super().__init__(model, **options)

    def open_model(self, model: str | Extractor, options: Mapping[str, Any]) -> Extractor:
        if isinstance(model, str):
            spec = parse_spec(model)
            if spec.name == "ecapa":
                return Ecapa(spec.argument or "", **{**spec.options, **options})
        return super().open_model(model, options)

    def score(self, clips: Sequence[Clip], clean: Responses, coded: Responses, *, seed: int = 0) -> list[Row]:
        """Scores of both protocols, and `speaker_similarity`."""
        pairs = pair_clips(clips, clean, coded)
        if not pairs.clips:
            why = pairs.left_out or "there are no clips"
            return [*_none(why), not_applicable("speaker_similarity", "all", why)]
        before, after = map(unit_vectors, self.vectors(pairs, clean, coded))
        cosines = np.clip(np.einsum("ij,ij->i", before, after), -1.0, 1.0)
        between = mean_interval(cosines, draw_clips(pairs.clips, self.bootstrap, seed))
        similarity = measured(
            "speaker_similarity", "all", float(cosines.mean()), between, n=len(pairs.clips), reason=pairs.left_out,
            distance="cosine",
        )  # fmt: skip
        try:
            plain = self._clean.of(clean, pairs, seed, lambda: self._clean_trials(pairs, before, seed))
        except InputError as error:
            return [similarity, *_none(str(error))]
        chosen, speakers = plain.chosen, plain.speakers
        note = join_notes(chosen.note, pairs.left_out)
        both = _trials(chosen, speakers, after, after)
        crossed = _join(_trials(chosen, speakers, before, after), _trials(chosen, speakers, after, before))
        n = len(np.unique(np.r_[chosen.first, chosen.second]))
        return [
            similarity,
            *self._rates("coded_enrol", both, plain, n, note),
            *self._rates("clean_enrol", crossed, plain, n, note),
        ]

    def _clean_trials(self, pairs: PairedClips, vectors: Matrix, seed: int) -> CleanTrials:
        speakers = codes_of([clip.group for clip in pairs.clips])
        chosen = (
            choose_trials(speakers, self.most_trials, seed) if self.trials is None
            else listed_trials(self.trials, pairs.clips)
        )  # fmt: skip
        trials = _trials(chosen, speakers, vectors, vectors)
        without = verification.leave_out_speakers(trials, self.p_target)
        return CleanTrials(chosen, speakers, verification.eer(verification.curve(trials)), without)

    def _rates(self, protocol: str, trials: Trials, plain: CleanTrials, n: int, note: str) -> list[Row]:
        """Error rates of trials, and their difference to those of the clean clips."""
        errors = verification.curve(trials)
        without = verification.leave_out_speakers(trials, self.p_target)
        eer = verification.eer(errors)
        cost = verification.min_dcf(errors, self.p_target)
        unit = without.unit
        ends = (0.0, 1.0)
        alone, costly = (
            jackknife.interval(value, values, ends, unit)
            for value, values in ((eer, without.eers), (cost, without.costs))
        )
        lost = jackknife.difference(eer, plain.eer, without.eers, plain.without.eers, ends, unit=unit)
        rates: tuple[tuple[str, float, jackknife.Interval | jackknife.Difference], ...] = (
            ("eer", eer, alone), ("eer:difference", lost.value, lost), ("min_dcf", cost, costly),
        )  # fmt: skip
        prior = {"min_dcf": f"p_target {self.p_target:g}"}
        return [
            measured(
                metric, protocol, value, (between.low, between.high), n=n, distance="cosine",
                reason=join_notes(prior.get(metric, ""), f"{len(trials.scores)} trials", note, between.reason),
                p_value=getattr(between, "p_value", None), **rests_on(between.low, unit, between.units),
            )
            for metric, value, between in rates
        ]  # fmt: skip


def _none(why: str) -> list[Row]:
    return [not_applicable(metric, protocol, why) for protocol in _ENROLMENTS for metric in _METRICS]


def _trials(chosen: TrialClips, speakers: Codes, enrolled: Matrix, tested: Matrix) -> Trials:
    count = len(chosen.first)
    parts = [slice(start, min(start + _AT_ONCE, count)) for start in range(0, count, _AT_ONCE)]
    scores = np.concatenate(
        [np.einsum("ij,ij->i", enrolled[chosen.first[part]], tested[chosen.second[part]]) for part in parts]
    )
    who = np.r_[speakers[chosen.first], speakers[chosen.second]]
    if (who < 0).any():
        return Trials(scores, chosen.same)
    codes = np.unique(who, return_inverse=True)[1]
    return Trials(scores, chosen.same, codes[:count], codes[count:])


def _join(first: Trials, second: Trials) -> Trials:
    columns: list[Any] = [None if a is None else np.r_[a, b] for a, b in zip(first, second, strict=True)]
    return Trials(*columns)


# --- ECAPA-TDNN ------------------------------------------------------------------------------------------------

ECAPA_CARD = ExtractorCard(
    name="ecapa", short_name="ECAPA", title="ECAPA-TDNN speaker embedding", dimension=192, parameters=20_767_552,
    licence="Apache-2.0 (SpeechBrain's weights)", citation="Desplanques et al., Interspeech 2020",
    pretraining=("VoxCeleb1", "VoxCeleb2"), extra="torch", notes="one vector per clip; 80 mel bands without their mean",
)  # fmt: skip
_WHERE = "download embedding_model.ckpt of speechbrain/spkrec-ecapa-voxceleb"
_SHORTEST = 400 * 8  # samples: a few frames, so that mirrored edges have something to mirror


class Ecapa:
    """A checkpoint of SpeechBrain's layout as an extractor: frames [1, D]. Clips run one by one, so none is padded."""

    def __init__(self, checkpoint: str = "", **options: Any) -> None:
        self._torch = torch = require("torch", "ECAPA embeddings", "torch")
        from earmark.networks.ecapa import EcapaTdnn

        settings = Settings(**options)
        weights = find(checkpoint, ECAPA_CARD, where=_WHERE, **settings.loading)
        state = stripped(read_state(weights), "embedding_model.", "module.")
        try:
            network = EcapaTdnn.sized(state)
        except (KeyError, AttributeError, IndexError, ValueError) as error:
            raise InputError(
                f"{weights.weights} is no ECAPA-TDNN of SpeechBrain's layout (it lacks {error}): {_WHERE}."
            ) from error
        self._device = device_of(torch, settings.device)
        self._network = fill(network, state, weights).to(self._device)
        self._bands = int(state["blocks.0.conv.conv.weight"].shape[1])
        self.card = versioned(ECAPA_CARD, weights, "torch", dimension=int(state["fc.conv.weight"].shape[0]))

    def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
        return [Frames(self._vector(waveform), 1) for waveform in waveforms]

    def _vector(self, waveform: Waveform) -> NDArray[np.float32]:
        from earmark.networks.ecapa import ecapa_features

        samples = np.pad(waveform, (0, max(0, _SHORTEST - len(waveform)))).astype(np.float32)
        with self._torch.inference_mode():
            sounds = self._torch.from_numpy(samples)[None].to(self._device)
            vector = self._network(ecapa_features(sounds, self._bands))
        return np.asarray(vector.cpu().numpy(), np.float32)
