"""What a party was asked to take part in, and what it said: studies and consents, in the party's own file.

The daemon writes studies as they are announced; the owner says yes or no (`decision`); both look here.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tacit.daemon import DEFAULT_RUNS
from tacit.errors import SettingError, StudyError, WireError
from tacit.federation.agreement import Planned
from tacit.federation.look import late
from tacit.federation.member.approval import MOST_APPROVALS, Approval, valid_approvals
from tacit.federation.nats.offer import Offer
from tacit.methods import METHODS, Method
from tacit.privacy.filter import Charge
from tacit.privacy.guarantee import check_epsilon
from tacit.record import decode_record, encode_record
from tacit.storage import open_database
from tacit.studies.looks import look_methods
from tacit.studies.run import method_of
from tacit.studies.study import Study
from tacit.visible import shown

FILE = "studies.db"

_MOST_WORDS = 1000  # characters of why a study is over
_MOST_UNANSWERED = 200  # studies that nobody answered; older ones are forgotten, so that announcing fills no disk

_TABLES = """
CREATE TABLE IF NOT EXISTS study (
    digest TEXT PRIMARY KEY,
    name   TEXT NOT NULL,
    text   TEXT NOT NULL,
    seen   REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS consent (
    digest TEXT PRIMARY KEY,
    state  TEXT NOT NULL,
    runs   INTEGER NOT NULL,
    time   REAL NOT NULL,
    told   INTEGER NOT NULL,
    sum_group TEXT NOT NULL,
    until  REAL,
    offer  REAL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS approval (
    digest      TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    body        BLOB NOT NULL,
    seen        REAL NOT NULL,
    PRIMARY KEY (digest, fingerprint)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS replaced (
    digest      TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    body        BLOB NOT NULL,
    PRIMARY KEY (digest, fingerprint)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS ended (
    digest TEXT PRIMARY KEY,
    why    TEXT NOT NULL
) WITHOUT ROWID;
"""
_VERSION = 3
_UPGRADES = {1: "ALTER TABLE consent ADD COLUMN until REAL;", 2: "ALTER TABLE consent ADD COLUMN offer REAL;"}


@dataclass(frozen=True, kw_only=True)
class OfferedStudy:
    """A study that this party knows of.

    Attributes:
        digest, text, seen: the study, and when it was first seen.
        state: "in", "out", or "" where nothing was said yet.
        runs: how many runs are allowed.
        sum_group: the names and public keys of those with whom the owner agreed to be added up.
        decided: when the owner said so; of a consent that was given again, when it was given first.
        ended: why the study is over, as the coordinator says; empty while it is open.
        until: when the consent ends by itself, in seconds since 1970; None: it does not.
        approvals: who signed that it is good; whether they count is the policy's to say.
        replaced_by: approvals of studies that replace this one, by people whom the owner had accepted.
        offer: the epsilon that the owner offers a run, where that is less than the study asks.
    """

    digest: str
    text: str
    seen: float
    state: str
    runs: int
    sum_group: Mapping[str, bytes] = field(default_factory=dict)
    decided: float = 0.0
    ended: str = ""
    until: float | None = None
    offer: float | None = None
    approvals: tuple[Approval, ...] = ()
    replaced_by: tuple[Approval, ...] = ()

    @property
    def has_ended(self) -> bool:
        """Whether the time is over for which the owner said yes."""
        return self.until is not None and time.time() >= self.until

    def read(self) -> Study:
        """The study itself."""
        return Study.parse(self.text, source=f"study {self.digest[:12]}", known_methods=METHODS)

    def method(self) -> Method:
        """The study's method, with its settings."""
        return method_of(self.read())

    def planned(self) -> Planned:
        """What a guard holds runs against: the method, or that of each look which the study plans."""
        study = self.read()
        return self.method() if study.stop is None else look_methods(study)

    def why_closed(self) -> str:
        """Why nobody joins this study any more; empty if one may."""
        until = enrolment.until if (enrolment := self.read().enrolment) is not None else None
        if self.ended:
            return f"study {self.read().name!r} is over, and nobody joins any more. {self.ended}"
        if until is not None and late(until, time.time()):
            return f"parties could join study {self.read().name!r} until {until}, which is over"
        return ""

    def charge(self, runs: int = 1) -> Charge:
        """What so many runs cost, before it is known who takes part."""
        method = method_of(self.read(), epsilon=self.offer)
        return Charge(event=method.event(), delta=method.promise.settled_delta, count=runs)

    def offering(self, epsilon: float | None) -> OfferedStudy:
        """The same with an offer, if the study's method can take it; a `SettingError` if not."""
        if epsilon is None:
            return replace(self, offer=None)
        asked, method = self.read().privacy, self.method()
        check_epsilon(epsilon, "--epsilon")
        if asked is None or not method.takes_offers or self.read().stop is not None:
            raise SettingError(
                f"{method.name} of study {self.read().name!r} cannot take an epsilon that you choose; leave it out, or "
                f"take no part"
            )
        if not epsilon < asked.epsilon:
            raise SettingError(
                f"--epsilon {epsilon:g} is not less than the {asked.epsilon:g} that the study asks; leave it out"
            )
        return replace(self, offer=float(epsilon))


@dataclass(frozen=True, kw_only=True)
class Change:
    """A consent that was given or taken back, for the coordinator to know."""

    digest: str
    state: str


class Consents:
    """The file.

    Guarantees:
        A study is kept under the digest of what its text says, whatever the message that brought it claimed.
    """

    def __init__(self, path: Path) -> None:
        self._database = open_database(path, _TABLES, use="for studies", version=_VERSION, upgrades=_UPGRADES)

    def add(self, offer: Offer, approvers: Collection[str] = ()) -> bool:
        """Keep an announced study and who signed it; True if the study is new here.

        What an approval replaces is remembered for good if it is by one of the `approvers`, and only then: nobody else
        can fill the disk, or crowd out what they said.
        """
        try:
            study = Study.parse(offer.text, source="an announced study", known_methods=METHODS)
        except StudyError as error:
            raise WireError(f"an announced study cannot be read: {error}") from error
        if study.digest() != offer.digest:
            raise WireError(f"the announced study {offer.name!r} is not the one that its digest names")
        with self._database.transaction():  # whoever reads the study reads its approvals too
            is_new = self.keep(study)
            if offer.ended:
                ended = (offer.digest, shown(offer.ended)[:_MOST_WORDS])
                self._database.execute("DELETE FROM ended WHERE digest NOT IN (SELECT digest FROM study)")
                self._database.execute("INSERT OR REPLACE INTO ended VALUES (?, ?)", ended)
            signed = [one for one in offer.approvals[:MOST_APPROVALS] if one.study == offer.digest and one.is_signed]
            for approval in signed:
                self.keep_approval(approval)
            for approval in valid_approvals(signed, approvers):
                if approval.replaces:
                    row = (approval.replaces, approval.fingerprint, encode_record(approval))
                    self._database.execute("INSERT OR REPLACE INTO replaced VALUES (?, ?, ?)", row)
        return is_new

    def keep_approval(self, approval: Approval) -> None:
        """Keep who signed a study; of one study the newest few, so that announcing fills no disk."""
        digest = approval.study
        row = (digest, approval.fingerprint, encode_record(approval), time.time())
        self._database.execute("INSERT OR REPLACE INTO approval VALUES (?, ?, ?, ?)", row)
        self._database.execute(
            "DELETE FROM approval WHERE digest = ? AND fingerprint NOT IN "
            "(SELECT fingerprint FROM approval WHERE digest = ? ORDER BY seen DESC LIMIT ?)",
            (digest, digest, MOST_APPROVALS),
        )

    def keep(self, study: Study) -> bool:
        """Keep a study; True if it is new here."""
        row = (study.digest(), study.name, study.to_toml(), time.time())
        self._database.execute(
            "DELETE FROM study WHERE digest NOT IN (SELECT digest FROM consent) AND digest NOT IN "
            "(SELECT digest FROM study WHERE digest NOT IN (SELECT digest FROM consent) ORDER BY seen DESC LIMIT ?)",
            (_MOST_UNANSWERED,),
        )
        self._database.execute("DELETE FROM approval WHERE digest NOT IN (SELECT digest FROM study)")
        return self._database.execute("INSERT OR IGNORE INTO study VALUES (?, ?, ?, ?)", row).rowcount > 0

    def find(self, digest: str) -> OfferedStudy | None:
        """The study with this digest."""
        found = self._select("WHERE study.digest = ?", (digest,))
        return found[0] if found else None

    def seen_since(self, moment: float) -> list[tuple[str, float]]:
        """The names of studies that were first seen after a moment, and when, oldest first."""
        rows = self._database.execute("SELECT name, seen FROM study WHERE seen > ? ORDER BY seen", (moment,))
        return [(str(name), float(seen)) for name, seen in rows]

    def all(self) -> list[OfferedStudy]:
        """Every study, the newest first."""
        return self._select("ORDER BY seen DESC")

    def named(self, name: str) -> OfferedStudy:
        """The one study of this name, or whose digest starts so; an error that names what there is.

        Raises:
            SettingError: if there is none, or more than one: the newest need not be the one that was read.
        """
        # A digest first: a study may be called like the digest of another.
        found = [offered for offered in self.all() if len(name) >= 6 and offered.digest.startswith(name)]
        found = found or self._select("WHERE name = ? ORDER BY seen DESC", (name,))
        if not found:
            names = ", ".join(sorted({offered.read().name for offered in self.all()})) or "none"
            raise SettingError(f"no study {name!r} was announced to this party; known: {names}. Is it connected?")
        if len(found) > 1:
            digests = ", ".join(offered.digest for offered in found)
            raise SettingError(
                f"{name!r} are {len(found)} studies; name one by its digest, the newest first: {digests}"
            )
        return found[0]

    def decide(
        self,
        digest: str,
        state: str,
        runs: int = DEFAULT_RUNS,
        sum_group: Mapping[str, bytes] | None = None,
        until: float | None = None,
        offer: float | None = None,
    ) -> None:
        """Write down what the owner said, with whom it agreed to be added up, for how long, and an offer."""
        if runs < 1:
            raise SettingError(f"--runs {runs} must be at least 1")
        keys = json.dumps({name: key.hex() for name, key in (sum_group or {}).items()}, sort_keys=True)
        found = self.find(digest)
        since = found.decided if found is not None and found.state == state == "in" else time.time()
        row = (digest, state, runs, since, keys, until, offer)
        self._database.execute(
            "INSERT OR REPLACE INTO consent (digest, state, runs, time, told, sum_group, until, offer) "
            "VALUES (?, ?, ?, ?, 0, ?, ?, ?)",
            row,
        )

    def end_overdue(self) -> None:
        """Take back every consent whose time is over; `changes` then tells of it."""
        self._database.execute(
            "UPDATE consent SET state = 'out', told = 0 WHERE state = 'in' AND until <= ?", (time.time(),)
        )

    def changes(self, most: int) -> Sequence[Change]:
        """Some consents that the coordinator was not told of yet, withdrawn ones first; telling is up to the caller."""
        rows = self._database.execute(
            "SELECT digest, state FROM consent WHERE told = 0 ORDER BY state DESC LIMIT ?", (most,)
        ).fetchall()
        for digest, state in rows:
            self._database.execute("UPDATE consent SET told = 1 WHERE digest = ? AND state = ?", (digest, state))
        return [Change(digest=str(digest), state=str(state)) for digest, state in rows]

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def _select(self, where: str, values: tuple[str, ...] = ()) -> list[OfferedStudy]:
        rows = self._database.execute(
            "SELECT study.digest, text, seen, COALESCE(state, ''), COALESCE(runs, 0), COALESCE(sum_group, '{}'), "
            "until, COALESCE(consent.time, 0.0), COALESCE(why, ''), offer FROM study "
            "LEFT JOIN consent ON consent.digest = study.digest "
            f"LEFT JOIN ended ON ended.digest = study.digest {where}",
            values,
        )
        return [
            OfferedStudy(
                digest=d, text=text, seen=seen, state=state, runs=runs, sum_group=_keys(keys), until=until,
                decided=decided, ended=why, offer=offer, approvals=self._approvals("approval", d),
                replaced_by=self._approvals("replaced", d),
            )
            for d, text, seen, state, runs, keys, until, decided, why, offer in rows
        ]  # fmt: skip

    def _approvals(self, table: str, digest: str) -> tuple[Approval, ...]:
        rows = self._database.execute(f"SELECT body FROM {table} WHERE digest = ? ORDER BY fingerprint", (digest,))
        return tuple(decode_record(Approval, bytes(body)) for (body,) in rows)


def _keys(sum_group: str) -> dict[str, bytes]:
    return {name: bytes.fromhex(key) for name, key in json.loads(sum_group).items()}
