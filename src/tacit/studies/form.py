"""A study as a form: texts by the names of fields, as a page sends them, and back to a study file.

    fields = form_of(text)          # {"name": "trial", "f0-name": "age", "f0-kind": "numeric", ...}
    text = text_of(fields)          # a study file; what is typed wrong stays in it, and reading it says so
    errors = check_text(text)[1]    # {"f0-low": "feature 'age': low is missing; ..."}

Fields of the k-th feature begin with `f{k}-`. Keys of a study file that the form has no field for are kept as TOML in
the field `rest`, so that none is lost by passing through the form.
"""

from __future__ import annotations

import csv
import io
import re
import tomllib
from collections.abc import Mapping
from datetime import date
from typing import Any

from tacit.errors import StudyError, TacitError
from tacit.methods import METHODS
from tacit.studies.run import method_of
from tacit.studies.study import Study
from tacit.studies.toml import toml_key, toml_lines, toml_value

FEATURE_KEYS = ("name", "kind", "low", "high", "labels", "missing", "unknown", "more")
MOST_FEATURES = 200  # rows of a form; a study with more is written as a file

# field -> where it stands in a study file
_KEYS = {
    "name": ("study", "name"), "purpose": ("study", "purpose"), "norm_bound": ("study", "norm_bound"),
    "target": ("target", "name"), "classes": ("target", "classes"), "method": ("method", "name"),
    "epsilon": ("privacy", "epsilon"), "delta": ("privacy", "delta"), "unit": ("privacy", "unit"),
    "relation": ("privacy", "relation"), "person": ("privacy", "person"), "quorum": ("federation", "quorum"),
    "deadline_seconds": ("federation", "deadline_seconds"), "colluders": ("federation", "colluders"),
    "parties": ("federation", "parties"), "dropouts": ("federation", "dropouts"), "looks": ("stop", "looks"),
    "coefficient": ("stop", "coefficient"), "half_width": ("stop", "half_width"), "auc_width": ("stop", "auc"),
    "until": ("enrolment", "until"),
}  # fmt: skip
_NUMBERS = frozenset(
    {
        "norm_bound",
        "epsilon",
        "delta",
        "quorum",
        "deadline_seconds",
        "colluders",
        "dropouts",
        "half_width",
        "auc_width",
        "looks",
    }
)
_LISTS = frozenset({"classes", "parties", "looks"})
_ORDER = ("study", "target", "feature", "method", "privacy", "federation", "stop", "enrolment")
_LABELS = {"categorical": "categories", "binary": "values"}
_FEATURE = re.compile(r"feature '([^']*)'(?:: (?:feature\.)?(\w+))?")
_POSITION = re.compile(r"feature number (\d+)")
_DOTTED = re.compile(r"\b(study|target|method|privacy|federation|stop|enrolment)\.(\w+)")
SOURCE = "the study"


def form_of(text: str) -> dict[str, str] | None:
    """The fields that say what a study file says; None of a text that no form can hold."""
    try:
        file: dict[str, Any] = tomllib.loads(text)
    except (ValueError, RecursionError):  # no TOML, or numbers and lists without end
        return None
    features = file.pop("feature", [])
    if not isinstance(features, list) or len(features) > MOST_FEATURES:
        return None
    fields: dict[str, str] = {}
    for position, feature in enumerate(features):
        row = _row(feature)
        if row is None:
            return None
        fields |= {f"f{position}-{key}": value for key, value in row.items()}
    _unwrap_goal(file.get("stop"))
    for field, (table, key) in _KEYS.items():
        found = file.get(table)
        if isinstance(found, dict) and key in found and (shown := _shown(field, found[key])) is not None:
            fields[field] = shown
            del found[key]
    settings = file.pop("method", {})
    if not isinstance(settings, dict):
        return None
    fields["settings"] = "\n".join(toml_lines(settings))
    rest = {table: values for table, values in file.items() if values != {}}
    fields["rest"] = _document(rest).strip()
    return fields


def text_of(fields: Mapping[str, str]) -> str:
    """The study file that the fields say; a field that is left empty is left out.

    Raises:
        StudyError: if `settings` or `rest` is not TOML, and names the field.
    """
    file: dict[str, Any] = {table: {} for table in _ORDER} | {"feature": []}
    for field, (table, key) in _KEYS.items():
        if typed := fields.get(field, "").strip():
            file[table][key] = _value(field, typed)
    file["method"] |= _toml("settings", fields)
    if not fields.get("epsilon", "").strip():
        file["privacy"] = {}  # the form has choices for the rest, which say nothing by themselves
    for position in positions(fields):
        feature = {key: fields.get(f"f{position}-{key}", "").strip() for key in FEATURE_KEYS}
        if any(feature[key] for key in ("name", "low", "high", "labels")):
            file["feature"].append(_feature(feature))
    for table, values in _toml("rest", fields).items():
        known = file.get(table)
        file[table] = {**known, **values} if isinstance(known, dict) and isinstance(values, dict) else values
    return _document({table: values for table, values in file.items() if values or table in ("study", "target")})


def positions(fields: Mapping[str, str]) -> list[int]:
    """The rows of features that a form has, in their order."""
    found = {int(match[1]) for name in fields if (match := re.fullmatch(r"f(\d{1,4})-\w+", name))}
    return sorted(found)[:MOST_FEATURES]


def check_text(text: str) -> tuple[Study | None, dict[str, str]]:
    """The study that a text says, and what is wrong with it, by the field that it is about; "" is the whole."""
    study: Study | None = None
    try:
        study = Study.parse(text, SOURCE, known_methods=METHODS)
        method_of(study).guarantee  # noqa: B018  # refuses settings that no run could have
    except TacitError as error:
        words = str(error).removeprefix(f"{SOURCE}: ")
        return study, {field_of(words, form_of(text) or {}): words}
    return study, {}


def check_form(fields: Mapping[str, str]) -> tuple[str | None, Study | None, dict[str, str]]:
    """The study file and the study that the fields say, as far as they say one, and what is wrong, by field."""
    try:
        text = text_of(fields)
    except StudyError as error:
        return None, None, {field_of(str(error), fields): str(error)}
    study, errors = check_text(text)
    if errors:
        errors = {field_of(words, fields): words for words in errors.values()}
    return text, study, errors


def field_of(words: str, fields: Mapping[str, str]) -> str:
    """The field that an error is about; empty if it is about the whole."""
    if match := _FEATURE.search(words):
        key = "labels" if match[2] in ("categories", "values") else match[2] if match[2] in FEATURE_KEYS else "name"
        rows = [k for k in positions(fields) if fields.get(f"f{k}-name", "").strip() == match[1]]
        return f"f{rows[-1]}-{key}" if rows else ""
    if match := _POSITION.search(words):
        rows = positions(fields)
        return f"f{rows[int(match[1]) - 1]}-name" if int(match[1]) <= len(rows) else ""
    if match := _DOTTED.search(words):
        field = next((field for field, place in _KEYS.items() if place == (match[1], match[2])), "")
        return field or ("settings" if match[1] == "method" else "rest")
    if words.startswith("feature is "):
        return "f0-name"
    if words.startswith("target"):
        return "classes"
    if "has no setting" in words:
        return "settings"
    named = [field for field in ("norm_bound", "epsilon", "delta", "colluders") if field in words]
    return named[0] if named else ""


def _row(feature: object) -> dict[str, str] | None:
    """One feature as fields; None if it says what the form cannot."""
    if not isinstance(feature, dict):
        return None
    row, left = {}, dict(feature)
    for key in ("categories", "values"):
        if key in left:
            shown = _shown("classes", left.pop(key))
            if shown is None or "labels" in row:
                return None
            row["labels"] = shown
    for key in FEATURE_KEYS[:-1]:
        if key in left:
            value = left.pop(key)
            if not isinstance(value, str | int | float) or isinstance(value, bool):
                return None
            row[key] = str(value)
    return row | ({"more": toml_value(left)} if left else {})


def _feature(row: Mapping[str, str]) -> dict[str, object]:
    feature: dict[str, object] = {"name": row["name"], "kind": row["kind"] or "numeric"}
    # A page shows the bounds of numbers and the labels of others; what it hides says nothing.
    for key in ("low", "high"):
        if row[key] and row["kind"] not in _LABELS:
            feature[key] = _number(row[key])
    if row["labels"] and row["kind"] in _LABELS:
        feature[_LABELS[row["kind"]]] = _listed(row["labels"])
    for key in ("missing", "unknown"):
        if row[key] and row[key] != "error":
            feature[key] = row[key]
    return feature | (_toml("more", {"more": f"more = {row['more']}"})["more"] if row["more"] else {})


def _unwrap_goal(stop: object) -> None:
    """Let the only goal of a study stand in [stop] itself, where the form has fields for it."""
    if not isinstance(stop, dict) or {"coefficient", "half_width"} & {*stop}:
        return
    match stop.get("goal"):
        case [{"coefficient": _, "half_width": _, **more}] if not more:
            stop |= stop.pop("goal")[0]


def _shown(field: str, value: object) -> str | None:
    """A value as its field has it; None if the field cannot hold it."""
    if field in _LISTS:
        if not isinstance(value, list) or any(isinstance(item, dict | list | float) for item in value):
            return None
        buffer = io.StringIO()
        csv.writer(buffer, lineterminator="").writerow([str(item) for item in value])
        return buffer.getvalue().replace(",", ", ") if '"' not in buffer.getvalue() else buffer.getvalue()
    if field == "until" and type(value) is date:
        return value.isoformat()
    return str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else None


def _value(field: str, typed: str) -> object:
    if field in _LISTS:
        return [_number(item) for item in _listed(typed)] if field in _NUMBERS else _listed(typed)
    return _number(typed) if field in _NUMBERS else " ".join(typed.split("\n"))


def _listed(typed: str) -> list[str]:
    row = next(csv.reader([" ".join(typed.splitlines())], skipinitialspace=True), [])
    return [item.strip() for item in row if item.strip()]


def _number(typed: str) -> int | float | str:
    """The number, or the text itself if it is none: reading the study then says so."""
    for kind in (int, float):
        try:
            return kind(typed) if "_" not in typed else typed
        except ValueError:
            continue
    return typed


def _toml(field: str, fields: Mapping[str, str]) -> dict[str, Any]:
    try:
        return tomllib.loads(fields.get(field, ""))
    except (ValueError, RecursionError) as error:
        where = "method.settings" if field == "settings" else field
        raise StudyError(f"{where} is not TOML ({error}); keys are written key = value, texts need quotes") from None


def _document(file: Mapping[str, Any]) -> str:
    """A study file of these tables, in the usual order."""
    parts = []
    for table in sorted(file, key=lambda table: _ORDER.index(table) if table in _ORDER else len(_ORDER)):
        values, key = file[table], toml_key(table)
        if isinstance(values, dict):
            parts.append("\n".join([f"[{key}]", *toml_lines(values)]))
        elif isinstance(values, list) and values and all(isinstance(item, dict) for item in values):
            parts += ["\n".join([f"[[{key}]]", *toml_lines(item)]) for item in values]
        else:
            parts.insert(0, "\n".join(toml_lines({table: values})))
    return "\n\n".join(parts) + "\n" if parts else ""
