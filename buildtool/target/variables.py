"""An operator's geometry: the variables of formulas in kernel catalogues, with their meanings."""

from __future__ import annotations

from functools import lru_cache
from itertools import chain
from typing import Annotated, NamedTuple

from buildtool.base.plain import fields_with_mark


class Geometry(NamedTuple):
    """The numbers on which an operator's cost depends (see `catalogue.features`), without the variables in
    `MET`.
    """

    ih: Annotated[int, "rows of the first input"]
    iw: Annotated[int, "columns of the first input; for a dense layer, the number of its input vectors"]
    cin: Annotated[int, "channels of the first input; for a dense layer, the length of an input vector"]
    oh: Annotated[int, "rows of the first output; in the cost of a call, the rows that it computes"]
    ow: Annotated[
        int,
        "columns of the first output; in the cost of a call, the columns that it computes; in `scratch`, the "
        "largest number of columns of a call",
    ]
    cout: Annotated[int, "channels of the first output"]
    batch: Annotated[int, "size of the batch"]
    kh: Annotated[int, "rows of the window"]
    kw: Annotated[int, "columns of the window"]
    sh: Annotated[int, "rows from window to window"]
    sw: Annotated[int, "columns from window to window"]
    dh: Annotated[int, "rows from tap to tap"]
    dw: Annotated[int, "columns from tap to tap"]
    pt: Annotated[int, "rows of padding above; below 0: rows that a convolution leaves out there"]
    pl: Annotated[int, "columns of padding on the left, or below 0"]
    groups: Annotated[int, "groups of input channels; all channels of a depthwise convolution"]
    multiplier: Annotated[int, "output channels of a depthwise convolution for each input channel"]
    inputs: Annotated[int, "elements of the first input"]
    operands: Annotated[int, "number of inputs that are not constants"]
    outputs: Annotated[int, "elements of all outputs"]
    macs: Annotated[int, "multiply-accumulates, padded taps included"]
    varying: Annotated[
        int, "1 if one tensor alone decides the output: the other inputs are constants of one element"
    ] = 0
    memory: Annotated[int, "steps that an SVDF remembers; else 0"] = 0
    rank: Annotated[int, "features of an SVDF for each of its units"] = 1
    cells: Annotated[int, "cells of an LSTM; else 0"] = 0
    gates: Annotated[int, "gates of an LSTM: 4, or 3 without an input gate"] = 0
    peepholes: Annotated[int, "1 if an LSTM's gates read the cell; else 0"] = 0
    normed: Annotated[int, "1 if an LSTM has layer normalisation; else 0"] = 0
    projected: Annotated[int, "1 if an LSTM has a projection; else 0"] = 0
    classes: Annotated[
        int, "scores of each box of a detection network, the background's included; else 0"
    ] = 0
    kept: Annotated[
        int, "the most boxes that stay in a class, if each class suppresses its own boxes; else 0"
    ] = 0
    narrow: Annotated[
        int, "channels of the second operand of an ADD, if it has fewer than the output; else 0"
    ] = 0
    below: Annotated[int, "channels of the output before those, for such an ADD; else 0"] = 0
    lines: Annotated[int, "contiguous lines of bytes that a copying operator moves; else 0"] = 0
    scattered: Annotated[int, "bytes of lines with gaps, which it moves one by one; else 0"] = 0
    expanded: Annotated[
        int, "output channels whose weights are expanded at a time, if they are stored in four bits; else 0"
    ] = 0
    stored: Annotated[int, "bytes of such constants in the weight image; else 0"] = 0
    weights: Annotated[int, "weights of the rising sides of a filter bank of SignalFilterBank; else 0"] = 0


# Variables of a window.
MET = {
    "rows_met": "rows of windows that lie in the input, summed over all output rows",
    "rows_inside": "output rows whose whole window lies in the input",
    "columns_met": "columns of windows that lie in the input, summed over all output columns",
    "columns_inside": "output columns whose whole window lies in the input, contiguous in memory",
}
VARIABLES = fields_with_mark(Geometry, str) | MET  # name -> meaning
VECTOR_BITS = "vector_bits"  # a variable of costs only
SOFT_FLOAT = "soft_float"  # 1 if the core computes float32 in software; a variable of costs only
THREADS = "threads"  # the core's threads, a variable for kernels only


@lru_cache(maxsize=4096)
def taps_met(outputs: int, inputs: int, kernel: int, stride: int, dilation: int, pad: int) -> tuple[int, int]:
    """Returns two counts along one axis: the taps of all windows that lie in the input, and the outputs whose
    taps all lie in the input.

    Windows inside the input are counted by a formula, because a file may have millions of outputs.
    """
    reach = (kernel - 1) * dilation
    first = min(outputs, max(0, -(-pad // stride)))  # the first output whose window begins in the input
    # one after the last output whose window ends in it
    end = max(first, min(outputs, (inputs - 1 - reach + pad) // stride + 1))
    met = (end - first) * kernel
    for i in chain(range(max(0, (pad - reach) // stride), first), range(end, outputs)):
        begin = i * stride - pad
        if begin >= inputs:
            break
        met += max(0, min(kernel, -(-(inputs - begin) // dilation)) - max(0, -(begin // dilation)))
    return met, end - first
