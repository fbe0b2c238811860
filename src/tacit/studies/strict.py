"""Read a table of a study file strictly: every key is known, every type is right, or the error says where and why."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from typing import TypeVar

from tacit.errors import StudyError

T = TypeVar("T")

_KINDS: tuple[tuple[type, str], ...] = (
    (bool, "a truth value"),
    (int, "a whole number"),
    (float, "a number"),
    (str, "a text"),
    (list, "a list"),
    (dict, "a table"),
)


class Section:
    """One table of the file, with its dotted path.

    Guarantees:
        Whatever a method returns has the type that its name says. Every error is a `StudyError` on one line that starts
        with the file's name and names the dotted key.
    """

    def __init__(self, values: Mapping[str, object], *, source: str, path: str, owner: str = "") -> None:
        """`owner` is told before the key where several tables have the same path (the features)."""
        self._values = values
        self._path = path
        self._start = f"{source}: {owner + ': ' if owner else ''}"

    def __contains__(self, key: str) -> bool:
        """Whether the file has the key."""
        return key in self._values

    def check_keys(self, known: Collection[str]) -> None:
        """Refuse every key that is not known."""
        for key in self._values:
            if key not in known:
                close = [self._dotted(name) for name in nearest(key, known)]
                hint = f"did you mean {close[0]}?" if close else f"known are {', '.join(known)}"
                what = "table" if isinstance(self._values[key], dict | list) and not self._path else "key"
                raise self.error(key, f"is an unknown {what}; {hint}")

    def need(self, key: str, advice: str) -> None:
        """Refuse if the key is missing."""
        if key not in self._values:
            raise StudyError(f"{self._start}{self._dotted(key)} is missing; {advice}")

    def text(self, key: str, advice: str) -> str:
        """A text that is needed and not empty."""
        self.need(key, advice)
        value = self._typed(key, str, "a text")
        if not value.strip():
            raise self.error(key, f"is empty; {advice}")
        return value

    def choice(self, key: str, choices: Collection[str], default: str) -> str:
        """One of a few words."""
        if key not in self._values:
            return default
        value = self._typed(key, str, "a text")
        if value not in choices:
            close = nearest(value, choices)
            hint = f"did you mean {close[0]!r}?" if close else f"choose one of {', '.join(choices)}"
            raise self.error(key, f"is {value!r}, which is unknown; {hint}")
        return value

    def number(self, key: str) -> float | None:
        """A number, or None if the key is missing."""
        if key not in self._values:
            return None
        value = self._values[key]
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._wrong_type(key, "a number")
        return value

    def whole(self, key: str, least: int) -> int | None:
        """A whole number of at least `least`, or None if the key is missing."""
        if key not in self._values:
            return None
        value = self._values[key]
        if isinstance(value, bool) or not isinstance(value, int):
            raise self._wrong_type(key, "a whole number")
        if value < least:
            raise self.error(key, f"is {value}; give a whole number of at least {least}")
        return value

    def texts(self, key: str) -> tuple[str, ...] | None:
        """A list of different texts, none of them empty, or None if the key is missing."""
        if key not in self._values:
            return None
        values = self._typed(key, list, "a list of texts")
        if not all(isinstance(value, str) for value in values):
            raise self.error(key, "must be a list of texts; put each entry in quotes")
        if not values or not all(value.strip() for value in values):
            raise self.error(key, "is empty or has an empty entry; give at least one name, or leave the key out")
        doubles = sorted({value for value in values if values.count(value) > 1})
        if doubles:
            raise self.error(key, f"has {', '.join(map(repr, doubles))} more than once; name each once")
        return tuple(values)

    def labels(self, key: str) -> list[str | int] | None:
        """A list of labels (text, whole numbers or truth values), or None if the key is missing."""
        if key not in self._values:
            return None
        values: list[str | int] = self._typed(key, list, "a list of labels")
        for value in values:
            if not isinstance(value, str | int):
                raise self.error(key, f"has {_shown(value)}, which is not a label; put it in quotes")
        return values

    def error(self, key: str, problem: str) -> StudyError:
        """An error about one key, to be raised."""
        return StudyError(f"{self._start}{self._dotted(key)} {problem}")

    def _typed(self, key: str, kind: type[T], expected: str) -> T:
        value = self._values[key]
        if not isinstance(value, kind):
            raise self._wrong_type(key, expected)
        return value

    def _wrong_type(self, key: str, expected: str) -> StudyError:
        return self.error(key, f"must be {expected}, but is {_shown(self._values[key])}")

    def _dotted(self, key: str) -> str:
        return f"{self._path}.{key}" if self._path else key


def nearest(word: str, known: Collection[str]) -> list[str]:
    """The known word that was probably meant, if there is one."""
    return difflib.get_close_matches(word.lower().replace("-", "_"), known, n=1, cutoff=0.6) or (
        difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    )


def _shown(value: object) -> str:
    for kind, name in _KINDS:
        if isinstance(value, kind):
            return f"{name} ({value!r})" if isinstance(value, bool | int | float | str) else name
    return f"a {type(value).__name__}"
