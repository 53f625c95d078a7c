"""Selects an operator's kernel, and evaluates the catalogue's formulas on the operator's geometry.

Formulas may use `variables.VARIABLES` (see `features`). Those of kernels may also use the core's `threads`,
and costs its `vector_bits` (128 if it has no vectors) and `soft_float`; `for_core` replaces these by numbers.
An operator is served by the first of a target's kernels whose condition `when` holds.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from buildtool.base.errors import TargetError, UnsupportedError
from buildtool.base.expression import evaluate
from buildtool.graph.geometry import is_cropped
from buildtool.graph.macs import op_macs
from buildtool.graph.ops import ALIAS_KINDS, DEFS, TABLE_KINDS, varying
from buildtool.graph.ops.types import CallForm
from buildtool.graph.quantrules import WORDS
from buildtool.graph.strided import lines
from buildtool.graph.topology import topology_digest
from buildtool.graph.types import (
    AsUint8,
    AxisAttrs,
    ConvAttrs,
    DepthwiseAttrs,
    DetectionAttrs,
    DType,
    FilledPoolAttrs,
    Graph,
    LstmAttrs,
    LstmInput,
    Op,
    OpKind,
    Pad,
    PoolAttrs,
    SvdfAttrs,
    Tensor,
    WeightedAttrs,
    WidenedAttrs,
)
from buildtool.target.hardware import Core
from buildtool.target.readers import FILLED
from buildtool.target.types import Argument, Contract, KernelVariant, Target, Windows
from buildtool.target.variables import MET, SOFT_FLOAT, THREADS, VECTOR_BITS, Geometry, taps_met

LEAST_VECTOR_BITS = 128
ALIGNMENT = 16  # of blocks of constants, in bytes
MOST_SELECTIONS = 64  # topologies whose kernels a target remembers
AXES = (("oh", "ih", "kh", "sh", "dh", "pt"), ("ow", "iw", "kw", "sw", "dw", "pl"))
# Arguments that are views of operands, and the operand's index.
VIEWS = ((Argument.IN, 0), (Argument.IN1, 0), (Argument.IN2, 1), (Argument.IN3, 2))


def for_core(variants: Iterable[KernelVariant], core: Core) -> tuple[KernelVariant, ...]:
    """Returns the kernels with numbers in place of the variables that the core determines: `vector_bits`,
    `soft_float` and `threads`.
    """
    values = {
        VECTOR_BITS: str(core.vector_bits or LEAST_VECTOR_BITS),
        SOFT_FLOAT: str(int(not core.has_float_unit)),
        THREADS: str(core.threads),
    }
    pattern = re.compile(rf"\b({'|'.join(values)})\b")

    def written(variant: KernelVariant) -> KernelVariant:
        formulas = (variant.when, variant.scratch, variant.cost, variant.slice_cost)
        if not any(name in text for name in values for text in formulas):
            return variant
        when, scratch, cost, slice_cost = (
            pattern.sub(lambda word: values[word[0]], text) for text in formulas
        )
        return dataclasses.replace(variant, when=when, scratch=scratch, cost=cost, slice_cost=slice_cost)

    return tuple(map(written, variants))


def features(graph: Graph, op: Op) -> dict[str, int]:
    """Returns the values of `variables.VARIABLES` for an operator, by name.

    A variable that has no meaning for the operator is 0 or 1. The vectors of a dense layer count as columns
    of one row, and the steps of an LSTM as columns. The graph caches the result, since every formula of an
    operator reads it.
    """
    known: dict[int, tuple[Op, dict[str, int]]] = graph.facts.setdefault("features", {})
    entry = known.get(id(op))
    if entry is None or entry[0] is not op:  # an entry holds its operator, so that no other has its id
        entry = known[id(op)] = op, _compute_features(graph, op)
    return entry[1].copy()


def _compute_features(graph: Graph, op: Op) -> dict[str, int]:
    op = op.as_seen
    first, result = graph.tensors[op.inputs[0]], graph.tensors[op.outputs[0]]
    values = {
        **dict.fromkeys(("kh", "kw", "sh", "sw", "dh", "dw", "groups", "multiplier"), 1),
        **{"pt": 0, "pl": 0},
        **Geometry._field_defaults,
        **dict(zip(("batch", "ih", "iw", "cin"), first.nhwc, strict=True)),
        **dict(zip(("oh", "ow", "cout"), result.nhwc[1:], strict=True)),
        "inputs": first.elements,
        "operands": sum(1 for t in op.inputs if t >= 0 and not graph.tensors[t].is_constant),
        "varying": int(varying(graph, op) is not None),
        "outputs": sum(graph.tensors[t].elements for t in op.outputs),
        "macs": op_macs(graph, op),
        **dict(zip(("lines", "scattered"), lines(graph, op), strict=True)),
        **_read_attributes(graph, op, first, result),
    }
    if isinstance(op.attrs, WeightedAttrs):
        values |= {"expanded": op.attrs.expanded, "stored": op.attrs.stored}
    met = (count for axis in AXES for count in taps_met(*(values[name] for name in axis)))
    return values | dict(zip(MET, met, strict=True))


def _read_attributes(graph: Graph, op: Op, first: Tensor, result: Tensor) -> dict[str, int]:
    """Returns the variables that come from an operator's attributes and from the shapes of its constants.

    `first` and `result` are the operator's first input and output.
    """
    match attrs := op.attrs:
        case ConvAttrs():
            _, kh, kw, cin = graph.tensors[op.inputs[1]].shape
            groups = {"groups": first.nhwc[3] // max(cin, 1)}
            if isinstance(attrs, DepthwiseAttrs):
                groups = {"groups": first.nhwc[3], "multiplier": attrs.depth_multiplier}
            return groups | _window_features((kh, kw), attrs.stride, attrs.pad, attrs.dilation)
        case PoolAttrs():
            return _window_features(attrs.kernel, attrs.stride, attrs.pad)
        case SvdfAttrs():  # SVDF and LSTM process vectors: of a batch, or of (steps, batch)
            vectors = {"batch": first.shape[0], "iw": 1, "ow": 1, "cout": result.shape[1]}
            return vectors | {"memory": graph.tensors[op.inputs[2]].shape[1], "rank": attrs.rank}
        case LstmAttrs():
            batch, steps = first.shape[1::-1] if attrs.time_major else first.shape[:2]
            has = {place: int(op.inputs[place] >= 0) for place in LstmInput}
            return {"batch": batch, "ih": 1, "oh": 1, "iw": steps, "ow": steps} | {
                "cells": graph.tensors[op.inputs[LstmInput.INPUT_TO_OUTPUT]].shape[0],
                "gates": 3 + has[LstmInput.INPUT_TO_INPUT],
                "peepholes": has[LstmInput.CELL_TO_OUTPUT],
                "normed": has[LstmInput.OUTPUT_NORM],
                "projected": has[LstmInput.PROJECTION],
            }
        case DetectionAttrs():
            kept = min(attrs.per_class, first.shape[1]) if attrs.regular else 0
            return {"classes": graph.tensors[op.inputs[1]].shape[2], "kept": kept}
        case WidenedAttrs():
            return {"narrow": graph.tensors[op.inputs[1]].nhwc[3], "below": attrs.before}
    if op.kind is OpKind.SIGNAL_FILTER_BANK:
        return {"weights": graph.tensors[op.inputs[1]].elements}
    if op.kind is not OpKind.FULLY_CONNECTED:
        return {}
    outputs, inputs = graph.tensors[op.inputs[1]].shape
    rows = first.elements // max(inputs, 1)
    return {"batch": 1, "ih": 1, "iw": rows, "cin": inputs, "oh": 1, "ow": rows, "cout": outputs}


Pair = tuple[int, int]  # along rows, along columns


def _window_features(kernel: Pair, stride: Pair, pad: Pad, dilation: Pair = (1, 1)) -> dict[str, int]:
    """Returns the variables of a window: its size, stride, dilation, and padding at the top and left."""
    numbers = (*kernel, *stride, *dilation, pad.top, pad.left)
    return dict(zip(("kh", "kw", "sh", "sw", "dh", "dw", "pt", "pl"), numbers, strict=True))


def serving(target: Target, graph: Graph, op: Op) -> Iterator[KernelVariant]:
    """Yields the target's kernels that serve `op`, the best first."""
    candidates = [variant for variant in target.kernels if variant.op == op.kind]
    types, values = element_types(graph, op), features(graph, op) if candidates else {}
    for variant in candidates:
        if variant.types != types or not _computes(variant, op):
            continue
        if variant.when == "True" or evaluate(variant.when, values):
            yield contract_for(variant, graph, op)


def leaner(target: Target, graph: Graph, op: Op) -> tuple[KernelVariant, ...]:
    """Returns the best kernel for `op`, then each further one that needs less scratch than all kernels before
    it.

    If the weights are stored in four bits, it returns only the best kernel, for which they are packed. If
    several entries of the catalogue have the same function, only the first one that serves the operator
    counts: it says what the function needs for it.
    """
    chosen: list[KernelVariant] = []
    known = set[tuple[str, str]]()
    for variant in serving(target, graph, op):
        code = variant.symbol, variant.packing
        if code in known:
            continue
        known.add(code)
        size = scratch_bytes(variant, graph, op)
        if not chosen or (
            variant.windows is chosen[0].windows and size < scratch_bytes(chosen[-1], graph, op)
        ):
            chosen.append(variant)
        if expands(op) or not scratch_bytes(chosen[-1], graph, op):
            break
    return tuple(chosen)


def select(target: Target, graph: Graph, op: Op) -> KernelVariant:
    """Returns the first of the target's kernels that serves `op`; if the target is `lean`, the one that needs
    the least scratch.

    Raises UnsupportedError if no kernel serves it.
    """
    for variant in leaner(target, graph, op)[::-1] if target.lean else serving(target, graph, op):
        return variant
    candidates = [variant for variant in target.kernels if variant.op == op.kind]
    types = element_types(graph, op)
    values = features(graph, op) if candidates else {}
    if not candidates:
        hint = "kernels exist for " + ", ".join(sorted({variant.op for variant in target.kernels}))
        text = f"board '{target.board.name}' has no kernel for {op.kind}"
        raise UnsupportedError(text, operator=op.place, hint=hint)
    if all(variant.types != types for variant in candidates):
        supported = sorted({" to ".join(dict.fromkeys(variant.types)) for variant in candidates})
        of = " to ".join(dict.fromkeys(types))
        text = f"board '{target.board.name}' has no kernel for {op.kind} of {of}"
        raise UnsupportedError(text, operator=op.place, hint="kernels take " + "; ".join(supported))
    candidates_of_type = [
        variant for variant in candidates if variant.types == types and _computes(variant, op)
    ]
    shape = " ".join(f"{name}={value}" for name, value in sorted(values.items()))
    raise UnsupportedError(
        f"no kernel for {op.kind} of this shape on board '{target.board.name}'",
        operator=op.place,
        hint=f"the operator has {shape}; kernels need "
        + "; or ".join(f"{variant.when} ({variant.name})" for variant in candidates_of_type),
    )


def _computes(variant: KernelVariant, op: Op) -> bool:
    """Whether the kernel has the arithmetic that `op` needs, and can compute it in the way in which it is
    called.

    A kernel that computes whole tensors (those of libraries) supports neither negative padding nor a pooling
    with a folded PAD.
    """
    whole_only = variant.windows is Windows.WHOLE
    return variant.form == form(op) and not (whole_only and (is_bordered(op) or is_cropped(op.attrs)))


def is_bordered(op: Op) -> bool:
    """Whether the operator is a maximum pooling with a folded PAD. Outputs at the border are then computed by
    separate calls (`emit.bordered`).
    """
    return op.kind is OpKind.MAX_POOL_2D and isinstance(op.attrs, FilledPoolAttrs)


def contract_for(variant: KernelVariant, graph: Graph, op: Op) -> KernelVariant:
    """Returns the kernel with the overlap contract (see `Contract`) that holds when it is called for `op`.

    The contract in the catalogue is weakened or dropped in these cases:
    - The kernel is called for some channels row by row: it does not compute elements in ascending order.
    - The input is some channels of a wider tensor: the kernel does not read that tensor's bytes in sequence,
      and the inputs of a concatenation do not follow one another.
    - Weights are expanded for some output channels at a time: the kernel reads its whole input for each of
      these slices.
    """
    if (isinstance(op.attrs, WidenedAttrs) or op.seen) and variant.overlap is Contract.PIXEL:
        return dataclasses.replace(variant, overlap=Contract.ROW)
    if op.seen and variant.overlap is Contract.PARTS:
        return dataclasses.replace(variant, overlap=Contract.NONE)
    if variant.overlap is not Contract.NONE and is_sliced(graph, op):
        return dataclasses.replace(variant, overlap=Contract.NONE)
    return variant


def expands(op: Op) -> bool:
    """Whether the weight image stores the operator's weights in four bits."""
    return isinstance(op.attrs, WeightedAttrs) and op.attrs.expanded > 0


def takes_parts(graph: Graph, variant: KernelVariant, op: Op) -> bool:
    """Whether the operator can be called on some channels of a wider tensor: its code steps from pixel to
    pixel by the strides of its operands' views.

    A kernel of whole tensors may assume that they are contiguous. Concatenations along the channels have code
    of their own, a copy for each part.
    """
    if op.kind is OpKind.CONCATENATION:
        return op.attrs == AxisAttrs(len(graph.tensors[op.outputs[0]].shape) - 1)
    viewed = any(argument in variant.call for argument, _ in VIEWS)
    return viewed and Argument.WINDOW in variant.call and variant.windows is Windows.ANY


def writes_parts(graph: Graph, variant: KernelVariant, op: Op) -> bool:
    """Whether the operator can write some channels of a wider tensor: its code writes pixels by the strides
    of its output's view.
    """
    is_concatenation = op.kind is OpKind.CONCATENATION
    return not is_concatenation and takes_parts(graph, variant, op) and Argument.OUT in variant.call


def element_types(graph: Graph, op: Op) -> tuple[DType, DType]:
    """Returns the types of the operator's first input and output, in the form in which kernels list them
    (`KernelVariant.types`): for example, uint8 counts as int8.
    """
    first, result = (graph.tensors[t].dtype for t in (op.inputs[0], op.outputs[0]))
    if DEFS[op.kind].call is CallForm.COPIES and {first, result} <= WORDS:
        return DType.FLOAT32, DType.FLOAT32
    return _SAME_KERNELS.get(first, first), _SAME_KERNELS.get(result, result)


def form(op: Op) -> str:
    """Returns the arithmetic that an operator needs, as in `KernelVariant.form`: "uint8", "filled", or "" for
    all others.
    """
    if op.kind is OpKind.AVERAGE_POOL_2D and isinstance(op.attrs, FilledPoolAttrs):
        return FILLED
    return "uint8" if isinstance(op.attrs, AsUint8) and op.kind not in TABLE_KINDS else ""


_SAME_KERNELS = {DType.UINT8: DType.INT8, DType.BOOL: DType.INT8}  # types of one byte have the same kernels


def select_all(target: Target, graph: Graph) -> tuple[KernelVariant | None, ...]:
    """Returns the kernel of every operator of a graph, None for aliases. Raises UnsupportedError as `select`
    does.

    Kernels depend on the topology alone, so the target remembers those of recent topologies.
    """
    key, selections = topology_digest(graph), target.selections
    if key not in selections:
        if len(selections) >= MOST_SELECTIONS:
            selections.clear()
        selections[key] = tuple(
            None if op.kind in ALIAS_KINDS else select(target, graph, op) for op in graph.ops
        )
    return selections[key]


def scratch_bytes(variant: KernelVariant, graph: Graph, op: Op, columns: int | None = None) -> int:
    """Returns the bytes of scratch that the kernel needs for `op`, including room for expanded weights.

    `columns` is the largest number of output columns in a call (None: all). The formula has it as `ow`.
    """
    if not expands(op):
        return _own_scratch_bytes(variant, graph, op, columns)
    sizes = slice_sizes(graph, op)
    own = max(_own_scratch_bytes(variant, graph, op, columns, size) for size in sizes)
    return max(expanded_bytes(variant, graph, op, size) for size in sizes) + own


def _own_scratch_bytes(
    variant: KernelVariant, graph: Graph, op: Op, columns: int | None, channels: int = 0
) -> int:
    """Returns the bytes of scratch for a call, without room for expanded weights.

    `columns` is its largest number of output columns (None: all), `channels` its number of output channels
    (0: all).
    """
    if variant.scratch == "0" and variant.ask is None:
        return 0
    values = features(graph, op)
    if channels:
        values |= of_channels(values, channels)
    if columns is not None and op.kind is not OpKind.FULLY_CONNECTED:
        values["ow"] = min(values["ow"], columns)
    value = evaluate(variant.scratch, values) if variant.ask is None else variant.ask(values)
    if value < 0:
        raise TargetError(f"kernel '{variant.name}' asks for {value} bytes of scratch", operator=op.place)
    return -int(-value // 1)


def is_sliced(graph: Graph, op: Op) -> bool:
    """Whether an operator's weights are expanded for some of its output channels at a time."""
    return isinstance(op.attrs, WeightedAttrs) and 0 < op.attrs.expanded < features(graph, op)["cout"]


def slice_sizes(graph: Graph, op: Op) -> tuple[int, ...]:
    """Returns the different numbers of output channels for which an operator's weights are expanded at a
    time.
    """
    values = features(graph, op)
    return tuple(size for size, _ in slices_of(values["cout"], values["expanded"]))


def slices_of(channels: int, expanded: int) -> list[tuple[int, int]]:
    """Returns pairs (size, number of such slices) for `channels` that are cut into slices of `expanded`. The
    last slice may be smaller.
    """
    count, rest = divmod(channels, expanded)
    return [pair for pair in ((expanded, count), (rest, 1)) if all(pair)]


def of_channels(values: Mapping[str, int], channels: int) -> dict[str, int]:
    """Returns the variables that change if a kernel computes a slice of `channels` output channels.

    `values` are the variables of the whole operator.
    """
    shares = {name: values[name] * channels // values["cout"] for name in ("outputs", "macs")}
    return {"cout": channels, **shares}


def expanded_bytes(variant: KernelVariant, graph: Graph, op: Op, channels: int) -> int:
    """Returns the bytes of a kernel's constants for a slice of `channels` output channels, after their
    weights have been expanded.
    """
    return _whole_bytes(variant, "constants", graph, op, ALIGNMENT, channels)


def operands(variant: KernelVariant, graph: Graph, op: Op) -> tuple[int, ...]:
    """Returns the inputs of an operator that its kernel reads as tensors, not as packed constants.

    A kernel with one operand reads the only input that is not constant. The inputs are those of `Op.as_seen`.
    """
    op = op.as_seen
    if op.kind in (OpKind.CONCATENATION, OpKind.SHIFT) or isinstance(op.attrs, WidenedAttrs):
        return op.inputs
    if Argument.IN in variant.call:
        position = varying(graph, op) or 0
        return op.inputs[position : position + 1]
    count = max((n + 1 for argument, n in VIEWS if argument in variant.call), default=1)
    return tuple(t for t in op.inputs[:count] if t >= 0)


def constants_bytes(variant: KernelVariant, graph: Graph, op: Op) -> int:
    """Returns the bytes of the kernel's constants for `op` in the weight image, a multiple of 16."""
    if expands(op):
        assert isinstance(op.attrs, WeightedAttrs)
        return op.attrs.stored
    if variant.constants == "0":
        return 0
    return _whole_bytes(variant, "constants", graph, op, ALIGNMENT)


class ChannelBytes(NamedTuple):
    """How a block of constants is cut at output channels.

    The field `factors` is the value of the formula `channel_factors` in the kernel's `Layout`, and so on for
    the other fields.
    """

    factors: int = 0
    weights: int = 0
    step: int = 1
    unit: int = 1
    group: int = 1
    tail: int = 0
    padded: int = 1
    head: int = ALIGNMENT
    range: int = 0
    usual: int = 1


def channel_bytes(variant: KernelVariant, graph: Graph, op: Op) -> ChannelBytes | None:
    """Returns how the kernel's constants for `op` are cut at output channels; None if it computes no slices
    of them.

    Raises TargetError for lengths below 0, for a `channel_group` that is not a multiple of `channel_padded`,
    and for a `channel_head` that is not a multiple of 16.
    """
    if expands(op) or variant.slices == "False" or not evaluate(variant.slices, features(graph, op)):
        return None
    values = {name: _whole_bytes(variant, f"channel_{name}", graph, op, 1) for name in ChannelBytes._fields}
    step, unit = max(values["step"], 1), max(values["unit"], 1)
    padded = values["padded"] or unit
    group, head = max(values["group"], padded), values["head"]
    if group % padded:
        text = f"kernel '{variant.name}' has a channel_group of {group}, but factors are padded to {padded}"
        hint = "channel_group must be a multiple of channel_padded, which is channel_unit if it is not given"
        raise TargetError(text, operator=op.place, hint=hint)
    if head % ALIGNMENT or values["range"] + 8 > head:
        text = f"kernel '{variant.name}' has a channel_head of {head} bytes"
        hint = f"channel_head must be a multiple of {ALIGNMENT} and contain channel_range"
        raise TargetError(text, operator=op.place, hint=hint)
    usual = max(values["usual"], step)
    return ChannelBytes(
        **{**values, "step": step, "unit": unit, "group": group, "padded": padded, "usual": usual}
    )


def _whole_bytes(
    variant: KernelVariant, name: str, graph: Graph, op: Op, alignment: int, channels: int = 0
) -> int:
    """Returns the bytes that the kernel's formula `name` gives for `op`, rounded up to a multiple of
    `alignment`.

    `channels` is the number of output channels of a slice (0: all).
    """
    values = features(graph, op)
    value = evaluate(getattr(variant, name), values | (of_channels(values, channels) if channels else {}))
    if value < 0:
        raise TargetError(f"kernel '{variant.name}' has {value} bytes of {name}", operator=op.place)
    return -int(-value // alignment) * alignment
