"""A study's looks as `tacit plan` shows them: what each costs, and how likely it is to end the study."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tacit.cli.console import err, out

if TYPE_CHECKING:
    from tacit.studies.look_forecast import LooksForecast
    from tacit.studies.rehearsal import Rehearsal
    from tacit.studies.study import Study


def rehearse_looks(rehearsal: Rehearsal) -> LooksForecast | None:
    """The forecast, with a word on how far it is; None if the study's own method has no looks, or they have no goal."""
    from tacit.studies.look_forecast import forecast_looks

    if rehearsal.method is not None or rehearsal.study.stop is None or not rehearsal.study.stop.wanted:
        return None
    with err.status("rehearsing looks ...") as status:
        return forecast_looks(rehearsal, lambda k, n: status.update(f"rehearsing looks, {k} of {n}"))


def show_looks(study: Study, forecast: LooksForecast | None) -> None:
    """The planned looks if there are some, with what is to be expected of them where that was rehearsed."""
    from rich.table import Table as Grid

    from tacit.studies.looks import planned_looks

    if study.stop is None:
        return
    grid = Grid(title="Planned looks")
    for column in ("look", "records", "epsilon", "delta"):
        grid.add_column(column, justify="right")
    found = {} if forecast is None else {one.look.number: one for one in forecast.looks}
    goals = () if forecast is None else study.stop.wanted
    if forecast is not None:
        grid.add_column("ends the study", justify="right")
    for goal in goals:
        grid.add_column(f"{goal.coefficient}, wanted {goal.half_width:g}", justify="right")
    for look in planned_looks(study):
        cells = [str(look.number), f"{look.n_records:,}", f"{look.epsilon:.3g}", f"{look.delta:.2g}"]
        if (one := found.get(look.number)) is not None:
            cells.append(f"{one.ends:.0%}")
            cells += [_width(one.half_widths[goal.coefficient]) for goal in goals]
        grid.add_row(*cells)
    out.print(grid)
    if forecast is not None:
        out.print(
            f"What is wanted is known at the end in {forecast.reached:.0%} of {forecast.repeats} rehearsals, on "
            f"{forecast.rehearsed_on}. Widths are medians.",
            soft_wrap=True,
        )


def _width(half_width: float) -> str:
    return f"{half_width:.3g}" if math.isfinite(half_width) else "not identified"
