"""Small packages of Debian with the layout of those that hold recordings, and a mirror that apt reads from a folder."""

from __future__ import annotations

import gzip
import hashlib
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import soundfile

COPYRIGHT = """Format: http://www.debian.org/doc/packaging-manuals/copyright-format/1.0/

Files: *
Copyright: 2003-2010, Somebody
License: {licence}

Files: debian/*
Copyright: 2010, Somebody else
License: GPL-2+
"""


def tone(number: int, rate: int = 8000, seconds: float = 0.5) -> np.ndarray:
    """A sound of its own for each number."""
    time = np.arange(int(seconds * rate)) / rate
    noise = np.random.default_rng(number).normal(size=len(time))
    return 0.3 * np.sin(2 * np.pi * (200 + 37 * number) * time) + 0.01 * noise


def wav_bytes(samples: np.ndarray, rate: int = 8000, kind: str = "WAV") -> bytes:
    import io

    stream = io.BytesIO()
    soundfile.write(stream, samples, rate, format=kind)
    return stream.getvalue()


def make_deb(
    folder: Path, name: str, files: Mapping[str, bytes], *, licence: str = "CC-BY-SA-3.0", version="1.0-1"
) -> Path:
    """Build a real package with dpkg-deb; `files` are paths from the root."""
    tree = folder / f"tree-{name}"
    contents = {**files, f"usr/share/doc/{name}/copyright": COPYRIGHT.format(licence=licence).encode()}
    contents["DEBIAN/control"] = (
        f"Package: {name}\nVersion: {version}\nArchitecture: all\nMaintainer: A <a@example.org>\nDescription: sounds\n"
    ).encode()
    for path, data in contents.items():
        file = tree / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    file = folder / f"{name}_{version.replace(':', '%3a')}_all.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Zgzip", "--build", tree, file], check=True, capture_output=True)
    shutil.rmtree(tree)
    return file


def prompts(key: str, folder: str, names: Mapping[str, str], *, first: int = 0, kind: str = "wav") -> dict[str, bytes]:
    """Files of a package of prompts: a sound for each name."""
    return {
        f"usr/share/asterisk/sounds/{folder}/{name}.{kind}": wav_bytes(tone(first + number))
        for number, name in enumerate(names)
    }


def text_list(key: str, names: Mapping[str, str]) -> dict[str, bytes]:
    lines = "".join(f"{name}: {text}\n" for name, text in names.items())
    listed = f"; Core Asterisk Sounds\n\n{lines}".encode()
    return {f"usr/share/doc/asterisk-core-sounds-{key}/core-sounds-{key}.txt.gz": gzip.compress(listed)}


def apt_mirror(folder: Path, debs: list[Path]) -> Path:
    """A mirror in a folder, and a configuration of apt (for APT_CONFIG) that knows no other; its lists are read."""
    mirror = folder / "mirror"
    mirror.mkdir(parents=True)
    paragraphs = []
    for deb in debs:
        shutil.copy(deb, mirror)
        fields = subprocess.run(["dpkg-deb", "--field", deb], check=True, capture_output=True, text=True).stdout
        data = deb.read_bytes()
        paragraphs.append(
            f"{fields.strip()}\nFilename: ./{deb.name}\nSize: {len(data)}\nSHA256: {hashlib.sha256(data).hexdigest()}\n"
        )
    (mirror / "Packages").write_text("\n".join(paragraphs))
    for place in ("state/lists/partial", "cache/archives/partial", "etc/apt.conf.d", "etc/preferences.d", "parts"):
        (folder / place).mkdir(parents=True)
    (folder / "state/status").write_text("")
    (folder / "sources.list").write_text(f"deb [trusted=yes] copy:{mirror} ./\n")
    config = folder / "apt.conf"
    config.write_text(
        f'Dir::State "{folder}/state";\nDir::State::status "{folder}/state/status";\nDir::Cache "{folder}/cache";\n'
        f'Dir::Etc "{folder}/etc";\nDir::Etc::sourcelist "{folder}/sources.list";\n'
        f'Dir::Etc::sourceparts "{folder}/parts";\n'
        'APT::Sandbox::User "";\nAcquire::Languages "none";\n'
    )
    update(config)
    return config


def update(config: Path) -> None:
    import os

    subprocess.run(
        ["apt-get", "update", "-qq"], check=True, capture_output=True, env={**os.environ, "APT_CONFIG": str(config)}
    )
