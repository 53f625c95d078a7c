"""Costs know the core's vector registers, and how much of a window lies in the input."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from buildtool.base.errors import TargetError
from buildtool.target.catalogue import for_core
from buildtool.target.family import load_family
from buildtool.target.hardware import Core
from buildtool.target.variables import taps_met

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


def counted(outputs, inputs, kernel, stride, dilation, pad):
    met = [
        sum(0 <= i * stride - pad + tap * dilation < inputs for tap in range(kernel)) for i in range(outputs)
    ]
    return sum(met), met.count(kernel)


@given(
    st.integers(0, 14),
    st.integers(1, 14),
    st.integers(1, 6),
    st.integers(1, 5),
    st.integers(1, 4),
    st.integers(-20, 14),
)
def test_the_taps_are_those_that_are_there(outputs, inputs, kernel, stride, dilation, pad):
    case = (outputs, inputs, kernel, stride, dilation, pad)
    assert taps_met(*case) == counted(*case)


def test_windows_that_a_file_claims_by_the_million_are_not_looked_at_one_by_one():
    assert taps_met(1 << 40, 1 << 40, 1, 1, 1, 0) == (1 << 40, 1 << 40)
    assert taps_met(9, 9, 1 << 40, 1, 1, 1 << 40) == (sum(range(9)), 0)
    assert taps_met(1 << 40, 1 << 41, 1 << 10, 2, 1, 0)[1] == (1 << 40) - (1 << 9) + 1
