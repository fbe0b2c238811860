"""The ledger as a picture: steps over time under the owner's limit, drawn in the page's own colours."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

WIDTH, HEIGHT = 720, 240
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 16, 26, 34


@dataclass(frozen=True, kw_only=True)
class Tick:
    """A mark on an axis, and its words."""

    at: float
    label: str


@dataclass(frozen=True, kw_only=True)
class SpendingChart:
    """What the template draws, in the units of its view box.

    Attributes:
        line: the steps, as the points of a polyline.
        area: the same, closed at the bottom.
        limit: how high the owner's limit lies; None if there is none.
        words: the picture for somebody who does not see it.
    """

    line: str
    area: str
    limit: float | None
    heights: tuple[Tick, ...]
    moments: tuple[Tick, ...]
    words: str
    width: int = WIDTH
    height: int = HEIGHT
    left: int = _LEFT
    right: int = WIDTH - _RIGHT
    bottom: int = HEIGHT - _BOTTOM


def spending_chart(points: list[tuple[float, float]], limit: float | None, now: float) -> SpendingChart:
    """The chart of what was spent after each of some moments, in order."""
    first = points[0][0] if points else now - 86400
    span = max(now - first, 60.0)
    start, end = first - 0.04 * span, now
    top = 1.12 * max([limit or 0.0, *(epsilon for _, epsilon in points), 0.1])

    def x(moment: float) -> float:
        return _LEFT + (moment - start) / (end - start) * (WIDTH - _LEFT - _RIGHT)

    def y(epsilon: float) -> float:
        return HEIGHT - _BOTTOM - epsilon / top * (HEIGHT - _TOP - _BOTTOM)

    corners, height = [(x(start), y(0.0))], 0.0
    for moment, epsilon in points:
        corners += [(x(moment), y(height)), (x(moment), y(epsilon))]
        height = epsilon
    corners.append((x(end), y(height)))
    line = " ".join(f"{a:.1f},{b:.1f}" for a, b in corners)
    base = f"{x(end):.1f},{y(0):.1f} {x(start):.1f},{y(0):.1f}"
    spent = f"{height:.3g} is spent" + (f" of {limit:g}." if limit is not None else ".")
    return SpendingChart(
        line=line,
        area=f"{line} {base}",
        limit=None if limit is None else y(limit),
        heights=tuple(Tick(at=y(value), label=f"{value:g}") for value in _steps(top)),
        moments=tuple(Tick(at=x(moment), label=_moment(moment, span)) for moment in _moments(start, end)),
        words=f"It has risen {len(points)} {'time' if len(points) == 1 else 'times'}. {spent}" if points else spent,
    )


def _steps(top: float) -> list[float]:
    """Round numbers from 0 to `top`, about four."""
    rough = top / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    return [round(step * k, 10) for k in range(int(top / step) + 1)]


def _moments(start: float, end: float) -> list[float]:
    return [start + (end - start) * part for part in (0.1, 0.37, 0.64, 0.91)]


def _moment(moment: float, span: float) -> str:
    form = "%H:%M:%S" if span < 600 else "%H:%M" if span <= 86400 else "%d %b" if span < 200 * 86400 else "%b %Y"
    return time.strftime(form, time.gmtime(moment))
