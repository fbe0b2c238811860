"""What is likely of a chance that was seen with noise, which may say that it is below 0 or above 1."""

from __future__ import annotations

import math

from scipy.special import ndtr


def likely_chance(seen: float, noise: float) -> float:
    """The mean of a chance that was seen with normal noise, all chances being alike beforehand."""
    if noise <= 0:
        return min(max(seen, 0.0), 1.0)
    low, high = -seen / noise, (1 - seen) / noise
    if low > 30 or high < -30:  # too far outside for the tails below: the exponential law that they tend to
        return min(noise / low, 0.5) if low > 30 else max(1 + noise / high, 0.5)
    inside = float(ndtr(high) - ndtr(low)) if low < 0 else float(ndtr(-low) - ndtr(-high))
    density = math.exp(-(low**2) / 2) - math.exp(-(high**2) / 2)
    return min(max(seen + noise * density / math.sqrt(2 * math.pi) / inside, 0.0), 1.0)
