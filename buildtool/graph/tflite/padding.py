"""TFLite's SAME and VALID as explicit rows and columns (tensorflow/lite/kernels/padding.h)."""

from __future__ import annotations

from buildtool.base.errors import ModelError
from buildtool.graph.geometry import dilated
from buildtool.graph.tflite.schema import tflite
from buildtool.graph.types import Pad


def explicit_pad(
    padding: int,
    size: tuple[int, int],
    kernel: tuple[int, int],
    stride: tuple[int, int],
    dilation: tuple[int, int] = (1, 1),
) -> Pad:
    """Padding of a window over `size` (rows, columns); an odd row or column goes to the bottom, right.

    With e the kernel's dilated extent: SAME makes ceil(size / stride) outputs, VALID
    floor((size + stride - e) / stride); padded in all: max(0, (outputs - 1) * stride + e - size).
    """
    if padding not in (tflite.Padding.SAME, tflite.Padding.VALID):
        raise ModelError(f"padding {padding} is neither SAME nor VALID")
    if min(stride) < 1 or min(dilation) < 1 or min(kernel) < 1:
        raise ModelError(f"stride {list(stride)}, dilation {list(dilation)} or kernel {list(kernel)} below 1")
    totals: list[int] = []
    for n, k, s, d in zip(size, kernel, stride, dilation, strict=True):
        extent = dilated(k, d)
        outputs = (n + s - 1) // s if padding == tflite.Padding.SAME else (n + s - extent) // s
        totals.append(max(0, (outputs - 1) * s + extent - n))
    rows, cols = totals
    return Pad(rows // 2, rows - rows // 2, cols // 2, cols - cols // 2)
