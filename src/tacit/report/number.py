"""How a number is written: four significant digits, thousands separators, bytes in KiB."""

from __future__ import annotations

import math

UNKNOWN = "-"


def number(value: float | None, digits: int = 4) -> str:
    """`value` with so many significant digits: 1234.5 is 1,234; 0.00012345 is 0.0001234; 1e-9 is 1e-09."""
    if value is None or math.isnan(value):
        return UNKNOWN
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if value == 0:
        return "0"
    rounded = float(f"{value:.{digits - 1}e}")
    magnitude = math.floor(math.log10(abs(rounded)))
    if not -5 <= magnitude < 9:
        return f"{rounded:.{digits - 1}e}"
    return f"{rounded:,.{max(digits - 1 - magnitude, 0)}f}"


def short(value: float | None) -> str:
    """A setting of somebody's choice (an epsilon, a delta): as few digits as say it, never a rounded 0."""
    if value is None or math.isnan(value):
        return UNKNOWN
    return f"{value:.6g}"


def count(value: int | None) -> str:
    """A whole number with thousands separators."""
    return UNKNOWN if value is None else f"{value:,}"


def percent(value: float | None) -> str:
    """A share as a percentage with one decimal."""
    return UNKNOWN if value is None or math.isnan(value) else f"{100 * value:.1f} %"


def p_value(value: float | None) -> str:
    """A p-value with three decimals; below a thousandth, `<0.001`."""
    if value is None or math.isnan(value):
        return UNKNOWN
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def widening(factor: float | None) -> str:
    """An interval's width as a multiple of another's; a dash if there is none, words if it is unbounded."""
    if factor is None:
        return UNKNOWN
    return f"x {factor:.1f}" if math.isfinite(factor) else "not identified"


def byte_count(value: int) -> str:
    """A number of bytes in the unit that leaves the fewest digits."""
    if abs(value) < 1024:
        return f"{value:,} B"
    size = float(value)
    for unit in ("KiB", "MiB", "GiB"):
        size /= 1024
        if abs(size) < 1024:
            return f"{size:.1f} {unit}"
    return f"{size / 1024:,.1f} TiB"


def duration(seconds: float) -> str:
    """A time span in the unit that people would say it in."""
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.1f} h"


def plural(value: int, one: str, many: str | None = None) -> str:
    """`1 party`, `3 parties`, with thousands separators."""
    return f"{value:,} {one if value == 1 else many or one + 's'}"
