"""The conformance suite finds what is wrong with bad codecs, each by the check that is meant for it."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from earmark.cli import main
from earmark.codecs.conformance import CHECKS, check_codec
from earmark.codecs.contract import CodecCard, Coded

CARD = CodecCard(
    name="bytes@64", family="bytes", title="Bytes", rate=8000, kbps=64.0, frame_rate=50.0, delay=0, licence="Apache-2.0"
)


class Good:
    """Eight bits a sample, in packets of 20 ms."""

    card = CARD

    def encode(self, waveform: Any) -> Any:
        data = np.clip(np.rint(waveform * 127), -127, 127).astype(np.int8).tobytes()
        return Coded(len(waveform), tuple(data[start : start + 160] for start in range(0, len(data), 160)))

    def decode(self, coded: Any) -> Any:
        return (np.frombuffer(b"".join(coded.packets), np.int8) / 127).astype(np.float32)


class Stash(Good):
    """Sends a byte and keeps the sound."""

    def encode(self, waveform: Any) -> Any:
        self.kept = waveform.copy()
        return Coded(len(waveform), (b"!",))

    def decode(self, coded: Any) -> Any:
        return self.kept


class Library(Good):
    """Sends the number of a sound that it keeps on a shelf of its own."""

    def __init__(self) -> None:
        self.shelf: dict[bytes, Any] = {}

    def encode(self, waveform: Any) -> Any:
        key = hash(waveform.tobytes()).to_bytes(8, "big", signed=True)
        self.shelf[key] = waveform.copy()
        return Coded(len(waveform), (key,))

    def decode(self, coded: Any) -> Any:
        return self.shelf[coded.packets[0]]


SHELF: dict[bytes, Any] = {}


class Global(Good):
    """Keeps sounds in its module: another instance finds them, another process does not."""

    def encode(self, waveform: Any) -> Any:
        key = sha256(waveform.tobytes()).digest()
        SHELF[key] = waveform.copy()
        return Coded(len(waveform), (key,))

    def decode(self, coded: Any) -> Any:
        return SHELF[coded.packets[0]]


class Preface(Good):
    """Sends all but a byte as header, which is no part of the rate."""

    def encode(self, waveform: Any) -> Any:
        coded = super().encode(waveform)
        return Coded(coded.samples, (coded.packets[0][:1],), header=b"".join(coded.packets))

    def decode(self, coded: Any) -> Any:
        return super().decode(Coded(coded.samples, (coded.header,)))


class Docked(Good):
    """Late by 400 samples, and cut to the length of the clip."""

    card = replace(CARD, name="docked@64", delay=400)

    def decode(self, coded: Any) -> Any:
        return np.pad(super().decode(coded), (400, 0))[: coded.samples]


class Restless(Good):
    counter = itertools.count()

    def decode(self, coded: Any) -> Any:
        return super().decode(coded) + np.float32(0.001 * (next(self.counter) % 7))


class Deaf(Good):
    def encode(self, waveform: Any) -> Any:
        return super().encode(np.zeros_like(waveform))


class Spoils(Good):
    def encode(self, waveform: Any) -> Any:
        coded = super().encode(waveform)
        waveform *= 0.5
        return coded


class Dear(Good):
    def encode(self, waveform: Any) -> Any:
        coded = super().encode(waveform)
        return Coded(coded.samples, tuple(packet + bytes(40) for packet in coded.packets))

    def decode(self, coded: Any) -> Any:
        return super().decode(Coded(coded.samples, tuple(packet[:-40] for packet in coded.packets)))


class Slow(Good):
    """States a fifth of its packets."""

    card = CodecCard(name="slow@64", family="slow", rate=8000, kbps=64.0, frame_rate=10.0, title="S", licence="MIT")


class Choosy(Good):
    def encode(self, waveform: Any) -> Any:
        if len(waveform) < 100:
            raise ValueError("too short")
        return super().encode(waveform)


class Nan(Good):
    def decode(self, coded: Any) -> Any:
        heard = super().decode(coded)
        return heard * np.float32(np.nan) if not heard.any() else heard


class Fast(Good):
    def decode(self, coded: Any) -> Any:
        return np.repeat(super().decode(coded), 2)


class Mute(Good):
    """Takes any sound and plays none."""

    def decode(self, coded: Any) -> Any:
        return 1e-6 * super().decode(coded)


class Hiss(Good):
    """Plays a sound of its own, whatever it was given."""

    def decode(self, coded: Any) -> Any:
        return (0.1 * np.random.default_rng(0).standard_normal(coded.samples)).astype(np.float32)


class Leaves(Good):
    def decode(self, coded: Any) -> Any:
        raise SystemExit("enough")


@pytest.mark.parametrize(
    ("bad", "check", "status"),
    [
        (Stash, "decodes_what_was_sent", "fail"),
        (Library, "decodes_what_was_sent", "fail"),
        (Global, "decodes_what_was_sent", "fail"),
        (Preface, "header_is_set_up", "fail"),
        (Docked, "keeps_the_end", "warn"),
        (Restless, "deterministic", "warn"),
        (Deaf, "tells_sounds_apart", "fail"),
        (Spoils, "input_untouched", "fail"),
        (Dear, "rate_counted", "warn"),
        (Slow, "frames_as_stated", "warn"),
        (Choosy, "short_clips", "fail"),
        (Nan, "silence", "fail"),
        (Fast, "round_trips", "fail"),
        (Mute, "round_trips", "fail"),
        (Hiss, "round_trips", "fail"),
        (Leaves, "round_trips", "fail"),
    ],
)
def test_each_defect_is_found_by_its_check(bad: type[Good], check: str, status: str) -> None:
    fresh = bad if check == "decodes_what_was_sent" else None  # another process takes its time
    findings = {finding.name: finding for finding in check_codec(bad(), fresh=fresh)}
    assert findings[check].status == status, findings[check]
    assert findings[check].sentence.endswith(".")
    assert len(findings) == len(CHECKS)


def test_a_good_codec_passes_everything() -> None:
    findings = check_codec(Good(), fresh=Good)
    assert [finding for finding in findings if finding.status != "pass"] == []
    assert any(finding.sentence.startswith("Another process decodes the same") for finding in findings)


def test_a_defect_is_told_once() -> None:
    findings = check_codec(Fast(), fresh=Fast)
    assert "as many as at 16000 Hz" in findings[1].sentence
    assert {finding.status for finding in findings[2:]} == {"skip"}


COMMAND = "import sys; from earmark.cli import main; sys.exit(main(sys.argv[1:]))"


def test_the_command_recognises_a_codec_by_its_methods(tmp_path: Path) -> None:
    (tmp_path / "strange.py").write_text(
        "import numpy as np\n"
        "class MyCodec:\n"
        "    rate = 8000\n"
        "    def encode(self, waveform):\n"
        "        return np.clip(waveform * 127, -127, 127).astype(np.int8).tobytes()\n"
        "    def decode(self, data):\n"
        "        return (np.frombuffer(data, np.int8) / 127).astype(np.float32)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, "check", "strange:MyCodec", "--json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    findings = json.loads(done.stdout)
    assert [finding["name"] for finding in findings] == [*(check.__name__ for check in CHECKS), "isolation"]
    assert [finding["name"] for finding in findings if finding["status"] != "pass"] == ["card"]


def test_the_command_outlives_a_codec_that_ends_its_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "fleeting.py").write_text(
        "import os\n"
        "class MyCodec:\n"
        "    rate = 8000\n"
        "    def encode(self, waveform):\n"
        "        return waveform.tobytes()\n"
        "    def decode(self, data):\n"
        "        os._exit(3)\n"
        "class Half:\n"
        "    def encode(self, waveform):\n"
        "        return b''\n"
        "class OtherHalf:\n"
        "    def decode(self, data):\n"
        "        return data\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert main(["check", "fleeting:MyCodec"]) == 1
    assert "decode did not return: its process ended (exit code 3)" in capsys.readouterr().out
    assert main(["check", "fleeting:Half"]) == 1
    assert "there is no decode, and encode returned packets" in capsys.readouterr().out
    assert main(["check", "fleeting:OtherHalf"]) == 2
    assert "fleeting:OtherHalf has no `encode`: a codec has `encode` and `decode`." in capsys.readouterr().err
