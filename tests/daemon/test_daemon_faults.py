"""Faults of the daemon: the caller always gets its answer in bounded time, and nothing is left behind."""

import errno
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from daemons import BOARDS, eventually, is_running, leave_no_memory, running

from buildtool.api import handle
from buildtool.base import wire
from buildtool.base.errors import ToolError
from buildtool.base.folders import STATE, private
from buildtool.base.locks import hold_lock, process
from buildtool.client import daemon as client
from buildtool.client import door
from buildtool.client import endpoint as places
from buildtool.client.endpoint import Endpoint
from buildtool.daemon.lifetime import retire_others
from buildtool.fronts.cli import upkeep

ZOO = {"kind": "zoo"}


def ask_door(capsys, request=BOARDS):
    """Returns whether the answer came from this process, and the lines printed."""
    here = []
    answer = door.ask(request, lambda asked: here.append(1) or handle(asked), mode=door.Mode.AUTO)
    assert json.dumps(answer) == json.dumps(handle(request))
    return bool(here), capsys.readouterr().err.splitlines()


@pytest.mark.slow
def test_a_daemon_that_is_killed_in_mid_request_costs_time_and_no_build(tmp_path, capsys):
    with running(tmp_path) as daemon:
        daemon.stop_workers()
        waiting = daemon.asking(ZOO)
        pid, workers = daemon.pid, daemon.workers()
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(client.AbsentError, match="ended during the request"):
            waiting.result(5)
        assert daemon.at.address.exists()  # a stale socket
        eventually(lambda: not any(map(is_running, workers)))
        assert ask_door(capsys) == (False, [])
        assert daemon.pid != pid
        assert "without a message" in daemon.status()["last_end"]


@pytest.mark.slow
def test_a_daemon_that_is_stopped_in_mid_request_is_given_up_and_told_of_in_one_line(
    tmp_path, capsys, monkeypatch
):
    with running(tmp_path) as daemon:
        daemon.stop_workers()
        for where, name, seconds in (
            (client, "HELLO_SECONDS", 0.7),
            (client, "SILENCE_SECONDS", 1.2),
            (upkeep, "SILENT_SECONDS", 0.5),
        ):
            monkeypatch.setattr(where, name, seconds)
        waiting = daemon.asking(ZOO)
        os.kill(daemon.pid, signal.SIGSTOP)
        with pytest.raises(client.AbsentError, match="sent nothing"):
            waiting.result(5)
        here, lines = ask_door(capsys)
        assert here and len(lines) == 1 and lines[0].startswith("note: ") and "sent nothing" in lines[0]
        with pytest.raises(ToolError, match="does not answer"):
            door.ask(BOARDS, handle, mode=door.Mode.REQUIRE)
        assert upkeep.daemon_command("stop")[2] == 0
        assert daemon.is_over()


@pytest.mark.slow
def test_a_worker_that_is_stopped_is_found_out_and_the_caller_answers_itself(tmp_path, capsys):
    with running(tmp_path, BUILDTOOL_DAEMON_SILENCE=3) as daemon:
        daemon.stop_workers()
        here, lines = ask_door(capsys, ZOO)
        assert here and len(lines) == 1 and "sent nothing for long" in lines[0]
        assert daemon.counts()["crashes"] == 1
        assert ask_door(capsys, ZOO) == (False, [])


@pytest.mark.slow
def test_sigterm_and_stop_take_the_endpoint_away_and_let_the_work_end(tmp_path, monkeypatch):
    monkeypatch.setattr(client, "CONNECT_SECONDS", 0.3)
    for how in ("signal", "stop"):
        with running(tmp_path / how) as daemon:
            daemon.stop_workers()
            waiting = daemon.asking(ZOO)
            workers = daemon.workers()
            if how == "signal":
                os.kill(daemon.pid, signal.SIGTERM)
                eventually(lambda at=daemon.at: not at.address.exists())
            else:
                link = daemon.link()
                assert link.control("stop")["stopping"]
                assert not daemon.at.address.exists()  # before the reply
                link.close()
            with pytest.raises(client.AbsentError, match="no daemon is running"):
                daemon.link(start=False)
            with pytest.raises(client.AbsentError, match="has not ended yet"):
                daemon.link()
            assert not waiting.is_done
            for pid in workers:
                os.kill(pid, signal.SIGCONT)
            assert waiting.result()["answer"]
            eventually(daemon.is_over)
            eventually(lambda pids=workers: not any(map(is_running, pids)))
            ended = "signal SIGTERM" if how == "signal" else "it was stopped"
            assert daemon.at.read_record()["ended"] == ended
            assert daemon.ask(BOARDS) and daemon.status()["last_end"] == ended


@pytest.mark.slow
def test_a_daemon_ends_when_its_socket_its_lock_or_its_folder_is_gone(tmp_path):
    for what in ("socket", "lock", "folder"):
        with running(tmp_path / what) as daemon:
            daemon.link().close()
            pid = daemon.pid
            if what == "folder":
                shutil.rmtree(daemon.at.folder)
            else:
                (daemon.at.address if what == "socket" else daemon.at.lock).unlink()
            eventually(lambda pid=pid: not is_running(pid))
            assert daemon.at.read_record().get("ended", "") == (
                "its socket or its folder is gone" if what == "socket" else ""
            )


@pytest.mark.slow
def test_a_daemon_ends_when_its_caches_folder_is_gone_and_does_not_make_it_again(tmp_path):
    request = {"kind": "plan", "model": "ds_cnn", "board": "cortex-m4"}
    with running(tmp_path) as daemon:
        assert daemon.ask(BOARDS)
        pid, cache = daemon.pid, tmp_path / "cache"
        eventually(lambda: daemon.ask(request) and cache.is_dir())
        eventually(lambda: all(w["doing"] == "idle" for w in daemon.status()["workers"]))
        shutil.rmtree(cache)
        eventually(lambda: not is_running(pid))
        assert daemon.at.read_record()["ended"] == "its cache's folder is gone"
        assert not cache.exists()
        assert daemon.ask(request)["board"] == "cortex-m4" and cache.is_dir()


@pytest.mark.slow
def test_a_daemon_that_nobody_asks_ends_unless_an_editor_holds_it(tmp_path):
    with running(tmp_path, BUILDTOOL_DAEMON_IDLE=0.3) as daemon:
        link = daemon.link()
        pid = daemon.pid
        assert link.control("lease") == {"leased": True}
        time.sleep(1.2)
        assert is_running(pid) and daemon.status()["leases"] == 1
        link.close()
        eventually(lambda: not is_running(pid))
        assert "no request came" in daemon.at.read_record()["ended"]
        assert not daemon.at.address.exists()


@pytest.mark.slow
def test_over_the_ceiling_of_memory_a_worker_forgets_and_then_another_takes_its_place(tmp_path):
    with running(tmp_path, BUILDTOOL_DAEMON_BYTES=1) as daemon:
        assert daemon.ask(BOARDS)
        (before,) = eventually(daemon.workers)
        assert daemon.ask(ZOO, "off")
        eventually(lambda: before not in daemon.workers())
        assert daemon.ask(ZOO, "off")
        assert daemon.counts()["crashes"] == 0


@pytest.mark.slow
def test_a_worker_that_found_no_memory_answers_no_other_request(tmp_path):
    """CPython 3.11 may free a function that is in use where a call finds no memory."""
    with running(tmp_path) as daemon:
        daemon.link().close()
        eventually(lambda: [w["doing"] for w in daemon.status()["workers"]] == ["idle"])
        (before,) = daemon.workers()
        leave_no_memory(before)
        with pytest.raises(client.AbsentError, match="more memory"):
            daemon.ask({"kind": "plan", "model": "mobilenetv2", "board": "cortex-m4"}, "off")
        assert before not in daemon.workers()
        assert daemon.ask(BOARDS) and daemon.counts()["crashes"] == 0


def test_alive_is_who_holds_the_lock_and_nobody_else_is_killed(tmp_path, monkeypatch):
    monkeypatch.setenv(STATE, str(tmp_path / "state"))
    at = places.endpoint().prepared()
    record = {"pid": os.getpid(), "start": "1", "ended": ""}
    at.record.write_text(json.dumps(record))
    assert not at.is_alive()  # another process may have that PID
    at.lock.touch()
    assert not at.is_alive()
    monkeypatch.setattr(upkeep, "SILENT_SECONDS", 0.2)
    with hold_lock(at.lock, wait=False) as mine:
        assert mine is not None and at.is_alive()
        with pytest.raises(ToolError, match="its process number is not known"):
            upkeep.daemon_command("stop")
        for damaged in ("", "[]", '{"pid": "x", "start": 5}', "\0"):
            at.record.write_text(damaged)
            with pytest.raises(ToolError, match="its process number is not known"):
                upkeep.daemon_command("stop")
    assert not at.is_alive()
    assert process(os.getpid())[1] not in ("", "1")


def test_a_folder_that_is_not_the_users_alone_starts_no_daemon(tmp_path, monkeypatch, capsys):
    folder = private(tmp_path / "state")
    folder.chmod(0o777)
    monkeypatch.setenv(STATE, str(folder))
    here, lines = ask_door(capsys)
    assert here and len(lines) == 1 and "others may write" in lines[0]
    assert not list(folder.iterdir())


def test_the_last_words_of_a_daemon_that_dies_at_its_start_reach_the_client(tmp_path, monkeypatch):
    (tmp_path / "sitecustomize.py").write_text(
        "import os, sys\n"
        "if 'buildtool.daemon' in sys.orig_argv:\n"
        "    os.write(2, b'the disk has melted\\n')\n"
        "    os._exit(3)\n"
    )
    with running(tmp_path, PYTHONPATH=str(tmp_path)) as daemon:
        with pytest.raises(client.AbsentError, match="the disk has melted"):
            daemon.link()
        with pytest.raises(ToolError, match="the disk has melted"):
            upkeep.daemon_command("start")


@pytest.mark.slow
def test_a_client_of_another_version_or_of_other_code_answers_itself(tmp_path, monkeypatch):
    with running(tmp_path) as daemon:
        daemon.link().close()
        for where, name, value, message in (
            (client, "__version__", "0.0", "another version"),
            (wire, "PROTOCOL", 99, "protocol"),
            (daemon, "at", Endpoint("f" * 16, daemon.at.folder), "code has changed"),
        ):
            with monkeypatch.context() as patch, pytest.raises(client.AbsentError, match=message):
                patch.setattr(where, name, value)
                daemon.link()
        assert daemon.ask(BOARDS)


@pytest.mark.slow
def test_a_daemon_of_older_code_ends_when_a_newer_one_starts_and_leaves_nothing(tmp_path):
    with running(tmp_path) as daemon:
        daemon.link().close()
        retire_others(Endpoint("0" * 16, daemon.at.folder), daemon.at.read_record()["code"])
        assert daemon.ask(BOARDS)  # it has the same code, and may have another cache
        retire_others(Endpoint("0" * 16, daemon.at.folder), "newer code")
        eventually(daemon.is_over)
        assert "newer code" in daemon.at.read_record()["ended"]
        retire_others(Endpoint("0" * 16, daemon.at.folder), "newer code")
        assert not list(daemon.at.folder.iterdir())


def connect_as_stranger(address):
    """Returns what another user gets at a socket: the number of bytes of an answer, or the error's name."""
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        text = "nothing"
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            with socket.socket(socket.AF_UNIX) as ours:
                ours.settimeout(5)
                ours.connect(str(address))
                ours.sendall(wire.pack_frame({"hello": {}}))
                text = f"heard {len(ours.recv(100))}"
        except OSError as error:
            text = errno.errorcode.get(error.errno or 0, "no error")
        finally:
            os.write(write, text.encode())
            os._exit(0)
    os.close(write)
    os.waitpid(pid, 0)
    with os.fdopen(read, "rb") as pipe:
        return pipe.read().decode()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_another_user_can_neither_reach_the_socket_nor_speak_to_it():
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    try:
        with running(folder) as daemon:
            daemon.link().close()
            assert connect_as_stranger(daemon.at.address) == "EACCES"  # because of the folder
            for path in (folder, daemon.at.folder, daemon.at.address):
                path.chmod(0o777)
            assert connect_as_stranger(daemon.at.address) in ("heard 0", "ECONNRESET", "EPIPE")
            assert daemon.counts()["bad"] == 0
    finally:
        shutil.rmtree(folder)


def test_the_door_has_three_modes_and_is_off_where_ci_is_set(monkeypatch):
    monkeypatch.delenv(door.MODE)
    for value in ("", "0", "false", "true", "1"):
        monkeypatch.setenv("CI", value)
        assert door.mode() == ("off" if value in ("true", "1") else "auto")
        assert door.mode("require") == "require"
    for word in ("auto", "OFF", "Require"):
        monkeypatch.setenv(door.MODE, word)
        assert door.mode() == word.lower()
    with pytest.raises(door.UsageError, match="unknown mode 'of'"):
        door.mode("of")
    monkeypatch.setenv(door.MODE, "maybe")
    with pytest.raises(door.UsageError, match="BUILDTOOL_DAEMON"):
        door.mode()


@pytest.mark.slow
def test_a_client_imports_the_standard_library_and_msgpack_alone(tmp_path):
    code = """
import sys
before = set(sys.modules)
from buildtool.client import *
from buildtool.client import door
def here(request):
    raise SystemExit("it was not asked")
assert door.ask({"kind": "boards"}, here, mode=door.Mode.REQUIRE)["boards"]
found = {name.partition(".")[0] for name in set(sys.modules) - before}
print(sorted(name for name in found - set(sys.stdlib_module_names) if "cython" not in name))
heavy = {"asyncio", "importlib.metadata", "sqlite3", "ssl", "email", "logging"}
print(sorted(heavy & set(sys.modules)))
print(*sorted({name.split(".")[1] for name in sys.modules if name.startswith("buildtool.")}))
print(*(name for name in sys.modules if name.startswith("buildtool.api.") and "requests" not in name))
"""
    with running(tmp_path) as daemon:
        result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        rooms = "api base client options schema"
        assert result.stdout.splitlines() == ["['buildtool', 'msgpack']", "[]", rooms, ""]
        assert daemon.counts()["requests"] == 1


def resident(pid):
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.slow
def test_memory_is_flat_over_hundreds_of_requests(tmp_path):
    with running(tmp_path) as daemon:

        def round_of(number):
            link = daemon.link()
            for index in range(number):
                request = {"kind": "plan", "model": "ds_cnn", "board": "cortex-m4"}
                if index % 4 == 0:
                    request["options"] = {"ram": 300_000 + index % 60}  # the first round has had all of them
                link.request(request, "on", None)
                if index % 10 == 0:
                    link.close()
                    link = daemon.link()
            link.close()
            eventually(lambda: all(w["doing"] == "idle" for w in daemon.status()["workers"]))
            return [resident(pid) for pid in (daemon.pid, *sorted(daemon.workers()))]

        round_of(60)
        before = round_of(60)
        after = round_of(200)
        assert len(before) == len(after)
        assert sum(after) - sum(before) < 1 << 20, (before, after)
        assert daemon.counts()["requests"] == 320
