"""Folders of networks, compiled by what comes with a machine: buildtool has no part in it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from cbuilds import symbols
from made_up import SHOWS, scores
from needs import needs_tool
from paths import ROOT
from programs import said

from buildtool.base.session import Session
from buildtool.fronts.cli.main import run

SESSION = Session()
STRICT = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wstrict-prototypes", "-pedantic", "-Werror")
QEMU = ("-semihosting-config", "enable=on,target=native", "-display", "none", "-monitor", "none")
STREAMED = ("--image", "stream", "--objective", "ram")

pytestmark = pytest.mark.slow


def bundle(out: Path, board: str, name: str, *words: str) -> None:
    words = ("build", "ds_cnn", "--board", board, "--name", name, "--bundle", "--out", str(out), *words)
    assert run(words, SESSION) == 0


# Two networks of one program: one is given its input, the other asks for it row by row.
MAIN = """\
#include "nap.h"
#include "wake.h"
#include <stdio.h>

WAKE_DEFINE_ARENA_IN(arena, ".bss.nn_arena.both");
WAKE_CHECK_ARENA(arena);
NAP_CHECK_ARENA(arena);

static uint32_t state;

static void fill(int8_t *data, int bytes) {
    for (int i = 0; i < bytes; i++) {
        state = state * 1664525U + 1013904223U;
        data[i] = (int8_t)((int32_t)(state >> 24) - 128);
    }
}

static int deliver(void *context, int32_t row, int8_t *data) {
    (void)context;
    (void)row;
    fill(data, NAP_ROW_BYTES);
    return 0;
}

static void show(const int8_t *scores) {
    printf("scores:");
    for (int i = 0; i < WAKE_OUTPUT0_ELEMENTS; i++) {
        printf(" %d", scores[i]);
    }
    printf("\\n");
}

int main(void) {
    if (wake_init(arena, sizeof arena, wake_weights) != NN_OK) {
        return 1;
    }
    state = 1;
    fill(wake_input(0), WAKE_INPUT0_BYTES);
    if (wake_invoke() != NN_OK) {
        return 2;
    }
    show(wake_output(0));
    if (nap_init(arena, sizeof arena, nap_weights) != NN_OK) {
        return 3;
    }
    state = 1;
    nap_set_row_source(deliver, NULL);
    if (nap_invoke() != NN_OK) {
        return 4;
    }
    show(nap_output(0));
    return 0;
}
"""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of two networks for each board."""
    out = tmp_path_factory.mktemp("bundles")
    for board in ("host", "cortex-m4", "cortex-m55", "qemu-virt-rv32v"):
        bundle(out / board, board, "wake")
        if board != "qemu-virt-rv32v":
            bundle(out / board, board, "nap", *STREAMED)
    (out / "main.c").write_text(MAIN)
    return out


def allowed(core: str) -> set[str]:
    """What objects may need of a C library, as the page of the C interface says; `core` begins a row."""
    page = (ROOT / "docs/reference/c-interface.md").read_text(encoding="utf-8")
    (any_core,) = re.findall(r"(?m)^\| any \|(.*)\|$", page)
    named = set(re.findall(r"`(\w+)`", any_core))
    if core != "any":
        (line,) = re.findall(rf"(?m)^\| {core}[^|]*\|(.*)\|$", page)
        own = set(re.findall(r"`(\w+)`", line))
        named |= own | ({f"{name}{n}" for name in own for n in (4, 8)} if "4 or 8" in line else set())
    assert len(named) > 2
    return named


def refuse_more(objects: list[str], core: str) -> None:
    """Fails where objects need what none of them has and the page does not name."""
    found = [symbols(Path(made)) for made in objects]
    own = {name for one in found for name in one.functions}
    needed = {name for one in found for name in one.needed if not name.endswith("_weights")}
    assert needed - own <= allowed(core), core
    assert own & needed  # kernels: this looked at something


def compiled(folder: Path, out: Path, cc: tuple[str, ...]) -> list[str]:
    """The objects of a folder's sources, by its listing alone."""
    told = json.loads((folder / "sources.json").read_text())
    objects = []
    for name in [*told["sources"], *told["assembly"]]:
        made = out / (name.replace("/", "_") + ".o")
        folders = [f"-I{folder / place}" for place in (*told["include"], *told["include_kernels"])]
        flags = [*told["exact"], *(f"-D{define}" for define in told["defines"]), "-O1"]
        out.mkdir(exist_ok=True)
        assert said(folder, *cc, *flags, *folders, "-c", name, "-o", str(made)) == ""
        objects.append(str(made))
    return objects


def test_c99_for_this_machine_without_a_warning(folders: Path, tmp_path: Path) -> None:
    program = (needs_tool("gcc"), "-std=c99", *STRICT)
    objects = compiled(folders / "host", tmp_path / "o", program)
    include = [f"-I{folders}/host/{name}" for name in ("networks/wake", "networks/nap", "kernels/include")]
    said(tmp_path, *program, *include, str(folders / "main.c"), *objects, "-o", "app")
    assert re.findall(SHOWS, said(tmp_path, "./app")) == [scores()] * 2
    refuse_more(objects, "any")


def test_plain_make_for_cortex_m_gives_the_references_bytes(folders, tmp_path):
    """By the rules of the folder's own page, with newlib and GNU ld. The example is for a Cortex-M4."""
    needs_tool("arm-none-eabi-gcc")
    board = "cortex-m55"
    (tmp_path / "networks").symlink_to(folders / board)
    (rules,) = re.findall(r"(?s)```make\n(.*?)```", (folders / board / "README.md").read_text())
    example = ROOT / "examples/bundle_firmware"
    # its memories lie where those of the example's board do, and one is smaller
    script = (example / "app.ld").read_text()
    script = script.replace("ORIGIN = 0x20000000, LENGTH = 4M", "ORIGIN = 0x20000000, LENGTH = 512K")
    (tmp_path / "app.ld").write_text(script)
    makefile = f"""\
all: build/app.elf
CC := arm-none-eabi-gcc
AR := arm-none-eabi-ar
CFLAGS = $(NN_CORE) -std=c99 -O2 {" ".join(STRICT)}
{rules}
build/app.elf: {folders}/main.c {example}/startup.c build/libnn.a
\t$(CC) $(CPPFLAGS) $(NN_CORE) -O2 -nostartfiles --specs=nano.specs --specs=rdimon.specs -L $(NN_DIR) \\
\t    -T app.ld $^ -o $@
"""
    (tmp_path / "Makefile").write_text(makefile)
    said(tmp_path, "make", "-j2")
    refuse_more([str(path) for path in (tmp_path / "build/nn").rglob("*.o")], "any")
    assert said(tmp_path, "make", "-q") == ""
    machine = ("-M", "mps3-an547", *QEMU, "-serial", "none")
    shown = said(tmp_path, needs_tool("qemu-system-arm"), *machine, "-kernel", "build/app.elf")
    assert re.findall(SHOWS, shown) == [scores()] * 2


def test_the_kernels_for_helium_and_vectors_compile_from_the_listing(folders: Path, tmp_path: Path) -> None:
    clang = needs_tool("clang")
    targets = {"cortex-m55": "--target=arm-none-eabi", "qemu-virt-rv32v": "--target=riscv32-unknown-elf"}
    for board, target in targets.items():
        told = json.loads((folders / board / "sources.json").read_text())
        program = (clang, target, *told["core"], "-std=gnu99", "-ffreestanding", "-Werror")
        objects = compiled(folders / board, tmp_path / board, program)
        refuse_more(objects, "RISC-V" if "riscv" in target else "Arm with clang")


def test_a_weights_array_and_the_assembly_hold_the_image(folders: Path, tmp_path: Path) -> None:
    from elftools.elf.elffile import ELFFile

    folder = folders / "host"
    image = (folder / "networks/wake/wake_weights.bin").read_bytes()
    include = ("-Inetworks/wake", "-Ikernels/include", "-DNN_WEIGHTS_IN_C")
    for source in ("wake_weights.c", "wake_weights.S"):
        made = str(tmp_path / f"{source}.o")
        said(folder, needs_tool("gcc"), *include, "-c", f"networks/wake/{source}", "-o", made)
        with Path(made).open("rb") as file:
            elf = ELFFile(file)
            section = elf.get_section_by_name(".nn_weights")
            (symbol,) = elf.get_section_by_name(".symtab").get_symbol_by_name("wake_weights")
            assert section.data()[: len(image)] == image
            assert section["sh_addralign"] == 16 and symbol["st_value"] == 0
            assert symbol["st_size"] == len(image)
    plain = str(tmp_path / "plain.o")
    said(folder, needs_tool("gcc"), *include[:2], "-c", "networks/wake/wake_weights.c", "-o", plain)
    with Path(plain).open("rb") as file:
        assert ELFFile(file).get_section_by_name(".nn_weights") is None


CMAKE = """\
cmake_minimum_required(VERSION 3.13)
project(app LANGUAGES C)
add_subdirectory("@folder@" networks)
add_executable(app main.c)
target_link_libraries(app PRIVATE wake nap)
"""


def built_by_cmake(folder: Path, tmp_path: Path, *words: str) -> Path:
    """The build folder of a project with a blank in its name."""
    source, build = tmp_path / "a project", tmp_path / "a build"
    source.mkdir()
    (source / "main.c").write_text(MAIN)
    (source / "CMakeLists.txt").write_text(CMAKE.replace("@folder@", str(folder)))
    said(tmp_path, needs_tool("cmake"), "-S", str(source), "-B", str(build), *words)
    said(tmp_path, "cmake", "--build", str(build), "-j2")
    return build


def test_cmake_builds_the_folder_as_a_part_of_a_project(folders: Path, tmp_path: Path) -> None:
    """By Ninja, with the weights as C; test_systems.py does it by Makefiles, with assembly."""
    needs_tool("ninja")
    words = ("-G", "Ninja", "-DNN_WEIGHTS_IN_C=ON", f"-DCMAKE_C_COMPILER={needs_tool('clang')}")
    build = built_by_cmake(folders / "host", tmp_path, *words, f"-DCMAKE_C_FLAGS=-std=c99 {' '.join(STRICT)}")
    assert re.findall(SHOWS, said(build, "./app")) == [scores()] * 2
    assert "no work to do" in said(tmp_path, "cmake", "--build", str(build))


def test_a_network_may_be_called_as_a_target_of_cmake(tmp_path: Path) -> None:
    bundle(tmp_path / "nets", "host", "all")
    said(tmp_path, needs_tool("cmake"), "-S", "nets", "-B", "build")
    assert "target_link_libraries(app PRIVATE all_network)" in (tmp_path / "nets/README.md").read_text()


def test_two_folders_in_one_project_are_refused(folders: Path, tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text(
        f"include {folders}/host/sources.mk\ninclude {folders}/cortex-m4/sources.mk\n"
    )
    assert "There are two folders of networks" in said(tmp_path, needs_tool("make"), fails=True)
    text = "cmake_minimum_required(VERSION 3.13)\nproject(app LANGUAGES C)\n"
    text += f"add_subdirectory({folders}/host a)\nadd_subdirectory({folders}/cortex-m4 b)\n"
    (tmp_path / "CMakeLists.txt").write_text(text)
    shown = said(tmp_path, needs_tool("cmake"), "-S", ".", "-B", "build", fails=True)
    assert "There are two folders of networks in this project" in " ".join(shown.split())


def test_the_linker_fragment_puts_weights_and_arena_into_their_memories(folders, tmp_path):
    from buildtool_plugins.tools.find import find_clang, find_lld
    from elftools.elf.elffile import ELFFile

    folder = folders / "cortex-m4"
    (tmp_path / "app.ld").write_text(
        "MEMORY { A (rx) : ORIGIN = 0x0, LENGTH = 1M  B (rx) : ORIGIN = 0x10000000, LENGTH = 1M\n"
        "C (rw) : ORIGIN = 0x20000000, LENGTH = 1M  D (rw) : ORIGIN = 0x30000000, LENGTH = 1M }\n"
        'REGION_ALIAS("NN_WEIGHTS", B)\nREGION_ALIAS("NN_ARENA", D)\nENTRY(main)\n'
        "SECTIONS { .text : { *(.text .text.*) } > A\nINCLUDE nn_sections.ld\n"
        ".rodata : { *(.rodata*) } > A\n.bss : { *(.data .bss .bss.* COMMON) } > C\n"
        "/DISCARD/ : { *(.ARM.*) } }\n"
    )
    (tmp_path / "app.c").write_text(
        '#include "wake.h"\nWAKE_DEFINE_ARENA_IN(arena, ".bss.nn_arena");\nstatic int other;\n'
        "int main(void) { other++; return (int)wake_init(arena, sizeof arena, wake_weights); }\n"
        "void *memcpy(void *a, const void *b, size_t n) { (void)b; (void)n; return a; }\n"
        "void *memset(void *a, int b, size_t n) { (void)b; (void)n; return a; }\n"
    )
    core = json.loads((folder / "sources.json").read_text())["core"]
    cc = (needs_tool("arm-none-eabi-gcc"), *core, "-ffreestanding")
    folders_ = [f"-I{folder}/{name}" for name in ("networks/wake", "kernels/include", "kernels/cortex_m_dsp")]
    sources = [f"{folder}/networks/wake/wake.c", f"{folder}/networks/wake/wake_weights.S"]
    runtime = [f"{folder}/kernels/runtime/{name}.c" for name in ("nn_image", "nn_crc32")]
    said(tmp_path, *cc, "-O2", *folders_, "-c", "app.c", *sources, *runtime)
    objects = ("app.o", "wake.o", "wake_weights.o", "nn_image.o", "nn_crc32.o")
    # `wake_invoke` is not called, so that its kernels are not needed
    words = ("--gc-sections", "--unresolved-symbols=ignore-all", f"-L{folder}", "-T", "app.ld")
    for ld in (needs_tool("arm-none-eabi-ld"), find_lld(find_clang())):
        said(tmp_path, ld, *words, *objects, "-o", "app.elf")
        with (tmp_path / "app.elf").open("rb") as file:
            found = {s.name: s for s in ELFFile(file).iter_sections()}
            assert found[".nn_weights"]["sh_addr"] == 0x10000000
            assert found[".nn_arena"]["sh_addr"] == 0x30000000
            assert found[".nn_arena"]["sh_type"] == "SHT_NOBITS"
            assert found[".nn_arena"]["sh_size"] == 11840
