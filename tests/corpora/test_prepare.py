"""Algorithm 1, step by step and as a whole; description and export."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import soundfile

from earmark import audio
from earmark.corpora.clips import Clip, Corpus, CorpusCard
from earmark.corpora.describe import describe, draw, dynamic_range_index, table
from earmark.corpora.export import export
from earmark.corpora.manifest import read_manifest
from earmark.corpora.prepare import (
    RULES,
    Record,
    cap_classes,
    drop_labels,
    drop_longest,
    drop_most_frequent,
    drop_names,
    drop_small_classes,
    find_rule,
    label_per_individual,
    prepare,
    recipe,
    run_recipe,
)
from earmark.corpora.source import open_corpus
from earmark.errors import InputError, UsageError

ESC50 = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "esc50" / "manifest.csv"


def record(identity: str, label: str = "x", seconds: float = 1.0, group: str | None = None) -> Record:
    return Record(Clip(identity, label, "S", group), label, seconds)


def classes(**sizes: int) -> list[Record]:
    return [record(f"{label}/{k}", label) for label, size in sizes.items() for k in range(size)]


def kept_sizes(records: list[Record]) -> dict[str, int]:
    found: dict[str, int] = {}
    for one in records:
        found[one.label] = found.get(one.label, 0) + 1
    return found


# --- the steps ----------------------------------------------------------------------------------------------


def test_drop_longest() -> None:
    records = [record(str(k), seconds=float(k)) for k in range(1, 101)]
    outcome = drop_longest(records)
    assert [one.id for one in outcome.dropped] == ["99", "100"]
    assert outcome.dropped[0].step == "drop_longest"
    assert "98th percentile, 98.020 s" in outcome.dropped[0].reason
    same = [record(str(k)) for k in range(5)]
    assert drop_longest(same).kept == same
    assert drop_longest([]) == ([], [])


def test_drop_small_classes() -> None:
    outcome = drop_small_classes(classes(a=6, b=5, c=7))
    assert kept_sizes(outcome.kept) == {"a": 6, "c": 7}
    assert {one.reason for one in outcome.dropped} == {"class of 5, under 6 clips"}


def test_drop_names_and_labels() -> None:
    records = [record("b1/10.wav"), record("b1/110.wav"), record("b2/16.wav"), record("3", "10.wav")]
    assert [one.clip.id for one in drop_names(records, ("10.wav", "16.wav")).kept] == ["b1/110.wav"]
    assert kept_sizes(drop_labels(classes(SIL=2, sil=1, a=3), ("SIL", "TRASH")).kept) == {"sil": 1, "a": 3}


def test_drop_most_frequent() -> None:
    outcome = drop_most_frequent(classes(a=3, b=5, c=3, d=1), 2)
    assert kept_sizes(outcome.kept) == {"c": 3, "d": 1}
    assert outcome.dropped[0].reason == "class number 2 of the 2 most frequent"


def test_label_per_individual() -> None:
    outcome = label_per_individual([record("1", "A", group="bird1"), record("2", "A", group="bird2")])
    assert [one.label for one in outcome.kept] == ["bird1_A", "bird2_A"]
    with pytest.raises(InputError, match="no group"):
        label_per_individual([record("1", "A")])


def test_cap_classes() -> None:
    small = classes(a=10, b=5)
    assert cap_classes(small).kept == small
    records = classes(**{f"c{k:03d}": 200 - k for k in range(150)})
    outcome = cap_classes(records)
    assert 10_000 <= len(outcome.kept) <= 17_000
    sizes = sorted(kept_sizes(outcome.kept).values())
    # Spread over the ranking: the largest and the smallest class are both there, and gaps are even.
    assert (sizes[0], sizes[-1]) == (51, 200)
    assert max(np.diff(sizes)) <= 2
    assert all("17,000" in one.reason for one in outcome.dropped)
    assert kept_sizes(cap_classes(classes(a=30, b=4, c=3), above=20, low=5, high=10).kept) == {"c": 3}


def test_the_recipe_of_each_source() -> None:
    assert list(recipe(RULES["BS5"])) == [
        "drop_longest",
        "drop_small_classes",
        "drop_labels",
        "label_per_individual",
    ]
    assert list(recipe(RULES["HW1"], cap=True))[-2:] == ["drop_most_frequent", "cap_classes"]
    assert [(name, RULES[name].most_frequent) for name in ("HW1", "HU1", "HW2", "HU2", "HP")] == [
        ("HW1", 50),
        ("HU1", 12),
        ("HW2", 25),
        ("HU2", 35),
        ("HP", 0),
    ]
    assert RULES["HS1"].labels == ("laugh", "other", "cough")
    assert {name for name, rule in RULES.items() if rule.per_individual} == {"BS1", "BS2", "BS3", "BS4", "BS5"}
    assert find_rule("auto", "HW1").most_frequent == 50
    assert find_rule("auto", "mine").name == "default"
    with pytest.raises(UsageError, match='Did you mean "BS1"'):
        find_rule("BSS1", "")


def test_order_is_the_papers() -> None:
    # Six clips over two birds pass the test of size before the labels are split, as the published BS3 shows.
    records = [record(str(k), "A", group=f"bird{k % 2}") for k in range(6)]
    outcome = run_recipe(records, recipe(RULES["BS1"]))
    assert kept_sizes(outcome.kept) == {"bird0_A": 3, "bird1_A": 3}


# --- whole corpora ------------------------------------------------------------------------------------------


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """Two classes of eight, one of two, one very long clip, one that is broken, one without label."""
    rows = ["path,label,subset,group,start,end"]
    folder = tmp_path / "raw"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for label, count in (("a", 8), ("b", 8), ("rare", 2)):
        for k in range(count):
            audio.write(folder / f"{label}{k}.wav", 0.1 * rng.standard_normal(22_050), 22_050)
            rows.append(f"{label}{k}.wav,{label},S,bird{k % 2},0.25,0.75")
    audio.write(folder / "long.wav", 0.1 * rng.standard_normal(44_100), 22_050)
    (folder / "broken.wav").write_text("no sound")
    rows += ["long.wav,a,S,bird0,,", "broken.wav,b,S,bird0,,", "a0.wav,,S,,,"]
    (folder / "manifest.csv").write_text("\n".join(rows) + "\n")
    return folder / "manifest.csv"


def test_prepare_writes_what_is_left_and_why(raw: Path, tmp_path: Path) -> None:
    made = prepare(open_corpus(str(raw)), tmp_path / "out")
    assert len(made.clips) == 16
    with (tmp_path / "out" / "dropped.csv").open(encoding="utf-8") as handle:
        dropped = {row["id"]: row for row in csv.DictReader(handle)}
    assert {name: row["step"] for name, row in dropped.items()} == {
        "broken.wav": "read",
        "a0.wav": "label",
        "long.wav": "drop_longest",
        "rare0.wav#0.25-0.75": "drop_small_classes",
        "rare1.wav#0.25-0.75": "drop_small_classes",
    }
    assert "is not readable audio" in dropped["broken.wav"]["reason"]
    corpus = open_corpus(str(tmp_path / "out"))
    samples, rate = corpus.clips[0].read()
    assert (len(samples), rate) == (8000, 16_000)
    stored = json.loads((tmp_path / "out" / "recipe.json").read_text())
    assert stored["S"]["steps"] == ["read", "label", "drop_longest", "drop_small_classes"]
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "audio").rglob("*.flac")}
    prepare(open_corpus(str(raw)), tmp_path / "out")
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "audio").rglob("*.flac")}


def test_prepare_without_audio(raw: Path, tmp_path: Path) -> None:
    made = prepare(open_corpus(str(raw)), tmp_path / "out", subset_rule="BS1", audio=False)
    assert {clip.label for clip in made.clips} == {"bird0_a", "bird1_a", "bird0_b", "bird1_b"}
    corpus = open_corpus(str(tmp_path / "out"))
    assert len(corpus) == 16
    assert len(corpus.clips[0].read()[0]) == 11_025
    assert not (tmp_path / "out" / "audio").exists()


def test_nothing_left(raw: Path, tmp_path: Path) -> None:
    corpus = Corpus(CorpusCard("few"), open_corpus(str(raw)).clips[:3])
    with pytest.raises(InputError, match="no clip is left"):
        prepare(corpus, tmp_path / "out")


@pytest.mark.skipif(not ESC50.is_file(), reason="ESC-50 is not beside the repository")
def test_es1_needs_no_preparation(tmp_path: Path) -> None:
    made = prepare(read_manifest(ESC50), tmp_path, audio=False)
    assert (len(made.clips), made.dropped) == (2000, [])


# --- export -------------------------------------------------------------------------------------------------


def test_export_is_the_same_corpus(raw: Path, tmp_path: Path) -> None:
    corpus = open_corpus(str(raw))
    made = export(corpus, tmp_path / "out")
    assert (made.written, made.reused, [name for name, _ in made.failed]) == (20, 0, ["broken.wav"])
    again = open_corpus(str(tmp_path / "out"))
    readable = [clip for clip in corpus if clip.id != "broken.wav"]
    assert [(c.id, c.label, c.subset, c.group) for c in again] == [(c.id, c.label, c.subset, c.group) for c in readable]
    for here, there in zip(readable, again, strict=True):
        np.testing.assert_array_equal(here.read()[0], there.read()[0])
        assert there.path is not None
        assert soundfile.info(there.path).subtype == "PCM_16"
    assert (tmp_path / "out" / "failed.csv").read_text().startswith("id,reason\nbroken.wav,")


def test_export_continues(raw: Path, tmp_path: Path) -> None:
    corpus = open_corpus(str(raw))
    first = export(corpus, tmp_path / "out")
    Path(first.clips[3].path or "").unlink()
    (tmp_path / "out" / "manifest.csv").unlink()
    second = export(corpus, tmp_path / "out")
    assert (second.written, second.reused) == (1, 19)
    audio.write(raw.parent / "a1.wav", np.zeros(22_050), 22_050)
    assert export(corpus, tmp_path / "out").written == 1
    assert export(corpus, tmp_path / "out", rate=8000).written == 20


def test_export_does_not_clip(tmp_path: Path) -> None:
    loud = np.float32([0.5, -2.0, 1.0, 0.0] * 100)
    corpus = Corpus(
        CorpusCard("loud"), [Clip("../a:b*", "x/y", samples=loud, rate=16_000), Clip("ü", samples=loud / 4, rate=8000)]
    )
    made = export(corpus, tmp_path / "out")
    assert made.scaled == 1
    found = open_corpus(str(tmp_path / "out"))
    np.testing.assert_allclose(found.clips[0].read()[0], loud / 2, atol=1e-4)
    assert all((tmp_path / "out" / "audio") in Path(clip.path or "").parents for clip in found)
    assert found.clips[1].read()[1] == 8000


def test_export_of_nothing_readable(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="none of its 1 clips can be read"):
        export(Corpus(CorpusCard("x"), [Clip("a", path=str(tmp_path / "none.wav"))]), tmp_path / "out")
    assert not (tmp_path / "out" / "manifest.csv").exists()


# --- description --------------------------------------------------------------------------------------------


def test_description_counts(raw: Path) -> None:
    found = describe(open_corpus(str(raw)))
    (row,) = found.rows
    assert (row.subset, row.clips, row.classes, row.smallest, row.largest) == ("S", 21, 3, 2, 9)
    assert (row.unlabelled, row.unreadable, row.groups) == (1, 1, 2)
    assert row.per_class == pytest.approx(20 / 3)
    assert (row.shortest, row.longest) == (pytest.approx(0.5), pytest.approx(2.0))
    assert found.unreadable[0][0] == "broken.wav"
    assert row.dri is not None
    assert 0 < row.dri < 3
    fast = describe(open_corpus(str(raw)), dri=False).rows[0]
    assert (fast.dri, fast.seconds) == (None, pytest.approx(row.seconds))
    text = table(found.rows)
    assert "6.7 (2-9)" in text
    assert len(text.splitlines()) == 2


def test_dynamic_range_index() -> None:
    rng = np.random.default_rng(0)
    loud, quiet = 0.5 * rng.standard_normal(16_000), 0.005 * rng.standard_normal(16_000)
    assert dynamic_range_index(np.concatenate([loud, quiet])) == pytest.approx(40, abs=1)
    assert dynamic_range_index(np.sin(np.arange(16_000))) < 0.1
    assert dynamic_range_index(np.ones(100)) == 0
    assert dynamic_range_index(np.zeros(16_000)) == 0
    assert dynamic_range_index([]) == 0
    # Digital silence counts as -120 dB.
    assert dynamic_range_index(np.concatenate([np.ones(16_000), np.zeros(16_000)])) == pytest.approx(120, abs=0.1)


@pytest.mark.skipif(not ESC50.is_file(), reason="ESC-50 is not beside the repository")
def test_dri_of_esc50_is_the_printed_one() -> None:
    corpus = read_manifest(ESC50)
    # A fifth of the clips: the whole gives 35.1, the paper prints 35.
    found = describe(Corpus(corpus.card, corpus.clips[::5]))
    assert found.rows[0].dri == pytest.approx(35, abs=2)


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_figure(raw: Path, tmp_path: Path, suffix: str) -> None:
    pytest.importorskip("matplotlib", reason="draws figures")
    found = describe(open_corpus(str(raw)), dri=False)
    draw(found, tmp_path / f"f{suffix}", title="raw")
    assert (tmp_path / f"f{suffix}").stat().st_size > 5000
    with pytest.raises(UsageError, match=r"\.png"):
        draw(found, tmp_path / "f.words")
