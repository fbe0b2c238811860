"""Power: about how many records a study needs for an interval of a given width.

A coefficient's variance has two parts. Sampling gives a / n, as ever. Noise that hides one record gives b / n^2: it
does not grow with n, and the sums that it is added to do. The method is rehearsed with a few numbers of records, a and
b >= 0 are fitted to the half-widths found, and the curve is solved for n. The rehearsals move to where the answer seems
to lie, so that it is read between numbers that were tried.

It is a forecast: as good as the records that it is rehearsed on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import nnls

from tacit.errors import SettingError
from tacit.methods import Method
from tacit.studies.expectation import MeasuredRun, median_widths
from tacit.studies.rehearsal import Rehearsal, rehearse

_MOST_RECORDS = 400_000  # that are rehearsed with
_STEPS = 4  # times that the rehearsals move
_NEAR = 1.25  # factor between the answer and a number that was tried, so that no more need be
_REPEATS = 9


@dataclass(frozen=True, kw_only=True)
class TriedSize:
    """The median half-width with so many records; infinite if the coefficient is not identified."""

    n_records: int
    half_width: float


@dataclass(frozen=True, kw_only=True)
class RecordsNeeded:
    """The answer, with what it rests on.

    Attributes:
        term: the coefficient.
        epsilon: what the method promises, infinite if nothing.
        half_width: what is wanted.
        n_records: how many records all parties together need, about; None if none of the tried sizes identifies it.
        is_beyond: whether that is beyond all numbers that were tried, so that it is a guess by the law alone.
        tried: what was rehearsed, by size.
        rehearsed_on: on what.
    """

    term: str
    epsilon: float
    half_width: float
    n_records: int | None
    is_beyond: bool
    tried: tuple[TriedSize, ...]
    rehearsed_on: str


def records_needed(
    plan: Rehearsal,
    *,
    term: str,
    half_width: float,
    epsilon: float | None = None,
    on_run: Callable[[str], None] | None = None,
) -> RecordsNeeded:
    """About how many records give the 95 % interval of `term` this half-width, in original units.

    Args:
        plan: the study, with the parties' sizes; other numbers of records are shared out in their proportion.
        term: a coefficient's name, as the table has it.
        half_width: half the length of the interval that is wanted.
        epsilon: another than the study's.
        on_run: told what is rehearsed next.
    """
    if not (half_width > 0 and math.isfinite(half_width)):
        raise SettingError(f"half_width = {half_width} must be a number above 0")
    plan = plan if plan.repeats is not None else replace(plan, repeats=_REPEATS)
    tried: dict[int, float] = {}
    n = min(max(sum(plan.sizes.values()), 1), _MOST_RECORDS)
    promised = plan.method_at(epsilon).guarantee
    for _ in range(_STEPS):
        for size in (n, min(2 * n, _MOST_RECORDS)) if not tried else (n,):
            if on_run is not None:
                on_run(f"{size:,} records")
            tried.setdefault(size, _half_width(plan, size, term, epsilon))
        answer = solve_for_size(tried, half_width)
        wanted = 4 * max(tried) if answer is None else answer
        n = min(max(wanted, 10 * len(plan.sizes)), _MOST_RECORDS)
        if answer is not None and min(max(n / size, size / n) for size in tried) <= _NEAR:
            break
        if n in tried:
            break
    return RecordsNeeded(
        term=term,
        epsilon=promised.epsilon if promised.is_private else math.inf,
        half_width=half_width,
        n_records=answer,
        is_beyond=answer is not None and answer > _NEAR * max(tried),
        tried=tuple(TriedSize(n_records=size, half_width=tried[size]) for size in sorted(tried)),
        rehearsed_on=plan.source,
    )


def solve_for_size(tried: Mapping[int, float], half_width: float) -> int | None:
    """The n at which half_width^2 = a / n + b / n^2, with a, b >= 0 that fit what was tried; None if nothing was found.

    Sizes count the more, the more alike their interval is to the one that is wanted: where a direction is hardly known
    widths fall faster than that. Each equation is divided by what was found, so that all count by their relative error.
    """
    found = {n: width for n, width in tried.items() if math.isfinite(width) and width > 0}
    if not found:
        return None
    sizes, widths = np.array(list(found), dtype=float), np.array(list(found.values()))
    counted = 1 / (1 + np.log(widths / half_width) ** 2)
    unit = sizes.max()
    design = np.column_stack([unit / sizes, (unit / sizes) ** 2]) * (counted / widths**2)[:, None]
    a, b = map(float, nnls(design, counted)[0])
    v = half_width**2  # v x^2 - a x - b = 0, x = n / unit
    return math.ceil(float(unit) * (a + math.sqrt(a**2 + 4 * v * b)) / (2 * v))


def _half_width(plan: Rehearsal, n_records: int, term: str, epsilon: float | None) -> float:
    """The median half-width with so many records, in the proportion of the parties' sizes."""
    total = sum(plan.sizes.values())
    sizes = {name: max(round(n_records * size / total), 1) for name, size in plan.sizes.items()}
    runs = []
    for parties, test in replace(plan, sizes=sizes).populations():
        run = rehearse(plan.method_at(epsilon), parties, test)
        _check_term(run.model, term)
        runs.append(run.measured)
    return _median_of(runs, term)


def _median_of(runs: Sequence[MeasuredRun], term: str) -> float:
    return median_widths(runs).get(term, math.inf)


def _check_term(model: Method, term: str) -> None:
    labels = [row.label for row in model.facts_.coefficients]
    if not model.facts_.has_standard_errors:
        raise SettingError(f"{model.name} gives no intervals; choose private-newton, or pooled")
    if term not in labels:
        raise SettingError(f"coefficient {term!r} is unknown; the model has {', '.join(labels)}")
