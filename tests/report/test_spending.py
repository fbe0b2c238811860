"""A report says what ledgers say."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from tacit.report.facts import RunFacts
from tacit.report.spending import as_ledgers_say


def test_what_a_ledger_says_is_told_where_it_is_more(private_facts: RunFacts) -> None:
    first, *others = private_facts.parties
    assert private_facts.guarantee is not None
    promised = private_facts.guarantee.epsilon
    told = as_ledgers_say(private_facts, {first.name: 1.5 * promised})
    assert told.parties == (replace(first, epsilon=1.5 * promised), *others)
    assert told.guarantee == replace(private_facts.guarantee, epsilon=1.5 * promised)
    assert told.is_private


@pytest.mark.parametrize("factor", [0.5, 1.0, 1.001])
def test_less_or_rounding_changes_nothing(private_facts: RunFacts, factor: float) -> None:
    spent = {party.name: factor * party.epsilon for party in private_facts.parties}
    assert as_ledgers_say(private_facts, spent) == private_facts


def test_a_party_whose_ledger_no_epsilon_bounds_makes_nothing_private(private_facts: RunFacts) -> None:
    told = as_ledgers_say(private_facts, {private_facts.parties[0].name: math.inf})
    assert not told.is_private
