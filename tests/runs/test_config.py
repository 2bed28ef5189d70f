"""One config from YAML, flags and Python; every mistake is one sentence with the nearest right word."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from earmark.codecs.runs.config import CodecConfig
from earmark.errors import InputError, UsageError
from earmark.evaluation.options import Options
from earmark.representations.config import RunConfig
from earmark.runs.config import RunSettings

ROOT = Path(__file__).resolve().parents[2]
LEAST: dict[str, Any] = {"corpus": "sounds", "extractors": ["logmel"]}


def test_the_shortest_config() -> None:
    config = RunConfig.make(LEAST)
    assert config.corpus[0].spec == "sounds"
    assert (config.extractors[0].name, config.extractors[0].spec) == ("logmel", "logmel")
    assert config.pca == [None]
    assert config.cache.policy == "use"


def test_lists_may_be_words_with_commas() -> None:
    config = RunConfig.make(
        {**LEAST, "pca": "none,30,D100,d50W", "distances": "cosine, spearman", "label_noise": "0.01,0.2"}
    )
    assert config.pca == [None, 30, 100, "50w"]
    assert config.distances == ["cosine", "spearman"]
    assert config.label_noise == [0.01, 0.2]


def test_corrections_keep_their_parameters() -> None:
    config = RunConfig.make({**LEAST, "correct": "none, icdm:k=20,iterations=5, mp"})
    assert config.correct == ["none", "icdm:k=20,iterations=5", "mp"]
    assert RunConfig.make({**LEAST, "correct": ["ls:k=10"]}).correct == ["ls"]
    assert RunConfig.make(LEAST).correct == ["none"]


def test_python_yaml_and_the_resolved_text_are_one_object(tmp_path: Path) -> None:
    config = RunConfig.make({**LEAST, "pca": ["none", 100, "30w"], "dtw": "all", "cache": {"policy": "refresh"}})
    assert RunConfig(**LEAST) == RunConfig.make(LEAST)
    path = tmp_path / "config.yaml"
    path.write_text(config.to_yaml())
    assert RunConfig.load(path) == config


def test_keys_that_say_nothing_leave_the_file_readable_for_older_versions() -> None:
    plain = yaml.safe_load(RunConfig.make(LEAST).to_yaml())
    assert "device" not in plain
    assert set(plain["corpus"][0]) == {"spec", "name", "subsets"}
    config = RunConfig.make({**LEAST, "device": "cpu", "groups": "speaker"})
    assert RunConfig.make(yaml.safe_load(config.to_yaml())) == config
    assert config.corpus[0].groups == "speaker"


def test_appendix_style_entries() -> None:
    config = RunConfig.make({
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
        ({"executor": "dusk"}, "there is no executor 'dusk': choose from local, dask, shard. Did you mean \"dask\"?"),
        ({"cluster": {"kind": "cloud"}}, "cluster.kind: input should be 'local', 'slurm' or 'kubernetes'"),
        ({"cluster": {"worker": 3}}, "unknown key 'cluster.worker'. Did you mean \"workers\"?"),
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
        RunConfig.make({**LEAST, **change}, "run.yaml")
    assert said in str(caught.value)
    assert str(caught.value).startswith("run.yaml: ")
    assert "\n" not in str(caught.value)


def test_something_missing() -> None:
    with pytest.raises(UsageError, match="'extractors' is missing"):
        RunConfig.make({"corpus": "sounds"})


def test_files_that_are_no_config(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        RunConfig.load(tmp_path / "none.yaml")
    (tmp_path / "bad.yaml").write_text("a: [1,\nb: }")
    with pytest.raises(UsageError, match=r"bad.yaml, line 2 is not valid YAML"):
        RunConfig.load(tmp_path / "bad.yaml")
    (tmp_path / "list.yaml").write_text("- 1\n")
    with pytest.raises(UsageError, match="not a config"):
        RunConfig.load(tmp_path / "list.yaml")


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
        RunConfig.load(tmp_path / "run.yaml")
    assert str(caught.value).count(line.split(":")[0]) >= 1


@pytest.mark.parametrize("number", ["010", "0o10", "08", "1_000", "1:30", "0x10", "0b11", "+017", "1:30.5", "1_0.5"])
def test_numbers_of_yaml_that_people_read_otherwise(tmp_path: Path, number: str) -> None:
    for key in ("permutations", "into", "extractors"):
        value = f"[{{name: a, parameters: {{bands: {number}}}}}]" if key == "extractors" else number
        rest = "".join(f"{name}: sounds\n" for name in ("corpus", "extractors") if name != key)
        (tmp_path / "run.yaml").write_text(f"{rest}{key}: {value}\n")
        try:
            RunConfig.load(tmp_path / "run.yaml")
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
    config = RunConfig.load(tmp_path / "run.yaml")
    assert (config.permutations, config.label_noise, config.across_groups) == (100, [0.1, 0.25], True)
    assert (config.pca, config.seed, config.into) == ([None, 30], 0, "010")
    assert config.dtw is not None
    assert RunConfig.make(yaml.safe_load(config.to_yaml())) == config


@pytest.mark.parametrize("line", ["bootstrap: yes", "loss: on", "tandem: yes", "limit: 010", "jobs: yes"])
def test_codec_configs_refuse_the_same(tmp_path: Path, line: str) -> None:
    (tmp_path / "run.yaml").write_text(f"corpus: sounds\ncodecs: opus@12\n{line}\n")
    with pytest.raises(UsageError, match="number"):
        CodecConfig.load(tmp_path / "run.yaml")


KINDS: list[tuple[type[RunSettings], dict[str, Any]]] = [
    (RunConfig, {"extractors": "logmel"}),
    (CodecConfig, {"codecs": "opus@12", "category": "speech"}),
]
both_kinds = pytest.mark.parametrize(("kind", "rest"), KINDS)


@both_kinds
def test_a_corpus_is_found_beside_its_config(
    kind: type[RunSettings], rest: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("here/sounds", "there/sounds"):
        (tmp_path / folder).mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    (tmp_path / "there" / "run.yaml").write_text(yaml.safe_dump({"corpus": "sounds", "cache": False, **rest}))
    config = kind.load("../there/run.yaml")
    assert Path(config.corpus[0].spec).resolve() == tmp_path / "there" / "sounds"
    assert config.portable().corpus[0].spec.startswith("/")
    assert config.cache.policy == "off"
    assert kind.load("../there/run.yaml", {"corpus": "sounds"}).corpus[0].spec == "sounds"
    (tmp_path / "there" / "sounds").rmdir()
    assert kind.load("../there/run.yaml").corpus[0].spec == "sounds"


@both_kinds
def test_a_registered_name_stays_a_name_and_a_folder_a_folder(
    kind: type[RunSettings], rest: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "spoken").mkdir()
    monkeypatch.chdir(tmp_path)
    for given, saved in (("spoken", "spoken"), ("spoken:2x2", "spoken:2x2"), ("./spoken", str(tmp_path / "spoken"))):
        (tmp_path / "run.yaml").write_text(yaml.safe_dump({"corpus": given, **rest}))
        for config in (kind.make({"corpus": given, **rest}), kind.load("run.yaml"), kind.load(tmp_path / "run.yaml")):
            assert config.portable().corpus[0].spec == saved
        (tmp_path / "saved.yaml").write_text(config.portable().to_yaml())
        assert kind.load(tmp_path / "saved.yaml") == config.portable()


@both_kinds
def test_a_flag_changes_only_its_part_of_the_cache(
    kind: type[RunSettings], rest: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "run.yaml").write_text(yaml.safe_dump({"corpus": "x", "cache": {"url": "s3://kept"}, **rest}))
    cache = kind.load(tmp_path / "run.yaml", {"cache": {"policy": "refresh"}}).cache
    assert (cache.url, cache.policy) == ("s3://kept", "refresh")


def test_keys_may_be_spelled_as_flags_are(tmp_path: Path) -> None:
    config = RunConfig.make({"corpus": "x", "extractor": "logmel", "distance": "euclidean", "pool": "MTF", "jobs": 3})
    assert config == RunConfig.make({
        "corpus": "x", "extractors": "logmel", "distances": "euclidean", "pooling": "MTF", "workers": 3, "threads": 3,
    })  # fmt: skip
    assert RunConfig.make({**LEAST, "jobs": 3, "threads": 1}).threads == 1
    assert CodecConfig.make({"corpus": "x", "codecs": "pcm", "threads": 2}).jobs == 2
    (tmp_path / "run.yaml").write_text("corpus: x\nextractor: logmel\ndistances: cosine\n")
    assert RunConfig.load(tmp_path / "run.yaml", {"distance": "euclidean"}).distances == ["euclidean"]
    for kind in (RunConfig.make, lambda values: RunConfig.load(_written(tmp_path / "two.yaml", values))):
        with pytest.raises(UsageError, match="distance and distances are two spellings of one key"):
            kind({**LEAST, "distance": "cosine", "distances": "cosine"})


def _written(path: Path, values: dict[str, Any]) -> Path:
    path.write_text(yaml.safe_dump(values))
    return path


def test_every_option_of_an_evaluation_is_one_of_a_run() -> None:
    known = {*RunConfig.model_fields, *RunConfig.SPELLINGS}
    assert set(Options.model_fields) - {"per_point", "per_unit", "progress"} <= known


def test_a_suite_is_a_corpus_or_a_name(tmp_path: Path) -> None:
    assert RunConfig.make({"suite": "vocsim", "extractors": "logmel"}).corpus[0].spec == "vocsim"
    assert RunConfig.make({"suite": "lite", "extractors": "logmel"}).corpus[0].spec == "vocsim:BS4,HS1,HW2"
    assert RunConfig.make({**LEAST, "suite": "birds"}).corpus[0].name == "birds"
    assert RunConfig.make({**LEAST, "suite": "full"}).corpus[0].name is None
    own = RunConfig.make({**LEAST, "suite": "birds", "corpus": {"spec": "sounds", "name": "finches"}})
    assert own.corpus[0].name == "finches"
    assert RunConfig.make(yaml.safe_load(own.to_yaml())) == own
    with pytest.raises(UsageError, match="names one corpus, and there are 2"):
        RunConfig.make({**LEAST, "suite": "birds", "corpus": ["a", "b"]})
    with pytest.raises(UsageError, match='Did you mean "vocsim"'):
        RunConfig.make({**LEAST, "suite": "vocsin"})


@pytest.mark.parametrize("name", ["run.yaml", "vocsim_grid.yaml"])
def test_the_examples_are_valid(name: str) -> None:
    assert RunConfig.load(ROOT / "examples" / name).extractors
