"""All kernels and emitted C are strict C99, and need no more of a compiler than nn_compiler.h gives."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from everyop import every_operator
from loaded import load_target
from needs import needs_tool
from paths import ROOT
from test_guards import chain, remembering

from buildtool.base.modes import Guards
from buildtool.emit.golden import Checks, Golden, crc_of_outputs, made_up
from buildtool.emit.sources import Sources, emit, kernel_sources
from buildtool.firmware.firmware import write_files
from buildtool.graph.rewrite import rewrite
from buildtool.graph.types import Graph
from buildtool.options.values import PlanOptions
from buildtool.plan.choose.choose import make_plan
from buildtool.target.kernels import all_kernel_sources, kernel_includes
from buildtool.target.types import Target

pytestmark = pytest.mark.slow

STRICT = (
    *("-std=c99", "-pedantic-errors", "-Werror", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wundef"),
    *("-Wstrict-prototypes", "-Wmissing-prototypes", "-Wold-style-definition", "-fsyntax-only"),
)
CORES = {  # the compilers of a board, and their flags beside the core's
    "host": {"gcc": (), "clang": ()},
    "cortex-m4": {"arm-none-eabi-gcc": (), "clang": ("--target=thumbv7em-none-eabihf",)},
    "cortex-m55": {"arm-none-eabi-gcc": (), "clang": ("--target=thumbv8.1m.main-none-eabihf",)},
    "esp32-c3": {"clang": ("--target=riscv32-unknown-elf",)},
    "qemu-virt-rv32v": {"clang": ("--target=riscv32-unknown-elf",)},
}


def emitted(graph: Graph, target: Target, name: str, **options: object) -> Sources:
    """A network with all checks."""
    graph = rewrite(graph)
    golden = Golden(
        1, b"", crc_of_outputs(graph, made_up(1, sum(graph.tensors[t].size for t in graph.inputs)))
    )
    plan = make_plan(graph, target, PlanOptions(**options))
    return emit(graph, plan, target, name, checks=Checks(Guards.INVOKE, golden))


def write_networks(target: Target, folder: Path) -> list[Path]:
    """Writes networks of several forms; returns their C files."""
    rows = {"image": "stream", "objective": "ram"}
    every = rewrite(every_operator())
    networks = [emitted(chain(1), target, "rows", **rows), emitted(remembering(2), target, "state", **rows)]
    plan = make_plan(every, target, PlanOptions(strategy="layerwise"))
    networks.append(emit(every, plan, target, "every"))
    for sources in networks:
        write_files(sources.files, folder)
    return [folder / name for sources in networks for name in sources.c_files]


@pytest.mark.parametrize("board", CORES)
def test_kernels_and_networks_are_strict_c99(board: str, tmp_path: Path) -> None:
    target = load_target(board)
    own = [path for path in all_kernel_sources(target) if path.suffix == ".c"]
    portable = {path for path in own if path.parent.name in ("reference", "runtime")}  # compiled for the host
    files = own if board == "host" else [path for path in own if path not in portable]
    files += write_networks(target, tmp_path) if board in ("host", "cortex-m4") else []
    includes = [f"-I{folder}" for folder in (tmp_path, *kernel_includes(target))]
    bare = ROOT / "plugins/buildtool_plugins/baremetal/include"
    headers = [] if board == "host" else ["-ffreestanding", "-isystem", bare]
    for compiler, flags in CORES[board].items():
        command = [needs_tool(compiler), *flags, *target.board.core.cflags, *headers, *STRICT, *includes]
        shown = subprocess.run([*command, *files], capture_output=True, text=True, check=False)
        assert shown.returncode == 0, shown.stderr[:4000]


def test_a_compiler_without_gnu_s_functions_gives_the_reference_s_output(tmp_path: Path) -> None:
    target = load_target("host")
    sources = emitted(chain(4), target, "net", objective="ram")
    write_files(sources.files, tmp_path)
    (tmp_path / "main.c").write_text(
        '#include "net.h"\nNET_DEFINE_ARENA(arena);\n'
        "int main(void) {\n    const nn_status status = net_init(arena, sizeof arena, net_weights);\n"
        "    return status == NN_OK ? (int)net_self_test() : 99;\n}\n"
    )
    graph = rewrite(chain(4))
    plan = make_plan(graph, target, PlanOptions(objective="ram"))
    files = [
        tmp_path / "main.c",
        tmp_path / "net.c",
        tmp_path / "net_weights.S",
        *kernel_sources(plan, target),
    ]
    includes = [f"-I{folder}" for folder in (tmp_path, *kernel_includes(target))]
    words = [needs_tool("gcc"), "-std=c99", "-O1", "-DNN_PLAIN", f"-Wa,-I{tmp_path}", *includes, *files]
    subprocess.run([*words, "-pthread", "-o", tmp_path / "app"], check=True)
    assert subprocess.run([tmp_path / "app"], check=False).returncode == 0
    plain = [path for path in all_kernel_sources(target) if path.parent.name in ("reference", "runtime")]
    subprocess.run([needs_tool("gcc"), "-DNN_PLAIN", *STRICT, *includes, *plain], check=True)
