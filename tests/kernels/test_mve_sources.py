"""The Helium kernels' sources: no warnings, nothing needed, one function a file."""

import re
import subprocess

import pytest
from cbuilds import family_files, kernel_objects, needed_outside, symbols, unlisted
from ckernels import KERNELS, WARNINGS
from needs import needs_tool

C = sorted((KERNELS / "cortex_m_mve").glob("*.c"))
ASSEMBLY = sorted((KERNELS / "cortex_m_mve").glob("*.S"))
FILES = family_files("cortex_m_mve")
HEADERS = sorted((KERNELS / "cortex_m_mve").glob("*.h"))
CORE = ("-mcpu=cortex-m55", "-mfloat-abi=hard", "-ffreestanding", "-ffp-contract=off")
SELECT = {"clang": "--target=thumbv8.1m.main-none-eabihf", "arm-none-eabi-gcc": "-mthumb"}
RUNTIME = {"memcpy", "memset", "memmove", *(f"__aeabi_mem{word}" for word in ("cpy", "move", "set", "clr4"))}


def check(objects):
    """What a kernel needs beyond the files that its entry lists is of the runtime; none has variables."""
    found = {source: symbols(target) for source, target in zip(FILES, objects, strict=True)}
    assert not [source.name for source, each in found.items() if each.variables]
    assert needed_outside("cortex_m_mve", found) <= RUNTIME


@pytest.mark.parametrize("tool", ["clang", pytest.param("gcc", marks=pytest.mark.slow)])
def test_no_warnings_and_nothing_needed_but_the_runtime(tool, tmp_path):
    check(kernel_objects("cortex-m55", tool, FILES, tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize(("compiler", "level"), [("clang", "-Os"), ("arm-none-eabi-gcc", "-O1")])
def test_nor_at_other_levels(compiler, level, tmp_path):
    """Each compiler at one level that is not its own: which calls are made of loops is the compiler's."""
    flags = (*CORE, level, *WARNINGS, "-Wa,--fatal-warnings", f"-I{KERNELS / 'include'}")
    command = [needs_tool(compiler), SELECT[compiler], *flags]
    done = subprocess.run(
        [*command, "-c", *map(str, FILES)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    check([tmp_path / f"{source.stem}.o" for source in FILES])


def test_every_file_is_listed():
    assert not unlisted("cortex_m_mve")


def test_a_file_holds_one_public_function_and_its_scratch_twin():
    for source in C:
        pattern = r"^(?!static|NN_)\w[\w *]* \*?(nn_\w+)\("
        public = re.findall(pattern, source.read_text(), re.MULTILINE)
        assert public in ([source.stem], [source.stem + "_scratch_bytes", source.stem]), source.name


def test_assembly_names_the_functions_that_it_holds_and_their_sizes(tmp_path):
    """So that frames are read from the code, and a linker drops what nobody calls."""
    for source, made in zip(ASSEMBLY, kernel_objects("cortex-m55", "clang", ASSEMBLY, tmp_path), strict=True):
        text = source.read_text()
        begun, ended = (set(re.findall(rf"^ +{word} +(nn_\w+)$", text, re.M)) for word in ("function", "end"))
        found = symbols(made)
        assert found.functions == begun, source.name
        assert begun <= ended, source.name
        assert all(name.startswith("nn_mve_") for name in begun)
