"""How likely each look is to end a study, before anything is spent: its looks are rehearsed as they would take place.

Each rehearsal draws the records of the last look once. Look k has the first n_k of them, shared out among the parties
in proportion to their sizes, and its own fresh noise: so the looks of a rehearsal depend on each other as in a study.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tacit.data.table import Table
from tacit.errors import StudyError
from tacit.federation.federation import Federation
from tacit.rand import Rng
from tacit.studies.looks import Look, Reached, look_methods, looks_agreed, planned_looks, reached, suffices
from tacit.studies.rehearsal import Rehearsal

_REPEATS = 40
_MOST_REHEARSED = 400_000  # records that are fitted in all rehearsals of the last look together


@dataclass(frozen=True, kw_only=True)
class LookForecast:
    """What is to be expected of one look.

    Attributes:
        look: which.
        ends: how likely the study is to stop there.
        suffices: how likely its intervals are to be short enough, whether or not an earlier look was.
        half_widths: the median half-width of each goal's coefficient; infinite if it is hardly ever identified.
    """

    look: Look
    ends: float
    suffices: float
    half_widths: dict[str, float]


@dataclass(frozen=True, kw_only=True)
class LooksForecast:
    """What is to be expected of a study's looks.

    Attributes:
        looks: one after another.
        reached: how likely the study is to know what it wants when it stops.
        repeats: how often it was rehearsed.
        rehearsed_on: on what.
    """

    looks: tuple[LookForecast, ...]
    reached: float
    repeats: int
    rehearsed_on: str


def forecast_looks(plan: Rehearsal, on_run: Callable[[int, int], None] | None = None) -> LooksForecast:
    """Rehearse the study's looks.

    Args:
        plan: the study, with the parties' sizes; the looks' records are shared out in their proportion.
        on_run: told before each rehearsal: how many are done, of how many.

    Raises:
        StudyError: if the study plans no looks, or has no goal to reach.
    """
    study, looks = plan.study, planned_looks(plan.study)
    if study.stop is None or not study.stop.wanted:
        raise StudyError(
            f"study {study.name!r} has no goal to reach; name a coefficient in its [stop] table, or an auc"
        )
    plan = _of_last_look(plan, looks[-1].n_records)
    found: list[list[tuple[Reached, ...]]] = []
    for repeat, (parties, _) in enumerate(plan.populations()):
        if on_run is not None:
            on_run(repeat, plan.n_repeats)
        tables = {name: parties.guard(name).table for name in parties.names}
        found.append([_rehearsed(plan, tables, look, repeat) for look in looks])
    ended = [next((k for k, one in enumerate(each) if suffices(one)), len(looks)) for each in found]
    return LooksForecast(
        looks=tuple(
            LookForecast(
                look=look,
                ends=float(np.mean([k == look.number - 1 or (look.is_last and k == len(looks)) for k in ended])),
                suffices=float(np.mean([suffices(each[look.number - 1]) for each in found])),
                half_widths=_medians([each[look.number - 1] for each in found]),
            )
            for look in looks
        ),
        reached=float(np.mean([k < len(looks) for k in ended])),
        repeats=len(found),
        rehearsed_on=plan.source,
    )


def _of_last_look(plan: Rehearsal, n_records: int) -> Rehearsal:
    """The rehearsal with as many records as the last look has."""
    total = sum(plan.sizes.values())
    sizes = {name: math.ceil(size * n_records / total) for name, size in plan.sizes.items()}
    few = min(_REPEATS, max(10, _MOST_REHEARSED // n_records))
    return replace(plan, sizes=sizes, repeats=few if plan.repeats is None else plan.repeats)


def _rehearsed(plan: Rehearsal, tables: dict[str, Table], look: Look, repeat: int) -> tuple[Reached, ...]:
    """How precise one look of one rehearsal is."""
    study, total = plan.study, sum(table.n_records for table in tables.values())
    assert study.stop is not None
    part = {
        name: table.take(np.arange(math.ceil(table.n_records * look.n_records / total)), name)
        for name, table in tables.items()
    }
    rng = Rng.seeded(repeat).child(f"look {look.number}")
    method = look_methods(study).methods[look.number - 1]
    parties = Federation.from_tables(part, study=study.name, rng=rng)
    parties.look = look.number
    parties.looks = looks_agreed(study)
    return reached(study.stop, method.fit(parties))


def _medians(found: list[tuple[Reached, ...]]) -> dict[str, float]:
    widths: dict[str, list[float]] = {}
    for one in (one for each in found for one in each):
        widths.setdefault(one.coefficient, []).append(math.inf if one.half_width is None else one.half_width)
    return {name: sorted(each)[len(each) // 2] for name, each in widths.items()}
