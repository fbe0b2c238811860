"""The page of `benchmarks/private_accuracy.py`: tables and a plot for each data set and relation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from peers.accuracy_below import below_table, shuffled_paragraph
from peers.accuracy_cell import HIGHER, ORDER, RELATIONS, Cell, mean_and_error
from peers.accuracy_verdict import FLAGSHIP, Curves, as_good, at, best, misses, verdict_row
from tacit.report.curve import CurvePoint, curve_plot

MOST = 100.0  # a log-loss beyond this has no digits worth showing
RARE = 0.1  # below this share of positives accuracy says little, and the order of scores is judged instead
WORDS = {
    "accuracy": "accuracy",
    "auc": "area under the curve",
    "average_precision": "average precision",
    "log_loss": "log-loss",
}

# Which sets had a part in how the methods came to be as they are.
CHOSEN_ON = ("bank_marketing", "default_credit", "online_news", "lending_club")
LOOKED_AT = ("a9a", "adult_dpml", "coil2000", "creditcard_fraud", "kdd99", "wine_quality")

HEAD = """# Accuracy against epsilon

Written by `python benchmarks/private_accuracy.py`. Five parties with 8, 4, 2, 1 and 1 parts of the records; rows of
norm at most 1; one record; delta = 1/n^2; every method with its defaults, the same on every set (`ternary-descent`
without hidden layers). Mean and standard error of the runs; in bold what is within one standard error (of the
difference) of the best. A cell has 20 runs, and 5 where a run takes over ten seconds. Some others have had 5 so far:
each set says which.

There is a table for each relation, since promises under different ones cannot be compared. Replace-one is for a record
that is another one, among a public number of records. Add-remove is for a record that is there or not: sums move half
as far, and the number of records is no longer public. Methods that have one relation alone are in its table alone.

Peers see all records in one place. Five parties of which one may collude add an eighth more noise than they do.

- `learned-frequencies`: the counts of the two classes, with the whole promise. It is what is left without columns.
- `marginal-statistics`, after Ferrando and Sheldon (TMLR 2025; arXiv 2405.15002): sums for a polynomial loss, from
  tables of two features that are chosen on the way. Simplified by us. Its settings are the best of 27 that were tried
  on the test records of adult_dpml and a9a, so that its figures there are too good.
- `tight-objective`, Redberg, Koskela and Wang (NeurIPS 2023; arXiv 2401.00583): objective perturbation with less noise.
  Its penalty follows the rule of our `objective-perturbation`.
- `double-noise-newton`, Ganesh, Haghifam, Steinke and Thakurta (NeurIPS 2023; arXiv 2305.13209), Algorithm 3, with the
  settings of the authors' code.
- `tuned-dp-sgd`: DP-SGD with full batches. **An oracle tunes it on the test records**: steps, rate and momentum are the
  best of twelve combinations, at no cost. No honest run reaches it.
- `diffprivlib` with its defaults; it promises pure epsilon. `opacus`: DP-SGD with the settings of its tutorials. The
  cells of both have 5 runs and no log-loss: they are older than the others.

All but the last two are written here, with exact Gaussian accounting (`benchmarks/peers/`).

*Class frequencies* is what one reaches who knows how many training records are in each class, and nothing else. Nobody
may know that for nothing: `learned-frequencies` is what it costs to learn them.

- Rules were chosen on {chosen}. PrivateNewton's level of scores, its largest constant and the noise beyond which it
  asks no rounds were chosen on simulated tables and on training records of online_news and lending_club.
- Its shape, the weight of its heavy laws and the share of its squares were chosen by looking at test records of
  adult_dpml, a9a, bank_marketing, default_credit, coil2000 and wine_quality. When rounds show curvature, how far a
  step may go and when it is taken back were chosen on those of creditcard_fraud. How many records add-remove takes
  there to be was looked at on all but bank_marketing.
- How it finds the level and the mean row where noise drowns nearly all was chosen on the training records of a9a,
  bank_marketing, default_credit, coil2000, wine_quality, creditcard_fraud and lending_club. When a contradicted step
  is taken back, and how long a model may be where rounds contradict the curvature, was chosen on those of
  creditcard_fraud.
- Test records were looked at while methods were built: {looked}.
- Sets on this page that no rule was chosen on: {untouched}.
"""

VERDICT_HEAD = """
At these epsilons nobody is ahead of PrivateNewton by more than a standard error of the difference. The first list is
among methods for parties, the second among all on this page, the oracle included.

| set | relation | measure | among methods for parties | among all |
|---|---|---|---|---|"""

CAUSES = """
Why. Peers see all records in one place, where five parties of which one may collude add an eighth more noise. The
settings of `tuned-dp-sgd` are chosen on the test records. These causes are PrivateNewton's own:

- *Categories at a small epsilon.* A table of counts moves by one record, however many cells it has. A row of norm 1
  shares its length among all its columns. So `marginal-statistics` learns more of one-hot columns at 0.1 and below.
- *Answers at one half.* A model that is drawn towards the class frequencies names the commonest class more often. Its
  log-loss gains by that. Its accuracy, at a threshold of one half, need not.
- *Class frequencies at 0.01.* They must be learned, too. `learned-frequencies` spends its whole promise on them, and
  PrivateNewton a part. On sets of a few thousand records neither tells them well: their noise is then a tenth of all
  records or more.
- *A rare class.* On fraud, with 0.17 % positives, methods that perturb the objective fit the loss itself and spend all
  on one vector. PrivateNewton's steps follow the curvature of a normal population, which these rows are far from. So
  with little noise it stops a little short of the best model.
- *Runs that go astray.* At 0.01, and on small sets at 0.0316, single runs end far from the truth, with a log-loss that
  is worse than saying nothing. It is their level that is off, hardly ever their columns. The tables *below the class
  frequencies* name them.
- *Next to no noise.* In accuracy, PrivateNewton and those ahead of it at 3 and above are within half a point of the
  plain fit.
"""


def write_page(results: dict[str, Any], out: Path) -> None:
    """accuracy.md and its pictures."""
    (out / "accuracy.md").write_text(page(results), encoding="utf-8")
    for name, plain, cells in _sets(results):
        for relation in RELATIONS:
            for measure in (m for m in _measures(plain) if m in HIGHER):
                curves = _curves(cells, relation, measure)
                if curves:
                    file = out / _picture(name, relation, measure)
                    lines = _marks(plain, measure)
                    svg = curve_plot(curves, quantity=WORDS[measure], lines=lines, figure_id=file.stem)
                    file.write_text(svg, encoding="utf-8")


def page(results: dict[str, Any]) -> str:
    """The text of accuracy.md: what it says follows from accuracy.json alone."""
    sets = _sets(results)
    names = [name for name, _, _ in sets]
    untouched = [name for name in names if name not in CHOSEN_ON and name not in LOOKED_AT]
    parts = [HEAD.format(chosen=_list(CHOSEN_ON), looked=_list(LOOKED_AT), untouched=_list(untouched) or "none")]
    for name, plain, cells in sets:
        parts.append(_section(name, plain, cells))
        parts += [shuffled_paragraph(kept, cells) for kept in results.get("shuffled", []) if kept["set"] == name]
    return "\n".join([*parts, *_verdicts(sets)]) + "\n"


def _verdicts(sets: list[tuple[str, dict[str, Any], list[dict[str, Any]]]]) -> list[str]:
    """Where PrivateNewton is within one standard error of the best, and where not."""
    rows, found = [], []
    for name, plain, cells in sets:
        for relation in RELATIONS:
            for measure in _measures(plain):
                curves = _curves(cells, relation, measure)
                if FLAGSHIP in curves:
                    rows.append(verdict_row(f"{name} | {relation} | {WORDS[measure]}", curves, measure))
                    found += [f"{name}, {relation}, {WORDS[measure]}, {miss}" for miss in misses(curves, measure)]
    if not rows:
        return ["## Where PrivateNewton is not the best\n", "It was not run.", ""]
    nothing = "Nowhere by more than one standard error."
    return [
        "## Where PrivateNewton is the best, or within one standard error of it",
        VERDICT_HEAD,
        *rows,
        "\n## Where PrivateNewton is not the best\n",
        "\n".join(f"- {miss}" for miss in found) or nothing,
        CAUSES if found else "",
    ]


def _sets(results: dict[str, Any]) -> list[tuple[str, dict[str, Any], list[dict[str, Any]]]]:
    """Name, plain fit and cells of each set that has any, methods in the order in which they are shown."""
    found = []
    for name, plain in sorted(results["plain"].items()):
        cells = [cell for cell in results["cells"] if cell["set"] == name]
        cells.sort(key=lambda cell: (ORDER.index(cell["method"]), cell["epsilon"]))
        if cells:
            found.append((name, plain, cells))
    return found


def _section(name: str, plain: dict[str, Any], cells: list[dict[str, Any]]) -> str:
    text = [
        f"## {name}\n",
        f"{plain['n']:,.0f} records, {plain['d']:.0f} columns, {plain['positive']:.1%} positive in the test table. "
        f"{_part(name)}\n",
    ]
    for relation in RELATIONS:
        shown = {measure: _curves(cells, relation, measure) for measure in _measures(plain)}
        if any(shown.values()):
            text.append(f"### {name}, {relation}\n")
        for measure, curves in shown.items():
            if curves:
                text += _measured(name, relation, measure, curves, plain)
    text += [f"### {name}, below the class frequencies\n", below_table(plain, cells)]
    text.append(_runs_words(cells))
    return "\n".join(text)


def _runs_words(cells: list[dict[str, Any]]) -> str:
    """How many runs cells have; who has fewer than most is named."""
    counts = [len(cell["runs"]) for cell in cells]
    usual = max(set(counts), key=counts.count)
    fewer: dict[int, list[str]] = {}
    for cell, count in zip(cells, counts, strict=True):
        if count != usual:
            named = fewer.setdefault(count, [])
            words = f"{cell['method']} ({Cell.of(cell).relation})"
            named += [words] if words not in named else []
    rest = "".join(f"; {count} of {', '.join(fewer[count])}" for count in sorted(fewer))
    return f"\nRuns of each cell: {usual}{rest}.\n{_outdated_words(cells)}"


def _outdated_words(cells: list[dict[str, Any]]) -> str:
    """Which cells were measured before their method was changed last."""
    found: dict[str, list[str]] = {}
    for cell in cells:
        if cell.get("outdated"):
            found.setdefault(f"{cell['method']} ({Cell.of(cell).relation})", []).append(f"{cell['epsilon']:g}")
    if not found:
        return ""
    named = "; ".join(f"{words} at {', '.join(epsilons)}" for words, epsilons in found.items())
    return f"\nMeasured before the last change of the method: {named}.\n"


def _measured(name: str, relation: str, measure: str, curves: Curves, plain: dict[str, Any]) -> list[str]:
    marks = ", ".join(f"{mark} {figure:.4f}" for mark, figure in _marks(plain, measure).items())
    words = WORDS[measure].capitalize() + ("" if measure in HIGHER else " (less is better)")
    text = [f"{words}; {marks}:\n" if marks else f"{words}:\n", _table(curves, measure), ""]
    if measure in HIGHER:
        text.append(f"![{WORDS[measure]} against epsilon on {name}, {relation}]({_picture(name, relation, measure)})\n")
    return text


def _part(name: str) -> str:
    if name in CHOSEN_ON:
        return "Rules were chosen on this set."
    if name in LOOKED_AT:
        return "Its test records were looked at while methods were built."
    return "**No rule was chosen on this set.**"


def _measures(plain: dict[str, Any]) -> tuple[str, ...]:
    rare = min(plain["positive"], 1 - plain["positive"]) < RARE
    return ("average_precision", "auc", "log_loss") if rare else ("accuracy", "log_loss")


def _marks(plain: dict[str, Any], measure: str) -> dict[str, float]:
    """What to compare with; older plain fits have no log-loss."""
    found = {"the plain fit": plain[measure]} if measure in plain else {}
    if measure in plain.get("frequencies", {}):
        return found | {"class frequencies": plain["frequencies"][measure]}
    share = plain["positive"]
    guess = {"accuracy": max(share, 1 - share), "auc": 0.5, "average_precision": share}
    return found | ({"guessing": guess[measure]} if measure in guess else {})


def _curves(cells: list[dict[str, Any]], relation: str, measure: str) -> Curves:
    """The points of each method; older runs have no log-loss."""
    curves: Curves = {}
    for cell in cells:
        if Cell.of(cell).relation == relation and all(measure in run for run in cell["runs"]):
            curves.setdefault(cell["method"], []).append(CurvePoint(cell["epsilon"], *mean_and_error(cell, measure)))
    return curves


def _picture(name: str, relation: str, measure: str) -> str:
    return f"accuracy-{name}-{measure}" + ("" if relation == "replace-one" else f"-{relation}") + ".svg"


def _table(curves: Curves, measure: str) -> str:
    epsilons = sorted({point.epsilon for points in curves.values() for point in points})
    rows = ["| method | " + " | ".join(f"{e:g}" for e in epsilons) + " |", "|---|" + "---|" * len(epsilons)]
    leading = {e: best(at(curves, e), measure)[1] for e in epsilons}
    for method, points in curves.items():
        found = {point.epsilon: point for point in points}
        entries = []
        for e in epsilons:
            if e not in found:
                entries.append("not run")
                continue
            figure = _figure(found[e])
            entries.append(f"**{figure}**" if as_good(found[e], leading[e], measure) else figure)
        rows.append(f"| {method} | " + " | ".join(entries) + " |")
    return "\n".join(rows)


def _figure(point: CurvePoint) -> str:
    """A mean and its standard error; of a loss that is beyond all measure, its order alone."""
    if abs(point.mean) < MOST:
        return f"{point.mean:.4f} ({point.standard_error:.4f})"
    return f"{point.mean:.0e} ({point.standard_error:.0e})"


def _list(names: tuple[str, ...] | list[str]) -> str:
    return ", ".join(names[:-1]) + " and " + names[-1] if len(names) > 1 else "".join(names)
