"""The guard: the one door through which anything leaves a party.

For each question, in this order:
1. The same question again gets the stored answer: fresh noise for an old question would average out.
2. The policy is asked, before a record is read, and again when the reply and its event are known.
3. The event is charged and the answer stored, in one transaction on disk.
4. The answer leaves.
Every decision is a line of the log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tacit.data.table import Table
from tacit.errors import PolicyRefusal, Refused
from tacit.federation.log import Log
from tacit.federation.message import Answer, Kind, Question, question_digest
from tacit.federation.policy import Policy
from tacit.federation.reply import Disclosed, Encrypted, Kept, Noised, Public, Relayed, Reply, Sealed
from tacit.federation.step import Step, find_step
from tacit.privacy.ledger import Ledger, Release
from tacit.rand import Rng
from tacit.secure.envelope import Label, Sign, company_digest, seal, seal_message
from tacit.secure.product import ADDS
from tacit.secure.product import USE as PRODUCT
from tacit.wire import Value


@dataclass(frozen=True, kw_only=True)
class Bond:
    """With whom a party lets itself be added up, and how it signs that; in a simulation nobody signs.

    Attributes:
        company: the names and public keys of all who are in the sum, this party among them.
        sign: signs as this party.
        least: how few may be in a sum.
    """

    company: Mapping[str, bytes]
    sign: Sign
    least: int = 1

    def check(self, reply: Sealed | Kept | Encrypted) -> None:
        """Refuse to seal for fewer than the reply counts on, and what is exact for nobody else."""
        n_needed = max(self.least, reply.n_parties, 2 if reply.exact else 1)
        if len(self.company) < n_needed:
            raise PolicyRefusal(
                f"this is sealed to be added up over {n_needed} parties or more, and the question names "
                f"{len(self.company)}; ask all parties of the study"
            )


class Guard:
    """One party: its records, and everything that stands between them and the world."""

    def __init__(self, name: str, table: Table, *, policy: Policy, ledger: Ledger, rng: Rng) -> None:
        self.name = name
        self.table = table
        self.policy = policy
        self.ledger = ledger
        self.log = Log(ledger, name)
        self.rng = rng

    def __repr__(self) -> str:
        return f"Guard({self.name!r}, n_records={self.table.n_records})"

    def answer(self, message: bytes, keys: Sequence[bytes], bond: Bond | None = None) -> bytes:
        """Answer one question, or raise `Refused`.

        Args:
            message: the question.
            keys: the center's, as this party knows them.
            bond: who is in a sum that this is part of; None in a simulation.
        """
        stored = self.recall(message)
        if stored is not None:
            return stored
        question, step = self.admit(message)
        reply = step(self.table, rng=self.rng, **question.arguments)
        return self.release(message, reply, keys, bond)

    def recall(self, message: bytes) -> bytes | None:
        """The stored answer, if this very question was answered before."""
        digest = question_digest(message)
        stored = self.ledger.answer(self.name, digest)
        if stored is not None:
            self.log.append("repeated", question=digest)
        return stored

    def admit(self, message: bytes) -> tuple[Question, Step]:
        """The question and its step, if the policy allows it to be looked at."""
        question = Question.decode(message)
        try:
            self.policy.check_question(self.name, question.method, self.table)
        except Refused as refusal:
            self._log_refusal(message, question, refusal)
            raise
        return question, find_step(question.step, question.version)

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
        """Charge the reply, store it, and return the bytes that leave.

        Guarantees:
            When this returns, the ledger's file holds the event and the answer. When it raises, nothing was charged
            and nothing leaves.
        """
        question = self.inspect(message, reply)
        digest = question_digest(message)
        try:
            with self.ledger.transaction():
                kind, value = self._outgoing(reply, digest, keys, bond)
                answer = Answer(party=self.name, question=digest, kind=kind, value=value, event=reply.event).encode()
                self.ledger.spend(
                    Release(party=self.name, study=question.study, question=digest, event=reply.event, answer=answer),
                    self.policy.budget,
                )
                self.log.append(
                    "released", kind=kind, question=digest, study=question.study, step=question.step, bytes=len(answer)
                )
        except Refused as refusal:
            self._log_refusal(message, question, refusal)
            raise
        return answer

    def spent(self, study: str | None = None) -> float:
        """The epsilon spent at the policy's delta, in one study or in all."""
        budget = self.policy.budget
        return self.ledger.epsilon(self.name, delta=budget.delta, study=study, relation=budget.relation)

    def _outgoing(
        self, reply: Reply, digest: str, keys: Sequence[bytes], bond: Bond | None
    ) -> tuple[Kind, dict[str, Value]]:
        match reply:
            case Noised(value=value):
                return "noised", dict(value)
            case Relayed(value=value):
                return "relayed", dict(value)
            case Public(value=value):
                return "public", dict(value)
            case Disclosed(value=value):
                return "disclosed", dict(value)
        if bond is not None:
            bond.check(reply)
        company, sign = ("", None) if bond is None else (company_digest(bond.company), bond.sign)
        label = Label(context=digest, party=self.name, n_parties=reply.n_parties, company=company)
        if isinstance(reply, Sealed):
            return "sealed", self._envelopes(reply.addend, label, keys, sign)
        parts: dict[str, Value] = {
            name: self._envelopes(addend, replace(label, use=name), keys, sign)
            for name, addend in reply.addends.items()
        }
        if isinstance(reply, Kept):
            return "kept", parts
        product = seal_message(reply.product, replace(label, use=PRODUCT), keys[ADDS], sign=sign)
        return "encrypted", {"addends": parts, "product": product}

    def _envelopes(
        self, addend: npt.NDArray[np.int64], label: Label, keys: Sequence[bytes], sign: Sign | None
    ) -> dict[str, Value]:
        flat = np.ascontiguousarray(addend, dtype=np.int64).ravel()
        envelopes: list[Value] = list(seal(flat, label, keys, rng=self.rng, sign=sign))
        return {"envelopes": envelopes, "shape": list(addend.shape)}

    def _log_refusal(self, message: bytes, question: Question, refusal: Refused) -> None:
        self.log.append(
            "refused", question=question_digest(message), study=question.study, step=question.step, why=str(refusal)
        )
