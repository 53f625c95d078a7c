"""An operator's geometry: the variables that formulas of kernel catalogues see, with what they mean."""

from __future__ import annotations

from functools import lru_cache
from itertools import chain
from typing import Annotated, NamedTuple

from buildtool.base.plain import fields_with_mark


class Geometry(NamedTuple):
    """What an operator's cost depends on (see `catalogue.features`), without the window's: `MET`."""

    ih: Annotated[int, "rows of the first input"]
    iw: Annotated[int, "its columns; of a dense layer how many vectors it is applied to"]
    cin: Annotated[int, "its channels; of a dense layer the inputs of a vector"]
    oh: Annotated[int, "rows of the first output; in the cost of a call, of the part that it makes"]
    ow: Annotated[
        int, "columns of the first output, likewise; in `scratch` the most columns that a call makes"
    ]
    cout: Annotated[int, "channels of the first output"]
    batch: Annotated[int, "images"]
    kh: Annotated[int, "rows of the window"]
    kw: Annotated[int, "columns of the window"]
    sh: Annotated[int, "rows from window to window"]
    sw: Annotated[int, "columns from window to window"]
    dh: Annotated[int, "rows from tap to tap"]
    dw: Annotated[int, "columns from tap to tap"]
    pt: Annotated[int, "rows of padding above"]
    pl: Annotated[int, "columns of padding on the left"]
    groups: Annotated[int, "groups of input channels; all channels of a depthwise convolution"]
    multiplier: Annotated[int, "outputs of a depthwise convolution for each of its inputs"]
    inputs: Annotated[int, "elements of the first input"]
    operands: Annotated[int, "how many activations go in"]
    outputs: Annotated[int, "elements of all outputs"]
    macs: Annotated[int, "multiply-accumulates, padded taps included"]
    varying: Annotated[
        int, "1 where one tensor decides each byte of the output: others are constants of one element"
    ] = 0
    memory: Annotated[int, "steps that an SVDF keeps; else 0"] = 0
    rank: Annotated[int, "features of an SVDF for each of its units"] = 1
    cells: Annotated[int, "cells of an LSTM; else 0"] = 0
    gates: Annotated[int, "its gates: 4, or 3 without an input gate"] = 0
    peepholes: Annotated[int, "whether its gates see the cell: 1 or 0"] = 0
    normed: Annotated[int, "whether it has layer normalisation"] = 0
    projected: Annotated[int, "whether it has a projection"] = 0
    narrow: Annotated[
        int, "channels of the second operand of an ADD, where it lacks some of the output's; else 0"
    ] = 0
    below: Annotated[int, "channels of the output below those, of such an ADD; else 0"] = 0
    lines: Annotated[
        int, "lines of bytes one behind the other that an operator which copies moves; else 0"
    ] = 0
    scattered: Annotated[int, "bytes that it moves one by one: those of lines with gaps; else 0"] = 0


# Of a window: taps in the input, and outputs all of whose taps are.
MET = {
    "rows_met": "rows of windows that lie in the input, those of all output rows taken together",
    "rows_inside": "output rows whose whole window lies in the input",
    "columns_met": "columns of windows that lie in the input, those of all output columns taken together",
    "columns_inside": "output columns whose whole window lies in the input, in memory one after the other",
}
VARIABLES = fields_with_mark(Geometry, str) | MET  # with their meaning
VECTOR_BITS = "vector_bits"  # a variable of costs alone
THREADS = "threads"  # of the core, for kernels


@lru_cache(maxsize=4096)
def taps_met(outputs: int, inputs: int, kernel: int, stride: int, dilation: int, pad: int) -> tuple[int, int]:
    """Taps of an operator's windows that meet its input along one axis, and outputs all of whose taps do.

    Windows inside the input are counted, not looked at one by one: a file may claim millions of outputs.
    """
    reach = (kernel - 1) * dilation
    first = min(outputs, max(0, -(-pad // stride)))  # the first output whose window begins in the input
    # behind the last one whose window ends in it
    end = max(first, min(outputs, (inputs - 1 - reach + pad) // stride + 1))
    met = (end - first) * kernel
    for i in chain(range(max(0, (pad - reach) // stride), first), range(end, outputs)):
        begin = i * stride - pad
        if begin >= inputs:
            break
        met += max(0, min(kernel, -(-(inputs - begin) // dilation)) - max(0, -(begin // dilation)))
    return met, end - first
