"""The attacker wants to learn of a record from whether a party answers: a failure cost nothing, so it asks often.

It chooses the settings of a study, and proposes many. Each is put to the guards of two parties that differ in one
record. The two may not differ in whether they answer, nor in what they say when they do not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tacit import Federation
from tacit.data.feature import Numeric, Target
from tacit.data.schema import Schema
from tacit.data.table import Table
from tacit.errors import BudgetExceeded, NotConverged
from tacit.federation.agreement import Agreement
from tacit.federation.group import SumGroup
from tacit.federation.guard import Guard
from tacit.federation.message import Question
from tacit.federation.policy import Policy
from tacit.federation.step import Step
from tacit.methods import make
from tacit.methods.averaging.statistic import local_model
from tacit.methods.privlogit.method import QUESTIONS
from tacit.methods.privlogit.statistic import Point
from tacit.methods.privlogit.unit import Units
from tacit.methods.transfer.statistic import Reference
from tacit.privacy.ledger import Budget, Ledger
from tacit.rand import Rng
from tacit.secure.center.embedded import EmbeddedCenter

KEYS = EmbeddedCenter().keys
ANSWERED = "answered"


def party(table: Table, policy: Policy | None = None) -> Guard:
    return Guard("a", table, policy=policy or Policy(), ledger=Ledger(), rng=Rng.seeded(1))


class FirstQuestion:
    """The first question of a run of a method with these settings, put to one guard of two."""

    def __init__(self, name: str, settings: dict[str, Any], values: object = None, step: Step | None = None) -> None:
        self.agreement = Agreement(study="s", method=make(name, settings))
        self.values, self.step = values, step

    def outcome(self, guard: Guard, run: str) -> str:
        """What the coordinator sees: that there is an answer, or the words of a refusal."""
        told = self.agreement.method.sizes_told
        sizes = {"a": guard.table.n_records, "b": guard.table.n_records}
        try:
            group = SumGroup.of(sizes, quorum=2, told=told)
            guard.begin(run, self.agreement, group)
            terms = self.agreement.terms(guard.table.schema, group)
            step = self.step or terms.course[0].step
            asked = Question(
                study="s", run=run, method=self.agreement.method.name, step=step.name, version=step.version,
                group=group.digest, plan=terms.digest, turn=0, values=step.encode_values(self.values),
            )  # fmt: skip
            guard.answer(asked.encode(), self.agreement, KEYS)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return ANSWERED


# --- a tiny penalty and collinear columns ----------------------------------------------------------------------------


def collinear_or_not(n: int = 40, classes: int = 2) -> tuple[Table, Table]:
    """Two tables whose last record alone tells whether two of the columns are the same."""
    schema = Schema.of_arrays(3, [str(c) for c in range(classes)], norm_bound=1.0)
    x = np.linspace(-0.5, 0.5, n)
    X = np.column_stack([x, x, np.sin(40 * x) / 2])
    y = (np.arange(n) + (x > 0)) % classes
    other = X.copy()
    other[-1] = [0.5, -0.5, 0.1]
    return Table.from_arrays(X, y, schema), Table.from_arrays(other, y, schema)


TINY = [10.0**-exponent for exponent in range(0, 19, 2)]
LOCAL_FITS: dict[str, tuple[dict[str, Any], Callable[[int], object]]] = {
    "averaging": ({}, lambda turn: None),
    "hypothesis-transfer": ({"strategy": "average"}, lambda turn: Reference()),
    "curator-averaging": ({}, lambda turn: None),
    "objective-perturbation": ({"delta": 0.0}, lambda turn: None),
}


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", list(LOCAL_FITS))
def test_whether_a_local_fit_fails_tells_nothing_of_collinear_columns(name: str, classes: int) -> None:
    fixed, values = LOCAL_FITS[name]
    trusting = Policy(not_private=["curator-averaging"])  # it counts on an honest curator
    guards = [party(table, trusting) for table in collinear_or_not(classes=classes)]
    answered = set()
    for turn, l2 in enumerate(TINY):
        epsilon = 40.0 if name == "objective-perturbation" else 0.01  # a small l2 takes up epsilon there
        question = FirstQuestion(name, fixed | {"l2": l2, "epsilon": epsilon}, values(turn))
        first, second = (question.outcome(guard, f"run {turn}") for guard in guards)
        assert first == second
        assert first == ANSWERED or "l2" in first  # what is refused is the setting, from public numbers alone
        answered.add(first == ANSWERED)
    assert answered == {True, False}  # both were tried


def test_a_spent_budget_looks_the_same_whatever_the_records_are() -> None:
    """The step used to run, and to fail, before the budget was looked at."""
    policy = Policy(budget=Budget(epsilon_in_all=0.1))
    for name, (fixed, values) in LOCAL_FITS.items():
        guards = [party(table, policy) for table in collinear_or_not()]
        for l2 in TINY:
            question = FirstQuestion(name, fixed | {"l2": l2, "epsilon": 40.0}, values(0))
            first, second = (question.outcome(guard, f"run {l2}") for guard in guards)
            assert first == second != ANSWERED


def test_a_step_that_fails_all_the_same_is_paid_for_and_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """None should. If one does, the attacker learns that once for the price of a run, and not again and again."""
    guard = party(collinear_or_not()[0])
    question = FirstQuestion("averaging", {"epsilon": 0.5})

    def breaks(*_: object, **__: object) -> None:
        raise ArithmeticError("of a record")

    with monkeypatch.context() as patch:
        patch.setattr("tacit.federation.step.Step.__call__", breaks)
        assert question.outcome(guard, "one") == "ArithmeticError: of a record"
    guard.abandon("one")
    assert guard.spent() == pytest.approx(0.5, rel=1e-2)
    assert "failed at party 'a' before" in question.outcome(guard, "one")
    assert question.outcome(guard, "two") == ANSWERED


# --- the exact methods: what does not fit ----------------------------------------------------------------------------


def ages(last: float) -> Table:
    """Fifty records; the age of one of them is what the attacker wants."""
    schema = Schema(features=(Numeric("age"), Numeric("weight", 40, 160)), target=Target("ill", ("no", "yes")))
    X = np.column_stack([[*np.linspace(20, 80, 49), last], np.linspace(50, 90, 50)])
    return Table.from_arrays(X, ["no", "yes"] * 25, schema)


def points() -> Iterator[Point]:
    """Points and units at which a part of a sum may not fit its bits, fine enough to tell ages apart."""
    for exponent in (-256, 0, 40):
        units = Units(centre=np.array([50.0]), exponent=np.array([exponent]))
        for size in np.logspace(-3, 300, 8):
            for direction in ([1.0, 0.0, 0.0], [-1.0, 1.0, 1.0]):
                yield Point(point=size * np.array(direction), units=units)


@pytest.mark.parametrize(
    ("step", "secure"),
    [
        ("point", "center"),
        ("curvature", "center"),
        ("open_point", "sums"),
        ("open_curvature", "sums"),
        ("loss", "sums"),
    ],
)
def test_no_question_is_answered_by_the_age_of_one_record(step: str, secure: str) -> None:
    """The ages of 50 records were found in 2,382 questions, by whether a part fitted the bits that were asked for."""
    policy = Policy(not_private=["privlogit"])
    guards = [party(ages(age), policy) for age in (33.0, 34.0)]
    outcomes = set()
    for turn, point in enumerate(points()):
        question = FirstQuestion("privlogit", {"l2": 1.0, "secure": secure}, point, getattr(QUESTIONS, step))
        first, second = (question.outcome(guard, f"run {turn}") for guard in guards)
        assert first == second
        outcomes.add(first)
    assert outcomes == {ANSWERED}


def test_a_step_that_fails_in_process_is_paid_for_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure that Tacit foresees used to give the run's cost back: it could be asked for again without end."""
    chance = np.random.default_rng(0)
    X = chance.normal(size=(60, 2)) / 3
    policy = Policy(budget=Budget(epsilon_in_all=1.0))
    parties = Federation.split(X, (X[:, 0] > 0).astype(np.int64), n_parties=3, norm_bound=1.0, policy=policy)

    def failing(*_: object, **__: object) -> Any:
        raise NotConverged("of some record")

    monkeypatch.setattr(local_model, "_many", failing)
    with pytest.raises(NotConverged, match="of some record"):
        make("averaging", {"epsilon": 1.0}).fit(parties)
    monkeypatch.undo()
    assert [parties.guard(name).spent() for name in parties.names] == pytest.approx([1.0] * 3)
    with pytest.raises(BudgetExceeded, match="over the limit of 1"):
        make("averaging", {"epsilon": 1.0}).fit(parties)
