"""Records: each comes back as it was, has one encoding, and whatever differs by one field is refused."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Literal

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from tacit import wire
from tacit.errors import SettingError, WireError
from tacit.record import decode_record, encode_record, from_value, to_value
from tacit.wire import Value

Words = npt.NDArray[np.uint64]


@dataclass(frozen=True, kw_only=True)
class Stamp:
    place: str
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Parcel:
    nothing: None
    truth: bool
    count: int
    weight: float
    name: str
    raw: bytes
    kind: Literal["small", "large"]
    gradient: npt.NDArray[np.float64]
    codes: npt.NDArray[np.int64]
    words: Words
    names: tuple[str, ...]
    parts: tuple[bytes | Words, ...]
    boxes: Mapping[str, bytes]
    tables: dict[str, tuple[int, ...]]
    stamp: Stamp
    stamps: tuple[Stamp, ...]
    maybe: int | None
    perhaps: Stamp | None
    body: Mapping[str, Value]
    default: str = "left as it is"


@dataclass(frozen=True)
class Tree:
    branches: tuple[Tree, ...] = ()


@dataclass(frozen=True)
class Share:
    n_parties: int

    def __post_init__(self) -> None:
        if self.n_parties < 2:
            raise SettingError(f"n_parties = {self.n_parties}; at least 2 take part")


numbers = st.integers(-(2**63), 2**63 - 1)
stamps = st.builds(Stamp, place=st.text(max_size=5), seconds=st.floats())


def array(name: str) -> st.SearchStrategy[npt.NDArray[np.generic]]:
    return npst.arrays(np.dtype(name), npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3))


anything = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, st.floats(), st.text(max_size=5), st.binary(max_size=5), array("<f8")),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=6,
)
parcels = st.builds(
    Parcel,
    nothing=st.none(),
    truth=st.booleans(),
    count=numbers,
    weight=st.floats(),
    name=st.text(max_size=5),
    raw=st.binary(max_size=5),
    kind=st.sampled_from(["small", "large"]),
    gradient=array("<f8"),
    codes=array("<i8"),
    words=array("<u8"),
    names=st.lists(st.text(max_size=5), max_size=3).map(tuple),
    parts=st.lists(st.one_of(st.binary(max_size=5), array("<u8")), max_size=3).map(tuple),
    boxes=st.dictionaries(st.text(max_size=5), st.binary(max_size=5), max_size=3),
    tables=st.dictionaries(st.text(max_size=5), st.lists(numbers, max_size=3).map(tuple), max_size=3),
    stamp=stamps,
    stamps=st.lists(stamps, max_size=2).map(tuple),
    maybe=st.none() | numbers,
    perhaps=st.none() | stamps,
    body=st.dictionaries(st.text(max_size=5), anything, max_size=2),
    default=st.text(max_size=5),
)
FIELDS = [item.name for item in fields(Parcel)]
CLOSED = [name for name in FIELDS if name != "body"]  # what is in the body is free

PARCEL = Parcel(
    nothing=None, truth=True, count=1, weight=0.5, name="a", raw=b"b", kind="small", gradient=np.zeros(2),
    codes=np.zeros(2, dtype=np.int64), words=np.zeros(2, dtype=np.uint64), names=("c",),
    parts=(b"d", np.zeros((1, 2), dtype=np.uint64)), boxes={"e": b"f"}, tables={"g": (1, 2)},
    stamp=Stamp(place="h", seconds=1.0), stamps=(Stamp(place="i", seconds=2.0),), maybe=3,
    perhaps=Stamp(place="j", seconds=3.0), body={"k": [None, 1.0]},
)  # fmt: skip


@given(parcels)
def test_a_record_comes_back_as_it_was(parcel: Parcel) -> None:
    message = encode_record(parcel)
    found = decode_record(Parcel, message)
    assert type(found) is Parcel
    assert encode_record(found) == message
    assert message == wire.encode(to_value(parcel))
    for name in ("nothing", "truth", "count", "name", "raw", "kind", "names", "boxes", "tables", "maybe", "default"):
        assert getattr(found, name) == getattr(parcel, name)
    assert struct.pack("<d", found.weight) == struct.pack("<d", parcel.weight)
    assert found.gradient.tobytes() == parcel.gradient.tobytes()
    assert type(found.stamp) is Stamp
    assert found.stamp.place == parcel.stamp.place
    assert [type(part) for part in found.parts] == [type(part) for part in parcel.parts]


def test_a_record_is_the_dict_of_all_its_fields() -> None:
    assert to_value(Stamp(place="here", seconds=1.0)) == {"place": "here", "seconds": 1.0}
    assert to_value(PARCEL).keys() == set(FIELDS)


@given(parcels, st.sampled_from(FIELDS))
def test_a_record_that_lacks_a_field_is_refused(parcel: Parcel, name: str) -> None:
    value = to_value(parcel)
    del value[name]
    with pytest.raises(WireError, match=rf"no Parcel: it lacks the field '{name}'"):
        from_value(Parcel, value)


@given(parcels, st.text(max_size=5).filter(lambda name: name not in FIELDS), anything)
def test_a_record_with_another_field_is_refused(parcel: Parcel, name: str, extra: Value) -> None:
    with pytest.raises(WireError, match=r"no Parcel: .* is none of its fields"):
        from_value(Parcel, {**to_value(parcel), name: extra})


@given(parcels, st.sampled_from(CLOSED), anything)
@settings(max_examples=300)
def test_a_field_of_another_type_is_refused_by_its_name(parcel: Parcel, name: str, other: Value) -> None:
    value = {**to_value(parcel), name: other}
    try:
        found = from_value(Parcel, value)
    except WireError as error:
        named = f"Parcel.{name} " in str(error) or (name.startswith(("stamp", "perhaps")) and "Stamp" in str(error))
        assert named, error  # noqa: PT017 - what is taken, below, may be right
        return
    # Whatever is taken is of the right type: it is written again as the very same bytes.
    assert wire.encode(to_value(found)) == wire.encode(value)


@pytest.mark.parametrize(
    ("name", "other", "message"),
    [
        ("nothing", 0, "Parcel.nothing is a whole number where nothing is due"),
        ("truth", 1, "Parcel.truth is a whole number where a truth value is due"),
        ("count", True, "Parcel.count is a truth value where a whole number is due"),
        ("count", 1.0, "Parcel.count is a number with a point where a whole number is due"),
        ("weight", 1, "Parcel.weight is a whole number where a number with a point is due"),
        ("name", b"a", "Parcel.name is bytes where a text is due"),
        ("raw", "a", "Parcel.raw is a text where bytes is due"),
        ("kind", "medium", "Parcel.kind is none of large, small"),
        ("gradient", [0.0], "Parcel.gradient is a list where an array is due"),
        ("gradient", np.zeros(1, dtype=np.int64), "Parcel.gradient is an array of int64 where one of float64 is due"),
        ("words", np.zeros(1, dtype=np.int64), "Parcel.words is an array of int64 where one of uint64 is due"),
        ("names", ["a", 1], "Parcel.names is a whole number where a text is due"),
        ("names", "ab", "Parcel.names is a text where a list is due"),
        ("parts", ["a"], "Parcel.parts is a text where bytes or an array is due"),
        ("boxes", {"a": "b"}, "Parcel.boxes is a text where bytes is due"),
        ("tables", {"a": [True]}, "Parcel.tables is a truth value where a whole number is due"),
        ("stamp", {"place": "a", "seconds": 1}, "Stamp.seconds is a whole number where a number with a point is due"),
        ("stamp", None, "no Stamp: it is nothing"),
        ("stamps", [{}], "no Stamp: it lacks the field 'place'"),
        ("maybe", False, "Parcel.maybe is a truth value where a whole number or nothing is due"),
        ("perhaps", [], "Parcel.perhaps is a list where a dict or nothing is due"),
        ("body", [], "Parcel.body is a list where a dict is due"),
    ],
)
def test_a_wrong_field_is_named_on_both_sides(name: str, other: Value, message: str) -> None:
    with pytest.raises(WireError, match=message):
        from_value(Parcel, {**to_value(PARCEL), name: other})
    if not (name.startswith(("stamp", "perhaps"))):  # a record's own field holds a Stamp, not a dict
        with pytest.raises(WireError, match=message):
            to_value(Parcel(**{**vars(PARCEL), name: other}))


@given(st.binary(max_size=200) | anything.map(wire.encode))
@settings(max_examples=500)
def test_garbage_never_does_anything_but_raise_a_wire_error(message: bytes) -> None:
    for cls in (Parcel, Stamp, Tree, Share):
        try:
            found = decode_record(cls, message)
        except WireError:
            continue
        assert encode_record(found) == message


@given(parcels, st.data())
def test_an_altered_record_is_refused_or_is_another_record(parcel: Parcel, data: st.DataObject) -> None:
    message = bytearray(encode_record(parcel))
    message[data.draw(st.integers(0, len(message) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        altered = decode_record(Parcel, bytes(message))
    except WireError:
        return
    assert encode_record(altered) == bytes(message)


def test_scalars_of_numpy_are_written_as_pythons_own() -> None:
    stamp = Stamp(place=np.str_("here"), seconds=np.float64(1.0))  # type: ignore[arg-type]
    assert encode_record(stamp) == encode_record(Stamp(place="here", seconds=1.0))
    assert encode_record(Share(np.int64(2))) == encode_record(Share(2))  # type: ignore[arg-type]


def test_a_class_may_contain_itself() -> None:
    tree = Tree((Tree(), Tree((Tree(),))))
    assert decode_record(Tree, encode_record(tree)) == tree


def test_what_a_class_refuses_is_no_record_of_it() -> None:
    with pytest.raises(WireError, match=r"no Share: n_parties = 1; at least 2 take part"):
        from_value(Share, {"n_parties": 1})


def test_a_record_of_another_class_is_refused_within_a_record() -> None:
    with pytest.raises(WireError, match="a Share was given where a Stamp is due"):
        to_value(Parcel(**{**vars(PARCEL), "stamp": Share(2)}))


@dataclass
class Thawed:
    name: str


@dataclass(frozen=True)
class Listed:
    names: list[str]


@dataclass(frozen=True)
class Alike:
    name: str | Literal["a"]


@dataclass(frozen=True)
class Derived:
    name: str
    size: int = field(init=False, default=1)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (Thawed("a"), "Thawed is no frozen dataclass"),
        ("a", "str is no frozen dataclass"),
        (Listed(["a"]), r"Listed.names is annotated list\[str\]"),
        (Alike("a"), "Alike.name is annotated with choices that look alike"),
        (Derived("a"), "Derived has a field that its constructor does not take"),
    ],
)
def test_a_class_that_cannot_be_a_record_is_named(record: object, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        to_value(record)
