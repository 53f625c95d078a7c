"""How many taps of an operator's windows lie in its input, along one axis."""

from __future__ import annotations

from functools import lru_cache
from itertools import chain


@lru_cache(maxsize=4096)
def taps_met(outputs: int, inputs: int, kernel: int, stride: int, dilation: int, pad: int) -> tuple[int, int]:
    """Taps that meet an input along one axis, and outputs all of whose taps do.

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
