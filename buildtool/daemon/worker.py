"""The program of a worker: requests from standard input, one after the other, answers on standard output.

Between requests it imports what the first ones need, step by step, until a request is there. The one of
lowest priority also looks ahead from requests, for a number of CPU seconds. A thread says every second that
the worker is at work, so that a stopped one is told from a slow one.
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
from buildtool.base.digests import digest_of
from buildtool.base.errors import BuildtoolError, InternalError, MachineError, PlanError, ToolError, to_data
from buildtool.base.identity import code_digest
from buildtool.base.modes import Objective, Strategy
from buildtool.base.session import Session
from buildtool.base.store.cache import Use, open_cache
from buildtool.target import registry

MOST_BYTES = 4 << 30  # of address space: what needs more ends in an error, and not the machine
BEAT_SECONDS = 1.0
KEEP_SECONDS = 0.5  # of CPU time, after which what was made ahead is written to the cache
PRELOADED = ("graph", "target", "plan", "emit", "plan.choose", "api.answers")
STEPS = (8, 10)  # KiB between two limits that are prepared for
MOST_STEPS = 48
_CHUNK = 1 << 18
_AROUND = 1 << 20  # bytes that the message around an answer has at most


class Speaker:
    """Sends messages to the daemon, from any thread; while `busy` is set, one each second."""

    def __init__(self) -> None:
        self._replies = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)  # whatever a library prints must not get between the frames
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
    """The session and the cache of a worker."""

    def __init__(self, speaker: Speaker) -> None:
        self.code = code_digest()
        self.cache = open_cache(self.code)
        self._say = speaker.say
        self.session = Session(
            keeper=self.cache, progress=lambda text: self._say({"progress": {"text": text}})
        )
        self._ahead: Iterator[None] = _imports()
        # what it looks ahead from, the CPU seconds to stop at, and those at which it kept what it had made
        self._ahead_key, self._until, self._kept = "", 0.0, 0.0

    def serve(self, message: Mapping[str, Any]) -> None:
        """Answers a request."""
        self._ahead, self._ahead_key = iter(()), ""
        request, use = message.get("request"), Use(str(message.get("cache", "on")))
        session = self.session
        if use is not Use.ON:  # what is remembered would be used as well
            session.forget()
        session.keeper = None if use is Use.OFF else self.cache
        if self.cache is not None:
            self.cache.begin(subject(request) if isinstance(request, dict) else "", use)
        registry.forget_others()
        before = _inputs(request)
        answer = _answer(request, session, message.get("environment"))
        pure = answer.pop("pure", False) and before == _inputs(request) and not registry.has_asked_others()
        # Their code may be another one when the next request comes, and this process has imported it.
        leaving = registry.uses_others()
        told = {"pure": pure, "inputs": before, "leaving": leaving, "rss": resident_bytes()}
        try:
            frame = wire.pack_frame(answer)  # the daemon hands it on as it is
            if len(frame) > wire.FRAME_LIMIT - _AROUND:
                raise ToolError(f"an answer of {len(frame):,} bytes is too large for the daemon")
        except BuildtoolError as error:
            frame = wire.pack_frame({"error": to_data(error), "crash": True})
        self._say({"final": frame, "answered": "answer" in answer, **told})
        if leaving:
            return
        if use is not Use.ON:
            session.forget()
        session.keeper = self.cache
        if self.cache is not None:
            self.cache.flush()
        self._ahead = _imports()
        code = code_digest()
        if code != self.code:  # it would go on importing what other code has become
            self._say({"code": code})

    def look_ahead(self, message: Mapping[str, Any]) -> None:
        """Looks ahead from a request from now on; continues where it stopped if it is the same one."""
        if message.get("key") != self._ahead_key:
            registry.forget_others()
            self.session.keeper = self.cache
            # without a cache the results would be lost
            points = points_ahead(message.get("ahead"), self.session) if self.cache is not None else ()
            self._ahead, self._ahead_key = chain(points, _imports()), str(message.get("key"))
        self._until = time.process_time() + float(message.get("seconds", 0.0))

    def rest(self) -> bool:
        """Does a step of the work ahead, within the budget; False where there is nothing more to do."""
        is_over = bool(self._ahead_key) and time.process_time() >= self._until
        try:
            if not is_over:
                next(self._ahead)
                if time.process_time() - self._kept > KEEP_SECONDS:
                    self._keep()  # it may be ended at any time
                return True
        except StopIteration:
            pass
        except Exception as error:  # a request for it will report it
            print(f"buildtool daemon: what is done ahead failed: {error!r}", file=sys.stderr, flush=True)
        self._keep()
        self._say({"rested": self._ahead_key, "left": is_over, "rss": resident_bytes()})
        return False

    def _keep(self) -> None:
        """Writes what was made ahead to the cache."""
        self._kept = time.process_time()
        if self.cache is not None:
            self.cache.flush()

    def drop(self) -> None:
        """Forgets all values, to free memory."""
        self.session.forget()
        self._ahead, self._ahead_key = iter(()), ""
        self._say({"dropped": True, "rss": resident_bytes()})


def _answer(request: Any, session: Session, environment: Any) -> dict[str, Any]:
    """The final message: an answer or an error. `pure`: it depends on the request alone; `crash`: on this
    process, so that the client had better see for itself.
    """
    try:
        if not isinstance(request, dict):
            raise ToolError("a message holds no request")
        with _environment(environment):
            return {"answer": handle(request, session), "pure": True}
    except Exception as error:
        told = error_for_client(error)
        if isinstance(told, InternalError | MachineError):
            return {"error": to_data(told), "crash": True}
        return {"error": to_data(told), "pure": isinstance(told, PlanError)}


def _imports() -> Iterator[None]:
    """Imports the modules that planning needs, one a step: later edits have no effect on this worker."""
    for room in PRELOADED:
        package = import_module(f"buildtool.{room}")
        yield
        for module in walk_packages(package.__path__, f"buildtool.{room}."):
            spec = find_spec(module.name)
            is_python = spec is not None and str(spec.origin).endswith(".py")  # and no C library beside
            if is_python and not module.name.startswith("buildtool.graph.onnx"):  # rarely needed
                import_module(module.name)
                yield


def points_ahead(request: Any, session: Session) -> Iterator[None]:
    """Prepares what the next request may ask for after a planning request; a step a plan.
    It places the points of the front, and plans for the limits on memory that people choose, largest first,
    until one cannot be kept. Such a limit is then found in the cache.
    """
    with contextlib.suppress(BuildtoolError):  # a request for it will report it
        asked = parse(request)
        if isinstance(asked, Planning) and not asked.lock and asked.options.strategy == Strategy.BEST:
            yield from _plans_ahead(asked, session)


def _plans_ahead(asked: Planning, session: Session) -> Iterator[None]:
    from buildtool.api.answers.planreport import beside, describe_plan
    from buildtool.firmware.planned import plan_model, prepare
    from buildtool.plan.choose.choose import choose
    from buildtool.plan.choose.fronts import search_front
    from buildtool.plan.models import load_network
    from buildtool.target.choice import load_target

    target = load_target(asked.target, session)
    network = load_network(asked.model, session)
    prepared = prepare(network, target, asked.options, session)
    fronts = [search_front(prepared.of(graph)) for graph in prepared.graphs]
    for front in fronts:
        for index in range(len(front.points)):
            front.plan(index)
            yield
    whole = choose(replace(prepared, options=replace(asked.options, ram=None))).plan.arena_bytes
    least = replace(asked.options, ram=None, objective=Objective.RAM)
    # round numbers of bytes, the largest first: those that are given as limits more often than others
    steps = {n * step << 10 for step in STEPS for n in range(1, MOST_STEPS + 1)}
    limits = sorted((n for n in {1 << n for n in range(10, 24)} | steps if n < whole), reverse=True)
    for options in (least, *(replace(asked.options, ram=limit) for limit in limits)):
        choose(replace(prepared, options=options))
        yield
        plan = plan_model(asked.model, asked.target, options, session)
        describe_plan(plan)
        beside(plan, False)
        yield


def _inputs(request: Any) -> list[list[str]]:
    """Path and digest ("": unreadable) of the files that an answer depends on, but gives no digests of."""
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
def _environment(given: Any) -> Iterator[None]:
    """A context in which the process has the caller's environment, if one is given."""
    if not isinstance(given, dict) or not given:
        yield
        return
    before, folder = dict(os.environ), tempfile.tempdir
    try:
        os.environ.clear()
        os.environ.update({str(name): str(value) for name, value in given.items()})
        tempfile.tempdir = None
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
        tempfile.tempdir = folder


def resident_bytes() -> int:
    """Memory that this process has now, in bytes; 0 where the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def _prepare_process() -> None:
    """Makes the worker end with its daemon, and bounds its memory."""
    with contextlib.suppress(Exception):  # Linux alone has it
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
    """Serves until standard input ends; 1 for a broken frame."""
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
