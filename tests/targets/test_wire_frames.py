"""Frames over a stream that garbles: the C of the firmware and the host's Python are twins."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest
from buildtool_plugins.wire import ROOT
from buildtool_plugins.wire.link import MOST_PAYLOAD, Decoder, Frame, decoded
from hypothesis import given, settings
from hypothesis import strategies as st
from needs import needs_tool
from paths import TESTS

payloads = st.one_of(
    st.binary(max_size=MOST_PAYLOAD),
    st.integers(0, MOST_PAYLOAD).map(bytes),  # zeros alone
    st.integers(0, MOST_PAYLOAD).map(lambda n: b"\xff" * n),
)
frames = st.builds(Frame, st.sampled_from("HWabz"), st.integers(0, 255), st.integers(0, 65535), payloads)


@settings(derandomize=True, deadline=None, max_examples=40)
@given(st.lists(st.tuples(frames, st.binary(max_size=20)), max_size=6), st.integers(1, 50))
def test_frames_come_out_of_a_stream_with_rubbish_between_them(
    sent: list[tuple[Frame, bytes]], piece: int
) -> None:
    stream = b"".join(rubbish + frame.encoded() for frame, rubbish in sent)
    decoder, found = Decoder(), list[Frame]()
    for at in range(0, len(stream), piece):
        found += decoder.feed(stream[at : at + piece])
    assert [frame for frame in found if frame in [one for one, _ in sent]] == [frame for frame, _ in sent]


@settings(derandomize=True, deadline=None, max_examples=40)
@given(frames, st.data())
def test_a_byte_that_is_changed_or_lost_makes_no_frame(frame: Frame, data: st.DataObject) -> None:
    encoded = frame.encoded().strip(b"\0")
    at = data.draw(st.integers(0, len(encoded) - 1))
    other = data.draw(st.integers(1, 255).filter(lambda byte: byte != encoded[at]))
    assert decoded(encoded) == frame
    assert decoded(encoded[:at] + bytes([other]) + encoded[at + 1 :]) is None
    assert decoded(encoded[:at] + encoded[at + 1 :]) is None


@pytest.fixture(scope="module")
def firmware(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """frames.c with sanitizers, on standard input and output."""
    program = tmp_path_factory.mktemp("frames") / "frames"
    flags = ["-std=gnu99", "-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    sources = [ROOT / "frames.c", TESTS / "targets/wire/frames_main.c"]
    subprocess.run(
        [needs_tool("cc"), *flags, f"-I{ROOT}", *map(str, sources), "-o", str(program)],
        check=True,
        timeout=60,
    )
    return program


def said(firmware: Path, stream: bytes) -> list[Frame]:
    done = subprocess.run([firmware], input=stream, capture_output=True, check=True, timeout=60)
    return Decoder().feed(done.stdout)


@pytest.mark.slow
def test_the_firmware_answers_each_request_of_its_session_once(firmware: Path) -> None:
    """Twice the same is answered twice alike, what another session sends is refused, a hello begins anew."""
    hello, other = Frame("H", 1, 7), Frame("W", 9, 8, b"abc")
    work = [Frame("W", n % 256, 7, bytes([n % 256, 0]) * (n % 121)) for n in range(2, 300)]
    stream = [Frame("W", 5, 0, b"x"), hello, *work, work[-1], other, work[-1], Frame("H", 3, 8), other]
    answers = said(firmware, b"".join(frame.encoded() for frame in stream))
    turned = [Frame("w", one.sequence, 7, one.payload[::-1]) for one in work]
    expected = [Frame("e", 5, 0, b"\1"), Frame("h", 1, 7), *turned, turned[-1], Frame("e", 9, 7, b"\1")]
    assert answers[: len(expected)] == expected
    assert answers[-2:] == [Frame("h", 3, 8), Frame("w", 9, 8, b"cba")]


@pytest.mark.slow
def test_the_firmware_stands_whatever_comes(firmware: Path) -> None:
    """Rubbish, half frames, frames that are too long: the next whole request is answered all the same."""
    chance = random.Random(4)
    for _ in range(12):
        stream = b""
        for number in range(200):
            whole = Frame("W", number, 7, chance.randbytes(chance.randrange(MOST_PAYLOAD))).encoded()
            cut = chance.randrange(len(whole))
            stream += chance.choice(
                [whole[:cut], whole[cut:], chance.randbytes(cut), bytes(cut), b"\1" * 600]
            )
        last = Frame("W", 201, 7, bytes(range(240)))
        tail = Frame("H", 200, 7).encoded() + last.encoded()
        assert said(firmware, stream + b"\0" + tail)[-2:] == [
            Frame("h", 200, 7),
            Frame("w", 201, 7, last.payload[::-1]),
        ]
