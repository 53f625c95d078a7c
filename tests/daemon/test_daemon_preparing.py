"""Preparations: within a budget, at the lowest priority, and ended when a request comes."""

import os
import signal
from pathlib import Path

import msgpack
import pytest
from daemons import BOARDS, PLENTY, Clock, eventually, is_running, leave_no_memory, running
from zeronet import small

from buildtool import api as service
from buildtool.client.files import Located
from buildtool.daemon import preparing
from buildtool.daemon.pool import Job
from buildtool.daemon.preparing import Budget, Preparer


class Process:
    """A worker of low priority that does nothing."""

    prepares, pid, cpu, job, doing, dropped, since = True, 0, 0.0, None, "starting", False, 0.0
    about = ""


class Processes:
    """A pool with one such worker. `answer` has the messages to it, `dearly` its CPU seconds at the end."""

    def __init__(self):
        self.workers, self.answer, self.removed, self.dearly, self.dead = [], [], 0, None, []

    def add(self, *, prepares):
        assert prepares
        self.workers.append(Process())
        return self.workers[-1]

    def tell(self, worker, message):
        self.answer.append(message)

    def remove(self, worker):
        self.workers.remove(worker)
        self.removed += 1
        self.dead.append(worker)

    def reap(self):
        dead, self.dead = self.dead, []
        for worker in dead:
            worker.cpu = worker.cpu if self.dearly is None else self.dearly
        return dead


class Bench:
    """A preparer with a tenth of a core, and its clock."""

    def __init__(self, share=0.1):
        self.clock, self.pool = Clock(), Processes()
        self.preparer = Preparer(self.pool, share, self.clock)

    def add(self, model="net.tflite", digest="1", *, ahead=False, **more):
        request = {"kind": "plan", "model": {"path": model, "sha256": digest}, "board": "host", **more}
        self.preparer.add(Job(f"{model} {digest} {more}", request, {}, "on"), ahead=ahead)
        return request

    def after(self, seconds):
        """Returns whether a preparation is at work `seconds` later."""
        self.clock.now += seconds
        self.preparer.go_on()
        return self.preparer.at_work is not None

    def says(self, **message):
        return self.preparer.take_message(self.pool.workers[0], message)


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.setattr(preparing, "lower_priority", lambda pid: None)
    return Bench()


# ---- the budget --------------------------------------------------------------------------------------


def test_the_budget_is_a_share_of_the_time_since_the_last_request():
    clock = Clock()
    budget = Budget(0.25, clock)
    assert budget.left() == 0
    clock.now += 8
    assert (budget.left(), budget.left(0.5)) == (2, 1)
    budget.spent = 3.0
    assert budget.left() == -1
    clock.now += 1e6
    assert budget.left() == 0.25 * preparing.COUNTED_SECONDS - 3
    budget.begin()
    assert (budget.left(), budget.spent) == (0, 0)
    budget.begin(40, 4)  # taken over from another daemon
    assert budget.left() == 6 and budget.idle_seconds == 40
    bench = Bench(share=0)
    bench.add()
    assert not bench.after(1e6) and bench.preparer.status() == {"waiting": 0, "spent": 0.0, "left": 0.0}


def test_what_is_prepared_waits_for_the_budget_and_the_look_ahead_for_twice_the_time(bench):
    bench.add()
    assert not bench.after(2.9) and not bench.pool.workers
    assert bench.after(0.2)
    assert bench.says(final=b"", cpu=0.2).job.key == "net.tflite 1 {}"
    assert bench.preparer.budget.spent == 0.2
    bench.add(ahead=True)
    assert not bench.after(5)  # half of 0.8 s is for saved files, and 0.2 s are spent
    assert bench.after(3)
    assert bench.pool.answer[-1]["seconds"] == pytest.approx(0.355)


def test_a_request_ends_what_is_at_work_and_begins_the_budget_anew(bench):
    other = bench.add("other.tflite")
    bench.add()
    assert bench.after(100)
    bench.preparer.asked(BOARDS, {})
    assert bench.pool.removed == 1 and bench.preparer.at_work is None
    assert len(bench.preparer.waiting) == 2 and bench.preparer.budget.left() == 0
    assert not bench.after(1) and bench.after(5)
    bench.preparer.asked(other, {})  # its answer is not prepared any more, nor an older one
    assert [one.job.request["model"]["path"] for one in bench.preparer.waiting] == ["net.tflite"]


def test_a_request_leaves_an_idle_process_alone_and_ends_one_that_imports(bench):
    bench.add()
    assert bench.after(10) and bench.says(final=b"")
    bench.preparer.asked(BOARDS, {})
    assert bench.pool.removed == 1
    bench.add()
    assert bench.after(10) and bench.says(final=b"")
    assert bench.says(rested="") is None
    bench.preparer.asked(BOARDS, {})
    assert bench.pool.removed == 1


def test_what_takes_too_much_is_ended_and_waits_for_twice_as_much(bench):
    bench.add()
    assert bench.after(20)  # with 2 s
    bench.says(beat=True, cpu=2.9)
    assert bench.after(0.1)
    bench.says(beat=True, cpu=3.2)
    bench.pool.dearly = 3.4
    assert not bench.after(0.1)
    assert bench.preparer.budget.spent == pytest.approx(3.4)
    assert not bench.after(70)  # 5.6 s are left, 6.4 needed
    assert bench.after(10)


def test_a_look_ahead_that_may_not_go_on_waits_and_one_that_ended_does_not(bench):
    bench.add(ahead=True)
    assert bench.after(10)
    key = bench.preparer.at_work.job.key
    assert bench.says(rested="") is None  # the end of its imports, sent before the preparation began
    assert bench.says(rested=key, left=True, cpu=0.6) is not None
    assert len(bench.preparer.waiting) == 1 and not bench.after(1)
    assert bench.after(20) and [m["key"] for m in bench.pool.answer] == [key] * 2
    assert bench.says(rested=key, left=False, cpu=0.7) is not None
    assert bench.preparer.waiting == [] and not bench.after(100)


def test_a_later_save_takes_the_place_of_an_earlier_one_and_the_number_is_bounded(bench):
    for digest in "123":
        bench.add(digest=digest)
        bench.add(digest=digest, options={"ram": 4096})
        bench.add(digest=digest, ahead=True)
    rows = [(one.ahead, one.job.request["model"]["sha256"]) for one in bench.preparer.waiting]
    assert rows == [(False, "3"), (False, "3"), (True, "3")]
    for number in range(100):
        bench.add(f"{number}.tflite")
    assert len(bench.preparer.waiting) == preparing.MOST_WAITING


# ---- a daemon ----------------------------------------------------------------------------------------


@pytest.fixture
def request_of(tmp_path):
    """A function that saves a network with this many channels, and returns a request about it."""

    def located(channels=8, **more):
        (tmp_path / "net.tflite").write_bytes(small(channels))
        request = {"kind": "plan", "model": "net.tflite", "board": "cortex-m4", **more}
        return Located(request, str(tmp_path)).request

    return located


def prepares(daemon):
    """Returns the PID of the process that prepares, or 0."""
    return next((w["pid"] for w in daemon.status()["workers"] if w["prepares"]), 0)


@pytest.mark.slow
def test_what_is_prepared_has_the_lowest_priority(tmp_path, request_of):
    with running(tmp_path) as daemon:
        daemon.ask(request_of())
        pid = eventually(lambda: prepares(daemon))
        eventually(lambda: os.sched_getscheduler(pid) == os.SCHED_IDLE)
        assert os.getpriority(os.PRIO_PROCESS, pid) == 19
        (other,) = set(daemon.workers()) - {pid}
        assert os.sched_getscheduler(other) == os.SCHED_OTHER
        group = Path(f"/proc/{pid}/autogroup")  # "/autogroup-7 nice 19"; empty or missing without groups
        eventually(lambda: not group.exists() or group.read_text().split()[2:] in ([], ["19"]))


@pytest.mark.slow
def test_what_is_prepared_ends_when_a_person_asks(tmp_path, request_of):
    with running(tmp_path, BUILDTOOL_DAEMON_AHEAD=PLENTY) as daemon:
        daemon.ask(request_of())
        pid = eventually(lambda: prepares(daemon))
        assert os.sched_getscheduler(pid) == os.SCHED_OTHER
        eventually(lambda: daemon.status()["preparing"]["waiting"] == 0)
        os.kill(pid, signal.SIGSTOP)  # so that it stays at work
        request = request_of(16)
        eventually(lambda: any(w["doing"] == "preparing" for w in daemon.status()["workers"]))
        assert daemon.ask(request)["model"] == "net"
        assert pid not in daemon.workers()
        eventually(lambda: not is_running(pid))
        counts = daemon.counts()
        assert (counts["planned"], counts["prepared"], counts["crashes"]) == (2, 0, 0)


@pytest.mark.slow
def test_a_process_that_finds_no_memory_to_prepare_ends(tmp_path, request_of):
    with running(tmp_path, BUILDTOOL_DAEMON_AHEAD=PLENTY) as daemon:
        daemon.ask(request_of())
        pid = eventually(lambda: prepares(daemon))
        eventually(lambda: daemon.status()["preparing"]["waiting"] == 0)
        leave_no_memory(pid)
        daemon.ask({"kind": "plan", "model": "mobilenetv2", "board": "cortex-m4"})
        eventually(lambda: not is_running(pid))
        assert daemon.ask(BOARDS)


@pytest.mark.slow
def test_a_limit_that_was_looked_ahead_at_is_found_in_the_cache(tmp_path):
    def kept():
        return {path for path in (tmp_path / "cache" / "plans").rglob("*") if path.is_file()}

    request = {"kind": "plan", "model": "ds_cnn", "board": "cortex-m4"}
    with running(tmp_path, BUILDTOOL_DAEMON_AHEAD=PLENTY) as daemon:
        assert daemon.ask(request)["arena_bytes"] > 10240
        eventually(lambda: prepares(daemon) and daemon.status()["preparing"]["waiting"] == 0)
        before = kept()
        assert len(before) > 2
        limited = {**request, "options": {"ram": 10240}}
        assert msgpack.packb(daemon.ask(limited)) == msgpack.packb(service.handle(limited))
        eventually(lambda: all(w["doing"] == "idle" for w in daemon.status()["workers"]))
        assert kept() == before


@pytest.mark.slow
def test_a_process_that_prepares_and_is_killed_costs_nobody_anything(tmp_path, request_of):
    with running(tmp_path, BUILDTOOL_DAEMON_AHEAD=PLENTY) as daemon:
        daemon.ask(request_of())
        pid = eventually(lambda: prepares(daemon))
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: pid not in daemon.workers())
        request = request_of(16)
        assert msgpack.packb(daemon.ask(request)) == msgpack.packb(service.handle(request))
        assert daemon.counts()["faults"] == 0
        assert eventually(lambda: prepares(daemon)) != pid
