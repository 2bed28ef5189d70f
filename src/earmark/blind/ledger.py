"""The host's book: every release with what it rests on, who signed it, who objected, and when it left.

    decide --> release --> signature, where the policy asks for one --> slot --> due --> board --> departure
           --> refusal --------------------------------------------------------> due --> board --> departure
               objection ------------------------------------------------------> due --> board --> departure

Entries are only ever added, each in one transaction without other writers. Nothing else is stored: what is due is read
off the entries. A process that is killed leaves a whole entry or none, and the same job decided again gives the same
decision. Exact values lie in a table of their own, which no public entry reads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from sqlalchemy import Connection, exists, select

from earmark.blind import _tables
from earmark.blind._deciding import (
    Submitted,
    exact_scores,
    hearing_of,
    judge,
    refusal_of,
    slot_after,
    time_text,
    unfit_card,
)
from earmark.blind._tables import append, entries, entry_of, read_entries
from earmark.blind.chain import Entry
from earmark.blind.policy import Policy
from earmark.databases import Part, missing_file, open_database, reading
from earmark.errors import InputError, UsageError, quoted
from earmark.scores import Row, Scores
from earmark.submissions import Document, SystemCard, card_from
from earmark.submissions.texts import fault_of

__all__ = ["Decision", "Ledger"]

_WORDS = 2000
ENDS = ("departure", "not_taken")
"""Entries after which the board is told no more of what they are about."""
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Decision:
    """What is to be told to the board about a job, and when.

    Args:
        number: The entry of the ledger.
        job: The job on the board.
        kind: `release`, `refusal` or `withdrawal`.
        message: What the participant is told: fixed words, with names and numbers that are public.
        not_before: The earliest time at which it may leave.
        public: The entry, as the board shows it.
        document: The submission that the board stores; None unless it is a release.
        waiting: What the participant is told until then. Nothing in it depends on what was measured.
        board: The board that it is for.
    """

    number: int
    job: str
    kind: str
    message: str
    not_before: datetime
    public: Mapping[str, Any]
    document: Mapping[str, Any] | None = None
    waiting: str = ""
    board: str = ""


class Ledger(Part):
    """The book at a URL: `sqlite:///ledger.sqlite3`, a plain path, or `postgresql://user@host/name`.

    Args:
        url: Where it lies. A file is made where there is none, readable by its owner alone.
        create: False: a ledger that is not there is an error.
    """

    def __init__(self, url: str, *, create: bool = True) -> None:
        missing = None if create else missing_file(url)
        if missing is not None:
            raise InputError(f"There is no ledger at {missing}; name the file that the worker writes.")
        self.engine = open_database(url, _tables.upgrade if create else _tables.require_tables)

    def close(self) -> None:
        self.engine.dispose()

    # --- deciding ----------------------------------------------------------------------------------------------------

    def admit(
        self, *, job: str, board: str, team: str, entry: str, distance: str, correction: str, policy: Policy,
        now: datetime | None = None, card: SystemCard | Mapping[str, Any] | None = None, resumed: bool = False,
    ) -> str:  # fmt: skip
        """Ask before a model hears anything: why nothing of its job could be released; empty when it may be.

        That the recordings are heard is then written down, and counted whatever becomes of it. `resumed` says that the
        same hearing goes on after the worker was stopped.
        """
        submitted = Submitted(job, board, team, entry, "", distance, correction)

        def work(connection: Connection) -> str:
            if self._of_job(connection, job):
                return ""
            refused = refusal_of(connection, submitted, policy, _utc(now))
            refused = refused or ("" if card is None else unfit_card(policy, submitted, card))
            return refused or ("" if resumed else hearing_of(connection, submitted, policy, _utc(now)))

        return self._write(work)

    def decide(
        self, *, job: str, board: str, team: str, entry: str, digest: str, exact: Scores,
        fingerprints: Mapping[str, bytes], policy: Policy, now: datetime | None = None,
        card: SystemCard | Mapping[str, Any] | None = None,
    ) -> Decision:  # fmt: skip
        """Decide once what leaves of a measured job, and write it down; the same job again gives the same decision.

        Raises:
            InputError: A figure of the policy was not measured, a set has no fingerprint, or the job was decided for
                another package. Nothing is written then.
        """
        if lacking := sorted(policy.sets.keys() - fingerprints.keys()):
            raise InputError(f"The blind set {lacking[0]} has no fingerprint of this model; nothing is released.")
        submitted = Submitted.of(job, board, team, entry, digest, exact, policy)
        described = card if isinstance(card, SystemCard) else card_from({**(card or {}), "name": entry})

        def work(connection: Connection) -> Decision:
            known = self._of_job(connection, job)
            if known is None:
                known = judge(connection, submitted, exact, fingerprints, policy, _utc(now), described)
            elif known.body["package"] != digest:
                raise InputError(
                    f"The job {job} was decided for another package; every job has a name of its own, and one package."
                )
            return _decision(connection, known)

        return self._write(work)

    def decision(self, job: str) -> Decision | None:
        """What was decided of a job; None where nothing was."""

        def look(connection: Connection) -> Decision | None:
            known = self._of_job(connection, job)
            return None if known is None else _decision(connection, known)

        return self._read(look)

    # --- what leaves -------------------------------------------------------------------------------------------------

    def due(self, now: datetime | None = None, board: str | None = None) -> list[Decision]:
        """What the board is to be told now: not told yet, its slot reached, signed where the policy asks for it.

        With `board`, what is for that board alone: figures are nobody else's. Withdrawals come first.
        """
        objection, ended = _about("objection"), _about(*ENDS)
        in_time = entries.c.not_before <= time_text(_utc(now))

        def look(connection: Connection) -> list[Decision]:
            found = read_entries(
                connection,
                entries.c.kind.in_(("release", "refusal", "objection")),
                ~ended,
                (entries.c.kind != "release") | (~objection & in_time),
            )
            signatures = select(entries.c.about, entries.c.at).where(entries.c.kind == "signature")
            signed = {row.about: row.at for row in connection.execute(signatures.order_by(entries.c.number.desc()))}
            waiting = sorted(found, key=lambda entry: (entry.kind != "objection", entry.number))  # the owners first
            decisions = [
                _decision(connection, entry)
                for entry in waiting
                if entry.kind != "release" or not _signed_first(entry.body) or _in_slot(entry, signed, _utc(now))
            ]
            return [decision for decision in decisions if board is None or decision.board == board]

        return self._read(look)

    def adopt(self, policy: Policy, now: datetime | None = None) -> str:
        """Write down that a policy holds from now on; or say why it does not yet.

        Owners who sign every release sign a change of the policy, too: else a host could take their say away.
        """

        def work(connection: Connection) -> str:
            known = list(read_entries(connection, entries.c.kind == "policy"))
            if not known or known[-1].body["digest"] != policy.digest:
                said = {"digest": policy.digest, "policy": policy.plain}
                known.append(append(connection, time_text(_utc(now)), "policy", said))
            signed = set(connection.scalars(select(entries.c.about).where(entries.c.kind == "signature")))
            agreed = {known[0].body["digest"], *(one.body["digest"] for one in known if one.number in signed)}
            asked = any(one.body["policy"]["sign_off"] == "before" for one in known if one.body["digest"] in agreed)
            if policy.digest in agreed or not asked:
                return ""
            return (
                f"The policy changed, and the owners sign every release: they sign entry {known[-1].number} first "
                "(`earmark blind audit` shows it, `earmark blind sign` signs)."
            )

        return self._write(work)

    def acknowledge(
        self, job: str, kind: str = "release", *, now: datetime | None = None, taken: bool = True, words: str = ""
    ) -> None:  # fmt: skip
        """Write down that the board has what `due` gave for a job; again, it changes nothing.

        `taken` is False where the board will not have it, now or later, with its words: then it is not due any more,
        and it has not left. The withdrawal of a release that has left stays due until the board has it, whatever the
        board says.
        """
        kinds = {"release": "release", "refusal": "refusal", "withdrawal": "objection"}
        if kind not in kinds:
            raise UsageError(f"A release, a refusal or a withdrawal is acknowledged, not {quoted(kind)}.")

        def work(connection: Connection) -> None:
            known = self._of_job(connection, job)
            told = known if kind != "withdrawal" or known is None else self._objection(connection, known.number)
            if known is None or told is None or told.kind != kinds[kind]:
                raise InputError(f"The ledger has no {kind} of the job {quoted(job)}; nothing can have left.")
            left = (entries.c.about == known.number) & (entries.c.kind == "departure")
            if kind == "withdrawal" and not taken and connection.scalar(select(entries.c.number).where(left)):
                return
            ended = (entries.c.about == told.number) & entries.c.kind.in_(ENDS)
            if connection.scalar(select(entries.c.number).where(ended)) is None:
                body = {"job": job, "what": kind} | ({} if taken else {"words": " ".join(words.split())[:_WORDS]})
                append(connection, time_text(_utc(now)), ENDS[not taken], body, about=told.number)

        self._write(work)

    # --- the owners --------------------------------------------------------------------------------------------------

    def sign(self, number: int, by: str, words: str = "", *, now: datetime | None = None) -> Entry:
        """An owner's signature under a release or a policy; what waits for one may then leave."""

        def work(connection: Connection) -> Entry:
            signed = self._numbered(connection, number)
            if signed.kind not in ("release", "policy"):
                raise InputError(f"Entry {number} is a {signed.kind}; releases and policies are signed.")
            if self._objection(connection, number) is not None:
                raise InputError(f"Entry {number} was objected to; a withdrawn release is not signed.")
            said = _said(by, words, False)
            same = (entries.c.kind == "signature") & (entries.c.about == number)
            for known in read_entries(connection, same):
                if known.body == said:  # signed already, in the same words
                    return known
            return append(connection, time_text(_utc(now)), "signature", said, about=number)

        return self._write(work)

    def object_to(self, number: int, by: str, words: str, *, now: datetime | None = None) -> list[Entry]:
        """An owner's objection: the release is withdrawn, or never leaves.

        Later releases under the same entry may repeat its figures: they are withdrawn with it, and nothing more is
        released under that entry.
        """
        said = _said(by, words, True)

        def work(connection: Connection) -> list[Entry]:
            first = self._numbered(connection, number)
            if first.kind != "release":
                raise InputError(f"Entry {number} is a {first.kind}; an objection is made to a release.")
            same = [entries.c[name] == first.body[name] for name in ("board", "team", "entry")]
            later = read_entries(connection, entries.c.kind == "release", entries.c.number >= number, *same)
            standing = [entry.number for entry in later if self._objection(connection, entry.number) is None]
            return [append(connection, time_text(_utc(now)), "objection", said, about=one) for one in standing]

        return self._write(work)

    # --- reading -----------------------------------------------------------------------------------------------------

    def entries(self) -> list[Entry]:
        """Every entry, in order. None holds an exact value."""
        return self._read(lambda connection: list(read_entries(connection)))

    def public_entry(self, number: int) -> dict[str, Any]:
        """One entry as anybody may see it, with the signatures and objections that it has."""
        return self._read(lambda connection: _public(connection, self._numbered(connection, number)))

    def exact(self, number: int) -> Scores:
        """The exact scores of a release: for the host alone."""
        found = self._read(lambda connection: exact_scores(connection, number))
        if found is None:
            raise InputError(f"Entry {number} is no release: it rests on no scores.")
        return found

    def verify(self, last: tuple[int, str] | None = None) -> list[str]:
        """What is wrong with the ledger, one sentence each: the chain, the private values, and every release anew."""
        from earmark.blind.verification import problems

        return self._read(lambda connection: list(problems(connection, last)))

    def _read(self, look: Callable[[Connection], _Result]) -> _Result:
        with reading(self.engine) as connection:
            return look(connection)

    @staticmethod
    def _of_job(connection: Connection, job: str) -> Entry | None:
        return next(read_entries(connection, entries.c.job == job), None)

    @staticmethod
    def _numbered(connection: Connection, number: int) -> Entry:
        row = connection.execute(select(entries).where(entries.c.number == number)).one_or_none()
        if row is None:
            raise InputError(f"The ledger has no entry {number}; `earmark blind audit` lists them.")
        return entry_of(row)

    @staticmethod
    def _objection(connection: Connection, number: int) -> Entry | None:
        return next(read_entries(connection, entries.c.kind == "objection", entries.c.about == number), None)


def _in_slot(entry: Entry, signed: Mapping[int | None, str], now: datetime) -> bool:
    """Whether a release was signed, and a slot has come since: when somebody signs tells nothing either."""
    at = signed.get(entry.number)
    minutes = int(entry.body.get("slot_minutes", 1))
    return at is not None and slot_after(datetime.fromisoformat(at), minutes) <= now


def _about(*kinds: str) -> Any:
    other = entries.alias(kinds[0])
    return exists().where(other.c.about == entries.c.number, other.c.kind.in_(kinds))


def _public(connection: Connection, entry: Entry) -> dict[str, Any]:
    remarks = read_entries(connection, entries.c.about == entry.number, entries.c.kind.in_(("signature", "objection")))
    return entry.plain | {"remarks": [remark.plain for remark in remarks]}


def _decision(connection: Connection, entry: Entry) -> Decision:
    """What an entry asks to be told to the board."""
    if entry.kind == "objection":
        release = Ledger._numbered(connection, entry.about or 0)
        message = "The owners of the recordings object to this release, and its figures are withdrawn."
        when = datetime.fromisoformat(entry.at)
        body = release.body
        return Decision(entry.number, body["job"], "withdrawal", message, when, entry.plain, board=body["board"])
    body = entry.body
    when = datetime.fromisoformat(body["not_before"])
    document, waiting = None, ""
    if entry.kind == "release":
        asked = "once the owners of the recordings have signed them, not before" if _signed_first(body) else "at"
        waiting = f"The figures leave {asked} {when:%Y-%m-%d %H:%M} UTC."
        scores = Scores(tuple(Row(**cells) for cells in body["rows"]))
        card = card_from(body["card"])
        document = Document(body["board"], (card,), scores, provenance="blind").plain
    public = _public(connection, entry)
    return Decision(
        entry.number, body["job"], entry.kind, body["message"], when, public, document, waiting, body["board"]
    )


def _signed_first(body: Mapping[str, Any]) -> bool:
    """Whether a release waits for a signature: whatever is not plainly `after` does."""
    return bool(body["sign_off"] != "after")


def _said(by: str, words: str, needed: bool) -> dict[str, str]:
    by, words = by.strip(), words.strip()
    if not by:
        raise UsageError("Whoever signs or objects gives a name: --by NAME.")
    if needed and not words:
        raise UsageError("An objection says why, in the owners' own words: --words TEXT.")
    for what, text, most in (("The name", by, 200), ("The text", words, _WORDS)):
        if fault := fault_of(text, most, lines=what == "The text"):
            raise UsageError(f"{what} {fault}.")
    return {"by": by, "words": words}


def _utc(now: datetime | None) -> datetime:
    now = datetime.now(UTC) if now is None else now
    if now.tzinfo is None:
        raise UsageError("A time without a time zone was given; give one in UTC.")
    return now.astimezone(UTC)
