"""Decodes and writes operators with state: SVDF and UNIDIRECTIONAL_SEQUENCE_LSTM.

Their state is in tensors that are marked as variable. Intermediate tensors give the scales within an LSTM.
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
from buildtool.graph.tflite.svdf8 import NarrowSvdf
from buildtool.graph.types import Activation, Attrs, DType, LstmInput, Op, Quantization, Tensor

_INTERMEDIATES = 5  # intermediate tensors of an integer LSTM: the sums of four gates, and the hidden product
_UNUSED = Quantization((1.0,), (0,))  # of the hidden product, which the kernel of int16 does not read
_RECONVERT = "convert with OpsSet.TFLITE_BUILTINS_INT8, for int8 activations and 16-bit state"


def _check_ends(view: OpView) -> None:
    """Raises ModelError unless the operator has exactly one output."""
    if len(view.op.outputs) != 1:
        raise ModelError(f"{len(view.op.outputs)} outputs, expected 1")


def decode_svdf(view: OpView) -> None:
    """Decodes SVDF (x, feature weights, time weights, bias, state)."""
    options = view.options(tflite.SVDFOptions)
    _check_ends(view)
    if view.input(0).dtype == "int16":
        view.refuse("int16 activations: LiteRT's integer kernel only supports int8", _RECONVERT)
    if len(view.op.inputs) != 5:
        raise ModelError(f"{len(view.op.inputs)} inputs, expected 5")
    if options.FusedActivationFunction() != tflite.ActivationFunctionType.RELU:
        view.refuse("the fused activation must be RELU: LiteRT's integer kernel supports no other")
    narrow = [view.input(i).dtype == "int8" for i in (2, 4)]
    if all(narrow):
        NarrowSvdf(view, int(options.Rank())).read()
        return
    if any(narrow):
        view.refuse("only one of the weights over time and the state is int8", _RECONVERT)
    _emit(view, g.SvdfAttrs(int(options.Rank())), 5)


def decode_lstm(view: OpView) -> None:
    """Decodes UNIDIRECTIONAL_SEQUENCE_LSTM. It has 24 inputs, or 20 if it has no layer normalisation."""
    options = view.options(tflite.UnidirectionalSequenceLSTMOptions)
    _check_ends(view)
    if len(view.op.inputs) not in (LstmInput.INPUT_NORM, len(LstmInput)):
        raise ModelError(f"{len(view.op.inputs)} inputs, expected {len(LstmInput)}")
    for place in (LstmInput.HIDDEN_STATE, LstmInput.CELL_STATE):
        view.input(place)
    wide = view.input(LstmInput.X).dtype == "int16"
    if wide and options.FusedActivationFunction() != tflite.ActivationFunctionType.TANH:
        view.refuse("the activation of an LSTM of int16 must be TANH")
    hidden, gates = (_UNUSED, ()) if wide else _read_intermediates(view)
    clips = {"cell": float(options.CellClip()), "projection": float(options.ProjClip())}
    for name, value in clips.items():
        if not (math.isfinite(value) and value >= 0):
            raise ModelError(f"the clip of the {name} is {value}")
    _emit(view, g.LstmAttrs(hidden, gates, bool(options.TimeMajor()), *clips.values()), len(LstmInput))


def _emit(view: OpView, attrs: Attrs, operands: int) -> None:
    """Adds the operator. Its outputs are the file's output and the new values of its states."""
    network = view.network
    inputs, outputs = [view.operand(i) for i in range(operands)], [*view.outputs()]
    for position, output in sorted(STATEFUL[view.kind].items(), key=lambda pair: pair[1]):
        assert output == len(outputs)
        raw = view.input(position)
        if not raw.variable:
            raise UnsupportedError("the operator's state must be a variable tensor", tensor=raw.name)
        old = network.tensors[network.places[raw.index]]
        outputs.append(network.add(replace(old, name=f"{old.name}/after")))
        network.variables.update(raw, outputs[-1])
    view.emit(view.kind, inputs, attrs, outputs)


def _read_intermediates(view: OpView) -> tuple[Quantization, tuple[float, ...]]:
    """Returns (quantisation of the hidden product, scales of the gates' sums).

    Without layer normalisation, it returns no scales.
    """
    places = view.file.intermediates(view.op)
    if len(places) != _INTERMEDIATES:
        text = f"{len(places)} intermediate tensors, expected {_INTERMEDIATES}: for a kernel with 8-bit cells"
        view.refuse(text, _RECONVERT)
    hidden = _read_quantization(view, places[-1], "the hidden product")
    if view.optional(LstmInput.FORGET_NORM) is None:
        return hidden, ()
    cifg = view.optional(LstmInput.INPUT_TO_INPUT) is None
    sums = [1.0] if cifg else []  # without an input gate, its scale is not used
    sums += [_read_quantization(view, place, "a gate's sum").scale for place in places[len(sums) : -1]]
    return hidden, tuple(sums)


def _read_quantization(view: OpView, place: int, what: str) -> Quantization:
    tensor = view.file.tensor(place)
    quant = tensor.quant
    if quant is None or len(quant.scales) != 1:
        raise ModelError(f"the intermediate tensor of {what} must have one scale", tensor=tensor.name)
    if not (math.isfinite(quant.scale) and quant.scale > 0):
        raise ModelError(f"the scale of {what} is {quant.scale}", tensor=tensor.name)
    return quant


# ---- into a file -------------------------------------------------------------------------------


def write_svdf(low: Lowering, op: Op) -> FileOp:
    """Writes SVDF. Its state is a variable tensor."""
    rank = attributes(op, g.SvdfAttrs).rank
    options: dict[str, OptionValue] = {"Rank": rank, "FusedActivationFunction": Activation.RELU}
    return FileOp("SVDF", 3, op.inputs, op.outputs[:1], "SVDFOptions", options)


def write_lstm(low: Lowering, op: Op) -> FileOp:
    """Writes UNIDIRECTIONAL_SEQUENCE_LSTM. Its states are variable tensors."""
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
