"""From clips to rows: means with intervals, rates that were counted, delays, speeds, tokens and overall scores.

Rows of one codec on one subset depend on nothing but its clips' results and are kept in the cache by their content.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark._version import __version__
from earmark.calibrate.bootstrap import Counts, interval, resample, resampled_means
from earmark.codecs import harness
from earmark.codecs.aggregate import Summary, first_percentile, points_of, summarise
from earmark.codecs.contract import ENCODE_ONLY, Category, Measured
from earmark.codecs.overall import DISTANCES, METRICS_OF, overall, overall_of_datasets, overall_unsaturated
from earmark.codecs.runs._calibrate import UNSUITED
from earmark.codecs.runs._systems import CodecSystem
from earmark.codecs.runs.state import BLOB, ClipResult, CodecWork
from earmark.codecs.tokens import token_statistics
from earmark.corpora.subsets import PreparedSubset
from earmark.errors import EarmarkError
from earmark.metrics.catalogue import name_of
from earmark.runs.identity import Stage, fingerprint
from earmark.runs.store import Entry
from earmark.scores import Row
from earmark.scores.spelling import at_rate, split_metric
from earmark.wording import counted, listed

AGGREGATE = Stage(
    "aggregate",
    3,
    libraries=("numpy", "scipy"),
    modules=(
        "calibrate/bootstrap.py",
        "codecs/aggregate.py",
        "codecs/overall.py",
        "codecs/runs/_aggregate.py",
        "codecs/tokens.py",
    ),
)
KIND = "codec-rows"
PERCENTILE_RESAMPLES = 200  # a percentile is sorted afresh in every resample
_OVERALLS: dict[str, Callable[[Any, Category], Measured]] = {
    "overall": overall,
    "overall_unsaturated": overall_unsaturated,
}

Floats = NDArray[np.float64]


def subset_rows(work: CodecWork, subset: PreparedSubset, system: CodecSystem) -> list[Row]:
    """Every row of one codec on one subset, but those of tasks."""
    results = list(work.results(subset, system))
    sampling = tuple(sorted({work.rates[digest] for digest in subset.digests if digest in work.rates}))
    config, category, delay = work.config, work.categories[subset.name], work.delays[system.name]
    key = AGGREGATE.key(
        system.key,
        list(delay),
        [[clip.id, digest, known, sorted(values.items()), refused] for clip, digest, known, values, refused in results],
        [category, work.protocol, work.metrics, work.names_wanted(system), config.bootstrap, config.seed, work.jobs],
        list(sampling),
    )

    def make() -> Entry:
        inputs = fingerprint(system.key, [result.digest for result in results], delay.seconds, work.protocol)[:32]
        rows = _Rows(work, system, results, category).all(sampling)
        return Entry({"rows": [replace(row, version=__version__, inputs=inputs).as_dict() for row in rows]})

    names = {"suite": config.suite, "subset": subset.name, "system": system.name}
    return [Row(**{**cells, **names}) for cells in work.cache.recall(KIND, key, make).entry.meta["rows"]]


class _Rows:
    """The rows of one codec on one subset, in the order of the table."""

    def __init__(
        self,
        work: CodecWork,
        system: CodecSystem,
        results: Sequence[ClipResult],
        category: Category,
        metrics: Sequence[str] = (),
    ) -> None:
        self.work, self.system, self.results, self.category = work, system, results, category
        self.config, self.delay, self.metrics = work.config, work.delays[system.name], metrics or work.metrics
        self.coded = [result for result in results if result.known is not None]
        self.refusals = [result.refused for result in results if result.refused is not None]

    def all(self, sampling: Sequence[int]) -> list[Row]:
        """Every row; `sampling` are the sampling rates of the subset's clips, at each of which distances differ."""
        rows = [
            *self._rates(),
            self._delay(),
            *self._metrics(),
            *self._overall(),
            *self._percentiles(),
            *self._others(),
            *self._tokens(),
        ]
        if len(sampling) < 2:
            return rows
        rows = [self._not_averaged(row, sampling) if _is_of_one_rate(row) else row for row in rows]
        return [*rows, *(row for rate in sampling for row in self._at_rate(rate))]

    def _at_rate(self, rate: int) -> Iterator[Row]:
        """Distances and what is made of them, and the bitrate, over the clips of one sampling rate.

        A clip that nobody has coded belongs to all rates: nothing says which it has.
        """
        known = self.work.rates
        results = [result for result in self.results if known.get(result.digest or "", rate) == rate]
        distances = [name for name in self.metrics if name in DISTANCES]
        if not distances:
            return
        own = _Rows(self.work, self.system, results, self.category, distances)
        for row in (*own._rates(), *own._metrics(), *own._overall(), *own._percentiles(), *own._others()):
            if row.metric == "kbps" or _is_of_one_rate(row):
                yield replace(row, protocol=at_rate(row.protocol, rate))

    def _not_averaged(self, row: Row, sampling: Sequence[int]) -> Row:
        if row.value is None:
            return row
        rates = listed(f"{rate} Hz" for rate in sampling)
        reason = (
            f"the clips have {len(sampling)} sampling rates ({rates}), at which distances differ and have no mean: see "
            f"the rows of each rate, such as {at_rate(row.protocol, sampling[0])}"
        )
        return replace(row, value=None, low=None, high=None, n=0, status="not_applicable", reason=reason)

    def _measured(self, name: str) -> list[Measured]:
        """One measurement of every clip."""
        encode_only = self.system.card.encode_only
        lacking = Measured.not_applicable(ENCODE_ONLY) if encode_only else Measured.failed("it was not measured")
        return [result.refused or result.values.get(name, lacking) for result in self.results]

    def _summary_row(self, metric: str, protocol: str, summary: Summary) -> Row:
        return Row(
            metric=name_of(metric), protocol=protocol, value=summary.value, low=summary.low, high=summary.high,
            n=summary.n, status=summary.status, reason=summary.reason,
        )  # fmt: skip

    # --- counted and timed -------------------------------------------------------------------------------------------

    def _rates(self) -> Iterator[Row]:
        known = [result.known for result in self.coded if result.known is not None]
        if not known:
            reason = self._missing() or "no clip was coded"
            for metric in ("kbps", "header_kbps", "encode_rtf", "decode_rtf"):
                yield Row(metric=metric, n=0, status=self._status(), reason=reason)
            return
        seconds = np.array([result.seconds for result in known])
        header = float(np.mean([result.header_bits for result in known])) / 1000
        apart = f"header of {header:.3g} kbit for each clip counted apart" if header else ""
        yield self._ratio("kbps", np.array([result.bits for result in known]) / 1000, seconds, apart)
        yield self._ratio("header_kbps", np.array([result.header_bits for result in known]) / 1000, seconds, "")
        busy = f"measured with {counted(self.work.jobs, 'worker')} at work" if self.work.jobs > 1 else ""
        yield self._ratio("encode_rtf", np.array([result.encode_seconds for result in known]), seconds, busy)
        if self.system.card.encode_only:
            yield Row(metric="decode_rtf", n=0, status="not_applicable", reason=ENCODE_ONLY)
        else:
            yield self._ratio("decode_rtf", np.array([result.decode_seconds for result in known]), seconds, busy)

    def _ratio(self, metric: str, above: Floats, seconds: Floats, remark: str) -> Row:
        """A total over all clips divided by the seconds they last."""
        low = high = None
        if len(seconds) > 1 and self.config.bootstrap:
            counts = self._counts(len(seconds)).astype(np.float64)
            low, high = interval((counts @ above) / (counts @ seconds))
        reason = "; ".join(filter(None, [remark, self._missing()]))
        value = float(above.sum() / seconds.sum())
        status = "incomplete" if any(refusal.status == "failed" for refusal in self.refusals) else "ok"
        return Row(metric=metric, value=value, low=low, high=high, n=len(seconds), status=status, reason=reason)

    def _counts(self, n: int) -> Counts:
        return resample(np.arange(n), None, self.config.bootstrap, self.config.seed)

    def _missing(self) -> str:
        """How many clips were not coded, with the first reason."""
        if not self.refusals:
            return ""
        verb = "was" if len(self.refusals) == 1 else "were"
        return f"{counted(len(self.refusals), 'clip')} {verb} not coded (first: {self.refusals[0].reason})"

    def _status(self) -> str:
        return "not_applicable" if all(result.status == "not_applicable" for result in self.refusals) else "failed"

    def _delay(self) -> Row:
        delay = self.delay
        if delay.method == "declared":
            return Row(metric="delay_ms", value=1000 * delay.seconds, reason="declared on its card")
        if not delay.n:  # nothing is taken out then, which is no measurement of zero
            status = "not_applicable" if delay.reason in (UNSUITED, ENCODE_ONLY) else "failed"
            return Row(metric="delay_ms", n=0, status=status, reason=delay.reason)
        spread = f"by {delay.method}, middle half of the clips within {1000 * delay.spread_seconds:.2f} ms"
        reason = "; ".join(filter(None, [spread, delay.reason]))
        return Row(metric="delay_ms", value=1000 * delay.seconds, n=delay.n, reason=reason)

    # --- measured ----------------------------------------------------------------------------------------------------

    def _metrics(self) -> Iterator[Row]:
        for metric in self.metrics:
            summary = self._summarised(f"{self.work.protocol} {metric}")
            yield self._summary_row(metric, self.work.protocol, summary)

    def _summarised(self, name: str) -> Summary:
        return summarise(self._measured(name), resamples=self.config.bootstrap, seed=self.config.seed)

    def _percentiles(self) -> Iterator[Row]:
        ids = [result.clip.id for result in self.results]
        resamples = min(self.config.bootstrap, PERCENTILE_RESAMPLES)
        for metric in self.metrics:
            measured = self._measured(f"{self.work.protocol} {metric}")
            summary = first_percentile(ids, measured, metric, resamples=resamples, seed=self.config.seed)
            yield self._summary_row(f"{metric}:p1", self.work.protocol, summary)

    def _others(self) -> Iterator[Row]:
        """Without alignment, after several passes, with packets lost."""
        for name in self.work.names_wanted(self.system)[len(self.work.metrics) :]:
            protocol, metric = name.split(" ", 1)
            if metric not in self.metrics:
                continue
            yield self._summary_row(metric, protocol.partition("#")[0], self._summarised(name))

    def _overall(self) -> Iterator[Row]:
        """The overall scores of the metrics' means; the interval resamples clips, the same ones for every metric."""
        names = [metric for metric in METRICS_OF[self.category] if metric in self.work.metrics]
        measured = {metric: self._measured(f"{self.work.protocol} {metric}") for metric in names}
        points = {metric: points_of(values) for metric, values in measured.items()}
        means = {metric: _mean(values) for metric, values in points.items()}
        clips = min((int(np.isfinite(values).sum()) for values in points.values()), default=0)
        lost = sum(any(one.status == "failed" for one in clip) for clip in zip(*measured.values(), strict=True))
        for metric, combine in _OVERALLS.items():
            score = combine(means, self.category)
            low = high = None
            if score.value is not None and len(self.results) > 1 and self.config.bootstrap:
                counts = self._counts(len(self.results))
                resampled = {name: resampled_means(values, counts) for name, values in points.items()}
                low, high = interval(_combined(resampled, combine, self.category))
            reason, status = ENCODE_ONLY if self.system.card.encode_only else score.reason, score.status
            if score.value is not None and clips < len(self.results):
                reason = f"each metric over the clips that have it: {clips} of {len(self.results)} have the rarest"
            if score.value is not None and lost:
                # A codec that fails on hard clips would otherwise seem better.
                reason, status = f"{lost} of {len(self.results)} clips failed; {reason}", "incomplete"
            yield Row(
                metric=metric, protocol=self.work.protocol, value=score.value, low=low, high=high, n=clips,
                status=status, reason=reason,
            )  # fmt: skip

    # --- tokens ------------------------------------------------------------------------------------------------------

    def _tokens(self) -> Iterator[Row]:
        card = self.system.card
        if not card.codebook_sizes or not self.coded:
            return
        records = self.work.coded[self.system.name]
        blobs = [records.payload(result.digest or "", BLOB) for result in self.coded]
        tokens = [coded.tokens for coded in (harness.unpack(blob) for blob in blobs if blob is not None)]
        arrays = [array for array in tokens if array is not None]
        if not arrays:
            return
        metrics = ("token_usage", "token_entropy", "token_perplexity", "entropy_kbps")
        seconds = sum(result.known.seconds for result in self.coded if result.known is not None)
        frame_rate = card.frame_rate or sum(array.shape[1] for array in arrays) / seconds
        try:
            statistics = token_statistics(arrays, card.codebook_sizes, frame_rate)
        except EarmarkError as error:
            for metric in metrics:
                yield Row(metric=metric, n=0, status="failed", reason=str(error))
            return
        values = (statistics.usage, statistics.entropy_bits, statistics.perplexity, statistics.entropy_kbps)
        reason = f"{statistics.n_frames} frames of {len(card.codebook_sizes)} codebooks"
        reason += "" if card.frame_rate else f"; {frame_rate:.4g} frames a second were counted"
        for metric, value in zip(metrics, values, strict=True):
            yield Row(metric=metric, value=value, n=len(arrays), reason=reason)


def _is_of_one_rate(row: Row) -> bool:
    """Whether a value means something at one sampling rate only: a distance, or a score made of distances."""
    metric = split_metric(row.metric)[0]
    return metric in DISTANCES or metric in _OVERALLS


def _mean(points: Floats) -> float | None:
    valid = points[np.isfinite(points)]
    return float(valid.mean()) if len(valid) else None


def _combined(resampled: dict[str, Floats], combine: Callable[[Any, Category], Measured], category: Category) -> Floats:
    draws = len(next(iter(resampled.values())))
    combined = []
    for draw in range(draws):
        value = combine({name: float(values[draw]) for name, values in resampled.items()}, category).value
        combined.append(np.nan if value is None else value)
    return np.array(combined)


# --- over subsets ----------------------------------------------------------------------------------------------------


def mean_rows(work: CodecWork, rows: Sequence[Row]) -> list[Row]:
    """`mean:<category>` of each codec: the paper's harmonic mean of the subsets' overall scores, and its rate."""
    made: list[Row] = []
    for category in dict.fromkeys(work.categories.values()):
        subsets = [name for name, its in work.categories.items() if its == category]
        for system in work.systems:
            own = {
                (row.subset, row.metric): row for row in rows
                if row.system == system.name and row.subset in subsets and row.protocol in ("all", work.protocol)
            }  # fmt: skip
            made += [
                replace(
                    row, suite=work.config.suite, subset=f"mean:{category}", system=system.name, version=__version__
                )
                for row in _category_rows(own, subsets, work.protocol)
            ]
    return made


def _category_rows(own: dict[tuple[str, str], Row], subsets: Sequence[str], protocol: str) -> Iterator[Row]:
    inputs = fingerprint([own[name, "kbps"].inputs for name in subsets])[:32]
    rates = [own[name, "kbps"] for name in subsets]
    measured = [row.value for row in rates if row.value is not None]
    over = counted(len(subsets), "subset")
    if measured:
        status, lost = _completeness(rates)
        yield Row(
            metric="kbps", value=float(np.mean(measured)), n=sum(row.n or 0 for row in rates), inputs=inputs,
            status=status, reason=f"mean over {counted(len(measured), 'subset')}{lost}",
        )  # fmt: skip
    else:
        yield Row(metric="kbps", n=0, status=rates[0].status, reason=rates[0].reason, inputs=inputs)
    for metric in _OVERALLS:
        parts = [own[name, metric] for name in subsets]
        score = overall_of_datasets([row.value for row in parts])
        # A codec that loses everything scores 0 without saturation, where the harmonic mean tends to.
        if score.value is None and any(row.value == 0.0 for row in parts):
            score = Measured(0.0)
        status, lost = _completeness(parts) if score.value is not None else (score.status, "")
        yield Row(
            metric=metric, protocol=protocol, value=score.value, n=sum(row.n or 0 for row in parts), inputs=inputs,
            status=status, reason=(score.reason or f"harmonic mean over {over}") + lost,
            low=parts[0].low if len(parts) == 1 else None, high=parts[0].high if len(parts) == 1 else None,
        )  # fmt: skip


def _completeness(parts: Sequence[Row]) -> tuple[str, str]:
    """The status of a mean, and on which subsets the codec failed, to be added to its reason."""
    names = [row.subset for row in parts if row.status in ("incomplete", "failed")]
    return ("incomplete", f"; the codec failed on clips of {listed(names)}") if names else ("ok", "")


# --- tasks -----------------------------------------------------------------------------------------------------------


def without_lost(work: CodecWork, rows: Sequence[Row]) -> list[Row]:
    """The rows of tasks, incomplete where the codec failed on clips: a task hears only those that were coded."""
    lost: dict[tuple[str, str], tuple[int, int]] = {}
    for subset in work.subsets:
        for system in work.systems:
            refusals = (result.refused for result in work.results(subset, system))
            failed = sum(refusal is not None and refusal.status == "failed" for refusal in refusals)
            lost[subset.name, system.name] = failed, len(subset.clips)
    return [_incomplete(row, *lost[row.subset, row.system]) for row in rows]


def _incomplete(row: Row, failed: int, clips: int) -> Row:
    if row.status != "ok" or not failed:
        return row
    verb = "was" if failed == 1 else "were"
    reason = "; ".join(filter(None, [f"{failed} of {clips} clips {verb} not coded", row.reason]))
    return replace(row, status="incomplete", reason=reason)
