"""PrivLogit: the exact pooled fit; of all sums over the parties, only the steps of an ascent are ever opened.

Parties   two or more parties; a center of three nodes that computes on shares; a coordinator that asks and relays
Trust     honest but curious; no two center nodes collude. Nobody is trusted with a party's statistics.
          protocol="local": nor does node 0, which can decrypt, collude with a party or the coordinator, who see the
          encrypted inverse. secure="sums" trusts the coordinator with the sums over all parties
Travels   coordinator -> party: the units of columns without declared bounds, and in each round one public point.
          Party -> center, in sealed envelopes: once, its part of the curvature's bound X'X/4; in each round, its
          gradient and likelihood at that point; at the end, its curvature at the optimum. Center -> coordinator: what
          is listed as revealed.
          protocol="local": center -> party, the encrypted inverse, signed by nodes 0 and 1 for this run; party ->
          node 1, in place of the gradient, its product with it, re-randomised; node 1 -> node 0, the masked sum of
          these
Revealed  to the coordinator, and so to everybody it tells: the step B^-1 g at every accepted point, hence every
          iterate; one bit for each accelerated point, whether its likelihood is at least the accepted one's; the
          number of rounds; at the end a Newton step, the standard errors and the log-likelihood; for columns without
          declared bounds, their pooled means and variances; if the fit fails, the names of collinear columns.
          Above 1,000 columns a step is that of a bound made of blocks (`block`). So each step tells, up to the blocks,
          one product of the pooled curvature with a public way: of far fewer ways than there are columns.
          secure="sums": the pooled curvatures, gradients and likelihoods instead
Privacy   NotPrivate: an exact fit, and the first iterate alone is (X'X/4 + l2)^-1 X'(y - 1/2). With very few records
          the iterates give them away: of two parties, one can recover the other's records if they are no more than
          about five. A party answers with `Policy.min_records_exact` records or more, and only if its policy names
          "privlogit"
Assumes   at l2 = 0, classes that no combination of features separates, and features that are not collinear; a
          condition number below about a million in units of the declared bounds. Rows as the schema encodes them
Cost      one secure inverse of (d+1)^2 numbers at the start and one, from there, at the end; a secure product of
          matrix and vector in each round; about 10 rounds, 100 with acceleration=None; a party makes one pass for
          moments, bound and the gradient at 0, and one in each later round, and sends at most 96 bytes a number. Above
          1,000 columns, by a public rule, the inverse is that of blocks of 256 columns (`block`). The optimum is the
          same; it takes 30 to 100 rounds, and there are no standard errors. protocol="local": (d+1)^2 / 8
          exponentiations a party a round, and as many ciphertexts in every question; no more than 1,000 columns
Paper     Wang, chapter 5, PrivLogit-Hessian and -Local (algorithms 6 to 8), after Bohning and Lindsay 1988. We depart
          from it in these: the steps are accelerated (`models.anderson`, with the proof that the ascent stays monotone
          and linear); the Cholesky factor is an inverse by Newton-Schulz steps, which fixed point carries to 1e-10
          where a Cholesky factor stays at 1e-4; the stop looks at the estimated error of the model rather than at the
          likelihood, whose relative change of 1e-6 leaves errors of 3e-3; the ascent ends with one Newton step and
          standard errors from the true curvature there. `acceleration=None` takes the document's steps.
          protocol="local" puts the penalty's part, which algorithm 8 forgets in step 9, into the parties' gradients,
          and re-randomises their products. From the document's, whoever knows the encrypted inverse could search for
          the gradient
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from tacit.errors import NotConverged, SettingError
from tacit.federation.agreement import Ask
from tacit.federation.channel import Channel
from tacit.methods.cohort import Cohort
from tacit.methods.method import Learned, Method
from tacit.methods.privlogit.block import WIDEST
from tacit.methods.privlogit.block_fit import BlockCenterFit, BlockSumFit
from tacit.methods.privlogit.center_fit import CenterFit, LocalFit
from tacit.methods.privlogit.fit import (
    MOST_PARAMETERS,
    Peak,
    SecureFit,
    choose_units,
    learned_from_peak,
    moments_asked,
    start_point,
)
from tacit.methods.privlogit.statistic import LOSS_OPENED, STEPS_OPENED, SUMS_OPENED, register_questions
from tacit.methods.privlogit.sum_fit import SumFit
from tacit.methods.privlogit.unit import Plan
from tacit.methods.setting import check_choice, check_l2, check_whole
from tacit.models.anderson import Ascending, Ascent, ascend
from tacit.models.diagnosis import explain_separable
from tacit.privacy.event import Event

Floats = npt.NDArray[np.float64]

QUESTIONS = register_questions("privlogit")

_NEAR = 1e-5  # the relative error from which one Newton step, whose error is its square, finishes
_MOST_PEAKS = 4
_WIDE_MEMORY = 40  # of a fit with blocks: what goes together across them is found from many points
_VANISHED = 1e5  # a curvature so many times smaller than its bound has no optimum, or one that is out of reach
_ROUNDS = {"anderson": 200, None: 2000}
_WIDE_ROUNDS = 400  # fewer than half of the columns: so many products do not tell the curvature

START_DROPPED = (
    "the start was DROPPED: the records make it less likely than a model of zeros, so the fit began at 0; "
    'worse_start = "keep" begins at the start all the same'
)


class PrivLogit(Method):
    """The exact fit of all parties' records, from sums that nobody sees.

    Args:
        l2: regularisation of the sum over all records, 1/C of scikit-learn; 0 is the maximum-likelihood fit.
        protocol: "hessian": the center multiplies the inverse with the gradients' sum; "local": each party multiplies
            the encrypted inverse with its own gradient. What is opened is the same.
        secure: "center" opens steps only; "sums" opens the pooled sums and needs no secure computation.
        acceleration: "anderson", or None for the document's steps.
        memory: how many earlier points acceleration looks at.
        tol: the relative error of the coefficients that is aimed at.
        max_rounds: the most points that are asked about; None allows 200, or 2,000 without acceleration;
            400 above 1,000 columns.
        fit_intercept: whether to learn an intercept, which is not penalised.
        start: a public model to start from: a fitted model, what `pretrain` gives, or a pair (coef, intercept); None
            starts at 0.
        worse_start: what becomes of a start that the records make less likely than 0. "drop" begins at 0 instead, which
            takes fewer rounds, and the report says so. "keep" begins there all the same, and compares nothing.
        standard_errors: whether to ask for the curvature at the optimum, for standard errors and a last Newton step.

    Example:
        >>> import tacit
        >>> hospitals = tacit.datasets.load("readmission").tables
        >>> agreed = {name: hospitals[name] for name in ("north", "south", "west")}
        >>> parties = tacit.Federation.from_tables(agreed, policy=tacit.Policy(not_private=["privlogit"]))
        >>> model = tacit.PrivLogit(secure="sums").fit(parties)
        >>> bool(abs(model.table().set_index("term").loc["emergency", "estimate"] - 0.8) < 0.3)  # the truth is 0.8
        True
    """

    name = "privlogit"

    def __init__(
        self,
        *,
        l2: float = 0.0,
        protocol: Literal["hessian", "local"] = "hessian",
        secure: Literal["center", "sums"] = "center",
        acceleration: Literal["anderson"] | None = "anderson",
        memory: int = 5,
        tol: float = 1e-8,
        max_rounds: int | None = None,
        fit_intercept: bool = True,
        start: object | None = None,
        worse_start: Literal["drop", "keep"] = "drop",
        standard_errors: bool = True,
    ) -> None:
        self.l2 = l2
        self.protocol = protocol
        self.secure = secure
        self.acceleration = acceleration
        self.memory = memory
        self.tol = tol
        self.max_rounds = max_rounds
        self.fit_intercept = fit_intercept
        self.start = start
        self.worse_start = worse_start
        self.standard_errors = standard_errors

    def event(self) -> Event:
        """No epsilon bounds exact steps."""
        return STEPS_OPENED if self.secure == "center" else SUMS_OPENED

    def plan(self, cohort: Cohort) -> Plan:
        """The public plan of a run with this cohort."""
        plan = Plan(cohort=cohort, l2=float(self.l2), fit_intercept=self.fit_intercept)
        if plan.is_wide and self.protocol == "local":
            raise SettingError(
                f'protocol = "local" encrypts an inverse of all columns; {plan.problem.loss.width:,} are too many, the '
                f'most is {WIDEST:,}. Choose protocol = "hessian"'
            )
        return plan

    def course(self, plan: Plan) -> tuple[Ask, ...]:
        """Moments, if they are needed; the curvature's bound; points; at the end curvatures and the likelihood."""
        if self.secure == "sums":
            bound, point, curvature = QUESTIONS.open_bound, QUESTIONS.open_point, QUESTIONS.open_curvature
        else:
            bound, curvature = QUESTIONS.bound, QUESTIONS.curvature
            point = QUESTIONS.product if self.protocol == "local" else QUESTIONS.point
        n_points = self._most_rounds(plan) + (2 if self._compares_start else 0)
        opened = self.event()
        sums = (Ask(step=bound, event=opened), Ask(step=point, times=n_points, event=opened))
        ascent = (*moments_asked(QUESTIONS, plan), *sums)
        if not self._with_errors(plan):
            return ascent
        peaks = Ask(step=curvature, times=_MOST_PEAKS, event=opened)
        return (*ascent, peaks, Ask(step=QUESTIONS.loss, event=LOSS_OPENED))

    @property
    def _compares_start(self) -> bool:
        return self.start is not None and self.worse_start == "drop"

    def _most_rounds(self, plan: Plan) -> int:
        if self.max_rounds is not None:
            return self.max_rounds
        return _WIDE_ROUNDS if plan.is_wide and self.acceleration else _ROUNDS[self.acceleration]

    def _with_errors(self, plan: Plan) -> bool:
        """Whether the true curvature at the optimum is asked for."""
        return self.standard_errors and plan.size <= MOST_PARAMETERS and not plan.is_wide

    def _check_settings(self) -> None:
        check_l2(self.l2, zero=True)
        check_choice("protocol", self.protocol, ("hessian", "local"))
        check_choice("secure", self.secure, ("center", "sums"))
        check_choice("worse_start", self.worse_start, ("drop", "keep"))
        if self.acceleration is not None:
            check_choice("acceleration", self.acceleration, ("anderson",))
        if self.secure == "sums" and self.protocol == "local":
            raise SettingError(
                'protocol = "local" is about an inverse that nobody sees; with secure = "sums" there is none'
            )
        check_whole("memory", self.memory)
        check_whole("max_rounds", 1 if self.max_rounds is None else self.max_rounds)
        if isinstance(self.tol, bool) or not isinstance(self.tol, int | float) or not 1e-12 <= self.tol <= 1e-3:
            raise SettingError(f"tol = {self.tol!r} must lie between 1e-12 and 1e-3")

    def _learn(self, channel: Channel, plan: Plan) -> Learned:
        # 1. Public units, and the bound on the curvature, inverted once (algorithm 7).
        units = choose_units(channel, QUESTIONS, plan)
        with closing(self._kind(plan)(channel, QUESTIONS, plan, units)) as fit:
            return self._fit(fit)

    def _kind(self, plan: Plan) -> type[SecureFit]:
        """What is inverted, and where: above `block.WIDEST` columns blocks of the bound."""
        if self.secure == "sums":
            return BlockSumFit if plan.is_wide else SumFit
        if plan.is_wide:
            return BlockCenterFit
        return LocalFit if self.protocol == "local" else CenterFit

    def _fit(self, fit: SecureFit) -> Learned:
        with_errors = self._with_errors(fit.plan)
        fit.invert_bound()
        # 2. Rounds: one public point each (algorithm 6, accelerated).
        first, dropped = self._first_point(fit)
        ascent = ascend(
            fit,
            first,
            settings=Ascending(
                memory=max(self.memory, _WIDE_MEMORY if fit.slack > 1 else 0) if self.acceleration else 0,
                tolerance=max(_NEAR, self.tol) if with_errors else self.tol,
                max_rounds=self._most_rounds(fit.plan),
                from_zero=not first.any() and fit.problem.n_classes == 2 and fit.slack == 1,
                is_loose=fit.slack > 1,
            ),
            on_round=lambda ascent: _check_ascent(ascent, fit),
        )
        if not ascent.converged:
            way_out = "set a larger l2" if self.l2 > 0 else "set l2 > 0, for the features may separate some records"
            raise NotConverged(
                f"the estimated relative error is still {ascent.error:.1e} after {len(ascent.visits)} rounds; allow "
                f"more by max_rounds, or {way_out}"
            )
        # 3. The true curvature there: a Newton step and standard errors.
        phi, peak, n_peaks = self._finish(fit, ascent) if with_errors else (ascent.point, None, 0)
        self.n_compared_: int = ascent.n_compared
        self.n_rejected_: int = ascent.n_rejected
        self.iterates_: Floats = np.stack(
            [fit.scaling.theta(visit.point.reshape(fit.shape)) for visit in ascent.visits]
        )
        learned = learned_from_peak(fit, phi, peak, self._told(ascent, n_peaks))
        return replace(learned, notices=(START_DROPPED, *learned.notices)) if dropped else learned

    def _first_point(self, fit: SecureFit) -> tuple[Floats, bool]:
        """Where to begin, and whether a start was dropped."""
        point = start_point(self.start, fit)
        if not self._compares_start:
            return point, False
        zero = np.zeros(fit.size)
        fit.ask(zero)
        fit.accept()
        fit.ask(point)
        return (point, False) if fit.is_better() else (zero, True)

    def _finish(self, fit: SecureFit, ascent: Ascent) -> tuple[Floats, Peak, int]:
        """Newton steps, nearly always one, until what is left is within `tol` and standard errors are settled."""
        point = ascent.point
        for n_peaks in range(1, _MOST_PEAKS + 1):
            peak = fit.peak(point, ascent.shortfall)
            point = point + peak.step
            length = float(np.linalg.norm(peak.step)) / max(float(np.linalg.norm(point)), 2.0**-10)
            if length <= 3 * _NEAR:
                return point, peak, n_peaks
        if self.l2 == 0:
            raise explain_separable(fit.problem)
        raise NotConverged(f"Newton steps are still of relative length {length:.1e}; set a larger l2")

    def _told(self, ascent: Ascent, n_peaks: int) -> str:
        """What was opened, for the report."""
        n_points = len(ascent.visits)
        if self.secure == "sums":
            told = f"the pooled curvature's bound, {n_points} pooled gradients and likelihoods"
            last = "the pooled curvature at the optimum"
        else:
            told = (
                f"{n_points - ascent.n_rejected} steps, so that every iterate is known, {n_points - 1} comparison bits"
            )
            last = "the Newton step and the standard errors at the optimum"
        times = f" ({n_peaks} times)" if n_peaks > 1 else ""
        told += f", {last}{times}, and the log-likelihood" if n_peaks else ""
        return f"opened exactly, to the coordinator: {told}"


def _check_ascent(ascent: Ascent, fit: SecureFit) -> None:
    """Give up early where the iterates, which are public, run away while the curvature vanishes along the way."""
    if fit.problem.l2 == 0 and ascent.shortfall > _VANISHED * fit.slack:
        raise explain_separable(fit.problem)
