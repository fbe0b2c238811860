"""Pictures of reproductions: one legend, plain numbers on logarithmic axes, and names that do not touch."""

from __future__ import annotations

import re

from tacit.reproduce.plot import Panel, PlotLine, panels_plot


def texts(svg: str) -> list[str]:
    """What is written in a picture."""
    return re.findall(r">([^<>]+)</text>", svg)


def test_a_logarithmic_axis_has_plain_numbers() -> None:
    line = PlotLine([0.005, 0.01, 0.02, 0.4], [1e-6, 1e-3, 1.0, 2e4])
    shown = texts(
        panels_plot([Panel(lines={"a": line}, x="x", y="y", log_x=True, log_y=True)], figure_id="f", title="t")
    )
    assert not [text for text in shown if "$" in text]
    assert {"0.005", "0.4", "1", "0.01", "10,000"} <= set(shown)


def test_a_narrow_range_has_more_than_powers_of_ten() -> None:
    line = PlotLine([1, 2, 3], [0.4, 1.0, 6.0])
    shown = texts(panels_plot([Panel(lines={"a": line}, x="x", y="y", log_y=True)], figure_id="f", title="t"))
    assert {"0.5", "1", "2", "5"} <= set(shown)


def test_places_that_are_close_have_one_name() -> None:
    line = PlotLine([0.01, 5, 5.1, 150], [1, 2, 3, 4])
    shown = texts(panels_plot([Panel(lines={"a": line}, x="x", y="y", log_x=True)], figure_id="f", title="t"))
    assert "5" in shown
    assert "5.1" not in shown


def test_one_legend_names_the_lines_of_all_panels() -> None:
    curve = PlotLine([1, 2], [3, 4])
    panels = [
        Panel(lines={"ours": curve, "printed": PlotLine([1, 2], [3, 5], document=True)}, x="x", y="y"),
        Panel(lines={"ours": curve, "other": curve}, marks={"even": 3.5}, x="x", y="y"),
    ]
    shown = texts(panels_plot(panels, figure_id="f", title="t"))
    assert [shown.count(name) for name in ("ours", "printed", "other", "even")] == [1, 1, 1, 1]


def test_places_may_have_names() -> None:
    panel = Panel(lines={"a": PlotLine([0, 1], [1, 2])}, x="data set", y="y", names=["Wine", "Loans"])
    assert {"Wine", "Loans"} <= set(texts(panels_plot([panel], figure_id="f", title="t")))
