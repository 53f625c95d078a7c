"""BATCH_MATMUL: transpositions go into it, and one of constant weights is a convolution."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from buildtool.graph.fixedpoint import quantize_multiplier
from buildtool.graph.quantrules import same_quantization
from buildtool.graph.rewrite.draft import Draft, Node, variant
from buildtool.graph.types import (
    Attrs,
    ConvAttrs,
    MatmulAttrs,
    OpKind,
    Quantization,
    Tensor,
    TransposeAttrs,
)


def simplify_matmuls(draft: Draft) -> None:
    """Applies both to every BATCH_MATMUL, in execution order."""
    for node in draft.each(OpKind.BATCH_MATMUL):
        for position in (0, 1):
            _absorb(draft, node, position)
        _convolve(draft, node)


def _absorb(draft: Draft, node: Node, position: int) -> None:
    """Reads an operand before the TRANSPOSE that only swaps its last two dimensions."""
    before, attrs = draft.producer(node.inputs[position]), node.attributes(MatmulAttrs)
    if before is None or not isinstance(before.attrs, TransposeAttrs):
        return
    perm, middle = before.attrs.perm, before.outputs[0]
    swap = (*range(len(perm) - 2), len(perm) - 1, len(perm) - 2)
    quants = (draft.tensors[t].quant for t in (before.inputs[0], middle))
    if len(perm) < 2 or perm != swap or not same_quantization(*quants):
        return
    swapped = {"adj_y": not attrs.adj_y} if position else {"adj_x": not attrs.adj_x}
    node.attrs = replace(attrs, **swapped)
    draft.set_input(node, position, before.inputs[0])
    if draft.private(middle) and not draft.readers(middle):
        draft.remove(before)


def _convolve(draft: Draft, node: Node) -> None:
    """A product with one constant matrix as a convolution of one row of pixels.

    A dense layer it is not: LiteRT requantises those in another way.
    """
    attrs = node.attributes(MatmulAttrs)
    x, y, out = (draft.tensors[t] for t in (*node.inputs, node.outputs[0]))
    if attrs.adj_x or y.data is None or x.is_constant or any(n != 1 for n in y.shape[:-2]):
        return
    if x.quant is None or y.quant is None or out.quant is None:
        return
    scale = _filter_scale(x.quant, y.quant, out.quant)
    if scale is None:
        return
    weights = y.data.reshape(y.shape[-2:])
    weights = np.ascontiguousarray(weights if attrs.adj_y else weights.T)
    weights = weights.reshape(weights.shape[0], 1, 1, weights.shape[1])
    filter_ = draft.add_tensor(
        Tensor(f"{y.name}/filter", weights.shape, y.dtype, Quantization((scale,), (0,)), weights)
    )
    pixels = x.elements // x.shape[-1]
    draft.become(node, OpKind.CONV_2D, ConvAttrs())
    draft.set_inputs(node, [node.inputs[0], filter_, -1])
    draft.put_reshape_before(node, variant(x, "row", (1, 1, pixels, x.shape[-1])))
    draft.put_behind(node, variant(out, "row", (1, 1, pixels, out.shape[-1])), OpKind.RESHAPE, Attrs())


def _filter_scale(x: Quantization, y: Quantization, out: Quantization) -> float | None:
    """The scale with which a convolution's factor is that of the product, None if there is none.

    A product multiplies the scales in float32, a convolution in double precision; so the scale is no
    float32 value, which only files demand.
    """
    if y.zero_point != 0:
        return None
    product = float(np.float32(x.scale) * np.float32(y.scale))
    scale = product / x.scale
    same = quantize_multiplier(x.scale * scale / out.scale) == quantize_multiplier(product / out.scale)
    return scale if same else None
