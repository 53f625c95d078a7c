"""Computes the reference for a run's tensors: by LiteRT's reference kernels if installed, else by buildtool's
own executor.

LiteRT does not have the operators of TFLM's signal library. For networks with them, TensorFlow Lite Micro's
interpreter is the reference. Both end their whole process if a check of their own fails. So each runs in a
child process: LiteRT in one that runs this module. If the child ends, the reference is lost, but the command
goes on.
"""

from __future__ import annotations

import contextlib
import importlib.util
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, cast

from buildtool.base.child import Child, answer, running, serve
from buildtool.base.errors import BuildtoolError, Hint, ToolError, suggest
from buildtool.base.files import NetworkSpec, uncut
from buildtool.base.modes import Reference
from buildtool.firmware.run.compare import NOT_INSTALLED, Array, Referrer, referrer
from buildtool.firmware.run.curves import Curves, has_curves
from buildtool.firmware.run.moving_window import MovingWindow
from buildtool.firmware.run.undefined import has_undefined, replace_undefined
from buildtool.graph.ops.signal import CUSTOM
from buildtool.graph.types import Graph
from buildtool.plan.choose.hops import Hopping
from buildtool.plan.models import Model, is_onnx, tflite_file
from buildtool.schema.runs import ReferenceAnswer

_OWN = "buildtool's own executor"
_ASKED = "--reference litert compares with LiteRT's reference kernels"
_ONNX = "LiteRT reads no ONNX; --reference litert uses a .tflite file that is written from it"
_ABSENT = f"for LiteRT's reference kernels: {NOT_INSTALLED}"
_INSTEAD = suggest("buildtool's own executor", reference="numpy")


@dataclass(frozen=True)
class Engine:
    """A library that computes references.

    `name`: its name in an answer.
    `title`: its name in texts.
    `has`: what it computes with, as text after its title and version.
    `package`: the Python package that must be installed.
    `module`: the module that runs it.
    """

    name: str
    title: str
    has: str
    package: str
    module: str


LITERT = Engine("litert", "LiteRT", "'s reference kernels", "ai_edge_litert", "buildtool.firmware.run.judge")
TFLM = Engine(
    "tflm", "TensorFlow Lite Micro", "'s interpreter", "tflite_micro", "buildtool.firmware.run.tflm"
)
_NO_TFLM = (
    "LiteRT does not have the operators of the signal library; for TensorFlow Lite Micro's interpreter: "
    "pip install tflite-micro"
)


class Judge:
    """Computes the reference's values for each set of inputs. Call `set_network` first, then `refer` for each
    set.

    With `Reference.AUTO` it uses LiteRT; from the first input on that LiteRT cannot compute, it uses
    buildtool's own executor. `answer` says which of them computed what. With `Reference.LITERT`, such an
    input raises a ToolError.
    """

    def __init__(
        self,
        which: Reference,
        child: _Interpreter | None,
        why: str,
        start: Callable[[Engine], _Interpreter] | None = None,
    ) -> None:
        self._which, self._child, self._why = which, child, why
        self._start = start
        self._engine, self._version = LITERT, ""
        self._own: Referrer | None = None
        self._source: Graph
        self._graph: Graph
        self._since_reset: list[Sequence[Array]] = []  # inputs, of a network with state
        self._by_engine = self._by_own = 0
        self._has_undefined = False
        self._curves: Curves | None = None
        self._moving: MovingWindow | None = None

    def set_network(
        self, model: Model, source: Graph, graph: Graph, *, every: bool, hop: Hopping | None = None
    ) -> None:
        """Sets the network. `graph` is the file's graph `source` after rewriting.

        If `every` is true, the values of all tensors are needed, otherwise only those of the outputs. With
        `hop`, each input has the new rows of a moving window, and the reference runs on the whole window.
        """
        if hop is not None:
            self._moving, graph = MovingWindow(hop, graph), hop.window
        self._source, self._graph = source, graph
        if self._start is not None and any(op.kind in CUSTOM for op in source.ops):
            self._use_tflm(self._start)
        if self._child is None:
            return
        self._has_undefined = has_undefined(graph)
        self._curves = Curves.of(graph) if has_curves(graph) else None
        child, file = self._child, tflite_file(model, source)
        try:
            child.start(file, source, graph, None if every else graph.outputs)
        except ToolError as error:
            self._version = child.version
            self._drop_engine(error)
        self._version = child.version

    def _use_tflm(self, start: Callable[[Engine], _Interpreter]) -> None:
        """Makes TensorFlow Lite Micro's interpreter the reference, if it is installed. `start` starts its
        child process.
        """
        self._engine, self._child, self._why = TFLM, None, _NO_TFLM
        if importlib.util.find_spec(TFLM.package) is not None:
            try:
                self._child, self._why = start(TFLM), ""
            except ToolError as error:
                self._why = error.text

    def refer(self, inputs: Sequence[Array], reset: bool) -> Mapping[int, Array]:
        """Returns the reference's value of each tensor, by the tensor's index. If `reset`, the state is reset
        first.
        """
        if self._moving is not None:
            return self._moving.values(self._refer(self._moving.push(inputs, reset), True))
        return self._refer(inputs, reset)

    def _refer(self, inputs: Sequence[Array], reset: bool) -> Mapping[int, Array]:
        if self._child is not None:
            try:
                values = self._child.refer(inputs, reset)
                missing = next((t for t in self._graph.outputs if t not in values), None)
                if missing is not None:  # without this error, the output would not be compared
                    raise ToolError(
                        f"{self._engine.title} has no such output", tensor=self._graph.tensors[missing].name
                    )
            except ToolError as error:
                self._drop_engine(error)
            else:
                self._by_engine += 1
                if self._curves is not None:
                    return self._curves.settle(self._graph, values, self._compute(inputs, reset), reset)
                if self._has_undefined:
                    return replace_undefined(self._graph, values, self._compute(inputs, reset))
                if self._graph.states:
                    self._since_reset = [*([] if reset else self._since_reset), inputs]
                return values
        self._by_own += 1
        return self._compute(inputs, reset)

    def _compute(self, inputs: Sequence[Array], reset: bool) -> Mapping[int, Array]:
        """Returns the value of each tensor that buildtool's own executor computes, by the tensor's index."""
        if self._own is None:
            self._own = referrer(Reference.NUMPY, b"", self._source, self._graph)
            for earlier in [] if reset else self._since_reset:
                self._own(earlier, False)
        return self._own(inputs, reset)

    def answer(self) -> ReferenceAnswer:
        """Returns the reference's description in an answer."""
        engine = " ".join([self._engine.title, *filter(None, [self._version])]) + self._engine.has
        is_engine = self._by_engine > 0 or self._child is not None
        text = engine if is_engine else _OWN
        if is_engine and self._by_own:
            text += f" ({self._by_own:,} of {self._by_engine + self._by_own:,} inputs: {_OWN})"
        return {
            "name": self._engine.name if is_engine else "numpy",
            "version": self._version if is_engine else "",
            "text": text,
            "inputs_by_own_executor": self._by_own,
            "why": self._why,
            "curves": self._curves.answer() if self._curves is not None and self._by_engine else None,
        }

    def _drop_engine(self, error: ToolError) -> None:
        """Uses buildtool's own executor from now on. Raises `error` instead if the request requires
        LiteRT.
        """
        if self._which is Reference.LITERT:
            raise error
        title = self._engine.title
        self._why = error.text.replace(title, f"{title} {self._version}".rstrip(), 1)
        self._child = None


@contextlib.contextmanager
def judging(which: Reference, model: NetworkSpec) -> Iterator[Judge]:
    """A context with a judge. Its child process loads LiteRT while the caller goes on.

    Raises ToolError if LiteRT is required but not installed.
    """
    whole = uncut(model)
    with contextlib.ExitStack() as ending:

        def start(engine: Engine) -> _Interpreter:
            return _Interpreter(ending.enter_context(running(engine.module, engine.title, _INSTEAD)))

        if which is Reference.NUMPY:
            yield Judge(which, None, _ASKED)
        elif which is Reference.AUTO and is_onnx(whole if isinstance(whole, str) else whole.path):
            yield Judge(which, None, _ONNX)
        elif importlib.util.find_spec(LITERT.package) is None:
            if which is Reference.LITERT:
                hints = [Hint(NOT_INSTALLED), _INSTEAD]
                raise ToolError("LiteRT is not installed", option="reference", hint=hints)
            yield Judge(which, None, _ABSENT, start)
        else:
            child, why = None, ""
            try:
                child = start(LITERT)
            except ToolError as error:  # too many processes, or not enough memory
                why = error.text
                if which is Reference.LITERT:
                    raise
            yield Judge(which, child, why, start if which is Reference.AUTO else None)


class _Interpreter:
    """A library in a child process. Its methods raise ToolError if the library refuses something or ends."""

    def __init__(self, child: Child) -> None:
        self.version = ""
        self.child = child

    def start(self, model: bytes, source: Graph, graph: Graph, wanted: Sequence[int] | None) -> None:
        """Sends the network to the library. `wanted` are the tensors whose values are needed (None: all)."""
        self.version = self.child.receive()
        self.child.ask((model, source, graph, wanted))

    def refer(self, inputs: Sequence[Array], reset: bool) -> Mapping[int, Array]:
        """Returns the value of each wanted tensor, by the tensor's index. If `reset`, the state is reset
        first.
        """
        return cast(Mapping[int, Array], self.child.ask((inputs, reset)))


def _serve(source: IO[bytes], sink: IO[bytes]) -> None:
    """Runs in LiteRT's child process. It sends LiteRT's version to the parent, and then answers for each
    input.
    """
    try:
        import ai_edge_litert.interpreter
    except ImportError as error:
        return answer(sink, False, f"LiteRT cannot be loaded: {' '.join(str(error).split())}")
    answer(sink, True, str(getattr(ai_edge_litert, "__version__", "")))
    return answer_inputs(source, sink, lambda *network: referrer(Reference.LITERT, *network))


def answer_inputs(
    source: IO[bytes], sink: IO[bytes], make: Callable[[bytes, Graph, Graph], Referrer]
) -> None:
    """Runs in a library's child process: answers for the network, and then for each set of inputs.

    `make` returns the function that computes the values of the network's tensors.
    """
    refer: Referrer | None = None
    tensors: Sequence[int] | None = None
    while True:
        try:
            message = pickle.load(source)
        except EOFError:
            return
        try:
            if refer is None:
                model, file, graph, tensors = message
                refer = make(model, file, graph)
                answer(sink, True, None)
                continue
            values = refer(*message)
            wanted = values if tensors is None else tensors
            answer(sink, True, {t: values[t] for t in wanted if t in values})
        except BuildtoolError as error:
            answer(sink, False, error.text)


if __name__ == "__main__":
    serve(_serve)
