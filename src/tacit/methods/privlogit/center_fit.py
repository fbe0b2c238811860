"""An exact fit whose sums the center keeps: steps, comparison bits and variances are computed on shares.

Precision. Parties seal gradients with 60 fraction bits. The center computes with 40, and multiplies a kept gradient by
a public power of two before the product: the larger, the further the ascent has come. With a the accepted point, s its
step and 1/c a bound on the eigenvalues of the mean curvature B (b/c, with b blocks), the mean gradient at v is at most
(||s|| + ||v - a||) / c in norm: ||g(a)|| = ||B s|| <= ||s|| / c, and from a to v the gradient changes by at most
||v - a|| / c. That is public, and so is the power of two.
"""

from __future__ import annotations

import math
from contextlib import suppress

import numpy as np
import numpy.typing as npt

from tacit.errors import CenterError, RunError
from tacit.federation.channel import Channel
from tacit.methods.privlogit.fit import SAME_LIKELIHOOD, Peak, SecureFit
from tacit.methods.privlogit.statistic import KEPT_BITS, LOSS_BITS, OPENED_BITS, Measure, Multiplied, Questions
from tacit.methods.privlogit.unit import Plan, Units
from tacit.models.diagnosis import explain_separable
from tacit.secure.center.product import Form
from tacit.secure.center.program import WHOLE

Floats = npt.NDArray[np.float64]

_HEADROOM = 6  # bits by which a gradient may exceed 1 when it is multiplied
_CONDITION_BITS = 12  # a condition number of 4096 is had at once, one of a million by further blocks of steps
_FURTHER_BITS = 8  # by which a further block of steps extends it
_REFINEMENTS = 3  # blocks at most
_REFINEMENT_BITS = (4, 6, 8, 12)  # of a curvature's condition relative to its bound; each is a program of its own
_RESIDUAL = 1e-5  # of an inverse: it leads the way to the optimum, and tells standard errors


class CenterFit(SecureFit):
    """The center computes: only steps, comparison bits and variances are opened."""

    program_kind = ""  # what the names of programs end with that invert and multiply

    def __init__(self, channel: Channel, questions: Questions, plan: Plan, units: Units | None) -> None:
        super().__init__(channel, questions, plan, units)
        self._accepted: tuple[Floats, float] | None = None  # the point, and how long its step is
        self.curvature_bits = self.scaling.trace_bits  # of a bound on the eigenvalues of what is inverted

    def invert_bound(self) -> None:
        """Let the center invert the curvature's bound and keep the inverse: once a fit."""
        self.channel.keep(self.questions.bound, Measure(units=self.units))
        if not self._invert():
            raise self._singular()

    def ask(self, point: Floats) -> None:
        """Let the center keep likelihood and gradient at a point."""
        self._bits, self._point = self._gradient_bits(point), point
        self._ask_parties(point)

    def ask_with_curvature(self, point: Floats) -> None:
        """The same, and the true curvature there."""
        self._bits, self._point = self._gradient_bits(point), point
        self.channel.keep(self.questions.curvature, self.at(point))

    def is_better(self) -> bool:
        """Whether the likelihood at the point asked about last is at least the accepted one's, up to rounding."""
        tolerance = SAME_LIKELIHOOD * 2.0 ** (LOSS_BITS - KEPT_BITS)
        return bool(self.channel.compute("compare", tolerance=tolerance)["better"] > 0)

    def accept(self) -> Floats:
        """Accept the point asked about last, and open its step."""
        self.channel.compute("accept")
        step = self._flat(self._open_step()) * self._step_unit
        self._accepted = (self._point, float(np.linalg.norm(step)))
        return step

    def _ask_parties(self, point: Floats) -> None:
        self.channel.keep(self.questions.point, self.at(point))

    def _open_step(self) -> Floats:
        return self._multiplied()

    def _multiplied(self) -> Floats:
        """The kept inverse times the kept gradient, in units of `_step_unit`."""
        return self.channel.compute("step" + self.program_kind, scale=2.0 ** (self._bits - OPENED_BITS))["step"]

    def accept_newton(self) -> Floats:
        """Accept the point asked about last, with its curvature, and open its Newton step."""
        self.channel.compute("accept")
        if not self._invert():
            raise self._singular()
        step = self._multiplied().ravel() * self._step_unit
        self._accepted = (self._point, float(np.linalg.norm(step)))
        return step

    def peak(self, point: Floats, shortfall: float) -> Peak:
        """Ask for the true curvature at a point near the optimum; open the Newton step and variances."""
        self.ask_with_curvature(point)
        self._invert_curvature(shortfall)
        return self.peak_here()

    def peak_here(self) -> Peak:
        """The same from the inverse that the center keeps."""
        step = self._multiplied().ravel() * self._step_unit
        diagonal = self.channel.compute("variances", contrast=self.scaling.declared_contrast)["diagonal"]
        variances = diagonal * self.scaling.row_lengths**2
        # The center's inverse is that of c times the mean curvature.
        return Peak(step=step, variances=variances * 2.0**-self.scaling.trace_bits / self.n)

    def close(self) -> None:
        """Let the center drop what it keeps for this fit."""
        with suppress(CenterError):  # of a center that is gone
            self.channel.forget()

    def _invert_curvature(self, shortfall: float) -> None:
        """With two classes the inverse of the bound is near enough to start from: the condition does not matter.

        The curvature is at least 1 / shortfall of its bound: that is the condition of its product with the inverse. A
        matrix that the center halves is inverted sooner from nothing, for a larger condition than the bound's.
        """
        bits = next((n for n in _REFINEMENT_BITS if 2.0**n >= shortfall), _REFINEMENT_BITS[-1])
        anew = len(self.shape) > 1 or self.size > WHOLE
        if not (self._invert(_CONDITION_BITS + _FURTHER_BITS) if anew else self._refine(bits)):
            # While the bound has an inverse: the curvature vanishes where probabilities are 0 or 1.
            raise explain_separable(self.problem)

    def _invert(self, condition_bits: int = _CONDITION_BITS) -> bool:
        """Steps that suffice for a moderate condition, then blocks of further ones; whether the inverse has settled."""
        opened = self.channel.compute("invert" + self.program_kind, tolerance=_RESIDUAL, condition_bits=condition_bits)
        return bool(opened["residual_ok"] > 0) or self._refine(_FURTHER_BITS)

    def _refine(self, condition_bits: int) -> bool:
        blocks = (
            self.channel.compute("refine" + self.program_kind, tolerance=_RESIDUAL, condition_bits=condition_bits)[
                "residual_ok"
            ]
            for _ in range(_REFINEMENTS)
        )
        return any(block > 0 for block in blocks)

    def _gradient_bits(self, point: Floats) -> int:
        """The fraction bits with which the gradient is multiplied: as many as the fixed point holds, up to all."""
        reach = math.sqrt(2 * self.size) * 2.0**-self.curvature_bits  # no entry exceeds sqrt 2
        if self._accepted is not None:
            way = self._accepted[1] + float(np.linalg.norm(point - self._accepted[0]))
            reach = min(reach, self.slack * way)
        wanted = KEPT_BITS + _HEADROOM - self.curvature_bits - math.ceil(math.log2(max(reach, 2.0**-80)))
        return min(wanted, OPENED_BITS)

    @property
    def _step_unit(self) -> float:
        """The center's step is that of c times the mean curvature and 2**(bits - 40) times the mean gradient."""
        return 2.0 ** (KEPT_BITS - self._bits - self.curvature_bits) / self.slack

    def _singular(self) -> RunError:
        dependent = np.flatnonzero(self.channel.compute("diagnose")["dependent"] > 0)
        columns = sorted({int(j) % self.shape[-1] for j in dependent})
        return self.explain_singular([self.problem.column_name(j) for j in columns])


class LocalFit(CenterFit):
    """The parties multiply the encrypted inverse with their own gradients; the center adds up and decrypts the sum."""

    def invert_bound(self) -> None:
        """Let the center invert the curvature's bound, and encrypt the inverse for the parties."""
        super().invert_bound()
        self._inverse = self.channel.encrypted_inverse()

    def _ask_parties(self, point: Floats) -> None:
        self.channel.keep(
            self.questions.product,
            Multiplied(point=point.reshape(self.shape), units=self.units, inverse=self._inverse),
        )

    def _open_step(self) -> Floats:
        n_vectors = 1 if len(self.shape) == 1 else self.shape[0]
        # 40 fraction bits of the gradient's own 60, times the public power of two: no digit is told beyond these.
        fraction_bits = KEPT_BITS + OPENED_BITS - self._bits
        return self.channel.open_product(Form(n_vectors=n_vectors, fraction_bits=fraction_bits))
