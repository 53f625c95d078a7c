"""Random small networks of operators that the rewrites change: pads, transposes, means, no-ops, constants."""

import numpy as np
from flatfiles import FileTensor, constant
from hypothesis import strategies as st
from samplefiles import Sheet

QUANTS = ((0.5, 0), (0.25, -8), (0.25, 0))  # few, so that neighbours often have the same


class Net(Sheet):
    """A sheet with a current tensor `x`, which the next operator reads."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.x = self.add(FileTensor(shape, scale=QUANTS[0][0], zero=QUANTS[0][1]))
        self.made = [self.x]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.tensors[self.x].shape)

    def then(self, kind: str, inputs, shape, cls: str = "", options=None, quant=None, **kwargs) -> int:
        """Applies an operator to the current tensor. `quant`: the output's (scale, zero)."""
        t = self.tensors[self.x]
        scale, zero = quant or (t.scale, t.zero)
        self.x = self.apply(kind, [self.x, *inputs], shape, cls, options, scale=scale, zero=zero, **kwargs)
        self.made.append(self.x)
        return self.x


def _pad(net: Net, draw) -> None:
    sizes = [[0, 0] for _ in net.shape]
    for d in range(len(net.shape)):
        if draw(st.booleans()) and (len(net.shape) != 4 or d in (1, 2) or draw(st.integers(0, 4)) == 0):
            sizes[d] = [draw(st.integers(0, 2)), draw(st.integers(0, 2))]
    shape = [n + a + b for n, (a, b) in zip(net.shape, sizes, strict=True)]
    quant = draw(st.sampled_from([None, None, None, *QUANTS]))
    net.then("PAD", [net.add(constant(sizes))], shape, quant=quant)


def _conv(net: Net, draw) -> None:
    n, h, w, c = net.shape
    stride = draw(st.integers(1, 2))
    k = draw(st.integers(1, min(3, h, w)))
    same = draw(st.booleans())
    out = [(v + stride - 1) // stride if same else (v - k) // stride + 1 for v in (h, w)]
    options = {"Padding": 0 if same else 1, "StrideH": stride, "StrideW": stride}
    quant = draw(st.sampled_from(QUANTS))
    source = net.x
    if draw(st.booleans()):
        net.then(
            "CONV_2D", [net.weights(3, k, k, c), net.bias(3)], (n, *out, 3), "Conv2DOptions", options, quant
        )
    else:
        net.then("DEPTHWISE_CONV_2D", [net.weights(1, k, k, c, axis=3), net.bias(c)], (n, *out, c),
                 "DepthwiseConv2DOptions", options | {"DepthMultiplier": 1}, quant)  # fmt: skip
    if draw(st.integers(0, 3)) == 0:  # a second reader of the same input
        net.x = source


def _padded_conv(net: Net, draw) -> None:
    _pad(net, draw)
    padded = net.x
    _conv(net, draw)
    if draw(st.integers(0, 3)) == 0:
        net.x = padded
        _conv(net, draw)


def _transpose(net: Net, draw) -> None:
    perm = draw(st.permutations(range(len(net.shape))))
    net.then("TRANSPOSE", [net.add(constant(perm))], [net.shape[p] for p in perm])


def _mean(net: Net, draw) -> None:
    rank = len(net.shape)
    axes = sorted(draw(st.sets(st.integers(0, rank - 1), min_size=1, max_size=rank - 1)))
    keep = draw(st.booleans())
    shape = [1 if i in axes else n for i, n in enumerate(net.shape) if keep or i not in axes]
    quant = draw(st.sampled_from([None, *QUANTS]))
    net.then("MEAN", [net.add(constant(axes))], shape, "ReducerOptions", {"KeepDims": keep}, quant)


def _reshape(net: Net, draw) -> None:
    shape = draw(st.permutations(list(net.shape)))
    net.then("RESHAPE", [net.add(constant(shape))], shape)


def _unit_dimension(net: Net, draw) -> None:
    """Adds or removes a dimension of size 1, as around one-dimensional convolutions."""
    ones = [d for d, n in enumerate(net.shape) if n == 1]
    if ones and len(net.shape) > 1 and (draw(st.booleans()) or len(net.shape) > 3):
        d = draw(st.sampled_from(ones))
        shape = [n for i, n in enumerate(net.shape) if i != d]
        net.then("SQUEEZE", [], shape, "SqueezeOptions", {"SqueezeDims": [d]})
    elif len(net.shape) < 5:
        axis = draw(st.integers(0, len(net.shape)))
        net.then("EXPAND_DIMS", [net.add(constant([axis]))], [*net.shape[:axis], 1, *net.shape[axis:]])


def _slice(net: Net, draw) -> None:
    begin = [draw(st.integers(0, min(1, n - 1))) if draw(st.booleans()) else 0 for n in net.shape]
    shape = [n - b for n, b in zip(net.shape, begin, strict=True)]
    net.then("SLICE", [net.add(constant(begin)), net.add(constant([-1] * len(shape)))], shape)


def _join(net: Net, draw) -> None:
    axis = draw(st.integers(0, len(net.shape) - 1))
    count = draw(st.integers(1, 2))
    shape = [n * count if i == axis else n for i, n in enumerate(net.shape)]
    net.then("CONCATENATION", [net.x] * (count - 1), shape, "ConcatenationOptions", {"Axis": axis})


def _split(net: Net, draw) -> None:
    axis = net.add(constant(draw(st.integers(0, len(net.shape) - 1))))
    net.x = net.apply("SPLIT", [axis, net.x], net.shape, "SplitOptions", {"NumSplits": 1},
                      scale=net.tensors[net.x].scale, zero=net.tensors[net.x].zero)  # fmt: skip
    net.made.append(net.x)


def _table(net: Net, draw) -> None:
    kind = draw(st.sampled_from(["RELU", "RELU6", "QUANTIZE", "HARD_SWISH"]))
    net.then(kind, [], net.shape, quant=draw(st.sampled_from([None, None, *QUANTS])))


def _constant_branch(net: Net, draw) -> None:
    """MUL by an operand that is computed from constants alone."""
    width = net.shape[-1]
    first, second = net.weights(1, width, per_channel=False), net.weights(width, per_channel=False)
    constant_result = net.apply(
        draw(st.sampled_from(["ADD", "SUB", "MUL"])), [first, second], (1, width), scale=0.02
    )
    flat = net.apply("RESHAPE", [constant_result], (width,), scale=0.02)
    net.then("MUL", [flat], net.shape, quant=draw(st.sampled_from(QUANTS)))


def _dead(net: Net, _draw) -> None:
    net.apply("RELU", [net.x], net.shape)


ANY = (
    _pad,
    _unit_dimension,
    _unit_dimension,
    _transpose,
    _mean,
    _reshape,
    _slice,
    _join,
    _split,
    _table,
    _constant_branch,
    _dead,
)


@st.composite
def networks(draw) -> bytes:
    """A network of up to eight operators. Outputs: its last tensor, sometimes others."""
    net = Net((1, draw(st.integers(1, 5)), draw(st.integers(1, 5)), draw(st.integers(1, 3))))
    for _ in range(draw(st.integers(1, 8))):
        choices = ANY + (
            (_conv, _padded_conv, _padded_conv, _padded_conv, _padded_conv) if len(net.shape) == 4 else ()
        )
        if np.prod(net.shape) > 3000 or not net.shape:
            break
        step = draw(st.sampled_from(choices))
        if step is _mean and len(net.shape) < 2:
            continue
        step(net, draw)
    extra = draw(st.sets(st.sampled_from(net.made), max_size=2))
    return net.bytes([0], [net.x, *sorted(extra - {net.x})])
