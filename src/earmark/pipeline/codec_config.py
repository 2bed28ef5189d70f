"""What a codec run is to do, as one object: the same from YAML, from flags and from Python."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import yaml
from pydantic import BaseModel, BeforeValidator, Field, ValidationError, field_validator

from earmark.codecs.contract import Category
from earmark.errors import UsageError
from earmark.pipeline.config import CacheOptions, CorpusEntry, Names, Section, explain, read_yaml

__all__ = ["CodecConfig", "load_codec_config", "make_codec_config"]


def _entries(given: object) -> object:
    return [given] if isinstance(given, str | Mapping | BaseModel | Path) else given


def _listed(given: object) -> object:
    if isinstance(given, str):
        return [word.strip() for word in given.split(",") if word.strip()]
    return [given] if isinstance(given, int | float) else given


Percents: TypeAlias = Annotated[list[Annotated[float, Field(gt=0, lt=100)]], BeforeValidator(_listed)]


class CodecConfig(Section):
    """Everything about a codec run: which codecs, which sounds, what is measured, and where results go."""

    codecs: Annotated[Names, Field(min_length=1)]
    corpus: Annotated[list[CorpusEntry], BeforeValidator(_entries), Field(min_length=1)]
    category: Category | None = None  # None: what each corpus's card says
    limit: int | None = Field(None, ge=1)  # clips of each subset, spread evenly over it
    # what is measured
    metrics: Names | None = None  # None: the core
    extras: Names = Field([])
    definitions: Literal["mended", "reference"] = "mended"
    gain_match: bool = False
    unaligned: bool = True  # codecs with a delay once more without taking it out, as protocol `unaligned`
    tasks: Names = Field([])  # asr, asv, events, emotion, with a model behind a colon; or an import path
    retention: str | None = None  # an extractor: content identity and fidelity of the coded set
    tandem: int = Field(0, ge=0, le=20)  # passes
    loss: Percents = Field([])  # percent of packets
    bootstrap: int = Field(1000, ge=0)
    seed: int = Field(0, ge=0)
    # results and resources
    suite: str = "codec"
    into: str = "codec-run"
    report: bool = True
    jobs: int | None = Field(None, ge=0)  # worker processes; 0: none, everything in this process
    cache: CacheOptions = CacheOptions()

    @field_validator("suite")
    @classmethod
    def _named(cls, given: str) -> str:
        if not given.strip():
            raise ValueError("a suite needs a name.")
        return given

    def to_yaml(self) -> str:
        return yaml.safe_dump(self.model_dump(mode="json"), sort_keys=False, allow_unicode=True, width=100)


def make_codec_config(values: Mapping[str, Any], source: str = "The config") -> CodecConfig:
    """A config from a mapping; every mistake is a UsageError of one sentence that says where it is."""
    try:
        return CodecConfig.model_validate(dict(values))
    except ValidationError as error:
        raise UsageError(f"{source}: {explain(error, lambda _: list(CodecConfig.model_fields))}") from None


def load_codec_config(path: str | Path, overrides: Mapping[str, Any] | None = None) -> CodecConfig:
    """A config from a YAML file, with `overrides` (flags) in place of its values."""
    source = Path(path)
    return make_codec_config({**read_yaml(source, "codecs: opus@12"), **(overrides or {})}, str(source))
