"""Answers `quantize`: runs the float network, has it quantised, and compares and plans the result."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from buildtool.api.requests.kinds import Quantize
from buildtool.api.requests.parts import Data
from buildtool.base.child import Child, running
from buildtool.base.errors import (
    BuildtoolError,
    PlanError,
    TargetError,
    ToolError,
    UnsupportedError,
    UsageError,
    suggest,
    to_data,
)
from buildtool.base.files import File, Named
from buildtool.base.locks import scratch
from buildtool.base.modes import Activations, Reference
from buildtool.base.session import Session
from buildtool.emit.ctext import shape
from buildtool.emit.image import image_layout
from buildtool.firmware.datasets.arrays import DataSet, quantised
from buildtool.firmware.datasets.opened import choose_positions, open_for_inputs
from buildtool.firmware.planned import plan_model, refuse_unless_fits
from buildtool.firmware.run.accuracy import check_labels, scores
from buildtool.firmware.run.judge import judging
from buildtool.graph.types import DType, Tensor
from buildtool.options.values import PlanOptions
from buildtool.plan.models import Model, Network, load_model, load_network
from buildtool.quantize.floats import FloatNetwork, read_float
from buildtool.quantize.losses import Losses
from buildtool.quantize.worker import MODULES
from buildtool.schema.quantized import LostAccuracy, PlannedAtOnce, QuantizeAnswer
from buildtool.target.choice import load_board

Array = npt.NDArray[np.generic]
CALIBRATED = 500  # inputs that decide the scales, at most; more hardly change them
RANDOM = 16  # inputs without a data set
# By the kind of file: how to install all that is needed.
_INSTALL = {"tflite": "pip install ai-edge-quantizer", "onnx": "pip install onnxruntime onnx"}
_LEFT = (
    "the quantiser has left these operators as they were, or made others than buildtool has: replace them in "
    "the network, or leave them to your application"
)
_WIDE_ONNX = "buildtool reads no .onnx files with 16-bit activations"


def quantized(request: Quantize, session: Session) -> QuantizeAnswer:
    """Answers a `quantize` request."""
    session.tell("reading the network")
    model = load_model(request.model)
    network = read_float(model)
    if network.kind == "onnx" and request.activations is not Activations.INT8:
        raise UsageError(_WIDE_ONNX, option="activations", hint=suggest(activations=None))
    if request.board is not None:
        load_board(request.board)  # a wrong name is reported before the work begins
    samples = _open_samples(request, network)
    with _quantiser(model, network, request.activations) as (child, versions):
        data = _quantise(child, network, samples, session)
        result = File(f"{model.name}_{request.activations}.{network.kind}", data=data)
        made = _read_result(result, model, session)
        lost, reference = None, ""
        if request.data is not None:
            lost, reference = _compare(request.data, made, samples, network, child, session)
    return {
        "model": model.name,
        "activations": str(request.activations),
        "data": Path(request.data.wanted.file.path).name if request.data else "",
        "inputs": len(samples.chosen),
        "inputs_there": len(samples.data_set.names),
        "calibrated": len(samples.calibrating),
        "fed": [
            {"name": one.name, "shape": shape(one.shape), "how": how}
            for one, how in zip(network.inputs, samples.data_set.how, strict=True)
        ],
        "quantiser": versions,
        "reference": reference,
        "float_bytes": len(model.data),
        "bytes": len(data),
        "planned": _plan(result, request.board, session) if request.board is not None else None,
        "lost": lost,
        "files": {result.path: data},
    }


# ---- the data ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Samples:
    """A data set, and which of its inputs are used.

    `chosen`: the positions of the inputs on which the networks are compared.
    `calibrating`: the positions of the inputs that determine the scales.
    """

    data_set: DataSet
    chosen: list[int]
    calibrating: list[int]

    def read(self, at: int) -> list[Array]:
        """Returns the input at position `at`, an array for each network input."""
        return self.data_set.read(at)


def _open_samples(request: Quantize, network: FloatNetwork) -> _Samples:
    """Returns the data set of the request, or one of random values."""
    if request.data is None:
        everything = list(range(RANDOM))
        return _Samples(_make_random(network.inputs, request.seed), everything, everything)
    wanted = request.data.wanted

    def choose(count: int) -> list[int]:
        return choose_positions(count, wanted.limit, wanted.seed)

    data_set = open_for_inputs(wanted, network.inputs, choose)
    chosen = choose(len(data_set.names))
    for at in chosen:
        data_set.check(at)
    few = choose_positions(len(chosen), CALIBRATED, wanted.seed)
    return _Samples(data_set, chosen, [chosen[i] for i in few])


def _make_random(inputs: Sequence[Tensor], seed: int) -> DataSet:
    """Returns a data set of random values from -1 to 1; integers are 0."""

    def read(at: int) -> list[Array]:
        random = np.random.default_rng((seed, at))
        return [
            random.uniform(-1, 1, one.shape).astype(np.float32)
            if one.dtype is DType.FLOAT32
            else np.zeros(one.shape, one.dtype.value)
            for one in inputs
        ]

    how = tuple("random values from -1 to 1" if one.dtype is DType.FLOAT32 else "0" for one in inputs)
    return DataSet(tuple(map(str, range(RANDOM))), (), (), how, read)


# ---- the quantiser -------------------------------------------------------------------------------------


@contextmanager
def _quantiser(model: Model, network: FloatNetwork, activations: Activations) -> Iterator[tuple[Child, str]]:
    """Yields the child process that has opened the network, and its libraries' versions.

    Raises ToolError if a package is missing.
    """
    package, _ = MODULES[network.kind]
    if importlib.util.find_spec(package.replace("-", "_")) is None:
        text = f"quantising .{network.kind} files needs the Python package {package}, which is not installed"
        raise ToolError(text, path=model.path, hint=_INSTALL[network.kind])
    try:
        with scratch() as folder, running("buildtool.quantize.worker", package, folder=folder) as child:
            yield child, child.ask(("open", network.kind, model.data, str(activations)))
    except ToolError as error:
        raise error.at(path=model.path) from None


def _quantise(child: Child, network: FloatNetwork, samples: _Samples, session: Session) -> bytes:
    """Returns the quantised file, with scales from the samples."""
    for number, at in enumerate(samples.calibrating, 1):
        session.tell(f"calibrating: input {number:,} of {len(samples.calibrating):,}")
        child.ask(("sample", network.to_file(samples.read(at))))
    session.tell("quantising")
    data: bytes = child.ask(("quantise",))
    return data


def _read_result(result: File, model: Model, session: Session) -> Network:
    """Returns the quantised network. Raises UnsupportedError if buildtool does not support it."""
    try:
        return load_network(result, session)
    except BuildtoolError as error:
        hints = error.hints if error.tensor and not error.operator else ()  # about an input, for example
        refused = UnsupportedError(f"as it is quantised, {error.text}", path=model.path, hint=hints or _LEFT)
        raise refused.at(operator=error.operator, tensor=error.tensor) from None


# ---- the result ----------------------------------------------------------------------------------------


def _compare(
    data: Data, made: Network, samples: _Samples, network: FloatNetwork, child: Child, session: Session
) -> tuple[LostAccuracy, str]:
    """Runs both networks on the chosen inputs. Returns (lost accuracy, what ran the quantised one, as text).

    `made`: the quantised network. `network`: the float network, which runs in the child process `child`.
    """
    graph, data_set, path = made.graph, samples.data_set, data.wanted.file.path
    inputs = [graph.tensors[t] for t in graph.inputs]
    outputs = tuple(graph.tensors[t] for t in graph.outputs)
    tensor, why = scores(graph, data.scores) if data_set.labels else (None, "the data set has no labels")
    if tensor is not None:
        check_labels(data_set.labels, data_set.classes, graph.tensors[tensor], path)
    position = None if tensor is None else graph.outputs.index(tensor)
    labels = [data_set.labels[at] for at in samples.chosen] if data_set.labels else []
    losses = Losses(outputs, position, why, labels)
    with judging(Reference.AUTO, File(made.model.path)) as judge:
        judge.set_network(made.model, made.source, graph, every=False)
        for number, at in enumerate(samples.chosen, 1):
            session.tell(f"comparing: input {number:,} of {len(samples.chosen):,}")
            arrays = samples.read(at)
            child.send(("run", network.to_file(arrays)))
            given = [
                quantised(array.reshape(tensor.shape), tensor, path)
                for array, tensor in zip(arrays, inputs, strict=True)
            ]
            values = judge.refer(given, reset=True)
            exact = network.from_file(child.receive())
            losses.add(exact, [values[t] for t in graph.outputs])
        return losses.answer(), judge.answer()["text"]


def _plan(result: File, board: Named, session: Session) -> PlannedAtOnce:
    """Returns a plan of the quantised network for a board."""
    name = load_board(board).name
    try:
        planned = plan_model(result, board, PlanOptions(), session)
        kernels = planned.target.kernels_by_name(planned.plan.kernels)
        flash = image_layout(planned.graph, kernels).size
        refuse_unless_fits(planned, flash)
    except (PlanError, TargetError, UnsupportedError) as error:
        return {"board": name, "arena_bytes": None, "flash_bytes": None, "error": to_data(error)}
    return {"board": name, "arena_bytes": planned.plan.arena_bytes, "flash_bytes": flash, "error": None}
