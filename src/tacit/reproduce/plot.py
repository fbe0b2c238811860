"""The pictures of reproductions: lines over anything, with bars of one standard error and marks to compare with.

One legend below all panels names every line. A name has one colour and one mark in all of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tacit.report.number import short
from tacit.report.plots import DASHES, GREY, SERIES, WIDTH, picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLUMNS = {1: 1, 2: 2, 4: 2}  # of so many panels; of others, three
_MOST_MARKERS = 30  # points of a line
_MOST_TICKS = 10  # places of a logarithmic axis that are marked one by one
_CHARACTER, _HANDLE = 0.07, 0.5  # inches of a legend's letter, and of the line before a name
_LEGEND_LINE = 0.2  # inches


@dataclass(frozen=True)
class PlotLine:
    """One curve. `errors` are standard errors; `document` draws it dotted and black, as the document's own.

    With `joined` false it is points alone.
    """

    x: Sequence[float]
    y: Sequence[float]
    errors: Sequence[float] | None = None
    document: bool = False
    joined: bool = True


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One pair of axes. With `names`, places 0, 1, 2 ... along x are called so."""

    lines: Mapping[str, PlotLine]
    x: str
    y: str
    title: str = ""
    marks: Mapping[str, float] = field(default_factory=dict)  # horizontal lines
    names: Sequence[str] = ()
    log_x: bool = False
    log_y: bool = False


def panels_plot(panels: Sequence[Panel], *, figure_id: str, title: str) -> str:
    """The panels beside each other, at most three in a row, over one legend."""
    columns = _COLUMNS.get(len(panels), 3)
    n_rows = -(-len(panels) // columns)
    marks = _union(panel.marks for panel in panels)
    lines = _union(panel.lines for panel in panels)
    labels = [*marks, *lines]
    widest = max(map(len, labels)) * _CHARACTER + _HANDLE
    legend_rows = -(-len(labels) // max(1, int(WIDTH / widest)))

    def draw(figure: Figure) -> None:
        axes = figure.subplots(n_rows, columns, squeeze=False)
        handles: dict[str, Any] = {}
        for one, panel in zip(axes.flat, panels, strict=False):
            _draw(one, panel, _styles(marks, lines), columns)
            handles |= {label: handle for handle, label in zip(*one.get_legend_handles_labels(), strict=True)}
        for one in axes.flat[len(panels) :]:
            one.set_visible(False)
        figure.legend(
            [handles[label] for label in labels],
            labels,
            loc="outside lower center",
            ncols=-(-len(labels) // legend_rows),
            frameon=False,
            fontsize=8,
        )

    words = " ".join(
        f"{panel.title or panel.y}: "
        + "; ".join(f"{label} {_words(line)}" for label, line in panel.lines.items())
        + "."
        for panel in panels
    )
    height = {1: 3.9, 2: 3.1, 3: 2.8}[columns] * n_rows + _LEGEND_LINE * legend_rows
    return picture(draw, figure_id=figure_id, title=title, description=words, height=height)


def _union(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Every name once, in the order in which the panels have them."""
    found: dict[str, Any] = {}
    for part in parts:
        found = {**part, **found} if set(found) <= set(part) else {**found, **part}
    return found


def _styles(marks: Mapping[str, float], lines: Mapping[str, PlotLine]) -> dict[str, dict[str, Any]]:
    """How each name is drawn: marks grey, the document's lines black and dotted, ours in colours."""
    found: dict[str, dict[str, Any]] = {}
    for k, label in enumerate(marks):
        found[label] = {"color": GREY, "linestyle": DASHES[(k + 1) % len(DASHES)], "linewidth": 1.2}
    for k, label in enumerate(label for label, line in lines.items() if line.document):
        found[label] = {"color": "black", "linestyle": (":", (0, (1, 4)))[k % 2], "marker": "x+"[k % 2]}
    for k, label in enumerate(label for label, line in lines.items() if not line.document):
        dashes = DASHES[(k // len(SERIES)) % len(DASHES)]
        found[label] = {"color": SERIES[k % len(SERIES)], "linestyle": dashes, "marker": "osD^vP"[k % 6]}
    return found


def _draw(axes: Axes, panel: Panel, styles: Mapping[str, Mapping[str, Any]], columns: int) -> None:
    for label, value in panel.marks.items():
        axes.axhline(value, label=label, **styles[label])
    for label, line in panel.lines.items():
        style = {"markersize": 3.5, "linewidth": 1.4, "capsize": 2, **styles[label]}
        if not line.joined:
            style["linestyle"] = "none"
        elif len(line.x) > _MOST_MARKERS:
            style["marker"] = None
        errors = None if line.errors is None else list(line.errors)
        axes.errorbar(list(line.x), list(line.y), yerr=errors, label=label, **style)
    if panel.log_x:
        _log_x(axes, sorted({x for line in panel.lines.values() for x in line.x}), columns)
    if panel.log_y:
        _log_y(axes)
    if panel.names:
        axes.set_xticks(range(len(panel.names)), panel.names, rotation=30, ha="right", rotation_mode="anchor")
    axes.set_xlabel(panel.x, fontsize=9)
    axes.set_ylabel(panel.y, fontsize=9)
    if panel.title:
        axes.set_title(panel.title, fontsize=9)
    axes.tick_params(labelsize=8 if columns < 3 else 7)


def _log_x(axes: Axes, places: Sequence[float], columns: int) -> None:
    """A logarithmic axis that is marked where the points are; a name that would touch the one before is left out."""
    axes.set_xscale("log")
    if not 2 <= len(places) <= _MOST_TICKS:
        return
    apart = 0.055 * columns * math.log(places[-1] / places[0])
    names, last = [], -math.inf
    for place in places:
        near = math.log(place) - last < apart
        names.append("" if near else _tick(place))
        last = last if near else math.log(place)
    axes.set_xticks(places, names)
    axes.set_xticks([], minor=True)


def _log_y(axes: Axes) -> None:
    """A logarithmic axis in plain numbers: powers of ten, and 2 and 5 times them where there are few."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_yscale("log")
    low, high = axes.get_ylim()
    subs = (1.0,) if high > 200 * low else (1.0, 2.0, 5.0)
    axes.yaxis.set_major_locator(LogLocator(subs=subs, numticks=8))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _tick(value)))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _tick(value: float) -> str:
    return f"{value:,.0f}" if 1000 <= value < 1e7 else f"{value:.3g}"


def _words(line: PlotLine) -> str:
    points = list(zip(line.x, line.y, strict=True))
    if len(points) > 12:
        points = points[:: -(-len(points) // 12)]
    return ", ".join(f"{short(y)} at {short(x)}" for x, y in points)
