"""The RISC-V kernels compile without a warning on 32 and 64 bits, and need no more than the runtime."""

import subprocess

import pytest
from buildtool_plugins import baremetal
from cbuilds import symbols
from ckernels import KERNELS, WARNINGS
from needs import needs_tool

RV32 = ("--target=riscv32-unknown-elf", "-mabi=ilp32")
RV64 = ("--target=riscv64-unknown-elf", "-mabi=lp64", "-mcmodel=medany")
BUILDS = {
    "riscv rv32imac": ("riscv", *RV32, "-march=rv32imac"),
    "riscv rv32imc": ("riscv", *RV32, "-march=rv32imc"),
    "riscv rv64imac": ("riscv", *RV64, "-march=rv64imac"),
    "riscv_v rv32 Zve32x": ("riscv_v", *RV32, "-march=rv32imac_zve32x_zvl128b"),
    "riscv_v rv64 Zve32x": ("riscv_v", *RV64, "-march=rv64imac_zve32x_zvl128b"),
}
PLAIN = {"nn_add_s8", "nn_mul_s8", "nn_mean_s8"}  # which the catalogues name beside their own
ALLOWED = {"memcpy", "memset", "memmove", *PLAIN}


FAST = ("riscv rv32imac", "riscv_v rv32 Zve32x")


@pytest.mark.parametrize(
    "build", [pytest.param(b, marks=[] if b in FAST else [pytest.mark.slow]) for b in BUILDS]
)
def test_every_kernel_compiles_without_a_warning_and_needs_nothing(build, tmp_path):
    family, *flags = BUILDS[build]
    clang = needs_tool("clang")
    made = tmp_path / "kernel.o"
    includes = [f"-I{KERNELS / 'include'}", "-nostdlibinc", "-isystem", baremetal.ROOT / "include"]
    sources = sorted((KERNELS / family).glob("*.c"))
    assert sources
    for source in sources:
        command = [clang, *flags, *WARNINGS, "-std=gnu99", "-O3", *includes, "-c", source, "-o", made]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert symbols(made).needed <= ALLOWED, source.name


def test_the_sources_are_formatted():
    folders = [KERNELS / "riscv", KERNELS / "riscv_v", KERNELS / "include"]
    files = [path for folder in folders for path in folder.glob("*.[ch]")]
    subprocess.run([needs_tool("clang-format"), "--dry-run", "--Werror", *map(str, files)], check=True)
