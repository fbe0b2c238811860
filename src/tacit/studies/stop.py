"""When a study looks and when it stops: the tables [stop] and [enrolment] of a study file.

    [stop]
    looks = [5000, 10000, 20000]   # records enrolled at each look; or a number of looks, up to enrolment.records
    coefficient = "age"            # stop at the first look whose interval for it
    half_width = 0.02              # reaches no further than this to either side, on average of the two

    [enrolment]
    until = 2027-01-31             # the last day on which parties may join
    records = 20000                # where enrolment ends; the last look is there

Several coefficients have a table each, `[[stop.goal]]`, and all must be precise enough. `auc = 0.01` wants the model's
AUC to that half-width, alone or besides. Without a goal the study looks as often as planned. `shares` are the looks'
shares of the promise and of the error that intervals may make, all alike by default. What follows from these tables
stands in `looks`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from itertools import pairwise
from typing import Any

from tacit.data.schema import Schema
from tacit.errors import StudyError
from tacit.report.row import INTERCEPT
from tacit.studies.strict import Section, nearest

MOST_LOOKS = 20
AUC = "AUC"
"""What the AUC is called where coefficients have their names."""
_ROUNDING = 1e-9


@dataclass(frozen=True, kw_only=True)
class Goal:
    """A coefficient, as the table names it, and the half-width of its interval there that suffices."""

    coefficient: str
    half_width: float

    def __post_init__(self) -> None:
        if not 0 < self.half_width < math.inf:
            raise StudyError(f"stop.half_width = {self.half_width} must be a number above 0; give the width wanted")
        object.__setattr__(self, "half_width", float(self.half_width))


@dataclass(frozen=True, kw_only=True)
class StopRequest:
    """The looks that a study plans, and what is precise enough.

    Attributes:
        looks: how many records are enrolled at each look at least; rising.
        goals: what must be known; a study without one looks as often as planned.
        shares: each look's share of the promise (of mu^2) and of the error of intervals; None shares alike.
        auc: the half-width of the interval of the model's AUC that suffices; None if it is not wanted.
    """

    looks: tuple[int, ...]
    goals: tuple[Goal, ...] = ()
    shares: tuple[float, ...] | None = None
    auc: float | None = None

    def __post_init__(self) -> None:
        """Refuse looks that make no plan."""
        looks = self.looks
        if not 1 <= len(looks) <= MOST_LOOKS:
            raise StudyError(f"stop.looks has {len(looks)} looks; plan 1 to {MOST_LOOKS}, since each costs its share")
        if looks[0] < 1 or any(second <= first for first, second in pairwise(looks)):
            raise StudyError(f"stop.looks = {list(looks)} must rise from look to look; say how many records each has")
        names = [goal.coefficient for goal in self.goals]
        doubles = sorted({name for name in names if names.count(name) > 1})
        if doubles:
            raise StudyError(f"stop has {', '.join(map(repr, doubles))} more than once; give each one half_width")
        if self.auc is not None:
            if not 0 < self.auc < 0.5:
                raise StudyError(f"stop.auc = {self.auc} must be a half-width above 0 and below 0.5, such as 0.01")
            object.__setattr__(self, "auc", float(self.auc))
        if self.shares is not None:
            self._check_shares(self.shares)
            object.__setattr__(self, "shares", tuple(map(float, self.shares)))

    def _check_shares(self, shares: tuple[float, ...]) -> None:
        if len(shares) != len(self.looks) or not all(0 < share <= 1 for share in shares):
            raise StudyError(f"stop.shares = {list(shares)} must give each of {len(self.looks)} looks a part of 1")
        if not math.isclose(sum(shares), 1.0, abs_tol=_ROUNDING):
            raise StudyError(f"stop.shares = {list(shares)} add up to {sum(shares):g}; the looks share 1 in all")

    @property
    def wanted(self) -> tuple[Goal, ...]:
        """The goals, with the AUC as the last of them."""
        return self.goals if self.auc is None else (*self.goals, Goal(coefficient=AUC, half_width=self.auc))

    def check(self, schema: Schema, enrolment: EnrolmentRequest | None) -> None:
        """Refuse a goal for a coefficient that the model will not have, and an enrolment that ends elsewhere."""
        known = terms_of(schema)
        if enrolment is not None and enrolment.records not in (None, self.looks[-1]):
            raise StudyError(
                f"stop.looks ends at {self.looks[-1]:,}, and enrolment.records = {enrolment.records:,}; let both be "
                f"the same"
            )
        if self.auc is not None and schema.n_classes != 2:
            raise StudyError(
                f"stop.auc = {self.auc:g} is of a model for two classes, and the study has {schema.n_classes}; aim at "
                f"a coefficient"
            )
        if self.auc is not None and AUC in known:
            raise StudyError(f"stop.auc = {self.auc:g} has the name of the column {AUC!r}; rename the column")
        for goal in self.goals:
            if goal.coefficient not in known:
                close = nearest(goal.coefficient, known)
                hint = f"did you mean {close[0]!r}?" if close else f"the model has {', '.join(known)}"
                raise StudyError(f"stop.coefficient = {goal.coefficient!r} is no coefficient of the study; {hint}")

    def as_dict(self) -> dict[str, object]:
        """Plain values."""
        goals = [{"coefficient": goal.coefficient, "half_width": goal.half_width} for goal in self.goals]
        form: dict[str, object] = {"looks": list(self.looks)}
        form |= {} if self.shares is None else {"shares": list(self.shares)}
        form |= {} if self.auc is None else {"auc": self.auc}
        return form | ({"goal": goals} if goals else {})


@dataclass(frozen=True, kw_only=True)
class EnrolmentRequest:
    """How long parties may join: until a number of records is enrolled, or to the end of a day (UTC)."""

    records: int | None = None
    until: date | None = None

    def __post_init__(self) -> None:
        if self.records is not None and self.records < 1:
            raise StudyError(f"enrolment.records = {self.records} must be at least 1")

    def as_dict(self) -> dict[str, object]:
        """Plain values; a date is told as a text."""
        until = None if self.until is None else self.until.isoformat()
        return {key: value for key, value in (("records", self.records), ("until", until)) if value is not None}


def terms_of(schema: Schema) -> tuple[str, ...]:
    """The coefficients that a linear model of this schema has, as its table names them."""
    names = (*schema.column_names, INTERCEPT)
    if schema.n_classes == 2:
        return names
    return tuple(f"{name} [{label}]" for label in schema.target.classes for name in names)


def read_enrolment(table: Mapping[str, object], source: str) -> EnrolmentRequest:
    """What [enrolment] says."""
    section = Section(table, source=source, path="enrolment")
    section.check_keys(("records", "until"))
    until = table.get("until")
    if isinstance(until, str):
        try:
            until = date.fromisoformat(until)
        except ValueError:
            raise section.error("until", f"is {until!r}, which is no date; write 2027-01-31") from None
    if until is not None and (not isinstance(until, date) or isinstance(until, datetime)):
        raise section.error("until", "must be a date without a time; write 2027-01-31")
    return EnrolmentRequest(records=section.whole("records", least=1), until=until)


def read_stop(table: Mapping[str, object] | None, enrolment: EnrolmentRequest | None, source: str) -> StopRequest:
    """What [stop] says, or what an [enrolment] alone comes to: one look, at its end."""
    section = Section(table or {}, source=source, path="stop")
    section.check_keys(("looks", "shares", "coefficient", "half_width", "auc", "goal"))
    records = None if enrolment is None else enrolment.records
    looks = _looks(section, table or {}, records)
    return StopRequest(
        looks=looks,
        goals=_goals(section, table or {}, source),
        shares=_shares(section, table or {}),
        auc=section.number("auc"),
    )


def _looks(section: Section, table: Mapping[str, Any], records: int | None) -> tuple[int, ...]:
    looks = table.get("looks")
    if looks is None and "looks" not in table and records is not None and not table:
        return (records,)
    section.need("looks", "say how many records are enrolled at each look, such as [5000, 10000, 20000]")
    if isinstance(looks, int) and not isinstance(looks, bool):
        if records is None:
            raise section.error("looks", f"is {looks}, a number of looks; give enrolment.records too, or a list")
        if not 1 <= looks <= min(MOST_LOOKS, records):
            raise section.error("looks", f"is {looks}; plan 1 to {min(MOST_LOOKS, records)} looks")
        return tuple(math.ceil(records * k / looks) for k in range(1, looks + 1))
    if not isinstance(looks, list) or not looks or any(type(n) is not int for n in looks):
        raise section.error("looks", "must be a list of whole numbers, such as [5000, 10000], or a number of looks")
    return tuple(looks)


def _shares(section: Section, table: Mapping[str, Any]) -> tuple[float, ...] | None:
    shares = table.get("shares")
    if shares is None:
        return None
    if not isinstance(shares, list) or any(isinstance(s, bool) or not isinstance(s, int | float) for s in shares):
        raise section.error("shares", "must be a list of numbers that add up to 1, one for each look")
    return tuple(shares)


def _goals(section: Section, table: Mapping[str, Any], source: str) -> tuple[Goal, ...]:
    goals = table.get("goal", [])
    if not isinstance(goals, list) or not all(isinstance(goal, dict) for goal in goals):
        raise section.error("goal", "must be a list of tables; write [[stop.goal]] above each coefficient")
    tables = [Section(goal, source=source, path="stop.goal") for goal in goals]
    for goal in tables:
        goal.check_keys(("coefficient", "half_width"))
    if "coefficient" in section or "half_width" in section:
        tables.insert(0, section)
    found = []
    for goal in tables:
        coefficient = goal.text("coefficient", "name the coefficient as the regression table does, such as age")
        goal.need("half_width", "say how far its interval may reach to either side, as the table tells it")
        half_width = goal.number("half_width")
        assert half_width is not None  # `need` has seen it
        found.append(Goal(coefficient=coefficient, half_width=half_width))
    return tuple(found)
