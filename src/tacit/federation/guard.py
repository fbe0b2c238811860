"""The guard: the one door through which anything leaves a party.

A run begins with its sum group. The guard then checks that it follows from the study that the owner agreed to, that
the party is in it as it is, and that no more runs begin than were agreed to. It derives what the whole run costs, and
reserves that in the ledger, or the run does not begin. For each question, in this order:
1. The same question again gets the stored answer: fresh noise for an old question would average out.
2. The policy is asked. The question must be of a run that began, and the next one of its course. The plan is derived.
   All this happens before a record is read.
3. The step runs. The policy is asked again, now that the reply and its event are known.
4. The event must be one that the run has reserved. It is written down with the answer, in one transaction on disk.
5. The answer leaves.
Every decision is a line of the log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tacit import wire
from tacit.data.table import Table
from tacit.errors import NotAgreed, Refused, SettingError, WireError
from tacit.federation.agreement import Agreement, Answered, Terms
from tacit.federation.exact_group import check_exact_group
from tacit.federation.group import SumGroup
from tacit.federation.leaving import Leaving
from tacit.federation.ledger_mark import LedgerMarks
from tacit.federation.log import Fact, Log, append_all
from tacit.federation.message import Answer, Question, question_digest
from tacit.federation.policy import Policy
from tacit.federation.reply import Reply
from tacit.federation.seat import Bond, Seat
from tacit.federation.step import Step
from tacit.privacy.event import why_not_private
from tacit.privacy.ledger import ASKED, FAILED, Beginning, Ledger, LedgerEntry, Reservation, RunEntry
from tacit.rand import Rng
from tacit.secure.process_key import SealKeys


@dataclass(frozen=True, kw_only=True)
class Admitted:
    """A question that may be answered: its step, and what the step is given."""

    question: Question
    step: Step
    plan: Any
    values: Any


@dataclass(frozen=True, kw_only=True)
class Released:
    """An answer that may leave: it is in the ledger, as the message that it travels as."""

    answer: Answer
    message: bytes


class Guard:
    """One party: its records, and everything that stands between them and the world."""

    def __init__(
        self,
        name: str,
        table: Table,
        *,
        policy: Policy,
        ledger: Ledger,
        rng: Rng,
        account: str | None = None,
        offer: float | None = None,
    ) -> None:
        """A party of this name; `account` is what its budget belongs to, if the ledger is not a simulation's.

        `offer` is the epsilon that the party offers a run, where that is less than the study asks.
        """
        self.name = name
        self.offer = offer
        self.account = ledger.account_of(table, name) if account is None else account
        self.table = table
        self.policy = policy
        self.ledger = ledger
        self.log = Log(ledger, name)
        self._marks = LedgerMarks(ledger, self.log, name)
        self.rng = rng
        self._runs: dict[str, tuple[Agreement, SumGroup]] = {}  # runs that this process has looked at
        self._asked: set[str] = set()  # those whose cost stays

    def __repr__(self) -> str:
        return f"Guard({self.name!r}, n_records={self.table.n_records})"

    # --- a run begins ------------------------------------------------------------------------------------------------

    def begin(self, run: str, agreement: Agreement, group: SumGroup) -> None:
        """Agree to a run with this group, or raise `Refused`; a second call with the same group changes nothing.

        Guarantees:
            A run keeps the group with which it began, and no more runs begin than the owner agreed to. When this
            returns, all that the run may cost is reserved; when it raises, nothing is.
        """
        begin_all([self], run, agreement, group)

    def _reservation(self, agreement: Agreement, group: SumGroup) -> Reservation:
        """What a run with this group may cost, if policy and agreement allow it; reads no record."""
        method = agreement.method
        self.policy.check_question(self.name, method.name, self.table)
        agreement.check_group(group)
        agreement.check_table(self.name, self.table)
        group.check_member(self.name, self.table.n_units(method.weighted_unit), self.offer)
        try:
            terms = agreement.terms(self.table.schema, group)
            terms.plan.cohort.check(self.table)
        except SettingError as error:
            raise NotAgreed(f"the study allows no run with this group: {error}") from error
        reservation = terms.reservation(self.name)
        self.policy.check_event(self.name, method.name, reservation.event)
        self.policy.check_sizes(self.name, method.name, method.sizes_told)
        return reservation

    def abandon(self, run: str) -> None:
        """Give the run's reservation back if no question of it came to the records; else all of it stays spent."""
        self._runs.pop(run, None)
        with self.ledger.transaction():
            if self.ledger.abandon(self.account, run):
                self.log.append("abandoned", run=run)

    def _beginning(
        self, run: str, agreement: Agreement, group: SumGroup, reservation: Reservation, found: RunEntry | None
    ) -> Beginning | None:
        """The run as it is to be written down; None if it is written down already."""
        name = agreement.name_of(group.look)
        entry = RunEntry(account=self.account, run=run, study=agreement.study, agreement=name, group=group.digest)
        if found is None:
            self._check_number(agreement, group.look)
            budget = None if why_not_private(reservation.event) else self.policy.budget  # allowed by name, or bounded
            return Beginning(entry=entry, reservation=reservation, budget=budget)
        if found != entry:
            raise NotAgreed(f"run {run!r} began with another group or study; begin a new run")
        return None

    def _check_number(self, agreement: Agreement, look: int) -> None:
        """Refuse one run more than the owner agreed to, and a look after a later one."""
        if agreement.runs is None and not agreement.digest:
            return  # a simulation
        n_begun = self.ledger.n_runs(self.account, agreement.name_of(look))
        if agreement.runs is not None and n_begun >= agreement.runs:
            which = f" look {look} of" if look else ""
            runs = "1 run" if agreement.runs == 1 else f"{agreement.runs} runs"
            raise NotAgreed(
                f"its owner agreed to {runs} of{which} study {agreement.study!r}, and as many have begun; let it opt "
                f"in to more: `tacit party opt-in {agreement.study} --runs {agreement.runs + 1}`"
            )
        if agreement.digest and any(self.ledger.n_runs(self.account, later) for later in agreement.later_looks(look)):
            raise NotAgreed(f"look {look} of study {agreement.study!r} comes before one that this party was in already")

    def group_of(self, run: str) -> SumGroup:
        """The group with which a run began; a `NotAgreed` if it did not."""
        if run in self._runs:
            return self._runs[run][1]
        body = self.ledger.group_of_run(self.account, run)
        if body is None:
            raise NotAgreed(f"no run {run!r} has begun at party {self.name!r}; begin it with its sum group")
        return SumGroup.decode(body)

    # --- a question --------------------------------------------------------------------------------------------------

    def answer(self, message: bytes, agreement: Agreement, keys: SealKeys, bond: Bond | None = None) -> bytes:
        """Answer one question, or raise `Refused`.

        Args:
            message: the question.
            agreement: what the owner agreed to.
            keys: the center's, as this party knows them.
            bond: who is in a sum that this is part of; None in a simulation.
        """
        with self.ledger.database.reading():
            stored = self.recall(message)
            if stored is not None:
                return stored
            admitted = self.admit(message, agreement)
        seat = self.seat(admitted.question, bond)
        self.keep_cost(admitted.question)
        try:
            reply = admitted.step(self.table, admitted.plan, admitted.values, rng=self.rng, seat=seat)
        except Refused as refusal:  # values that no plan allows
            self._log_refusal(message, admitted.question, refusal)
            raise
        except Exception:
            self.note_failure(admitted.question)
            raise
        return self.release(message, reply, keys, bond)

    def note_failure(self, question: Question) -> None:
        """A step failed, which may depend on a record: its run answers no more."""
        self.ledger.pin(self.account, question.run, FAILED, question.step)
        self.log.append("failed", run=question.run, step=question.step)

    def keep_cost(self, question: Question) -> None:
        """Before a run's first look at a record: whatever becomes of it, it stays paid for."""
        keep_costs([self], question)

    def seat(self, question: Question, bond: Bond | None = None) -> Seat:
        """Where this party sits in the run of a question that was admitted."""
        return Seat(party=self.name, question=question, names=self.group_of(question.run).names, bond=bond)

    def recall(self, message: bytes) -> bytes | None:
        """The stored answer, if this very question was answered before."""
        question = Question.decode(message)
        answered = self.ledger.answered((self.account,), question.run).get(self.account, {})
        if answered.get(question.step, (0, -1))[1] < question.turn:  # no answer has this turn yet, or a later one
            return None
        return recall_all([self], message).get(self.name)

    def admit(self, message: bytes, agreement: Agreement) -> Admitted:
        """The question with its step and plan, if it is the next one of a run that was agreed to; reads no record."""
        return admit_all([self], message, agreement)

    def _admit(
        self, message: bytes, agreement: Agreement, answered: Mapping[str, Answered], has_failed: bool
    ) -> Admitted:
        question = Question.decode(message)
        try:
            self.policy.check_question(self.name, agreement.method.name, self.table)
            terms = self._terms(question, agreement)
            step = terms.check(question, answered)
            if has_failed:
                raise NotAgreed(f"run {question.run!r} failed at party {self.name!r} before; begin a new run")
            values = step.decode_values(question.values)
            agreement.check_content(question, step)
            self._check_pinned(question, step)
        except WireError as error:
            self._log_refusal(message, question, error)
            raise NotAgreed(str(error)) from error
        except Refused as refusal:
            self._log_refusal(message, question, refusal)
            raise
        return Admitted(question=question, step=step, plan=terms.plan, values=values)

    def _terms(self, question: Question, agreement: Agreement) -> Terms:
        if (question.study, question.method) != (agreement.study, agreement.method.name):
            raise NotAgreed(
                f"the question is of {question.method!r} in study {question.study!r}; agreed to was "
                f"{agreement.method.name!r} in {agreement.study!r}"
            )
        if self._runs.get(question.run, (None,))[0] is not agreement:  # of an earlier process, or of another study
            self._runs.pop(question.run, None)
            self.begin(question.run, agreement, self.group_of(question.run))
        group = self._runs[question.run][1]
        if question.group != group.digest:
            raise NotAgreed(f"run {question.run!r} began with another group; begin a new run")
        return agreement.terms(self.table.schema, group)

    def _check_pinned(self, question: Question, step: Step) -> None:
        """Refuse another value of a pinned field than the first that this run told."""
        for name in step.pinned:
            assert isinstance(question.values, Mapping)  # it was decoded
            digest = wire.digest(question.values[name])
            if self.ledger.pin(self.account, question.run, name, digest) != digest:
                raise NotAgreed(f"run {question.run!r} told other {name} before; begin a new run")

    # --- an answer ---------------------------------------------------------------------------------------------------

    def inspect(self, message: bytes, reply: Reply) -> Question:
        """The question, if the policy lets this reply to it go; nothing is charged yet."""
        question = Question.decode(message)
        try:
            self.policy.check_reply(self.name, question.method, reply, self.table.n_records)
        except Refused as refusal:
            self._log_refusal(message, question, refusal)
            raise
        return question

    def release(self, message: bytes, reply: Reply, keys: SealKeys, bond: Bond | None = None) -> bytes:
        """Store the reply with its event, and return the bytes that leave.

        Guarantees:
            When this returns, the ledger's file holds the event and the answer, and the run has reserved the cost. When
            it raises, nothing is stored and nothing leaves.
        """
        return release_all([self], message, [reply], keys, bond)[0].message

    def spent(self, study: str | None = None) -> float:
        """The least limit that all runs fit at the policy's delta, in one study or in all."""
        budget = self.policy.budget
        return self.ledger.epsilon(self.account, delta=budget.delta, study=study, relation=budget.relation)

    def _log_refusal(self, message: bytes, question: Question, refusal: Refused | WireError) -> None:
        self.log.append(
            "refused", question=question_digest(message), study=question.study, step=question.step, why=str(refusal)
        )


# --- parties of one process, served together -------------------------------------------------------------------------
# Each decides, pays and writes its log as it does alone. All of it is one transaction on the ledger that they share.


def begin_all(guards: Sequence[Guard], run: str, agreement: Agreement, group: SumGroup) -> None:
    """Let parties that share a ledger agree to a run, as `Guard.begin` does; if one refuses, nothing is reserved."""
    ledger, at = guards[0].ledger, guards[0]
    try:
        reservations = []
        for at in guards:
            reservations.append(at._reservation(agreement, group))
        with ledger.transaction():
            found = ledger.runs([guard.account for guard in guards], run)
            new: dict[str, tuple[Guard, Beginning]] = {}
            for at, reservation in zip(guards, reservations, strict=True):
                beginning = at._beginning(run, agreement, group, reservation, found.get(at.account))
                if beginning is not None:
                    new.setdefault(at.account, (at, beginning))
            if new:
                ledger.begin_runs([beginning for _, beginning in new.values()], group.encode())
                fact: dict[str, Fact] = {
                    "run": run, "study": agreement.study, "group": group.digest, "parties": group.n_parties,
                }  # fmt: skip
                append_all([guard.log for guard, _ in new.values()], "began", [fact] * len(new))
    except Refused as refusal:
        refusing = next((guard for guard in guards if guard.account == refusal.account), at)
        refusing.log.append("refused", study=agreement.study, run=run, why=str(refusal))
        raise
    for guard in guards:
        guard._runs[run] = agreement, group


def recall_all(guards: Sequence[Guard], message: bytes) -> dict[str, bytes]:
    """The stored answers of those that answered this very question before, by their names; they share a ledger."""
    question, digest = Question.decode(message), question_digest(message)
    where = question.run, question.step, question.turn
    stored = guards[0].ledger.answers([guard.account for guard in guards], digest, where)
    repeating = [guard for guard in guards if guard.account in stored]
    if repeating:
        append_all([guard.log for guard in repeating], "repeated", [{"question": digest}] * len(repeating))
    return {guard.name: stored[guard.account] for guard in repeating}


def admit_all(guards: Sequence[Guard], message: bytes, agreement: Agreement) -> Admitted:
    """A question as each of these parties admits it, which share a ledger; raises what the first says that does not."""
    run, accounts = Question.decode(message).run, [guard.account for guard in guards]
    answered, failed = guards[0].ledger.answered(accounts, run), guards[0].ledger.failed(accounts, run)
    for guard in guards:
        steps = {
            step: Answered(count=count, last_turn=last_turn)
            for step, (count, last_turn) in answered.get(guard.account, {}).items()
        }
        admitted = guard._admit(message, agreement, steps, has_failed=guard.account in failed)
    return admitted


def keep_costs(guards: Sequence[Guard], question: Question) -> None:
    """Let parties that share a ledger keep what a run costs, as `Guard.keep_cost` does."""
    first = [guard for guard in guards if question.run not in guard._asked]
    if first:
        guards[0].ledger.pin_all([guard.account for guard in first], question.run, ASKED, question.step)
    for guard in first:
        guard._asked.add(question.run)


def release_all(
    guards: Sequence[Guard], message: bytes, replies: Sequence[Reply], keys: SealKeys, bond: Bond | None = None
) -> list[Released]:
    """Store the replies of parties that share a ledger, each with its event, and return what leaves.

    Guarantees:
        Those of `Guard.release`, for all of them or for none.
    """
    for guard, reply in zip(guards, replies, strict=True):
        guard.inspect(message, reply)
    question, digest, at = Question.decode(message), question_digest(message), guards[0]
    try:
        with at.ledger.transaction():
            released = []
            for at, reply in zip(guards, replies, strict=True):
                check_exact_group(at.ledger, at.account, reply, *at._runs.get(question.run, (None, None)))
                leaving = Leaving(
                    party=at.name, run=question.run, question=digest, keys=keys, bond=bond, rng=at.rng, marks=at._marks,
                    log=at.log,
                )  # fmt: skip
                kind, value = leaving.form(reply)
                answer = Answer(party=at.name, question=digest, kind=kind, value=value, event=reply.event)
                released.append(Released(answer=answer, message=answer.encode()))
            at.ledger.spend(
                [
                    LedgerEntry(
                        account=guard.account, study=question.study, run=question.run, step=question.step,
                        turn=question.turn, question=digest, event=one.answer.event, answer=one.message,
                    )
                    for guard, one in zip(guards, released, strict=True)
                ]
            )  # fmt: skip
            facts = {"question": digest, "study": question.study, "step": question.step}
            append_all(
                [guard.log for guard in guards],
                "released",
                [{**facts, "kind": one.answer.kind, "bytes": len(one.message)} for one in released],
            )
    except Refused as refusal:
        refusing = next((guard for guard in guards if guard.account == refusal.account), at)
        refusing._log_refusal(message, question, refusal)
        raise
    return released
