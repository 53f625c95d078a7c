"""Float islands in firmware, on the host and on emulated boards with and without a float unit."""

import pytest
from boardruns import file_of
from islands import FAMILIES, Islands, every_operator, values
from namednets import conv

from buildtool.api import handle
from buildtool.api.requests import parse
from buildtool.base.session import Session
from buildtool.emit.sources import emit
from buildtool.firmware.planned import plan_model
from buildtool.firmware.run.compare import difference
from buildtool.firmware.run.execute import build_temporarily, execute
from buildtool.fronts.texts import validation
from buildtool.graph import reference
from buildtool.graph import types as g
from buildtool.graph.types import Activation, DType, OpKind


def normalised():
    """A LayerNormalization between two convolutions, as the converter leaves it."""
    net = Islands(1, "normalised")
    y = conv(net, net.input((1, 12, 12, 3)), 8)
    return net.graph([conv(net, net.quantize(net.layer_norm(net.dequantize(y)), 0.03, 4), 6)])


def curved():
    """exp and tanh of float32, and a softmax as a float32 output."""
    net = Islands(2, "curved")
    x = net.dequantize(conv(net, net.input((1, 9, 9, 3)), 8))
    y = net.unary(OpKind.TANH, net.pair(OpKind.MUL, x, net.normal(8)))
    integers = conv(net, net.quantize(net.unary(OpKind.EXP, y), 0.012, -100), 6)
    mean = net.reduced(OpKind.MEAN, x, (1, 2), keep=False)
    return net.graph([integers, net.unary(OpKind.SOFTMAX, mean, g.SoftmaxAttrs())])


def hello_world():
    """A float network: TFLM's example of a sine has these layers."""
    net = Islands(3, "hello")
    y = net.input((1, 1), DType.FLOAT32)
    for n in (16, 16, 1):
        operands = [y, net.normal(n, net.shape(y)[1]), net.normal(n)]
        activation = Activation.RELU if n > 1 else Activation.NONE
        y = net.op(OpKind.FULLY_CONNECTED, operands, g.FullyConnectedAttrs(activation))
    return net.graph([y])


def validate(graph, board, folder, **more):
    request = {"kind": "validate", "model": file_of(graph, folder), "board": board, "options": {}}
    return handle({**request, "reference": "litert", "tensors": True, **({"inputs": 2, "seed": 3} | more)})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("network", "board"),
    [(normalised, "qemu-virt-rv32"), (hello_world, "cortex-m4")],
)
def test_exact_islands_equal_litert_to_the_bit(network, board, tmp_path):
    answer = validate(network(), board, tmp_path)
    assert answer["exact"] and answer["reference"]["curves"] is None, answer["first_difference"]
    assert validation.text(answer).endswith("to the bit")


@pytest.mark.slow
def test_curves_are_within_their_bound_and_the_text_says_so(tmp_path):
    answer = validate(curved(), "cortex-m4", tmp_path, inputs=4)
    curves = answer["reference"]["curves"]
    assert answer["within_bounds"] and curves["operators"] == 3, answer["first_difference"]
    assert 0 < curves["largest_ulp"] <= curves["bound_ulp"]
    assert curves["values"] > 1000 and curves["largest_step"] <= 2
    assert f"{curves['largest_ulp']} of at most {curves['bound_ulp']} units" in validation.text(
        answer
    ).replace("\n  ", " ")


@pytest.mark.slow
@pytest.mark.parametrize("board", ["cortex-m55", "qemu-virt-rv32"])
def test_every_operator_in_firmware_has_the_executors_bits(board, tmp_path):
    """Also for zeros, subnormal and infinite numbers and NaN. LiteRT's curves are not compared here."""
    shape = (1, 5, 4, 6)
    request = parse(
        {"kind": "build", "model": file_of(every_operator(*FAMILIES, shape=shape), tmp_path), "board": board}
    )
    planned = plan_model(request.model, request.target, request.options, Session())
    sources = emit(planned.graph, planned.plan, planned.target, planned.model.name, planned.session)
    inputs = [[values(shape, seed, share)] for seed, share in ((4, 0.2), (5, 0.6))]
    with build_temporarily(planned, sources, trace=True) as image:
        outcome = execute(planned, image, inputs, trace=True)
    for number, given in enumerate(inputs):
        right = reference.execute(planned.graph, given)
        wrong = difference(planned.graph, number, outcome.traces[number], right, outcome.partial)
        assert not wrong, wrong[0].json()
        assert len(outcome.traces[number]) > 80
