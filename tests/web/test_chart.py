"""Charts without styles, which the sites' policy would not run."""

from __future__ import annotations

from xml.etree import ElementTree

from tacit.report.plots import picture
from tacit.report.svg import SVG
from tacit.web.chart import chart


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
