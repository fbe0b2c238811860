"""Several runs side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev

from tacit.errors import SettingError
from tacit.report.document import Document
from tacit.report.facts import RunFacts
from tacit.report.grid import comparison_grid, headings_grid, spending_grid, traffic_grid
from tacit.report.metrics import Metrics
from tacit.report.number import plural
from tacit.report.page import Report
from tacit.report.plain import Plain, printable
from tacit.report.plots import Bar, comparison_plot
from tacit.report.study_grid import settings_grid
from tacit.report.text import banner_lines, grid_text, spending_text, traffic_text, who_saw_what_text
from tacit.report.verdict import worth


@dataclass(frozen=True)
class ComparisonEntry:
    """One run under the name that it has in the comparison.

    Attributes:
        label: the name.
        facts: of the run; of the first one, if it was repeated.
        metrics: what was measured; None if nothing was. Of repeated runs, see `of_runs`, their means.
        accuracy_spread: the standard deviation of the accuracy over repeated runs.
    """

    label: str
    facts: RunFacts
    metrics: Metrics | None = None
    accuracy_spread: float | None = None

    @classmethod
    def of_runs(cls, label: str, facts: RunFacts, runs: Sequence[Metrics]) -> ComparisonEntry:
        """Repeated runs: their mean figures, and how far the accuracies lie apart."""
        aucs = [one.auc for one in runs if one.auc is not None]
        mean = replace(
            runs[0],
            accuracy=fmean(one.accuracy for one in runs),
            balanced_accuracy=fmean(one.balanced_accuracy for one in runs),
            auc=fmean(aucs) if len(aucs) == len(runs) else None,
            log_loss=fmean(one.log_loss for one in runs),
            brier=fmean(one.brier for one in runs),
            majority_rate=fmean(one.majority_rate for one in runs),
        )
        spread = stdev(one.accuracy for one in runs) if len(runs) > 1 else None
        return cls(label, facts, mean, spread)


class ComparisonReport(Document):
    """Several ways to learn the same thing: how good each is, what it cost whom, and who saw what."""

    def __init__(self, title: str, entries: Sequence[ComparisonEntry], lead: str = "") -> None:
        """Keep the entries in the order in which they are to be shown; `lead` says first what they show."""
        if not entries:
            raise SettingError(f"the comparison {title!r} has no entries; give at least one")
        self.title = title
        self.entries = tuple(entries)
        self.lead = lead

    def __repr__(self) -> str:
        """How many methods, and nothing of what they found."""
        return f"<ComparisonReport of {plural(len(self.entries), 'method')}>"

    def table_text(self) -> str:
        """The verdict and the table of all methods."""
        return "\n".join(
            [f"{printable(self.title)}\n", grid_text(comparison_grid(self.entries)), f"{self._verdict()}\n"]
        )

    def text(self) -> str:
        """The table of all methods, then for each what was spent and who saw what."""
        parts = [self.table_text()]
        for entry in self.entries:
            parts.append(f"== {printable(entry.label)} ({entry.facts.method_name}) ==\n")
            parts.append("\n".join([*banner_lines(entry.facts), entry.facts.promise]) + "\n")
            parts += [f"Note: {printable(notice)}\n" for notice in entry.facts.notices]
            parts += [spending_text(entry.facts), traffic_text(entry.facts)]
            if headings_grid(entry.facts.headings).rows:
                parts.append(who_saw_what_text(entry.facts.headings))
        return "\n".join(parts)

    def as_dict(self) -> dict[str, Plain]:
        """The report as strict JSON holds it; a number that is not finite is null."""
        entries: list[Plain] = []
        for entry in self.entries:
            figures = {} if entry.metrics is None else {entry.label: entry.metrics}
            entries.append({"label": entry.label, **Report(entry.facts, figures).as_dict()})
        return {"title": self.title, "entries": entries}

    def _page_parts(self) -> tuple[str, dict[str, object]]:
        bars = [
            Bar(entry.label, entry.metrics, entry.facts.is_private, entry.accuracy_spread) for entry in self.entries
        ]
        measured = any(bar.metrics is not None for bar in bars)
        return "comparison.html.j2", {
            "title": printable(self.title),
            "verdict": self._verdict(),
            "table": comparison_grid(self.entries),
            "plot": comparison_plot(bars, figure_id=f"{self._id_prefix()}-comparison") if measured else "",
            "sections": [_section(entry) for entry in self.entries],
        }

    def _verdict(self) -> str:
        if self.lead:
            return printable(self.lead)
        private = [entry for entry in self.entries if entry.facts.is_private]
        words = (
            f"{plural(len(self.entries), 'way', 'ways')} to learn the same thing; {len(private)} of them "
            f"{'promises' if len(private) == 1 else 'promise'} differential privacy."
        )
        best = max(private, key=lambda e: -1.0 if e.metrics is None else e.metrics.accuracy, default=None)
        if best is not None and best.metrics is not None:
            told = worth(best.metrics, best.facts.classes)
            words += f" The most accurate private one is {printable(best.label)}. {told}"
        return words


def _section(entry: ComparisonEntry) -> dict[str, object]:
    facts = entry.facts
    first = {heading: facts.headings[heading] for heading in ("Trust", "Revealed") if heading in facts.headings}
    return {
        "label": printable(entry.label),
        "facts": facts,
        "spending": spending_grid(facts),
        "traffic": traffic_grid(facts),
        "first": headings_grid(first),
        "headings": headings_grid(facts.headings),
        "settings": settings_grid(facts),
    }
