"""The kinds of feature, and the target: public facts, fixed before a record is read."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal

from tacit.data.label import code_of, normal
from tacit.errors import SchemaError

MissingRule = Literal["error", "indicator", "middle", "drop"]
UnknownRule = Literal["error", "bucket"]
Coding = Literal["reference", "full"]
Unfit = Literal["error", "skip"]
"""What a record that does not fit the schema is: an error, or one that keeps its place and adds nothing."""
MISSING_RULES: tuple[MissingRule, ...] = ("error", "indicator", "middle", "drop")
UNKNOWN_RULES: tuple[UnknownRule, ...] = ("error", "bucket")


@dataclass(frozen=True)
class Numeric:
    """A number. With bounds it is scaled to [-1, 1] by them and clipped to them; without, it is taken as it is.

    The bounds are public facts of the field (an age lies in 0..100), never the least and largest value of the data.
    """

    name: str
    low: float | None = None
    high: float | None = None
    missing: MissingRule = "error"

    kind: ClassVar[str] = "numeric"

    def __post_init__(self) -> None:
        """Check the bounds and the rule."""
        _check_name(self.name)
        _check_missing(self.name, self.missing)
        if (self.low is None) != (self.high is None):
            raise SchemaError(f"feature {self.name!r}: low={self.low}, high={self.high}; give both bounds or neither")
        if self.low is not None and self.high is not None:
            low, high = _number(self.name, "low", self.low), _number(self.name, "high", self.high)
            if not low < high or not math.isfinite(high - low):
                raise SchemaError(f"feature {self.name!r}: low={low} must be below high={high}, by a finite distance")
            object.__setattr__(self, "low", low)
            object.__setattr__(self, "high", high)
        elif self.missing in ("indicator", "middle"):
            raise SchemaError(
                f"feature {self.name!r}: missing={self.missing!r} puts the middle of the bounds in place of a missing "
                "value, but there are no bounds; give low and high, or missing='drop'"
            )

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The public bounds, if there are any."""
        return None if self.low is None or self.high is None else (self.low, self.high)

    @property
    def largest_square(self) -> float:
        """The largest squared norm of this feature's encoded columns; infinite without bounds."""
        return math.inf if self.bounds is None else 1.0

    def columns(self, coding: Coding) -> tuple[str, ...]:
        """The names of the encoded columns."""
        return (self.name, *_indicator(self.name, self.missing))


@dataclass(frozen=True)
class Binary:
    """A feature with two values; the second is encoded as 1."""

    name: str
    values: tuple[str, ...] = ("0", "1")
    missing: MissingRule = "error"

    kind: ClassVar[str] = "binary"
    largest_square: ClassVar[float] = 1.0  # a missing value is 0 beside its indicator, or 1/2 without one

    def __post_init__(self) -> None:
        """Check the values and the rule."""
        _check_name(self.name)
        _check_missing(self.name, self.missing)
        values = _names(f"feature {self.name!r}", "values", self.values)
        if len(values) != 2:
            raise SchemaError(f"feature {self.name!r}: a binary feature has two values, not {len(values)}: {values}")
        object.__setattr__(self, "values", values)

    @property
    def codes(self) -> dict[str, int]:
        """The code (0 or 1) of every text that stands for a value."""
        return code_of(self.values)

    def columns(self, coding: Coding) -> tuple[str, ...]:
        """The names of the encoded columns."""
        return (self.name, *_indicator(self.name, self.missing))


@dataclass(frozen=True)
class Categorical:
    """A feature with a declared list of categories, encoded as at most one 1 among its columns."""

    name: str
    categories: tuple[str, ...]
    missing: MissingRule = "error"
    unknown: UnknownRule = "error"

    kind: ClassVar[str] = "categorical"
    largest_square: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        """Check the categories and the rules."""
        _check_name(self.name)
        _check_missing(self.name, self.missing)
        if self.unknown not in UNKNOWN_RULES:
            raise SchemaError(f"feature {self.name!r}: unknown={self.unknown!r} is not one of {UNKNOWN_RULES}")
        categories = _names(f"feature {self.name!r}", "categories", self.categories)
        if len(categories) < 2:
            raise SchemaError(f"feature {self.name!r}: needs two categories or more, has {len(categories)}")
        object.__setattr__(self, "categories", categories)

    @property
    def codes(self) -> dict[str, int]:
        """The code of every text that stands for a category."""
        return code_of(self.categories)

    @property
    def other_code(self) -> int | None:
        """The code of an unknown category, if there is a bucket for them."""
        return len(self.categories) if self.unknown == "bucket" else None

    def columns(self, coding: Coding) -> tuple[str, ...]:
        """The names of the encoded columns; with reference coding the first category has none."""
        shown = self.categories[1:] if coding == "reference" else self.categories
        other = ("other",) if self.unknown == "bucket" else ()
        return (*(f"{self.name}={label}" for label in (*shown, *other)), *_indicator(self.name, self.missing))


@dataclass(frozen=True)
class Target:
    """What is to be predicted; of two classes the last one is the positive one."""

    name: str
    classes: tuple[str, ...]

    def __post_init__(self) -> None:
        """Check the classes."""
        _check_name(self.name)
        classes = _names(f"target {self.name!r}", "classes", self.classes)
        if len(classes) < 2:
            raise SchemaError(f"target {self.name!r}: needs two classes or more, has {len(classes)}")
        object.__setattr__(self, "classes", classes)

    @property
    def codes(self) -> dict[str, int]:
        """The index of every text that stands for a class."""
        return code_of(self.classes)


Feature = Numeric | Categorical | Binary


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name.strip() or name != name.strip():
        raise SchemaError(f"the name {name!r} is not a column name; give text without space around it")


def _check_missing(name: str, rule: str) -> None:
    if rule not in MISSING_RULES:
        raise SchemaError(f"feature {name!r}: missing={rule!r} is not one of {MISSING_RULES}")


def _number(name: str, setting: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise SchemaError(f"feature {name!r}: {setting}={value!r} is not a finite number")
    return float(value)


def _names(owner: str, setting: str, values: object) -> tuple[str, ...]:
    """The declared labels as a tuple of text; whole numbers and truth values are taken as their text."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise SchemaError(f"{owner}: {setting}={values!r} must be a list of labels")
    listed = tuple(values)
    for value in listed:
        if not isinstance(value, str | int) or not normal(value):
            raise SchemaError(f"{owner}: {setting} has {value!r}, which is not a label; give text")
    labels = tuple(value if isinstance(value, str) else normal(value) for value in listed)
    forms = [normal(label) for label in labels]
    doubles = sorted({label for label, form in zip(labels, forms, strict=True) if forms.count(form) > 1})
    if doubles:
        raise SchemaError(f"{owner}: {setting} has labels that mean the same: {doubles}; name each once")
    return labels


def _indicator(name: str, rule: MissingRule) -> tuple[str, ...]:
    return (f"{name}=missing",) if rule == "indicator" else ()
