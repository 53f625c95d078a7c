"""Drops taps of convolutions that meet nothing but padding, for any output.

Such taps add nothing. A kernel of 3 x 3 on an image of one column has two columns of them, and one of 7 x 7
on an image of 3 x 3 has a border of them.
"""

from dataclasses import replace

import numpy as np

from buildtool.graph import types as g
from buildtool.graph.geometry import dilated_extent, window_outputs
from buildtool.graph.rewrite.draft import Draft
from buildtool.graph.types import OpKind, Pad

Axis = tuple[int, int]  # padding before the input, and behind it


def drop_taps(draft: Draft) -> None:
    """Cuts filters to the rows and columns that meet the input of some output."""
    for node in draft.each(OpKind.CONV_2D, OpKind.DEPTHWISE_CONV_2D):
        attrs, weights = node.attributes(g.ConvAttrs), draft.tensors[node.inputs[1]]
        if weights.data is None:
            continue
        sizes, outputs = draft.tensors[node.inputs[0]].nhwc[1:3], draft.tensors[node.outputs[0]].nhwc[1:3]
        pads = ((attrs.pad.top, attrs.pad.bottom), (attrs.pad.left, attrs.pad.right))
        kernel, steps = weights.shape[1:3], tuple(zip(attrs.stride, attrs.dilation, strict=True))
        (rows, above), (columns, beside) = map(_met, sizes, outputs, kernel, steps, pads)
        if (len(rows), len(columns)) == kernel:
            continue
        data = np.ascontiguousarray(weights.data[:, rows.start : rows.stop, columns.start : columns.stop])
        fewer = replace(weights, name=f"{weights.name}/met", shape=data.shape, data=data, source=None)
        draft.set_input(node, 1, draft.add_tensor(fewer))
        node.attrs = replace(attrs, pad=Pad(*above, *beside))


def _met(size: int, outputs: int, kernel: int, step: tuple[int, int], pad: Axis) -> tuple[range, Axis]:
    """Returns the taps along an axis from the first to the last that meet the input, and their padding.

    They are all taps where none does, or where the padding would become negative.
    """
    stride, dilation = step
    first = [tap * dilation - pad[0] for tap in range(kernel)]  # the place that output 0 meets
    nearest = [(max(0, -(at // stride)), at) for at in first]  # the first output that meets no place before 0
    met = [k for k, (o, at) in enumerate(nearest) if o < outputs and at + o * stride < size]
    taps = range(met[0], met[-1] + 1) if met else range(kernel)
    before = pad[0] - taps.start * dilation
    behind = max(0, pad[1] - (kernel - taps.stop) * dilation)
    extent = dilated_extent(len(taps), dilation)
    if before < 0 or window_outputs(size, before + behind, extent, stride) != outputs:
        return range(kernel), pad
    return taps, (before, behind)
