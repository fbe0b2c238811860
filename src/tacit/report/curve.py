"""Pictures of how something changes with epsilon, and of what an audit found."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tacit.report.number import short
from tacit.report.plots import BLUE, DASHES, GREY, SERIES, VERMILION, picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDENING = "interval width (the exact fit's is 1)"


@dataclass(frozen=True)
class CurvePoint:
    """A mean over repeated runs at one epsilon, and its standard error."""

    epsilon: float
    mean: float
    standard_error: float


def curve_plot(
    curves: Mapping[str, Sequence[CurvePoint]], *, quantity: str, lines: Mapping[str, float], figure_id: str
) -> str:
    """`quantity` against epsilon on a logarithmic axis, a curve for each method, with bars of one standard error.

    `lines` are marks to compare with, such as what the plain fit reaches. `WIDENING` has a logarithmic axis too.
    """

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for k, (label, value) in enumerate(lines.items()):
            axes.axhline(value, color=GREY, linestyle=DASHES[(k + 1) % len(DASHES)], linewidth=1.2, label=label)
        for k, (label, points) in enumerate(curves.items()):
            axes.errorbar(
                [point.epsilon for point in points],
                [point.mean for point in points],
                yerr=[point.standard_error for point in points],
                color=SERIES[k % len(SERIES)],
                linestyle=DASHES[(k // len(SERIES)) % len(DASHES)],
                marker="osD^vP"[k % 6],
                markersize=4,
                linewidth=1.6,
                capsize=2,
                label=label,
            )
        axes.set_xscale("log")
        marks = sorted({point.epsilon for points in curves.values() for point in points})
        axes.set_xticks(marks, [short(mark) for mark in marks])
        axes.set_xticks([], minor=True)
        axes.set(xlabel="epsilon (smaller is stricter)", ylabel=quantity)
        if quantity == WIDENING:
            _factor_axis(axes)
        axes.legend(frameon=False, fontsize=8, loc="best")

    words = "; ".join(
        f"{label}: " + ", ".join(f"{short(p.mean)} at {short(p.epsilon)}" for p in points)
        for label, points in curves.items()
    )
    title = f"{quantity[0].upper()}{quantity[1:]} against epsilon"
    return picture(draw, figure_id=figure_id, title=title, description=f"{words}.", height=4.4)


def _factor_axis(axes: Axes) -> None:
    """A logarithmic axis of factors with readable marks: 1, 2, 5, 10 and so on, fewer if the range is wide."""
    axes.set_yscale("log", nonpositive="clip")
    low, high = axes.get_ylim()
    low, high = min(max(low, 0.1), 0.9), max(high, 2.0)
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    digits = (1, 2, 5) if len(decades) <= 4 else (1,)
    marks = [digit * 10.0**k for k in decades for digit in digits if low <= digit * 10.0**k <= high]
    axes.set_yticks(marks, [f"{mark:g}" for mark in marks])
    axes.set_yticks([], minor=True)
    axes.set_ylim(low, high)


def audit_plot(bars: Sequence[tuple[str, float, float]], *, figure_id: str) -> str:
    """For each (label, lower bound, claim): the bound as a bar, the claim as a mark, which a bar beyond it refutes."""
    most = max([bound for _, bound, _ in bars] + [claim for _, _, claim in bars if math.isfinite(claim)])

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for height, (_, bound, claim) in enumerate(bars):
            axes.barh(height, bound, color=VERMILION if bound > claim else BLUE, height=0.55)
            axes.plot([claim, claim], [height - 0.4, height + 0.4], color="black", linewidth=2)
            axes.text(max(bound, claim) + 0.02 * most, height, f"{bound:.2f}", va="center", fontsize=9)
        axes.set_yticks(range(len(bars)), [label for label, _, _ in bars])
        axes.set(ylim=(len(bars) - 0.4, -0.6), xlim=(0, 1.2 * most))
        axes.set_xlabel("lower bound on epsilon, with confidence 99.9 % (the mark is what is claimed)")

    words = "; ".join(f"{label}: at least {bound:.2f}, claimed {claim:g}" for label, bound, claim in bars)
    height = 1.0 + 0.32 * max(len(bars), 2)
    return picture(draw, figure_id=figure_id, title="What the audit found", description=f"{words}.", height=height)
