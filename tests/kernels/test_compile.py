"""The kernels compile without a warning for the host and for the cores, with each compiler."""

import re
import shutil
import subprocess

import pytest
from ckernels import KERNELS, WARNINGS, sources

M4 = ("-mcpu=cortex-m4", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard", "-ffreestanding")
M55 = ("-mcpu=cortex-m55", "-mfloat-abi=hard", "-ffreestanding")
AEABI = ("__aeabi_memcpy", "__aeabi_memset", "__aeabi_memmove")  # the runtime has them, as memcpy
BUILDS = {
    "gcc host": ("gcc",),
    "clang host": ("clang-22",),
    "gcc M4": ("arm-none-eabi-gcc", "-mthumb", *M4),
    "gcc M55": ("arm-none-eabi-gcc", "-mthumb", *M55),
    "clang M4": ("clang-22", "--target=thumbv7em-none-eabihf", *M4),
    "clang M55": ("clang-22", "--target=thumbv8.1m.main-none-eabihf", *M55),
}


def need(program):
    found = shutil.which(program)
    if not found:
        pytest.skip(f"{program} is not installed")
    return found


@pytest.mark.parametrize("build", BUILDS)
def test_every_kernel_compiles_without_a_warning(build):
    compiler, *flags = BUILDS[build]
    command = [need(compiler), *flags, *WARNINGS, "-O2", "-ffp-contract=off", "-fsyntax-only"]
    for source in sources():
        made = subprocess.run(
            [*command, f"-I{KERNELS / 'include'}", str(source)], capture_output=True, text=True, check=False
        )
        assert made.returncode == 0, made.stderr


@pytest.mark.parametrize("build", ["gcc M4", "clang M4"])
def test_a_kernel_needs_nothing_but_the_runtime(build, tmp_path):
    """No libm, no allocator, no 64-bit division, no static data."""
    compiler, *flags = BUILDS[build]
    nm = need("arm-none-eabi-nm")
    for source in sources():
        made = tmp_path / f"{source.stem}.o"
        command = [need(compiler), *flags, "-O2", "-ffp-contract=off", "-c", f"-I{KERNELS / 'include'}"]
        subprocess.run([*command, str(source), "-o", str(made)], check=True)
        symbols = subprocess.run([nm, str(made)], capture_output=True, text=True, check=True).stdout
        undefined = set(re.findall(r" U (\S+)", symbols))
        assert undefined <= {"memcpy", "memset", "memmove", *AEABI}, source.name
        assert not re.findall(r" [bBdDC] (\S+)", symbols), source.name


def test_a_file_holds_one_public_function_named_like_it():
    for source in sources():
        text = source.read_text()
        public = re.findall(r"^(?!static)\w[\w *]* \*?(nn_\w+)\(", text, re.MULTILINE)
        assert public == [source.stem], source.name


def test_the_sources_are_formatted():
    formatter = need("clang-format-19")
    files = [*sources(), *(KERNELS / "include").glob("*.h")]
    subprocess.run([formatter, "--dry-run", "--Werror", *map(str, files)], check=True)
