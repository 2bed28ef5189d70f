"""Speaker verification: whether a coded voice is still taken for the one it was.

Every clip becomes a vector, a trial is two clips, its score the cosine of their vectors. By default all pairs of
different clips are tried; `trials` names a file of lines `1 enrolled tested` (0: two speakers) with ids of clips.

    coded_enrol   both clips of a trial were coded: what a codec does to voices
    clean_enrol   the first is clean, the second coded, in both orders: what it does to a system that enrolled before

`eer` and `min_dcf` are defined in `verification`, with intervals that draw speakers. `eer:difference` is coded minus
clean under the same draws. `speaker_similarity` is the mean cosine of a clip's vectors before and after coding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.calibrate.bootstrap import interval
from earmark.corpora.clips import Clip
from earmark.errors import InputError, require
from earmark.extractors.contract import Extractor, ExtractorCard, Frames, Waveform
from earmark.extractors.pretrained import fill, find, read_state, stripped, versioned
from earmark.extractors.torch_models import Settings, device_of
from earmark.probes import _verification as verification
from earmark.probes._contract import Responses
from earmark.probes._encoding import EncoderTask, codes_of, unit_vectors
from earmark.probes._scoring import draw_clips, join_notes, mean_interval, measured, not_applicable, pair_clips
from earmark.probes._verification import Trials
from earmark.probes.tasks import CARDS
from earmark.scores import Row
from earmark.specs import parse_spec
from earmark.wording import counted

MOST_CLIPS = 2000
"""Clips of which all pairs are tried: two million trials. Of more, as many are drawn."""

_ENROLMENTS = ("coded_enrol", "clean_enrol")
_METRICS = ("eer", "eer:difference", "min_dcf")
_AT_ONCE = 1 << 16  # trials whose vectors are gathered at once

Matrix = NDArray[np.float64]
Codes = NDArray[np.int64]


class TrialClips(NamedTuple):
    """Which clips meet in a trial, by their row, and whether it is one speaker's."""

    first: Codes
    second: Codes
    same: NDArray[np.bool_]
    note: str


class Verification(EncoderTask):
    """`asv`, `asv:ecapa:/models/embedding_model.ckpt?allow_pickle=true`, `asv:` and any extractor."""

    card = CARDS["asv"]

    def __init__(
        self, model: str | Extractor = "", *, trials: str = "", p_target: float = verification.P_TARGET, **options: Any
    ) -> None:
        self.p_target = p_target
        self.trials = read_trials(trials) if trials else None
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
        speakers = codes_of([clip.group for clip in pairs.clips])
        try:
            chosen = _all_trials(speakers, seed) if self.trials is None else _listed_trials(self.trials, pairs.clips)
        except InputError as error:
            return [similarity, *_none(str(error))]
        note = join_notes(chosen.note, pairs.left_out)
        plain, both = (_trials(chosen, speakers, vectors, vectors) for vectors in (before, after))
        crossed = _join(_trials(chosen, speakers, before, after), _trials(chosen, speakers, after, before))
        n = len(np.unique(np.r_[chosen.first, chosen.second]))
        return [
            similarity,
            *self._rates("coded_enrol", both, plain, n, note, seed),
            *self._rates("clean_enrol", crossed, plain, n, note, seed),
        ]

    def _rates(self, protocol: str, trials: Trials, plain: Trials, n: int, note: str, seed: int) -> list[Row]:
        """Error rates of trials, and their difference to those of the clean clips."""
        errors = verification.curve(trials)
        ranges, clean = (
            verification.error_intervals(kind, self.bootstrap, seed, self.p_target) for kind in (trials, plain)
        )
        eer = verification.eer(errors)
        lost = eer - verification.eer(verification.curve(plain))
        cost = verification.min_dcf(errors, self.p_target)
        reason = join_notes(f"{len(trials.scores)} trials", note)
        rates = (
            ("eer", eer, ranges.eer, reason),
            ("eer:difference", lost, interval(ranges.eers - clean.eers), reason),
            ("min_dcf", cost, ranges.min_dcf, f"p_target {self.p_target:g}; {reason}"),
        )
        return [
            measured(metric, protocol, value, between, n=n, reason=why, distance="cosine")
            for metric, value, between, why in rates
        ]


def _none(why: str) -> list[Row]:
    return [not_applicable(metric, protocol, why) for protocol in _ENROLMENTS for metric in _METRICS]


def _all_trials(speakers: Codes, seed: int) -> TrialClips:
    """Every pair of clips that have a speaker, of which MOST_CLIPS are drawn if there are more."""
    kept = np.flatnonzero(speakers >= 0)
    if not len(kept):
        raise InputError("no clip has a group: name its speaker there, or give a list of trials")
    without = len(speakers) - len(kept)
    note = f"{counted(without, 'clip')} without speaker" if without else ""
    if len(kept) > MOST_CLIPS:
        note = join_notes(note, f"{MOST_CLIPS} of {len(kept)} clips drawn")
        kept = np.sort(np.random.default_rng([seed, len(kept)]).permutation(kept)[:MOST_CLIPS])
    rows, columns = np.triu_indices(len(kept), 1)
    same = speakers[kept[rows]] == speakers[kept[columns]]
    count = len(np.unique(speakers[kept]))
    if not same.any() or same.all():
        raise InputError(
            f"{counted(len(kept), 'clip')} of {counted(count, 'speaker')} make no trials of both kinds: at least "
            "two speakers and one with two clips are needed"
        )
    return TrialClips(kept[rows], kept[columns], same, join_notes(counted(count, "speaker"), note))


def read_trials(path: str) -> list[tuple[bool, str, str]]:
    """Lines `1 enrolled tested` of a file of trials, as VoxCeleb has them; ids of clips hold no spaces."""
    try:
        lines = Path(path).expanduser().read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read as a list of trials ({error}).") from error
    trials = []
    for number, line in enumerate(lines, start=1):
        cells = line.split()
        if not cells:
            continue
        if len(cells) != 3 or cells[0] not in ("0", "1"):
            raise InputError(f"Line {number} of {path} is no trial: write 1 (one speaker) or 0, and two ids of clips.")
        trials.append((cells[0] == "1", cells[1], cells[2]))
    return trials


def _listed_trials(trials: Sequence[tuple[bool, str, str]], clips: Sequence[Clip]) -> TrialClips:
    rows = {clip.id: row for row, clip in enumerate(clips)}
    kept = [(rows[first], rows[second], same) for same, first, second in trials if first in rows and second in rows]
    first, second, same = np.array(kept, np.int64).reshape(-1, 3).T
    if not same.any() or same.all():
        raise InputError(f"the {counted(len(kept), 'listed trial')} of these clips are not of both kinds")
    note = f"{len(trials) - len(kept)} listed trials of other clips" if len(kept) < len(trials) else ""
    return TrialClips(first, second, same.astype(np.bool_), note)


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
