"""How far an operator's output may lie on its dying input, from the kernel's overlap contract.

With the output at address o and the input at i, `distance` is the least d such that every i >= o + d
is safe. Writing output row q touches at most [o, o + (q + 1) * out_row); the rows that the contract
`row` still lets the kernel read from row q on begin at i + max(0, q * stride - pad) * in_row, and
there are none once q * stride - pad is beyond the input. So

    d = max over q of (q + 1) * out_row - max(0, q * stride - pad) * in_row.

A tap's dilation only moves it further up. Under the contract `pixel`, element e is written when all
elements up to e have been read: d = max over all e but the last of (e + 1) * (bytes of an output
element - bytes of an input element), which is 0 where they are of one size.

Under the contract `parts` the output is m lines of S bytes, n of each from this part, s of them from
parts before it. Writing its line q ends below its lines from q + 1 on as long as
i + (q + 1) * n >= o + q * S + s + n, and writing the parts before it ends at o + (m - 1) * S + s:

    d = (m - 1) * (S - n) + s for the first part, (m - 1) * S + s for the others,

so that with one line (parts below each other) each part may lie where it goes to.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from buildtool.base.modes import InPlace
from buildtool.graph.liveness import LiveRange, state_of
from buildtool.graph.ops import ALIAS_KINDS, PIXEL_KINDS, SLIDING_KINDS
from buildtool.graph.partviews import parts
from buildtool.graph.types import AxisAttrs, Graph, Op, OpKind, Tensor
from buildtool.plan.schedule.axis import Axis
from buildtool.plan.schedule.receptive import axes
from buildtool.plan.types import Overlap
from buildtool.target.types import Contract, KernelVariant

IN_PLACE = tuple(InPlace)  # the contracts that may be used: all, `pixel` only, none


def distance(graph: Graph, op: Op, operand: int, contract: Contract) -> int | None:
    """Bytes from the output's start to the lowest safe start of input tensor `operand`; None: no overlap.

    Only what the kernel's contract and the shapes say; whether the operand dies here is up to the caller.
    """
    if len(op.outputs) != 1 or op.outputs[0] in parts(graph):
        return None  # what lies between the output's pixels belongs to others
    source, result = graph.tensors[operand], graph.tensors[op.outputs[0]]
    same_shape = source.shape == result.shape  # a broadcast operand is read again and again
    if contract is Contract.PIXEL and same_shape:
        return max(0, (result.elements - 1) * (result.dtype.size - source.dtype.size))
    if contract is Contract.ROW:
        along = op.kind in PIXEL_KINDS and same_shape
        along = along or (op.kind in SLIDING_KINDS and operand == op.inputs[0])
        # in a batch, the next image's rows are not below this one's
        single = result.nhwc[0] == source.nhwc[0] == 1
        return _row_distance(axes(graph, op)[0], source, result) if along and single else None
    # a part that goes to several places stays
    if contract is Contract.PARTS and op.kind is OpKind.CONCATENATION and op.inputs.count(operand) == 1:
        assert isinstance(op.attrs, AxisAttrs)
        lines = math.prod(result.shape[: op.attrs.axis])
        before = op.inputs[: op.inputs.index(operand)]
        own = source.size // lines if not before else 0
        offset = sum(graph.tensors[t].size for t in before) // lines
        return (lines - 1) * (result.size // lines - own) + offset
    return None


def _row_distance(rows: Axis, source: Tensor, result: Tensor) -> int:
    """The formula above, in bytes. It is linear in q but for one bend, so its pieces' ends are enough."""
    stride, pad = rows.stride, rows.pad
    in_rows, out_rows = source.nhwc[1], result.nhwc[1]
    in_row, out_row = source.size // max(in_rows, 1), result.size // max(out_rows, 1)
    reading = min(out_rows, -(-(in_rows + pad) // stride))  # output rows whose window begins in the input
    bend = -(-pad // stride)  # the first whose window does not begin above it
    ends = {0, bend - 1, bend, reading - 1} & set(range(reading))
    return max(((q + 1) * out_row - max(0, q * stride - pad) * in_row for q in ends), default=0)


def slices_in_place(graph: Graph, op: Op) -> bool:
    """Whether an operator may write over its input though it goes over all of it for each slice of channels.

    Of a depthwise convolution each channel of the output is made of the same channel of the input: as long
    as the output lies whole pixels below the input, no slice writes over what another one reads. In a wider
    tensor pixels are further apart.
    """
    if op.kind is not OpKind.DEPTHWISE_CONV_2D or op.seen:
        return False
    return graph.tensors[op.inputs[0]].nhwc[3] == graph.tensors[op.outputs[0]].nhwc[3]


def permitted(
    graph: Graph,
    ranges: Sequence[LiveRange],
    kernels: Sequence[KernelVariant | None],
    in_place: str,
    resident: bool,
) -> tuple[Overlap, ...]:
    """Every overlap that the kernels' contracts allow, with range indices as buffers.

    An input qualifies that dies at the operator, is read by it once, and is neither a network
    output nor (if the image is resident) a network input. Overlaps that save nothing are left out.
    """
    contracts = {
        InPlace.ROWS: {Contract.ROW, Contract.PIXEL, Contract.PARTS},
        InPlace.ELEMENTWISE: {Contract.PIXEL},
        InPlace.NONE: set(),
    }[InPlace(in_place)]
    holder = {t: index for index, r in enumerate(ranges) for t in r.tensors}
    overlaps, states = [], state_of(graph)
    for position, (op, kernel) in enumerate(zip(graph.ops, kernels, strict=True)):
        if kernel is None or kernel.overlap not in contracts or op.kind in ALIAS_KINDS:
            continue
        if op.outputs[0] in states:
            continue
        read = [holder[t] for t in op.inputs if t in holder]
        for operand in (t for t in op.inputs if t in holder and read.count(holder[t]) == 1):
            life = ranges[holder[operand]]
            if life.last != position or life.is_output or (resident and life.is_input):
                continue
            apart = distance(graph, op, operand, kernel.overlap)
            if apart is not None and apart < graph.tensors[op.outputs[0]].size:
                overlaps.append(Overlap(position, holder[operand], holder[op.outputs[0]], apart))
    return tuple(overlaps)
