"""What a codec run is to do, as one object: the same from YAML, from flags and from Python."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias

from pydantic import BeforeValidator, Field, field_validator, model_validator

from earmark.codecs.contract import Category
from earmark.codecs.signal import CORE, EXTRA
from earmark.runs.config import (
    EXECUTORS,
    CacheOptions,
    ClusterOptions,
    CorpusEntries,
    Names,
    RunSettings,
    check_executor,
    listed,
)

Percents: TypeAlias = Annotated[list[Annotated[float, Field(gt=0, lt=100)]], BeforeValidator(listed)]


class CodecConfig(RunSettings):
    """Everything about a codec run: which codecs, which sounds, what is measured, and where results go.

    >>> earmark.codec(CodecConfig(corpus="sounds/", codecs=["opus@12"], category="speech", into="run"))
    """

    EXAMPLE: ClassVar[str] = "codecs: opus@12"
    SPELLINGS: ClassVar[dict[str, tuple[str, ...]]] = {"threads": ("jobs",), "workers": ("jobs",)}
    LATER: ClassVar[dict[str, Any]] = {"executor": "local"}

    codecs: Annotated[Names, Field(min_length=1)] = Field(description="settings, families or import paths")
    corpus: CorpusEntries
    category: Category | None = Field(None, description="what the sounds are: decides the overall score")
    limit: int | None = Field(None, ge=1, description="clips of each subset, spread evenly over it")
    # what is measured
    metrics: Names | None = Field(None, description=f"metrics of the signal (default: {','.join(CORE)})")
    extras: Names = Field([], description=f"beside them: {','.join(EXTRA)}")
    definitions: Literal["mended", "reference"] = Field(
        "mended", description="reference: word for word as the published code, which takes no delay out"
    )
    gain_match: bool = Field(False, description="scale coded clips to the reference")
    unaligned: bool = Field(True, description="also measure codecs with a delay without taking it out")
    tasks: Names = Field([], description="asr, asv, events, emotion, content, fidelity; a model as asr:MODEL")
    retention: str | None = Field(None, description="an extractor: content identity and fidelity of coded clips")
    tandem: int = Field(0, ge=0, le=20, description="passes through the same codec, up to N")
    loss: Percents = Field([], description="percent of packets lost, such as 5,10")
    bootstrap: int = Field(1000, ge=0, description="resamples of clips: intervals of means")
    seed: int = Field(0, ge=0, description="seed of resamples and lost packets")
    # results and resources
    suite: str = Field("codec", description="name of the suite, for the suite column")
    into: str = Field("codec-run", description="folder for the results", json_schema_extra={"metavar": "FOLDER"})
    report: bool = Field(True, description="write report.html")
    jobs: int | None = Field(None, ge=0, description="worker processes (default: every core; 0: none)")
    executor: str = Field("local", description=f"where steps run: {', '.join(EXECUTORS)}")
    scheduler: str = Field(
        "",
        description="the Dask scheduler whose workers do the steps, such as tcp://host:8786; implies --executor dask",
        json_schema_extra={"metavar": "ADDRESS"},
    )
    cluster: ClusterOptions | None = None
    isolation: Literal["auto", "full", "off"] = Field(
        "auto",
        description="encoder and decoder in processes that share only the payload; full: stop where that cannot be "
        "complete; off: in one process",
    )
    readable: Names = Field([], description="files and folders that codecs may read, beside their code and weights")
    clip_timeout: float | None = Field(
        None,
        gt=0,
        description="seconds that each half of a codec may take for a clip (default: 20 times its length and 30 s)",
        json_schema_extra={"metavar": "SECONDS"},
    )
    check: bool = Field(True, description="run `earmark check` on codecs that are not of the list, once")
    cache: CacheOptions = CacheOptions()

    @model_validator(mode="after")
    def _check_executor(self) -> Self:
        check_executor(self.executor, self.scheduler, self.cluster)
        return self

    @field_validator("suite")
    @classmethod
    def _check_suite(cls, given: str) -> str:
        if not given.strip():
            raise ValueError("a suite needs a name.")
        return given
