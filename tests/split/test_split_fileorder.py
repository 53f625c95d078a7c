"""The order of a file's operators: branch after branch, with the same results."""

from __future__ import annotations

import numpy as np
import tflite

from buildtool.graph.reference import execute
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import Graph, OpKind
from buildtool.split.backend import in_order
from buildtool.zoo.drawn import NetBuilder


def interleaved() -> Graph:
    """Two branches of two convolutions, the first of each at the beginning, joined."""
    net = NetBuilder(3)
    image = net.input((1, 6, 6, 3))
    first = [net.conv(image, channels, kernel=(3, 3)) for channels in (4, 5)]
    second = [net.conv(one, channels) for one, channels in zip(first, (6, 7), strict=True)]
    return net.graph([net.concat(second)])


def convolutions(data: bytes) -> list[int]:
    """Output channels of the file's convolutions, in its order."""
    graph = read_model(data)
    return [graph.tensors[op.outputs[0]].shape[3] for op in graph.ops if op.kind is OpKind.CONV_2D]


def test_a_branch_ends_before_the_next_one_begins_and_results_are_the_same() -> None:
    given = write_model(interleaved())
    made = in_order(given)
    assert convolutions(given) == [4, 5, 6, 7]
    assert convolutions(made) == [4, 6, 5, 7]
    assert len(made) == len(given)
    assert in_order(made) == made
    image = np.random.default_rng(0).integers(-128, 128, (1, 6, 6, 3)).astype(np.int8)
    first, second = (execute(graph, [image])[graph.outputs[0]] for graph in map(read_model, (given, made)))
    assert np.array_equal(first, second)
    assert first.std() > 0


def test_a_file_with_an_operator_that_nothing_reads_is_left_alone() -> None:
    net = NetBuilder(0)
    image = net.input((1, 4, 4, 2))
    net.conv(image, 3)
    data = write_model(net.graph([net.conv(image, 2)]))
    assert tflite.Model.GetRootAs(data, 0).Subgraphs(0).OperatorsLength() == 2
    assert in_order(data) == data
