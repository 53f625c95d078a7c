"""A child process that runs a library, because the library may end its whole process.

Parent and child send each other pickled values. What the child prints goes to a temporary file. If the child
ends before it has answered, the parent's ToolError quotes the last line of that file.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from typing import IO, Any

from buildtool.base.code_digest import home
from buildtool.base.errors import Hint, ToolError

_LAST_WORDS = 200  # characters of the child's last line before it ends
PATIENCE_SECONDS = 1800.0  # for one answer: the slowest ones need only minutes


class Child:
    """A child process, as its parent sees it. `receive` raises a ToolError if the child has ended or answers
    with an error.
    """

    def __init__(
        self, process: subprocess.Popen[bytes], printed: IO[bytes], name: str, hint: str | Hint
    ) -> None:
        self.process, self._printed, self._name, self._hint = process, printed, name, hint

    def send(self, message: object) -> None:
        """Sends a message. If the process has ended, the next `receive` raises the error."""
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):
            pickle.dump(message, self.process.stdin, protocol=5)
            self.process.stdin.flush()

    def receive(self) -> Any:
        """Waits for the next answer and returns it. Raises ToolError if the child ends, reports an error, or
        sends nothing for PATIENCE_SECONDS.
        """
        assert self.process.stdout is not None
        is_late = threading.Event()

        def end() -> None:
            is_late.set()
            self.process.kill()

        ending = threading.Timer(PATIENCE_SECONDS, end)
        ending.daemon = True
        ending.start()
        try:
            is_right, answer = pickle.load(self.process.stdout)
        except (EOFError, OSError, pickle.UnpicklingError):
            how = self._end()
            text = f"did not answer for {PATIENCE_SECONDS:g} s and {how}" if is_late.is_set() else how
            raise ToolError(f"{self._name} {text}", hint=self._hint) from None
        finally:
            ending.cancel()
        if not is_right:
            raise ToolError(answer, hint=self._hint)
        return answer

    def ask(self, message: object) -> Any:
        """Sends a message and returns the answer. Raises ToolError as `receive` does."""
        self.send(message)
        return self.receive()

    def close(self) -> None:
        """Ends the process."""
        for stream in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):
                if stream is not None:
                    stream.close()
        self.process.kill()  # it has nothing to clean up
        self.process.wait()

    def _end(self) -> str:
        """Waits until the process has ended; returns how it ended, and its last line of text."""
        status = self.process.wait()
        how = f"ended with status {status}" if status >= 0 else f"was ended by signal {-status}"
        self._printed.seek(0)
        lines = self._printed.read().decode("utf-8", "replace").split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        return f"{how}: {last[:_LAST_WORDS]}" if last else how


@contextlib.contextmanager
def running(module: str, name: str, hint: str | Hint = "", folder: str = "") -> Iterator[Child]:
    """A context with a child process that runs `module`, a module of buildtool. The process ends with the
    context.

    `name` and `hint` appear in error messages. `folder` is for the child's temporary files ("": the system's
    folder). Raises ToolError if the process cannot be started.
    """
    paths = [home(), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    environment |= {"TMPDIR": folder} if folder else {}
    with tempfile.TemporaryFile() as printed, contextlib.ExitStack() as ending:
        try:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", module],  # -P: no module of the current folder
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=printed,
                env=environment,
            )
        except OSError as error:
            raise ToolError(f"{name}'s process cannot be started: {error.strerror}", hint=hint) from None
        child = Child(process, printed, name, hint)
        ending.callback(child.close)
        yield child


# ---- in the child ----------------------------------------------------------------------------------------


def answer(sink: IO[bytes], is_right: bool, content: object) -> None:
    """Sends an answer to the parent. `content` is the result if `is_right`, otherwise the text of an
    error.
    """
    pickle.dump((is_right, content), sink, protocol=5)
    sink.flush()


def serve(work: Callable[[IO[bytes], IO[bytes]], None]) -> None:
    """Calls `work` in a child process, with the stream of the parent's messages and the stream for
    answers.
    """
    with os.fdopen(os.dup(1), "wb") as own:
        os.dup2(2, 1)  # what libraries print must not get between the answers
        work(sys.stdin.buffer, own)
