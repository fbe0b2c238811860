"""One line of the regression table, and what an older file says in its place."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from tacit.errors import SettingError

INTERCEPT = "(intercept)"
NOT_IDENTIFIED = "not identified"

_MOST = 700.0  # exp(700) is near the largest double


@dataclass(frozen=True, kw_only=True)
class CoefficientRow:
    """One coefficient by one estimator: all numbers but `prediction` belong together.

    Attributes:
        name: the term; `INTERCEPT` for the constant one.
        estimate: the log odds ratio of `per` original units. None: not identified at this epsilon.
        standard_error, z, p: of that estimate; None if they were not computed.
        low, high: the ends of its 95 % interval.
        prediction: the model's own coefficient where it is another one, drawn towards 0 to predict better.
        class_name: set where there are more than two classes.
        per: for how many original units all numbers of the row are told.

    Guarantees:
        low <= estimate <= high, and every number is finite. Nothing but `prediction` is told of a row that is not
        identified: no z, no p, no interval. The odds ratio and its interval are those of the estimate.
    """

    name: str
    estimate: float | None
    standard_error: float | None = None
    z: float | None = None
    p: float | None = None
    low: float | None = None
    high: float | None = None
    prediction: float | None = None
    class_name: str | None = None
    per: float = 1.0

    def __post_init__(self) -> None:
        """Refuse numbers that do not belong together."""
        told = (self.standard_error, self.z, self.p, self.low, self.high)
        if self.estimate is None and any(value is not None for value in told):
            raise SettingError(
                f"the row of {self.name!r} has no estimate; it can have no standard error, z, p, low, high"
            )
        for value in (self.estimate, self.prediction, *told):
            if value is not None and not math.isfinite(value):
                raise SettingError(f"the row of {self.name!r} holds {value}; a number that is not finite is None")
        ends = [value for value in (self.low, self.estimate, self.high) if value is not None]
        if ends != sorted(ends):
            raise SettingError(f"the estimate of {self.name!r} lies outside its own interval; give one estimator's")

    @property
    def identified(self) -> bool:
        """Whether anything is known of the coefficient."""
        return self.estimate is not None

    @property
    def label(self) -> str:
        """The name, with its class where there are several."""
        return self.name if self.class_name is None else f"{self.name} [{self.class_name}]"

    @property
    def shown_name(self) -> str:
        """The name as tables and pictures show it, with the number of units that it is told for."""
        return self.name if self.per == 1 else f"{self.name} (per {self.per:g})"

    @property
    def shown_label(self) -> str:
        """`shown_name`, with its class where there are several."""
        return self.shown_name if self.class_name is None else f"{self.shown_name} [{self.class_name}]"

    @property
    def weight(self) -> tuple[float, float]:
        """What rows are ranked by: the largest |z| first, then the largest |estimate|; not identified comes last."""
        if self.estimate is None:
            return -1.0, 0.0
        return 0.0 if self.z is None else abs(self.z), abs(self.estimate)

    @property
    def odds_ratio(self) -> float | None:
        """The factor on the odds of `per` units more."""
        return _exp(self.estimate)

    @property
    def odds_low(self) -> float | None:
        """The lower end of the odds ratio's 95 % interval."""
        return _exp(self.low)

    @property
    def odds_high(self) -> float | None:
        """The upper end of it."""
        return _exp(self.high)

    @property
    def half_width(self) -> float | None:
        """Half the length of the 95 % interval."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2

    def as_dict(self) -> dict[str, object]:
        """The row as reports and results tell it: the fields, whether it is identified, and its odds ratio."""
        return {
            "term": self.name,
            "class": self.class_name,
            "estimate": self.estimate,
            "std_err": self.standard_error,
            "z": self.z,
            "p": self.p,
            "low": self.low,
            "high": self.high,
            "odds_ratio": self.odds_ratio,
            "odds_low": self.odds_low,
            "odds_high": self.odds_high,
            "identified": self.identified,
            "prediction": self.estimate if self.prediction is None else self.prediction,
            "per": self.per,
        }


def row_from_dict(document: Mapping[str, Any]) -> CoefficientRow:
    """The row that a model file holds; one of format version 1 mixed two estimators, which are taken apart.

    There `value` was the model's own coefficient, and the interval, symmetric about the estimate, was told as odds.
    """
    if "value" not in document:
        known = [field.name for field in fields(CoefficientRow) if field.name in document]  # `per` came later
        return CoefficientRow(**{name: document[name] for name in known})
    name, value, class_name = document["name"], document["value"], document["class_name"]
    if document["standard_error"] is None:
        return CoefficientRow(name=name, estimate=value, class_name=class_name)
    low, high = (_log(document[end]) for end in ("odds_low", "odds_high"))
    numbers = {
        "estimate": (low + high) / 2,
        "standard_error": document["standard_error"],
        "z": document["z"],
        "p": document["p"],
        "low": low,
        "high": high,
    }
    return row_of(name, numbers, prediction=value, class_name=class_name)


def row_of(
    name: str,
    numbers: Mapping[str, float],
    *,
    prediction: float | None,
    class_name: str | None = None,
    per: float = 1.0,
) -> CoefficientRow:
    """The row of an estimator's `numbers`: not identified if its estimate, standard error or interval is not finite.

    Numbers are those of one unit; the row has those of `per` units.
    """
    numbers = {key: value if key in ("z", "p") else per * value for key, value in numbers.items()}
    own = per * prediction if prediction is not None and math.isfinite(prediction) else None
    if not all(math.isfinite(numbers[key]) for key in ("estimate", "standard_error", "low", "high")):
        return CoefficientRow(name=name, estimate=None, prediction=own, class_name=class_name, per=per)
    estimate, near = numbers["estimate"], 1e-6 * numbers["standard_error"]
    if own is not None and math.isclose(own, estimate, rel_tol=1e-6, abs_tol=near):
        own = None
    told = {key: float(value) for key, value in numbers.items() if math.isfinite(value)}
    return CoefficientRow(name=name, **told, prediction=own, class_name=class_name, per=per)


def _exp(value: float | None) -> float | None:
    return None if value is None else math.exp(min(max(value, -_MOST), _MOST))


def _log(odds: float) -> float:
    return math.log(odds) if 0 < odds < math.inf else math.nan
