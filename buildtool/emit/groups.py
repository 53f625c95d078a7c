"""Constants of convolutions of several groups: a block for each group, as its family packs one group.

A convolution of groups (input channels that are a multiple of the filter's) is as many convolutions of one
group, each of a part of the input's channels and of the output's. nn_groups.h calls a kernel on those parts.
"""

from __future__ import annotations

from dataclasses import replace

from buildtool.emit.blocks import Packing, aligned, channel_axis, words
from buildtool.graph.types import Graph, Op, Quantization, Tensor

FILTER, BIAS = 1, 2  # their places among a convolution's inputs


def by_group(packing: Packing) -> Packing:
    """The packing that makes nn_groups_constants, then the block that `packing` makes of each group."""

    def build(graph: Graph, op: Op) -> bytes:
        channels = graph.tensors[op.inputs[0]].shape[3]
        groups = channels // graph.tensors[op.inputs[FILTER]].shape[3]
        blocks = [aligned(packing(_of_group(graph, op, group, groups), op)) for group in range(groups)]
        return words(len(blocks[0]), 0, 0, 0) + b"".join(blocks)

    return build


def _of_group(graph: Graph, op: Op, group: int, groups: int) -> Graph:
    """The graph with the operator's tensors cut to one group's channels; other operators do not fit it."""
    tensors = list(graph.tensors)
    cuts = {op.inputs[0]: 3, op.inputs[FILTER]: channel_axis(op), op.outputs[0]: 3}
    if len(op.inputs) > BIAS and op.inputs[BIAS] >= 0:
        cuts[op.inputs[BIAS]] = len(tensors[op.inputs[BIAS]].shape) - 1
    for tensor, axis in cuts.items():
        tensors[tensor] = _cut(tensors[tensor], axis, group, groups)
    return replace(graph, tensors=tuple(tensors))


def _cut(tensor: Tensor, axis: int, group: int, groups: int) -> Tensor:
    """Part `group` of `groups` equal ones along a dimension."""
    share = tensor.shape[axis] // groups
    part = slice(group * share, (group + 1) * share)
    shape = (*tensor.shape[:axis], share, *tensor.shape[axis + 1 :])
    data = None if tensor.data is None else tensor.data[(*(slice(None),) * axis, part)]
    return replace(tensor, shape=shape, data=data, quant=_cut_quantization(tensor.quant, axis, part))


def _cut_quantization(quant: Quantization | None, axis: int, part: slice) -> Quantization | None:
    if quant is None or len(quant.scales) == 1 or quant.axis != axis:
        return quant
    return replace(quant, scales=quant.scales[part], zero_points=quant.zero_points[part])
