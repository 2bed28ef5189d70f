"""Really pretrained encoders against log-mel and MFCC: the table of docs/encoders.md, in one command.

    earmark extractors fetch all
    earmark corpus fetch asterisk:it,it-menardi,fr,fr-armelle,es,es-co gcin drums instruments
    python benchmarks/encoders.py --esc50 path/to/esc50/manifest.csv [--into encoders] [--only logmel,mfcc]
    python benchmarks/encoders.py --recorded [--into encoders]

Sounds: synthetic words (`synth`, SYN-HW), espeak-ng words in many languages (`voices`), and ESC-50 when its manifest
is given: all of it, its twelve classes of animals, and the four of these that are birds. With --recorded, instead of
all these, recordings that install: words and syllables by several voices, strokes on drums, notes of instruments. The
run can be killed and goes on where it stopped. At the end stand Markdown tables of P@1 and GSR with 95 % intervals
(where there are five groups or more) and the points above shuffled labels, without pairs of one speaker or one
recording. Distances are cosine where none is named.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from earmark.corpora.manifest import read_manifest, write_manifest
from earmark.representations import run
from earmark.representations.config import RunConfig
from earmark.scores import Row

BIRDS = ("rooster", "hen", "crow", "chirping_birds")
ANIMALS = (*BIRDS, "dog", "pig", "cow", "frog", "cat", "insects", "sheep", "crickets")

RECORDED = {
    "words": "asterisk:it,it-menardi,fr,fr-armelle,es,es-co?only=digits&label=word",
    "syllables": "gcin",
    "drums": "drums",
    "instruments": "instruments",
}

EXTRACTORS: list[dict[str, Any]] = [
    {"name": "logmel", "pooling": ["flatten", "mean_time"]},
    {"name": "mfcc"},
    {"name": "speech_embedding"},
    {"name": "efficientword"},
    {"name": "moonshine"},
    {"name": "moonshine:base"},
    {"name": "resemblyzer"},
    {"name": "birdnet"},
    {"name": "opensmile", "distances": ["cosine", "spearman"]},
    {"name": "crepe"},
]


def animals_of(esc50: Path, into: Path) -> Path:
    """The animals of ESC-50 and, among them, the birds, as a manifest with two subsets."""
    clips = read_manifest(esc50).clips
    chosen = [
        dataclasses.replace(clip, id=f"{subset}/{clip.id}", subset=subset)
        for subset, labels in (("animals", ANIMALS), ("birds", BIRDS))
        for clip in clips
        if clip.label in labels
    ]
    target = into / "animals" / "manifest.csv"
    target.parent.mkdir(parents=True, exist_ok=True)
    write_manifest(target, chosen)
    return target


def table(rows: Sequence[Row], metric: str) -> str:
    """A Markdown table of one metric: a line for each system, a column for each subset with its number of clips."""
    found = {(row.system, row.distance, row.subset): row for row in rows if row.metric == metric}
    subsets = list(dict.fromkeys(subset for _, _, subset in found))
    clips = {subset: max(row.n or 0 for row in found.values() if row.subset == subset) for subset in subsets}
    heading = [f"{metric} (%)", *(f"{subset} ({clips[subset]})" for subset in subsets)]
    lines = [heading, ["---"] * len(heading)]
    for system, distance in dict.fromkeys((system, distance) for system, distance, _ in found):
        name = f"`{system}`" if distance == "cosine" else f"`{system}`, {distance}"
        lines.append([name, *(_cell(found.get((system, distance, subset))) for subset in subsets)])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _cell(row: Row | None) -> str:
    if row is None or row.value is None or row.lift is None:
        return (row.reason if row else "") or "–"
    if row.low is None or row.high is None:  # too few groups for an interval
        return f"{100 * row.value:.1f} {100 * row.lift:+.0f}"
    return f"{100 * row.value:.1f} ({100 * row.low:.0f}–{100 * row.high:.0f}) {100 * row.lift:+.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--esc50", type=Path, help="manifest of ESC-50 (columns path,label,group)")
    parser.add_argument("--recorded", action="store_true", help="recordings that install, instead of the others")
    parser.add_argument("--into", type=Path, default=Path("encoders"))
    parser.add_argument("--only", default="", help="extractors, separated by commas (default: all)")
    parser.add_argument("--size", default="1700", help="clips of synthetic words (default: 1700)")
    parser.add_argument("--permutations", type=int, default=1000)
    parser.add_argument("--bootstrap", type=int, default=300)
    parser.add_argument("--threads", type=int)
    args = parser.parse_args()
    chosen = set(args.only.split(",")) if args.only else {entry["name"] for entry in EXTRACTORS}
    config = {
        "extractors": [entry for entry in EXTRACTORS if entry["name"] in chosen],
        "metrics": ["P@1", "GSR"],
        "permutations": args.permutations,
        # Some recordings have two groups: the jackknife says that these are too few for an interval.
        **({"intervals": "jackknife"} if args.recorded else {"bootstrap": args.bootstrap}),
        "across_groups": True,
        "threads": args.threads,
        "steps": ["prepare", "embed", "evaluate"],
    }
    corpora: list[Any] = [{"spec": f"synth:{args.size}", "subsets": ["SYN-HW"]}, "voices"]
    if args.esc50:
        corpora.append({"spec": str(args.esc50), "name": "esc50"})
    runs = {args.into / "all": corpora}
    if args.recorded:
        runs = {args.into / "recorded": [{"spec": spec, "name": name} for name, spec in RECORDED.items()]}
    elif args.esc50:  # a run of its own, after the first: every vector is in the cache then
        runs[args.into / "animals"] = [{"spec": str(animals_of(args.esc50, args.into)), "name": "esc50"}]
    rows: list[Row] = []
    for into, corpus in runs.items():
        scores = run(RunConfig.make(config | {"corpus": corpus, "into": str(into)}), progress=True).scores
        rows += [row for row in scores if row.protocol == "across_groups"]
    tables = "\n".join(table(rows, metric) for metric in ("P@1", "GSR"))
    (args.into / "tables.md").write_text(tables, encoding="utf-8")
    print(tables)


if __name__ == "__main__":
    main()
