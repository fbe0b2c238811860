"""What a model is worth, in two or three sentences: the first lines of every summary and report.

Only this file chooses the words. A figure alone misleads: 91.2 % is no feat where 91.2 % of the records are of one
class. So a model is held against two that know nothing of a record: guessing (AUC 0.5), and answering for everybody
what is commonest (accuracy and log-loss of the class frequencies). It is called better only if it is so by more than
chance explains.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tacit.report.facts import RunFacts
from tacit.report.metrics import Metrics
from tacit.report.number import number, percent, plural
from tacit.report.plain import printable

Z_95 = 1.959963984540054  # the 97.5 % point of the normal distribution


def verdict_lines(facts: RunFacts, metrics: Mapping[str, Metrics]) -> tuple[str, ...]:
    """What the method says of its model, then what the first set of records that it was measured on says."""
    own = () if facts.verdict is None else (printable(facts.verdict),)
    if not metrics:
        return own
    label, figures = next(iter(metrics.items()))
    return *own, f"{worth(figures, facts.classes)} ({plural(figures.n, 'record')}, {printable(label)})"


def worth(figures: Metrics, classes: Sequence[str]) -> str:
    """What figures say of a model of `classes`, in a few sentences.

    Guarantees:
        "Better than guessing" stands only where the AUC's 95 % interval lies above 0.5. Accuracy is never named
        without that of always answering the commonest class, nor a worse log-loss without that of the frequencies.
    """
    commonest = printable(classes[figures.class_counts.index(max(figures.class_counts))])
    if figures.auc is None:
        return f"Measured on records of the class {commonest} alone, which cannot tell whether this model is of use."
    area = f"AUC {figures.auc:.2f}"
    if figures.auc - Z_95 * _doubt(figures) <= 0.5:
        return f"This model is no better than guessing: {area}. {_accuracy_words(figures, commonest)}."
    if figures.log_loss > figures.base_log_loss + Z_95 * figures.log_loss_gain_error:
        return (
            f"This model ranks better than guessing: {area}. But its probabilities are worse than the class "
            f"frequencies: log-loss {number(figures.log_loss, 3)} against {number(figures.base_log_loss, 3)}. "
            f"{_accuracy_words(figures, commonest)}."
        )
    return f"This model is better than guessing: {area}. {_accuracy_words(figures, commonest)}."


def forecast_words(epsilon: float, *, useful: bool, accuracy_gain: float, log_loss_gain: float) -> str:
    """What a forecast says of a model: by how much it is better than the class frequencies, or that it is not."""
    gains = (
        f"{_signed(accuracy_gain)} in accuracy over the commonest class, "
        f"{_signed(-log_loss_gain)} in log-loss over the class frequencies (less is better)"
    )
    where = f"At epsilon {epsilon:g}" if math.isfinite(epsilon) else "Without privacy"
    if useful:
        return f"{where} the model would be of use: {gains}."
    return (
        f"{where} the model would be no better than always answering the commonest class. It has {gains}. "
        f"The study needs more records, fewer columns or a larger epsilon."
    )


def _signed(value: float) -> str:
    return f"{value:+.3f}" if abs(value) >= 0.0005 else f"{value:+.1g}"


def _accuracy_words(figures: Metrics, commonest: str) -> str:
    """Accuracy beside what the commonest class alone reaches, and whether the difference is more than chance."""
    gain, error = figures.accuracy - figures.majority_rate, figures.accuracy_gain_error
    own, other = percent(figures.accuracy), percent(figures.majority_rate)
    if abs(gain) <= Z_95 * error or own == other:
        if own == other:
            return f"Its accuracy, {own}, is that of always answering {commonest}"
        return f"Its accuracy, {own}, cannot be told from that of always answering {commonest}, {other}"
    return (
        f"Its accuracy, {own}, is {'more' if gain > 0 else 'LESS'} than that of always answering {commonest}, {other}"
    )


def _doubt(figures: Metrics) -> float:
    """The AUC's standard error, at least that of guesses on so many records: few can be in order by luck."""
    counts = [count for count in figures.class_counts if count]
    luck = math.sqrt((sum(counts) + 1) / (12 * min(counts) * (sum(counts) - min(counts))))
    return max(luck, figures.auc_error or 0.0)
