"""One meaning for each flag: made from the models, the same in every command, old spellings kept."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pytest

from earmark.cli import BELOW, SYNONYMS, VERBS, main, parser_of
from earmark.cli.flags import config_of
from earmark.cli.run import config_of as run_config
from earmark.codecs.runs.config import CodecConfig
from earmark.corpora.clips import Corpus
from earmark.corpora.subsets import open_corpora
from earmark.errors import InputError, UsageError
from earmark.representations.config import RunConfig

COMMANDS = sorted((*VERBS, *BELOW))


def parsers(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    below = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return [parser, *(inner for action in below for sub in action.choices.values() for inner in parsers(sub))]


def run(*words: str) -> RunConfig:
    return run_config(parser_of("run")[0].parse_args(words))


def codec_run(*words: str) -> CodecConfig:
    return config_of(parser_of("codec")[0].parse_args(["run", *words]), CodecConfig, "codec run")


def corpus_of(*words: str) -> Corpus:
    (corpus,) = open_corpora(run(*words).corpus)
    return corpus


@pytest.mark.parametrize("verb", COMMANDS)
def test_help_is_printed_and_every_spelling_of_a_flag_is_taken(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*verb.split(), "--help"]) == 0
    assert f"usage: earmark {verb}" in capsys.readouterr().out
    for parser in parsers(parser_of(verb)[0]):
        flags = parser._option_string_actions
        for spellings in SYNONYMS:
            assert len({spelling in flags for spelling in spellings}) == 1, (parser.prog, spellings)


def test_a_run_takes_every_option_of_an_evaluation() -> None:
    of_files = {"--key", "--dimensions", "--ids", "--pair-columns", "--symmetrise", "--distance-name"}
    of_output = {"--by", "--table"}  # a run writes these tables: earmark tables RUN --kind groups
    evaluate, run = (set(parser_of(verb)[0]._option_string_actions) for verb in ("evaluate", "run"))
    assert evaluate - run == of_files | of_output


def test_a_suite_is_a_corpus_or_a_name() -> None:
    assert run("--suite", "vocsim", "--extractor", "whisper:openai/whisper-large-v3").corpus[0].spec == "vocsim"
    assert run("--suite", "lite", "--extractor", "logmel").corpus[0].spec == "vocsim:BS4,HS1,HW2"
    assert run("--suite", "birds", "--corpus", "x", "--extractor", "logmel").corpus[0].name == "birds"
    assert codec_run("--suite", "birds", "--corpus", "x", "--codecs", "pcm").suite == "birds"
    with pytest.raises(UsageError, match="give a config file, or --corpus"):
        run("--suite", "birds", "--extractor", "logmel")


def test_a_system_is_the_name_of_the_only_model() -> None:
    config = run("--corpus", "x", "--extractor", "logmel", "--system", "mine")
    assert (config.extractors[0].name, config.extractors[0].spec) == ("mine", "logmel")
    with pytest.raises(UsageError, match="names one model, and there are 2"):
        run("--corpus", "x", "--extractor", "logmel,mfcc", "--system", "mine")


def test_groups_is_a_column_and_once_was_a_switch(tmp_path: Path) -> None:
    some = ("--corpus", "clips.csv", "--extractor", "logmel")
    config = run(*some, "--groups", "speaker", "--label-column", "species", "--subset", "A,B")
    entry = config.corpus[0]
    assert (entry.groups, entry.label_column, entry.subsets) == ("speaker", "species", ["A", "B"])
    assert not config.across_groups
    assert run(*some, "--groups").across_groups
    assert run("--groups", *some).across_groups
    file = tmp_path / "run.yaml"
    file.write_text("corpus: [a.csv, b.csv]\nextractors: logmel\nlabel_column: kind\n")
    config = run("--groups", str(file))
    assert config.across_groups
    assert [entry.label_column for entry in config.corpus] == ["kind", "kind"]
    assert [entry.groups for entry in run(str(file), "--groups", "bird").corpus] == ["bird", "bird"]


@pytest.mark.parametrize(
    ("words", "names", "value"),
    [
        ("--jobs 3", ("workers", "threads"), 3),
        ("--threads 2", ("threads",), 2),
        ("--workers 2", ("workers",), 2),
        ("--distances euclidean", ("distances",), ["euclidean"]),
        ("--pooling mean_time", ("pooling",), ["mean_time"]),
        ("--hub-k 7", ("hub_k",), 7),
        ("--device cpu", ("device",), "cpu"),
        ("--permutations", ("permutations",), 1000),
        ("--bootstrap", ("bootstrap",), 300),
        ("--correct none,icdm:k=20,iterations=5", ("correct",), ["none", "icdm:k=20,iterations=5"]),
        ("--metric P@1,GSR", ("metrics",), ["P@1", "GSR"]),
        ("--pca none,100", ("pca",), [None, 100]),
        ("--layers all", ("layers",), "all"),
        ("--layers 0,-1", ("layers",), [0, -1]),
        ("--label-noise 0.1", ("label_noise",), [0.1]),
    ],
)
def test_flags_become_values_of_the_config(words: str, names: tuple[str, ...], value: Any) -> None:
    config = run("--corpus", "x", "--extractor", "logmel", *words.split())
    assert [getattr(config, name) for name in names] == [value] * len(names)


def test_flags_of_a_codec_run() -> None:
    words = "--corpus x --codecs pcm,opus --threads 2 --no-report --no-unaligned --gain-match --loss 5,10 --subset A"
    config = codec_run(*words.split(), "--cache", "off", "--cache-dir", "y")
    assert (config.codecs, config.jobs, config.report, config.unaligned) == (["pcm", "opus"], 2, False, False)
    assert (config.gain_match, config.loss, config.corpus[0].subsets) == (True, [5.0, 10.0], ["A"])
    assert (config.cache.policy, config.cache.url) == ("off", "y")


def test_an_unknown_executor_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main("run --corpus x --extractor logmel --executor cloud".split()) == 2
    assert "there is no executor 'cloud': choose from local, dask, shard." in capsys.readouterr().err


def test_columns_of_a_manifest_by_name(tmp_path: Path) -> None:
    (tmp_path / "clips.csv").write_text("path,Species,label,tape\na.wav,finch,x,1\nb.wav,wren,y,2\n")
    for name in "ab":
        (tmp_path / f"{name}.wav").write_bytes(b"")
    words = ("--corpus", str(tmp_path / "clips.csv"), "--extractor", "logmel")
    corpus = corpus_of(*words, "--label-column", "species", "--groups", "tape")
    assert [(clip.label, clip.group) for clip in corpus.clips] == [("finch", "1"), ("wren", "2")]
    assert [clip.label for clip in corpus_of(*words, "--groups", "tape").clips] == ["x", "y"]
    with pytest.raises(InputError, match=r"has no column 'spices' .*Did you mean \"species\""):
        corpus_of(*words, "--label-column", "spices")
    with pytest.raises(UsageError, match="is no manifest"):
        corpus_of("--corpus", str(tmp_path), "--extractor", "logmel", "--groups", "tape")
