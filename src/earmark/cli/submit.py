"""Send results to a leaderboard: checked here with the board's own rules, shown, sent, and stored once.

SCORES is a score table (.csv, .jsonl, .json or .parquet, as `--out` writes it), the JSON of codecs, or a document that
holds its own cards. Partial results are welcome; rows of blind subsets, which the host alone measures, are refused.
What is sent is pending until a moderator accepts it; the permalink that is printed says what became of it. When the
connection breaks or the board restarts, the same submission is sent again and stored once. The token comes from --token
or EARMARK_TOKEN: the host gives you one, or the page /sign-up of a board whose registration is open.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from earmark.cli.board_access import add_access, client_of, split_page
from earmark.errors import InputError, UsageError
from earmark.places import locate
from earmark.scores import Scores
from earmark.tables import read_bytes
from earmark.wording import counted

if TYPE_CHECKING:
    from earmark.submissions import Document, Problem, SystemCard, Verdict
    from earmark.submissions.client import BoardClient

EXAMPLES = """examples:
  earmark submit scores.csv --to https://board.example.org --dry-run
  earmark submit scores.csv --to https://board.example.org --board vocsim --card card.yaml
  earmark submit run/scores.csv --to board.example.org --board vocsim --name "my model" --yes --json

a card (card.yaml), of which only the name is needed:
  name: my model
  family: Whisper
  licence: MIT
  parameters_m: 635
  command: earmark run --suite vocsim --extractor whisper:openai/whisper-large-v3
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("scores", metavar="SCORES", help="score table, codec JSON, or document")
    add_access(parser, required=False)
    parser.add_argument(
        "--board",
        default="",
        metavar="NAME",
        help="which board, where the file does not say it; the JSON of codecs says the name of its run",
    )
    parser.add_argument("--card", metavar="FILE", help="YAML or JSON: what is to be said of the system, or a list")
    parser.add_argument("--name", default="", metavar="NAME", help="name of the only system, in place of the file's")
    parser.add_argument("--dry-run", action="store_true", help="only check it: here, and with --to at the board too")
    parser.add_argument("--yes", action="store_true", help="send without asking")
    parser.add_argument("--again", action="store_true", help="send also what was sent before")
    parser.add_argument("--json", action="store_true", help="print the answer of the board as JSON")
    parser.add_argument("--quiet", action="store_true", help="no remarks")


def run(args: argparse.Namespace) -> int:
    from earmark.submissions import check
    from earmark.submissions.client import BoardRefusal

    if not args.to and not args.dry_run:
        raise UsageError("Say where to send it: --to URL, or --dry-run to check it only.")
    if args.to:
        args.to, args.board = split_page(args.to, args.board, quiet=args.quiet)
    client = client_of(args, needed=not args.dry_run) if args.to else None
    document = _document(args)
    verdict = check(document)
    if client is not None and any(problem.code == "unknown_metric" for problem in verdict.problems):
        own = client.definition(document.board)  # a host may have metrics of its own
        verdict = check(document, {document.board: own}) if own else verdict
    if not args.quiet:
        _print_summary(document, verdict, args.to)
    if verdict.problems:
        return _print_problems(verdict.problems if client else map(_with_remedy, verdict.problems))
    if args.dry_run:
        return _dry_run(client, document, verdict, args)
    assert client is not None
    receipt = None if args.again else client.find(document.board, document.digest)
    if receipt is not None:
        if not args.quiet:
            print("this was sent before; --again sends it once more", file=sys.stderr)
    else:
        _confirm(args)
        try:
            receipt = client.submit(document.to_bytes())
        except BoardRefusal as refusal:
            if not refusal.problems:
                raise
            return _print_problems(refusal.problems, "the board says: ")
        if not args.quiet:
            _print_notes(receipt.notes, verdict)
    print(json.dumps(receipt._asdict(), ensure_ascii=False) if args.json else f"{receipt.permalink} ({receipt.state})")
    return 0


# --- what is sent ---------------------------------------------------------------------------------


def _document(args: argparse.Namespace) -> Document:
    """The document that the file, the cards and the options make together."""
    from earmark.submissions import SystemCard, combined, read_document

    path = locate(args.scores)
    data = read_bytes(path, "score file")
    cards = _cards(locate(args.card)) if args.card else []
    if not args.name:
        return read_document(data, filename=path.name, board=args.board, cards=cards)
    if len(cards) <= 1:
        cards = [replace(card, name=args.name) for card in cards] or [SystemCard(args.name)]
    document = read_document(data, filename=path.name, board=args.board)
    systems = {row.system for row in document.scores}
    if len(systems) > 1 or len(cards) > 1:
        raise UsageError(f"--name names one system and {document.board} gets {len(systems)}; leave it out.")
    # The document with its only system under another name; what its own card says is kept.
    inside = [replace(card, name=args.name) for card in document.cards if card.name in systems]
    rows = tuple(replace(row, system=args.name) for row in document.scores)
    return replace(document, cards=(combined([*inside, *cards]),), scores=Scores(rows))


def _cards(path: Path) -> list[SystemCard]:
    """The cards in a YAML or JSON file: one, a list of them, or a list under `systems`."""
    import yaml

    from earmark.submissions import card_from

    try:
        plain = yaml.safe_load(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}); check the path.") from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        detail = (str(error).splitlines() or [""])[0]
        raise InputError(f"{path} is not readable as YAML ({detail}).") from error
    listed = plain["systems"] if isinstance(plain, dict) and set(plain) == {"systems"} else plain
    several = listed if isinstance(listed, list) else [listed]
    return [card_from(card, f"{path}, card {number}") for number, card in enumerate(several, start=1)]


# --- what is printed ------------------------------------------------------------------------------


def _print(line: str) -> None:
    """A line on stderr; what could steer a terminal is written out."""
    print(line if line.isprintable() else repr(line)[1:-1], file=sys.stderr)


def _print_summary(document: Document, verdict: Verdict, target: str | None) -> None:
    """What will be sent."""
    names = [card.name for card in document.cards]
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    rows = document.scores.rows
    metrics = sorted({row.metric for row in rows})
    subsets = counted(len({row.subset for row in rows}), "subset")
    _print(f"board    {document.board}{f' at {target}' if target else ''}")
    _print(f"systems  {', '.join(names[:5])}{more}")
    shown = ", ".join(metrics[:8]) + (" …" if len(metrics) > 8 else "")
    _print(f"scores   {counted(len(rows), 'row')}: {subsets} × {shown}")
    _print(f"size     {len(document.to_bytes()):,} bytes, SHA-256 {document.digest[:16]}…")
    for warning in verdict.warnings[:10]:
        _print(f"warning  {warning}")
    if len(verdict.warnings) > 10:
        _print(f"warning  and {len(verdict.warnings) - 10} more")


def _print_problems(problems: Iterable[Problem], who: str = "") -> int:
    """Everything that is wrong and where, and exit code 1."""
    for problem in problems:
        _print("earmark: " + f"{who}{problem.pointer} {problem.message}".strip())
    print("earmark: nothing was sent.", file=sys.stderr)
    return 1


def _with_remedy(problem: Problem) -> Problem:
    """A problem that was seen without a board, and which the board may not have."""
    if problem.code != "unknown_metric":
        return problem
    return problem._replace(message=f"{problem.message} If it is the board's own, check with --to ADDRESS.")


def _print_notes(notes: Iterable[str], verdict: Verdict) -> None:
    """What the board remarks and we did not know, such as subsets that are new to it."""
    for note in notes:
        if note not in verdict.warnings:
            _print(f"remark   {note}")


def _dry_run(client: BoardClient | None, document: Document, verdict: Verdict, args: argparse.Namespace) -> int:
    """Ask the board too, which may be of another version and have other rules."""
    from earmark.submissions.client import problems_in

    if client is not None:
        answer = client.validate(document.to_bytes())
        if answer["problems"]:
            return _print_problems(problems_in(answer["problems"]), "the board says: ")
        if not args.quiet:
            _print_notes(map(str, answer.get("warnings") or ()), verdict)
    if args.json:
        names = [card.name for card in document.cards]
        plain = {"board": document.board, "systems": names, "rows": len(document.scores), "digest": document.digest}
        print(json.dumps({**plain, "asked_board": client is not None}, ensure_ascii=False))
    else:
        extent = f"{counted(len(document.scores), 'row')} of {counted(len(document.cards), 'system')}"
        print(f"{extent}: checked {'here' if client is None else 'here and by the board'}, nothing sent")
    return 0


def _confirm(args: argparse.Namespace) -> None:
    """Ask on a terminal; elsewhere --yes has to be given."""
    if args.yes:
        return
    if not sys.stdin.isatty():
        raise UsageError("Nobody is there to confirm; add --yes to send it.")
    print("Send it? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise UsageError("Nothing was sent.")
