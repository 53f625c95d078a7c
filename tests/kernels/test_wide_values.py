"""Plain int16 kernels at every value, at the ends of the range and next to each other.

LiteRT judges, or where it lacks the operator TensorFlow Lite Micro. Undefined behaviour traps.
"""

import subprocess
import sys

import litert
import numpy as np
import pytest
from ckernels import run_plain
from graphs import inputs_for
from needs import needs_package

from buildtool.base.errors import ToolError
from buildtool.base.modes import Reference
from buildtool.firmware.run.compare import referrer
from buildtool.graph import types as g
from buildtool.graph.reference import execute
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import Activation, DType, OpKind
from buildtool.zoo.drawn import NO_ATTRS, NetBuilder, WideNetBuilder, quant

EVERY = np.arange(-32768, 32768).astype(np.int16)
PATTERNS = ("random", "extremes", "near zero point")
ROOTS = (OpKind.SQRT, OpKind.RSQRT)  # LiteRT stops below 0


def _check(graph, inputs):
    """The executor and the kernel must give LiteRT's output of a network of one operator."""
    (y,) = graph.outputs
    expected = litert.run_graph(graph, inputs)[y]
    np.testing.assert_array_equal(execute(graph, inputs)[y], expected, strict=True)
    np.testing.assert_array_equal(run_plain(graph, *inputs), expected, strict=True)


FUNCTIONS = (OpKind.ABS, OpKind.NEG, OpKind.EXP, OpKind.LOG, OpKind.GELU, *ROOTS)


@pytest.mark.parametrize("kind", FUNCTIONS)
@pytest.mark.parametrize("scale", [2.0**-12, 3e-5, 0.01])
def test_a_function_of_every_value(kind, scale):
    """With outputs in fine and coarse steps: most of them inside the range, or most of them at its ends."""
    values = EVERY[32768:] if kind in ROOTS else EVERY
    root = {OpKind.SQRT: scale**0.5, OpKind.RSQRT: 1e-5 * scale**-0.5}.get(kind, scale)
    for finer in (0.03, 1.0, 1.7):
        net = WideNetBuilder(1)
        x = net.input((1, 256, len(values) // 256, 1), q=quant(scale))
        attrs = g.GeluAttrs(finer == 1) if kind is OpKind.GELU else NO_ATTRS
        y = net.op(kind, (x,), attrs, quant(root * finer))
        _check(net.graph([y]), [values.reshape(net.shape(x))])


COMPARED = (
    OpKind.EQUAL,
    OpKind.NOT_EQUAL,
    OpKind.LESS,
    OpKind.LESS_EQUAL,
    OpKind.GREATER,
    OpKind.GREATER_EQUAL,
)
PAIRED = (OpKind.MAXIMUM, OpKind.MINIMUM, OpKind.DIV, OpKind.PRELU, *COMPARED)


def _pair(net, kind, a, b, scales):
    """Adds the operator in the finest steps that it may have."""
    if kind is OpKind.PRELU:
        return net.prelu(a, net.shape(b)[1:])
    if kind is OpKind.DIV:
        attrs = g.QuotientAttrs(Activation.RELU6 if scales[0] > 1e-3 else Activation.NONE)
        return net.op(kind, (a, b), attrs, quant(scales[0] / scales[1] / 32767.0))
    return net.pair(kind, a, b)


@pytest.mark.parametrize("kind", PAIRED)
@pytest.mark.parametrize("shape", [(1, 9, 7, 5), (1, 1, 7, 1), (1, 9, 1, 5)])
def test_a_pair_of_extreme_or_close_values(kind, shape):
    for seed, pattern in enumerate(PATTERNS * 2):
        net = WideNetBuilder(seed)
        scales = (0.3, 0.7) if seed % 2 else (2e-4, 5e-5)
        a, b = (net.input(s, q=quant(scale)) for s, scale in zip(((1, 9, 7, 5), shape), scales, strict=True))
        if kind is OpKind.PRELU:
            del net.inputs[1]
        y = _pair(net, kind, *((b, a) if seed % 3 and kind is not OpKind.PRELU else (a, b)), scales)
        graph = net.graph([y])
        inputs = inputs_for(graph, seed, pattern)
        if kind is OpKind.DIV:
            inputs = [np.where(value == 0, 1, value).astype(np.int16) for value in inputs]
        _check(graph, inputs)


@pytest.mark.parametrize("value", [-32768, 32767])
def test_sums_of_extreme_products(value):
    net = WideNetBuilder(5)
    x = net.input((1, 3, 1, 3000))
    layer = net.transpose_conv(x, 5, kernel=(3, 2), stride=(2, 1), same=True)
    _check(net.graph([layer]), [np.full(net.shape(x), value, np.int16)])
    for factor in (1e-9, 1e-3):  # the outputs are all inside the range, or all at its ends
        net = WideNetBuilder(5)
        x, y = net.input((1, 3, 3000), q=quant(1e-4)), net.input((2, 5, 3000), q=quant(1e-4))
        product = net.op(OpKind.BATCH_MATMUL, (x, y), g.MatmulAttrs(False, True), quant(1e-8 / factor))
        _check(net.graph([product]), [np.full(net.shape(t), value, np.int16) for t in (x, y)])


_TFLM = """
import sys
import numpy as np
from tflite_micro.python.tflite_micro import runtime

folder, *inputs = sys.argv[1:]
interpreter = runtime.Interpreter.from_file(folder + "/model.tflite", arena_size=1_000_000)
for position, name in enumerate(inputs):
    interpreter.set_input(np.load(name), position)
interpreter.invoke()
np.save(folder + "/out.npy", interpreter.get_output(0))
"""


def _of_tflm(kind, dtype):
    """Returns a network of one operator, some of whose outputs are at the ends of the range."""
    net = (NetBuilder if dtype is DType.INT8 else WideNetBuilder)(7)
    x = net.input((1, 9, 7, 40))
    if kind is OpKind.SUM:
        return net.graph([net.op(kind, (x,), g.MeanAttrs((1, 3)), net.random_quant(net.scale(x) * 5))])
    y = net.input((1, 1, 7, 40))
    return net.graph([net.op(kind, (x, y), quant=quant(net.scale(x) * net.scale(y) * 4000))])


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        (OpKind.SQUARED_DIFFERENCE, DType.INT16),
        (OpKind.SUM, DType.INT8),
        (OpKind.SUM, DType.INT16),
    ],
)
def test_an_operator_that_litert_lacks_equals_tensorflow_lite_micro_s(kind, dtype, tmp_path):
    needs_package("tflite_micro")
    graph = _of_tflm(kind, dtype)
    drawn = [inputs_for(graph, 3, pattern) for pattern in PATTERNS]
    inputs = [
        np.concatenate([v[:, n::3] for n, v in enumerate(each)], 1) for each in zip(*drawn, strict=True)
    ]
    inputs = [v[:, : graph.tensors[t].shape[1]] for v, t in zip(inputs, graph.inputs, strict=True)]
    (tmp_path / "model.tflite").write_bytes(write_model(graph))
    names = [str(tmp_path / f"{position}.npy") for position in range(len(inputs))]
    for name, value in zip(names, inputs, strict=True):
        np.save(name, value)
    subprocess.run([sys.executable, "-c", _TFLM, str(tmp_path), *names], check=True, timeout=60)
    expected = np.load(tmp_path / "out.npy")
    np.testing.assert_array_equal(execute(graph, inputs)[graph.outputs[0]], expected, strict=True)
    np.testing.assert_array_equal(run_plain(graph, *inputs), expected, strict=True)


def test_a_network_with_a_sum_is_compared_with_our_executor():
    net = NetBuilder(1)
    graph = net.graph([net.mean(net.input((1, 4, 4, 8)), kind=OpKind.SUM)])
    with pytest.raises(ToolError, match="reads int8 and int16 as uint8"):
        referrer(Reference.LITERT, write_model(graph), graph, graph)
