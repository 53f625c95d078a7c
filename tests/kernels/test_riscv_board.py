"""On emulated cores the RISC-V kernels leave the same bytes as the plain ones: from rings, over inputs."""

import dataclasses

import numpy as np
import pytest
from boardcalls import recording
from ckernels import catalogue
from extremecases import windowed as extreme
from groupcases import grouped, spread_depthwise
from hypothesis import given, settings
from hypothesis import strategies as st
from kernelboard import Call, Memory
from kernelcases import convolutions, dense, depthwise, elementwise, means, pools, tables
from litert import run_graph
from placement import run_over, run_parts, run_pieces, run_whole
from riscvcases import deep_convolutions, depthwise_3x3, depthwise_rows, wide
from vectorcases import large_factors

from buildtool.emit.packing import pack
from buildtool.graph.strided import reduction
from buildtool.graph.types import OpKind
from buildtool.plan.schedule.overlap import distance
from buildtool.target.catalogue import select
from buildtool.target.types import Contract

STRATEGIES = {
    "convolution": convolutions(),
    "deep": deep_convolutions(),
    "depthwise": depthwise(),
    "depthwise_3x3": depthwise_3x3(),
    "depthwise_rows": depthwise_rows(),
    "dense": dense(),
    "elementwise": elementwise(),
    "grouped": grouped(),
    "large factors": large_factors(),
    "pool": pools(),
    "spread depthwise": spread_depthwise(),
    "table": tables(),
    "wide": wide(),
    **extreme,
}
ON_VECTORS = {"spread depthwise"}  # kinds of which the scalar kernels serve few
# The vector kernels run on vector registers of either size.
BOARDS = {"riscv": ["qemu-virt-rv32"], "riscv_v": ["qemu-virt-rv32v", "qemu-virt-rv32v256"]}
slow = pytest.mark.slow
families = pytest.mark.parametrize(
    "family", [pytest.param(f, marks=[] if f == "riscv_v" else [pytest.mark.slow]) for f in BOARDS]
)


def collect(strategy, count, use):
    """Calls `use` with so many examples, the same every time."""

    @settings(max_examples=count, derandomize=True, deadline=None, database=None)
    @given(data=strategy)
    def each(data):
        use(data)

    each()


def record(recorder, kind, count):
    """Calls of a kind: whole, from rings, of parts of wider tensors, and with the output over the input."""

    def place(drawn):
        case, seed, columns = drawn
        run_whole(case)
        run_pieces(case, seed, columns=columns)
        run_parts(case, seed)
        run_pieces(case, seed, columns=not columns, wide=True)
        overlap = select(recorder.target, case.graph, case.op).overlap
        apart = None
        if overlap is not Contract.NONE:
            apart = distance(case.graph, case.op, case.op.inputs[0], overlap)
        if apart is not None:
            run_over(case, 0, apart)

    collect(st.tuples(STRATEGIES[kind], st.integers(0, 999), st.booleans()), count, place)


def recorded(family, kinds, count):
    """`count` cases of each kind, as the plain kernels computed them."""
    with recording(BOARDS[family][0], family) as recorder:
        for kind in kinds:
            if family != "riscv_v" and kind in ON_VECTORS:
                continue
            before = recorder.kernels.total()
            record(recorder, kind, count)
            assert recorder.kernels.total() - before > 10, kind
    return recorder


@pytest.mark.slow
@families
def test_the_same_bytes_as_the_plain_kernels_and_scratch_as_the_catalogue_says(family):
    recorder = recorded(family, STRATEGIES, 8)
    kernels = [v for v in recorder.target.kernels if v.sources[0].startswith(family + "/")]
    called = {v.name for v in kernels if v.op != OpKind.MEAN}
    assert set(recorder.kernels) == called, "some kernel was never called"
    # A convolution's scratch is compared with its twin's answer.
    assert sum(r.twin is not None and r.formula > 0 for r in recorder.recorded) > 20
    for board in BOARDS[family]:
        recorder.check("", board)


@slow
@families
@pytest.mark.parametrize("part", range(3))
def test_many_cases(family, part):
    recorder = recorded(family, sorted(STRATEGIES)[part::3], 40)
    for board in BOARDS[family]:
        recorder.check("", board)


def geometry(memory, case):
    """nn_reduce_geometry of a mean."""
    walk = reduction(case.graph, case.op)
    lists = [[n for n, _ in walk.outer], [s for _, s in walk.outer]]
    lists += [[n for n, _ in walk.inner], [s for _, s in walk.inner]]
    padded = (number for values in lists for number in (values + [0] * 6)[:6])
    return memory.words(len(walk.outer), len(walk.inner), *padded)


@families
def test_means_over_any_axes(family):
    with recording(BOARDS[family][0], family) as recorder:
        firmwares = [recorder.firmware("", board) for board in BOARDS[family]]
    symbol = next(name for name in firmwares[0].symbols if name.startswith("nn_mean_s8"))
    calls = []

    def take(case):
        memory = Memory(len(calls))
        constants = memory.put(pack(case.graph, case.op, catalogue()["MEAN"]))
        x = memory.put(np.ascontiguousarray(case.inputs[0]), align=1)
        out = memory.room(int(np.prod(case.out_shape, dtype=int)), align=1)
        calls.append((case, out, Call(symbol, (geometry(memory, case), constants, x, out), memory)))

    collect(means(), 60, take)
    answers = [run_graph(case.graph, case.inputs)[case.op.outputs[0]] for case, _, _ in calls]
    for firmware in firmwares:
        done = firmware.run([call for _, _, call in calls])
        for (case, out, _), left, wanted in zip(calls, done, answers, strict=True):
            np.testing.assert_array_equal(left.array(out, case.out_shape), wanted)
            changed = left.changed()
            assert np.all((changed >= out.offset) & (changed < out.offset + wanted.size))


def test_a_wrong_byte_is_found():
    recorder = recorded("riscv", ["dense"], 4)
    first = recorder.recorded[0]
    wrong = dataclasses.replace(first, wanted=bytes([first.wanted[0] ^ 1]) + first.wanted[1:])
    recorder.recorded = [wrong, *recorder.recorded[1:3]]
    with pytest.raises(AssertionError, match=r"^1 of 3 calls"):
        recorder.check("")
