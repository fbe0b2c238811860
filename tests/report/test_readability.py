"""No sentence of a report is longer than 30 words, whatever the method; a clause on a line of its own is a sentence."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape

import pytest

import tacit
from tacit.methods import METHODS
from tacit.report import Metrics, Report, RunFacts
from tacit.studies.result import named_after
from tests.report.test_identity import STUDY, federation

MOST_WORDS = 30


def long_sentences(html: str) -> list[str]:
    """The sentences of a page with more words than that; pictures have words of their own, and are left out."""
    body = re.sub(
        r"<svg.*?</svg>|<style.*?</style>|<table.*?</table>", " ", html.partition("<main")[2], flags=re.DOTALL
    )
    blocks = re.split(r"</(?:p|li|dd|dt|h\d|summary|b)>|<br>", body)
    found = []
    for block in blocks:
        text = " ".join(unescape(re.sub(r"<[^>]+>", " ", block)).split())
        for sentence in re.split(r"(?<=[.!?;])\s+", text):
            if sum(bool(re.search(r"\w", word)) for word in sentence.split()) > MOST_WORDS:
                found.append(sentence)
    return found


def test_the_counter_counts() -> None:
    assert long_sentences(f"<main><p>{'word ' * 31}.</p>") != []
    assert long_sentences(f"<main><p>{'word ' * 29}end. {'word ' * 29}end.</p><svg>{'word ' * 40}</svg>") == []


@pytest.mark.parametrize("name", METHODS)
def test_the_words_of_every_method(name: str, private_facts: RunFacts, metrics: Metrics) -> None:
    facts = replace(private_facts, headings=METHODS[name].headings())
    assert long_sentences(Report(facts, {"held-out records": metrics}).html()) == []


@pytest.mark.parametrize(
    "model",
    [
        tacit.PrivateNewton(epsilon=1.0),
        tacit.PrivateNewton(epsilon=0.02),
        tacit.PrivateNewton(epsilon=1.0, robust=True, unit="party"),
        tacit.PrivateNewton(epsilon=1.0, relation="add-remove"),
        tacit.Pooled(),
        tacit.PrivLogit(secure="sums", l2=1.0),
        tacit.Averaging(epsilon=1.0),
        tacit.Averaging(epsilon=1.0, calibration="paper"),
        tacit.ObjectivePerturbation(epsilon=1.0),
        tacit.FunctionalMechanism(epsilon=1.0),
        tacit.NoisyDescent(epsilon=1.0),
    ],
    ids=str,
)
def test_the_words_of_real_runs(model: tacit.PrivateNewton) -> None:
    """With their notices and verdicts."""
    study = tacit.Study.parse(STUDY)
    named_after(model.fit(federation(study)), study)
    assert long_sentences(model.report.html()) == []


def test_the_promise_of_every_unit_and_relation(private_facts: RunFacts) -> None:
    for unit in ("record", "person", "party"):
        for relation in ("replace-one", "add-remove"):
            promise = tacit.Guarantee(epsilon=1.0, delta=1e-6, unit=unit, relation=relation)  # type: ignore[arg-type]
            assert long_sentences(Report(replace(private_facts, guarantee=promise)).html()) == []
