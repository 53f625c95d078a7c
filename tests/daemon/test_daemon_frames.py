"""Hostile frames and entries: a small part of `python -m benchmarks.fuzz_daemon`."""

import importlib.util
import struct
import time

import msgpack
import pytest
from daemons import BOARDS, dialled, eventually, heard, running
from paths import ROOT

from buildtool.base import wire
from buildtool.base.wire import Decoder

_SPEC = importlib.util.spec_from_file_location("fuzz_daemon", ROOT / "benchmarks" / "fuzz_daemon.py")
fuzz = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(fuzz)
HELLO, KINDS = fuzz.HELLO, fuzz.KINDS


@pytest.mark.slow
def test_hostile_frames_harm_nobody(tmp_path):
    with running(tmp_path):
        number = (len(KINDS) + len(fuzz.STAYING)) * 8
        (counts,) = fuzz.frames(number, seed=3, batch=number)
    assert sum(counts.values()) == number
    assert not [what for what in counts if "SILENT" in what]
    for kind in ("garbage in a frame", "huge lengths", "other versions", "deep", "bombs"):
        assert counts[f"{kind}: refused"] > 0
        assert counts[f"{kind}: answered"] == 0


@pytest.mark.slow
def test_hostile_entries_change_no_answer_and_leave_the_folder_alone(tmp_path):
    counts = fuzz.entries(36, 5, tmp_path)
    assert {what.split()[0] for what in counts} >= {"plans", "fronts", "code", "weights"}


@pytest.mark.slow
def test_a_slow_sender_is_waited_for(tmp_path):
    request = wire.pack_frame({"protocol": wire.PROTOCOL, "request": BOARDS})
    with running(tmp_path) as daemon:
        daemon.link().close()
        with dialled(daemon) as slow:
            for byte in HELLO + request[:-1]:
                slow.sendall(bytes([byte]))
            time.sleep(0.6)
            slow.sendall(request[-1:])
            heard(slow, lambda message: "answer" in message)


@pytest.mark.slow
def test_a_frame_of_many_small_things_takes_no_more_memory_than_its_bound_allows():
    import tracemalloc

    count = wire.REQUEST_LIMIT - 100
    payload = b"\x82\xa8protocol\x01\xa7request\xdd" + struct.pack(">I", count) + b"\x90" * count
    tracemalloc.start()
    try:
        assert len(Decoder(wire.REQUEST_LIMIT).feed(struct.pack("<I", len(payload)) + payload)) == 1
        assert tracemalloc.get_traced_memory()[1] < 96 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_wrong_words_and_pipelined_requests_are_refused(tmp_path):
    def refusal(daemon, *messages):
        with dialled(daemon, *messages) as ours:
            return [message["error"]["text"] for message in heard(ours) if "error" in message]

    hello, slow = {"hello": {}}, {"request": {"kind": "zoo"}, "cache": "off"}
    with running(tmp_path) as daemon:
        daemon.link().close()
        daemon.stop_workers()
        for said, *messages in (
            ("a client must say hello first", {"request": BOARDS}),
            ("an unknown control word", hello, {"control": "nonesuch"}),
            ("a message has no known key", hello, {}),
            ("a request must be a map", hello, {"request": [1]}),
            ("an unknown value of 'cache'", hello, {"request": BOARDS, "cache": "x"}),
            ("a client may send only one request at a time", hello, slow, slow),
        ):
            assert refusal(daemon, *messages) == [said]
        eventually(lambda: daemon.counts()["bad"] == 6)
        assert msgpack.packb(daemon.ask(BOARDS))
