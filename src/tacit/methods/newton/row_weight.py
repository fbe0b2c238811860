"""How many records each made-up row stands for, so that together they have the moments that were opened.

Columns of made-up rows go together as normal numbers do (`stand_in`). Those of a table need not: a husband is married,
always. Rows that no table has then say badly how steep the loss is. So rows count unequally.

1. *Tilted.* A row u counts as w = n exp(u'L u) / sum exp(u'L u), L symmetric. Among all weights that give the same
   second moments, these are nearest to equal ones: they have the largest entropy.
2. *As far as noise tells.* L is where b n KL(w) + ||sum w u u' - M||^2 / (2 s^2) is least. KL is the distance of w from
   equal weights, s the noise of M. b = 0.02: the made-up rows are taken to be off by seven times what chance makes of n
   records. So what is well above noise is met, and noise is not followed.
3. *Solved* through its dual, which is smooth and convex in L: log mean exp(u'L u) - (L.M - b s^2 ||L||^2 / 2) / n.

Nothing is read but opened sums: post-processing. b was chosen on adult, and bank marketing was looked at.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from tacit.methods.newton.triangle import symmetric, triangle

Floats = npt.NDArray[np.float64]

_TRUST = 0.02  # b
_MOST_STEPS, _LEAST_STEPS = 60, 5
_WORK = 2e10  # multiplications, about: wide tables get fewer steps


def row_weights(u: Floats, M: Floats, *, M_noise: float, n_records: float) -> Floats:
    """The weight of each row; their sum is `n_records`. M has noise of standard deviation `M_noise` on its diagonal."""
    wanted, ridge = triangle(M) / n_records, _TRUST * M_noise**2 / n_records

    def dual(packed: Floats) -> tuple[float, Floats]:
        exponents = _exponents(u, packed)
        largest = float(exponents.max())
        weights = np.exp(exponents - largest)
        total = float(weights.sum())
        told = triangle((u * (weights / total)[:, None]).T @ u)
        value = largest + np.log(total / len(u)) - float(packed @ wanted) + ridge / 2 * float(packed @ packed)
        return value, told - wanted + ridge * packed

    steps = int(np.clip(_WORK / (len(u) * u.shape[1] ** 2), _LEAST_STEPS, _MOST_STEPS))
    found = minimize(dual, np.zeros_like(wanted), jac=True, method="L-BFGS-B", options={"maxiter": steps, "maxcor": 20})
    exponents = _exponents(u, found.x)
    weights = np.exp(exponents - exponents.max())
    told: Floats = weights * (n_records / weights.sum())
    return told


def _exponents(u: Floats, packed: Floats) -> Floats:
    told: Floats = np.einsum("ni,ni->n", u @ symmetric(packed), u)
    return told
