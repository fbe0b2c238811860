"""A forecast as a person reads it: tables, words and pictures."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.cli.console import out

if TYPE_CHECKING:
    from tacit.report.curve import CurvePoint
    from tacit.studies.forecast import Forecast, Outlook
    from tacit.studies.power import RecordsNeeded

_RANGE_WORDS = (
    " Nobody knows in public how columns go together, so there are two guesses. In the first they have nothing to do "
    "with each other, and numbers of which no typical value is given spread over a sixth of their bounds. In "
    "brackets they go together, and those numbers keep to a thirtieth. Public records tell better."
)
_MOST_TERMS = 40  # coefficients shown; all are in forecast.json


def show(outlook: Outlook) -> None:
    """The forecasts: how good the model would be, how wide its intervals, and what a run takes."""
    from tacit.report.verdict import forecast_words

    _show_quality(outlook)
    if any(found.widths for found in outlook.forecasts):
        _show_widths(outlook)
    _show_cost(outlook)
    for found in outlook.forecasts:
        words = forecast_words(
            found.epsilon,
            useful=found.is_useful,
            accuracy_gain=found.accuracy_gain.mean,
            log_loss_gain=found.log_loss_gain.mean,
        )
        if found.not_identified:
            words += f" On average {found.not_identified:.1f} coefficients are not identified."
        out.print(words, soft_wrap=True)


def _show_quality(outlook: Outlook) -> None:
    from rich.table import Table as Grid

    exact = outlook.exact
    area = "" if exact.auc is None else f", AUC {exact.auc.mean:.3f}"
    grid = Grid(
        title=f"Forecast of {outlook.forecasts[0].method}",
        caption=f"Rehearsed on {outlook.rehearsed_on}. The exact fit of them reaches accuracy "
        f"{outlook.exact_accuracy:.3f}{area}, log-loss {exact.log_loss.mean:.3f}; the class frequencies alone "
        f"{outlook.majority_rate:.3f}, AUC 0.5, log-loss {outlook.base_log_loss:.3f}."
        + (" In brackets: if columns go together and numbers are narrow." if outlook.alternative else ""),
    )
    for column in ("epsilon", "accuracy", "lost to noise", "AUC", "log-loss", "cal. error"):
        grid.add_column(column, justify="right")
    others = outlook.alternative or (None,) * len(outlook.forecasts)
    for found, other in zip(outlook.forecasts, others, strict=True):
        grid.add_row(
            _epsilon(found),
            _with_error(found.accuracy),
            f"{found.loss_of_accuracy:.3f}",
            _area(found) if other is None else f"{_area(found)} ({_area(other)})",
            f"{found.log_loss.mean:.3f}",
            f"{found.calibration_error.mean:.3f}",
        )
    out.print(grid)


def _show_widths(outlook: Outlook) -> None:
    from rich.table import Table as Grid

    from tacit.report.number import number
    from tacit.report.plain import printable

    exact = outlook.exact_widths
    grid = Grid(
        title="Expected half-width of each coefficient's 95 % interval",
        caption="In original units; the median over rehearsals. It rests on how far the rehearsed columns spread."
        + (_RANGE_WORDS if outlook.alternative else "")
        + (f" The first {_MOST_TERMS} of {len(exact)}; --out writes all." if len(exact) > _MOST_TERMS else ""),
    )
    grid.add_column("term", no_wrap=True)
    for found in outlook.forecasts:
        grid.add_column(
            f"epsilon {_epsilon(found)}" if math.isfinite(found.epsilon) else _epsilon(found), justify="right"
        )
    grid.add_column("exact fit", justify="right")
    told, other = (
        [{width.term: width.half_width for width in found.widths} for found in each]
        for each in (outlook.forecasts, outlook.alternative)
    )
    for term in list(exact)[:_MOST_TERMS]:
        cells = [_width(widths.get(term)) for widths in told]
        if other:
            cells = [f"{cell} ({_width(widths.get(term))})" for cell, widths in zip(cells, other, strict=True)]
        grid.add_row(printable(term), *cells, number(exact[term], 3))
    out.print(grid)


def _show_cost(outlook: Outlook) -> None:
    from rich.table import Table as Grid

    from tacit.report.number import byte_count, duration

    grid = Grid(title="What a run takes")
    for column in ("epsilon", "rounds", "bytes", "time"):
        grid.add_column(column, justify="right")
    for found in outlook.forecasts:
        grid.add_row(_epsilon(found), str(found.rounds), byte_count(found.n_bytes), duration(found.seconds))
    out.print(grid)


def needed_words(needed: RecordsNeeded) -> str:
    """The number of records that an interval needs, and what that rests on."""
    from tacit.report.number import number, plural
    from tacit.report.plain import printable

    where = f" at epsilon {needed.epsilon:g}" if math.isfinite(needed.epsilon) else ""
    tried = ", ".join(f"{_width(size.half_width)} with {size.n_records:,}" for size in needed.tried)
    aim = f"a half-width of {number(needed.half_width, 3)} for {printable(needed.term)}{where}"
    if needed.n_records is None:
        return f"No number of records that was tried identifies {printable(needed.term)}{where}: {tried}."
    beyond = " That is beyond what was rehearsed, by the law alone." if needed.is_beyond else ""
    return (
        f"For {aim} all parties together need about {plural(needed.n_records, 'record')}.{beyond} "
        f"A forecast, not a promise: rehearsed half-widths are {tried}, on {needed.rehearsed_on}."
    )


def write_outlook(outlook: Outlook, directory: Path, term: str | None = None) -> None:
    """The numbers as JSON, and accuracy, AUC and interval widths against epsilon as pictures."""
    from tacit.report.plain import plain
    from tacit.storage import write_json, write_whole
    from tacit.studies.forecast_picture import outlook_pictures

    write_json(directory / "forecast.json", plain(outlook))
    for name, picture in outlook_pictures(outlook, term).items():
        write_whole(directory / f"{name}.svg", picture)


def _epsilon(found: Forecast) -> str:
    return f"{found.epsilon:g}" if math.isfinite(found.epsilon) else "NOT PRIVATE"


def _area(found: Forecast) -> str:
    return "-" if found.auc is None else f"{found.auc.mean:.3f}"


def _with_error(point: CurvePoint) -> str:
    return f"{point.mean:.3f} +- {point.standard_error:.3f}"


def _width(half_width: float | None) -> str:
    from tacit.report.number import number

    if half_width is None:
        return "-"
    return number(half_width, 3) if math.isfinite(half_width) else "not identified"
