"""Recordings from packages of Debian: real packages of the same layout, a real apt with a mirror in a folder."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest
from tests.corpora.debian import apt_mirror, make_deb, prompts, text_list, tone, update

from earmark import open_corpus
from earmark.audio import read
from earmark.cli import main
from earmark.corpora.clips import Clip, transcript_of
from earmark.corpora.describe import describe
from earmark.corpora.export import export
from earmark.corpora.manifest import read_manifest
from earmark.corpora.recordings import packages
from earmark.corpora.recordings.asterisk import VOICES, packages_of, read_texts
from earmark.corpora.recordings.catalogue import FAMILIES, parts_of
from earmark.corpora.source import CORPORA
from earmark.errors import InputError, UsageError

pytestmark = pytest.mark.skipif(
    not (shutil.which("dpkg-deb") and shutil.which("apt-get")), reason="there is no apt on this machine"
)
TEXTS = {
    "digits/1": "one",
    "digits/2": "two",
    "vm-goodbye": "Goodbye.",
    "beep": "[a tone]",
    "letters/dollar": "dollar [$]",
    "spy-iax2": 'IAX (note: does not say "2")',
    "silence/1": "(1 second of silence)",
}
FOLDER = "en_US_f_Allison"


@pytest.fixture(scope="session")
def debs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with packages of two voices."""
    folder = tmp_path_factory.mktemp("debs")
    make_deb(folder, "asterisk-core-sounds-en-wav", prompts("en", FOLDER, TEXTS))
    make_deb(folder, "asterisk-core-sounds-en", text_list("en", TEXTS))
    menardi = prompts("it", "it_IT_f_Menardi", {"digits/1": "", "digits/2": "", "vm-goodbye": ""}, first=50)
    make_deb(folder, "asterisk-prompt-it-menardi-wav", menardi, licence="CC-SA-BY-3.0")
    return folder


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for recordings, on a machine where nothing is installed."""
    monkeypatch.setenv(packages.VARIABLE, str(tmp_path / "recordings"))
    monkeypatch.setattr(packages, "SYSTEM", tmp_path / "system")
    return tmp_path / "recordings"


@pytest.fixture
def mirror(debs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A mirror with these packages, which is all that apt knows."""
    config = apt_mirror(tmp_path / "apt", sorted(debs.glob("*.deb")))
    monkeypatch.setenv("APT_CONFIG", str(config))
    return tmp_path / "apt" / "mirror"


def fetched(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["corpus", "fetch", *words]) == 0
    return capsys.readouterr().out


# --- fetching -----------------------------------------------------------------------------------------------


def test_apt_fetches_what_a_corpus_needs_and_nothing_twice(
    mirror: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = fetched(capsys, "asterisk:en").splitlines()
    assert [line.partition(":")[0] for line in lines] == [
        "asterisk-core-sounds-en-wav 1.0-1", "asterisk-core-sounds-en 1.0-1"
    ]  # fmt: skip
    assert "CC-BY-SA-3.0, GPL-2+" in lines[0]
    assert str(folder) in lines[0]
    shutil.rmtree(mirror)  # so that a second download would fail
    assert fetched(capsys, "asterisk:en").count("it was here already") == 2
    assert not list((folder / ".downloads").iterdir())
    facts = json.loads((folder / "asterisk-core-sounds-en-wav" / packages.FACTS).read_text())
    assert facts["version"] == "1.0-1"
    assert len(facts["sha256"]) == 64


def test_a_download_that_was_cut_off_continues_and_a_wrong_one_is_refused(mirror: Path, folder: Path) -> None:
    package = packages_of("en")[0]
    deb = next(mirror.glob("asterisk-core-sounds-en-wav_*.deb"))
    half = folder / ".downloads" / deb.name
    half.parent.mkdir(parents=True)
    half.write_bytes(deb.read_bytes()[:500])
    assert packages.fetch(package).version == "1.0-1"
    # The mirror has another file than its lists say.
    other = packages_of("it-menardi")[0]
    damaged = next(mirror.glob("asterisk-prompt-it-menardi-wav_*.deb"))
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"?")
    with pytest.raises(InputError, match=r"asterisk-prompt-it-menardi-wav"):
        packages.fetch(other)
    assert packages.locate(other) is None


def test_a_file_that_was_swapped_on_the_way_is_no_package(mirror: Path, folder: Path) -> None:
    """The file in the downloads folder has the right length and other bytes: it is fetched again, not trusted."""
    package = packages_of("en")[0]
    deb = next(mirror.glob("asterisk-core-sounds-en-wav_*.deb"))
    wrong = folder / ".downloads" / deb.name
    wrong.parent.mkdir(parents=True)
    wrong.write_bytes(bytes(deb.stat().st_size))
    assert packages.fetch(package).content.read_bytes()[:4] == b"RIFF"


def test_what_apt_cannot_do_is_one_sentence(mirror: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        InputError, match=r"^apt does not know the package asterisk-prompt-es-co .*apt-get update.*--from"
    ):
        packages.fetch(packages_of("es-co")[0])
    for name in mirror.iterdir():
        name.unlink()
    with pytest.raises(InputError, match=r"^apt-get could not download asterisk-core-sounds-en-wav .*fetch again"):
        packages.fetch(packages_of("en")[0])
    only_dpkg = tmp_path / "bin"
    only_dpkg.mkdir()
    (only_dpkg / "dpkg-deb").symlink_to(shutil.which("dpkg-deb") or "")
    monkeypatch.setenv("PATH", str(only_dpkg))
    with pytest.raises(InputError, match=r"there is no apt-get here: get the .deb file from https://.*--from FILE"):
        packages.fetch(packages_of("en")[0])
    monkeypatch.setenv("PATH", "")
    with pytest.raises(InputError, match=r"there is no dpkg-deb here"):
        packages.fetch(packages_of("en")[0])


def test_packages_that_somebody_has_are_taken(debs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = fetched(capsys, "asterisk:en,it-menardi", "--from", str(debs), "--json")
    assert [fact["package"] for fact in json.loads(out)] == [p.name for p in packages_of("en,it-menardi")]
    with pytest.raises(InputError, match=r"holds no asterisk-prompt-es-co: give its .deb file"):
        packages.fetch(packages_of("es-co")[0], source=debs)
    # A package of the right name that holds something else, and a file that is none.
    strange = make_deb(tmp_path, "asterisk-prompt-es-co", {"usr/share/other": b""})
    with pytest.raises(InputError, match=r"holds no usr/share/asterisk/sounds/es/vm-goodbye.gsm.*nothing was kept"):
        packages.fetch(packages_of("es-co")[0], source=strange)
    (tmp_path / "asterisk-prompt-fr-armelle_1_all.deb").write_bytes(b"no package")
    with pytest.raises(InputError, match=r"holds no asterisk-prompt-fr-armelle"):
        packages.fetch(packages_of("fr-armelle")[0], source=tmp_path)


def test_a_folder_that_cannot_be_written_is_one_sentence(
    debs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(packages.VARIABLE, str(tmp_path / "file" / "recordings"))
    with pytest.raises(InputError, match=r"cannot be made .*EARMARK_RECORDINGS"):
        packages.fetch(packages_of("en")[0], source=debs)


def test_no_administrator_is_needed(mirror: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = packages_of("en")[0]
    with tempfile.TemporaryDirectory() as home:  # pytest's own folders are closed to others
        shutil.copytree(tmp_path / "apt", f"{home}/apt")
        for file in ("sources.list", "apt.conf"):
            place = Path(home, "apt", file)
            place.write_text(place.read_text().replace(str(tmp_path / "apt"), f"{home}/apt"))
        update(Path(home, "apt", "apt.conf"))
        monkeypatch.setenv("APT_CONFIG", f"{home}/apt/apt.conf")
        monkeypatch.setenv(packages.VARIABLE, f"{home}/recordings")
        nobody = 65534
        if os.getuid() == 0:
            subprocess.run(["chown", "-R", str(nobody), home], check=True)
        child = os.fork()  # the interpreter itself may lie where nobody else may read
        if child == 0:
            code = 1
            try:
                if os.getuid() == 0:
                    os.setgroups([])
                    os.setgid(nobody)
                    os.setuid(nobody)
                os.chdir("/")
                code = 0 if packages.fetch(package).version == "1.0-1" else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        copy = packages.locate(package)
        assert copy is not None
        assert copy.root.stat().st_uid == (nobody if os.getuid() == 0 else os.getuid())


# --- opening ------------------------------------------------------------------------------------------------


def test_prompts_have_label_voice_and_text(debs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError, match=r"^The recordings of asterisk:en are not here: run `earmark corpus fetch ast"):
        open_corpus("asterisk:en")
    fetched(capsys, "asterisk:en", "--from", str(debs))
    corpus = open_corpus("asterisk:en")
    assert {clip.label: clip.text for clip in corpus} == {
        "digits/1": "one", "digits/2": "two", "vm-goodbye": "Goodbye.", "letters/dollar": "dollar", "spy-iax2": None
    }  # fmt: skip
    assert {clip.group for clip in corpus} == {"Allison"}
    card = corpus.card
    assert (card.licence, card.language, card.rate) == ("CC-BY-SA-3.0", "en-US", "8 kHz")
    assert "8 kHz" in card.history
    assert card.revision == "asterisk-core-sounds-en-wav 1.0-1"
    notes = " ".join(corpus.notes)
    assert "2 prompts of silence, tones or screams left out" in notes
    assert "has 5 prompts and the version of Debian 12 551: scores cannot be compared" in notes


def test_two_voices_are_one_corpus_and_folders_can_be_chosen(debs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fetched(capsys, "asterisk:en,it-menardi", "--from", str(debs))
    corpus = open_corpus("asterisk:en,it-menardi?only=digits")
    assert [(clip.id, clip.group) for clip in corpus] == [
        ("en/digits/1", "Allison"), ("en/digits/2", "Allison"),
        ("it-menardi/digits/1", "Menardi"), ("it-menardi/digits/2", "Menardi"),
    ]  # fmt: skip
    assert corpus.card.licence == "CC-BY-SA-3.0; CC-SA-BY-3.0 (Attribution Share Alike 3.0 Italian)"
    with pytest.raises(UsageError, match=r"no prompt lies in digit; there are ., digits, letters"):
        open_corpus("asterisk:en?only=digit")
    assert [clip.label for clip in open_corpus("asterisk:en?only=.")] == ["spy-iax2", "vm-goodbye"]
    by_word = open_corpus("asterisk:en,it-menardi?only=digits&label=word")
    assert [clip.label for clip in by_word] == ["en/digits/1", "en/digits/2", "it/digits/1", "it/digits/2"]
    with pytest.raises(UsageError, match=r"labels by prompt or word, not by 'text'"):
        open_corpus("asterisk:en?label=text")
    with pytest.raises(UsageError, match=r"no option 'take=3'"):
        open_corpus("asterisk:en?take=3")
    with pytest.raises(UsageError, match=r"no voice 'en@8k'"):
        open_corpus("asterisk:en@8k")


def test_an_installed_package_comes_first_even_without_its_documents(
    debs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fetched(capsys, "asterisk:en", "--from", str(debs))
    deb = next(debs.glob("asterisk-core-sounds-en-wav_*.deb"))
    subprocess.run(["dpkg-deb", "-x", deb, tmp_path / "system"], check=True)
    shutil.rmtree(tmp_path / "system/usr/share/doc")  # as images of containers do
    corpus = open_corpus("asterisk:en")
    assert all(str(clip.path).startswith(str(tmp_path / "system")) for clip in corpus)
    assert {clip.text for clip in corpus if clip.label == "digits/1"} == {"one"}  # from the fetched list


def test_another_licence_is_told(tmp_path: Path) -> None:
    make_deb(tmp_path, "asterisk-core-sounds-en-wav", prompts("en", FOLDER, {"vm-goodbye": ""}), licence="CC-BY-NC-4.0")
    packages.fetch(packages_of("en")[0], source=tmp_path)
    corpus = open_corpus("asterisk:en")
    assert any("states CC-BY-NC-4.0, GPL-2+, where CC-BY-SA-3.0 was known: read it" in note for note in corpus.notes)
    assert any("without texts" in note for note in corpus.notes)


def test_odd_files_are_read_or_have_a_reason(tmp_path: Path) -> None:
    """GSM has no header and is known by its name; an empty file, a very short one, and two that are one sound."""
    sounds = "usr/share/asterisk/sounds/es"
    frames = bytes([0xD0]) + bytes(32)
    files = {
        f"{sounds}/vm-goodbye.gsm": frames * 25,
        f"{sounds}/copy.gsm": frames * 25,
        f"{sounds}/empty.gsm": b"",
        f"{sounds}/digits/1.gsm": frames * 3,
    }
    make_deb(tmp_path, "asterisk-prompt-es-co", files, licence="GPL-2")
    packages.fetch(packages_of("es-co")[0], source=tmp_path)
    corpus = open_corpus("asterisk:es-co")
    by_label = {clip.label: clip for clip in corpus}
    assert len(by_label["vm-goodbye"].read()[0]) == 25 * 160
    assert by_label["vm-goodbye"].read()[1] == 8000
    found = describe(corpus, dri=False)
    assert [name for name, _ in found.unreadable] == ["es-co/empty"]
    assert found.rows[0].copies == 2
    assert found.rows[0].under_several_labels == 1


def test_g722_is_decoded_to_its_end_and_by_spans(tmp_path: Path) -> None:
    import av

    file = tmp_path / "prompt.g722"
    given = tone(3, 16000, 1.0).astype(np.float32)
    with av.open(str(file), "w", format="g722") as container:
        stream = container.add_stream("g722", rate=16000, layout="mono")
        frame = av.AudioFrame.from_ndarray((given * 32767).astype(np.int16)[None], format="s16", layout="mono")
        frame.sample_rate = 16000
        for packet in [*stream.encode(frame), *stream.encode(None)]:
            container.mux(packet)
    samples, rate = read(file)
    assert (len(samples), rate) == (16000, 16000)
    lag = 22  # samples, of the filters of the coder and the decoder
    assert np.corrcoef(samples[lag:], given[:-lag])[0, 1] > 0.99
    np.testing.assert_array_equal(read(file, start=0.5, end=0.75)[0], samples[8000:12000])


def test_texts_are_those_that_a_list_says_plainly() -> None:
    listed = (
        "; a remark\n\nvm-a: A  line: with a colon.\nbeep: [a tone]\nletters/at: at [@]\nletters/space: space [ ]\n"
        "x: maybe [this]\ny: (so)\nz:\ntwice: one\ntwice: two\nno colon here\n<tag>: <beep>\n"
    )
    assert read_texts(listed) == {"vm-a": "A line: with a colon.", "letters/at": "at", "letters/space": "space"}


# --- the list, and what a text is good for ------------------------------------------------------------------


def test_the_list_names_every_part_once_and_where_it_is(debs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fetched(capsys, "asterisk:en", "--from", str(debs))
    assert main(["corpus", "list", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    names = [row["name"] for row in rows]
    assert len(set(names)) == len(names)
    for family in FAMILIES:
        assert family in CORPORA
        assert {part.name for part in parts_of(family)} <= set(names)
    where = {row["name"]: row.get("where") for row in rows}
    assert where["asterisk:en"] == "here"
    assert where["asterisk:es-co"] == "fetch, 1 MB"
    assert all(part.licence and part.history and part.rate and part.packages for f in FAMILIES for part in parts_of(f))


def test_a_text_comes_before_a_label_and_survives_an_export(debs: Path, tmp_path: Path) -> None:
    assert transcript_of(Clip("a", label="two words", text="three whole words")) == "three whole words"
    assert transcript_of(Clip("a", label="two words")) == "two words"
    assert transcript_of(Clip("a", label="digits/1")) is None
    for package in packages_of("en"):
        packages.fetch(package, source=debs)
    made = export(open_corpus("asterisk:en"), tmp_path / "out")
    again = {clip.label: clip.text for clip in read_manifest(made.manifest)}
    assert again["letters/dollar"] == "dollar"
    assert again["spy-iax2"] is None
    assert read_manifest(made.manifest).card.history == open_corpus("asterisk:en").card.history


def test_the_installed_prompts_are_those_of_the_card(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package of Debian itself, which `scripts/services install` installs."""
    monkeypatch.setattr(packages, "SYSTEM", Path("/"))
    if packages.locate(VOICES["en"].package) is None:
        pytest.skip("asterisk-core-sounds-en-wav is not installed: run scripts/services install")
    corpus = open_corpus("asterisk:en")
    assert len(corpus) == VOICES["en"].clips
    assert not [note for note in corpus.notes if "licence" in note or "was known" in note]
    spoken = {clip.label: clip for clip in corpus}
    samples, rate = spoken["vm-goodbye"].read()
    assert rate == 8000
    assert 0.5 < len(samples) / rate < 2
    assert np.abs(samples).max() > 0.05
    listed = VOICES["en"].text
    if listed is not None and packages.locate(listed) is not None:  # images of containers leave documents out
        assert spoken["vm-goodbye"].text == "Goodbye"
        assert sum(clip.text is not None for clip in corpus) == 549


def test_every_voice_has_a_package_of_its_own() -> None:
    assert len({voice.package.name for voice in VOICES.values()}) == len(VOICES)
