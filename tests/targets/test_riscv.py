"""RISC-V boards: counting, faults, memory limits, the helpers that compilers call."""

import ctypes
import subprocess

import numpy as np
import pytest
from buildtool_plugins.baremetal import ARITHMETIC
from elftools.elf.elffile import ELFFile
from probe import RISCV, load_board, one_set, plugin, probe, report, run

from buildtool.base.errors import ToolError
from buildtool.target.types import RunRequest

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


def signed(value):
    return (value + 2**63) % 2**64 - 2**63


@pytest.fixture(scope="module")
def helpers(tmp_path_factory):
    """The helpers compiled for this machine, under names that are not the compiler's own."""
    path = tmp_path_factory.mktemp("helpers") / "helpers.so"
    renamed = [f"-D{name}=test{name}" for name in (*HELPERS, *SHIFTS, *FLOATS, *COMPARISONS, *CONVERSIONS)]
    command = ["gcc", "-std=gnu99", "-O2", "-shared", "-fPIC", *renamed, *ARITHMETIC, "-o", path]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(path))


def call(helpers, name, a, b, kind):
    function = getattr(helpers, "test" + name)
    function.restype, function.argtypes = ctypes.c_int64, [ctypes.c_int64, kind]
    return function(a, b)


@pytest.mark.parametrize("name", HELPERS)
def test_products_and_quotients_of_64_bits(helpers, name):
    for a in NUMBERS:
        for b in NUMBERS:
            if b or name == "__muldi3":
                assert call(helpers, name, a, b, ctypes.c_int64) == signed(HELPERS[name](a, b)), (a, b)


@pytest.mark.parametrize("name", SHIFTS)
def test_shifts_of_64_bits(helpers, name):
    for a in NUMBERS:
        for n in range(64):
            assert call(helpers, name, a, n, ctypes.c_int32) == signed(SHIFTS[name](a, n)), (a, n)


def float_pairs():
    """Any bit patterns; neighbours, whose difference cancels; every special value with every other."""
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
    function = getattr(helpers, "test" + name)
    function.restype, function.argtypes = ctypes.c_float, [ctypes.c_float] * 2
    pairs = float_pairs()
    expected = FLOATS[name](pairs[:, 0], pairs[:, 1])
    got = np.array([function(a, b) for a, b in pairs], np.float32)
    both_nan = np.isnan(expected) & np.isnan(got)
    assert ((expected.view(np.uint32) == got.view(np.uint32)) | both_nan).all()


@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons_in_single_precision(helpers, name):
    function = getattr(helpers, "test" + name)
    function.restype, function.argtypes = ctypes.c_int32, [ctypes.c_float] * 2
    assert all(COMPARISONS[name](a, b, function(a, b)) for a, b in float_pairs())


def test_conversions_of_single_precision(helpers):
    from_signed, from_natural, to_signed = (getattr(helpers, "test" + name) for name in CONVERSIONS)
    from_signed.restype = from_natural.restype = ctypes.c_float
    from_natural.argtypes, to_signed.argtypes = [ctypes.c_uint32], [ctypes.c_float]
    rng = np.random.default_rng(8)
    bits = rng.integers(0, 2**32, 3000, dtype=np.uint32) >> rng.integers(0, 32, 3000, dtype=np.uint32)
    for n in (0, 2**31, 2**32 - 1, 2**24 + 1, *map(int, bits)):
        signed_n = n - 2**32 if n >= 2**31 else n
        assert from_natural(n) == np.float32(n)
        assert from_signed(signed_n) == np.float32(signed_n)
    for value in rng.normal(0, 1, 3000) * 2.0 ** rng.integers(-5, 34, 3000):
        whole = int(np.float32(value))
        assert to_signed(value) == min(max(whole, -(2**31)), 2**31 - 1)


@pytest.mark.parametrize(("board", "tool"), RISCV)
def test_counts_are_those_of_the_hand_written_assembly(board, tool):
    """The numbers are read off tests/targets/probe/probe.c."""
    result = run(board, probe(board, tool), one_set("count"), count=True)
    expected = {70: 1 + 2 * 100 + 1, 4095: 4}
    if board == "qemu-virt-rv32v":
        expected[3] = 4
    assert result.counts == expected
    assert result.total_instructions == sum(expected.values()) + 2  # nops between two operators


@pytest.mark.parametrize(("board", "tool"), RISCV)
@pytest.mark.parametrize(
    ("action", "value", "code", "says"),
    [
        ("wild_store", 0xF0000000, 107, r"store access fault at pc=0x[0-9a-f]{8} .* address=0xf0000000"),
        ("undefined", 0, 102, r"illegal instruction at pc=0x[0-9a-f]{8} .* mcause=0x00000002"),
        ("recurse", 0, 107, r"store access fault after a stack overflow"),
    ],
)
def test_a_trap_is_reported_with_its_registers(board, tool, action, value, code, says):
    with pytest.raises(ToolError, match=rf"(?s)on {board} ended with exit code {code}.*fault: {says}"):
        run(board, probe(board, tool), one_set(action, value))


def test_a_store_behind_the_16_kilobytes_of_the_hifive1_traps():
    elf = probe("hifive1", "clang")
    with pytest.raises(ToolError, match=r"store access fault .* address=0x80004000"):
        run("hifive1", elf, one_set("wild_store", 0x80004000))


def test_an_image_for_the_esp32_c3_is_built_and_not_run():
    board = load_board("esp32-c3")
    elf = probe("esp32-c3", "clang")
    with elf.open("rb") as file:
        image = ELFFile(file)
        assert image["e_machine"] == "EM_RISCV"
        flash = board.memory("flash")
        assert flash.base <= image.get_section_by_name(".text")["sh_addr"] < flash.base + flash.size
    with pytest.raises(ToolError, match="board 'esp32-c3' has no emulator"):
        plugin(board).run(board, elf, RunRequest({}, ()))


def test_another_compiler_is_refused():
    board = load_board("qemu-virt-rv32")
    with pytest.raises(ToolError, match="board 'qemu-virt-rv32' has no toolchain 'gcc'"):
        plugin(board).toolchain(board, "gcc")


@pytest.mark.parametrize("board", ["qemu-virt-rv32v", "qemu-virt-rv32v256"])
def test_vector_instructions_run_and_count_as_one(board):
    found = run(board, probe(board, "clang"), one_set("count"), count=True)
    assert found.counts[3] == 4
    assert report(found)["guard_ok"] == 1
