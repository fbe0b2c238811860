"""Discrete Gaussian shares that do as well as continuous Gaussian noise, so that its exact profile may be charged.

Each of h honest parties adds to its integers a discrete Gaussian of parameter s in every coordinate. The sum that is
opened holds all of their shares, and S^2 = h s^2. `share_parameter` is the only place where s is chosen.

    Claim. If s >= 4, the law of the opened sum is, point by point and up to a factor of exp(+-eta), that of a random
    function, the same for all data, of the sum with *continuous* noise N(0, S^2 - 16) in every coordinate instead.
    Here eta = d h 1e-68 for d coordinates.

Proof. Let f_s be the density of N(0, s^2).

1. By Poisson's summation formula the sum of f_s(k - c) over the integers k is 1 +- e_s for every real c, where e_s =
   2.1 exp(-2 pi^2 s^2). So e_4 < 1e-136, and e_{4 / sqrt 2} < 6e-69.
2. *Shares add up.* With g^2 = a^2 + b^2 we have f_a(m) f_b(k - m) = f_g(k) f_{ab/g}(m - k a^2/g^2). Summed over the
   integers m that is f_g(k) (1 +- e_{ab/g}). Adding one share to j others has a = s and b = s sqrt j, so ab/g >= s /
   sqrt 2. After h - 1 such steps and h + 1 normalisations by 1 +- e_s the sum of the shares is a discrete Gaussian of
   parameter S.
3. *Rounding at random.* Given a real z, draw an integer K with a probability in proportion to f_4(K - z). These weights
   add up to 1 +- e_4. If z is v + N(0, S^2 - 16), then P(K = k) is the integral of f_{sqrt(S^2 - 16)}(z - v) f_4(k - z)
   over z, up to that factor. That is f_S(k - v): the discrete Gaussian of parameter S about v, up to e_S.
4. All these factors together stay within exp(+-h 1e-68) a coordinate. Coordinates are independent. QED

What follows for privacy:

5. Let data move the integers by at most D in L2 norm. With mu = D / sqrt(S^2 - 16) the continuous sum is mu-Gaussian
   private, and so is every random function of it.
6. Let two laws be within exp(+-eta) of each other. A test with chances p and p' under them has |logit p - logit p'| <=
   2 eta, since the same holds of 1 - p. The logit of Phi has a slope of phi / (Phi (1 - Phi)) >= 4 / sqrt(2 pi): the
   square [-x, x]^2 holds the disc of radius x, so (2 Phi(x) - 1)^2 >= 1 - exp(-x^2/2), that is, 4 Phi (1 - Phi) <=
   exp(-x^2/2). So |Phi^-1(p) - Phi^-1(p')| <= 1.26 eta.
7. mu-Gaussian privacy says that Phi^-1(power) <= Phi^-1(level) + mu for every test. By 6 both move by at most 1.26 eta.
   So the opened sum is (mu + 2.52 eta)-Gaussian private. `share_parameter` adds a relative 2^-40 to the noise, which is
   more for mu above 1e-30 and d h below 2^64.
8. Rounds that depend on earlier ones compose: mu^2 add up (Dong, Roth and Su 2022, Corollary 3.3).
9. *Samples.* If the integers are a random sum over a sample, mix over the sample on both sides. What is (epsilon,
   delta)-private with continuous noise is (epsilon + 2 eta, exp(eta) delta)-private here.

Conditions, and who keeps them:

- Every share is drawn exactly, and independently of all else (`privacy.noise.discrete`).
- h counts the honest parties that are in every sum that is opened: quorum less colluders (`VectorSum.honest`). A party
  that drops out takes its share along. More honest shares make S larger, so mu smaller.
- What colluders add is fixed without a look at the honest shares. It moves the sum by what they know.
- The value is rounded to integers before the noise is added, and the rounding is part of D (`GaussianGrid`).
- A question is opened once: two sums with different shares would have less noise together.
"""

from __future__ import annotations

import math

from tacit.errors import SettingError

LEAST_PARAMETER = 4.0
"""Of a share, in steps: what the claim asks for."""

ROUNDED = 16.0
"""The variance, in steps squared, that rounding at random takes from continuous noise."""

_UP = 1 + 2.0**-40


def share_parameter(noise_std: float, honest: int) -> float:
    """The parameter s of each party's discrete Gaussian, in steps, for continuous noise of `noise_std` steps.

    Guarantees:
        Added to integers that data move by at most D in L2 norm, the shares of `honest` parties or more make the
        opened sum (D / noise_std)-Gaussian private.
    """
    if not (0 < noise_std < math.inf and honest >= 1):
        raise SettingError(f"noise_std = {noise_std} must be positive and finite, and honest = {honest} at least 1")
    return max(LEAST_PARAMETER, math.sqrt((noise_std**2 + ROUNDED) / honest) * _UP)
