"""Whoever chooses the studies wants to learn more of a record than its owner's budget allows, or to waste the budget.

The truth is computed here from first principles. An attacker asks a sequence of mechanisms, picks each after seeing the
outcomes so far, and may pick only what the ledger accepts. `most_delta` is the least delta for which all of it is
(limit, delta)-private, for the pairs of outcomes that are worst for each kind of event.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_ndtr

import tacit
from tacit.data.schema import Schema
from tacit.data.table import Table
from tacit.errors import BudgetExceeded, NotAgreed, PolicyRefusal
from tacit.federation.federation import Federation
from tacit.federation.policy import Policy
from tacit.methods import PrivateNewton
from tacit.privacy import accounting
from tacit.privacy.accounting import epsilon_of
from tacit.privacy.event import Approximate, Composed, Event, Gaussian, PoissonSampled, Pure, Under
from tacit.privacy.gaussian import gaussian_epsilon
from tacit.privacy.ledger import Beginning, Budget, Ledger, Reservation, RunEntry, Stage

Floats = npt.NDArray[np.float64]
BUDGET = Budget(epsilon_in_all=1.0)


def reserve(ledger: Ledger, run: str, event: Event, budget: Budget = BUDGET, *, account: str = "p") -> None:
    entry = RunEntry(account=account, run=run, study=run, agreement="a", group="g")
    stages = (Stage(step="s/one", event=event, times=1),)
    reservation = Reservation(stages=stages, delta=budget.delta)
    ledger.begin_runs([Beginning(entry=entry, reservation=reservation, budget=budget)], b"")


def is_accepted(events: Sequence[Event], budget: Budget = BUDGET) -> bool:
    """Whether a fresh ledger lets all of these begin, in this order."""
    ledger = Ledger()
    try:
        for number, event in enumerate(events):
            reserve(ledger, f"r{number}", event, budget)
    except BudgetExceeded:
        return False
    finally:
        ledger.close()
    return True


# --- the truth -------------------------------------------------------------------------------------------------------


def excess(event: Event, loss: Floats, limit: float) -> Floats:
    """E_Q (exp(loss + L) - exp(limit))+ over the loss L of one more event, the last one."""
    left = limit - loss
    match event:
        case Gaussian(noise_multiplier=noise):
            mu = 1 / noise
            return np.exp(loss + log_ndtr(mu / 2 - left / mu)) - np.exp(limit + log_ndtr(-mu / 2 - left / mu))
        case Pure() | Approximate():
            values, weights = outcomes(event)
            parts = [
                w * np.maximum(0.0, np.exp(loss + x) - math.exp(limit)) for x, w in zip(values, weights, strict=True)
            ]
            return np.sum(parts, axis=0) + np.exp(loss) * getattr(event, "delta", 0.0)
    raise AssertionError(event)


def outcomes(event: Event) -> tuple[Floats, Floats]:
    """The losses of the worst pair, and their probabilities under Q. What only P can give is not among them."""
    match event:
        case Gaussian(noise_multiplier=noise):
            z = np.linspace(-10, 10, 401)
            weights = np.exp(-(z**2) / 2)
            return z / noise - 1 / noise**2 / 2, weights / weights.sum()
        case Pure(epsilon=epsilon) | Approximate(epsilon=epsilon):
            p = 1 / (1 + math.exp(-epsilon))
            kept = 1 - getattr(event, "delta", 0.0)
            return np.array([epsilon, -epsilon]), kept * np.array([1 - p, p])
    raise AssertionError(event)


def most_delta(menu: Sequence[Event], allows: Callable[[tuple[Event, ...]], bool], limit: float, depth: int) -> float:
    """The least delta of the best attack of so many mechanisms from the menu."""

    def best(path: tuple[Event, ...], loss: Floats) -> Floats:
        values = [np.maximum(0.0, np.exp(loss) - math.exp(limit))]
        for event in menu:
            if len(path) == depth or not allows((*path, event)):
                continue
            if len(path) + 1 == depth:
                values.append(excess(event, loss, limit))
                continue
            steps, weights = outcomes(event)
            after = best((*path, event), (loss[:, None] + steps).ravel()).reshape(len(loss), -1)
            values.append(after @ weights + np.exp(loss) * getattr(event, "delta", 0.0))
        return np.max(values, axis=0)

    return float(best((), np.zeros(1))[0])


FIRST = Gaussian(noise_multiplier=1 / 0.2)
NEXT = (Gaussian(noise_multiplier=1 / 0.1266), Pure(epsilon=0.1657), Approximate(epsilon=0.0155, delta=9.8e-7))


def test_the_truth_is_right_where_it_is_known() -> None:
    one = most_delta([FIRST], lambda _: True, 0.5, 1)
    assert gaussian_epsilon(one, 0.2) == pytest.approx(0.5, rel=1e-6)
    two = most_delta([FIRST], lambda _: True, 0.5, 2)
    assert gaussian_epsilon(two, 0.2 * math.sqrt(2)) == pytest.approx(0.5, rel=1e-4)
    assert most_delta([Approximate(epsilon=0.5, delta=1e-3)], lambda _: True, 0.5, 1) == pytest.approx(1e-3)


def test_the_next_study_is_chosen_by_outcome_and_the_promise_still_holds() -> None:
    """Each path costs 1.0 by the best bound for it, yet the tree does not keep (1, delta). It keeps (1, 4 delta)."""
    paths = {(FIRST, event) for event in NEXT}
    assert all(is_accepted(path) for path in paths)
    assert all(epsilon_of(Composed(events=path), BUDGET.delta) <= 1.0 for path in paths)
    truth = most_delta((FIRST, *NEXT), lambda path: path in paths or path == (FIRST,), BUDGET.epsilon_in_all, 2)
    assert truth > 1.5 * BUDGET.delta  # so that counting each path by its best bound promises too little
    assert truth <= BUDGET.promised_delta


amounts = st.floats(0.02, 0.6)
events = st.one_of(
    st.builds(lambda mu: Gaussian(noise_multiplier=1 / mu), amounts),
    st.builds(lambda epsilon: Pure(epsilon=epsilon), amounts),
    st.builds(lambda epsilon, delta: Approximate(epsilon=epsilon, delta=delta), amounts, st.sampled_from([1e-4, 9e-4])),
)


@settings(max_examples=20, deadline=None)
@given(menu=st.lists(events, min_size=2, max_size=3), limit=st.sampled_from([0.3, 0.7, 1.2]))
def test_no_tree_of_studies_learns_more_than_is_promised(menu: list[Event], limit: float) -> None:
    budget = Budget(epsilon_in_all=limit, delta=1e-3)
    known: dict[tuple[Event, ...], bool] = {}

    def allows(path: tuple[Event, ...]) -> bool:
        if path not in known:
            known[path] = is_accepted(path, budget)
        return known[path]

    truth = most_delta(menu, allows, limit * (1 + 1e-9), 3)
    assert truth <= budget.promised_delta * (1 + 1e-6)


def test_what_fits_by_adding_up_and_what_uses_a_budget_up_alone_is_accepted() -> None:
    """A valid filter that refuses honest studies would be of no use."""
    noise = 1 / 0.23  # no more than epsilon 1 at delta 1e-6
    whole: list[Event] = [Pure(epsilon=1.0), Gaussian(noise_multiplier=noise), Approximate(epsilon=1.0, delta=1e-6)]
    assert all(is_accepted([event]) for event in whole)
    half = tacit.Averaging(epsilon=0.5, delta=1e-6).event()
    assert is_accepted([Pure(epsilon=0.5), half])
    assert not is_accepted([Pure(epsilon=0.51), half])
    assert is_accepted([half, half, half])  # Gaussian noise adds up to less


# --- other ways round it ---------------------------------------------------------------------------------------------


def parties(n: int = 60, **given: object) -> Federation:
    X = np.random.default_rng(1).uniform(-0.5, 0.5, (n, 2))
    return Federation.split(X, np.arange(n) % 2, n_parties=3, norm_bound=1.0, **given)


def test_promises_for_adding_and_removing_are_not_taken_for_replacing() -> None:
    """Noise for a record that is added or removed is too little for one that is replaced: it counts twice over."""
    method = PrivateNewton(epsilon=1.0, delta=1e-6, relation="add-remove")
    with pytest.raises(BudgetExceeded, match=r"to 2\.\d+ .*replace-one.*over the limit of 1"):
        method.fit(parties(policy=Policy(budget=BUDGET)))
    method.fit(parties(policy=Policy(budget=Budget(epsilon_in_all=1.0, relation="add-remove"))))
    # and the other way round nothing is known; its size would be told, too
    with pytest.raises(PolicyRefusal, match="its add-remove budget protects"):
        tacit.Averaging(epsilon=1.0).fit(
            parties(policy=Policy(budget=Budget(epsilon_in_all=9.0, relation="add-remove")))
        )


@pytest.mark.parametrize(
    ("event", "twice"),
    [
        (Pure(epsilon=0.3), Pure(epsilon=0.6)),
        (Gaussian(noise_multiplier=8.0), Gaussian(noise_multiplier=4.0)),
        (Approximate(epsilon=0.3, delta=1e-7), Approximate(epsilon=0.6, delta=1e-7 * (1 + math.exp(0.3)))),
    ],
)
def test_two_steps_of_add_remove_are_one_of_replace_one(event: Event, twice: Event) -> None:
    stated = Under(relations=("add-remove",), event=event)
    assert epsilon_of(stated, 1e-6) == pytest.approx(epsilon_of(twice, 1e-6), rel=1e-12)
    assert epsilon_of(stated, 1e-6, relation="add-remove") == pytest.approx(epsilon_of(event, 1e-6), rel=1e-12)


def test_deltas_that_are_larger_than_the_budgets_are_not_forgotten() -> None:
    ledger = Ledger()
    for number in range(5):
        reserve(ledger, f"r{number}", Approximate(epsilon=1.0, delta=1e-5), Budget())  # no limit yet
    for event in (Approximate(epsilon=0.1, delta=1e-7), Pure(epsilon=0.1)):
        with pytest.raises(BudgetExceeded, match="inf is spent already"):
            reserve(ledger, "next", event)


def test_a_new_name_is_no_new_budget(tmp_path: Path) -> None:
    table = Table.from_arrays(np.zeros((20, 1)), np.arange(20) % 2, Schema.of_arrays(1, ["0", "1"], norm_bound=1.0))
    book = Ledger()
    for name, is_refused in (("north", False), ("nord", True)):
        renamed = Federation.from_tables({name: table}, policy=Policy(budget=BUDGET), ledger=book)
        if is_refused:
            with pytest.raises(BudgetExceeded, match="1 is spent already"):
                tacit.Averaging(epsilon=1.0, delta=0, colluders=0).fit(renamed)
        else:
            tacit.Averaging(epsilon=1.0, delta=0, colluders=0).fit(renamed)
    own = Ledger(tmp_path / "ledger.db")  # a party's own file, which moves with its records
    reserve(own, "r", Pure(epsilon=1.0), account=own.sole_account("north"))
    own.close()
    moved = Ledger(tmp_path / "ledger.db")
    with pytest.raises(BudgetExceeded, match="1 is spent already"):
        reserve(moved, "s", Pure(epsilon=0.1), account=moved.sole_account("nord"))


def test_one_party_that_cannot_pay_costs_nobody_anything() -> None:
    policies = {"0": Policy(), "1": Policy(), "2": Policy(budget=Budget(epsilon_in_all=0.5))}
    X = np.random.default_rng(1).uniform(-0.5, 0.5, (60, 2))
    group = np.arange(60) % 3
    federation = Federation.split(X, np.arange(60) // 3 % 2, groups=group, norm_bound=1.0, policy=policies)
    with pytest.raises(BudgetExceeded, match=r"over the limit of 0\.5"):
        PrivateNewton(epsilon=1.0, delta=1e-6).fit(federation)
    for name in federation.names:
        guard = federation.guard(name)
        assert guard.spent() == 0.0
        assert guard.ledger.n_releases(name) == 0
    PrivateNewton(epsilon=0.5, delta=1e-6).fit(federation)
    assert all(federation.guard(name).spent() == pytest.approx(0.5) for name in federation.names)


def test_what_a_run_has_not_reserved_does_not_leave() -> None:
    """Not even if a step's reply names another event than the course that was agreed to."""
    federation = parties()
    method = tacit.Averaging(epsilon=1.0, delta=0)
    channel = federation.begin(method)
    ledger = federation.guard("party1").ledger
    ledger.database.execute("UPDATE run SET reserved = replace(reserved, '1.0', '0.5')")  # it meant to pay half
    with pytest.raises(NotAgreed, match=r"would release what run .* has not reserved"):
        channel.sum(method.course(channel.plan)[0].step)
    assert ledger.n_releases("party1") == 0


def test_a_check_after_a_hundred_sampled_studies_works_nothing_out_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """It took 13 s: the distributions of all losses were composed for each answer."""

    def composed(*_: object) -> None:
        raise AssertionError("privacy loss distributions were composed across runs")

    monkeypatch.setattr(accounting, "_losses", composed)
    ledger, budget = Ledger(), Budget(epsilon_in_all=3.0)
    for number in range(100):
        event = PoissonSampled(probability=0.01 + number * 1e-4, event=Gaussian(noise_multiplier=20.0 + number))
        reserve(ledger, f"r{number}", event, budget)
    spent = ledger.epsilon("p", delta=1e-6)
    assert 0 < spent < 3.0
