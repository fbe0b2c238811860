from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from tacit.errors import SettingError
from tacit.report import CoefficientRow, ComparisonEntry, ComparisonReport, Metrics, Report, RunFacts
from tacit.report.document import Document

VOID = {"meta", "br", "link", "img", "input", "hr"}
EVIL = "<script>alert(1)</script>\"'&<img src=x onerror=y>"


class Page(HTMLParser):
    """Checks that every element is closed in order, and gathers ids, attributes and text."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.words: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        assert len({name for name, _ in attrs}) == len(attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    @property
    def ids(self) -> list[str | None]:
        return [value for name, value in self.attributes if name == "id"]


@pytest.fixture
def report(private_facts: RunFacts, metrics: Metrics) -> Report:
    return Report(private_facts, {"held-out records": metrics})


@pytest.fixture
def comparison(exact_facts: RunFacts, private_facts: RunFacts, metrics: Metrics) -> ComparisonReport:
    entries = [
        ComparisonEntry("pooled", exact_facts, metrics),
        ComparisonEntry("private", private_facts, metrics),
        ComparisonEntry("as printed", replace(private_facts, calibration="paper"), None),
    ]
    return ComparisonReport("Heart disease", entries)


@pytest.fixture(params=["report", "exact", "bare", "comparison"])
def document(
    request: pytest.FixtureRequest, report: Report, comparison: ComparisonReport, exact_facts: RunFacts
) -> Document:
    bare = replace(exact_facts, coefficients=(), headings={}, settings={}, fit=None, parties=(), notices=())
    return {"report": report, "exact": Report(exact_facts), "bare": Report(bare), "comparison": comparison}[
        request.param
    ]


def test_a_page_is_well_formed_with_ids_of_its_own(document: Document) -> None:
    page = Page(document.html())
    assert document.html().startswith("<!DOCTYPE html>")
    assert len(page.ids) == len(set(page.ids))


def test_a_page_loads_and_runs_nothing(document: Document) -> None:
    html = document.html()
    page = Page(html)
    assert not {"script", "link", "iframe", "object", "embed", "img", "base", "form"} & set(page.tags)
    for name, value in page.attributes:
        assert not name.startswith("on")
        if name in ("src", "href", "xlink:href", "action", "srcset", "data"):
            assert value is not None
            assert value.startswith("#")
    assert "@import" not in html
    assert set(re.findall(r"url\((.)", html)) <= {"#"}
    addresses = set(re.findall(r"https?://[^\s\"'<>]+", html))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}  # names, never loaded


def test_the_same_facts_give_the_same_bytes(document: Document) -> None:
    assert document.html() == document.html()
    assert document.text() == document.text()
    assert document.json() == document.json()


def test_the_order_of_the_page(report: Report) -> None:
    html = report.html()
    text = Page(html[: html.index('<nav class="contents"')] + html[html.index("</nav>") + len("</nav>") :]).text
    order = [
        "disease, learned by private-newton",
        "A model that predicts disease (no or yes) was learned by private-newton from 2 parties with 597 records",
        "Promised. An attacker who knows everything but one record",
        "commonest class: ",
        "Coefficients",
        "chest_pain=none",
        "How good it is",
        "This study",
        "What was spent, by whom",
        "What travelled",
        "Who saw what",
        "Settings",
        "How to cite",
    ]
    places = [text.find(words) for words in order]
    assert -1 not in places
    assert places == sorted(places)
    assert "NOT PRIVATE" not in text


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"guarantee": None}, "no epsilon bounds what the result tells about a single record"),
        ({"calibration": "paper"}, "the noise is as the paper prints it"),
        ({"seeded": True}, "a seeded generator drew the noise"),
    ],
)
def test_what_is_not_private_says_so_in_red_and_promises_nothing(
    private_facts: RunFacts, change: dict[str, object], why: str
) -> None:
    report = Report(replace(private_facts, **change))  # type: ignore[arg-type]
    text = Page(report.html()).text
    assert f"NOT PRIVATE : {why}" in text
    assert 'class="banner" role="alert"' in report.html()
    assert "Promised." not in text
    assert "An attacker who knows" not in text
    assert report.as_dict()["private"] is False


def test_names_are_text_whatever_they_contain(
    private_facts: RunFacts, metrics: Metrics, row: Callable[..., CoefficientRow]
) -> None:
    facts = replace(
        private_facts,
        method=EVIL,
        method_name=EVIL,
        target=EVIL,
        classes=(EVIL, "b", EVIL),
        settings={EVIL: EVIL},
        headings={"Trust": EVIL, "Paper": EVIL},
        parties=tuple(replace(party, name=EVIL + party.name) for party in private_facts.parties),
        coefficients=(row(EVIL, 1.0, 0.5, EVIL), row("b", 1.0, 0.5, "c")),
        notices=(EVIL,),
    )
    for document in (
        Report(facts, {EVIL: metrics}),
        ComparisonReport(EVIL, [ComparisonEntry(EVIL, facts, metrics), ComparisonEntry("b", facts)]),
    ):
        for html in (document.html(), document._repr_html_()):
            page = Page(html)
            assert "script" not in page.tags
            assert "img" not in page.tags
            assert not any(name.startswith("on") for name, _ in page.attributes)
            assert "<script>alert(1)</script>" in page.text


def test_a_notebook_gets_a_fragment_that_styles_only_itself(document: Document) -> None:
    html = document._repr_html_()
    page = Page(html)
    assert not {"html", "head", "body"} & set(page.tags)
    rules = re.findall(
        r"(?:^|[{}])\s*([^{}@]+)\s*\{", re.sub(r"@media[^{]*\{", "", html[: html.index("</style>")]), re.M
    )
    assert len(rules) > 20
    assert all(part.strip().startswith(".tacit") for rule in rules for part in rule.replace("<style>", "").split(","))


def test_two_reports_on_one_page_share_no_id(report: Report, private_facts: RunFacts) -> None:
    other = Report(replace(private_facts, seconds=9.0))
    assert not set(Page(report.html()).ids) & set(Page(other.html()).ids)


def test_a_long_table_is_cut_and_says_so(private_facts: RunFacts, row: Callable[..., CoefficientRow]) -> None:
    facts = replace(private_facts, coefficients=tuple(row(f"f{k}", 0.001 * k) for k in range(500)))
    text = Page(Report(facts).html()).text
    assert "The 200 largest of 500 coefficients; all are in the JSON report." in text
    assert "f499" in text
    assert "f299 " not in text
    assert len(Report(facts).as_dict()["facts"]["coefficients"]) == 500  # type: ignore[index,call-overload,arg-type]


def test_json_is_strict_and_holds_no_raw_arrays(exact_facts: RunFacts, metrics: Metrics) -> None:
    settings = {"start": np.arange(3.0), "model": object(), "l2": np.float64(0.5), "top": math.inf, "names": ("a", "b")}
    report = Report(replace(exact_facts, settings=settings), {"held-out": metrics})
    read = json.loads(report.json(), parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert read["facts"]["settings"] == {
        "start": "<array of shape (3,)>",
        "model": "<object>",
        "l2": 0.5,
        "top": None,
        "names": ["a", "b"],
    }
    assert read["facts"]["parties"][0]["epsilon"] is None
    assert read["why_not_private"]
    assert read["metrics"]["held-out"]["accuracy"] == pytest.approx(metrics.accuracy)
    assert "top" in report.text()
    assert "<array of shape (3,)>" in report.text()


def test_the_suffix_says_what_is_saved(report: Report, tmp_path: Path) -> None:
    assert report.save(tmp_path / "a.html").read_text(encoding="utf-8") == report.html()
    assert report.save(str(tmp_path / "a.txt")).read_text(encoding="utf-8") == report.text()
    assert report.save(tmp_path / "a.JSON").read_text(encoding="utf-8") == report.json()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.JSON", "a.html", "a.txt"]


@pytest.mark.parametrize("name", ["a.pdf", "a", ".html"])
def test_another_suffix_is_refused(report: Report, tmp_path: Path, name: str) -> None:
    with pytest.raises(SettingError, match=r"none of \.html, \.txt, \.json"):
        report.save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_leaves_what_was_there(report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.txt"
    path.write_text("before")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tacit.storage.os.fsync", full)
    with pytest.raises(SettingError, match=r"a\.txt' cannot be written \(No space left on device\)"):
        report.save(path)
    assert path.read_text() == "before"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.txt"]


def test_a_folder_that_is_not_there_is_named(report: Report, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="cannot be written \\(No such file or directory\\)"):
        report.save(tmp_path / "none" / "a.html")


def test_the_comparison_shows_each_methods_standing(comparison: ComparisonReport) -> None:
    page = Page(comparison.html())
    assert "3 ways to learn the same thing; 1 of them promises differential privacy." in page.text
    assert "The most accurate private one is private" in page.text
    assert page.text.count("What was spent, by whom") == 3
    assert comparison.html().count('class="banner"') == 2
    assert comparison.html().count('class="promise"') == 1
    assert page.text.count("Who saw what") == 3
    rows = [" ".join(line.split()) for line in comparison.text().splitlines()]
    assert any(re.fullmatch(r"pooled .* NOT PRIVATE 9 45\.0 KiB 1\.5 s", row) for row in rows)
    assert any(re.fullmatch(r"private .* 1 1e-06 record 9 45\.0 KiB 1\.5 s", row) for row in rows)
    assert any(re.fullmatch(r"as printed NOT PRIVATE 9 45\.0 KiB 1\.5 s", row) for row in rows)


def test_a_comparison_without_figures_has_no_plot(private_facts: RunFacts) -> None:
    page = Page(ComparisonReport("x", [ComparisonEntry("a", private_facts)]).html())
    assert "svg" not in page.tags


def test_a_comparison_of_nothing_is_refused() -> None:
    with pytest.raises(SettingError, match="the comparison 'x' has no entries"):
        ComparisonReport("x", [])


def test_a_repr_tells_nothing_that_was_found(report: Report, comparison: ComparisonReport) -> None:
    assert repr(report) == "<Report of private-newton, 2 parties>"
    assert repr(comparison) == "<ComparisonReport of 3 methods>"
