"""The pictures of reproductions: lines over anything, with bars of one standard error and marks to compare with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tacit.report.number import short
from tacit.report.plots import DASHES, GREY, SERIES, picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class PlotLine:
    """One curve. `errors` are standard errors; `document` draws it dotted and black, as the document's own."""

    x: Sequence[float]
    y: Sequence[float]
    errors: Sequence[float] | None = None
    document: bool = False


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One pair of axes."""

    lines: Mapping[str, PlotLine]
    x: str
    y: str
    title: str = ""
    marks: Mapping[str, float] = field(default_factory=dict)  # horizontal lines
    log_x: bool = False
    log_y: bool = False


def panels_plot(panels: Sequence[Panel], *, figure_id: str, title: str) -> str:
    """The panels beside each other, at most three in a row."""
    columns = min(3, len(panels))
    n_rows = -(-len(panels) // columns)

    def draw(figure: Figure) -> None:
        axes = figure.subplots(n_rows, columns, squeeze=False)
        for one, panel in zip(axes.flat, panels, strict=False):
            _draw(one, panel, small=columns > 1)
        for one in axes.flat[len(panels) :]:
            one.set_visible(False)

    words = " ".join(
        f"{panel.title or panel.y}: "
        + "; ".join(f"{label} {_words(line)}" for label, line in panel.lines.items())
        + "."
        for panel in panels
    )
    height = (4.4 if columns == 1 else 3.6) * n_rows
    return picture(draw, figure_id=figure_id, title=title, description=words, height=height)


def _draw(axes: Axes, panel: Panel, *, small: bool) -> None:
    for k, (label, value) in enumerate(panel.marks.items()):
        axes.axhline(value, color=GREY, linestyle=DASHES[(k + 1) % len(DASHES)], linewidth=1.2, label=label)
    for k, (label, line) in enumerate(panel.lines.items()):
        axes.errorbar(
            list(line.x),
            list(line.y),
            yerr=None if line.errors is None else list(line.errors),
            color="black" if line.document else SERIES[k % len(SERIES)],
            linestyle=":" if line.document else DASHES[(k // len(SERIES)) % len(DASHES)],
            marker=("x" if line.document else "osD^vP"[k % 6]) if len(line.x) <= 30 else None,
            markersize=3.5,
            linewidth=1.4,
            capsize=2,
            label=label,
        )
    if panel.log_x:
        axes.set_xscale("log")
        marks = sorted({x for line in panel.lines.values() for x in line.x})
        if len(marks) <= 10:
            axes.set_xticks(marks, [short(mark) for mark in marks])
            axes.set_xticks([], minor=True)
    if panel.log_y:
        axes.set_yscale("log")
    axes.set(xlabel=panel.x, ylabel=panel.y)
    if panel.title:
        axes.set_title(panel.title, fontsize=9)
    if small:
        axes.tick_params(labelsize=7)
    axes.legend(frameon=False, fontsize=6.5 if small else 8, loc="best")


def _words(line: PlotLine) -> str:
    points = list(zip(line.x, line.y, strict=True))
    if len(points) > 12:
        points = points[:: -(-len(points) // 12)]
    return ", ".join(f"{short(y)} at {short(x)}" for x, y in points)
