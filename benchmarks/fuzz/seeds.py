"""The sound files that mutants are made of: small, many sorts of operators, made by code."""

from __future__ import annotations

import functools
import io
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))

from onnxnets import Qdq, many_operators  # noqa: E402
from samplefiles import mixed  # noqa: E402
from statenets import ring  # noqa: E402

from benchmarks.fuzz.plans import Subject  # noqa: E402
from benchmarks.fuzz.plans import subjects as plans_of  # noqa: E402
from buildtool.graph import types as g  # noqa: E402
from buildtool.graph.tflite.writer import write_model  # noqa: E402
from buildtool.graph.types import Activation, DType, OpKind  # noqa: E402
from buildtool.plan.codec import to_bytes  # noqa: E402
from buildtool.zoo.drawn import NetBuilder  # noqa: E402

BOARD = "cortex-m4"  # that plans are made for


def _plain(net: NetBuilder) -> int:
    x = net.conv(net.input((1, 8, 9, 3)), 4, kernel=(3, 3), stride=(2, 2), same=True)
    x = net.conv(x, 0, kernel=(3, 3), same=True, depth_multiplier=1, activation=Activation.RELU6)
    x = net.pool(OpKind.MAX_POOL_2D, x, (2, 2), (2, 2))
    return net.softmax(net.dense(net.flatten(x), 5))


def _branches(net: NetBuilder) -> int:
    x = net.input((1, 5, 4, 6))
    y = net.elementwise(OpKind.ADD, x, net.conv(x, 6, activation=Activation.RELU))
    first, second = net.split(y, 2, 3)
    y = net.concat([second, first, net.unary(OpKind.LOGISTIC, first)], 3)
    y = net.elementwise(OpKind.SUB, y, net.constant((9,)))
    return net.elementwise(OpKind.MUL, net.prelu(y, (1, 1, 9)), y)


def _moved(net: NetBuilder) -> int:
    x = net.pad(net.input((1, 4, 5, 2)), ((0, 0), (1, 1), (0, 2), (0, 0)))
    x = net.pad(x, ((0, 0), (1, 0), (0, 1), (0, 0)), g.PadMode.REFLECT)  # 7 x 8 x 2
    x = net.move(OpKind.TRANSPOSE, x, (1, 8, 7, 2), g.TransposeAttrs((0, 2, 1, 3)))
    x = net.move(OpKind.RESIZE_NEAREST_NEIGHBOR, x, (1, 5, 6, 2), g.ResizeAttrs(False, True))
    x = net.move(OpKind.RESIZE_BILINEAR, x, (1, 6, 4, 2), g.ResizeAttrs(True, False))
    x = net.transpose_conv(x, 3, kernel=(3, 2), stride=(2, 2), same=True)
    x = net.pool(OpKind.AVERAGE_POOL_2D, x, (2, 3), (1, 2), same=True)
    return net.mean(x, keep_dims=True)


def _edges(net: NetBuilder) -> int:
    x = net.requantize(net.input((1, 4, 4, 3), DType.FLOAT32))
    x = net.unary(OpKind.HARD_SWISH, net.conv(x, 4, kernel=(2, 2)))
    x = net.unary(OpKind.LEAKY_RELU, net.requantize(x))
    return net.dequantize(net.dense(net.flatten(x), 3, activation=Activation.RELU))


def _boxes(net: NetBuilder) -> int:
    """Adds the end of a detector: distances are subtracted from constant anchors."""
    x = net.conv(net.input((1, 4, 4, 3)), 4)
    near, far = net.split(net.move(OpKind.RESHAPE, x, (1, 16, 4)), 2, 2)
    low = net.elementwise(OpKind.SUB, net.constant((1, 16, 2)), near)
    high = net.elementwise(OpKind.ADD, net.constant((16, 1)), far)
    return net.concat([net.elementwise(OpKind.ADD, low, high), net.elementwise(OpKind.SUB, high, low)], 2)


@functools.cache
def tflite() -> list[bytes]:
    """Returns networks of 4 to 30 operators, which together have nearly every kind of operator."""
    made = []
    for i, build in enumerate((_plain, _branches, _moved, _edges, _boxes)):
        net = NetBuilder(i + 1)
        made.append(write_model(net.graph([build(net)])))
    return [*made, mixed()]


@functools.cache
def onnx() -> list[bytes]:
    """Returns two QDQ networks: one of convolutions, one of most other operators."""
    small = Qdq((1, 3, 6, 6))
    y = small.q(small.node("Relu", [small.conv(small.x, 3, 4)]))
    y = small.q(small.node("Add", [y, small.q(small.conv(y, 4, 4))]))
    y = small.q(small.node("GlobalAveragePool", [y]))
    y = small.node("Reshape", [y, small.const([1, 4])])
    plain = small.model([small.q(small.node("MatMul", [y, small.weights((4, 3))]))])
    return [plain.SerializeToString(), many_operators().SerializeToString()]


@functools.cache
def boards() -> list[bytes]:
    """Returns all board files of the repository, and one that extends another one."""
    found = sorted((ROOT / "plugins/buildtool_plugins").glob("*/boards/*.toml"))
    own = b'extends = "cortex-m55"\nstack_bytes = "4K"\nreserved_bytes = 1024\n[memory.sram]\nsize = "64K"\n'
    return [own, *(path.read_bytes() for path in found)]


@functools.cache
def npy() -> list[bytes]:
    """Returns inputs for the first network of `tflite`: quantised arrays, floats, and an archive."""
    made = []
    for array in (np.zeros((1, 8, 9, 3), np.int8), np.ones((8, 9, 3), np.float32), np.zeros(216, np.int8)):
        file = io.BytesIO()
        np.save(file, array)
        made.append(file.getvalue())
    archive = io.BytesIO()
    np.savez(archive, np.zeros(3))
    return [*made, archive.getvalue()]


def _chain(net: NetBuilder, x: int) -> int:
    """Adds MobileNet blocks, which run column by column, and the network's last layers."""
    x = net.conv(x, 6, kernel=(3, 3), stride=(2, 2), same=True)
    for stride in (1, 2):
        y = net.conv(x, 18, activation=Activation.RELU6)
        y = net.conv(y, 18, kernel=(3, 3), stride=(stride, stride), same=True, depth_multiplier=1)
        y = net.conv(y, 6)
        x = net.elementwise(OpKind.ADD, x, y) if stride == 1 else y
    return net.dense(net.flatten(net.pool(OpKind.AVERAGE_POOL_2D, x, (4, 3), (4, 3))), 5)


@functools.cache
def subjects() -> list[Subject]:
    """Returns the networks, boards and options for which plans are made."""
    plain = NetBuilder(11)
    chain = plain.graph([_chain(plain, plain.input((1, 16, 12, 3)))])
    net = NetBuilder(12)
    x = net.conv(net.input((1, 12, 10, 3)), 8, kernel=(3, 3), stride=(2, 2), same=True)
    x = net.conv(ring(net, x, 10), 4, kernel=(3, 3), stride=(2, 2))
    kept = net.graph([net.dense(net.flatten(x), 5)])
    return plans_of(tflite(), (write_model(chain), write_model(kept)))


@functools.cache
def plans() -> list[bytes]:
    """Returns the plans of `subjects`."""
    return [to_bytes(one.plan) for one in subjects()]


@functools.cache
def images() -> list[bytes]:
    """Returns the weight image of the first network of `tflite`."""
    from benchmarks.fuzz.imagecheck import emitted, program

    program()  # once, for all child processes
    return [emitted().image.data]


@functools.cache
def elves() -> list[bytes]:
    """Returns the linked image of the first network of `tflite`."""
    from buildtool.api import handle

    model = {"name": "net.tflite", "data": tflite()[0]}
    return [handle({"kind": "build", "model": model, "board": BOARD})["files"]["net.elf"]]


def darknet() -> list[bytes]:
    """Returns Darknet files of networks, which `analyze` reads without a board."""
    return [path.read_bytes()[:4000] for path in sorted((ROOT / "benchmarks/networks").glob("*.cfg"))]


def problems() -> list[bytes]:
    """Returns arena problems."""
    plain = b"id,lower,upper,size\n1,0,3,16\nb,1,4,32\nc,2,6,8\nd,4,6,64\n"
    return [plain, plain.replace(b"size\n", b"size,alignment\n").replace(b"6\n", b"6,4\n")]


SEEDS: dict[str, Callable[[], list[bytes]]] = {
    "tflite": tflite,
    "onnx": onnx,
    "board": boards,
    "npy": npy,
    "plan": plans,
    "image": images,
    "elf": elves,
    "cfg": darknet,
    "csv": problems,
}
