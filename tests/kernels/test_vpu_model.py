"""The model of XMOS's vector unit equals an independent description of its instructions.

The description computes with Python integers on lists of elements, and shares no code with the model.
"""

import ctypes
import faulthandler
import functools
import os
import random
from fractions import Fraction
from math import floor

import pytest
from ckernels import compile_library
from paths import ROOT

OPERATIONS = (
    *("vsetc", "vclrdr", "vldr", "vldd", "vldc", "vstr", "vstd", "vstc", "vstrpv"),
    *("vlmacc", "vlmaccr", "vlsat", "vadddr", "vladd", "vlsub", "vlmul", "vlashr"),
    *("vpos", "vsign", "vdepth1", "vdepth8", "vdepth16"),
)
TYPES = {8: 0x200, 16: 0x100, 32: 0x000}
NOT_WITH = {("vdepth8", 8), ("vdepth16", 8), ("vdepth16", 16)}
DRIVER = ROOT / "tests" / "support" / "vpu_driver.c"


class Registers(ctypes.Structure):
    """nn_vpu."""

    _fields_ = [(name, ctypes.c_uint8 * 32) for name in "rdc"] + [("type", ctypes.c_int32)]


@functools.cache
def model():
    function = compile_library([DRIVER]).vpu_driver
    function.restype = None
    return function


def split(data, bits):
    step = bits // 8
    return [int.from_bytes(data[i : i + step], "little", signed=True) for i in range(0, len(data), step)]


def joined(values, bits, size=32):
    whole = b"".join((value % (1 << bits)).to_bytes(bits // 8, "little") for value in values)
    return whole + bytes(size - len(whole))


def bounded(value, bits):
    most = 2 ** (bits - 1) - 1
    return min(max(value, -most), most)


def nearest(value):
    """Rounds to the nearest integer, halves up."""
    return floor(Fraction(value) + Fraction(1, 2))


def sums(r, d, bits):
    """Returns the accumulators in vR and vD."""
    if bits == 32:
        return [h * 2**32 + low % 2**32 for h, low in zip(split(d, 32), split(r, 32), strict=True)]
    return [h * 2**16 + low % 2**16 for h, low in zip(split(d, 16), split(r, 16), strict=True)]


def stored(values, bits):
    """Returns (vR, vD) for accumulators."""
    half = 32 if bits == 32 else 16
    return joined(values, half), joined([value >> half for value in values], half)


def total(value, bits):
    """Saturates an accumulator after an addition."""
    return bounded(value, 40 if bits == 32 else 32)


def product(a, b, bits):
    return nearest(Fraction(a * b, 2**30)) if bits == 32 else a * b


def described(name, bits, r, d, c, memory, argument):
    """Returns (vR, vD, vC, memory) after one operation."""
    x, m, w = split(r, bits), split(memory, bits), split(c, bits)
    one = 2 ** (bits - 2)
    elementwise = {
        "vladd": lambda: [a + b for a, b in zip(x, m, strict=True)],
        "vlsub": lambda: [b - a for a, b in zip(x, m, strict=True)],
        "vlmul": lambda: [nearest(Fraction(a * b, one)) for a, b in zip(x, m, strict=True)],
        "vlashr": lambda: [floor(b / Fraction(2) ** argument) for b in m],
        "vpos": lambda: [max(a, 0) for a in x],
        "vsign": lambda: [one if a >= 0 else -one for a in x],
    }
    if name in elementwise:
        return joined([bounded(value, bits) for value in elementwise[name]()], bits), d, c, memory
    if name in ("vldr", "vldd", "vldc"):
        registers = [memory if name[-1] == own else old for own, old in zip("rdc", (r, d, c), strict=True)]
        return *registers, memory
    if name in ("vstr", "vstd", "vstc"):
        return r, d, c, {"r": r, "d": d, "c": c}[name[-1]]
    if name == "vstrpv":
        return r, d, c, bytes(r[i] if argument >> i & 1 else memory[i] for i in range(32))
    if name == "vclrdr":
        return bytes(32), bytes(32), c, memory
    if name == "vlmacc":
        before = sums(r, d, bits)
        now = [total(a + product(b, e, bits), bits) for a, b, e in zip(before, w, m, strict=False)]
        return *stored(now, bits), c, memory
    if name == "vlmaccr":
        before = sums(r, d, bits)
        last = before[-1] + sum(product(a, b, bits) for a, b in zip(w, m, strict=True))
        return *stored([total(last, bits), *before[:-1]], bits), c, memory
    if name == "vlsat":
        shifts = [s % 2 ** max(bits, 16) for s in split(memory, max(bits, 16))]
        now = [
            (-1 if a < 0 else 0) if s >= 32 else nearest(Fraction(a, 2**s))
            for a, s in zip(sums(r, d, bits), shifts, strict=True)
        ]
        return joined([bounded(value, bits) for value in now], bits), bytes(32), c, memory
    if name == "vadddr":
        all_of_them = total(sum(sums(r, d, bits)), bits)
        return *stored([all_of_them] + [0] * (7 if bits == 32 else 15), bits), c, memory
    if name == "vdepth1":
        return sum((a < 0) << i for i, a in enumerate(x)).to_bytes(32, "little"), d, c, memory
    to = int(name.removeprefix("vdepth"))
    return joined([bounded(nearest(Fraction(a, 2 ** (bits - to))), to) for a in x], to), d, c, memory


def register(rng, bits):
    """Draws random bytes, extremes, small numbers, or a mixture."""
    style = rng.randrange(4)
    if style == 0:
        return rng.randbytes(32)
    most = 2 ** (bits - 1)
    ends = [-most, 1 - most, most - 1, -1, 0, 1, most // 2, -most // 2, most // 2 - 1]
    values = [
        rng.choice(ends) if style == 1 or (style == 3 and rng.random() < 0.5) else rng.randrange(-9, 10)
        for _ in range(256 // bits)
    ]
    return joined(values, bits)


def check(name, bits, rng):
    r, d, c, memory = (register(rng, bits) for _ in range(4))
    if bits == 32 and name in ("vlmacc", "vlmaccr", "vlsat", "vadddr"):  # of the 40 bits, vD has 8
        d = joined([rng.choice([-128, -1, 0, 127, rng.randrange(-128, 128)]) for _ in range(8)], 32)
    if name == "vlsat":
        width = max(bits, 16)
        memory = joined(
            [rng.choice([0, 0, 1, 4, 15, 31, 32, 40, rng.randrange(33)]) for _ in range(256 // width)], width
        )
        if bits < 32:
            d = rng.choice([d, joined([rng.randrange(-9, 9) for _ in range(16)], 16)])
    argument = rng.choice([0, 1, -1, 4, bits - 1, bits, -bits, 40, -40, rng.randrange(-33, 34)])
    if name == "vstrpv":
        argument = rng.choice([-1, 0, rng.randrange(-(2**31), 2**31)])
    state = Registers(
        (ctypes.c_uint8 * 32)(*r), (ctypes.c_uint8 * 32)(*d), (ctypes.c_uint8 * 32)(*c), TYPES[bits]
    )
    room = (ctypes.c_uint32 * 8).from_buffer_copy(memory)
    model()(OPERATIONS.index(name), ctypes.byref(state), room, argument)
    result = bytes(state.r), bytes(state.d), bytes(state.c), bytes(room)
    assert result == described(name, bits, r, d, c, memory, argument), (name, bits, argument)


@pytest.mark.parametrize("bits", TYPES)
def test_every_operation_does_what_its_description_says(bits):
    rng = random.Random(bits)
    for name in OPERATIONS[1:]:
        for _ in range(60 if (name, bits) not in NOT_WITH else 0):
            check(name, bits, rng)


def after(name, bits, values, memory=(), argument=0, other=()):
    """Returns vR's elements after an operation on the elements `values`."""
    state = Registers(*((ctypes.c_uint8 * 32)(*joined(v, bits)) for v in (values, other, other)), TYPES[bits])
    room = (ctypes.c_uint32 * 8).from_buffer_copy(joined(memory, max(bits, 16) if name == "vlsat" else bits))
    model()(OPERATIONS.index(name), ctypes.byref(state), room, argument)
    return split(bytes(state.r), bits)


def test_what_was_seen_on_the_chip():
    """Results of the vendor's tests on the chip, where its simulator gives other results."""
    assert after("vlashr", 16, [], [-8], 4)[0] == -1  # it rounds down
    assert after("vlashr", 16, [], [-32768], 0)[0] == -32767
    assert after("vlsat", 16, [-8], [4], other=[-1])[0] == 0  # halves up
    assert after("vdepth8", 16, [-0x80])[0] == 0
    assert after("vdepth16", 32, [-(2**31)])[0] & 0xFFFF == 0x8001
    assert after("vlsub", 8, [1], [100])[0] == 99  # memory minus vR
    assert after("vpos", 8, [-5, 5])[:2] == [0, 5]
    state = Registers(type=TYPES[8])
    for value in (1, 2, 3):
        state.c[0], room = 1, (ctypes.c_uint32 * 8)(value)
        model()(OPERATIONS.index("vlmaccr"), ctypes.byref(state), room, 0)
    assert split(bytes(state.r), 16)[:4] == [3, 2, 1, 0]


def stops(name, place):
    """Whether the model ends its process at an operation on this address of an array of words."""
    room = (ctypes.c_uint32 * 17)()
    child = os.fork()
    if child == 0:
        faulthandler.disable()
        address = ctypes.c_void_p(ctypes.addressof(room) + place)
        model()(OPERATIONS.index(name), ctypes.byref(Registers(type=0x200)), address, 0)
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


@pytest.mark.parametrize("name", ["vstd", "vlmaccr", "vstrpv"])
def test_an_address_between_words_stops_the_program(name):
    model()  # compiled before the processes need it
    assert [stops(name, place) for place in (4, 5, 6, 7)] == [False, True, True, True]
