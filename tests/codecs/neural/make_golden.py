"""Makes golden.npz: what the authors' own code makes of the tiny checkpoints, tokens and sounds.

    python tests/codecs/neural/make_golden.py OUT.npz [NAME …]

With names only those settings are made, and the others stay as they are in OUT.npz. The authors' code must be
importable: the packages speechtokenizer 1.0.1, funcodec 0.2.0, snac 1.2.1, encodec 0.1.1 and descript-audio-codec 1.0.0
with einops (`make originals` installs them), and the repositories yangdongchao/AcademiCodec and
facebookresearch/AudioDec, of which the classes that are used here were transcribed, without training and streaming,
when the file was made. State dicts are loaded strictly, which also shows that the tiny checkpoints have all of their
names and shapes. SNAC draws its noise from torch: here each of its noise blocks draws from a generator with the block's
number as the seed, as ours do.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import yaml
from tests.codecs.neural import tiny_codecs as tiny
from tests.codecs.neural import tiny_files
from tests.codecs.neural.tiny_codecs import torch

from earmark.codecs.neural.cards import CARDS

SECONDS = 0.31  # no whole number of frames for any of them


def speechtokenizer(folder: Path, sound: Any) -> tuple[Any, Any]:
    from speechtokenizer.model import SpeechTokenizer

    model = SpeechTokenizer.load_from_checkpoint(str(folder / "config.json"), str(folder / "SpeechTokenizer.pt")).eval()
    codes = model.encode(sound)
    return codes[:, 0], model.decode(codes)


def academicodec(folder: Path, sound: Any) -> tuple[Any, Any]:
    from academicodec.models.hificodec.models import Encoder, Generator, Quantizer

    config = SimpleNamespace(**tiny.HIFI_CODEC)
    parts = torch.load(folder / "HiFi-Codec-16k-320d")
    encoder, quantiser, generator = Encoder(config), Quantizer(config), Generator(config)
    encoder.load_state_dict(parts["encoder"])
    quantiser.load_state_dict(parts["quantizer"])
    generator.load_state_dict(parts["generator"])
    sound = torch.nn.functional.pad(sound, (0, -sound.shape[-1] % 320))  # whole frames, as ours pads
    codes = torch.stack([code.reshape(1, -1) for code in quantiser(encoder(sound))[2]], -1)
    return codes[0].T, generator(quantiser.embed(codes))


def audiodec(folder: Path, sound: Any) -> tuple[Any, Any]:
    from models.autoencoder.AudioDec import Generator
    from models.vocoder.HiFiGAN import Generator as Vocoder

    coder_at, voice_at = sorted(folder.glob("*/*"))
    coder = Generator(**tiny.AUTO_ENCODER)
    state = torch.load(coder_at / "checkpoint-500000steps.pkl")["model"]["generator"]
    _strictly(coder, state)
    stats = folder / "stats.npy"
    np.save(stats, np.ones((2, tiny.VOCODER["in_channels"])))
    voice = Vocoder(**tiny.VOCODER | {"stats": str(stats)})
    _strictly(voice, torch.load(voice_at / "checkpoint-500000steps.pkl")["model"]["generator"])
    sound = torch.nn.functional.pad(sound, (0, -sound.shape[-1] % 300))
    coder.quantizer.initial()
    _, flat = coder.quantizer.encode(coder.projector(coder.encoder(sound)))
    codes = flat.reshape(8, -1) - 1024 * torch.arange(8)[:, None]
    return codes, voice(coder.quantizer.decode(flat).transpose(1, 2))


def _strictly(model: Any, state: dict[str, Any]) -> None:
    """All but the buffers of streaming, which are zeros."""
    missing, unexpected = model.load_state_dict(state, strict=False)
    assert not unexpected, unexpected
    assert all(name.endswith("pad_buffer") for name in missing), missing
    model.eval()


def snac(folder: Path, sound: Any) -> tuple[Any, Any]:
    from snac import SNAC

    model = SNAC.from_pretrained(str(folder))
    seed_noise(model)
    codes = model.encode(sound)
    columns = codes[0].shape[1]
    return torch.cat([code[0].reshape(columns, -1).T for code in codes]), model.decode(codes)


def seed_noise(model: Any) -> None:
    """Let each noise block of a SNAC draw from a generator with the block's number as the seed."""
    from snac.layers import NoiseBlock

    for seed, block in enumerate(block for block in model.modules() if isinstance(block, NoiseBlock)):
        block.forward = _seeded(block, seed)


def _seeded(block: Any, seed: int) -> Any:
    def forward(values: Any) -> Any:
        noise = torch.randn((1, 1, values.shape[-1]), generator=torch.Generator().manual_seed(seed))
        return values + noise * block.linear(values)

    return forward


def funcodec(folder: Path, sound: Any, filled: Callable[[Any], Any] | None = None) -> tuple[Any, Any, int]:
    """The parts of the toolkit's model; its own class needs torchaudio, whose spectrograms are torch's.

    With `filled`, which gives a model its weights, model.pth is written, else read. Also the number of parameters.
    """
    from funcodec.models.decoder.seanet_decoder import SEANetDecoder, SEANetDecoder2d
    from funcodec.models.encoder.seanet_encoder import SEANetEncoder, SEANetEncoder2d
    from funcodec.models.quantizer.costume_quantizer import CostumeQuantizer

    config = yaml.safe_load((folder / "config.yaml").read_text())
    flat = config["model"] == "freq_codec"
    model = torch.nn.Module()
    model.encoder = (SEANetEncoder2d if flat else SEANetEncoder)(config["input_size"], **config["encoder_conf"])
    width = config["encoder_conf"]["dimension"]
    model.quantizer = CostumeQuantizer(width, **config["quantizer_conf"])
    model.decoder = (SEANetDecoder2d if flat else SEANetDecoder)(width, **config["decoder_conf"])
    if filled is None:
        state = torch.load(folder / "model.pth")
        state.pop("discriminator.weight")
        model.load_state_dict(state)
    else:
        torch.save(filled(model).state_dict(), folder / "model.pth")
    for module in model.modules():
        module.training = False
    loudness = 1e-8 + sound.pow(2).mean(2, keepdim=True).sqrt()
    heard, window = sound / loudness, torch.hann_window(512)
    if flat:
        spectrum = torch.stft(heard[:, 0], 512, 160, window=window, return_complex=True)
        magnitude = spectrum.abs().clamp(min=1e-6)
        phase = spectrum / magnitude
        heard = torch.stack([magnitude.log(), phase.real, phase.imag], 1)
    codes = model.quantizer.encode(model.encoder(heard))
    said = model.decoder(model.quantizer.decode(codes).transpose(1, 2))
    if flat:
        spectrum = torch.nn.functional.softplus(said[:, 0]) * torch.complex(said[:, 1], said[:, 2])
        said = torch.istft(spectrum, 512, 160, window=window)[:, None]
    return codes[:, 0], said * loudness, sum(parameter.numel() for parameter in model.parameters())


def dac(folder: Path, sound: Any) -> tuple[Any, Any]:
    """The package's model, loaded from its authors' file."""
    file = torch.load(folder / "weights_16khz.pth")
    model = dac_package().DAC(**file["metadata"]["kwargs"])
    model.load_state_dict(file["state_dict"])
    latent, codes, *_ = model.eval().encode(model.preprocess(sound, None))
    return codes[0], model.decode(latent)


def dac_package() -> Any:
    """The package without what it imports for training and for files of sound."""
    base = type("BaseModel", (torch.nn.Module,), {"INTERN": [], "EXTERN": []})
    tools: Any = ModuleType("audiotools")
    tools.ml, tools.AudioSignal, tools.STFTParams = SimpleNamespace(BaseModel=base), object, MagicMock()
    sys.modules.setdefault("audiotools", tools)
    sys.modules.setdefault("audiotools.ml", MagicMock(BaseModel=base))
    stand_in("argbind", "dac.utils")
    import dac.model.dac as package

    return package


def encodec(folder: Path, sound: Any) -> tuple[Any, Any]:
    """The package's model, made small."""
    stand_in("torchaudio")
    from encodec import modules as layers
    from encodec.model import EncodecModel
    from encodec.quantization import ResidualVectorQuantizer

    encoder, decoder = (
        layers.SEANetEncoder(**tiny_files.ENCODEC_SIZES),
        layers.SEANetDecoder(**tiny_files.ENCODEC_SIZES),
    )
    quantiser = ResidualVectorQuantizer(dimension=16, n_q=32, bins=1024)
    model = EncodecModel(encoder, decoder, quantiser, [1.5, 3.0, 6.0, 12.0, 24.0], 24000, 1)
    model.load_state_dict(torch.load(folder / "encodec_24khz-d7cc33bc.th"))
    model.eval().set_target_bandwidth(24.0)
    frames = model.encode(torch.nn.functional.pad(sound, (0, -sound.shape[-1] % 320)))
    return frames[0][0][0], model.decode(frames)


def stand_in(*names: str) -> None:
    """Empty modules for what the packages import and do not need here."""
    for name in names:
        sys.modules.setdefault(name, MagicMock(name=name))


def main(out: str, *names: str) -> None:
    golden: dict[str, Any] = dict(np.load(out)) if names else {}
    for name, write in (tiny.WRITERS | tiny_files.FILES).items():
        if names and name not in names:
            continue
        family = name.partition("@")[0]
        authors = globals()[family.partition("_")[0]]
        sound = tiny.sound(next(card.rate for card in CARDS if card.name == name), SECONDS)
        with tempfile.TemporaryDirectory() as place, torch.inference_mode():
            tokens, samples, *_ = authors(write(Path(place) / "tiny"), torch.from_numpy(sound)[None, None])
        golden[f"{family}.tokens"] = tokens.numpy().astype(np.int16)
        golden[f"{family}.samples"] = samples.reshape(-1)[: len(sound)].numpy()
        print(family, tokens.shape, len(np.unique(tokens)), float(samples.abs().max()))
    np.savez_compressed(out, **golden)


if __name__ == "__main__":
    main(*sys.argv[1:])
