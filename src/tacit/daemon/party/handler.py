"""What a party does with the coordinator's letters: it answers what its owner consented to, and nothing else.

A run begins with its sum group. Then all of this must hold, or the run is refused and the refusal logged:
1. The owner opted into a study with exactly this digest, has not opted out since, and the time is not over for which
   it did; this holds for every question of a run, too. Where the policy names approvers, one of them signed it, and
   none of them signed another version in its place.
2. The owner accepted everybody in the group, and each size in it is signed by the party whose it is.
3. The guard agrees: the party is in the group as it is, the study allows such a group, no more runs begin than the
   owner agreed to, and the budget has room for the whole run, which is then reserved. A study without a quorum allows
   one group: all that it names, or all whom the owner accepted.
A question must then be the next one of such a run, and nothing in it decides noise, bounds or cost: the guard derives
the plan from the study. It adds the party's own policy, with no more budget than the runs that were consented to cost,
and signs what it seals, for a sum within exactly that group.
"""

from __future__ import annotations

import math
import sqlite3
from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from tacit import wire
from tacit.daemon.membership import note_changes
from tacit.daemon.party.anchor import AnchoredLedger
from tacit.daemon.party.approval_check import check_approved
from tacit.daemon.party.consent import FILE as CONSENT_FILE
from tacit.daemon.party.consent import Consents, OfferedStudy
from tacit.daemon.party.notice import Notices
from tacit.daemon.party.question_check import accepted_keys, check_sizes
from tacit.daemon.party.settings import FILE, SPILL, PartyFile
from tacit.data.spill import sweep
from tacit.errors import (
    BudgetExceeded,
    DataError,
    NotAgreed,
    OptedOut,
    PolicyRefusal,
    Refused,
    TacitError,
    UserError,
    WireError,
)
from tacit.federation.agreement import Agreement
from tacit.federation.group import SumGroup, size_statement
from tacit.federation.guard import Guard
from tacit.federation.look import late
from tacit.federation.member.folder import MemberFolder
from tacit.federation.member.known_members import KnownMembers
from tacit.federation.member.member_list import MemberList
from tacit.federation.message import Question, question_digest
from tacit.federation.nats.journal import Journal
from tacit.federation.nats.kind import (
    ABANDON,
    ANSWER,
    ASK,
    BEGIN,
    CONSENT,
    HELLO,
    MEMBERS,
    MOST_CHANGES,
    SPENT,
    STUDY,
    LetterReply,
    refusal,
)
from tacit.federation.nats.letter import Letter
from tacit.federation.nats.offer import Offer
from tacit.federation.policy import Policy
from tacit.federation.seat import Bond
from tacit.privacy.filter import least_limit
from tacit.rand import Rng
from tacit.storage import make_private_folder
from tacit.studies.looks import looks_agreed
from tacit.studies.study import Study
from tacit.wire import Value

_MOST_GIVEN_UP = 1024  # runs that were given up and are remembered: letters are fresh for two minutes
_ROUNDING = 1 + 2e-3  # noise is found to 1 in 1,000, and the group decides in how many releases a run spends it


@dataclass(frozen=True, kw_only=True)
class _Open:
    """A study under way: what was consented to, the guard that answers for it, and what it was made of."""

    offered: OfferedStudy
    study: Study
    agreement: Agreement
    guard: Guard
    stamp: tuple[object, ...]


class PartyHandler:
    """What a party does with letters that are believed. All of it runs in one thread."""

    streams = (ASK, STUDY, MEMBERS)

    def __init__(self, folder: MemberFolder, journal: Journal) -> None:
        self._folder = folder
        self._journal = journal
        make_private_folder(folder.path)
        sweep(folder.path / SPILL)  # what a process that was killed has left
        self._consents = Consents(folder.path / CONSENT_FILE)
        self._anchored = AnchoredLedger(folder.path, folder.identity.name)
        self._anchored.anchor()
        self._ledger, self._log = self._anchored.ledger, self._anchored.log
        self._account = self._ledger.sole_account(folder.identity.name)
        self._known_members = KnownMembers(folder.path)
        self._notices = Notices(folder.path)
        self._open: dict[str, _Open] = {}
        self._given_up: OrderedDict[str, float] = OrderedDict()  # run -> the time of the letter that gave it up
        self._file: tuple[object, PartyFile] | None = None
        self._party_file()  # whatever is wrong with it is told at the start

    def close(self) -> None:
        """Close the files."""
        self._consents.close()
        self._anchored.close()
        self._notices.close()

    def arrives(self, letter: Letter) -> None:
        """Nothing is so urgent."""

    def news(self) -> Mapping[str, bytes]:
        """Consents that were given or taken back since the last look; what does not fit into a letter waits."""
        self._tell_owner()
        self._consents.end_overdue()
        changes = self._consents.changes(MOST_CHANGES)
        for change in changes:
            if change.state == "out":  # else a study under way goes on, with what it keeps of its runs
                self._open.pop(change.digest, None)
                self._ledger.abandon_all(self._account, change.digest)
            self._journal.note(f"opted-{change.state}", study=change.digest)
        if not changes:
            return {}
        return {CONSENT: wire.encode([{"study": change.digest, "state": change.state} for change in changes])}

    def _tell_owner(self) -> None:
        """Note what the owner wants to be told of."""
        with suppress(UserError, sqlite3.Error):  # a party.toml that cannot be read is told elsewhere
            budget = self._party_file().policy.budget
            for text in self._notices.look(self._consents, self._log, self._ledger, budget):
                self._journal.note("notice", text=text)

    def handle(self, letter: Letter) -> LetterReply | None:
        """What to say to a letter. A reason that might tell of a record stays here."""
        try:
            match letter.kind:
                case "study":
                    self._keep_study(letter)
                case "members":
                    self._meet(letter)
                case "hello":
                    return self._card(letter)
                case "begin":
                    return self._begin(letter)
                case "abandon":
                    return self._abandon(letter)
                case "spent":
                    return self._spent(letter)
                case "ask":
                    return LetterReply(kind=ANSWER, body=self._answer(letter))
        except Refused as refused:
            self._journal.note("refused", kind=letter.kind, study=letter.study, why=str(refused))
            return refusal(type(refused).__name__, str(refused))
        except DataError as error:
            self._journal.note("table-does-not-fit", study=letter.study, why=str(error))
            return refusal("DataError", "its table lacks columns of the study, or cannot be read; its owner sees why")
        except (sqlite3.Error, OSError) as error:
            self._journal.note("cannot-write", kind=letter.kind, error=type(error).__name__, why=str(error))
            return refusal("StorageError", "it cannot write its ledger, so nothing leaves; its owner must make room")
        except Exception as error:  # what it says might depend on a record
            told = str(error) if isinstance(error, TacitError) else None
            self._journal.note("failed", kind=letter.kind, study=letter.study, error=type(error).__name__, why=told)
            return refusal("Failed", "it could not answer; its owner sees why in the log")
        return None

    # --- the kinds of letters ----------------------------------------------------------------------------------------

    def _keep_study(self, letter: Letter) -> None:
        offer = Offer.decode(letter.body)
        if self._consents.add(offer, self._approvers()):
            self._journal.note("study-announced", study=offer.digest, name=offer.name)

    def _meet(self, letter: Letter) -> None:
        changes = self._known_members.follow(MemberList.decode(letter.body))
        note_changes(changes, self._journal, self._log)

    def _card(self, letter: Letter) -> LetterReply:
        opened = self._opened(letter.study, look_again=True)
        guard = opened.guard
        until = None if opened.agreement.looks is None else opened.agreement.looks.until
        if until is not None and late(until, opened.offered.decided):
            raise NotAgreed(f"its owner opted in after {until}, the last day on which parties may join")
        with _in_neutral_words(self._journal):
            guard.policy.check_question(guard.name, opened.agreement.method.name, guard.table)
            guard.policy.check_sizes(guard.name, opened.agreement.method.name, opened.agreement.method.sizes_told)
        self._journal.note("ready", study=letter.study, name=opened.study.name)
        accepts: list[Value] = [*sorted(opened.offered.sum_group)]
        method = opened.agreement.method
        n_told = 0 if method.sizes_told == "none" else guard.table.n_units(method.weighted_unit)
        statement = size_statement(opened.offered.digest, guard.name, n_told, guard.offer)
        card: dict[str, Value] = {
            "n_records": n_told,
            "schema": guard.table.schema.digest(),
            "accepts": accepts,
            "signature": self._folder.identity.sign(statement),
            **({} if guard.offer is None else {"offer": guard.offer}),
        }
        body = wire.encode(card)
        return LetterReply(kind=HELLO, body=body)

    def _spent(self, letter: Letter) -> LetterReply:
        opened = self._opened(letter.study)
        match wire.decode(letter.body):
            case {"study": str(study), "delta": float(delta)} if study == opened.study.name and 0 <= delta < 1:
                epsilon = self._ledger.epsilon(self._account, delta=delta, study=study)
                return LetterReply(kind=SPENT, body=wire.encode({"epsilon": float(epsilon)}))
        raise PolicyRefusal("it tells what it spent in studies that it opted into, and no other")

    def _begin(self, letter: Letter) -> LetterReply:
        """Agree to a run, once its group is believed.

        The network may hold this letter back until the run was given up. It would then cost what nobody gives back.
        After a restart of the daemon that is forgotten, while the letter may be fresh for two minutes.
        """
        if letter.time <= self._given_up.get(letter.run, -math.inf):
            late = NotAgreed(f"run {letter.run!r} was given up after this letter was written")
            raise self._logged(late, study=letter.study, run=letter.run)
        opened = self._opened(letter.study, look_again=True)
        try:
            group = SumGroup.decode(letter.body)
            check_sizes(group, opened.offered.digest, self._keys(group, opened))
        except (Refused, WireError) as refusal:
            raise self._logged(refusal, study=letter.study, run=letter.run) from refusal
        with _in_neutral_words(self._journal):
            opened.guard.begin(letter.run, opened.agreement, group)
        self._anchored.anchor()
        self._journal.note("began", study=opened.study.name, run=letter.run, parties=group.n_parties)
        return LetterReply(kind=BEGIN, body=b"")

    def _abandon(self, letter: Letter) -> LetterReply:
        """Give back what a run reserved, if nothing was answered in it; the study need not be open for that."""
        self._given_up[letter.run] = max(letter.time, self._given_up.get(letter.run, -math.inf))
        if len(self._given_up) > _MOST_GIVEN_UP:
            self._given_up.popitem(last=False)
        for opened in self._open.values():
            opened.guard.abandon(letter.run)
        with self._ledger.transaction():
            if self._ledger.abandon(self._account, letter.run):
                self._log.append("abandoned", run=letter.run)
        self._journal.note("abandoned", study=letter.study, run=letter.run)
        return LetterReply(kind=ABANDON, body=b"")

    def _answer(self, letter: Letter) -> bytes:
        digest = question_digest(letter.body)
        try:
            opened = self._opened(letter.study)
            question = Question.decode(letter.body)
            if question.run != letter.run:
                raise NotAgreed(f"the question is of run {question.run!r}, its letter of {letter.run!r}")
            keys = self._keys(opened.guard.group_of(letter.run), opened)
        except (Refused, WireError) as refusal:
            raise self._logged(refusal, question=digest, study=letter.study) from refusal
        nodes = tuple(self._known_members.successor(node).letter_key for node in self._folder.pinned.center)
        bond = Bond(sum_group=keys, sign=self._folder.identity.sign, nodes=nodes)
        with _in_neutral_words(self._journal):
            answer = opened.guard.answer(letter.body, opened.agreement, self._seal_keys(), bond)
        self._anchored.anchor()  # before it leaves
        self._journal.note(
            "answered", study=opened.study.name, run=question.run, step=question.step, round=letter.round,
            question=digest, bytes=len(answer),
        )  # fmt: skip
        return answer

    def _keys(self, group: SumGroup, opened: _Open) -> dict[str, bytes]:
        """The keys of all with whom an answer may be added up, if the owner accepted all and none was revoked since."""
        own, known = self._folder.member, self._known_members
        if gone := known.gone() & set(group.names):
            raise NotAgreed(f"the run would add it up with {min(gone)!r}, who was revoked; run without it")
        return accepted_keys(group, {**known.current(opened.offered.sum_group), own.name: own.letter_key})

    def _seal_keys(self) -> tuple[bytes, ...]:
        """The center's keys: those that were pinned, or that these signed since; none if a node was revoked."""
        nodes, gone = self._folder.pinned.center, self._known_members.gone()
        if any(node.name in gone for node in nodes):
            return ()
        return tuple(self._known_members.successor(node).seal_key for node in nodes)

    def _logged(self, refusal: Refused | WireError, **facts: str) -> Refused:
        """The refusal, written down; of a message that is none of ours, one that says so."""
        self._log.append("refused", why=str(refusal), **facts)
        return refusal if isinstance(refusal, Refused) else NotAgreed(str(refusal))

    # --- studies under way -------------------------------------------------------------------------------------------

    def _opened(self, digest: str, *, look_again: bool = False) -> _Open:
        """The study with this digest, if the owner opted into it; its table is read again if the file has changed."""
        offered = self._consents.find(digest)
        if offered is None or not offered.state:
            raise PolicyRefusal(
                f"its owner has not opted into a study with digest {digest[:12]}; a changed study is another study"
            )
        if offered.state != "in":
            raise OptedOut(f"its owner opted out of study {offered.read().name!r}")
        if offered.has_ended:
            raise OptedOut(f"the time is over for which its owner opted into study {offered.read().name!r}")
        file = self._party_file()
        check_approved(offered, file.policy, new_run=look_again)
        opened = self._open.get(digest)
        stamp = (file.data.stamp(), file, offered.runs, offered.sum_group, offered.offer)
        if opened is None or (look_again and opened.stamp[:1] != stamp[:1]) or opened.stamp[1:] != stamp[1:]:
            opened = self._open_study(offered, file, stamp)
            self._open[digest] = opened
        return opened

    def _open_study(self, offered: OfferedStudy, file: PartyFile, stamp: tuple[object, ...]) -> _Open:
        study = offered.read()
        # What a record is like must not decide about an answer. But each must be of somebody, if persons are promised.
        table = file.data.open(study.schema, unfit="skip", person=study.person)
        if table.n_complete < table.n_records:
            n_skipped = table.n_records - table.n_complete
            self._journal.note("records-add-nothing", study=offered.digest, records=n_skipped)
        guard = Guard(
            self._folder.identity.name,
            table,
            policy=study_policy(file.policy, offered),
            ledger=self._ledger,
            rng=Rng.system(),
            account=self._account,
            offer=offered.offer,
        )
        agreement = Agreement(
            study=study.name,
            method=offered.planned(),
            digest=offered.digest,
            runs=offered.runs,
            least=study.federation.quorum or 1,
            everybody=study.federation.everybody({*offered.sum_group, self._folder.identity.name}),
            dropouts=study.federation.dropouts,
            looks=looks_agreed(study),
            content=study.content,
        )
        return _Open(offered=offered, study=study, agreement=agreement, guard=guard, stamp=stamp)

    def _approvers(self) -> Collection[str]:
        """Whose signatures count; nobody's while party.toml cannot be read."""
        try:
            return self._party_file().policy.approvers or ()
        except UserError:
            return ()

    def _party_file(self) -> PartyFile:
        """`party.toml`, read again if it has changed; one that cannot be read allows nothing."""
        path = self._folder.path / FILE
        stamp = (path.stat().st_mtime_ns, path.stat().st_size) if path.exists() else None
        if self._file is None or self._file[0] != stamp:
            try:
                self._file = (stamp, PartyFile.read(self._folder.path))
            except UserError:
                self._file = None
                raise
        return self._file[1]


def study_policy(policy: Policy, offered: OfferedStudy) -> Policy:
    """The party's policy for one study: never more budget than so many times what one run was said to cost.

    A method that the policy accepts by name although no epsilon bounds it has no limit to keep to.
    """
    one = least_limit([offered.charge()], policy.budget.delta, policy.budget.relation)
    limit = min(policy.budget.epsilon_per_study, offered.runs * one * _ROUNDING)
    return replace(policy, budget=replace(policy.budget, epsilon_per_study=limit))


@contextmanager
def _in_neutral_words(journal: Journal) -> Iterator[None]:
    """A policy's own words may tell of the table, such as that it is small: they stay in the party's own logs.

    So do a budget's, which tell what was spent in other studies. All are refused in the same words.
    """
    try:
        yield
    except (PolicyRefusal, BudgetExceeded) as refusal:
        journal.note("policy-refused", why=str(refusal))
        raise PolicyRefusal(
            "it cannot take part: its policy does not allow this (the method, a column, how exact or how large a sum "
            "is, too few records, or what it may cost); its owner sees which in its log"
        ) from refusal
