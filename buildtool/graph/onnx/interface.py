"""The order of dimensions that network inputs and outputs have in memory. Images are channels last."""

from buildtool.graph.onnx.context import Context
from buildtool.graph.onnx.windows import NHWC

_IMAGE_OPERATORS = frozenset({"Conv", "ConvTranspose", "MaxPool", "AveragePool"})
_TO_NCHW = (0, 3, 1, 2)
_FOLLOWED = ("QuantizeLinear", "DequantizeLinear", "Identity")


def order_input(ctx: Context, name: str, rank: int) -> tuple[int, ...]:
    """Returns the order of a network input's dimensions in memory. Images are channels last.

    All inputs of 4 dimensions are images. If the network first transposes an image to NCHW, the input already
    is channels last in the file.
    """
    pairs = ctx.following(name, _FOLLOWED)
    readers = [node for _, node in pairs if node.kind not in _FOLLOWED]  # of the quantised input
    if rank == 4:
        own = readers and all(n.kind == "Transpose" and n.integers("perm") == _TO_NCHW for n in readers)
        return (0, 1, 2, 3) if own else NHWC
    if rank == 3 and any(n.kind in _IMAGE_OPERATORS for n in readers):
        return (0, 2, 1)
    return tuple(range(rank))


def order_output(ctx: Context, name: str, rank: int) -> tuple[int, ...]:
    """Returns the order of a network output's dimensions in memory. Images are channels last."""
    maker = ctx.origin(name, _FOLLOWED)
    own = maker is not None and maker.kind == "Transpose" and maker.integers("perm") == NHWC
    # Other images are channels last, unless the file itself transposes them.
    return NHWC if rank == 4 and not own else tuple(range(rank))
