"""The rows of neural codecs: complete against Table 3, consistent in themselves, and free to list."""

from __future__ import annotations

import math
import subprocess
import sys
from importlib.util import find_spec

import pytest

from earmark import published
from earmark.codecs.contract import CodecCard
from earmark.codecs.neural.cards import CARDS, FACTORIES

BY_CODE = {card.paper_code: card for card in CARDS if card.paper_code}
TITLES = {
    "SpeechTokenizer": "speechtokenizer",
    "AcademiCodec": "academicodec",
    "AudioDec": "audiodec",
    "DAC": "dac",
    "EnCodec": "encodec",
    "FunCodec": "funcodec",
}


def test_every_configuration_of_table_3_is_a_row_with_its_rate() -> None:
    printed = [row for row in published.read("codec_superb_table3") if row["kbps"]]
    assert len(printed) == len(BY_CODE) == 19
    for row in printed:
        card = BY_CODE[row["codec"]]
        assert card.kbps == float(row["kbps"])
        assert card.family.startswith(TITLES[row["family"]])
        assert row["configuration"][:2] == str(card.rate)[:2] or "16k" in row["configuration"]
        if row["family"] in ("AcademiCodec", "FunCodec"):
            assert card.family.endswith(row["configuration"])


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.name)
def test_a_rate_is_what_the_codebooks_send(card: CodecCard) -> None:
    assert card.frame_rate is not None
    assert card.kbps is not None
    assert len(card.codebook_sizes) == card.codebooks
    sent = card.frame_rate * sum(map(math.log2, card.codebook_sizes)) / 1000
    assert sent == pytest.approx(card.kbps, rel=0.035), "more than rounding"
    if abs(sent - card.kbps) > 0.03 * card.kbps:
        assert "7.75" in card.notes
    assert card.name == f"{card.family}@{card.kbps:g}"
    assert card.licence
    assert card.citation
    assert card.checkpoint or card.how_to_get
    module, _, _ = FACTORIES[card.family].partition(":")
    assert find_spec(module) is not None


def test_names_are_unique_and_every_family_has_settings() -> None:
    assert len({card.name for card in CARDS}) == len(CARDS)
    assert {card.family for card in CARDS} == set(FACTORIES)


def test_listing_imports_no_network() -> None:
    code = (
        "import sys; from earmark.codecs.neural import cards; assert len(cards.CARDS) > 40; "
        "assert not {'torch', 'transformers', 'safetensors'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
