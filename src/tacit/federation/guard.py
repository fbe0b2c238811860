"""The guard: the one door through which anything leaves a party.

For each question, in this order:
1. The same question again gets the stored answer: fresh noise for an old question would average out.
2. The policy is asked, before a record is read, and again when the reply and its event are known.
3. The event is charged and the answer stored, in one transaction on disk.
4. The answer leaves.
Every decision is a line of the log.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tacit.data.table import Table
from tacit.errors import Refused
from tacit.federation.log import Log
from tacit.federation.message import Answer, Kind, Question, question_digest
from tacit.federation.policy import Policy
from tacit.federation.reply import Disclosed, Encrypted, Kept, Noised, Public, Reply, Sealed
from tacit.federation.step import Step, find_step
from tacit.privacy.ledger import Ledger, Release
from tacit.rand import Rng
from tacit.secure.envelope import Label, seal, seal_message
from tacit.secure.product import ADDS
from tacit.secure.product import USE as PRODUCT
from tacit.wire import Value


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

    def answer(self, message: bytes, keys: Sequence[bytes]) -> bytes:
        """Answer one question, or raise `Refused`; `keys` are the center's, as this party knows them."""
        stored = self.recall(message)
        if stored is not None:
            return stored
        question, step = self.admit(message)
        reply = step(self.table, rng=self.rng, **question.arguments)
        return self.release(message, reply, keys)

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

    def release(self, message: bytes, reply: Reply, keys: Sequence[bytes]) -> bytes:
        """Charge the reply, store it, and return the bytes that leave.

        Guarantees:
            When this returns, the ledger's file holds the event and the answer. When it raises, nothing was charged
            and nothing leaves.
        """
        question = self.inspect(message, reply)
        digest = question_digest(message)
        try:
            with self.ledger.transaction():
                kind, value = self._outgoing(reply, digest, keys)
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

    def _outgoing(self, reply: Reply, digest: str, keys: Sequence[bytes]) -> tuple[Kind, dict[str, Value]]:
        match reply:
            case Noised(value=value):
                return "noised", dict(value)
            case Public(value=value):
                return "public", dict(value)
            case Disclosed(value=value):
                return "disclosed", dict(value)
            case Sealed(addend=addend, n_parties=n_parties):
                label = Label(context=digest, party=self.name, n_parties=n_parties)
                return "sealed", self._envelopes(addend, label, keys)
            case Kept(addends=addends, n_parties=n_parties) | Encrypted(addends=addends, n_parties=n_parties):
                label = Label(context=digest, party=self.name, n_parties=n_parties)
                parts: dict[str, Value] = {
                    name: self._envelopes(addend, replace(label, use=name), keys) for name, addend in addends.items()
                }
                if isinstance(reply, Kept):
                    return "kept", parts
                product = seal_message(reply.product, replace(label, use=PRODUCT), keys[ADDS])
                return "encrypted", {"addends": parts, "product": product}

    def _envelopes(self, addend: npt.NDArray[np.int64], label: Label, keys: Sequence[bytes]) -> dict[str, Value]:
        flat = np.ascontiguousarray(addend, dtype=np.int64).ravel()
        envelopes: list[Value] = list(seal(flat, label, keys, rng=self.rng))
        return {"envelopes": envelopes, "shape": list(addend.shape)}

    def _log_refusal(self, message: bytes, question: Question, refusal: Refused) -> None:
        self.log.append(
            "refused", question=question_digest(message), study=question.study, step=question.step, why=str(refusal)
        )
