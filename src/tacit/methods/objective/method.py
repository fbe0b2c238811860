"""Objective perturbation: each party adds a random linear term to its own objective and tells the minimiser.

Parties   K parties with n_j records each; a coordinator that averages
Trust     nobody: each party's own noise protects its records from everybody, whoever else pools what they know
Travels   Party -> coordinator: its noisy model. A question says no more than its step: each party works out the plan
          itself
Revealed  every party's noisy model, to the coordinator and to whom it tells them; their average, to everybody; the
          numbers of records n_j, which the replace-one relation leaves public
Privacy   sound: Pure(epsilon), or Approximate(epsilon, delta); one record, replace-one. A record is in one party, so
          that the parties' models together cost no more than one of them. paper: NotPrivate
Assumes   rows of norm at most the schema's radius, enforced where a table is encoded; the intercept is one more
          feature of fixed value, so that R^2 = radius^2 + 1
Cost      one round; a party sends 8 bytes a coefficient; one local fit
Paper     Du, Li and Li 2019, OFPA. Sound departs from it. The intercept is perturbed and penalised like every other
          coefficient (theirs is neither, and its equation tells the exact sum of the labels). A public penalty bounds
          the change of volume that their proof leaves out. The noise is spherical or Gaussian for rows of bounded L2
          norm. There is one upload (theirs spends epsilon anew in each round, and a later round learns nothing).
          `calibration="paper"` is Algorithm 2 for a fixed number of rounds, Laplace(4 / epsilon) on each coefficient
          but the intercept. It has no penalty, and often no minimum: where l2 is not given, a penalty of 0.1 makes
          one, far out in the direction of descent

The noise, its proof and its cost are in `statistic`. Each party's noise alone protects its records,
so n records in K parties see sqrt K times the noise that they would see in one: the price of trusting nobody at all.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal, Self

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from tacit.bisection import bisect
from tacit.data.schema import Schema
from tacit.data.table import Table
from tacit.errors import SettingError
from tacit.federation.agreement import Ask
from tacit.federation.channel import Channel, Opened
from tacit.federation.group import SumGroup
from tacit.methods.cohort import Cohort
from tacit.methods.method import Learned, Method
from tacit.methods.neighbour import Neighbours
from tacit.methods.objective.statistic import Plan, event_of, perturbed_model
from tacit.methods.setting import check_choice, check_l2, check_whole
from tacit.models.parameter import coefficients
from tacit.privacy.event import Event

Floats = npt.NDArray[np.float64]
Weights = Literal["size", "equal"]

_PAPER_L2 = 0.1  # [R]: the document has no penalty, and often no minimum


class ObjectivePerturbation(Method):
    """The average of local classifiers, each the minimiser of a perturbed objective; nobody is trusted.

    Args:
        epsilon: the promise; infinity adds no noise and promises nothing.
        delta: its probability of failing (Gaussian noise); None takes the rule min(1e-6, 1 / n^2), and 0 asks for pure
            epsilon (spherical Laplace noise).
        l2: regularisation of each party's own sum, 1/C of scikit-learn; None takes a public rule (`default_l2`). A
            small one takes up epsilon: for two classes it must be above R^2 / (4 (e^epsilon - 1)), about.
        weights: "size" weighs each party by its number of records, "equal" does not.
        fit_intercept: whether to learn an intercept, as a penalised feature.
        rounds: how often the document's algorithm is run over; more than 1 only with calibration="paper".
        calibration: "sound", or "paper" for the document's noise, which is NOT PRIVATE.

    Example:
        >>> import tacit
        >>> hospitals = tacit.datasets.load("readmission").tables
        >>> parties = tacit.Federation.from_tables({name: hospitals[name] for name in ("north", "south", "west")})
        >>> model = tacit.ObjectivePerturbation(epsilon=1.0).fit(parties)
        >>> model.classes_.tolist()
        ['no', 'yes']
    """

    name = "objective-perturbation"

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        l2: float | None = None,
        weights: Weights = "size",
        fit_intercept: bool = True,
        rounds: int = 1,
        calibration: Literal["sound", "paper"] = "sound",
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.l2 = l2
        self.weights = weights
        self.fit_intercept = fit_intercept
        self.rounds = rounds
        self.calibration = calibration

    def event(self) -> Event:
        """What one run costs each record; needs no data."""
        return event_of(self.promise)

    def at_noise(self, factor: float) -> Self:
        """The same method with `factor` times the noise; exact for two classes, rows of norm 1 and a given l2."""
        if self.l2 is None or self.promise.not_private is not None:
            return super().at_noise(factor)
        schema = Schema.of_arrays(1, ["0", "1"], norm_bound=1.0)
        plan = self.plan(self.cohort(schema, SumGroup.of({"a": 1}, quorum=1)))
        target = factor * plan.noise_scale
        least = plan.promise.epsilon - plan.noise_epsilon  # what the change of volume and the dither take
        above = bisect(
            lambda more: replace(plan, promise=replace(plan.promise, epsilon=least + more)).noise_scale < target,
            yes=1.0 + 2 * plan.promise.epsilon / factor,
            no=0.0,
            tolerance=1e-9,
        )
        return type(self)(**self.get_params() | {"epsilon": least + above})

    @classmethod
    def printed_neighbours(cls) -> list[Neighbours]:
        """A label, read through the unperturbed intercept: sum sigma(w.x + a) + l2 a is the sum of the labels."""
        schema = Schema.of_arrays(1, ["0", "1"], norm_bound=1.0)
        X, l2 = np.linspace(-1.0, 1.0, 12)[:, None], 0.1
        labels = [1, 0] * 6

        def score(method: object, opened: list[Opened]) -> float:
            w, a = np.asarray(dict(opened[0])["theta"])
            return float(expit(X[:, 0] * w + a).sum() + l2 * a)

        first, second = (Table.from_arrays(X, [*labels[:-1], last], schema) for last in (0, 1))
        quiet = Table.from_arrays(np.zeros((2, 1)), [0, 1], schema)
        return [
            Neighbours(
                label="a label behind the unperturbed intercept",
                first={"a": first, "b": quiet},
                second={"a": second, "b": quiet},
                settings={"l2": l2, "fit_intercept": True},
                score=score,
            )
        ]

    @classmethod
    def worst_neighbours(cls) -> list[Neighbours]:
        """A record mirrored on an axis, among many that hold the model where it gets both versions wrong.

        There both gradients are nearly as long as they can be and nearly opposed, so that their distance is 0.8 of G.
        """
        schema = Schema.of_arrays(2, ["0", "1"], norm_bound=1.0)
        l2, crowd = 5.0, 1000
        U = np.array([[0.45, math.sqrt(1 - 0.45**2)], [0.45, -math.sqrt(1 - 0.45**2)]])

        def party(u: Floats) -> Table:
            return Table.from_arrays(np.vstack([np.tile([1.0, 0.0], (crowd, 1)), u]), [0] * crowd + [1], schema)

        def noise(w: Floats, u: Floats) -> float:
            pull = crowd * expit(w[0]) * np.array([-1.0, 0.0]) + expit(-(w @ u)) * u
            return float(np.linalg.norm(pull - l2 * w))

        def score(method: object, opened: list[Opened]) -> float:
            """Which noise would be the longer one: all that the released model says of the record."""
            w = np.asarray(dict(opened[0])["theta"])
            return noise(w, U[1]) - noise(w, U[0])

        quiet = Table.from_arrays(np.zeros((1, 2)), [1], schema)
        return [
            Neighbours(
                label="a mirrored record that is always wrong",
                first={"a": party(U[0]), "b": quiet},
                second={"a": party(U[1]), "b": quiet},
                settings={"l2": l2, "fit_intercept": False},
                score=score,
            )
        ]

    def plan(self, cohort: Cohort) -> Plan:
        """The public plan of a run with this cohort."""
        promise = self.promise.settled(cohort.n_records)
        plan = Plan(cohort=cohort, promise=promise, l2=_PAPER_L2, rounds=self.rounds)
        if self.l2 is not None:
            plan = replace(plan, l2=float(self.l2))
        elif not promise.is_paper:
            plan = replace(plan, l2=default_l2(plan))
        _ = cohort.row_norm if promise.not_private else plan.noise_scale  # what fails does so before a party is asked
        plan.check()
        return plan

    def course(self, plan: Plan) -> tuple[Ask, ...]:
        """One model of each party; in each of the document's rounds, if they are asked for."""
        return (Ask(step=perturbed_model, times=plan.rounds, event=plan.event()),)

    def _check_settings(self) -> None:
        self.promise.check()
        check_l2(self.l2, zero=False)
        check_choice("weights", self.weights, ("size", "equal"))
        check_whole("rounds", self.rounds)
        if self.rounds > 1 and self.calibration != "paper":
            raise SettingError(
                f"rounds = {self.rounds} would spend epsilon {self.rounds} times: a later round learns nothing that "
                f"the first did not tell; leave it at 1, or look at the document's algorithm with calibration='paper'"
            )

    def _learn(self, channel: Channel, plan: Plan) -> Learned:
        sizes = channel.sizes
        share = {name: n if self.weights == "size" else 1 for name, n in sizes.items()}
        theta = np.zeros(plan.loss.shape)
        for _ in range(plan.rounds):  # line 3; the last round's average counts, line 14
            replies = channel.ask(perturbed_model)
            models = channel.read(replies, lambda name, reply: plan.read(reply, sizes[name]))
            weighted = [share[name] * model for name, model in models.items()]
            theta = np.sum(weighted, axis=0) / sum(share.values())
        coef, intercept = coefficients(theta, plan.cohort.n_features, plan.cohort.constant)
        return Learned(coef=coef, intercept=intercept)


def default_l2(plan: Plan) -> float:
    """A regularisation that balances bias against noise: a rule of public numbers, so it costs nothing.

    Noise of variance s^2 a coordinate in each of K objectives costs s^2 h / (2 K (n h + l2)^2) in mean loss in a
    direction of curvature n h, at most s^2 / (8 K n l2), and about half of that over a spectrum of several decades; the
    penalty costs (l2 / (2 n)) ||w||^2, where a model that gives rows of norm R a margin of 4 has ||w|| = 4/R. Over k
    directions the sum is least at l2 = s R sqrt(k / (128 K)). Never below what spends a tenth of epsilon on the change
    of volume, nor below 1, scikit-learn's default.
    """
    if plan.promise.is_exact:
        return 1.0
    floor = max(1.0, plan.least_l2(plan.promise.epsilon / 10))
    noise_std = replace(plan, l2=floor).noise_std
    return max(floor, noise_std * plan.cohort.row_norm * math.sqrt(plan.loss.width / (128 * plan.cohort.n_parties)))
