"""Decodes and writes TFLite_Detection_PostProcess, a custom operator. Its options are a FlexBuffer."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from buildtool.base.errors import ModelError
from buildtool.graph.detection import check_numbers
from buildtool.graph.geometry import GeometryError, attributes
from buildtool.graph.ops.detection import CUSTOM
from buildtool.graph.reference.detection import output_shapes, real_values
from buildtool.graph.tflite.fileops import FileOp, Lowering
from buildtool.graph.tflite.opview import OpView
from buildtool.graph.types import DetectionAttrs, DType, Op, OpKind, Source, Tensor

_SCALES = ("y_scale", "x_scale", "h_scale", "w_scale")
_NAMES = (
    *("max_detections", "max_classes_per_detection", "detections_per_class", "use_regular_nms"),
    *("num_classes", "nms_score_threshold", "nms_iou_threshold", *_SCALES),
)
_PER_CLASS = 100  # where the file does not say it, as in LiteRT
_OUTPUTS = 4


def decode(view: OpView) -> None:
    """Decodes the operator (boxes, scores, anchors). As in LiteRT, options determine its outputs' shapes."""
    if len(view.op.inputs) != 3 or len(view.op.outputs) != _OUTPUTS:
        raise ModelError(f"{len(view.op.inputs)} inputs and {len(view.op.outputs)} outputs, expected 3 and 4")
    attrs = _read_attributes(_read_options(view))
    try:
        check_numbers(attrs)
    except GeometryError as error:
        raise ModelError(str(error)) from None
    network, results = view.network, []
    inputs = [view.operand(i) for i in range(3)]
    for t, shape in zip(view.op.outputs, output_shapes(attrs), strict=True):
        raw = view.file.tensor(t)
        if t in network.places:
            raise ModelError("is read before an operator makes it", tensor=raw.name)
        network.places[t] = network.add(Tensor(raw.name, shape, DType.FLOAT32, source=Source(t)))
        results.append(network.places[t])
    view.emit(OpKind.DETECTION_POSTPROCESS, inputs, attrs, results)


def _read_options(view: OpView) -> Mapping[str, float]:
    """Returns the numbers among the operator's options."""
    from flatbuffers import flexbuffers  # few networks need it

    try:
        options = flexbuffers.GetRoot(view.custom_options()).AsMap
        values = {key: options[key] for key in _NAMES if _has(options, key)}
        return {key: float(value.Value) for key, value in values.items() if not value.IsNull}
    except ModelError:
        raise
    except Exception as error:  # the package raises many kinds of errors on damaged bytes
        raise ModelError("the operator's options are not a FlexBuffer of numbers") from error


def _has(options: Any, key: str) -> bool:
    try:
        options[key]
    except KeyError:
        return False
    return True


def _read_attributes(options: Mapping[str, float]) -> DetectionAttrs:
    def single(name: str) -> float:
        return float(np.float32(options.get(name, 0.0)))

    def whole(name: str, default: int = 0) -> int:
        return int(options.get(name, default))

    if not all(np.isfinite(value) and abs(value) < 2**31 for value in options.values()):
        raise ModelError("an option of the operator is not a finite number")
    y, x, h, w = map(single, _SCALES)
    if not all((y, x, h, w)):
        raise ModelError("a scale of the operator is 0")
    return DetectionAttrs(
        classes=whole("num_classes"),
        detections=whole("max_detections"),
        classes_each=whole("max_classes_per_detection"),
        per_class=whole("detections_per_class", _PER_CLASS),
        regular=bool(options.get("use_regular_nms", False)),
        least_score=single("nms_score_threshold"),
        most_overlap=single("nms_iou_threshold"),
        scales=(y, x, h, w),
    )


def write(low: Lowering, op: Op) -> FileOp:
    """Writes the operator. LiteRT's kernel reads floats, so a DEQUANTIZE precedes it for int8 operands."""
    boxes, scores = (_dequantized(low, op, position) for position in (0, 1))
    anchors = low.graph.tensors[op.inputs[2]]
    places = op.inputs[2]
    if anchors.data is not None and anchors.dtype is DType.INT8:
        places = low.add(op, "anchors", real_values(anchors, anchors.data), None)
    inputs = (boxes, scores, places)
    return FileOp("CUSTOM", 1, inputs, op.outputs, custom=CUSTOM, data=_write_options(op))


def _dequantized(low: Lowering, op: Op, position: int) -> int:
    tensor = low.graph.tensors[op.inputs[position]]
    if tensor.dtype is DType.FLOAT32:
        return op.inputs[position]
    model = replace(tensor, dtype=DType.FLOAT32, quant=None)
    real = low.tensor(op, f"float{position}", tensor.shape, model)
    low.ops.append(FileOp("DEQUANTIZE", 2, (op.inputs[position],), (real,), "DequantizeOptions"))
    return real


def _write_options(op: Op) -> bytes:
    from flatbuffers import flexbuffers

    attrs, builder = attributes(op, DetectionAttrs), flexbuffers.Builder()
    with builder.Map():
        builder.Int("max_detections", attrs.detections)
        builder.Int("max_classes_per_detection", attrs.classes_each)
        builder.Int("detections_per_class", attrs.per_class)
        builder.Int("num_classes", attrs.classes)
        builder.Bool("use_regular_nms", attrs.regular)
        builder.Float("nms_score_threshold", attrs.least_score)
        builder.Float("nms_iou_threshold", attrs.most_overlap)
        for name, scale in zip(_SCALES, attrs.scales, strict=True):
            builder.Float(name, scale)
    return bytes(builder.Finish())
