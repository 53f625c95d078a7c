"""The DSP kernels' sources: no warnings on any core that has them, nothing needed, one function a file."""

import re

import pytest
from cbuilds import family_files, kernel_objects, needed_outside, symbols, unlisted
from ckernels import KERNELS

SOURCES = sorted((KERNELS / "cortex_m_dsp").glob("*.c"))
HEADERS = sorted((KERNELS / "cortex_m_dsp").glob("*.h"))
RUNTIME = {"memcpy", "memset", "memmove", *(f"__aeabi_mem{word}" for word in ("cpy", "move", "set", "clr"))}


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
    """Beyond the files that a kernel's entry in the catalogue lists: plain kernels among them."""
    files, found = family_files("cortex_m_dsp"), {}
    for source, target in zip(files, kernel_objects(board, tool, files, tmp_path), strict=True):
        found[source] = symbols(target)
        assert not found[source].variables, source.name
    assert needed_outside("cortex_m_dsp", found) <= RUNTIME


def test_every_file_is_listed():
    assert not unlisted("cortex_m_dsp")


def test_a_file_holds_one_public_function_and_its_scratch_twin():
    for source in SOURCES:
        pattern = r"^(?!static|__attribute__|NN_)\w[\w *]* \*?(nn_\w+)\("
        # once for the core, once for its model
        public = list(dict.fromkeys(re.findall(pattern, source.read_text(), re.MULTILINE)))
        assert public in ([source.stem], [source.stem + "_scratch_bytes", source.stem]), source.name
