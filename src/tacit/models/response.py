"""How far one record can move the sum of the records' responses to a model.

A response is (predicted - uniform class probabilities) times the row. The gradient of the loss is the sum of responses
minus t, a sum of labels times rows that no model enters:

    two classes    (sigma(s) - 1/2) u            t = sum (y - 1/2) u
    more classes   (p(s) - 1/C) u', a matrix     t = sum (e_y - 1/C) u'

u is a row of norm at most 1, s its scores. A response depends on no label. With two classes its norm is at most 1/2,
and 0 at the zero model; a gradient's norm is up to 1, and 1/2 there.

Scores are bounded here and may otherwise be anything. So two responses are at most twice as far apart as one is long.
That is reached: where u is a row that was made shorter, opposite rows u may have the same scores.

Two classes. |sigma(s) - 1/2| grows with |s|.

More classes, in steps.

1. ||p - 1/C||^2 = sum p^2 - 1/C.
2. As a function of one score, sum p^2 first falls and then rises: its derivative is 2 p_j (p_j - sum p^2).
3. So it is largest where every score is at an end of the range that they share, m of them at the upper end.
4. Two scores differ by at most sqrt 2 times the norm of all.

All results are rounded up.
"""

from __future__ import annotations

import math

from scipy.special import expit

from tacit.errors import SettingError

_UP = 1 + 2.0**-40


def response_norm(scores: float, n_classes: int) -> float:
    """The largest norm of a response, where the norm of a record's scores is at most `scores`.

    Guarantees:
        No record's response is longer. At most 1/2 for two classes, sqrt(1 - 1/C) for more.
    """
    if not 0 <= scores < math.inf:
        raise SettingError(f"scores = {scores} must be a finite number; give a model that was fitted")
    if n_classes == 2:
        return (float(expit(scores * _UP)) - 0.5) * _UP + 1e-300
    low = math.exp(-min(math.sqrt(2) * scores * _UP, 700.0))  # of the odds of the lower end
    squares = [(m + (n_classes - m) * low**2) / (m + (n_classes - m) * low) ** 2 for m in range(1, n_classes)]
    return math.sqrt(max(0.0, max(squares) - 1 / n_classes) + 1e-15) * _UP
