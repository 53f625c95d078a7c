"""Windows of convolutions and pools over an input image: kernel, strides, dilations, paddings, output."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from buildtool.base.errors import ModelError, UnsupportedError
from buildtool.graph.geometry import dilated_extent, same_padding
from buildtool.graph.onnx.file import Node
from buildtool.graph.onnx.values import ActivationValue
from buildtool.graph.types import Pad

Pair = tuple[int, int]
NHWC = (0, 2, 3, 1)
_MOST = 1 << 20  # upper limit for a stride, dilation, kernel size or padding


@dataclass(frozen=True)
class Window:
    """The windows of a convolution or pool: kernel, strides and so on, each as (rows, columns).

    `out` is the output's size. `pad` is the padding that windows really meet, `pad_in_file` that in the file.
    """

    kernel: Pair
    stride: Pair
    dilation: Pair
    pad: Pad
    out: Pair
    pad_in_file: Pad


def as_image(x: ActivationValue, text: str) -> tuple[ActivationValue, int]:
    """Returns (`x` as an NCHW tensor, its number of spatial dimensions in the file, 1 or 2).

    An (N, C, L) tensor gets one row; its bytes stay the same. `text` names the operator in errors.
    """
    count = len(x.shape) - 2
    if count not in (1, 2):
        raise UnsupportedError(f"{text} over {count} spatial dimensions", hint="1 or 2 are supported")
    n, c, *sides = x.shape
    return replace(x, shape=(n, c, *(1,) * (2 - count), *sides)), count


def pair(node: Node, name: str, count: int, default: int = 1) -> Pair:
    """Returns an attribute as (rows, columns). With one spatial dimension, the number for rows is 1."""
    numbers = node.integers(name) or (default,) * count
    if len(numbers) != count or not all(1 <= n <= _MOST for n in numbers):
        raise ModelError(f"{name} {list(numbers)} for {count} spatial dimensions")
    return (numbers[0], numbers[1]) if count == 2 else (1, numbers[0])


def paddings(node: Node, count: int) -> tuple[Pair, Pair]:
    """Returns (before, after) from the attribute `pads`, each as (rows, columns)."""
    pads = node.integers("pads") or (0,) * (2 * count)
    if len(pads) != 2 * count or not all(0 <= n <= _MOST for n in pads):
        raise ModelError(f"pads {list(pads)} for {count} spatial dimensions")
    return ((pads[0], pads[1]), (pads[2], pads[3])) if count == 2 else ((0, pads[0]), (0, pads[1]))


def window(node: Node, sizes: Pair, kernel: Pair, count: int) -> Window:
    """Returns the window of a convolution or pool over an input image of size `sizes`.

    `count` is the number of spatial dimensions in the file.
    """
    stride, dilation = pair(node, "strides", count), pair(node, "dilations", count)
    extent = [dilated_extent(k, d) for k, d in zip(kernel, dilation, strict=True)]
    before, after = _find_pads(node, sizes, extent, stride, count)
    ceil = bool(node.integer("ceil_mode", 0))
    out: list[int] = []
    used: list[int] = []
    for n, e, s, b, a in zip(sizes, extent, stride, before, after, strict=True):
        span = n + b + a - e
        if span < 0:
            raise ModelError(f"a window of {e} over {n + b + a} padded elements")
        m = (-(-span // s) if ceil else span // s) + 1
        if ceil and (m - 1) * s >= n + b:  # a window that starts behind the input image does not count
            m -= 1
        out.append(m)
        used.append(max(0, (m - 1) * s + e - n - b))
    pad = Pad(before[0], used[0], before[1], used[1])
    in_file = Pad(before[0], after[0], before[1], after[1])
    return Window(kernel, stride, dilation, pad, (out[0], out[1]), in_file)


def _find_pads(
    node: Node, sizes: Pair, extent: Sequence[int], stride: Pair, count: int
) -> tuple[Sequence[int], Sequence[int]]:
    mode = node.text("auto_pad", "NOTSET")
    if mode == "NOTSET":
        return paddings(node, count)
    if mode == "VALID":
        return (0, 0), (0, 0)
    if mode not in ("SAME_UPPER", "SAME_LOWER"):
        raise ModelError(f"auto_pad {mode[:20]} does not exist")
    if node.integer("ceil_mode", 0):
        raise UnsupportedError("auto_pad together with ceil_mode", hint="export with explicit pads")
    less, more = zip(
        *(same_padding(*window)[1:] for window in zip(sizes, extent, stride, strict=True)), strict=True
    )
    return (less, more) if mode == "SAME_UPPER" else (more, less)
