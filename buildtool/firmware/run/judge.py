"""The reference for a run's tensors: LiteRT's reference kernels if installed, else our own executor.

LiteRT ends its whole process if a check of its own fails. So it runs in a child process, which runs this
module. If the child ends, the reference is lost, but the command goes on.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pickle
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any, cast

from buildtool.base.errors import BuildtoolError, Hint, ToolError, suggest
from buildtool.base.files import Named
from buildtool.base.identity import home
from buildtool.base.modes import Reference
from buildtool.firmware.run.compare import NOT_INSTALLED, Array, Referrer, referrer
from buildtool.graph.types import Graph
from buildtool.plan.models import Model, is_onnx, tflite_file
from buildtool.schema.runs import ReferenceAnswer

_OWN = "buildtool's own executor"
_ASKED = "--reference litert compares with LiteRT's reference kernels"
_ONNX = "LiteRT reads no ONNX; --reference litert uses a .tflite file that is written from it"
_ABSENT = f"for LiteRT's reference kernels: {NOT_INSTALLED}"
_INSTEAD = suggest("buildtool's own executor", reference="numpy")
_LAST_WORDS = 200  # characters of LiteRT's last line before it ends
PATIENCE_SECONDS = 1800.0  # for one answer: its kernels need only minutes for the largest networks


class Judge:
    """Computes the right values for each set of inputs. Call `set_network` first, then `refer` for each set.

    With `Reference.AUTO` it uses LiteRT. From the first input that LiteRT cannot compute on, it uses our
    own executor. `answer` says which of them computed what. With `Reference.LITERT`, such an input raises
    a ToolError.
    """

    def __init__(self, which: Reference, child: _Child | None, why: str) -> None:
        self._which, self._child, self._why = which, child, why
        self._version = ""
        self._own: Referrer | None = None
        self._graph: Graph
        self._since_reset: list[Sequence[Array]] = []  # inputs, of a network with state
        self._by_litert = self._by_own = 0

    def set_network(self, model: Model, source: Graph, graph: Graph, *, every: bool) -> None:
        """Sets the network. `graph` is the rewritten graph of the file's `source`.

        If `every` is true, the values of all tensors are needed, and otherwise those of the outputs.
        """
        self._graph = graph
        if self._child is None:
            return
        child, file = self._child, tflite_file(model, source)
        try:
            child.start(file, source, graph, None if every else graph.outputs)
        except ToolError as error:
            self._version = child.version
            self._drop_litert(error)
        self._version = child.version

    def refer(self, inputs: Sequence[Array], reset: bool) -> Mapping[int, Array]:
        """Maps each tensor's index to its right value. If `reset` is true, the state is reset first."""
        if self._child is not None:
            try:
                values = self._child.refer(inputs, reset)
                missing = next((t for t in self._graph.outputs if t not in values), None)
                if missing is not None:  # else it would not be compared
                    raise ToolError("LiteRT has no such output", tensor=self._graph.tensors[missing].name)
            except ToolError as error:
                self._drop_litert(error)
            else:
                self._by_litert += 1
                if self._graph.states:
                    self._since_reset = [*([] if reset else self._since_reset), inputs]
                return values
        self._by_own += 1
        if self._own is None:
            self._own = referrer(Reference.NUMPY, b"", self._graph, self._graph)
            for earlier in [] if reset else self._since_reset:
                self._own(earlier, False)
        return self._own(inputs, reset)

    def answer(self) -> ReferenceAnswer:
        """Describes the reference in an answer."""
        litert = " ".join(["LiteRT", *filter(None, [self._version])]) + "'s reference kernels"
        is_litert = self._by_litert > 0 or self._child is not None
        text = litert if is_litert else _OWN
        if is_litert and self._by_own:
            text += f" ({self._by_own:,} of {self._by_litert + self._by_own:,} inputs: {_OWN})"
        return {
            "name": "litert" if is_litert else "numpy",
            "version": self._version if is_litert else "",
            "text": text,
            "inputs_by_own_executor": self._by_own,
            "why": self._why,
        }

    def _drop_litert(self, error: ToolError) -> None:
        """Uses our executor from now on; raises `error` if the request requires LiteRT."""
        if self._which is Reference.LITERT:
            raise error
        name = "LiteRT" if not self._version else f"LiteRT {self._version}"
        self._why = error.text.replace("LiteRT", name, 1)
        self._child = None


@contextlib.contextmanager
def judging(which: Reference, model: Named) -> Iterator[Judge]:
    """Yields a judge whose child process loads LiteRT in the meantime.

    ToolError if LiteRT is required but not installed.
    """
    if which is Reference.NUMPY:
        yield Judge(which, None, _ASKED)
    elif which is Reference.AUTO and is_onnx(model if isinstance(model, str) else model.path):
        yield Judge(which, None, _ONNX)
    elif importlib.util.find_spec("ai_edge_litert") is None:
        if which is Reference.LITERT:
            hints = [Hint(NOT_INSTALLED), _INSTEAD]
            raise ToolError("LiteRT is not installed", option="reference", hint=hints)
        yield Judge(which, None, _ABSENT)
    else:
        with tempfile.TemporaryFile() as words, contextlib.ExitStack() as ending:
            child, why = None, ""
            try:
                child = _Child(words)
                ending.callback(child.close)
            except OSError as error:  # too many processes, or not enough memory
                why = f"LiteRT's process cannot be started: {error.strerror}"
                if which is Reference.LITERT:
                    raise ToolError(why, hint=_INSTEAD) from None
            yield Judge(which, child, why)


class _Child:
    """A process that runs LiteRT; its methods raise ToolError if LiteRT refuses something or ends."""

    def __init__(self, words: IO[bytes]) -> None:
        self.version = ""
        self._words = words
        paths = [home(), *filter(None, [os.environ.get("PYTHONPATH")])]
        self._process = subprocess.Popen(
            # -P: files in the current folder must not shadow Python's modules.
            [sys.executable, "-P", "-m", "buildtool.firmware.run.judge"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=words,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        )

    def start(self, model: bytes, source: Graph, graph: Graph, wanted: Sequence[int] | None) -> None:
        """Makes LiteRT read the network; `wanted` are the needed tensors (None: all)."""
        self.version = self._receive()
        self._send((model, source, graph, wanted))
        self._receive()

    def refer(self, inputs: Sequence[Array], reset: bool) -> Mapping[int, Array]:
        """Maps each tensor's index to the value that LiteRT computes; `reset` resets the state first."""
        self._send((inputs, reset))
        return cast(Mapping[int, Array], self._receive())

    def close(self) -> None:
        """Ends the process."""
        process = self._process
        for stream in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                if stream is not None:
                    stream.close()
        process.kill()  # it has nothing to clean up
        process.wait()

    def _send(self, message: object) -> None:
        stream = self._process.stdin
        assert stream is not None
        with contextlib.suppress(OSError):  # if the process has ended, `_receive` raises the error
            pickle.dump(message, stream, protocol=5)
            stream.flush()

    def _receive(self) -> Any:
        assert self._process.stdout is not None
        is_late = threading.Event()

        def end() -> None:
            is_late.set()
            self._process.kill()

        ending = threading.Timer(PATIENCE_SECONDS, end)
        ending.daemon = True
        ending.start()
        try:
            is_right, answer = pickle.load(self._process.stdout)
        except (EOFError, OSError, pickle.UnpicklingError):
            how = self._end()
            text = f"did not answer for {PATIENCE_SECONDS:g} s and {how}" if is_late.is_set() else how
            raise ToolError(f"LiteRT {text}", hint=_INSTEAD) from None
        finally:
            ending.cancel()
        if not is_right:
            raise ToolError(answer, hint=_INSTEAD)
        return answer

    def _end(self) -> str:
        """Waits until the process has ended; returns how it ended, and its last line of text."""
        status = self._process.wait()
        how = f"ended with status {status}" if status >= 0 else f"was ended by signal {-status}"
        self._words.seek(0)
        lines = self._words.read().decode("utf-8", "replace").split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        return f"{how}: {last[:_LAST_WORDS]}" if last else how


def _serve(source: IO[bytes], sink: IO[bytes]) -> None:
    """Runs in the child process, and answers its parent.

    It sends LiteRT's version, then an answer for the network and for each set of inputs.
    """

    def answer(is_right: bool, content: object) -> None:
        pickle.dump((is_right, content), sink, protocol=5)
        sink.flush()

    try:
        import ai_edge_litert.interpreter
    except ImportError as error:
        return answer(False, f"LiteRT cannot be loaded: {' '.join(str(error).split())}")
    answer(True, str(getattr(ai_edge_litert, "__version__", "")))
    refer: Referrer | None = None
    tensors: Sequence[int] | None = None
    while True:
        try:
            message = pickle.load(source)
        except EOFError:
            return None
        try:
            if refer is None:
                model, file, graph, tensors = message
                refer = referrer(Reference.LITERT, model, file, graph)
                answer(True, None)
                continue
            values = refer(*message)
            answer(True, {t: values[t] for t in (values if tensors is None else tensors) if t in values})
        except BuildtoolError as error:
            answer(False, error.text)


if __name__ == "__main__":
    with os.fdopen(os.dup(1), "wb") as own:
        os.dup2(2, 1)  # what libraries print must not get between the answers
        _serve(sys.stdin.buffer, own)
