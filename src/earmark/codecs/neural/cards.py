"""The settings of every neural codec, and where the makers of the families are. Listing them imports no network.

A setting is a checkpoint and a number of codebooks. Every configuration of Codec-SUPERB's Table 3 is a row, with its
letter and number and the rate as printed there. The rows stand beside the class of their family.
"""

from __future__ import annotations

from earmark.codecs.contract import CodecCard
from earmark.codecs.neural import academicodec, audiodec, seanet, snac, transformers_codecs
from earmark.codecs.neural.token_codec import TokenCodec

_FAMILIES: tuple[tuple[tuple[CodecCard, ...], type[TokenCodec]], ...] = (
    (seanet.SPEECH_TOKENIZER, seanet.SpeechTokenizer),
    (academicodec.CARDS, academicodec.AcademiCodec),
    (audiodec.CARDS, audiodec.AudioDec),
    (transformers_codecs.DAC_CARDS, transformers_codecs.DAC),
    (transformers_codecs.ENCODEC, transformers_codecs.EnCodec),
    (seanet.FUNCODEC, seanet.FunCodec),
    (transformers_codecs.MIMI, transformers_codecs.Mimi),
    (snac.CARDS, snac.Snac),
    (transformers_codecs.XCODEC, transformers_codecs.XCodec),
)
CARDS: tuple[CodecCard, ...] = tuple(card for cards, _ in _FAMILIES for card in cards)
FACTORIES: dict[str, str] = {
    card.family: f"{kind.__module__}:{kind.__name__}.make" for cards, kind in _FAMILIES for card in cards
}
