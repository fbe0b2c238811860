"""How often the joint test of a factor is wrong, and how often it finds a real effect, under privacy.

    python benchmarks/joint_test.py [--runs 300] [--cells 6000/1/0 ...]

A cell is a number of records, an epsilon and an effect.
A factor with four levels, an age and a binary column; three parties. Without an effect of the factor a test at the
level of 5 % may reject 5 % of the time. The column `noise ignored` does the same with the covariance of the exact
fit, as a test would that does not count the noise that was added for privacy.
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd
from scipy.stats import chi2

import tacit

LEVELS = ("none", "atypical", "typical", "angina")
SCHEMA = tacit.Schema(
    (tacit.Numeric("age", 20, 90), tacit.Categorical("pain", LEVELS), tacit.Binary("sex", ("F", "M"))),
    tacit.Target("disease", ("no", "yes")),
)
CELLS = [
    f"{setting}/{effect}" for setting in ("1500/0.3", "1500/1", "6000/0.3", "6000/1", "6000/3") for effect in (0, 0.8)
]
ROWS = [1, 2, 3]  # the factor's, of (age, pain x 3, sex, intercept)


def parties(n: int, effect: float, seed: int) -> tacit.Federation:
    """Three parties whose outcome depends on age, and on one level of the factor as much as `effect`."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {"age": rng.uniform(20, 90, n), "pain": rng.choice(LEVELS, n), "sex": rng.choice(["F", "M"], n)}
    )
    score = 0.03 * (frame["age"] - 55) + effect * (frame["pain"] == "typical")
    frame["disease"] = np.where(rng.random(n) < 1 / (1 + np.exp(-score)), "yes", "no")
    tables = {f"party-{k}": tacit.Table.from_frame(frame[k::3], SCHEMA) for k in range(3)}
    return tacit.Federation.from_tables(tables, policy=tacit.Policy.disclosing_everything())


def rejections(n: int, epsilon: float, effect: float, runs: int) -> tuple[int, int, int]:
    """How many of the runs reject, reject with the noise ignored, and tell nothing."""
    rejected = ignored = silent = 0
    for seed in range(runs):
        both = parties(n, effect, seed)
        private, exact = tacit.PrivateNewton(epsilon=epsilon).fit(both), tacit.Pooled(l2=1e-6).fit(both)
        (test,) = private.facts_.joint
        if test.p is None:
            silent += 1
            continue
        rejected += test.p < 0.05
        b = private.table().set_index("term")["estimate"][[f"pain={level}" for level in LEVELS[1:]]].to_numpy()
        (peer,) = exact.facts_.joint
        scale = exact.table().set_index("term")["std_err"][[f"pain={level}" for level in LEVELS[1:]]].to_numpy()
        C = np.outer(scale, scale) * (0.5 + 0.5 * np.eye(3))  # equal shares of levels: correlations are a half
        assert peer.degrees == 3
        ignored += chi2.sf(b @ np.linalg.solve(C, b), 3) < 0.05
    return rejected, ignored, silent


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--cells", nargs="+", default=CELLS, help="such as 6000/1/0; all if left out")
    arguments = parser.parse_args()
    runs = arguments.runs
    print("| records | epsilon | effect | rejected, of those told | noise ignored | not identified |")
    print("|---|---|---|---|---|---|")
    for cell in arguments.cells:
        n, epsilon, effect = (float(number) for number in cell.split("/"))
        rejected, ignored, silent = rejections(int(n), epsilon, effect, runs)
        told = max(runs - silent, 1)
        shares = f"{rejected / told:.3f} | {ignored / told:.3f} | {silent / runs:.3f}"
        print(f"| {n:,.0f} | {epsilon:g} | {effect:g} | {shares} |", flush=True)


if __name__ == "__main__":
    main()
