"""Recorded words, drums, instruments and examples: packages of their layout, built here."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from tests.corpora.debian import make_deb, tone, wav_bytes

from earmark import open_corpus
from earmark.cli import main
from earmark.corpora.describe import describe
from earmark.corpora.recordings import packages
from earmark.corpora.recordings.catalogue import FAMILIES, packages_of, parts_of
from earmark.corpora.recordings.drums import kind_of
from earmark.corpora.recordings.examples import read_transcription
from earmark.corpora.recordings.soundfonts import RATE, read_soundfont
from earmark.errors import InputError, UsageError

TUXPAINT = "usr/share/tuxpaint/stamps"
KITS = "usr/share/hydrogen/data/drumkits"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(packages.VARIABLE, str(tmp_path / "recordings"))
    monkeypatch.setattr(packages, "SYSTEM", tmp_path / "system")
    return tmp_path


def install(folder: Path, spec: str, files: dict[str, bytes], licence: str) -> None:
    """Build the package of a corpus, and fetch it."""
    (package,) = packages_of(spec)
    make_deb(folder, package.name, files, licence=licence)
    packages.fetch(package, source=folder)


def ogg(number: int) -> bytes:
    return wav_bytes(tone(number, 44100), 44100, "OGG")


def test_pictures_have_their_text_in_the_language_that_is_spoken(folder: Path) -> None:
    bear, star = f"{TUXPAINT}/animals/bear", f"{TUXPAINT}/symbols/star"
    files = {
        f"{bear}.txt": b"A bear.\nfr.utf8=Un ours.\nfrp.utf8=other\nes.utf8=\n",
        f"{bear}.ogg": ogg(0),  # what a bear sounds like, not its name
        f"{bear}_desc.ogg": ogg(1),
        f"{bear}_desc_fr.ogg": ogg(2),
        f"{bear}_desc_es.ogg": ogg(3),
        f"{star}_desc_fr.ogg": ogg(2),  # the same sound again, and no text
        f"{bear}_desc_da.ogg": b"",
    }
    install(folder, "tuxpaint", files, "GPL-2")
    corpus = open_corpus("tuxpaint:en,fr,es")
    assert {clip.id: clip.text for clip in corpus} == {
        "en/animals/bear": "A bear.", "fr/animals/bear": "Un ours.", "fr/symbols/star": None, "es/animals/bear": None
    }  # fmt: skip
    assert {clip.group for clip in corpus} == {"en", "fr", "es"}
    assert {clip.label for clip in corpus} == {"animals/bear", "symbols/star"}
    assert "Vorbis" in corpus.card.history
    assert "fr: tuxpaint-stamps-default 1.0-1 has 2 clips" in " ".join(corpus.notes)
    found = describe(corpus, dri=False)
    assert (found.rows[0].copies, found.rows[0].under_several_labels) == (2, 1)
    assert [name for name, _ in describe(open_corpus("tuxpaint:da"), dri=False).unreadable] == ["da/animals/bear"]
    with pytest.raises(InputError, match=r"holds no clips of ru"):
        open_corpus("tuxpaint:ru")
    with pytest.raises(UsageError, match=r"tuxpaint has no language 'frr'. Did you mean \"fr\""):
        open_corpus("tuxpaint:frr")


def test_letters_of_two_accents_share_their_labels(folder: Path) -> None:
    root = "usr/share/klettres"

    def listing(language: str) -> bytes:
        sounds = "".join(f'<sound name="{name}" file="{language}/alpha/{name}.ogg" />' for name in ("A", "B", "C"))
        return f"<!-- a remark -->\n<klettres><language code='{language}'>{sounds}</language></klettres>".encode()

    files = {f"{root}/{language}/sounds.xml": listing(language) for language in ("en", "en_GB", "de")}
    files |= {
        f"{root}/{language}/alpha/{name}.ogg": ogg(number)
        for number, (language, name) in enumerate((a, b) for a in ("en", "en_GB", "de") for b in ("A", "B"))
    }
    files[f"{root}/it/sounds.xml"] = b"<klettres><broken"
    install(folder, "klettres", files, "GPL-2+")
    corpus = open_corpus("klettres:en,en_GB,de")  # C is listed, and not there
    assert [clip.label for clip in corpus] == ["en/A", "en/B", "en/A", "en/B", "de/A", "de/B"]
    assert [clip.group for clip in corpus] == ["en", "en", "en_GB", "en_GB", "de", "de"]
    with pytest.raises(InputError, match=r"is not a readable list of sounds"):
        open_corpus("klettres:it")


def test_syllables_are_spoken_by_two_and_parts_of_a_puzzle_by_many(folder: Path) -> None:
    root = "usr/share/gcin-voice/ogg"
    files = {
        f"{root}/{name}/{voice}.ogg": ogg(k) for k, (name, voice) in enumerate([("ㄅㄚ1", 3), ("ㄅㄚ1", 5), ("ㄇ", 9)])
    }
    install(folder, "gcin", files, "GPL-3 or LGPL-3")
    corpus = open_corpus("gcin")
    assert [(clip.label, clip.group) for clip in corpus] == [("ㄅㄚ1", "Edward Der-Hua Liu"), ("ㄅㄚ1", "Chu Lo")]
    root = "usr/share/ktuberling/sounds"
    theme = '<language code="{0}"><sound name="hat" file="{0}/x.ogg"/><sound name="hat" file="{0}/x.ogg"/></language>'
    files = {f"{root}/{code}.soundtheme": theme.format(code).encode() for code in ("en", "fr")}
    files |= {f"{root}/{code}/x.ogg": ogg(k) for k, code in enumerate(("en", "fr"))}
    install(folder, "ktuberling", files, "GPL-2+")
    assert [(clip.id, clip.label) for clip in open_corpus("ktuberling:fr,en")] == [("fr/hat", "hat"), ("en/hat", "hat")]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Kick", "kick"), ("c3 - bass drum 1", "kick"), ("BassDrum", "kick"), ("Snare Rimshot", "rim"),
        ("Stick", "rim"), ("Snare1", "snare"), ("Sabian Hat Closed", "hat_closed"), ("Closed HH", "hat_closed"),
        ("VariBreaks Hat 1 Cl", "hat_closed"), ('Hi-Hat Semiopen (Paiste 14")', "hat_semi_open"),
        ("Pedal HH", "hat_pedal"), ("Hi Hat Opened", "hat_open"), ('Tom Low (Tama Superstar 16")', "tom"),
        ("tomhi2", "tom"), ("crash16inch", "crash"), ("Crash/Ride (Paiste)", None), ("Hat Low", None), ("17", None),
        ("Sample: beats_01-10.flac", None), ("", None), ("Drumstick Box", None), ("Cowbell", "cowbell"),
        ("Ride Bell", "ride"), ("Customs", None),
    ],
)  # fmt: skip
def test_the_kind_of_a_stroke_is_read_off_its_name(name: str, kind: str | None) -> None:
    assert kind_of(name) == kind


def test_strokes_have_kind_and_kit(folder: Path) -> None:
    def kit(names: list[str]) -> bytes:
        rows = "".join(
            f"<instrument><name>{name}</name><layer><filename>{number}.wav</filename></layer></instrument>"
            for number, name in enumerate(names)
        )
        return f'<drumkit_info xmlns="http://www.hydrogen-music.org/drumkit">{rows}</drumkit_info>'.encode()

    files = {f"{KITS}/GMRockKit/drumkit.xml": kit(["Kick", "Snare", "Zap"]), f"{KITS}/Other/drumkit.xml": kit(["Kick"])}
    files |= {f"{KITS}/GMRockKit/{number}.wav": wav_bytes(tone(number, 44100), 44100) for number in range(3)}
    install(folder, "drums:rock", files, "GPL-2+")
    corpus = open_corpus("drums:rock")
    assert [(clip.label, clip.group) for clip in corpus] == [("kick", "GMRockKit"), ("snare", "GMRockKit")]
    assert "1 stroke left out whose names say no kind, or two (Zap" in " ".join(corpus.notes)


def test_examples_are_read_with_or_without_a_header(folder: Path) -> None:
    data = "usr/share/pocketsphinx/test/data"
    spoken = (32767 * tone(1, 16000)).astype("<i2")
    lines = b"<s> he was <sil> not ill </s> (a/one)\nno name\n++NOISE++ (two)\n"
    files = {
        f"{data}/goforward.raw": spoken.tobytes() + b"?",
        f"{data}/numbers.raw": b"",
        f"{data}/librivox/one.wav": wav_bytes(tone(2, 16000), 16000),
        f"{data}/librivox/transcription": lines,
    }
    install(folder, "speech_examples:sphinx", files, "BSD-2")
    corpus = open_corpus("speech_examples:sphinx")
    clips = {clip.label: clip for clip in corpus}
    assert {name: clip.text for name, clip in clips.items()} == {
        "goforward": "go forward ten meters", "numbers": None, "one": "he was not ill"
    }  # fmt: skip
    samples, rate = clips["goforward"].read()
    assert rate == 16000
    np.testing.assert_array_equal(samples, spoken / np.float32(32768))
    assert [name for name, _ in describe(corpus).unreadable] == ["sphinx/numbers"]
    assert read_transcription(folder / "nowhere") == {}


# --- soundfonts ---------------------------------------------------------------------------------------------


def soundfont(
    *, root: int = 60, program: int = 0, loop: bool = True, generators: dict[int, int] | None = None
) -> bytes:
    """A SoundFont 2 file with one preset: a sine of 440 Hz, recorded at 22050 Hz as if it were the key `root`."""
    period = 22050 * 2 // 440  # of two cycles, nearly
    sound = (20000 * np.sin(2 * np.pi * 2 * np.arange(2 * period) / period)).astype("<i2")

    def chunk(name: bytes, data: bytes) -> bytes:
        return name + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)

    def table(kind: str, *rows: tuple[object, ...]) -> bytes:
        return b"".join(struct.pack(kind, *row) for row in rows)

    zone = {43: 0 | 127 << 8, 54: int(loop), **(generators or {}), 53: 0}
    count = len(zone)
    pdta = b"".join([
        chunk(b"phdr", table("<20sHHHIII", (b"preset", program, 0, 0, 0, 0, 0), (b"EOP", 0, 0, 1, 0, 0, 0))),
        chunk(b"pbag", table("<HH", (0, 0), (1, 0))),
        chunk(b"pmod", bytes(10)),
        chunk(b"pgen", table("<Hh", (41, 0), (0, 0))),
        chunk(b"inst", table("<20sH", (b"inst", 0), (b"EOI", 1))),
        chunk(b"ibag", table("<HH", (0, 0), (count, 0))),
        chunk(b"imod", bytes(10)),
        chunk(b"igen", table("<Hh", *zone.items(), (0, 0))),
        chunk(b"shdr", table("<20sIIIIIBbHH", (b"sine", 0, 2 * period, 0, 2 * period, 22050, root, 0, 0, 1),
                             (b"EOS", 0, 0, 0, 0, 0, 0, 0, 0, 0))),
    ])  # fmt: skip
    body = b"sfbk" + chunk(b"LIST", b"INFO" + chunk(b"ifil", bytes(4)))
    body += chunk(b"LIST", b"sdta" + chunk(b"smpl", sound.tobytes())) + chunk(b"LIST", b"pdta" + pdta)
    return chunk(b"RIFF", body)


def written(folder: Path, name: str = "a.sf2", **options: object) -> str:
    file = folder / name
    file.write_bytes(soundfont(**options))  # type: ignore[arg-type]
    return str(file)


def pitch(note: np.ndarray) -> float:
    spectrum = np.abs(np.fft.rfft(note * np.hanning(len(note)), 8 * len(note)))
    return float(spectrum.argmax() * RATE / (8 * len(note)))


@pytest.mark.parametrize("key", [36, 57, 60, 61, 72, 96])
def test_a_note_has_the_pitch_of_its_key(folder: Path, key: int) -> None:
    recorded = 22050 / (22050 * 2 // 440) * 2
    note = read_soundfont(written(folder)).play(0, key, 1.0)
    assert len(note) == RATE
    assert pitch(note) == pytest.approx(recorded * 2 ** ((key - 60) / 12), rel=2e-3)


def test_tuning_envelope_attenuation_and_loop_are_those_of_the_file(folder: Path) -> None:
    plain = read_soundfont(written(folder)).play(0, 60, 1.0)
    tuned = read_soundfont(written(folder, "tuned.sf2", generators={51: 12, 58: 72})).play(0, 60, 1.0)
    assert pitch(tuned) == pytest.approx(pitch(plain), rel=1e-3)  # an octave up, of a recording that is an octave lower
    fixed = read_soundfont(written(folder, "fixed.sf2", generators={56: 0})).play(0, 72, 1.0)
    assert pitch(fixed) == pytest.approx(pitch(plain), rel=1e-3)
    quiet = read_soundfont(written(folder, "quiet.sf2", generators={48: 200})).play(0, 60, 1.0)
    assert np.sqrt(np.mean(plain**2) / np.mean(quiet**2)) == pytest.approx(10, rel=1e-3)
    # 1 s to fall by 100 dB, and 20 dB lower when it stays.
    falling = read_soundfont(written(folder, "falling.sf2", generators={36: 0, 37: 200})).play(0, 60, 1.0)
    ratio = np.abs(falling[int(0.5 * RATE) : int(0.9 * RATE)]).max() / np.abs(plain).max()
    assert ratio == pytest.approx(0.1, rel=0.02)
    once = read_soundfont(written(folder, "once.sf2", loop=False)).play(0, 60, 1.0)
    assert len(once) < 0.02 * RATE
    rising = read_soundfont(written(folder, "rising.sf2", generators={34: 0})).play(0, 60, 1.0)
    assert np.abs(rising[: RATE // 4]).max() < 0.3 * np.abs(plain).max()


def test_what_a_soundfont_does_not_hold_is_one_sentence(folder: Path) -> None:
    font = read_soundfont(written(folder, generators={43: 50 | 60 << 8}))
    with pytest.raises(InputError, match=r"has no sound for program 0, key 61"):
        font.play(0, 61, 1.0)
    with pytest.raises(InputError, match=r"has no sound for program 5"):
        font.play(5, 55, 1.0)
    for name, data in {"none": b"RIFF....WAVE", "cut": soundfont()[:600], "empty": b""}.items():
        (folder / name).write_bytes(data)
        with pytest.raises(InputError, match=r"is no readable SoundFont 2"):
            read_soundfont(str(folder / name))
    with pytest.raises(InputError, match=r"cannot be read"):
        read_soundfont(str(folder / "nowhere.sf2"))


def test_notes_of_two_soundfonts_are_grouped_by_them(folder: Path) -> None:
    for spec, licence in (("instruments:timgm6mb", "GPL-2"), ("instruments:fluidr3", "MIT")):
        (package,) = packages_of(spec)
        install(folder, spec, {package.content: soundfont(program=40 if "tim" in spec else 0)}, licence)
    one = open_corpus("instruments:timgm6mb")
    assert {(clip.label, clip.group) for clip in one} == {("violin", "sine")}
    assert any("has no flute at key 60" in note for note in one.notes)
    both = open_corpus("instruments")
    assert {(clip.label, clip.group) for clip in both} == {("violin", "timgm6mb"), ("acoustic grand piano", "fluidr3")}
    samples, rate = both.clips[0].read()
    assert (len(samples), rate) == (round(1.5 * RATE), RATE)
    assert len({clip.digest() for clip in both}) == len(both)
    assert "rendered from recorded samples" in both.card.history


def test_recordings_run_through_every_command(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = "usr/share/gcin-voice/ogg"
    files = {f"{root}/s{k}/{voice}.ogg": ogg(k) if voice == 3 else ogg(k + 40) for k in range(6) for voice in (3, 5)}
    install(folder, "gcin", files, "GPL-3 or LGPL-3")
    assert main(["corpus", "describe", "gcin", "--no-dri"]) == 0
    run = "run --corpus gcin --extractor mfcc --metrics P@1 --across-groups --permutations 0 --quiet".split()
    places = ["--cache-dir", str(folder / "cache"), "--into"]
    assert main([*run, *places, str(folder / "run")]) == 0
    text = (folder / "run" / "report.html").read_text()
    assert "coded once before in Vorbis" in text
    code = "codec run --codecs pcm --corpus gcin --category speech --metrics si_sdr --limit 3 --jobs 0 --quiet".split()
    assert main([*code, *places, str(folder / "codec-run")]) == 0
    (package,) = packages_of("instruments:timgm6mb")
    install(folder, "instruments:timgm6mb", {package.content: soundfont(program=40)}, "GPL-2")
    assert main(["corpus", "prepare", "instruments:timgm6mb", "--into", str(folder / "ready"), "--quiet"]) == 0
    assert "7 of 7 clips kept" in capsys.readouterr().out


def test_every_part_is_described() -> None:
    for family in FAMILIES:
        for part in parts_of(family):
            assert part.clips >= part.classes >= 1
            assert part.groups >= 1
            assert part.megabytes > 0
            assert part.name.partition(":")[0] == family
