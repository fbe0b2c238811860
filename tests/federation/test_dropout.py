"""A party that is missing in a round: the sum goes on without it where the noise allows for that, and only there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tacit import Averaging, Federation, FunctionalMechanism, NoisyDescent, Policy
from tacit.errors import CenterError, QuorumLost, SettingError
from tacit.federation.engine import InProcess, RunStart
from tacit.federation.group import SumGroup
from tacit.federation.message import Answer
from tacit.methods.averaging.statistic import local_model
from tacit.methods.cohort import Cohort
from tacit.secure.process_key import SealKeys

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3000, 3)) / 3
Y = (X @ [4.0, -2.0, 1.0] + RNG.logistic(size=3000) / 2 > 0).astype(int)


class Unreliable(InProcess):
    """An engine that loses one party's answers to some questions; the party itself has paid and stored them."""

    def __init__(self, engine: InProcess, lost: str, questions: set[int]) -> None:
        self._guards = engine._guards
        self.lost, self.questions, self.asked = lost, questions, 0

    def ask(self, start: RunStart, message: bytes, parties: Sequence[str], keys: SealKeys) -> dict[str, Answer]:
        answers = super().ask(start, message, parties, keys)
        self.asked += 1
        if self.asked in self.questions:
            del answers[self.lost]
        return answers


def federation(dropouts: int, lost: set[int], **settings: Any) -> Federation:
    parties = Federation.split(X, Y, weights=[3, 3, 2, 2], norm_bound=1.0, dropouts=dropouts, **settings)
    assert isinstance(parties.engine, InProcess)
    parties.engine = Unreliable(parties.engine, "party2", lost)
    return parties


@pytest.mark.parametrize(
    "model",
    [Averaging(epsilon=50.0, l2=30.0), FunctionalMechanism(epsilon=50.0), NoisyDescent(epsilon=50.0, delta=1e-6)],
)
def test_a_round_goes_on_without_a_party_and_the_model_is_that_of_the_others(model: Any) -> None:
    model.fit(federation(1, {1}))
    assert model.score(X, Y) > 0.8
    assert model.facts_.is_private


def test_without_noise_the_average_is_that_of_the_parties_that_were_there() -> None:
    everything = Policy(not_private=["averaging"])
    missed = Averaging(epsilon=np.inf, l2=3.0).fit(federation(1, {1}, policy=everything))
    parties = federation(0, set(), policy=everything)
    engine = parties.engine
    assert isinstance(engine, InProcess)
    rest = {name: engine.guard(name).table for name in parties.names if name != "party2"}
    n_rest = sum(table.n_records for table in rest.values())
    alone = Averaging(epsilon=np.inf, l2=3.0 * n_rest / 3000).fit(Federation.from_tables(rest, policy=everything))
    np.testing.assert_allclose(missed.coef_, alone.coef_, rtol=1e-8)
    np.testing.assert_allclose(missed.intercept_, alone.intercept_, rtol=1e-8)


def test_a_party_that_is_missing_between_rounds_changes_nothing_for_the_others() -> None:
    model = NoisyDescent(epsilon=50.0, delta=1e-6, rounds=6)
    parties = federation(1, {2, 4, 5})
    assert model.fit(parties).score(X, Y) > 0.8
    assert model.n_rounds_ == 6


def test_a_missing_party_stops_a_run_whose_noise_counts_on_it() -> None:
    with pytest.raises(QuorumLost, match="no answer from party2"):
        Averaging(epsilon=1.0).fit(federation(0, {1}))


def test_the_center_opens_no_sum_that_the_noise_does_not_allow_for() -> None:
    parties = federation(0, set())
    channel = parties.begin(Averaging(epsilon=1.0))
    digest, answers = channel._ask(local_model, None)
    envelopes = {name: answer.value["envelopes"] for name, answer in answers.items() if name != "party2"}
    with pytest.raises(CenterError, match="a sum over 4 parties be opened; 3 are in it"):
        parties.center.open_sum(digest, envelopes)  # type: ignore[arg-type]


def test_noise_allows_for_parties_that_may_be_missing() -> None:
    group = SumGroup.of(federation(0, set()).sizes, quorum=4)
    schema = federation(0, set()).schema

    def plan(quorum: int, colluders: int | None = None) -> Any:
        return Averaging(epsilon=1.0).plan(Cohort.of(schema, replace(group, quorum=quorum), colluders=colluders))

    plans = [plan(quorum) for quorum in (4, 3, 2)]
    noise = [plan.grid.noise_std for plan in plans]
    assert noise[0] < noise[1] < noise[2]
    assert [plan.grid.total.honest for plan in plans] == [3, 2, 1]
    with pytest.raises(SettingError, match="colluders = 1 among 1 parties leaves nobody honest"):
        plan(1, colluders=1)
    with pytest.raises(SettingError, match="dropouts = 4 of 4 parties leaves nobody"):
        Averaging(epsilon=1.0).fit(federation(4, set()))
