"""The shared cache: it makes answers faster, never different, and no server can make a command fail."""

import contextlib
import json
import math
import os
import socket
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import msgpack
import pytest
from daemons import eventually, running
from planmutants import with_buffer
from sharedcache import MOODS, Loopback
from zeronet import small

from buildtool.api import open_session
from buildtool.base import folders
from buildtool.base.errors import UsageError
from buildtool.base.folders import (
    REMOTE_KEY,
    REMOTE_MODE,
    REMOTE_PASSWORD,
    REMOTE_TOKEN,
    REMOTE_URL,
    REMOTE_USER,
)
from buildtool.base.modes import CostUnit
from buildtool.base.store import care
from buildtool.base.store.cache import Cache
from buildtool.base.store.disk import BadEntryError
from buildtool.base.store.remote import cache as remotes
from buildtool.base.store.remote import entries
from buildtool.base.store.remote.servers import Helper
from buildtool.base.store.remote.settings import Settings
from buildtool.fronts.cli import main as cli
from buildtool.graph.hop.types import Hop
from buildtool.plan.codec import from_bytes, to_bytes
from buildtool.plan.types import Narrowed, Removed

KEY = "a secret of the team"
NAME = "a" * 64


@pytest.fixture
def server():
    with Loopback() as server:
        yield server


@pytest.fixture
def machine(tmp_path):
    """Returns a cache of a machine, whose folder has a name, with a server behind it."""
    caches = []

    def make(url, folder="new", mode="write", **more):
        cache = Cache(tmp_path / folder, "code")
        cache.connect(Settings(url, mode, **more))
        cache.begin("a request")
        caches.append(cache)
        return cache

    yield make
    for cache in caches:
        cache.remote.close()


def fill(cache, *names, level="plans", payload=b"payload"):
    for name in names:
        cache.put(level, name, payload)
    cache.flush()
    cache.share()


def find(cache, name=NAME, level="plans"):
    """Returns the payload and the lines for the user. A server that waits for ever would hang this."""
    return cache.get(level, name, {}), cache.take_warnings()


# ---- servers -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mood", MOODS)
def test_a_bad_server_costs_a_moment_and_one_line(server, machine, monkeypatch, mood):
    allowed = []
    original = Helper.run
    monkeypatch.setattr(Helper, "run", lambda self, *of: allowed.append(of[1]) or original(self, *of))
    monkeypatch.setattr(remotes, "ANSWER_SECONDS", 0.1)
    fill(machine(server.url, "ci"), NAME, "b" * 64)
    server.mood = mood
    reader = machine(server.url)
    allowed.clear()
    data, warnings = find(reader)
    assert data is None and allowed == [0.3, 0.1] and reader.remote.counts["errors"] == 1
    assert len(warnings) == bool(MOODS[mood]) and MOODS[mood] in "".join(warnings)
    asked = len(server.asked)
    again = machine(server.url)  # another process of the same build
    assert find(again) == (None, []) and find(reader, "b" * 64)[0] is None
    assert (len(server.asked) == asked) == bool(MOODS[mood])
    server.mood = ""
    assert find(machine(server.url, "elsewhere"))[0] == b"payload"
    monkeypatch.setattr(remotes, "OFF_SECONDS", 0)  # a minute later
    assert find(machine(server.url))[0] == b"payload"


@pytest.mark.parametrize("fault", ["closed port", "no name", "slow name"])
def test_a_server_that_cannot_be_reached_costs_one_time_out(machine, monkeypatch, fault):
    with socket.create_server(("127.0.0.1", 0)) as place:
        url = f"http://127.0.0.1:{place.getsockname()[1]}"

    def look_up(*_about):
        time.sleep(0.6 if fault == "slow name" else 0)
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    if fault != "closed port":
        monkeypatch.setattr(socket, "getaddrinfo", look_up)
    data, (warning,) = find(machine(url))
    said = {"slow name": "did not answer within 0.3 s", "no name": "cannot be reached (Name or service"}
    assert data is None
    assert said.get(fault, "cannot be reached (Connection refused)") in warning


@pytest.mark.parametrize("mood", ["403", "507"])
def test_a_server_that_is_full_or_only_for_reading_is_still_read(server, machine, capsys, mood):
    fill(machine(server.url, "ci"), NAME)
    writer = machine(server.url)
    server.mood = mood
    fill(writer, "b" * 64, "c" * 64)
    server.mood = ""
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and f"status {mood}" in err and "sends nothing more" in err
    assert find(writer)[0] == b"payload" and len(server.entries) == 1


def test_a_slow_server_has_five_seconds_of_a_request(server, machine, monkeypatch):
    monkeypatch.setattr(remotes, "REQUEST_SECONDS", 0.0)
    reader = machine(server.url)
    assert len(find(reader)[1]) == 1 and find(reader, "b" * 64)[1] == [] and len(server.asked) == 1


@pytest.mark.slow
def test_a_server_that_sends_without_end_keeps_no_thread(machine):
    def send():
        client, _ = there.accept()
        with client, contextlib.suppress(OSError):
            while True:
                client.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as there:
        threading.Thread(target=send, daemon=True).start()
        before = set(threading.enumerate())
        reader = machine(f"HTTP://127.0.0.1:{there.getsockname()[1]}")  # schemes have no case
        assert "did not answer within" in find(reader)[1][0]
        eventually(lambda: set(threading.enumerate()) <= before)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"$4194306\r\n" + bytes(4194308), "sent more than it was asked for"),
        (b"$99999999999999999999\r\n", "sent more than it was asked for"),
        (b"$-2\r\n", "sent more than it was asked for"),
        (b"$five\r\n", "sent no valid answer"),
        (b"+" + b"O" * 5000, "sent no valid answer"),
        (b"*1000000000\r\n", "sent no valid answer"),
        (b"-NOAUTH of ada\r\n", "credentials are missing or wrong"),
        (b"-ERR s3cr3t-words\r\n", "answered with an error (ERR)"),
        (b"$5\r\nab", "cannot be reached"),
        (b"$-1\r\n", ""),
        (b"$0\r\n\r\n", ""),
    ],
)
def test_no_answer_of_redis_is_read_beyond_what_was_asked_for(machine, answer, said):
    def send():
        client, _ = there.accept()
        with client, contextlib.suppress(OSError):
            asked.append(client.recv(1000))
            client.sendall(answer)

    asked = []
    with socket.create_server(("127.0.0.1", 0)) as there:
        threading.Thread(target=send, daemon=True).start()
        data, warnings = find(machine(f"redis://127.0.0.1:{there.getsockname()[1]}"))
    assert data is None and len(warnings) == bool(said) and said in "".join(warnings)
    assert "s3cr3t" not in str(warnings)
    words = [b"GETRANGE", b"buildtool:" + NAME.encode(), b"0", b"4194304"]
    assert asked == [b"*4\r\n" + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)]


def test_a_connection_that_the_server_has_closed_is_made_anew(server, machine):
    reader = machine(server.url)
    fill(machine(server.url, "ci"), NAME)
    find(reader, "b" * 64)
    reader.remote._server._connection.sock.shutdown(socket.SHUT_RDWR)
    assert find(reader) == (b"payload", [])


# ---- lies ----------------------------------------------------------------------------------------------


def test_every_damaged_entry_is_a_miss():
    data = entries.pack("plans", "k", b"payload" * 20, KEY)
    assert (
        entries.unpack(data, "plans", "k", KEY) == entries.unpack(data, "plans", "k", "") == b"payload" * 20
    )
    added = b"\x0a\x02ab" + data + b"\x4a\x03abc"  # a server may add fields to an ActionResult
    assert entries.unpack(added, "plans", "k", KEY) == b"payload" * 20
    bad = [data[:end] for end in range(len(data))]
    bad += [data[:i] + bytes([data[i] ^ 1 << i % 8]) + data[i + 1 :] for i in range(len(data))]
    bad += [entries.pack("plans", "k", b"payload", other) for other in ("", "another key of others")]
    bad += [entries.pack("fronts", "k", b"payload", KEY), entries.pack("plans", "l", b"payload", KEY)]
    bad += [b"\x0a\x00" * 2000 + data]
    bad += [entries.pack("plans", "k", bytes((16 << 20) + 1), KEY)]
    for one in bad:
        with pytest.raises(BadEntryError):
            entries.unpack(one, "plans", "k", KEY)


def test_namespaces_that_cannot_be_checked_need_a_key(server, machine):
    signing = machine(server.url, "ci", key=KEY)
    for name, level in (("a", "plans"), ("b", "objects"), ("c", "weights")):
        fill(signing, name * 64, level=level)
    assert len(server.entries) == 2  # weights are never sent
    server.asked.clear()
    assert find(machine(server.url))[0] == b"payload"
    assert find(machine(server.url), "b" * 64, "objects")[0] is None and len(server.asked) == 1
    assert find(machine(server.url, key=KEY), "b" * 64, "objects")[0] == b"payload"
    fill(
        machine(server.url, "other"), NAME
    )  # without a key: replaces the plan, and nobody with one believes it
    assert find(machine(server.url, "third", key=KEY))[0] is None


@pytest.fixture
def plan(tmp_path, monkeypatch, capsys):
    """Plans a network on a machine whose cache folder has a name. Returns output and warnings."""
    (tmp_path / "net.tflite").write_bytes(small())
    monkeypatch.setenv(folders.MODE, "on")

    def run(url, folder, *words, kind="plan", key="", mode="read"):
        for name, value in {REMOTE_URL: url, REMOTE_KEY: key, REMOTE_MODE: mode}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv(folders.CACHE, str(tmp_path / folder))
        session = open_session()
        board = () if "--board" in words else ("--board", "cortex-m4")
        asked = [kind, str(tmp_path / "net.tflite"), *board, "--json", *words]
        assert cli.run(asked, session) == 0
        session.keeper.share()
        said = capsys.readouterr()
        return said.out, said.err

    return run


def test_another_machine_finds_what_the_first_one_made(server, plan, capsys):
    cold = plan("", "none", kind="front")
    assert plan(server.url, "ci", kind="front", key=KEY, mode="write") == cold
    made = {path for path in server.asked if path.startswith("PUT")}
    assert len(made) > 2 and all(path.startswith("PUT /team/ac/") for path in made)
    server.asked.clear()
    assert plan(server.url, "people", kind="front", key=KEY) == cold
    assert (
        server.asked and {f"PUT{path[3:]}" for path in server.asked} <= made
    )  # it finds all, and sends none
    assert cli.run(["cache", "stats", "--json"]) == 0
    places = json.loads(capsys.readouterr().out)["places"]
    remote = places["remote"]
    assert remote["hits"] and remote["milliseconds"] and (remote["errors"], remote["sent"]) == (0, 0)
    assert places["disk"]["misses"] and places["memory"]["misses"]
    assert cli.run(["cache", "stats"]) == 0 and "\nremote " in capsys.readouterr().out


def forge(payload, lie):
    """Returns a choice with another plan."""
    index, factor, ended, data = msgpack.unpackb(payload)
    return msgpack.packb([index, factor, ended, to_bytes(lie(from_bytes(data)))])


def shift(plan):
    """Returns the plan with its first buffer where the arena ends."""
    return with_buffer(plan, 0, offset=plan.arena_bytes)


# Legal plans that say something wrong. The first three would build other code than the request asks for.
LIES = {
    "hop": lambda plan: replace(plan, hop=Hop(2)),
    "narrowed": lambda plan: replace(plan, narrowed=(Narrowed(0, 16, 8),)),
    "removed": lambda plan: replace(plan, removed=(Removed(0, (0,)),)),
    "cost": lambda plan: replace(plan, cost=plan.cost - 1),
    "unit": lambda plan: replace(plan, cost_unit=CostUnit.ISSUES),
    "strategy": lambda plan: replace(plan, strategy="the best one"),
    "accounting": lambda plan: replace(plan, accounting=("nothing",)),
    "image": lambda plan: replace(plan, image="resident"),
}


@pytest.mark.parametrize("lie", LIES)
def test_what_a_plan_says_of_itself_is_not_believed(server, plan, lie):
    cold = plan("", "none")
    assert plan(server.url, "ci", mode="write") == cold
    (path,) = server.entries
    payload = forge(entries.unpack(server.entries[path], "plans", path[-64:], ""), LIES[lie])
    server.entries[path] = entries.pack("plans", path[-64:], payload, "")
    assert plan(server.url, "victim") == cold
    assert care.stats()["places"]["remote"]["errors"] == 1


def test_what_the_firmware_takes_beside_the_arena_is_found_anew(server, plan):
    """On this board code and arena share a memory, so that a wrong size would be a wrong limit."""
    words = ("--board", "xcore")
    cold = plan("", "none", *words)
    assert plan(server.url, "ci", *words, mode="write") == cold
    assert all(
        len(msgpack.unpackb(entries.unpack(data, "plans", path[-64:], ""))) == 4
        for path, data in server.entries.items()
    )
    assert plan(server.url, "people", *words) == cold
    remote = care.stats()["places"]["remote"]
    assert remote["hits"] and not remote["errors"]


@pytest.mark.slow
def test_an_illegal_plan_and_one_beyond_the_limits_are_planned_anew(server, plan):
    """Everybody can make an entry with a checksum, so the checksum proves nothing."""
    options = ("--objective", "ram", "--max-cost", "41000")
    plan(server.url, "ci", "--objective", "ram", mode="write")
    slow = {entries.unpack(data, "plans", path[-64:], "") for path, data in server.entries.items()}
    server.entries.clear()
    cold = plan("", "none", *options)
    assert plan(server.url, "ci 2", *options, mode="write") == cold
    made = {path: entries.unpack(data, "plans", path[-64:], "") for path, data in server.entries.items()}
    server.asked.clear()
    assert plan(server.url, "people", *options) == cold
    asked = [path.removeprefix("GET ") for path in server.asked]
    assert asked and set(asked) <= set(made)
    too_slow = slow - set(made.values())  # with and without bands, say
    slowest = max(too_slow, key=lambda payload: from_bytes(msgpack.unpackb(payload)[-1]).cost)
    assert from_bytes(msgpack.unpackb(slowest)[-1]).cost > 41000
    index, _, *others = msgpack.unpackb(slowest)
    endless = msgpack.packb([index, math.inf, *others])  # JSON has no infinity
    for number, lie in enumerate((slowest, endless, *(forge(payload, shift) for payload in made.values()))):
        for path in asked:
            server.entries[path] = entries.pack("plans", path[-64:], lie, "")
        assert plan(server.url, f"victim {number}", *options) == cold


# ---- settings and credentials --------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["token", "password", "netrc"])
def test_credentials_reach_the_server_and_no_file_and_no_text(server, machine, tmp_path, capsys, how):
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login ada password s3cr3t-words\n")
    variables = {"token": {REMOTE_TOKEN: "s3cr3t-words"}, "netrc": {"NETRC": str(netrc)}}
    of_user = {REMOTE_USER: "ada", REMOTE_PASSWORD: "s3cr3t-words"}
    settings = Settings.of(
        {REMOTE_URL: server.url, REMOTE_KEY: "s3cr3t-signature", **variables.get(how, of_user)}
    )
    cache = machine(server.url)
    cache.connect(settings)
    find(cache)
    server.mood = "401"
    _, warnings = find(cache)
    cache.flush()
    cache.share()
    assert set(server.sent) == {"Bearer s3cr3t-words" if how == "token" else "Basic YWRhOnMzY3IzdC13b3Jkcw=="}
    files = [path for path in tmp_path.rglob("*") if path.is_file() and path != netrc]
    text = repr((settings, warnings, server.asked, server.entries, capsys.readouterr()))
    assert len(files) > 1 and b"s3cr3t" not in text.encode() + b"".join(path.read_bytes() for path in files)


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({REMOTE_URL: "http://ada:s3cr3t@host/"}, "must not contain credentials"),
        ({REMOTE_URL: "http://host/?sig=s3cr3t"}, "must not contain credentials"),
        ({REMOTE_URL: "ftp://host/"}, "'ftp://host/' is not the URL of a shared cache"),
        ({REMOTE_URL: "http://host:port/"}, "is not the URL"),
        ({REMOTE_URL: "http://host/", REMOTE_MODE: "wirte"}, "'wirte' is not a mode"),
        ({REMOTE_URL: "http://host/", REMOTE_KEY: "s3cr3t"}, "fewer than 16 characters"),
        ({REMOTE_URL: "http://host/", REMOTE_TOKEN: "s3cr3t\r\nHost: x"}, "cannot be sent"),
    ],
)
def test_wrong_settings_are_refused_without_quoting_a_secret(variables, said):
    with pytest.raises(UsageError, match=said) as error:
        Settings.of(variables)
    assert "s3cr3t" not in str(error.value)


@pytest.mark.slow
def test_the_command_line_names_a_server_and_sends_at_the_end_of_the_process(server, tmp_path):
    (tmp_path / "net.tflite").write_bytes(small())
    own = {REMOTE_URL: "http://host.invalid", folders.CACHE: str(tmp_path / "cache"), folders.MODE: "on"}
    words = ["plan", "net.tflite", "--board", "cortex-m4", "--cache-url", server.url, "--cache-mode", "write"]
    command = [sys.executable, "-m", "buildtool", *words]
    done = subprocess.run(
        command, cwd=tmp_path, env=os.environ | own, capture_output=True, text=True, check=True
    )
    assert done.stderr == "" and len(server.entries) == 1
    for wrong in (["--no-cache", "--cache-url", server.url], ["--cache-mode", "write"]):
        assert cli.run([*words[:4], *wrong]) == 2


@pytest.mark.slow
def test_the_daemon_uses_the_server_of_the_client_that_asks(server, tmp_path, monkeypatch, capsys):
    (tmp_path / "net.tflite").write_bytes(small())
    words = ["plan", str(tmp_path / "net.tflite"), "--board", "cortex-m4", "--daemon", "require", "--json"]
    with running(tmp_path, BUILDTOOL_DAEMON_AHEAD=0) as daemon:
        monkeypatch.setenv(REMOTE_TOKEN, "s3cr3t-words")
        assert cli.run(words) == 0  # it starts without a server
        assert server.asked == []
        shared = ["--cache-url", server.url, "--cache-mode", "write"]
        assert cli.run([*words, "--ram", "64K", *shared]) == 0
        eventually(lambda: server.entries)
        assert set(server.sent) == {"Bearer s3cr3t-words"}
        server.mood = "500"
        assert cli.run([*words, "--ram", "48K", *shared]) == 0
        assert capsys.readouterr().err.count("warning: the shared cache at 127.0.0.1") == 1
        asked = len(server.asked)
        assert cli.run([*words, "--ram", "48K", *shared]) == cli.run([*words, "--ram", "40K"]) == 0
        assert len(server.asked) == asked and capsys.readouterr().err == ""
        known = daemon.at.log.read_bytes() + daemon.at.record.read_bytes()
        assert b"s3cr3t" not in known + Path(f"/proc/{daemon.pid}/environ").read_bytes()
