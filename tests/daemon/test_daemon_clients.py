"""All clients together: unread bytes, disconnecting clients, and room for "status" and "stop"."""

import contextlib
import os
import resource
import signal
import socket
from pathlib import Path

import pytest
from daemons import BOARDS, HELLO, Clock, dialled, eventually, heard, is_running, running

from buildtool.base import wire
from buildtool.base.errors import ToolError
from buildtool.base.locks import process
from buildtool.base.wire import Decoder
from buildtool.client.endpoint import AbsentError
from buildtool.daemon import connection
from buildtool.daemon.connection import MOST_CLIENTS, MOST_WAITING, Clients, Connection
from buildtool.fronts.cli import upkeep

EMIT = {"kind": "emit", "model": "ds_cnn", "board": "host", "name": "net"}


def pack_request(request):
    return wire.pack_frame({"request": request})


@pytest.fixture
def sockets():
    """A function that opens a connection to a daemon, and sends hello and further messages."""
    with contextlib.ExitStack() as stack:
        yield lambda daemon, *messages: stack.enter_context(dialled(daemon, HELLO, *messages))


class Pairs:
    """Connections without a daemon, with their `clock`."""

    def __init__(self, stack):
        self.clock, self._stack = Clock(), stack
        self.clients = Clients()

    def one(self):
        ours, theirs = map(self._stack.enter_context, socket.socketpair())
        ours.setblocking(False)
        client = Connection(theirs, self.clock)
        self.clients.add(client)
        self.clock.now += 1
        return ours, client


@pytest.fixture
def pairs():
    with contextlib.ExitStack() as stack:
        yield Pairs(stack)


def read_all(ours):
    """Returns the bytes that can be read now."""
    data = b""
    with contextlib.suppress(BlockingIOError):
        while part := ours.recv(1 << 20):
            data += part
    return data


# ---- one connection ----------------------------------------------------------------------------------


def test_a_client_that_does_not_read_is_not_heard_until_it_does(pairs):
    ours, client = pairs.one()
    ours.sendall(wire.pack_frame(HELLO) + pack_request(BOARDS) * 3)
    assert client.read() and client.take()["hello"] == {}
    answer = b"x" * (1 << 20)
    client.send_frame(answer)
    assert client.is_paused and client.take() is None and not client.has_message
    assert client.events == connection.selectors.EVENT_WRITE
    ours.sendall(pack_request(BOARDS))
    held = client.held
    assert client.read() and client.held == held  # it stays in the socket
    read = len(read_all(ours))
    while read < len(answer):
        assert client.write()
        read += len(read_all(ours))
    assert [client.take()["request"] for _ in range(3)] == [BOARDS] * 3
    assert client.take() is None and client.read() and client.take()["request"] == BOARDS


def test_a_client_that_reads_nothing_for_long_is_hung_up_on(pairs):
    ours, client = pairs.one()
    ours.sendall(wire.pack_frame(HELLO))
    assert client.read() and client.take()
    assert not client.is_stuck(pairs.clock.now + 1e9)  # it was sent nothing
    client.send_frame(b"x" * (1 << 21))
    now = client.used + connection.FRAME_SECONDS
    assert not client.is_stuck(now - 1) and client.is_stuck(now + 1)
    pairs.clock.now = now - 1
    read_all(ours)
    assert client.write() and client.wants_to_write
    assert not client.is_stuck(now + 1)  # it has read some


def test_a_client_whose_hello_or_frame_takes_too_long_is_hung_up_on(pairs):
    ours, client = pairs.one()
    limit = client.used + connection.FRAME_SECONDS
    assert not client.is_stuck(limit - 1) and client.is_stuck(limit + 1)  # it has not said hello
    ours.sendall(wire.pack_frame(HELLO))
    assert client.read() and client.take() and not client.is_stuck(1e12)
    limit, request = pairs.clock.now + connection.FRAME_SECONDS, pack_request(BOARDS)
    for part in (request[:7], request[7:9]):
        ours.sendall(part)
        assert client.read() and client.take() is None
        assert not client.is_stuck(limit - 1) and client.is_stuck(limit + 1)
        pairs.clock.now += 5


def test_messages_of_very_many_values_are_refused(pairs):
    for value in ([0] * 30_000, [[0, {"a": [1, 2]}]] * 5_000, {str(n): n for n in range(11_000)}):
        ours, client = pairs.one()
        ours.setblocking(True)
        ours.sendall(pack_request({"kind": "plan", "options": value}))
        with pytest.raises(ToolError, match="20,000 values"):
            while client.read():
                client.take()
    ours, client = pairs.one()
    ours.sendall(pack_request({"kind": "plan", "data": b"x" * 100_000}))
    assert client.read() and client.take()


# ---- all of them -------------------------------------------------------------------------------------


def test_who_has_read_nothing_for_longest_goes_when_all_hold_too_much(pairs, monkeypatch):
    monkeypatch.setattr(connection, "MOST_BYTES", 10 << 20)
    clients = [pairs.one()[1] for _ in range(5)]
    for client in clients[:4]:
        pairs.clock.now += 1
        client.send_frame(bytes(4 << 20))
    assert pairs.clients.surplus() == clients[:2]
    clients[0].used = pairs.clock.now + 1  # it has read some
    assert pairs.clients.surplus() == clients[1:3]
    for client in clients[:3]:
        pairs.clients.discard(client)
    clients[3].send_frame(bytes(60 << 20))
    assert pairs.clients.held > 10 << 20 and pairs.clients.surplus() == []  # one answer may be as large


def test_room_is_made_by_the_longest_idle_and_last_by_an_editor(pairs):
    clients = [pairs.one()[1] for _ in range(5)]
    clients[0].leased = True
    clients[1].job = "at work"
    clients[2].send_frame(bytes(1 << 21))
    clients[3].used = clients[4].used + 1
    order = []
    while (client := pairs.clients.to_make_room()) is not None:
        order.append(client)
        pairs.clients.discard(client)
    assert order == [clients[4], clients[3], clients[2], clients[0]]
    assert pairs.clients == {clients[1]}


def test_requests_wait_within_a_number_and_a_size(pairs):
    asking = pairs.one()[1]
    asking.asked_bytes = 1 << 20
    for number in range(MOST_WAITING):
        assert pairs.clients.refusal(asking) == ""
        waiting = pairs.one()[1]
        waiting.job, waiting.asked_bytes = f"{number}", 1000
    assert "112 clients wait" in pairs.clients.refusal(asking)
    for client in list(pairs.clients)[: MOST_WAITING // 2]:
        client.job = None if client.job is not None else client.job
    for client in pairs.clients:
        client.asked_bytes = 1 << 20
    assert "together are too large" in pairs.clients.refusal(asking)


# ---- a daemon ----------------------------------------------------------------------------------------


def peak(pid):
    """Returns the peak memory of a process in bytes."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))


@pytest.mark.slow
def test_twelve_clients_that_ask_for_much_and_read_nothing_take_little_memory(tmp_path, sockets):
    with running(tmp_path) as daemon:
        daemon.ask(EMIT)
        before = peak(daemon.pid)
        greedy = [sockets(daemon, *[{"request": EMIT}] * 55) for _ in range(12)]
        eventually(lambda: daemon.counts()["requests"] >= 1 + len(greedy))
        answers = 0
        for ours in greedy[:2]:  # a client that reads late still gets everything
            decoder = Decoder()
            while answers < 55:
                answers += sum("answer" in message for message in decoder.feed(ours.recv(1 << 18)))
            answers -= 55
        assert peak(daemon.pid) - before < 16 << 20
        assert daemon.counts()["faults"] == 0


@pytest.mark.slow
def test_status_and_stop_get_through_a_crowd_of_idle_clients(tmp_path, sockets):
    with running(tmp_path) as daemon:
        daemon.link().close()
        idle = [sockets(daemon) for _ in range(MOST_CLIENTS + 20)]
        for ours in idle[-5:]:
            assert heard(ours, lambda message: "hello" in message)
        answer, text, status = upkeep.daemon_command("status")
        assert status == 0 and "the daemon runs" in text
        assert answer["daemons"][0]["clients"] == MOST_CLIENTS
        assert daemon.ask(BOARDS)["boards"]
        assert b"" in (idle[0].recv(1 << 16), idle[0].recv(1 << 16))  # it was idle for longest
        pid = daemon.pid
        assert upkeep.daemon_command("stop")[0] == {"stopped": [pid]}
        assert not is_running(pid)


@pytest.mark.slow
def test_status_and_stop_get_through_a_crowd_that_waits_for_answers(tmp_path, sockets):
    with running(tmp_path) as daemon:
        daemon.stop_workers()
        requests = ({"request": {**EMIT, "name": f"n{n}"}} for n in range(MOST_WAITING + 10))
        many = [sockets(daemon, request) for request in requests]
        refused = [message for ours in many[-10:] for message in heard(ours, lambda m: "error" in m)]
        texts = [message["error"]["text"] for message in refused if message.get("crash")]
        assert texts == [f"{MOST_WAITING} clients wait for answers already"] * 10
        idle = [sockets(daemon) for _ in range(MOST_CLIENTS)]
        assert heard(idle[-1], lambda message: "hello" in message)
        assert daemon.status()["clients"] == MOST_CLIENTS
        pid = daemon.pid
        for ours in many:
            ours.close()
        eventually(lambda: not daemon.at_work())
        assert daemon.counts()["planned"] < MOST_WAITING // 2  # most were given up before they began
        assert upkeep.daemon_command("stop")[0] == {"stopped": [pid]}
        assert not is_running(pid)


@pytest.mark.slow
def test_a_daemon_that_has_no_descriptor_left_hangs_up_on_who_is_idle(tmp_path, sockets):
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    few = len(os.listdir("/proc/self/fd")) + 30  # noqa: PTH208
    with running(tmp_path) as daemon:
        resource.setrlimit(resource.RLIMIT_NOFILE, (few, before[1]))
        try:
            daemon.link().close()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
        idle = [sockets(daemon) for _ in range(few + 10)]
        assert heard(idle[-1], lambda message: "hello" in message)
        assert daemon.status()["clients"] < min(few, MOST_CLIENTS)
        assert daemon.ask(BOARDS)["boards"]


@pytest.mark.slow
def test_one_that_says_much_at_once_lets_others_speak(tmp_path, sockets):
    with running(tmp_path) as daemon:
        daemon.link().close()
        talker = sockets(daemon, *[{"control": "status"}] * 300)
        assert daemon.ask(BOARDS)["boards"]
        decoder, count = Decoder(), 0
        while count < 300:
            count += sum("control" in message for message in decoder.feed(talker.recv(1 << 16)))
        assert count == 300


@pytest.mark.slow
def test_stop_does_not_say_stopped_while_the_process_lives(tmp_path, monkeypatch):
    monkeypatch.setattr(upkeep, "SILENT_SECONDS", 0.3)
    monkeypatch.setattr(upkeep, "STOP_SECONDS", 0.3)
    with running(tmp_path) as daemon:
        daemon.link().close()
        pid = daemon.pid
        monkeypatch.setattr("buildtool.client.daemon.HELLO_SECONDS", 0.3)
        os.kill(pid, signal.SIGSTOP)
        with monkeypatch.context() as patch:
            patch.setattr(upkeep, "_signal", lambda *about: None)  # the process cannot end
            with pytest.raises(ToolError, match=f"process {pid} .* still runs"):
                upkeep.daemon_command("stop")
        assert is_running(pid)
        assert upkeep.daemon_command("stop")[0] == {"stopped": [pid]}
        assert not is_running(pid) and process(pid)[1] == ""


def test_stop_names_each_daemon_that_did_not_end_and_those_that_did(tmp_path, monkeypatch):
    def outcome(at):
        if at == 2:
            return at
        raise ToolError(f"process {at} still runs")

    monkeypatch.setattr(upkeep.endpoint, "every", lambda: [1, 2, 3])
    monkeypatch.setattr(upkeep, "_stop_daemon", outcome)
    with pytest.raises(ToolError) as caught:
        upkeep.daemon_command("stop", every=True)
    assert caught.value.text == "process 1 still runs; process 3 still runs; stopped: process 2"


def test_stop_finds_a_daemon_that_ended_meanwhile_and_tells_of_those_for_another_cache(tmp_path, monkeypatch):
    def killed(at, word):
        os.kill(at.process()[0], signal.SIGKILL)
        eventually(lambda: not at.is_alive())
        raise AbsentError("the daemon cannot be reached")

    with running(tmp_path) as daemon:
        daemon.link().close()
        pid = daemon.pid
        with monkeypatch.context() as patch:
            patch.setenv("BUILDTOOL_CACHE_DIR", str(tmp_path / "another"))
            answer, text, status = upkeep.daemon_command("stop")
        assert (answer, status) == ({"stopped": []}, 0)
        assert text == "no daemon was running for this code and this cache; 1 runs for another: see --all"
        monkeypatch.setattr(upkeep, "_send_control", killed)
        assert upkeep.daemon_command("stop")[0] == {"stopped": [pid]}
