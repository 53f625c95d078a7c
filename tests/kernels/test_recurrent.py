"""SVDF and LSTM, plain and with a model of the DSP extension: each step equals the reference."""

import functools
import subprocess
import sys
from ctypes import CDLL, byref, c_void_p

import numpy as np
import pytest
from boardcalls import collect
from ckernels import compile_library, constants, geometry
from hypothesis import strategies as st
from loaded import load_target
from needs import needs_package
from paths import KERNELS
from recurrentnets import drawn_lstm, drawn_svdf, drawn_wide_lstm, expected, inputs_for_steps

from buildtool.emit.packing import pack
from buildtool.graph.reference import execute, initial_states, next_states
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import Graph
from buildtool.target.catalogue import scratch_bytes, select

GUARD = 64  # bytes after everything that a kernel writes
BOARDS = {"host": ("reference", ""), "cortex-m4": ("cortex_m_dsp", "_dsp")}


@functools.cache
def _library(family: str, ending: str) -> CDLL:
    wide = [KERNELS / "reference" / "nn_lstm_s16.c"]
    return compile_library(wide + [KERNELS / family / f"nn_{name}_s8{ending}.c" for name in ("svdf", "lstm")])


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
        right = values[op.outputs[0]].reshape(-1)
        np.testing.assert_array_equal(out[: result.size].view(right.dtype), right)
        for state, wanted in zip(states, state_values, strict=True):
            np.testing.assert_array_equal(state[:-GUARD], wanted.reshape(-1).view(np.uint8))
        for memory in (out, scratch, *states):
            assert (memory[-GUARD:] == 0x55).all()
    return True


_TFLM = """
import sys
import numpy as np
from tflite_micro.python.tflite_micro import runtime

for folder in sys.argv[1:]:
    interpreter = runtime.Interpreter.from_file(folder + "/model.tflite", arena_size=1_000_000)
    for step in range(3):
        interpreter.set_input(np.load(f"{folder}/{step}.npy"), 0)
        interpreter.invoke()
        np.save(f"{folder}/out{step}.npy", interpreter.get_output(0))
"""


@pytest.mark.slow
def test_an_lstm_of_int16_equals_tensorflow_lite_micro_s(tmp_path):
    needs_package("tflite_micro")
    right = {}
    for seed in range(18):
        graph, folder = drawn_wide_lstm(seed), tmp_path / str(seed)
        assert _steps_equal("host", graph, seed)
        data, inputs = write_model(graph), inputs_for_steps(graph, 3, seed)
        folder.mkdir()
        (folder / "model.tflite").write_bytes(data)
        for step, value in enumerate(inputs):
            np.save(folder / f"{step}.npy", value)
        right[folder] = expected(read_model(data), inputs)
    subprocess.run([sys.executable, "-c", _TFLM, *map(str, right)], check=True, timeout=60)
    for folder, steps in right.items():
        for step, (ours,) in enumerate(steps):
            np.testing.assert_array_equal(ours, np.load(folder / f"out{step}.npy"), strict=True)


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
