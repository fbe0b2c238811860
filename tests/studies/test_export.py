"""Exported models: what ONNX Runtime predicts is what `predict` does, and the table is the model's own."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest

import tacit
from tacit.cli.main import main
from tacit.data.feature import Binary, Categorical, Feature, Numeric, Target
from tacit.data.schema import Schema
from tacit.data.table import Table
from tacit.errors import SettingError
from tacit.federation.federation import Federation
from tacit.federation.policy import Policy
from tacit.methods import Method
from tacit.studies.export import export_csv, export_onnx

TARGETS = {2: ("no", "yes"), 3: ("low", "middle", "high")}


def features(missing: bool) -> tuple[Feature, ...]:
    return (
        Numeric("age", 20, 90, missing="indicator" if missing else "error"),
        Numeric("dose", 0, 1, missing_value=0.2) if missing else Numeric("dose", 0, 1),
        Binary("treated", ("no", "yes"), missing="middle" if missing else "error"),
        Binary("smoker", ("0", "1"), missing="indicator" if missing else "error"),
        Categorical("site", ("=a", "b", "c"), missing="indicator" if missing else "error", unknown="bucket"),
        Categorical("grade", ("1", "2", "3"), missing="middle" if missing else "error"),
    )


def frame(n: int, n_classes: int, *, gaps: bool) -> pd.DataFrame:
    chance = np.random.default_rng(7)
    table = pd.DataFrame(
        {
            "age": chance.uniform(0, 110, n),  # beyond the bounds, too
            "dose": chance.uniform(0, 1, n),
            "treated": chance.choice(["no", "yes", "Yes", "0", "True", "NO"], n),
            "smoker": chance.choice(["0", "1", "1.0"], n),
            "site": chance.choice(["=a", "b", "c", "elsewhere"], n),
            "grade": chance.choice(["1", "2", "3.0"], n),
        }
    )
    scores = 0.06 * (table["age"] - 55) + chance.normal(size=n)
    table["outcome"] = pd.qcut(scores, n_classes, labels=TARGETS[n_classes]).astype(str)
    if gaps:
        for name in table.columns[:-1]:
            table.loc[chance.uniform(size=n) < 0.2, name] = np.nan if name in ("age", "dose") else ""
    return table


def fitted(
    *, n_classes: int = 2, coding: str = "reference", missing: bool = False, bound: float | None = 1.2
) -> Method:
    schema = Schema(
        features=features(missing),
        target=Target("outcome", TARGETS[n_classes]),
        norm_bound=bound,
        coding=coding,  # type: ignore[arg-type]
    )
    tables = {"all": Table.from_frame(frame(300, n_classes, gaps=missing), schema)}
    return tacit.Pooled(l2=1.0).fit(Federation.from_tables(tables, policy=Policy(not_private=["pooled"])))


def run(model: bytes, table: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    session = onnxruntime.InferenceSession(model)
    inputs = {
        item.name: table[[item.name]].to_numpy(dtype=np.float64 if item.type == "tensor(double)" else object)
        for item in session.get_inputs()
    }
    label, probabilities = session.run(["label", "probabilities"], inputs)
    return label, probabilities


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"n_classes": 3},
        {"coding": "full", "bound": None},
        {"missing": True},
        {"missing": True, "n_classes": 3, "coding": "full"},
    ],
    ids=str,
)
def test_the_graph_predicts_as_the_model_does(settings: dict[str, object]) -> None:
    model = fitted(**settings)  # type: ignore[arg-type]
    made = export_onnx(model)
    onnx.checker.check_model(onnx.load_from_string(made), full_check=True)
    rows = frame(200, len(model.classes_), gaps=bool(settings.get("missing")))
    label, probabilities = run(made, rows)
    assert np.allclose(probabilities, model.predict_proba(rows), atol=1e-12)
    assert label.tolist() == model.predict(rows).tolist()
    assert probabilities.std() > 0.05  # it predicts something


def test_what_predict_refuses_has_no_probability() -> None:
    model = fitted()
    rows = frame(5, 2, gaps=False)
    rows.loc[0, "age"] = np.nan
    rows.loc[1, "grade"] = "9"
    rows.loc[2, "treated"] = ""
    rows.loc[3, "dose"] = np.inf
    label, probabilities = run(export_onnx(model), rows)
    assert np.isnan(probabilities[:4]).all()
    assert label.tolist()[:4] == [""] * 4
    assert np.isfinite(probabilities[4]).all()
    for k in range(4):
        with pytest.raises(tacit.TacitError, match="X"):
            model.predict(rows.iloc[[k]])


def test_the_promise_stands_in_the_file() -> None:
    told = {entry.key: entry.value for entry in onnx.load_from_string(export_onnx(fitted())).metadata_props}
    assert told["method"] == "pooled"
    assert "epsilon" not in told  # pooled promises none


def test_the_csv_is_the_regression_table() -> None:
    model = fitted()
    rows = list(csv.DictReader(io.StringIO(export_csv(model).decode())))
    table = model.table()
    assert [float(row["estimate"]) for row in rows] == table["estimate"].tolist()
    assert [float(row["odds_ratio"]) for row in rows] == table["odds_ratio"].tolist()
    assert {"std_err", "z", "p", "low", "high"} <= set(rows[0])
    assert rows[0]["term"] == "(intercept)"


def test_a_spreadsheet_finds_no_formula() -> None:
    schema = Schema(features=(Numeric("=1+1", 0, 1),), target=Target("y", ("0", "1")))
    table = pd.DataFrame({"=1+1": [0.1, 0.9, 0.4, 0.6], "y": ["0", "1", "1", "0"]})
    parties = Federation.from_tables({"all": Table.from_frame(table, schema)}, policy=Policy.disclosing_everything())
    text = export_csv(tacit.Pooled(l2=1.0).fit(parties)).decode()
    assert "\n'=1+1," in text


def test_the_command_writes_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = fitted()
    model.save(tmp_path / "model.json")
    for to, made in (("onnx", export_onnx(model)), ("csv", export_csv(model))):
        with pytest.raises(SystemExit) as ended:
            main(["export", str(tmp_path / "model.json"), "--to", to, "-o", str(tmp_path / f"m.{to}")])
        assert ended.value.code == 0
        assert (tmp_path / f"m.{to}").read_bytes() == made
    with pytest.raises(SystemExit):
        main(["export", str(tmp_path / "model.json"), "--to", "pickle", "-o", str(tmp_path / "m")])
    assert "choose one of onnx, csv" in capsys.readouterr().err


def test_a_model_that_is_not_linear_is_refused() -> None:
    class Crooked(tacit.Pooled):
        def decision_function(self, X: object) -> np.ndarray:
            return np.zeros(1)

    model = fitted()
    model.__class__ = Crooked
    with pytest.raises(SettingError, match="is not linear"):
        export_onnx(model)
