"""The owners' commands, on a real ledger and through the real command line; and how sets are prepared."""

from __future__ import annotations

import csv
import io
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
import soundfile
from tests.blind.ledgers import exact_scores, job_of, policy_of

from earmark.blind.audit_page import as_markdown
from earmark.blind.ledger import Ledger
from earmark.blind.policy import read_policy
from earmark.blind.preparation import prepare
from earmark.blind.sets import read_sets
from earmark.cli import main
from earmark.errors import InputError, UsageError


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A ledger with a release that waits for a signature and one that has left."""
    file = tmp_path / "ledger.sqlite3"
    ledger = Ledger(str(file))
    ledger.decide(**job_of(1, policy=policy_of(sign_off="before"), entry="=bat|<b>"))
    ledger.decide(**job_of(2, entry="owl", exact=exact_scores(0.1), now=datetime.now(UTC) - timedelta(days=1)))
    ledger.acknowledge("job2")
    ledger.close()
    return file


def test_the_page_shows_figures_states_and_hashes_and_no_exact_value(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["blind", "audit", str(place)]) == 0
    page = capsys.readouterr().out
    assert "2 releases: 1 on the board, 1 waiting, 0 withdrawn or unsent. 0 refusals." in page
    assert "| HU4 | P@1 | 0.14 | 0.1 to 0.18 | 0.016 | 0.124 | new | job1 |" in page
    assert "waits for a signature" in page
    assert "=bat\\|\\<b\\>" in page
    assert "0.1337" not in page
    assert main(["blind", "audit", str(place), "--exact"]) == 0
    assert "| 0.1337 |" in capsys.readouterr().out


def test_figures_as_csv_hold_no_formula(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["blind", "audit", str(place), "--format", "csv"]) == 0
    lines = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert len(lines) == 12
    assert {line["entry"] for line in lines} == {"'=bat|<b>", "owl"}
    assert (lines[0]["value"], lines[0]["state"]) == ("0.14", "waits for a signature")


def test_owners_sign_object_and_verify(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ledger = ["--ledger", str(place)]
    assert main(["blind", "sign", "2", "--by", "María", "--words", "Agreed.", *ledger]) == 0
    assert main(["blind", "audit", str(place), "--verify"]) == 0
    told = capsys.readouterr()
    assert told.out == "6 entries, unchanged; every release follows from its policy.\n"
    line = told.err.splitlines()[-1].removeprefix("keep this line: ")
    assert main(["blind", "object", "4", "--by", "María", "--words", "No.", *ledger]) == 0
    assert "Taken back: 4;" in capsys.readouterr().err
    assert main(["blind", "audit", str(place), "--verify", "--last", line[:16]]) == 0
    assert main(["blind", "audit", str(place), "--verify", "--last", "99:" + "0" * 64]) == 1
    assert "Entry 99 was there once and is missing: the ledger ends with entry 7." in capsys.readouterr().out
    opened = Ledger(str(place))
    page = as_markdown(opened.entries())
    opened.close()
    for words in ("## 6. Signed (entry 2)", "María: Agreed.", "## 7. Objected (entry 4)", "to be withdrawn"):
        assert words in page


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["audit", "nowhere.sqlite3"], "There is no ledger at nowhere.sqlite3"),
        (["audit", "--last", "1:00000000"], "give --verify as well"),
        (["audit", "--verify", "--last", "x"], "give the number and at least 8 digits"),
        (["audit", "--exact", "--format", "csv"], "leave out --format"),
        (["sign", "1", "--by", " "], "gives a name"),
        (["sign", "77", "--by", "María"], "no entry 77"),
        (["object", "1", "--by", "María", "--words", "No."], "Entry 1 is a policy; an objection is made to a release"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_sentence(
    place: Path, words: list[str], message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place.parent)
    assert main(["blind", *words]) in (1, 2)
    assert message in capsys.readouterr().err


# --- preparing -------------------------------------------------------------------------------------------------------

SETS = """# The host's file.
board: vocsim
sets:
  HU4:
    corpus: recordings   # stays here
policy:
  least_clips: 20
  least_classes: 4
  clips_per_step: 1
  owners: the speakers
# after the policy
job_seconds: 600
"""


@pytest.fixture
def recordings(tmp_path: Path) -> Path:
    random = np.random.default_rng(5)
    for name in range(5):
        folder = tmp_path / "recordings" / f"word{name}"
        folder.mkdir(parents=True)
        for clip in range(6):
            tone = np.sin(2 * np.pi * (300 + 170 * name) * np.arange(3200) / 16000)
            soundfile.write(folder / f"{clip}.wav", 0.3 * tone + 0.3 * random.standard_normal(3200), 16000)
    (tmp_path / "sets.yaml").write_text(SETS)
    return tmp_path / "sets.yaml"


def test_prepare_fixes_steps_once_and_changes_nothing_else_of_the_file(
    recordings: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = recordings.with_name("policy.md")
    assert main(["blind", "prepare", str(recordings), "--words", str(words), "--quiet"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[:3] == ["HU4", "30", "5"]
    text = recordings.read_text()
    assert "# The host's file." in text
    assert "# stays here" in text
    assert text.endswith("# after the policy\njob_seconds: 600\n")
    host = read_sets(recordings)
    assert (host.policy.owners, host.policy.least_clips, host.job_seconds) == ("the speakers", 20, 600)
    assert words.read_text() == host.policy.text()
    assert all(0.01 < float(step) <= 0.5 for step in host.policy.sets["HU4"].steps.values())
    assert stat.S_IMODE(recordings.with_name("sets.secret").stat().st_mode) == 0o600
    again = prepare(recordings)
    assert (again.measured, again.kept) == ((), ("HU4",))
    assert recordings.read_text() == text
    (recordings.parent / "recordings" / "word0" / "0.wav").unlink()
    with pytest.raises(UsageError, match="has 29 clips of 5 classes and had 30 of 5 when its steps were fixed"):
        prepare(recordings)
    assert prepare(recordings, anew=True).policy.sets["HU4"].clips == 29


def test_prepare_refuses_small_sets_and_clips_that_cannot_be_heard_and_writes_nothing(recordings: Path) -> None:
    recordings.write_text(SETS.replace("least_clips: 20", "least_clips: 31"))
    before = recordings.read_text()
    with pytest.raises(InputError, match='"HU4" has 30 clips and the policy asks for 31'):
        prepare(recordings)
    assert recordings.read_text() == before
    recordings.write_text(SETS)
    (recordings.parent / "recordings" / "word0" / "0.wav").write_bytes(b"no sound")
    with pytest.raises(InputError, match="1 clip cannot be heard"):
        prepare(recordings)
    assert recordings.read_text() == SETS


@pytest.mark.parametrize(
    "policy",
    ["policy: {least_clips: 20, least_classes: 4, clips_per_step: 1}", "", "policy:\n  least_clips: 20\n\n\n"],
)
def test_a_policy_takes_the_place_of_the_one_before(policy: str, tmp_path: Path) -> None:
    from earmark.blind.preparation import _write

    file = tmp_path / "sets.yaml"
    file.write_text(f"board: vocsim\n{policy}\nsets: {{A: {{corpus: a}}}}")
    wanted = policy_of()
    _write(file, wanted)
    assert read_policy(file.read_text().split("policy:", 1)[1].split("\nsets:")[0].replace("\n  ", "\n")) == wanted
    _write(file, wanted)
    assert file.read_text().count("policy:") == 1


def test_a_policy_that_cannot_be_replaced_leaves_the_file_alone(tmp_path: Path) -> None:
    from earmark.blind.preparation import _write

    file = tmp_path / "sets.yaml"
    file.write_text("{board: vocsim, policy: {quota: 1}, sets: {A: {corpus: a}}}\n")
    with pytest.raises(UsageError, match="give the key `policy:` a line of its own"):
        _write(file, policy_of())
    assert file.read_text().startswith("{board")
