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
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit import wire
from tacit.data.table import Table
from tacit.errors import NotAgreed, Refused, SettingError, WireError
from tacit.federation.agreement import Agreement, Answered, Terms
from tacit.federation.group import SumGroup
from tacit.federation.ledger_mark import LedgerMarks
from tacit.federation.log import Log
from tacit.federation.message import Answer, Kind, Question, question_digest
from tacit.federation.policy import Policy
from tacit.federation.reply import Disclosed, Encrypted, Kept, Noised, Relayed, Reply, Sealed
from tacit.federation.seat import Bond, Seat
from tacit.federation.step import Step
from tacit.privacy.event import why_not_private
from tacit.privacy.ledger import ASKED, FAILED, Ledger, LedgerEntry, Reservation, RunEntry
from tacit.rand import Rng
from tacit.secure.bound import Bound, terms_of, within
from tacit.secure.center.product import ADDS
from tacit.secure.center.product import USE as PRODUCT
from tacit.secure.envelope import OPEN, Label, seal, seal_message, sum_group_digest
from tacit.secure.signature import Sign
from tacit.wire import Value

_EXACT_GROUP = "exact group"  # pinned for a study, not for a run


@dataclass(frozen=True, kw_only=True)
class Admitted:
    """A question that may be answered: its step, and what the step is given."""

    question: Question
    step: Step
    plan: Any
    values: Any


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
        try:
            self.policy.check_question(self.name, agreement.method.name, self.table)
            agreement.check_group(group)
            agreement.check_table(self.name, self.table)
            group.check_member(self.name, self.table.n_units(agreement.method.weighted_unit), self.offer)
            try:
                terms = agreement.terms(self.table.schema, group)
                terms.plan.cohort.check(self.table)
            except SettingError as error:
                raise NotAgreed(f"the study allows no run with this group: {error}") from error
            reservation = terms.reservation(self.name)
            self.policy.check_event(self.name, agreement.method.name, reservation.event)
            self.policy.check_sizes(self.name, agreement.method.name, agreement.method.sizes_told)
            with self.ledger.transaction():
                self._enter(run, agreement, group, reservation)
        except Refused as refusal:
            self.log.append("refused", study=agreement.study, run=run, why=str(refusal))
            raise
        self._runs[run] = agreement, group

    def abandon(self, run: str) -> None:
        """Give the run's reservation back if no question of it came to the records; else all of it stays spent."""
        self._runs.pop(run, None)
        with self.ledger.transaction():
            if self.ledger.abandon(self.account, run):
                self.log.append("abandoned", run=run)

    def _enter(self, run: str, agreement: Agreement, group: SumGroup, reservation: Reservation) -> None:
        name = agreement.name_of(group.look)
        entry = RunEntry(account=self.account, run=run, study=agreement.study, agreement=name, group=group.digest)
        found = self.ledger.run(self.account, run)
        if found is None:
            self._check_number(agreement, group.look)
            budget = None if why_not_private(reservation.event) else self.policy.budget  # allowed by name, or bounded
            self.ledger.begin_run(entry, group.encode(), reservation, budget)
            self.log.append("began", run=run, study=agreement.study, group=group.digest, parties=group.n_parties)
        elif found != entry:
            raise NotAgreed(f"run {run!r} began with another group or study; begin a new run")

    def _check_number(self, agreement: Agreement, look: int) -> None:
        """Refuse one run more than the owner agreed to, and a look after a later one."""
        n_begun = self.ledger.n_runs(self.account, agreement.name_of(look))
        if agreement.runs is not None and n_begun >= agreement.runs:
            which = f" look {look} of" if look else ""
            raise NotAgreed(
                f"its owner agreed to {agreement.runs} runs of{which} study {agreement.study!r}, and as many have "
                f"begun; let it opt in with a larger number of runs"
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

    def answer(self, message: bytes, agreement: Agreement, keys: Sequence[bytes], bond: Bond | None = None) -> bytes:
        """Answer one question, or raise `Refused`.

        Args:
            message: the question.
            agreement: what the owner agreed to.
            keys: the center's, as this party knows them.
            bond: who is in a sum that this is part of; None in a simulation.
        """
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
        if question.run not in self._asked:
            self.ledger.pin(self.account, question.run, ASKED, question.step)
            self._asked.add(question.run)

    def seat(self, question: Question, bond: Bond | None = None) -> Seat:
        """Where this party sits in the run of a question that was admitted."""
        return Seat(party=self.name, question=question, names=self.group_of(question.run).names, bond=bond)

    def recall(self, message: bytes) -> bytes | None:
        """The stored answer, if this very question was answered before."""
        digest = question_digest(message)
        stored = self.ledger.answer(self.account, digest)
        if stored is not None:
            self.log.append("repeated", question=digest)
        return stored

    def admit(self, message: bytes, agreement: Agreement) -> Admitted:
        """The question with its step and plan, if it is the next one of a run that was agreed to; reads no record."""
        question = Question.decode(message)
        try:
            self.policy.check_question(self.name, agreement.method.name, self.table)
            terms = self._terms(question, agreement)
            step = terms.check(question, self._answered(question.run))
            if self.ledger.has_failed(self.account, question.run):
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

    def _answered(self, run: str) -> dict[str, Answered]:
        return {
            step: Answered(count=count, last_turn=last_turn)
            for step, count, last_turn in self.ledger.answered(self.account, run)
        }

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

    def release(self, message: bytes, reply: Reply, keys: Sequence[bytes], bond: Bond | None = None) -> bytes:
        """Store the reply with its event, and return the bytes that leave.

        Guarantees:
            When this returns, the ledger's file holds the event and the answer, and the run has reserved the cost. When
            it raises, nothing is stored and nothing leaves.
        """
        question = self.inspect(message, reply)
        digest = question_digest(message)
        try:
            with self.ledger.transaction():
                self._check_same_group(question, reply)
                kind, value = self._outgoing(reply, digest, question.run, keys, bond)
                answer = Answer(party=self.name, question=digest, kind=kind, value=value, event=reply.event).encode()
                entry = LedgerEntry(
                    account=self.account, study=question.study, run=question.run, step=question.step,
                    turn=question.turn, question=digest, event=reply.event, answer=answer,
                )  # fmt: skip
                self.ledger.spend(entry)
                self.log.append(
                    "released", kind=kind, question=digest, study=question.study, step=question.step, bytes=len(answer)
                )
        except Refused as refusal:
            self._log_refusal(message, question, refusal)
            raise
        return answer

    def _check_same_group(self, question: Question, reply: Reply) -> None:
        """Refuse what no epsilon bounds to a second group of one study: two sums would differ by one party's part.

        1. Such a sum is opened over everybody in the group. With dropouts two rounds could differ by a party.
        2. The first one pins the names of its group for all runs of the agreement.
        So all such sums of an agreement are over the same parties, and no two differ by some party's addend alone.
        Private sums need no such rule: the ledger pays for each. A simulation protects nobody from whoever runs it.
        """
        agreement, group = self._runs.get(question.run, (None, None))
        is_summed = isinstance(reply, Sealed | Kept | Encrypted | Relayed)
        if agreement is None or group is None or not agreement.digest or not is_summed:
            return
        if not why_not_private(reply.event):
            return
        if group.quorum < group.n_parties:
            raise NotAgreed("what no epsilon bounds is added up over every party of the run; ask without dropouts")
        names = wire.digest([*sorted(group.names)])
        if self.ledger.pin(f"{self.account} {_EXACT_GROUP}", agreement.digest, _EXACT_GROUP, names) != names:
            raise NotAgreed(
                f"study {agreement.study!r} was answered exactly in a run with other parties, and the two sums would "
                f"differ by one party's part; run it with the same parties, or as another study"
            )

    def spent(self, study: str | None = None) -> float:
        """The least limit that all runs fit at the policy's delta, in one study or in all."""
        budget = self.policy.budget
        return self.ledger.epsilon(self.account, delta=budget.delta, study=study, relation=budget.relation)

    def _outgoing(
        self, reply: Reply, digest: str, run: str, keys: Sequence[bytes], bond: Bond | None
    ) -> tuple[Kind, dict[str, Value]]:
        match reply:
            case Noised(value=value):
                return "noised", dict(value)
            case Relayed(value=value):
                return "relayed", dict(value)
            case Disclosed(value=value):
                return "disclosed", dict(value)
        if bond is not None:
            bond.check(reply)
        sum_group, sign = ("", None) if bond is None else (sum_group_digest(bond.sum_group), bond.sign)
        label = Label(context=digest, run=run, party=self.name, n_parties=reply.n_parties, sum_group=sum_group)

        def label_for(use: str, bound: Bound = (), contrasts: str = "") -> Label:
            mark = None if bond is None else self._marks.next()
            return replace(label, use=use, bound=bound, contrasts=contrasts, ledger=mark)

        if isinstance(reply, Sealed):
            return "sealed", self._envelopes(reply.addend, label_for(OPEN, reply.bound), keys, sign)
        contrasts = reply.contrasts if isinstance(reply, Kept) else ""
        parts: dict[str, Value] = {
            name: self._envelopes(addend, label_for(name, reply.bounds[name], contrasts), keys, sign)
            for name, addend in reply.addends.items()
        }
        if isinstance(reply, Kept):
            return "kept", parts
        product = seal_message(reply.product, label_for(PRODUCT), keys[ADDS], sign=sign)
        return "encrypted", {"addends": parts, "product": product}

    def _envelopes(
        self, addend: npt.NDArray[np.int64], label: Label, keys: Sequence[bytes], sign: Sign | None
    ) -> dict[str, Value]:
        flat = np.ascontiguousarray(addend, dtype=np.int64).ravel()
        if terms_of(label.bound).size != flat.size:
            raise SettingError(f"a step gave {flat.size} numbers and a bound of {terms_of(label.bound).size}")
        if not within(flat, label.bound):  # a chance below 2^-40, or records that no plan foresees
            flat = np.zeros_like(flat)
            self.log.append("cut", question=label.context, numbers=flat.size)
        envelopes: list[Value] = list(seal(flat, label, keys, rng=self.rng, sign=sign))
        return {"envelopes": envelopes, "shape": list(addend.shape)}

    def _log_refusal(self, message: bytes, question: Question, refusal: Refused | WireError) -> None:
        self.log.append(
            "refused", question=question_digest(message), study=question.study, step=question.step, why=str(refusal)
        )
