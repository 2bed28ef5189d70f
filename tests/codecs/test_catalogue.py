"""Names of codecs: listing, expanding, opening, and what is said about those that cannot be."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from earmark import registry
from earmark.codecs import catalogue
from earmark.codecs.catalogue import availability, card_of, expand, families, is_path, open_codec, parse_spec, settings
from earmark.codecs.contract import Codec, Coded
from earmark.codecs.harness import round_trip
from earmark.errors import EarmarkError, InputError, UsageError

RATES = ["6", "8", "12", "16", "24", "32", "48", "64", "96"]


def test_listing_imports_nothing_heavy() -> None:
    code = (
        "import sys; from earmark.codecs.catalogue import settings, availability;"
        "[availability(card) for card in settings()];"
        "print([m for m in ('av', 'torch', 'transformers', 'pycodec2', 'imageio_ffmpeg') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_name_is_its_family_and_opens_its_own_card() -> None:
    names, registered = [card.name for card in settings()], catalogue.FAMILIES.names()
    assert len(set(names)) == len(names)
    for card in settings():
        assert card.name.partition("@")[0] == card.family
        assert card_of(card.name) == card
        assert card.family in families()
        assert card.family in registered


def test_families_expand_to_all_rates_once() -> None:
    assert expand(["opus"]) == expand(["opus@*"]) == [f"opus@{rate}" for rate in RATES]
    assert expand(["opus@12", "opus", "opus@12"]) == ["opus@12", *[f"opus@{rate}" for rate in RATES if rate != "12"]]
    assert expand(["opus@*?vbr=off"]) == [f"opus@{rate}?vbr=off" for rate in RATES]
    assert expand(["lyra:some/folder"]) == [f"lyra:some/folder@{rate}" for rate in ("3.2", "6", "9.2")]
    assert expand(["pcm"]) == ["pcm"]
    assert len(expand(["classical"])) >= 80
    assert set(expand(["neural"])).isdisjoint(expand(["classical"]))
    here = expand(["all"])
    assert here == [card.name for card in settings() if not availability(card)]


def test_spellings_are_taken_apart() -> None:
    assert parse_spec("opus@12")[:4] == ("opus", None, {}, "12")
    assert parse_spec("lyra:a/b@c@3.2")[:4] == ("lyra", "a/b@c", {}, "3.2")
    assert parse_spec("opus@12?vbr=off&frame_duration=20").options == {"vbr": False, "frame_duration": 20}
    assert parse_spec("my.module:Codec")[:4] == ("my.module", "Codec", {}, "")
    assert is_path(parse_spec("my.module:Codec"))


def test_numbers_may_be_spelt_in_any_way() -> None:
    assert card_of("opus@12.0").name == "opus@12"
    assert card_of("codec2@.7").name == "codec2@0.7"


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("opsu@12", 'Did you mean "opus"'),
        ("opus@13", "choose from opus@6"),
        ("opus", "several settings"),
        ("no.such.module:Codec", "cannot be imported"),
        ("json:JSONDecoder", "encode"),
        ("lyra@3.2?beam=4", "no option"),
    ],
)
def test_wrong_names_are_told_in_a_sentence(spec: str, said: str) -> None:
    with pytest.raises(EarmarkError, match=said):
        open_codec(spec)


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_is_installed", lambda module: module != "av")
    assert availability(card_of("opus@12")) == 'It needs `pip install "earmark[codecs]"`.'
    assert availability(card_of("pcm")) == ""
    assert availability(card_of("codec2@0.7")) == ""


def test_weights_that_are_not_here_are_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EARMARK_LYRA", str(tmp_path))
    assert "soundstream_encoder.tflite" in availability(card_of("lyra@3.2"))
    monkeypatch.delenv("EARMARK_LYRA")
    with pytest.raises(InputError, match="google/lyra"):
        open_codec("lyra@3.2")
    assert "weights" in availability(card_of("encodec@6"))
    assert "weights" in availability(card_of("encodec@6?revision=x"))
    assert "weights" in availability(card_of("lyra@3.2"))


# --- codecs of strangers -----------------------------------------------------------------------------------------

STRANGERS = '''
import numpy as np
from earmark.codecs import CodecCard, Coded

class Bytes:
    """No card, no base class: a rate, and eight bits a sample."""
    sample_rate = 8000
    def __init__(self, gain=1.0):
        self.gain = gain
    def encode(self, waveform):
        return np.clip(self.gain * waveform * 127, -127, 127).astype(np.int8).tobytes()
    def decode(self, data):
        return (np.frombuffer(data, np.int8) / 127 / self.gain).astype(np.float32)

class Packets(Bytes):
    def encode(self, waveform):
        data = super().encode(waveform)
        return [data[start : start + 160] for start in range(0, len(data), 160)]
    def decode(self, packets):
        return super().decode(b"".join(packets))
    def decode_with_losses(self, packets, lost):
        return self.decode([bytes(len(p)) if gone else p for p, gone in zip(packets, lost)])

class Tokens:
    card = {"name": "tokens", "rate": 8000, "codebook_sizes": (16,), "frame_rate": 8000.0}
    def encode(self, waveform):
        return np.clip((waveform + 1) * 8, 0, 15).astype(np.int64)[None]
    def decode(self, tokens):
        return ((tokens[0] + 0.5) / 8 - 1).astype(np.float32)

class Row(Tokens):
    def encode(self, waveform):
        return super().encode(waveform)[0]
    def decode(self, row):
        assert row.ndim == 1
        return super().decode(row[None])

class Whole:
    card = CodecCard(name="whole@64", family="whole", rate=8000, kbps=64.0)
    def encode(self, waveform):
        return Coded(len(waveform), (Bytes().encode(waveform),))
    def decode(self, coded):
        return Bytes().decode(coded.packets[0])

finished = Whole()
'''


@pytest.fixture
def strangers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "strangers_codecs.py").write_text(STRANGERS)
    monkeypatch.syspath_prepend(str(tmp_path))
    return "strangers_codecs"


@pytest.mark.parametrize(
    ("name", "kbps"), [("Bytes", 64.0), ("Packets", 64.0), ("Tokens", 32.0), ("Whole", 64.0), ("finished", 64.0)]
)
def test_a_strangers_codec_needs_no_registration(strangers: str, name: str, kbps: float) -> None:
    codec = open_codec(f"{strangers}:{name}")
    assert isinstance(codec, Codec)
    clip = (0.5 * np.sin(np.arange(8000) / 5)).astype(np.float32)
    made = round_trip(codec, clip, 8000)
    assert made.kbps == kbps
    assert np.abs(made.samples - clip).max() < 0.13
    # A new instance that has not encoded anything decodes it too.
    assert isinstance(made.coded, Coded)
    np.testing.assert_array_equal(open_codec(f"{strangers}:{name}").decode(made.coded), codec.decode(made.coded))


def test_options_reach_a_strangers_codec_and_its_name(strangers: str) -> None:
    codec = open_codec(f"{strangers}:Bytes?gain=0.5")
    assert codec.card.name == "Bytes?gain=0.5"
    assert codec.card.rate == 8000
    assert expand([f"{strangers}:Bytes"]) == [f"{strangers}:Bytes"]
    with pytest.raises(UsageError, match="these options"):
        open_codec(f"{strangers}:Bytes?volume=11")
    with pytest.raises(UsageError, match="finished object"):
        open_codec(f"{strangers}:finished?gain=2")


def test_a_package_registers_short_names(strangers: str, tmp_path: Path) -> None:
    about = tmp_path / "strange_codecs-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: strange-codecs\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[earmark.codecs]\neight_bits = {strangers}:Bytes\n")
    codec = open_codec("eight_bits?gain=2")
    assert codec.card.name == "eight_bits?gain=2"
    assert codec.card.rate == 8000
    assert card_of("eight_bits").name == "eight_bits"
    assert expand(["eight_bits"]) == ["eight_bits"]


def test_options_that_change_no_sound_are_not_part_of_the_name() -> None:
    assert card_of("speechtokenizer@4?allow_pickle=true&device=cpu").name == "speechtokenizer@4"
    assert card_of("opus@12?vbr=off&device=cpu").name == "opus@12?vbr=off"


def test_other_weights_are_told_apart_by_their_last_part() -> None:
    """And by nothing more of the path, which is nobody's business."""
    names = {
        "dac_16khz@2": "dac_16khz@2",
        "dac_16khz:descript/dac_16khz@2": "dac_16khz@2",
        "dac_16khz:/models/dac_16khz@2": "dac_16khz@2",  # a copy of the published weights
        "dac_16khz:/home/me/fine tuned@2": "dac_16khz:fine-tuned@2",
        "dac_16khz:me/my-dac@2": "dac_16khz:my-dac@2",
        "dac_16khz:../run7/model.safetensors@2?codebooks=3": "dac_16khz:run7@2?codebooks=3",
        "encodec:/a/b/best.pt@6?device=cpu": "encodec:best@6",
        "audiodec_24k:/a/coder@6.4?vocoder=/a/b/voice": "audiodec_24k:coder@6.4?vocoder=voice",
    }
    assert {spec: card_of(spec).name for spec in names} == names


def test_the_card_says_which_weights_were_given() -> None:
    assert card_of("dac_16khz@2").checkpoint == "descript/dac_16khz"
    assert card_of("dac_16khz:me/my-dac@2").checkpoint == "me/my-dac"
    assert card_of("dac_16khz:/home/me/tuned@2").checkpoint == "tuned"


def test_a_row_of_tokens_is_decoded_as_a_row(strangers: str) -> None:
    codec = open_codec(f"{strangers}:Row")
    clip = (0.5 * np.sin(np.arange(800) / 5)).astype(np.float32)
    made = round_trip(codec, clip, 8000)
    assert made.bits == 4 * 800
    assert np.abs(made.samples - clip).max() < 0.13


def test_a_family_is_one_curve_of_rates() -> None:
    """Two settings of one rate in one family would make a curve that turns back on itself."""
    families_of = {
        "opus@12": "opus",
        "opus@12?vbr=off": "opus?vbr=off",
        "dac_16khz@2": "dac_16khz",
        "dac_16khz:/a/tuned@2": "dac_16khz:tuned",
        "encodec:/a/best.pt@6?codebooks=3&revision=x&device=cpu": "encodec:best?revision=x",
        "lyra:/a/b@3.2": "lyra",
    }
    assert {spec: card_of(spec).family for spec in families_of} == families_of
