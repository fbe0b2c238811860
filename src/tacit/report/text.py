"""A report as plain text of fixed width."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Mapping

from tacit.report.facts import RunFacts
from tacit.report.grid import (
    NOT_PRIVATE,
    Grid,
    coefficient_grid,
    guarantee_text,
    headings_grid,
    metrics_grid,
    spending_grid,
    traffic_grid,
)
from tacit.report.metrics import Metrics
from tacit.report.number import count, number
from tacit.report.plain import printable
from tacit.report.study_grid import columns_grid, fit_grid, identity_grid, joint_grid, reference_note, settings_grid
from tacit.report.verdict import verdict_lines

WIDTH = 88
GAP = "  "


def summary_text(facts: RunFacts, metrics: Mapping[str, Metrics] | None = None) -> str:
    """What the model is worth, where that is known, and the regression table in the manner of statsmodels.

    Guarantees:
        The same facts give the same text, with no colour codes and no control characters but line ends. If the run is
        not private, the text says NOT PRIVATE and why before anything else.
    """
    grid = coefficient_grid(facts)
    body = grid_lines(grid, WIDTH)
    width = max([WIDTH, *map(display_width, body)])
    lines = banner_lines(facts, width)
    for verdict in verdict_lines(facts, metrics or {}):
        lines += textwrap.wrap(verdict, width)
    lines += [f"Logistic regression: {facts.method}".center(width).rstrip(), "=" * width]
    lines += _header_lines(facts, width)
    lines.append("=" * width)
    if grid.rows:
        lines += [body[0], "-" * width, *body[1:]]
    else:
        lines.append("This model has no table of coefficients.")
    lines.append("=" * width)
    lines += textwrap.wrap(f"{grid.note} {reference_note(facts)}".strip(), width)
    for notice in facts.notices:
        lines += textwrap.wrap(f"Note: {printable(notice)}", width, subsequent_indent="      ")
    return "\n".join(lines) + "\n"


def banner_lines(facts: RunFacts, width: int = WIDTH) -> list[str]:
    """NOT PRIVATE and every reason, or nothing."""
    if facts.is_private:
        return []
    reasons = "; ".join(printable(reason) for reason in facts.why_not_private)
    return textwrap.wrap(f"{NOT_PRIVATE}: {reasons}.", width)


def spending_text(facts: RunFacts) -> str:
    """What was spent, by whom."""
    return grid_text(spending_grid(facts))


def traffic_text(facts: RunFacts) -> str:
    """What travelled."""
    return grid_text(traffic_grid(facts))


def tests_text(facts: RunFacts) -> str:
    """How well the model fits, and whether each feature matters; empty if neither is known."""
    grids = [grid for grid in (fit_grid(facts), joint_grid(facts)) if grid is not None and grid.rows]
    return "\n".join(grid_text(grid) for grid in grids)


def study_text(facts: RunFacts) -> str:
    """Which study this is, and what its columns are."""
    grids = [grid for grid in (identity_grid(facts), columns_grid(facts)) if grid.rows]
    return "\n".join(words_text(grid) for grid in grids)


def words_text(grid: Grid, width: int = WIDTH) -> str:
    """A table of words: its last column but those before it is wrapped where it is long."""
    if len(grid.columns) != 2:
        return grid_text(grid)
    first = max(display_width(row[0]) for row in grid.rows)
    lines = [grid.title, "-" * width]
    for name, value in grid.rows:
        indent = name + " " * (first - display_width(name)) + GAP
        lines += textwrap.wrap(value, width, initial_indent=indent, subsequent_indent=" " * (first + len(GAP)))
    return "\n".join(lines) + "\n"


def metrics_text(metrics: Mapping[str, Metrics]) -> str:
    """How good the model is, one row per set of records."""
    return grid_text(metrics_grid(metrics))


def settings_text(facts: RunFacts) -> str:
    """The method's settings."""
    return grid_text(settings_grid(facts))


def who_saw_what_text(headings: Mapping[str, str], width: int = WIDTH) -> str:
    """The method's own headings, wrapped."""
    grid = headings_grid(headings)
    lines = [grid.title, "-" * width]
    for heading, _, answer in grid.rows:
        lines += textwrap.wrap(answer, width, initial_indent=f"{heading:<10}", subsequent_indent=" " * 10)
    return "\n".join(lines) + "\n"


def grid_text(grid: Grid) -> str:
    """A table with its title and its note."""
    body = grid_lines(grid)
    width = max(display_width(line) for line in [grid.title, *body])
    lines = [grid.title, "-" * width, *body]
    lines += textwrap.wrap(grid.note, max(width, WIDTH))
    return "\n".join(lines) + "\n"


def grid_lines(grid: Grid, least_width: int = 0) -> list[str]:
    """The header and the rows, in columns that line up; the first column takes what is wanting in width."""
    table = [grid.columns, *grid.rows]
    widths = [max(display_width(row[k]) for row in table) for k in range(len(grid.columns))]
    widths[0] += max(0, least_width - sum(widths) - len(GAP) * (len(widths) - 1))
    lines = []
    for row in table:
        cells = []
        for name, cell, width in zip(grid.columns, row, widths, strict=True):
            pad = " " * (width - display_width(cell))
            cells.append(cell + pad if name in grid.left else pad + cell)
        lines.append(GAP.join(cells).rstrip())
    return lines


def display_width(text: str) -> int:
    """The columns that a terminal gives the text: two for a wide character, none for a combining one."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _header_lines(facts: RunFacts, width: int) -> list[str]:
    fit = facts.fit
    method = facts.method_name if facts.calibration is None else f"{facts.method_name} ({facts.calibration})"
    left = {
        "Method": method,
        "Target": f"{printable(facts.target)} ({', '.join(printable(name) for name in facts.classes)})",
        "Log-likelihood": number(fit.log_likelihood, 6) if fit is not None else "-",
    }
    right = {
        f"{facts.counted.capitalize()}s": count(facts.n_records),
        "Parties": count(len(facts.parties)),
        "AIC": number(fit.aic, 6) if fit is not None else "-",
    }
    lines = []
    for (name, value), (other, amount) in zip(left.items(), right.items(), strict=True):
        start, end = f"{name + ':':<16}{value}", f"{other}: {amount:>12}"
        gap = width - display_width(start) - len(end)
        lines += [start + " " * gap + end] if gap > 1 else [start, end.rjust(width)]
    lines += textwrap.wrap(
        f"{'Modelled:':<16}{printable(facts.modelled)}", width, subsequent_indent=" " * 16, drop_whitespace=True
    )
    return [*lines, f"{'Guarantee:':<16}{guarantee_text(facts)}"]
