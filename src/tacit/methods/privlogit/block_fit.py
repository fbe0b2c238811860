"""An exact fit of many columns, whose curvature's bound is b times its blocks (`block` has the rule and the proof)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from tacit.federation.channel import Channel
from tacit.methods.privlogit.block import spans
from tacit.methods.privlogit.center_fit import CenterFit
from tacit.methods.privlogit.statistic import Measure, Questions
from tacit.methods.privlogit.sum_fit import SINGULAR, SumFit
from tacit.methods.privlogit.unit import Plan, Units

Floats = npt.NDArray[np.float64]


class BlockCenterFit(CenterFit):
    """The center inverts the blocks."""

    program_kind = "_blocks"

    def __init__(self, channel: Channel, questions: Questions, plan: Plan, units: Units | None) -> None:
        super().__init__(channel, questions, plan, units)
        self.slack = plan.n_blocks
        self.curvature_bits = self.scaling.block_bits

    def invert_bound(self) -> None:
        """Let the center invert the blocks and keep the inverses: once a fit."""
        self.channel.keep(self.questions.bound, Measure(units=self.units))
        if not self._invert():
            raise self.explain_singular([])


class BlockSumFit(SumFit):
    """The blocks are opened, and no other part of the curvature's bound."""

    def __init__(self, channel: Channel, questions: Questions, plan: Plan, units: Units | None) -> None:
        super().__init__(channel, questions, plan, units)
        self.slack = plan.n_blocks

    def invert_bound(self) -> None:
        """Open the blocks and factor them."""
        opened = self.channel.sum(self.questions.open_bound, Measure(units=self.units))
        blocks = np.ldexp(opened.astype(np.float64), -self.scaling.opened_bits)
        largest = float(max(np.diag(block).max() for block in blocks))
        try:
            self._factors = [cho_factor(block, lower=True) for block in blocks]
        except LinAlgError:
            raise self.explain_singular([]) from None
        if min(float(np.diag(factor).min()) for factor, _ in self._factors) ** 2 < SINGULAR * largest:
            raise self.explain_singular([])

    def _solved(self, gradient: Floats) -> Floats:
        solved = np.empty_like(gradient)
        for factor, span in zip(self._factors, spans(len(gradient)), strict=True):
            filled = np.zeros((len(factor[0]), gradient.shape[1]))
            filled[: span.stop - span.start] = gradient[span]
            solved[span] = cho_solve(factor, filled)[: span.stop - span.start]
        return solved / self.slack
