"""Content and fidelity of a coded set: against the rooms below, and by what must hold."""

from __future__ import annotations

import numpy as np
import pytest
from tests.probes import toys

import earmark
from earmark.corpora.clips import Clip
from earmark.probes import Row
from earmark.probes.retention import CodedFidelity, Content, coded_fidelity, content_identity
from earmark.probes.retrieval import answers, answers_without


def by_key(found: list[Row]) -> dict[tuple[str, str], Row]:
    return {(one.metric, one.protocol): one for one in found}


def vectors(seed: int = 0) -> tuple[np.ndarray, np.ndarray, list[Clip]]:
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(6), 8)
    clean = rng.normal(size=(6, 10))[labels] + 0.6 * rng.normal(size=(48, 10))
    coded = clean + 0.8 * rng.normal(size=clean.shape)
    return clean, coded, [Clip(str(n), f"kind{label}", group=f"take{n % 8}") for n, label in enumerate(labels)]


def test_both_enrolments_are_what_the_rooms_below_say() -> None:
    clean, coded, clips = vectors()
    found = by_key(content_identity(clean, coded, clips, permutations=30))
    labels = [clip.label for clip in clips]
    inside = earmark.evaluate(coded, labels, metrics=("P@1", "GSR"), k=1)
    before = earmark.evaluate(clean, labels, metrics=("P@1", "GSR"), k=1)
    across = answers(coded, clean, np.repeat(np.arange(6), 8))
    for metric, quantity in (("P@1", "hit"), ("GSR", "gsr")):
        one, other = found[metric, "coded_enrol"], found[metric, "clean_enrol"]
        assert one.value == pytest.approx(inside.value(metric))
        assert other.value == pytest.approx(across[quantity].mean())
        for row in (one, other):
            assert row.baseline is not None
            assert row.lift == pytest.approx((row.value or 0.0) - row.baseline)
            assert row.low is not None
            lost = found[f"{metric}:difference", row.protocol]
            assert lost.value == pytest.approx((row.value or 0.0) - before.value(metric), abs=1e-6)
            assert lost.p_value is not None
    assert found["P@1", "coded_enrol"].baseline == pytest.approx(7 / 47, abs=0.05)
    assert found["P@1", "clean_enrol"].baseline == pytest.approx(7 / 47, abs=0.05)


@pytest.mark.parametrize("grouped", [False, True])
def test_answers_without_a_unit_are_those_of_the_rest(grouped) -> None:
    clean, coded, _ = vectors(3)
    codes = np.repeat(np.arange(6), 8)
    codes[[5, 11]] = -1  # no label
    codes[40:47] = np.arange(20, 27)  # alone in their classes
    codes[46] = 25  # and a class of two
    units = np.arange(48) % 7 if grouped else np.random.default_rng(0).permutation(48)
    without = answers_without(coded, clean, codes, units)
    for unit in range(units.max() + 1):
        kept = units != unit
        right = answers(coded[kept], clean[kept], codes[kept])
        for name in ("hit", "gsr"):
            assert without[name][unit] == pytest.approx(np.nanmean(right[name]), abs=1e-12), (name, unit)


def test_intervals_of_what_is_kept_rest_on_groups() -> None:
    clean, coded, clips = vectors()
    found = by_key(content_identity(clean, coded, clips, permutations=0))
    for row in found.values():
        assert (row.interval, row.unit, row.units) == ("jackknife", "group", 8)
    alone = content_identity(clean, coded, [Clip(clip.id, clip.label) for clip in clips], permutations=0)
    assert {(row.unit, row.units) for row in alone} == {("clip", 48)}


def test_no_codec_loses_nothing() -> None:
    clean, _, clips = vectors()
    found = by_key(content_identity(clean, clean, clips, permutations=10))
    assert found["P@1:difference", "coded_enrol"].value == 0.0
    assert found["P@1:difference", "clean_enrol"].value == 0.0
    assert found["P@1", "clean_enrol"].value == pytest.approx(found["P@1", "coded_enrol"].value or 0.0)


def test_clips_without_shared_labels_have_a_reason() -> None:
    clean, coded, clips = vectors()
    alone = [Clip(clip.id, clip.id) for clip in clips]
    found = content_identity(clean, coded, alone)
    assert {one.status for one in found} == {"not_applicable"}
    assert len(by_key(found)) == 8


def test_the_task_hears_and_scores_with_any_extractor() -> None:
    clips = toys.tones()
    task = Content(toys.Spectrum(), permutations=20, bootstrap=20)
    clean = task.listen(clips)
    coded = task.listen([*toys.noisy(clips[:-1], 3.0), toys.broken(clips[-1])])
    found = by_key(task.score(clips, clean, coded))
    assert (found["P@1:difference", "clean_enrol"].value or 0.0) < 0.0
    assert found["P@1", "coded_enrol"].n == len(clips) - 1
    assert "1 clip left out" in found["P@1", "coded_enrol"].reason


def test_fidelity_is_the_rooms_below_and_falls_with_noise() -> None:
    clips = toys.tones(labels=4, groups=7, takes=4)
    task = CodedFidelity(toys.Spectrum(), bootstrap=10)
    clean = task.listen(clips)
    rows = []
    for level in (0.005, 8.0):
        coded = task.listen(toys.noisy(clips, level))
        found = task.score(clips, clean, coded)
        below = earmark.fidelity(
            toys.vectors(clean), toys.vectors(coded), metrics=("clipped_density", "coverage"), bootstrap=10
        )
        for metric in ("clipped_density", "coverage"):
            for correction in ("none", "gicdm"):
                (one,) = [row for row in found if (row.metric, row.correction) == (metric, correction)]
                assert one.value == pytest.approx(below.value(metric, correction=correction))
                rows.append(one.value or 0.0)
    assert np.mean(rows[:4]) > np.mean(rows[4:]) + 0.3


def test_intervals_of_coded_fidelity_leave_out_pairs_and_groups() -> None:
    rng = np.random.default_rng(4)
    clean = rng.normal(size=(60, 5))
    coded = 0.9 * clean + 0.5 * rng.normal(size=(60, 5))
    for options, reason in (({}, ""), ({"groups": np.arange(60) % 8}, "8 groups are too few")):
        (one,) = [
            row for row in coded_fidelity(clean, coded, metrics=["density"], **options) if row.correction == "none"
        ]  # fmt: skip
        assert reason in one.reason
        assert (one.low is None) == bool(reason)


def test_too_few_clips_for_fidelity_have_a_reason() -> None:
    found = coded_fidelity(np.eye(2), np.eye(2), bootstrap=5)
    assert found
    assert {one.status for one in found} == {"not_applicable"}
    assert all(one.reason for one in found)
