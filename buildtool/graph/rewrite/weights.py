"""Rewrites layers with weights without changing results: positive scales, and plain convolutions.

Converters that fold a batch norm late write channels whose weights have a negative scale. If the weights and
the bias of a channel are negated, its sums are negated, too. Then sum * factor, which is what gets rounded,
stays the same. Kernels for negative factors exist, but the fast kernels need positive ones.

A depthwise convolution with one input channel becomes a CONV_2D: every output channel reads that channel, and
sums, rounding and clamp are the same. With a depth multiplier of 1 it stays, because kernels that compute
many channels gain nothing from one output channel.

A BATCH_MATMUL absorbs the transpositions of its operands. With constant weights it becomes a convolution.
"""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from buildtool.graph import types as g
from buildtool.graph.fixedpoint import quantize_multiplier
from buildtool.graph.rewrite.draft import Draft, Node, variant
from buildtool.graph.types import Attrs, DType, OpKind, Quantization, Source, Tensor

_WEIGHTED = (OpKind.CONV_2D, OpKind.DEPTHWISE_CONV_2D, OpKind.TRANSPOSE_CONV, OpKind.FULLY_CONNECTED)


def positive_scales(draft: Draft) -> None:
    """Negates channels with a negative scale, except those with a weight of -128: int8 has no 128."""
    for node in draft.each(*_WEIGHTED):
        weights = draft.tensors[node.inputs[1]]
        bias = draft.tensors[node.inputs[2]] if len(node.inputs) > 2 and node.inputs[2] >= 0 else None
        quant, rank = weights.quant, len(weights.shape)
        if weights.data is None or quant is None or min(quant.scales) >= 0 or any(quant.zero_points):
            continue
        axis = quant.axis % rank
        others = tuple(d for d in range(rank) if d != axis)
        negated = np.array(quant.scales) < 0
        negated &= (weights.data != np.iinfo(np.int8).min).all(axis=others)
        if bias is not None and bias.data is not None:
            negated &= bias.data.reshape(-1) != np.iinfo(bias.dtype.value).min
        if not negated.any():
            continue
        where = negated.reshape([-1 if d == axis else 1 for d in range(rank)])
        draft.set_input(node, 1, draft.add_tensor(_negate(weights, negated, where)))
        if bias is not None:
            draft.set_input(node, 2, draft.add_tensor(_negate(bias, negated, negated)))


def _negate(tensor: Tensor, negated: npt.NDArray[np.bool_], where: npt.NDArray[np.bool_]) -> Tensor:
    assert tensor.data is not None
    data = np.where(where, np.negative(tensor.data.astype(np.int64)), tensor.data).astype(tensor.data.dtype)
    quant = tensor.quant
    if quant is not None and len(quant.scales) == len(negated):
        scales = tuple(-s if t else s for s, t in zip(quant.scales, negated, strict=True))
        quant = Quantization(scales, quant.zero_points, quant.axis)
    return replace(tensor, data=data, quant=quant)


# ---- one input channel --------------------------------------------------------------------------------

_OHWI = (3, 1, 2, 0)  # permutation of a filter (1, rows, columns, channels) to (channels, rows, columns, 1)


def convolve_single_channels(draft: Draft) -> None:
    """Turns every DEPTHWISE_CONV_2D with one input channel and a depth multiplier above 1 into CONV_2D."""
    for node in draft.each(OpKind.DEPTHWISE_CONV_2D):
        attrs, weights = node.attributes(g.DepthwiseAttrs), draft.tensors[node.inputs[1]]
        if attrs.depth_multiplier < 2 or draft.tensors[node.inputs[0]].nhwc[3] != 1:
            continue
        if weights.data is None or weights.quant is None:  # the consistency check refuses them
            continue
        data = np.ascontiguousarray(weights.data.transpose(_OHWI))
        source, quant = weights.source, replace(weights.quant, axis=0)
        if source is not None:
            before = source.perm or tuple(range(len(_OHWI)))
            source = Source(source.index, tuple(before[d] for d in _OHWI))
        filters = replace(weights, shape=data.shape, data=data, quant=quant, source=source)
        draft.set_input(node, 1, draft.add_tensor(filters))
        cls = g.ConvAsUint8 if isinstance(attrs, g.AsUint8) else g.ConvAttrs
        draft.become(node, OpKind.CONV_2D, cls(attrs.stride, attrs.dilation, attrs.pad, attrs.activation))


# ---- products of matrices ----------------------------------------------------------------------------


def simplify_matmuls(draft: Draft) -> None:
    """Moves transpositions into BATCH_MATMULs, and turns those with constant weights into convolutions."""
    for node in draft.each(OpKind.BATCH_MATMUL):
        for position, name in enumerate(("adj_x", "adj_y")):
            before, attrs = draft.producer(node.inputs[position]), node.attributes(g.MatmulAttrs)
            if before is None or not isinstance(before.attrs, g.TransposeAttrs):
                continue
            perm, source, middle = before.attrs.perm, before.inputs[0], before.outputs[0]
            swap = (*range(len(perm) - 2), len(perm) - 1, len(perm) - 2)
            if len(perm) < 2 or perm != swap or not draft.same_quantization(source, middle):
                continue
            node.attrs = replace(attrs, **{name: not getattr(attrs, name)})
            draft.set_input(node, position, source)
            if draft.private(middle) and not draft.readers(middle):
                draft.remove(before)
        _convolve(draft, node)


def _convolve(draft: Draft, node: Node) -> None:
    """Turns a product with one constant matrix into a convolution of one row of pixels.

    A dense layer would not do: LiteRT requantises dense layers in another way.
    """
    attrs = node.attributes(g.MatmulAttrs)
    x, y, out = (draft.tensors[t] for t in (*node.inputs, node.outputs[0]))
    if attrs.adj_x or y.data is None or x.is_constant or any(n != 1 for n in y.shape[:-2]):
        return
    if y.dtype is not DType.INT8:  # as the weights of a convolution are
        return
    if x.quant is None or y.quant is None or out.quant is None or y.quant.zero_point != 0:
        return
    # A convolution multiplies the scales in double precision, a BATCH_MATMUL in float32. This scale of the
    # filter makes the factors equal. It need not be a float32 value: only files demand that.
    product = float(np.float32(x.quant.scale) * np.float32(y.quant.scale))
    scale = product / x.quant.scale
    factors = (quantize_multiplier(real / out.quant.scale) for real in (x.quant.scale * scale, product))
    if next(factors) != next(factors):
        return
    weights = y.data.reshape(y.shape[-2:])
    weights = np.ascontiguousarray(weights if attrs.adj_y else weights.T)
    weights = weights.reshape(weights.shape[0], 1, 1, weights.shape[1])
    quant = Quantization((scale,), (0,))
    filters = draft.add_tensor(Tensor(f"{y.name}/filter", weights.shape, y.dtype, quant, weights))
    pixels = x.elements // x.shape[-1]
    draft.become(node, OpKind.CONV_2D, g.ConvAttrs())
    draft.set_inputs(node, [node.inputs[0], filters, -1])
    draft.put_reshape_before(node, variant(x, "row", (1, 1, pixels, x.shape[-1])))
    draft.put_after(node, variant(out, "row", (1, 1, pixels, out.shape[-1])), OpKind.RESHAPE, Attrs())
