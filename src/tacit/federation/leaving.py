"""How a reply leaves its party: as it is, or sealed to those who add up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tacit.errors import SettingError
from tacit.federation.ledger_mark import LedgerMarks
from tacit.federation.log import Log
from tacit.federation.message import Kind
from tacit.federation.reply import Disclosed, Kept, Noised, Relayed, Reply, Sealed
from tacit.federation.seat import Bond
from tacit.rand import Rng
from tacit.secure.bound import Bound, terms_of, within
from tacit.secure.center.product import ADDS
from tacit.secure.center.product import USE as PRODUCT
from tacit.secure.envelope import OPEN, Label, seal, seal_message, sum_group_digest
from tacit.secure.process_key import ProcessKey, SealKeys
from tacit.secure.ring import Ints
from tacit.secure.signature import Sign
from tacit.wire import Value


@dataclass(frozen=True, kw_only=True)
class Leaving:
    """Which question of which run a party answers, to whom it seals, and where it notes that.

    Attributes:
        party: its name.
        run: the run.
        question: the question's digest.
        keys: the center's, as the party knows them.
        bond: who is in a sum that this is part of; None in a simulation.
        rng: its source of chance.
        marks: the states of its ledger.
        log: its log.
    """

    party: str
    run: str
    question: str
    keys: SealKeys
    bond: Bond | None
    rng: Rng
    marks: LedgerMarks
    log: Log

    def form(self, reply: Reply) -> tuple[Kind, dict[str, Value]]:
        """In which way the reply leaves, and what leaves; part of the transaction that is open on the ledger."""
        match reply:
            case Noised(value=value):
                return "noised", dict(value)
            case Relayed(value=value):
                return "relayed", dict(value)
            case Disclosed(value=value):
                return "disclosed", dict(value)
        if self.bond is not None:
            self.bond.check(reply)
        n_parties = reply.n_parties
        if isinstance(reply, Sealed):
            return "sealed", self._envelopes(reply.addend, self._label(n_parties, OPEN, reply.bound))
        contrasts = reply.contrasts if isinstance(reply, Kept) else ""
        parts: dict[str, Value] = {
            name: self._envelopes(addend, self._label(n_parties, name, reply.bounds[name], contrasts))
            for name, addend in reply.addends.items()
        }
        if isinstance(reply, Kept):
            return "kept", parts
        if isinstance(self.keys, ProcessKey):
            raise SettingError("a product is opened by a center that computes; ask for it by `keep`")
        product = seal_message(reply.product, self._label(n_parties, PRODUCT), self.keys[ADDS], sign=self._sign)
        return "encrypted", {"addends": parts, "product": product}

    @property
    def _sign(self) -> Sign | None:
        return None if self.bond is None else self.bond.sign

    def _label(self, n_parties: int, use: str, bound: Bound = (), contrasts: str = "") -> Label:
        return Label(
            context=self.question, party=self.party, n_parties=n_parties, use=use, bound=bound, contrasts=contrasts,
            run=self.run, sum_group="" if self.bond is None else sum_group_digest(self.bond.sum_group),
            ledger=None if self.bond is None else self.marks.next(),
        )  # fmt: skip

    def _envelopes(self, addend: Ints, label: Label) -> dict[str, Value]:
        flat = np.ascontiguousarray(addend, dtype=np.int64).ravel()
        if terms_of(label.bound).size != flat.size:
            raise SettingError(f"a step gave {flat.size} numbers and a bound of {terms_of(label.bound).size}")
        if not within(flat, label.bound):  # a chance below 2^-40, or records that no plan foresees
            flat = np.zeros_like(flat)
            self.log.append("cut", question=label.context, numbers=flat.size)
        if isinstance(self.keys, ProcessKey):
            sealed = [self.keys.seal(flat, label)]
        else:
            sealed = seal(flat, label, self.keys, rng=self.rng, sign=self._sign)
        envelopes: list[Value] = list(sealed)
        return {"envelopes": envelopes, "shape": list(addend.shape)}
