"""Frames: messages arrive as they were sent, and invalid frames are refused."""

import contextlib
import io
import struct

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buildtool.base import errors, wire
from buildtool.base.errors import BuildtoolError, ToolError, from_data, to_data

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.text()
    | st.binary()
    | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def frame(message):
    payload = msgpack.packb(message, use_bin_type=True)
    return struct.pack("<I", len(payload)) + payload


class Trickle(io.RawIOBase):
    """A stream that returns one byte per read, as a slow pipe may."""

    def __init__(self, data):
        self.data = io.BytesIO(data)

    def read(self, size=-1):
        return self.data.read(min(size, 1))


@pytest.mark.slow
@given(st.lists(st.dictionaries(st.text(), VALUES, max_size=4), max_size=4))
@settings(derandomize=True, deadline=None)
def test_messages_arrive_one_by_one_as_they_were_sent(messages):
    stream = io.BytesIO()
    sent = [{**message, "protocol": wire.PROTOCOL} for message in messages]
    for message in sent:
        wire.send(stream, message)
    stream.seek(0)
    assert [wire.receive(stream) for _ in sent] == sent
    assert wire.receive(stream) is None


def test_a_slow_stream_is_waited_for_and_one_that_ends_within_a_frame_is_an_error():
    message = {"protocol": wire.PROTOCOL, "request": {"kind": "boards"}}
    assert wire.receive(Trickle(frame(message))) == message
    whole = frame({"protocol": wire.PROTOCOL})
    for length in range(1, len(whole)):
        with pytest.raises(ToolError, match="ended within a frame"):
            wire.receive(io.BytesIO(whole[:length]))


def test_a_huge_length_is_refused_before_anything_is_read_or_sent(monkeypatch):
    stream = io.BytesIO(struct.pack("<I", 0xFFFFFFFF) + b"x" * 100)
    with pytest.raises(ToolError, match="exceeds the limit"):
        wire.receive(stream)
    assert stream.tell() == 4

    monkeypatch.setattr(wire, "FRAME_LIMIT", 100)
    stream = io.BytesIO()
    with pytest.raises(ToolError, match="exceeds the limit"):
        wire.send(stream, {"data": b"x" * 101})
    assert stream.getvalue() == b""


@given(st.binary(max_size=40))
@settings(derandomize=True, deadline=None)
def test_garbage_raises_our_error_only(payload):
    with contextlib.suppress(ToolError):
        wire.receive(io.BytesIO(struct.pack("<I", len(payload)) + payload))


CLASSES = [c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, BuildtoolError)]


@pytest.mark.parametrize("cls", CLASSES)
def test_errors_cross_with_their_class_and_every_field(cls):
    fields = {"path": "m.tflite", "operator": "#3 ADD", "tensor": "sum", "hint": "do this"}
    error = from_data(to_data(cls("wrong", **fields)))
    assert type(error) is cls
    assert str(error) == str(cls("wrong", **fields))
    error = from_data({"code": "LATER", "text": "from a newer service"})  # an unknown code is kept
    assert str(error) == "error: from a newer service [LATER]"
