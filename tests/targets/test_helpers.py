"""Functions that compilers call on the bare-metal targets, compiled for this machine under other names."""

import ctypes
import itertools
import random
import subprocess
from pathlib import Path

import numpy as np
import pytest
from buildtool_plugins import baremetal

HELPERS = {
    "__muldi3": lambda a, b: a * b,
    "__udivdi3": lambda a, b: (a % 2**64) // (b % 2**64),
    "__umoddi3": lambda a, b: (a % 2**64) % (b % 2**64),
    "__divdi3": lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    "__moddi3": lambda a, b: abs(a) % abs(b) * (1 if a >= 0 else -1),
}
SHIFTS = {
    "__ashldi3": lambda a, n: a << n,
    "__ashrdi3": lambda a, n: a >> n,
    "__lshrdi3": lambda a, n: a % 2**64 >> n,
}
FLOATS = {"__addsf3": np.add, "__subsf3": np.subtract, "__mulsf3": np.multiply, "__divsf3": np.divide}
COMPARISONS = {
    "__eqsf2": lambda a, b, got: (a == b) == (got == 0),
    "__nesf2": lambda a, b, got: (a != b) == (got != 0),
    "__ltsf2": lambda a, b, got: (a < b) == (got < 0),
    "__lesf2": lambda a, b, got: (a <= b) == (got <= 0),
    "__gtsf2": lambda a, b, got: (a > b) == (got > 0),
    "__gesf2": lambda a, b, got: (a >= b) == (got >= 0),
    "__unordsf2": lambda a, b, got: bool(np.isnan(a) or np.isnan(b)) == (got != 0),
}
CONVERSIONS = ("__floatsisf", "__floatunsisf", "__fixsfsi")
NUMBERS = (0, 1, -1, 3, -7, 2**31, -(2**31), 2**32 - 1, 2**32, 0x123456789ABCDEF, -(2**62) + 5, 2**63 - 1)


PRODUCTS = ("__mulsi3", "__umulsidi3", "__muldi3", "__udivsi3", "__umodsi3", "__divsi3", "__modsi3")
PRODUCTS_C = baremetal.ROOT / "products.c"
WORDS = (
    *(0, 1, -1, 3, -7, 255, 0xFFFF, 0x10000, -0x8001),
    *(0x12345678, 2**31 - 1, -(2**31), 0xDEADBEEF - 2**32),
)
MEMORY = ("memcpy", "memmove", "memset", "memcmp", "strlen")
SIZE = 256


def signed(value):
    return (value + 2**63) % 2**64 - 2**63


def compiled(folder, names, sources, *flags):
    """Returns a library of the sources in which `names` have the prefix "test"."""
    path = folder / "functions.so"
    renamed = [f"-D{name}=test{name}" for name in names]
    command = ["gcc", "-std=gnu99", "-O3", "-shared", "-fPIC", *flags, *renamed, *sources, "-o", path]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(path))


@pytest.fixture(scope="module")
def helpers(tmp_path_factory):
    """The helper functions of the RISC-V cores."""
    names = (*HELPERS, *SHIFTS, *FLOATS, *COMPARISONS, *CONVERSIONS)
    sources = [path for path in baremetal.ARITHMETIC if Path(path) != PRODUCTS_C]  # of other cores
    return compiled(tmp_path_factory.mktemp("helpers"), names, sources)


@pytest.fixture(scope="module")
def products(tmp_path_factory):
    """The helper functions of the LX106."""
    return compiled(tmp_path_factory.mktemp("products"), PRODUCTS, [PRODUCTS_C])


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """memcpy, memset and similar functions."""
    flags = ["-fno-builtin", "-Wall", "-Wextra", "-Werror", "-isystem", baremetal.ROOT / "include"]
    return compiled(tmp_path_factory.mktemp("memory"), MEMORY, [baremetal.ROOT / "memory.c"], *flags)


def function(library, name, result, *kinds):
    """Returns a function of a library, with the types of its result and arguments set."""
    helper = getattr(library, "test" + name)
    helper.restype, helper.argtypes = result, kinds
    return helper


@pytest.mark.parametrize("name", HELPERS)
def test_products_and_quotients_of_64_bits(helpers, name):
    helper = function(helpers, name, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
    for a, b in itertools.product(NUMBERS, repeat=2):
        if b or name == "__muldi3":
            assert helper(a, b) == signed(HELPERS[name](a, b)), (a, b)


@pytest.mark.parametrize("name", SHIFTS)
def test_shifts_of_64_bits(helpers, name):
    shift = function(helpers, name, ctypes.c_int64, ctypes.c_int64, ctypes.c_int32)
    for a, n in itertools.product(NUMBERS, range(64)):
        assert shift(a, n) == signed(SHIFTS[name](a, n)), (a, n)


def float_pairs():
    """Random bit patterns; neighbours, whose difference cancels; all pairs of special values."""
    rng = np.random.default_rng(7)
    wild = rng.integers(0, 2**32, (3000, 2), dtype=np.uint32)
    near = np.column_stack((wild[:, 0], wild[:, 0] ^ rng.integers(0, 2**25, 3000, dtype=np.uint32)))
    special = np.array([0, 1, 0x7FFFFF, 0x800000, 0x3F800000, 0x7F7FFFFF, 0x7F800000, 0x7FC00000], np.uint32)
    special = np.concatenate((special, special | 0x80000000))
    every = np.stack(np.meshgrid(special, special), axis=-1).reshape(-1, 2)
    return np.concatenate((wild, near, near ^ np.uint32([[0, 2**31]]), every)).view(np.float32)


@pytest.mark.parametrize("name", FLOATS)
@np.errstate(all="ignore")
def test_arithmetic_in_single_precision(helpers, name):
    helper = function(helpers, name, ctypes.c_float, ctypes.c_float, ctypes.c_float)
    pairs = float_pairs()
    expected = FLOATS[name](pairs[:, 0], pairs[:, 1])
    got = np.array([helper(a, b) for a, b in pairs], np.float32)
    both_nan = np.isnan(expected) & np.isnan(got)
    assert ((expected.view(np.uint32) == got.view(np.uint32)) | both_nan).all()


def test_conversions_of_single_precision(helpers):
    from_signed = function(helpers, "__floatsisf", ctypes.c_float, ctypes.c_int32)
    from_natural = function(helpers, "__floatunsisf", ctypes.c_float, ctypes.c_uint32)
    to_signed = function(helpers, "__fixsfsi", ctypes.c_int32, ctypes.c_float)
    rng = np.random.default_rng(8)
    bits = rng.integers(0, 2**32, 3000, dtype=np.uint32) >> rng.integers(0, 32, 3000, dtype=np.uint32)
    for n in (0, 2**31, 2**32 - 1, 2**24 + 1, *map(int, bits)):
        signed_n = n - 2**32 if n >= 2**31 else n
        assert from_natural(n) == np.float32(n)
        assert from_signed(signed_n) == np.float32(signed_n)
    for value in rng.normal(0, 1, 3000) * 2.0 ** rng.integers(-5, 34, 3000):
        whole = int(np.float32(value))
        assert to_signed(value) == min(max(whole, -(2**31)), 2**31 - 1)


def test_products_and_quotients(products):
    def call(name, a, b, kind, result):
        return function(products, name, result, kind, kind)(a, b)

    natural, whole = ctypes.c_uint32, ctypes.c_int32
    for a, b in itertools.product(WORDS, repeat=2):
        na, nb = a % 2**32, b % 2**32
        assert call("__mulsi3", na, nb, natural, natural) == na * nb % 2**32
        assert call("__umulsidi3", na, nb, natural, ctypes.c_uint64) == na * nb
        wide_a, wide_b = a * 0x1_0000_0003, b * 0x7_0000_0001
        assert call("__muldi3", wide_a, wide_b, ctypes.c_int64, ctypes.c_int64) == signed(wide_a * wide_b)
        if b:
            assert call("__udivsi3", na, nb, natural, natural) == na // nb
            assert call("__umodsi3", na, nb, natural, natural) == na % nb
            quotient = HELPERS["__divdi3"](a, b)
            assert call("__divsi3", a, b, whole, whole) == (quotient + 2**31) % 2**32 - 2**31
            assert call("__modsi3", a, b, whole, whole) == a - quotient * b


def spans(count):
    """Yields offsets and lengths, with all alignments and the lengths around a word and a block."""
    rng = random.Random(1)
    for length in [*range(40), *[rng.randrange(40, 120) for _ in range(count)]]:
        yield rng.randrange(SIZE - 120), rng.randrange(SIZE - 120), length


def test_memmove_copies_overlapping_spans(library):
    rng = random.Random(2)
    cases = list(spans(400))
    # every small distance in both directions
    cases += [(64, 64 + by, n) for by in range(-20, 21) for n in (1, 3, 4, 5, 15, 16, 17, 33, 64)]
    for to, start, length in cases:
        before = bytearray(rng.randbytes(SIZE))
        expected = bytearray(before)
        expected[to : to + length] = before[start : start + length]
        memory = (ctypes.c_uint8 * SIZE).from_buffer_copy(before)
        at = ctypes.addressof(memory)
        library.testmemmove(ctypes.c_void_p(at + to), ctypes.c_void_p(at + start), ctypes.c_size_t(length))
        assert bytes(memory) == bytes(expected), (to, start, length)


def test_memcpy_and_memset_write_their_span_and_nothing_else(library):
    rng = random.Random(3)
    for to, start, length in spans(200):
        source, before = rng.randbytes(SIZE), rng.randbytes(SIZE)
        value = rng.randrange(256)
        memory = (ctypes.c_uint8 * SIZE).from_buffer_copy(before)
        other = (ctypes.c_uint8 * SIZE).from_buffer_copy(source)
        at, of = ctypes.addressof(memory), ctypes.addressof(other)
        library.testmemcpy(ctypes.c_void_p(at + to), ctypes.c_void_p(of + start), ctypes.c_size_t(length))
        copied = before[:to] + source[start : start + length] + before[to + length :]
        assert bytes(memory) == copied
        library.testmemset(ctypes.c_void_p(at + start), value, ctypes.c_size_t(length))
        assert bytes(memory) == copied[:start] + bytes([value]) * length + copied[start + length :]


def test_memcmp_orders_by_the_first_differing_byte_as_unsigned(library):
    rng = random.Random(4)
    for _ in range(300):
        a = bytearray(rng.randbytes(rng.randrange(1, 40)))
        b = bytearray(a)
        if rng.random() < 0.8:
            b[rng.randrange(len(b))] = rng.randrange(256)
        got = library.testmemcmp(bytes(a), bytes(b), ctypes.c_size_t(len(a)))
        assert (got > 0) - (got < 0) == (a > b) - (a < b)
