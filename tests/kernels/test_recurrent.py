"""SVDF and LSTM, plain and with a model of the DSP extension: each step equals the reference."""

import functools
from ctypes import CDLL, byref, c_void_p

import numpy as np
import pytest
from boardcalls import collect
from ckernels import compile_library, constants, geometry
from hypothesis import strategies as st
from loaded import load_target
from paths import KERNELS
from recurrentnets import drawn_lstm, drawn_svdf, inputs_for_steps

from buildtool.emit.packing import pack
from buildtool.graph.reference import execute, initial_states, next_states
from buildtool.graph.types import Graph
from buildtool.target.catalogue import scratch_bytes, select

GUARD = 64  # bytes after everything that a kernel writes
BOARDS = {"host": ("reference", ""), "cortex-m4": ("cortex_m_dsp", "_dsp")}


@functools.cache
def _library(family: str, ending: str) -> CDLL:
    return compile_library([KERNELS / family / f"nn_{name}_s8{ending}.c" for name in ("svdf", "lstm")])


def _room(size: int) -> np.ndarray:
    """Returns memory that is aligned to 16 bytes, with a guard after it."""
    return constants(bytes([0x55]) * (size + GUARD))


def _address(array: np.ndarray) -> c_void_p:
    return c_void_p(array.ctypes.data)


def _steps_equal(board: str, graph: Graph, seed: int) -> bool:
    """Compares four steps; returns whether the board's family has a kernel for the operator."""
    op = graph.ops[0]
    variant = select(load_target(board), graph, op)
    family, ending = BOARDS[board]
    if not variant.sources[0].startswith(family):
        return False
    kernel = getattr(_library(family, ending), variant.symbol)
    kernel.restype = None
    block, scratch = constants(pack(graph, op, variant)), _room(scratch_bytes(variant, graph, op))
    state_values = initial_states(graph)
    states = [_room(value.nbytes) for value in state_values]
    for state, value in zip(states, state_values, strict=True):
        state[:-GUARD] = value.reshape(-1).view(np.uint8)
    result = graph.tensors[op.outputs[0]]
    for value in inputs_for_steps(graph, 4, seed):
        values = execute(graph, [value], state_values)
        state_values, out = next_states(graph, values), _room(result.size)
        arguments = [byref(geometry(graph, op)), *map(_address, (block, value, *states, out))]
        kernel(*arguments, *([_address(scratch)] if variant.scratch != "0" else []))
        np.testing.assert_array_equal(out[: result.size].view(np.int8), values[op.outputs[0]].reshape(-1))
        for state, expected in zip(states, state_values, strict=True):
            np.testing.assert_array_equal(state[:-GUARD], expected.reshape(-1).view(np.uint8))
        for memory in (out, scratch, *states):
            assert (memory[-GUARD:] == 0x55).all()
    return True


@pytest.mark.slow
@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize("drawn", [drawn_svdf, drawn_lstm])
def test_every_step_equals_the_reference(board, drawn):
    served = 0

    def run(seed):
        nonlocal served
        served += _steps_equal(board, drawn(seed), seed)

    collect(st.integers(0, 2**31 - 1), 16, run)
    assert served > 4
