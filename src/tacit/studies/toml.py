"""Write TOML: just the values that a study file holds."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import date, time

from tacit.errors import StudyError

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_SHORT_ESCAPES = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


def toml_text(text: str) -> str:
    """`text` as a basic string on one line."""
    return '"' + "".join(_escaped(c) for c in text) + '"'


def toml_key(key: str) -> str:
    """`key` bare if it can be, else quoted."""
    return key if _BARE_KEY.fullmatch(key) else toml_text(key)


def toml_value(value: object) -> str:
    """A text, number, truth value, date, list or table (inline) as TOML; numbers keep their kind."""
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return "nan" if math.isnan(value) else repr(value)
        case str():
            return toml_text(value)
        case date() | time():
            return value.isoformat()
        case Mapping():
            pairs = ", ".join(f"{toml_key(str(key))} = {toml_value(item)}" for key, item in value.items())
            return f"{{ {pairs} }}" if pairs else "{}"
        case Sequence():
            return "[" + ", ".join(toml_value(item) for item in value) + "]"
        case _:
            raise StudyError(f"a study file cannot hold a {type(value).__name__}; give text, numbers, lists or tables")


def toml_lines(values: Mapping[str, object]) -> list[str]:
    """One `key = value` line for each entry that is not None."""
    return [f"{toml_key(key)} = {toml_value(value)}" for key, value in values.items() if value is not None]


def _escaped(c: str) -> str:
    if c in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[c]
    if ord(c) < 0x20 or ord(c) == 0x7F:
        return f"\\u{ord(c):04X}"
    return c
