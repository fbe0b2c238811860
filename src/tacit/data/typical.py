"""What is known in public of single features, such as the mean and standard deviation of age in a published table.

>>> TypicalValue.parse("age=54,9")
TypicalValue(name='age', figures=(54.0, 9.0))

A number has a mean and a standard deviation. It is then made up by a gamma law with both, which begins at the bound
that is nearer to the mean: close to a normal one far from both bounds, and the more skewed the nearer to one. A
yes-or-no feature has the share of its second value: "smoker=0.2". A category has the share of each of its values:
"blood=0.44,0.1,0.04,0.42".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv

from tacit.data.feature import Binary, Categorical, Feature
from tacit.errors import SettingError

Floats = NDArray[np.float64]

_ROUNDED = 0.1  # how far from 1 printed shares may add up; they are then divided by their sum


@dataclass(frozen=True, kw_only=True)
class TypicalValue:
    """A public guess of one feature.

    Attributes:
        name: the feature's.
        figures: of a number its mean and standard deviation, in original units; of a yes-or-no feature the share of its
            second value; of a category the share of each, in order.
    """

    name: str
    figures: tuple[float, ...]

    @classmethod
    def parse(cls, text: str) -> TypicalValue:
        """The guess in "NAME=MEAN,SD", or in "NAME=SHARE,SHARE,..." of what is no number."""
        name, _, told = text.rpartition("=")
        try:
            figures = tuple(float(word) for word in told.split(","))
        except ValueError:
            figures = ()
        if not name or not figures or not all(map(math.isfinite, figures)):
            raise SettingError(f"typical value {text!r} must read NAME=MEAN,SD, such as age=54,9, or NAME=SHARE,...")
        return cls(name=name, figures=figures)

    def check(self, features: Sequence[Feature]) -> None:
        """Refuse what the feature cannot be like."""
        feature = next((one for one in features if one.name == self.name), None)
        match feature:
            case None:
                known = ", ".join(one.name for one in features)
                raise SettingError(f"typical value of {self.name!r}: there is no such feature; choose one of {known}")
            case Binary():
                if len(self.figures) != 1 or not 0 <= self.figures[0] <= 1:
                    raise SettingError(f"typical value of {self.name!r} must be a share between 0 and 1, such as 0.2")
            case Categorical():
                n, total = len(feature.categories), sum(self.figures)
                if len(self.figures) != n or min(self.figures) < 0 or not abs(total - 1) <= _ROUNDED:
                    raise SettingError(f"typical value of {self.name!r} must be {n} shares that add up to 1")
            case _:
                self._check_number(*(feature.bounds or (-1.0, 1.0)))

    def _check_number(self, low: float, high: float) -> None:
        if len(self.figures) != 2 or self.figures[1] <= 0 or not low < self.figures[0] < high:
            raise SettingError(
                f"typical value of {self.name!r} must be a mean between {low:g} and {high:g} and a standard deviation "
                f"above 0, such as {self.name}={low / 2 + high / 2:g},{(high - low) / 10:g}"
            )

    def numbers(self, ranks: Floats, low: float, high: float) -> Floats:
        """The numbers of these ranks between 0 and 1; at the bounds are those that the law puts beyond."""
        mean, deviation = self.figures
        mirrored = high - mean < mean - low
        above = high - mean if mirrored else mean - low
        steps = gammaincinv((above / deviation) ** 2, 1 - ranks if mirrored else ranks) * deviation**2 / above
        found: Floats = np.clip(high - steps if mirrored else low + steps, low, high)
        return found
