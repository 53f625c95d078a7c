"""Retrains networks: other weights, scales, zero points and names, the same topology."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from buildtool.graph.rewrite import rewrite
from buildtool.graph.rewrite.channels import find_kept
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import BatchBlockAttrs, Graph, Op, OpKind, PadAttrs, Quantization, Tensor

# TFLite fixes the quantisation of their outputs.
_FIXED_KINDS = {OpKind.SOFTMAX, OpKind.LOGISTIC, OpKind.TANH, OpKind.L2_NORMALIZATION, OpKind.LOG_SOFTMAX}
_WEIGHTED = {OpKind.CONV_2D, OpKind.DEPTHWISE_CONV_2D, OpKind.FULLY_CONNECTED}
_ATTEMPTS = 20
_FACTOR, _SHIFT = 1.125, 3  # change of scales (exact in float32), and of zero points


def retrained_model(model: bytes, seed: int = 0) -> bytes:
    return write_model(retrained(read_model(model), seed))


def retrained(graph: Graph, seed: int = 0) -> Graph:
    """Changes every weight, scale, zero point and name that training may change.

    The channels that a plan may remove are the same as before, if one of the drawn networks is so.
    """
    before = _list_removable(graph)
    for attempt in range(_ATTEMPTS):
        twin = _draw_twin(graph, seed + 1000 * attempt)
        if _list_removable(twin) == before:
            break
    return twin


def _list_removable(graph: Graph) -> list[list[bool]]:
    return [mask.tolist() for mask in find_kept(rewrite(graph)).values()]


def _draw_twin(graph: Graph, seed: int) -> Graph:
    random = np.random.default_rng(seed)
    fixed = {t for op in graph.ops if op.kind in _FIXED_KINDS for t in op.outputs}
    tensors = [
        _retrain(tensor, f"retrained/{index}", random, index in fixed)
        for index, tensor in enumerate(graph.tensors)
    ]
    for op in graph.ops:  # a bias has the scale of its input times that of the weights
        if op.kind in _WEIGHTED and len(op.inputs) > 2 and op.inputs[2] >= 0:
            source, weights = (tensors[t].quant for t in op.inputs[:2])
            bias = tensors[op.inputs[2]]
            if source is None or weights is None or bias.quant is None:
                continue
            scales = tuple(float(np.float32(source.scale) * np.float32(s)) for s in weights.scales)
            quant = dataclasses.replace(bias.quant, scales=scales)
            tensors[op.inputs[2]] = dataclasses.replace(bias, quant=quant)
    ops = tuple(_pad_anew(op, graph.tensors, tensors) for op in graph.ops)
    return dataclasses.replace(graph, tensors=tuple(tensors), ops=ops)


def _pad_anew(op: Op, before: Sequence[Tensor], after: Sequence[Tensor]) -> Op:
    """Keeps the padding value of an operator equal to its input's zero point."""
    quants = before[op.inputs[0]].quant, after[op.inputs[0]].quant
    if not isinstance(op.attrs, PadAttrs | BatchBlockAttrs) or not (quants[0] and quants[1]):
        return op
    if op.attrs.value != quants[0].zero_point:
        return op
    return dataclasses.replace(op, attrs=dataclasses.replace(op.attrs, value=quants[1].zero_point))


def _retrain(tensor: Tensor, name: str, random: np.random.Generator, is_fixed: bool) -> Tensor:
    if tensor.quant is None:  # training does not change shapes, axes and paddings
        return dataclasses.replace(tensor, name=name, source=None)
    if tensor.data is None:
        # wider integers have the zero point 0
        quant = tensor.quant if is_fixed or tensor.dtype.size > 1 else _shift(tensor.quant)
        return dataclasses.replace(tensor, name=name, quant=quant, source=None)
    values = tensor.data
    most = 100 if values.dtype == np.int8 else 1000
    data = random.integers(-most, most, values.shape).astype(values.dtype)
    scales = tuple(scale * _FACTOR for scale in tensor.quant.scales)
    quant = dataclasses.replace(tensor.quant, scales=scales)
    return dataclasses.replace(tensor, name=name, quant=quant, data=data, source=None)


def _shift(quant: Quantization) -> Quantization:
    scales = tuple(scale * _FACTOR for scale in quant.scales)
    points = tuple(p - _SHIFT if p > 0 else p + _SHIFT for p in quant.zero_points)
    return dataclasses.replace(quant, scales=scales, zero_points=points)
