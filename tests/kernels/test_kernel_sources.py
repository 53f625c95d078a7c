"""The kernels' sources: no warnings, no dependency but the runtime, one public function per file."""

import re
import subprocess

import pytest
from buildtool_plugins import baremetal
from cbuilds import BUILDS, family_files, kernel_objects, needed_outside, symbols, unlisted
from ckernels import KERNELS, WARNINGS
from needs import needs_tool
from paths import ROOT

slow = pytest.mark.slow
RV64 = ("--target=riscv64-unknown-elf", "-mabi=lp64", "-mcmodel=medany")
FREESTANDING = ("-nostdlibinc", "-isystem", str(baremetal.ROOT / "include"), "-std=gnu99", "-O1")
MEMORY = {"memcpy", "memset", "memmove"}
# No libm, no allocator, no 64-bit division; the runtime has Arm's names for functions of memory.
RUNTIME = {
    "reference": MEMORY | {f"__aeabi_mem{word}" for word in ("cpy", "move", "set", "clr", "clr4")},
    "cortex_m_dsp": MEMORY | {f"__aeabi_mem{word}" for word in ("cpy", "move", "set", "clr")},
    "cortex_m_mve": MEMORY | {f"__aeabi_mem{word}" for word in ("cpy", "move", "set", "clr4")},
    "riscv": MEMORY,
    "riscv_v": MEMORY,
    "mul32": MEMORY
    | {f"__{word}di3" for word in ("mul", "umulsi", "ashl", "lshr", "ashr")}
    | {f"__{word}si3" for word in ("div", "mod", "udiv", "umod")},
}
# Every core and every compiler, but not every combination: warnings and the code of loops depend on one of
# both at a time.
BOARDS = [
    ("reference", "cortex-m4", "clang"),
    ("reference", "cortex-m4", "gcc"),
    ("cortex_m_dsp", "cortex-m4", "clang"),
    ("cortex_m_dsp", "cortex-m4", "gcc"),
    ("cortex_m_dsp", "mps2-an500", "gcc"),
    ("cortex_m_dsp", "mps2-an505", "clang"),
    ("cortex_m_mve", "cortex-m55", "clang"),
    ("cortex_m_mve", "cortex-m55", "gcc"),
    ("riscv", "qemu-virt-rv32", ""),
    ("riscv_v", "qemu-virt-rv32v", ""),
    ("mul32", "esp8266", ""),
]
# Cores that no emulated board has.
ELSEWHERE = [
    pytest.param(family, "clang", (*flags, *FREESTANDING), id=name)
    for name, family, *flags in (
        ("rv32imc", "riscv", "--target=riscv32-unknown-elf", "-mabi=ilp32", "-march=rv32imc"),
        ("rv64 Zve32x", "riscv_v", *RV64, "-march=rv64imac_zve32x_zvl128b"),
    )
]


def check(family, objects):
    """Checks that kernels need only their listed files and the runtime, and that they have no variables."""
    symbols_of = {
        source: symbols(object_file)
        for source, object_file in zip(family_files(family), objects, strict=True)
    }
    assert not [source.name for source, each in symbols_of.items() if each.variables]
    assert needed_outside(family, symbols_of) <= RUNTIME[family]


@slow
@pytest.mark.parametrize(("family", "board", "tool"), BOARDS)
def test_no_warnings_and_nothing_needed_but_the_runtime(family, board, tool, tmp_path):
    if family == "mul32":
        needs_tool("xtensa-lx106-elf-gcc")
    check(family, kernel_objects(board, tool, family_files(family), tmp_path))


@slow
@pytest.mark.parametrize(("family", "compiler", "flags"), ELSEWHERE)
def test_nor_on_other_cores(family, compiler, flags, tmp_path):
    files = family_files(family)
    words = (*WARNINGS, "-Wa,--fatal-warnings", *flags, f"-I{KERNELS / 'include'}", "-c")
    command = [needs_tool(compiler), *words, *map(str, files)]
    process = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    check(family, [tmp_path / f"{source.stem}.o" for source in files])


@pytest.mark.slow
def test_plain_kernels_compile_without_a_warning_for_this_machine():
    """The test of boards has the warnings that need optimised code."""
    compiler, *flags = BUILDS["gcc host"]
    words = (*flags, *WARNINGS, "-fsyntax-only", f"-I{KERNELS / 'include'}")
    subprocess.run([needs_tool(compiler), *words, *map(str, family_files("reference"))], check=True)


@pytest.mark.parametrize("family", RUNTIME)
def test_every_file_is_listed(family):
    assert not unlisted(family)


@pytest.mark.parametrize("family", ["reference", "cortex_m_dsp", "cortex_m_mve"])  # macros make the others'
def test_a_file_holds_one_public_function_and_its_scratch_twin(family):
    pattern = re.compile(r"^(?!static|__attribute__|NN_)\w[\w *]* \*?(nn_\w+)\(", re.MULTILINE)
    for source in (KERNELS / family).glob("*.c"):
        public = set(pattern.findall(source.read_text()))  # some appear for the core and for its model
        assert public - {f"{source.stem}_scratch_bytes"} == {source.stem}, source.name


def test_assembly_names_the_functions_that_it_holds_and_their_sizes(tmp_path):
    """So stack frames can be read from the code, and a linker can drop unused functions."""
    assembly = sorted((KERNELS / "cortex_m_mve").glob("*.S"))
    for source, object_file in zip(
        assembly, kernel_objects("cortex-m55", "clang", assembly, tmp_path), strict=True
    ):
        text = source.read_text()
        begun, ended = (set(re.findall(rf"^ +{word} +(nn_\w+)$", text, re.M)) for word in ("function", "end"))
        own_symbols = symbols(object_file)
        assert own_symbols.functions == begun, source.name
        assert begun <= ended, source.name
        assert all(name.startswith("nn_mve_") for name in begun)


# ---- inputs are const: only the view of an output becomes an address to write to --------------------------

FILES = [*(ROOT / "kernels").rglob("*.[ch]"), *(ROOT / "examples" / "third_party_target").rglob("*.c")]


def test_only_outputs_become_writable():
    asked_for = re.compile(r"\bnn_out_(?:data|row|pixel)\(([^,)]*)")
    of_an_output = re.compile(r"(?:const nn_view \*|&?(?:\w+->)?)out")
    uses = {(path.name, view) for path in FILES for view in asked_for.findall(path.read_text())}
    assert len(uses) > 40
    assert not {(name, view) for name, view in uses if not of_an_output.fullmatch(view)}


def test_no_kernel_casts_the_const_of_a_view_away():
    """nn_out_data has the only cast from a view's data to a writable address."""
    cast = re.compile(r"\(int(?:8|16|32)_t \*\)(?:\(\w+ \*\))*\w*->data|\(u?int\w+ \*\)nn_(?:row|pixel)\(")
    assert [path.name for path in FILES if cast.search(path.read_text())] == []
    assert (KERNELS / "include" / "nn.h").read_text().count("(int8_t *)(uintptr_t)out->data") == 1


def test_every_operand_of_the_interface_is_const():
    headers = [KERNELS / "include" / "nn.h", *KERNELS.glob("*/nn_*.h")]
    text = "".join(path.read_text() for path in headers if path.stem in ("nn", f"nn_{path.parent.name}"))
    operands = re.findall(r"[(,]\s*((?:const )?\w+ \*)in\d?\b", text)
    assert len(operands) > 100
    assert set(operands) <= {"const nn_view *", "const int8_t *"}
