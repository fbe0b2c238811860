"""What is known in public of single features, such as the mean and standard deviation of age in a published table.

>>> TypicalValue.parse("age=54,9")
TypicalValue(name='age', mean=54.0, deviation=9.0)

A number is then made up by a gamma law with that mean and deviation, which begins at the bound that is nearer to the
mean: close to a normal one far from both bounds, and the more skewed the nearer to one. A yes-or-no feature has a share
alone: "smoker=0.2".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit.data.feature import Binary, Categorical, Feature
from tacit.errors import SettingError

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class TypicalValue:
    """A public guess of one feature.

    Attributes:
        name: the feature's.
        mean: of its numbers, in original units; of a yes-or-no feature, the share of its second value.
        deviation: the standard deviation of its numbers; None for a yes-or-no feature.
    """

    name: str
    mean: float
    deviation: float | None = None

    @classmethod
    def parse(cls, text: str) -> TypicalValue:
        """The guess in "NAME=MEAN,SD", or in "NAME=SHARE" of a yes-or-no feature."""
        name, _, told = text.rpartition("=")
        try:
            numbers = [float(word) for word in told.split(",")]
        except ValueError:
            numbers = []
        if not name or len(numbers) not in (1, 2) or not all(map(math.isfinite, numbers)):
            raise SettingError(f"typical value {text!r} must read NAME=MEAN,SD, such as age=54,9, or NAME=SHARE")
        return cls(name=name, mean=numbers[0], deviation=numbers[1] if len(numbers) == 2 else None)

    def check(self, features: Sequence[Feature]) -> None:
        """Refuse what the feature cannot be like."""
        feature = next((one for one in features if one.name == self.name), None)
        if feature is None or isinstance(feature, Categorical):
            known = [one.name for one in features if not isinstance(one, Categorical)]
            raise SettingError(f"typical value of {self.name!r}: choose a number or a yes-or-no of {', '.join(known)}")
        if isinstance(feature, Binary):
            if self.deviation is not None or not 0 <= self.mean <= 1:
                raise SettingError(f"typical value of {self.name!r} must be a share between 0 and 1, such as 0.2")
            return
        low, high = feature.bounds or (-1.0, 1.0)
        if self.deviation is None or self.deviation <= 0 or not low < self.mean < high:
            raise SettingError(
                f"typical value of {self.name!r} must be a mean between {low:g} and {high:g} and a standard deviation "
                f"above 0, such as {self.name}={low / 2 + high / 2:g},{(high - low) / 10:g}"
            )

    def draw(self, low: float, high: float, n: int, generator: Generator) -> Floats:
        """So many numbers between the bounds; at the bounds are those that the law puts beyond."""
        assert self.deviation is not None
        mirrored = high - self.mean < self.mean - low
        above = high - self.mean if mirrored else self.mean - low
        steps = generator.gamma((above / self.deviation) ** 2, self.deviation**2 / above, size=n)
        return np.clip(high - steps if mirrored else low + steps, low, high)
