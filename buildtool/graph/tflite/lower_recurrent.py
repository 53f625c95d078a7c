"""SVDF and UNIDIRECTIONAL_SEQUENCE_LSTM for a .tflite file: variable tensors and intermediate ones."""

from __future__ import annotations

from buildtool.graph import types as g
from buildtool.graph.tflite.fileops import ACTIVATIONS, FileOp, Lowering, OptionValue

_TANH = 4  # the schema's ActivationFunctionType


def svdf(low: Lowering, op: g.Op) -> FileOp:
    """SVDF; its state is a variable tensor."""
    attrs = op.attrs
    assert isinstance(attrs, g.SvdfAttrs)
    options: dict[str, OptionValue] = {
        "Rank": attrs.rank,
        "FusedActivationFunction": ACTIVATIONS[g.Activation.RELU],
    }
    return FileOp("SVDF", 3, op.inputs, op.outputs[:1], "SVDFOptions", options)


def lstm(low: Lowering, op: g.Op) -> FileOp:
    """UNIDIRECTIONAL_SEQUENCE_LSTM; its states are variable tensors."""
    attrs = op.attrs
    assert isinstance(attrs, g.LstmAttrs)
    options: dict[str, OptionValue] = {
        "FusedActivationFunction": _TANH,
        "CellClip": attrs.cell_clip,
        "ProjClip": attrs.projection_clip,
        "TimeMajor": attrs.time_major,
    }
    name = low.graph.tensors[op.outputs[0]].name
    made = []
    for number, gate in enumerate(("input", "forget", "cell", "output")):
        quant = g.Quantization((attrs.gates[number],), (0,)) if attrs.gates else None
        made.append((f"{name}/{gate}_sum", g.DType.INT16, quant))
    made.append((f"{name}/hidden", g.DType.INT8, attrs.hidden))
    first = len(low.tensors)
    low.tensors += [g.Tensor(role, (0,), dtype, quant) for role, dtype, quant in made]
    places = tuple(range(first, len(low.tensors)))
    table = "UnidirectionalSequenceLSTMOptions"
    return FileOp(op.kind, 1, op.inputs, op.outputs[:1], table, options, places)
