"""What a party of averaging through a curator is asked: to take its place in the protocol, and to exchange letters.

Everything about the protocol but its session and the party's place in it follows from the plan.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tacit.data.table import Table
from tacit.errors import NotConverged, PolicyRefusal
from tacit.federation.relay import Sessions
from tacit.federation.reply import Relayed
from tacit.federation.step import step
from tacit.methods.averaging.statistic import SLACK
from tacit.methods.averaging.statistic import Plan as AveragePlan
from tacit.methods.curator.lattice import Lattice, event_for, lattice_for
from tacit.models.sensitivity import minimiser_sensitivity
from tacit.models.solver import fit
from tacit.privacy.event import Free
from tacit.rand import Rng
from tacit.secure.curator.letter import OutgoingLetters
from tacit.secure.curator.member import CuratorMember, FirstMember
from tacit.secure.curator.terms import CuratorTerms
from tacit.secure.paillier.key import PrivateKey

_LONGEST_SESSION = 64

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
class Joining:
    """A party's place among the parties of a session."""

    session: str
    place: int

    def check(self, plan: Plan) -> None:
        """Refuse a place that does not exist."""
        if not 0 < len(self.session) <= _LONGEST_SESSION:
            raise PolicyRefusal(f"a session's name has 1 to {_LONGEST_SESSION} letters")
        if not 0 <= self.place < plan.cohort.n_parties:
            raise PolicyRefusal(f"there is no place {self.place} among {plan.cohort.n_parties} parties")


@dataclass(frozen=True, kw_only=True)
class SessionLetters:
    """Letters for a party in a session."""

    session: str
    message: bytes


@step("curator-averaging/join", version=2, plan=Plan, values=Joining)
def join(table: Table, plan: Plan, joining: Joining, *, rng: Rng) -> Relayed:
    """Fit this party's classifier, take a place in the protocol, and pay for all that will be opened."""
    joining.check(plan)
    terms, n, cohort = plan.terms(joining.session), table.n_records, plan.cohort
    solution = fit(table.blocks, problem=plan.problem(n))
    allowed = SLACK * minimiser_sensitivity(n, plan.l2_mean, cohort.row_norm, cohort.n_classes)
    if not solution.distance_bound <= allowed:
        raise NotConverged(f"the local fit is not certified to within {allowed:.3g}; choose a larger l2")
    contribution = plan.lattice.contribution(solution.theta, n, rng=rng)
    if joining.place:
        member = CuratorMember(terms.parties[joining.place], terms, contribution, rng=rng)
    else:
        bits = plan.key_bits
        key = _KEYS.get_or_open(table, f"{bits} bits", lambda: PrivateKey.generate(bits, rng=rng))
        member = FirstMember(terms.first, terms, contribution, rng=rng, key=key)
    _MEMBERS.open(table, joining.session, member)
    return Relayed(value={"hello": member.hello()}, event=event_for(plan.promise), exact=plan.promise.is_exact)


@step("curator-averaging/letters", version=2, plan=Plan, values=SessionLetters)
def letters(table: Table, plan: Plan, delivery: SessionLetters, *, rng: Rng) -> Relayed:
    """Take a delivery of letters and answer with this party's own; the run was paid for when the party joined it."""
    answer = _MEMBERS.get(table, delivery.session).receive(delivery.message)
    if not OutgoingLetters.decode(answer).awaits:
        _MEMBERS.close(table, delivery.session)
    return Relayed(value={"message": answer}, event=Free())
