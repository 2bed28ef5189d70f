"""What a run is to do, as one object: the same from YAML, from flags and from Python.

config = RunConfig.load("run.yaml")
config = RunConfig(corpus="sounds/", extractors=["logmel"], distances=["cosine"], into="run")
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator, model_validator

from earmark.errors import did_you_mean
from earmark.evaluation.options import HUB_K, byte_count, kind_of_intervals, settle_sample
from earmark.geometry import devices
from earmark.metrics import catalogue
from earmark.places import locate
from earmark.representations._entries import (
    Corrections,
    Counts,
    Dimensions,
    Distances,
    DtwOptions,
    ExtractorEntry,
    Layers,
    ProbeEntry,
    Shares,
    read_probes,
    with_base,
)
from earmark.runs.config import (
    EXECUTORS,
    CacheOptions,
    ClusterOptions,
    CorpusEntries,
    CorpusEntry,
    Names,
    RunSettings,
    check_executor,
    entries,
    is_registered,
    listed,
    refused,
)
from earmark.tables import read_csv
from earmark.vectors.class_samples import parse_sample

__all__ = ["STEPS", "DtwOptions", "ExtractorEntry", "ProbeEntry", "RunConfig"]

STEPS = ("prepare", "embed", "evaluate", "probe", "report")


class RunConfig(RunSettings):
    """Everything about a run: what is measured, how, and where results and finished steps go.

    >>> earmark.run(RunConfig(corpus="sounds/", extractors=["mfcc"], into="run"))
    """

    SPELLINGS: ClassVar[dict[str, tuple[str, ...]]] = {
        "extractor": ("extractors",), "pool": ("pooling",), "distance": ("distances",), "jobs": ("workers", "threads"),
        "probe": ("probes",),
    }  # fmt: skip
    PATHS: ClassVar[tuple[str, ...]] = ("corpus", "probes")

    suite: str = Field(
        "full",
        description="lite: VocSim's representative subsets alone; vocsim or another registered corpus: that one; any "
        "other name stands in the suite column",
    )
    corpus: CorpusEntries
    extractors: Annotated[list[ExtractorEntry], BeforeValidator(entries), Field(min_length=1)] = Field(
        description="names or import paths"
    )
    sample: str = ""
    speed: float = Field(
        1.0,
        gt=0,
        allow_inf_nan=False,
        description="play sounds at this speed: 0.1 is ten times as slow and as low, which makes ultrasound audible",
        json_schema_extra={"metavar": "S"},
    )
    # variants of the vectors; an extractor's own lists come first
    layers: Layers = Field(None, description="hidden layers from one pass: all, or 0,6,12 (-1 is the last)")
    pooling: Names = Field([], description="poolings (default: the extractor's own)")
    pca: Dimensions = Field([None], description="none, 30, 100 ...; 100w scales each component to variance 1")
    distances: Distances = Field(["cosine"])
    correct: Corrections = Field(["none"])
    # measures and calibration
    ties: Literal["average", "ordinal"] = "average"
    metrics: Names | None = None
    k: Counts = Field([1, 5])
    hub_k: int = Field(HUB_K, ge=1)
    queries: int = Field(0, ge=0)
    permutations: int = Field(0, ge=0)
    shuffle: Literal["auto", "clips"] = "auto"
    intervals: Literal["jackknife", "bootstrap", "none"] | None = None
    bootstrap: int = Field(0, ge=0)
    across_groups: bool = Field(
        False,
        description="also leave out all pairs of one group (speaker, bird, recording), as protocol across_groups; the "
        "report then answers for it",
    )
    min_class_size: int = Field(2, ge=1)
    label_separator: str = ""
    background: str = ""
    copies: Literal["drop", "keep", "refuse"] = Field(
        "drop",
        description="clips that are one sound: drop all but the first, and all of them where their labels differ; keep "
        "them; or refuse to run",
    )
    seed: int = Field(0, ge=0)
    # ablations
    label_noise: Shares = Field([], description="ablation: shares of labels to flip")
    dtw: DtwOptions | None = Field(
        None,
        description="ablation: compare each clip's N nearest again, frame by frame, by dynamic time warping (200 when "
        "N is left out); with all every metric is measured, with fewer P@k alone",
        json_schema_extra={"alone": True, "metavar": "N|all"},
    )
    # external validation
    probes: Annotated[list[ProbeEntry], BeforeValidator(read_probes)] = Field(
        [],
        description="linear, classify, perception:JUDGEMENTS.csv; options as in linear?folds=5",
        json_schema_extra={"metavar": "LIST"},
    )
    # results and resources
    into: str = Field("run", description="folder for the results", json_schema_extra={"metavar": "FOLDER"})
    steps: Names = Field(list(STEPS), description=f"of {','.join(STEPS)} (default: all)")
    cache: CacheOptions = CacheOptions()
    executor: str = Field("local", description=f"where steps run: {', '.join(EXECUTORS)}")
    scheduler: str = Field(
        "",
        description="the Dask scheduler whose workers do the steps, such as tcp://host:8786; implies --executor dask",
        json_schema_extra={"metavar": "ADDRESS"},
    )
    cluster: ClusterOptions | None = None
    workers: int | None = Field(None, ge=1)  # threads that decode
    threads: int | None = Field(None, ge=1)  # threads that compare
    batch: int = Field(16, ge=1, description="clips given to an extractor at once")
    memory: str = "2GB"
    device: str = Field(
        "auto",
        description="where models run and distances are computed: auto, cpu, cuda or cuda:1 (default: auto, a GPU if "
        "torch sees one and it pays)",
    )

    @classmethod
    def completed(cls, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """A suite that is a registered corpus, or a part of one, says which corpus is meant."""
        suite = "vocsim" if given.get("suite") == "lite" else given.get("suite")
        if "corpus" not in given and isinstance(suite, str) and is_registered(suite):
            given = {**given, "corpus": suite}
        return super().completed(given)

    @field_validator("suite")
    @classmethod
    def _check_suite(cls, given: str) -> str:
        if given in ("full", "lite") or is_registered(given):
            return given
        hint = did_you_mean(given, ("full", "lite", "vocsim")) if given.strip() else " It needs a name."
        if hint:
            raise ValueError(
                f"there is no suite {given!r}: choose 'full' or 'lite', a registered corpus such as 'vocsim', or a "
                f"name of your own that is none of them.{hint}"
            )
        return given

    @field_validator("corpus")
    @classmethod
    def _apply_suite(cls, given: list[CorpusEntry], info: ValidationInfo) -> list[CorpusEntry]:
        suite = info.data.get("suite", "full")
        if suite == "lite":
            return [_lite(entry) for entry in given]
        if suite == "full" or all(entry.spec.partition(":")[0] == suite for entry in given):
            return given
        if len(given) > 1:
            raise ValueError(f"the suite {suite!r} names one corpus, and there are {len(given)}: give each a name.")
        return [entry.model_copy(update={"name": entry.name or suite}) for entry in given]

    @field_validator("metrics")
    @classmethod
    def _check_metrics(cls, given: list[str] | None) -> list[str] | None:
        if given is not None:
            refused(catalogue.plan, given, [1])
        return given

    @field_validator("bootstrap")
    @classmethod
    def _check_bootstrap(cls, given: int, info: ValidationInfo) -> int:
        refused(kind_of_intervals, info.data.get("intervals"), given)
        return given

    @field_validator("memory", mode="before")
    @classmethod
    def _check_memory(cls, given: object) -> object:
        text = str(given)
        refused(byte_count, int(text) if text.isdigit() else text)
        return text

    @field_validator("device")
    @classmethod
    def _check_device(cls, given: str) -> str:
        refused(devices.check, given)
        return given

    @field_validator("dtw", mode="before")
    @classmethod
    def _switch_dtw(cls, given: object) -> object:
        if given is True or given is False:
            return {} if given else None
        return {"candidates": given} if isinstance(given, str | int) else given

    @field_validator("steps")
    @classmethod
    def _check_steps(cls, given: list[str], info: ValidationInfo) -> list[str]:
        for name in given:
            if name not in STEPS:
                raise ValueError(
                    f"there is no step {name!r}: choose from {', '.join(STEPS)}.{did_you_mean(name, STEPS)}"
                )
        return [name for name in STEPS if name in given and (name != "probe" or info.data.get("probes"))]

    @field_validator("sample", mode="before")
    @classmethod
    def _check_sample(cls, given: object) -> object:
        if given is None or given == "":
            return ""
        refused(parse_sample, str(given))
        return str(parse_sample(str(given)))

    @model_validator(mode="after")
    def _check_sample_size(self) -> RunConfig:
        refused(settle_sample, self.sample, self.min_class_size)
        return self

    @model_validator(mode="after")
    def _check_label_sets(self) -> RunConfig:
        given = next((name for name in ("label_separator", "background") if getattr(self, name)), None)
        partly = self.dtw is not None and self.dtw.candidates != "all"
        asked = {
            "sample": self.sample, "queries": self.queries, "label_noise": self.label_noise, "probes": self.probes,
            "dtw with fewer than all candidates": partly,
        }  # fmt: skip
        other = next((name for name, value in asked.items() if value), None)
        if given and other:
            raise ValueError(f"{other} takes one class for each clip, and {given} says that clips have several labels "
                             "or none: leave one of them out.")  # fmt: skip
        return self

    @model_validator(mode="after")
    def _check_executor(self) -> RunConfig:
        check_executor(self.executor, self.scheduler, self.cluster)
        return self

    @field_validator("extractors")
    @classmethod
    def _resolve_bases(cls, given: list[ExtractorEntry]) -> list[ExtractorEntry]:
        by_name: dict[str, ExtractorEntry] = {}
        for entry in given:
            if entry.name in by_name:
                raise ValueError(f"two extractors are called {entry.name!r}: give each entry a name of its own.")
            by_name[entry.name] = entry
        return [with_base(entry, by_name) for entry in given]

    def options(self) -> dict[str, Any]:
        """The keywords of `earmark.evaluate` that change its values."""
        names = ("metrics", "k", "hub_k", "permutations", "intervals", "bootstrap", "min_class_size", "ties", "seed")
        options = {name: getattr(self, name) for name in names}
        # Results that go without these keep their keys.
        later = ("queries", "label_separator", "background")
        options |= {name: getattr(self, name) for name in later if getattr(self, name)}
        return options | ({"shuffle": self.shuffle} if self.shuffle != "auto" else {})


def _lite(entry: CorpusEntry) -> CorpusEntry:
    """A corpus with VocSim's lite subsets alone: VocSim itself, or a copy that has its subsets under their names."""
    from earmark.analysis.suite import LITE

    chosen = list(LITE["vocsim"])
    name, _, rest = entry.spec.partition(":")
    text, mark, option = rest.partition("?") if name == "vocsim" else ("", "", "")
    given = entry.subsets or listed(text)
    if given and given != chosen:
        raise ValueError(f"the lite suite is VocSim's {', '.join(chosen)}: leave out the subsets, or the suite.")
    if name == "vocsim":
        return entry.model_copy(update={"spec": f"vocsim:{','.join(chosen)}{mark}{option}", "subsets": []})
    there = _subsets_of(entry.spec)
    lacking = next((subset for subset in chosen if there is not None and subset not in there), None)
    if lacking is not None:
        called = entry.name or entry.spec
        raise ValueError(f"the lite suite is VocSim's {', '.join(chosen)}; {called} has no subset {lacking!r}.")
    return entry.model_copy(update={"subsets": chosen})


def _subsets_of(spec: str) -> set[str] | None:
    """The subsets of a corpus as far as they are known without opening it; None where they are not."""
    if is_registered(spec):
        return set()  # none but VocSim has subsets of VocSim
    path = locate(spec).expanduser()
    if path.suffix.lower() != ".csv" or not path.is_file():
        return None
    lines = (line.cells for line in read_csv(path.read_text("utf-8-sig", errors="replace"), path))
    names = [name.strip().lower() for name in next(lines, [])]
    place = names.index("subset") if "subset" in names else len(names)
    return {cells[place].strip() for cells in lines if len(cells) > place} if "subset" in names else set()
