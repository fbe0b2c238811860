"""What differs between two versions of a study: in words, key by key, and line by line."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass

from tacit.studies.study import Study
from tacit.studies.toml import toml_value


@dataclass(frozen=True, kw_only=True)
class KeyChange:
    """One key that differs.

    Attributes:
        key: the key as a study file writes it, such as `privacy.epsilon` or `feature 'age': high`.
        before, after: its values as a study file writes them; None where the key is not there.
    """

    key: str
    before: str | None
    after: str | None

    @property
    def words(self) -> str:
        """The change as a sentence."""
        if self.before is None:
            return f"{self.key} is new: {self.after}"
        if self.after is None:
            return f"{self.key} is gone; it was {self.before}"
        return f"{self.key} was {self.before} and is now {self.after}"


def key_changes(before: Study, after: Study) -> tuple[KeyChange, ...]:
    """Every key that differs, in the order of the study file; empty only for studies with the same digest."""
    old, new = _flat(before), _flat(after)
    order = list(dict.fromkeys([*old, *new]))
    return tuple(
        KeyChange(key=key, before=old.get(key), after=new.get(key)) for key in order if old.get(key) != new.get(key)
    )


def line_changes(before: Study, after: Study, names: tuple[str, str] = ("before", "after")) -> list[str]:
    """The two study files as a unified difference."""
    old, new = before.to_toml().splitlines(), after.to_toml().splitlines()
    return list(difflib.unified_diff(old, new, *names, lineterm=""))


def _value(value: object) -> str:
    """A value as a study file writes it; goals, which are tables there, in words."""
    if isinstance(value, list) and value and all(isinstance(one, dict) and "half_width" in one for one in value):
        return " and ".join(f"{goal['coefficient']} to {goal['half_width']:g}" for goal in value)
    return toml_value(value)


def _flat(study: Study) -> dict[str, str]:
    """Key -> value as a study file writes both; features are known by their names, and stand in their order."""
    form = study.as_dict()
    schema, method = study.schema.to_dict(), form.pop("method")
    assert isinstance(method, dict)
    tables: dict[str, object] = {
        "study": {"name": study.name, "purpose": study.purpose}
        | {key: value for key, value in schema.items() if key not in ("features", "target")},
        "target": schema["target"],
        "method": {"name": method["name"], **method["settings"]},
    }
    tables |= {key: value for key, value in form.items() if key not in ("name", "purpose", "schema")}
    flat: dict[str, str] = {}
    for table, values in tables.items():
        if isinstance(values, Mapping):
            flat |= {f"{table}.{key}": _value(value) for key, value in values.items() if value is not None}
    for feature in schema["features"]:
        owner = f"feature {feature['name']!r}"
        flat |= {f"{owner}: {key}": toml_value(value) for key, value in feature.items() if key != "name"}
    flat["features"] = toml_value([feature["name"] for feature in schema["features"]])
    return flat
