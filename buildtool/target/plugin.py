"""The plugin interface: what a target family provides. Found through entry points `buildtool.targets`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from buildtool.base.errors import ToolError
from buildtool.target.executed import BlockTime
from buildtool.target.types import Board, RunRequest, RunResult, Toolchain

# The version of what a target family and buildtool agree on: the methods below, the keys of board files and
# catalogues, what packings are handed, and the C interface of kernels. It grows when one of them changes
# so that a plugin that was written for it would no longer do, and a plugin of another one is refused.
INTERFACE = 1


class ProgramError(ToolError):
    """A program that was run ended with an error: a fault, an exit status other than 0.

    `running`: the operator (its position in the network) that was being computed; None: not known.
    """

    running: int | None = None


@dataclass(frozen=True)
class Harness:
    """The test firmware's own C: harness.c and the board's file input and output.

    `flags` are given to every compilation of the firmware.
    """

    sources: tuple[Path, ...]
    includes: tuple[Path, ...]
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class KernelFolder:
    """A kernel family that a plugin offers: its folder (see `family`), which boards name in core.families.

    `portable`: every core can run it. Such families come last on every board.
    """

    path: Path
    portable: bool = False


@dataclass(frozen=True)
class Exported:
    """A network that another tool is to compile."""

    net: str
    board: Board
    files: Mapping[str, bytes]  # emitted, by name
    kernels: tuple[str, ...]  # further C files, below kernels/
    includes: tuple[str, ...]  # folders of headers, below kernels/


@dataclass(frozen=True)
class VendorBuild:
    """The files that the maker's own compiler made, and the compiler's name."""

    files: Mapping[str, bytes]
    compiler: str


class Timer(Protocol):
    """A model of a core's pipeline that says how long blocks of code take."""

    @property
    def identity(self) -> str:
        """Program, version and model: all that its answers depend on."""

    def time(self, blocks: Sequence[bytes]) -> list[BlockTime]:
        """The time of each block, in their order; raises ToolError."""


class TargetPlugin(Protocol):
    """A target family: boards as data, and the tools to build and run for them.

    Its Python runs in the planner's process, with the rights of whoever plans. It may also have:

    - `kernel_families()`: the KernelFolders it offers, to its own boards and to those of others;
    - `libraries`, names of libraries whose kernels its boards can use, and `library(board, name, path)`: the
      Library that the user has at `path`; raises UsageError where the board cannot use it, or it is none;
    - `requantisations(board)`: the kernel families that come first, by the name of `Requantise`;
    - `debug_server(board, port)`: the DebugServer of the board; raises ToolError naming the missing program;
    - `reality(board)`: the Reality of `run`, where that is neither this machine's own code nor an emulator;
    - `counting_harness(board)`, where `run` takes a model of the core: the Harness of a firmware that counts
      what the core would issue; `run` then gives `RunResult.issues` if the request says `count`;
    - `build_files(exported)`, where the chip's compiler is the maker's own: files by name (bytes) that build
      an Exported network with it;
    - `timer(board)`: the Timer of the board's core, for boards whose file names a model in [pipeline]; raises
      ToolError where the program is missing, with the line that installs it;
    - `vendor_build(net, folder, tell)`: the VendorBuild of what `build_files` and the network's files are in
      `folder`, None where the maker's compiler is not there; `tell` hears of progress. Raises ToolError.
    """

    @property
    def name(self) -> str:
        """The family's name, as in Board.family."""

    @property
    def interface(self) -> int:
        """The INTERFACE that it was written for, as a number of its own."""

    def board_files(self) -> tuple[Path, ...]:
        """The .toml files of the boards it knows."""

    def toolchain(self, board: Board, name: str) -> Toolchain:
        """The compiler `name` ("" for the default) set up for `board`, with its linker script if it has one.

        Writes nothing. Raises ToolError naming the missing program and how to get it.
        """

    def harness(self, board: Board) -> Harness:
        """The sources of the `main` that `validate`, `profile` and `run` link with a network."""

    def run(self, board: Board, image: Path, request: RunRequest) -> RunResult:
        """Runs a linked image in the emulator (or natively). Raises ToolError; ProgramError if it fails."""
