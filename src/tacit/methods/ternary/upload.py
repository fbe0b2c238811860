"""From the sum of a batch's gradients to what a party uploads: noise, the largest coordinates, and their signs.

The proofs that the noise suffices are in `method`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tacit.errors import WireError
from tacit.methods.ternary.choice import largest, pack, report_noisy_top_n, unpack
from tacit.models.ghost import Clip
from tacit.privacy.noise.discrete import discrete_laplace
from tacit.privacy.noise.gumbel import signed_gumbel_top
from tacit.privacy.noise.rounded import rounded_gaussian
from tacit.rand import Rng
from tacit.wire import Value

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_ROUNDED_BITS = 18  # of a sum's integers, before noise is added


@dataclass(frozen=True, kw_only=True)
class Upload:
    """How a party's sum becomes its upload.

    `noise` is sigma (gaussian), rho of one round (gumbel) or the document's epsilon (paper). `n_chosen` is how many
    coordinates are uploaded; `ternary` says whether their signs are, or their values.
    """

    mechanism: str
    noise: float
    clip: float
    n_chosen: int
    ternary: bool

    @property
    def coordinate(self) -> float:
        """B = C / sqrt(n): what an uploaded coordinate stands for, so that the ternary gradient is as long as C."""
        return self.clip / math.sqrt(self.n_chosen)

    @cached_property
    def bound(self) -> Clip:
        """How far one record's gradient may reach."""
        if self.mechanism == "gaussian":
            return Clip(bound=self.clip)
        return Clip(bound=self.coordinate, norm="largest")

    def compress(self, sums: Ints, n_drawn: int, *, rng: Rng) -> dict[str, Value]:
        """The sum of a batch's clipped gradients with noise, and of that what is uploaded."""
        if self.mechanism == "gaussian":
            noisy, step = self._gaussian(sums, rng)
            return self._packed(largest(noisy, self.n_chosen), noisy * step)
        if self.mechanism == "gumbel":
            scale = 4 * (self.bound.bound / self.bound.unit) / math.sqrt(8 * self.noise / self.n_chosen)
            chosen, negative = signed_gumbel_top(sums, scale * (1 + 2.0**-40), self.n_chosen, rng=rng)
            return pack(chosen, negative=negative)
        return self._as_printed(sums, n_drawn, rng)

    def exactly(self, sums: Floats) -> dict[str, Value]:
        """What is uploaded without noise."""
        return self._packed(largest(sums, self.n_chosen), sums)

    def read(self, packed: Mapping[str, Value], size: int) -> Floats:
        """What a party uploaded, of `size` coordinates; a `WireError` if no honest party uploads that."""
        vector = unpack(packed, size)
        is_odd = ("negative" in packed) != self.ternary or np.count_nonzero(vector) > self.n_chosen
        if is_odd or not np.isfinite(vector).all():
            raise WireError("it uploaded more coordinates, or others, than the plan asks for")
        return vector

    def _gaussian(self, sums: Ints, rng: Rng) -> tuple[Ints, float]:
        """S' + round(N), and its step v."""
        step = math.ldexp(self.bound.unit, _ROUNDED_BITS)
        rounded = (sums + (1 << (_ROUNDED_BITS - 1))) >> _ROUNDED_BITS
        sensitivity = self.clip / step + math.sqrt(len(sums))
        return rounded + rounded_gaussian(self.noise * sensitivity * (1 + 2.0**-40), len(sums), rng=rng), step

    def _as_printed(self, sums: Ints, n_drawn: int, rng: Rng) -> dict[str, Value]:
        """Algorithm 2 of the dissertation; (3.6) with the sign that its text means, or with values as it is printed.

        Noise of scale lambda / epsilon, lambda = 2 B / |D_q|, on averages is noise of scale 2 B / epsilon on sums.
        """
        step = math.ldexp(self.bound.unit, _ROUNDED_BITS)
        rounded = sums >> _ROUNDED_BITS
        scale = 2 * self.bound.bound / self.noise / step
        indices, _ = report_noisy_top_n(np.abs(rounded), scale, self.n_chosen, rng=rng)
        chosen = np.zeros(len(sums), dtype=bool)
        chosen[indices] = True
        fresh = rounded + discrete_laplace(scale, len(sums), rng=rng)
        return self._packed(chosen & (fresh != 0), fresh * (step * self.bound.bound / max(1, n_drawn)))

    def _packed(self, chosen: npt.NDArray[np.bool_], values: Floats) -> dict[str, Value]:
        return pack(chosen, negative=values < 0) if self.ternary else pack(chosen, values=values)
