"""Checks of settings that several methods share."""

from __future__ import annotations

import math
from functools import cache

from sklearn.base import BaseEstimator

from tacit.errors import SettingError
from tacit.unit import UNITS


@cache
def settings_of(method: type[BaseEstimator]) -> frozenset[str]:
    """The names of a method's settings: read off its constructor once, not for every party of a crowd."""
    return frozenset(method._get_param_names())


def check_l2(l2: float | None, *, zero: bool) -> None:
    """Refuse a regularisation that is negative or not a number; `zero` says whether 0 will do."""
    if l2 is None:
        return
    if (
        isinstance(l2, bool)
        or not isinstance(l2, int | float)
        or not math.isfinite(l2)
        or l2 < 0
        or (l2 == 0 and not zero)
    ):
        least = "0 or above" if zero else "above 0"
        raise SettingError(f"l2 = {l2!r} must be a finite number, {least}; it is 1/C of scikit-learn")


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Refuse a value that is none of the choices."""
    if value not in choices:
        raise SettingError(f"{name} = {value!r} is unknown; choose one of {', '.join(choices)}")


def check_unit(unit: str, *, is_paper: bool) -> None:
    """Refuse a unit that is none, and one that no document speaks of."""
    check_choice("unit", unit, UNITS)
    if is_paper and unit != "record":
        raise SettingError(f"unit = {unit!r}: the document protects records; leave it out, or calibration='paper'")


def check_whole(name: str, value: object) -> None:
    """Refuse what is not a whole number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise SettingError(f"{name} = {value!r} must be a whole number, 1 or above")


def check_colluders(colluders: int, n_parties: int) -> None:
    """Refuse a number of colluders that leaves nobody honest."""
    if isinstance(colluders, bool) or not isinstance(colluders, int) or not 0 <= colluders < n_parties:
        raise SettingError(
            f"colluders = {colluders!r} among {n_parties} parties leaves nobody honest; choose 0 to {n_parties - 1}"
        )
