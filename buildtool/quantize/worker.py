"""The child process that runs a float network and quantises it: the only place that loads these libraries.

Messages are tuples that begin with a word:

    open      kind of file, its bytes, the type of activations  ->  versions of the libraries
    run       an array for each network input                   ->  an array for each output
    sample    an array for each network input, for calibration  ->  None
    quantise                                                    ->  the bytes of the quantised file
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from typing import IO, Any, Protocol

import numpy as np
import numpy.typing as npt

from buildtool.base.child import answer, serve
from buildtool.base.errors import BuildtoolError

Array = npt.NDArray[np.generic]
_MOST_WORDS = 400  # characters of a library's error
# By the kind of file: the quantiser's package, and the module here that calls it.
MODULES = {
    "tflite": ("ai-edge-quantizer", "buildtool.quantize.litert"),
    "onnx": ("onnxruntime", "buildtool.quantize.onnx_runtime"),
}


class Engine(Protocol):
    """The interface of a library that runs a float network and quantises it."""

    def __init__(self, data: bytes, activations: str) -> None: ...

    @property
    def versions(self) -> str:
        """The names and versions of the libraries."""

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        """Returns the network's outputs for one input; `arrays` has an array for each network input."""

    def quantise(self, samples: Iterable[Sequence[Array]]) -> bytes:
        """Returns the quantised file; `samples` determine the scales of the activations."""


def _work(source: IO[bytes], sink: IO[bytes]) -> None:
    """Answers the messages of the parent process until the parent closes its end of the pipe."""
    engine: Engine
    package = ""

    def samples(first: Sequence[Array]) -> Iterator[Sequence[Array]]:
        """Yields the sample `first` and those of the following messages, up to the message `quantise`."""
        yield first
        answer(sink, True, None)
        while (message := pickle.load(source))[0] == "sample":
            yield message[1]
            answer(sink, True, None)

    while True:
        try:
            word, *about = pickle.load(source)
        except EOFError:
            return
        try:
            result: Any
            if word == "open":
                kind, data, activations = about
                package, module = MODULES[kind]
                engine = import_module(module).Network(data, activations)
                result = engine.versions
            elif word == "run":
                result = engine.run(about[0])
            else:
                result = engine.quantise(samples(about[0]))
        except BuildtoolError as error:
            answer(sink, False, error.text)
        except Exception as error:  # libraries raise many kinds of errors
            said = " ".join(str(error).split())[:_MOST_WORDS]
            answer(sink, False, f"{package} raises {type(error).__name__}: {said}")
        else:
            answer(sink, True, result)


if __name__ == "__main__":
    serve(_work)
