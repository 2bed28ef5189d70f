"""Speaker verification: whether a coded voice is still taken for the one it was.

Every clip becomes a vector, a trial is two clips, its score the cosine of their vectors. By default all pairs of
different clips are tried; `trials` names a file of lines `1 enrolled tested` (0: two speakers) with ids of clips.

    coded_enrol   both clips of a trial were coded: what a codec does to voices
    clean_enrol   the first is clean, the second coded, in both orders: what it does to a system that enrolled before

`eer` and `min_dcf` are defined in `verification`, with intervals that draw speakers. `eer:difference` is coded minus
clean under the same draws. `speaker_similarity` is the mean cosine of a clip's vectors before and after coding.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.calibrate.bootstrap import interval
from earmark.corpora.clips import Clip
from earmark.errors import InputError
from earmark.extractors.contract import Extractor
from earmark.probes import verification
from earmark.probes.catalogue import CARDS
from earmark.probes.contract import RESAMPLES, Finding, Heard, paired
from earmark.probes.encoding import encode_clips, heard_by, open_encoder, vectors_of
from earmark.probes.resampling import draws_of, mean_interval
from earmark.probes.verification import Trials
from earmark.progress import Progress
from earmark.specs import parse_spec
from earmark.wording import counted

__all__ = ["MOST_CLIPS", "Verification", "read_trials"]

MOST_CLIPS = 2000
"""Clips of which all pairs are tried: two million trials. Of more, as many are drawn."""

Matrix = NDArray[np.float64]


class Choice(NamedTuple):
    """Which clips meet in a trial, by their place, and whether it is one speaker's."""

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    same: NDArray[np.bool_]


class Verification:
    """`asv`, `asv:ecapa:/models/embedding_model.ckpt?allow_pickle=true`, `asv:` and any extractor."""

    card = CARDS["asv"]

    def __init__(
        self, model: str | Extractor = "", *, trials: str = "", p_target: float = verification.P_TARGET,
        bootstrap: int = RESAMPLES, pool: str = "", **options: Any,
    ) -> None:  # fmt: skip
        self.p_target, self.bootstrap, self.pool = p_target, bootstrap, pool
        self.trials = read_trials(trials) if trials else None
        self.extractor = _opened(model or self.card.model, options) if isinstance(model, str) else model
        self.card = heard_by(self.card, self.extractor)

    def listen(self, clips: Sequence[Clip], *, progress: Progress = False) -> Heard:
        return encode_clips(clips, self.extractor, self.pool, progress=progress)

    def score(self, clips: Sequence[Clip], clean: Heard, coded: Heard, *, seed: int = 0) -> list[Finding]:
        """Findings of both protocols, and `speaker_similarity`."""
        pairs = paired(clips, clean, coded)
        if not pairs.clips:
            why = pairs.left_out or "there are no clips"
            return [
                Finding.not_applicable(metric, protocol, why) for metric, protocol in
                [(name, kind) for kind in _ENROLMENTS for name in _METRICS] + [("speaker_similarity", "all")]
            ]  # fmt: skip
        before, after = map(_directions, vectors_of(pairs, clean, coded, self.card.name))
        found = [self._similarity(pairs.clips, before, after, pairs.left_out, seed)]
        speakers = _speakers(pairs.clips)
        try:
            choice, note = self._choice(pairs.clips, speakers, seed)
        except InputError as error:
            return found + [
                Finding.not_applicable(name, kind, str(error)) for kind in _ENROLMENTS for name in _METRICS
            ]  # fmt: skip
        notes = "; ".join(part for part in (note, pairs.left_out) if part)
        for kind in _ENROLMENTS:
            found += self._verified(kind, choice, speakers, before, after, notes, seed)
        return found

    def _choice(self, clips: Sequence[Clip], speakers: NDArray[np.int64] | None, seed: int) -> tuple[Choice, str]:
        if self.trials is not None:
            return _listed(self.trials, clips)
        if speakers is None:
            raise InputError("no clip has a group: name its speaker there, or give a list of trials")
        kept, note = _kept(speakers, seed)
        rows, columns = np.triu_indices(len(kept), 1)
        choice = Choice(kept[rows], kept[columns], speakers[kept[rows]] == speakers[kept[columns]])
        count = len(np.unique(speakers[kept]))
        if not choice.same.any() or choice.same.all():
            raise InputError(
                f"{counted(len(kept), 'clip')} of {counted(count, 'speaker')} make no trials of both kinds: at least "
                "two speakers and one with two clips are needed"
            )
        return choice, "; ".join(part for part in (counted(count, "speaker"), note) if part)

    def _verified(
        self, kind: str, choice: Choice, speakers: NDArray[np.int64] | None, before: Matrix, after: Matrix, note: str,
        seed: int,
    ) -> list[Finding]:  # fmt: skip
        unheard = _trials(choice, speakers, before, before)
        if kind == "coded_enrol":
            trials = _trials(choice, speakers, after, after)
        else:
            trials = _joined(_trials(choice, speakers, before, after), _trials(choice, speakers, after, before))
        errors, clean_errors = verification.curve(trials), verification.curve(unheard)
        ranges = verification.error_intervals(trials, self.bootstrap, seed, self.p_target)
        clean_draws = verification.error_intervals(unheard, self.bootstrap, seed, self.p_target).eers
        n = len(np.unique(np.r_[choice.first, choice.second]))
        reason = f"{len(trials.scores)} trials; {note}" if note else f"{len(trials.scores)} trials"
        value = verification.eer(errors)
        lost = value - verification.eer(clean_errors)
        cost = verification.min_dcf(errors, self.p_target)
        return [
            Finding.measured("eer", kind, value, ranges.eer, n=n, reason=reason, distance="cosine"),
            Finding.measured("eer:difference", kind, lost, interval(ranges.eers - clean_draws), n=n, reason=reason,
                    distance="cosine"),
            Finding.measured("min_dcf", kind, cost, ranges.min_dcf, n=n, reason=f"p_target {self.p_target:g}; {reason}",
                    distance="cosine"),
        ]  # fmt: skip

    def _similarity(self, clips: Sequence[Clip], before: Matrix, after: Matrix, note: str, seed: int) -> Finding:
        cosines = np.clip(np.einsum("ij,ij->i", before, after), -1.0, 1.0)
        low, high = mean_interval(cosines, draws_of(clips, self.bootstrap, seed))
        return Finding(
            "speaker_similarity", "all", float(cosines.mean()), low, high, n=len(clips), reason=note, distance="cosine"
        )


_ENROLMENTS = ("coded_enrol", "clean_enrol")
_METRICS = ("eer", "eer:difference", "min_dcf")


def _opened(spec: str, options: dict[str, Any]) -> Extractor:
    parsed = parse_spec(spec)
    if parsed.name == "ecapa":
        from earmark.probes.ecapa import Ecapa

        return Ecapa(parsed.argument or "", **{**parsed.options, **options})
    return open_encoder(spec, **options)


def _directions(values: Matrix) -> Matrix:
    """Vectors of length 1; one without direction stays zero, and is like no other."""
    norms = np.linalg.norm(values, axis=1, keepdims=True)
    return np.asarray(np.divide(values, norms, out=np.zeros_like(values), where=norms > 0))


def _speakers(clips: Sequence[Clip]) -> NDArray[np.int64] | None:
    """A number for each clip's speaker, -1 where the clip has none; None when no clip has one."""
    names = sorted({clip.group for clip in clips if clip.group is not None})
    if not names:
        return None
    codes = {name: code for code, name in enumerate(names)}
    return np.array([-1 if clip.group is None else codes[clip.group] for clip in clips], np.int64)


def _kept(speakers: NDArray[np.int64], seed: int) -> tuple[NDArray[np.int64], str]:
    """Places of clips that have a speaker, of which MOST_CLIPS are drawn if there are more."""
    known = np.flatnonzero(speakers >= 0)
    notes = [f"{counted(len(speakers) - len(known), 'clip')} without speaker"] if len(known) < len(speakers) else []
    if len(known) > MOST_CLIPS:
        notes.append(f"{MOST_CLIPS} of {len(known)} clips drawn")
        known = np.sort(np.random.default_rng([seed, len(known)]).permutation(known)[:MOST_CLIPS])
    return known, "; ".join(notes)


def _trials(choice: Choice, speakers: NDArray[np.int64] | None, enrolled: Matrix, tested: Matrix) -> Trials:
    scores = np.concatenate([
        np.einsum("ij,ij->i", enrolled[choice.first[part]], tested[choice.second[part]])
        for part in _parts(len(choice.first))
    ])  # fmt: skip
    if speakers is None or ((speakers < 0).any() and _unknown(choice, speakers)):
        return Trials(scores, choice.same)
    codes = np.unique(np.r_[speakers[choice.first], speakers[choice.second]], return_inverse=True)[1]
    return Trials(scores, choice.same, codes[: len(scores)], codes[len(scores) :])


def _unknown(choice: Choice, speakers: NDArray[np.int64]) -> bool:
    return bool((speakers[choice.first] < 0).any() or (speakers[choice.second] < 0).any())


def _parts(count: int, size: int = 1 << 16) -> list[slice]:
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]


def _joined(one: Trials, other: Trials) -> Trials:
    if one.enrolled is None or one.tested is None or other.enrolled is None or other.tested is None:
        return Trials(np.r_[one.scores, other.scores], np.r_[one.same, other.same])
    return Trials(
        np.r_[one.scores, other.scores], np.r_[one.same, other.same],
        np.r_[one.enrolled, other.enrolled], np.r_[one.tested, other.tested],
    )  # fmt: skip


def read_trials(path: str) -> list[tuple[bool, str, str]]:
    """Lines `1 enrolled tested` of a file of trials, as VoxCeleb has them; ids of clips hold no spaces."""
    try:
        lines = Path(path).expanduser().read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read as a list of trials ({error}).") from error
    found = []
    for number, line in enumerate(lines, start=1):
        cells = line.split()
        if not cells:
            continue
        if len(cells) != 3 or cells[0] not in ("0", "1"):
            raise InputError(f"Line {number} of {path} is no trial: write 1 (one speaker) or 0, and two ids of clips.")
        found.append((cells[0] == "1", cells[1], cells[2]))
    return found


def _listed(trials: Sequence[tuple[bool, str, str]], clips: Sequence[Clip]) -> tuple[Choice, str]:
    places = {clip.id: place for place, clip in enumerate(clips)}
    kept = [(same, places[one], places[two]) for same, one, two in trials if one in places and two in places]
    if not any(same for same, _, _ in kept) or all(same for same, _, _ in kept):
        raise InputError(f"the {counted(len(kept), 'listed trial')} of these clips are not of both kinds")
    same, first, second = (np.array(column) for column in zip(*kept, strict=True))
    note = f"{len(trials) - len(kept)} listed trials of other clips" if len(kept) < len(trials) else ""
    return Choice(first.astype(np.int64), second.astype(np.int64), same.astype(np.bool_)), note
