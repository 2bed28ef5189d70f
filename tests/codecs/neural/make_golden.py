"""Makes golden.npz: what the authors' own code makes of the tiny checkpoints, tokens and sounds.

    python tests/codecs/neural/make_golden.py OUT.npz

The authors' code must be importable: the packages speechtokenizer 1.0.1, funcodec 0.2.0 and snac 1.2.1 with einops, and
the repositories yangdongchao/AcademiCodec and facebookresearch/AudioDec, of which the classes that are used here were
transcribed, without training and streaming, when the file was made. State dicts are loaded strictly, which also
shows that the tiny checkpoints have all of their names and shapes. SNAC draws its noise from torch: here each of its
noise blocks draws from a generator with the block's number as the seed, as ours do.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import yaml
from tests.codecs.neural import tiny_codecs as tiny
from tests.codecs.neural.tiny_codecs import torch

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

    With `filled`, which gives a model its weights, model.pth is written; else it is read. Also the number of parameters.
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


def main(out: str) -> None:
    found: dict[str, Any] = {}
    for name, write in tiny.WRITERS.items():
        family = name.partition("@")[0]
        authors = globals()[family.partition("_")[0]]
        sound = tiny.sound(tiny.RATES[name], SECONDS)
        with tempfile.TemporaryDirectory() as place, torch.inference_mode():
            tokens, samples, *_ = authors(write(Path(place) / "tiny"), torch.from_numpy(sound)[None, None])
        found[f"{family}.tokens"] = tokens.numpy().astype(np.int16)
        found[f"{family}.samples"] = samples.reshape(-1)[: len(sound)].numpy()
        print(family, tokens.shape, len(np.unique(tokens)), float(samples.abs().max()))
    np.savez_compressed(out, **found)


if __name__ == "__main__":
    main(sys.argv[1])
