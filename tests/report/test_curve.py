"""Pictures against epsilon, and of audits."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from tacit.report.curve import WIDENING, CurvePoint, audit_plot, curve_plot


def test_curves_are_one_svg_with_a_description_and_readable_ticks() -> None:
    curves = {"a <b>": [CurvePoint(0.1, 0.3, 0.01), CurvePoint(1.0, 0.2, 0.01)], "c": [CurvePoint(0.1, 0.4, 0.0)]}
    svg = curve_plot(curves, quantity="test error", lines={"plain fit": 0.1}, figure_id="x")
    ElementTree.fromstring(svg)
    assert "a &lt;b&gt;: 0.3 at 0.1" in svg
    assert "mathdefault" not in svg
    assert svg == curve_plot(curves, quantity="test error", lines={"plain fit": 0.1}, figure_id="x")


@pytest.mark.parametrize(
    ("highest", "marks"), [(1.4, {"1", "2"}), (40.0, {"1", "2", "5", "10", "20"}), (1e7, {"1", "1e+06"})]
)
def test_widths_have_a_logarithmic_axis_with_readable_marks(highest: float, marks: set[str]) -> None:
    curves = {"age": [CurvePoint(0.1, highest, 0.0), CurvePoint(1.0, 1.1, 0.0)]}
    svg = curve_plot(curves, quantity=WIDENING, lines={"exact fit": 1.0}, figure_id="x")
    texts = {"".join(e.itertext()) for e in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")}
    assert marks <= texts


def test_an_audit_shows_bounds_beside_claims() -> None:
    svg = audit_plot([("as it is", 0.7, 1.0), ("half the noise", 1.5, 1.0)], figure_id="y")
    ElementTree.fromstring(svg)
    assert "half the noise: at least 1.50, claimed 1" in svg
