"""Clips of many lengths: what follows time is padded in time, in the same columns for every clip."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from numpy.typing import NDArray
from tests.representations import layered, sounds

import earmark
from earmark.corpora.clips import Clip
from earmark.embedding.pca import reduce
from earmark.errors import InputError
from earmark.extractors.contract import Frames
from earmark.probes._contract import Responses, align_widths
from earmark.probes._encoding import encode_clips
from earmark.representations import load_vectors, run
from earmark.representations._evaluate import assemble
from earmark.runs import packs
from earmark.runs.packs import Records
from earmark.runs.store import Cache

SECONDS = (0.02, 0.11, 0.05, 0.2, 0.08, 0.03)


@pytest.fixture
def ragged(tmp_path: Path) -> Path:
    root = tmp_path / "sounds"
    for kind in range(3):
        (root / f"class{kind}").mkdir(parents=True)
        for number, seconds in enumerate(SECONDS):
            sound = sounds.tone(300.0 * (kind + 1), 100 * kind + number, seconds + 0.01 * kind)
            soundfile.write(root / f"class{kind}" / f"clip{number}.wav", sound, sounds.RATE)
    return root


class OneLayer(layered.Towers):
    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    def extract(self, waveforms: Sequence[NDArray[np.float32]]) -> list[Frames]:
        return [self.layer(waveform, self.number) for waveform in waveforms]


def reference(root: Path, extractor: Any) -> dict[str, NDArray[np.float32]]:
    """Frames of every clip by itself, zeros behind them up to the longest clip, features first, in one line."""
    frames = {}
    for path in sorted(root.rglob("*.wav")):
        samples, _ = soundfile.read(path, dtype="float32")
        frames[f"{path.parent.name}/{path.name}"] = extractor.extract([samples / np.abs(samples).max()])[0].values
    longest = max(len(values) for values in frames.values())
    return {
        name: np.vstack([values, np.zeros((longest - len(values), values.shape[1]))]).T.reshape(-1).astype(np.float32)
        for name, values in frames.items()
    }


def test_flatten_of_a_run_is_padded_in_time(ragged: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packs, "PACK_ITEMS", 4)  # several packs, each with a longest clip of its own
    run(sounds.config(ragged, tmp_path, pooling=["flatten", "flatten+mean_time"], pca=["none", 3]))
    expected = reference(ragged, sounds.Bands())
    found = load_vectors(tmp_path / "run", "sounds", "bands flatten")
    np.testing.assert_allclose(found.values, np.array([expected[name] for name in found.ids]), rtol=1e-5)
    both = load_vectors(tmp_path / "run", "sounds", "bands flatten+mean_time")
    np.testing.assert_array_equal(both.values[:, : found.values.shape[1]], found.values)
    reduced = load_vectors(tmp_path / "run", "sounds", "bands flatten D3")
    np.testing.assert_array_equal(reduced.values, reduce(found.values, 3).vectors)


def test_embed_and_run_give_the_same_flattened_vectors(ragged: Path, tmp_path: Path) -> None:
    run(sounds.config(ragged, tmp_path, pooling=["flatten"]))
    found = load_vectors(tmp_path / "run", "sounds", "bands flatten")
    embedded = earmark.embed(ragged, sounds.Bands(), "flatten")
    places = {name: place for place, name in enumerate(embedded.ids)}
    np.testing.assert_array_equal(embedded.vectors[[places[name] for name in found.ids]], found.values)


def test_flattened_layers_are_padded_by_themselves(ragged: Path, tmp_path: Path) -> None:
    entry = {"name": "towers", "spec": "tests.representations.layered:Towers", "layers": [0, 2]}
    run(sounds.config(ragged, tmp_path, extractors=[entry], pooling=["flatten"]))
    for layer in (0, 2):
        found = load_vectors(tmp_path / "run", "sounds", f"towers@{layer} flatten")
        expected = reference(ragged, OneLayer(layer))
        np.testing.assert_allclose(found.values, np.array([expected[name] for name in found.ids]), rtol=1e-5)


def test_a_codec_that_lost_the_longest_clip_is_compared_in_the_same_columns(ragged: Path) -> None:
    paths = sorted(ragged.rglob("*.wav"))
    clips = [Clip(path.stem + path.parent.name, path.parent.name, path=str(path)) for path in paths]
    clean = encode_clips(clips, sounds.Bands(), "flatten+mean_time")
    longest = max(clips, key=lambda clip: clip.seconds())
    coded = encode_clips([clip for clip in clips if clip is not longest], sounds.Bands(), "flatten+mean_time")
    assert clean.vectors is not None
    assert coded.vectors is not None
    assert coded.vectors.shape[1] < clean.vectors.shape[1]
    before, after = align_widths([clean, Responses.from_arrays(coded.to_arrays())])
    kept = [row for row, name in enumerate(clean.ids) if name != longest.id]
    np.testing.assert_array_equal(before[kept], after)


def test_vectors_of_unlike_widths_that_say_nothing_are_refused() -> None:
    one = Responses(("a",), vectors=np.ones((1, 3), np.float32), model="m")
    other = Responses(("b",), vectors=np.ones((1, 4), np.float32), model="m")
    with pytest.raises(InputError, match="mean_time"):
        align_widths([one, other])


def test_packs_of_two_widths_are_not_mixed(tmp_path: Path) -> None:
    records = Records(Cache(str(tmp_path)), "vectors/key")
    for key, features in (("one", 2), ("two", 3)):
        meta = {"items": [key], "records": [{}], "lengths": {"flatten": [6]}, "spent": 0.0}
        records.add(key, {**meta, "about": {"features": features}})
    with pytest.raises(InputError, match="2 and 3 features"):
        assemble(records, ["one", "two"], ["flatten"])
