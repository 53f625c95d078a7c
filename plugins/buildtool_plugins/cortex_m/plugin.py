"""The Cortex-M family's plugin: clang or arm-none-eabi-gcc, bare-metal start-up, QEMU."""

from __future__ import annotations

from pathlib import Path

from buildtool.errors import ToolError, did_you_mean
from buildtool.target.plugin import Harness
from buildtool.target.types import Board, RunRequest, RunResult, Toolchain
from buildtool_plugins import baremetal, harness

ROOT = Path(__file__).resolve().parent

CFLAGS = (
    *("-std=gnu99", "-O3"),
    "-ffp-contract=off",  # fused multiply-adds would round otherwise than the reference
    *("-ffunction-sections", "-fdata-sections", "-fno-common"),
    "-fshort-enums",  # the two compilers' defaults differ
    *("-fno-unwind-tables", "-fno-asynchronous-unwind-tables"),
)
# No C library, whatever is installed: baremetal/include/ has what freestanding code may use.
CLANG_TARGET = "--target=arm-none-eabi"
CLANG_FLAGS = (CLANG_TARGET, "-nostdlibinc")
# -ffreestanding: gcc's <stdint.h> asks for the library's otherwise; -fbuiltin: memcpy is inlined still.
GCC_FLAGS = ("-ffreestanding", "-fbuiltin")
# 16: segments lie as close in the file, and at load, as the linker script puts them.
LDFLAGS = (
    "-nostdlib",
    "-static",
    "-Wl,--gc-sections",
    "-Wl,-z,max-page-size=16",
    "-Wl,-z,noexecstack",
    "-Wl,--build-id=none",
)


class CortexMPlugin:
    """See buildtool.target.plugin.TargetPlugin."""

    name = "cortex_m"

    def board_files(self) -> tuple[Path, ...]:
        """The .toml files of the boards it knows."""
        return tuple(sorted((ROOT / "boards").glob("*.toml")))

    def toolchain(self, board: Board, name: str, work: Path) -> Toolchain:
        """The compiler `name` ("" for the board's default), with a linker script written to `work`."""
        from buildtool_plugins.baremetal.linker import linker_script
        from buildtool_plugins.tools.find import (
            APT_GCC_ARM,
            find_ar,
            find_clang,
            find_gcc,
            find_lld,
        )

        known = board.toolchains or ("clang", "gcc")
        chosen = name or known[0]
        if chosen not in ("clang", "gcc") or chosen not in known:
            hint = did_you_mean(chosen, [t for t in known if t in ("clang", "gcc")])
            raise ToolError(f"board '{board.name}' has no toolchain '{chosen}'", hint=hint)
        if chosen == "clang":
            compiler = find_clang()
            select: tuple[str, ...] = CLANG_FLAGS
            link: tuple[str, ...] = (
                CLANG_TARGET,
                f"--ld-path={find_lld(compiler)}",
            )
        else:
            compiler = find_gcc("arm-none-eabi-gcc", APT_GCC_ARM)
            select, link = GCC_FLAGS, ("-lgcc", "-Wl,--no-warn-rwx-segments")
        script = work / f"{board.name}.ld"
        script.write_text(linker_script(board), encoding="utf-8")
        return Toolchain(
            name=chosen,
            identity=compiler.identity,
            cc=compiler.path,
            cflags=(
                *select,
                *CFLAGS,
                "-isystem",
                str(baremetal.ROOT / "include"),
                *board.core.cflags,
                *(f"-D{define}" for define in board.core.defines),
            ),
            ldflags=(*board.core.cflags, *LDFLAGS, f"-Wl,-T,{script}", *link),
            ar=find_ar(compiler, "arm-none-eabi-"),
            objects=(
                str(ROOT / "startup.c"),
                str(ROOT / "semihosting_call.c"),
                str(baremetal.ROOT / "memory.c"),
                str(baremetal.ROOT / "semihosting.c"),
            ),
            includes=(str(baremetal.ROOT),),
        )

    def harness(self, board: Board) -> Harness:
        """The test firmware's sources; files and text go through semihosting."""
        return Harness(
            sources=(harness.ROOT / "harness.c", baremetal.ROOT / "harness_io.c"),
            includes=(harness.ROOT, baremetal.ROOT),
        )

    def run(self, board: Board, image: Path, request: RunRequest) -> RunResult:
        """Runs the image in QEMU; raises ToolError if it is missing or if the firmware fails."""
        from buildtool_plugins.qemu.runner import run

        return run(board, image, request)


plugin = CortexMPlugin()
