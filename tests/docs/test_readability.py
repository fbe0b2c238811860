"""What people read has no sentence of more than 30 words."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import tacit
from tacit import Federation, PrivateNewton, PrivLogit, Rng
from tacit.datasets import load
from tacit.methods import METHODS
from tacit.report.facts import HEADINGS
from tacit.studies.plain_words import PLAIN_WORDS
from tests.attacks.office import Office
from tests.daemon.conftest import STUDY
from tests.daemon.party.test_consent_form import form_of

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


@pytest.mark.parametrize(
    "change",
    [
        ("", ""),
        ("epsilon = 1.0", "epsilon = 11.0"),
        ("quorum = 2", "quorum = 2\ncolluders = 0"),
        ('name = "averaging"', 'name = "averaging"\ncalibration = "paper"'),
        ('name = "averaging"', 'name = "curator-averaging"'),
        ('name = "averaging"', 'name = "private-newton"'),
    ],
)
def test_the_form_of_consent_has_no_long_sentence(tmp_path: Path, change: tuple[str, str]) -> None:
    office = Office(tmp_path, {"north": 40})
    try:
        form = form_of(office, STUDY.replace(*change))
    finally:
        office.close()
    told = [*form.warnings, *(part.text for part in form.parts)]
    assert readability.long_sentences("\n\n".join(told)) == []


TEMPLATES = sorted((ROOT / "src" / "tacit").rglob("*.j2"))


@pytest.mark.parametrize("path", TEMPLATES, ids=[path.parent.name + "/" + path.name for path in TEMPLATES])
def test_no_page_of_the_sites_and_no_report_has_a_long_sentence_of_its_own(path: Path) -> None:
    text = re.sub(r"\{#.*?#\}|\{%.*?%\}", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    text = re.sub(r"\{\{.*?\}\}", "value", text, flags=re.DOTALL)
    assert readability.long_sentences(readability.prose_of_html(text)) == []


@pytest.mark.parametrize("method", [PrivateNewton(epsilon=1.0), PrivLogit(secure="sums")], ids=lambda m: m.name)
def test_reports_have_no_long_sentence_but_in_the_method_s_own_terms(method, tmp_path: Path) -> None:
    tables = load("readmission").tables
    model = method.fit(Federation.split(*tables["north"].arrays(), n_parties=3, norm_bound=2.0, rng=Rng.seeded(1)))
    page = model.report.save(tmp_path / "report.html").read_text(encoding="utf-8")
    told = METHODS[method.name].headings()
    technical = " ".join(" ".join(told[heading].split()) for heading in HEADINGS).replace("`", "")
    found = readability.long_sentences(readability.prose_of_html(page))
    assert [sentence for sentence in found if sentence.rstrip(".") not in technical] == []


@pytest.mark.parametrize("name", tacit.__all__)
def test_what_is_said_of_a_public_name_has_no_long_sentence(name: str) -> None:
    text = inspect.getdoc(getattr(tacit, name)) or ""
    text = re.sub(r"^ *(>>>|\.\.\.).*$", "", text.partition("Example:\n")[0], flags=re.MULTILINE)
    text = re.sub(r"^ +([\w, ]+: )", r"\n\n\1", text, flags=re.MULTILINE)  # a setting and what it is
    formal = name == "Guarantee"  # the definition itself, with its formula
    assert readability.long_sentences(text)[formal:] == []


def test_the_script_notices_and_counts_fairly() -> None:
    assert readability.long_sentences(LONG) == [LONG]
    assert readability.long_sentences("A short one. " * 20) == []
    prose = readability.prose_of_markdown
    assert readability.long_sentences(prose(f"- {LONG}\n- short\n")) == [LONG]
    assert readability.long_sentences(prose(f"| a | {LONG} |\n|---|---|\n")) == [LONG]
    assert readability.long_sentences(prose("```sh\n" + LONG + "\n```\n")) == []
    assert readability.long_sentences(prose("\n".join(["- one two three four"] * 20))) == []
    assert readability.long_sentences(readability.prose_of_html(f"<p>{LONG}</p><pre>{LONG}</pre>")) == [LONG]
