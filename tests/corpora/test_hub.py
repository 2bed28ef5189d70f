"""Hugging Face datasets, on disk and out of reach."""

from __future__ import annotations

import io
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from tests.fresh import heavy_imports

from earmark.corpora import _hub as hub
from earmark.corpora.source import open_corpus
from earmark.corpora.vocsim import open_vocsim
from earmark.errors import InputError, MissingExtra, UsageError

datasets: Any = pytest.importorskip("datasets", reason="reads Hugging Face datasets")


def encoded(k: int) -> bytes:
    data = io.BytesIO()
    soundfile.write(data, 0.3 * np.sin(np.arange(1600) * (k + 1) / 50), 16_000, format="FLAC")
    return data.getvalue()


def table(rows: int = 6) -> Any:
    features = datasets.Features(
        {
            "audio": {"bytes": datasets.Value("binary"), "path": datasets.Value("string")},
            "label": datasets.ClassLabel(names=["a", "b"]),
            "subset": datasets.Value("string"),
            "speaker": datasets.Value("string"),
            "length": datasets.Value("int64"),
        }
    )
    columns = {
        "audio": [{"bytes": encoded(k), "path": f"{k}.flac"} for k in range(rows)],
        "label": [k % 2 for k in range(rows)],
        "subset": ["BS1" if k < 4 else "OC1" for k in range(rows)],
        "speaker": [f"s{k}" for k in range(rows)],
        "length": list(range(rows)),
    }
    # By cast, because `datasets` encodes audio only with packages that reading does not need.
    return datasets.Dataset.from_dict(columns, features=features).cast_column("audio", datasets.Audio())


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hub") / "saved"
    table().save_to_disk(path)
    return path


def test_a_saved_dataset(saved: Path) -> None:
    for spec in (str(saved), f"hub:{saved}"):
        corpus = open_corpus(spec)
        assert [clip.label for clip in corpus] == ["a", "b"] * 3
        assert [clip.group for clip in corpus] == [f"s{k}" for k in range(6)]
        assert list(corpus.subsets()) == ["BS1", "OC1"]
        assert corpus.card.name == "saved"
        samples, rate = corpus.clips[3].read()
        np.testing.assert_array_equal(samples, soundfile.read(io.BytesIO(encoded(3)), dtype="float32")[0])
        assert rate == 16_000
        assert len(corpus.clips[3].read(8000)[0]) == 800


def test_clips_are_light_and_reach_other_processes(saved: Path) -> None:
    clip = open_corpus(f"hub:{saved}").clips[2]
    packed = pickle.dumps(clip)
    assert len(packed) < 1500
    np.testing.assert_array_equal(pickle.loads(packed).read()[0], clip.read()[0])


def test_the_digest_is_that_of_the_content(saved: Path, tmp_path: Path) -> None:
    table().select([3, 1]).save_to_disk(tmp_path / "other")
    here, there = open_corpus(f"hub:{saved}"), open_corpus(f"hub:{tmp_path / 'other'}")
    assert here.clips[3].digest() == there.clips[0].digest()
    assert here.clips[3].digest() != there.clips[1].digest()


def test_splits_and_columns(tmp_path: Path) -> None:
    datasets.DatasetDict({"train": table(4), "test": table(2)}).save_to_disk(tmp_path / "both")
    assert len(open_corpus(str(tmp_path / "both"))) == 6
    corpus = open_corpus(f"hub:{tmp_path / 'both'}?split=test&label=length&id=speaker&group=label")
    assert [(clip.id, clip.label, clip.group) for clip in corpus] == [("s0", "0", "a"), ("s1", "1", "b")]
    for option, kind, said in (
        ("split=dev", InputError, "it has train, test"),
        ("label=species", InputError, "no column 'species'"),
        ("labels=length", UsageError, 'Did you mean "label"?'),
        ("id=subset", InputError, "twice"),
    ):
        with pytest.raises(kind, match=said.replace("?", r"\?")):
            open_corpus(f"hub:{tmp_path / 'both'}?{option}")


def test_a_folder_of_parquet_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    (tmp_path / "pq" / "data").mkdir(parents=True)
    table().to_parquet(tmp_path / "pq" / "data" / "train-00000-of-00001.parquet")
    corpus = open_corpus(str(tmp_path / "pq"))
    assert len(corpus) == 6
    assert corpus.clips[1].label == "b"
    assert len(corpus.clips[1].read()[0]) == 1600


def test_a_bad_row_names_itself(tmp_path: Path) -> None:
    features = {
        "audio": [{"bytes": b"no sound" * 20, "path": None}, {"bytes": None, "path": None}],
        "label": ["x", "y"],
    }
    datasets.Dataset.from_dict(features).save_to_disk(tmp_path / "bad")
    clips = open_corpus(f"hub:{tmp_path / 'bad'}").clips
    with pytest.raises(InputError, match="row 0 of all is not readable audio"):
        clips[0].read()
    with pytest.raises(InputError, match="row 1 of all: the column 'audio' holds no audio"):
        clips[1].read()


def test_no_audio_column(tmp_path: Path) -> None:
    datasets.Dataset.from_dict({"sound": ["x"]}).save_to_disk(tmp_path / "none")
    with pytest.raises(InputError, match=r"no column 'audio' \(columns: sound\)"):
        open_corpus(f"hub:{tmp_path / 'none'}")


def test_out_of_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "_resolves", lambda host: False)
    monkeypatch.setattr(hub, "getproxies", dict)
    with pytest.raises(InputError, match="hub is not reachable from here"):
        open_corpus("hub:nobody/nothing-here")
    with pytest.raises(InputError, match="EARMARK_VOCSIM"):
        open_vocsim("BS1")


def test_missing_paths() -> None:
    with pytest.raises(InputError, match="does not exist"):
        open_corpus("hub:/no/such/folder")
    with pytest.raises(UsageError, match="names no dataset"):
        open_corpus("hub:")


def test_without_datasets(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub._splits.cache_clear()
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtra, match=r"earmark\[hub\]"):
        open_corpus(f"hub:{saved}")


def test_vocsim_from_a_saved_dataset(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub._splits.cache_clear()
    monkeypatch.setenv("EARMARK_VOCSIM", str(saved))
    corpus = open_corpus("vocsim:oc1,BS1")
    assert list(corpus.subsets()) == ["OC1", "BS1"]
    assert "OC1 has 2 clips here and 441 in the paper." in corpus.notes


def test_importing_corpora_imports_nothing_heavy() -> None:
    code = (
        "import earmark.audio, earmark.cli.corpus, earmark.corpora._hub, earmark.corpora.vocsim, "
        "earmark.corpora.codec_superb, earmark.corpora.describe, earmark.corpora.prepare, earmark.corpora.export"
    )
    assert not heavy_imports(code, "av datasets matplotlib numba pyarrow scipy soundfile soxr torch")
