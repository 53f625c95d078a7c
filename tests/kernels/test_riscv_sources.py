"""The RISC-V kernels compile without a warning on 32 and 64 bits, and need no more than the runtime."""

import subprocess

import pytest
from buildtool_plugins import baremetal
from cbuilds import kernel_objects, symbols
from ckernels import KERNELS, WARNINGS
from needs import needs_tool

RV32 = ("--target=riscv32-unknown-elf", "-mabi=ilp32")
RV64 = ("--target=riscv64-unknown-elf", "-mabi=lp64", "-mcmodel=medany")
BUILDS = {
    "riscv rv32imc": ("riscv", *RV32, "-march=rv32imc"),
    "riscv rv64imac": ("riscv", *RV64, "-march=rv64imac"),
    "riscv_v rv64 Zve32x": ("riscv_v", *RV64, "-march=rv64imac_zve32x_zvl128b"),
}
BOARDS = {"riscv": "qemu-virt-rv32", "riscv_v": "qemu-virt-rv32v"}
PLAIN = {"nn_add_s8", "nn_mul_s8", "nn_mean_s8"}  # which the catalogues name beside their own
# Kernels of one group, of which those of several are made.
ONE_GROUP = {f"nn_conv2d_s8_{family}{twin}" for family in ("riscv", "rvv") for twin in ("", "_scratch_bytes")}
ALLOWED = {"memcpy", "memset", "memmove", *PLAIN, *ONE_GROUP}


def sources(family):
    """The C files of a family."""
    found = sorted((KERNELS / family).glob("*.c"))
    assert found
    return found


@pytest.mark.parametrize("family", BOARDS)
def test_every_kernel_compiles_without_a_warning_and_needs_nothing(family, tmp_path):
    files = sources(family)
    for source, made in zip(files, kernel_objects(BOARDS[family], "", files, tmp_path), strict=True):
        assert symbols(made).needed <= ALLOWED, source.name


@pytest.mark.slow
@pytest.mark.parametrize("build", BUILDS)
def test_nor_on_cores_that_no_emulated_board_has(build, tmp_path):
    family, *flags = BUILDS[build]
    files = sources(family)
    includes = [f"-I{KERNELS / 'include'}", "-nostdlibinc", "-isystem", baremetal.ROOT / "include"]
    command = [needs_tool("clang"), *flags, *WARNINGS, "-std=gnu99", "-O3", *includes, "-c", *files]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for source in files:
        assert symbols(tmp_path / f"{source.stem}.o").needed <= ALLOWED, source.name
