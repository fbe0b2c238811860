"""The level of private Newton's models: the intercept of two classes that gives the mean chance that was opened.

1. *Chance.* t says how many records each class has, and q't is not all that says it: where columns explain little, all
   of t is a share p - 1/2 of the sum of rows. `shrinkage` weighs that up. What it finds is a mean chance p of a normal
   population, and its variance; the noise of the sum of weights moves p - 1/2 in proportion. Where one class is rare,
   noise may say that it has fewer records than none. So the chance is not what was seen, with normal noise, but what
   that leaves likely of all chances between 0 and 1: the mean of the truncated normal law.
2. *Where all is drowned*, with noise on t of over 1.2 % of all records, the level is told by q't alone. The rest of t
   is a share p - 1/2 of a mean row that is itself noisy. So it would tell a share that is too near to 1/2, as every
   slope against noisy numbers is too flat.
3. *Noise of the mean row.* The intercept that gives a mean chance depends on w'm, m the mean row. But t less what the
   level explains contains n (1/2 - p) times the noise of m. So a w that was learned from it points along that noise:
   w'm seems larger than it is, and the model names a rare class too seldom. What the equation leaves unexplained is
   e = N^-1 (right - H w), N the covariance of its noise. Of the noise of m it tells n (1/2 - p) times its variance
   times e, but for what lies along q, where m is known. That is taken from m before the intercept is found.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tacit.bisection import bisect
from tacit.methods.newton.chance import likely_chance
from tacit.methods.newton.population import Population
from tacit.methods.newton.tangent import Solved, Tangent

Floats = npt.NDArray[np.float64]

_DROWNED = 0.012  # of all records, the noise on t: about where no rounds are asked (`rule`)


@dataclass(frozen=True, kw_only=True)
class Level:
    """What an equation of two classes knows of the level of its models.

    Attributes:
        population: the normal population that stands for the records.
        q: the constant row, and `constant` its value c.
        counted: c times the sum of weights, so that q'S is E p - 1/2 times that; `weight_error` is relative.
        mean_variance: of n times the mean row, a coordinate, by the noise of M.
        t_noise: the standard deviation of a coordinate of t.
        lowest: an intercept, times q, below which none is looked for.
    """

    population: Population
    q: Floats
    counted: float
    weight_error: float
    mean_variance: float
    t_noise: float
    lowest: float

    def levelled(self, model: Floats, before: Floats, tangent: Tangent, found: Solved) -> Floats:
        """A model made of `found`, with the intercept that gives the mean chance; `tangent` is that at `before`.

        It gives that chance in a normal population whose mean row is as likely as it can be.
        """
        above = float(self.population.response(before)[1][0])
        wanted = min(max(self._chance(before, tangent, found, above), 1e-12), 1 - 1e-12)
        misread = self._misread_mean(tangent, found.model, above)
        population = replace(self.population, mean=self.population.mean - misread)

        def is_likelier(more: float) -> bool:
            return float(population.response(model + (self.lowest + more) * self.q)[1][0]) + 0.5 >= wanted

        return model + (self.lowest + bisect(is_likelier, yes=-2 * self.lowest, no=0.0, tolerance=1e-7)) * self.q

    def _chance(self, before: Floats, tangent: Tangent, found: Solved, above: float) -> float:
        """E p of a normal population, by the equation (1)."""
        of_weights = (tangent.unasked * above * self.weight_error) ** 2
        if self.t_noise > _DROWNED * self.population.n_records:  # class counts alone tell the level (2)
            change = float(self.q @ (tangent.right - tangent.steepness.along(before, self.population.M))[0])
            variance = self.t_noise**2 + (tangent.variance - self.t_noise**2) * (1 - tangent.unasked)
            variance *= float(self.q @ self.q)
        else:
            change = float(self.q @ tangent.steepness.along(found.model - before, self.population.M)[0])
            variance = found.level_variance
        return likely_chance(0.5 + above + change / self.counted, math.sqrt(variance / self.counted**2 + of_weights))

    def _misread_mean(self, tangent: Tangent, found: Floats, above: float) -> Floats:
        """What of the mean row is noise of M, by what the equation leaves unexplained (3)."""
        H = tangent.steepness.K[0, 0] * self.population.M + tangent.steepness.G
        noise = np.linalg.solve(H + tangent.variance * np.eye(len(H)), tangent.right[0] - H @ found[0])
        noise = noise - self.q * float(self.q @ noise) / float(self.q @ self.q)
        misread: Floats = -tangent.unasked * above * self.mean_variance / self.population.n_records * noise
        return misread
