"""What a party of averaging through a curator is asked: to take its place in the protocol, and to exchange letters.

Everything about the protocol follows from the plan and the run: the session has the run's name, and a party's place is
that of its name in the run's group. A coordinator brings letters, and decides nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tacit import wire
from tacit.data.table import Table
from tacit.errors import NotAgreed, WireError
from tacit.federation.relay import Sessions
from tacit.federation.reply import Relayed
from tacit.federation.seat import Seat
from tacit.federation.step import step
from tacit.methods.averaging.statistic import Plan as AveragePlan
from tacit.methods.curator.lattice import Lattice, event_for, lattice_for
from tacit.privacy.event import Free
from tacit.rand import Rng
from tacit.secure.curator.letter import OutgoingLetters, Pins
from tacit.secure.curator.member import CuratorMember, FirstMember
from tacit.secure.curator.terms import CuratorTerms
from tacit.secure.paillier.key import PrivateKey

COUNTS_ON = (
    "if the curator, whose part the coordinator plays, lies about which party is the smallest or about its factor, the "
    "exact average of the parties' models can be read"
)
"""What no epsilon covers, as a policy's refusal and the consent page tell it."""

_MEMBERS: Sessions[CuratorMember] = Sessions()
_KEYS: Sessions[PrivateKey] = Sessions()  # of parties that were first in some run; keys serve many


@dataclass(frozen=True, kw_only=True)
class Plan(AveragePlan):
    """The public facts of one run, as every party derives them: those of averaging, and the length of keys."""

    key_bits: int

    @cached_property
    def lattice(self) -> Lattice:
        """The whole numbers that are added up."""
        return lattice_for(self)

    def terms(self, session: str) -> CuratorTerms:
        """The terms of the protocol."""
        return self.lattice.terms(session, self.key_bits)


@dataclass(frozen=True, kw_only=True)
class SessionLetters:
    """Letters for a party in a run."""

    message: bytes


@step("curator-averaging/join", version=4, plan=Plan, seated=True)
def join(table: Table, plan: Plan, *, rng: Rng, seat: Seat) -> Relayed:
    """Fit this party's classifier, take a place in the protocol, and pay for all that will be opened."""
    run = seat.question.run
    terms = plan.terms(run)
    contribution = plan.lattice.contribution(plan.local_fit(table), table.n_records, rng=rng)
    name, pins = terms.parties[seat.names.index(seat.party)], _pins(seat, terms)
    if name != terms.first:
        member = CuratorMember(name, terms, contribution, rng=rng, pins=pins)
    else:
        bits = plan.key_bits
        key = _KEYS.get_or_open(table, f"{bits} bits", lambda: PrivateKey.generate(bits, rng=rng))
        member = FirstMember(name, terms, contribution, rng=rng, key=key, pins=pins)
    _MEMBERS.open(table, run, member)
    promise = plan.promise
    return Relayed({"hello": member.hello()}, event_for(promise), exact=promise.is_exact, counts_on=COUNTS_ON)


@step("curator-averaging/letters", version=3, plan=Plan, values=SessionLetters, seated=True)
def letters(table: Table, plan: Plan, delivery: SessionLetters, *, rng: Rng, seat: Seat) -> Relayed:
    """Take a delivery of letters and answer with this party's own; the run was paid for when the party joined it."""
    run = seat.question.run
    try:
        answer = _MEMBERS.get(table, run).receive(delivery.message)
    except WireError as error:
        raise NotAgreed(str(error)) from error
    if not OutgoingLetters.decode(answer).awaits:
        _MEMBERS.close(table, run)
    return Relayed(value={"message": answer}, event=Free())


def _pins(seat: Seat, terms: CuratorTerms) -> Pins | None:
    """Whose signatures are believed in this run, and how this party signs; None in a simulation."""
    bond, asked = seat.bond, seat.question
    if bond is None:
        return None
    keys = {role: bond.sum_group[name] for role, name in zip(terms.parties, seat.names, strict=True)}
    return Pins(run=wire.digest([asked.study, asked.run, asked.group, asked.plan]), keys=keys, sign=bond.sign)
