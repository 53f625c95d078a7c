"""On the emulated LX106 its kernels leave the same bytes as the plain ones: from rings, over inputs."""

import numpy as np
import pytest
from boardcalls import recording
from ckernels import catalogue
from kernelboard import Call, Memory
from kernelcases import means
from litert import run_graph
from needs import needs_tool
from paths import TESTS
from test_riscv_board import STRATEGIES, collect, geometry, record

from buildtool.emit.packing import pack
from buildtool.graph.types import OpKind

BOARD, FAMILY = str(TESTS / "support/boards/esp8266-large.toml"), "xtensa_lx106"
ELSEWHERE = {"table"}  # kinds that the plain kernels serve


@pytest.fixture(autouse=True)
def tools():
    needs_tool("xtensa-lx106-elf-gcc")
    needs_tool("qemu-system-xtensa")


def recorded(kinds, count):
    """`count` cases of each kind, as the plain kernels computed them."""
    with recording(BOARD, FAMILY) as recorder:
        for kind in kinds:
            before = recorder.kernels.total()
            record(recorder, STRATEGIES[kind], count)
            assert recorder.kernels.total() - before > 10, kind
    return recorder


@pytest.mark.slow
def test_the_same_bytes_as_the_plain_kernels_and_scratch_as_the_catalogue_says():
    recorder = recorded(sorted(STRATEGIES.keys() - ELSEWHERE), 12)
    kernels = [v for v in recorder.target.kernels if v.sources[0].startswith(FAMILY + "/")]
    called = {v.name for v in kernels if v.op != OpKind.MEAN}
    assert set(recorder.kernels) == called, "some kernel was never called"
    assert sum(r.twin is not None and r.formula > 0 for r in recorder.recorded) > 20
    recorder.check("")


@pytest.mark.slow
def test_means_over_any_axes():
    with recording(BOARD, FAMILY) as recorder:
        firmware = recorder.firmware("")
    symbol = next(name for name in firmware.symbols if name.startswith("nn_mean_s8"))
    calls = []

    def take(case):
        memory = Memory(len(calls))
        constants = memory.put(pack(case.graph, case.op, catalogue()["MEAN"]))
        x = memory.put(np.ascontiguousarray(case.inputs[0]), align=1)
        out = memory.room(int(np.prod(case.out_shape, dtype=int)), align=1)
        calls.append((case, out, Call(symbol, (geometry(memory, case), constants, x, out), memory)))

    collect(means(), 60, take)
    answers = [run_graph(case.graph, case.inputs)[case.op.outputs[0]] for case, _, _ in calls]
    done = firmware.run([call for _, _, call in calls])
    for (case, out, _), left, wanted in zip(calls, done, answers, strict=True):
        np.testing.assert_array_equal(left.array(out, case.out_shape), wanted)
        changed = left.changed()
        assert np.all((changed >= out.offset) & (changed < out.offset + wanted.size))
