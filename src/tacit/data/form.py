"""The written form of a schema: plain JSON values, as in a study file."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tacit.data.feature import Binary, Categorical, Feature, Numeric, Target
from tacit.data.label import near
from tacit.errors import SchemaError

if TYPE_CHECKING:
    from tacit.data.schema import Schema

KINDS: dict[str, type[Numeric] | type[Categorical] | type[Binary]] = {
    kind.kind: kind for kind in (Numeric, Categorical, Binary)
}
SETTINGS = ("features", "target", "norm_bound", "coding", "ignore")


def schema_to_dict(schema: Schema) -> dict[str, Any]:
    """Plain values; settings at their defaults are left out, so a later setting changes no digest."""
    form: dict[str, Any] = {
        "features": [{"name": f.name, "kind": f.kind} | _changed(f) for f in schema.features],
        "target": {"name": schema.target.name, "classes": list(schema.target.classes)} | _aliases(schema.target),
    }
    if schema.norm_bound is not None:
        form["norm_bound"] = schema.norm_bound
    if schema.coding != "reference":
        form["coding"] = schema.coding
    if schema.ignore:
        form["ignore"] = list(schema.ignore)
    return form


def schema_from_dict(form: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of Schema that a written form stands for."""
    arguments = dict(_settings(form, SETTINGS, ("features", "target"), "the schema"))
    features = arguments["features"]
    if isinstance(features, str | Mapping) or not isinstance(features, Sequence):
        raise SchemaError("the schema's features must be a list, one entry for each feature")
    arguments["features"] = tuple(_feature(entry, position) for position, entry in enumerate(features, start=1))
    arguments["target"] = Target(
        **_settings(arguments["target"], ("name", "classes", "aliases"), ("name", "classes"), "the target")
    )
    ignore = arguments.get("ignore", ())
    if isinstance(ignore, str) or not isinstance(ignore, Sequence) or not all(isinstance(name, str) for name in ignore):
        raise SchemaError(f"the schema's ignore={ignore!r} must be a list of column names")
    return arguments


def _feature(entry: object, position: int) -> Feature:
    where = f"feature {position}"
    if not isinstance(entry, Mapping):
        raise SchemaError(f"{where} is a {type(entry).__name__}; write a table with name and kind")
    where = f"feature {entry.get('name', position)!r}"
    kind = entry.get("kind")
    if kind not in KINDS:
        raise SchemaError(f"{where}: kind={kind!r} is not one of {list(KINDS)}{_suggestion(kind, list(KINDS))}")
    made = KINDS[kind]
    fields = dataclasses.fields(made)
    required = [field.name for field in fields if field.default is dataclasses.MISSING]
    required += ["categories"] if made is Categorical and "date" not in entry else []
    settings = _settings(entry, ("kind", *(field.name for field in fields)), required, where)
    return made(**{key: value for key, value in settings.items() if key != "kind"})


def _settings(form: object, known: Sequence[str], required: Sequence[str], where: str) -> Mapping[str, Any]:
    if not isinstance(form, Mapping):
        raise SchemaError(f"{where} is a {type(form).__name__}; write a table with {list(required)}")
    for key in form:
        if key not in known:
            raise SchemaError(f"{where} has an unknown key {key!r}{_suggestion(key, known)}; known are {list(known)}")
    for key in required:
        if key not in form:
            raise SchemaError(f"{where} lacks {key!r}; known are {list(known)}")
    return form


def _suggestion(word: object, known: Sequence[str]) -> str:
    close = near(str(word), known)
    return f" (did you mean {close!r}?)" if close else ""


def _changed(feature: Feature) -> dict[str, Any]:
    """The settings that differ from their defaults, tuples as lists."""
    changed: dict[str, Any] = {}
    for field in dataclasses.fields(feature):
        value = getattr(feature, field.name)
        if field.name not in ("name", "aliases") and value != field.default:
            changed[field.name] = list(value) if isinstance(value, tuple) else value
    if "date" in changed:
        changed["date"] = str(changed["date"])
    return changed | _aliases(feature)


def _aliases(labelled: Feature | Target) -> dict[str, Any]:
    """Further texts for labels, as a table; nothing if there are none."""
    found = () if isinstance(labelled, Numeric) else labelled.aliases
    return {"aliases": {label: list(texts) for label, texts in found}} if found else {}
