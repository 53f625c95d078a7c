"""The DSP kernels' sources: no warnings on any core that has them, nothing needed, one function a file."""

import re
import subprocess

import pytest
from cbuilds import kernel_objects, symbols
from ckernels import KERNELS
from needs import needs_tool

SOURCES = sorted((KERNELS / "cortex_m_dsp").glob("*.c"))
HEADERS = sorted((KERNELS / "cortex_m_dsp").glob("*.h"))
RUNTIME = {"memcpy", "memset", "memmove", "__aeabi_memcpy", "__aeabi_memset", "__aeabi_memclr"}


# Boards with a Cortex-M4, M7 and M33. Every core and every compiler appear in the slow tier; their product
# does not: what the front ends warn of and what loops become depends on one of both at a time.
BUILDS = [
    pytest.param("cortex-m4", "clang"),
    pytest.param("cortex-m4", "gcc", marks=pytest.mark.slow),
    pytest.param("mps2-an500", "gcc", marks=pytest.mark.slow),
    pytest.param("mps2-an505", "clang", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("board", "tool"), BUILDS)
def test_no_warnings_and_nothing_needed_but_the_runtime(board, tool, tmp_path):
    needed, made = set(), {"nn_add_s8", "nn_mul_s8", "nn_mean_s8"}
    made |= {"nn_avg_pool_s8", "nn_max_pool_s8"}  # the plain twins serve what the others do not
    made |= {"nn_maximum_s8", "nn_minimum_s8"}
    for source, target in zip(SOURCES, kernel_objects(board, tool, SOURCES, tmp_path), strict=True):
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
