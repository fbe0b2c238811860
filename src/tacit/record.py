"""Records: frozen dataclasses that travel, written and read by their own annotations.

A class that states its fields states its message. A field is one of these:

    None, bool, int, float, str, bytes       themselves
    npt.NDArray[np.float64] and its kin      an array of exactly that type, of any shape
    Literal["a", "b"]                        one of these texts
    tuple[X, ...]                            a list
    Mapping[str, X] or dict[str, X]          a dict
    a frozen dataclass                       a dict of its fields
    X | Y                                    whichever it is; two that look alike on the wire are refused
    Value                                    anything that the wire carries

Every field is written, those with a default too, and nothing is converted. So a record has one encoding, and a message
with a field too many, too few or of another type is no record: a `WireError` names the class and the field.

    @dataclass(frozen=True)
    class Greeting:
        name: str
        n_times: int = 1

    decode_record(Greeting, encode_record(Greeting("Ada")))  # Greeting(name="Ada", n_times=1)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from types import NoneType, UnionType
from typing import Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import numpy as np

from tacit import wire
from tacit.errors import TacitError, WireError
from tacit.wire import Array, Value

T = TypeVar("T")

Encode = Callable[[object], Value]
Decode = Callable[[Value], object]

# What a value looks like on the wire, by its type in Python: the word with which an error names it.
_WORDS: dict[type, str] = {
    NoneType: "nothing", bool: "a truth value", int: "a whole number", float: "a number with a point", str: "a text",
    bytes: "bytes", list: "a list", tuple: "a list", dict: "a dict", np.ndarray: "an array",
}  # fmt: skip
_NUMPY: dict[type, type] = {bool: np.bool_, int: np.integer, float: np.floating, str: np.str_}


def to_value(record: object) -> dict[str, Value]:
    """The record as a value of the wire; a `WireError` names a field that holds what its annotation does not allow."""
    return cast(dict[str, Value], _form(type(record)).encode(record))


def from_value(cls: type[T], value: Value) -> T:
    """The record of class `cls` that `to_value` turned into `value`; a `WireError` for anything else."""
    return cast(T, _form(cls).decode(value))


def encode_record(record: object) -> bytes:
    """The record as it travels."""
    return wire.encode(_form(type(record)).encode(record))


def decode_record(cls: type[T], message: bytes) -> T:
    """The record of class `cls` in `message`; a `WireError` for anything else."""
    return cast(T, _form(cls).decode(wire.decode(message)))


@dataclasses.dataclass(frozen=True, slots=True)
class _Form:
    """How one annotation is written and read, and what it looks like on the wire."""

    word: str
    encode: Encode
    decode: Decode


_FORMS: dict[type, _Form] = {}


def _form(cls: type) -> _Form:
    """How records of a class are written and read; compiled once."""
    form = _FORMS.get(cls)
    if form is None:
        form = _FORMS[cls] = _compiled_class(cls)
    return form


def _compiled_class(cls: type) -> _Form:
    name = cls.__name__
    if not dataclasses.is_dataclass(cls) or not cls.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        raise TypeError(f"{name} is no frozen dataclass: it cannot travel as a record")
    if any(not field.init for field in dataclasses.fields(cls)):
        raise TypeError(f"{name} has a field that its constructor does not take: it cannot travel as a record")
    hints = get_type_hints(cls, localns={"Value": Value})
    forms = {field.name: _compiled(hints[field.name], f"{name}.{field.name}") for field in dataclasses.fields(cls)}
    return _Form("a dict", _fields_encoder(cls, forms), _fields_decoder(cls, forms))


def _fields_encoder(cls: type, forms: Mapping[str, _Form]) -> Encode:
    encoders = tuple((name, form.encode) for name, form in forms.items())

    def encode(record: object) -> Value:
        if type(record) is not cls:
            raise WireError(f"a {type(record).__name__} was given where a {cls.__name__} is due")
        return {name: write(getattr(record, name)) for name, write in encoders}

    return encode


def _fields_decoder(cls: type, forms: Mapping[str, _Form]) -> Decode:
    decoders = tuple((name, form.decode) for name, form in forms.items())

    def decode(value: Value) -> object:
        if not isinstance(value, Mapping) or value.keys() != forms.keys():
            raise WireError(_difference(cls, value, forms))
        fields = {name: read(value[name]) for name, read in decoders}
        try:
            return cls(**fields)
        except (TacitError, ValueError, TypeError, ArithmeticError, LookupError) as error:
            raise WireError(f"a message is no {cls.__name__}: {error}") from error

    return decode


def _difference(cls: type, value: Value, forms: Mapping[str, _Form]) -> str:
    """What is wrong with the fields of a message."""
    if not isinstance(value, Mapping):
        return f"a message is no {cls.__name__}: it is {_word(value)}"
    missing = [name for name in forms if name not in value]
    if missing:
        return f"a message is no {cls.__name__}: it lacks the field {missing[0]!r}"
    unknown = next(str(name) for name in value if name not in forms)
    return f"a message is no {cls.__name__}: {unknown[:40]!r} is none of its fields"


def _compiled(hint: object, where: str) -> _Form:
    """How the annotation of the field `where` is written and read."""
    origin, inner = get_origin(hint), get_args(hint)
    if isinstance(hint, type) and hint in (NoneType, bool, int, float, str, bytes):
        return _scalar(hint, where)
    if origin is Literal and all(isinstance(word, str) for word in inner):
        return _literal(frozenset(inner), where)
    if origin is tuple and len(inner) == 2 and inner[1] is ...:
        return _list(_compiled(inner[0], where), where)
    if origin in (dict, Mapping) and inner[0] is str:
        return _dict(_compiled(inner[1], where), where)
    if origin is np.ndarray:
        return _array(get_args(inner[1])[0], where)
    if origin in (Union, UnionType):
        # Among annotations, only `Value` has lists: a record's own are tuples.
        return _anything() if any(get_origin(choice) is list for choice in inner) else _union(inner, where)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return _nested(hint)
    raise TypeError(f"{where} is annotated {hint}, which a record cannot hold")


def _nested(cls: type) -> _Form:
    # Compiled at its first use, so that a class may contain itself.
    return _Form("a dict", lambda record: _form(cls).encode(record), lambda value: _form(cls).decode(value))


def _scalar(kind: type, where: str) -> _Form:
    word, also = _WORDS[kind], _NUMPY.get(kind, kind)

    def encode(value: object) -> Value:
        if type(value) is kind:
            return cast(Value, value)
        if isinstance(value, also):  # a scalar of numpy, which the wire writes as Python's own
            return cast(Value, kind(value))
        raise _mismatch(where, word, value)

    def decode(value: Value) -> object:
        if type(value) is not kind:
            raise _mismatch(where, word, value)
        return value

    return _Form(word, encode, decode)


def _literal(words: frozenset[str], where: str) -> _Form:
    def check(value: object) -> str:
        if type(value) is not str:
            raise _mismatch(where, "a text", value)
        if value not in words:
            raise WireError(f"{where} is none of {', '.join(sorted(words))}")
        return value

    return _Form("a text", check, check)


def _list(item: _Form, where: str) -> _Form:
    write, read = item.encode, item.decode

    def encode(value: object) -> Value:
        if not isinstance(value, tuple | list):
            raise _mismatch(where, "a list", value)
        return [write(entry) for entry in value]

    def decode(value: Value) -> object:
        if not isinstance(value, tuple | list):
            raise _mismatch(where, "a list", value)
        return tuple([read(entry) for entry in value])

    return _Form("a list", encode, decode)


def _dict(item: _Form, where: str) -> _Form:
    write, read = item.encode, item.decode

    def checked(value: object) -> Mapping[str, Value]:
        if not isinstance(value, Mapping):
            raise _mismatch(where, "a dict", value)
        if any(not isinstance(key, str) for key in value):
            raise WireError(f"{where} has a key that is not text")
        return value

    def encode(value: object) -> Value:
        return {key: write(entry) for key, entry in checked(value).items()}

    def decode(value: Value) -> object:
        return {key: read(entry) for key, entry in checked(value).items()}

    return _Form("a dict", encode, decode)


def _array(kind: type[np.generic], where: str) -> _Form:
    dtype = None if kind is np.generic else np.dtype(kind).newbyteorder("<")

    def check(value: object) -> Array:
        if not isinstance(value, np.ndarray):
            raise _mismatch(where, "an array", value)
        if dtype is not None and value.dtype.newbyteorder("<") != dtype:
            raise WireError(f"{where} is an array of {value.dtype} where one of {np.dtype(kind)} is due")
        return value

    return _Form("an array", check, check)


def _union(choices: tuple[object, ...], where: str) -> _Form:
    forms = [_compiled(choice, where) for choice in choices]
    by_word = {form.word: form for form in forms}
    if len(by_word) < len(forms):
        raise TypeError(f"{where} is annotated with choices that look alike on the wire")
    due = " or ".join(by_word)

    def chosen(value: object) -> _Form:
        form = by_word.get(_word(value))
        if form is None:
            raise _mismatch(where, due, value)
        return form

    return _Form(due, lambda value: chosen(value).encode(value), lambda value: chosen(value).decode(value))


def _anything() -> _Form:
    return _Form("anything", lambda value: cast(Value, value), lambda value: value)


def _word(value: object) -> str:
    """What a value looks like on the wire."""
    word = _WORDS.get(type(value))
    if word is not None:
        return word
    for kind, also in _NUMPY.items():
        if isinstance(value, also):
            return _WORDS[kind]
    if isinstance(value, np.ndarray):
        return "an array"
    if isinstance(value, Mapping) or dataclasses.is_dataclass(value):
        return "a dict"
    return f"a {type(value).__name__}"


def _mismatch(where: str, due: str, value: object) -> WireError:
    """The error of a field; it names the type of what came, never the value."""
    return WireError(f"{where} is {_word(value)} where {due} is due")
