"""Folders of networks, compiled by what comes with a machine: buildtool has no part in it."""

from __future__ import annotations

import json
import re
import shutil
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


MAIN = Path(__file__).with_name("two_forms.c")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of two networks for each board."""
    out = tmp_path_factory.mktemp("bundles")
    for board in ("host", "cortex-m4", "cortex-m55", "qemu-virt-rv32v"):
        bundle(out / board, board, "wake")
        if board != "qemu-virt-rv32v":
            bundle(out / board, board, "nap", *STREAMED)
    shutil.copy(MAIN, out / "main.c")
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
    shutil.copy(MAIN, source / "main.c")
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
