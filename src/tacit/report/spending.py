"""A report that says what the ledgers say: earlier attempts, runs and looks of a study counted in."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from tacit.report.facts import PartyFacts, RunFacts

_ROUNDING = 2e-3  # noise is found to 1 in 1,000; a ledger's epsilon that differs by less is the promise itself


def as_ledgers_say(facts: RunFacts, spent: Mapping[str, float]) -> RunFacts:
    """The facts with what each party's ledger has for the whole study, where it is more than this run cost.

    `spent` are epsilons at the delta of the run's guarantee. A party that is not in it is told as it was: what it gave
    in this run. The guarantee becomes that of the party that spent most, for it holds for everybody.

    Guarantees:
        No epsilon in the facts is below what a ledger says, but for rounding (2 in 1,000).
    """
    parties = tuple(_as_spent(party, spent.get(party.name, party.epsilon)) for party in facts.parties)
    guarantee = facts.guarantee
    if guarantee is not None and guarantee.is_private:
        most = max((party.epsilon for party in parties), default=guarantee.epsilon)
        guarantee = replace(guarantee, epsilon=_larger(guarantee.epsilon, most))
    return replace(facts, parties=parties, guarantee=guarantee)


def _as_spent(party: PartyFacts, epsilon: float) -> PartyFacts:
    return replace(party, epsilon=_larger(party.epsilon, epsilon))


def _larger(told: float, found: float) -> float:
    """What was found, if it is more than rounding makes it."""
    return found if found > told and not math.isclose(found, told, rel_tol=_ROUNDING) else told
