"""The public conformance suite for codecs, as tests: one for each check.

Your own codec:  EARMARK_CODEC=mypackage.mymodule:MyCodec pytest tests/conformance
Without it, one setting of each classical family is tested.
"""

from __future__ import annotations

import os
from functools import cache

import pytest

from earmark.codecs.catalogue import open_codec
from earmark.codecs.classical.cards import CARDS
from earmark.codecs.conformance import CHECKS, Subject

CHOSEN = os.environ.get("EARMARK_CODEC", "")
OF_FAMILY = list({card.family: card.name for card in reversed(CARDS) if card.family != "lyra"}.values())


@cache
def subject(spec: str) -> Subject:
    return Subject(open_codec(spec), fresh=lambda: open_codec(spec))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("spec", [CHOSEN] if CHOSEN else OF_FAMILY)
def test_codec(spec: str, check: object) -> None:
    finding = check(subject(spec))  # type: ignore[operator]
    assert finding.status != "fail", finding.sentence
