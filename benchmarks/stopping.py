"""Does the interval at the look at which a study stops cover the truth in 95 of 100 studies?

    python benchmarks/stopping.py [--studies 1000] [--cells noisy ...] [--rule shared plain] [--formula] [--out docs]

A study is simulated whole: records are drawn from a logistic model, parties of 500 records join one after another, each
look is a run of private Newton with real guards and ledgers, and the study stops by its own rule (`fit_in_looks`).
Records are drawn from seeds; the noise is not, so a repeated run differs. The rule "plain" leaves the intervals of each
look at 95 %, in the manner of Chow and Robbins, for comparison. Figures are written to stopping.json in the output
folder, cell by cell; what is there already is kept, unless --again says so. OMP_NUM_THREADS=1 is fastest.

`--formula` simulates the rule alone, without records: estimates are normal, with a sampling error that looks share and
noise that is fresh at each, and widths are wrong by some 10 %. It tells the worst coverage over all widths wanted.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata

from tacit import Ledger, Table
from tacit.methods import Method
from tacit.storage import write_whole
from tacit.studies import looking
from tacit.studies.looking import LooksResult, fit_in_looks
from tacit.studies.looks import LookMethods, look_methods
from tacit.studies.stop import AUC
from tacit.studies.study import Study

PARTY_RECORDS = 500
TRUTH = {"(intercept)": -0.8, "age": 0.03, "treated": 0.7, "dose": -0.5}
STUDY = """
[study]
name = "stopping"
purpose = "How often do intervals hold at the look at which a study stops?"

[target]
name = "ill"
classes = ["no", "yes"]

[[feature]]
name = "age"
kind = "numeric"
low = 20
high = 90

[[feature]]
name = "treated"
kind = "binary"

[[feature]]
name = "dose"
kind = "numeric"
low = -2
high = 2

[method]
name = "private-newton"

[privacy]
epsilon = {epsilon}

[federation]
quorum = 2

[stop]
looks = {looks}
{goal}
"""
POPULATION_SEED, POPULATION_RECORDS = 10**6, 300_000


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A study to simulate: what it asks, and with which width of a coefficient, or of the AUC, it is content."""

    epsilon: float
    looks: tuple[int, ...]
    coefficient: str
    half_width: float

    @property
    def study(self) -> Study:
        """The study itself."""
        goal = f'coefficient = "{self.coefficient}"\nhalf_width = {self.half_width}'
        if self.coefficient == AUC:
            goal = f"auc = {self.half_width}"
        return Study.parse(STUDY.format(epsilon=self.epsilon, looks=list(self.looks), goal=goal))


# Widths are such that each look ends some of the studies.
CELLS = {
    "noisy": Cell(epsilon=1.0, looks=(1000, 2000, 4000), coefficient="treated", half_width=0.61),
    "sampled": Cell(epsilon=8.0, looks=(1000, 2000, 4000), coefficient="treated", half_width=0.265),
    "five looks": Cell(epsilon=3.0, looks=(500, 1000, 1500, 2000, 3000), coefficient="dose", half_width=0.4),
    "auc, noisy": Cell(epsilon=1.0, looks=(4000, 8000, 16000), coefficient=AUC, half_width=0.08),
    "auc, sampled": Cell(epsilon=8.0, looks=(2000, 4000, 8000), coefficient=AUC, half_width=0.041),
}


def tables_of(study: Study, n_records: int, seed: int) -> dict[str, Table]:
    """Records of parties that join in this order."""
    chance = np.random.default_rng(seed)
    made = {}
    for k in range(-(-n_records // PARTY_RECORDS)):
        age = np.clip(chance.normal(55, 14, PARTY_RECORDS), 20, 90)
        treated = chance.integers(0, 2, PARTY_RECORDS).astype(float)
        dose = chance.uniform(-2, 2, PARTY_RECORDS)
        odds = TRUTH["(intercept)"] + TRUTH["age"] * age + TRUTH["treated"] * treated + TRUTH["dose"] * dose - 1.0
        y = (chance.uniform(size=PARTY_RECORDS) < 1 / (1 + np.exp(-odds))).astype(np.int64)
        made[f"party {k}"] = Table.from_arrays(np.column_stack([age, treated, dose]), y, study.schema)
    return made


def plain_methods(study: Study) -> LookMethods:
    """The methods of the looks with intervals that are left at 95 %."""
    methods = look_methods(study)
    for method in methods.methods:
        method.error_share = 1.0
    return methods


@cache
def population() -> Table:
    """Records on which the AUC of a model is taken for the true one."""
    study = next(iter(CELLS.values())).study
    return Table.concatenate(list(tables_of(study, POPULATION_RECORDS, POPULATION_SEED).values()))


def true_auc(model: Method) -> float:
    """The AUC of a model on the population, to about 0.001."""
    X, y = population().arrays()
    ranks, n_yes = rankdata(X @ model.coef_[0]), int(y.sum())
    return float(ranks[y == 1].sum() - n_yes * (n_yes + 1) / 2) / (n_yes * (len(y) - n_yes))


def covered(result: LooksResult) -> dict[str, bool | None]:
    """Whether each coefficient's interval, and that of the AUC, holds the truth; None where it is not identified."""
    truth = TRUTH | {"(intercept)": TRUTH["(intercept)"] - 1.0}
    held = {
        row.label: None if row.low is None or row.high is None else row.low <= truth[row.label] <= row.high
        for row in result.model.facts_.coefficients
    }
    for one in result.outcomes[-1].reached:
        if one.coefficient == AUC:
            low, high = one.low, one.high
            held[AUC] = None if low is None or high is None else low <= true_auc(result.model) <= high
    return held


class Tally:
    """What became of the studies of a cell so far."""

    def __init__(self, cell: Cell, rule: str) -> None:
        self.cell, self.rule, self.n_studies, self.n_right = cell, rule, 0, 0
        self.stopped: Counter[int] = Counter()
        self.widths: dict[str, list[float]] = {}
        names = [*TRUTH, *([AUC] if cell.coefficient == AUC else [])]
        self.held: dict[str, list[bool | None]] = {name: [] for name in names}
        self._began = time.process_time()

    def add(self, result: LooksResult, ledger: Ledger) -> None:
        """Count one study."""
        self.n_studies += 1
        self.stopped[len(result.outcomes)] += 1
        self.n_right += ledgers_agree(result, ledger)
        for outcome in result.outcomes:
            width = outcome.reached[0].half_width
            self.widths.setdefault(str(outcome.look.number), []).append(np.inf if width is None else width)
        for name, holds in covered(result).items():
            self.held[name].append(holds)

    def as_dict(self) -> dict[str, object]:
        """Where they stopped, and how often each coefficient's interval held."""
        known = {name: [holds for holds in each if holds is not None] for name, each in self.held.items()}
        return {
            "epsilon": self.cell.epsilon,
            "looks": list(self.cell.looks),
            "goal": [self.cell.coefficient, self.cell.half_width],
            "rule": self.rule,
            "studies": self.n_studies,
            "stopped_at": {str(look): self.stopped[look] for look in sorted(self.stopped)},
            "median_half_width": {k: round(float(np.median(each)), 4) for k, each in sorted(self.widths.items())},
            "covered": {name: round(float(np.mean(each)), 4) if each else None for name, each in known.items()},
            "missed": {name: int(sum(not holds for holds in each)) for name, each in known.items()},
            "not_identified": {name: len(self.held[name]) - len(known[name]) for name in self.held},
            "ledgers_equal_looks": self.n_right,
            "cpu_seconds_a_study": round((time.process_time() - self._began) / self.n_studies, 3),
        }


def measure(cell: Cell, n_studies: int, rule: str) -> Iterator[dict[str, object]]:
    """So many studies: what is known after every few of them."""
    study, tally = cell.study, Tally(cell, rule)
    looking.look_methods = look_methods if rule == "shared" else plain_methods  # type: ignore[attr-defined]
    for seed in range(n_studies):
        ledger = Ledger()
        tally.add(fit_in_looks(study, tables_of(study, cell.looks[-1], seed), ledger=ledger), ledger)
        ledger.close()
        if (seed + 1) % 25 == 0 or seed + 1 == n_studies:
            yield tally.as_dict()


def ledgers_agree(result: LooksResult, ledger: Ledger) -> bool:
    """Whether each party's ledger has one run for every look that it was in."""
    names = {name for outcome in result.outcomes for name in outcome.sizes}
    return all(
        ledger.database.execute("SELECT COUNT(*) FROM run WHERE party = ?", (name,)).fetchone()[0]
        == sum(name in outcome.sizes for outcome in result.outcomes)
        for name in names
    )


def by_formula(noise: float, rule: str, n_studies: int = 200_000) -> dict[str, object]:
    """The worst coverage over all widths that could be wanted; `noise` is its variance over sampling at look 1."""
    chance, looks = np.random.default_rng(7), np.array([1.0, 2.0, 4.0])
    steps = chance.normal(size=(n_studies, 3)) * np.sqrt(np.diff(looks, prepend=0.0))
    error = np.cumsum(steps, axis=1) / looks + chance.normal(size=(n_studies, 3)) * np.sqrt(noise) / looks
    spread = np.sqrt(1 / looks + noise / looks**2) * np.exp(0.1 * chance.normal(size=(n_studies, 3)))
    z = float(ndtri(1 - 0.025 / (3 if rule == "shared" else 1)))
    worst, at = 1.0, 0.0
    for wanted in np.geomspace(0.1, 20, 60):
        enough = z * spread <= wanted
        enough[:, -1] = True
        look = enough.argmax(axis=1)[:, None]
        held = np.abs(np.take_along_axis(error, look, 1)) <= z * np.take_along_axis(spread, look, 1)
        if held.mean() < worst:
            worst, at = float(held.mean()), float(wanted)
    return {
        "noise_over_sampling": noise,
        "rule": rule,
        "studies": n_studies,
        "worst_covered": round(worst, 4),
        "at": at,
    }


def main() -> None:
    """Measure the cells that are asked for and not known yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=1000)
    parser.add_argument("--cells", nargs="+", default=list(CELLS), choices=list(CELLS))
    parser.add_argument("--rule", nargs="+", default=["shared"], choices=["shared", "plain"])
    parser.add_argument("--again", action="store_true", help="measure what is known already, too")
    parser.add_argument("--formula", action="store_true", help="the rule alone, without records")
    parser.add_argument("--out", type=Path, default=Path("docs"))
    wish = parser.parse_args()
    path = wish.out / "stopping.json"
    found = json.loads(path.read_text()) if path.exists() else {}
    for rule in wish.rule if wish.formula else ():
        for noise in (0.0, 1.0, 100.0):
            found[f"formula, noise {noise:g}, {rule}"] = by_formula(noise, rule)
    for name in () if wish.formula else wish.cells:
        for rule in wish.rule:
            key = f"{name}, {rule}"
            if key in found and not wish.again:
                continue
            for found[key] in measure(CELLS[name], wish.studies, rule):  # what is broken off is not lost
                write_whole(path, json.dumps(found, indent=1) + "\n")
    write_whole(path, json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
