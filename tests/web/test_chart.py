"""Charts without styles, which the sites' policy would not run."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from tacit.report.metrics import evaluate
from tacit.report.plots import calibration_plot, forest_plot, picture, roc_plot
from tacit.report.row import CoefficientRow
from tacit.report.svg import SVG
from tacit.web.chart import chart
from tacit.web.site import STATIC


def drawn() -> str:
    def draw(figure):
        axes = figure.subplots()
        axes.plot([0, 1], [0, 1], color="#ff0000", linestyle="--")
        axes.set_xlabel("a <b>label</b>")

    return picture(draw, figure_id="f", title="A title", description="What it shows", height=2.0)


def test_every_style_becomes_attributes_of_the_same_meaning() -> None:
    before, after = ElementTree.fromstring(drawn()), ElementTree.fromstring(str(chart(drawn())))
    assert any("style" in each.attrib for each in before.iter())
    assert not any("style" in each.attrib for each in after.iter())
    line = [each for each in after.iter() if each.get("stroke") == "#ff0000"]
    assert line
    assert all(each.get("stroke-dasharray") for each in line)
    texts = list(after.iter(f"{{{SVG}}}text"))
    assert texts
    assert all(each.get("font-size") and each.get("font-family") for each in texts)


def test_texts_in_it_stay_texts() -> None:
    page = str(chart(drawn()))
    assert "<b>" not in page
    assert "A title" in page


def test_a_dark_page_has_its_own_colour_for_every_neutral_one_of_a_plot() -> None:
    """A white ground or black letters would stay so on a dark page."""
    rows = [CoefficientRow(name="age", estimate=0.4, low=0.1, high=0.7), CoefficientRow(name="ward", estimate=None)]
    figures = {"this model": evaluate([0, 1, 0, 1], [[0.8, 0.2], [0.3, 0.7], [0.4, 0.6], [0.1, 0.9]], ["no", "yes"])}
    drawings = (
        drawn(),
        forest_plot(rows, figure_id="f"),
        roc_plot(figures, figure_id="r"),
        calibration_plot(figures, figure_id="c"),
    )
    sheet = (STATIC / "site.css").read_text(encoding="utf-8")
    seen = {
        (name, colour)
        for drawing in drawings
        for element in ElementTree.fromstring(str(chart(drawing))).iter()
        for name in ("fill", "stroke")
        if re.fullmatch(r"#(..)\1\1", colour := element.get(name, ""))
    }
    assert {("fill", "#ffffff"), ("stroke", "#000000"), ("stroke", "#666666"), ("stroke", "#767676")} <= seen
    for name, colour in seen:
        assert f'.chart [{name}="{colour}"]' in sheet
    assert ".chart text:not([fill])" in sheet
