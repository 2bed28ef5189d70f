"""The first rows of a board: what the VocSim and Codec-SUPERB papers print, marked as printed."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from earmark import published
from earmark.board.records import Submission
from earmark.board.storage import Store
from earmark.published import PAPERS, codec_family, vocsim_family
from earmark.scores import Scores
from earmark.scores.rows import distinct
from earmark.submissions import Document, SystemCard

PUBLISHED_BOARDS = ("vocsim", "codec-superb")
_PAPER = {"vocsim": (PAPERS["VocSim"], 2025), "codec-superb": (PAPERS["Codec-SUPERB"], 2024)}
_COST_NAMES = {
    "Whisper-L-v3": "Whisper", "WavLM-Large": "WavLM", "Wav2Vec2-Base": "Wav2Vec2", "AudioMAE": "AudioMAE",
    "CLAP": "CLAP", "EnCodec (24kHz)": "EnCodec", "Paper VAE (Custom)": "VAE", "Paper AE (Custom)": "AE",
    "Mel Spectrogram": "log-mel",
}  # fmt: skip
"""What Table 17 of VocSim calls each model."""
_TRAINED_ON_THE_SUITE = ("VAE", "AE")
_PCA = re.compile(r"(?P<code>.+) D(?P<size>\d+)")


class Loaded(NamedTuple):
    """What became of one printed set. `new`: it was not on the board before."""

    board: str
    systems: int
    rows: int
    new: bool
    submission: Submission


def load_published(store: Store, *, with_repeats: bool = False) -> list[Loaded]:
    """Put the printed results on the board, accepted and marked as printed. A second time changes nothing.

    Values that repeat another system's are shown and not ranked, unless `with_repeats` counts them as measurements.

    When a later version of Earmark reads a printed table better, its rows take the place of the earlier ones. A set
    that a moderator withdrew stays withdrawn.
    """
    papers = store.papers()
    loaded = []
    for board in PUBLISHED_BOARDS:
        document = published_document(board, with_repeats=with_repeats)
        key = f"published:{board}:{document.digest}"
        sent = store.submit(document, papers, idempotency_key=key)
        new = sent.state == "pending"
        if new:  # also after a load that was killed between the two
            sent = store.decide(sent.id, papers, accept=True)
        loaded.append(Loaded(board, len(sent.systems), sent.rows, new, sent))
    return loaded


def published_document(board: str, *, with_repeats: bool = False) -> Document:
    """The printed results of one board, with a card for each system."""
    scores = published.load(board, with_repeats=with_repeats)
    cards = _vocsim_cards(scores) if board == "vocsim" else _codec_cards(scores)
    return Document.of(scores, board=board, cards=cards, provenance="printed")


def _vocsim_cards(scores: Scores) -> list[SystemCard]:
    costs = published.read("vocsim_table17_efficiency")
    sizes = {_COST_NAMES[cell["model"]]: float(cell["params_M"]) for cell in costs}
    cards = []
    for name in distinct(scores.rows, "system"):
        model = vocsim_family(name, "model")
        reduced = _PCA.fullmatch(name)
        code = reduced["code"] if reduced else name
        cards.append(
            _card(
                "vocsim",
                name,
                title=f"{model} ({code})" + (f", PCA to {reduced['size']} dimensions" if reduced else ""),
                family=model,
                description="As printed in the paper; the code names the model and how its frames were pooled.",
                training_free=model not in _TRAINED_ON_THE_SUITE,
                parameters_m=sizes.get(model),
            )
        )
    return cards


def _codec_cards(scores: Scores) -> list[SystemCard]:
    printed = {cell["codec"]: cell for cell in published.read("codec_superb_table3")}
    cards = []
    for name in distinct(scores.rows, "system"):
        cell, family = printed.get(name), codec_family(name)
        kbps = float(cell["kbps"]) if cell and cell["kbps"] else None
        title = f"{family} {cell['configuration']} at {kbps:g} kbps" if cell and kbps else "sound as it was"
        untouched = "The applications on recordings that no codec touched."
        facts = {"family": family, "description": "As printed in the paper."} if cell else {"description": untouched}
        cards.append(_card("codec-superb", name, kind="codec", title=title, kbps=kbps, **facts))
    return cards


def _card(board: str, name: str, **facts: Any) -> SystemCard:
    paper, year = _PAPER[board]
    citation, command = f"{paper.title}. {paper.citation}", f"earmark published show {board}"
    return SystemCard(name, **facts, command=command, citation=citation, year=year)
