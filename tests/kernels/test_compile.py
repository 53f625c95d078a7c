"""The kernels compile without a warning for the host and for the cores, with each compiler."""

import re
import subprocess

import pytest
from cbuilds import kernel_objects, symbols
from ckernels import KERNELS, WARNINGS, sources
from needs import needs_tool

M55 = ("-mcpu=cortex-m55", "-mfloat-abi=hard", "-ffreestanding")
AEABI = ("__aeabi_memcpy", "__aeabi_memset", "__aeabi_memmove")  # the runtime has them, as memcpy
BUILDS = {
    "gcc host": ("gcc",),
    "clang host": ("clang",),
    "gcc M55": ("arm-none-eabi-gcc", "-mthumb", *M55),
    "clang M55": ("clang", "--target=thumbv8.1m.main-none-eabihf", *M55),
}


@pytest.mark.parametrize(
    "build", [pytest.param(b, marks=[pytest.mark.slow] if b == "clang M55" else []) for b in BUILDS]
)
def test_every_kernel_compiles_without_a_warning(build):
    compiler, *flags = BUILDS[build]
    command = [needs_tool(compiler), *flags, *WARNINGS, "-O2", "-ffp-contract=off", "-fsyntax-only"]
    made = subprocess.run(
        [*command, f"-I{KERNELS / 'include'}", *map(str, sources())],
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr


@pytest.mark.parametrize("tool", [pytest.param("gcc", marks=pytest.mark.slow), "clang"])
def test_on_a_core_none_warns_or_needs_more_than_the_runtime(tool, tmp_path):
    """No libm, no allocator, no 64-bit division, no static data."""
    for source, made in zip(sources(), kernel_objects("cortex-m4", tool, sources(), tmp_path), strict=True):
        found = symbols(made)
        assert found.functions == {source.stem}
        assert found.needed <= {"memcpy", "memset", "memmove", *AEABI}, source.name
        assert not found.variables, source.name


def test_a_file_holds_one_public_function_named_like_it():
    for source in sources():
        text = source.read_text()
        public = re.findall(r"^(?!static)\w[\w *]* \*?(nn_\w+)\(", text, re.MULTILINE)
        assert public == [source.stem], source.name
