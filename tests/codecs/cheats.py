"""Codecs that try to pass the original to their decoder beside the payload. Each sends next to nothing.

Where the original cannot be had, they decode to silence: what a test hears tells whether the cheat worked.
"""

from __future__ import annotations

import base64
import contextlib
import os
import socket
import tempfile
import threading
import time
from multiprocessing import shared_memory
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.codecs.contract import CodecCard, Coded

Samples = NDArray[np.float32]
RATE = 16000
_kept: dict[str, Samples] = {}


class Cheat:
    """Hides the waveform somewhere, sends one byte, and looks for the waveform when it decodes."""

    name = "cheat"

    def __init__(self) -> None:
        self.card = CodecCard(name=f"cheat-{self.name}", family="cheat", rate=RATE, kbps=0.01, delay=0, frame_rate=50.0)

    def encode(self, waveform: Samples) -> Coded:
        self.hide(np.asarray(waveform, "<f4"))
        return Coded(len(waveform), (b"\x01",))

    def decode(self, coded: Coded) -> Samples:
        samples: Samples | None = None
        with contextlib.suppress(Exception):
            samples = self.find(coded)
        if samples is None or len(samples) != coded.samples:
            return np.zeros(coded.samples, np.float32)
        return np.array(samples, np.float32)

    def hide(self, waveform: Samples) -> None:
        raise NotImplementedError

    def find(self, coded: Coded) -> Samples | None:
        raise NotImplementedError


class InItself(Cheat):
    name = "self"
    waveform: Samples | None = None

    def hide(self, waveform: Samples) -> None:
        self.waveform = waveform

    def find(self, coded: Coded) -> Samples | None:
        return self.waveform


class InModule(Cheat):
    name = "global"

    def hide(self, waveform: Samples) -> None:
        _kept["waveform"] = waveform

    def find(self, coded: Coded) -> Samples | None:
        return _kept.get("waveform")


class InFile(Cheat):
    """In the temporary folder."""

    name = "tmp"

    @property
    def file(self) -> Path:
        return Path("/tmp/earmark-cheat.npy")

    def hide(self, waveform: Samples) -> None:
        with contextlib.suppress(OSError):
            self.file.parent.mkdir(parents=True, exist_ok=True)
            np.save(self.file, waveform)

    def find(self, coded: Coded) -> Samples | None:
        found: Samples = np.load(self.file)
        return found


class InHome(InFile):
    name = "home"

    @property
    def file(self) -> Path:
        return Path.home() / ".earmark-cheat" / "waveform.npy"


class InEnvironment(Cheat):
    name = "environment"

    def hide(self, waveform: Samples) -> None:
        os.environ["EARMARK_CHEAT"] = base64.b64encode(waveform.tobytes()).decode()

    def find(self, coded: Coded) -> Samples | None:
        return np.frombuffer(base64.b64decode(os.environ["EARMARK_CHEAT"]), "<f4")


class InSharedMemory(Cheat):
    name = "memory"
    block: Any = None

    def hide(self, waveform: Samples) -> None:
        with contextlib.suppress(FileNotFoundError):
            shared_memory.SharedMemory("earmark-cheat").unlink()
        self.block = shared_memory.SharedMemory("earmark-cheat", create=True, size=waveform.nbytes)
        self.block.buf[: waveform.nbytes] = waveform.tobytes()

    def find(self, coded: Coded) -> Samples | None:
        block = shared_memory.SharedMemory("earmark-cheat")
        return np.frombuffer(bytes(block.buf[: 4 * coded.samples]), "<f4")


class InHeader(Cheat):
    """In the header, which is said once and for all and was not counted."""

    name = "header"

    def encode(self, waveform: Samples) -> Coded:
        return Coded(len(waveform), (b"\x01",), header=np.asarray(waveform, "<f4").tobytes())

    def find(self, coded: Coded) -> Samples | None:
        return np.frombuffer(coded.header, "<f4")


class InPacketBits(Cheat):
    """Counts one bit of each packet and uses eight."""

    name = "bits"

    def __init__(self) -> None:
        super().__init__()
        self.card = CodecCard(name="cheat-bits", family="cheat", rate=RATE, kbps=16.0, delay=0, packet_bits=1)

    def encode(self, waveform: Samples) -> Coded:
        grid = np.clip(np.rint(waveform * 127), -127, 127).astype(np.int8).tobytes()
        return Coded(len(waveform), tuple(grid[place : place + 1] for place in range(len(grid))))

    def find(self, coded: Coded) -> Samples | None:
        return np.frombuffer(b"".join(coded.packets), np.int8).astype(np.float32) / 127


class BySocket(Cheat):
    """The encoder listens, on a port and under an abstract name, and the decoder asks it."""

    name = "socket"
    port = 47813
    waveform = b""

    def hide(self, waveform: Samples) -> None:
        self.waveform = waveform.tobytes()
        for family, address in ((socket.AF_INET, ("127.0.0.1", self.port)), (socket.AF_UNIX, "\0earmark-cheat")):
            with contextlib.suppress(OSError):
                server = socket.socket(family)
                server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                server.bind(address)
                server.listen()
                threading.Thread(target=self._serve, args=(server,), daemon=True).start()

    def _serve(self, server: socket.socket) -> None:
        while True:
            connection, _ = server.accept()
            with connection:
                connection.sendall(self.waveform)

    def find(self, coded: Coded) -> Samples | None:
        for family, address in ((socket.AF_INET, ("127.0.0.1", self.port)), (socket.AF_UNIX, "\0earmark-cheat")):
            with contextlib.suppress(OSError), socket.socket(family) as client:
                client.settimeout(2.0)
                client.connect(address)
                data = b"".join(iter(lambda: client.recv(1 << 16), b""))
                return np.frombuffer(data, "<f4")
        return None


class ByTiming(Cheat):
    """The encoder takes as long as the clip is loud, and the decoder looks at the clock."""

    name = "timing"
    step = 0.05

    def __init__(self) -> None:
        super().__init__()
        self.last = time.monotonic()

    def hide(self, waveform: Samples) -> None:
        time.sleep(self.step * round(10 * float(np.abs(waveform).max())))

    def decode(self, coded: Coded) -> Samples:
        waited = time.monotonic() - self.last
        level = min(1.0, int(waited / self.step) / 10)
        self.last = time.monotonic()
        return np.full(coded.samples, level, np.float32) * np.sign(np.sin(np.arange(coded.samples))).astype(np.float32)


CHEATS = (
    InItself, InModule, InFile, InHome, InEnvironment, InSharedMemory, InHeader, InPacketBits, BySocket, ByTiming,
)  # fmt: skip


# --- and other ways ----------------------------------------------------------------------------------------------


class InEmptyPackets(Cheat):
    """Says a number by how many packets are empty."""

    name = "empty"

    def encode(self, waveform: Samples) -> Coded:
        return Coded(len(waveform), (b"",) * 50_000)

    def find(self, coded: Coded) -> Samples | None:
        return None


class InLateHeader(Cheat):
    """Sends a sound in its header, and the same header for the noise that headers are compared with."""

    name = "late-header"
    header = b""

    def encode(self, waveform: Samples) -> Coded:
        noise = (0.1 * np.random.default_rng(0).standard_normal(RATE)).astype(np.float32)
        if not np.array_equal(waveform, noise):
            InLateHeader.header = np.asarray(waveform, "<f4").tobytes()
        return Coded(len(waveform), (b"\x01",), header=InLateHeader.header)

    def find(self, coded: Coded) -> Samples | None:
        return np.frombuffer(coded.header, "<f4")


class InNegativeBits(Cheat):
    """Has codebooks of less than one entry, whose tokens cost less than nothing."""

    name = "negative"

    def __init__(self) -> None:
        super().__init__()
        sizes: Any = (256, 1e-300)
        self.card = CodecCard(name="cheat-negative", family="cheat", rate=RATE, delay=0, codebook_sizes=sizes)

    def encode(self, waveform: Samples) -> Coded:
        grid = np.clip(np.rint(waveform * 127), -127, 127).astype(np.int64) + 128
        return Coded(len(waveform), tokens=np.stack([grid, 0 * grid]))


class FromTheCorpus(Cheat):
    """Looks for the clips themselves."""

    name = "corpus"

    def __init__(self, folder: str = "") -> None:
        super().__init__()
        self.folder = folder or tempfile.gettempdir()

    def hide(self, waveform: Samples) -> None:
        pass

    def find(self, coded: Coded) -> Samples | None:
        import soundfile

        for file in sorted(Path(self.folder).rglob("*.wav")):
            samples, _ = soundfile.read(file, dtype="float32")
            if len(samples) == coded.samples:
                return samples
        return None
