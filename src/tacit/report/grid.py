"""The tables of a report as plain text cells: one content for the terminal, for a file and for the page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tacit.report.facts import HEADINGS, RunFacts
from tacit.report.number import UNKNOWN, byte_count, count, duration, number, p_value, percent, short
from tacit.report.plain import printable
from tacit.report.row import NOT_IDENTIFIED, CoefficientRow

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.report.comparison import ComparisonEntry
    from tacit.report.metrics import Metrics

NOT_PRIVATE = "NOT PRIVATE"
FOR_PREDICTION = "for prediction"

_FIELDS = {
    "std err": "standard_error",
    "z": "z",
    "low": "low",
    "high": "high",
    "odds ratio": "odds_ratio",
    "odds low": "odds_low",
    "odds high": "odds_high",
    FOR_PREDICTION: "prediction",
}

QUESTIONS = {
    "Parties": "who takes part",
    "Trust": "whom it rests on",
    "Travels": "what travels",
    "Revealed": "who learns what",
    "Privacy": "what it costs",
    "Assumes": "what must hold",
    "Cost": "rounds and bytes",
    "Paper": "where it is from",
}


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Cells of text under a header; columns named in `left` are words, all others are numbers."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: frozenset[str]
    note: str = ""


def coefficient_grid(facts: RunFacts, most_rows: int | None = None) -> Grid:
    """The regression table: all rows, or the `most_rows` largest and a note that says so."""
    rows: Sequence[CoefficientRow] = facts.coefficients
    note = coefficient_note(facts)
    if most_rows is not None and len(rows) > most_rows:
        kept = sorted(range(len(rows)), key=lambda k: rows[k].weight, reverse=True)[:most_rows]
        by = ", by |z|" if facts.has_standard_errors else ""
        told = f"The {most_rows:,} largest of {len(rows):,} coefficients{by}; all are in the JSON report."
        note = f"{told} {note}".strip()
        rows = [rows[k] for k in sorted(kept)]
    columns: list[str] = ["class"] if any(row.class_name is not None for row in rows) else []
    columns += ["term", "coef"]
    if facts.has_standard_errors:
        columns += ["std err", "z", "P>|z|", "low", "high", "odds ratio", "odds low", "odds high"]
    else:
        columns += ["odds ratio"]
    if any(row.prediction is not None for row in rows):
        columns.append(FOR_PREDICTION)
    cells = tuple(tuple(_coefficient_cell(row, column) for column in columns) for row in rows)
    return Grid(title="Coefficients", columns=tuple(columns), rows=cells, left=frozenset({"class", "term"}), note=note)


def _coefficient_cell(row: CoefficientRow, column: str) -> str:
    match column:
        case "class":
            return printable(row.class_name or "")
        case "term":
            return printable(row.shown_name)
        case "coef":
            return number(row.estimate) if row.identified else NOT_IDENTIFIED
        case "P>|z|":
            return p_value(row.p)
        case _:
            return number(getattr(row, _FIELDS[column]))


def coefficient_note(facts: RunFacts) -> str:
    """What the columns are, which rows tell nothing, or why there are no standard errors."""
    if not facts.coefficients:
        return ""
    if facts.has_standard_errors:
        words = ["The columns low and high are the ends of the estimate's own 95 % interval."]
        if facts.guarantee is not None and facts.guarantee.is_private:
            words.append("z and P test the value 0. Noise differs from value to value, so z is not coef / std err.")
        if facts.n_not_identified:
            words.append("Not identified: at this epsilon noise hides the coefficient, and nothing is known of it.")
        if any(row.prediction is not None for row in facts.coefficients):
            words.append(
                f"The column {FOR_PREDICTION!r} has the model's own coefficients where they differ: drawn to 0."
            )
        return " ".join(words)
    if facts.guarantee is not None and facts.guarantee.is_private:
        return (
            "No standard errors: the usual ones ignore the noise that was added for privacy. Computing them would be a "
            "further release about the records."
        )
    return "No standard errors: this method does not compute them."


def spending_grid(facts: RunFacts) -> Grid:
    """What each party spent."""
    notes = []
    if facts.guarantee is not None and facts.guarantee.is_private and not facts.is_private:
        notes.append(f"{NOT_PRIVATE}: the epsilon and delta shown are what was charged, not what holds.")
    if any(party.n_records is None for party in facts.parties):
        notes.append(f"A dash under {facts.counted}s: that party does not tell.")
    rows = tuple(
        (
            printable(party.name),
            count(party.n_records),
            short(party.epsilon) if party.is_private else NOT_PRIVATE,
            short(party.delta) if party.is_private else "",
            count(party.releases),
            byte_count(party.bytes_sent),
        )
        for party in facts.parties
    )
    return Grid(
        title="What was spent, by whom",
        columns=("party", f"{facts.counted}s", "epsilon", "delta", "releases", "sent"),
        rows=rows,
        left=frozenset({"party"}),
        note=" ".join(notes),
    )


def traffic_grid(facts: RunFacts) -> Grid:
    """What travelled, in all."""
    traffic = facts.traffic
    return Grid(
        title="What travelled",
        columns=("rounds", "messages", "from the parties", "to the parties", "in all", "time"),
        rows=(
            (
                count(traffic.rounds),
                count(traffic.messages),
                byte_count(traffic.bytes_up),
                byte_count(traffic.bytes_down),
                byte_count(traffic.bytes_total),
                duration(facts.seconds),
            ),
        ),
        left=frozenset(),
    )


def headings_grid(headings: Mapping[str, str]) -> Grid:
    """Who saw what: the method's own eight headings, in their order."""
    rows = tuple(
        (heading, QUESTIONS[heading], " ".join(printable(line) for line in headings[heading].split()).replace("`", ""))
        for heading in HEADINGS
        if headings.get(heading, "").strip()
    )
    columns = ("heading", "question", "answer")
    return Grid(title="Who saw what", columns=columns, rows=rows, left=frozenset(columns))


def metrics_grid(metrics: Mapping[str, Metrics]) -> Grid:
    """The figures, one row per set of records."""
    rows = tuple((printable(label), count(figures.n), *_figure_cells(figures)) for label, figures in metrics.items())
    columns = ("measured on", "records", *_FIGURES)
    return Grid(title="How good it is", columns=columns, rows=rows, left=frozenset({"measured on"}))


def comparison_grid(entries: Sequence[ComparisonEntry]) -> Grid:
    """Several methods side by side."""
    rows = []
    for entry in entries:
        facts, traffic = entry.facts, entry.facts.traffic
        figures = ("",) * len(_MAIN_FIGURES) if entry.metrics is None else _main_cells(entry.metrics)
        if entry.accuracy_spread is not None:
            figures = (f"{figures[0]} +- {100 * entry.accuracy_spread:.1f}", *figures[1:])
        cost = (count(traffic.rounds), byte_count(traffic.bytes_total), duration(facts.seconds))
        rows.append((printable(entry.label), *figures, *_promise_cells(facts), *cost))
    columns = ("method", *_MAIN_FIGURES, "epsilon", "delta", "per", "rounds", "bytes", "time")
    return Grid(title="Side by side", columns=columns, rows=tuple(rows), left=frozenset({"method"}))


_MAIN_FIGURES = ("accuracy", "majority", "AUC", "log-loss")
_FIGURES = (*_MAIN_FIGURES, "balanced", "Brier", "cal. error")


def _main_cells(figures: Metrics) -> tuple[str, ...]:
    auc = UNKNOWN if figures.auc is None else f"{figures.auc:.3f}"
    return percent(figures.accuracy), percent(figures.majority_rate), auc, number(figures.log_loss, 3)


def _figure_cells(figures: Metrics) -> tuple[str, ...]:
    error = number(figures.expected_calibration_error, 2)
    return *_main_cells(figures), percent(figures.balanced_accuracy), number(figures.brier, 3), error


def _promise_cells(facts: RunFacts) -> tuple[str, str, str]:
    """Epsilon, delta and the unit that they protect: a party's epsilon is not to be held against a record's."""
    if facts.guarantee is None or not facts.is_private:
        return NOT_PRIVATE, "", ""
    return short(facts.guarantee.epsilon), short(facts.guarantee.delta), facts.guarantee.unit


def promised_epsilon(facts: RunFacts) -> str:
    """The epsilon that holds, or that none does."""
    if facts.guarantee is None or not facts.is_private:
        return NOT_PRIVATE
    return short(facts.guarantee.epsilon)


def guarantee_text(facts: RunFacts) -> str:
    """The guarantee on one line: `epsilon = 1, delta = 1e-06 per record, replace-one`."""
    guarantee = facts.guarantee
    if guarantee is None or not math.isfinite(guarantee.epsilon):
        return NOT_PRIVATE
    numbers = f"epsilon = {short(guarantee.epsilon)}, delta = {short(guarantee.delta)}"
    words = f"{numbers} per {guarantee.unit}, {guarantee.relation}"
    return words if facts.is_private else f"{NOT_PRIVATE} (claimed: {words})"
