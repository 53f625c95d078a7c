"""The DSP kernels' sources: no warnings on any core that has them, nothing needed, one function a file."""

import re
import subprocess

import pytest
from cbuilds import symbols
from ckernels import KERNELS, WARNINGS
from needs import needs_tool

SOURCES = sorted((KERNELS / "cortex_m_dsp").glob("*.c"))
HEADERS = sorted((KERNELS / "cortex_m_dsp").glob("*.h"))
CORES = {
    "M4": ("cortex-m4", "fpv4-sp-d16", "thumbv7em-none-eabihf"),
    "M7": ("cortex-m7", "fpv5-d16", "thumbv7em-none-eabihf"),
    "M33": ("cortex-m33", "fpv5-sp-d16", "thumbv8m.main-none-eabihf"),
}
RUNTIME = {"memcpy", "memset", "memmove", "__aeabi_memcpy", "__aeabi_memset"}


def command(compiler, core):
    cpu, fpu, triple = CORES[core]
    select = [f"--target={triple}"] if compiler == "clang" else ["-mthumb"]
    flags = [f"-mcpu={cpu}", f"-mfpu={fpu}", "-mfloat-abi=hard", "-ffreestanding", "-O3", "-ffp-contract=off"]
    return [needs_tool(compiler), *select, *flags, *WARNINGS, f"-I{KERNELS / 'include'}"]


# Every core and every compiler appear in the fast tier; their product does not.
FAST = {("clang", "M4"), ("arm-none-eabi-gcc", "M7"), ("clang", "M33")}
BUILDS = [
    pytest.param(compiler, core, marks=() if (compiler, core) in FAST else pytest.mark.slow)
    for compiler in ("clang", "arm-none-eabi-gcc")
    for core in CORES
]


@pytest.mark.parametrize(("compiler", "core"), BUILDS)
def test_no_warnings_and_nothing_needed_but_the_runtime(compiler, core, tmp_path):
    needed, made = set(), {"nn_add_s8", "nn_mul_s8", "nn_mean_s8"}
    made |= {"nn_avg_pool_s8", "nn_max_pool_s8"}  # the plain twins serve what the others do not
    for source in SOURCES:
        target = tmp_path / f"{source.stem}.o"
        done = subprocess.run(
            [*command(compiler, core), "-c", str(source), "-o", str(target)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        found = symbols(target)
        needed |= found.needed
        made |= found.functions
        assert not found.variables, source.name
    assert needed - made <= RUNTIME


def test_a_file_holds_one_public_function_and_its_scratch_twin():
    for source in SOURCES:
        pattern = r"^(?!static|__attribute__|NN_)\w[\w *]* \*?(nn_\w+)\("
        # once for the core, once for its model
        public = list(dict.fromkeys(re.findall(pattern, source.read_text(), re.MULTILINE)))
        assert public in ([source.stem], [source.stem + "_scratch_bytes", source.stem]), source.name


def test_the_sources_are_formatted():
    formatter = needs_tool("clang-format")
    subprocess.run([formatter, "--dry-run", "--Werror", *map(str, [*SOURCES, *HEADERS])], check=True)
