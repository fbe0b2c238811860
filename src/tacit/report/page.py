"""The report of one run."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Mapping
from dataclasses import fields

from tacit.report.document import Document
from tacit.report.facts import RunFacts
from tacit.report.grid import (
    coefficient_grid,
    guarantee_text,
    headings_grid,
    metrics_grid,
    promised_epsilon,
    spending_grid,
    traffic_grid,
)
from tacit.report.metrics import Metrics
from tacit.report.number import byte_count, count, duration, percent, plural, short
from tacit.report.plain import Plain, plain, printable
from tacit.report.plots import calibration_plot, forest_plot, roc_plot, spending_plot
from tacit.report.study_grid import (
    citation,
    columns_grid,
    fit_grid,
    identity_grid,
    joint_grid,
    reference_note,
    settings_grid,
)
from tacit.report.text import (
    WIDTH,
    metrics_text,
    settings_text,
    spending_text,
    study_text,
    summary_text,
    tests_text,
    traffic_text,
    who_saw_what_text,
)
from tacit.report.verdict import verdict_lines

MOST_ROWS = 200
BRIEF_ROWS = 25

_FIRST_SENTENCE = re.compile(r".*?(?<!al)\.(?= [A-Z])")  # "et al." ends none


class Report(Document):
    """What one run learned, what it cost whom, and who saw what.

    `metrics` maps a name for a set of records ("held-out records") to the figures measured on it.
    """

    def __init__(self, facts: RunFacts, metrics: Mapping[str, Metrics] | None = None) -> None:
        """Keep the facts and a copy of the figures."""
        self.facts = facts
        self.metrics = dict(metrics or {})

    def __repr__(self) -> str:
        """The method and the number of parties, and nothing of what was found."""
        return f"<Report of {self.facts.method_name}, {plural(len(self.facts.parties), 'party', 'parties')}>"

    def text(self) -> str:
        """The report as plain text: the regression table first, then what it cost whom."""
        facts = self.facts
        parts = [summary_text(facts, self.metrics), textwrap.fill(facts.promise, WIDTH) + "\n"]
        parts += [text for text in (tests_text(facts),) if text]
        if self.metrics:
            parts.append(metrics_text(self.metrics))
        parts += [study_text(facts), spending_text(facts), traffic_text(facts)]
        if headings_grid(facts.headings).rows:
            parts.append(who_saw_what_text(facts.headings))
        if facts.settings:
            parts.append(settings_text(facts))
        parts.append(textwrap.fill(f"How to cite: {citation(facts)}", WIDTH) + "\n")
        return "\n".join(parts)

    def as_dict(self) -> dict[str, Plain]:
        """The report as strict JSON holds it; a number that is not finite is null."""
        rows = [row.as_dict() for row in self.facts.coefficients]
        facts = {field.name: getattr(self.facts, field.name) for field in fields(self.facts)}
        return {
            "facts": plain({**facts, "coefficients": rows}),
            "private": self.facts.is_private,
            "why_not_private": list(self.facts.why_not_private),
            "promise": self.facts.promise,
            "verdict": list(verdict_lines(self.facts, self.metrics)),
            "metrics": plain(self.metrics),
        }

    def brief_html(self) -> str:
        """The first part alone, as a notebook shows a fitted model."""
        facts = self.facts
        table = coefficient_grid(facts, BRIEF_ROWS)
        return self._fill(
            "summary.html.j2",
            {
                "title": f"{printable(facts.target)}, learned by {facts.method_name}",
                "facts": facts,
                "verdicts": verdict_lines(facts, self.metrics),
                "lead": lead(facts),
                "coefficients": table if table.rows else None,
            },
        )

    def _page_parts(self) -> tuple[str, dict[str, object]]:
        facts = self.facts
        table = coefficient_grid(facts, MOST_ROWS)
        joint = joint_grid(facts)
        subject = facts.target if facts.study is None else facts.study.name
        first = {heading: facts.headings[heading] for heading in ("Trust", "Revealed") if heading in facts.headings}
        return "report.html.j2", {
            "title": f"{printable(subject)}, learned by {facts.method_name}",
            "prefix": self._id_prefix(),
            "identity": identity_grid(facts),
            "columns": columns_grid(facts),
            "references": reference_note(facts),
            "fit": fit_grid(facts),
            "joint": joint if joint.rows else None,
            "first": headings_grid(first),
            "citation": citation(facts),
            "facts": facts,
            "verdicts": verdict_lines(facts, self.metrics),
            "lead": lead(facts),
            "promise": facts.promise,
            "guarantee": guarantee_text(facts),
            "cards": key_numbers(facts, self.metrics),
            "coefficients": table if table.rows else None,
            "measured": metrics_grid(self.metrics) if self.metrics else None,
            "plots": self._plots(self._id_prefix()),
            "spending": spending_grid(facts),
            "traffic": traffic_grid(facts),
            "headings": headings_grid(facts.headings),
            "settings": settings_grid(facts),
            "paper": paper_line(facts),
        }

    def _plots(self, prefix: str) -> dict[str, str]:
        plots = {}
        if self.facts.coefficients:
            plots["forest"] = forest_plot(self.facts.coefficients, figure_id=f"{prefix}-forest")
        if self.metrics:
            plots["calibration"] = calibration_plot(self.metrics, figure_id=f"{prefix}-calibration")
            plots["roc"] = roc_plot(self.metrics, figure_id=f"{prefix}-roc")
        if len(self.facts.parties) > 1 and any(party.is_private for party in self.facts.parties):
            plots["spending"] = spending_plot(self.facts.parties, figure_id=f"{prefix}-spending")
        return plots


def lead(facts: RunFacts) -> str:
    """What was learned, and from whom, in plain words."""
    *others, last = (printable(name) for name in facts.classes)
    classes = f"{', '.join(others)} or {last}" if others else last
    words = (
        f"A model that predicts {printable(facts.target)} ({classes}) was learned by {facts.method_name} "
        f"from {plural(len(facts.parties), 'party', 'parties')}"
    )
    return words + (f" with {plural(facts.n_records, facts.counted)} in all." if facts.n_records is not None else ".")


def key_numbers(facts: RunFacts, metrics: Mapping[str, Metrics]) -> list[tuple[str, str, str]]:
    """The few figures on top of the page: value, what it is, and what to hold it against."""
    cards = []
    if metrics:
        figures = next(iter(metrics.values()))
        cards.append((percent(figures.accuracy), "accuracy", f"commonest class: {percent(figures.majority_rate)}"))
        if figures.auc is not None:
            cards.append((f"{figures.auc:.3f}", "AUC", "guessing: 0.5"))
    cards.append((promised_epsilon(facts), "epsilon", _epsilon_note(facts)))
    cards.append((count(facts.traffic.rounds), "rounds", duration(facts.seconds)))
    cards.append((byte_count(facts.traffic.bytes_total), "travelled", plural(facts.traffic.messages, "message")))
    return cards


def _epsilon_note(facts: RunFacts) -> str:
    guarantee = facts.guarantee
    if guarantee is None or not math.isfinite(guarantee.epsilon):
        return "no epsilon holds"
    if not facts.is_private:
        return f"charged {short(guarantee.epsilon)}, which does not hold"
    delta = f"delta {short(guarantee.delta)}, " if guarantee.delta else ""
    return f"{delta}per {guarantee.unit}"


def paper_line(facts: RunFacts) -> str:
    """How to cite the method: the first sentence of its own heading on the source."""
    told = " ".join(printable(word) for word in facts.headings.get("Paper", "").split()).replace("`", "")
    first = _FIRST_SENTENCE.match(told)
    return told if first is None else first.group()
