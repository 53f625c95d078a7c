"""Builds and runs the probe firmware of tests/targets/probe, which replaces an emitted network."""

import functools
import struct
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from needs import needs_tool
from paths import TESTS

from buildtool.firmware.firmware import link_flags
from buildtool.firmware.objects import Compiler, Unit, compile_all
from buildtool.target.kernels import kernels_root
from buildtool.target.registry import load_board, plugin
from buildtool.target.types import Board, RunRequest, RunResult, Toolchain

ROOT = TESTS / "targets/probe"
ACTIONS = (
    "echo", "touch", "stack", "wild_store", "loop", "recurse", "status", "divide", "undefined", "count",
    "straddle", "timed",
)  # fmt: skip

# Every kind of core and every compiler, but not all combinations.
ARM = [pytest.param("cortex-m4", "clang"), pytest.param("cortex-m55", "gcc")]
RISCV = [pytest.param("qemu-virt-rv32", "clang"), pytest.param("hifive1", "clang")]
XTENSA = [pytest.param("esp8266", "gcc")]
GCC = {"cortex_m": "arm-none-eabi-gcc", "xtensa": "xtensa-lx106-elf-gcc"}  # of boards' families
ALL = [pytest.param("host", "gcc"), *ARM, *RISCV]

_FOLDER = tempfile.TemporaryDirectory(prefix="buildtool-probe-")


class BuildError(Exception):
    """The messages of the compiler or the linker."""


WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Werror")


def toolchain(board: Board, name: str) -> Toolchain:
    """Returns a toolchain. Skips the test where it is not installed."""
    if name == "gcc" and board.family in GCC:
        needs_tool(GCC[board.family])
    return plugin(board).toolchain(board, name)


def link(board: Board, name: str, sources: Sequence[Path], flags: Sequence[str], work: Path) -> Path:
    """Compiles and links sources, the harness and start-up code. BuildError has the linker's messages.

    Warnings are errors. Objects come from the cache.
    """
    tools = toolchain(board, name)
    harness = plugin(board).harness(board)
    includes = (ROOT, kernels_root() / "include", *map(Path, tools.includes), *harness.includes)
    files = [*sources, *harness.sources, *map(Path, tools.objects)]
    compiler = Compiler(tools.cc, tools.identity, (*tools.cflags, *WARNINGS, *flags))
    objects = compile_all(compiler, [Unit(path, includes) for path in files], work)
    elf = work / "probe.elf"
    linking = link_flags(tools, work)
    command = [tools.cc, *tools.cflags, *flags, *map(str, objects), *linking, "-o", str(elf)]
    result = subprocess.run(command, check=False, capture_output=True, text=True, cwd=work)
    if result.returncode:
        raise BuildError(result.stderr)
    return elf


@functools.cache
def probe(board: str, name: str, *flags: str) -> Path:
    """Returns the linked probe, built once per process."""
    work = Path(tempfile.mkdtemp(dir=_FOLDER.name))
    sources = [ROOT / "probe.c", ROOT / "probe_weights.S"]
    return link(load_board(board), name, sources, flags, work)


def one_set(action: str, value: int = 0, echo: bytes = bytes(range(16))) -> bytes:
    return struct.pack("<B3xI", ACTIONS.index(action), value & 0xFFFFFFFF) + echo


def run(
    board: str,
    elf: Path,
    *sets: bytes,
    timeout: float = 600.0,
    count: bool = False,
    extra: tuple[str, ...] = (),
) -> RunResult:
    target = load_board(board)
    if target.family == "xtensa":
        needs_tool("qemu-system-xtensa")
    outputs = ("output.bin", "report.txt", *extra)
    request = RunRequest({"input.bin": b"".join(sets)}, outputs, timeout=timeout, count=count)
    return plugin(target).run(target, elf, request)


def report(result: RunResult) -> dict[str, int]:
    """Returns the numbers of report.txt."""
    lines = result.files["report.txt"].decode().splitlines()
    return {key: int(value) for key, _, value in (line.partition("=") for line in lines)}
