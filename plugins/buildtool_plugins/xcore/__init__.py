"""The xcore family. Plans are for the chip. Networks run as the chip's code in buildtool's own simulator, the
XS3 runner.

With a compiler of this machine they run as its programs, with a model of the vector unit: for debuggers, and
if clang has no back end for XCore. A project for XMOS's XTC tools is compiled if the tools are in PATH.
"""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from buildtool.base.errors import ToolError, suggest
from buildtool.base.modes import Level
from buildtool.target.kernels import kernels_root
from buildtool.target.plugin import Exported, Harness, VendorBuild
from buildtool.target.types import Board, Flashing, Issues, Reality, RunRequest, RunResult, Toolchain, Wiring
from buildtool_plugins.host import HostPlugin
from buildtool_plugins.tools.sandbox import run_program
from buildtool_plugins.xs3.elf_files import is_image

if TYPE_CHECKING:
    from buildtool_plugins.tools.find import Compiler

ISSUES_SOURCE = Path(__file__).resolve().parent / "issues.c"
ISSUES_FLAGS = ("-DNN_VPU_COUNT", "-DNN_CYCLES")
ISSUES = "issues.txt"  # the counting firmware writes it
RUNNER = "xs3"  # the toolchain whose images the XS3 runner executes
SIMULATED, MODELLED = Reality(Level.SIMULATOR, "simulator, ours"), "model on the host"
_LINE = re.compile(r"(\d+) (\d+) (\d+) (\d+) (\d+)")


class XcorePlugin(HostPlugin):
    """The plugin for xcore boards. Methods that it does not define are those of the host family."""

    name = "xcore"
    root = Path(__file__).resolve().parent
    kernels = ("xcore_vpu", "xcore_vpu16")
    toolchains = (RUNNER, "clang", "gcc")

    def requantisations(self, board: Board) -> dict[str, tuple[str, ...]]:
        """Returns the kernel families for requantisation with 16-bit multipliers; only for XS3, because VX4's
        multipliers differ.
        """
        return {"vpu16": ("xcore_vpu16",)} if board.core.isa == "xs3" else {}

    def toolchain(self, board: Board, name: str) -> Toolchain:
        """Returns the toolchain `name`: for "xs3" clang's XCore back end, for other names a compiler of this
        machine.

        For "" it is the board's first one; if that is "xs3" and not available, a compiler of this machine.
        """
        names = self.find_toolchains(board, name)
        others = tuple(one for one in names if one != RUNNER)
        if (name or names[0]) == RUNNER:
            try:
                return self._runner(board)
            except ToolError:
                if name or not others:
                    raise
        return super().toolchain(dataclasses.replace(board, toolchains=others), name)

    def _runner(self, board: Board) -> Toolchain:
        """Returns the toolchain for the XS3 runner. Raises ToolError as `_find_runner` does."""
        from buildtool_plugins.tools.find import find_ar
        from buildtool_plugins.xs3 import cc
        from buildtool_plugins.xs3.compiler import CFLAGS, RUNTIME

        clang = _find_runner(board)
        memories = (("ram", board.memory(board.data)), ("far", board.memory(board.weights)))
        flags = ("-O2", "-ffp-contract=off", "-D__XS3A__", *board.core.cflags)
        return Toolchain(
            name=RUNNER,
            identity=clang.identity,
            cc=cc.program(),
            cflags=(
                f"--clang={clang.path}",
                *CFLAGS,
                *flags,
                *(f"-D{define}" for define in board.core.defines),
            ),
            ldflags=(
                *(f"--{flag}={one.name},{one.base:#x},{one.size}" for flag, one in memories),
                f"--stack={board.stack_bytes}",
            ),
            ar=find_ar(clang),
            objects=tuple(map(str, RUNTIME)),
        )

    def harness(self, board: Board) -> Harness:
        """Returns the sources of the host's test program. The XS3 runner runs the same program."""
        plain = super().harness(board)
        (own,) = (path for path in plain.sources if path.name != "harness.c")
        others = tuple(path for path in plain.sources if path != own)
        return Harness((*others, self.root / "harness_io.c"), plain.includes)

    def reality(self, board: Board) -> Reality:
        """Returns how close a run of a program by the board's first toolchain is to the real board."""
        return SIMULATED if board.toolchains[:1] == (RUNNER,) else _describe_model(board)

    def board_of(self, board: Board, image: bytes) -> Board:
        """Returns the board with only those toolchains that make images like `image`. With an image for XS3,
        the board is not native.
        """
        if is_image(image):
            return dataclasses.replace(board, toolchains=(RUNNER,), emulator=None)
        others = tuple(name for name in board.toolchains if name != RUNNER)
        return dataclasses.replace(board, toolchains=others)

    def counting_harness(self, board: Board) -> Harness:
        """Returns the sources of the host's test program, whose model of the vector unit counts issue
        slots.
        """
        plain = self.harness(board)
        own = kernels_root() / "xcore_vpu"
        return Harness((*plain.sources, ISSUES_SOURCE), (*plain.includes, own), ISSUES_FLAGS)

    def run(self, board: Board, image: Path, request: RunRequest) -> RunResult:
        """Runs an image for XS3 in the XS3 runner, and any other image as a program of this machine.

        A program of this machine must have been built with `counting_harness` if the request has `count`: it
        writes the file of issue slots itself.
        """
        if is_image(image.read_bytes()):
            return _run_on_xs3(image, request)
        outputs = (*request.outputs, *((ISSUES,) if request.count else ()))
        result = super().run(board, image, dataclasses.replace(request, outputs=outputs, count=False))
        issues = parse_issues(result.files.pop(ISSUES)) if request.count else {}
        return dataclasses.replace(result, issues=issues, reality=_describe_model(board))

    def flashing(self, board: Board, image: Path, tool: str) -> Flashing:
        """Raises ToolError, whose hints are the commands to run by hand: buildtool's own images run only on
        this machine.
        """
        from buildtool_plugins.xcore import xtc

        raise xtc.by_hand(image.stem)

    def wiring(self, board: Board, wire: str) -> Wiring:
        """Raises ToolError as `flashing` does: buildtool makes no test firmware for the chip."""
        from buildtool_plugins.xcore import xtc

        raise xtc.by_hand("NAME")

    def build_files(self, exported: Exported) -> dict[str, bytes]:
        """Returns a CMake project for XMOS's XTC tools, and the weights in their flash container."""
        from buildtool_plugins.xcore import xtc

        return xtc.project(exported)

    def vendor_build(self, net: str, folder: Path, tell: Callable[[str], None]) -> VendorBuild | None:
        """Compiles the project to an .xe file; None if XTC is not in PATH. Raises ToolError with the messages
        of its tools if they fail.
        """
        from buildtool_plugins.xcore import xtc

        return xtc.compile_project(net, folder, tell)


def _find_runner(board: Board) -> Compiler:
    """Returns the clang that compiles for the XS3 runner.

    Raises ToolError if this clang has no back end for XCore, or if the arena is not in the memory of the
    globals: the runner has only one memory that programs write to.
    """
    from buildtool_plugins.xs3.compiler import find_compiler

    model = suggest("a model on this machine", toolchain="clang")
    apart = [name for name in board.holders if name != board.data]
    if apart:
        text = f"the XS3 runner has an arena in memory '{board.data}', not in '{apart[0]}'"
        raise ToolError(text, hint=model)
    try:
        return find_compiler()
    except ToolError as error:
        raise ToolError(error.text, hint=[*error.hints, model]) from None


def _describe_model(board: Board) -> Reality:
    """Returns the reality of a program of this machine. Its text says why the XS3 runner cannot be used, if
    that is so.
    """
    try:
        _find_runner(board)
    except ToolError as error:
        return Reality(Level.MODEL, f"{MODELLED}: {error.text}")
    return Reality(Level.MODEL, MODELLED)


def _run_on_xs3(image: Path, request: RunRequest) -> RunResult:
    """Runs an image of the toolchain xs3. Issue slots are always counted, if the network marks its
    operators.
    """
    from buildtool_plugins.xs3.machine import compile_runner

    program = [sys.executable, "-m", "buildtool_plugins.xs3.run", str(compile_runner())]
    line = [*program, str(image.resolve()), ISSUES]
    counted = dataclasses.replace(request, outputs=(*request.outputs, ISSUES))
    files, text = run_program(line, counted, what="the program in the XS3 runner")
    counts = files.pop(ISSUES)
    issues = {} if counts == b"invokes 0\n" else parse_issues(counts)
    no_cycles = "the XS3 runner counts issue slots, not cycles"
    return RunResult(files=files, text=text, reality=SIMULATED, issues=issues, no_cycles=no_cycles)


def parse_issues(text: bytes) -> dict[int, Issues]:
    """Returns the issue slots of each operator, from the text of a counting firmware. Raises ToolError if it
    is damaged.
    """
    issues: dict[int, Issues] = {}
    lines = text.decode("ascii", "replace").splitlines()
    for line in lines[:-1]:
        match = _LINE.fullmatch(line)
        if match is None:
            raise ToolError(f"the counting firmware wrote '{line}'")
        number, vpu, mac, scalar, slowest = map(int, match.groups())
        issues[number] = Issues(vpu, mac, scalar, slowest)
    if not lines or not re.fullmatch(r"invokes [1-9]\d*", lines[-1]):
        raise ToolError("the counting firmware's counts are cut off")
    return issues


plugin = XcorePlugin()
