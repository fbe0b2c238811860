"""Values as plain, strict JSON and as printable text: nothing that could act on a terminal, nothing of a record."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Mapping, Sequence, Set

import numpy as np

from tacit.privacy.guarantee import Guarantee

Plain = None | bool | int | float | str | list["Plain"] | dict[str, "Plain"]


def plain(value: object) -> Plain:
    """`value` as strict JSON holds it.

    A number that is not finite is null. What is no plain value (an array, a model) is named by its kind and never
    written out: a setting might hold records.
    """
    match value:
        case None | bool() | str():
            return value
        case np.generic():
            return plain(value.item())
        case int():
            return int(value)
        case float():
            return value if math.isfinite(value) else None
        case Guarantee():
            return plain(value.as_dict())
        case os.PathLike():
            return os.fspath(value) if isinstance(os.fspath(value), str) else "<path>"
        case np.ndarray():
            return f"<array of shape {value.shape}>"
        case Mapping():
            return {str(key): plain(item) for key, item in value.items()}
        case Set():
            return sorted((plain(item) for item in value), key=repr)
        case Sequence() if not isinstance(value, bytes | bytearray | memoryview):
            return [plain(item) for item in value]
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
        case _:
            return f"<{type(value).__name__}>"


def plain_text(value: object) -> str:
    """`value` as one line of text for a person."""
    match value:
        case float() if math.isinf(value):
            return "inf" if value > 0 else "-inf"
        case str():
            return printable(value)
        case None:
            return "none"
    simple = plain(value)
    match simple:
        case bool():
            return "yes" if simple else "no"
        case float():
            return f"{simple:.6g}"
        case list():
            return ", ".join(plain_text(item) for item in simple)
        case dict():
            return ", ".join(f"{printable(key)}: {plain_text(item)}" for key, item in simple.items())
        case _:
            return printable(str(simple))


def printable(text: str) -> str:
    """`text` with every control character written out, so that a name cannot move a terminal's cursor."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
