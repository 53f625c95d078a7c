"""Networks over time with random weights, similar to those that listen to microphones or electrodes.

Signals are images of one row, as Keras exports 1-D convolutions.

    graph = SERIES["causal"]().graph

Each network reads a window of the signal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from buildtool.graph import types as g
from buildtool.graph.geometry import same_pad
from buildtool.graph.types import Activation, Graph, OpKind
from buildtool.zoo.drawn import NetBuilder


@dataclass(frozen=True)
class Series:
    """A network over time.

    `hop`: the rows by which its window usually moves. `about`: a short description.
    """

    graph: Graph
    hop: int
    about: str


def causal() -> Series:
    """Returns a network of causal convolutions over time, dilated by 1, 2, 4 and 8.

    Its dense layer reads only the last moment.
    """
    net = NetBuilder(1, "causal")
    x = net.input((1, 1, 128, 16))
    for dilation in (1, 2, 4, 8):
        pad = g.Pad(0, 0, 2 * dilation, 0)
        x = net.conv(x, 32, kernel=(1, 3), dilation=(1, dilation), pad=pad, activation=Activation.RELU)
    last = g.SliceAttrs((0, 0, 127, 0), (1, 1, 1, 1), (1, 1, 1, 32))
    x = net.flatten(net.move(OpKind.SLICE, x, attrs=last))
    return Series(net.graph([net.softmax(net.dense(x, 8))]), 1, "causal, dilated 1 2 4 8, last step read")


def samples() -> Series:
    """Returns a network of convolutions over the 16,000 samples of a second, without padding."""
    net = NetBuilder(2, "samples")
    x = net.input((1, 1, 16000, 1))
    for channels, kernel in ((16, 80), (24, 13), (32, 13)):
        x = net.conv(x, channels, kernel=(1, kernel), stride=(1, 4), activation=Activation.RELU)
    return Series(net.graph([net.softmax(net.dense(net.mean(x), 12))]), 320, "1-D convolutions on samples")


def ecg() -> Series:
    """Returns a network of separable convolutions over 1,000 samples of two leads.

    It has SAME padding, and poolings.
    """
    net = NetBuilder(3, "ecg")
    x = net.input((1, 1, 1000, 2))
    for number, channels in enumerate((16, 24, 32)):
        x = net.pool(OpKind.MAX_POOL_2D, x, (1, 2), (1, 2)) if number else x
        pad = same_pad(net.shape(x)[1:3], (1, 7), (1, 1))
        x = net.conv(x, 1, kernel=(1, 7), pad=pad, depth_multiplier=1 if number else 8)
        x = net.conv(x, channels, activation=Activation.RELU)
    return Series(net.graph([net.softmax(net.dense(net.mean(x), 5))]), 40, "separable, SAME, poolings")


SERIES: dict[str, Callable[[], Series]] = {"causal": causal, "samples": samples, "ecg": ecg}
