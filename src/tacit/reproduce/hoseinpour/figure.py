"""Figures 4 to 11: loss by iteration, accuracy by the noise, and decision boundaries.

Boundaries are drawn without the patients' points: those are records.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.methods.cohort import Promise
from tacit.methods.descent.method import paper_noise
from tacit.reproduce.hoseinpour.table_1 import TABLE_1
from tacit.reproduce.hoseinpour.task import DATA, PRINTED, ROUNDS, cut, descent, log_loss
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

Floats = npt.NDArray[np.float64]

_LONG = 100  # rounds of a loss curve
_QUIET = 100.0  # epsilon of figure 4: almost no noise
_SETTING = (
    "400 private records at three parties, two features; as printed, epsilon is that of one round. The document "
    "does not say how many rounds it takes."
)
_STAND_IN = "The document names neither data nor features: two of the heart data, and a made-up pair."
_LOSS_NOTE = (
    "A loss curve of private records is a query of its own, which nobody has accounted for; this is a simulation."
)


# --- figures 4 to 6: loss by iteration -------------------------------------------------------------------------------


def loss_curve(*, data: str, epsilon: float, warm: bool, runs: int, seed: int) -> dict[str, Any]:
    """The loss of private records by iteration in the first run, as printed; how often it rises and where it ends."""
    curves, accuracy = [], []
    for k in range(runs):
        mine = cut(data, seed + k)
        model = descent(epsilon, _LONG, mine.like if warm else None).fit(mine.parties)
        curves.append([log_loss(theta, mine.private) for theta in model.iterates_])
        accuracy.append(100 * model.score(mine.private))
    return {
        "curve": curves[0],
        "rises": float(np.mean([_rises(curve) for curve in curves])),
        "first_rises": [float(np.mean([_rises(curve[: n + 1]) for curve in curves])) for n in (20,)],
        "mean_loss": float(np.mean(curves)),
        "last_loss": float(np.mean([curve[-1] for curve in curves])),
        "accuracy": float(np.mean(accuracy)),
    }


def _rises(curve: Sequence[float]) -> int:
    return sum(b > a + 1e-9 for a, b in pairwise(curve))


def _loss_cells(settings: Sequence[tuple[float, bool]], quick: bool) -> list[ResultCell]:
    return [
        ResultCell(
            f"{data}-{epsilon:g}-{'warm' if warm else 'cold'}",
            loss_curve,
            {"data": data, "epsilon": epsilon, "warm": warm, "runs": 2 if quick else 10},
            "hoseinpour-figure-4" if epsilon == _QUIET else "",
        )
        for data in DATA
        for epsilon, warm in settings
    ]


def _loss_summary(name: str, printed: float, values: Values) -> Summary:
    rows = []
    for key, found in values.items():
        data, epsilon, start = key.rsplit("-", 2)
        after = [f"{found['curve'][n]:.4f}" for n in (0, 5, 20, _LONG)]
        rises = f"{found['first_rises'][0]:.1f} / {found['rises']:.1f}"
        rows.append([data, epsilon, start, *after, rises, f"{found['accuracy']:.1f}", f"{printed:.2f}"])
    header = ["data", "epsilon", "start", "loss at 0", "at 5", "at 20", f"at {_LONG}", "rises in 20 / in all"]
    table = NumberTable([*header, "training accuracy, %", "printed"], rows)
    return Summary([table], {f"{name}.svg": partial(_loss_picture, name, values)})


def _loss_picture(name: str, values: Values) -> str:
    panels = []
    for data in DATA:
        mine = {key: found for key, found in values.items() if key.startswith(data)}
        lines = {
            f"epsilon {key.removeprefix(f'{data}-').replace('-', ', ')}": PlotLine(range(_LONG + 1), found["curve"])
            for key, found in mine.items()
        }
        panels.append(Panel(lines=lines, x="iteration", y="mean log-loss", title=f"{data}, as printed"))
    return panels_plot(panels, figure_id=name, title="Loss of the private records by iteration")


def _smooth(values: Values) -> Finding:
    parts = [found["rises"] == 0 for found in values.values()]
    early = "; ".join(f"{key} {found['first_rises'][0]:.1f}" for key, found in values.items())
    told = "; ".join(f"{key} {found['rises']:.1f}" for key, found in values.items())
    why = f"rises in {_LONG} iterations: {told}; in the first 20: {early}"
    return judged(
        [*parts, *(found["first_rises"][0] == 0 for found in values.values())],
        f"{why}. Later ones are the clipped step turning about near the minimum",
    )


def _rippled(values: Values) -> Finding:
    """Whether the loss goes up and down, and more so than at epsilon 100."""
    parts, told = [], []
    for data in DATA:
        noisy, quiet = (values[f"{data}-{epsilon}-cold"]["rises"] for epsilon in (1, 100))
        parts += [noisy > 10, noisy > 1.2 * quiet]
        told.append(f"{data} {noisy:.1f}, and {quiet:.1f} at epsilon 100")
    why = f"rises in {_LONG} iterations: {'; '.join(told)}"
    why += " (more than 10, and a fifth more than with almost no noise, is asked)"
    return judged(parts, f"{why}. The clipped step turns about near the minimum, without any noise, too")


def _lower_loss(values: Values) -> Finding:
    parts, told = [], []
    for data in DATA:
        warm, cold = values[f"{data}-1-warm"], values[f"{data}-1-cold"]
        parts += [warm["curve"][0] < 0.95 * cold["curve"][0], warm["last_loss"] < 0.95 * cold["last_loss"]]
        told.append(
            f"{data}: {warm['curve'][0]:.3f} against {cold['curve'][0]:.3f} at first, {warm['last_loss']:.3f} "
            f"against {cold['last_loss']:.3f} after {_LONG} iterations"
        )
    return judged(parts, f"with and without pre-training, {'; '.join(told)} (a twentieth less is asked)")


def _accuracy(key: str, printed: float, values: Values) -> Finding:
    """Whether the training accuracy is within 5 points of the printed one."""
    mine = {name: found["accuracy"] for name, found in values.items() if name.endswith(key)}
    told = "; ".join(f"{name} {value:.1f}" for name, value in mine.items())
    return judged(
        [abs(value - printed) <= 5 for value in mine.values()], f"{told}; printed {printed:.2f} (within 5 is asked)"
    )


def _loss_figure(number: int, title: str, epsilon: float, printed: float, *claims: Claim, warm: bool = False) -> Any:
    name = f"hoseinpour-figure-{number}"
    settings = [(epsilon, False), (epsilon, True)] if warm else [(epsilon, False)]
    if number == 5:
        settings.append((_QUIET, False))  # what it looks like without noise
    start = "warm" if warm else "cold"
    claim = Claim(f"The training accuracy is {printed:.2f} %.", partial(_accuracy, f"{epsilon:g}-{start}", printed))
    return Reproduction(
        name=name,
        title=title,
        setting=f"{_SETTING} {_LOSS_NOTE} One run is drawn, counts are means of 10.",
        data=("heart_disease",),
        stand_in=_STAND_IN,
        numbers=(Number("epsilon", epsilon), Number("training accuracy, %", printed)),
        cells=partial(_loss_cells, settings),
        summarise=partial(_loss_summary, name, printed),
        claims=(*claims, claim),
    )


FIGURE_4 = _loss_figure(
    4,
    "Loss by iteration with almost no privacy (epsilon 100)",
    _QUIET,
    67.50,
    Claim("The loss is strictly descending and smooth.", _smooth),
)
FIGURE_5 = _loss_figure(
    5,
    "Loss by iteration at epsilon 1",
    1.0,
    60.25,
    Claim("The loss is rippled due to the noise.", _rippled),
)
FIGURE_6 = _loss_figure(
    6,
    "Loss by iteration at epsilon 1 from a public start",
    1.0,
    70.50,
    Claim("Pre-training reduces the level of the loss significantly.", _lower_loss),
    warm=True,
)


# --- figure 7: accuracy by the noise ---------------------------------------------------------------------------------


def _sigma(epsilon: float) -> float:
    return paper_noise(1.0, 400, Promise(method="NoisyDescent", epsilon=epsilon, calibration="paper").settled(400))


def _noise_cells(quick: bool) -> list[ResultCell]:
    """Those of table 1 that are as printed."""
    return [replace(cell, shared_with=TABLE_1.name) for cell in TABLE_1.cells(quick) if cell.settings["rounds"]]


def _noise_summary(values: Values) -> Summary:
    rows = []
    for epsilon in values["heart-5"]:
        mine = [f"{values[f'{data}-{rounds}'][epsilon]['warm'][0]:.1f}" for data in DATA for rounds in ROUNDS]
        rows.append([f"{_sigma(float(epsilon)):.3g}", epsilon, f"{PRINTED[float(epsilon)][1]:.2f}", *mine])
    header = [
        "sigma",
        "epsilon",
        "printed (table 1)",
        *(f"{data}, {rounds} rounds" for data in DATA for rounds in ROUNDS),
    ]
    table = NumberTable(header, rows, "Training accuracy from a public start in per cent, as printed (NOT PRIVATE):")
    return Summary([table], {"hoseinpour-figure-7.svg": partial(_noise_picture, values)})


def _noise_picture(values: Values) -> str:
    epsilons = [float(epsilon) for epsilon in values["heart-5"]]
    sigmas = [_sigma(epsilon) for epsilon in epsilons]
    lines = {"printed": PlotLine(sigmas, [PRINTED[e][1] for e in epsilons], document=True)}
    for key, found in values.items():
        lines[f"{key} rounds"] = PlotLine(sigmas, [point["warm"][0] for point in found.values()])
    panel = Panel(lines=lines, x="sigma", y="training accuracy, %", log_x=True)
    return panels_plot([panel], figure_id="hoseinpour-figure-7", title="Accuracy from a public start against the noise")


def _falls(values: Values) -> Finding:
    parts, told = [], []
    for key, found in values.items():
        line = [point["warm"][0] for point in found.values()]
        parts.append(line[-1] - line[0] > 5)
        told.append(f"{key} rounds {line[-1]:.1f} to {line[0]:.1f}")
    return judged(
        parts, f"from the least to the most noise: {'; '.join(told)} (printed 78.00 to 29.75; 5 points are asked)"
    )


FIGURE_7 = Reproduction(
    name="hoseinpour-figure-7",
    title="Accuracy from a public start against the scale of the noise",
    setting=f"{_SETTING} sigma is that of the printed formula with C = 1, n = 400, delta = 1e-6. The runs: table 1.",
    data=("heart_disease",),
    stand_in=_STAND_IN,
    numbers=(Number("the curve's values (those of table 1 are taken)", None, "not given"),),
    cells=_noise_cells,
    summarise=_noise_summary,
    claims=(Claim("Accuracy falls as the noise grows.", _falls),),
)


# --- figures 8 to 11: decision boundaries ----------------------------------------------------------------------------


def boundaries(*, data: str, epsilon: float | None, rounds: int, runs: int, seed: int) -> dict[str, Any]:
    """Models from a public start as printed, their training accuracy, and how far noise turns their boundaries."""
    accuracy, models, angles = [], [], []
    for k in range(runs):
        mine = cut(data, seed + k)
        fits = [
            descent(value, rounds, mine.like).fit(mine.parties)
            for value in (math.inf, math.inf if epsilon is None else epsilon)
        ]
        plain, noisy = (np.append(fit.coef_[0], fit.intercept_) for fit in fits)
        models.append(noisy.tolist())
        accuracy.append(100 * fits[1].score(mine.private))
        cosine = plain[:2] @ noisy[:2] / (np.linalg.norm(plain[:2]) * np.linalg.norm(noisy[:2]))
        angles.append(math.degrees(math.acos(min(1.0, max(-1.0, float(cosine))))))
    return {"accuracy": float(np.mean(accuracy)), "angle": float(np.mean(angles)), "models": models[:5]}


def _boundary_cells(epsilon: float | None, quick: bool) -> list[ResultCell]:
    return [
        ResultCell(
            f"{data}-{rounds}",
            boundaries,
            {"data": data, "epsilon": epsilon, "rounds": rounds, "runs": 2 if quick else 6},
        )
        for data in DATA
        for rounds in ROUNDS
    ]


def _boundary_summary(name: str, printed: float, values: Values) -> Summary:
    rows = [
        [*key.rsplit("-", 1), f"{found['accuracy']:.1f}", f"{printed:.2f}", f"{found['angle']:.1f}"]
        for key, found in values.items()
    ]
    header = ["data", "rounds", "training accuracy, %", "printed", "degrees from the boundary without noise"]
    return Summary([NumberTable(header, rows)], {f"{name}.svg": partial(_boundary_picture, name, values)})


def _boundary_picture(name: str, values: Values) -> str:
    panels = []
    for data in DATA:
        lines = {}
        for k, model in enumerate(values[f"{data}-20"]["models"]):
            x, y = _segment(np.array(model))
            lines[f"run {k + 1}"] = PlotLine(x, y)
        panels.append(Panel(lines=lines, x="first feature", y="second feature", title=f"{data}, 20 rounds"))
    return panels_plot(panels, figure_id=name, title="Decision boundaries of five runs, features scaled to [-1, 1]")


def _segment(model: Floats) -> tuple[list[float], list[float]]:
    """The ends of the boundary inside the square [-1, 1]^2, where the data are; of one that misses it, a piece."""
    direction = np.array([-model[1], model[0]]) / np.linalg.norm(model[:2])
    foot = -model[2] * model[:2] / (model[:2] @ model[:2])
    with np.errstate(divide="ignore"):
        sides = np.sort((np.array([[-1.0], [1.0]]) - foot) / direction, axis=0)
    first, last = float(sides[0].max()), float(sides[1].min())
    ends = [foot + t * direction for t in ((first, last) if first < last else (-1.0, 1.0))]
    return [float(end[0]) for end in ends], [float(end[1]) for end in ends]


def _turned(values: Values) -> Finding:
    parts = [found["angle"] > 5 for found in values.values()]
    told = "; ".join(f"{key} rounds {found['angle']:.1f}" for key, found in values.items())
    return judged(parts, f"degrees by which the noise turns the boundary: {told} (5 are asked)")


def _still(values: Values) -> Finding:
    parts = [found["angle"] < 0.1 for found in values.values()]
    return judged(
        parts, f"two runs without noise differ by {max(f['angle'] for f in values.values()):.2g} degrees at most"
    )


def _boundary_accuracy(printed: float, values: Values) -> Finding:
    parts = [abs(found["accuracy"] - printed) <= 5 for found in values.values()]
    told = "; ".join(f"{key} rounds {found['accuracy']:.1f}" for key, found in values.items())
    return judged(parts, f"training accuracy: {told}; printed {printed:.2f} (within 5 is asked)")


def _boundary_figure(number: int, epsilon: float | None, printed: float) -> Reproduction:
    name = f"hoseinpour-figure-{number}"
    privacy = "no privacy constraint" if epsilon is None else f"epsilon {epsilon:g}"
    impact = (
        Claim("Without noise there is one boundary.", _still)
        if epsilon is None
        else Claim("The noise moves the decision boundary.", _turned)
    )
    return Reproduction(
        name=name,
        title=f"Decision boundary from a public start, {privacy}",
        setting=f"{_SETTING} Mean of 6 cuts; the picture has five of them. No patient's point is drawn.",
        data=("heart_disease",),
        stand_in=_STAND_IN,
        numbers=(Number("training accuracy, %", printed),),
        cells=partial(_boundary_cells, epsilon),
        summarise=partial(_boundary_summary, name, printed),
        claims=(
            Claim(f"The training accuracy is {printed:.2f} %.", partial(_boundary_accuracy, printed)),
            impact,
        ),
    )


FIGURE_8 = _boundary_figure(8, None, 78.00)
FIGURE_9 = _boundary_figure(9, 1.0, 70.50)
FIGURE_10 = _boundary_figure(10, 0.5, 60.00)
FIGURE_11 = _boundary_figure(11, 0.1, 41.25)
