"""What the VocSim and Codec-SUPERB papers print, as documents: the first rows of their boards."""

from __future__ import annotations

import re
from typing import Any

from earmark import published
from earmark.published import PAPERS, codec_family, vocsim_family
from earmark.published.families import VOCSIM_MODELS
from earmark.scores import Scores
from earmark.scores.rows import distinct
from earmark.submissions._cards import SystemCard
from earmark.submissions._documents import Document

PUBLISHED_BOARDS = ("vocsim", "codec-superb")
_PAPER = {"vocsim": (PAPERS["VocSim"], 2025), "codec-superb": (PAPERS["Codec-SUPERB"], 2024)}
_COST_NAMES = {
    "Whisper-L-v3": "Whisper", "WavLM-Large": "WavLM", "Wav2Vec2-Base": "Wav2Vec2", "AudioMAE": "AudioMAE",
    "CLAP": "CLAP", "EnCodec (24kHz)": "EnCodec", "Paper VAE (Custom)": "VAE", "Paper AE (Custom)": "AE",
    "Mel Spectrogram": "log-mel",
}  # fmt: skip
"""What Table 17 of VocSim calls each model."""
_TRAINED_ON_THE_SUITE = ("VAE", "AE")
_POOLINGS = {
    "MTF": "means over time and features", "TF": "first frame and first feature", "T": "first frame",
    "F": "first feature",
}  # fmt: skip
"""What the ends of VocSim's codes mean."""
_PCA = re.compile(r"(?P<code>.+) D(?P<size>\d+)")


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
        cards.append(
            _card(
                "vocsim",
                name,
                title=_vocsim_title(name),
                family=model,
                description="As printed in the paper; its code names the model and how its frames were pooled.",
                training_free=model not in _TRAINED_ON_THE_SUITE,
                parameters_m=sizes.get(model),
            )
        )
    return cards


def _vocsim_title(name: str) -> str:
    """What a code means: EWMTF D100 is "Whisper, means over time and features, PCA to 100"."""
    reduced = _PCA.fullmatch(name)
    code, model = reduced["code"] if reduced else name, vocsim_family(name, "model")
    base = min((own for own, other in VOCSIM_MODELS.items() if other == model), key=len, default=code)
    size = f"PCA to {reduced['size']}" if reduced else ""
    return ", ".join(filter(None, [model, _POOLINGS.get(code.removeprefix(base), ""), size]))


def _codec_cards(scores: Scores) -> list[SystemCard]:
    printed = {cell["codec"]: cell for cell in published.read("codec_superb_table3")}
    cards = []
    for name in distinct(scores.rows, "system"):
        cell, family = printed.get(name), codec_family(name)
        kbps = float(cell["kbps"]) if cell and cell["kbps"] else None
        title = f"{family} {cell['configuration']} at {kbps:g} kbps" if cell and kbps else "sound as it was"
        untouched = "The applications on recordings that no codec touched."
        facts: dict[str, Any] = {"family": family, "description": "As printed in the paper."}
        if not cell:
            facts = {"description": untouched, "details": {"lossless": True}}
        cards.append(_card("codec-superb", name, kind="codec", title=title, kbps=kbps, **facts))
    return cards


def _card(board: str, name: str, **facts: Any) -> SystemCard:
    paper, year = _PAPER[board]
    citation, command = f"{paper.title}. {paper.citation}", f"earmark published show {board}"
    return SystemCard(name, **facts, command=command, citation=citation, year=year)
