"""A cell of accuracy.json: one method on one data set at one epsilon under one relation, and which there are."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tacit.methods import METHODS
from tacit.privacy.guarantee import Relation

RELATIONS: tuple[Relation, ...] = ("replace-one", "add-remove")
OURS = (
    "private-newton",
    "functional-mechanism",
    "noisy-descent",
    "objective-perturbation",
    "averaging",
    "ternary-descent",
)
# What a peer promises. diffprivlib perturbs the objective as Chaudhuri et al. 2011, where neighbours differ in one
# value of a record and have the same number of records. Opacus counts a record added or removed.
PEER_RELATIONS: dict[str, tuple[Relation, ...]] = {
    "learned-frequencies": RELATIONS,
    "marginal-statistics": RELATIONS,
    "tight-objective": RELATIONS,
    "double-noise-newton": RELATIONS,
    "tuned-dp-sgd": RELATIONS,
    "diffprivlib": ("replace-one",),
    "opacus": ("add-remove",),
}
ORDER = (*OURS, *PEER_RELATIONS)

HIGHER = ("accuracy", "auc", "average_precision")
MEASURES = (*HIGHER, "log_loss")  # of log-loss, less is better
REPEATS = 20
SLOW, SLOW_REPEATS = 10.0, 5  # CPU seconds of a first run, beyond which a cell has so many runs


@dataclass(frozen=True)
class Cell:
    """What was or will be measured."""

    set: str
    method: str
    epsilon: float
    relation: Relation

    @classmethod
    def of(cls, kept: Mapping[str, Any]) -> Cell:
        """The cell of an entry of accuracy.json; older ones name no relation and have the one that their method had."""
        before: Relation = "add-remove" if kept["method"] == "opacus" else "replace-one"
        return cls(kept["set"], kept["method"], kept["epsilon"], kept.get("relation", before))

    def entry(self, runs: list[dict[str, float]]) -> dict[str, Any]:
        """What accuracy.json keeps of it."""
        return asdict(self) | {"runs": [{name: float(f"{figure:.7g}") for name, figure in run.items()} for run in runs]}


def relations_of(method: str) -> tuple[Relation, ...]:
    """Under which relations a method keeps a promise: both if that is a setting of it, else its own one."""
    if method in PEER_RELATIONS:
        return PEER_RELATIONS[method]
    found = METHODS[method]
    return RELATIONS if "relation" in found._get_param_names() else (found.relation,)


def settings_of(cell: Cell) -> dict[str, object]:
    """The settings of one of our methods besides epsilon and delta: defaults, and a linear model."""
    chosen: dict[str, object] = {}
    if "relation" in METHODS[cell.method]._get_param_names():
        chosen["relation"] = cell.relation
    if cell.method == "ternary-descent":
        chosen["hidden_layer_sizes"] = ()
    return chosen


def runs_wanted(first: Mapping[str, float], repeats: int) -> int:
    """How many runs a cell has, by the time of its first; older runs kept the time on the clock alone."""
    slow = first.get("cpu_seconds", first["seconds"]) > SLOW
    return min(repeats, SLOW_REPEATS) if slow else repeats


def is_done(kept: Mapping[str, Any], repeats: int) -> bool:
    """Whether an entry has as many runs as are wanted, each with every measure, of the method as it now is."""
    if kept.get("outdated"):
        return False
    runs = kept["runs"]
    whole = all(measure in run for run in runs for measure in MEASURES)
    return whole and bool(runs) and len(runs) >= runs_wanted(runs[0], repeats)


def mean_and_error(kept: Mapping[str, Any], measure: str) -> tuple[float, float]:
    """The mean of a measure over the runs of an entry and its standard error, which one run alone does not have: 0."""
    figures = [run[measure] for run in kept["runs"]]
    error = float(np.std(figures, ddof=1) / math.sqrt(len(figures))) if len(figures) > 1 else 0.0
    return float(np.mean(figures)), error
