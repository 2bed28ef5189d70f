"""Look after the cache, where finished steps of runs lie: what it takes up, what may go, whether it is whole.

Removing an entry costs the time to compute it again, and nothing else. Weights of models lie elsewhere
(`earmark extractors fetch`), and run folders do not need the cache to be read. Nothing is removed while a run uses the
cache.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import TYPE_CHECKING

from earmark.cli import options
from earmark.errors import UsageError, absent
from earmark.evaluation.options import size_in_bytes
from earmark.runs import housekeeping
from earmark.runs.store import Cache, default_url
from earmark.tables import Column, Table
from earmark.wording import counted

if TYPE_CHECKING:
    from earmark.runs.housekeeping import Removal

EXAMPLES = """examples:
  earmark cache info
  earmark cache prune --older-than 30 --dry-run
  earmark cache prune --keep 10GB
  earmark cache prune --unused-by runs/paper,runs/thesis
  earmark cache prune --kind vectors --older-than 7
  earmark cache verify --remove
"""

_ACTIONS = {
    "info": "how much each kind of entry takes up, and how old it is",
    "prune": "remove old entries, or the oldest until the rest fits",
    "verify": "read every byte and say which entries are damaged",
}
_DAY = 24 * 3600


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, line in _ACTIONS.items():
        action = actions.add_parser(name, help=line, description=line[0].upper() + line[1:] + ".")
        if name == "prune":
            options.add(
                action,
                ("--older-than", float, "entries that were written more than so many DAYS ago"),
                ("--keep", "SIZE", "remove the oldest until the rest takes up at most SIZE, such as 10GB"),
                ("--unused-by", list, "entries that none of these run folders refers to"),
                ("--kind", list, "only these kinds, as `earmark cache info` names them (default: all)"),
                ("--dry-run", True, "say what would go, and remove nothing"),
            )
        if name == "verify":
            options.add(action, ("--remove", True, "remove what is damaged: it is computed again when it is needed"))
        options.add(
            action,
            ("--cache-dir", "URL", "the cache, any fsspec URL (default: EARMARK_CACHE or ~/.cache/earmark)"),
            ("--json", True, "print the result on stdout as JSON"),
            ("--quiet", True, "no progress bars and no remarks"),
        )


def run(args: argparse.Namespace) -> int:
    cache = Cache(args.cache_dir or default_url())
    if args.action == "info":
        return _info(cache, args)
    if args.action == "prune":
        return _prune(cache, args)
    return _verify(cache, args)


def _info(cache: Cache, args: argparse.Namespace) -> int:
    shares = housekeeping.shares(housekeeping.stored_in(cache))
    total = sum(share.size for share in shares)
    if args.json:
        print(json.dumps({"cache": cache.url, "bytes": total, "kinds": [share._asdict() for share in shares]}))
        return 0
    print(f"{cache.url}: {_size(total)} in {counted(sum(share.entries for share in shares), 'file')}")
    if shares:
        columns = [Column("kind", "left"), *map(Column, ("files", "size", "oldest", "newest"))]
        rows = [
            [share.kind, share.entries, _size(share.size), _age(share.oldest), _age(share.newest)] for share in shares
        ]
        print(f"\n{Table(columns, rows).to_text()}", end="")
    return 0


def _prune(cache: Cache, args: argparse.Namespace) -> int:
    if args.older_than is None and args.keep is None and not args.unused_by:
        raise UsageError(
            "Say what may go: --older-than DAYS, --keep SIZE or --unused-by RUN,...; --keep 0 removes everything."
        )
    if args.older_than is not None and not args.older_than >= 0:
        raise UsageError(f"--older-than is a number of days, not {args.older_than:g}.")
    kinds = {share.kind for share in housekeeping.shares(housekeeping.stored_in(cache))}
    unknown = [kind for kind in args.kind or () if kind not in kinds]
    if unknown:
        raise UsageError(absent(unknown[0], sorted(kinds), "kind", "The cache"))
    removal = housekeeping.prune(
        cache, older_than=args.older_than, keep=None if args.keep is None else size_in_bytes(args.keep, "--keep"),
        unused_by=args.unused_by or (), kinds=args.kind or (), dry=args.dry_run, progress=not args.quiet,
    )  # fmt: skip
    print(json.dumps(removal._asdict()) if args.json else _removed(removal, dry=args.dry_run))
    return 0


def _removed(removal: Removal, *, dry: bool) -> str:
    verb = "would be removed" if dry else "removed"
    return (
        f"{counted(removal.removed, 'file')} ({_size(removal.size)}) {verb}; "
        f"{removal.kept} ({_size(removal.kept_size)}) stay"
    )


def _verify(cache: Cache, args: argparse.Namespace) -> int:
    damaged = housekeeping.damaged_in(cache, remove=args.remove, progress=not args.quiet)
    if args.json:
        print(json.dumps([{"path": str(file.path), "reason": reason} for file, reason in damaged]))
    elif damaged:
        for file, reason in damaged:
            print(f"{file.path}: {reason}")
        outcome = "removed" if args.remove else "--remove removes what is damaged"
        print(f"{counted(len(damaged), 'damaged file')}; {outcome}", file=sys.stderr)
    else:
        print("every entry is whole")
    return 1 if damaged and not args.remove else 0


def _size(number: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} TB"


def _age(written: float) -> str:
    days = (time.time() - written) / _DAY
    return "today" if days < 1 else counted(int(days), "day")
