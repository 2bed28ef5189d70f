"""Nobody wins by hiding the original: every way is tried with both halves in one process, where it works, and isolated,
where it does not or costs what it is worth."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile
from tests.codecs import cheats
from tests.codecs.sounds import voice

import earmark
from earmark.codecs.catalogue import open_codec
from earmark.codecs.cells import Confinement, card_from, close_cells, covering, isolated
from earmark.codecs.contract import CodecFailure
from earmark.codecs.harness import encode, round_trip
from earmark.codecs.packet_loss import decode_lossy
from earmark.errors import InputError
from earmark.isolation import support

RATE = cheats.RATE
HERE = Path(cheats.__file__)
needs_bubblewrap = pytest.mark.skipif(
    support().level != "full", reason="bubblewrap is not here: scripts/services install"
)


@pytest.fixture(autouse=True)
def _cells_are_closed():
    yield
    close_cells()
    for file in (cheats.InFile().file, cheats.InHome().file):
        file.unlink(missing_ok=True)
    cheats.InHome().file.parent.rmdir() if cheats.InHome().file.parent.is_dir() else None


def _sound(seed: int = 0) -> np.ndarray:
    return (0.5 * voice(RATE, 1.0, seed + 7)).astype(np.float32)


def _likeness(first: np.ndarray, second: np.ndarray) -> float:
    second = second[: len(first)]
    scale = np.linalg.norm(first) * np.linalg.norm(second)
    return float(first @ second / scale) if scale else 0.0


WITHOUT_HIDING = (cheats.InHeader, cheats.InPacketBits, cheats.ByTiming)


@needs_bubblewrap
@pytest.mark.parametrize("cheat", [cheat for cheat in cheats.CHEATS if cheat not in WITHOUT_HIDING])
def test_a_hidden_waveform_is_not_there_for_the_decoder(cheat):
    sound = _sound()
    spec = f"{HERE}:{cheat.__name__}"
    together = round_trip(open_codec(spec), sound, RATE)
    assert _likeness(sound, together.samples) > 0.99, "the cheat must work where nothing forbids it"
    apart = round_trip(isolated(spec, Confinement()), sound, RATE)
    assert abs(_likeness(sound, apart.samples)) < 0.1  # silence, or the noise that shapes are learnt from


@needs_bubblewrap
def test_a_header_that_holds_the_sound_costs_what_it_holds():
    sound = _sound()
    made = round_trip(isolated(f"{HERE}:InHeader", Confinement()), sound, RATE)
    assert made.bits >= 32 * len(sound) - 64
    assert made.kbps > 500.0


@needs_bubblewrap
def test_bits_beyond_those_stated_are_zero():
    sound = _sound()
    assert _likeness(sound, open_codec(f"{HERE}:InPacketBits").decode(cheats.InPacketBits().encode(sound))) > 0.99
    made = round_trip(isolated(f"{HERE}:InPacketBits", Confinement()), sound, RATE)
    assert made.bits == len(sound)
    assert set(b"".join(made.coded.packets)) <= {0x00, 0x80}
    assert len(np.unique(made.samples)) <= 2  # one bit of each sample is left: its sign


@needs_bubblewrap
def test_the_clock_tells_the_decoder_nothing(tmp_path):
    levels = (0.1, 0.9, 0.3, 0.7)
    for number, level in enumerate(levels):
        sound = _sound(number)
        soundfile.write(tmp_path / f"{number}.wav", level * sound / np.abs(sound).max(), RATE)
    together = [
        round_trip(codec := cheats.ByTiming(), soundfile.read(tmp_path / f"{n}.wav")[0], RATE) for n in range(2)
    ]
    assert np.abs(together[1].samples).max() - np.abs(together[0].samples).max() > 0.3, "it must work in one process"
    assert codec is not None
    run = earmark.codec(
        f"{HERE}:ByTiming", tmp_path, category="speech", into=tmp_path / "run", metrics=["si_sdr"], jobs=0,
        report=False, check=False, bootstrap=0, cache={"url": str(tmp_path / "cache")},
    )  # fmt: skip
    assert run.scores.value("kbps", system="cheat-timing", subset="mean:speech") < 0.01
    # Every clip is encoded before the first is decoded, so the decoder waits as long for a loud one as for a quiet one.
    values = [row for row in run.scores if row.metric == "si_sdr"]
    assert values[0].value is None or values[0].value < -5.0


def test_empty_packets_are_counted():
    made = round_trip(cheats.InEmptyPackets(), _sound(), RATE)
    assert made.bits == 8 * 50_000


@needs_bubblewrap
def test_clips_and_results_are_covered_for_a_codec_that_lies_beside_them(tmp_path, monkeypatch):
    sound = _sound()
    clip = tmp_path / "clips" / "a.wav"
    clip.parent.mkdir()
    soundfile.write(clip, sound, RATE, subtype="FLOAT")
    beside = tmp_path / "b.wav"
    soundfile.write(beside, sound, RATE, subtype="FLOAT")
    monkeypatch.chdir(tmp_path)
    spec = f"{HERE}:FromTheCorpus?folder={tmp_path}"
    seen = round_trip(isolated(spec, Confinement()), sound, RATE)
    assert _likeness(sound, seen.samples) > 0.99  # the current folder can be read
    covered = round_trip(isolated(spec, Confinement(hidden=(str(clip), str(beside)))), sound, RATE)
    assert np.abs(covered.samples).max() == 0.0


@needs_bubblewrap
def test_a_run_with_cheats_says_what_they_are_worth(tmp_path):
    for number in range(5):
        soundfile.write(tmp_path / f"{number}.wav", _sound(number), RATE)
    names = [f"{HERE}:InFile", f"{HERE}:InHeader"]
    run = earmark.codec(
        [*names, "opus@12"], tmp_path, category="speech", into=tmp_path / "run", jobs=2, report=False,
        metrics=["stft_distance", "mel_distance", "stoi"], bootstrap=0, cache={"url": str(tmp_path / "cache")},
    )  # fmt: skip
    value = run.scores.value
    assert value("stoi", system="opus@12") > 0.7
    assert value("kbps", system="cheat-header", subset="mean:speech") > 500.0
    stoi = [row.value for row in run.scores if row.metric == "stoi" and row.system == "cheat-tmp"]
    assert all(found is None or found < 0.1 for found in stoi)
    import json

    record = json.loads((tmp_path / "run" / "run.json").read_text())
    standing = {codec["card"]["name"]: codec["standing"] for codec in record["codecs"]}
    assert {standing[name]["isolation"] for name in standing} == {"full"}
    assert standing["cheat-tmp"]["check"] == "failed"
    assert standing["opus@12"]["check"] == "not run"  # a codec of the list
    sent = json.loads((tmp_path / "run" / "submission.json").read_text())
    details = {system["name"]: system["details"] for system in sent["systems"]}
    assert details["cheat-tmp"]["check"] == "failed"
    assert details["opus@12"]["isolation"] == "full"


def test_clips_are_covered_by_few_folders_and_singly_where_the_folder_is_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files = [str(tmp_path / "corpus" / f"class{number}" / "a.wav") for number in range(500)]
    assert covering(files) == (str(tmp_path / "corpus"),)
    assert covering([*files[:2], "b.wav"]) == (*(str(Path(file).parent) for file in files[:2]), str(tmp_path / "b.wav"))


@needs_bubblewrap
def test_a_header_that_is_made_up_after_the_clip_counts():
    made = encode(isolated(f"{HERE}:InLateHeader", Confinement()), _sound(), RATE)
    assert made.bits >= 32 * len(_sound()) - 64


@needs_bubblewrap
def test_bits_cannot_be_negative_or_fractions():
    with pytest.raises(InputError, match="codebook_sizes"):
        isolated(f"{HERE}:InNegativeBits", Confinement())
    with pytest.raises(CodecFailure, match="whole number"):
        encode(cheats.InNegativeBits(), _sound(), RATE)


@pytest.mark.parametrize(
    "wrong",
    [
        {"rate": 10**9}, {"rate": "16000"}, {"packet_bits": 0}, {"packet_bits": 0.5}, {"codebook_sizes": [1.5]},
        {"name": "a\nb"}, {"name": "a\ud800"}, {"name": ""}, {"name": 7}, {"kbps": float("nan")}, {"delay": 1e300},
    ],
)  # fmt: skip
def test_a_card_from_a_cell_is_possible(wrong):
    facts = {"name": "a", "family": "a", "rate": 16000, "codebook_sizes": [1024]}
    assert card_from(facts).codebook_sizes == (1024,)
    with pytest.raises(InputError):
        card_from(facts | wrong)


@needs_bubblewrap
@pytest.mark.parametrize("where", ["beside", "option", "links"])
def test_clips_are_covered_wherever_a_codec_may_read(where, tmp_path, monkeypatch):
    sound = _sound()
    clips = tmp_path / "clips"
    clips.mkdir()
    soundfile.write(clips / "a.wav", sound, RATE, subtype="FLOAT")
    (clips / "beside.py").write_text(
        f"from tests.codecs.cheats import FromTheCorpus\ndef make(): return FromTheCorpus({str(tmp_path)!r})\n"
    )
    file = clips / "a.wav"
    spec = f"{clips}/beside.py:make" if where == "beside" else f"{HERE}:FromTheCorpus?folder={tmp_path}"
    if where == "links":
        (tmp_path / "links").mkdir()
        (tmp_path / "links" / "a.wav").symlink_to(file)
        file = tmp_path / "links" / "a.wav"
    monkeypatch.chdir(tmp_path)
    hidden = covering([str(file)], [spec])
    covered = round_trip(isolated(spec, Confinement(hidden=hidden)), sound, RATE)
    assert np.abs(covered.samples).max() == 0.0


def test_lost_packets_are_not_given_to_the_decoder():
    given = []

    class Peeking(cheats.Cheat):
        def decode_with_losses(self, coded, lost):
            given.append(coded.packets)
            return np.zeros(coded.samples, np.float32)

    coded = cheats.Coded(RATE, (b"a", b"b", b"c"))
    decode_lossy(Peeking(), coded, np.array([False, True, False]), RATE, RATE)
    assert given == [(b"a", b"\x00", b"c")]


@needs_bubblewrap
def test_a_codec_is_opened_once_and_may_count_with_numpy(tmp_path):
    (tmp_path / "counting.py").write_text(
        "import numpy as np\n"
        "from earmark.codecs.contract import CodecCard, Coded\n"
        "made = []\n"
        "class Counting:\n"
        "    card = CodecCard(name='counting', family='counting', rate=np.int64(16000), delay=0)\n"
        "    def __init__(self): made.append(1)\n"
        "    def encode(self, waveform): return Coded(len(waveform), (bytes([len(made)]),))\n"
        "    def decode(self, coded): return np.zeros(coded.samples, np.float32)\n"
    )
    codec = isolated(f"{tmp_path}/counting.py:Counting", Confinement())
    assert codec.card.rate == RATE
    assert [encode(codec, _sound(), RATE).coded.packets for _ in range(3)] == [(b"\x01",)] * 3
