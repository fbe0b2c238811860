"""The kinds of feature, and the target: public facts, fixed before a record is read."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from tacit.data.date import DateRule
from tacit.data.label import code_of, normal
from tacit.errors import SchemaError

MissingRule = Literal["error", "indicator", "middle", "value", "drop"]
UnknownRule = Literal["error", "bucket"]
Coding = Literal["reference", "full"]
Unfit = Literal["error", "skip"]
"""What a record that does not fit the schema is: an error, or one that keeps its place and adds nothing."""
MISSING_RULES: tuple[MissingRule, ...] = ("error", "indicator", "middle", "value", "drop")
UNKNOWN_RULES: tuple[UnknownRule, ...] = ("error", "bucket")
Aliases = tuple[tuple[str, tuple[str, ...]], ...]
"""A label, and further texts for it; written as a table."""
MONTHS = tuple(str(month) for month in range(1, 13))


@dataclass(frozen=True)
class Numeric:
    """A number. With bounds it is scaled to [-1, 1] by them and clipped to them; without, it is taken as it is.

    The bounds are public facts of the field (an age lies in 0..100), never the least and largest value of the data.

    Attributes:
        low, high: the bounds.
        missing: what a missing value is: an error, the middle of the bounds, the `missing_value`, either of these with
            an indicator beside it, or a reason to drop the record.
        missing_value: what stands for a missing value instead of the middle; public, too (a usual lactate is 1.5).
        date: the column holds dates, and this is their number: "year", "month" or "days since 2020-01-01".
        per: coefficients are told for so many units: with 10, an age's odds ratio is that of ten years.

    Example:
        >>> import tacit
        >>> lactate = tacit.Numeric("lactate", 0, 30, missing="value", missing_value=1.5)
        >>> lactate.high
        30.0
    """

    name: str
    low: float | None = None
    high: float | None = None
    missing: MissingRule = "error"
    missing_value: float | None = None
    date: DateRule | None = None
    per: float = 1.0

    kind: ClassVar[str] = "numeric"

    def __post_init__(self) -> None:
        """Check the bounds and the rule."""
        _check_name(self.name)
        _check_missing(self.name, self.missing)
        _read_date(self)
        if (self.low is None) != (self.high is None):
            raise SchemaError(f"feature {self.name!r}: low={self.low}, high={self.high}; give both bounds or neither")
        if self.low is not None and self.high is not None:
            low, high = _number(self.name, "low", self.low), _number(self.name, "high", self.high)
            if not low < high or not math.isfinite(high - low):
                raise SchemaError(f"feature {self.name!r}: low={low} must be below high={high}, by a finite distance")
            object.__setattr__(self, "low", low)
            object.__setattr__(self, "high", high)
        elif self.missing in ("indicator", "middle", "value"):
            raise SchemaError(
                f"feature {self.name!r}: missing={self.missing!r} puts a value within the bounds in place of a missing "
                "one, but there are no bounds; give low and high, or missing='drop'"
            )
        self._check_missing_value()
        per = _number(self.name, "per", self.per)
        if per <= 0:
            raise SchemaError(f"feature {self.name!r}: per={per:g} must be above 0, such as 10 for ten units at once")
        object.__setattr__(self, "per", per)

    def _check_missing_value(self) -> None:
        if self.missing_value is None:
            if self.missing == "value":
                raise SchemaError(f"feature {self.name!r}: missing='value' needs a missing_value, such as 1.5")
            return
        value = _number(self.name, "missing_value", self.missing_value)
        if self.bounds is None or not self.bounds[0] <= value <= self.bounds[1]:
            raise SchemaError(
                f"feature {self.name!r}: missing_value={value:g} lies outside low={self.low}, high={self.high}"
            )
        if self.missing == "error":  # who names the value has named the rule
            object.__setattr__(self, "missing", "value")
        elif self.missing not in ("value", "indicator"):
            raise SchemaError(
                f"feature {self.name!r}: missing={self.missing!r} has no use for a missing_value; leave one of them out"
            )
        object.__setattr__(self, "missing_value", value)

    @property
    def fill(self) -> float | None:
        """The number that stands for a missing value, if one does."""
        if self.bounds is None or self.missing in ("error", "drop"):
            return None
        low, high = self.bounds
        return low + (high - low) / 2 if self.missing_value is None else self.missing_value

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
    """A feature with two values; the second is encoded as 1.

    Example:
        >>> import tacit
        >>> tacit.Binary("smoker", ("no", "yes")).values
        ('no', 'yes')
    """

    name: str
    values: tuple[str, ...] = ("0", "1")
    missing: MissingRule = "error"
    aliases: Aliases = ()  # further texts for a value: {"F": ["female", "w"]}

    kind: ClassVar[str] = "binary"
    largest_square: ClassVar[float] = 1.0  # a missing value is 0 beside its indicator, or 1/2 without one

    def __post_init__(self) -> None:
        """Check the values and the rule."""
        _check_name(self.name)
        _check_missing(self.name, self.missing)
        _check_no_value(self.name, self.missing)
        values = _names(f"feature {self.name!r}", "values", self.values)
        if len(values) != 2:
            raise SchemaError(f"feature {self.name!r}: a binary feature has two values, not {len(values)}: {values}")
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "aliases", _read_aliases(f"feature {self.name!r}", values, self.aliases))

    @property
    def labels(self) -> tuple[str, ...]:
        """The declared values, in the order of their codes."""
        return self.values

    @property
    def codes(self) -> dict[str, int]:
        """The code (0 or 1) of every text that stands for a value."""
        return code_of(self.values, dict(self.aliases))

    def columns(self, coding: Coding) -> tuple[str, ...]:
        """The names of the encoded columns."""
        return (self.name, *_indicator(self.name, self.missing))


@dataclass(frozen=True)
class Categorical:
    """A feature with a declared list of categories, encoded as at most one 1 among its columns.

    Example:
        >>> import tacit
        >>> pain = tacit.Categorical("chest_pain", ("typical", "atypical", "none"), aliases={"none": ["no pain"]})
        >>> pain.categories
        ('typical', 'atypical', 'none')
    """

    name: str
    categories: tuple[str, ...] = ()  # of a date's month: 1 to 12, and need not be listed
    missing: MissingRule = "error"
    unknown: UnknownRule = "error"
    aliases: Aliases = ()  # further texts for a category: {"none": ["asymptomatic", "4"]}
    date: DateRule | None = None  # the column holds dates, and their months are the categories

    kind: ClassVar[str] = "categorical"
    largest_square: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        """Check the categories and the rules."""
        _check_name(self.name)
        _check_missing(self.name, self.missing)
        _check_no_value(self.name, self.missing)
        if self.unknown not in UNKNOWN_RULES:
            raise SchemaError(f"feature {self.name!r}: unknown={self.unknown!r} is not one of {UNKNOWN_RULES}")
        _read_date(self)
        if self.date is not None:
            self._check_months(self.date)
        categories = _names(f"feature {self.name!r}", "categories", self.categories)
        if len(categories) < 2:
            raise SchemaError(f"feature {self.name!r}: needs two categories or more, has {len(categories)}")
        object.__setattr__(self, "categories", categories)
        object.__setattr__(self, "aliases", _read_aliases(f"feature {self.name!r}", categories, self.aliases))

    def _check_months(self, rule: DateRule) -> None:
        if rule.part != "month":
            raise SchemaError(
                f'feature {self.name!r}: date={str(rule)!r} is a number; give kind = "numeric" and bounds'
            )
        if tuple(self.categories) not in ((), MONTHS) or self.aliases or self.unknown != "error":
            raise SchemaError(
                f"feature {self.name!r}: the categories of date='month' are the months; list nothing else"
            )
        object.__setattr__(self, "categories", MONTHS)

    @property
    def labels(self) -> tuple[str, ...]:
        """The declared categories, in the order of their codes."""
        return self.categories

    @property
    def codes(self) -> dict[str, int]:
        """The code of every text that stands for a category."""
        return code_of(self.categories, dict(self.aliases))

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
    """What is to be predicted; of two classes the last one is the positive one.

    Example:
        >>> import tacit
        >>> tacit.Target("disease", ("no", "yes")).classes  # the last one is the positive one
        ('no', 'yes')
    """

    name: str
    classes: tuple[str, ...]
    aliases: Aliases = ()  # further texts for a class: {"yes": ["malignant", "M"]}

    def __post_init__(self) -> None:
        """Check the classes."""
        _check_name(self.name)
        classes = _names(f"target {self.name!r}", "classes", self.classes)
        if len(classes) < 2:
            raise SchemaError(f"target {self.name!r}: needs two classes or more, has {len(classes)}")
        object.__setattr__(self, "classes", classes)
        object.__setattr__(self, "aliases", _read_aliases(f"target {self.name!r}", classes, self.aliases))

    @property
    def labels(self) -> tuple[str, ...]:
        """The classes, in the order of their codes."""
        return self.classes

    @property
    def codes(self) -> dict[str, int]:
        """The index of every text that stands for a class."""
        return code_of(self.classes, dict(self.aliases))


Feature = Numeric | Categorical | Binary


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name.strip() or name != name.strip():
        raise SchemaError(f"the name {name!r} is not a column name; give text without space around it")


def _check_missing(name: str, rule: str) -> None:
    if rule not in MISSING_RULES:
        raise SchemaError(f"feature {name!r}: missing={rule!r} is not one of {MISSING_RULES}")


def _check_no_value(name: str, rule: str) -> None:
    if rule == "value":
        raise SchemaError(f"feature {name!r}: missing='value' is for numbers; choose 'indicator', 'middle' or 'drop'")


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


def _read_aliases(owner: str, labels: tuple[str, ...], aliases: object) -> Aliases:
    """Aliases as a study file has them, a table of lists, checked: each stands for one declared label."""
    given = dict(aliases) if isinstance(aliases, tuple) else aliases
    if not isinstance(given, Mapping):
        raise SchemaError(f'{owner}: aliases={aliases!r} must be a table such as {{ yes = ["malignant", "M"] }}')
    forms = {normal(label): label for label in labels}
    taken = dict(forms)
    read = []
    for label, others in given.items():
        if normal(label) not in forms:
            raise SchemaError(f"{owner}: aliases names {label!r}, which is none of {list(labels)}")
        texts = _names(owner, f"aliases of {label!r}", others)
        for text in texts:
            if taken.setdefault(normal(text), forms[normal(label)]) != forms[normal(label)]:
                raise SchemaError(
                    f"{owner}: {text!r} would stand for {taken[normal(text)]!r} and for {label!r}; keep one"
                )
        read.append((forms[normal(label)], texts))
    return tuple(read)


def _read_date(feature: Numeric | Categorical) -> None:
    """Read the rule of dates, if there is one, where it is still text."""
    if feature.date is not None and not isinstance(feature.date, DateRule):
        object.__setattr__(feature, "date", DateRule.read(f"feature {feature.name!r}", feature.date))


def _indicator(name: str, rule: MissingRule) -> tuple[str, ...]:
    return (f"{name}=missing",) if rule == "indicator" else ()
