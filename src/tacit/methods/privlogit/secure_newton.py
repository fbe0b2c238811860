"""SecureNewton: the exact pooled fit by Newton steps, with a secure inverse of the curvature for each. A baseline.

Parties   two or more parties; a center of three nodes that computes on shares; a coordinator that asks and relays
Trust     honest but curious; no two center nodes collude. Nobody is trusted with a party's statistics
Travels   coordinator -> party: the units of columns without declared bounds, and in each round one public point. Party
          -> center, in sealed envelopes: its gradient, likelihood and curvature there. Center -> coordinator: what is
          listed as revealed
Revealed  to the coordinator, and so to everybody it tells: the Newton step at every accepted point, hence every
          iterate; one bit for each point, whether its likelihood is at least the accepted one's; the number of rounds;
          the standard errors and the log-likelihood; for columns without declared bounds, their pooled means and
          variances; if the fit fails, the names of collinear columns
Privacy   NotPrivate: an exact fit, whose iterates give very few records away. A party answers with
          `Policy.min_records_exact` records or more, and only if its policy names "secure-newton"
Assumes   at l2 = 0, classes that no combination of features separates, and features that are not collinear; a
          condition number below about a million in units of the declared bounds. Rows as the schema encodes them
Cost      a secure inverse of (d+1)^2 numbers in every round, about seven; a party makes a pass with curvature, about
          three times the cost of one without, and sends 96 (d+1)^2 bytes a round
Paper     Wang, chapter 5, the baseline of table 5.1. Ours is damped: a step that lowers the likelihood is halved. The
          document's is not, and so diverges from bad starts: `damping=None`
"""

from __future__ import annotations

from contextlib import closing
from typing import Literal

import numpy as np
import numpy.typing as npt

from tacit.errors import NotConverged, RunError
from tacit.federation.agreement import Ask
from tacit.federation.channel import Channel
from tacit.methods.cohort import Cohort
from tacit.methods.method import Learned, Method
from tacit.methods.privlogit.center_fit import CenterFit
from tacit.methods.privlogit.fit import choose_units, learned_from_peak, moments_asked, start_point
from tacit.methods.privlogit.statistic import LOSS_OPENED, STEPS_OPENED, register_questions
from tacit.methods.privlogit.unit import Plan
from tacit.methods.setting import check_choice, check_l2, check_whole
from tacit.models.diagnosis import explain_separable
from tacit.privacy.event import Event

Floats = npt.NDArray[np.float64]

QUESTIONS = register_questions("secure-newton")

_NEAR = (
    3e-5  # the relative length of a Newton step after which the error is its square, and standard errors are settled
)
_SHORTEST = 2.0**-20  # of a step that is halved again and again


class SecureNewton(Method):
    """The exact fit of all parties' records, by a secure inverse in every round.

    Args:
        l2: regularisation of the sum over all records, 1/C of scikit-learn; 0 is the maximum-likelihood fit.
        max_rounds: the most points that are asked about.
        fit_intercept: whether to learn an intercept, which is not penalised.
        start: a public model to start from, as for `PrivLogit`; None starts at 0. It is kept, however bad it is.
        damping: "halving" halves a step that lowers the likelihood; None takes every step whole, as the document does,
            and runs away from bad starts.

    Attributes:
        iterates_: every point that was asked about, also of a fit that failed.

    Example:
        >>> import tacit
        >>> hospitals = tacit.datasets.load("readmission").tables
        >>> agreed = {name: hospitals[name] for name in ("north", "south", "west")}
        >>> parties = tacit.Federation.from_tables(agreed, policy=tacit.Policy(not_private=["secure-newton"]))
        >>> model = tacit.SecureNewton().fit(parties)
        >>> bool(abs(model.table().set_index("term").loc["emergency", "estimate"] - 0.8) < 0.3)  # the truth is 0.8
        True
    """

    name = "secure-newton"

    def __init__(
        self,
        *,
        l2: float = 0.0,
        max_rounds: int = 50,
        fit_intercept: bool = True,
        start: object | None = None,
        damping: Literal["halving"] | None = "halving",
    ) -> None:
        self.l2 = l2
        self.max_rounds = max_rounds
        self.fit_intercept = fit_intercept
        self.start = start
        self.damping = damping

    def event(self) -> Event:
        """No epsilon bounds exact steps."""
        return STEPS_OPENED

    def plan(self, cohort: Cohort) -> Plan:
        """The public plan of a run with this cohort."""
        return Plan(cohort=cohort, l2=float(self.l2), fit_intercept=self.fit_intercept)

    def course(self, plan: Plan) -> tuple[Ask, ...]:
        """Moments, if they are needed; points with their curvature; the likelihood at the optimum."""
        points = Ask(step=QUESTIONS.curvature, times=self.max_rounds, event=STEPS_OPENED)
        return (*moments_asked(QUESTIONS, plan), points, Ask(step=QUESTIONS.loss, event=LOSS_OPENED))

    def _check_settings(self) -> None:
        check_l2(self.l2, zero=True)
        check_whole("max_rounds", self.max_rounds)
        if self.damping is not None:
            check_choice("damping", self.damping, ("halving",))

    def _learn(self, channel: Channel, plan: Plan) -> Learned:
        units = choose_units(channel, QUESTIONS, plan)
        with closing(CenterFit(channel, QUESTIONS, plan, units)) as fit:
            return self._fit(fit)

    def _fit(self, fit: CenterFit) -> Learned:
        points: list[Floats] = []
        try:
            self._climb(fit, points)
        finally:
            self.iterates_: Floats = np.stack([fit.scaling.theta(point.reshape(fit.shape)) for point in points])
        peak = fit.peak_here()
        bits = f"{len(points) - 1} comparison bits, " if self.damping else ""
        told = (
            f"opened exactly, to the coordinator: the Newton step at every accepted one of {len(points)} points, so "
            f"that every iterate is known, {bits}the standard errors, the log-likelihood"
        )
        return learned_from_peak(fit, points[-1] + peak.step, peak, told)

    def _climb(self, fit: CenterFit, points: list[Floats]) -> None:
        """Adds all points asked about. The last is accepted, and so near that its own step, not taken, is the last."""
        point = start_point(self.start, fit)
        accepted, step, length = point, point, 1.0
        while len(points) < self.max_rounds:
            points.append(point)
            fit.ask_with_curvature(point)
            if len(points) == 1 or self.damping is None or fit.is_better():
                accepted, step, length = point, self._step(fit, first=len(points) == 1), 1.0
                if np.linalg.norm(step) <= _NEAR * max(float(np.linalg.norm(point + step)), 2.0**-10):
                    return
            else:
                length /= 2
                if length < _SHORTEST:
                    break
            point = accepted + length * step
        if self.l2 == 0:
            raise explain_separable(fit.problem)
        raise NotConverged(
            f"Newton steps are still long after {len(points)} rounds; allow more by max_rounds, or set a larger l2"
        )

    def _step(self, fit: CenterFit, *, first: bool) -> Floats:
        try:
            return fit.accept_newton()
        except RunError:
            if (first and self.start is None) or self.l2 > 0:  # at 0 the curvature is X'X / 4: its columns are to blame
                raise
            raise explain_separable(fit.problem) from None
