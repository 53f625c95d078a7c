"""What a kernel costs and needs for an operator: its catalogue's expressions, evaluated on the geometry.

The expressions see `variables.VARIABLES` (see `features`). Kernels' also see the core's `threads`, and
costs its `vector_bits` (128 if it has none): `for_core` writes the numbers into them. Of a target's kernels
the first whose `when` holds serves an operator.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable
from typing import NamedTuple

from buildtool.base.errors import TargetError, UnsupportedError
from buildtool.base.expression import evaluate
from buildtool.graph.macs import op_macs
from buildtool.graph.ops import ALIAS_KINDS, TABLE_KINDS, varying
from buildtool.graph.strided import lines
from buildtool.graph.topology import topology_digest
from buildtool.graph.types import (
    AsUint8,
    AxisAttrs,
    ConvAttrs,
    DepthwiseAttrs,
    DType,
    Graph,
    LstmAttrs,
    LstmInput,
    Op,
    OpKind,
    Pad,
    PoolAttrs,
    SvdfAttrs,
    Tensor,
    WidenedAttrs,
)
from buildtool.target.hardware import Core
from buildtool.target.types import Argument, Contract, KernelVariant, Target, Windows
from buildtool.target.variables import MET, THREADS, VECTOR_BITS, Geometry, taps_met

LEAST_VECTOR_BITS = 128
ALIGNMENT = 16  # bytes, of blocks of constants
MOST_SELECTIONS = 64  # topologies that a target knows the kernels of
AXES = (("oh", "ih", "kh", "sh", "dh", "pt"), ("ow", "iw", "kw", "sw", "dw", "pl"))
VIEWS = ((Argument.IN, 0), (Argument.IN1, 0), (Argument.IN2, 1), (Argument.IN3, 2))  # of which operand


def for_core(variants: Iterable[KernelVariant], core: Core) -> tuple[KernelVariant, ...]:
    """The variants with what their formulas need to know of the core written into them."""
    known = {VECTOR_BITS: str(core.vector_bits or LEAST_VECTOR_BITS), THREADS: str(core.threads)}
    named = re.compile(rf"\b({'|'.join(known)})\b")

    def written(variant: KernelVariant) -> KernelVariant:
        said = (variant.when, variant.scratch, variant.cost)
        if not any(name in text for name in known for text in said):
            return variant
        when, scratch, cost = (named.sub(lambda found: known[found[0]], text) for text in said)
        return dataclasses.replace(variant, when=when, scratch=scratch, cost=cost)

    return tuple(map(written, variants))


def features(graph: Graph, op: Op) -> dict[str, int]:
    """The geometry that catalogue expressions see (`variables.VARIABLES`); 0 or 1 where meaningless.

    A dense layer's rows are columns of a one-row image; columns are an LSTM's steps. A `macs` is as in
    `op_macs`, lines and scattered as in `strided.lines`, narrow and below of `WidenedAttrs`.
    """
    op = op.as_seen
    first, result = graph.tensors[op.inputs[0]], graph.tensors[op.outputs[0]]
    known = {
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
        **_of_attributes(graph, op, first, result),
    }
    met = (count for axis in AXES for count in taps_met(*(known[name] for name in axis)))
    return known | dict(zip(MET, met, strict=True))


def _of_attributes(graph: Graph, op: Op, first: Tensor, result: Tensor) -> dict[str, int]:
    """The geometry that the operator's attributes, and the shapes of its constants, decide."""
    match attrs := op.attrs:
        case ConvAttrs():
            _, kh, kw, cin = graph.tensors[op.inputs[1]].shape
            groups = {"groups": first.nhwc[3] // max(cin, 1)}
            if isinstance(attrs, DepthwiseAttrs):
                groups = {"groups": first.nhwc[3], "multiplier": attrs.depth_multiplier}
            return groups | _window((kh, kw), attrs.stride, attrs.pad, attrs.dilation)
        case PoolAttrs():
            return _window(attrs.kernel, attrs.stride, attrs.pad)
        case SvdfAttrs():  # images of SVDF and LSTM are vectors: of a batch, or of (steps, batch)
            seen = {"batch": first.shape[0], "iw": 1, "ow": 1, "cout": result.shape[1]}
            return seen | {"memory": graph.tensors[op.inputs[2]].shape[1], "rank": attrs.rank}
        case LstmAttrs():
            batch, steps = first.shape[1::-1] if attrs.time_major else first.shape[:2]
            there = {place: int(op.inputs[place] >= 0) for place in LstmInput}
            return {"batch": batch, "ih": 1, "oh": 1, "iw": steps, "ow": steps} | {
                "cells": graph.tensors[op.inputs[LstmInput.INPUT_TO_OUTPUT]].shape[0],
                "gates": 3 + there[LstmInput.INPUT_TO_INPUT],
                "peepholes": there[LstmInput.CELL_TO_OUTPUT],
                "normed": there[LstmInput.OUTPUT_NORM],
                "projected": there[LstmInput.PROJECTION],
            }
        case WidenedAttrs():
            return {"narrow": graph.tensors[op.inputs[1]].nhwc[3], "below": attrs.before}
    if op.kind is not OpKind.FULLY_CONNECTED:
        return {}
    outputs, inputs = graph.tensors[op.inputs[1]].shape
    rows = first.elements // max(inputs, 1)
    return {"batch": 1, "ih": 1, "iw": rows, "cin": inputs, "oh": 1, "ow": rows, "cout": outputs}


Pair = tuple[int, int]  # along rows, along columns


def _window(kernel: Pair, stride: Pair, pad: Pad, dilation: Pair = (1, 1)) -> dict[str, int]:
    """The geometry of a window."""
    numbers = (*kernel, *stride, *dilation, pad.top, pad.left)
    return dict(zip(("kh", "kw", "sh", "sw", "dh", "dw", "pt", "pl"), numbers, strict=True))


def select(target: Target, graph: Graph, op: Op) -> KernelVariant:
    """The first of the target's kernels that serves `op`; UnsupportedError if none does."""
    candidates = [variant for variant in target.kernels if variant.op == op.kind]
    types = element_types(graph, op)
    known = features(graph, op) if candidates else {}
    for variant in candidates:
        if variant.types != types or variant.form != form(op):
            continue
        if variant.when == "True" or evaluate(variant.when, known):
            return contract_for(variant, op)
    if not candidates:
        hint = "kernels exist for " + ", ".join(sorted({variant.op for variant in target.kernels}))
        text = f"board '{target.board.name}' has no kernel for {op.kind}"
        raise UnsupportedError(text, operator=op.place, hint=hint)
    if all(variant.types != types for variant in candidates):
        served = sorted({" to ".join(dict.fromkeys(variant.types)) for variant in candidates})
        of = " to ".join(dict.fromkeys(types))
        text = f"board '{target.board.name}' has no kernel for {op.kind} of {of}"
        raise UnsupportedError(text, operator=op.place, hint="kernels take " + "; ".join(served))
    alike = [variant for variant in candidates if variant.types == types and variant.form == form(op)]
    shape = " ".join(f"{name}={value}" for name, value in sorted(known.items()))
    raise UnsupportedError(
        f"no kernel for {op.kind} of this shape on board '{target.board.name}'",
        operator=op.place,
        hint=f"the operator has {shape}; kernels need "
        + "; or ".join(f"{variant.when} ({variant.name})" for variant in alike),
    )


def contract_for(variant: KernelVariant, op: Op) -> KernelVariant:
    """The variant with the contract that it keeps as it is called for `op`.

    Where it is called on parts of the channels, row by row, it computes its elements in no ascending order.
    Where it reads some channels of a wider tensor, that one's elements are not read one after the other, and
    what it concatenates has no lines of its own.
    """
    if (isinstance(op.attrs, WidenedAttrs) or op.seen) and variant.overlap is Contract.PIXEL:
        return dataclasses.replace(variant, overlap=Contract.ROW)
    if op.seen and variant.overlap is Contract.PARTS:
        return dataclasses.replace(variant, overlap=Contract.NONE)
    return variant


def takes_parts(graph: Graph, variant: KernelVariant, op: Op) -> bool:
    """Whether the operator's code goes from pixel to pixel as the views of its operands say.

    What computes whole tensors only may take it that they lie in one piece. Concatenations of channels have
    code of their own, a copy for each part.
    """
    if op.kind is OpKind.CONCATENATION:
        return op.attrs == AxisAttrs(len(graph.tensors[op.outputs[0]].shape) - 1)
    viewed = any(argument in variant.call for argument, _ in VIEWS)
    return viewed and Argument.WINDOW in variant.call and variant.windows is Windows.ANY


def writes_parts(graph: Graph, variant: KernelVariant, op: Op) -> bool:
    """Whether the operator's code writes pixels as far apart as the view of its output says."""
    is_concatenation = op.kind is OpKind.CONCATENATION
    return not is_concatenation and takes_parts(graph, variant, op) and Argument.OUT in variant.call


def element_types(graph: Graph, op: Op) -> tuple[DType, DType]:
    """The types of the operator's first input and output, as `KernelVariant.types` has them."""
    first, result = (graph.tensors[t].dtype for t in (op.inputs[0], op.outputs[0]))
    return _SAME_KERNELS.get(first, first), _SAME_KERNELS.get(result, result)


def form(op: Op) -> str:
    """The arithmetic that an operator needs, as `KernelVariant.form` has it; tables say it themselves."""
    return "uint8" if isinstance(op.attrs, AsUint8) and op.kind not in TABLE_KINDS else ""


_SAME_KERNELS = {DType.UINT8: DType.INT8, DType.BOOL: DType.INT8}  # a byte each


def select_all(target: Target, graph: Graph) -> tuple[KernelVariant | None, ...]:
    """The kernel of every operator, None for aliases; UnsupportedError as `select`.

    They depend on geometry alone, so the target knows those of the topologies that it was asked for last.
    """
    key, known = topology_digest(graph), target.selections
    if key not in known:
        if len(known) >= MOST_SELECTIONS:
            known.clear()
        known[key] = tuple(None if op.kind in ALIAS_KINDS else select(target, graph, op) for op in graph.ops)
    return known[key]


def scratch_bytes(variant: KernelVariant, graph: Graph, op: Op, columns: int | None = None) -> int:
    """Bytes of scratch that the kernel wants from its caller for `op`; rounded up.

    `columns`: the most columns of an image that a call makes (None: all); `ow` stands for them.
    """
    if variant.scratch == "0" and variant.ask is None:
        return 0
    known = features(graph, op)
    if columns is not None and op.kind is not OpKind.FULLY_CONNECTED:
        known["ow"] = min(known["ow"], columns)
    value = evaluate(variant.scratch, known) if variant.ask is None else variant.ask(known)
    if value < 0:
        raise TargetError(f"kernel '{variant.name}' asks for {value} bytes of scratch", operator=op.place)
    return -int(-value // 1)


def operands(variant: KernelVariant, graph: Graph, op: Op) -> tuple[int, ...]:
    """The tensors among an operator's inputs that its kernel reads as such, not as packed constants.

    A kernel of one operand reads the only one that varies, wherever it stands. Operands are as it sees them.
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
    """Bytes of the kernel's packed constants for `op`, a multiple of 16. It reads no weights."""
    if variant.constants == "0":
        return 0
    return _whole_bytes(variant, "constants", graph, op, ALIGNMENT)


class ChannelBytes(NamedTuple):
    """How a block of constants is cut at output channels: what the formulas of its `Layout` are worth."""

    factors: int = 0
    weights: int = 0
    step: int = 1
    unit: int = 1
    group: int = 1
    tail: int = 0


def channel_bytes(variant: KernelVariant, graph: Graph, op: Op) -> ChannelBytes | None:
    """How the kernel's constants for `op` are cut, or None if it computes no slices.

    Raises TargetError for lengths below 0, and for a group of channels that is not a multiple of the unit.
    """
    if variant.slices == "False" or not evaluate(variant.slices, features(graph, op)):
        return None
    known = {name: _whole_bytes(variant, f"channel_{name}", graph, op, 1) for name in ChannelBytes._fields}
    step, unit = max(known["step"], 1), max(known["unit"], 1)
    group = max(known["group"], unit)
    if group % unit:
        text = f"kernel '{variant.name}' has factors of {group} channels together, but units of {unit}"
        hint = "channel_group has to be a multiple of channel_unit"
        raise TargetError(text, operator=op.place, hint=hint)
    return ChannelBytes(**{**known, "step": step, "unit": unit, "group": group})


def _whole_bytes(variant: KernelVariant, name: str, graph: Graph, op: Op, alignment: int) -> int:
    """One of the variant's formulas of bytes, rounded up."""
    value = evaluate(getattr(variant, name), features(graph, op))
    if value < 0:
        raise TargetError(f"kernel '{variant.name}' has {value} bytes of {name}", operator=op.place)
    return -int(-value // alignment) * alignment
