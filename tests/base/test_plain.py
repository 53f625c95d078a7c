"""Plain values of dataclasses can be read back, by position and by name. Other values are refused."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, TypedDict

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buildtool.base.plain import (
    BESIDE,
    Key,
    Mismatch,
    from_plain,
    from_table,
    key_names,
    power,
    slots,
    to_plain,
    to_tuples,
)


class Colour(enum.StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Inner:
    at: tuple[int, int]
    colour: Colour = Colour.RED


@dataclass(frozen=True)
class Outer:
    name: str
    size: int
    share: float
    inner: tuple[Inner, ...] = ()
    data: bytes | None = None
    more: Mapping[str, int] = field(default_factory=dict)


class Optional(TypedDict, total=False):
    note: str | None


class Typed(Optional):
    name: str
    sizes: list[int]


INTEGERS = st.integers(-(1 << 63) + 1, (1 << 63) - 1)
INNERS = st.builds(Inner, st.tuples(INTEGERS, INTEGERS), st.sampled_from(Colour))
OUTERS = st.builds(
    Outer,
    st.text(max_size=5),
    INTEGERS,
    st.floats(allow_nan=False, allow_infinity=False),
    st.lists(INNERS, max_size=3).map(tuple),
    st.none() | st.binary(max_size=3),
    st.dictionaries(st.text(max_size=3), INTEGERS, max_size=3),
)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(OUTERS, st.booleans(), st.booleans())
def test_what_is_written_reads_back(value, named, defaults):
    plain = to_plain(value, named=named, defaults=defaults)
    through = msgpack.unpackb(msgpack.packb(plain))
    assert from_plain(through, Outer, "value") == value
    assert hash(to_tuples(value.inner)) == hash(to_tuples(value.inner))


GOOD = ["a", 1, 0.5, [[[1, 2], "blue"]], None, {"x": 1}]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({0: 1}, "value.name is a int"),
        ({1: True}, "value.size is a bool"),
        ({1: 1 << 63}, "value.size is a int"),
        ({2: float("nan")}, "value.share is a float"),
        ({2: 1}, "value.share is a int"),
        ({3: [[[1], "blue"]]}, r"value.inner\[0\].at has 1 items, not 2"),
        ({3: [[[1, 2], "green"]]}, r"value.inner\[0\].colour is a str"),
        ({3: [[[1, 2]]]}, r"value.inner\[0\] is a list"),
        ({3: [{"at": [1, 2], "color": "red"}]}, r"value.inner\[0\] has no field 'color'"),
        ({3: [{"colour": "red"}]}, r"value.inner\[0\] has no 'at'"),
        ({4: "x"}, "value.data is a str"),
        ({5: [1]}, "value.more is a list"),
        ({5: {"x": "y"}}, "value.more.x is a str"),
    ],
)
def test_what_is_of_another_type_is_told_with_its_place(changed, said):
    assert from_plain(GOOD, Outer, "value").inner == (Inner((1, 2), Colour.BLUE),)
    with pytest.raises(Mismatch, match=said):
        from_plain([changed.get(i, value) for i, value in enumerate(GOOD)], Outer, "value")


def test_maps_of_a_typed_dictionary_have_its_keys_and_objects_are_no_plain_values():
    for good in ({"name": "a", "sizes": [1]}, {"name": "a", "sizes": [], "note": None}):
        assert from_plain(good, Typed, "value") == good
    for bad in ({"name": "a"}, {"name": "a", "sizes": [1], "other": 1}, {"name": "a", "sizes": ["x"]}, []):
        with pytest.raises(Mismatch, match="value"):
            from_plain(bad, Typed, "value")
    with pytest.raises(TypeError, match="object is not a plain value"):
        to_plain((object(),))


@dataclass(frozen=True)
class Bus:
    width: Annotated[int, power(8, 64), Key("Bits that it brings at once.")]
    owner: Annotated[str, Key("Whose it is.")] = "core"


@dataclass(frozen=True)
class Part:
    name: str
    bytes: Annotated[int, Key("Its size.", name="size")]
    bus: Annotated[Bus | None, Key("Its bus.", name=BESIDE)] = None


@dataclass(frozen=True)
class Whole:
    parts: Annotated[tuple[Part, ...], Key("What it has.", name="part")]
    first: Annotated[str, Key("The first part.", name="roles.first")]
    last: Annotated[str, Key("The last part.", "the first", "roles.last")] = ""
    seen: bool = False


OWNED, WIDE = {"size": 1, "owner": "x"}, {"size": 1, "width": 9}
TABLE = {"part": {"a": {"size": "2K", "width": 8}, "b": {"size": 3}}, "roles": {"first": "a"}}


def test_a_table_that_people_write_is_read_by_the_fields_it_is_for():
    whole = from_table(TABLE, Whole, seen=True)
    assert whole == Whole((Part("a", 2048, Bus(8)), Part("b", 3)), "a", seen=True)
    assert key_names(Whole) == ("part", "roles")
    assert [slot.is_needed for slot in slots(Whole)] == [True, True, False]


@pytest.mark.parametrize(
    ("change", "says", "at"),
    [
        ({"roles": {}}, "key 'roles.first' is missing", "roles"),
        ({"roles": {"first": "a", "lst": "b"}}, "unknown key 'roles.lst'", "roles.lst"),
        ({"seen": True}, "unknown key 'seen'", "seen"),
        ({"part": {"a": {}}}, "key 'part.a.size' is missing", "part.a"),
        ({"part": {"a": {"size": "2x"}}}, "part.a.size: must be a size, not '2x'", "part.a.size"),
        ({"part": {"a": OWNED}}, "part.a.owner: it has no effect without width", "part.a.owner"),
        ({"part": {"a": WIDE}}, "part.a.width: must be a power of two from 8 to 64, not 9", "part.a.width"),
        ({"part": {"1": {"size": 1}}}, "part.1: '1' is not a name", "part.1"),
        ({"part": [1]}, "part: must be a table, not [1]", "part"),
    ],
)
def test_a_mistake_in_it_names_the_key_and_where_that_stands(change, says, at):
    with pytest.raises(Mismatch) as caught:
        from_table(TABLE | change, Whole)
    assert (str(caught.value), caught.value.at) == (says, at)
