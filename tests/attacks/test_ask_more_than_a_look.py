"""The attacker is the coordinator of a study with looks: it wants an AUC that nobody agreed to, or more of one.

What a look asks follows from the study that the owner agreed to. A coordinator that works from another text, asks for
the histogram twice, or asks for the fit again after it, is refused, and nothing is charged besides the look.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tacit.errors import NotAgreed
from tacit.federation.agreement import Agreement
from tacit.federation.group import SumGroup
from tacit.federation.guard import Guard
from tacit.federation.message import Question
from tacit.federation.policy import Policy
from tacit.federation.step import Step
from tacit.methods.evaluation.statistic import LinearModel
from tacit.methods.newton.measuring import party_measuring
from tacit.methods.newton.statistic import party_squares
from tacit.privacy.ledger import Ledger
from tacit.rand import Rng
from tacit.record import to_value
from tacit.secure.center.embedded import EmbeddedCenter
from tacit.studies.looks import look_methods, looks_agreed, planned_looks
from tacit.studies.study import Study
from tacit.wire import Value

from ..studies.test_looking import study_of, tables_of

KEYS = EmbeddedCenter().keys
MODEL = LinearModel(coef=np.ones((1, 2)), intercept=np.zeros(1))


class Party:
    """A party in a run of look 1, and the questions that a coordinator puts to it."""

    def __init__(self, agreed: Study, asked: Study) -> None:
        tables = tables_of(agreed, 2)
        self.ledger = Ledger()
        self.guard = Guard("party 0", tables["party 0"], policy=Policy(), ledger=self.ledger, rng=Rng.seeded(1))
        self.agreement = Agreement(
            study=agreed.name, method=look_methods(agreed), digest="d", runs=1, looks=looks_agreed(agreed)
        )
        self.group = SumGroup.of({"party 0": 300, "party 1": 300}, quorum=2, look=1)
        self.plan = look_methods(asked).terms(asked.schema, self.group).digest
        self.guard.begin("run", self.agreement, self.group)

    def ask(self, step: Step, values: dict[str, Value] | None, turn: int = 0) -> None:
        question = Question(
            study=self.agreement.study, run="run", method="private-newton", step=step.name, version=step.version,
            group=self.group.digest, plan=self.plan, turn=turn, values=values,
        )  # fmt: skip
        self.guard.answer(question.encode(), self.agreement, KEYS)

    @property
    def spent(self) -> float:
        return self.ledger.epsilon("party 0", delta=planned_looks(PLAIN)[0].delta)


PLAIN, MEASURED = study_of(), study_of('coefficient = "treated"\nhalf_width = 0.01\nauc = 0.01')


def test_an_auc_that_the_study_does_not_want_is_not_told() -> None:
    for asked in (PLAIN, MEASURED):  # from the true plan, and from that of a study with an AUC
        party = Party(agreed=PLAIN, asked=asked)
        with pytest.raises(NotAgreed, match=r"never asks step|not the one that study 'trial' entails"):
            party.ask(party_measuring, to_value(MODEL))
        assert party.spent == pytest.approx(planned_looks(PLAIN)[0].epsilon, rel=2e-3)


def test_the_histogram_is_told_once_and_the_fit_is_over_then() -> None:
    party = Party(agreed=MEASURED, asked=MEASURED)
    party.ask(party_measuring, to_value(MODEL))
    for turn in (0, 1):
        other = replace(MODEL, intercept=np.ones(1))
        with pytest.raises(NotAgreed, match="asked 1 times in a run, each turn once"):
            party.ask(party_measuring, to_value(other), turn)
    with pytest.raises(NotAgreed, match="comes before 'private-newton/measuring', which was answered already"):
        party.ask(party_squares, None)
    assert party.spent == pytest.approx(planned_looks(MEASURED)[0].epsilon, rel=2e-3)


def test_a_party_that_agreed_to_an_auc_measures_no_plan_without() -> None:
    party = Party(agreed=MEASURED, asked=PLAIN)
    with pytest.raises(NotAgreed, match="not the one that study 'trial' entails"):
        party.ask(party_squares, None)
