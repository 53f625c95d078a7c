"""What runs in a worker: requests from standard input, one after the other, answers on standard output.

Between requests it goes on with what the next one may ask for (see `ahead`), point by point, and stops as
soon as a request is there.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import select
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from buildtool import wire
from buildtool.cache.cache import Use, open_cache
from buildtool.errors import BuildtoolError, InternalError, ToolError, from_exception
from buildtool.identity import code_digest
from buildtool.service import subject
from buildtool.session import Session

MOST_BYTES = 4 << 30  # of address space: what needs more ends in an error, and not the machine
_CHUNK = 1 << 18


class _Service:
    """The session and the cache of a worker."""

    def __init__(self) -> None:
        self.code = code_digest()
        self.cache = open_cache(self.code)
        self.session = Session(keeper=self.cache, progress=self._tell)
        self._replies = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)  # whatever a library prints must not get between the frames
        self._ahead: Iterator[None] = iter(())

    def say(self, message: Mapping[str, Any]) -> None:
        """Sends a message to the daemon."""
        wire.send(self._replies, {"protocol": wire.PROTOCOL, **message})

    def _tell(self, text: str) -> None:
        self.say({"progress": {"text": text}})

    def serve(self, message: Mapping[str, Any]) -> None:
        """Answers a request."""
        self._ahead = iter(())
        request, use = message.get("request"), Use(str(message.get("cache", "on")))
        session = self.session
        if use is not Use.ON:  # what is remembered would be used as well
            session.forget()
        session.keeper = None if use is Use.OFF else self.cache
        if self.cache is not None:
            self.cache.begin(subject(request) if isinstance(request, dict) else "", use)
        with _environment(message.get("environment")):
            answer = _answer(request, session)
        told = {"inputs": _inputs(request), "counts": self.cache.counts() if self.cache else {}}
        self.say({**answer, "rss": resident_bytes(), **told})
        if use is not Use.ON:
            session.forget()
        if self.cache is not None:
            self.cache.flush()
        if use is Use.ON and "answer" in answer:
            self._ahead = _ahead(request, session)

    def rest(self) -> bool:
        """Does a piece of what may be asked for next; whether anything is left of that."""
        try:
            next(self._ahead)
        except StopIteration:
            return False
        except BuildtoolError:
            self._ahead = iter(())
        return True

    def drop(self) -> None:
        """Gives back memory."""
        self.session.forget()
        self._ahead = iter(())
        if self.cache is not None:
            self.cache.forget()
        self.say({"dropped": True, "rss": resident_bytes()})


def _answer(request: Any, session: Session) -> dict[str, Any]:
    from buildtool.service import handle

    try:
        if not isinstance(request, dict):
            raise ToolError("a message holds no request")
        return {"answer": handle(request, session)}
    except Exception as error:
        told = from_exception(error)
        if isinstance(told, InternalError):
            print(told.trace, file=sys.stderr, flush=True)
        message = wire.error_message(told)
        return {"error": message["error"], "pure": told.code == "PLAN"}


def _ahead(request: Any, session: Session) -> Iterator[None]:
    from buildtool.service.ahead import points_ahead

    return points_ahead(request, session)


def _inputs(request: Any) -> list[list[str]]:
    """Path and digest of the files that a request's answer depends on, and that it gives no digest of."""
    from buildtool.target.registry import board_chain

    board = request.get("board") if isinstance(request, dict) else None
    path = board.get("path") if isinstance(board, dict) else board
    found = []
    if isinstance(path, str) and path.endswith(".toml"):
        with contextlib.suppress(BuildtoolError, OSError):
            for file in board_chain(path)[1:]:
                found.append([str(file), hashlib.sha256(Path(file).read_bytes()).hexdigest()])
    return found


@contextlib.contextmanager
def _environment(given: Any) -> Iterator[None]:
    """Within it the process has the caller's environment, where that counts."""
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
    """A worker ends with its daemon, has a bound on its memory, and imports now what it needs later.

    Code that is edited while a worker lives has no effect on it: nothing of the planner is imported later.
    """
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


def _preload() -> None:
    pass


def main() -> int:
    """Serves until standard input ends; 1 for a broken frame."""
    _prepare_process()
    parent = os.getppid()
    service = _Service()
    _preload()
    service.say({"ready": {"code": service.code}, "rss": resident_bytes()})
    decoder, busy = wire.Decoder(), False
    try:
        while os.getppid() == parent:
            if busy and not select.select([0], [], [], 0)[0]:
                busy = service.rest()
                if not busy:
                    service.say({"rested": True, "rss": resident_bytes()})
                continue
            data = os.read(0, _CHUNK)
            if not data:
                return 0
            for message in decoder.feed(data):
                if "drop" in message:
                    service.drop()
                else:
                    service.serve(message)
                    busy = True
    except ToolError as error:
        print(error, file=sys.stderr)
        return 1
    except (BrokenPipeError, KeyboardInterrupt):
        pass
    return 0


if __name__ == "__main__":
    sys.exit(main())
