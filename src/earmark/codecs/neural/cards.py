"""Settings of neural codecs, and where their classes are. Data only: nothing is imported.

A setting is a checkpoint and a number of codebooks: kbps = frames a second x sum of log2(codebook sizes) / 1000. Every
configuration of Codec-SUPERB's Table 3 is a row, with its letter and number and the rate as printed there. Lower rates
of the same weights leave out the last codebooks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from earmark.codecs.contract import CodecCard

__all__ = ["CARDS", "FACTORIES", "FUNCODEC"]

_HERE = "earmark.codecs.neural"
_UNSEEN = "its layout follows the published code; it was tested here on random weights, not on the published ones"


def _settings(
    card: CodecCard, codebooks: Mapping[float, int], size: int = 1024, codes: Mapping[float, str] | None = None
) -> Iterator[CodecCard]:
    """One row for each rate: so many codebooks of one size."""
    for kbps, count in codebooks.items():
        yield replace(
            card,
            name=f"{card.family}@{kbps:g}",
            kbps=float(kbps),
            codebooks=count,
            codebook_sizes=(size,) * count,
            paper_code=(codes or {}).get(kbps, ""),
        )


def _card(family: str, **facts: object) -> CodecCard:
    return CodecCard(name=family, family=family, extra="models", **facts)  # type: ignore[arg-type]


# --- families that transformers has ---------------------------------------------------------------------------

_ENCODEC = _card(
    "encodec",
    title="EnCodec, 24 kHz",
    rate=24000,
    frame_rate=75.0,
    causal=True,
    licence="MIT (code); terms of the weights: see their page",
    citation="Défossez et al., High fidelity neural audio compression, TMLR 2023",
    checkpoint="facebook/encodec_24khz",
    notes="the checkpoint of 48 kHz hears two channels and is refused",
)

_DAC_CITATION = "Kumar et al., High-fidelity audio compression with improved RVQGAN, NeurIPS 2023"


def _dac(name: str, rate: int, frame_rate: float, notes: str = "") -> CodecCard:
    return _card(
        f"dac_{name}",
        title=f"Descript Audio Codec, {name}",
        rate=rate,
        frame_rate=frame_rate,
        causal=False,
        licence="MIT",
        citation=_DAC_CITATION,
        checkpoint=f"descript/dac_{name}",
        notes=notes,
    )


_MIMI = _card(
    "mimi",
    title="Mimi",
    rate=24000,
    frame_rate=12.5,
    causal=True,
    licence="CC BY 4.0 (weights)",
    citation="Défossez et al., Moshi: a speech-text foundation model for real-time dialogue, 2024",
    checkpoint="kyutai/mimi",
    notes="the first codebook is taught what words sound like; Moshi uses 8 of the 32",
)

_XCODEC = _card(
    "xcodec",
    title="X-Codec (HuBERT, LibriSpeech)",
    rate=16000,
    frame_rate=50.0,
    causal=False,
    licence="MIT",
    citation="Ye et al., Codec does matter: exploring the semantic shortcoming of codec for audio language model, "
    "AAAI 2025",
    checkpoint="hf-audio/xcodec-hubert-librispeech",
)

# --- families whose networks are written here -----------------------------------------------------------------

_SNAC_CITATION = "Siuzdak et al., SNAC: multi-scale neural audio codec, 2024"


def _snac(name: str, rate: int, hop: int, levels: int) -> CodecCard:
    """Coarse levels have fewer tokens: a frame is one token of the coarsest and all that lie under it."""
    slots = 2**levels - 1
    return _card(
        f"snac_{name}",
        title=f"SNAC, {name}",
        rate=rate,
        frame_rate=rate / (hop * 2 ** (levels - 1)),
        causal=False,
        licence="MIT",
        citation=_SNAC_CITATION,
        checkpoint=f"hubertsiuzdak/snac_{name}",
        how_to_get=f"config.json and pytorch_model.bin of hubertsiuzdak/snac_{name}; allow_pickle=true",
        notes=f"{levels} levels, each twice as fine in time as the last, make {slots} tokens a frame; its decoder "
        f"adds noise, which is drawn from a fixed seed; {_UNSEEN}",
    )


_SPEECH_TOKENIZER = _card(
    "speechtokenizer",
    title="SpeechTokenizer, 16 kHz",
    rate=16000,
    frame_rate=50.0,
    causal=False,
    licence="Apache-2.0",
    citation="Zhang et al., SpeechTokenizer: unified speech tokenizer for speech language models, ICLR 2024",
    checkpoint="fnlp/SpeechTokenizer",
    how_to_get="speechtokenizer_hubert_avg/config.json and SpeechTokenizer.pt of fnlp/SpeechTokenizer; "
    "allow_pickle=true",
    notes=f"the first codebook is taught what HuBERT hears; {_UNSEEN}",
)


def _academicodec(name: str, rate: int, weights: str, config: str) -> CodecCard:
    return _card(
        f"academicodec_{name}",
        title=f"AcademiCodec, HiFi-Codec {name}",
        rate=rate,
        frame_rate=rate / 320,
        causal=False,
        licence="MIT (code); terms of the weights: see their page",
        citation="Yang et al., HiFi-Codec: group-residual vector quantization for high fidelity audio codec, 2023",
        checkpoint="Dongchao/AcademiCodec",
        how_to_get=f"{weights} of Dongchao/AcademiCodec, and {config} of the repository yangdongchao/AcademiCodec "
        f"beside it; allow_pickle=true",
        notes=f"two groups of two residual codebooks, which are all needed; {_UNSEEN}",
    )


def _audiodec(
    name: str, rate: int, auto_encoder: str, vocoder: str, checkpoint: str = "", notes: str = ""
) -> CodecCard:
    return _card(
        f"audiodec_{name}",
        title=f"AudioDec, {name}",
        rate=rate,
        frame_rate=rate / 300,
        causal=True,
        licence="CC BY-NC 4.0",
        citation="Wu et al., AudioDec: an open-source streaming high-fidelity neural audio codec, ICASSP 2023",
        checkpoint=checkpoint,
        how_to_get=f"exp.zip of the releases of facebookresearch/AudioDec, unpacked: the folder that holds "
        f"autoencoder/{auto_encoder} and vocoder/{vocoder}, each with config.yml and its checkpoint; allow_pickle=true",
        notes=f"the vocoder decodes where it lies there, else the autoencoder's own decoder (decoder=symmetric asks "
        f"for that); {notes}{_UNSEEN}",
    )


# Configuration in Table 3: paper code, repository of the weights, samples a frame.
FUNCODEC = {
    "en_libritts_16k_gr1nq32ds320": ("F1", "audio_codec-freqcodec_magphase-en-libritts-16k-gr1nq32ds320-pytorch", 320),
    "en_libritts_16k_gr8nq32ds320": ("F2", "audio_codec-freqcodec_magphase-en-libritts-16k-gr8nq32ds320-pytorch", 320),
    "en_libritts_16k_nq32ds320": ("F3", "audio_codec-encodec-en-libritts-16k-nq32ds320-pytorch", 320),
    "en_libritts_16k_nq32ds640": ("F4", "audio_codec-encodec-en-libritts-16k-nq32ds640-pytorch", 640),
    "zh_en_16k_nq32ds320": ("F5", "audio_codec-encodec-zh_en-general-16k-nq32ds320-pytorch", 320),
    "zh_en_16k_nq32ds640": ("F6", "audio_codec-encodec-zh_en-general-16k-nq32ds640-pytorch", 640),
}


def _funcodec(name: str) -> Iterator[CodecCard]:
    code, repository, hop = FUNCODEC[name]
    card = _card(
        f"funcodec_{name}",
        title=f"FunCodec, {name}",
        rate=16000,
        frame_rate=16000 / hop,
        causal=False,
        licence="MIT (code); terms of the weights: see their page",
        citation="Du et al., FunCodec: a fundamental, reproducible and integrable open-source toolkit for neural "
        "speech codec, ICASSP 2024",
        checkpoint=f"alibaba-damo/{repository}",
        how_to_get=f"config.yaml and model.pth of alibaba-damo/{repository}; allow_pickle=true",
        notes=_UNSEEN,
    )
    most = 16.0 if hop == 320 else 8.0
    yield from _settings(card, {most / 8: 4, most / 4: 8, most / 2: 16, most: 32}, codes={most: code})


CARDS: tuple[CodecCard, ...] = (
    *_settings(_SPEECH_TOKENIZER, {1: 2, 2: 4, 4: 8}, codes={4: "A"}),
    *_settings(
        _academicodec("16k_320d", 16000, "HiFi-Codec-16k-320d", "config_16k_320d.json"), {2: 4}, codes={2: "B1"}
    ),
    *_settings(
        _academicodec("16k_320d_large_uni", 16000, "HiFi-Codec-16k-320d-large-universal", "config_16k_320d.json"),
        {2: 4},
        codes={2: "B2"},
    ),
    *_settings(
        _academicodec("24k_320d", 24000, "HiFi-Codec-24k-320d", "config_24k_320d.json"), {3: 4}, codes={3: "B3"}
    ),
    *_settings(
        _audiodec(
            "24k",
            24000,
            "symAD_libritts_24000_hop300",
            "AudioDec_v1_symAD_libritts_24000_hop300_clean",
            "AudioDecBenchmark/AudioDec",
            "Table 3 calls it 24k_320d, but 6.4 kbps is a frame of 300 samples, as its weights have; ",
        ),
        {6.4: 8},
        codes={6.4: "C"},
    ),
    *_settings(
        _audiodec("48k", 48000, "symAD_vctk_48000_hop300", "AudioDec_v1_symAD_vctk_48000_hop300_clean"), {12.8: 8}
    ),
    *_settings(_dac("16khz", 16000, 50.0), {1: 2, 2: 4, 4: 8, 6: 12}, codes={6: "D1"}),
    *_settings(_dac("24khz", 24000, 75.0), {1.5: 2, 3: 4, 6: 8, 12: 16, 24: 32}, codes={24: "D2"}),
    *_settings(
        _dac("44khz", 44100, 44100 / 512, "Table 3 prints 8 kbps for 9 codebooks, which send 7.75"),
        {1.7: 2, 3.4: 4, 5.2: 6, 8: 9},
        codes={8: "D3"},
    ),
    *_settings(_ENCODEC, {1.5: 2, 3: 4, 6: 8, 12: 16, 24: 32}, codes={1.5: "E1", 3: "E2", 6: "E3", 12: "E4", 24: "E5"}),
    *(card for name in FUNCODEC for card in _funcodec(name)),
    *_settings(_MIMI, {0.55: 4, 1.1: 8, 2.2: 16, 4.4: 32}, size=2048),
    *_settings(_snac("24khz", 24000, 512, 3), {0.98: 7}, size=4096),
    *_settings(_snac("32khz", 32000, 384, 4), {1.9: 15}, size=4096),
    *_settings(_snac("44khz", 44100, 384, 4), {2.6: 15}, size=4096),
    *_settings(_XCODEC, {0.5: 1, 1: 2, 1.5: 3, 2: 4, 4: 8}),
)

FACTORIES: dict[str, str] = {
    "speechtokenizer": f"{_HERE}.speechtokenizer:make",
    "academicodec_16k_320d": f"{_HERE}.academicodec:make",
    "academicodec_16k_320d_large_uni": f"{_HERE}.academicodec:make",
    "academicodec_24k_320d": f"{_HERE}.academicodec:make",
    "audiodec_24k": f"{_HERE}.audiodec:make",
    "audiodec_48k": f"{_HERE}.audiodec:make",
    "dac_16khz": f"{_HERE}.transformers_codecs:make_dac",
    "dac_24khz": f"{_HERE}.transformers_codecs:make_dac",
    "dac_44khz": f"{_HERE}.transformers_codecs:make_dac",
    "encodec": f"{_HERE}.transformers_codecs:make_encodec",
    "mimi": f"{_HERE}.transformers_codecs:make_mimi",
    "xcodec": f"{_HERE}.transformers_codecs:make_xcodec",
    "snac_24khz": f"{_HERE}.snac:make",
    "snac_32khz": f"{_HERE}.snac:make",
    "snac_44khz": f"{_HERE}.snac:make",
    **{f"funcodec_{name}": f"{_HERE}.funcodec:make" for name in FUNCODEC},
}
