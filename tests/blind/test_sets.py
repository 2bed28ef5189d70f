"""The host's file: its sets, its limits and its secret."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.blind.examples import write_recordings

from earmark.blind.sets import BlindSet, read_sets
from earmark.errors import EarmarkError, InputError, UsageError

POLICY = """
policy:
  least_clips: 20
  least_classes: 2
  clips_per_step: 1
  sets:
    A: {clips: 24, classes: 4, steps: {P@1: "0.1"}}
"""


def written(folder: Path, text: str) -> Path:
    file = folder / "sets.yaml"
    file.write_text(text)
    return file


def test_a_host_is_read_from_its_file(tmp_path: Path) -> None:
    write_recordings(tmp_path / "words")
    text = (
        "board: demo\nsets:\n  A: {corpus: words, title: Words}\nlimits: {memory: 2GB, threads: 2}\njob_seconds: 60\n"
    )
    host = read_sets(written(tmp_path, text + POLICY))
    assert host.board == "demo"
    assert host.limits.memory == 2_000_000_000
    assert (host.limits.threads, host.job_seconds, host.seconds_per_clip) == (2, 60.0, None)
    assert host.policy.sets["A"].clips == 24
    blind = host.sets["A"]
    assert blind.public_facts() == {"subset": "A", "title": "Words", "clips": 24, "classes": 4}
    assert blind.labels[0] == "word0"
    assert str(host.secret) not in repr(host)


def test_a_secret_is_made_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    write_recordings(tmp_path / "words")
    file = written(tmp_path, "board: demo\nsets: {A: {corpus: words}}\n")
    first = read_sets(file, prepared=False).secret
    assert len(first) == 32
    assert read_sets(file, prepared=False).secret == first
    secret = tmp_path / "sets.secret"
    assert secret.stat().st_mode & 0o777 == 0o600
    secret.chmod(0o644)
    with pytest.raises(UsageError, match="chmod 600"):
        read_sets(file, prepared=False)
    secret.chmod(0o600)
    secret.write_bytes(b"short")
    with pytest.raises(InputError, match="too short"):
        read_sets(file, prepared=False)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "key: value"),
        ("board: [", "cannot be read"),
        ("sets: {A: {corpus: words}}", "which board"),
        ("board: demo", "sets names"),
        ("board: demo\nsets: {}", "sets names"),
        ("board: demo\nsets: {A: {}}", "no corpus"),
        ("board: demo\nsets: {A: words}", "key: value"),
        ("board: demo\nsets: {A: {corpus: 3}}", "quotation marks"),
        ("board: demo\nsets: {A: {corpus: words, titel: a}}", 'Did you mean "title"'),
        ("board: demo\nset: {}", 'Did you mean "sets"'),
        ("board: demo\nsets: {A: {corpus: words}}\nlimits: {memmory: 1}", 'Did you mean "memory"'),
        ("board: demo\nsets: {A: {corpus: words}}\nlimits: {memory: a lot}", "not understood"),
        ("board: demo\nsets: {A: {corpus: words}}\njob_seconds: -1", "positive"),
        ("board: demo\nsets: {A: {corpus: words}}\nseconds_per_clip: yes", "positive"),
        ("board: demo\nsets: {A: {corpus: words}}\npolicy: {quotta: 1}", "quota"),
    ],
)
def test_a_file_that_is_wrong_is_told_in_one_sentence(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(EarmarkError, match=words) as raised:
        read_sets(written(tmp_path, text), prepared=False)
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "sets.secret").exists()


def test_a_set_without_terms_is_not_measured(tmp_path: Path) -> None:
    file = written(tmp_path, "board: demo\nsets: {B: {corpus: words}}\n" + POLICY)
    with pytest.raises(UsageError, match="earmark blind prepare"):
        read_sets(file)


def test_clips_that_are_alone_in_their_class_are_heard_and_not_counted(tmp_path: Path) -> None:
    folder = write_recordings(tmp_path / "words", 3, 2)
    for file in list((folder / "word2").iterdir())[1:]:
        file.unlink()
    blind = BlindSet("A", str(folder))
    assert len(blind.clips) == 5
    assert blind.public_facts()["clips"] == 4
    assert blind.public_facts()["classes"] == 2


def test_a_set_that_cannot_be_opened_is_told(tmp_path: Path) -> None:
    folder = write_recordings(tmp_path / "words", 3, 1)
    with pytest.raises(InputError, match="no two clips of one label"):
        BlindSet("A", str(folder)).public_facts()
    with pytest.raises(InputError, match="no subset"):
        BlindSet("A", str(folder), subset="x").public_facts()
    with pytest.raises(EarmarkError):
        BlindSet("A", str(tmp_path / "nothing")).public_facts()
