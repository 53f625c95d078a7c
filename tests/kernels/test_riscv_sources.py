"""The RISC-V kernels compile without a warning on 32 and 64 bits, and need no more than the runtime."""

import subprocess

import pytest
from buildtool_plugins import baremetal
from buildtool_plugins.tools.find import find_clang
from cbuilds import need
from ckernels import KERNELS, WARNINGS
from elftools.elf.elffile import ELFFile

from buildtool.errors import ToolError

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
ALLOWED = {"", "memcpy", "memset", "memmove", *PLAIN}


@pytest.mark.parametrize("build", BUILDS)
def test_every_kernel_compiles_without_a_warning_and_needs_nothing(build, tmp_path):
    family, *flags = BUILDS[build]
    try:
        clang = find_clang().path
    except ToolError as error:
        pytest.skip(str(error))
    made = tmp_path / "kernel.o"
    includes = [f"-I{KERNELS / 'include'}", "-nostdlibinc", "-isystem", baremetal.ROOT / "include"]
    sources = sorted((KERNELS / family).glob("*.c"))
    assert sources
    for source in sources:
        command = [clang, *flags, *WARNINGS, "-std=gnu99", "-O3", *includes, "-c", source, "-o", made]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        with made.open("rb") as file:
            symbols = ELFFile(file).get_section_by_name(".symtab").iter_symbols()
            undefined = {s.name for s in symbols if s["st_shndx"] == "SHN_UNDEF"}
        assert undefined <= ALLOWED, source.name


def test_the_sources_are_formatted():
    folders = [KERNELS / "riscv", KERNELS / "riscv_v", KERNELS / "include"]
    files = [path for folder in folders for path in folder.glob("*.[ch]")]
    subprocess.run([need("clang-format-19"), "--dry-run", "--Werror", *map(str, files)], check=True)
