"""Table 5.1, figures 5.2 to 5.5 as results. What is computed is in `regression`."""

from __future__ import annotations

import math
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
from tacit.reproduce.wang.regression import MOST_LOCAL, PRINTED, REAL, STARTS, secure_runs, start_paths

QUICK = ("Wine", "SimuX10")


def secure_run(*, data: str, quick: bool, seed: int) -> dict[str, Any]:
    """All methods on one data set; what results share is run once."""
    return secure_runs(data, quick)


def data_cells(quick: bool) -> list[ResultCell]:
    """One cell a data set."""
    return [ResultCell(name, secure_run, {"data": name, "quick": quick}) for name in (QUICK if quick else PRINTED)]


def _shown(value: float | None, digits: int = 1) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _ratio(cell: dict[str, Any], over: str, under: str) -> float | None:
    """How many times faster `under` is than `over`."""
    if over not in cell or under not in cell:
        return None
    return float(cell[over]["seconds"] / cell[under]["seconds"])


def _iterations(cell: dict[str, Any], kind: str) -> int | None:
    return None if kind not in cell else cell[kind]["iterations"]


# --- table 5.1 -------------------------------------------------------------------------------------------------------


def table_summary(values: Values) -> Summary:
    """Iterations and relative times, printed and ours."""
    lines, times = [], []
    for name, cell in values.items():
        newton, privlogit, t_newton, t_hessian, t_local = PRINTED[name]
        lines.append(
            [
                *(name, f"{cell['records']:,} x {cell['columns']}"),
                f"{newton} / {_iterations(cell, 'newton') or '-'}",
                f"{privlogit} / {_iterations(cell, 'hessian') or '-'}",
                f"{cell['accelerated']['asked']}",
                f"{cell['hessian']['error_at_stop']:.0e}",
                f"{cell['exact']['error']:.0e}",
            ]
        )
        ours = [cell[kind]["seconds"] / cell["accelerated"]["seconds"] if kind in cell else None for kind in KINDS]
        printed = [None if t is None or t_newton is None else t / t_newton for t in (t_newton, t_hessian, t_local)]
        times.append([name, *(_shown(t, 2) for t in printed), *(_shown(t, 2) for t in ours)])
    rounds = NumberTable(
        [
            *("data", "ours", "Newton, printed / ours", "PrivLogit, printed / ours", "accelerated"),
            *("error at the document's stop", "error of our fit"),
        ],
        lines,
        "Iterations until the likelihood changes by less than 1e-6; accelerated, points until an error of 1e-3. Errors "
        "are of the coefficients, relative to the plain pooled fit:",
    )
    seconds = NumberTable(
        [
            *("data", "printed: Newton", "Hessian", "Local"),
            *("ours: Newton", "Hessian, its steps", "Local, accelerated", "Hessian, accelerated"),
        ],
        times,
        "Time, printed relative to Newton, ours relative to PrivLogit-Hessian with accelerated steps in the same run:",
    )
    return Summary([rounds, seconds])


KINDS = ("newton", "hessian", "local", "accelerated")


def _more_iterations_less_time(values: Values) -> Finding:
    parts, told = [], []
    for name, cell in values.items():
        if "newton" not in cell:
            continue
        parts.append(cell["hessian"]["asked"] > cell["newton"]["asked"])
        parts.append(cell["hessian"]["seconds"] < cell["newton"]["seconds"])
        told.append(f"{name} {_ratio(cell, 'newton', 'hessian'):.1f}")
    why = f"how many times faster than Newton its own steps are on this engine: {', '.join(told)}"
    return judged(parts, f"{why}; it always takes more iterations")


def _local_is_fastest(values: Values) -> Finding:
    ratios = {name: _ratio(cell, "local", "accelerated") for name, cell in values.items()}
    known = {name: ratio for name, ratio in ratios.items() if ratio is not None}
    told = ", ".join(f"{name} {ratio:.1f}" for name, ratio in known.items())
    return judged(
        [ratio < 1 for ratio in known.values()],
        f"reversed on this engine: PrivLogit-Local takes so many times as long as PrivLogit-Hessian: {told}. A product "
        "on shares takes milliseconds here, and a party's products with an encrypted inverse take seconds",
    )


def _printed_iterations(values: Values) -> Finding:
    parts, told = [], []
    for name, cell in values.items():
        newton, privlogit = _iterations(cell, "newton"), _iterations(cell, "hessian")
        if newton is not None:
            parts.append(abs(newton - PRINTED[name][0]) <= 2)
        parts.append(privlogit is not None and abs(privlogit / PRINTED[name][1] - 1) <= 0.25)
        told.append(f"{name} {newton or '-'}/{privlogit}")
    why = f"{sum(parts)} of {len(parts)} are within 2 (Newton) or a quarter (PrivLogit); ours: {', '.join(told)}"
    return judged(parts, f"{why}. Coefficients of the simulated tables were chosen to match PrivLogit's")


TABLE_NUMBERS = (
    Number("all iterations, which stand beside ours, and all seconds, as ratios", None),
    Number("Loans, iterations of PrivLogit, in the text (the table says 17)", 18, "words"),
    Number("Loans, seconds of PrivLogit-Hessian, in the text (the table says 260)", 272, "words"),
)
SETTING = (
    "Five parties; l2 = 1; a center of three processes on this machine; what the center compiles is not counted. The "
    "simulated tables have 20,000 records (50,000 to 50 million in the document) and normal columns. Newton is "
    "undamped and has no run beyond 200 columns, PrivLogit-Local none beyond 60."
)
STAND_IN = (
    "Wine 6,497 x 12 as in the document; Loans 39,786 records (122,578 in the document), Insurance 9,822 (9,882) and "
    "News 39,644 (39,082), each with the columns that its public file has, in encoded form."
)

TABLE_5_1 = Reproduction(
    name="wang-table-5.1",
    title="Iterations and run-time of PrivLogit and Newton",
    setting=SETTING,
    data=tuple(REAL.values()),
    stand_in=STAND_IN,
    numbers=TABLE_NUMBERS,
    cells=data_cells,
    summarise=table_summary,
    claims=(
        Claim(
            "PrivLogit takes more iterations than Newton, and PrivLogit-Hessian less time.", _more_iterations_less_time
        ),
        Claim("PrivLogit-Local is the fastest.", _local_is_fastest),
        Claim("The printed numbers of iterations.", _printed_iterations),
    ),
)


# --- figure 5.2 ------------------------------------------------------------------------------------------------------


def coefficient_summary(values: Values) -> Summary:
    """How far PrivLogit's coefficients are from Newton's."""
    lines = []
    for name, cell in values.items():
        kinds = [f"{cell[kind]['error']:.1e}" if kind in cell else "-" for kind in ("newton", "exact", "local")]
        lines.append([name, *kinds, f"{cell['hessian']['error_at_stop']:.1e}"])
    header = ["data", "Newton", "PrivLogit, whole fit", "PrivLogit-Local to 1e-3", "its steps at its stop"]
    caption = "Distance of the coefficients from those of the plain pooled fit, relative to their length:"
    return Summary([NumberTable(header, lines, caption)], {"wang-figure-5.2.svg": partial(_draw_coefficients, values)})


def _draw_coefficients(values: Values) -> str:
    panels = []
    for name, cell in values.items():
        order = sorted(range(len(cell["truth"])), key=lambda k: cell["truth"][k])
        plain = [cell["truth"][k] for k in order]
        lines = {
            "equal": PlotLine([plain[0], plain[-1]], [plain[0], plain[-1]], document=True),
            "PrivLogit": PlotLine(plain, [cell["exact"]["theta"][k] for k in order]),
        }
        panels.append(Panel(lines=lines, x="Newton's coefficient", y="PrivLogit's", title=name))
    return panels_plot(panels, figure_id="wang-figure-5.2", title="Coefficients of PrivLogit and of Newton's method")


def _equal(values: Values) -> Finding:
    parts = [cell["exact"]["error"] <= 1e-8 for cell in values.values()]
    real = [f"{name} {values[name]['exact']['error']:.0e}" for name in REAL if name in values]
    worst = max(cell["exact"]["error"] for cell in values.values())
    return judged(parts, f"relative distance: {', '.join(real)}; {worst:.0e} at most over all data sets")


def _equal_at_stop(values: Values) -> Finding:
    errors = {name: cell["hessian"]["error_at_stop"] for name, cell in values.items()}
    worst = max(errors, key=lambda name: errors[name])
    why = f"the document's steps end up to {errors[worst]:.0e} from the optimum at the document's stop ({worst})"
    return judged([error <= 1e-3 for error in errors.values()], f"{why}: to the eye on a plot, not to many digits")


FIGURE_5_2 = Reproduction(
    name="wang-figure-5.2",
    title="Coefficients of PrivLogit and of Newton's method",
    setting=SETTING,
    data=tuple(REAL.values()),
    stand_in=STAND_IN,
    numbers=(Number("the coefficients", None, "not given"),),
    cells=data_cells,
    summarise=coefficient_summary,
    claims=(
        Claim("PrivLogit's coefficients are in perfect alignment with Newton's on all data sets.", _equal),
        Claim("They are so at the document's stop, a relative change of the likelihood below 1e-6.", _equal_at_stop),
    ),
)


# --- figure 5.3 ------------------------------------------------------------------------------------------------------


def convergence_summary(values: Values) -> Summary:
    """Iterations, and the likelihood's change by iteration."""
    lines = []
    for name, cell in values.items():
        ours = [f"{_iterations(cell, kind) or '-'}" for kind in ("newton", "hessian")]
        lines.append([name, *(str(n) for n in PRINTED[name][:2]), *ours, str(cell["accelerated"]["asked"])])
    header = ["data", "Newton, printed", "PrivLogit, printed", "Newton", "PrivLogit", "accelerated"]
    caption = "Iterations until the likelihood changes by less than 1e-6:"
    return Summary([NumberTable(header, lines, caption)], {"wang-figure-5.3.svg": partial(_draw_convergence, values)})


def _draw_convergence(values: Values) -> str:
    panels = []
    for title, mine in (("real", list(REAL)), ("simulated", [name for name in PRINTED if name not in REAL])):
        for kind, label in (("newton", "Newton"), ("hessian", "PrivLogit"), ("accelerated", "accelerated")):
            lines = {}
            for name in mine:
                if name in values and kind in values[name]:
                    changes = [max(change, 1e-12) for change in values[name][kind]["changes"]]
                    lines[name] = PlotLine(range(1, len(changes) + 1), changes)
            if lines:
                text = f"{title}, {label}"
                panels.append(Panel(lines=lines, x="iteration", y="change of the likelihood", title=text, log_y=True))
    return panels_plot(panels, figure_id="wang-figure-5.3", title="Relative change of the likelihood by iteration")


def _reasonable(values: Values) -> Finding:
    parts, told = [], []
    for name, cell in values.items():
        newton, privlogit = _iterations(cell, "newton"), _iterations(cell, "hessian")
        parts.append(privlogit is not None and privlogit <= 300 and (newton is None or newton <= 12))
        if newton is not None and privlogit is not None:
            parts.append(privlogit > newton)
        told.append(f"{name} {newton or '-'}/{privlogit}")
    return judged(parts, f"iterations of Newton / PrivLogit: {', '.join(told)}")


def _rates(values: Values) -> Finding:
    """Newton's change falls like its square, PrivLogit's by a factor."""
    parts, told = [], []
    for name, cell in values.items():
        changes = cell["hessian"]["changes"]
        factor = changes[-1] / changes[-2]
        parts.append(0.05 < factor < 1)
        if "newton" in cell:
            last = [change for change in cell["newton"]["changes"] if change > 1e-11][-2:]
            parts.append(last[1] <= last[0] ** 1.5)
        told.append(f"{name} {factor:.2f}")
    return judged(parts, f"the last factor of PrivLogit's changes: {', '.join(told)}; Newton's digits double")


FIGURE_5_3 = Reproduction(
    name="wang-figure-5.3",
    title="Convergence of PrivLogit and of Newton's method",
    setting=SETTING,
    data=tuple(REAL.values()),
    stand_in=STAND_IN,
    numbers=(Number("threshold", 1e-6), Number("the curves' values", None, "not given")),
    cells=data_cells,
    summarise=convergence_summary,
    claims=(
        Claim("Both converge within a reasonable number of iterations, PrivLogit in more.", _reasonable),
        Claim("Newton's rate is quadratic, PrivLogit's is linear.", _rates),
    ),
)


# --- figure 5.4 ------------------------------------------------------------------------------------------------------


def speed_summary(values: Values) -> Summary:
    """How many times faster than Newton."""
    lines = []
    for name, cell in values.items():
        _, _, newton, hessian, local = PRINTED[name]
        printed = [None if t is None or newton is None else newton / t for t in (hessian, local)]
        ours = [_ratio(cell, "newton", kind) for kind in ("hessian", "local", "accelerated")]
        lines.append([name, *(_shown(ratio) for ratio in (*printed, *ours))])
    header = [
        "data",
        "Hessian, printed",
        "Local, printed",
        "Hessian, its steps",
        "Local, accelerated",
        "Hessian, accelerated",
    ]
    caption = "How many times faster than Newton in the same run:"
    return Summary([NumberTable(header, lines, caption)], {"wang-figure-5.4.svg": partial(_draw_speed, values)})


def _draw_speed(values: Values) -> str:
    names = [name for name in values if "newton" in values[name]]
    lines = {}
    for kind, label in (("hessian", "Hessian, its steps"), ("local", "Local"), ("accelerated", "Hessian, accelerated")):
        points = [(k, _ratio(values[name], "newton", kind)) for k, name in enumerate(names)]
        known = [(k, ratio) for k, ratio in points if ratio is not None]
        lines[label] = PlotLine([k for k, _ in known], [ratio for _, ratio in known])
    for place, label in ((3, "Hessian, printed"), (4, "Local, printed")):
        known = [(k, PRINTED[n][2] / PRINTED[n][place]) for k, n in enumerate(names) if PRINTED[n][place]]  # type: ignore[operator]
        lines[label] = PlotLine([k for k, _ in known], [ratio for _, ratio in known], document=True)
    panel = Panel(
        lines=lines, x=f"data set: {', '.join(names)}", y="times faster than Newton", marks={"Newton": 1.0}, log_y=True
    )
    return panels_plot([panel], figure_id="wang-figure-5.4", title="Speed relative to Newton's method")


def _hessian_speed(values: Values) -> Finding:
    ratios = {name: _ratio(cell, "newton", "hessian") for name, cell in values.items() if "newton" in cell}
    fast = {name: _ratio(cell, "newton", "accelerated") for name, cell in values.items() if "newton" in cell}
    told = ", ".join(f"{name} {ratio:.1f}" for name, ratio in ratios.items() if ratio is not None)
    faster = ", ".join(f"{name} {ratio:.1f}" for name, ratio in fast.items() if ratio is not None)
    parts = [ratio is not None and ratio > 1 for ratio in ratios.values()]
    return judged(parts, f"its own steps are so many times faster than Newton: {told}; accelerated: {faster}")


def _local_speed(values: Values) -> Finding:
    ratios = {name: _ratio(cell, "newton", "local") for name, cell in values.items()}
    known = {name: ratio for name, ratio in ratios.items() if ratio is not None}
    parts = [ratio > 1 for ratio in known.values()]
    told = ", ".join(f"{name} {ratio:.2f}" for name, ratio in known.items())
    return judged(parts, f"times faster than Newton, up to {MOST_LOCAL} columns: {told}: reversed on this engine")


FIGURE_5_4 = Reproduction(
    name="wang-figure-5.4",
    title="Speed of PrivLogit relative to Newton's method",
    setting=SETTING,
    data=tuple(REAL.values()),
    stand_in=STAND_IN,
    numbers=(
        Number("least speed-up of PrivLogit-Hessian", 1.2, "words"),
        Number("largest speed-up of PrivLogit-Hessian", 2.2, "words"),
        Number("largest speed-up of PrivLogit-Local", 10.0, "words"),
    ),
    cells=data_cells,
    summarise=speed_summary,
    claims=(
        Claim("PrivLogit-Hessian is faster than Newton on every data set.", _hessian_speed),
        Claim("PrivLogit-Local is faster than Newton, up to ten times.", _local_speed),
    ),
)


# --- figure 5.5 ------------------------------------------------------------------------------------------------------


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
    much = math.prod(damped)
    fair = "; a damped Newton does not" if much else ""
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
