"""`suite: lite` takes VocSim's representative subsets and no others, from the hub, a copy or a manifest."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from tests.representations import sounds

from earmark.analysis.suite import LITE
from earmark.errors import UsageError
from earmark.pipeline import make_config
from earmark.representations import run

CHOSEN = LITE["vocsim"]


def config(corpus: object, **more: object) -> object:
    return make_config({"suite": "lite", "corpus": corpus, "extractors": "logmel", **more})


def test_vocsim_is_narrowed_in_its_own_spec() -> None:
    names = ",".join(CHOSEN)
    assert config("vocsim").corpus[0].spec == f"vocsim:{names}"  # type: ignore[attr-defined]
    copy = config("vocsim:?from=copies/vocsim")
    assert copy.corpus[0].spec == f"vocsim:{names}?from=copies/vocsim"  # type: ignore[attr-defined]


def test_a_copy_is_narrowed_by_subsets() -> None:
    assert config("clips.csv").corpus[0].subsets == list(CHOSEN)  # type: ignore[attr-defined]


def test_a_resolved_config_reads_back_as_itself() -> None:
    for corpus in ("vocsim", "clips.csv"):
        made = config(corpus)
        assert make_config(yaml.safe_load(made.to_yaml())) == made  # type: ignore[attr-defined]


def test_other_subsets_are_refused() -> None:
    with pytest.raises(UsageError, match="the lite suite is VocSim's BS4, HS1, HW2: leave out the subsets"):
        config("vocsim:BC")
    with pytest.raises(UsageError, match="the lite suite is"):
        config({"spec": "clips.csv", "subsets": ["BC"]})
    with pytest.raises(UsageError, match="'full' or 'lite'"):
        make_config({"suite": "light", "corpus": "vocsim", "extractors": "logmel"})


def test_a_corpus_without_those_subsets_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the lite suite is VocSim's BS4, HS1, HW2; synth has no subset 'BS4'"):
        config("synth")
    clips = tmp_path / "clips.csv"
    for text, lacking in (("path,label\na.wav,x\n", "BS4"), ("path,label,Subset\na.wav,x,BS4\n", "HS1")):
        clips.write_text(text)
        with pytest.raises(UsageError, match=f"clips.csv has no subset '{lacking}'"):
            config(str(clips))


def test_a_run_measures_only_those_subsets(tmp_path: Path) -> None:
    folder = sounds.make_folder(tmp_path / "sounds")
    files = sorted(folder.rglob("*.wav"))
    lines = ["id,path,label,subset"]
    for subset in (*CHOSEN, "BC", "HU1"):
        lines += [f"{subset}-{n},{path},{path.parent.name},{subset}" for n, path in enumerate(files)]
    (tmp_path / "clips.csv").write_text("\n".join(lines) + "\n")
    made = make_config(
        {
            "suite": "lite", "corpus": str(tmp_path / "clips.csv"), "extractors": sounds.BANDS, "pooling": "mean_time",
            "metrics": "P@1", "into": str(tmp_path / "run"), "cache": str(tmp_path / "cache"),
            "steps": "prepare,embed,evaluate",
        }
    )  # fmt: skip
    found = run(made, progress=False)
    assert {row.subset for row in found.scores} == set(CHOSEN)
