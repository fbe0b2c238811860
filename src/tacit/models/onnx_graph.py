"""A linear classifier as an ONNX graph that takes records in their own units, as `predict` does.

Inputs: one for each feature, of shape (n, 1), by its name: numbers as doubles, labels as strings. A missing number is
NaN, a missing label the empty string. Labels are found as declared, in small letters, in capitals, and with capitals at
the beginning. Of a column of dates the input is the date's number, and of months the texts 1 to 12.

Outputs: `label` of shape (n,), and `probabilities` of shape (n, C).

The graph encodes as `data/encoding.py` does: numbers are scaled by their bounds and clipped to them, labels become at
most one 1, missing values follow the feature's rule, and rows are clipped to the norm bound. A graph cannot refuse what
`predict` would refuse, such as an unknown label, or a gap in a column that allows none. There its probabilities
are NaN and its label is empty.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tacit.data.feature import Binary, Categorical, Feature, Numeric
from tacit.data.label import MISSING_TEXT
from tacit.data.schema import Schema
from tacit.errors import SettingError

if TYPE_CHECKING:
    from onnx import ModelProto

Floats = npt.NDArray[np.float64]

OPSET, ML_OPSET, IR_VERSION = 19, 3, 9
_MISSING, _UNKNOWN = -1.0, -2.0  # codes of a label that is not there, and of one that nobody declared


def linear_graph(
    schema: Schema, classes: Sequence[str], coef: Floats, intercept: Floats, facts: Mapping[str, str]
) -> bytes:
    """The graph of the model with these coefficients over the schema's encoded columns; `facts` are kept beside it.

    Raises:
        SettingError: if the package onnx is not installed.
    """
    try:
        import onnx
    except ImportError:
        raise SettingError("an ONNX file needs the package onnx: pip install 'tacit[onnx]'") from None
    graph = _Graph()
    columns = [_feature(graph, feature, schema, position) for position, feature in enumerate(schema.features)]
    X = _clipped(graph, graph.node("Concat", *(name for column in columns for name in column), axis=1), schema)
    scores = graph.node("Add", graph.node("MatMul", X, graph.constant(coef.T)), graph.constant(intercept[None, :]))
    _outputs(graph, scores, classes)
    model = graph.model(schema, len(classes))
    for key, value in facts.items():
        model.metadata_props.add(key=key, value=value)
    onnx.checker.check_model(model, full_check=True)
    return bytes(model.SerializeToString())


@dataclass
class _Graph:
    """Nodes and constants in the order in which they were made, each with a name of its own."""

    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)  # of shape (n, 1): where a record cannot be predicted

    def node(self, kind: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        from onnx import helper

        output = output or f"_{kind.lower()}_{len(self.nodes)}"
        domain = "ai.onnx.ml" if kind == "LabelEncoder" else ""
        self.nodes.append(helper.make_node(kind, inputs, [output], domain=domain, **attributes))
        return output

    def constant(self, value: npt.ArrayLike, dtype: type = np.float64) -> str:
        from onnx import numpy_helper

        name = f"_constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype=dtype), name))
        return name

    def double(self, name: str) -> str:
        from onnx import TensorProto

        return self.node("Cast", name, to=TensorProto.DOUBLE)

    def model(self, schema: Schema, n_classes: int) -> ModelProto:
        from onnx import TensorProto, helper

        kinds = {True: TensorProto.DOUBLE, False: TensorProto.STRING}
        inputs = [
            helper.make_tensor_value_info(feature.name, kinds[isinstance(feature, Numeric)], ["n", 1])
            for feature in schema.features
        ]
        outputs = [
            helper.make_tensor_value_info("label", TensorProto.STRING, ["n"]),
            helper.make_tensor_value_info("probabilities", TensorProto.DOUBLE, ["n", n_classes]),
        ]
        graph = helper.make_graph(self.nodes, "tacit", inputs, outputs, self.constants)
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="tacit")


def _feature(graph: _Graph, feature: Feature, schema: Schema, position: int) -> list[str]:
    """The encoded columns of one feature, in the schema's order."""
    if isinstance(feature, Numeric):
        values = _number(graph, feature)
        missing = graph.node("IsNaN", feature.name)
        graph.faults.append(graph.node("IsInf", feature.name))
    else:
        codes = _codes(graph, feature)
        missing = graph.node("Equal", codes, graph.constant([[_MISSING]]))
        graph.faults.append(graph.node("Equal", codes, graph.constant([[_UNKNOWN]])))
        values = [_one_hot(graph, feature, codes, schema)] if isinstance(feature, Categorical) else [codes]
    if feature.missing in ("error", "drop"):
        graph.faults.append(missing)
    elif not isinstance(feature, Categorical):
        values = [graph.node("Where", missing, graph.constant([[_fill(feature)]]), values[0])]
    return [*values, *([graph.double(missing)] if feature.missing == "indicator" else [])]


def _fill(feature: Numeric | Binary) -> float:
    """What stands for a missing value, encoded."""
    if isinstance(feature, Binary):
        return 0.5 if feature.missing == "middle" else 0.0
    if feature.bounds is None or feature.fill is None:
        return 0.0
    low, high = feature.bounds
    return (feature.fill - low - (high - low) / 2) * 2 / (high - low)


def _number(graph: _Graph, feature: Numeric) -> list[str]:
    if feature.bounds is None:
        return [feature.name]
    low, high = feature.bounds
    middle = graph.constant([[low + (high - low) / 2]])
    scaled = graph.node("Mul", graph.node("Sub", feature.name, middle), graph.constant([[2 / (high - low)]]))
    return [graph.node("Clip", scaled, graph.constant(-1.0), graph.constant(1.0))]


def _codes(graph: _Graph, feature: Categorical | Binary) -> str:
    """The code of each label, found by every text that stands for it."""
    other = feature.other_code if isinstance(feature, Categorical) else None
    found = {form: _MISSING for text in (*MISSING_TEXT, "NaN") for form in _forms(text)}
    for text, code in feature.codes.items():
        found |= dict.fromkeys(_forms(text), float(code))
    found |= {label: float(code) for code, label in enumerate(feature.labels)}
    encoded = graph.node(
        "LabelEncoder", feature.name, keys_strings=list(found), values_floats=list(found.values()),
        default_float=_UNKNOWN if other is None else float(other),
    )  # fmt: skip
    return graph.double(encoded)


def _forms(text: str) -> list[str]:
    """The ways in which a label is written: of its cases the usual ones, and a whole number with a point."""
    numbers = [f"{text}.0"] if text.lstrip("-").isdecimal() else []
    return [text, text.capitalize(), text.title(), text.upper(), *numbers]


def _one_hot(graph: _Graph, feature: Categorical, codes: str, schema: Schema) -> str:
    first = 1 if schema.coding == "reference" else 0
    shown = range(first, len(feature.categories) + (feature.other_code is not None))
    return graph.double(graph.node("Equal", codes, graph.constant([list(map(float, shown))])))


def _clipped(graph: _Graph, X: str, schema: Schema) -> str:
    """Rows longer than the norm bound, scaled down to it."""
    if schema.norm_bound is None or not schema.clips_rows:
        return X
    bound = graph.constant([[schema.norm_bound]])
    squares = graph.node("ReduceSum", graph.node("Mul", X, X), graph.constant([1], np.int64), keepdims=1)
    longest = graph.node("Max", graph.node("Sqrt", squares), bound)
    return graph.node("Mul", X, graph.node("Div", bound, longest))


def _outputs(graph: _Graph, scores: str, classes: Sequence[str]) -> None:
    """Probabilities and the likeliest class; neither where a record cannot be predicted."""
    if len(classes) == 2:
        both = (graph.node("Sigmoid", graph.node("Neg", scores)), graph.node("Sigmoid", scores))
        chances = graph.node("Concat", *both, axis=1)
    else:
        chances = graph.node("Softmax", scores, axis=1)
    fault = graph.faults[0]
    for other in graph.faults[1:]:
        fault = graph.node("Or", fault, other)
    likeliest = graph.node("ArgMax", chances, axis=1, keepdims=0)
    label = graph.node("Gather", graph.constant([str(name) for name in classes], np.object_), likeliest)
    flat = graph.node("Squeeze", fault, graph.constant([1], np.int64))
    graph.node("Where", flat, graph.constant([""], np.object_), label, output="label")
    graph.node("Where", fault, graph.constant([[np.nan]]), chances, output="probabilities")
