"""Functional mechanism: a quadratic that stands for the loss is released once, with noise; its minimum is the model.

Parties   K parties with n_j records each; a center of three nodes that adds up; a coordinator that solves
Trust     coordinator, network and at most `colluders` parties may lie, and pool what they know; no two center nodes
          collude. Nobody is trusted with data, with a statistic or with the noise
Travels   Party -> center: its two sums (t, A) with its share of the noise, in three sealed envelopes. Center ->
          coordinator: their total. A question says no more than its step: each party works out the plan itself
Revealed  the noisy totals of t and A, and the model, which follows from them, to everybody; the numbers of records
          n_j, or of persons, which the replace-one relation leaves public, unless the unit is the party
Privacy   sound: Pure(epsilon), or Gaussian calibrated to (epsilon, delta); one record, person or party (`unit`),
          replace-one. paper: NotPrivate
Assumes   rows of norm at most the schema's radius, enforced where a table is encoded; the intercept is one more
          feature of fixed value, so that R^2 = radius^2 + 1
Cost      one round; k features with the constant: a party sends 3 x 32 bytes for each of k + k (k+1)/2 numbers (C k for
          the first k with C > 2 classes); one pass over its records; the coordinator decomposes a k x k matrix
Paper     Du, Li and Li 2019, OFAA, after Zhang et al. 2012. Sound departs from it. The sums of all parties are released
          once, under one noise (theirs are perturbed by each party, anew in each round, so that T rounds cost T
          epsilon). The constant of degree 0 takes no budget. Noise is for rows of bounded L2 norm. Eigenvalues that
          noise has made negative are set to 0 and a ridge added, both without a look at data (theirs may have no
          minimum). `calibration="paper"` is Algorithm 3 for a fixed number of rounds. It has
          Laplace(9 d / (2 epsilon)) on degree 1 as printed, Laplace(3 d^2 / (4 epsilon)) on degree 2, which is not
          printed, by the same rule. Where the noisy quadratic is indefinite, the document says nothing: a party then
          tells its stationary point

The quadratic, its noise and their proof are in `statistic`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tacit.data.schema import Schema
from tacit.data.table import Table
from tacit.errors import SettingError
from tacit.federation.agreement import Ask
from tacit.federation.channel import Channel, Opened
from tacit.federation.group import SumGroup
from tacit.methods.cohort import Cohort
from tacit.methods.functional.statistic import MARGIN, Plan, noisy_sums, paper_model, statistics
from tacit.methods.method import Learned, Method
from tacit.methods.neighbour import Neighbours
from tacit.methods.setting import check_l2, check_unit, check_whole
from tacit.models.parameter import coefficients
from tacit.privacy.event import Event
from tacit.unit import Unit

Floats = npt.NDArray[np.float64]

_PRINTED_ROUNDS, _PRINTED_L2 = 100, 1000.0  # of the neighbours that refute the printed algorithm


class FunctionalMechanism(Method):
    """The minimum of a quadratic that stands for the loss, released once with noise; nobody is trusted.

    Args:
        epsilon: the promise; infinity adds no noise and promises nothing.
        delta: its probability of failing (Gaussian noise); None takes the rule min(1e-6, 1 / n^2), and 0 asks for pure
            epsilon (spherical Laplace noise).
        l2: regularisation of the sum over all records, 1/C of scikit-learn; None takes a public rule (`default_l2`).
        fit_intercept: whether to learn an intercept, as a penalised feature.
        colluders: how many parties may pool what they know; None means 1 (every party knows its own share of the
            noise), or 0 if there is one party.
        rounds: how often the document's algorithm is run over; more than 1 only with calibration="paper".
        calibration: "sound", or "paper" for the document's noise, which is NOT PRIVATE.
        unit: what is protected: one "record", all records of one "person" (tables tell whose a record is), or all of
            one "party". A unit's m records weigh 1/m each: the model is that of the fit with these weights.

    Example:
        >>> import tacit
        >>> hospitals = tacit.datasets.load("readmission").tables
        >>> parties = tacit.Federation.from_tables({name: hospitals[name] for name in ("north", "south", "west")})
        >>> model = tacit.FunctionalMechanism(epsilon=1.0).fit(parties)
        >>> model.predict_proba(hospitals["east"]).shape
        (1500, 2)
    """

    name = "functional-mechanism"
    needs_everybody = False

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        l2: float | None = None,
        fit_intercept: bool = True,
        colluders: int | None = None,
        rounds: int = 1,
        calibration: Literal["sound", "paper"] = "sound",
        unit: Unit = "record",
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.l2 = l2
        self.fit_intercept = fit_intercept
        self.colluders = colluders
        self.rounds = rounds
        self.calibration = calibration
        self.unit = unit

    @property
    def takes_offers(self) -> bool:  # type: ignore[override]
        """Whether a party may offer less epsilon than is asked: where all noise is Gaussian."""
        return self.promise.not_private is None and not self.promise.is_pure

    def event(self) -> Event:
        """What one run costs each record; needs no data."""
        return self.promise.event()

    @classmethod
    def worst_neighbours(cls) -> list[Neighbours]:
        """A lone record turned by 120 degrees, which moves t and A together as far as they go; and one on a line.

        On a line the noise of t and of A has one dimension each, and most draws show the whole difference: 0.76 of the
        bound, of which -0.5 is the best end.
        """
        schemas = {d: Schema.of_arrays(d, ["0", "1"], norm_bound=1.0) for d in (1, 2)}

        def party(*x: float, label: int = 1) -> Table:
            return Table.from_arrays(np.array([x]), [label], schemas[len(x)])

        turned = party(-0.5, math.sqrt(0.75))
        pairs = {
            "a turned record": (party(1.0, 0.0), turned, party(0.0, 0.0)),
            "a record turned about": (party(1.0), party(-0.5), party(0.0)),
        }
        settings = {"fit_intercept": False, "colluders": 0}
        return [
            Neighbours(
                label=label,
                first={"a": a, "b": quiet},
                second={"a": b, "b": quiet},
                settings=settings,
                score=_likelihood_ratio(a, b, quiet),
                score_of=_likelihood_ratio,
            )
            for label, (a, b, quiet) in pairs.items()
        ]

    @classmethod
    def printed_neighbours(cls) -> list[Neighbours]:
        """A label turned about, asked for in a hundred rounds: the noise is drawn anew in each.

        A large penalty makes what is told nearly t over that penalty, with its noise, so that the likelihoods of all
        rounds add up. One round alone keeps the printed epsilon here; the document claims it for all of them.
        """
        schema = Schema.of_arrays(1, ["0", "1"], norm_bound=1.0)
        first, second = (Table.from_arrays(np.array([[1.0]]), [label], schema) for label in (0, 1))
        quiet = Table.from_arrays(np.array([[0.0]]), [1], schema)

        def score(method: FunctionalMechanism, opened: list[Opened]) -> float:
            told = [float(np.asarray(dict(reply)["theta"])[0, 0]) for reply in opened[::2]]  # every other one is "a"
            t = _PRINTED_L2 * np.array(told)
            return float(np.sum(np.abs(t + 0.5) - np.abs(t - 0.5)))

        return [
            Neighbours(
                label=f"a label turned about, in {_PRINTED_ROUNDS} rounds with fresh noise",
                first={"a": first, "b": quiet},
                second={"a": second, "b": quiet},
                settings={"rounds": _PRINTED_ROUNDS, "l2": _PRINTED_L2, "fit_intercept": False},
                score=score,
            )
        ]

    def plan(self, cohort: Cohort) -> Plan:
        """The public plan of a run with this cohort."""
        promise = self.promise.settled(cohort.n_units)
        plan = Plan(cohort=cohort, promise=promise, l2=0.0, rounds=self.rounds)
        if promise.is_paper:
            return replace(plan, l2=float(self.l2 or 0.0))
        _ = plan.grids  # a missing bound is found here, before a party is asked
        return replace(plan, l2=default_l2(plan) if self.l2 is None else float(self.l2))

    def course(self, plan: Plan) -> tuple[Ask, ...]:
        """The sums of each party, once; or its model, in each of the document's rounds."""
        event = plan.promise.event()
        if plan.promise.is_paper:
            return (Ask(step=paper_model, times=plan.rounds, event=event),)
        return (Ask(step=noisy_sums, event=event, own=plan.cohort.costs(event)),)

    def _check_settings(self) -> None:
        self.promise.check()
        check_l2(self.l2, zero=True)
        check_whole("rounds", self.rounds)
        check_unit(self.unit, is_paper=self.promise.is_paper)
        if self.rounds > 1 and self.calibration != "paper":
            raise SettingError(
                f"rounds = {self.rounds} would spend epsilon {self.rounds} times on the same sums; leave it at 1, or "
                f"look at the document's algorithm with calibration='paper'"
            )

    def _learn(self, channel: Channel, plan: Plan) -> Learned:
        if plan.promise.is_paper:
            theta = self._paper(channel, plan)
        else:
            t, A = plan.unpack(channel.sum(noisy_sums))
            theta = minimum(t, plan.curvature * A, plan.l2)
        coef, intercept = coefficients(theta, plan.cohort.n_features, plan.cohort.constant)
        return Learned(coef=coef, intercept=intercept)

    def _paper(self, channel: Channel, plan: Plan) -> Floats:
        """Algorithm 3: the average of the parties' models by size, of the last round."""
        sizes = channel.sizes
        theta = np.zeros(0)
        for _ in range(plan.rounds):
            replies: Any = channel.ask(paper_model)
            weighted = [sizes[name] * reply["theta"] for name, reply in replies.items()]
            theta = np.sum(weighted, axis=0) / sum(sizes[name] for name in replies)
        return theta


def minimum(t: Floats, H: Floats, l2: float) -> Floats:
    """argmin w'H_+ w/2 + (l2/2) ||w||^2 - t.w for each row of t; H_+ is H with its negative eigenvalues set to 0.

    The shortest one, where there are several.
    """
    values, vectors = np.linalg.eigh(H)
    curvature = np.maximum(values, 0.0) + l2
    known = curvature > 1e-12 * curvature.max(initial=0.0)
    theta: Floats = (t @ vectors[:, known] / curvature[known]) @ vectors[:, known].T
    return theta


def default_l2(plan: Plan) -> float:
    """A regularisation that balances bias against noise: a rule of public numbers, so it costs nothing.

    In the model's equation (curvature A + l2) w = t the noise has the variance s^2 = s_t^2 + (curvature ||w|| s_A)^2/2
    a coordinate, where a model that gives rows of norm R a margin of 4 has ||w|| = 4/R. In a direction of curvature n h
    it costs s^2 h / (2 (n h + l2)^2) in mean loss, at most s^2 / (8 n l2), and about half of that over a spectrum of
    several decades; the penalty costs (l2 / (2 n)) ||w||^2. Over k directions the sum is least at l2 = s R sqrt(k /
    128). Never below 1, scikit-learn's default.
    """
    if plan.promise.is_exact:
        return 1.0
    R, (s_t, s_A) = plan.cohort.row_norm, plan.noise_stds
    s = math.hypot(s_t, plan.curvature * MARGIN / R * s_A / math.sqrt(2))
    return max(1.0, s * R * math.sqrt(plan.width / 128))


def _likelihood_ratio(
    first: Table, second: Table, quiet: Table
) -> Callable[[FunctionalMechanism, list[Opened]], float]:
    """For audits: how much likelier the opened sums are with the first table than with the second, in logarithm."""
    plans: dict[float, Plan] = {}  # by epsilon: the method, and the same with half its noise

    def score(method: FunctionalMechanism, opened: list[Opened]) -> float:
        unit = method.weighted_unit
        if method.epsilon not in plans:
            group = SumGroup.of({"a": first.n_units(unit), "b": quiet.n_units(unit)}, quorum=2)
            plans[method.epsilon] = method.plan(method.cohort(first.schema, group))
        plan = plans[method.epsilon]
        centres = [statistics(table, 0.0, unit) for table in (first, second)]
        seen = plan.unpack(np.asarray(opened[0]))
        if not plan.promise.is_pure:
            units = (1.0, plan.square_unit)
            loss = [[np.sum(((a - b) / u) ** 2) for a, b, u in zip(seen, c, units, strict=True)] for c in centres]
        else:
            scales = [grid.total.sensitivity for grid in plan.grids]
            shares = (plan.linear_share, 1 - plan.linear_share)
            weights = [share / scale for share, scale in zip(shares, scales, strict=True)]
            loss = [[np.linalg.norm(a - b) * w for a, b, w in zip(seen, c, weights, strict=True)] for c in centres]
        return float(np.sum(loss[1]) - np.sum(loss[0]))

    return score
