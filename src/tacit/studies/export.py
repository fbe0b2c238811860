"""A fitted model for other programs: an ONNX file that predicts, or the coefficients as a table."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tacit.errors import SettingError
from tacit.methods import Method
from tacit.models.onnx_graph import linear_graph
from tacit.storage import write_whole

_CSV_COLUMNS = (
    "term", "class", "estimate", "std_err", "z", "p", "low", "high", "odds_ratio", "odds_low", "odds_high",
    "identified", "prediction",
)  # fmt: skip


def export_onnx(model: Method) -> bytes:
    """The model as an ONNX file that takes records in the columns' own units (`models/onnx_graph.py`).

    Raises:
        SettingError: if the model is not linear.
    """
    if getattr(model, "coef_", None) is None or _overrides_scores(model):
        raise SettingError(f"{model.name} learns a model that is not linear; of it there is no ONNX file yet")
    facts = model.facts_
    told = {"method": facts.method_name, "promise": facts.promise, "target": facts.target}
    if facts.guarantee is not None and facts.is_private and math.isfinite(facts.guarantee.epsilon):
        told |= {"epsilon": f"{facts.guarantee.epsilon!r}", "delta": f"{facts.guarantee.delta!r}"}
    return linear_graph(model.schema_, [str(name) for name in model.classes_], model.coef_, model.intercept_, told)


def export_csv(model: Method) -> bytes:
    """The regression table in original units: one line a coefficient, empty where nothing is known.

    A text that a spreadsheet would take for a formula has an apostrophe before it.
    """
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, _CSV_COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in model.facts_.coefficients:
        values = row.as_dict()
        for key in ("term", "class"):
            values[key] = _no_formula(values[key])
        writer.writerow({key: _cell(values[key]) for key in _CSV_COLUMNS})
    return buffer.getvalue().encode()


EXPORTS: dict[str, Callable[[Method], bytes]] = {"onnx": export_onnx, "csv": export_csv}
"""What a model can be exported to, by the name that the command line and the site's addresses use."""


EXPORT_FILES = {"model.onnx": "onnx", "coefficients.csv": "csv"}


def write_exports(model: Method, directory: Path) -> None:
    """Write `EXPORT_FILES` into a folder; of a model that is not linear, only what there is of it."""
    for name, kind in EXPORT_FILES.items():
        with suppress(SettingError):
            write_whole(directory / name, EXPORTS[kind](model))


def _overrides_scores(model: Method) -> bool:
    return type(model).decision_function is not Method.decision_function


def _no_formula(text: object) -> object:
    return f"'{text}" if isinstance(text, str) and text[:1] in ("=", "+", "-", "@") else text


def _cell(value: object) -> object:
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case float():
            return repr(value)
        case _:
            return value
