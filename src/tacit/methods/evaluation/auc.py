"""The AUC of a public model from a noisy histogram of its scores, with an interval for the records' population.

1. There are b cells for each class. Let n and p be the counts of the first and of the last class, n0 and n1 their sums,
   and K_jk = 1 if j < k, 1/2 if j = k, 0 otherwise. Then n' K p / (n0 n1) is the AUC in which two records of one cell
   count as half.
2. That is what is estimated: the AUC of the score as cells tell it. Where scores fill the cells evenly, it is smaller
   than that of the score itself by about 0.4 / b^2 (0.001 with 20 cells).
3. Sampling. With a = K p / n1 for each cell of the first class and c = K' n / n0 for each of the last, the variance
   is var(c) / n1 + var(a) / n0 (DeLong et al. 1988), variances being those over the records of a class.
4. Noise. Counts have independent noise of standard deviation s. It moves the AUC by its first derivatives and by the
   product of both classes' noise: s^2 (||K p - A n1||^2 + ||K' n - A n0||^2 + s^2 ||K - A||^2) / (n0 n1)^2.
5. Both add up, as noise and records are independent. The interval is symmetric for log(A / (1 - A)).

Counts with noise may be negative. They stay so in A, which would be biased otherwise, and are 0 in the variances of 3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

Floats = npt.NDArray[np.float64]

_SEEN = 3.0  # a class is told of if its count exceeds so many standard errors
_EDGE = 1e-4  # an AUC that noise pushes out of (0, 1) is taken to be so near to its end


@dataclass(frozen=True, kw_only=True)
class AucInterval:
    """An AUC and the interval in which that of the population lies with this confidence.

    Guarantees:
        0 <= low <= auc <= high <= 1.
    """

    auc: float
    low: float
    high: float
    confidence: float

    @property
    def half_width(self) -> float:
        """How far it reaches to either side, on average of the two."""
        return (self.high - self.low) / 2


def auc_interval(counts: Floats, *, noise_std: float, confidence: float) -> AucInterval | None:
    """The interval from cells bin + bins * label; None where a class cannot be told from noise."""
    bins = counts.size // 2
    n, p, K = counts[:bins], counts[bins:], _ranks(bins)
    n0, n1 = float(n.sum()), float(p.sum())
    if not min(n0, n1) > _SEEN * noise_std * math.sqrt(bins) + 1:
        return None
    auc = float(n @ K @ p) / (n0 * n1)
    a, c = K @ p / n1, K.T @ n / n0
    sampling = _variance(c, p) / n1 + _variance(a, n) / n0
    first = float(np.sum((a - auc) ** 2)) / n0**2 + float(np.sum((c - auc) ** 2)) / n1**2
    second = float(np.sum((K - auc) ** 2)) / (n0 * n1) ** 2
    error = math.sqrt(sampling + noise_std**2 * (first + noise_std**2 * second))
    auc = min(max(auc, _EDGE), 1 - _EDGE)
    reach = float(ndtri(0.5 + confidence / 2)) * error / (auc * (1 - auc))
    middle = math.log(auc / (1 - auc))
    low, high = (1 / (1 + math.exp(-middle + side * min(reach, 50.0))) for side in (1, -1))
    return AucInterval(auc=auc, low=min(low, auc), high=max(high, auc), confidence=confidence)


def _ranks(bins: int) -> Floats:
    """K."""
    places = np.arange(bins)
    return (np.sign(places[None, :] - places[:, None]) + 1) / 2


def _variance(values: Floats, counts: Floats) -> float:
    """Of values that so many records have, seen with noise."""
    weights = np.maximum(counts, 0.0)
    mean = float(weights @ values) / float(weights.sum())
    return float(weights @ (values - mean) ** 2) / float(weights.sum())
