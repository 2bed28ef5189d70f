"""Every check finds the defect it is there for, and only that one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from earmark.conformance import CheckResult, check_table
from earmark.extractors.conformance import CHECKS, Subject, check_extractor
from earmark.extractors.contract import ExtractorCard, Frames, Waveform


class Good:
    card = ExtractorCard("good", short_name="G", title="Good", rate=8000, dimension=2, licence="MIT")

    def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
        return [self.one(waveform) for waveform in waveforms]

    def one(self, waveform: Waveform) -> Frames:
        blocks = np.array_split(waveform, max(1, len(waveform) // 800))
        values = np.array([[block.mean(), np.sqrt((block**2).mean())] for block in blocks], np.float32)
        return Frames(values, len(values))


class NoCard(Good):
    card = None  # type: ignore[assignment]


class OddRate(Good):
    card = ExtractorCard("odd", rate=16)


class WrongDimension(Good):
    card = ExtractorCard("wrong", short_name="W", title="W", rate=8000, dimension=3, licence="MIT")


class Codes(Good):
    def one(self, waveform: Waveform) -> Frames:
        values, valid = super().one(waveform)
        return Frames((100 * values).astype(np.int64), valid)


class NotFinite(Good):
    def one(self, waveform: Waveform) -> Frames:
        values, valid = super().one(waveform)
        return Frames(values / 0 if len(waveform) == 8000 else values, valid)


class TooValid(Good):
    def one(self, waveform: Waveform) -> Frames:
        values, valid = super().one(waveform)
        return Frames(values, valid + 1)


class Random(Good):
    def one(self, waveform: Waveform) -> Frames:
        values, valid = super().one(waveform)
        return Frames(values + np.random.default_rng().standard_normal(values.shape), valid)


class Sorted(Good):
    def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
        return super().extract(sorted(waveforms, key=lambda waveform: (len(waveform), float(waveform[0]))))


class Company(Good):
    def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
        return [Frames(f.values + len(waveforms), f.valid) for f in super().extract(waveforms)]


class NeedsLength(Good):
    def one(self, waveform: Waveform) -> Frames:
        if len(waveform) < 400:
            raise ValueError("too short")
        return super().one(waveform)


class Divides(Good):
    def one(self, waveform: Waveform) -> Frames:
        with np.errstate(all="ignore"):
            return super().one(waveform / np.abs(waveform).max())


class Forgets(Good):
    def one(self, waveform: Waveform) -> Frames:
        return super().one(waveform[: 5 * 8000])


class Meddles(Good):
    def one(self, waveform: Waveform) -> Frames:
        waveform *= 0.5
        return super().one(waveform)


class Deaf(Good):
    def one(self, waveform: Waveform) -> Frames:
        values, valid = super().one(waveform)
        return Frames(np.ones_like(values), valid)


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (Good, {}),
        (NoCard, {"card": "warn"}),
        (OddRate, {"card": "fail"}),
        (WrongDimension, {"shape": "fail"}),
        (Codes, {"dtype": "warn"}),
        (NotFinite, {"finite": "fail"}),
        (TooValid, {"valid_counts": "fail"}),
        (Random, {"deterministic": "fail"}),
        (Sorted, {"order_kept": "fail"}),
        (Company, {"batch_independent": "fail"}),
        (NeedsLength, {"short_clips": "fail"}),
        (Divides, {"silence": "fail"}),
        (Forgets, {"long_clip": "warn"}),
        (Meddles, {"input_untouched": "fail"}),
        (Deaf, {"tells_sounds_apart": "fail"}),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_each_defect_is_found(model: type[Any], expected: dict[str, str]) -> None:
    found = {finding.name: finding.status for finding in check_extractor(model())}
    assert list(found) == [check.__name__ for check in CHECKS]
    if not expected:
        assert set(found.values()) == {"pass"}
    for name, status in expected.items():
        assert found[name] == status


def test_an_exception_is_one_sentence() -> None:
    found = {finding.name: finding for finding in check_extractor(NeedsLength())}
    assert found["short_clips"].sentence == (
        "It raised ValueError: too short (on clips of 0.01 s and 1 sample): pad what is shorter than the model needs."
    )


class ThreeAxes(Good):
    def one(self, waveform: Waveform) -> Any:
        return super().one(waveform).values[None]


class AlwaysNan(Good):
    def one(self, waveform: Waveform) -> Frames:
        values, valid = super().one(waveform)
        return Frames(np.where(values > 0, np.nan, values), valid)


def test_one_defect_is_told_once() -> None:
    """What cannot be looked at is skipped, and NaN in the same places is no difference between two runs."""
    statuses = {finding.name: finding.status for finding in check_extractor(ThreeAxes())}
    assert statuses.pop("card") == "pass"
    assert statuses.pop("shape") == "fail"
    assert set(statuses.values()) == {"skip"}
    statuses = {finding.name: finding.status for finding in check_extractor(Random())}
    assert [name for name, status in statuses.items() if status == "fail"] == ["deterministic"]
    assert [name for name, status in statuses.items() if status == "skip"] == ["order_kept", "batch_independent"]
    statuses = {finding.name: finding.status for finding in check_extractor(AlwaysNan())}
    assert statuses["finite"] == "fail"
    assert statuses["deterministic"] == statuses["order_kept"] == statuses["batch_independent"] == "pass"


def test_a_model_that_learns_is_fitted_first() -> None:
    class Learning(Good):
        fitted = False

        def fit(self, clips: Any, *, progress: Any, checkpoint: Any) -> None:
            self.fitted = len(clips) > 1

    assert Subject(Learning()).extractor.fitted


def test_the_table_is_markdown() -> None:
    findings = [CheckResult("card", "pass", "a|b."), CheckResult("shape", "fail", "No.")]
    lines = check_table(findings, "earmark check x:Y").splitlines()
    assert lines[0] == "earmark check x:Y: 1 pass, 1 fail"
    assert lines[2].startswith("| check | result |")
    assert "a\\|b." in lines[4]
