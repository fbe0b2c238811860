"""Does `tacit plan` tell the truth? Forecasts of heart, adult, bank and fraud against the runs that follow.

    python benchmarks/forecast.py [--epsilons 0.316,1,3.16] [--method private-newton] [--sets heart_disease,adult]
                                  [--guesses public,typical,none] [--halves 1]

Of each set, half of the records are public. The other half belong to the parties, and the run is measured on a fifth of
those. Both are repeated over random halves, since heart has 920 records in all. A forecast rests on one of three:

    public     it rehearses on the public half
    typical    it is told what a published table would tell: the mean and deviation of each number and the share of each
               category, to two digits; and the share of the positive class and the AUC of the exact fit
    none       it is told the last two alone

The last two make records up, of two shapes (`Outlook.alternative`): AUC and widths are ranges.

Shown are accuracy, AUC and log-loss, foretold and found; the median over coefficients of the ratio of half-widths,
foretold to found, and its quarters; how many coefficients were not identified; and of a range, how many of the
half-widths that were found lie in it.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from tacit.data.feature import Binary, Categorical
from tacit.data.table import Table
from tacit.data.typical import TypicalValue
from tacit.datasets import load
from tacit.errors import DataError
from tacit.federation.federation import Federation
from tacit.studies.expectation import Expectation, expectation
from tacit.studies.forecast import Outlook, forecast
from tacit.studies.rehearsal import RehearsedRun, rehearse
from tacit.studies.run import method_of
from tacit.studies.study import PrivacyRequest, Study

SETS = {"heart_disease": 20, "adult": 3, "bank_marketing": 3, "creditcard_fraud": 2}  # random halves of each
GUESSES = ("public", "typical", "none")
WEIGHTS = np.array([0.4, 0.3, 0.2, 0.1])
HEAD = "foretold / found    epsilon  guess    accuracy       AUC             log-loss       widths (quarters)   lost"


def halves(pooled: Table, repeats: int) -> Iterator[tuple[Table, dict[str, Table], Table]]:
    """Public records, the parties' tables and records to measure on."""
    for repeat in range(repeats):
        order = np.random.default_rng(repeat).permutation(pooled.n_records)
        half, cut = pooled.n_records // 2, int(0.9 * pooled.n_records)
        parts = np.split(order[half:cut], (np.cumsum(WEIGHTS)[:-1] * (cut - half)).astype(int))
        tables = {f"party{k}": pooled.take(part, f"party{k}") for k, part in enumerate(parts, start=1)}
        yield pooled.take(order[:half], "public"), tables, pooled.take(order[cut:], "test")


def told_by(guess: str, public: Table) -> dict[str, Any]:
    """What a forecast is told."""
    if guess == "public":
        return {"public": public}
    X, y = public.arrays()
    cut = len(y) // 2
    exact = LogisticRegression(C=1.0, max_iter=1000).fit(X[:cut], y[:cut])
    area = roc_auc_score(y[cut:], exact.decision_function(X[cut:]))
    facts = {"positive_share": _rounded(y.mean()), "plain_auc": _rounded(area)}
    return facts if guess == "none" else facts | {"typical": typical_values(public)}


def typical_values(public: Table) -> list[TypicalValue]:
    """Means and deviations of numbers, and shares of what is none, to two digits."""
    schema, X = public.schema, public.arrays()[0]
    found, end = [], 0
    for feature in schema.features:
        start, end = end, end + len(feature.columns(schema.coding))
        column = X[:, start]
        if isinstance(feature, Categorical):
            known = X[:, start:end].mean(axis=0)[-(len(feature.categories) - (schema.coding == "reference")) :]
            shares = [1 - known.sum(), *known] if schema.coding == "reference" else [*known]
            figures = [max(share, 0.0) for share in shares]
        elif isinstance(feature, Binary):
            figures = [(column > column.min()).mean()]
        else:
            low, high = feature.bounds or (-1.0, 1.0)
            raw = low / 2 + high / 2 + column * (high - low) / 2
            figures = [raw.mean(), raw.std()]
        found.append(TypicalValue(name=feature.name, figures=tuple(map(_rounded, figures))))
    return found


def _rounded(figure: float) -> float:
    return float(f"{figure:.2g}")


def line(told: list[Outlook], found: list[RehearsedRun]) -> str:
    """Forecasts beside what runs gave; of widths the median over coefficients of foretold / found."""
    really = expectation(told[0].forecasts[0].epsilon, [run.measured for run in found], {})
    pairs = []
    for quantity in ("accuracy", "auc", "log_loss"):
        foretold = np.mean([getattr(one.forecasts[0], quantity).mean for one in told])
        pairs.append(f"{foretold:6.3f} / {getattr(really, quantity).mean:.3f}")
    wide = _widths([one.forecasts[0] for one in told])
    other = _widths([one.alternative[0] for one in told if one.alternative])
    real = {width.term: width.half_width for width in really.widths if np.isfinite(width.half_width)}
    ratios = [wide[term] / real[term] for term in real if np.isfinite(wide.get(term, np.inf))]
    spread = "{:.2f} ({:.2f} to {:.2f})".format(*np.quantile(ratios, (0.5, 0.25, 0.75))) if ratios else "-"
    lost = f"{np.mean([one.forecasts[0].not_identified for one in told]):.1f} / {really.not_identified:.1f}"
    text = f"{'  '.join(pairs)}  {spread:22} {lost}"
    if not other:
        return text
    within = [min(wide[term], other[term]) <= real[term] <= max(wide[term], other[term]) for term in real]
    area = np.mean([one.alternative[0].auc.mean for one in told if one.alternative[0].auc is not None])
    lost = f"{np.mean([one.alternative[0].not_identified for one in told]):.1f}"
    share = f", {np.mean(within):.0%} of widths between" if within else ""
    return f"{text}; the other shape: AUC {area:.3f}, {lost} lost{share}"


def _widths(told: list[Expectation]) -> dict[str, float]:
    terms = dict.fromkeys(width.term for one in told for width in one.widths)
    return {
        term: float(np.median([width.half_width for one in told for width in one.widths if width.term == term]))
        for term in terms
    }


def measure(name: str, arguments: argparse.Namespace) -> None:
    """The lines of one set."""
    data = load(name)
    pooled = Table.concatenate(list(data.tables.values()))
    for epsilon in map(float, arguments.epsilons.split(",")):
        request = PrivacyRequest(epsilon=epsilon, delta=1 / pooled.n_records**2)
        study = Study(name=name, purpose="forecast", schema=data.schema, method=arguments.method, privacy=request)
        found: list[RehearsedRun] = []
        told: dict[str, list[Outlook]] = {guess: [] for guess in arguments.guesses.split(",")}
        for public, tables, test in halves(pooled, arguments.halves or SETS[name]):
            sizes = {party: table.n_records for party, table in tables.items()}
            for guess, each in told.items():
                each.append(forecast(study, sizes, repeats=arguments.repeats, **told_by(guess, public)))
            found += [rehearse(method_of(study), Federation.from_tables(tables), test) for _ in range(arguments.runs)]
        for guess, each in told.items():
            print(f"{name:18} {epsilon:8g}  {guess:8} {line(each, found)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epsilons", default="0.316,1,3.16")
    parser.add_argument("--method", default=None)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--guesses", default=",".join(GUESSES))
    parser.add_argument("--halves", type=int, help="random halves of each set, otherwise as many as it needs")
    parser.add_argument("--runs", type=int, default=3, help="of each random half")
    parser.add_argument("--repeats", type=int, help="rehearsals of each forecast, otherwise plan's own")
    arguments = parser.parse_args()
    print(HEAD)
    for name in arguments.sets.split(","):
        try:
            measure(name, arguments)
        except DataError as error:
            print(f"skipped {name}: {error}")


if __name__ == "__main__":
    main()
