"""How long a party's noise is at most, but for a chance below 2**-44: what the bound on its addend allows for.

With t = 32, exp(-t) is below 2**-46, and each bound fails with a chance of at most two such.
"""

from __future__ import annotations

import math

_TAIL = 32.0  # t


def gaussian_norm(noise_std: float, dimension: int) -> float:
    """Of independent discrete Gaussians Z of parameter sigma.

    1. They are sub-Gaussian: E exp(u Z) is exp(u**2 sigma**2 / 2) times a sum of Gaussian weights at integers moved by
       u sigma**2, over the same sum not moved, which is the largest (Poisson summation).
    2. So ||Z|| <= sigma (sqrt d + sqrt(2 t)) but for a chance of exp(-t) (Hsu, Kakade and Zhang 2012, Theorem 2.1).
    """
    return noise_std * (math.sqrt(dimension) + math.sqrt(2 * _TAIL))


def spherical_norm(scale: float, dimension: int, honest: int) -> float:
    """Of a share s sqrt(2 G) Z of spherical Laplace noise, G of Gamma shape a = (d + 1) / (2 honest).

    ||Z|| <= sqrt d + sqrt(2 t) and G <= a + sqrt(2 a t) + t, but for a chance of exp(-t) each (Boucheron, Lugosi and
    Massart 2013, sections 2.3 and 2.4).
    """
    a = (dimension + 1) / (2 * honest)
    root_gamma = math.sqrt(a + math.sqrt(2 * a * _TAIL) + _TAIL)
    return math.sqrt(2) * root_gamma * gaussian_norm(scale, dimension)


def laplace_norm(scale: float, dimension: int) -> float:
    """Of independent discrete Laplace noise: an entry exceeds t + log(2 d) scales with a chance of exp(-t) / d."""
    return math.sqrt(dimension) * (scale * (_TAIL + math.log(2 * dimension)) + 1)
