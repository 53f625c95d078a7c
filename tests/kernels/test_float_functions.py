"""Functions and roots of float32 in C: the bits of the executor's, and close to the true values."""

import ctypes
import math

import ckernels
import numpy as np
import pytest
from islands import SPECIAL

from buildtool.firmware.run.compare import distance
from buildtool.graph.reference import realfunctions
from buildtool.graph.reference.realfunctions import ULP, ULP_OF_ERFC

# The worst inputs of all float32, which were all tried.
WORST = {"exp": (0.605973, -2.2143e-05), "log": (0.996171,), "tanh": (0.125516, 0.12511)}
WORST |= {"expm1": (-0.26268,), "erfc": (7.99554, -0.0058), "erf": ()}
_ERF, _ERFC = (np.vectorize(f, otypes=[float]) for f in (math.erf, math.erfc))
TRUE = {"exp": np.exp, "log": np.log, "tanh": np.tanh, "expm1": np.expm1, "erf": _ERF, "erfc": _ERFC}


def drawn(count, seed):
    """Numbers of all sizes, numbers around 1, and special ones."""
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 1 << 32, count, dtype=np.uint32).view(np.float32)
    near = rng.normal(size=count) * np.exp2(rng.uniform(-14, 6, count))
    about_one = 1 + rng.normal(size=count) * np.exp2(rng.uniform(-23, -2, count))
    ends = [88.72284, 88.72283, -103.97, -103.98, -87.4, 0.125, 0.12499999, 2.0**-14, 9.01, 16, 1.1754942e-38]
    worst = [x for some in WORST.values() for x in some]
    return np.concatenate([bits, near, about_one, ends, worst, SPECIAL]).astype(np.float32)


@pytest.mark.parametrize("name", TRUE)
def test_functions_have_the_executors_bits_and_are_close_to_the_truth(name):
    function = getattr(ckernels.library(), f"nn_real_{name}")
    function.restype, function.argtypes = ctypes.c_float, [ctypes.c_float]
    x = drawn(12000, 1)
    if name == "expm1":
        x = -np.abs(x)
    result = np.array([function(value) for value in x.tolist()], np.float32)
    with np.errstate(all="ignore"):
        assert not distance(result, getattr(realfunctions, name)(x)).any()
        true = TRUE[name](x.astype(np.longdouble))
        unit = np.exp2(np.maximum(np.floor(np.log2(np.abs(true))), -126) - 23)
        off = np.abs(result - true) / unit
    counted = np.isfinite(result) & np.isfinite(true) & (true != 0)
    assert counted.sum() > 10000 and off[counted].max() < (ULP_OF_ERFC if name == "erfc" else ULP)
    assert off[counted].max() > 0.5  # an exact half shows that the measure works
    with np.errstate(over="ignore"):  # beyond float32: infinite
        nearest = true.astype(np.float32)
    assert not (np.isfinite(result) ^ np.isfinite(nearest)).any()


def pairs(count, seed):
    """Bases and exponents: of all sizes, whole ones, bases around 1, every pair of special numbers."""
    rng = np.random.default_rng(seed)
    ends = np.array([*SPECIAL, -1, 0.5, 2, 3, -2, -3, -0.5, 2**24, 2**24 + 2, 1e-45, 1 - 2**-24, 1 + 2**-23])
    a = [np.exp(rng.normal(size=count) * 3), rng.normal(size=count), np.repeat(ends, len(ends))]
    b = [rng.normal(size=count) * 5, np.round(rng.normal(size=count) * 9), np.tile(ends, len(ends))]
    a.append(1 + rng.normal(size=count) * np.exp2(rng.uniform(-23, -3, count)))
    b.append(rng.normal(size=count) * np.exp2(rng.uniform(3, 28, count)))
    return np.concatenate(a).astype(np.float32), np.concatenate(b).astype(np.float32)


def test_powers_have_the_executors_bits_and_are_close_to_the_truth():
    function = ckernels.library().nn_real_pow
    function.restype, function.argtypes = ctypes.c_float, [ctypes.c_float] * 2
    a, b = pairs(8000, 3)
    result = np.array([function(*both) for both in zip(a.tolist(), b.tolist(), strict=True)], np.float32)
    with np.errstate(all="ignore"):
        assert not distance(result, realfunctions.power(a, b)).any()
        true = np.power(a.astype(np.longdouble), b.astype(np.longdouble))
        nearest = true.astype(np.float32)
        apart = distance(result, nearest)
        assert apart.max() <= 1 and np.mean(apart > 0) < 0.02
        assert (np.isfinite(result) == np.isfinite(nearest)).all()


def test_roots_are_rounded_to_the_nearest():
    """The plain C for cores without a root of their own, through a kernel of one pixel."""
    x = np.abs(drawn(12000, 2))
    x = np.concatenate([x, -x[:50]])
    result = np.empty_like(x)
    view = [ckernels.View(a.ctypes.data, 4 * x.size, 4 * x.size, 1, 1, 0, 1, 1, x.size) for a in (x, result)]
    window = (ctypes.c_int32 * 4)(0, 1, 0, 1)
    ckernels.library().nn_sqrt_f32(*map(ctypes.byref, view), window)
    with np.errstate(invalid="ignore"):
        assert not distance(result, np.sqrt(x)).any()
