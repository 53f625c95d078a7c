"""The program of a worker. It reads requests from standard input, and writes answers to standard output.

Between requests it imports the modules that planning needs, step by step. The worker of lowest priority also
looks ahead: it prepares what the next request may ask for, within a number of CPU seconds. While the worker
is at work, a thread sends a beat every second, so that the daemon can tell a stopped worker from a slow one.
"""

from __future__ import annotations

import contextlib
import os
import select
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

from buildtool.api import error_for_client, handle, subject
from buildtool.api.requests import parse
from buildtool.api.requests.parts import Planning
from buildtool.base import wire
from buildtool.base.code_digest import code_digest
from buildtool.base.digests import digest_of
from buildtool.base.errors import BuildtoolError, InternalError, MachineError, PlanError, ToolError, to_data
from buildtool.base.modes import Objective, Strategy, Use
from buildtool.base.session import Session
from buildtool.base.store.cache import open_cache
from buildtool.target import registry

MOST_BYTES = 4 << 30  # upper limit for the address space: a larger request fails, and the machine is safe
BEAT_SECONDS = 1.0
KEEP_SECONDS = 0.5  # CPU time after which results of looking ahead are written to the cache
PRELOADED = ("graph", "target", "plan", "emit", "plan.choose", "api.answers")
STEPS = (8, 10)  # KiB between two memory limits for which plans are prepared
MOST_STEPS = 48
_CHUNK = 1 << 18
_AROUND = 1 << 20  # upper limit for the bytes of a message without its answer


class Speaker:
    """Sends messages to the daemon, from any thread. While `busy` is set, it sends one every second (a
    beat).
    """

    def __init__(self) -> None:
        self._replies = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)  # texts that a library prints must not get between the frames
        self._lock = threading.Lock()
        self.busy = threading.Event()
        threading.Thread(target=self._beat, daemon=True).start()

    def say(self, message: Mapping[str, Any]) -> None:
        """Sends a message to the daemon."""
        with self._lock:
            wire.send(self._replies, {"cpu": time.process_time(), **message})

    def _beat(self) -> None:
        never = threading.Event()
        while self.busy.wait():
            with contextlib.suppress(OSError, ValueError):
                self.say({"beat": True})
            never.wait(BEAT_SECONDS)


class Service:
    """The session and the cache of a worker, and the preparations that it does between requests."""

    def __init__(self, speaker: Speaker) -> None:
        self.code = code_digest()
        self.cache = open_cache(self.code)
        self._say = speaker.say
        self.session = Session(
            keeper=self.cache, progress=lambda text: self._say({"progress": {"text": text}})
        )
        self._ahead: Iterator[None] = _imports()
        # the key to look ahead from, the CPU time to stop at, and that of the last write to the cache
        self._ahead_key, self._until, self._kept = "", 0.0, 0.0

    def serve(self, message: Mapping[str, Any]) -> None:
        """Answers the request in a message of the daemon."""
        self._ahead, self._ahead_key = iter(()), ""
        request, use = message.get("request"), Use(str(message.get("cache", "on")))
        session = self.session
        if use is not Use.ON:  # remembered values must not be used either
            session.forget()
        session.keeper = None if use is Use.OFF else self.cache
        if self.cache is not None:
            self._connect(message.get("remote"))
            self.cache.begin(subject(request) if isinstance(request, dict) else "", use)
        registry.forget_others()
        before = _list_inputs(request)
        answer = _answer(request, session, message.get("environment"))
        pure = (
            answer.pop("pure", False) and before == _list_inputs(request) and not registry.has_asked_others()
        )
        # Foreign code may change before the next request, and this process has imported it. Without memory,
        # CPython 3.11 may free a function that is still in use, and fail or err at any later time.
        leaving = registry.uses_others() or "crash" in answer
        if self.cache is not None and (warnings := self.cache.take_warnings()):
            answer["warnings"], pure = warnings, False  # the next client must not get them
        facts = {"pure": pure, "inputs": before, "leaving": leaving, "rss": resident_bytes()}
        try:
            frame = wire.pack_frame(answer)  # the daemon forwards it as it is
            if len(frame) > wire.FRAME_LIMIT - _AROUND:
                raise ToolError(f"an answer of {len(frame):,} bytes is too large for the daemon")
        except BuildtoolError as error:
            frame = wire.pack_frame({"error": to_data(error), "crash": True})
        self._say({"final": frame, "answered": "answer" in answer, **facts})
        if leaving:
            return
        if use is not Use.ON:
            session.forget()
        session.keeper = self.cache
        if self.cache is not None:
            self.cache.flush()
            self.cache.share()
            self.cache.connect(None)  # preparations do not use it
        self._ahead = _imports()
        code = code_digest()
        if code != self.code:  # later imports would mix old and new code
            self._say({"code": code})

    def _connect(self, remote: Any) -> None:
        """Uses the shared cache of the client that asks. That of the daemon's own environment is not used."""
        if self.cache is None or not remote:
            return
        from buildtool.base.store.remote.settings import Settings

        self.cache.connect(Settings.from_message(remote))

    def look_ahead(self, message: Mapping[str, Any]) -> None:
        """Begins to prepare what may be asked for after the request in `message`.

        If the worker already prepares for this request, it continues.
        """
        if message.get("key") != self._ahead_key:
            registry.forget_others()
            self.session.keeper = self.cache
            # results would be lost without a cache
            points = points_ahead(message.get("ahead"), self.session) if self.cache is not None else ()
            self._ahead, self._ahead_key = chain(points, _imports()), str(message.get("key"))
        self._until = time.process_time() + float(message.get("seconds", 0.0))

    def rest(self) -> bool:
        """Does a step of the work that `look_ahead` began. Returns False if nothing is left, or its time is
        used up.
        """
        is_over = bool(self._ahead_key) and time.process_time() >= self._until
        try:
            if not is_over:
                next(self._ahead)
                if time.process_time() - self._kept > KEEP_SECONDS:
                    self._keep()  # this process may be killed at any time
                return True
        except StopIteration:
            pass
        except MemoryError:  # as in `serve`: another process takes this one's place
            raise
        except Exception as error:  # a request would report it
            print(f"buildtool daemon: looking ahead failed: {error!r}", file=sys.stderr, flush=True)
        self._keep()
        self._say({"rested": self._ahead_key, "left": is_over, "rss": resident_bytes()})
        return False

    def _keep(self) -> None:
        """Writes what `rest` has prepared to the cache."""
        self._kept = time.process_time()
        if self.cache is not None:
            self.cache.flush()

    def drop(self) -> None:
        """Forgets all values, to free memory."""
        self.session.forget()
        self._ahead, self._ahead_key = iter(()), ""
        self._say({"dropped": True, "rss": resident_bytes()})


def _answer(request: Any, session: Session, environment: Any) -> dict[str, Any]:
    """Returns the last message about a request: an answer or an error.

    Its key `pure` says that it depends on the request only. `crash` says that it may depend on this process,
    so that the client should try without the daemon.
    """
    try:
        if not isinstance(request, dict):
            raise ToolError("a message holds no request")
        with _use_environment(environment):
            return {"answer": handle(request, session), "pure": True}
    except Exception as error:
        reply = error_for_client(error)
        if isinstance(reply, InternalError | MachineError):
            return {"error": to_data(reply), "crash": True}
        return {"error": to_data(reply), "pure": isinstance(reply, PlanError)}


def _imports() -> Iterator[None]:
    """Imports the modules that planning needs, one per step. Later edits then do not affect this worker."""
    for room in PRELOADED:
        package = import_module(f"buildtool.{room}")
        yield
        for module in walk_packages(package.__path__, f"buildtool.{room}."):
            spec = find_spec(module.name)
            is_python = spec is not None and str(spec.origin).endswith(".py")  # not a C library
            if is_python and not module.name.startswith("buildtool.graph.onnx"):  # rarely needed
                import_module(module.name)
                yield


def points_ahead(request: Any, session: Session) -> Iterator[None]:
    """Prepares what may be asked for after a planning request, one plan per step, and keeps it in the cache.

    It places the points of the front. Then it plans for memory limits that people often choose, the largest
    first, until a limit cannot be kept.
    """
    with contextlib.suppress(BuildtoolError):  # a request would report it
        planning = parse(request)
        if (
            isinstance(planning, Planning)
            and not planning.lock
            and planning.options.strategy == Strategy.BEST
        ):
            yield from _plan_ahead(planning, session)


def _plan_ahead(planning: Planning, session: Session) -> Iterator[None]:
    from buildtool.api.answers.planreport import describe_plan, other_plans
    from buildtool.firmware.planned import plan_model, prepare
    from buildtool.plan.choose.choose import choose
    from buildtool.plan.choose.fronts import search_front
    from buildtool.plan.models import load_network
    from buildtool.target.choice import load_target

    target = load_target(planning.target, session)
    network = load_network(planning.model, session)
    prepared = prepare(network, target, planning.options, session)
    fronts = [search_front(prepared.with_graph(graph)) for graph in prepared.graphs]
    for front in fronts:
        for index in range(len(front.points)):
            front.plan(index)
            yield
    whole = choose(replace(prepared, options=replace(planning.options, ram=None))).plan.arena_bytes
    least = replace(planning.options, ram=None, objective=Objective.RAM)
    # round numbers of bytes, which people often choose as limits, the largest first
    steps = {n * step << 10 for step in STEPS for n in range(1, MOST_STEPS + 1)}
    limits = sorted((n for n in {1 << n for n in range(10, 24)} | steps if n < whole), reverse=True)
    for options in (least, *(replace(planning.options, ram=limit) for limit in limits)):
        choose(replace(prepared, options=options))
        yield
        plan = plan_model(planning.model, planning.target, options, session)
        describe_plan(plan)
        other_plans(plan, False)
        yield


def _list_inputs(request: Any) -> list[list[str]]:
    """Returns (path, digest) of the files that an answer depends on and whose digests the request does not
    have.

    The digest is "" for a file that cannot be read.
    """
    if not isinstance(request, dict):
        return []
    board = request.get("board")
    path = board.get("path") if isinstance(board, dict) else board
    files = [value for value in request.values() if isinstance(value, str) and os.path.isabs(value)]  # noqa: PTH117
    if isinstance(path, str) and path.endswith(".toml"):
        with contextlib.suppress(BuildtoolError, OSError, ValueError):
            files += map(str, registry.board_chain(path)[1:])
    return [[file, digest_of(file)] for file in sorted(set(files))]


@contextlib.contextmanager
def _use_environment(variables: Any) -> Iterator[None]:
    """A context in which the process has the caller's environment. If `variables` is empty, nothing
    changes.
    """
    if not isinstance(variables, dict) or not variables:
        yield
        return
    old, folder = dict(os.environ), tempfile.tempdir
    try:
        os.environ.clear()
        os.environ.update({str(name): str(value) for name, value in variables.items()})
        tempfile.tempdir = None
        yield
    finally:
        os.environ.clear()
        os.environ.update(old)
        tempfile.tempdir = folder


def resident_bytes() -> int:
    """Returns the resident memory of this process in bytes; 0 if the system does not report it."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def _prepare_process() -> None:
    """Makes the worker end with its daemon, and limits its memory."""
    with contextlib.suppress(Exception):  # only Linux has it
        import ctypes
        import signal

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    with contextlib.suppress(Exception):
        import resource

        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        most = MOST_BYTES if hard == resource.RLIM_INFINITY else min(MOST_BYTES, hard)
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def main() -> int:
    """Serves requests until standard input ends. Returns the exit status: 1 after an invalid message, else
    0.
    """
    _prepare_process()
    parent = os.getppid()
    speaker = Speaker()
    service = Service(speaker)
    decoder, busy = wire.Decoder(), True
    try:
        speaker.say({"ready": True, "code": service.code, "rss": resident_bytes()})
        while os.getppid() == parent:
            if busy and not select.select([0], [], [], 0)[0]:
                busy = service.rest()
                continue
            if not busy:
                speaker.busy.clear()
            data = os.read(0, _CHUNK)
            speaker.busy.set()
            if not data:
                return 0
            for message in decoder.feed(data):
                if "drop" in message:
                    service.drop()
                else:
                    busy = True
                    (service.look_ahead if "ahead" in message else service.serve)(message)
    except ToolError as error:
        print(error, file=sys.stderr)
        return 1
    except (BrokenPipeError, KeyboardInterrupt):
        pass
    return 0


if __name__ == "__main__":
    sys.exit(main())
