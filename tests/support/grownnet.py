"""A network as a pull request changes it: before, and with one layer more, which makes its arena larger."""

from __future__ import annotations

from dataclasses import replace

from buildtool.graph.tflite.writer import write_model
from buildtool.zoo.drawn import NetBuilder


def wake_word(*, is_wider: bool) -> bytes:
    """A small network for 32x32 pictures as a .tflite; `is_wider`: `expand` makes 24 channels of 12 first."""
    net = NetBuilder(7, "wake")
    x = net.input((1, 32, 32, 1))
    names = {x: "picture"}
    names[x := net.conv(x, 12, kernel=(3, 3), stride=(2, 2), same=True)] = "stem"
    if is_wider:
        names[x := net.conv(x, 24)] = "expand"
    names[x := net.conv(x, 0, kernel=(3, 3), stride=(2, 2), same=True, depth_multiplier=1)] = "depthwise"
    names[x := net.conv(x, 32)] = "pointwise"
    names[x := net.mean(x)] = "mean"
    names[x := net.dense(x, 4)] = "scores"
    for tensor, name in names.items():
        net.tensors[tensor] = replace(net.tensors[tensor], name=name)
    return write_model(net.graph([x]))
