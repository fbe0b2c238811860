"""Figure 5.5 as a result: PrivLogit and Newton's method from bad starts, which are kept."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tacit.reproduce.plot import Panel, PlotLine, panels_plot
from tacit.reproduce.result import (
    Claim,
    Finding,
    Number,
    NumberTable,
    Reproduction,
    ResultCell,
    Summary,
    Values,
    judged,
)
from tacit.reproduce.wang.regression import STARTS, start_paths


def start_cells(quick: bool) -> list[ResultCell]:
    """One cell a start."""
    starts = (STARTS[0], STARTS[-1]) if quick else STARTS
    return [ResultCell(f"start-{start:g}", start_paths, {"start": start, "quick": quick}) for start in starts]


def _starts(values: Values) -> list[float]:
    return [start for start in STARTS if f"start-{start:g}" in values]


def start_summary(values: Values) -> Summary:
    """How each method fares from each start."""
    lines = []
    for start in _starts(values):
        for label, path in values[f"start-{start:g}"].items():
            distances = path["distances"]
            ends = [f"{distances[0]:.2f}", f"{max(distances):.3g}", f"{distances[-1]:.1e}"]
            lines.append([f"{start:g}", label, "yes" if path["converged"] else "no", str(len(distances) - 1), *ends])
    header = ["start", "method", "converged", "iterations", "distance at first", "largest", "at last"]
    caption = "Distance of the coefficients from the optimum; a start is kept, however bad it is:"
    return Summary([NumberTable(header, lines, caption)], {"wang-figure-5.5.svg": partial(_draw_starts, values)})


def _draw_starts(values: Values) -> str:
    panels = []
    for start in _starts(values):
        lines = {}
        for label, path in values[f"start-{start:g}"].items():
            distances = [min(max(distance, 1e-6), 1e6) for distance in path["distances"]]
            lines[label] = PlotLine(range(len(distances)), distances)
        panels.append(Panel(lines=lines, x="iteration", y="distance", title=f"all at {start:g}", log_y=True))
    return panels_plot(panels, figure_id="wang-figure-5.5", title="Distance from the optimum by iteration and start")


def _of_starts(values: Values, label: str, check: Callable[[dict[str, Any]], bool]) -> tuple[list[bool], str]:
    parts, told = [], []
    for start in _starts(values):
        path = values[f"start-{start:g}"][label]
        parts.append(check(path))
        told.append(f"{path['distances'][-1]:.1e} after {len(path['distances']) - 1} from {start:g}")
    return parts, f"{label}: {', '.join(told)}"


def _privlogit_converges(values: Values) -> Finding:
    parts, told = _of_starts(values, "PrivLogit", lambda path: path["converged"] == 1 and path["distances"][-1] < 0.01)
    return judged(parts, f"distances from the optimum: {told}")


def _newton_diverges(values: Values) -> Finding:
    """Whether undamped Newton ends further away than it began, and whether a damped one does not."""
    parts, told = _of_starts(values, "Newton", lambda path: path["distances"][-1] > path["distances"][0])
    damped, settled = _of_starts(values, "damped Newton", lambda path: path["distances"][-1] < 1e-3)
    fair = "; a damped Newton does not" if all(damped) else ""
    return judged(parts, f"{told}{fair} ({settled})")


FIGURE_5_5 = Reproduction(
    name="wang-figure-5.5",
    title="Convergence of PrivLogit and of Newton's method from bad starts",
    setting=(
        "SimuX50 with 20,000 records (a million in the document), l2 = 1, all coefficients at 0.8, 1, 1.5 or 2 at "
        "first. PrivLogit's steps are the document's; accelerated ones and a damped Newton are shown beside them."
    ),
    numbers=(Number("starts", 4, "words"), Number("the curves' values", None, "not given")),
    cells=start_cells,
    summarise=start_summary,
    claims=(
        Claim("PrivLogit converges from every start within a reasonable number of iterations.", _privlogit_converges),
        Claim("Newton diverges from these starts.", _newton_diverges),
    ),
)
