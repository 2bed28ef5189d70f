"""The public conformance suite, as tests: one for each check.

Your own extractor:  EARMARK_EXTRACTOR=mypackage.mymodule:MyModel pytest tests/conformance
Without it, Earmark's own are tested.
"""

from __future__ import annotations

import os
from functools import cache
from importlib.util import find_spec

import pytest

from earmark.extractors.catalogue import CARDS, open_extractor
from earmark.extractors.conformance import CHECKS, Subject

CHOSEN = os.environ.get("EARMARK_EXTRACTOR", "")
OWN = [name for name, card in CARDS.items() if not card.extra]
LEARNED = ["vae", "ae"]


def extractors() -> list[object]:
    if CHOSEN:
        return [CHOSEN]
    missing = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
    return [*OWN, *(pytest.param(name, marks=missing) for name in LEARNED)]


@cache
def subject(spec: str) -> Subject:
    parameters = {"epochs": 1} if spec in LEARNED else {}
    return Subject(open_extractor(spec, **parameters))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("spec", extractors())
def test_extractor(spec: str, check: object) -> None:
    finding = check(subject(spec))  # type: ignore[operator]
    assert finding.status != "fail", finding.sentence
