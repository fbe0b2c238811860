from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pytest

from tacit.report import INTERCEPT, CoefficientRow, Metrics, PartyFacts, RunFacts, evaluate
from tacit.report.plots import Bar, calibration_plot, comparison_plot, forest_plot, roc_plot, spending_plot

Plot = Callable[[str], str]


@pytest.fixture
def plots(exact_facts: RunFacts, private_facts: RunFacts, metrics: Metrics) -> dict[str, Plot]:
    bars = [Bar("pooled", metrics, False), Bar("private", metrics, True), Bar("unmeasured", None, True)]
    return {
        "forest": lambda name: forest_plot(exact_facts.coefficients, figure_id=name),
        "calibration": lambda name: calibration_plot({"held-out": metrics, "own": metrics}, figure_id=name),
        "roc": lambda name: roc_plot({"held-out": metrics}, figure_id=name),
        "spending": lambda name: spending_plot(private_facts.parties, figure_id=name),
        "comparison": lambda name: comparison_plot(bars, figure_id=name),
    }


KINDS = ["forest", "calibration", "roc", "spending", "comparison"]


def texts(svg: str) -> list[str]:
    root = ElementTree.fromstring(svg)
    return ["".join(element.itertext()) for element in root.iter("{http://www.w3.org/2000/svg}text")]


@pytest.mark.parametrize("kind", KINDS)
def test_a_plot_is_one_deterministic_accessible_element(plots: dict[str, Plot], kind: str) -> None:
    svg = plots[kind]("fig")
    assert svg == plots[kind]("fig")
    assert svg.startswith("<svg ")
    assert "<?xml" not in svg
    assert "<!DOCTYPE" not in svg
    assert "<metadata" not in svg
    assert "<style" not in svg
    root = ElementTree.fromstring(svg)
    assert root.get("role") == "img"
    assert root.get("viewBox")
    assert root[0].tag.endswith("title")
    assert root[1].tag.endswith("desc")
    assert root.get("aria-labelledby") == f"{root[0].get('id')} {root[1].get('id')}"


@pytest.mark.parametrize("kind", KINDS)
def test_ids_are_the_figures_own_and_every_reference_is_met(plots: dict[str, Plot], kind: str) -> None:
    root = ElementTree.fromstring(plots[kind]("fig"))
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    assert all(name is not None and name.startswith("fig-") for name in ids)
    values = [value for element in root.iter() for value in element.attrib.values()]
    wanted = {found for value in values for found in re.findall(r"url\(#([^)]+)\)", value)}
    links = [v for element in root.iter() for k, v in element.attrib.items() if k.endswith("href")]
    assert all(link.startswith("#") for link in links)
    wanted |= {link[1:] for link in links}
    assert wanted <= set(ids)


def test_the_callers_matplotlib_is_left_alone(exact_facts: RunFacts) -> None:
    with mpl.rc_context(
        {"font.size": 33.0, "svg.fonttype": "path", "axes.facecolor": "black", "xtick.labelsize": 30.0}
    ):
        before = dict(mpl.rcParams)
        svg = forest_plot(exact_facts.coefficients, figure_id="fig")
        assert dict(mpl.rcParams) == before
    assert svg == forest_plot(exact_facts.coefficients, figure_id="fig")


def test_the_forest_shows_the_largest_effects_and_no_intercept(row: Callable[..., CoefficientRow]) -> None:
    rows = [row(INTERCEPT, 9.0, 0.1), *(row(f"f{k}", 0.01 * k, 0.1) for k in range(40))]
    shown = texts(forest_plot(rows, figure_id="fig"))
    assert INTERCEPT not in shown
    assert [name for name in shown if re.fullmatch(r"f\d+", name)] == [f"f{k}" for k in range(39, 14, -1)]
    assert "Odds ratios: the 25 largest of 40, with 95 % intervals" in shown


@pytest.mark.parametrize("size", [1e-6, 0.3, 5.0, 60.0, 5000.0])
def test_effects_of_any_size_can_be_drawn(row: Callable[..., CoefficientRow], size: float) -> None:
    shown = texts(forest_plot([row("up", size), row("down", -size), row("wide", size, size)], figure_id="fig"))
    assert {"up", "down", "wide", "1"} <= set(shown)


def test_names_are_text_whatever_they_contain(row: Callable[..., CoefficientRow]) -> None:
    names = ["$x_1^$", "<script>alert(1)</script>", 'id="a" url(#b)', "年齢", "a\x00b", "עברית", "_leading"]
    svg = forest_plot([row(name, 1.0 + k) for k, name in enumerate(names)], figure_id="fig")
    assert "<script" not in svg
    shown = texts(svg)
    assert {"$x_1^$", "<script>alert(1)</script>", 'id="a" url(#b)', "年齢", "a\\x00b", "_leading"} <= set(shown)


def test_a_party_that_no_epsilon_bounds_is_marked() -> None:
    parties = [
        PartyFacts(name="north", n_records=1, epsilon=0.5, delta=0, bytes_sent=0, releases=1),
        PartyFacts(name="south", n_records=1, epsilon=math.inf, delta=0, bytes_sent=0, releases=1),
        PartyFacts(name="west", n_records=1, epsilon=0.0, delta=0, bytes_sent=0, releases=0),
    ]
    assert {"0.5", "NOT PRIVATE", "0"} <= set(texts(spending_plot(parties, figure_id="fig")))
    many = [replace(parties[0], name=f"p{k}", epsilon=0.01 * (k + 1)) for k in range(100)]
    assert "The 40 largest of 100 spendings" in texts(spending_plot(many, figure_id="fig"))


def test_there_is_no_curve_without_two_classes() -> None:
    one = evaluate(np.zeros(3, int), np.full((3, 2), 0.5), ("a", "b"))
    assert roc_plot({"x": one}, figure_id="fig") == ""


def test_the_comparison_names_every_measured_method(plots: dict[str, Plot]) -> None:
    shown = texts(plots["comparison"]("fig"))
    assert {"pooled", "private", "differentially private", "NOT PRIVATE", "commonest class alone"} <= set(shown)
    assert "unmeasured" not in shown
