"""The page of `benchmarks/intervals.py`, from the file of results alone: a partial run makes a page, too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from interval.laws import Cell, cells
from interval.real import RealCell, real_cells

HEAD = """# Intervals that count the privacy noise

Written by `python benchmarks/intervals.py`. `PrivateNewton` runs with its defaults among three parties in one process.
For each coefficient it tells a 95 % interval, or that the coefficient is *not identified* at this epsilon. Here we
count how often such an interval is right.

## Records with a known truth

Each run draws new records and gives them to the parties in equal parts. Labels follow a logistic model. Its
coefficients are drawn anew in each run: normal, 1.2 / sqrt(features) per standard deviation of a column. Scores then
have a standard deviation of 1.2 on average, whatever the rows are.

These rows were looked at while the intervals were built. Of the real records below, adult and bank_marketing were
looked at, and default_credit and heart_disease were not. When a direction counts as drowned was chosen on other draws
of the same rows (seeds from 10,000 on; here they begin at 0). So was what a curvature that is off does to an interval.
How far made-up rows are trusted, and how much a category may matter beforehand, was chosen on adult.
The shape of the rows was chosen by how well models predict on adult, bank_marketing and default_credit, among others.
These lines are therefore no test on laws never seen.

| rows | what was drawn | declared |
|---|---|---|
| uniform | every column uniform in -1..1 | bounds -1..1 |
| one-hot | columns of 0 and 1; the first is 1 in 5 % of records, the last in 50 % | binary |
| narrow-1, narrow-3 | column x0 exponential with mean 1 or 3; all others uniform in 0..100 | bounds 0..100 |
| correlated | normal columns with standard deviation 0.3, any two correlated by 0.9 | bounds -1..1 |
| heavy | columns 0.3 times Student's t with 3 degrees of freedom; labels follow the clipped rows | norm bound 1 |
| heavy-wrong | the same rows; labels follow them as they were before clipping, so the model is wrong | norm bound 1 |
| rare | as uniform, with 2 % positive records | bounds -1..1 |
| bent | as uniform; the chance of a label is 0.01 + 0.6 x0^4, so the model is wrong | bounds -1..1 |

The truth of heavy-wrong and bent is what the best logistic model has: an exact fit of a million records. Its
coefficients are the same in every run. Lines with *sandwich* were run with `robust=True`: a tenth of the budget goes to
how much records vary about the model.

- **covered**: of the intervals that were told, the share that holds the truth. It should be 0.95.
- **missed**: of all coefficients, the share with an interval that does not hold the truth.
- **not identified**: of all coefficients, the share without an interval.
- **least covered**: the coefficient whose intervals hold the truth least often. One that is identified in fewer than a
  tenth of the runs is passed over. In 300 runs, chance alone moves a share of 0.95 by 0.013 (one standard error).
- **spread**: the standard deviation of (estimate - truth) / standard error. It is 1 if standard errors are right.
- **width**: the median width of the intervals, over that of a reference. The reference knows the estimator's own
  spread. It is 2 x 1.96 times the standard deviation of (estimate - truth), over the runs that told an interval.
"""

DRAWN = """
| rows | records | features | epsilon | covered | missed | not identified | least covered | spread | width | runs |
|---|---|---|---|---|---|---|---|---|---|---|
"""

REAL_HEAD = """
## Real records

The truth of real records is not known, but their exact fit is. The parties hold random thirds of all records, cut anew
in each run. The private estimate is compared with the exact, unpenalised estimate of the same records. Both share one
sampling error, which leaves the comparison. What is left has the variance se^2 - se_exact^2. So an interval covers if
|estimate - exact| <= 1.96 sqrt(se^2 - se_exact^2).

A column with a few far values, such as `capital_gain` of adult, is the hardest. Private rows that are long count less,
and the exact fit weighs all alike. Where no logistic model is right, the two tend to different coefficients. At epsilon
1 noise drowns `capital_gain` in most runs, and it is then *not identified*. Where it is told, its intervals miss more
often than others.

A coefficient without an exact estimate is not compared: a category that never occurs, or whose records all have one
label. The number after bank_marketing is the upper bound that was declared for `campaign`.

- **covered**, **missed**, **not identified** and **least covered** are as above, among the coefficients compared.
- **below exact**: of the intervals that were told, the share with a standard error below the exact one. Each counts as
  a miss.
- **spread**: the standard deviation of (estimate - exact) / sqrt(se^2 - se_exact^2), where that exists.
- **wider**: the median of se / se_exact.
"""

REAL = (
    "\n| data set | records | compared | epsilon | covered | missed | not identified | least covered | below exact "
    "| spread | wider | runs |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n"
)

VERSION = 13  # of the intervals: raised where they, or the model, are made in another way
EARLIER = """
Lines with * after the number of runs were measured with an earlier version of the model or of its intervals, and wait
to be measured again.
"""

Results = Mapping[str, Mapping[str, Any]]


def page(results: Results) -> str:
    """The whole page."""
    drawn, real = drawn_lines(results, cells()), real_lines(results, real_cells())
    text = HEAD + (DRAWN + "\n".join(drawn) + "\n" if drawn else "\nNothing is measured yet.\n")
    text += EARLIER if any(found.get("version", 1) < VERSION for found in results.values()) else ""
    return text + (REAL_HEAD + REAL + "\n".join(real) + "\n" if real else "")


def drawn_lines(results: Results, wanted: Iterable[Cell]) -> list[str]:
    """A line for each of the cells that is measured."""
    return [
        f"| {cell.law}{_sandwich(cell.robust)} | {cell.n_records:,} | {cell.n_features} | {cell.epsilon:g} "
        f"| {_shares(found)} | {_text(found['spread'], 2)} | {_text(found['width'], 2)} | {_runs(found)} |"
        for cell in wanted
        if (found := results.get(cell.name)) is not None
    ]


def real_lines(results: Results, wanted: Iterable[RealCell]) -> list[str]:
    """A line for each of the cells that is measured."""
    return [
        f"| {cell.data_set}{_sandwich(cell.robust)} | {found['n_records']:,} "
        f"| {len(found['names'])} of {found['n_coefficients']} | {cell.epsilon:g} "
        f"| {_shares(found)} | {_text(found['below'], 3)} | {_text(found['spread'], 2)} "
        f"| {_text(found['wider'], 2)} | {_runs(found)} |"
        for cell in wanted
        if (found := results.get(cell.name)) is not None
    ]


def _sandwich(robust: bool) -> str:
    return ", sandwich" if robust else ""


def _shares(found: Mapping[str, Any]) -> str:
    least = "" if found["least"] is None else f"{_text(found['least'][1], 3)} {found['least'][0]}"
    shares = " | ".join(_text(found[key], 3) for key in ("covered", "missed", "not_identified"))
    return f"{shares} | {least}"


def _runs(found: Mapping[str, Any]) -> str:
    before = " *" if found.get("version", 1) < VERSION else ""
    return f"{found['runs']}{before}" + (f" and {found['failed']} failed" if found["failed"] else "")


def _text(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"
