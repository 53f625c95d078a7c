"""Commands give the same output whatever the state of the cache's folder is; commands about the cache."""

import json
import os
import subprocess
import sys

import pytest
from daemons import running
from zeronet import small

from buildtool.api import handle, handle_cached, open_session
from buildtool.base import folders
from buildtool.fronts.cli import main as cli


@pytest.fixture
def model(tmp_path):
    (tmp_path / "net.tflite").write_bytes(small())
    return str(tmp_path / "net.tflite")


@pytest.fixture
def kept(tmp_path, monkeypatch):
    monkeypatch.setenv(folders.MODE, "on")
    monkeypatch.setenv(folders.CACHE, str(tmp_path / "cache"))
    return tmp_path / "cache"


def run(capsys, *words):
    status = cli.run(words)
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def answer(capsys, *words):
    status, out, err = run(capsys, *words, "--json")
    assert not err
    return status, json.loads(out)


def run_plan(capsys, model, *more):
    return run(capsys, "plan", model, "--board", "cortex-m4", *more)


@pytest.mark.parametrize(
    "fault", ["link", "file", "writable", "stranger", "no home", "below a file", "locked"]
)
def test_a_folder_that_cannot_be_used_changes_no_output(model, kept, capsys, monkeypatch, tmp_path, fault):
    cold = run_plan(capsys, model, "--no-cache")
    if fault == "link":
        (tmp_path / "real").mkdir()
        kept.symlink_to(tmp_path / "real")
    elif fault == "file":
        kept.write_text("")
    elif fault == "below a file":
        (tmp_path / "file").write_text("")
        monkeypatch.setenv(folders.CACHE, str(tmp_path / "file" / "cache"))
    elif fault == "no home":
        monkeypatch.delenv(folders.CACHE)
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
        monkeypatch.setenv("HOME", "/proc/nonexistent")
    else:
        kept.mkdir(mode=0o700)
        kept.chmod(0o707 if fault == "writable" else 0o700)
    if fault == "stranger":
        monkeypatch.setattr(folders, "user", lambda: os.getuid() + 1)
    if fault == "locked":
        import fcntl

        holder = (kept / "counts.lock").open("w")
        fcntl.flock(holder, fcntl.LOCK_EX)
    for _ in range(2):
        assert run_plan(capsys, model) == cold
    if fault not in ("no home", "locked"):
        status, stats = answer(capsys, "cache", "stats")
        assert status == 0 and stats["trouble"] and stats["bytes"] == 0
        assert cli.run(["cache", "verify"]) == 1 and cli.run(["cache", "clear"]) == 1
        assert "BUILDTOOL_CACHE=off" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("most_bytes", [0, 4000])
def test_a_disk_that_is_full_changes_no_output(model, kept, capsys, monkeypatch, most_bytes):
    """The limit on file sizes gives the error of a full disk. Entries fit into 4,000 bytes."""
    monkeypatch.setenv("COLUMNS", "100")  # otherwise the width would depend on the terminal
    cold = run_plan(capsys, model, "--no-cache")
    code = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
most = int(sys.argv.pop(1))
resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
from buildtool.fronts.cli.main import run
sys.exit(run(sys.argv[1:]))
"""
    command = [sys.executable, "-B", "-c", code, str(most_bytes), "plan", model, "--board", "cortex-m4"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert (result.returncode, result.stdout, result.stderr) == cold
    entries = [path for path in kept.glob("*/*/*") if path.is_file() and path.stat().st_size]
    assert bool(entries) == (most_bytes > 0) and all(len(path.name) == 62 for path in entries)
    status, stats = answer(capsys, "cache", "stats")
    assert status == 0 and sum(one["entries"] for one in stats["levels"].values()) == len(entries)
    assert run_plan(capsys, model) == cold


@pytest.mark.parametrize("daemon", ["off", "require"])
@pytest.mark.parametrize("name, value", [(folders.MODE, "nonsense"), (folders.SIZE, "much")])
def test_what_the_environment_says_and_nobody_knows_is_an_error(
    model, kept, capsys, monkeypatch, name, value, daemon
):
    monkeypatch.setenv(name, value)
    status, out, err = run_plan(capsys, model, "--daemon", daemon)
    assert (status, out) == (2, "") and f"'{value}'" in err and name in err
    assert not kept.exists()


def test_the_options_say_what_is_read_and_what_is_written(model, kept, capsys):
    cold = run_plan(capsys, model, "--no-cache")
    assert not kept.exists()
    assert run_plan(capsys, model) == cold
    paths = [path for path in kept.rglob("*") if len(path.name) == 62 and "asked" not in path.parts]
    entries = {path: path.stat().st_mtime_ns for path in paths}
    assert entries
    assert run_plan(capsys, model) == cold
    assert {path: path.stat().st_mtime_ns for path in entries} == entries
    assert run_plan(capsys, model, "--recache") == cold
    assert all(path.stat().st_mtime_ns > then for path, then in entries.items())
    status, _, err = run_plan(capsys, model, "--recache", "--no-cache")
    assert status == 2 and "exclude each other" in err


def test_people_may_ask_how_much_there_is_whether_it_is_sound_and_why(model, kept, capsys):
    assert run_plan(capsys, model)[0] == run_plan(capsys, model)[0] == 0
    status, stats = answer(capsys, "cache", "stats")
    assert status == 0 and stats["folder"] == str(kept) and stats["bytes"] > 0
    plans = stats["levels"]["plans"]
    assert (plans["entries"], plans["hits"], plans["misses"]) == (1, 1, 1)
    assert "plans" in run(capsys, "cache", "stats")[1]

    assert cli.run(["plan", model, "--board", "cortex-m4", "--ram", "100000"]) == 0
    capsys.readouterr()
    status, explained = answer(capsys, "cache", "explain", "net.tflite")
    (asked,) = (one for one in explained["asked"] if one["level"] == "plans")
    changed = {change["part"]: (change["was"], change["now"]) for change in asked["changed"]}
    assert changed["ram"] == ("None", "100000") and "topology" not in changed and "code" not in changed
    assert "ram: None -> 100000" in run(capsys, "cache", "explain", "net.tflite")[1]
    assert "no such request" in run(capsys, "cache", "explain", "nonesuch")[1]

    (path, *_) = [path for path in (kept / "plans").rglob("*") if len(path.name) == 62]
    path.write_bytes(b"bad")
    for ram in ((), ("--ram", "100000")):  # one of the two reads it
        assert run_plan(capsys, model, *ram)[0] == 0
    status, stats = answer(capsys, "cache", "stats")
    assert stats["errors"] == {"bad": 1}
    path.write_bytes(b"bad")
    status, verified = answer(capsys, "cache", "verify")
    assert status == 1 and verified["bad"] == 1
    assert answer(capsys, "cache", "stats")[1]["levels"]["plans"]["entries"] == 1
    status, cleared = answer(capsys, "cache", "clear")
    assert status == 0 and cleared["entries"] > 0 and not list(kept.iterdir())
    assert run(capsys, "cache", "stats", "more")[0] == 2


@pytest.mark.slow
def test_clearing_makes_a_daemon_forget_too_and_renewing_plans_anew(model, kept, capsys, tmp_path):
    with running(tmp_path, BUILDTOOL_DAEMON="require") as daemon:
        steps = ([], 1), ([], 1), ("clear", 1), ([], 2), (["--recache"], 3), (["--no-cache"], 4), ([], 5)
        for more, number in steps:
            if more == "clear":
                assert cli.run(["cache", "clear"]) == 0
            else:
                assert run_plan(capsys, model, *more)[0] == 0
            assert daemon.counts()["planned"] == number


@pytest.mark.slow
def test_the_daemons_commands_have_json_and_words_and_start_alone_starts_one(kept, capsys, tmp_path):
    with running(tmp_path) as daemon:
        nothing = {"running": False, "socket": str(daemon.at.address), "log": str(daemon.at.log), "why": ""}
        assert answer(capsys, "daemon", "status") == (1, {"daemons": [nothing]})
        assert "no daemon" in run(capsys, "daemon", "status")[1]
        assert answer(capsys, "daemon", "stop") == (0, {"stopped": []})
        assert run(capsys, "daemon", "logs")[0] == run(capsys, "--version")[0] == 0
        assert not daemon.at.address.exists() and not daemon.at.lock.exists()
        status, started = answer(capsys, "daemon", "start")
        assert status == 0 and started == {"running": True, "pid": daemon.pid}
        status, restarted = answer(capsys, "daemon", "restart")
        assert status == 0 and restarted["pid"] == daemon.pid != started["pid"]
        status, status_answer = answer(capsys, "daemon", "status", "--all")
        assert status == 0 and status_answer["daemons"][0]["pid"] == daemon.pid
        assert "the daemon runs: process" in run(capsys, "daemon", "status")[1]
        status, logs = answer(capsys, "daemon", "logs")
        assert status == 0 and logs["log"] == str(daemon.at.log)
        assert answer(capsys, "daemon", "stop", "--all") == (0, {"stopped": [restarted["pid"]]})
        assert "it was stopped" in run(capsys, "daemon", "status")[1]
        assert "it ends: it was stopped" in run(capsys, "daemon", "logs")[1]


@pytest.mark.slow
def test_a_file_whose_name_is_not_unicode_is_kept_like_others(model, kept, capsys, tmp_path):
    named = os.fsdecode(os.fsencode(tmp_path) + b"/net\xff.tflite")
    os.link(model, named)
    request = {"kind": "emit", "model": named, "board": "host"}
    expected = handle(request)
    for hits in (0, 1):
        session = open_session()
        counts = {}
        session.keeper.flush = lambda keeper=session.keeper, counts=counts: (
            counts.update(keeper.counts()) or (type(keeper).flush(keeper))
        )
        assert handle_cached(request, session) == expected
        assert counts["code"]["hits"] == hits
    with running(tmp_path) as daemon:
        assert daemon.ask(request)["files"] == expected["files"]
        refused = [
            run_plan(capsys, named, "--ram", "16", "--daemon", how) for how in ("off", "off", "require")
        ]
        assert refused[0][0] == 1 and refused[0] == refused[1] == refused[2]
    assert cli.run(["cache", "explain", "net"]) == 0
