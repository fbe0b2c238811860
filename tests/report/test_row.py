"""One estimator a row, and everything that shows it shows the same numbers."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes

import tacit
from tacit.data.feature import Numeric, Target
from tacit.data.schema import Schema
from tacit.errors import DataError, SettingError
from tacit.federation.channel import Channel
from tacit.methods.baseline.pooled import Pooled
from tacit.methods.method import Learned, Method
from tacit.models.inference import Inference, wald
from tacit.report import Report, RunFacts
from tacit.report.coefficient import coefficient_rows
from tacit.report.number import number, p_value
from tacit.report.plots import forest_plot
from tacit.report.row import CoefficientRow, row_from_dict
from tacit.report.text import banner_lines
from tacit.studies.result import result_of

NUMBERS = ("estimate", "std_err", "z", "p", "low", "high", "odds_ratio", "odds_low", "odds_high")


def inference(estimate: list[float], error: list[float]) -> Inference:
    sizes = {"n_parameters": len(error), "log_likelihood": math.nan, "n_records": 100}
    finite = np.where(np.isfinite(error), error, 1.0)
    told = wald(np.array(estimate), np.diag(finite**2), **sizes)  # type: ignore[arg-type]
    lost = ~np.isfinite(error)
    for key, value in {"standard_error": math.inf, "z": 0.0, "p": 1.0, "low": -math.inf, "high": math.inf}.items():
        getattr(told, key)[lost] = value
    return told


class Shrunken(Pooled):
    """The exact fit, told by another estimator than the one that predicts; `told` has the inference."""

    told: Inference

    def _learn(self, channel: Channel, plan: Any) -> Learned:
        learned = super()._learn(channel, plan)
        assert learned.coef is not None
        told = "Little can be told."
        return Learned(coef=learned.coef / 2, intercept=learned.intercept, inference=self.told, verdict=told)


@pytest.fixture(scope="module")
def model() -> Method:
    """Estimates that differ from the model's coefficients, one of which is lost to noise."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300, 4)), columns=["age", "dose", "lost", "gone"])
    y = (rng.random(300) < 1 / (1 + np.exp(-X["age"]))).astype(int)
    made = Shrunken(l2=1.0)
    made.told = inference([0.9, -0.4, 0.0, math.nan, 0.1], [0.2, 0.15, math.inf, math.inf, 0.05])
    return made.fit(tacit.Federation.split(X, y, n_parties=3))


def cells(text: str) -> dict[str, list[str]]:
    """The rows of the summary's table, by their term."""
    found = {}
    for line in text.splitlines():
        term, *rest = re.split(r"\s{2,}", line.strip())
        if term in ("(intercept)", "age", "dose", "lost", "gone"):
            found[term] = rest
    return found


def written(row: Mapping[str, Any]) -> list[str]:
    """How a row of `table()` is written."""
    if not row["identified"]:
        return ["not identified", *"-" * 8, number(row["prediction"])]
    told = [p_value(row[key]) if key == "p" else number(row[key]) for key in NUMBERS]
    return [*told, "-" if row["prediction"] == row["estimate"] else number(row["prediction"])]


def _told(page: list[tuple[str, str]], expected: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """The cells of the page's rows, by their term; of the first table that has it."""
    found: dict[str, list[str]] = {}
    for term, rest in page:
        if term in expected:
            found.setdefault(term, [unescape(cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", rest)])
    return found


def test_table_summary_page_plot_and_both_jsons_show_the_same_numbers(model: Method, tmp_path: Path) -> None:
    table = model.table().set_index("term")
    told = inference([0.1, 0.9, -0.4], [0.05, 0.2, 0.15])
    for key, field in zip(NUMBERS[:6], ("estimate", "standard_error", "z", "p", "low", "high"), strict=True):
        np.testing.assert_array_equal(table.loc[["(intercept)", "age", "dose"], key], getattr(told, field))
    np.testing.assert_allclose(table.loc[["age", "dose"], "prediction"], model.coef_[0, :2])
    assert table["identified"].tolist() == [True, True, True, False, False]

    expected = {term: written(row) for term, row in table.to_dict("index").items()}
    assert cells(model.summary()) == expected
    page = re.findall(r"<tr role=\"row\"><td[^>]* class=\"word\">(.*?)</td>(.*?)</tr>", model.report.html())
    assert _told(page, expected) == expected

    as_json = json.loads(json.dumps(result_of(model)))
    assert as_json["table"] == json.loads(model.report.json())["facts"]["coefficients"]
    for row in as_json["table"]:
        for key in (*NUMBERS, "prediction", "identified"):
            value = table.loc[row["term"], key]
            assert row[key] == (None if pd.isna(value) else value), key
        assert as_json["coefficients"][row["term"]] == row["estimate"]
        assert as_json["standard_errors"][row["term"]] == row["std_err"]

    description = ElementTree.fromstring(model.report._plots("x")["forest"])[1].text
    assert description is not None
    for term in ("age", "dose"):
        odds, low, high = (number(table.loc[term, key]) for key in ("odds_ratio", "odds_low", "odds_high"))
        assert f"{term}: {odds} ({low} to {high})" in description
    assert "lost: not identified" in description

    model.save(tmp_path / "model.json")
    pd.testing.assert_frame_equal(tacit.load(tmp_path / "model.json").table(), model.table())


def test_what_the_method_says_of_its_model_is_the_first_line(model: Method, tmp_path: Path) -> None:
    model.save(tmp_path / "model.json")
    for one in (model, tacit.load(tmp_path / "model.json")):
        for text in (one.summary(), one.report.text()):
            assert text.splitlines()[:2] == [*banner_lines(model.facts_, 200), "Little can be told."]
        assert result_of(one)["verdict"] == ["Little can be told."]


def test_intervals_by_name_and_unbounded_where_nothing_is_known(model: Method) -> None:
    ends = model.conf_int()
    assert ends.loc["age"].tolist() == pytest.approx([0.9 - 1.959964 * 0.2, 0.9 + 1.959964 * 0.2])
    assert ends.loc["lost"].tolist() == [-math.inf, math.inf]


def test_the_forest_draws_the_rows_own_interval_and_no_point_for_what_is_not_identified(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn: list[list[float]] = []
    plot = Axes.plot

    def spy(axes: Axes, x: list[float], *rest: Any, **style: Any) -> Any:
        drawn.append(list(x))
        return plot(axes, x, *rest, **style)

    monkeypatch.setattr(Axes, "plot", spy)
    rows = [
        CoefficientRow(name="a", estimate=0.1, standard_error=1.0, z=0.1, p=0.9, low=0.0, high=3.0),
        CoefficientRow(name="b", estimate=None, prediction=0.7),
    ]
    assert "not identified at this epsilon" in forest_plot(rows, figure_id="x")
    assert drawn == [[0.0, 3.0], [0.1]]


def test_without_an_inference_a_row_has_the_models_own_coefficient_and_nothing_else() -> None:
    schema = Schema((Numeric("age", 0, 10),), Target("y", ("no", "yes")))
    constant, age = coefficient_rows(np.array([[2.0]]), np.array([1.0]), schema, None)
    assert (age.estimate, constant.estimate) == pytest.approx((0.4, -1.0))  # ten years are two units
    assert (age.standard_error, age.z, age.p, age.low, age.high, age.prediction) == (None,) * 6
    assert coefficient_rows(None, None, schema, None) == ()


@pytest.mark.parametrize(("estimate", "error"), [(0.0, math.inf), (math.nan, math.inf), (0.5, math.nan)])
def test_what_has_no_finite_standard_error_is_not_identified(estimate: float, error: float) -> None:
    schema = Schema((Numeric("age", -1, 1),), Target("y", ("no", "yes")))
    _, age = coefficient_rows(np.array([[0.3]]), np.array([1.0]), schema, inference([estimate, 1.0], [error, 1.0]))
    assert not age.identified
    assert (age.estimate, age.z, age.p, age.low, age.odds_ratio, age.odds_high) == (None,) * 6
    assert age.prediction == 0.3


def test_an_estimate_that_differs_by_rounding_alone_is_the_models_own() -> None:
    schema = Schema((Numeric("age", -1, 1),), Target("y", ("no", "yes")))
    for shift, told in ((1e-9, None), (1e-3, 0.301)):
        coef = np.array([[0.3 + shift]])
        rows = coefficient_rows(coef, np.array([1.0]), schema, inference([0.3, 1.0], [0.1, 0.1]))
        assert rows[1].prediction == (told if told is None else pytest.approx(told))


@pytest.mark.parametrize(
    ("numbers", "match"),
    [
        ({"estimate": 2.0, "low": 0.0, "high": 1.0}, "the estimate of 'a' lies outside its own interval"),
        ({"estimate": -1.0, "low": 0.0, "high": 1.0}, "lies outside its own interval"),
        ({"estimate": None, "z": 0.0}, "the row of 'a' has no estimate"),
        ({"estimate": 1.0, "standard_error": math.inf}, "holds inf"),
    ],
)
def test_numbers_that_do_not_belong_together_are_refused(numbers: dict[str, Any], match: str) -> None:
    with pytest.raises(SettingError, match=match):
        CoefficientRow(name="a", **numbers)


def test_a_row_of_the_older_format_is_taken_apart() -> None:
    old = {"name": "age", "value": 0.2, "odds_ratio": math.exp(0.2), "class_name": None}
    told = {"standard_error": 0.1, "z": 5.0, "p": 1e-6, "odds_low": math.exp(0.3), "odds_high": math.exp(0.7)}
    row = row_from_dict(old | told)
    assert (row.estimate, row.low, row.high) == pytest.approx((0.5, 0.3, 0.7))
    assert (row.standard_error, row.z, row.prediction) == (0.1, 5.0, 0.2)
    plain = row_from_dict(old | dict.fromkeys(told))
    assert (plain.estimate, plain.standard_error, plain.prediction) == (0.2, None, None)
    assert not row_from_dict(old | told | {"standard_error": math.inf}).identified


def test_a_model_file_of_version_1_is_read(model: Method, tmp_path: Path) -> None:
    model.save(tmp_path / "model.json")
    document = json.loads((tmp_path / "model.json").read_text())
    assert document["version"] == 3
    document["version"] = 1
    for row, new in zip(document["facts"]["coefficients"], model.facts_.coefficients, strict=True):
        row["value"] = new.prediction if new.prediction is not None else new.estimate
        row |= {"odds_low": new.odds_low or 0.0, "odds_high": new.odds_high or "inf"}
        row["standard_error"] = "inf" if row["standard_error"] is None else row["standard_error"]
        for key in ("estimate", "low", "high", "prediction", "per"):
            del row[key]
    for key in ("verdict", "effective", "columns", "joint", "study", "finished", "version"):
        del document["facts"][key]
    (tmp_path / "old.json").write_text(json.dumps(document))
    pd.testing.assert_frame_equal(tacit.load(tmp_path / "old.json").table(), model.table())
    document["version"] = 4
    (tmp_path / "new.json").write_text(json.dumps(document))
    with pytest.raises(DataError, match="format version 4; this release reads versions 1 to 3"):
        tacit.load(tmp_path / "new.json")


def test_several_classes_have_a_column_in_the_table() -> None:
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(200, 2)), rng.integers(0, 3, 200)
    table = Pooled(l2=1.0).fit(tacit.Federation.split(X, y, n_parties=2)).table()
    assert table.columns[:3].tolist() == ["term", "class", "estimate"]
    assert table["class"].tolist() == ["0"] * 3 + ["1"] * 3 + ["2"] * 3
    assert ((table["low"] <= table["estimate"]) & (table["estimate"] <= table["high"])).all()
    np.testing.assert_allclose(table["prediction"], table["estimate"])


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_every_printed_estimate_lies_inside_its_own_interval(epsilon: float) -> None:
    rng = np.random.default_rng(2)
    X = rng.uniform(-1, 1, size=(2000, 5)) * [1, 0.5, 0.1, 0.03, 0.01]
    y = (rng.random(2000) < 1 / (1 + np.exp(-2 * X[:, 0]))).astype(int)
    parties = tacit.Federation.split(X, y, n_parties=3, norm_bound=2.0)
    printed = cells_of(tacit.PrivateNewton(epsilon=epsilon).fit(parties).summary())
    for coef, *_, low, high, odds, odds_low, odds_high in printed:
        assert low <= coef <= high
        assert odds_low <= odds <= odds_high


def cells_of(text: str) -> list[list[float]]:
    """Every identified row: coef, std err, z, low, high, odds ratio, odds low, odds high."""
    rows = [re.split(r"\s{2,}", line.strip()) for line in text.splitlines()]
    found = [row[1:4] + row[5:10] for row in rows if re.fullmatch(r"x\d|\(intercept\)", row[0])]
    return [[float(cell.replace(",", "")) for cell in row] for row in found if row[0] != "not identified"]


def test_a_model_of_which_nothing_is_known_is_shown_without_a_number(private_facts: RunFacts) -> None:
    rows = tuple(CoefficientRow(name=row.name, estimate=None, prediction=0.0) for row in private_facts.coefficients)
    report = Report(replace(private_facts, coefficients=rows))
    assert report.text().count("not identified") == len(rows)
    assert "noise hides the coefficient" in " ".join(report.text().split())
    assert "No standard errors" not in report.text()
    assert report.html().count("not identified at this epsilon") == len(rows) - 1  # the intercept is not drawn
