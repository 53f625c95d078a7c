"""On emulated cores the RISC-V kernels leave the same bytes as the plain ones: from rings, over inputs."""

import functools

import placement
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernelcases import convolutions, dense, depthwise, elementwise, pools, tables
from placement import run_over, run_pieces, run_whole
from recorded import Tape
from riscvcases import deep_convolutions, depthwise_3x3, wide

from buildtool.errors import ToolError
from buildtool.plan.overlap import distance
from buildtool.target.types import Contract

STRATEGIES = {
    "convolution": convolutions(),
    "deep": deep_convolutions(),
    "depthwise": depthwise(),
    "depthwise_3x3": depthwise_3x3(),
    "dense": dense(),
    "elementwise": elementwise(),
    "pool": pools(),
    "table": tables(),
    "wide": wide(),
}
KINDS = {
    "riscv": ("convolution", "deep", "depthwise_3x3", "dense"),
    "riscv_v": tuple(STRATEGIES),
}


@functools.cache
def tape(family, kind, examples):
    """Cases of a kind: whole, from rings, and the output over the input; never fewer than asked for."""
    made = Tape(family)
    placement.compute, plain = made.record, placement.compute

    @settings(max_examples=examples, derandomize=True, deadline=None, database=None)
    @given(data=st.data())
    def draw(data):
        case = data.draw(STRATEGIES[kind])
        run_whole(case)
        run_pieces(case, data.draw(st.integers(0, 999)), columns=data.draw(st.booleans()))
        variant = made.variant(case.graph, case.op)
        if variant is None or variant.overlap is Contract.NONE:
            return
        apart = distance(case.graph, case.op, case.op.inputs[0], variant.overlap)
        if apart is not None:
            run_over(case, 0, apart)

    try:
        draw()
    finally:
        placement.compute = plain
    return made


def replayed(made, board):
    try:
        return made.replay(board)
    except ToolError as error:
        if "was not found" in error.text:
            pytest.skip(str(error))
        raise


@pytest.mark.parametrize(
    ("family", "board", "kind"),
    [
        *(pytest.param("riscv", "qemu-virt-rv32", kind) for kind in KINDS["riscv"]),
        *(pytest.param("riscv_v", "qemu-virt-rv32v", kind) for kind in KINDS["riscv_v"]),
        *(
            pytest.param("riscv_v", "qemu-virt-rv32v256", kind, marks=pytest.mark.slow)
            for kind in KINDS["riscv_v"]
        ),
    ],
)
def test_the_same_bytes_as_the_plain_kernels(family, board, kind):
    made = tape(family, kind, 40)
    assert len(made.calls) > 20
    assert replayed(made, board) == []


def test_a_wrong_byte_is_found():
    made = tape("riscv", "dense", 40)
    spoiled = Tape("riscv", list(made.calls[:3]))
    region = max(spoiled.calls[1].regions, key=lambda r: r.before != r.after)
    kept, region.after = region.after, bytes(255 - b for b in region.after)
    try:
        assert len(replayed(spoiled, "qemu-virt-rv32")) == 1
    finally:
        region.after = kept
