"""Networks that keep state by SVDF and LSTM, and LiteRT run on a sequence of inputs.

outputs = sequence(write_model(graph), inputs)   # a list of outputs for every invoke
"""

from collections.abc import Sequence

import numpy as np
from graphs import inputs_for
from litert import interpreter

from buildtool.graph.reference import execute, next_states
from buildtool.graph.types import Activation, Graph, OpKind, TransposeAttrs
from buildtool.zoo.drawn import NetBuilder, WideNetBuilder
from buildtool.zoo.drawn_state import lstm, svdf

CELL_BITS = range(9, 16)


def drawn_svdf(seed: int) -> Graph:
    net = NetBuilder(seed, "svdf")
    batch, inputs, units, rank, memory = (int(net.rng.integers(1, n)) for n in (3, 40, 10, 4, 14))
    x = net.input((batch, inputs))
    y = svdf(net, x, units, rank=rank, memory=memory, bias=seed % 3 > 0)
    return net.graph([y])


def drawn_lstm(seed: int) -> Graph:
    """Returns a network of one LSTM, with any of its parts, of any geometry that the reference runs."""
    net = NetBuilder(seed, "lstm")
    batch, steps, inputs, cells = (int(net.rng.integers(1, n)) for n in (4, 5, 20, 14))
    major, gated, peepholes, normed, projected, clipped = (bool(net.rng.integers(2)) for _ in range(6))
    outputs = int(net.rng.integers(1, 14)) if projected else 0
    if peepholes and outputs:
        outputs = min(outputs, cells) if batch == 1 or not major else cells
    x = net.input((steps, batch, inputs) if major else (batch, steps, inputs))
    y = lstm(
        net,
        x,
        cells,
        outputs=outputs,
        time_major=major,
        input_gate=gated,
        peepholes=peepholes,
        normed=normed,
        cell_bits=CELL_BITS[seed % len(CELL_BITS)],
        clipped=clipped,
    )
    return net.graph([y])


def drawn_wide_lstm(seed: int) -> Graph:
    """Returns a network of one LSTM of int16, of any geometry."""
    net = WideNetBuilder(seed, "wide_lstm")
    batch, steps, inputs, cells = (int(net.rng.integers(1, n)) for n in (4, 5, 20, 14))
    major, clipped = (bool(net.rng.integers(2)) for _ in range(2))
    x = net.input((steps, batch, inputs) if major else (batch, steps, inputs))
    bits = CELL_BITS[seed % len(CELL_BITS)]
    return net.graph([lstm(net, x, cells, time_major=major, cell_bits=bits, clipped=clipped)])


def keyword_svdf() -> Graph:
    """A keyword network like TFLM's: one frame per invoke, SVDF and dense layers alternately."""
    net = NetBuilder(3, "keyword_svdf")
    x = net.input((1, 32))
    for _ in range(2):
        x = net.dense(svdf(net, x, 16, memory=8), 12)
    x = svdf(net, x, 8, rank=2, memory=16)
    return net.graph([net.softmax(net.dense(x, 3))])


def wake_word() -> Graph:
    """A wake-word network: convolutions over a few frames of features, then SVDF layers."""
    net = NetBuilder(4, "wake_word")
    x = net.input((1, 6, 20, 1))
    x = net.conv(x, 8, kernel=(3, 3), stride=(2, 2), same=True, activation=Activation.RELU)
    x = net.conv(x, 0, kernel=(3, 3), same=True, depth_multiplier=1, activation=Activation.RELU)
    x = svdf(net, net.flatten(net.mean(x, (1,))), 20, memory=10)
    x = svdf(net, x, 8, rank=2, memory=5)
    return net.graph([net.unary(OpKind.LOGISTIC, net.dense(x, 2))])


def digit_rows() -> Graph:
    """A smaller version of TFLM's MNIST network: an LSTM over the rows of an image, then a dense layer."""
    net = NetBuilder(5, "digit_rows")
    x = lstm(net, net.input((1, 14, 14)), 20)
    return net.graph([net.softmax(net.dense(net.flatten(x), 10))])


def wide_digit_rows() -> Graph:
    """The same of int16, with a convolution before the LSTM."""
    net = WideNetBuilder(5, "wide_digit_rows")
    x = net.conv(net.input((1, 14, 1, 14)), 16)
    x = lstm(net, net.move(OpKind.RESHAPE, x, (1, 14, 16)), 20, clipped=True)
    return net.graph([net.dense(net.flatten(x), 10)])


def inputs_for_steps(graph: Graph, steps: int, seed: int) -> list[np.ndarray]:
    """An input for each invoke: random values and extremes alternately."""
    patterns = ("random", "extremes")
    return [inputs_for(graph, seed + step, patterns[step % 2])[0] for step in range(steps)]


def sequence(model: bytes, inputs: Sequence[np.ndarray]) -> list[list[np.ndarray]]:
    """Returns LiteRT's outputs of each invoke. One interpreter runs them all, so it keeps the states."""
    engine = interpreter(model)
    source, outputs = engine.get_input_details()[0]["index"], engine.get_output_details()
    answers = []
    for value in inputs:
        engine.set_tensor(source, value)
        engine.invoke()
        answers.append([np.array(engine.get_tensor(detail["index"])) for detail in outputs])
    return answers


def expected(graph: Graph, inputs: Sequence[np.ndarray]) -> list[list[np.ndarray]]:
    held, answers = None, []
    for value in inputs:
        values = execute(graph, [value], held)
        held = next_states(graph, values)
        answers.append([values[t] for t in graph.outputs])
    return answers


def every_part() -> Graph:
    """LSTMs with every optional part, then SVDFs of odd sizes."""
    net = NetBuilder(6, "every_part")
    x = net.input((1, 3, 11))
    x = lstm(net, x, 9, peepholes=True, clipped=True, cell_bits=15)
    x = lstm(net, x, 7, outputs=10, input_gate=False, normed=True, cell_bits=12)
    x = lstm(net, x, 10, outputs=6, normed=True, peepholes=True, cell_bits=9)
    x = lstm(net, net.move(OpKind.TRANSPOSE, x, (3, 1, 6), TransposeAttrs((1, 0, 2))), 5, time_major=True)
    flat = net.flatten(net.move(OpKind.TRANSPOSE, x, (1, 3, 5), TransposeAttrs((1, 0, 2))))
    y = svdf(net, svdf(net, flat, 7, rank=3, memory=5), 6, memory=1, bias=False)
    return net.graph([svdf(net, y, 5, rank=2, memory=8)])
