"""Whether a ledger is as it was written, and whether every release follows from its policy.

The chain, the cells that entries are looked up by, and the private parts are compared with what was sealed. Then every
release is computed anew from its exact scores: a figure that the policy did not let out would be found here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sqlalchemy import Connection, select

from earmark.blind import _tables
from earmark.blind._deciding import as_repeated, history_of, jobs_of, plain_row, scores_in
from earmark.blind.chain import Entry, broken_links, commit
from earmark.blind.policy import Policy, read_policy
from earmark.blind.release import release
from earmark.errors import EarmarkError

__all__ = ["problems"]


def problems(connection: Connection, last: tuple[int, str] | None = None) -> Iterator[str]:
    """What is wrong, one sentence each. `last` is the number and the hash of an entry that somebody wrote down."""
    rows = connection.execute(select(_tables.entries).order_by(_tables.entries.c.number)).all()
    found: list[Entry] = []
    for row in rows:
        try:
            found.append(_tables.entry_of(row))
        except ValueError:
            yield f"Entry {row.number} cannot be read: its text was changed."
    yield from broken_links(found)
    yield from _ending(found, last)
    by_number = {entry.number: entry for entry in found}
    for row in rows:
        entry = by_number.get(row.number)
        if entry is None:
            continue
        for name, filed in _tables.lookups_of(entry.kind, entry.body).items():
            if getattr(row, name) != filed:
                yield f"Entry {entry.number} is filed under another {name.replace('_', ' ')} than it says."
    yield from _departures(found)
    yield from _private_parts(connection, found)


def _departures(found: list[Entry]) -> Iterator[str]:
    """Releases that left unsigned, twice or before their time; and remarks about nothing."""
    by_number = {entry.number: entry for entry in found}
    policies = {entry.body["digest"]: entry.body["policy"] for entry in found if entry.kind == "policy"}
    remarks: dict[int, set[str]] = {}
    for entry in found:
        release = by_number.get(entry.about or 0)
        if entry.kind not in ("departure", "not_taken", "signature", "objection"):
            if entry.kind == "release" and entry.body["policy"] in policies:
                agreed = policies[entry.body["policy"]]["sign_off"]
                if entry.body["sign_off"] != agreed:
                    yield f"Entry {entry.number} says sign_off {entry.body['sign_off']} and its policy {agreed}."
            continue
        if release is None or release.number >= entry.number:
            yield f"Entry {entry.number} is about an entry that was not there before it."
            continue
        earlier = remarks.setdefault(release.number, set())
        if entry.kind == "departure" and release.kind == "release":
            if "departure" in earlier:
                yield f"Entry {release.number} left twice."
            if policies.get(release.body["policy"], {}).get("sign_off") != "after" and "signature" not in earlier:
                yield f"Entry {release.number} left without the owners' signature that its policy asks for."
            if entry.at < release.body["not_before"]:
                yield f"Entry {release.number} left before its time."
        earlier.add(entry.kind)


def _ending(found: list[Entry], last: tuple[int, str] | None) -> Iterator[str]:
    if last is None:
        return
    number, seal = last
    hashes = {entry.number: entry.hash for entry in found}
    if number not in hashes:
        ends = f"with entry {max(hashes)}" if hashes else "before its first entry"
        yield f"Entry {number} was there once and is missing: the ledger ends {ends}."
    elif not seal or not hashes[number].startswith(seal):
        yield f"Entry {number} has another hash than the one that was written down."


def _private_parts(connection: Connection, found: list[Entry]) -> Iterator[str]:
    parts = {row.number: row for row in connection.execute(select(_tables.private))}
    prints: dict[int, dict[str, str]] = {}
    for row in connection.execute(select(_tables.fingerprints)):
        prints.setdefault(row.number, {})[row.subset] = hashlib.sha256(row.data).hexdigest()
    releases = [entry for entry in found if entry.kind == "release"]
    for number in sorted(parts.keys() - {entry.number for entry in releases}):
        yield f"Private values lie under entry {number}, which is no release."
    whole: list[Entry] = []
    for entry in releases:
        part = parts.get(entry.number)
        if part is None:
            yield f"The exact values of entry {entry.number} are missing."
        elif commit(part.nonce, part.body) != entry.commitment:
            yield f"The exact values of entry {entry.number} were changed after they were written."
        elif json.loads(part.body)["fingerprints"] != prints.get(entry.number, {}):
            yield f"The fingerprints of entry {entry.number} were changed after they were written."
        else:
            whole.append(entry)
    private = {entry.number: json.loads(parts[entry.number].body) for entry in whole}
    if len(whole) == len(releases):
        yield from _replayed(found, private)


def _replayed(found: list[Entry], private: dict[int, dict[str, object]]) -> Iterator[str]:
    """Every release once more, from the exact values and the figures that stood before."""
    policies: dict[str, Policy] = {}
    told: dict[tuple[str, ...], list[Entry]] = {}
    jobs = {entry.body["job"]: entry.body for entry in found if entry.kind == "release"}
    for entry in found:
        body = entry.body
        if entry.kind == "policy":
            try:
                policy = read_policy(body["policy"])
            except EarmarkError as error:
                yield f"The policy of entry {entry.number} cannot be read: {error}"
                continue
            if policy.digest != body["digest"]:
                yield f"The policy of entry {entry.number} has another digest than it says."
            policies[body["digest"]] = policy
        if entry.kind != "release":
            continue
        if body["policy"] not in policies:
            yield f"Entry {entry.number} rests on a policy that the ledger does not hold."
            continue
        key = (body["board"], body["team"], body["entry"])
        earlier = told.setdefault(key, [])
        twin = private[entry.number]["twin"]
        scores = scores_in(private[entry.number if twin is None else int(str(twin))])
        again = release(policies[body["policy"]], scores, history_of(earlier), board=body["board"], entry=body["entry"])
        again = as_repeated(again, body["entry"], jobs.get(body["repeats"]))
        same_rows = _without_version(map(plain_row, again.rows)) == _without_version(body["rows"])
        if not same_rows or jobs_of(again, body["job"], earlier) != body["jobs"]:
            yield f"Entry {entry.number} released other figures than its policy lets out of its exact values."
        earlier.append(entry)


def _without_version(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows as any version of Earmark would have released them."""
    return [{name: cell for name, cell in row.items() if name != "version"} for row in rows]
