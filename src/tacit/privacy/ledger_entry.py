"""What a ledger writes down: runs that begin, with what they may cost, and answers that are about to leave."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tacit.privacy.budget import Budget
from tacit.privacy.event import Composed, Event, Repeated
from tacit.privacy.filter import Charge


@dataclass(frozen=True, kw_only=True)
class LedgerEntry:
    """One answer about to leave: from which account, in which study and run, to which question, at what cost."""

    account: str
    study: str
    run: str
    step: str
    turn: int
    question: str
    event: Event
    answer: bytes


@dataclass(frozen=True, kw_only=True)
class RunEntry:
    """A run that a party agreed to: of which study, under which agreement (a digest), with which group (a digest)."""

    account: str
    run: str
    study: str
    agreement: str
    group: str


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A step of a run: what each answer to it costs, and how many are given at most."""

    step: str
    event: Event
    times: int


@dataclass(frozen=True, kw_only=True)
class Reservation:
    """What a run may release, all of it known when the run begins.

    Attributes:
        stages: its steps.
        delta: the run's own, at which it counts where epsilons add up (`filter`).
    """

    stages: tuple[Stage, ...]
    delta: float = 0.0

    @cached_property
    def event(self) -> Event:
        """All of its releases."""
        return Composed(events=tuple(Repeated(event=stage.event, count=stage.times) for stage in self.stages))

    def charge(self, count: int = 1) -> Charge:
        """What so many runs cost."""
        return Charge(event=self.event, delta=self.delta, count=count)


@dataclass(frozen=True, kw_only=True)
class Beginning:
    """A run that is about to begin at one account.

    Attributes:
        entry: the run.
        reservation: what it may release.
        budget: what it must fit; None for a run that its owner allowed by name although no epsilon bounds it.
    """

    entry: RunEntry
    reservation: Reservation
    budget: Budget | None
