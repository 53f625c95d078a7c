"""Turns uint8 networks (the scheme before int8) into int8 networks that compute the same values, bit for bit.

It subtracts 128 from the values and zero points of every tensor. Then LiteRT's int8 kernels compute the same
as its uint8 kernels, except for a few operators, which `AsUint8` marks. The inputs and outputs of the network
stay uint8: a QUANTIZE follows each input and precedes each output.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from buildtool.base.errors import UnsupportedError
from buildtool.graph import types as g
from buildtool.graph.fixedpoint import quantize_multiplier
from buildtool.graph.ops import DEFS
from buildtool.graph.quantrules import same_quantization
from buildtool.graph.types import Attrs, DType, Op, OpKind, Pad, Quantization, Tensor

SHIFT = 128
_STORED = Quantization((1.0,), (0,))  # of stored numbers
RECONVERT_HINT = "convert the network again with int8 quantisation, the scheme of TensorFlow 2's converter"


def computes_in_uint8(tensors: Sequence[Tensor], ops: Iterable[Op]) -> bool:
    """Whether the network computes in uint8. It does not if only its inputs and outputs are uint8."""
    for op in ops:
        types = [tensors[t].dtype == DType.UINT8 for t in (*op.inputs, *op.outputs) if t >= 0]
        if any(types) and (op.kind != OpKind.QUANTIZE or all(types)):
            return True
    return False


@dataclass
class Int8Network:
    """An int8 network under construction. Old tensors keep their numbers, and new tensors follow."""

    tensors: list[Tensor]
    ops: list[Op] = field(default_factory=list)
    _twins: dict[int, int] = field(default_factory=dict)  # a uint8 input or output -> its int8 tensor
    _originals: dict[int, Tensor] = field(default_factory=dict)  # all uint8 tensors before the conversion
    # a uint8 filter and its new quantisation -> its int8 tensor
    _filters: dict[tuple[int, Quantization | None], int] = field(default_factory=dict)

    def add(self, tensor: Tensor) -> int:
        """Adds a tensor; returns its number."""
        self.tensors.append(tensor)
        return len(self.tensors) - 1

    def convert(self, ops: Sequence[Op], inputs: Sequence[int], outputs: Sequence[int]) -> None:
        """Adds the int8 forms of `ops`. Raises UnsupportedError for an operator without an int8 form."""
        for t in inputs:  # stored numbers, which need no scale
            if self.tensors[t].quant is None and {op.kind for op in ops if t in op.inputs} == {OpKind.CAST}:
                self.tensors[t] = replace(self.tensors[t], quant=_STORED)
        self._originals = {t: tensor for t, tensor in enumerate(self.tensors) if tensor.dtype == DType.UINT8}
        edges = self._originals.keys() & {*inputs, *outputs}
        filtered = g.ConvAttrs | g.FullyConnectedAttrs  # their second operand is a filter
        operands = {t for op in ops for t in op.inputs[:1] + op.inputs[1 + isinstance(op.attrs, filtered) :]}
        written = {t for op in ops for t in op.outputs}
        for t, tensor in self._originals.items():
            if t in edges:
                if tensor.quant is None:
                    text = "a uint8 network input or output without scale and zero point"
                    raise UnsupportedError(text, tensor=tensor.name, hint=RECONVERT_HINT)
                name = f"{tensor.name}/int8"
                self._twins[t] = self.add(replace(_shift(tensor), name=name, source=None))
            elif t in operands | written:
                self.tensors[t] = _shift(tensor)
        self.ops += [_quantize(t, self._twins[t]) for t in dict.fromkeys(inputs) if t in edges]
        for op in ops:
            try:
                self._convert(op)
            except UnsupportedError as error:
                raise error.at(operator=op.place) from None
        self.ops += [_quantize(self._twins[t], t) for t in dict.fromkeys(outputs) if t in edges & written]

    def _convert(self, op: Op) -> None:
        if not self._originals.keys() & {*op.inputs, *op.outputs}:  # it is int8 already
            self.ops.append(op)
            return
        if op.kind is OpKind.CAST and self.tensors[op.outputs[0]].dtype is DType.FLOAT32:
            self._cast_to_floats(op)
            return
        if DEFS[op.kind].no_uint8:
            raise UnsupportedError(f"{op.kind} in uint8: {DEFS[op.kind].no_uint8}", hint=RECONVERT_HINT)
        inputs = tuple(self._twins.get(t, t) for t in op.inputs)
        outputs = tuple(self._twins.get(t, t) for t in op.outputs)
        attrs = op.attrs
        if isinstance(attrs, g.ConvAttrs | g.FullyConnectedAttrs):
            inputs, attrs = self._shift_filter(op, inputs, attrs)
        elif isinstance(attrs, g.PadAttrs | g.BatchBlockAttrs) and op.kind is not OpKind.MIRROR_PAD:
            attrs = replace(attrs, value=attrs.value - SHIFT)
        elif op.kind is OpKind.AVERAGE_POOL_2D:
            assert isinstance(attrs, g.PoolAttrs)
            # an average may be half-way between two integers
            if math.prod(attrs.kernel) % 2 == 0 or attrs.pad != Pad():
                attrs = g.PoolAsUint8(**vars(attrs))
        elif op.kind is OpKind.RESIZE_BILINEAR:
            attrs = g.ResizeAsUint8(**vars(attrs))
        elif op.kind is OpKind.CONCATENATION:
            inputs = tuple(self._rescale(t, outputs[0]) for t in inputs)
        self.ops.append(replace(op, inputs=inputs, outputs=outputs, attrs=attrs))

    def _cast_to_floats(self, op: Op) -> None:
        """Replaces a CAST to float32 by a DEQUANTIZE.

        The DEQUANTIZE gives the stored numbers, as its input has the scale 1.
        """
        t = self._twins.get(op.inputs[0], op.inputs[0])
        name = f"{self.tensors[t].name}/stored"
        stored = self.add(replace(_shift(replace(self.tensors[t], quant=_STORED)), name=name, source=None))
        self.ops.append(Op(OpKind.RESHAPE, (t,), (stored,), Attrs(), op.index))
        self.ops.append(replace(op, kind=OpKind.DEQUANTIZE, inputs=(stored,)))

    def _shift_filter(self, op: Op, inputs: tuple[int, ...], attrs: Attrs) -> tuple[tuple[int, ...], Attrs]:
        """Returns the inputs and attributes of an operator with an int8 filter in place of its uint8 filter.

        The zero point is subtracted from the weights if the results fit int8. Otherwise 128 is subtracted
        from the weights and from the zero point, and the new attributes allow a zero point.
        """
        weights = self._originals.get(op.inputs[1])
        if weights is None or weights.data is None or weights.quant is None:
            return inputs, attrs  # the consistency check says what is wrong
        if len(weights.quant.scales) != 1:
            raise UnsupportedError(
                "a uint8 filter quantised per channel", tensor=weights.name, hint=RECONVERT_HINT
            )
        centred = weights.data.astype(np.int16) - np.int16(weights.quant.zero_point)
        if centred.min() >= -SHIFT and centred.max() < SHIFT:
            quant = replace(weights.quant, zero_points=(0,))
            filters = replace(weights, dtype=DType.INT8, data=centred.astype(np.int8), quant=quant)
        elif op.kind is OpKind.TRANSPOSE_CONV:
            text = f"a uint8 filter with the zero point {weights.quant.zero_point}"
            raise UnsupportedError(text, tensor=weights.name, hint=RECONVERT_HINT)
        else:
            filters, attrs = _shift(weights), g.WITH_ZERO_POINT[type(attrs)](**vars(attrs))
        # dense layers have the same multiplier in int8 and uint8 kernels
        if isinstance(attrs, g.ConvAttrs) and filters.quant is not None:
            scale = self._scale_in_floats(op, filters.quant.scale)
            filters = replace(filters, quant=replace(filters.quant, scales=(scale,)))
        key = op.inputs[1], filters.quant
        if key not in self._filters:
            self._filters[key] = self.add(filters)
        return (inputs[0], self._filters[key], *inputs[2:]), attrs

    def _scale_in_floats(self, op: Op, scale: float) -> float:
        """Returns a filter scale for which int8 kernels have the same multiplier as LiteRT's uint8 kernels.

        The uint8 kernels multiply the scales in float32 (GetQuantizedConvolutionMultipler). The int8 kernels
        multiply them in double precision (PopulateConvolutionQuantizationParams). The multipliers may differ
        by one unit, which changes results whose first rounding is close to a tie.
        """
        source, out = (self.tensors[t].quant for t in (op.inputs[0], op.outputs[0]))
        if source is None or out is None or not source.scale:
            return scale  # the consistency check says what is wrong
        product = float(np.float32(source.scale) * np.float32(scale))
        target, nearest = quantize_multiplier(product / out.scale), product / source.scale
        candidates = map(float, (nearest, np.nextafter(nearest, 0), np.nextafter(nearest, np.inf)))
        fitting = (s for s in candidates if quantize_multiplier(source.scale * s / out.scale) == target)
        return next(fitting, nearest)

    def _rescale(self, t: int, out: int) -> int:
        """Returns operand `t` of a CONCATENATION in the quantisation of its output `out`.

        Adds a QUANTIZE if that is needed.
        """
        source, result = self.tensors[t], self.tensors[out]
        if same_quantization(source.quant, result.quant) or source.quant is None or result.quant is None:
            return t
        rescaled = self.add(replace(source, name=f"{source.name}/rescaled", quant=result.quant, source=None))
        self.ops.append(Op(OpKind.QUANTIZE, (t,), (rescaled,), g.AsUint8()))
        return rescaled


def _quantize(source: int, target: int) -> Op:
    return Op(OpKind.QUANTIZE, (source,), (target,))


def _shift(tensor: Tensor) -> Tensor:
    """Returns a uint8 tensor as int8. 128 is subtracted from its values and zero points."""
    quant, data = tensor.quant, tensor.data
    if quant is not None:
        quant = replace(quant, zero_points=tuple(z - SHIFT for z in quant.zero_points))
    if data is not None:
        data = (data.view(np.uint8) ^ np.uint8(SHIFT)).view(np.int8)
    return replace(tensor, dtype=DType.INT8, quant=quant, data=data)
