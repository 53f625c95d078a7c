"""memcpy and its like of the bare-metal targets, compiled for this machine under other names."""

import ctypes
import random
import subprocess

import pytest
from buildtool_plugins import baremetal
from buildtool_plugins.tools.find import find_host_compiler

NAMES = ("memcpy", "memmove", "memset", "memcmp", "strlen")
SIZE = 256


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    built = tmp_path_factory.mktemp("memory") / "memory.so"
    renamed = [f"-D{name}=own_{name}" for name in NAMES]
    flags = ["-O3", "-shared", "-fPIC", "-fno-builtin", "-Wall", "-Wextra", "-Werror"]
    source = baremetal.ROOT / "memory.c"
    includes = ["-isystem", str(baremetal.ROOT / "include")]
    command = [find_host_compiler(), *flags, *renamed, *includes, str(source), "-o", str(built)]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(built))


def spans(count):
    """Offsets and lengths, with all alignments and the lengths around a word and a block."""
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
        library.own_memmove(ctypes.c_void_p(at + to), ctypes.c_void_p(at + start), ctypes.c_size_t(length))
        assert bytes(memory) == bytes(expected), (to, start, length)


def test_memcpy_and_memset_write_their_span_and_nothing_else(library):
    rng = random.Random(3)
    for to, start, length in spans(200):
        source, before = rng.randbytes(SIZE), rng.randbytes(SIZE)
        value = rng.randrange(256)
        memory = (ctypes.c_uint8 * SIZE).from_buffer_copy(before)
        other = (ctypes.c_uint8 * SIZE).from_buffer_copy(source)
        at, of = ctypes.addressof(memory), ctypes.addressof(other)
        library.own_memcpy(ctypes.c_void_p(at + to), ctypes.c_void_p(of + start), ctypes.c_size_t(length))
        copied = before[:to] + source[start : start + length] + before[to + length :]
        assert bytes(memory) == copied
        library.own_memset(ctypes.c_void_p(at + start), value, ctypes.c_size_t(length))
        assert bytes(memory) == copied[:start] + bytes([value]) * length + copied[start + length :]


def test_memcmp_orders_by_the_first_differing_byte_as_unsigned(library):
    rng = random.Random(4)
    for _ in range(300):
        a = bytearray(rng.randbytes(rng.randrange(1, 40)))
        b = bytearray(a)
        if rng.random() < 0.8:
            b[rng.randrange(len(b))] = rng.randrange(256)
        got = library.own_memcmp(bytes(a), bytes(b), ctypes.c_size_t(len(a)))
        assert (got > 0) - (got < 0) == (a > b) - (a < b)
