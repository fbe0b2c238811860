"""Objective perturbation: each party adds a random linear term to its own objective and tells the minimiser.

Parties   K parties with n_j records each; a coordinator that averages
Trust     nobody: each party's own noise protects its records from everybody, whoever else pools what they know
Travels   coordinator -> party: the plan (regularisation, epsilon, bounds). Party -> coordinator: its noisy model
Revealed  every party's noisy model, to the coordinator and to whom it tells them; their average, to everybody; the
          numbers of records n_j, which the replace-one relation leaves public
Privacy   sound: Pure(epsilon), or Approximate(epsilon, delta); one record, replace-one. A record is in one party, so
          that the parties' models together cost no more than one of them. paper: NotPrivate
Assumes   rows of norm at most the schema's radius, enforced where a table is encoded; the intercept is one more
          feature of fixed value, so that R^2 = radius^2 + 1
Cost      one round; a party sends 8 bytes a coefficient; one local fit
Paper     Du, Li and Li 2019, OFPA. Sound departs from it: the intercept is perturbed and penalised like every other
          coefficient (theirs is neither, and its equation tells the exact sum of the labels), a public penalty bounds
          the change of volume that their proof leaves out, the noise is spherical or Gaussian for rows of bounded L2
          norm, and there is one upload (theirs spends epsilon anew in each round, and a later round learns nothing).
          `calibration="paper"` is Algorithm 2 for a fixed number of rounds, Laplace(4 / epsilon) on each coefficient
          but the intercept. It has no penalty, and often no minimum: where l2 is not given, a penalty of 0.1 makes
          one, far out in the direction of descent

The noise, its proof and its cost are in `methods.perturbed_objective`. Each party's noise alone protects its records,
so n records in K parties see sqrt K times the noise that they would see in one: the price of trusting nobody at all.
"""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from tacit.data.schema import Schema
from tacit.data.table import Table
from tacit.errors import SettingError
from tacit.federation.federation import Federation, Opened
from tacit.federation.reply import Disclosed, Noised
from tacit.federation.step import step
from tacit.methods.method import Learned, Method
from tacit.methods.neighbour import Neighbours
from tacit.methods.perturbed_objective import Plan, event_of
from tacit.methods.setting import check_choice, check_l2, check_privacy, required_radius
from tacit.models.solver import fit
from tacit.privacy.event import Event, NotPrivate
from tacit.rand import Rng

Floats = npt.NDArray[np.float64]
Weights = Literal["size", "equal"]

_CONSTANT = 1.0  # the value of the intercept's feature
_PAPER_L2 = 0.1  # [R]: the document has no penalty, and often no minimum


@step("objective-perturbation/model", version=1)
def perturbed_model(table: Table, *, rng: Rng, **arguments: Any) -> Noised | Disclosed:
    """Fit this party's classifier with a random linear term in its objective."""
    plan = Plan(**arguments)
    plan.check(table)
    n = table.n_records
    # 1. b, by Algorithm 2, line 6. 2. w = argmin L(w) + (Lam/2) ||w||^2 + b.w, line 9. 3. Tell w, on a grid.
    solution = fit(table.blocks, problem=plan.problem(n, plan.draw(rng=rng)))
    event = plan.event()
    if isinstance(event, NotPrivate):
        told = {"theta": solution.theta}
        return Noised(told, event) if math.isfinite(plan.epsilon) else Disclosed(told, event.why)
    return Noised({"theta": plan.on_grid(plan.certified(solution, table.blocks), n, rng=rng)}, event)


class ObjectivePerturbation(Method):
    """The average of local classifiers, each the minimiser of a perturbed objective; nobody is trusted.

    Args:
        epsilon: the promise; infinity adds no noise and promises nothing.
        delta: None for pure epsilon-differential privacy (spherical Laplace noise), or a probability (Gaussian noise).
        l2: regularisation of each party's own sum, 1/C of scikit-learn; None takes a public rule (`default_l2`). A
            small one takes up epsilon: for two classes it must be above R^2 / (4 (e^epsilon - 1)), about.
        weights: "size" weighs each party by its number of records, "equal" does not.
        fit_intercept: whether to learn an intercept, as a penalised feature.
        rounds: how often the document's algorithm is run over; more than 1 only with calibration="paper".
        calibration: "sound", or "paper" for the document's noise, which is NOT PRIVATE.
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
        return event_of(self.epsilon, self.delta, self.calibration == "paper")

    def at_noise(self, factor: float) -> Self:
        """The same method with `factor` times the noise; exact for two classes, rows of norm 1 and a given l2."""
        if self.l2 is None or self.calibration == "paper":
            return super().at_noise(factor)
        constant = _CONSTANT if self.fit_intercept else 0.0
        plan = Plan(
            epsilon=float(self.epsilon),
            delta=self.delta,
            l2=float(self.l2),
            paper=False,
            round_number=0,
            n_features=1,
            n_classes=2,
            radius=math.hypot(1.0, constant),
            constant=constant,
        )
        target = factor * plan.noise_scale
        least = plan.epsilon - plan.noise_epsilon  # what the change of volume and the dither take
        low, high = 0.0, 1.0 + 2 * plan.epsilon / factor  # above that
        while high - low > 1e-9 * high:
            middle = (low + high) / 2
            enough = replace(plan, epsilon=least + middle).noise_scale >= target
            low, high = (middle, high) if enough else (low, middle)
        return type(self)(**self.get_params() | {"epsilon": least + high})

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

    def plan(self, parties: Federation) -> Plan:
        """The public plan of a run with these parties."""
        paper = self.calibration == "paper"
        constant = _CONSTANT if self.fit_intercept else 0.0
        plan = Plan(
            epsilon=float(self.epsilon),
            delta=None if paper else self.delta,
            l2=1.0,
            paper=paper,
            round_number=0,
            n_features=parties.schema.n_columns,
            n_classes=parties.schema.n_classes,
            radius=required_radius(parties.schema, "ObjectivePerturbation", constant),
            constant=constant,
        )
        if self.l2 is not None:
            plan = replace(plan, l2=float(self.l2))
        else:
            plan = replace(plan, l2=_PAPER_L2 if paper else default_l2(plan, parties.n_parties))
        if not paper and math.isfinite(plan.epsilon):
            _ = plan.noise_scale  # an l2 too small for epsilon is found here, before a party is asked
        return plan

    def _check_settings(self) -> None:
        check_privacy(self.epsilon, self.delta)
        check_l2(self.l2, zero=False)
        check_choice("weights", self.weights, ("size", "equal"))
        check_choice("calibration", self.calibration, ("sound", "paper"))
        if isinstance(self.rounds, bool) or not isinstance(self.rounds, int) or self.rounds < 1:
            raise SettingError(f"rounds = {self.rounds!r} must be a whole number, 1 or more")
        if self.rounds > 1 and self.calibration != "paper":
            raise SettingError(
                f"rounds = {self.rounds} would spend epsilon {self.rounds} times: a later round learns nothing that "
                f"the first did not tell; leave it at 1, or look at the document's algorithm with calibration='paper'"
            )

    def _learn(self, parties: Federation) -> Learned:
        plan = self.plan(parties)
        sizes = parties.sizes
        share = {name: n if self.weights == "size" else 1 for name, n in sizes.items()}
        theta = np.zeros(plan.loss.shape)
        for k in range(self.rounds):  # line 3; the last round's average counts, line 14
            replies: Any = parties.ask(perturbed_model, **asdict(replace(plan, round_number=k)))
            weighted = [share[name] * reply["theta"] for name, reply in replies.items()]
            theta = np.sum(weighted, axis=0) / sum(share.values())
        theta, d = np.atleast_2d(theta), plan.n_features
        intercept = theta[:, d] * plan.constant if plan.constant else np.zeros(len(theta))
        return Learned(coef=theta[:, :d], intercept=intercept)


def default_l2(plan: Plan, n_parties: int) -> float:
    """A regularisation that balances bias against noise: a rule of public numbers, so it costs nothing.

    Noise of variance s^2 a coordinate in each of K objectives costs s^2 h / (2 K (n h + l2)^2) in mean loss in a
    direction of curvature n h, at most s^2 / (8 K n l2), and about half of that over a spectrum of several decades; the
    penalty costs (l2 / (2 n)) ||w||^2, where a model that gives rows of norm R a margin of 4 has ||w|| = 4/R. Over k
    directions the sum is least at l2 = s R sqrt(k / (128 K)). Never below what spends a tenth of epsilon on the change
    of volume, nor below 1, scikit-learn's default.
    """
    if math.isinf(plan.epsilon):
        return 1.0
    floor = max(1.0, plan.least_l2(plan.epsilon / 10))
    noise_std = replace(plan, l2=floor).noise_std
    return max(floor, noise_std * plan.radius * math.sqrt(plan.loss.width / (128 * n_parties)))
