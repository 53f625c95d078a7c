"""Operators that keep state of their own, from a file and into one: SVDF and UNIDIRECTIONAL_SEQUENCE_LSTM.

Their state is variable tensors; an LSTM's scales in between are those of intermediate ones.
"""

import math
from dataclasses import replace

from buildtool.base.errors import ModelError, UnsupportedError
from buildtool.graph import types as g
from buildtool.graph.geometry import attributes
from buildtool.graph.ops import STATEFUL
from buildtool.graph.tflite.fileops import FileOp, Lowering, OptionValue
from buildtool.graph.tflite.opview import OpView
from buildtool.graph.tflite.schema import tflite
from buildtool.graph.types import Activation, Attrs, DType, LstmInput, Op, Quantization, Tensor

_INTERMEDIATES = 5  # of an integer LSTM: four gates' sums, and the hidden product
_RECONVERT = "convert with OpsSet.TFLITE_BUILTINS_INT8: int8 activations, state of 16 bits"


def _ends(view: OpView) -> None:
    """Demands an int8 input and one output."""
    if len(view.op.outputs) != 1:
        raise ModelError(f"{len(view.op.outputs)} outputs, expected 1")
    if view.input(0).dtype == "int16":
        view.refuse("int16 activations: LiteRT's integer kernel takes int8 alone", _RECONVERT)


def svdf(view: OpView) -> None:
    """SVDF (x, weights of the features, weights over time, bias, state)."""
    options = view.options(tflite.SVDFOptions)
    _ends(view)
    if len(view.op.inputs) != 5:
        raise ModelError(f"{len(view.op.inputs)} inputs, expected 5")
    if "int8" in (view.input(2).dtype, view.input(4).dtype):
        text = "weights over time or a state of 8 bits: LiteRT's kernel reads both as 16 bits"
        view.refuse(text, _RECONVERT)
    if options.FusedActivationFunction() != tflite.ActivationFunctionType.RELU:
        view.refuse("a fused activation other than RELU: LiteRT's integer kernel takes no other")
    _emit(view, g.SvdfAttrs(int(options.Rank())), 5)


def lstm(view: OpView) -> None:
    """UNIDIRECTIONAL_SEQUENCE_LSTM; files from before layer normalisation have 20 operands in place of 24."""
    options = view.options(tflite.UnidirectionalSequenceLSTMOptions)
    _ends(view)
    if len(view.op.inputs) not in (LstmInput.INPUT_NORM, len(LstmInput)):
        raise ModelError(f"{len(view.op.inputs)} inputs, expected {len(LstmInput)}")
    for place in (LstmInput.HIDDEN_STATE, LstmInput.CELL_STATE):
        view.input(place)
    hidden, gates = _intermediates(view)
    clips = {"cell": float(options.CellClip()), "projection": float(options.ProjClip())}
    for name, value in clips.items():
        if not (math.isfinite(value) and value >= 0):
            raise ModelError(f"the {name} is clipped at {value}")
    _emit(view, g.LstmAttrs(hidden, gates, bool(options.TimeMajor()), *clips.values()), len(LstmInput))


def _emit(view: OpView, attrs: Attrs, operands: int) -> None:
    """Adds the operator; behind its output the new values of the state that it keeps."""
    network = view.network
    inputs, outputs = [view.operand(i) for i in range(operands)], [*view.outputs()]
    for position, output in sorted(STATEFUL[view.kind].items(), key=lambda pair: pair[1]):
        assert output == len(outputs)
        raw = view.input(position)
        if not raw.variable:
            raise UnsupportedError("the operator's state is not a variable tensor", tensor=raw.name)
        old = network.tensors[network.places[raw.index]]
        outputs.append(network.add(replace(old, name=f"{old.name}/after")))
        network.variables.update(raw, outputs[-1])
    view.emit(view.kind, inputs, attrs, outputs)


def _intermediates(view: OpView) -> tuple[Quantization, tuple[float, ...]]:
    """The quantisation of the hidden product, and with layer normalisation the scales of the gates' sums."""
    places = view.file.intermediates(view.op)
    if len(places) != _INTERMEDIATES:
        text = f"{len(places)} intermediate tensors, expected {_INTERMEDIATES}: the kernel of 8-bit cells"
        view.refuse(text, _RECONVERT)
    hidden = _quantization(view, places[-1], "the hidden product")
    if view.optional(LstmInput.FORGET_NORM) is None:
        return hidden, ()
    cifg = view.optional(LstmInput.INPUT_TO_INPUT) is None
    sums = [1.0] if cifg else []  # without an input gate
    sums += [_quantization(view, place, "a gate's sum").scale for place in places[len(sums) : -1]]
    return hidden, tuple(sums)


def _quantization(view: OpView, place: int, what: str) -> Quantization:
    tensor = view.file.tensor(place)
    quant = tensor.quant
    if quant is None or len(quant.scales) != 1:
        raise ModelError(f"the intermediate tensor of {what} has no scale of its own", tensor=tensor.name)
    if not (math.isfinite(quant.scale) and quant.scale > 0):
        raise ModelError(f"{what} has the scale {quant.scale}", tensor=tensor.name)
    return quant


# ---- into a file -------------------------------------------------------------------------------


def write_svdf(low: Lowering, op: Op) -> FileOp:
    """SVDF; its state is a variable tensor."""
    rank = attributes(op, g.SvdfAttrs).rank
    options: dict[str, OptionValue] = {"Rank": rank, "FusedActivationFunction": Activation.RELU}
    return FileOp("SVDF", 3, op.inputs, op.outputs[:1], "SVDFOptions", options)


def write_lstm(low: Lowering, op: Op) -> FileOp:
    """UNIDIRECTIONAL_SEQUENCE_LSTM; its states are variable tensors."""
    attrs = attributes(op, g.LstmAttrs)
    options: dict[str, OptionValue] = {
        "FusedActivationFunction": tflite.ActivationFunctionType.TANH,
        "CellClip": attrs.cell_clip,
        "ProjClip": attrs.projection_clip,
        "TimeMajor": attrs.time_major,
    }
    name, first = low.graph.tensors[op.outputs[0]].name, len(low.tensors)
    for number, gate in enumerate(("input", "forget", "cell", "output")):
        quant = Quantization((attrs.gates[number],), (0,)) if attrs.gates else None
        low.tensors.append(Tensor(f"{name}/{gate}_sum", (0,), DType.INT16, quant))
    low.tensors.append(Tensor(f"{name}/hidden", (0,), DType.INT8, attrs.hidden))
    places = tuple(range(first, len(low.tensors)))
    table = "UnidirectionalSequenceLSTMOptions"
    return FileOp(op.kind, 1, op.inputs, op.outputs[:1], table, options, places)
