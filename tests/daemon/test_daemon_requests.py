"""The daemon answers as the caller's own process does: equal requests once, two boards at the same time."""

import os
import signal
import subprocess
import sys
import threading

import msgpack
import pytest
from daemons import BOARDS, eventually, is_running, running
from zeronet import small

from buildtool.api import handle
from buildtool.api.requests import KINDS, type_of
from buildtool.api.requests.parts import Needs
from buildtool.base import wire
from buildtool.base.errors import BuildtoolError, to_data
from buildtool.client import daemon as client
from buildtool.client import endpoint as places
from buildtool.client.files import Located

MODEL = {"model": "net.tflite"}
ON_HOST = {**MODEL, "board": "host"}
REQUESTS = {
    **{kind: {**MODEL, "board": "cortex-m4"} for kind in ("plan", "trace", "front", "report")},
    **{kind: {**ON_HOST, "name": "net"} for kind in ("emit", "bundle")},
    "analyze": {**MODEL, "boards": ["host"], "options": {"strategy": "layerwise"}},
    **{
        "ops": MODEL,
        "tflm": MODEL,
        "describe": ON_HOST,
        "arena": {"file": "arena.csv"},
        "boards": {},
        "zoo": {},
    },
}
WRONG = {
    "no such board": {"kind": "plan", **MODEL, "board": "nonesuch"},
    "no such file": {"kind": "plan", "model": "gone.tflite", "board": "host"},
    "no such option": {"kind": "plan", **ON_HOST, "options": {"speed": 1}},
    "too small": {"kind": "plan", **ON_HOST, "options": {"ram": 16}},
    "no such kind": {"kind": "paln"},
    "another type": {"kind": "plan", "model": 7, "board": ["host"]},
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    (folder / "net.tflite").write_bytes(small())
    (folder / "arena.csv").write_text("id,lower,upper,size\na,0,2,8\nb,1,3,8\n")
    return folder


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    with running(tmp_path_factory.mktemp("d")) as started:
        yield started


def located(files, request):
    return Located(request, str(files)).request


def limit_request(files, ram):
    """Returns a request that no other test sends, because of its limit."""
    options = {"ram": ram}
    return located(files, {"kind": "plan", "model": "net.tflite", "board": "cortex-m4", "options": options})


@pytest.mark.slow
def test_answers_equal_those_of_the_callers_own_process(files, daemon):
    assert set(REQUESTS) >= {kind for kind in KINDS if type_of(kind).needs is not Needs.PROGRAMS}
    for kind, fields in REQUESTS.items():
        request = located(files, {"kind": kind, **fields})
        here = msgpack.packb(handle(request))
        for cache in ("on", "renew", "off", "on") if kind == "plan" else ("on", "on"):
            assert msgpack.packb(daemon.ask(request, cache)) == here, (kind, cache)


@pytest.mark.slow
def test_errors_equal_those_of_the_callers_own_process(files, daemon):
    for name, fields in WRONG.items():
        request = located(files, fields)
        with pytest.raises(BuildtoolError) as here:
            handle(request)
        for _ in range(2):
            with pytest.raises(BuildtoolError) as there:
                daemon.ask(request)
            assert (type(there.value), to_data(there.value)) == (type(here.value), to_data(here.value)), name


def test_equal_requests_are_answered_from_memory_and_changed_files_are_not(files, daemon, tmp_path):
    (tmp_path / "net.tflite").write_bytes((files / "net.tflite").read_bytes())
    request = {"kind": "plan", "model": "net.tflite", "board": "host"}
    first = daemon.ask(located(tmp_path, request))
    planned = daemon.counts()["planned"]
    assert daemon.ask(located(tmp_path, request)) == first
    assert daemon.counts()["planned"] == planned
    (tmp_path / "net.tflite").write_bytes(small(16))
    changed = daemon.ask(located(tmp_path, request))
    assert changed == msgpack.unpackb(msgpack.packb(handle(located(tmp_path, request)))) != first


@pytest.mark.slow
def test_a_boards_base_is_looked_at_before_an_answer_comes_from_memory(files, daemon, tmp_path):
    (tmp_path / "net.tflite").write_bytes((files / "net.tflite").read_bytes())
    (tmp_path / "mine.toml").write_text('extends = "base.toml"\n')

    def base(size):
        text = f'extends = "cortex-m4"\n[memory.sram]\nsize = {size}\n'
        (tmp_path / "base.toml").write_text(text)

    request = {"kind": "plan", "model": "net.tflite", "board": "mine.toml"}
    base(65536)
    first = daemon.ask(located(tmp_path, request))
    assert daemon.ask(located(tmp_path, request)) == first
    planned = daemon.counts()["planned"]
    base(32768)
    changed = daemon.ask(located(tmp_path, request))
    assert msgpack.packb(changed) == msgpack.packb(handle(located(tmp_path, request)))
    assert daemon.counts()["planned"] == planned + 1


def test_status_answers_while_a_worker_is_at_work_and_equal_requests_are_one(files, daemon):
    daemon.stop_workers()
    planned = daemon.counts()["planned"]
    request = limit_request(files, 9000)
    first, second = daemon.asking(request), daemon.asking(dict(reversed(request.items())))
    eventually(lambda: daemon.counts()["planned"] == planned + 1)
    assert [w["doing"] for w in daemon.status()["workers"]].count("planning") == 1
    eventually(lambda: any("beat" in message for message in first.answer))
    assert not first.is_done and not second.is_done
    daemon.go_on()
    assert first.result() == second.result()
    assert daemon.counts()["planned"] == planned + 1


@pytest.mark.slow
def test_one_of_two_clients_may_go_and_the_last_one_takes_the_work_with_it(files, daemon):
    daemon.stop_workers()
    first, second = daemon.asking(limit_request(files, 9001)), daemon.asking(limit_request(files, 9001))
    (worker,) = daemon.at_work()
    first.link._socket.shutdown(2)
    eventually(lambda: daemon.status()["clients"] == 2)  # the second, and the one that asks for the status
    assert daemon.at_work() == [worker]
    second.link._socket.shutdown(2)
    eventually(lambda: not is_running(worker))
    assert daemon.counts()["crashes"] == 0
    daemon.go_on()
    assert daemon.ask(limit_request(files, 9001))["model"] == "net"


def test_two_boards_are_planned_at_once(files, daemon):
    daemon.stop_workers()
    waiting = daemon.asking(limit_request(files, 9002))
    (worker,) = daemon.at_work()
    daemon.go_on(but=worker)
    other = located(files, {"kind": "plan", "model": "net.tflite", "board": "cortex-m55"})
    assert daemon.ask(other, "off")["board"] == "cortex-m55"
    assert not waiting.is_done
    daemon.go_on()
    assert waiting.result()["answer"]["board"] == "cortex-m4"


@pytest.mark.slow
def test_a_worker_that_is_killed_costs_its_own_request_and_no_other(files, daemon):
    crashes = daemon.counts()["crashes"]
    daemon.stop_workers()
    waiting = daemon.asking(limit_request(files, 9003))
    (worker,) = daemon.at_work()
    os.kill(worker, signal.SIGKILL)
    with pytest.raises(client.AbsentError, match=r"ended \(status -9\)"):
        waiting.result()
    daemon.go_on()
    assert daemon.ask(limit_request(files, 9003))["model"] == "net"
    assert daemon.counts()["crashes"] == crashes + 1


@pytest.mark.slow
def test_twenty_clients_at_once_start_one_daemon_and_get_equal_answers(files, tmp_path):
    request = located(files, {"kind": "plan", "model": "net.tflite", "board": "host"})
    with running(tmp_path) as daemon:
        barrier, answers = threading.Barrier(20), []

        def one():
            barrier.wait()
            link = daemon.link()
            answers.append((link.hello["pid"], msgpack.packb(link.request(request, "on", None))))
            link.close()

        threads = [threading.Thread(target=one) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(answers) == 20 and len(set(answers)) == 1
        assert daemon.counts()["planned"] == 1


def test_a_daemon_is_named_for_what_its_answers_depend_on_alone(monkeypatch, tmp_path):
    name = places.endpoint().name
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert places.endpoint().name == name
    changes = {
        (places, "code_digest"): lambda: "other",
        (places, "__version__"): "0",
        (places, "home"): lambda: "/elsewhere",
        (wire, "PROTOCOL"): 99,
        (sys, "executable"): "/usr/bin/python9",
    }
    for (where, what), value in changes.items():
        with monkeypatch.context() as patch:
            patch.setattr(where, what, value)
            assert places.endpoint().name != name, what


def test_one_python_by_two_names_has_one_daemon_and_two_environments_have_two(tmp_path):
    code = "from buildtool.client import endpoint; print(endpoint.endpoint().name)"

    def name(python):
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        return subprocess.check_output([python, "-c", code], env=environment)

    names = []
    for folder in ("one", "two"):
        binaries = tmp_path / folder / "bin"
        binaries.mkdir(parents=True)
        home = os.path.dirname(os.path.realpath(sys.executable))  # noqa: PTH120
        (tmp_path / folder / "pyvenv.cfg").write_text(f"home = {home}\n")
        for called in ("python3", "python3.11"):
            (binaries / called).symlink_to(os.path.realpath(sys.executable))
            names.append(name(binaries / called))
    (tmp_path / "link").symlink_to(tmp_path / "one")
    names.append(name(tmp_path / "link" / "bin" / "python3"))
    assert names[0] == names[1] == names[4] and names[2] == names[3] != names[0]


def test_what_no_frame_can_hold_is_answered_by_the_caller(daemon):
    for value in (10**30, "x" * (2 << 20)):
        with pytest.raises(client.UnservedError):
            daemon.ask({**BOARDS, "options": value})
    assert daemon.ask(BOARDS)
