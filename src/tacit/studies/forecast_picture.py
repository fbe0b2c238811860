"""A forecast's pictures: accuracy, AUC and the width of intervals against epsilon."""

from __future__ import annotations

from tacit.report.curve import WIDENING, curve_plot
from tacit.studies.forecast import Outlook


def outlook_pictures(outlook: Outlook, term: str | None = None) -> dict[str, str]:
    """Name -> `<svg>` element, of what there is to draw; with a `term`, also of the width of its interval."""
    method = outlook.forecasts[0].method
    marks = {"exact fit": outlook.exact_accuracy, "commonest class": outlook.majority_rate}
    wanted = [("forecast", "expected accuracy", {method: outlook.curve()}, marks)]
    if outlook.exact.auc is not None:
        marks = {"exact fit": outlook.exact.auc.mean, "guessing": 0.5}
        wanted.append(("auc", "expected AUC", {method: outlook.curve("auc")}, marks))
    widths = {"the median coefficient": outlook.curve("widening")}
    if term is not None:
        widths[term] = outlook.width_curve(term)
    wanted.append(("widths", WIDENING, widths, {"exact fit": 1.0}))
    pictures = {}
    for name, quantity, curves, lines in wanted:
        drawn = {label: points for label, points in curves.items() if points}
        if drawn:
            pictures[name] = curve_plot(drawn, quantity=quantity, lines=lines, figure_id=name)
    return pictures
