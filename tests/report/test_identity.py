"""A report says which study it is of, what took effect, what its columns are, and for how many units it speaks."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import tacit
from tacit.errors import SchemaError
from tacit.report import ComparisonEntry, ComparisonReport, Metrics, Report, RunFacts
from tacit.report.identity import StudyFacts
from tacit.report.plots import GREEN, ORANGE, PURPLE, SKY
from tacit.studies.result import named_after, result_of

STUDY = """
[study]
name = "heart"
purpose = "Which findings predict heart disease?"

[target]
name = "disease"
classes = ["no", "yes"]

[[feature]]
name = "age"
kind = "numeric"
low = 20
high = 90
per = 10

[[feature]]
name = "pain"
kind = "categorical"
categories = ["none", "typical", "atypical"]

[[feature]]
name = "sex"
kind = "binary"
values = ["F", "M"]
missing = "indicator"

[privacy]
epsilon = 1.0
"""


def federation(study: tacit.Study) -> tacit.Federation:
    rng = np.random.default_rng(0)
    n = 900
    frame = pd.DataFrame(
        {
            "age": rng.uniform(20, 90, n),
            "pain": rng.choice(["none", "typical", "atypical"], n),
            "sex": rng.choice(["F", "M", ""], n),
        }
    )
    frame["disease"] = np.where(rng.random(n) < 1 / (1 + np.exp(-0.05 * (frame["age"] - 55))), "yes", "no")
    tables = {name: tacit.Table.from_frame(frame[k::3], study.schema) for k, name in enumerate(("east", "west", "mid"))}
    return tacit.Federation.from_tables(tables, policy=tacit.Policy.disclosing_everything(), study=study.name)


@pytest.fixture(scope="module")
def study() -> tacit.Study:
    return tacit.Study.parse(STUDY)


@pytest.fixture(scope="module")
def model(study: tacit.Study) -> tacit.PrivateNewton:
    fitted = tacit.PrivateNewton(epsilon=1.0).fit(federation(study))
    named_after(fitted, study)
    return fitted


def test_page_and_text_name_study_purpose_digest_date_version_bounds_and_parties(
    model: tacit.PrivateNewton, study: tacit.Study
) -> None:
    html = model.report.html()
    for text in (re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html)), " ".join(model.report.text().split())):
        for words in (
            "heart", "Which findings predict heart disease?", study.digest(), f"Tacit {tacit.__version__}",
            model.facts_.finished[:10], "east, west, mid", "20 to 90", "none, typical, atypical", "10 units more",
            "against none", "the odds of disease = yes against no", "Reference levels: pain = none, sex = F",
        ):  # fmt: skip
            assert words in text, words
    assert "<title>heart, learned by private-newton</title>" in html


def test_settings_are_those_that_took_effect(model: tacit.PrivateNewton) -> None:
    text = " ".join(model.report.text().split())
    assert "delta 1e-06 (left to the method)" in text
    assert "colluders 1 (left to the method)" in text
    assert re.search(r"rounds \d+ \(left to the method\)", text)
    assert not re.search(r"\bnone\b(?! \(|,|\.)", text[text.index("Settings") :])


def test_the_citation_names_software_method_study_and_day(model: tacit.PrivateNewton, study: tacit.Study) -> None:
    cited = " ".join(model.report.text().split()).partition("How to cite: ")[2]
    for words in (f"Tacit {tacit.__version__}", "PrivateNewton", "“heart”", study.digest()[:16]):
        assert words in cited
    assert cited.endswith(f"{model.facts_.finished[:10]}.")


def test_a_model_file_keeps_all_of_it(model: tacit.PrivateNewton, tmp_path: Path) -> None:
    model.save(tmp_path / "model.json")
    again = tacit.load(tmp_path / "model.json")
    assert again.report.html() == model.report.html()
    assert again.report.text() == model.report.text()


def test_per_scales_estimate_interval_and_odds_ratio_and_nothing_else(study: tacit.Study) -> None:
    """The model is the same to the last bit; its table speaks of ten years."""
    plain = tacit.Study.parse(STUDY.replace("per = 10\n", ""))
    ten, one = (tacit.Pooled(l2=1.0).fit(federation(s)) for s in (study, plain))
    np.testing.assert_array_equal(ten.coef_, one.coef_)
    new, old = (model.table().set_index("term").loc["age"] for model in (ten, one))
    for key in ("estimate", "std_err", "low", "high", "prediction"):
        assert new[key] == pytest.approx(10 * old[key])
    for key in ("odds_ratio", "odds_low", "odds_high"):
        assert new[key] == pytest.approx(old[key] ** 10)
    assert (new["z"], new["p"]) == (old["z"], old["p"])
    assert (new["per"], old["per"]) == (10, 1)
    assert "age (per 10)" in ten.summary()
    assert "age (per 10)" in ten.report._plots("x")["forest"]
    assert "per" not in one.summary().partition("====")[2]
    assert study.digest() != plain.digest()


def test_per_without_intervals_is_told_too(study: tacit.Study) -> None:
    fitted = tacit.Averaging(epsilon=5.0).fit(federation(study))
    row = fitted.table().set_index("term").loc["age"]
    assert row["estimate"] == pytest.approx(10 * fitted.coef_[0, 0] * 2 / 70)


@pytest.mark.parametrize("per", [0, -1, float("inf"), "ten"])
def test_per_is_a_number_above_0(per: object) -> None:
    with pytest.raises(SchemaError, match=r"feature 'age': per=.*(must be above 0|is not a finite number)"):
        tacit.Numeric("age", 20, 90, per=per)  # type: ignore[arg-type]


def test_the_study_file_reads_and_writes_per(study: tacit.Study) -> None:
    assert tacit.Study.parse(study.to_toml()) == study
    with pytest.raises(tacit.TacitError, match=r"per.*does not apply to a binary feature"):
        tacit.Study.parse(STUDY.replace('missing = "indicator"', "per = 10"))


def test_result_json_names_the_study(model: tacit.PrivateNewton, study: tacit.Study) -> None:
    told = result_of(model)
    assert (told["study"], told["digest"]) == ("heart", study.digest())
    assert told["effective_settings"]["colluders"] == 1  # type: ignore[index,call-overload]
    assert [test["feature"] for test in told["joint_tests"]] == ["pain", "sex"]  # type: ignore[union-attr,attr-defined]


def test_a_forest_plot_ranks_by_z_and_shows_the_tables_own_limits(model: tacit.PrivateNewton) -> None:
    described = re.search(r"<desc[^>]*>(.*?)</desc>", model.report._plots("x")["forest"])
    assert described is not None
    shown = [part.split(":")[0] for part in described[1].partition(". ")[2].split("; ")]
    rows = [row for row in model.facts_.coefficients if row.name != "(intercept)"]
    ranked = sorted(rows, key=lambda row: -1.0 if row.z is None else abs(row.z), reverse=True)
    assert shown == [row.shown_label for row in ranked]


def test_contents_lead_to_what_is_there(private_facts: RunFacts) -> None:
    for facts in (private_facts, replace(private_facts, headings={}, settings={}, coefficients=())):
        html = Report(replace(facts, study=StudyFacts(name="s", purpose="p", digest="0" * 64))).html()
        links = re.findall(r'<li><a href="#([^"]+)">', html)
        ids = re.findall(r'<h2 id="([^"]+)">', html)
        assert links == ids
        assert len(links) >= 5


def test_on_a_phone_every_cell_says_what_it_is(private_facts: RunFacts) -> None:
    """Rows are stacked there, and the line of column names is hidden."""
    html = Report(private_facts).html()
    cells = re.findall(r"<td ([^>]*)>", html)
    assert cells
    assert all('data-label="' in cell and 'role="cell"' in cell for cell in cells)


def test_every_colour_of_a_plot_has_one_for_dark_pages(
    private_facts: RunFacts, exact_facts: RunFacts, metrics: Metrics
) -> None:
    """Whatever is white, black, grey or dark in a plot has another colour on a dark page; bright ones stay."""
    entries = [ComparisonEntry("a", private_facts, metrics), ComparisonEntry("b", exact_facts, metrics)]
    pages = [Report(exact_facts, {"x": metrics}), Report(private_facts), ComparisonReport("c", entries)]
    html = "".join(page.html() for page in pages)
    dark = set(re.findall(r'style\*="((?:fill|stroke): #[0-9a-f]{6})"', html))
    plots = re.findall(r"<svg.*?</svg>", html, re.DOTALL)
    used = {colour for plot in plots for colour in re.findall(r"(?:fill|stroke): #[0-9a-f]{6}", plot)}
    bright = {f"{what}: {colour.lower()}" for what in ("fill", "stroke") for colour in (GREEN, PURPLE, ORANGE, SKY)}
    assert len(plots) == 6
    assert used - bright <= dark
