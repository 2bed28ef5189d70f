"""List the recipes of Fréchet and kernel audio distances, or tell everything about one of them. Nothing is loaded.

A recipe says what a tool does from a sound to a number: model, layer, rate, level, windows, what a point is, which
distance. Two numbers can be compared if they have the same recipe and the same number of clips.
"""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from earmark.cli import flags, options
from earmark.errors import UsageError
from earmark.evaluation.options import Options
from earmark.extractors.catalogue import CARDS, installed, weights_of
from earmark.generated.recipes import LEVELS, POINTS, Recipe, distances_of, find_recipe, recipes
from earmark.specs import parse_spec
from earmark.tables import aligned
from earmark.vectors import Vectors
from earmark.wording import counted

if TYPE_CHECKING:
    from earmark.generated.by_recipe import Sources

Read = Callable[[argparse.Namespace], tuple[Vectors, list[Vectors]]]

EXAMPLES = """examples:
  earmark fidelity recipes
  earmark fidelity recipes fadtk-clap-laion-audio
  earmark fidelity recipes --json
  earmark fidelity recordings/ synthesised/ --recipe earmark-mfcc
  earmark fidelity recordings/ gan/ diffusion/ --recipe earmark-mfcc       several generators, ranked

columns:
  point    what becomes a point of the distribution: every frame (or window), second or clip
  here     yes: it runs; weights: give its file with --extractor MODEL:FILE; hub: from the Hugging Face hub, or a folder
           of yours; fetch: `earmark extractors fetch NAME` gets them; install: its packages are missing; vectors: only
           vectors can be measured
"""

_HEADINGS = ("recipe", "model", "rate", "D", "point", "windows", "distances", "here")
_SHORT = {"frechet_distance": "FAD", "fad_inf": "FAD-inf", "kad": "KAD", "kernel_distance": "KID"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="tell everything about this one")
    options.add(
        parser,
        ("--json", True, "print them on stdout as a JSON array, with everything about them"),
        ("--quiet", True, "print names only"),
    )


def run(args: argparse.Namespace) -> int:
    chosen = [find_recipe(args.name)] if args.name else list(recipes().values())
    if args.json:
        facts = [{**asdict(recipe), "rate": _rate(recipe) or None, "here": here(recipe)} for recipe in chosen]
        sys.stdout.write(json.dumps(facts, indent=1) + "\n")
    elif args.quiet:
        sys.stdout.write("".join(f"{recipe.name}\n" for recipe in chosen))
    elif args.name:
        print(*described(chosen[0]), sep="\n")
    else:
        print(*aligned([_HEADINGS, *map(_line, chosen)]), sep="\n")
    return 0


def here(recipe: Recipe) -> str:
    """Whether a recipe runs on this machine, or what it needs."""
    if not recipe.model:
        return "vectors"
    card = CARDS[recipe.extractor]
    if not installed(card):
        return "install"
    return {"here": "yes", "none": "yes", "yours": "weights"}.get(weights_of(card), weights_of(card))


def _rate(recipe: Recipe) -> int:
    if not recipe.model:
        return 0
    return int(parse_spec(recipe.model).options.get("rate", CARDS[recipe.extractor].rate))


def _line(recipe: Recipe) -> tuple[str, ...]:
    rate = _rate(recipe)
    return (
        recipe.name, recipe.extractor or "-", f"{rate} Hz" if rate else "-", str(recipe.dimension), recipe.point,
        f"{recipe.window:g} s every {recipe.hop:g} s" if recipe.window else "its own" if recipe.model else "-",
        " ".join(_SHORT[metric] for metric in recipe.metrics), here(recipe),
    )  # fmt: skip


def described(recipe: Recipe) -> list[str]:
    """Everything of a recipe in words, in the order in which a sound goes through it."""
    rate = _rate(recipe)
    windows = (
        f"{recipe.window:g} s every {recipe.hop:g} s; what passes the end is {recipe.rest}" if recipe.window else ""
    )
    card = CARDS.get(recipe.extractor)
    needs = f"earmark[{card.extra}]" if card and card.extra else ""
    told = {
        "follows": recipe.follows,
        "model": recipe.model or "none of Earmark's: give its vectors",
        "weights": recipe.weights,
        "needs": needs,
        "here": here(recipe),
        "rate": f"{rate} Hz, one channel" if rate else "",
        "level": LEVELS[recipe.level],
        "longest": f"the first {recipe.longest:g} s of a clip" if recipe.longest else "",
        "windows": windows or "the model's own",
        "points": POINTS[recipe.point],
        "vectors": f"{recipe.dimension} numbers" + (f", kept as {recipe.rounding}" if recipe.rounding else ""),
        "distances": ", ".join(recipe.metrics),
        "notes": " ".join(recipe.notes),
        "paper": recipe.paper,
    }
    lines = [recipe.name]
    for name, text in told.items():
        if text:
            lines += textwrap.wrap(text, 110, initial_indent=f"  {name:10}", subsequent_indent=" " * 12)
    return lines


# --- measuring by one ---------------------------------------------------------------------------------------------


def run_recipe(args: argparse.Namespace) -> int:
    """`earmark fidelity REAL GENERATED --recipe NAME`."""
    from earmark.cli.fidelity import finish
    from earmark.generated.by_recipe import measure_points
    from earmark.report import fidelity as report
    from earmark.report.figures import save
    from earmark.report.figures.distances import distances_drawn

    how = flags.given(args, Options)
    source = _sources(args)
    name = str(args.generated[0])
    real, generated = source.points(args.real), source.points(name)
    scores = measure_points(
        real, generated, source.recipe, source.name, metrics=how.get("metrics"), intervals=how.get("intervals"),
        seed=how.get("seed", 0), bandwidth=args.bandwidth or "real", threads=args.threads, system=args.system or name,
        subset=args.subset or str(args.real), suite=args.suite, progress=not args.quiet,
    )  # fmt: skip
    title = f"{name} against {args.real} · {source.name}"
    sizes = f"{counted(len(generated.ids), 'generated clip')}, {len(real.ids)} real"
    options.deliver(args, scores, lambda _: report.to_text(scores, f"{title} · {sizes}", args.worst))
    writers: dict[str, Callable[[str], object]] = {
        "per_sample": lambda path: report.write_samples(scores, path),
        "per_real": lambda path: report.write_reals(scores, path),
        "figure": lambda path: save(distances_drawn(scores, title), path),
        "html": lambda path: report.write_page(scores, title, path),
    }
    return finish(args, scores, writers)


def read_points(args: argparse.Namespace, choices: dict[str, Any]) -> tuple[Read, dict[str, Any]]:
    """What reads several generated sets by a recipe, as vectors whose groups are clips, and what is asked of them."""
    source = _sources(args)

    def read(args: argparse.Namespace) -> tuple[Vectors, list[Vectors]]:
        found = [source.points(one) for one in (args.real, *args.generated)]
        for note in dict.fromkeys(note for points in found for note in points.notes):
            print(f"note: {note}", file=sys.stderr)
        made = [Vectors(None, points.values, groups=tuple(points.groups)) for points in found]
        return made[0], made[1:]

    suite = choices["suite"] or source.recipe.name
    metrics = source.recipe.metrics if choices.get("metrics") is None else choices["metrics"]
    return read, {**choices, "suite": suite, "metrics": distances_of(source.recipe, metrics), "correct": "none"}


def _sources(args: argparse.Namespace) -> Sources:
    from earmark.generated.by_recipe import Sources

    recipe = find_recipe(args.recipe)
    return Sources(recipe, args.extractor or "", args.device or "auto", args.threads, not args.quiet, args.key)


def refuse_others(args: argparse.Namespace) -> None:
    """A recipe says it all: what would change it is refused, not passed over."""
    for flag in ("pool", "correct", "distance", "bootstrap", "dimensions"):
        if getattr(args, flag):
            raise UsageError(f"--{flag} is for metrics of neighbourhoods, and --recipe decides itself: leave one out.")
    if args.intervals == "bootstrap":
        raise UsageError("--intervals bootstrap is for metrics of neighbourhoods: give jackknife or none.")
