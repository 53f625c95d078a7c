"""Joins batch normalisations and activations with the operator before them, as most runtimes do."""

from __future__ import annotations

from dataclasses import replace

from buildtool.graph.flow import Flow, FlowOp

_FOLLOWERS = frozenset(
    """batchnorm activation
    BatchNormalization Relu LeakyRelu PRelu Clip Sigmoid HardSigmoid HardSwish Elu Selu Tanh
    Mul Add Sub Div""".split()
)
_LEADERS = frozenset(
    """convolutional local connected shortcut
    Conv ConvTranspose Gemm MatMul QLinearConv QLinearMatMul ConvInteger MatMulInteger Add Sum Mul""".split()
)


def fused(flow: Flow) -> Flow:
    """The flow with each such operator part of the one before, if nothing else reads what is between.

    Element-wise arithmetic counts where it has weights on its other side.
    """
    read: dict[int, int] = {}
    for op in flow.ops:
        for v in op.reads:
            read[v] = read.get(v, 0) + 1
    kept = set(flow.outputs)
    made: dict[int, int] = {}  # value -> place in `ops`
    ops: list[FlowOp] = []
    for op in flow.ops:
        sources = [v for v in op.reads if not flow.values[v].is_weight]
        before = made.get(sources[0], -1) if len(sources) == 1 else -1
        if (
            op.kind in _FOLLOWERS
            and len(op.writes) == 1
            and before >= 0
            and ops[before].kind in _LEADERS
            and ops[before].writes == (sources[0],)
            and read[sources[0]] == 1
            and sources[0] not in kept
        ):
            added = tuple(v for v in op.reads if v != sources[0] and v not in ops[before].reads)
            ops[before] = replace(ops[before], reads=(*ops[before].reads, *added), writes=op.writes)
            made[op.writes[0]] = before
            continue
        made.update(dict.fromkeys(op.writes, len(ops)))
        ops.append(op)
    return replace(flow, ops=tuple(ops))
