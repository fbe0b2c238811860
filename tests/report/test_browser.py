"""A report in a real browser: on a desk, on a phone, in the dark and on paper nothing is cut and nothing glares.

Pictures go to the folder that TACIT_PICTURES names; without it they are thrown away.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tacit.report import ComparisonEntry, ComparisonReport, Metrics, Report, RunFacts
from tacit.report.identity import StudyFacts
from tests.web.browser import Browser, chromium_browser

SIZES = {"1280": (1280, 900), "400": (400, 800)}
PLACES = ".tacit, .tacit .scroll, .tacit td, .tacit dd, .tacit .cards li, .tacit .figure"
CUT = f"""() => [...document.querySelectorAll('{PLACES}')]
    .filter(e => e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0).map(e => e.textContent.slice(0, 80))"""
GLARING = """() => [...document.querySelectorAll('.tacit, .tacit *')].filter(e => {
    const style = getComputedStyle(e);
    return [style.backgroundColor, style.fill].includes('rgb(255, 255, 255)') && e.getClientRects().length
        && !(style.backgroundColor !== 'rgb(255, 255, 255)' && e.tagName !== 'path' && e.tagName !== 'rect');
  }).map(e => e.outerHTML.slice(0, 120))"""
DARK_INK = """() => [...document.querySelectorAll('.tacit text, .tacit td, .tacit p')]
    .filter(e => getComputedStyle(e)[e.tagName === 'text' ? 'fill' : 'color'] === 'rgb(0, 0, 0)')
    .map(e => e.textContent)"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium_browser() as found:
        yield found


@pytest.fixture(params=["private", "exact", "comparison"])
def page(
    request: pytest.FixtureRequest,
    browser: Browser,
    tmp_path: Path,
    private_facts: RunFacts,
    exact_facts: RunFacts,
    metrics: Metrics,
) -> Iterator[Any]:
    study = StudyFacts(name="heart", purpose="Which findings predict heart disease?", digest="0123456789abcdef" * 4)
    long = tuple(replace(row, name=row.name + "_with_a_long_name") for row in exact_facts.coefficients)
    measured = {"held-out records": metrics}
    entries = [ComparisonEntry("pooled", exact_facts, metrics), ComparisonEntry("private", private_facts, metrics)]
    made = {
        "private": Report(replace(private_facts, study=study), measured),
        "exact": Report(replace(exact_facts, study=study, coefficients=(*exact_facts.coefficients, *long)), measured),
        "comparison": ComparisonReport("Heart disease", entries),
    }[request.param]
    opened = browser.page()
    opened.goto(made.save(tmp_path / f"{request.param}.html").as_uri())
    opened.name = request.param
    yield opened
    browser.close_pages()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_nothing_is_cut_and_nothing_glares(page: Any, size: str, scheme: str) -> None:
    width, height = SIZES[size]
    page.set_viewport_size({"width": width, "height": height})
    page.emulate_media(color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(CUT) == []
    if scheme == "dark":
        assert page.evaluate(GLARING) == []
        assert page.evaluate(DARK_INK) == []
    folder = os.environ.get("TACIT_PICTURES")
    page.screenshot(path=Path(folder) / f"report-{page.name}-{size}-{scheme}.png" if folder else None, full_page=True)
    assert page.problems == []


def test_a_screen_reader_finds_its_way(page: Any) -> None:
    from axe_playwright_python.sync_playwright import Axe

    for width in (1280, 400):
        page.set_viewport_size({"width": width, "height": 900})
        found = Axe().run(page).response["violations"]
        assert [f"{each['id']}: {each['help']}" for each in found if each["impact"] in ("serious", "critical")] == []


def test_on_paper_nothing_is_cut_and_what_is_folded_is_open(page: Any, tmp_path: Path) -> None:
    """A4 less its margins is 703 pixels wide; who reads in the dark prints on white all the same."""
    page.set_viewport_size({"width": 703, "height": 1000})
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate(CUT) == []
    assert page.evaluate("getComputedStyle(document.querySelector('.tacit')).backgroundColor") == "rgb(255, 255, 255)"
    hidden = "[...document.querySelectorAll('details')].filter(e => e.getBoundingClientRect().height < 60).length"
    assert page.evaluate(hidden) == 0
    folder = os.environ.get("TACIT_PICTURES")
    page.pdf(path=(Path(folder) if folder else tmp_path) / f"report-{page.name}.pdf", format="A4")
