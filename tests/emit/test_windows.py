"""The C interface of a network on a moving window, beside LiteRT on whole windows."""

from ctypes import CDLL, byref, c_uint8, c_void_p, string_at

import numpy as np
from litert import run_graph
from programs import said

from buildtool.base.session import Session
from buildtool.fronts.cli.main import run
from buildtool.graph.tflite.writer import write_model
from buildtool.zoo.drawn import NetBuilder

HOP, ROWS, ROW_BYTES = 3, 20, 6


def _network():
    net = NetBuilder(5)
    x = net.conv(net.input((1, ROWS, 2, 3)), 6, kernel=(3, 1), same=True)
    y = net.conv(x, 1, kernel=(3, 1), depth_multiplier=1, same=True)
    return net.graph([net.dense(net.mean(y), 5), y])


class _Interface:
    """The network's C, as the host's own compiler makes it, and the right window beside it."""

    def __init__(self, folder):
        self.graph = _network()
        (folder / "net.tflite").write_bytes(write_model(self.graph))
        words = ["--board", "host", "--hop", str(HOP), "--bundle", "--out", str(folder / "made")]
        assert run(["build", str(folder / "net.tflite"), *words], Session()) == 0
        made = folder / "made"
        sources = [*made.glob("kernels/r*/*.c"), *made.glob("networks/net/*.[cS]")]
        include = ("-I", made / "kernels" / "include", "-I", made / "networks" / "net")
        said(
            made / "networks" / "net", "gcc", "-fPIC", "-shared", *include, *sources, "-o", folder / "net.so"
        )
        self.c = CDLL(str(folder / "net.so"))
        self.c.net_input.restype = self.c.net_output.restype = c_void_p
        self.arena = np.zeros(1 << 16, np.uint8)

    def init(self):
        begin = self.arena.ctypes.data + -self.arena.ctypes.data % 16
        weights = byref(c_uint8.in_dll(self.c, "net_weights"))
        return self.c.net_init(c_void_p(begin), self.arena.size - 16, weights)

    def fill(self, window=None):
        zero_point = self.graph.tensors[self.graph.inputs[0]].quant.zero_point
        self.window = np.full(ROWS * ROW_BYTES, zero_point, np.int8) if window is None else window

    def push(self, rows, count=None):
        status = self.c.net_push(
            c_void_p(rows.ctypes.data), len(rows) // ROW_BYTES if count is None else count
        )
        self.window = self.window if status else np.concatenate([self.window, rows])[-ROWS * ROW_BYTES :]
        return status

    def check(self):
        right = run_graph(self.graph, [self.window.reshape(1, ROWS, 2, 3)])
        for i, t in enumerate(self.graph.outputs):
            assert string_at(self.c.net_output(i), right[t].size) == right[t].tobytes()


def test_rows_that_wait_belong_to_their_window(tmp_path):
    """What was pushed before an init, a reset or a reset_to is no part of the next window."""
    net, draw = _Interface(tmp_path), np.random.default_rng(1)
    rows = draw.integers(-128, 128, (40, HOP * ROW_BYTES)).astype(np.int8)
    window = draw.integers(-128, 128, ROWS * ROW_BYTES).astype(np.int8)
    begins = [
        (net.init, None),
        (net.c.net_reset, None),
        (lambda: net.c.net_reset_to(c_void_p(window.ctypes.data)), window),
        (net.init, None),
    ]
    assert net.c.net_push(c_void_p(rows.ctypes.data), HOP) != 0, "before init"
    for begin, filling in begins:
        assert begin() == 0
        net.fill(filling)
        net.check()
        refused = [net.push(rows[0], count) for count in (0, -HOP, HOP + 1, -(2**31))]
        assert all(refused)
        for first, hops in ((0, 1), (1, 2), (3, 12)):
            assert net.push(rows[first : first + hops].reshape(-1)) == 0
            if first != 1:  # these two wait for the next push
                assert net.c.net_invoke() == 0
                net.check()
        assert net.push(rows[20:22].reshape(-1)) == 0
