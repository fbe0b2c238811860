"""What people read has no sentence of more than 30 words."""

from __future__ import annotations

from pathlib import Path

import pytest

from tacit import Federation, PrivateNewton, PrivLogit, Rng
from tacit.datasets import load
from tacit.methods import METHODS
from tacit.report.facts import HEADINGS
from tacit.studies.plain_words import PLAIN_WORDS

from .conftest import ROOT, script

readability = script("readability")
LONG = "This sentence has " + "one more " * 14 + "word."


@pytest.mark.parametrize("name", readability.PAGES)
def test_pages_have_no_long_sentence(name: str) -> None:
    text = (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert readability.long_sentences(readability.prose_of_markdown(text)) == []


@pytest.mark.parametrize("name", sorted(PLAIN_WORDS))
def test_what_an_owner_reads_of_a_method_has_no_long_sentence(name: str) -> None:
    words = PLAIN_WORDS[name]
    assert readability.long_sentences("\n\n".join([words.record, words.seen, words.risk])) == []


@pytest.mark.parametrize("method", [PrivateNewton(epsilon=1.0), PrivLogit(secure="sums")], ids=lambda m: m.name)
def test_reports_have_no_long_sentence_but_in_the_method_s_own_terms(method, tmp_path: Path) -> None:
    tables = load("readmission").tables
    model = method.fit(Federation.split(*tables["north"].arrays(), n_parties=3, norm_bound=2.0, rng=Rng.seeded(1)))
    page = model.report.save(tmp_path / "report.html").read_text(encoding="utf-8")
    told = METHODS[method.name].headings()
    technical = " ".join(" ".join(told[heading].split()) for heading in HEADINGS)
    found = readability.long_sentences(readability.prose_of_html(page))
    assert [sentence for sentence in found if sentence.rstrip(".") not in technical] == []


def test_the_script_notices_and_counts_fairly() -> None:
    assert readability.long_sentences(LONG) == [LONG]
    assert readability.long_sentences("A short one. " * 20) == []
    prose = readability.prose_of_markdown
    assert readability.long_sentences(prose(f"- {LONG}\n- short\n")) == [LONG]
    assert readability.long_sentences(prose(f"| a | {LONG} |\n|---|---|\n")) == [LONG]
    assert readability.long_sentences(prose("```sh\n" + LONG + "\n```\n")) == []
    assert readability.long_sentences(prose("\n".join(["- one two three four"] * 20))) == []
    assert readability.long_sentences(readability.prose_of_html(f"<p>{LONG}</p><pre>{LONG}</pre>")) == [LONG]
