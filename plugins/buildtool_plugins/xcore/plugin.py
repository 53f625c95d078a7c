"""The xcore family's plugin: no compiler for the chip is to be had, so networks run on the host.

Everything up to the compiler is made for the chip: plan, sources, weight image, the arena's map, and
a build file for XMOS's tools. What runs is the same C, compiled natively with the plain kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from buildtool.target.kernels import kernels_root
from buildtool.target.plugin import INTERFACE, Harness, KernelFolder
from buildtool.target.types import Board, DebugServer, RunRequest, RunResult, Toolchain
from buildtool_plugins.host import plugin as host

ROOT = Path(__file__).resolve().parent


MAKEFILE = """\
# Compiles {net} for XK-EVK-XU316 with XMOS's XTC tools, and writes its weights to the board's flash:
#     make -f {net}_xtc.mk && make -f {net}_xtc.mk flash
# It is written after their documentation, and was not tried: buildtool has no access to them.
# Link the library with an application that calls {net}_set_loader with a reader of the flash's data
# partition, then {net}_init with NULL for the weights.
TARGET = XK-EVK-XU316
CFLAGS = -target=$(TARGET) -O3 -std=gnu99 -ffp-contract=off -I. -Ikernels/include

OBJECTS = {objects}

lib{net}.a: $(OBJECTS)
\txmosar rcs $@ $^

%.o: %.c
\txcc $(CFLAGS) -c $< -o $@

flash: {net}_weights.bin
\txflash --target $(TARGET) --data $<

.PHONY: flash
"""


class XcorePlugin:
    """See buildtool.target.plugin.TargetPlugin."""

    name = "xcore"
    interface = INTERFACE

    def board_files(self) -> tuple[Path, ...]:
        """The .toml files of the boards it knows."""
        return tuple(sorted((ROOT / "boards").glob("*.toml")))

    def kernel_families(self) -> tuple[KernelFolder, ...]:
        """The kernels for its vector unit, which run on the host through a model of the unit."""
        return tuple(KernelFolder(kernels_root() / name) for name in ("xcore_vpu", "xcore_vpu16"))

    def requantisations(self, board: Board) -> dict[str, tuple[str, ...]]:
        """By the multipliers of 16 bits: those of XS3, which VX4's are not."""
        return {"vpu16": ("xcore_vpu16",)} if board.core.isa == "xs3" else {}

    def toolchain(self, board: Board, name: str) -> Toolchain:
        """The host's compiler."""
        return host.toolchain(board, name)

    def harness(self, board: Board) -> Harness:
        """The host's test program."""
        return host.harness(board)

    def debug_server(self, board: Board, port: int) -> DebugServer:
        """The host's: there the network runs."""
        return host.debug_server(board, port)

    def run(self, board: Board, image: Path, request: RunRequest) -> RunResult:
        """Runs the program on the host; instructions are not counted."""
        return host.run(board, image, request)

    def build_files(self, net: str, kernels: Sequence[str]) -> dict[str, bytes]:
        """A makefile for XMOS's XTC tools."""
        objects = [f"{net}.o", *(f"kernels/{name}".removesuffix(".c") + ".o" for name in kernels)]
        text = MAKEFILE.format(net=net, objects=" \\\n    ".join(objects))
        return {f"{net}_xtc.mk": text.encode()}


plugin = XcorePlugin()
