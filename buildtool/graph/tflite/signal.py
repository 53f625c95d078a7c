"""Decodes and writes the operators of TFLM's signal library. Their options are a FlexBuffer.

TFLM reads options by their position in alphabetical order, so a file must not have further options.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from buildtool.base.errors import ModelError
from buildtool.graph import types as g
from buildtool.graph.geometry import GeometryError
from buildtool.graph.ops import STATEFUL
from buildtool.graph.ops.signal import CUSTOM
from buildtool.graph.signal import state_shape
from buildtool.graph.tflite.fileops import TYPE_CODES, FileOp, Lowering
from buildtool.graph.tflite.opview import OpView
from buildtool.graph.types import Attrs, Graph, Op, OpKind, State, Tensor

_KINDS = {name: kind for kind, name in CUSTOM.items()}
_CHANNELS, _TYPE = "num_channels", "T"  # options that the tensors' shapes and types tell
# The attributes of an operator: their class, and the option of each field in its order.
_OPTIONS: dict[OpKind, tuple[type[Attrs], tuple[str, ...]]] = {
    OpKind.SIGNAL_WINDOW: (g.ShiftedAttrs, ("shift",)),
    OpKind.SIGNAL_RFFT: (g.FftAttrs, ("fft_length",)),
    OpKind.SIGNAL_IRFFT: (g.FftAttrs, ("fft_length",)),
    OpKind.SIGNAL_ENERGY: (g.EnergyAttrs, ("start_index", "end_index")),
    OpKind.SIGNAL_FILTER_BANK_SPECTRAL_SUBTRACTION: (
        g.SubtractionAttrs,
        (
            "smoothing",
            "one_minus_smoothing",
            "alternate_smoothing",
            "alternate_one_minus_smoothing",
            "min_signal_remaining",
            "smoothing_bits",
            "spectral_subtraction_bits",
            "clamping",
        ),
    ),
    OpKind.SIGNAL_PCAN: (g.ShiftedAttrs, ("snr_shift",)),
    OpKind.SIGNAL_FILTER_BANK_LOG: (g.SignalLogAttrs, ("output_scale", "input_correction_bits")),
    OpKind.SIGNAL_FRAMER: (g.FramerAttrs, ("frame_size", "frame_step", "prefill")),
    OpKind.SIGNAL_OVERLAP_ADD: (g.OverlapAddAttrs, ("frame_step",)),
    OpKind.SIGNAL_STACKER: (
        g.StackerAttrs,
        ("stacker_left_context", "stacker_right_context", "stacker_step"),
    ),
    OpKind.SIGNAL_DELAY: (g.DelayAttrs, ("delay_length",)),
}
_FLAGS = {"clamping", "prefill"}
_TYPED = {OpKind.SIGNAL_RFFT, OpKind.SIGNAL_IRFFT, OpKind.SIGNAL_OVERLAP_ADD}
_CHANNELLED = {
    OpKind.SIGNAL_FILTER_BANK,
    OpKind.SIGNAL_FILTER_BANK_SPECTRAL_SUBTRACTION,
    OpKind.SIGNAL_STACKER,
}


def decode(view: OpView) -> None:
    """Decodes an operator. Adds a state if its kind keeps one."""
    kind = _KINDS[view.op.custom]
    cls, names = _OPTIONS.get(kind, (Attrs, ()))
    options = _read_options(view, kind, names)
    attrs = cls(*(bool(options[name]) if name in _FLAGS else options[name] for name in names))
    inputs = [view.operand(i) for i in range(len(view.op.inputs))]
    outputs = [*view.outputs()]
    _check_derived(view, kind, options, outputs)
    if kind in STATEFUL:
        if len(inputs) != 1:
            raise ModelError(f"{len(inputs)} inputs, expected 1")
        before, after = _add_state(view, Op(kind, tuple(inputs), tuple(outputs), attrs))
        inputs.append(before)
        outputs.append(after)
    view.emit(kind, inputs, attrs, outputs)


def _read_options(view: OpView, kind: OpKind, names: tuple[str, ...]) -> Mapping[str, int]:
    """Returns the operator's options by name.

    Raises ModelError unless it has exactly the options `names` and, if its kind demands them, the options for
    a type and a number of channels. `kind`: the operator's kind.
    """
    from flatbuffers import flexbuffers  # few networks need it

    expected = {*names, *([_TYPE] if kind in _TYPED else []), *([_CHANNELS] if kind in _CHANNELLED else [])}
    if not expected:
        return {}
    try:
        values = dict(flexbuffers.GetRoot(view.custom_options()).AsMap.Value)
    except ModelError:
        raise
    except Exception as error:  # the package raises many kinds of errors on damaged bytes
        raise ModelError("the operator's options are not a FlexBuffer") from error
    if set(values) != expected or not all(isinstance(value, int) for value in values.values()):
        text = f"options {sorted(map(str, values))}, expected whole numbers for {sorted(expected)}"
        raise ModelError(text)
    if not all(-(1 << 31) <= value < 1 << 32 for value in values.values()):
        raise ModelError("an option is beyond 32 bits")
    return {name: int(value) for name, value in values.items()}


def _check_derived(view: OpView, kind: OpKind, options: Mapping[str, int], outputs: list[int]) -> None:
    """Raises ModelError if the options for a type or a number of channels do not agree with the tensors.

    `outputs`: the graph's tensors for the operator's outputs.
    """
    tensors = view.network.tensors
    result = tensors[outputs[0]]
    if kind in _TYPED and options[_TYPE] != TYPE_CODES[result.dtype]:
        raise ModelError(f"option {_TYPE} is {options[_TYPE]}, but the output is {result.dtype}")
    if kind in _CHANNELLED:
        shape = view.input(0).shape if kind is OpKind.SIGNAL_STACKER else result.shape
        if shape != (options[_CHANNELS],):
            raise ModelError(
                f"option {_CHANNELS} is {options[_CHANNELS]}, but a tensor has shape {list(shape)}"
            )


def _add_state(view: OpView, op: Op) -> tuple[int, int]:
    """Adds an operator's state, which is 0 at first; returns its tensors before and after the invoke."""
    network = view.network
    source, result = (network.tensors[ts[0]] for ts in (op.inputs, op.outputs))
    try:
        shape = state_shape(op, source.shape)
    except GeometryError as error:
        raise ModelError(str(error)) from None
    state = Tensor(f"{result.name}/state", shape, source.dtype)
    before, after = network.add(state), network.add(replace(state, name=f"{state.name}/after"))
    initial = np.broadcast_to(np.zeros((), source.dtype.value), shape)
    network.variables.own(State(before, after, initial, state.name))
    return before, after


# ---- into a file -------------------------------------------------------------------------------


def write(low: Lowering, op: Op) -> FileOp:
    """Writes an operator. Its state is not in the file."""
    kept = STATEFUL.get(op.kind, {})
    inputs = tuple(t for i, t in enumerate(op.inputs) if i not in kept)
    outputs = tuple(t for i, t in enumerate(op.outputs) if i not in kept.values())
    return FileOp("CUSTOM", 1, inputs, outputs, custom=CUSTOM[op.kind], data=_write_options(low.graph, op))


def _write_options(graph: Graph, op: Op) -> bytes:
    from flatbuffers import flexbuffers

    cls, names = _OPTIONS.get(op.kind, (Attrs, ()))
    assert isinstance(op.attrs, cls)
    builder = flexbuffers.Builder()
    result, operand = graph.tensors[op.outputs[0]], graph.tensors[op.inputs[0]]
    with builder.Map():
        if op.kind in _TYPED:
            builder.Int(_TYPE, TYPE_CODES[result.dtype])
        if op.kind in _CHANNELLED:
            builder.Int(_CHANNELS, (operand if op.kind is OpKind.SIGNAL_STACKER else result).elements)
        for name, value in zip(names, vars(op.attrs).values(), strict=True):
            (builder.Bool if isinstance(value, bool) else builder.Int)(name, value)
    return bytes(builder.Finish())
