"""Chooses quantisations so that values stay spread through a whole network.

With random quantisations, all values saturate after a few operators, and comparing them proves little.
`spread(graph, seed)` chooses each operator's output scale and zero point among those that leave many
different values.
"""

import dataclasses

import numpy as np
from graphs import inputs_for

from buildtool.base.errors import BuildtoolError
from buildtool.graph.ops import DEFS
from buildtool.graph.reference import execute
from buildtool.graph.types import BatchBlockAttrs, DType, Graph, Op, OpKind, PadAttrs, Quantization, Tensor

# Their output has the quantisation of their input.
TIED = frozenset(
    {
        *(OpKind.PAD, OpKind.MIRROR_PAD, OpKind.AVERAGE_POOL_2D, OpKind.MAX_POOL_2D, OpKind.MAXIMUM),
        *(OpKind.MINIMUM, OpKind.RESHAPE, OpKind.SQUEEZE, OpKind.EXPAND_DIMS, OpKind.TRANSPOSE),
        *(OpKind.CONCATENATION, OpKind.SPLIT, OpKind.STRIDED_SLICE, OpKind.SLICE, OpKind.TILE),
        *(OpKind.GATHER, OpKind.DEPTH_TO_SPACE, OpKind.SPACE_TO_DEPTH, OpKind.BATCH_TO_SPACE_ND),
        *(OpKind.SPACE_TO_BATCH_ND, OpKind.REDUCE_MAX, OpKind.REDUCE_MIN, OpKind.ARG_MAX, OpKind.ARG_MIN),
        *(OpKind.RESIZE_NEAREST_NEIGHBOR, OpKind.RESIZE_BILINEAR),
    }
)
FIXED = frozenset(kind for kind in OpKind if DEFS[kind].output or kind is OpKind.DEQUANTIZE)
WEIGHTED = frozenset(
    {OpKind.CONV_2D, OpKind.DEPTHWISE_CONV_2D, OpKind.TRANSPOSE_CONV, OpKind.FULLY_CONNECTED}
)
_FACTORS = [2.0**n for n in range(-7, 8, 2)]
_ZERO_POINTS = (-128, -50, 3, 90)


def spread(graph: Graph, seed: int = 0) -> Graph:
    """Returns the graph with other quantisations of what its operators make."""
    work = _Spreading(graph, seed)
    for position in range(len(graph.ops)):
        work.take(position)
    return dataclasses.replace(graph, tensors=tuple(work.tensors), ops=tuple(work.ops))


class _Spreading:
    def __init__(self, graph: Graph, seed: int) -> None:
        self.graph = graph
        self.tensors: list[Tensor] = list(graph.tensors)
        self.ops: list[Op] = list(graph.ops)
        self.rng = np.random.default_rng(seed)
        self.values: dict[int, np.ndarray] = dict(zip(graph.inputs, inputs_for(graph, seed), strict=True))
        self.group = _find_tied_groups(graph)
        producers = graph.producers()
        # settled quantisations: of inputs, and of operators with a fixed one
        self.settled = {self.group[t] for t in graph.inputs}
        self.settled |= {self.group[t] for t, i in producers.items() if graph.ops[i].kind in FIXED}
        self.settled |= {
            self.group[t] for t, i in producers.items() if graph.tensors[t].dtype is not DType.INT8
        }

    def take(self, position: int) -> None:
        op = self.ops[position]
        out = op.outputs[0]
        if op.kind in WEIGHTED:
            self._turn_signs(op)
            if op.inputs[2] >= 0:
                self._match_bias(op)
        padding = op.kind in (OpKind.PAD, OpKind.SPACE_TO_BATCH_ND)
        if padding and isinstance(op.attrs, PadAttrs | BatchBlockAttrs):
            quant = self.tensors[op.inputs[0]].quant
            assert quant is not None
            op = dataclasses.replace(op, attrs=dataclasses.replace(op.attrs, value=quant.zero_point))
            self.ops[position] = op
        if op.kind not in TIED and self.group[out] not in self.settled:
            self._choose(op, self.group[out])
        self.values.update(self._run(op))

    def _run(self, op: Op) -> dict[int, np.ndarray]:
        sources = [t for t in dict.fromkeys(op.inputs) if t in self.values]
        one = Graph("one", tuple(self.tensors), (op,), tuple(sources), op.outputs)
        values = execute(one, [self.values[t] for t in sources])
        return {t: values[t] for t in op.outputs}

    def _choose(self, op: Op, group: int) -> None:
        quant = self.tensors[op.outputs[0]].quant
        assert quant is not None
        scored = []
        for factor in _FACTORS:
            for zero_point in _ZERO_POINTS:
                candidate = Quantization((float(np.float32(quant.scale * factor)),), (zero_point,))
                self._set(group, candidate)
                try:
                    out = self._run(op)[op.outputs[0]]
                except BuildtoolError:
                    continue
                scored.append((np.unique(out).size - float((abs(out + 0.5) > 127).mean()), candidate))
        best = max(score for score, _ in scored)
        good = [candidate for score, candidate in scored if score >= 0.8 * best]
        self._set(group, good[int(self.rng.integers(len(good)))])
        self.settled.add(group)

    def _set(self, group: int, quant: Quantization) -> None:
        for t, owner in self.group.items():
            if owner == group:
                self.tensors[t] = dataclasses.replace(self.tensors[t], quant=quant)

    def _turn_signs(self, op: Op) -> None:
        """Gives some channels a negative scale, as some converters do when they fold a batch norm."""
        weights = self.tensors[op.inputs[1]]
        quant = weights.quant
        assert quant is not None and weights.data is not None
        if len(quant.scales) == 1 or self.rng.integers(3):
            return
        turned = self.rng.integers(0, 3, len(quant.scales)) == 0
        if op.kind is OpKind.FULLY_CONNECTED:  # -128 has no opposite: not supported there
            turned &= weights.data.min(axis=1) > -128
        scales = tuple(-s if t else s for s, t in zip(quant.scales, turned, strict=True))
        changed = dataclasses.replace(quant, scales=scales)
        self.tensors[op.inputs[1]] = dataclasses.replace(weights, quant=changed)

    def _match_bias(self, op: Op) -> None:
        """Gives the bias the scale of the input times that of the weights."""
        source, weights = self.tensors[op.inputs[0]].quant, self.tensors[op.inputs[1]].quant
        assert source is not None and weights is not None
        scales = tuple(float(np.float32(source.scale) * np.float32(s)) for s in weights.scales)
        quant = Quantization(scales, (0,) * len(scales), 0)
        self.tensors[op.inputs[2]] = dataclasses.replace(self.tensors[op.inputs[2]], quant=quant)


def _find_tied_groups(graph: Graph) -> dict[int, int]:
    """Returns activation tensor -> the lowest tensor with which it shares its quantisation."""
    group = {t: t for t in graph.activations()}

    def root(t: int) -> int:
        while group[t] != t:
            t = group[t]
        return t

    for op in graph.ops:
        if op.kind in TIED:
            both = (t for t in (*op.inputs, *op.outputs) if t in group)
            members = [t for t in both if graph.tensors[t].dtype is graph.tensors[op.inputs[0]].dtype]
            least = min(root(t) for t in members)
            for t in members:
                group[root(t)] = least
    return {t: root(t) for t in group}
