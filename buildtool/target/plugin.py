"""The interface of target plugins: what a family of boards provides. Plugins are entry points of the group
`buildtool.targets`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from buildtool.base.errors import ToolError
from buildtool.target.executed import BlockTime
from buildtool.target.types import Board, RunRequest, RunResult, Toolchain

# The version of the interface between a target family and buildtool: the methods below, the keys of board
# files and catalogues, the arguments of packings, and the C interface of kernels. It grows when a change
# breaks existing plugins. Plugins of another version are refused.
INTERFACE = 1


class ProgramError(ToolError):
    """A program ended with an error: a fault, or an exit status other than 0.

    `running` is the position of the operator that was being computed (None: not known).
    """

    running: int | None = None


@dataclass(frozen=True)
class Harness:
    """The C sources of the test firmware itself: harness.c, and the file input and output of the board.

    `includes` are folders of headers. `flags` are used for every compilation of the firmware.
    """

    sources: tuple[Path, ...]
    includes: tuple[Path, ...]
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class KernelFolder:
    """A kernel family of a plugin: its folder (see `family`), whose name boards write in core.families.

    `portable` says that every core can run it. Such families come last on every board.
    """

    path: Path
    portable: bool = False


@dataclass(frozen=True)
class Exported:
    """A network that a chip maker's own tool compiles. `net` is its name in C."""

    net: str
    board: Board
    files: Mapping[str, bytes]  # emitted, by name
    kernels: tuple[str, ...]  # further C files, below kernels/
    includes: tuple[str, ...]  # folders of headers, below kernels/


@dataclass(frozen=True)
class VendorBuild:
    """The files that the chip maker's compiler made, and the compiler's name."""

    files: Mapping[str, bytes]
    compiler: str


class Timer(Protocol):
    """A model of a core's pipeline, which computes the time of blocks of code."""

    @property
    def identity(self) -> str:
        """The program, its version and the model: everything that its results depend on."""

    def time(self, blocks: Sequence[bytes]) -> list[BlockTime]:
        """Returns the time of each block of machine code, in order. Raises ToolError if the program fails."""


class TargetPlugin(Protocol):
    """A target family: boards as data, and the tools that build and run firmware for them.

    Its Python code runs in the planner's process, with the user's rights. These members are optional:

    - `kernel_families()`: its KernelFolders, for its own boards and for those of other plugins;
    - `libraries`: the names of libraries whose kernels its boards can use. `library(board, name, path)`: the
      user's Library at `path`; raises UsageError if the board cannot use it, or it is not at `path`;
    - `requantisations(board)`: for each value of `Requantise` that the board offers, the names of the kernel
      families that requantise so and are preferred to the core's other families;
    - `copies_into_ram`: whether its start-up code copies kernels and weights into RAMs that the roles name;
    - `debug_server(board, port)`: the board's DebugServer; raises ToolError naming the missing program;
    - `reality(board)`: the Reality of `run`, for programs by the board's first toolchain, if `run` uses
      neither native code of this machine nor an emulator. `board_of(board, image)`, if toolchains make
      different kinds of images: the board with only the toolchains that make images of this kind;
    - `counting_harness(board)`, if `run` uses a model of the core: the Harness of firmware that counts the
      core's issue slots. `run` then returns `RunResult.issues` for a request with `count`;
    - `build_files(exported)`, if the chip has its maker's own compiler: files by name (bytes) that build an
      Exported network with it;
    - `serial_port(board)`: the Wiring with the driver of the board's serial port, for applications that use
      it; None if the board's file names no port;
    - `timer(board)`: the Timer for the core of a board whose file names a model in [pipeline]; raises
      ToolError if the program is missing, with the command that installs it;
    - `vendor_build(net, folder, tell)`: compiles the network and the files of `build_files` in `folder` to a
      VendorBuild; None if the maker's compiler is not installed. `tell` gets progress messages. Raises
      ToolError if the compiler fails.
    """

    @property
    def name(self) -> str:
        """The family's name, as in Board.family."""

    @property
    def interface(self) -> int:
        """The version of the plugin interface (INTERFACE) for which the plugin was written, as a literal
        number.
        """

    def board_files(self) -> tuple[Path, ...]:
        """Returns the .toml files of its boards."""

    def toolchain(self, board: Board, name: str) -> Toolchain:
        """Returns the toolchain `name` ("": the default) for `board`, with a linker script if it needs one.

        It writes no files. Raises ToolError if a program is missing, with how to install it.
        """

    def harness(self, board: Board) -> Harness:
        """Returns the sources with the `main` that `validate`, `profile` and `run` link with a network."""

    def run(self, board: Board, image: Path, request: RunRequest) -> RunResult:
        """Runs a firmware image in the emulator, or on this machine. Raises ProgramError if the program
        fails, and ToolError if a tool is missing or fails.
        """
