"""Golden values of the codec metrics, by an independent script (see tests/golden/make_codec_metrics.py)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.codecs.pairs import PAIRS

from earmark.codecs.signal import measure

EXPECTED = json.loads((Path(__file__).parents[1] / "golden" / "codec_metrics" / "expected.json").read_text("utf-8"))


def test_there_is_a_value_for_every_pair():
    assert set(EXPECTED) == set(PAIRS)


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("definitions", ["mended", "reference"])
def test_golden(name, definitions):
    rate, clean, heard = PAIRS[name]
    wanted = EXPECTED[name].get(definitions)
    if wanted is None:
        assert len(clean) != len(heard)
        return
    found = measure(clean, heard, rate, tuple(wanted), definitions=definitions)
    for metric, value in wanted.items():
        assert found[metric].value == pytest.approx(value, rel=0, abs=1e-4), metric
