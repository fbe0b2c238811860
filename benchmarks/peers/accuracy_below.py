"""Two warnings on the accuracy page: who is below the class frequencies, and an order that labels did not make."""

from __future__ import annotations

import math
from typing import Any

from peers.accuracy_cell import HIGHER, RELATIONS, Cell, mean_and_error
from peers.accuracy_verdict import ROUNDING

JUDGED = ("accuracy", "log_loss")


def below_table(plain: dict[str, Any], cells: list[dict[str, Any]]) -> str:
    """One row for each method that falls below the class frequencies somewhere, or was not measured somewhere."""
    marks = _marks(plain)
    rows = []
    for relation in RELATIONS:
        here = [cell for cell in cells if Cell.of(cell).relation == relation]
        for method in dict.fromkeys(cell["method"] for cell in here):
            own = sorted((cell for cell in here if cell["method"] == method), key=lambda cell: cell["epsilon"])
            entries = [_entry(own, measure, marks.get(measure)) for measure in JUDGED]
            if any(entries):
                rows.append(f"| {relation} | {method} | " + " | ".join(entry or "nowhere" for entry in entries) + " |")
    if not rows:
        return "No method falls below the class frequencies by more than a standard error, in accuracy or log-loss."
    lead = "Worse than the class frequencies by more than a standard error, at these epsilons and by so much:\n"
    return "\n".join([lead, "| relation | method | accuracy | log-loss |", "|---|---|---|---|", *rows])


def _marks(plain: dict[str, Any]) -> dict[str, float]:
    """What the class frequencies reach; of older plain fits, the accuracy of the commonest class alone."""
    commonest = max(plain["positive"], 1 - plain["positive"])
    frequencies: dict[str, float] = plain.get("frequencies", {"accuracy": commonest})
    return frequencies


def _entry(cells: list[dict[str, Any]], measure: str, mark: float | None) -> str:
    measured = [cell for cell in cells if mark is not None and all(measure in run for run in cell["runs"])]
    found = []
    for cell in measured:
        mean, error = mean_and_error(cell, measure)
        loss = (mark or 0.0) - mean if measure in HIGHER else mean - (mark or 0.0)
        if loss > error + ROUNDING:
            found.append(f"{cell['epsilon']:g} ({loss:.2g})")
    if not measured:
        return "not measured"
    missing = [f"{cell['epsilon']:g}" for cell in cells if cell not in measured]
    return ", ".join(found) + ("; not measured at " + ", ".join(missing) if missing else "")


def shuffled_paragraph(kept: dict[str, Any], cells: list[dict[str, Any]]) -> str:
    """What a method reaches on shuffled training labels, beside what it reaches on the true ones."""
    true = next((cell for cell in cells if Cell.of(cell) == Cell.of(kept)), None)
    method, epsilon, runs = kept["method"], kept["epsilon"], len(kept["runs"])
    text = (
        f"With shuffled training labels (`--shuffled`, {runs} runs) {method} at epsilon {epsilon:g} has an area under "
        f"the curve of {_told(kept, 'auc')} and an average precision of {_told(kept, 'average_precision')}."
    )
    if true is None:
        return text + "\n"
    text += f" With the true labels it has {_told(true, 'auc')} and {_told(true, 'average_precision')}. "
    (auc, error), (shuffled, its_error) = mean_and_error(true, "auc"), mean_and_error(kept, "auc")
    share = (shuffled - 0.5) / (auc - 0.5) if auc > 0.5 else 0.0
    if auc - shuffled <= 2 * math.hypot(error, its_error):
        text += "The areas do not differ by two standard errors: this one holds no information on labels that shows."
    elif share < 0.5:
        return text + "So most of that area comes from labels.\n"
    else:
        text += f"Of what the area has above one half, {share:.0%} needs no labels; the rest is what they add."
    return text + (
        " The order comes from where rows lie, so that an area under the curve by itself says little of what was "
        "learned here. This set is judged by average precision, area under the curve and log-loss together.\n"
    )


def _told(cell: dict[str, Any], measure: str) -> str:
    mean, error = mean_and_error(cell, measure)
    return f"{mean:.3f} ({error:.3f})"
