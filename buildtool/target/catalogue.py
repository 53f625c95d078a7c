"""What a kernel costs and needs for an operator: its catalogue's expressions, evaluated on the geometry.

The expressions see `catalogue_keys.VARIABLES` (see `features`). Kernels' also see the core's `threads`, and
costs its `vector_bits` (128 if it has none): `for_core` writes the numbers into them. Of a target's kernels
the first whose `when` holds serves an operator.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable

from buildtool.errors import TargetError, UnsupportedError
from buildtool.graph.digest import topology_digest
from buildtool.graph.macs import op_macs
from buildtool.graph.types import (
    ALIAS_KINDS,
    ConvAttrs,
    DepthwiseAttrs,
    Graph,
    Op,
    OpKind,
    Pad,
    PoolAttrs,
    Tensor,
)
from buildtool.target.catalogue_keys import THREADS, VECTOR_BITS
from buildtool.target.expression import evaluate
from buildtool.target.taps import taps_met
from buildtool.target.types import Argument, Core, KernelVariant, Target

_MET = ("rows_met", "rows_inside", "columns_met", "columns_inside")
LEAST_VECTOR_BITS = 128
NO_PACKING = "none"  # of kernels without constants
ALIGNMENT = 16  # bytes, of blocks of constants
VIEWS = ((Argument.IN, 0), (Argument.IN1, 0), (Argument.IN2, 1))  # of which operand


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
    """The geometry that catalogue expressions see (`catalogue_keys.VARIABLES`); 0 or 1 where meaningless.

    ih iw cin, oh ow cout, batch: of the first input and first output (Tensor.nhwc); kernel (kh kw),
    stride (sh sw), dilation (dh dw), pad above and left (pt pl); groups of input channels, depth
    multiplier; inputs and outputs: elements of the first input and of all outputs; operands: how many
    activations go in; macs: as `op_macs`. rows_met: rows of the window that lie in the input, all output
    rows taken together; rows_inside: output rows whose whole window lies in it; likewise for columns, of
    which a window inside also lies in memory one after the other. A dense layer's rows are columns of a
    one-row image.
    """
    first, result = graph.tensors[op.inputs[0]], graph.tensors[op.outputs[0]]
    batch, ih, iw, cin = first.nhwc
    _, oh, ow, cout = result.nhwc
    found = {
        **dict.fromkeys(("kh", "kw", "sh", "sw", "dh", "dw", "groups", "multiplier"), 1),
        **{"pt": 0, "pl": 0},
        **{"ih": ih, "iw": iw, "cin": cin, "oh": oh, "ow": ow, "cout": cout, "batch": batch},
        "inputs": first.elements,
        "operands": sum(1 for t in op.inputs if t >= 0 and not graph.tensors[t].is_constant),
        "outputs": sum(graph.tensors[t].elements for t in op.outputs),
        "macs": op_macs(graph, op),
    }
    pad = Pad()
    if isinstance(op.attrs, ConvAttrs):
        pad = op.attrs.pad
        found |= _kernel_window(op.attrs, graph.tensors[op.inputs[1]], cin)
    elif isinstance(op.attrs, PoolAttrs):
        pad = op.attrs.pad
        found |= dict(zip(("kh", "kw", "sh", "sw"), (*op.attrs.kernel, *op.attrs.stride), strict=True))
    elif op.kind is OpKind.FULLY_CONNECTED:
        outputs, inputs = graph.tensors[op.inputs[1]].shape
        rows = first.elements // max(inputs, 1)
        found |= {"batch": 1, "ih": 1, "iw": rows, "cin": inputs, "oh": 1, "ow": rows, "cout": outputs}
    found |= {"pt": pad.top, "pl": pad.left}
    met = (count for axis in AXES for count in taps_met(*(found[name] for name in axis)))
    return found | dict(zip(_MET, met, strict=True))


MOST_SELECTIONS = 64  # topologies that a target knows the kernels of
AXES = (("oh", "ih", "kh", "sh", "dh", "pt"), ("ow", "iw", "kw", "sw", "dw", "pl"))


def _kernel_window(attrs: ConvAttrs, weights: Tensor, cin: int) -> dict[str, int]:
    kh, kw = weights.shape[1:3]
    groups = cin if isinstance(attrs, DepthwiseAttrs) else cin // max(weights.shape[3], 1)
    multiplier = attrs.depth_multiplier if isinstance(attrs, DepthwiseAttrs) else 1
    names = ("kh", "kw", "sh", "sw", "dh", "dw", "groups", "multiplier")
    return dict(zip(names, (kh, kw, *attrs.stride, *attrs.dilation, groups, multiplier), strict=True))


def select(target: Target, graph: Graph, op: Op) -> KernelVariant:
    """The first of the target's kernels that serves `op`; UnsupportedError if none does."""
    candidates = [variant for variant in target.kernels if variant.op == op.kind]
    known = features(graph, op) if candidates else {}
    for variant in candidates:
        if variant.when == "True" or evaluate(variant.when, known):
            return variant
    if not candidates:
        kinds = sorted({variant.op for variant in target.kernels})
        raise UnsupportedError(
            f"board '{target.board.name}' has no kernel for {op.kind}",
            operator=op.place,
            hint="kernels exist for " + ", ".join(kinds),
        )
    shape = " ".join(f"{name}={value}" for name, value in sorted(known.items()))
    raise UnsupportedError(
        f"no kernel for {op.kind} of this shape on board '{target.board.name}'",
        operator=op.place,
        hint=f"the operator has {shape}; kernels need "
        + "; or ".join(f"{variant.when} ({variant.name})" for variant in candidates),
    )


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


def operands(variant: KernelVariant, op: Op) -> tuple[int, ...]:
    """The tensors among an operator's inputs that its kernel reads as such, not as packed constants."""
    if op.kind is OpKind.CONCATENATION:
        return op.inputs
    count = max((n + 1 for argument, n in VIEWS if argument in variant.call), default=1)
    return tuple(t for t in op.inputs[:count] if t >= 0)


def constants_bytes(variant: KernelVariant, graph: Graph, op: Op) -> int:
    """Bytes of the kernel's packed constants for `op`, a multiple of 16; no weight is looked at."""
    if variant.constants == "0":
        return 0
    return _whole_bytes(variant, "constants", graph, op, ALIGNMENT)


def channel_bytes(variant: KernelVariant, graph: Graph, op: Op) -> tuple[int, int, int, int, int] | None:
    """(factors, weights, step, unit, tail), or None if the kernel computes no slices.

    Bytes of an output channel's constants; slices begin at multiples of `step` channels, and a block has
    the bytes of a multiple of `unit`, and `tail` bytes behind them.
    """
    if variant.slices == "False" or not evaluate(variant.slices, features(graph, op)):
        return None
    names = ("channel_factors", "channel_weights", "channel_step", "channel_unit", "channel_tail")
    factors, weights, step, unit, tail = (_whole_bytes(variant, name, graph, op, 1) for name in names)
    return factors, weights, max(step, 1), max(unit, 1), tail


def _whole_bytes(variant: KernelVariant, name: str, graph: Graph, op: Op, alignment: int) -> int:
    """One of the variant's formulas of bytes, rounded up."""
    value = evaluate(getattr(variant, name), features(graph, op))
    if value < 0:
        raise TargetError(f"kernel '{variant.name}' has {value} bytes of {name}", operator=op.place)
    return -int(-value // alignment) * alignment
