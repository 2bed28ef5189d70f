"""One config from YAML, flags and Python; every mistake is one sentence with the nearest right word."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from earmark.errors import InputError, UsageError
from earmark.pipeline.codec_config import load_codec_config
from earmark.pipeline.config import RunConfig, load_config, make_config

ROOT = Path(__file__).resolve().parents[2]
LEAST: dict[str, Any] = {"corpus": "sounds", "extractors": ["logmel"]}


def test_the_shortest_config() -> None:
    config = make_config(LEAST)
    assert config.corpus[0].spec == "sounds"
    assert (config.extractors[0].name, config.extractors[0].spec) == ("logmel", "logmel")
    assert config.pca == [None]
    assert config.cache.policy == "use"


def test_lists_may_be_words_with_commas() -> None:
    config = make_config({**LEAST, "pca": "none,30,D100", "distances": "cosine, spearman", "label_noise": "0.01,0.2"})
    assert config.pca == [None, 30, 100]
    assert config.distances == ["cosine", "spearman"]
    assert config.label_noise == [0.01, 0.2]


def test_corrections_keep_their_parameters() -> None:
    config = make_config({**LEAST, "correct": "none, icdm:k=20,iterations=5, mp"})
    assert config.correct == ["none", "icdm:k=20,iterations=5", "mp"]
    assert make_config({**LEAST, "correct": ["ls:k=10"]}).correct == ["ls"]
    assert make_config(LEAST).correct == ["none"]


def test_python_yaml_and_the_resolved_text_are_one_object(tmp_path: Path) -> None:
    config = make_config({**LEAST, "pca": ["none", 100], "dtw": True, "cache": {"policy": "refresh"}})
    assert RunConfig(**LEAST) == make_config(LEAST)
    path = tmp_path / "config.yaml"
    path.write_text(config.to_yaml())
    assert load_config(path) == config


def test_appendix_style_entries() -> None:
    config = make_config({
        "corpus": "sounds",
        "extractors": [
            {"name": "whisper", "short_name": "EW", "spec": "mine.models:Whisper", "parameters": {"size": "large"}},
            {"name": "whisper-pooled", "base": "whisper", "pooling": "MTF", "pca": "30,100", "distances": ["cosine"]},
        ],
    })  # fmt: skip
    pooled = config.extractors[1]
    assert (pooled.spec, pooled.parameters) == ("mine.models:Whisper", {"size": "large"})
    assert (pooled.pooling, pooled.pca, pooled.distances) == (["MTF"], [30, 100], ["cosine"])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"distnaces": ["cosine"]}, 'unknown key \'distnaces\'. Did you mean "distances"?'),
        ({"extractors": [{"name": "a", "poolings": "T"}]}, 'Did you mean "pooling"?'),
        ({"cache": {"url": "x", "polcy": "use"}}, 'Did you mean "policy"?'),
        ({"distances": ["cosin"]}, 'Did you mean "cosine"?'),
        ({"correct": ["none", "idcm"]}, 'Did you mean "icdm"?'),
        ({"metrics": ["P@1", "GRS"]}, 'Did you mean "GSR"?'),
        ({"steps": ["embd"]}, 'Did you mean "embed"?'),
        ({"executor": "dask"}, "is not in this version of Earmark: use local."),
        ({"executor": "shard"}, "is not in this version of Earmark: use local."),
        ({"label_noise": [1.5]}, "label_noise.0"),
        ({"permutations": -1}, "permutations"),
        ({"memory": "lots"}, "write it like 2GB"),
        ({"extractors": ["a", "a"]}, "two extractors are called 'a'"),
        ({"extractors": [{"name": "a", "base": "b"}]}, "based on 'b'"),
        ({"pca": ["few"]}, "pca.0"),
        ({"corpus": []}, "corpus"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_sentence(change: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        make_config({**LEAST, **change}, "run.yaml")
    assert said in str(caught.value)
    assert str(caught.value).startswith("run.yaml: ")
    assert "\n" not in str(caught.value)


def test_something_missing() -> None:
    with pytest.raises(UsageError, match="'extractors' is missing"):
        make_config({"corpus": "sounds"})


def test_files_that_are_no_config(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        load_config(tmp_path / "none.yaml")
    (tmp_path / "bad.yaml").write_text("a: [1,\nb: }")
    with pytest.raises(UsageError, match=r"bad.yaml, line 2 is not valid YAML"):
        load_config(tmp_path / "bad.yaml")
    (tmp_path / "list.yaml").write_text("- 1\n")
    with pytest.raises(UsageError, match="not a config"):
        load_config(tmp_path / "list.yaml")


@pytest.mark.parametrize(
    "line",
    [
        *("permutations: yes", "bootstrap: on", "seed: true", "k: [1, yes]", "k: no", "layers: yes", "hub_k: True"),
        *("dtw: {radius: yes}", "label_noise: [on]", "workers: yes", "pca: yes"),
    ],
)
def test_a_truth_value_is_no_number(tmp_path: Path, line: str) -> None:
    (tmp_path / "run.yaml").write_text(f"corpus: sounds\nextractors: logmel\n{line}\n")
    with pytest.raises(UsageError, match="is a number, not yes or no; write it in digits") as caught:
        load_config(tmp_path / "run.yaml")
    assert str(caught.value).count(line.split(":")[0]) >= 1


@pytest.mark.parametrize("number", ["010", "0o10", "08", "1_000", "1:30", "0x10", "0b11", "+017", "1:30.5", "1_0.5"])
def test_numbers_of_yaml_that_people_read_otherwise(tmp_path: Path, number: str) -> None:
    for key in ("permutations", "into", "extractors"):
        value = f"[{{name: a, parameters: {{bands: {number}}}}}]" if key == "extractors" else number
        rest = "".join(f"{name}: sounds\n" for name in ("corpus", "extractors") if name != key)
        (tmp_path / "run.yaml").write_text(f"{rest}{key}: {value}\n")
        try:
            load_config(tmp_path / "run.yaml")
        except UsageError as error:
            text = str(error)
        else:  # 0o10 is a text for YAML 1.1, and may name a folder
            assert number == "0o10"
            continue
        assert number in text
        assert "number" in text or "integer" in text


def test_plain_numbers_and_switches_are_read(tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text(
        "corpus: sounds\nextractors: logmel\npermutations: 100\nlabel_noise: [0.1, 2.5e-1]\nacross_groups: yes\n"
        "dtw: on\npca: [none, 30]\nseed: 0\ninto: '010'\nmemory: 500MB\n"
    )
    config = load_config(tmp_path / "run.yaml")
    assert (config.permutations, config.label_noise, config.across_groups) == (100, [0.1, 0.25], True)
    assert (config.pca, config.seed, config.into) == ([None, 30], 0, "010")
    assert config.dtw is not None
    assert make_config(yaml.safe_load(config.to_yaml())) == config


@pytest.mark.parametrize("line", ["bootstrap: yes", "loss: on", "tandem: yes", "limit: 010", "jobs: yes"])
def test_codec_configs_refuse_the_same(tmp_path: Path, line: str) -> None:
    (tmp_path / "run.yaml").write_text(f"corpus: sounds\ncodecs: opus@12\n{line}\n")
    with pytest.raises(UsageError, match="number"):
        load_codec_config(tmp_path / "run.yaml")


def test_a_corpus_is_found_beside_its_config(tmp_path: Path) -> None:
    (tmp_path / "sounds").mkdir()
    (tmp_path / "run.yaml").write_text("corpus: sounds\nextractors: logmel\ncache: off\n")
    config = load_config(tmp_path / "run.yaml")
    assert config.corpus[0].spec == str(tmp_path / "sounds")
    assert config.cache.policy == "off"


@pytest.mark.parametrize("name", ["run.yaml", "vocsim_grid.yaml"])
def test_the_examples_are_valid(name: str) -> None:
    assert load_config(ROOT / "examples" / name).extractors
