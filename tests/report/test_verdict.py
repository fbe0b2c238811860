"""The first line: what a model is worth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from tacit.report import Metrics, Report, RunFacts, evaluate
from tacit.report.text import summary_text
from tacit.report.verdict import verdict_lines, worth

CLASSES = ("no", "yes")


def figures(signal: float, *, n: int = 4000, intercept: float = 0.0, factor: float = 1.0, seed: int = 1) -> Metrics:
    """Records with so much signal, predicted by scores that are `factor` times the true ones."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    y = (rng.random(n) < expit(signal * x + intercept)).astype(int)
    p = expit(factor * (abs(signal) * x + intercept))
    return evaluate(y, np.column_stack([1 - p, p]), CLASSES)


def test_a_model_below_guessing_is_called_so_whatever_its_accuracy() -> None:
    found = figures(-0.2, intercept=-2.4, seed=3)
    assert found.auc is not None
    assert found.auc < 0.5
    words = worth(found, CLASSES)
    assert words == (
        f"This model is no better than guessing: AUC {found.auc:.2f}. "
        f"Its accuracy, {100 * found.accuracy:.1f} %, is that of always answering no."
    )


def test_few_records_in_order_are_luck() -> None:
    tiny = evaluate([0, 0, 1, 1], [[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.1, 0.9]], CLASSES)
    assert tiny.auc == 1.0
    assert "no better than guessing: AUC 1.00" in worth(tiny, CLASSES)


def test_nothing_is_called_better_by_chance() -> None:
    """Scores without signal: at most a few in a hundred may be called better than guessing (2.5 % by the interval)."""
    rng = np.random.default_rng(0)
    better = 0
    for _ in range(300):
        y, p = rng.integers(0, 2, 100), rng.random(100)
        better += "is no better than guessing" not in worth(evaluate(y, np.column_stack([1 - p, p]), CLASSES), CLASSES)
    assert better <= 18


def test_a_good_model_is_told_beside_the_commonest_class() -> None:
    words = worth(figures(2.0), CLASSES)
    assert words.startswith("This model is better than guessing: AUC 0.8")
    assert "more than that of always answering" in words


def test_a_model_that_ranks_but_answers_like_the_commonest_class_says_both() -> None:
    words = worth(figures(0.6, intercept=-3.0), CLASSES)
    assert words.startswith("This model is better than guessing: AUC 0.6")
    assert "is that of always answering no" in words


def test_probabilities_that_are_worse_than_frequencies_are_named() -> None:
    words = worth(figures(0.5, factor=12.0), CLASSES)
    assert "its probabilities are worse than the class frequencies: log-loss 1." in words
    assert "against 0.69" in words


def test_an_accuracy_below_the_commonest_class_is_said_aloud() -> None:
    rng = np.random.default_rng(0)
    y = (rng.random(2000) < 0.2).astype(int)
    p = np.clip(0.55 + 0.2 * (y - 0.5) + rng.normal(0, 0.2, 2000), 0.01, 0.99)
    assert "LESS than that of always answering no" in worth(evaluate(y, np.column_stack([1 - p, p]), CLASSES), CLASSES)


def test_one_class_alone_cannot_tell() -> None:
    words = worth(evaluate([1, 1], [[0.4, 0.6]] * 2, CLASSES), CLASSES)
    assert words.startswith("Measured on records of the class yes alone")


@pytest.mark.parametrize("private", [True, False])
def test_it_is_the_first_line_everywhere(exact_facts: RunFacts, private_facts: RunFacts, private: bool) -> None:
    facts = replace(
        private_facts if private else exact_facts, verdict="Nothing can be told from noise at this epsilon."
    )
    report = Report(facts, {"test data": figures(-0.2)})
    lines = verdict_lines(facts, report.metrics)
    assert lines[0] == facts.verdict
    assert lines[1].endswith("(4,000 records, test data)")
    for text in (report.text(), summary_text(facts, report.metrics)):
        top = text.splitlines()[0 if private else 1]
        assert top == facts.verdict
        assert private or text.startswith("NOT PRIVATE")
        assert " ".join(text.split()).index(lines[1]) < text.index("Logistic regression")
    assert report.as_dict()["verdict"] == list(lines)
    html = report.html()
    assert html.index(lines[1]) < html.index("A model that predicts")
    assert verdict_lines(replace(facts, verdict=None), {}) == ()
