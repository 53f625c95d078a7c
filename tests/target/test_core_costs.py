"""Costs know the core's vector registers, and how much of a window lies in the input."""

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buildtool.base.errors import TargetError
from buildtool.target.catalogue import for_core
from buildtool.target.family import load_family
from buildtool.target.geometry import taps_met
from buildtool.target.hardware import Core

CORE = Core("some", "isa", ("reference",))
KERNEL = """
[[kernel]]
op = "RELU"
name = "one"
symbol = "one"
call = "constants, in, out, window"
sources = ["one.c"]
"""


def catalogue(tmp_path, line):
    (tmp_path / "catalogue.toml").write_text(KERNEL + line + "\n")
    return load_family(tmp_path).kernels


@pytest.mark.parametrize(("bits", "written"), [(0, "128"), (128, "128"), (512, "512")])
def test_the_length_of_vector_registers_is_written_into_costs(tmp_path, bits, written):
    loaded = catalogue(tmp_path, 'cost = "outputs // (vector_bits // 8)"')
    (kernel,) = for_core(loaded, dataclasses.replace(CORE, vector_bits=bits))
    assert kernel.cost == f"outputs // ({written} // 8)"


@pytest.mark.parametrize("key", ["when", "scratch"])
def test_only_costs_may_ask_for_it(tmp_path, key):
    with pytest.raises(TargetError, match="unknown name 'vector_bits'"):
        catalogue(tmp_path, f'{key} = "vector_bits"')


@settings(derandomize=True, deadline=None)
@given(*[st.integers(1, 9)] * 2, st.integers(1, 5), st.integers(1, 3), st.integers(1, 2), st.integers(0, 4))
def test_taps_that_meet_the_input(outputs, inputs, kernel, stride, dilation, pad):
    padded = "." * pad + "x" * inputs + "." * (outputs * stride + kernel * dilation)
    windows = [padded[i * stride :][: (kernel - 1) * dilation + 1 : dilation] for i in range(outputs)]
    met = sum(window.count("x") for window in windows)
    assert taps_met(outputs, inputs, kernel, stride, dilation, pad) == (met, windows.count("x" * kernel))
